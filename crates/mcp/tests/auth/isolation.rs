//! Two callers at once, with the same ids: nobody ever sees a byte of the other's.

use std::sync::Arc;

use serde_json::json;

use crate::world::{AuthWorld, RawRequest};

const CALLS: usize = 10_000;
const AT_ONCE: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_with_one_id_are_answered_to_their_own() {
    let world = Arc::new(AuthWorld::start().await);
    let of = |name: &str| {
        let mut claims = world.claims();
        claims["sub"] = format!("subject-of-{name}").into();
        claims["groups"] = json!([format!("group-of-{name}")]);
        world.ed.token(&claims)
    };
    let tokens = [
        ("alder", of("alder"), "birch"),
        ("birch", of("birch"), "alder"),
    ];
    let tokens = Arc::new(tokens);
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..AT_ONCE {
        let (world, tokens) = (world.clone(), tokens.clone());
        tasks.spawn(async move {
            for n in (worker..CALLS).step_by(AT_ONCE) {
                let (name, token, other) = &tokens[n % 2];
                let echo = format!("echo-of-{name}-{n}");
                let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": {"name": "whoami", "arguments": {"echo": echo}}});
                let answered = world
                    .server
                    .send(&RawRequest::rpc(&body).bearer(token))
                    .await;
                assert_eq!(answered.status, 200, "{}", answered.body);
                let who = &answered.json()["result"]["structuredContent"];
                assert_eq!(who["subject"], format!("subject-of-{name}"));
                assert_eq!(who["groups"], json!([format!("group-of-{name}")]));
                assert_eq!(who["echo"], echo);
                let all = format!("{}{}", answered.head, answered.body);
                assert!(!all.contains(other), "a foreign byte: {all}");
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

/// A stream of the 2024 transport belongs to whoever opened it, whoever else knows its id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_takes_messages_of_its_own_caller_alone() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let world = AuthWorld::start().await;
    let of = |name: &str| {
        let mut claims = world.claims();
        claims["sub"] = name.into();
        world.ed.token(&claims)
    };
    let (own, foreign) = (of("own"), of("foreign"));
    let mut stream = tokio::net::TcpStream::connect(&world.server.address)
        .await
        .unwrap();
    let head = format!(
        "GET /sse HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {own}\r\n\r\n",
        world.server.address
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
        world.server.send(&sent().bearer(&foreign)).await.status,
        404
    );
    assert_eq!(world.server.send(&sent()).await.status, 401);
    assert_eq!(world.server.send(&sent().bearer(&own)).await.status, 202);
}
