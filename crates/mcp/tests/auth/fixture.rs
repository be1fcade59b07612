//! Fixture for tests of authentication: issuers on the loopback interface, a server that trusts them, and a raw client.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use docent_mcp::http::limits::HttpLimits;
use docent_mcp::http::{
    HttpOptions, Route, RouteRequest, RouteResponse, ServerTls, serve, serve_routes,
};
use docent_mcp::{
    Answer, App, Auth, AuthBuilder, AuthRequirement, Context, Failure, Issuer, IssuerNetwork,
    LocalKeys, Security, Tool, ToolAnnotations, ToolDescriptor,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::mint::{Signer, jwks};

pub(crate) const BASE: &str = "https://docs.example.org";
pub(crate) const STRICT: &str = "https://strict.example";

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_secs()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EchoInput {
    /// Returned unchanged, so that a test can tell whose call a response belongs to.
    #[serde(default)]
    echo: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct WhoOutput {
    subject: Option<String>,
    issuer: Option<String>,
    groups: Vec<String>,
    echo: String,
    owner: bool,
}

/// Tool that reports its caller, under any name and with any security schemes.
pub(crate) struct WhoAmI(pub(crate) &'static str, pub(crate) Option<Vec<Security>>);

impl Tool for WhoAmI {
    type Input = EchoInput;
    type Output = WhoOutput;
    fn descriptor(&self) -> ToolDescriptor {
        let descriptor = ToolDescriptor::new(
            self.0,
            "Who am I",
            "Says who calls.",
            ToolAnnotations::READ_ONLY,
        );
        match &self.1 {
            Some(schemes) => descriptor.security(schemes.clone()),
            None => descriptor,
        }
    }
    async fn call(&self, input: EchoInput, cx: Context) -> Result<Answer<WhoOutput>, Failure> {
        // Lets other calls run in between: their callers must not be mixed up with this one.
        tokio::task::yield_now().await;
        let caller = cx.caller();
        Ok(Answer::new(WhoOutput {
            subject: caller.subject().map(str::to_owned),
            issuer: caller.issuer().map(str::to_owned),
            groups: caller.claim("groups"),
            echo: input.echo,
            owner: caller.is_owner(),
        }))
    }
}

/// App with a tool for each kind of security scheme: the default, none, OAuth, and both.
pub(crate) fn app() -> App {
    App::builder("who", "1")
        .tool(WhoAmI("whoami", None))
        .tool(WhoAmI("open", Some(vec![Security::NoAuth])))
        .tool(WhoAmI(
            "write",
            Some(vec![Security::oauth2(["docs.write", "docs.admin"])]),
        ))
        .tool(WhoAmI(
            "either",
            Some(vec![Security::NoAuth, Security::oauth2(["docs.read"])]),
        ))
        .build()
        .unwrap()
}

/// Issuer on the loopback interface with keys that a test can rotate, and an introspection endpoint (RFC 7662).
pub(crate) struct LoopbackIssuer {
    pub(crate) name: String,
    pub(crate) keys: Arc<Mutex<Value>>,
    pub(crate) fetches: Arc<AtomicUsize>,
    /// Every request received, so that a test can search it for leaked credentials.
    pub(crate) received: Arc<Mutex<String>>,
    stop: CancellationToken,
}

impl LoopbackIssuer {
    pub(crate) async fn start(signers: &[&Signer]) -> Self {
        Self::start_with(signers, None).await
    }

    /// Starts the issuer over TLS when a certificate is given. Its name is then `https://localhost`.
    pub(crate) async fn start_with(signers: &[&Signer], tls: Option<ServerTls>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let name = match tls {
            Some(_) => format!("https://localhost:{}", address.port()),
            None => format!("http://{address}"),
        };
        let keys = Arc::new(Mutex::new(jwks(signers)));
        let (fetches, received) = (Arc::new(AtomicUsize::new(0)), Arc::default());
        let routes = routes(&name, keys.clone(), fetches.clone(), Arc::clone(&received));
        let stop = CancellationToken::new();
        let options = HttpOptions {
            routes,
            tls,
            ..HttpOptions::default()
        };
        tokio::spawn(serve_routes(options, listener, stop.clone()));
        Self {
            name,
            keys,
            fetches,
            received,
            stop,
        }
    }

    pub(crate) fn fetched(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

impl Drop for LoopbackIssuer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn routes(
    name: &str,
    keys: Arc<Mutex<Value>>,
    fetches: Arc<AtomicUsize>,
    received: Arc<Mutex<String>>,
) -> Vec<Route> {
    let metadata = json!({"issuer": name, "jwks_uri": format!("{name}/jwks")});
    let log = received.clone();
    vec![
        Route::get(
            "/.well-known/openid-configuration",
            move |visit: RouteRequest| {
                log.lock().unwrap().push_str(&format!("{visit:?}\n"));
                let metadata = metadata.clone();
                async move { Ok(RouteResponse::json(&metadata)) }
            },
        ),
        Route::post("/introspect", {
            let received = received.clone();
            let issuer = name.to_owned();
            move |visit: RouteRequest| {
                let body = String::from_utf8_lossy(visit.body()).into_owned();
                received.lock().unwrap().push_str(&format!("{visit:?}\n"));
                let mut response = claims(&issuer);
                response["active"] = body.contains("token=good").into();
                async move { Ok(RouteResponse::json(&response)) }
            }
        }),
        Route::get("/jwks", move |visit: RouteRequest| {
            received.lock().unwrap().push_str(&format!("{visit:?}\n"));
            fetches.fetch_add(1, Ordering::SeqCst);
            let keys = keys.lock().unwrap().clone();
            async move { Ok(RouteResponse::json(&keys)) }
        }),
    ]
}

/// Server with a remote and a local issuer, and the signing keys of both. `strict` is the key of the local issuer.
pub(crate) struct AuthFixture {
    pub(crate) provider: LoopbackIssuer,
    pub(crate) rsa: Signer,
    pub(crate) ec: Signer,
    pub(crate) ed: Signer,
    pub(crate) strict: Signer,
    pub(crate) server: AuthTestServer,
}

impl AuthFixture {
    pub(crate) async fn start() -> Self {
        Self::with(AuthRequirement::Always).await
    }

    pub(crate) async fn with(requirement: AuthRequirement) -> Self {
        let (rsa, ec, ed) = (
            Signer::rsa("rsa"),
            Signer::p256("ec"),
            Signer::ed25519("ed"),
        );
        let strict = Signer::ed25519("strict");
        let provider = LoopbackIssuer::start(&[&rsa, &ec, &ed]).await;
        let local = LocalKeys::default();
        local.replace(&jwks(&[&strict])).unwrap();
        let auth = builder()
            .issuer(
                Issuer::remote(&provider.name, None, IssuerNetwork::Private)
                    .cooldown(Duration::ZERO),
            )
            .issuer(Issuer::local(STRICT, local))
            .requirement(requirement)
            .build()
            .unwrap();
        let server = AuthTestServer::start(auth).await;
        Self {
            provider,
            rsa,
            ec,
            ed,
            strict,
            server,
        }
    }

    /// Claims of an access token that every tool with the default scopes accepts.
    pub(crate) fn claims(&self) -> Value {
        claims(&self.provider.name)
    }
}

pub(crate) fn claims(issuer: &str) -> Value {
    json!({
        "iss": issuer, "sub": "user-1", "aud": format!("{BASE}/mcp"), "exp": now() + 600,
        "iat": now(), "scope": "docs.read", "client_id": "client-1",
    })
}

pub(crate) fn builder() -> AuthBuilder {
    Auth::builder([BASE])
        .scopes(["docs.read"])
        .name("Example documents")
}

pub(crate) struct AuthTestServer {
    pub(crate) address: String,
    stop: CancellationToken,
}

impl Drop for AuthTestServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) struct AuthReply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl AuthReply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub(crate) fn json(&self) -> Value {
        let text = self.body.strip_prefix("data: ").unwrap_or(&self.body);
        serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }
}

/// Request of the raw client. Header values are bytes, because a test may send some that are no text.
pub(crate) struct RawRequest {
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, Vec<u8>)>,
    pub(crate) body: String,
}

impl RawRequest {
    /// A `tools/call` request with empty arguments and without a credential.
    pub(crate) fn call(tool: &str) -> Self {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": {}}});
        Self::rpc(&body)
    }

    pub(crate) fn rpc(body: &Value) -> Self {
        Self {
            path: "/mcp".to_owned(),
            headers: vec![
                ("content-type", b"application/json".to_vec()),
                ("accept", b"application/json".to_vec()),
                ("mcp-protocol-version", b"2025-06-18".to_vec()),
            ],
            body: body.to_string(),
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.with("authorization", format!("Bearer {token}"))
    }

    pub(crate) fn at(mut self, path: &str) -> Self {
        self.path = path.to_owned();
        self
    }
}

impl AuthTestServer {
    pub(crate) async fn start(auth: Auth) -> Self {
        // Header limits far above the longest token of the table, so that the token check and not the HTTP layer refuses it.
        let limits = HttpLimits {
            header_bytes: 512 * 1024,
            calls_per_minute: 0,
            ..HttpLimits::default()
        };
        Self::start_with(auth, limits).await
    }

    pub(crate) async fn start_with(auth: Auth, limits: HttpLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stop = CancellationToken::new();
        let page = |visit: RouteRequest| async move {
            Ok(RouteResponse::html(format!(
                "{:?}",
                visit.caller().subject()
            )))
        };
        let options = HttpOptions {
            auth: Some(auth),
            limits,
            routes: vec![
                Route::get("/closed", page),
                Route::get("/public", page).open(),
            ],
            ..HttpOptions::default()
        };
        tokio::spawn(serve(app(), options, listener, stop.clone()));
        Self { address, stop }
    }

    pub(crate) async fn send(&self, sent: &RawRequest) -> AuthReply {
        self.raw("POST", sent).await
    }

    pub(crate) async fn get(&self, path: &str) -> AuthReply {
        let sent = RawRequest {
            path: path.to_owned(),
            headers: Vec::new(),
            body: String::new(),
        };
        self.raw("GET", &sent).await
    }

    pub(crate) async fn raw(&self, method: &str, sent: &RawRequest) -> AuthReply {
        let mut head = format!("{method} {} HTTP/1.1\r\n", sent.path).into_bytes();
        if !sent.headers.iter().any(|(name, _)| *name == "host") {
            head.extend_from_slice(format!("host: {}\r\n", self.address).as_bytes());
        }
        head.extend_from_slice(b"connection: close\r\n");
        for (name, value) in &sent.headers {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(format!("content-length: {}\r\n\r\n", sent.body.len()).as_bytes());
        head.extend_from_slice(sent.body.as_bytes());
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        // A server that refuses early may close before everything is written.
        let _ = stream.write_all(&head).await;
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        AuthReply {
            status: status.unwrap_or_default(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }
}
