//! Slow request bodies (Slowloris): clients that never finish a body delay nobody else.

use std::io::{BufReader, Write as _};
use std::net::TcpStream;

use crate::browser::Browser;
use crate::process::{ServerProcess, TestDir};
use crate::wire::{self, EventStream};

/// More than the limit of in-flight requests.
const HALF_SENT: usize = 300;
const FORM: &str = "application/x-www-form-urlencoded";

/// Opens requests whose bodies stop after the first byte.
fn half_sent(server: &ServerProcess, path: &str, kind: &str) -> Vec<TcpStream> {
    let request = wire::post_head(path, kind, 1_000) + "{";
    let open = |_| {
        let mut stream = wire::connect(server);
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    (0..HALF_SENT).map(open).collect()
}

#[test]
fn half_sent_requests_to_sign_in_keep_nobody_waiting() {
    let dir = TestDir::small();
    let added = dir.run(&["user", "add", "anna", "--path", "docs"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let mut command = dir.serve(&["docs", "--auth", "password", "--no-watch"]);
    // So that a document has a page that needs no signed link.
    command.env("DOCENT_AUTH_REQUIRED", "false");
    let server = ServerProcess::of(command);
    server.wait_until_synced();
    let browser = Browser {
        address: server.address.clone(),
    };
    let mut held = Vec::new();
    for (path, kind) in [
        ("/register", "application/json"),
        ("/token", FORM),
        ("/authorize", FORM),
        ("/revoke", FORM),
    ] {
        held.extend(half_sent(&server, path, kind));
        for page in [
            "/.well-known/oauth-authorization-server",
            "/jwks.json",
            "/healthz",
            "/d/ferry.md",
        ] {
            assert_eq!(browser.get(page, "").status, 200, "{page} beside {path}");
        }
        // Registration, consent and the token endpoint still work.
        let client = browser.register();
        let page = browser.authorize(&client);
        let password = added.stdout.trim();
        let answer = browser.submit_consent(&page, &[("name", "anna"), ("password", password)]);
        let got = browser.redeem(&client, &answer.redirect_parameter("code"));
        assert_eq!(got.status, 200, "{path}: {}", got.body);
    }
}

#[test]
fn half_sent_messages_keep_nobody_waiting() {
    let dir = TestDir::small();
    let server = ServerProcess::start(&dir, &["docs", "--no-watch"]);
    server.wait_until_synced();
    let mut stream = EventStream::open(&server).unwrap();
    let mut held = half_sent(&server, "/mcp", "application/json");
    held.extend(half_sent(&server, &stream.messages, "application/json"));
    let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    assert_eq!(wire::post(&server, "/mcp", list).0, 200);
    assert_eq!(wire::post(&server, &stream.messages, list).0, 202);
    assert_eq!(stream.next().unwrap()["id"], 7);
    assert_eq!(server.page("/d/ferry.md").0, 200);
    assert_eq!(server.http("GET", "/readyz", None).0, 200);
}

#[test]
fn a_body_for_sign_in_has_a_bound_of_its_own() {
    let dir = TestDir::small();
    let added = dir.run(&["user", "add", "anna", "--path", "docs"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let server = ServerProcess::start(&dir, &["docs", "--auth", "password", "--no-watch"]);
    for (length, too_large) in [(16 * 1024, false), (16 * 1024 + 1, true)] {
        for path in ["/register", "/token", "/authorize", "/revoke"] {
            let mut stream = wire::connect(&server);
            let request = wire::post_head(path, FORM, length) + &"x".repeat(length);
            stream.write_all(request.as_bytes()).unwrap();
            let (status, _) = wire::answer(&mut BufReader::new(stream)).expect("an answer");
            assert_eq!(status == 413, too_large, "{path} {length}: {status}");
        }
    }
}
