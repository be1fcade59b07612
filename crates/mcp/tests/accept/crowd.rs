//! Connection limits and panicking handlers: eviction of idle and incomplete connections, the shared budget for
//! request heads, exhausted file descriptors, and isolation of a panic to its own connection.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use bytes::Bytes;
use docent_mcp::http::limits::HttpLimits;
use futures::StreamExt as _;

use crate::client::{self, AcceptServer, SHORT, h2, patient, soon};
use crate::serving;

/// Retries until a request is admitted. A slot becomes free as soon as the server notices that a client left.
async fn admitted(server: &AcceptServer) {
    let trying = async {
        loop {
            let mut next = server.client().await;
            next.send(client::get("/")).await;
            if next
                .answer()
                .await
                .is_some_and(|answer| answer.status == 200)
            {
                return;
            }
        }
    };
    soon("a free connection slot", trying).await;
}

#[tokio::test]
async fn one_connection_too_many_is_turned_away() {
    let server = serving(HttpLimits {
        connections: 2,
        ..patient()
    })
    .await;
    let (mut one, mut two) = (server.client().await, server.client().await);
    assert_eq!(one.get("/").await.status, 200);
    assert_eq!(two.get("/").await.status, 200);

    let refused = server.client().await.rest().await;
    assert!(
        refused.starts_with("HTTP/1.1 503 ") && refused.contains("Retry-After"),
        "{refused}"
    );
    assert_eq!(one.get("/").await.status, 200);
    assert_eq!(two.get("/").await.status, 200);

    drop(one);
    admitted(&server).await;
    assert_eq!(two.get("/").await.status, 200);
}

#[tokio::test]
async fn in_a_crowd_idle_connections_give_way() {
    let server = serving(HttpLimits {
        connections: 8,
        first_byte: SHORT,
        ..patient()
    })
    .await;
    let mut crowd = Vec::new();
    for _ in 0..8 {
        let mut client = server.client().await;
        assert_eq!(client.get("/").await.status, 200);
        crowd.push(client);
    }
    admitted(&server).await;
    drop(crowd);
}

#[tokio::test]
async fn connections_without_a_whole_head_lose_their_slots_to_newcomers() {
    let server = serving(HttpLimits {
        connections: 8,
        ..patient()
    })
    .await;
    let mut good = server.client().await;
    assert_eq!(good.get("/").await.status, 200);
    // No deadline expires here, so each newcomer must evict the oldest connection without a complete head.
    let starts: [&[u8]; 3] = [b"", b"G", &h2::PREFACE[..10]];
    let mut hoard = Vec::new();
    for start in starts.into_iter().cycle().take(60) {
        let mut client = server.client().await;
        client.send(start).await;
        hoard.push(client);
    }
    admitted(&server).await;
    assert_eq!(
        good.get("/").await.status,
        200,
        "a connection that had completed a request was evicted"
    );
}

#[tokio::test]
async fn heads_that_do_not_end_share_a_budget() {
    let limits = HttpLimits {
        request_bytes: 100 * 1024,
        ..patient()
    };
    let server = serving(limits).await;
    let head = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: {}",
        "x".repeat(20_000)
    );
    let mut hoard = Vec::new();
    for _ in 0..20 {
        let mut client = server.client().await;
        client.send(&head).await;
        hoard.push(client);
    }
    // The budget holds five heads of 20 kB. The other fifteen must be evicted although no deadline expires.
    let mut ended = futures::stream::FuturesUnordered::new();
    for client in hoard {
        ended.push(client.rest());
    }
    for _ in 0..15 {
        let received = soon("the eviction of a head", ended.next()).await.unwrap();
        assert_eq!(received, "");
    }
    assert_eq!(server.client().await.get("/").await.status, 200);
}

#[tokio::test]
async fn stalled_connections_of_every_kind_do_not_delay_others() {
    let limits = HttpLimits {
        first_byte: SHORT,
        headers: SHORT,
        body: SHORT,
        ..patient()
    };
    let server = serving(limits).await;
    let half_body = client::post("/read", &"x".repeat(900))[..200].to_owned();
    let kinds: [&[u8]; 4] = [
        b"",
        b"GET / HTTP/1.1\r\nHost",
        half_body.as_bytes(),
        h2::PREFACE,
    ];
    let mut stuck = Vec::new();
    for _ in 0..40 {
        for kind in kinds {
            let mut client = server.client().await;
            client.send(kind).await;
            stuck.push(client);
        }
        assert_eq!(server.client().await.get("/").await.status, 200);
    }
    for client in stuck {
        let received = client.rest().await;
        assert!(!received.contains(" 200 "), "{received}");
    }
}

#[tokio::test]
async fn a_panic_is_a_500_and_nothing_else() {
    async fn panicking() -> Json<()> {
        panic!("on purpose")
    }
    let router = Router::new()
        .route("/fall", get(panicking))
        .route("/", get(|| async { "hello" }));
    let server = AcceptServer::start(patient(), router).await;
    let (mut client, mut other) = (server.client().await, server.client().await);
    assert_eq!(other.get("/").await.status, 200);
    let answer = client.get("/fall").await;
    assert_eq!(answer.status, 500);
    assert!(
        answer.body.contains("-32603") && !answer.body.contains("purpose"),
        "{}",
        answer.body
    );
    assert_eq!(client.get("/").await.status, 200);
    assert_eq!(other.get("/").await.status, 200);
}

#[tokio::test]
async fn a_panic_in_an_answers_body_ends_only_its_connection() {
    let panicking = || async {
        let stream =
            futures::stream::poll_fn(|_| -> std::task::Poll<Option<Result<Bytes, Infallible>>> {
                panic!("on purpose")
            });
        Response::new(Body::from_stream(stream))
    };
    let router = Router::new()
        .route("/fall", get(panicking))
        .route("/", get(|| async { "hello" }));
    let server = AcceptServer::start(patient(), router).await;
    let (mut client, mut other) = (server.client().await, server.client().await);
    assert_eq!(other.get("/").await.status, 200);
    client.send(client::get("/fall")).await;
    client.rest().await;
    assert_eq!(other.get("/").await.status, 200);
    assert_eq!(server.client().await.get("/").await.status, 200);
}
/// Runs itself again in a child process with a limit of 60 file descriptors, because the limit is per process.
#[test]
fn running_out_of_files_is_survived() {
    const MARKER: &str = "DOCENT_TEST_FEW_FILES";
    if std::env::var_os(MARKER).is_some() {
        return tokio::runtime::Runtime::new()
            .unwrap()
            .block_on(with_few_files());
    }
    let this = std::env::current_exe().unwrap();
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 60 && exec \"$0\" \"$@\""])
        .arg(this)
        .args(["--exact", "crowd::running_out_of_files_is_survived"])
        .env(MARKER, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{printed}"
    );
}

async fn with_few_files() {
    let server = serving(patient()).await;
    let mut first = server.client().await;
    assert_eq!(first.get("/").await.status, 200);
    let mut hoard = Vec::new();
    let error = loop {
        match tokio::net::TcpStream::connect(server.address).await {
            Ok(stream) => hoard.push(stream),
            Err(error) => break error,
        }
    };
    assert_eq!(error.raw_os_error(), Some(24), "{error}");
    // The accept call of the server fails with EMFILE now, but open connections must still be served.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(first.get("/").await.status, 200);
    drop(hoard);
    let again = async {
        loop {
            if let Ok(stream) = tokio::net::TcpStream::connect(server.address).await {
                return stream;
            }
        }
    };
    drop(soon("a connection", again).await);
    assert_eq!(server.client().await.get("/").await.status, 200);
}
