//! Request smuggling: requests whose framing two parsers could read differently. None may be served, and no request
//! may get two responses.
//!
//! The router behind answers 200 to everything and has the same request guard as the product.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use docent_mcp::http::body;
use docent_mcp::http::guard::{self, RequestGuard};
use docent_mcp::http::limits::HttpLimits;

use crate::client::{AcceptServer, h2, patient};

fn guarded() -> Router {
    let serve = |request: Request| async move {
        let is_smuggled = request.uri().path() == "/smuggled";
        match body::read(request.into_body(), 100_000, &HttpLimits::default()).await {
            Ok(_) if is_smuggled => "smuggled".into_response(),
            Ok(_) => "served".into_response(),
            Err(error) => error.into_response(),
        }
    };
    let nothing: [&str; 0] = [];
    let guard = RequestGuard::new(&["localhost"], &nothing).unwrap();
    Router::new()
        .fallback(serve)
        .layer(from_fn_with_state(Arc::new(guard), guard::enforce))
}

/// Bytes appended to a request that a confused parser would take for a second request.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn chunked(rest: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n{rest}")
}

fn sized(length: &str, rest: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{rest}")
}

fn coded(coding: &str) -> String {
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: ";
    format!("{head}{coding}\r\n\r\n0\r\n\r\n")
}

/// Rows of (name, bytes, expected status).
#[rustfmt::skip]
fn refused() -> Vec<(&'static str, String, u16)> {
    let host = "Host: localhost\r\n";
    let x = |count: usize| "x".repeat(count);
    vec![
        ("length then chunks", sized("5", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
        ("chunks then length", chunked("Content-Length: 5\r\n\r\n0\r\n\r\n"), 400),
        ("both in odd case", chunked("cOnTeNt-LeNgTh: 5\r\n\r\n0\r\n\r\n"), 400),
        ("both, other headers between", chunked("X: a\r\nContent-Length: 0\r\n\r\n0\r\n\r\n"), 400),
        ("chunks twice", chunked("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
        ("chunks twice in one", coded("chunked, chunked"), 400),
        ("chunks of something else", coded("gzip, chunked"), 400),
        ("both, length unreadable", chunked("Content-Length: x\r\n\r\n0\r\n\r\n"), 400),
        ("two lengths differ", sized("5", "Content-Length: 6\r\n\r\nhello"), 400),
        ("list of lengths", sized("5, 6", "\r\nhello"), 400),
        ("negative length", sized("-5", "\r\nhello"), 400),
        ("length with sign", sized("+5", "\r\nhello"), 400),
        ("hexadecimal length", sized("0x5", "\r\nhello"), 400),
        ("empty length", sized("", "\r\nhello"), 400),
        ("huge length", sized("99999999999999999999", "\r\nhello"), 400),
        ("chunks not last", coded("chunked, x"), 400),
        ("unknown coding", coded("xchunked"), 400),
        ("no coding", coded("identity"), 400),
        ("empty coding", coded(""), 400),
        ("chunks in 1.0", coded("chunked").replace("HTTP/1.1", "HTTP/1.0"), 400),
        ("space before colon", sized("5", "\r\nhello").replace("th: 5", "th : 5"), 400),
        ("folded line", format!("POST / HTTP/1.1\r\n{host}X: a\r\n b\r\n\r\n"), 400),
        ("null byte", format!("GET / HTTP/1.1\r\n{host}X: a\0b\r\n\r\n"), 400),
        ("return without feed", format!("GET / HTTP/1.1\r\n{host}X: a\rb\r\n\r\n"), 400),
        ("bare feed after the request line", format!("GET / HTTP/1.1\n{host}\r\n"), 400),
        ("bare feed after a header", "GET / HTTP/1.1\r\nHost: localhost\nX: a\r\n\r\n".into(), 400),
        ("bare feeds only", "GET / HTTP/1.1\nHost: localhost\n\n".into(), 400),
        ("bare feed at the end", format!("GET / HTTP/1.1\r\n{host}\n"), 400),
        ("two hosts", format!("GET / HTTP/1.1\r\n{host}{host}\r\n"), 400),
        ("two hosts, one evil", format!("GET / HTTP/1.1\r\n{host}Host: evil.example\r\n\r\n"), 400),
        ("no host", "GET / HTTP/1.1\r\n\r\n".into(), 400),
        ("no host in 1.0", "GET / HTTP/1.0\r\n\r\n".into(), 400),
        ("other target", format!("GET http://evil.example/ HTTP/1.1\r\n{host}\r\n"), 400),
        ("evil host", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".into(), 403),
        ("version of the future", format!("GET / HTTP/3.0\r\n{host}\r\n"), 400),
        ("two spaces", format!("GET  / HTTP/1.1\r\n{host}\r\n"), 400),
        ("chunk size with sign", chunked("\r\n+5\r\nhello\r\n0\r\n\r\n"), 400),
        ("chunk size not a number", chunked("\r\nzz\r\nhello\r\n0\r\n\r\n"), 400),
        ("chunk size too large", chunked("\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n"), 400),
        ("chunk without its end", chunked("\r\n5\r\nhelloXX0\r\n\r\n"), 400),
        ("chunk line ends bare", chunked("\r\n5\nhello\r\n0\r\n\r\n"), 400),
        ("chunk extension", chunked(&format!("\r\n5;{}\r\nhello\r\n0\r\n\r\n", x(1_000_000))), 400),
        ("101 headers", format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: a\r\n".repeat(100)), 431),
        ("500 KB header", format!("GET / HTTP/1.1\r\n{host}X: {}\r\n\r\n", x(500_000)), 431),
        ("33 KB of headers", format!("GET / HTTP/1.1\r\n{host}X: {}\r\n\r\n", x(33_000)), 431),
        ("9 KB target", format!("GET /{} HTTP/1.1\r\n{host}\r\n", x(9_000)), 414),
    ]
}

/// Writes and reads at the same time, because the server may respond and close before it has all bytes.
async fn exchange(server: &AcceptServer, bytes: String) -> String {
    let client = server.client().await;
    let (mut from, mut to) = client.stream.into_split();
    let sending = tokio::spawn(async move {
        let _ = tokio::io::AsyncWriteExt::write_all(&mut to, bytes.as_bytes()).await;
        to
    });
    let mut received = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = tokio::io::AsyncReadExt::read(&mut from, &mut piece);
        match crate::client::soon("a response and the end of the connection", read).await {
            Ok(0) | Err(_) => break,
            Ok(count) => received.extend_from_slice(&piece[..count]),
        }
    }
    drop(sending.await);
    String::from_utf8_lossy(&received).into_owned()
}

#[tokio::test]
async fn improper_requests_are_refused_once_and_closed() {
    let server = AcceptServer::start(patient(), guarded()).await;
    let rows = refused();
    assert!(rows.len() >= 30);
    for (name, bytes, status) in rows {
        // A wrong host is a well-formed request, so its connection may stay open.
        let follow = if status == 403 { "" } else { SMUGGLED };
        let bytes = if status == 403 {
            bytes.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
        } else {
            bytes
        };
        let received = exchange(&server, bytes + follow).await;
        assert!(
            received.starts_with(&format!("HTTP/1.1 {status} "))
                || received.starts_with(&format!("HTTP/1.0 {status} ")),
            "{name}: {received:?}"
        );
        assert_eq!(
            received.matches("HTTP/1.").count(),
            1,
            "{name}: {received:?}"
        );
        assert!(!received.contains("smuggled"), "{name}: {received:?}");
    }
}

#[tokio::test]
async fn a_refusal_cut_anywhere_stays_a_refusal() {
    let server = AcceptServer::start(patient(), guarded()).await;
    let whole = sized("5", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    for cut in (1..whole.len() - 8).step_by(7) {
        let mut client = server.client().await;
        client.stream.set_nodelay(true).unwrap();
        client.send(&whole[..cut]).await;
        tokio::task::yield_now().await;
        client.send(&whole[cut..]).await;
        let answer = client.answer().await.unwrap();
        assert_eq!(
            (answer.status, answer.closes()),
            (400, true),
            "cut at {cut}"
        );
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_turn_until_one_is_ambiguous() {
    let server = AcceptServer::start(patient(), guarded()).await;
    let mut client = server.client().await;
    let good = sized("5", "\r\nhello");
    let bad = chunked("Content-Length: 5\r\n\r\n0\r\n\r\n");
    client.send(format!("{good}{good}{bad}{SMUGGLED}")).await;
    let mut statuses = Vec::new();
    while let Some(answer) = client.answer().await {
        statuses.push((answer.status, answer.closes()));
    }
    assert_eq!(statuses, [(200, false), (200, false), (400, true)]);
}

#[tokio::test]
async fn nothing_follows_chunks_because_their_end_is_not_checked_twice() {
    let server = AcceptServer::start(patient(), guarded()).await;
    let received = exchange(&server, chunked("\r\n5\r\nhello\r\n0\r\n\r\n") + SMUGGLED).await;
    assert!(
        received.starts_with("HTTP/1.1 200 ") && received.ends_with("served"),
        "{received:?}"
    );
    assert_eq!(received.matches("HTTP/1.1").count(), 1, "{received:?}");
}

#[tokio::test]
async fn a_body_that_looks_like_a_request_is_a_body() {
    let server = AcceptServer::start(patient(), guarded()).await;
    let mut client = server.client().await;
    let body = "GET /smuggled HTTP/1.1\nContent-Length: 1\nTransfer-Encoding: chunked\n\n";
    for _ in 0..2 {
        client
            .send(sized(&body.len().to_string(), &format!("\r\n{body}")))
            .await;
        let answer = client.answer().await.unwrap();
        assert_eq!(
            (answer.status, answer.body.as_str(), answer.closes()),
            (200, "served", false)
        );
    }
}

#[tokio::test]
async fn http2_names_one_host() {
    let server = AcceptServer::start(patient(), guarded()).await;
    // (authority, host, first byte of the response's header block)
    let rows = [
        ("localhost", None, 0x88),
        ("localhost", Some("localhost"), 0x88),
        // 400 has an index in the HPACK static table; 403 is a literal.
        ("localhost", Some("evil.example"), 0x8c),
        ("evil.example", Some("localhost"), 0x8c),
        ("evil.example", None, 0x48),
    ];
    let mut client = server.client().await;
    client.send_preface().await;
    for (stream, (authority, host, expect)) in (1..).step_by(2).zip(rows) {
        client.send(h2::get(stream, "/", authority, host)).await;
        let frame = client.frame_of(h2::HEADERS).await.unwrap();
        assert_eq!(frame.payload[0], expect, "{authority} {host:?}");
    }
}
