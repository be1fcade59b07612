//! Slots that requests in flight occupy. Subscriptions and requests that wait for the parse permit of large bodies hold
//! none, and each item of a batch holds one.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use docent_mcp::http::HttpOptions;
use docent_mcp::http::limits::HttpLimits;
use futures::FutureExt as _;
use http::Request;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::server::{MODERN, RouterServer, app, app_with, shaped};
use crate::streams::{PATIENCE, SseEvents, post};

/// Larger than `BIG`, and smaller than the limit on the body of a subscription.
const PADDING: usize = 4_000;
const BIG: usize = 2_000;

fn server(gate: &Arc<Notify>, limits: HttpLimits) -> RouterServer {
    let options = HttpOptions {
        limits,
        ..HttpOptions::default()
    };
    RouterServer::with(app_with(gate.clone()), options)
}

/// Opens a stream of the 2024 transport, and returns it with the path for its messages.
async fn event_stream(server: &RouterServer) -> (SseEvents, String) {
    let request = Request::get("/sse")
        .header("host", "localhost")
        .body(Body::empty())
        .unwrap();
    let mut events = SseEvents::open(server, request).await;
    let first = events.next().await.unwrap();
    let path = first.lines().nth(1).unwrap().replace("data: ", "");
    (events, path)
}

fn listen(id: impl Into<Value>, padding: usize) -> Value {
    let params = json!({"notifications": {"toolsListChanged": true}, "pad": "x".repeat(padding)});
    let (_, mut message) = shaped(MODERN, "subscriptions/listen", params);
    message["id"] = id.into();
    message
}

fn slow(id: u32, query: &str, padding: usize) -> Value {
    let params = json!({"name": "slow", "arguments": {"query": query}, "pad": "x".repeat(padding)});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

async fn call(server: &RouterServer, message: &Value) -> http::StatusCode {
    let answer = server.post("/mcp", &[], message.to_string()).await;
    answer.status
}

#[tokio::test]
async fn subscriptions_take_no_slot_in_flight_and_have_their_own_limit() {
    let limits = HttpLimits {
        in_flight: 2,
        stream_in_flight: 2,
        ..HttpLimits::default()
    };
    let server = server(&Arc::default(), limits);
    let (mut events, path) = event_stream(&server).await;
    for id in [1, 2] {
        let sent = server.send(post(&path, &[], &listen(id, 0))).await;
        assert_eq!(sent.status, 202);
        let ack = events.message().await;
        assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
    }
    // Both slots are still free, on this stream and on the server.
    assert_eq!(call(&server, &slow(3, "x", 0)).await, 200);
    let sent = server.send(post(&path, &[], &slow(4, "x", 0))).await;
    assert_eq!(sent.status, 202);
    assert_eq!(events.message().await["id"], 4);
    // A third subscription is refused with the reason, and fits after another is cancelled.
    let sent = server.send(post(&path, &[], &listen(5, 0))).await;
    assert_eq!(sent.status, 202);
    let refused = events.message().await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(5), &json!(-32603))
    );
    let message_text = refused["error"]["message"].as_str().unwrap();
    assert!(
        message_text.contains("this connection has too many listeners"),
        "{message_text}"
    );
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(server.send(post(&path, &[], &cancel)).await.status, 202);
    let again = async {
        loop {
            server.send(post(&path, &[], &listen(6, 0))).await;
            if events.message().await.get("error").is_none() {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
}

#[tokio::test]
async fn subscriptions_end_with_their_stream_even_when_they_share_an_id() {
    let limits = HttpLimits {
        listen_streams: 2,
        ..HttpLimits::default()
    };
    let server = server(&Arc::default(), limits);
    let (mut events, path) = event_stream(&server).await;
    for _ in 0..2 {
        server.send(post(&path, &[], &listen("same", 0))).await;
        assert!(events.message().await.get("error").is_none());
    }
    let (headers, message) = shaped(
        MODERN,
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    );
    let refused = server.send(post("/mcp", &headers, &message)).await;
    assert_eq!(refused.code(), -32603);
    drop(events);
    let both = async {
        let mut kept = Vec::new();
        while kept.len() < 2 {
            let mut events = SseEvents::open(&server, post("/mcp", &headers, &message)).await;
            if events.message().await.get("error").is_none() {
                kept.push(events);
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, both)
        .await
        .expect("the slots of the subscriptions were never released");
}

#[tokio::test]
async fn a_large_subscription_releases_its_parse_permit_and_a_larger_one_is_refused() {
    let limits = HttpLimits {
        big_body: BIG,
        big_parses: 1,
        ..HttpLimits::default()
    };
    let server = server(&Arc::default(), limits);
    let (mut events, path) = event_stream(&server).await;
    let sent = server.send(post(&path, &[], &listen(1, PADDING))).await;
    assert_eq!(sent.status, 202);
    events.message().await;
    assert_eq!(call(&server, &slow(2, "x", PADDING)).await, 200);
    let refused = server.send(post(&path, &[], &listen(3, 66_000))).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (413, -32600));
    assert_eq!(call(&server, &slow(4, "x", PADDING)).await, 200);
}

/// The clock is paused and advances only when no task can run, so the wait takes no real time.
#[tokio::test(start_paused = true)]
async fn waiting_for_a_parse_permit_holds_no_slot_and_has_a_deadline() {
    let limits = HttpLimits {
        big_body: BIG,
        big_parses: 1,
        in_flight: 2,
        handler: Duration::from_secs(3_600),
        ..HttpLimits::default()
    };
    let gate = Arc::new(Notify::new());
    let server = server(&gate, limits);
    let (mut events, path) = event_stream(&server).await;
    let large = slow(1, "wait", PADDING);
    let mut in_flight_call = call(&server, &large).boxed();
    assert!(in_flight_call.as_mut().now_or_never().is_none());
    // More requests than there are slots in flight.
    let mut waiting: Vec<_> = (0..3).map(|_| call(&server, &large).boxed()).collect();
    for call in &mut waiting {
        assert!(call.as_mut().now_or_never().is_none());
    }
    assert_eq!(call(&server, &slow(2, "x", 0)).await, 200);
    for call in waiting {
        assert_eq!(call.await, 503);
    }
    let refused = server.send(post(&path, &[], &large)).await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.headers["retry-after"], "1");
    gate.notify_waiters();
    assert_eq!(in_flight_call.await, 200);
    let sent = server.send(post(&path, &[], &slow(3, "x", PADDING))).await;
    assert_eq!(sent.status, 202);
    assert_eq!(events.message().await["id"], 3);
}

#[tokio::test]
async fn every_item_of_a_batch_takes_a_slot_in_flight() {
    let limits = HttpLimits {
        in_flight: 2,
        ..HttpLimits::default()
    };
    let gate = Arc::new(Notify::new());
    let server = server(&gate, limits);
    let batch = json!([slow(1, "wait", 0), slow(2, "wait", 0), slow(3, "x", 0)]).to_string();
    let headers = [("mcp-protocol-version", "2025-03-26")];
    let mut sent = server.post("/mcp", &headers, batch).boxed();
    assert!(sent.as_mut().now_or_never().is_none());
    assert_eq!(call(&server, &slow(4, "x", 0)).await, 503);
    gate.notify_waiters();
    let answers = sent.await.json();
    assert_eq!(
        answers[0]["result"]["structuredContent"]["results"][0],
        "wait"
    );
    assert_eq!(answers[1]["id"], 2);
    assert_eq!(
        (&answers[2]["id"], &answers[2]["error"]["code"]),
        (&json!(3), &json!(-32603))
    );
    assert_eq!(call(&server, &slow(5, "x", 0)).await, 200);
}

#[tokio::test]
async fn a_batch_of_one_works_with_one_slot() {
    let limits = HttpLimits {
        in_flight: 1,
        ..HttpLimits::default()
    };
    let options = HttpOptions {
        limits,
        ..HttpOptions::default()
    };
    let server = RouterServer::with(app(), options);
    let batch = json!([slow(1, "x", 0)]).to_string();
    let answer = server.post("/mcp", &[("mcp-protocol-version", "2025-03-26")], batch);
    assert!(answer.await.json()[0]["result"].is_object());
}
