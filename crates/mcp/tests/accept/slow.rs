//! Slow clients and stuck handlers: deadlines for heads and bodies, the minimum body rate, keep-alive and maximum age
//! of a connection, stalled responses, and bounds on sizes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use docent_mcp::http::accept::PeerAddress;
use docent_mcp::http::body;
use docent_mcp::http::limits::HttpLimits;
use http::StatusCode;
use tokio::sync::Notify;
use tokio::sync::mpsc;

use crate::client::{self, AcceptServer, DropSignal, SHORT, patient, soon};
use crate::serving;

#[tokio::test]
async fn answers_over_one_connection() {
    let server = serving(patient()).await;
    let mut client = server.client().await;
    for _ in 0..3 {
        let answer = client.get("/").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello"));
        assert!(!answer.closes());
    }
}

#[tokio::test]
async fn the_peer_is_known_to_handlers() {
    let say =
        |Extension(PeerAddress(peer)): Extension<PeerAddress>| async move { peer.to_string() };
    let server = AcceptServer::start(patient(), Router::new().route("/", get(say))).await;
    let mut client = server.client().await;
    let mine = client.stream.local_addr().unwrap().to_string();
    assert_eq!(client.get("/").await.body, mine);
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let server = serving(HttpLimits {
        first_byte: SHORT,
        ..patient()
    })
    .await;
    server.client().await.closed_silently().await;
}

#[tokio::test]
async fn half_a_head_is_closed() {
    let server = serving(HttpLimits {
        headers: SHORT,
        ..patient()
    })
    .await;
    let mut client = server.client().await;
    client.send("GET / HTTP/1.1\r\nHost: local").await;
    client.closed_silently().await;
}

#[tokio::test]
async fn half_a_head_is_closed_on_a_used_connection_too() {
    let server = serving(HttpLimits {
        headers: SHORT,
        ..patient()
    })
    .await;
    let mut client = server.client().await;
    assert_eq!(client.get("/").await.status, 200);
    client.send("GET / HTTP/1.1\r\nHost: local").await;
    client.closed_silently().await;
}

#[tokio::test]
async fn a_trickled_head_is_closed() {
    let server = serving(HttpLimits {
        headers: SHORT,
        ..patient()
    })
    .await;
    let mut client = server.client().await;
    client.send("GET / HTTP/1.1\r\nX-Long: ").await;
    client.trickle(b'x').await;
}

#[tokio::test]
async fn a_stalled_body_is_answered_and_closed() {
    let server = serving(HttpLimits {
        body: SHORT,
        body_rate: 0,
        ..patient()
    })
    .await;
    let mut client = server.client().await;
    client
        .send(&client::post("/read", &"x".repeat(900))[..200])
        .await;
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.status, answer.closes()), (408, true));
    client.closed_silently().await;
}

#[tokio::test]
async fn a_trickled_body_is_too_slow_before_its_time_is_up() {
    // The deadline for the whole body is an hour away; the minimum rate is what ends it.
    let server = serving(HttpLimits {
        body_grace: SHORT,
        ..patient()
    })
    .await;
    let mut client = server.client().await;
    client
        .send(&client::post("/read", &"x".repeat(900))[..200])
        .await;
    client.trickle(b'x').await;
}

#[tokio::test]
async fn a_body_in_pieces_above_the_rate_is_read() {
    let limits = HttpLimits {
        body_grace: SHORT,
        body_rate: 0,
        ..patient()
    };
    let server = serving(limits).await;
    let mut client = server.client().await;
    let whole = client::post("/read", &"x".repeat(900));
    for piece in whole.as_bytes().chunks(300) {
        client.send(piece).await;
        tokio::time::sleep(SHORT / 2).await;
    }
    assert_eq!(client.answer().await.unwrap().body, "900");
}

#[tokio::test]
async fn body_limits_apply_with_and_without_chunks() {
    let server = serving(patient()).await;
    let chunked = |size: usize| {
        let head = "POST /read HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
        let half = size / 2;
        let (a, b) = ("x".repeat(half), "x".repeat(size - half));
        format!(
            "{head}{half:x}\r\n{a}\r\n{:x}\r\n{b}\r\n0\r\n\r\n",
            size - half
        )
    };
    for (size, status) in [(0, 200), (1, 200), (1000, 200), (1001, 413)] {
        let mut client = server.client().await;
        client.send(client::post("/read", &"x".repeat(size))).await;
        assert_eq!(
            client.answer().await.unwrap().status,
            status,
            "{size} announced"
        );
        if size > 1 {
            let mut client = server.client().await;
            client.send(chunked(size)).await;
            assert_eq!(
                client.answer().await.unwrap().status,
                status,
                "{size} in chunks"
            );
        }
    }
}

#[tokio::test]
async fn an_announced_body_is_refused_before_it_comes() {
    let server = serving(patient()).await;
    let mut client = server.client().await;
    client
        .send(&client::post("/read", &"x".repeat(5000))[..100])
        .await;
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.status, answer.closes()), (413, true));
    client.closed_silently().await;
}

#[tokio::test]
async fn a_body_that_ends_early_ends_its_request() {
    let (report, mut finished) = mpsc::unbounded_channel();
    let read = move |request: Request| async move {
        let result = body::read(request.into_body(), 1000, &HttpLimits::default()).await;
        report.send(result.map(|bytes| bytes.len())).unwrap();
    };
    let server = AcceptServer::start(patient(), Router::new().route("/", post(read))).await;
    let mut client = server.client().await;
    client
        .send(&client::post("/", &"x".repeat(900))[..200])
        .await;
    drop(client);
    // Either hyper notices first and drops the handler, or the handler reads a broken body.
    let end = soon("the end of the request", finished.recv()).await;
    assert!(
        matches!(end, None | Some(Err(body::BodyError::Broken))),
        "{end:?}"
    );
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let server = serving(HttpLimits {
        idle: SHORT,
        ..patient()
    })
    .await;
    let mut client = server.client().await;
    assert_eq!(client.get("/").await.status, 200);
    client.closed_silently().await;
}

#[tokio::test]
async fn waiting_between_requests_is_not_a_slow_head() {
    let server = serving(HttpLimits {
        first_byte: SHORT,
        headers: SHORT,
        ..patient()
    })
    .await;
    let mut client = server.client().await;
    assert_eq!(client.get("/").await.status, 200);
    tokio::time::sleep(SHORT * 3).await;
    assert_eq!(client.get("/").await.status, 200);
}

#[tokio::test]
async fn an_old_connection_is_closed_between_answers() {
    let server = serving(HttpLimits {
        age: SHORT,
        ..patient()
    })
    .await;
    let mut client = server.client().await;
    let ageing = async {
        loop {
            client.send(client::get("/")).await;
            // A busy client gets every response, and `Connection: close` marks the last one.
            let answer = client.answer().await.expect("an answer");
            assert_eq!(answer.status, 200);
            if answer.closes() {
                return;
            }
        }
    };
    soon("the last response", ageing).await;
    client.closed_silently().await;
}

#[tokio::test]
async fn an_old_connection_finishes_its_answer() {
    let gate = Arc::new(Notify::new());
    let wait = {
        let gate = gate.clone();
        move || async move {
            gate.notified().await;
            "done"
        }
    };
    let limits = HttpLimits {
        age: SHORT,
        ..patient()
    };
    let server = AcceptServer::start(limits, Router::new().route("/", get(wait))).await;
    let mut client = server.client().await;
    client.send(client::get("/")).await;
    tokio::time::sleep(SHORT * 3).await;
    gate.notify_one();
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.body.as_str(), answer.closes()), ("done", true));
    client.closed_silently().await;
}

/// Limits under which a request without progress ends after `stall`.
fn stalling(stall: Duration) -> HttpLimits {
    let none = Duration::ZERO;
    HttpLimits {
        stall,
        body: none,
        handler: none,
        sse_keep_alive: none,
        ..patient()
    }
}

#[tokio::test]
async fn a_stuck_handler_loses_its_connection() {
    let (signal, mut dropped) = mpsc::unbounded_channel();
    let stuck = move || async move {
        let _signal = DropSignal(signal);
        std::future::pending::<()>().await;
    };
    let limits = stalling(SHORT);
    let server = AcceptServer::start(limits, Router::new().route("/", get(stuck))).await;
    let mut client = server.client().await;
    client.send(client::get("/")).await;
    client.closed_silently().await;
    soon("the drop of the handler", dropped.recv())
        .await
        .unwrap();
}

fn endless(signal: DropSignal) -> Response {
    let chunk = Bytes::from(vec![b'x'; 64 * 1024]);
    let stream = futures::stream::unfold(signal, move |signal| {
        let chunk = chunk.clone();
        async move { Some((Ok::<_, Infallible>(chunk), signal)) }
    });
    Response::new(Body::from_stream(stream))
}

#[tokio::test]
async fn a_reader_that_stops_reading_loses_its_connection() {
    let (signal, mut dropped) = mpsc::unbounded_channel();
    let limits = stalling(SHORT);
    let answer = move || async move { endless(DropSignal(signal)) };
    let server = AcceptServer::start(limits, Router::new().route("/", get(answer))).await;
    let mut client = server.client().await;
    client.send(client::get("/")).await;
    soon("the drop of the response", dropped.recv())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_stream_that_moves_is_kept() {
    let comments = || async {
        let stream = futures::stream::unfold(0, |count| async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            (count < 40).then(|| {
                (
                    Ok::<_, Infallible>(Bytes::from_static(b": x\n\n")),
                    count + 1,
                )
            })
        });
        Response::new(Body::from_stream(stream))
    };
    // The stream lasts longer than the deadlines, but each part comes before one expires.
    let limits = HttpLimits {
        idle: SHORT,
        headers: SHORT,
        ..stalling(SHORT * 3)
    };
    let server = AcceptServer::start(limits, Router::new().route("/", get(comments))).await;
    let mut client = server.client().await;
    client.send(client::get("/")).await;
    assert_eq!(client.rest().await.matches(": x").count(), 40);
}

#[tokio::test]
async fn the_size_of_a_head_is_bounded() {
    let server = serving(HttpLimits {
        header_bytes: 4 * 1024,
        ..patient()
    })
    .await;
    let mut client = server.client().await;
    client
        .send(format!(
            "GET / HTTP/1.1\r\nX-Long: {}\r\n\r\n",
            "x".repeat(20_000)
        ))
        .await;
    let answer = client.answer().await.unwrap();
    assert_eq!(StatusCode::from_u16(answer.status).unwrap(), 431);
    assert!(answer.closes());
}
