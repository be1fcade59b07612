//! Backpressure for responses that clients do not read: one memory budget for all connections, a share for each, and
//! eviction when the budget is spent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use docent_mcp::http::limits::HttpLimits;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::client::{AcceptServer, DropSignal, RawClient, SHORT, h2, patient, soon};

const KIB: usize = 1024;
/// Response larger than the kernel's socket buffers on both ends, so that it cannot be written without a reader.
const HUGE: usize = 32 * KIB * KIB;

/// Response body that sends a message when its memory is released.
struct SignallingBytes(
    Vec<u8>,
    #[allow(dead_code, reason = "sends when dropped")] DropSignal,
);

impl AsRef<[u8]> for SignallingBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Router with responses of `size` bytes at `/` and small ones at `/small`.
fn answering(size: usize, signal: UnboundedSender<()>) -> Router {
    let answer = move || async move {
        let bytes = Bytes::from_owner(SignallingBytes(vec![b'x'; size], DropSignal(signal)));
        Response::new(Body::from(bytes))
    };
    Router::new()
        .route("/", get(answer))
        .route("/small", get(|| async { "hello" }))
}

async fn serving(limits: HttpLimits, size: usize) -> (AcceptServer, UnboundedReceiver<()>) {
    let (signal, dropped) = mpsc::unbounded_channel();
    (
        AcceptServer::start(limits, answering(size, signal)).await,
        dropped,
    )
}

/// Limits under which no unread response is dropped.
fn lenient() -> HttpLimits {
    HttpLimits {
        unread: crate::client::NEVER,
        unread_strained: crate::client::NEVER,
        unread_full: crate::client::NEVER,
        room_wait: Duration::ZERO,
        ..patient()
    }
}

/// HTTP/2 client with a flow-control window of zero, so that it accepts no byte of any response body.
async fn mute(server: &AcceptServer) -> RawClient {
    let mut client = server.client().await;
    client.send(h2::PREFACE).await;
    // Setting 4 is SETTINGS_INITIAL_WINDOW_SIZE; its value is zero.
    let window = [0, 4, 0, 0, 0, 0];
    client.send(h2::frame(h2::SETTINGS, 0, 0, &window)).await;
    client
}

/// Sends a request on this stream and returns whether its response is a 200.
async fn is_answered(client: &mut RawClient, stream: u32) -> bool {
    client.send(h2::get(stream, "/", "localhost", None)).await;
    let frame = client.frame_of(h2::HEADERS).await.unwrap();
    assert_eq!(frame.stream, stream);
    frame.payload.first() == Some(&0x88)
}

/// Fills a connection with unread responses, and returns how many it may hold before the next is refused.
async fn room(server: &AcceptServer) -> (RawClient, usize) {
    let mut client = mute(server).await;
    for count in 0..32 {
        let stream = u32::try_from(count).unwrap() * 2 + 1;
        if !is_answered(&mut client, stream).await {
            return (client, count);
        }
    }
    panic!("no response was refused")
}

#[tokio::test]
async fn a_connection_has_its_share_of_unread_answers_and_gives_it_back() {
    let limits = HttpLimits {
        unread_bytes: 17 * KIB * KIB,
        ..lenient()
    };
    let (server, mut dropped) = serving(limits, 255 * KIB).await;
    // A connection may hold a 17th of the budget, which is four responses of 256 KiB with their overhead.
    let (one, count) = room(&server).await;
    assert_eq!(count, 4);
    // The second connection may hold a sixteenth of what is left.
    let (two, fewer) = room(&server).await;
    assert_eq!(fewer, 3);
    // A client that reads its responses is not affected.
    assert_eq!(server.client().await.get("/").await.status, 200);
    drop((one, two));
    // The seven unread responses, the one that was read, and one that was built before it was refused.
    for _ in 0..9 {
        soon("the release of a response", dropped.recv())
            .await
            .unwrap();
    }
    let (_again, count) = room(&server).await;
    assert_eq!(count, 4);
}

#[tokio::test]
async fn when_the_budget_is_spent_large_answers_come_later_and_small_ones_now() {
    let limits = HttpLimits {
        unread_bytes: 512 * KIB,
        ..lenient()
    };
    let (server, mut dropped) = serving(limits, 400 * KIB).await;
    let mut client = mute(&server).await;
    assert!(is_answered(&mut client, 1).await);
    let mut other = server.client().await;
    let refused = other.get("/").await;
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    assert_eq!(other.get("/small").await.status, 200);
    soon("the release of the refused response", dropped.recv())
        .await
        .unwrap();
    drop(client);
    soon("the release of the unread response", dropped.recv())
        .await
        .unwrap();
    assert_eq!(other.get("/").await.status, 200);
}

/// Number of response bodies in memory, now and at the peak.
#[derive(Debug, Default)]
struct BodyCounter {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct CountedBody(Vec<u8>, Arc<BodyCounter>);

impl CountedBody {
    fn new(size: usize, alive: Arc<BodyCounter>) -> Self {
        let now = alive.now.fetch_add(1, Ordering::SeqCst) + 1;
        alive.most.fetch_max(now, Ordering::SeqCst);
        Self(vec![b'x'; size], alive)
    }
}

impl AsRef<[u8]> for CountedBody {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for CountedBody {
    fn drop(&mut self) {
        self.1.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Shares do not bound connections that hold one response each, so a connection that does not read is evicted for one
/// that does.
#[tokio::test]
async fn four_hundred_connections_with_one_unread_answer_each_starve_nobody() {
    const SIZE: usize = 63 * KIB;
    const BODIES: usize = 40;
    let limits = HttpLimits {
        unread_bytes: BODIES * 64 * KIB,
        // Every connection is old enough for eviction and every waiter gets room, so that no timing decides the result.
        unread_full: Duration::ZERO,
        room_wait: crate::client::NEVER,
        ..lenient()
    };
    let alive = Arc::new(BodyCounter::default());
    let answer = {
        let alive = Arc::clone(&alive);
        move || async move {
            let bytes = Bytes::from_owner(CountedBody::new(SIZE, Arc::clone(&alive)));
            Response::new(Body::from(bytes))
        }
    };
    let server = AcceptServer::start(limits, Router::new().route("/", get(answer))).await;
    let mut hoard = Vec::new();
    for count in 0..400 {
        let mut client = mute(&server).await;
        assert!(is_answered(&mut client, 1).await, "{count}");
        hoard.push(client);
        if count % 10 == 0 {
            let answer = server.client().await.get("/").await;
            assert_eq!((answer.status, answer.body.len()), (200, SIZE), "{count}");
        }
    }
    // The budget itself, an eighth of it that waits for room, and one response that is being built.
    let most = alive.most.load(Ordering::SeqCst);
    assert!(
        (BODIES / 2..=BODIES + BODIES / 8 + 1).contains(&most),
        "{most}"
    );
}

#[tokio::test]
async fn an_answer_larger_than_the_budget_is_still_given() {
    let limits = HttpLimits {
        unread_bytes: 64 * KIB,
        ..lenient()
    };
    let (server, _rung) = serving(limits, 400 * KIB).await;
    let mut client = server.client().await;
    assert_eq!(client.get("/").await.body.len(), 400 * KIB);
    assert_eq!(client.get("/").await.body.len(), 400 * KIB);
}

#[tokio::test]
async fn an_answer_of_which_nothing_is_taken_ends_its_connection() {
    let limits = HttpLimits {
        unread: SHORT,
        ..patient()
    };
    let (server, mut dropped) = serving(limits.clone(), HUGE).await;
    let mut client = server.client().await;
    client.send(crate::client::get("/")).await;
    soon("the drop of a response", dropped.recv())
        .await
        .unwrap();

    let (server, mut dropped) = serving(limits, KIB).await;
    let mut client = mute(&server).await;
    assert!(is_answered(&mut client, 1).await);
    soon("the drop of an HTTP/2 response", dropped.recv())
        .await
        .unwrap();
    client.closed().await;
}

#[tokio::test]
async fn a_strained_budget_ends_unread_answers_sooner() {
    let limits = HttpLimits {
        unread_bytes: 512 * KIB,
        unread_strained: SHORT,
        ..lenient()
    };
    let (server, mut dropped) = serving(limits, 300 * KIB).await;
    let mut client = mute(&server).await;
    assert!(is_answered(&mut client, 1).await);
    soon("the drop of a response", dropped.recv())
        .await
        .unwrap();
    client.closed().await;
    assert_eq!(server.client().await.get("/").await.status, 200);
}

#[tokio::test]
async fn a_poor_line_gets_its_answer() {
    let limits = HttpLimits {
        unread: SHORT * 10,
        idle: SHORT * 2,
        ..patient()
    };
    let (server, _rung) = serving(limits, 20).await;
    let mut client = mute(&server).await;
    assert!(is_answered(&mut client, 1).await);
    // One byte at a time, for longer than the deadline of an unread response: progress resets it.
    for _ in 0..20 {
        tokio::time::sleep(SHORT).await;
        // Frame type 8 is WINDOW_UPDATE, type 0 is DATA.
        client.send(h2::frame(8, 0, 1, &[0, 0, 0, 1])).await;
        let part = client.frame_of(0).await.expect("a DATA frame");
        assert_eq!(part.payload, b"x");
    }
}

#[tokio::test]
async fn an_event_stream_that_nobody_reads_ends() {
    let (signal, mut dropped) = mpsc::unbounded_channel();
    let stream = move || async move {
        let quiet = futures::stream::unfold(DropSignal(signal), |signal| async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Some((
                Ok::<_, std::convert::Infallible>(Bytes::from_static(b":\n\n")),
                signal,
            ))
        });
        Response::new(Body::from_stream(quiet))
    };
    let limits = HttpLimits {
        unread: SHORT,
        ..patient()
    };
    let server = AcceptServer::start(limits, Router::new().route("/", get(stream))).await;
    let mut client = mute(&server).await;
    assert!(is_answered(&mut client, 1).await);
    soon("the drop of the stream", dropped.recv())
        .await
        .unwrap();
}
