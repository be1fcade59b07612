//! End-to-end tests of the authorization server in one process: complete sign-ins, and attacks on them.

mod attacks;
mod bounds;
mod details;
mod devices;
mod documents;
mod opening;
mod pages;
mod providers;
mod refreshing;
mod sign_in_flow;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Body;
use docent_mcp::Auth;
use docent_mcp::http::guard::RequestGuard;
use docent_mcp::{Answer, App, Context, Tool, ToolAnnotations, ToolDescriptor};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;

const ADDRESS: &str = "https://docs.example.org";
const CALLBACK: &str = "https://app.example/cb";
const PASSWORD: &str = "harbour lights";
/// A code verifier and its S256 challenge, from appendix B of RFC 7636.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

struct WhoTool;
impl Tool for WhoTool {
    type Input = NoArguments;
    type Output = String;
    fn descriptor(&self) -> ToolDescriptor {
        ToolDescriptor::new(
            "who",
            "Who",
            "Use this to learn who asks.",
            ToolAnnotations::READ_ONLY,
        )
    }
    async fn call(&self, _: NoArguments, context: Context) -> Result<Answer<String>, Failure> {
        let caller = context.caller();
        let all = [
            caller.subject().unwrap_or_default().to_owned(),
            caller.claim("email").join(","),
            caller.claim("groups").join(","),
        ];
        Ok(Answer::new(all.join("|")))
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArguments {}

/// A resource server with its authorization server, a clock that tests advance, and a state folder that
/// outlives restarts.
struct SignInWorld {
    dir: tempfile::TempDir,
    clock: Arc<AtomicU64>,
    login: LoginMethod,
    own_hosts: OwnHosts,
    server: Option<AuthorizationServer>,
    router: Router,
}

/// The response to a request of a test.
struct PageReply {
    status: StatusCode,
    headers: http::HeaderMap,
    body: String,
}

impl PageReply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }

    fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The value of a hidden form field.
    fn hidden(&self, name: &str) -> String {
        let mark = format!("name=\"{name}\" value=\"");
        let rest = self
            .body
            .split_once(&mark)
            .unwrap_or_else(|| panic!("{}", self.body))
            .1;
        unescape(rest.split('"').next().unwrap())
    }

    /// The URL to which the response sends the browser: by a redirect, a forwarding page or an error page's
    /// link.
    fn target(&self) -> url::Url {
        let text = match self.headers.get(header::LOCATION) {
            Some(to) => to.to_str().unwrap().to_owned(),
            None => {
                let mark = if self.body.contains("http-equiv=\"refresh\"") {
                    "url="
                } else {
                    "<a href=\""
                };
                let rest = self
                    .body
                    .split_once(mark)
                    .unwrap_or_else(|| panic!("{}", self.body))
                    .1;
                unescape(rest.split('"').next().unwrap())
            }
        };
        url::Url::parse(&text).unwrap()
    }

    /// True when the browser is redirected without a click; otherwise this must be an error page with
    /// status 400.
    fn redirects(&self) -> bool {
        let leaves = self.headers.contains_key(header::LOCATION)
            || self.headers.contains_key("refresh")
            || self.body.contains("http-equiv");
        assert!(leaves || self.status == 400, "{}", self.status);
        leaves
    }

    fn sent(&self, name: &str) -> Option<String> {
        let target = self.target();
        let mut found = target.query_pairs().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.into_owned())
    }
}

fn unescape(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

fn encoded(values: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(values);
    query.finish()
}

impl SignInWorld {
    fn new() -> Self {
        Self::with(LoginMethod::Password)
    }

    fn with(login: LoginMethod) -> Self {
        Self::made(login, OwnHosts::default())
    }

    /// A world whose operator allows these hosts for client documents.
    fn with_own_hosts(own_hosts: OwnHosts) -> Self {
        Self::made(LoginMethod::Password, own_hosts)
    }

    fn made(login: LoginMethod, own_hosts: OwnHosts) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let now = (AuthorizationServerOptions::new("", "", "").clock)();
        let mut world = Self {
            dir,
            clock: Arc::new(AtomicU64::new(now)),
            login,
            own_hosts,
            server: None,
            router: Router::new(),
        };
        let users = UserStore::in_dir(world.dir.path());
        for (name, group) in [("anna", "crew"), ("nils", "guests")] {
            let user = UserAccount {
                name: name.to_owned(),
                email: Some(format!("{name}@port.example")),
                groups: vec![group.to_owned()],
                password: hash_password(PASSWORD).unwrap(),
            };
            users.add(user).unwrap();
        }
        world.restart();
        world
    }

    /// Opens everything again, as a restarted process would.
    fn restart(&mut self) {
        self.router = Router::new();
        self.server = None;
        let clock = self.clock.clone();
        let server = AuthorizationServer::open(AuthorizationServerOptions {
            login: self.login.clone(),
            own_hosts: self.own_hosts.clone(),
            clock: Arc::new(move || clock.load(Ordering::SeqCst)),
            ..AuthorizationServerOptions::new(ADDRESS, "Harbour <archive>", self.dir.path())
        })
        .unwrap();
        let auth = Auth::builder([ADDRESS])
            .issuer(server.issuer())
            .scopes(["docs.read"]);
        let options = docent_mcp::http::HttpOptions {
            auth: Some(auth.build().unwrap()),
            routes: server.routes(),
            ..docent_mcp::http::HttpOptions::default()
        };
        let app = App::builder("t", "1.0.0").tool(WhoTool).build().unwrap();
        let guard = RequestGuard::new(&["docs.example.org"], &[ADDRESS]).unwrap();
        self.router = docent_mcp::http::router(app, options, guard);
        self.server = Some(server);
    }

    fn server(&self) -> &AuthorizationServer {
        self.server.as_ref().unwrap()
    }

    fn advance_clock(&self, seconds: u64) {
        self.clock.fetch_add(seconds, Ordering::SeqCst);
    }

    async fn send(&self, request: http::request::Builder, body: String) -> PageReply {
        let request = request
            .header("host", "docs.example.org")
            .body(Body::from(body))
            .unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        PageReply {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    async fn get(&self, target: &str) -> PageReply {
        self.send(Request::get(target), String::new()).await
    }

    async fn post(&self, path: &str, values: &[(&str, &str)]) -> PageReply {
        let request =
            Request::post(path).header("content-type", "application/x-www-form-urlencoded");
        self.send(request, encoded(values)).await
    }

    async fn register(&self, metadata: Value) -> PageReply {
        let request = Request::post("/register").header("content-type", "application/json");
        self.send(request, metadata.to_string()).await
    }

    /// Registers a client and returns its client id.
    async fn client(&self) -> String {
        let reply = self
            .register(json!({"client_name": "Chart room", "redirect_uris": [CALLBACK]}))
            .await;
        assert_eq!(reply.status, 201, "{}", reply.body);
        reply.json()["client_id"].as_str().unwrap().to_owned()
    }

    /// The parameters of a valid authorization request.
    fn request<'a>(&self, client: &'a str) -> Vec<(&'a str, &'a str)> {
        vec![
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", CALLBACK),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("state", "s&1"),
            ("scope", "docs.read"),
            ("resource", "https://docs.example.org/mcp"),
        ]
    }

    async fn ask(&self, values: &[(&str, &str)]) -> PageReply {
        self.get(&format!("/authorize?{}", encoded(values))).await
    }

    /// Submits the form of a page with the page's cookie.
    async fn submit_form(&self, page: &PageReply, values: &[(&str, &str)]) -> PageReply {
        let cookie = page
            .header("set-cookie")
            .split(';')
            .next()
            .unwrap()
            .to_owned();
        let mut all = vec![
            ("request", page.hidden("request")),
            ("token", page.hidden("token")),
        ];
        all.extend(
            values
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned())),
        );
        let all: Vec<_> = all
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let request = Request::post("/authorize")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("origin", ADDRESS)
            .header("sec-fetch-site", "same-origin")
            .header("cookie", cookie);
        self.send(request, encoded(&all)).await
    }

    async fn sign_in(&self, page: &PageReply, name: &str, password: &str) -> PageReply {
        let values = [
            ("name", name),
            ("password", password),
            ("decision", "allow"),
        ];
        self.submit_form(page, &values).await
    }

    /// Runs the flow up to an authorization code.
    async fn code(&self, client: &str) -> String {
        let page = self.ask(&self.request(client)).await;
        let reply = self.sign_in(&page, "anna", PASSWORD).await;
        reply
            .sent("code")
            .unwrap_or_else(|| panic!("{}", reply.body))
    }

    async fn spend(&self, client: &str, code: &str) -> PageReply {
        let values = [
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
            ("resource", "https://docs.example.org/mcp"),
        ];
        self.post("/token", &values).await
    }

    async fn refresh(&self, client: &str, token: &str) -> PageReply {
        let values = [
            ("grant_type", "refresh_token"),
            ("client_id", client),
            ("refresh_token", token),
        ];
        self.post("/token", &values).await
    }

    /// Runs the whole flow: registration, consent, login and token request.
    async fn tokens(&self) -> (String, Value) {
        let client = self.client().await;
        let code = self.code(&client).await;
        let reply = self.spend(&client, &code).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        (client, reply.json())
    }

    /// Calls the tool `who` with this access token.
    async fn call(&self, token: &str) -> PageReply {
        let request = Request::post("/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("authorization", format!("Bearer {token}"));
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "who", "arguments": {}},
        });
        self.send(request, body.to_string()).await
    }
}

impl SignInWorld {
    /// Creates an authorization code without a form. Each needs another second.
    async fn allow_directly(&self, client: &str, second: u64) -> String {
        let query = encoded(&self.request(client));
        let request = self
            .server()
            .parse_authorization_request(&query)
            .await
            .unwrap_or_else(|_| panic!("{query}"));
        let user = UserStore::in_dir(self.dir.path())
            .find("anna")
            .unwrap()
            .unwrap();
        self.advance_clock(u64::from(second > 0));
        let page = self
            .server()
            .allow(request, authorize_endpoint::identity_of(&user))
            .await
            .unwrap();
        let body = String::from_utf8(page.body().to_vec()).unwrap();
        let headers = http::HeaderMap::new();
        let status = StatusCode::OK;
        PageReply {
            status,
            headers,
            body,
        }
        .sent("code")
        .unwrap()
    }
}

impl AuthorizationServerInner {
    /// The number of rows in a table of the store.
    fn grants_on_disk(&self, table: store::StoreTable) -> usize {
        self.grants.count(table)
    }
}

fn text(value: &Value, name: &str) -> String {
    value[name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {value}"))
        .to_owned()
}

/// The claims of a token, without verification.
fn claims(token: &str) -> Value {
    let payload = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&crypto::decode(payload).unwrap()).unwrap()
}
