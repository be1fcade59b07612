//! Streamed responses: progress notifications, subscriptions, the HTTP+SSE transport of 2024, and shutdown.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use docent_mcp::http::limits::HttpLimits;
use docent_mcp::http::{HttpOptions, serve};
use futures::StreamExt;
use http::Request;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::server::{MODERN, RouterServer, app, app_with, shaped};

/// Upper bound on every wait, so that a hung test fails instead of blocking the suite.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Reader of the server-sent events of a response, chunk by chunk.
pub(crate) struct SseEvents(BodyDataStream);

impl SseEvents {
    pub(crate) async fn open(server: &RouterServer, request: Request<Body>) -> Self {
        let response = server.open(request).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self(response.into_body().into_data_stream())
    }

    pub(crate) async fn next(&mut self) -> Option<String> {
        let chunk = tokio::time::timeout(PATIENCE, self.0.next())
            .await
            .expect("no event before the deadline")?;
        Some(String::from_utf8(chunk.unwrap().to_vec()).unwrap())
    }

    pub(crate) async fn message(&mut self) -> Value {
        loop {
            let event = self.next().await.expect("the stream ended");
            if let Some(data) = event.lines().find_map(|line| line.strip_prefix("data: ")) {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

pub(crate) fn post(path: &str, headers: &[(&'static str, String)], body: &Value) -> Request<Body> {
    let mut request = Request::post(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    request.body(Body::from(body.to_string())).unwrap()
}

fn listen(notifications: &Value) -> Request<Body> {
    let (headers, body) = shaped(
        MODERN,
        "subscriptions/listen",
        json!({"notifications": notifications}),
    );
    post("/mcp", &headers, &body)
}

#[tokio::test]
async fn progress_arrives_before_the_answer() {
    let server = RouterServer::new(app());
    let params =
        json!({"name": "search", "arguments": {"query": "x"}, "_meta": {"progressToken": 7}});
    for revision in ["2025-03-26", MODERN] {
        let (headers, body) = shaped(revision, "tools/call", params.clone());
        let mut events = SseEvents::open(&server, post("/", &headers, &body)).await;
        assert_eq!(events.message().await["params"]["progressToken"], 7);
        assert_eq!(events.message().await["id"], 1);
        assert_eq!(events.next().await, None);
    }
}

#[tokio::test]
async fn a_client_that_takes_json_alone_gets_the_answer_without_the_progress() {
    let params =
        json!({"name": "search", "arguments": {"query": "x"}, "_meta": {"progressToken": 7}});
    let answer = RouterServer::new(app())
        .ask("2025-06-18", "tools/call", params)
        .await;
    assert_eq!(answer.kind(), "application/json");
    assert_eq!(
        answer.json()["result"]["structuredContent"]["results"],
        json!(["x"])
    );
}

#[tokio::test]
async fn subscribers_get_the_notifications_they_asked_for_and_no_others() {
    let app = app();
    let changes = app.changes();
    let server = RouterServer::new(app);
    let notifications = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://page"]});
    let mut events = SseEvents::open(&server, listen(&notifications)).await;
    let ack = events.message().await;
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
    changes.prompts();
    changes.resource("test://other");
    changes.resource("test://page");
    changes.tools();
    let received = [events.message().await, events.message().await];
    assert_eq!(received[0]["params"]["uri"], "test://page");
    assert_eq!(received[1]["method"], "notifications/tools/list_changed");
    for message in received.iter().chain([&ack]) {
        assert_eq!(
            message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            1
        );
    }
}

#[tokio::test]
async fn subscriptions_are_limited_and_release_their_slot() {
    let limits = HttpLimits {
        listen_streams: 1,
        ..HttpLimits::default()
    };
    let server = RouterServer::with(
        app(),
        HttpOptions {
            limits,
            ..HttpOptions::default()
        },
    );
    let mut first = SseEvents::open(&server, listen(&json!({"toolsListChanged": true}))).await;
    first.message().await;
    let refused = server
        .send(listen(&json!({"toolsListChanged": true})))
        .await;
    assert_eq!(refused.code(), -32603, "{}", refused.text);
    drop(first);
    SseEvents::open(&server, listen(&json!({"toolsListChanged": true})))
        .await
        .message()
        .await;
    let json_only = server
        .ask(
            MODERN,
            "subscriptions/listen",
            json!({"notifications": {"toolsListChanged": true}}),
        )
        .await;
    assert_eq!(json_only.status, 406);
    let legacy = server
        .ask(
            "2025-11-25",
            "subscriptions/listen",
            json!({"notifications": {}}),
        )
        .await;
    assert_eq!(legacy.code(), -32601);
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive() {
    let limits = HttpLimits {
        sse_keep_alive: Duration::from_millis(10),
        ..HttpLimits::default()
    };
    let server = RouterServer::with(
        app(),
        HttpOptions {
            limits,
            ..HttpOptions::default()
        },
    );
    let mut events = SseEvents::open(&server, listen(&json!({"toolsListChanged": true}))).await;
    events.message().await;
    assert_eq!(events.next().await.as_deref(), Some(":\n\n"));
}

#[tokio::test]
async fn the_transport_of_2024_works_and_ends_with_its_stream() {
    let server = RouterServer::new(app());
    let request = Request::get("/sse")
        .header("host", "localhost")
        .body(Body::empty())
        .unwrap();
    let mut events = SseEvents::open(&server, request).await;
    let first = events.next().await.unwrap();
    let path = first
        .strip_prefix("event: endpoint\ndata: ")
        .unwrap()
        .trim()
        .to_owned();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
        {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "x"}}});
    assert_eq!(server.send(post(&path, &[], &hello)).await.status, 202);
    assert_eq!(
        events.message().await["result"]["protocolVersion"],
        "2024-11-05"
    );
    assert_eq!(server.send(post(&path, &[], &call)).await.status, 202);
    assert_eq!(events.message().await["result"]["results"], json!(["x"]));
    assert_eq!(
        server
            .send(post("/messages?sessionId=guess", &[], &call))
            .await
            .status,
        404
    );
    drop(events);
    assert_eq!(server.send(post(&path, &[], &call)).await.status, 404);
}

#[tokio::test]
async fn a_stream_limits_requests_in_flight_and_still_accepts_cancellations() {
    let gate = Arc::new(Notify::new());
    let limits = HttpLimits {
        stream_in_flight: 2,
        ..HttpLimits::default()
    };
    let options = HttpOptions {
        limits,
        ..HttpOptions::default()
    };
    let server = RouterServer::with(app_with(gate.clone()), options);
    let request = Request::get("/sse")
        .header("host", "localhost")
        .body(Body::empty())
        .unwrap();
    let mut events = SseEvents::open(&server, request).await;
    let first = events.next().await.unwrap();
    let path = first.lines().nth(1).unwrap().replace("data: ", "");
    let call = |id: u32, query: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "slow", "arguments": {"query": query}}});
    for id in [1, 2] {
        let sent = server.send(post(&path, &[], &call(id, "wait"))).await;
        assert_eq!(sent.status, 202);
    }
    let refused = server.send(post(&path, &[], &call(3, "x"))).await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.json()["id"], 3);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(server.send(post(&path, &[], &cancel)).await.status, 202);
    // The slot becomes free when the task of the request notices the cancellation.
    let again = async {
        while server.send(post(&path, &[], &call(4, "x"))).await.status != 202 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again)
        .await
        .expect("the slot was never released");
    assert_eq!(events.message().await["id"], 4);
    gate.notify_waiters();
    assert_eq!(events.message().await["id"], 2);
}

/// Shutdown ends each subscription with its final result before the connection closes.
#[tokio::test]
async fn shutdown_completes_subscriptions_and_ends_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let served = tokio::spawn(serve(
        app(),
        HttpOptions::default(),
        listener,
        shutdown.clone(),
    ));
    let (headers, body) = shaped(
        MODERN,
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    );
    let body = body.to_string();
    let mut head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: text/event-stream\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(format!("{head}\r\n{body}").as_bytes())
        .await
        .unwrap();
    let mut seen = vec![0; 4096];
    let mut text = String::new();
    while !text.contains("acknowledged") {
        let count = tokio::time::timeout(PATIENCE, stream.read(&mut seen))
            .await
            .unwrap()
            .unwrap();
        text.push_str(std::str::from_utf8(&seen[..count]).unwrap());
    }
    shutdown.cancel();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut text))
        .await
        .unwrap()
        .unwrap();
    assert!(text.contains(r#""resultType":"complete""#), "{text}");
    tokio::time::timeout(PATIENCE, served)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}
