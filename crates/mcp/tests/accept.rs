//! The connection layer against real sockets: every deadline and bound, from both sides.
//!
//! Limits are set so that one of them can be reached and all others cannot. What is asserted is
//! that something happens, never when.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

#[path = "accept/client.rs"]
mod client;
#[path = "accept/framing.rs"]
mod framing;
#[path = "accept/shutdown.rs"]
mod shutdown;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use docent_mcp::http::accept::Peer;
use docent_mcp::http::body;
use docent_mcp::http::limits::Limits;
use http::StatusCode;
use tokio::sync::Notify;
use tokio::sync::mpsc;

use client::{Client, SHORT, Server, h2, patient, soon};

/// A router that reads bodies as ours do.
fn reading(limits: Limits) -> Router {
    let limits = Arc::new(limits);
    let read = move |request: Request| async move {
        match body::read(request.into_body(), 1000, &limits).await {
            Ok(bytes) => bytes.len().to_string().into_response(),
            Err(error) => error.into_response(),
        }
    };
    Router::new()
        .route("/read", post(read))
        .route("/", get(|| async { "hello" }))
}

async fn serving(limits: Limits) -> Server {
    Server::start(limits.clone(), reading(limits)).await
}

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
    let say = |Extension(Peer(peer)): Extension<Peer>| async move { peer.to_string() };
    let server = Server::start(patient(), Router::new().route("/", get(say))).await;
    let mut client = server.client().await;
    let mine = client.stream.local_addr().unwrap().to_string();
    assert_eq!(client.get("/").await.body, mine);
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let server = serving(Limits {
        first_byte: SHORT,
        ..patient()
    })
    .await;
    server.client().await.closed_silently().await;
}

#[tokio::test]
async fn half_a_head_is_closed() {
    let server = serving(Limits {
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
    let server = serving(Limits {
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
    let server = serving(Limits {
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
    let server = serving(Limits {
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
    // The whole body may take an hour, but not at this rate.
    let server = serving(Limits {
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
    let limits = Limits {
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
async fn bodies_are_bounded_however_they_come() {
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
    let (tell, mut told) = mpsc::unbounded_channel();
    let read = move |request: Request| async move {
        let result = body::read(request.into_body(), 1000, &Limits::default()).await;
        tell.send(result.map(|bytes| bytes.len())).unwrap();
    };
    let server = Server::start(patient(), Router::new().route("/", post(read))).await;
    let mut client = server.client().await;
    client
        .send(&client::post("/", &"x".repeat(900))[..200])
        .await;
    drop(client);
    // hyper drops the handler when it notices first, or hands it a broken body.
    let end = soon("the end of the body", told.recv()).await;
    assert!(
        matches!(end, None | Some(Err(body::BodyError::Broken))),
        "{end:?}"
    );
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let server = serving(Limits {
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
    let server = serving(Limits {
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
    let server = serving(Limits {
        age: SHORT,
        ..patient()
    })
    .await;
    let mut client = server.client().await;
    let ageing = async {
        loop {
            client.send(client::get("/")).await;
            // A busy client gets every answer, and learns from one that it is the last.
            let answer = client.answer().await.expect("an answer");
            assert_eq!(answer.status, 200);
            if answer.closes() {
                return;
            }
        }
    };
    soon("the last answer", ageing).await;
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
    let limits = Limits {
        age: SHORT,
        ..patient()
    };
    let server = Server::start(limits, Router::new().route("/", get(wait))).await;
    let mut client = server.client().await;
    client.send(client::get("/")).await;
    tokio::time::sleep(SHORT * 3).await;
    gate.notify_one();
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.body.as_str(), answer.closes()), ("done", true));
    client.closed_silently().await;
}

/// Limits under which a request that moves nothing ends soon.
fn stalling(stall: Duration) -> Limits {
    let none = Duration::ZERO;
    Limits {
        stall,
        body: none,
        handler: none,
        sse_keep_alive: none,
        ..patient()
    }
}

/// Says so when it is dropped.
struct Bell(mpsc::UnboundedSender<()>);

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn a_stuck_handler_loses_its_connection() {
    let (ring, mut rung) = mpsc::unbounded_channel();
    let stuck = move || async move {
        let _bell = Bell(ring);
        std::future::pending::<()>().await;
    };
    let limits = stalling(SHORT);
    let server = Server::start(limits, Router::new().route("/", get(stuck))).await;
    let mut client = server.client().await;
    client.send(client::get("/")).await;
    client.closed_silently().await;
    soon("the end of the handler", rung.recv()).await.unwrap();
}

fn endless(bell: Bell) -> Response {
    let chunk = Bytes::from(vec![b'x'; 64 * 1024]);
    let stream = futures::stream::unfold(bell, move |bell| {
        let chunk = chunk.clone();
        async move { Some((Ok::<_, Infallible>(chunk), bell)) }
    });
    Response::new(Body::from_stream(stream))
}

#[tokio::test]
async fn a_reader_that_stops_reading_loses_its_connection() {
    let (ring, mut rung) = mpsc::unbounded_channel();
    let limits = stalling(SHORT);
    let answer = move || async move { endless(Bell(ring)) };
    let server = Server::start(limits, Router::new().route("/", get(answer))).await;
    let mut client = server.client().await;
    client.send(client::get("/")).await;
    soon("the end of the answer", rung.recv()).await.unwrap();
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
    // The stream lasts longer than these, but its parts come sooner.
    let limits = Limits {
        idle: SHORT,
        headers: SHORT,
        ..stalling(SHORT * 3)
    };
    let server = Server::start(limits, Router::new().route("/", get(comments))).await;
    let mut client = server.client().await;
    client.send(client::get("/")).await;
    assert_eq!(client.rest().await.matches(": x").count(), 40);
}

/// Waits for a slot, which is free as soon as the server has noticed.
async fn admitted(server: &Server) {
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
    soon("a free slot", trying).await;
}

#[tokio::test]
async fn one_connection_too_many_is_turned_away() {
    let server = serving(Limits {
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
    let server = serving(Limits {
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
async fn stuck_connections_of_every_kind_do_not_hold_up_good_ones() {
    let limits = Limits {
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
        let said = client.rest().await;
        assert!(!said.contains(" 200 "), "{said}");
    }
}

#[tokio::test]
async fn a_panic_is_a_500_and_nothing_else() {
    async fn fall() -> Json<()> {
        panic!("on purpose")
    }
    let router = Router::new()
        .route("/fall", get(fall))
        .route("/", get(|| async { "hello" }));
    let server = Server::start(patient(), router).await;
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
    let fall = || async {
        let stream =
            futures::stream::poll_fn(|_| -> std::task::Poll<Option<Result<Bytes, Infallible>>> {
                panic!("on purpose")
            });
        Response::new(Body::from_stream(stream))
    };
    let router = Router::new()
        .route("/fall", get(fall))
        .route("/", get(|| async { "hello" }));
    let server = Server::start(patient(), router).await;
    let (mut client, mut other) = (server.client().await, server.client().await);
    assert_eq!(other.get("/").await.status, 200);
    client.send(client::get("/fall")).await;
    client.rest().await;
    assert_eq!(other.get("/").await.status, 200);
    assert_eq!(server.client().await.get("/").await.status, 200);
}

async fn h2_client(server: &Server) -> Client {
    let mut client = server.client().await;
    client.greet().await;
    client
}

async fn h2_get(client: &mut Client, stream: u32) {
    client.send(h2::get(stream, "/", "localhost", None)).await;
    let frame = client.frame_of(h2::HEADERS).await.unwrap();
    // 0x88 is status 200 in the static table.
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
    let server = serving(Limits {
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
    let server = serving(Limits {
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
    let (ring, mut rung) = mpsc::unbounded_channel();
    let stuck = move || async move {
        let _bell = Bell(ring);
        std::future::pending::<()>().await;
    };
    let limits = Limits {
        h2_ping_every: SHORT,
        h2_ping_timeout: SHORT,
        ..patient()
    };
    let server = Server::start(limits, Router::new().route("/", get(stuck))).await;
    let mut client = h2_client(&server).await;
    client.send(h2::get(1, "/", "localhost", None)).await;
    soon("the end of the handler", rung.recv()).await.unwrap();
}

#[tokio::test]
async fn one_http2_stream_too_many_is_refused() {
    let gate = Arc::new(Notify::new());
    let wait = {
        let gate = gate.clone();
        move || async move { gate.notified().await }
    };
    let limits = Limits {
        h2_streams: 3,
        ..patient()
    };
    let server = Server::start(limits, Router::new().route("/", get(wait))).await;
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
    let limits = Limits {
        h2_header_list: 200,
        ..patient()
    };
    let server = serving(limits).await;
    let mut client = h2_client(&server).await;
    h2_get(&mut client, 1).await;
    // h2 counts the size of the names and values plus 32 for each.
    client
        .send(h2::get(3, "/", "localhost", Some(&"a".repeat(100))))
        .await;
    let frame = client.frame_of(h2::HEADERS).await.unwrap();
    assert_ne!(frame.payload.first(), Some(&0x88));
}

#[tokio::test]
async fn the_size_of_a_head_is_bounded() {
    let server = serving(Limits {
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

/// Run by [`running_out_of_files_is_survived`] in a process of its own with few files.
#[tokio::test]
#[ignore = "needs a limit on open files"]
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
    // Now the server cannot accept either, but it goes on serving.
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

#[test]
fn running_out_of_files_is_survived() {
    let this = std::env::current_exe().unwrap();
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 60 && exec \"$0\" \"$@\""])
        .arg(this)
        .args(["--exact", "with_few_files", "--ignored"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}
