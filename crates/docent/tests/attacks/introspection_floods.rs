//! Floods of made-up opaque tokens while the issuer is slow: the number of concurrent introspection requests is
//! bounded, and authenticated callers are not delayed.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::browser::{Browser, HttpReply};
use crate::fake_issuer::{FakeIssuer, PUBLIC, claims};
use crate::process::{ServerProcess, TestDir, until};
use crate::stop_on_drop::StopOnDrop;
use crate::wire;

/// The concurrency limit of introspection requests for unknown tokens.
const MAX_ASKED: usize = 16;
const CONNECTIONS: usize = 64;
/// The response time of the issuer: long enough for all requests to overlap, below the timeout of five seconds.
const DELAY: Duration = Duration::from_secs(2);
const GOOD: &str = "good-token";

/// An issuer that knows one token and delays its answers about all others.
fn slow_issuer(delay: Duration) -> FakeIssuer {
    FakeIssuer::start(move |name, question| {
        let known = question.body.contains(&format!("token={GOOD}&"));
        if !known {
            std::thread::sleep(delay);
        }
        let mut word = claims(name);
        word["active"] = known.into();
        Some(word)
    })
}

fn serve(dir: &TestDir, issuer: &FakeIssuer) -> (ServerProcess, Browser) {
    let name = &issuer.name;
    let settings = format!(
        "search.mode = \"lexical\"\n[auth]\nprivate_network = true\n[auth.introspection]\n\
         issuer = \"{name}\"\nurl = \"{name}/introspect\"\nclient_id = \"docent\"\n"
    );
    dir.write("docs/docent.toml", &settings);
    let mut command = dir.serve(&["docs", "--no-watch", "--public-url", PUBLIC]);
    command.env("DOCENT_AUTH_INTROSPECTION_CLIENT_SECRET", "hush");
    let server = ServerProcess::of(command);
    server.wait_until_synced();
    let address = server.address.clone();
    (server, Browser { address })
}

fn list(browser: &Browser, token: &str) -> HttpReply {
    let header = format!("Authorization: Bearer {token}\r\n");
    browser.rpc("/mcp", &header, "tools/list", &json!({}))
}

#[test]
fn made_up_tokens_keep_nobody_out_who_signed_in() {
    let dir = TestDir::small();
    let issuer = slow_issuer(DELAY);
    let (_server, browser) = serve(&dir, &issuer);
    assert_eq!(list(&browser, GOOD).status, 200);

    let done = AtomicBool::new(false);
    let (flood, genuine) = std::thread::scope(|scope| {
        let stop = StopOnDrop(&done);
        let flood: Vec<_> = (0..CONNECTIONS)
            .map(|thread| {
                let browser = browser.clone();
                scope.spawn(move || {
                    let tokens = (0..2).map(|n| format!("made-up-{thread}-{n}"));
                    tokens
                        .map(|token| list(&browser, &token))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let genuine = scope.spawn(|| {
            let full = until(|| (issuer.at_once() == MAX_ASKED).then_some(()));
            assert!(full.is_some(), "the flood never took all places");
            let mut statuses = Vec::new();
            while !done.load(Ordering::SeqCst) || statuses.len() < 20 {
                statuses.push(list(&browser, GOOD).status);
                statuses.push(browser.get("/readyz", "").status);
            }
            statuses
        });
        let joined = flood.into_iter().flat_map(|thread| thread.join().unwrap());
        let flood: Vec<HttpReply> = joined.collect();
        drop(stop);
        (flood, genuine.join().unwrap())
    });

    assert!(genuine.iter().all(|status| *status == 200), "{genuine:?}");
    let of = |status: u16| flood.iter().filter(move |got| got.status == status);
    assert!(of(401).count() > 0 && of(503).count() > 0);
    assert_eq!(of(401).count() + of(503).count(), flood.len());
    assert!(of(503).all(|got| got.head.contains("retry-after: ")));
    assert!(of(401).all(|got| {
        got.head
            .contains("www-authenticate: Bearer error=\"invalid_token\"")
    }));
    let most = issuer.most_at_once();
    assert!(most <= MAX_ASKED, "{most} questions at once");
    // The good token was introspected once, because positive answers are cached for a minute.
    assert!(issuer.asked("/introspect") <= 1 + flood.len());
}

#[test]
fn a_cancelled_request_keeps_its_introspection_slot() {
    let dir = TestDir::small();
    let issuer = slow_issuer(DELAY);
    let (server, browser) = serve(&dir, &issuer);
    assert_eq!(list(&browser, GOOD).status, 200);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for round in 0..12 {
        let sent: Vec<_> = (0..MAX_ASKED)
            .map(|n| {
                let head = wire::post_head("/mcp", "application/json", body.len());
                let head = head.trim_end();
                let mut stream = wire::connect(&server);
                write!(
                    stream,
                    "{head}\r\nAuthorization: Bearer made-up-{round}-{n}\r\n\r\n{body}"
                )
                .unwrap();
                stream
            })
            .collect();
        if round == 0 {
            let full = until(|| (issuer.at_once() == MAX_ASKED).then_some(()));
            assert!(full.is_some(), "not all places were taken");
        } else {
            // Gives further introspection requests time to start, if any are admitted.
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(sent);
    }
    assert_eq!(list(&browser, GOOD).status, 200);
    assert_eq!(browser.get("/readyz", "").status, 200);
    let quiet = until(|| (issuer.at_once() == 0).then_some(()));
    assert!(quiet.is_some());
    let most = issuer.most_at_once();
    assert_eq!(most, MAX_ASKED, "questions at once");
}
