//! Answers that nobody reads: counted for all connections together, and let go of in time.

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
/// More than the kernel keeps for two sockets.
const HUGE: usize = 32 * KIB * KIB;

/// Bytes of an answer that say when they are let go of.
struct SignallingBytes(
    Vec<u8>,
    #[allow(dead_code, reason = "rings when dropped")] DropSignal,
);

impl AsRef<[u8]> for SignallingBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Answers of `size` bytes at `/`, small ones at `/small`.
fn answering(size: usize, ring: UnboundedSender<()>) -> Router {
    let answer = move || async move {
        let bytes = Bytes::from_owner(SignallingBytes(vec![b'x'; size], DropSignal(ring)));
        Response::new(Body::from(bytes))
    };
    Router::new()
        .route("/", get(answer))
        .route("/small", get(|| async { "hello" }))
}

async fn serving(limits: HttpLimits, size: usize) -> (AcceptServer, UnboundedReceiver<()>) {
    let (ring, rung) = mpsc::unbounded_channel();
    (
        AcceptServer::start(limits, answering(size, ring)).await,
        rung,
    )
}

/// Limits under which nothing unread is cut.
fn lenient() -> HttpLimits {
    HttpLimits {
        unread: crate::client::NEVER,
        unread_strained: crate::client::NEVER,
        unread_full: crate::client::NEVER,
        room_wait: Duration::ZERO,
        ..patient()
    }
}

/// An HTTP/2 client that takes nothing of any answer.
async fn mute(server: &AcceptServer) -> RawClient {
    let mut client = server.client().await;
    client.send(h2::PREFACE).await;
    // SETTINGS_INITIAL_WINDOW_SIZE is 4.
    let window = [0, 4, 0, 0, 0, 0];
    client.send(h2::frame(h2::SETTINGS, 0, 0, &window)).await;
    client
}

/// Whether the answer on this stream is a 200.
async fn is_answered(client: &mut RawClient, stream: u32) -> bool {
    client.send(h2::get(stream, "/", "localhost", None)).await;
    let frame = client.frame_of(h2::HEADERS).await.unwrap();
    assert_eq!(frame.stream, stream);
    frame.payload.first() == Some(&0x88)
}

/// How many answers may wait on a connection before the next is refused.
async fn room(server: &AcceptServer) -> (RawClient, usize) {
    let mut client = mute(server).await;
    for count in 0..32 {
        let stream = u32::try_from(count).unwrap() * 2 + 1;
        if !is_answered(&mut client, stream).await {
            return (client, count);
        }
    }
    panic!("nothing was refused")
}

#[tokio::test]
async fn a_connection_has_its_share_of_unread_answers_and_gives_it_back() {
    let limits = HttpLimits {
        unread_bytes: 17 * KIB * KIB,
        ..lenient()
    };
    let (server, mut rung) = serving(limits, 255 * KIB).await;
    // A 17th of the budget, in answers of 256 KiB with what they take beside their bodies.
    let (one, count) = room(&server).await;
    assert_eq!(count, 4);
    // The next has a sixteenth of what is left.
    let (two, fewer) = room(&server).await;
    assert_eq!(fewer, 3);
    // Whoever reads is not affected.
    assert_eq!(server.client().await.get("/").await.status, 200);
    drop((one, two));
    // Seven that waited, the one that was read, and one that was made before it was refused.
    for _ in 0..9 {
        soon("an answer that is let go of", rung.recv())
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
    let (server, mut rung) = serving(limits, 400 * KIB).await;
    let mut client = mute(&server).await;
    assert!(is_answered(&mut client, 1).await);
    let mut other = server.client().await;
    let refused = other.get("/").await;
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    assert_eq!(other.get("/small").await.status, 200);
    soon("the refused answer", rung.recv()).await.unwrap();
    drop(client);
    soon("the unread answer", rung.recv()).await.unwrap();
    assert_eq!(other.get("/").await.status, 200);
}

/// Answers of a size that are in memory, and the most there ever were.
#[derive(Debug, Default)]
struct Alive {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct Living(Vec<u8>, Arc<Alive>);

impl Living {
    fn new(size: usize, alive: Arc<Alive>) -> Self {
        let now = alive.now.fetch_add(1, Ordering::SeqCst) + 1;
        alive.most.fetch_max(now, Ordering::SeqCst);
        Self(vec![b'x'; size], alive)
    }
}

impl AsRef<[u8]> for Living {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.1.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Shares do not stop connections that hold one answer each, so whoever does not read is evicted for whoever does.
#[tokio::test]
async fn four_hundred_connections_with_one_unread_answer_each_starve_nobody() {
    const SIZE: usize = 63 * KIB;
    const ROOM: usize = 40;
    let limits = HttpLimits {
        unread_bytes: ROOM * 64 * KIB,
        // Nobody is too young, and whoever waits gets room in the end: no time decides anything here.
        unread_full: Duration::ZERO,
        room_wait: crate::client::NEVER,
        ..lenient()
    };
    let alive = Arc::new(Alive::default());
    let answer = {
        let alive = Arc::clone(&alive);
        move || async move {
            let bytes = Bytes::from_owner(Living::new(SIZE, Arc::clone(&alive)));
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
    // What the budget holds, an eighth of it that waits for room, and one that is being made.
    let most = alive.most.load(Ordering::SeqCst);
    assert!((ROOM / 2..=ROOM + ROOM / 8 + 1).contains(&most), "{most}");
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
    let (server, mut rung) = serving(limits.clone(), HUGE).await;
    let mut client = server.client().await;
    client.send(crate::client::get("/")).await;
    soon("the end of an answer", rung.recv()).await.unwrap();

    let (server, mut rung) = serving(limits, KIB).await;
    let mut client = mute(&server).await;
    assert!(is_answered(&mut client, 1).await);
    soon("the end of an HTTP/2 answer", rung.recv())
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
    let (server, mut rung) = serving(limits, 300 * KIB).await;
    let mut client = mute(&server).await;
    assert!(is_answered(&mut client, 1).await);
    soon("the end of an answer", rung.recv()).await.unwrap();
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
    // A byte at a time, for longer than an answer may wait altogether.
    for _ in 0..20 {
        tokio::time::sleep(SHORT).await;
        // WINDOW_UPDATE is 8, DATA is 0.
        client.send(h2::frame(8, 0, 1, &[0, 0, 0, 1])).await;
        let part = client.frame_of(0).await.expect("a part of the answer");
        assert_eq!(part.payload, b"x");
    }
}

#[tokio::test]
async fn an_event_stream_that_nobody_reads_ends() {
    let (ring, mut rung) = mpsc::unbounded_channel();
    let stream = move || async move {
        let quiet = futures::stream::unfold(DropSignal(ring), |bell| async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Some((
                Ok::<_, std::convert::Infallible>(Bytes::from_static(b":\n\n")),
                bell,
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
    soon("the end of the stream", rung.recv()).await.unwrap();
}
