//! Reading of request bodies, with limits on size, time, rate and memory.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures::poll;
use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::time::{Instant, sleep};

use crate::answer_error::INVALID_REQUEST;
use crate::byte_budget::{ByteBudget, ByteReservation, ConnectionShare};
use crate::json_response;
use crate::limits::HttpLimits;

/// Why a request body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// More bytes than allowed were announced or sent.
    #[error("the request body is larger than `{max}` bytes")]
    TooLarge {
        /// The size limit in bytes.
        max: usize,
    },
    /// The body arrived below the minimum rate, or was not complete in time.
    #[error("the request body came too slowly")]
    TooSlow,
    /// The body ended early, or its framing was invalid.
    #[error("the request body is broken")]
    Broken,
    /// The memory for incomplete bodies is used up, in total or for this connection.
    #[error("too many request bodies are on their way")]
    Crowded,
}

impl BodyError {
    /// Returns the HTTP status of this error.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
            Self::Crowded => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns a hint for the client.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "send a shorter message",
            Self::TooSlow => "send the whole body at once",
            Self::Broken => "send a body with a correct `Content-Length` or chunked encoding",
            Self::Crowded => "try again in a second",
        }
    }
}

impl IntoResponse for BodyError {
    fn into_response(self) -> Response {
        let message = self.to_string();
        let mut response =
            json_response::answer(self.status(), INVALID_REQUEST, &message, self.hint());
        // The rest of the body may be unread, so the connection cannot be reused. HTTP/2 has no such header, and
        // hyper omits it there.
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if self == Self::Crowded {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// How an incomplete body is charged: the share that it counts against, and the headers that stay in memory beside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyCharge<'a> {
    pub(crate) share: &'a Arc<ConnectionShare>,
    pub(crate) headers: &'a HeaderMap,
}

impl BodyCharge<'_> {
    /// Returns the memory cost of waiting for a body, before any of its bytes.
    pub(crate) fn overhead(&self) -> usize {
        let size = |(name, value): (&HeaderName, &HeaderValue)| {
            FIELD + name.as_str().len().saturating_add(value.len())
        };
        UNFINISHED + self.headers.iter().map(size).sum::<usize>()
    }
}

/// A complete body, charged to the budget as long as this exists.
#[derive(Debug)]
pub(crate) struct ReceivedBody {
    pub(crate) bytes: Bytes,
    pub(crate) counted: Option<ByteReservation>,
}

/// Reads a whole body of at most `max` bytes, within the time limit and above the minimum rate of `limits`.
///
/// A body that is already complete, as small ones are, costs no timer and no copy. A body that is a little too large
/// is read to its end before it is refused: a client that is still sending when the connection closes, such as a
/// proxy, never sees the reason.
///
/// # Errors
///
/// Returns which limit was exceeded; nothing of the body is kept then.
///
/// ```rust
/// use docent_mcp::http::body::{BodyError, read};
/// use docent_mcp::http::limits::HttpLimits;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let limits = HttpLimits::default();
/// let refused = read(axum::body::Body::from("too long"), 4, &limits).await;
/// assert_eq!(refused, Err(BodyError::TooLarge { max: 4 }));
/// # }
/// ```
pub async fn read(body: Body, max: usize, limits: &HttpLimits) -> Result<Bytes, BodyError> {
    let received = receive(body, max, limits, None).await?;
    Ok(received.bytes)
}

/// Reads a body and charges it to the budget of a connection. A small body that is complete at once is free: it is
/// answered or refused before anything else happens.
pub(crate) async fn receive(
    body: Body,
    max: usize,
    limits: &HttpLimits,
    charge: Option<BodyCharge<'_>>,
) -> Result<ReceivedBody, BodyError> {
    // The lower bound is the announced `Content-Length`, so an oversized body is refused before a byte is read.
    if body.size_hint().lower() > drain_limit(max) as u64 {
        return Err(BodyError::TooLarge { max });
    }
    let gathered = GatheredBody {
        free: limits.big_body,
        received: AtomicUsize::new(0),
        queued: AtomicBool::new(false),
        charge,
    };
    let mut gathering = pin!(gathered.gather(body, max));
    if let Poll::Ready(done) = poll!(gathering.as_mut()) {
        return done;
    }

    let start = Instant::now();
    let budget = charge.map(|charge| charge.share.budget());
    let mut end = pin!(sleep(limits.body));
    let mut rate_check = pin!(sleep(limits.body_grace));
    loop {
        tokio::select! {
            biased;
            done = gathering.as_mut() => return done,
            () = end.as_mut() => return Err(BodyError::TooSlow),
            () = rate_check.as_mut() => rate_check.set(sleep(RATE_CHECK_INTERVAL)),
            () = eviction_forwarded(budget) => {
                if start.elapsed() < EVICTION_GRACE || gathered.queued.load(Ordering::Relaxed) {
                    continue;
                }
            }
        }
        let rate = if budget.is_some_and(|budget| budget.is_half_used()) {
            limits.body_rate.saturating_mul(STRAINED_RATE)
        } else {
            limits.body_rate
        };
        let arrived = gathered.received.load(Ordering::Relaxed);
        if is_slow(arrived, start.elapsed(), rate) {
            return Err(BodyError::TooSlow);
        }
    }
}

/// Waits until slow bodies have to be dropped because others wait for their memory.
async fn eviction_forwarded(budget: Option<&Arc<ByteBudget>>) {
    match budget {
        Some(budget) => budget.wait_queue().eviction_forwarded().await,
        None => pending().await,
    }
}

/// Factor on the minimum rate while half of the memory for bodies is in use. At the usual rate a patient attacker could
/// hold memory for minutes with many slow uploads. Honest clients send far faster than even the raised rate.
const STRAINED_RATE: usize = 64;

/// How long a body may arrive before its rate is checked while something waits for its memory.
const EVICTION_GRACE: Duration = Duration::from_millis(250);

/// Charge of an incomplete body in bytes before its content: the waiting task, and the state of an HTTP/2 stream.
/// Measured with 12,800 of them.
const UNFINISHED: usize = 8 * 1024;

/// Overhead of a header field in bytes, beside its name and value. Measured with 95 fields of one byte.
const FIELD: usize = 128;

/// Returns how many bytes are read from the network for a body that may have `max`. A client that is refused in the
/// middle of its upload often sees a broken connection instead of the error, so a body that is a little too large is
/// read to its end; the factor bounds for how long.
fn drain_limit(max: usize) -> usize {
    max.saturating_mul(2)
}

/// Interval of the rate checks of a slow body: the rate is per second.
const RATE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

fn is_slow(arrived: usize, passed: Duration, rate: usize) -> bool {
    let due = passed.as_millis().saturating_mul(rate as u128) / 1000;
    (arrived as u128) < due
}

/// An incomplete body. `free` is how many bytes may arrive at once without a charge. `queued` is set while it waits
/// for memory itself, when being late is not its fault.
struct GatheredBody<'a> {
    free: usize,
    received: AtomicUsize,
    queued: AtomicBool,
    charge: Option<BodyCharge<'a>>,
}

impl GatheredBody<'_> {
    async fn gather(&self, mut body: Body, max: usize) -> Result<ReceivedBody, BodyError> {
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        let mut total = 0usize;
        let mut counted = None;
        loop {
            let mut next = pin!(poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)));
            let next = match poll!(next.as_mut()) {
                Poll::Ready(next) => next,
                Poll::Pending => {
                    // The body is incomplete, so it is charged from now on.
                    if counted.is_none() {
                        counted = self.count(total).await?;
                    }
                    next.await
                }
            };
            let Some(frame) = next else { break };
            // Trailers are ignored.
            let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else {
                continue;
            };
            total = total.saturating_add(data.len());
            if total > drain_limit(max) {
                return Err(BodyError::TooLarge { max });
            }
            self.received.store(total, Ordering::Relaxed);
            if total > max {
                // The body is refused at its end, and nothing of it is kept until then.
                first = Bytes::new();
                rest = BytesMut::new();
                continue;
            }
            if let Some(counted) = &mut counted {
                if !counted.grow_evicting(data.len()).await {
                    return Err(BodyError::Crowded);
                }
            } else if total > self.free {
                counted = self.count(total).await?;
            }
            if first.is_empty() {
                first = data;
            } else {
                // The buffer grows with what has arrived, never with what was announced.
                if rest.is_empty() {
                    rest.extend_from_slice(&first);
                }
                rest.extend_from_slice(&data);
            }
        }
        if total > max {
            return Err(BodyError::TooLarge { max });
        }
        let bytes = if rest.is_empty() {
            first
        } else {
            rest.freeze()
        };
        Ok(ReceivedBody { bytes, counted })
    }

    /// Charges a body that is incomplete or large. Without a connection of our own server nothing is charged.
    async fn count(&self, bytes: usize) -> Result<Option<ByteReservation>, BodyError> {
        let Some(charge) = self.charge else {
            return Ok(None);
        };
        let bytes = charge.overhead().saturating_add(bytes);
        self.queued.store(true, Ordering::Relaxed);
        let counted = charge.share.reserve_evicting(bytes, None).await;
        self.queued.store(false, Ordering::Relaxed);
        counted.map(Some).ok_or(BodyError::Crowded)
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt, TryStreamExt};

    use super::*;
    use crate::byte_budget::ByteBudget;

    #[test]
    fn a_whole_body_needs_no_timer_and_no_copy() {
        // There is no runtime in this test, so arming a timer would panic.
        let bytes = Bytes::from(vec![b'x'; 1000]);
        let read = read(Body::from(bytes.clone()), 1000, &HttpLimits::default()).now_or_never();
        let got = read.unwrap().unwrap();
        assert_eq!(got.as_ptr(), bytes.as_ptr());
    }

    #[test]
    fn one_byte_too_many_is_refused() {
        let read = read(Body::from(vec![b'x'; 1001]), 1000, &HttpLimits::default()).now_or_never();
        assert_eq!(read.unwrap(), Err(BodyError::TooLarge { max: 1000 }));
    }

    /// Twice the limit is read before the body is refused, and no byte more.
    #[test]
    fn a_body_far_over_the_limit_is_rejected_early() {
        for (bytes, expected) in [(2000, 3), (2001, 2)] {
            let pieces = Arc::new(AtomicUsize::new(0));
            let counted = pieces.clone();
            let stream = futures::stream::iter(
                [1000, bytes - 1000, 0]
                    .map(move |size| Ok::<_, std::convert::Infallible>((size, counted.clone()))),
            );
            let stream = stream.map_ok(|(size, counted)| {
                counted.fetch_add(1, Ordering::Relaxed);
                Bytes::from(vec![b'x'; size])
            });
            let read = read(Body::from_stream(stream), 1000, &HttpLimits::default()).now_or_never();
            assert_eq!(read.unwrap(), Err(BodyError::TooLarge { max: 1000 }));
            assert_eq!(pieces.load(Ordering::Relaxed), expected);
        }
        let limits = HttpLimits::default();
        let announced = read(Body::from(vec![b'x'; 2001]), 1000, &limits);
        let refused = announced.now_or_never().unwrap();
        assert_eq!(refused, Err(BodyError::TooLarge { max: 1000 }));
    }

    #[test]
    fn pieces_are_joined_and_counted() {
        for (pieces, expect) in [(10, Ok(1000)), (11, Err(BodyError::TooLarge { max: 1000 }))] {
            let piece = || Ok::<_, std::convert::Infallible>(Bytes::from(vec![b'x'; 100]));
            let stream = futures::stream::iter((0..pieces).map(move |_| piece()));
            let read = read(Body::from_stream(stream), 1000, &HttpLimits::default()).now_or_never();
            assert_eq!(read.unwrap().map(|bytes| bytes.len()), expect);
        }
    }

    #[test]
    fn the_rate_is_an_average() {
        let second = Duration::from_secs(1);
        assert!(!is_slow(2048, 2 * second, 1024));
        assert!(is_slow(2047, 2 * second, 1024));
        assert!(!is_slow(0, 3600 * second, 0));
    }

    /// A connection, and the headers of every request on it.
    struct Sender {
        share: Arc<ConnectionShare>,
        headers: HeaderMap,
    }

    impl Sender {
        fn new(budget: &Arc<ByteBudget>) -> Self {
            Self {
                share: ConnectionShare::new(budget),
                headers: HeaderMap::new(),
            }
        }

        fn charge(&self) -> Option<BodyCharge<'_>> {
            Some(BodyCharge {
                share: &self.share,
                headers: &self.headers,
            })
        }
    }

    fn sender(total: usize) -> Sender {
        Sender::new(&ByteBudget::new(total))
    }

    /// A body that never ends.
    fn unfinished(sizes: Vec<usize>) -> Body {
        let piece = |size| Ok::<_, std::convert::Infallible>(Bytes::from(vec![b'x'; size]));
        let came = futures::stream::iter(sizes.into_iter().map(piece));
        Body::from_stream(came.chain(futures::stream::pending()))
    }

    #[tokio::test]
    async fn unfinished_bodies_are_counted_against_the_budget() {
        let limits = HttpLimits::default();
        let most = 100_000;
        for (size, expected) in [(90_000, None), (90_001, Some(Err(BodyError::Crowded)))] {
            let sender = sender(UNFINISHED + 90_000 + 10_000);
            let other = ConnectionShare::new(sender.share.budget());
            let _held = other.reserve(10_000, None).unwrap();
            let body = unfinished(vec![1_000, size - 1_000]);
            let mut reading = Box::pin(receive(body, most, &limits, sender.charge()));
            let polled = reading.as_mut().now_or_never();
            assert_eq!(
                polled.map(|read| read.map(|body| body.bytes.len())),
                expected
            );
            drop(reading);
            assert_eq!(sender.share.held(), 0, "{size}");
        }
    }

    /// One byte of a compressed HTTP/2 head can decode to a whole field.
    #[tokio::test]
    async fn the_head_counts_while_the_body_is_still_coming() {
        let limits = HttpLimits::default();
        let mut sender = sender(64 << 20);
        for number in 0..100 {
            let value = HeaderValue::from_static("12345");
            sender.headers.append("a", value.clone());
            let name: HeaderName = format!("x-{number:03}").parse().unwrap();
            sender.headers.append(name, value);
        }
        let body = unfinished(vec![1]);
        let mut reading = Box::pin(receive(body, 1_000, &limits, sender.charge()));
        assert!(reading.as_mut().now_or_never().is_none());
        let names = 100 * "a".len() + 100 * "x-000".len();
        let fields = 200 * (FIELD + "12345".len());
        assert_eq!(sender.share.held(), UNFINISHED + 1 + names + fields);
        drop(reading);
        assert_eq!(sender.share.held(), 0);
    }

    #[tokio::test]
    async fn bodies_of_one_connection_share_what_it_may_hold() {
        let limits = HttpLimits::default();
        // A 17th of the budget is exactly four incomplete bodies.
        let sender = sender(17 * 4 * UNFINISHED);
        let start = || {
            let body = unfinished(vec![]);
            Box::pin(receive(body, 1_000, &limits, sender.charge()))
        };
        let mut waiting: Vec<_> = (0..4).map(|_| start()).collect();
        for reading in &mut waiting {
            assert!(reading.as_mut().now_or_never().is_none());
        }
        let one_more = start().now_or_never().unwrap();
        assert_eq!(one_more.map(|body| body.bytes), Err(BodyError::Crowded));
        drop(waiting);
        assert_eq!(sender.share.held(), 0);
        assert!(start().now_or_never().is_none());
    }

    #[test]
    fn complete_bodies_are_counted_only_if_they_are_large() {
        let limits = HttpLimits::default();
        for (size, counted) in [(limits.big_body, false), (limits.big_body + 1, true)] {
            let sender = sender(1 << 20);
            let body = Body::from(vec![b'x'; size]);
            let read = receive(body, 1 << 20, &limits, sender.charge()).now_or_never();
            let body = read.unwrap().unwrap();
            assert_eq!(
                (body.counted.is_some(), sender.share.held() > size),
                (counted, counted)
            );
            drop(body);
            assert_eq!(sender.share.held(), 0);
        }
    }

    /// Stalled bodies fill the budget, each on a connection of its own.
    #[tokio::test(start_paused = true)]
    async fn when_room_runs_out_bodies_that_do_not_go_on_make_place_for_the_next() {
        let limits = HttpLimits::default();
        let budget = ByteBudget::evicting(16 * UNFINISHED, Duration::from_secs(3600));
        let senders: Vec<_> = (0..17).map(|_| Sender::new(&budget)).collect();
        let start = |sender: &'_ Sender| {
            let limits = limits.clone();
            let (share, headers) = (Arc::clone(&sender.share), sender.headers.clone());
            tokio::spawn(async move {
                let charge = BodyCharge {
                    share: &share,
                    headers: &headers,
                };
                let body = unfinished(vec![]);
                receive(body, 1_000, &limits, Some(charge)).await
            })
        };
        let stuck: Vec<_> = senders[..16].iter().map(start).collect();
        tokio::task::yield_now().await;
        assert_eq!(budget.used(), 16 * UNFINISHED);
        let began = Instant::now();
        let next = start(&senders[16]);
        tokio::task::yield_now().await;
        assert!(budget.wait_queue().has_waiters());
        // The accept loop does this when the budget requests eviction.
        budget.wait_queue().forward_eviction();
        tokio::task::yield_now().await;
        assert!(budget.wait_queue().has_waiters(), "they are too young");
        sleep(EVICTION_GRACE).await;
        budget.wait_queue().forward_eviction();
        for reading in stuck {
            let read = reading.await.unwrap();
            assert_eq!(read.map(|body| body.bytes), Err(BodyError::TooSlow));
        }
        assert!(began.elapsed() < limits.body_grace, "not by the clock");
        assert!(!budget.wait_queue().has_waiters() && !next.is_finished());
        assert!(senders[16].share.held() > 0);
        next.abort();
    }
}
