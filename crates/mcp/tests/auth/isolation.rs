//! Isolation of concurrent callers that use the same JSON-RPC ids: no response carries a byte of the other caller's.

use std::sync::Arc;

use serde_json::json;

use crate::fixture::{AuthFixture, RawRequest};

const CALLS: usize = 10_000;
const CONCURRENT: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_with_one_id_are_answered_to_their_own() {
    let fixture = Arc::new(AuthFixture::start().await);
    let of = |name: &str| {
        let mut claims = fixture.claims();
        claims["sub"] = format!("subject-of-{name}").into();
        claims["groups"] = json!([format!("group-of-{name}")]);
        fixture.ed.token(&claims)
    };
    let tokens = [
        ("alder", of("alder"), "birch"),
        ("birch", of("birch"), "alder"),
    ];
    let tokens = Arc::new(tokens);
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..CONCURRENT {
        let (fixture, tokens) = (fixture.clone(), tokens.clone());
        tasks.spawn(async move {
            for n in (worker..CALLS).step_by(CONCURRENT) {
                let (name, token, other) = &tokens[n % 2];
                let echo = format!("echo-of-{name}-{n}");
                let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": {"name": "whoami", "arguments": {"echo": echo}}});
                let answered = fixture
                    .server
                    .send(&RawRequest::rpc(&body).bearer(token))
                    .await;
                assert_eq!(answered.status, 200, "{}", answered.body);
                let who = &answered.json()["result"]["structuredContent"];
                assert_eq!(who["subject"], format!("subject-of-{name}"));
                assert_eq!(who["groups"], json!([format!("group-of-{name}")]));
                assert_eq!(who["echo"], echo);
                let all = format!("{}{}", answered.head, answered.body);
                assert!(!all.contains(other), "a byte of the other caller: {all}");
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

/// An SSE stream of the 2024 transport is bound to the caller that opened it. Its id alone is no credential.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_accepts_messages_only_from_its_own_caller() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let fixture = AuthFixture::start().await;
    let of = |name: &str| {
        let mut claims = fixture.claims();
        claims["sub"] = name.into();
        fixture.ed.token(&claims)
    };
    let (own, foreign) = (of("own"), of("foreign"));
    let mut stream = tokio::net::TcpStream::connect(&fixture.server.address)
        .await
        .unwrap();
    let head = format!(
        "GET /sse HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {own}\r\n\r\n",
        fixture.server.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut seen = String::new();
    let mut bytes = [0; 1024];
    let path = loop {
        let size = stream.read(&mut bytes).await.unwrap();
        seen.push_str(&String::from_utf8_lossy(&bytes[..size]));
        if let Some((_, rest)) = seen.split_once("data: ")
            && let Some((path, _)) = rest.split_once('\n')
        {
            break path.trim().to_owned();
        }
    };
    let sent = || RawRequest::call("whoami").at(&path);
    assert_eq!(
        fixture.server.send(&sent().bearer(&foreign)).await.status,
        404
    );
    assert_eq!(fixture.server.send(&sent()).await.status, 401);
    assert_eq!(fixture.server.send(&sent().bearer(&own)).await.status, 202);
}
