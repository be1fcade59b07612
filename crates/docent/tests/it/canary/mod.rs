//! Canary test for credential leaks: 10,000 requests with secrets of all kinds to the real program. Then the test
//! searches for them in the log, responses, metrics, the audit log, every file written and every outgoing request.

#![expect(
    clippy::too_many_lines,
    reason = "each test is one scenario, from the first secret to the last place that is searched"
)]

mod browser;
mod peers;
mod provider;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use docent_mcp::http::{RouteRequest, RouteResponse};
use serde_json::{Value, json};

use self::browser::{Browser, CALLBACK, HttpReply};
use self::peers::{MockPeer, not_found};
use crate::authority::TestAuthority;
use crate::mint::{Signer, jwks};
use crate::needles::found;
use crate::process::{ServerProcess, TestDir};

const PUBLIC: &str = "https://docs.example.org";
const REQUESTS: usize = 10_000;

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_secs()
}

/// Appends every file below a folder as text, and returns the number of files.
fn everything_in(folder: &Path, out: &mut String) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count += everything_in(&path, out);
        } else if let Ok(bytes) = std::fs::read(&path) {
            out.push_str(&String::from_utf8_lossy(&bytes));
            count += 1;
        }
    }
    count
}

fn text(value: &Value, name: &str) -> String {
    let found = value[name].as_str();
    found
        .unwrap_or_else(|| panic!("{name}: {value}"))
        .to_owned()
}

/// The payload and signature of a JWT. The header is left out, as it is no secret and the same for all tokens.
fn parts(token: &str) -> Vec<String> {
    token.split('.').skip(1).map(str::to_owned).collect()
}

/// Server with trace log, metrics and audit log, and the responses in which no secret may appear.
struct CanaryServer {
    dir: TestDir,
    server: Option<ServerProcess>,
    browser: Browser,
    metrics: String,
    /// Heads and bodies of all responses that must contain no secret.
    answers: String,
}

impl CanaryServer {
    fn start(dir: TestDir, mode: &str, secret: (&str, &str)) -> Self {
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        let mut command = dir.docent(&[
            "serve",
            "docs",
            "--listen",
            "127.0.0.1:0",
            "--auth",
            mode,
            "--public-url",
            PUBLIC,
            "--metrics",
            "127.0.0.1:0",
            "--audit-log",
            "audit.jsonl",
            "--log",
            "trace",
        ]);
        command.env(secret.0, secret.1);
        command.env("TMPDIR", dir.path().join("tmp"));
        let server = ServerProcess::of(command);
        server.wait_until_synced();
        let line = server.wait_for("  metrics      http://");
        let metrics = line.split("http://").nth(1).unwrap();
        let metrics = metrics.split('/').next().unwrap().to_owned();
        let address = server.address.clone();
        Self {
            dir,
            server: Some(server),
            browser: Browser { address },
            metrics,
            answers: String::new(),
        }
    }

    /// Records a response that must contain no secret.
    fn keep(&mut self, got: &HttpReply) {
        self.answers.push_str(&got.head);
        self.answers.push_str(&got.body);
    }

    /// Stops the server, and searches for secrets in everything that it has written.
    fn search(mut self, secrets: &[String]) {
        let metrics_page = Browser {
            address: self.metrics.clone(),
        };
        let mut metrics = String::new();
        for path in ["/metrics", "/"] {
            let got = metrics_page.get(path, "");
            assert_eq!(got.status, 200, "{}", got.body);
            metrics.push_str(&got.body);
        }
        assert!(metrics.contains("docent_tool_calls_total"), "{metrics}");
        let mut server = self.server.take().unwrap();
        server.signal("-TERM");
        assert_eq!(server.wait(), Some(0), "{}", server.log());
        let log = server.log();
        assert!(log.contains("refused a caller"), "the log level is too low");
        let audit = std::fs::read_to_string(self.dir.path().join("audit.jsonl")).unwrap();
        assert!(audit.contains("\"event\":\"call\""), "{audit}");
        let mut disk = String::new();
        let mut files = 0;
        for folder in ["docs/.docent", "tmp"] {
            files += everything_in(&self.dir.path().join(folder), &mut disk);
        }
        assert!(files > 5 && disk.contains("sails at nine"), "{files} files");
        for (place, text) in [
            ("the log", &log),
            ("answers", &self.answers),
            ("the metrics", &metrics),
            ("the audit log", &audit),
            ("the disk", &disk),
        ] {
            assert_eq!(found(text, secrets), None, "{place}");
        }
    }
}

/// Mock issuer that publishes the public key of this signer.
fn issuer(signer: &Signer) -> MockPeer {
    let keys = jwks(&[signer]);
    MockPeer::start(None, |name| {
        let metadata = json!({"issuer": name, "jwks_uri": format!("{name}/jwks")});
        move |path: &str, _: &RouteRequest| match path {
            ".well-known/openid-configuration" => RouteResponse::json(&metadata),
            "jwks" => RouteResponse::json(&keys),
            _ => not_found(),
        }
    })
}

fn claims(issuer: &str) -> Value {
    json!({
        "iss": issuer, "sub": "user-1", "aud": format!("{PUBLIC}/mcp"), "exp": now() + 3_600, "iat": now(),
        "scope": "docs.read", "canary": "CANARY-of-a-claim-0123456789",
    })
}

/// Mock introspection endpoint (RFC 7662). Tokens that start with `good` are active.
fn introspector() -> MockPeer {
    MockPeer::start(None, |name| {
        let name = name.to_owned();
        move |_: &str, visit: &RouteRequest| {
            let body = String::from_utf8_lossy(visit.body()).into_owned();
            let mut response = claims(&name);
            response["active"] = body.contains("token=good").into();
            RouteResponse::json(&response)
        }
    })
}

/// Mock host of a client that publishes a client id metadata document.
fn app(authority: &TestAuthority) -> MockPeer {
    MockPeer::start(Some(authority.vouch("localhost")), |name| {
        let document = json!({
            "client_id": format!("{name}/client.json"), "client_name": "Chart room",
            "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none",
        });
        move |_: &str, _: &RouteRequest| RouteResponse::json(&document)
    })
}

/// Adds a user with `docent user add --stdin`, so that the password is in no argument list.
fn add_user(dir: &TestDir, name: &str, password: &str) {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut child = dir
        .docent(&["user", "add", name, "--path", "docs", "--stdin"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{password}").unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn ten_thousand_requests_leave_no_secret_behind() {
    let (signer, authority) = (Signer::ed25519("k1"), TestAuthority::new());
    let (issuer, introspector, app) = (issuer(&signer), introspector(), app(&authority));
    let dir = TestDir::small();
    dir.write("ca.pem", &authority.pem);
    let settings = format!(
        "search.mode = \"lexical\"\nlimits.calls_per_minute = 0\n[auth]\nissuers = [\"{}\"]\n\
         private_network = true\nclient_hosts = [\"{}\"]\nclient_ca = \"../ca.pem\"\n\
         [auth.introspection]\nissuer = \"{}\"\nurl = \"{}/introspect\"\nclient_id = \"docent\"\n",
        issuer.name,
        app.host(),
        introspector.name,
        introspector.name
    );
    dir.write("docs/docent.toml", &settings);
    let passwords = [
        "CANARY right password",
        "CANARY wrong password",
        "CANARY other password",
    ];
    add_user(&dir, "anna", passwords[0]);
    let key = dir.run(&["key", "add", "nightly", "--path", "docs"]);
    let key = key.stdout.trim().to_owned();
    let client_secret = "CANARY-secret-of-our-own";
    let variable = "DOCENT_AUTH_INTROSPECTION_CLIENT_SECRET";
    let mut canary = CanaryServer::start(dir, "password", (variable, client_secret));
    let browser = canary.browser.clone();

    // Sign in with a dynamically registered client and with a metadata document, with wrong passwords first.
    let document = format!("{}/client.json", app.name);
    let clients = [browser.register(), document];
    let (mut codes, mut refreshing, mut access) = (Vec::new(), Vec::new(), Vec::new());
    for client in &clients {
        let page = browser.authorize(client);
        assert_eq!(page.status, 200, "{}", page.body);
        for wrong in &passwords[1..] {
            let got = browser.submit_consent(&page, &[("name", "anna"), ("password", wrong)]);
            assert_eq!(got.status, 403, "{}", got.body);
            canary.keep(&got);
        }
        let got = browser.submit_consent(&page, &[("name", "anna"), ("password", passwords[0])]);
        let code = got.redirect_parameter("code");
        let got = browser.redeem(client, &code);
        assert_eq!(got.status, 200, "{}", got.body);
        let first = text(&got.json(), "refresh_token");
        access.push(text(&got.json(), "access_token"));
        let got = browser.refresh(client, &first);
        assert_eq!(got.status, 200, "{}", got.body);
        access.push(text(&got.json(), "access_token"));
        refreshing.extend([first, text(&got.json(), "refresh_token")]);
        codes.push(code);
    }
    let good = signer.token(&claims(&issuer.name));
    let mut expired = claims(&issuer.name);
    expired["exp"] = 1.into();
    let mut elsewhere = claims(&issuer.name);
    elsewhere["aud"] = "https://other.example".into();
    let opaque = [
        "good-CANARY-opaque-0123456789",
        "CANARY-opaque-that-is-unknown",
    ];
    let bearers = [
        (access[0].clone(), 200),
        (good.clone(), 200),
        (opaque[0].to_owned(), 200),
        (key.clone(), 200),
        (signer.token(&expired), 401),
        (signer.token(&elsewhere), 401),
        (
            signer.token_with(
                &json!({"kid": "CANARY-kid-0123456789"}),
                &claims(&issuer.name),
            ),
            401,
        ),
        (format!("{good}x"), 401),
        (opaque[1].to_owned(), 401),
        (format!("{}CANARYCANARY", &key[..key.len() - 12]), 401),
    ];
    let arguments = json!({"name": "search", "arguments": {"query": "ferry"}});
    let mut link = String::new();
    for (token, status) in &bearers {
        let header = format!("Authorization: Bearer {token}\r\n");
        let got = browser.rpc("/mcp", &header, "tools/call", &arguments);
        assert_eq!(got.status, *status, "{token}: {}", got.body);
        canary.keep(&got);
        if *status == 200 {
            let url = &got.json()["result"]["structuredContent"]["results"][0]["url"];
            link = url.as_str().unwrap().replace(PUBLIC, "");
        }
    }
    // A signed link must be in the responses above, so its signature is searched for separately.
    let signature = link.split("sig=").nth(1).unwrap();
    let signature = signature.split(['&', '#']).next().unwrap().to_owned();
    assert_eq!(browser.get(&link, "").status, 200);

    let client = clients[0].as_str();
    let mut count = 0;
    while count < REQUESTS {
        let mut all = Vec::new();
        for (token, _) in &bearers {
            let header = format!("Authorization: Bearer {token}\r\n");
            all.extend([
                browser.rpc("/mcp", &header, "tools/call", &arguments),
                browser.rpc("/", &header, "tools/list", &json!({})),
                browser.rpc(
                    "/mcp",
                    &format!("X-Api-Key: {token}\r\n"),
                    "tools/list",
                    &json!({}),
                ),
                browser.rpc(
                    &format!("/mcp?access_token={token}"),
                    "",
                    "tools/list",
                    &json!({}),
                ),
                browser.get("/userinfo", &header),
                browser.get("/d/ferry.md", &header),
                browser.get("/nowhere", &header),
            ]);
        }
        for code in &codes {
            all.push(browser.redeem(client, code));
        }
        for secret in [client_secret, passwords[1]] {
            let values = [
                ("grant_type", "authorization_code"),
                ("client_id", client),
                ("code", codes[0].as_str()),
                ("code_verifier", "CANARY-verifier-0123456789"),
                ("client_secret", secret),
            ];
            all.push(browser.post("/token", &values, ""));
            let values = [("token", "a.b"), ("password", secret), ("name", "anna")];
            all.push(browser.post("/authorize", &values, ""));
            all.push(browser.rpc(
                "/mcp",
                &format!("Authorization: Basic {secret}\r\n"),
                "ping",
                &json!({}),
            ));
        }
        all.push(browser.get(&format!("/d/slate.txt?exp=9999999999&sig={signature}"), ""));
        for got in &all {
            canary.keep(got);
        }
        count += all.len();
    }
    // Finally every token is revoked, twice.
    for token in refreshing.iter().chain(&access).chain([&key]) {
        for _ in 0..2 {
            let got = browser.post("/revoke", &[("client_id", client), ("token", token)], "");
            canary.keep(&got);
        }
        let got = browser.refresh(client, token);
        assert_eq!(got.status, 400, "{}", got.body);
        canary.keep(&got);
    }

    let mut secrets: Vec<String> = passwords.map(str::to_owned).to_vec();
    secrets.extend(
        bearers
            .iter()
            .map(|(token, _)| token)
            .chain(&access)
            .flat_map(|token| {
                let is_jwt = token.matches('.').count() == 2;
                if is_jwt {
                    parts(token)
                } else {
                    vec![token.clone()]
                }
            }),
    );
    secrets.extend(codes.into_iter().chain(refreshing));
    secrets.extend(
        [
            "CANARY-of-a-claim-0123456789",
            "CANARY-kid-0123456789",
            "CANARY-verifier-0123456789",
        ]
        .map(str::to_owned),
    );
    // The introspection endpoint receives the opaque tokens and the client secret; no peer receives anything else.
    let never_sent = |secret: &&String| !opaque.contains(&secret.as_str());
    assert!(
        introspector.received().contains(opaque[0]) && introspector.received().contains(opaque[1])
    );
    assert_eq!(
        found(&introspector.received(), secrets.iter().filter(never_sent)),
        None,
        "the introspection endpoint"
    );
    secrets.push(client_secret.to_owned());
    for (place, peer) in [("the issuer", &issuer), ("the app's host", &app)] {
        assert!(!peer.received().is_empty(), "{place} received no request");
        assert_eq!(found(&peer.received(), &secrets), None, "{place}");
    }
    // Signatures of links may be in responses to permitted callers, and nowhere else.
    assert_eq!(found(&introspector.received(), [&signature]), None);
    let mut elsewhere = std::mem::take(&mut canary.answers);
    elsewhere = elsewhere.replace(&signature, "");
    canary.answers = elsewhere;
    secrets.push(signature);
    canary.search(&secrets);
}
