//! HTTP/2 on the same port: preface, idle and keep-alive deadlines, the limit on concurrent streams, and bounds on
//! header lists (HPACK bombs).

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use docent_mcp::http::limits::HttpLimits;
use tokio::sync::Notify;
use tokio::sync::mpsc;

use crate::client::{AcceptServer, DropSignal, RawClient, SHORT, h2, patient, soon};
use crate::serving;

async fn h2_client(server: &AcceptServer) -> RawClient {
    let mut client = server.client().await;
    client.send_preface().await;
    client
}

async fn h2_get(client: &mut RawClient, stream: u32) {
    client.send(h2::get(stream, "/", "localhost", None)).await;
    let frame = client.frame_of(h2::HEADERS).await.unwrap();
    // 0x88 is status 200 in the HPACK static table.
    assert_eq!((frame.stream, frame.payload.first()), (stream, Some(&0x88)));
}

#[tokio::test]
async fn http2_is_answered_on_the_same_port() {
    let server = serving(patient()).await;
    let mut client = h2_client(&server).await;
    h2_get(&mut client, 1).await;
    h2_get(&mut client, 3).await;
}

#[tokio::test]
async fn an_http2_preface_alone_is_closed() {
    let server = serving(HttpLimits {
        headers: SHORT,
        ..patient()
    })
    .await;
    let mut half = server.client().await;
    half.send(&h2::PREFACE[..10]).await;
    half.closed_silently().await;
    let mut whole = server.client().await;
    whole.send(h2::PREFACE).await;
    whole.closed().await;
    h2_client(&server).await.closed().await;
}

#[tokio::test]
async fn an_idle_http2_connection_is_closed_even_when_it_does_not_say_goodbye() {
    let server = serving(HttpLimits {
        idle: SHORT,
        headers: SHORT,
        ..patient()
    })
    .await;
    let mut polite = h2_client(&server).await;
    h2_get(&mut polite, 1).await;
    assert!(polite.frame_of(h2::GOAWAY).await.is_some());
    while polite.frame_of(h2::GOAWAY).await.is_some() {}

    let mut mute = h2_client(&server).await;
    h2_get(&mut mute, 1).await;
    mute.closed().await;
}

#[tokio::test]
async fn an_http2_peer_that_vanished_is_noticed() {
    let (signal, mut dropped) = mpsc::unbounded_channel();
    let stuck = move || async move {
        let _signal = DropSignal(signal);
        std::future::pending::<()>().await;
    };
    let limits = HttpLimits {
        h2_ping_every: SHORT,
        h2_ping_timeout: SHORT,
        ..patient()
    };
    let server = AcceptServer::start(limits, Router::new().route("/", get(stuck))).await;
    let mut client = h2_client(&server).await;
    client.send(h2::get(1, "/", "localhost", None)).await;
    soon("the drop of the handler", dropped.recv())
        .await
        .unwrap();
}

#[tokio::test]
async fn one_http2_stream_too_many_is_refused() {
    let gate = Arc::new(Notify::new());
    let wait = {
        let gate = gate.clone();
        move || async move { gate.notified().await }
    };
    let limits = HttpLimits {
        h2_streams: 3,
        ..patient()
    };
    let server = AcceptServer::start(limits, Router::new().route("/", get(wait))).await;
    let mut client = h2_client(&server).await;
    for stream in [1, 3, 5, 7] {
        client.send(h2::get(stream, "/", "localhost", None)).await;
    }
    let reset = client.frame_of(h2::RESET).await.unwrap();
    assert_eq!(reset.stream, 7);
    gate.notify_waiters();
    for _ in 0..3 {
        gate.notify_one();
        assert_eq!(
            client.frame_of(h2::HEADERS).await.unwrap().payload.first(),
            Some(&0x88)
        );
    }
}

#[tokio::test]
async fn a_large_http2_header_list_is_refused() {
    let limits = HttpLimits {
        h2_header_list: 200,
        ..patient()
    };
    let server = serving(limits).await;
    let mut client = h2_client(&server).await;
    h2_get(&mut client, 1).await;
    // The size of a header list is its names and values plus 32 octets a field (RFC 9113, 6.5.2).
    client
        .send(h2::get(3, "/", "localhost", Some(&"a".repeat(100))))
        .await;
    let frame = client.frame_of(h2::HEADERS).await.unwrap();
    assert_ne!(frame.payload.first(), Some(&0x88));
}

/// HPACK bomb: one byte of a header block can be a whole field, which takes about a hundred bytes in memory.
#[tokio::test]
async fn more_than_a_hundred_header_fields_are_refused_before_the_body_comes() {
    let server = serving(patient()).await;
    let mut client = h2_client(&server).await;
    for (stream, fields, status) in [(1, 100, b"\x88"), (3, 101, b"\x48")] {
        client.send(h2::packed(stream, fields)).await;
        let frame = client.frame_of(h2::HEADERS).await.unwrap();
        assert_eq!(frame.stream, stream);
        // 0x88 is a 200, 0x48 a literal status that is not in the static table.
        assert_eq!(&frame.payload[..1], status, "{fields} fields");
    }
}
