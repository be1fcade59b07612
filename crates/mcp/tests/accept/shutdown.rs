//! Graceful shutdown: in-flight requests and accepted connections are drained, new ones are refused, and the deadline
//! drops what is stuck.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use docent_mcp::http::limits::HttpLimits;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};

use crate::client::{self, AcceptServer, NEVER, SHORT, h2, patient, soon};

/// Router whose `/wait` handler blocks on a semaphore. Also returns the semaphore and the count of waiting handlers.
fn gated() -> (Router, Arc<Semaphore>, Arc<AtomicUsize>) {
    let gate = Arc::new(Semaphore::new(0));
    let waiting = Arc::new(AtomicUsize::new(0));
    let (at_gate, count) = (gate.clone(), waiting.clone());
    let wait = move || async move {
        count.fetch_add(1, Ordering::SeqCst);
        at_gate.acquire().await.unwrap().forget();
        "done"
    };
    let router = Router::new()
        .route("/wait", get(wait))
        .route("/", get(|| async { "hello" }));
    (router, gate, waiting)
}

async fn until(waiting: &AtomicUsize, count: usize) {
    let reached = async {
        while waiting.load(Ordering::SeqCst) < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("all handlers at the semaphore", reached).await;
}

#[tokio::test]
async fn an_unused_server_stops() {
    let server = AcceptServer::start(patient(), Router::new()).await;
    server.stop.cancel();
    server.stopped().await;
}

#[tokio::test]
async fn a_hundred_requests_in_flight_are_answered() {
    let (router, gate, waiting) = gated();
    let server = AcceptServer::start(patient(), router).await;
    let mut clients = Vec::new();
    for _ in 0..100 {
        let mut client = server.client().await;
        client.send(client::get("/wait")).await;
        clients.push(client);
    }
    until(&waiting, 100).await;
    server.stop.cancel();
    tokio::time::sleep(SHORT).await;
    gate.add_permits(100);
    for mut client in clients {
        let answer = client.answer().await.expect("an answer");
        assert_eq!((answer.body.as_str(), answer.closes()), ("done", true));
        client.closed_silently().await;
    }
    server.stopped().await;
}

#[tokio::test]
async fn no_connection_is_accepted_after_shutdown_began() {
    let (router, gate, waiting) = gated();
    let server = AcceptServer::start(patient(), router).await;
    let mut client = server.client().await;
    client.send(client::get("/wait")).await;
    until(&waiting, 1).await;
    server.stop.cancel();
    let refused = async {
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("a refused connection", refused).await;
    gate.add_permits(1);
    assert_eq!(client.answer().await.unwrap().body, "done");
    server.stopped().await;
}

#[tokio::test]
async fn a_stuck_request_is_dropped_at_the_deadline() {
    let (router, _gate, waiting) = gated();
    let server = AcceptServer::start(
        HttpLimits {
            shutdown: SHORT,
            ..patient()
        },
        router,
    )
    .await;
    let mut client = server.client().await;
    client.send(client::get("/wait")).await;
    until(&waiting, 1).await;
    server.stop.cancel();
    server.stopped().await;
    client.closed_silently().await;
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_end() {
    let (router, ..) = gated();
    let server = AcceptServer::start(patient(), router).await;
    let mut idle = server.client().await;
    assert_eq!(idle.get("/").await.status, 200);
    let silent = server.client().await;
    server.stop.cancel();
    idle.closed_silently().await;
    silent.closed_silently().await;
    server.stopped().await;
}

#[tokio::test]
async fn requests_on_their_way_are_answered() {
    let (router, ..) = gated();
    // Long enough for bytes that are in flight, however slow the machine is.
    let server = AcceptServer::start(
        HttpLimits {
            linger: NEVER,
            ..patient()
        },
        router,
    )
    .await;
    let mut used = server.client().await;
    assert_eq!(used.get("/").await.status, 200);
    let mut fresh = server.client().await;
    let mut half = server.client().await;
    half.send("GET / HTTP/1.1\r\nHo").await;
    let mut half_used = server.client().await;
    assert_eq!(half_used.get("/").await.status, 200);
    half_used.send("P").await;
    server.stop.cancel();
    tokio::time::sleep(SHORT).await;

    half.send("st: localhost\r\n\r\n").await;
    half_used
        .send("OST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        .await;
    for (client, status) in [(&mut half, 200), (&mut half_used, 405)] {
        let answer = client
            .answer()
            .await
            .expect("a response to a head that had begun before shutdown");
        assert_eq!(answer.status, status);
    }
    for client in [&mut used, &mut fresh] {
        assert_eq!(client.get("/").await.status, 200);
    }
    for client in [half, half_used, used, fresh] {
        client.closed_silently().await;
    }
    server.stopped().await;
}

#[tokio::test]
async fn a_head_that_had_begun_is_waited_for_beyond_the_linger() {
    let (router, ..) = gated();
    let server = AcceptServer::start(patient(), router).await;
    let mut half = server.client().await;
    half.send("GET / HTTP/1.1\r\nHo").await;
    let mut half_used = server.client().await;
    assert_eq!(half_used.get("/").await.status, 200);
    half_used.send("GET / HTTP/1.1\r\nHo").await;
    // The response to a third client shows that both pieces were received before shutdown began: one task reads all.
    tokio::time::sleep(SHORT).await;
    server.stop.cancel();
    tokio::time::sleep(SHORT * 3).await;
    for mut client in [half, half_used] {
        client.send("st: localhost\r\n\r\n").await;
        let answer = client
            .answer()
            .await
            .expect("a response to a head that had begun before shutdown");
        assert_eq!((answer.status, answer.closes()), (200, true));
        client.closed_silently().await;
    }
    server.stopped().await;
}

#[tokio::test]
async fn a_request_after_an_answer_that_did_not_say_it_is_the_last_is_answered() {
    let gate = Arc::new(Semaphore::new(0));
    let at_gate = gate.clone();
    // The head of the response is sent before shutdown begins, the body after.
    let slow = move || async move {
        let end = async move {
            at_gate.acquire().await.unwrap().forget();
            Ok::<_, std::convert::Infallible>(Bytes::from_static(b"done"))
        };
        let body = Body::from_stream(futures::stream::once(end));
        ([("content-length", "4")], body)
    };
    let router = Router::new()
        .route("/slow", get(slow))
        .route("/", get(|| async { "hello" }));
    let limits = HttpLimits {
        linger: NEVER,
        ..patient()
    };
    let server = AcceptServer::start(limits, router).await;
    let mut client = server.client().await;
    client.send(client::get("/slow")).await;
    client.more().await;
    server.stop.cancel();
    tokio::time::sleep(SHORT).await;
    gate.add_permits(1);
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.body.as_str(), answer.closes()), ("done", false));
    let answer = client.get("/").await;
    assert_eq!((answer.body.as_str(), answer.closes()), ("hello", true));
    client.closed_silently().await;
    server.stopped().await;
}

#[tokio::test]
async fn connections_the_kernel_had_accepted_are_answered() {
    let (router, ..) = gated();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut streams = Vec::new();
    for _ in 0..50 {
        streams.push(TcpStream::connect(address).await.unwrap());
    }
    let server = AcceptServer::on(listener, patient(), router);
    // Shutdown begins before the server could accept a connection.
    server.stop.cancel();
    for stream in streams {
        let mut client = client::RawClient::new(stream);
        client.send(client::get("/")).await;
        assert_eq!(client.answer().await.expect("an answer").status, 200);
    }
    server.stopped().await;
}

#[tokio::test]
async fn http2_streams_in_flight_are_answered() {
    let (router, gate, waiting) = gated();
    let server = AcceptServer::start(patient(), router).await;
    let mut client = server.client().await;
    client.send_preface().await;
    for stream in [1, 3, 5] {
        client
            .send(h2::get(stream, "/wait", "localhost", None))
            .await;
    }
    until(&waiting, 3).await;
    server.stop.cancel();
    assert!(client.frame_of(h2::GOAWAY).await.is_some());
    gate.add_permits(3);
    for _ in 0..3 {
        assert_eq!(
            client.frame_of(h2::HEADERS).await.unwrap().payload.first(),
            Some(&0x88)
        );
    }
    while client.frame_of(h2::GOAWAY).await.is_some() {}
    server.stopped().await;
}

#[tokio::test]
async fn a_mute_http2_peer_does_not_hold_up_the_end() {
    let (router, ..) = gated();
    let server = AcceptServer::start(
        HttpLimits {
            headers: SHORT,
            ..patient()
        },
        router,
    )
    .await;
    let mut mute = server.client().await;
    mute.send_preface().await;
    mute.send(h2::get(1, "/", "localhost", None)).await;
    assert!(mute.frame_of(h2::HEADERS).await.is_some());
    server.stop.cancel();
    server.stopped().await;
    mute.closed().await;
}

#[tokio::test]
async fn a_load_of_keep_alive_clients_loses_no_accepted_request() {
    let (router, ..) = gated();
    let server = AcceptServer::start(patient(), router).await;
    let (report, mut finished) = mpsc::unbounded_channel();
    for _ in 0..20 {
        let (mut client, report) = (server.client().await, report.clone());
        tokio::spawn(async move {
            let mut answered = 0u32;
            loop {
                client.send(client::get("/")).await;
                match client.answer().await {
                    Some(answer) if answer.status == 200 && answer.closes() => break,
                    Some(answer) => assert_eq!(answer.status, 200),
                    // A busy client always has a request in flight, and no accepted request may be lost.
                    None => panic!("connection lost after {answered} responses"),
                }
                answered += 1;
            }
            report.send(()).unwrap();
        });
    }
    drop(report);
    tokio::time::sleep(SHORT).await;
    server.stop.cancel();
    for _ in 0..20 {
        soon("the last response", finished.recv())
            .await
            .expect("a request was lost");
    }
    server.stopped().await;
}
