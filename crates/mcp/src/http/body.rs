//! Turns a request body into bytes, or into the reason why not: too large, too slow, broken.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures::poll;
use http::header::CONNECTION;
use http::{HeaderValue, StatusCode};
use tokio::time::{Instant, sleep};

use super::limits::Limits;
use super::refusal::{self, INVALID_REQUEST};

/// Why a request body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// More bytes than allowed were announced or sent.
    #[error("the request body is larger than `{max}` bytes")]
    TooLarge {
        /// The limit that was passed.
        max: usize,
    },
    /// The body came below the least rate or was not complete in time.
    #[error("the request body came too slowly")]
    TooSlow,
    /// The body ended early or was not framed as HTTP demands.
    #[error("the request body is broken")]
    Broken,
}

impl BodyError {
    /// The HTTP status that tells the sender what happened.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }

    /// What the sender can do about it.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "send a shorter message",
            Self::TooSlow => "send the whole body at once",
            Self::Broken => "send a body with a correct `Content-Length` or chunked encoding",
        }
    }
}

impl IntoResponse for BodyError {
    fn into_response(self) -> Response {
        let message = self.to_string();
        let mut response = refusal::answer(self.status(), INVALID_REQUEST, &message, self.hint());
        // The rest of the body may not have been read, so the connection cannot be used again. HTTP/2
        // knows no such header, and hyper leaves it out there.
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// Reads a whole body of at most `max` bytes within the time and above the rate of `limits`.
///
/// A body that is complete already, as small ones are, costs no timer and no copy. One that is a
/// little too large is heard out before it is refused: who is still sending when the connection
/// ends, such as a proxy, never sees the reason.
///
/// # Errors
///
/// Says which bound was passed; nothing of the body is kept then.
pub async fn read(body: Body, max: usize, limits: &Limits) -> Result<Bytes, BodyError> {
    // The lower bound is the announced `Content-Length`, so this refuses before reading a byte.
    if body.size_hint().lower() > heard_out(max) as u64 {
        return Err(BodyError::TooLarge { max });
    }
    let received = AtomicUsize::new(0);
    let mut gathering = pin!(gather(body, max, &received));
    if let Poll::Ready(done) = poll!(gathering.as_mut()) {
        return done;
    }

    let start = Instant::now();
    let mut end = pin!(sleep(limits.body));
    let mut look = pin!(sleep(limits.body_grace));
    loop {
        tokio::select! {
            biased;
            done = gathering.as_mut() => return done,
            () = end.as_mut() => return Err(BodyError::TooSlow),
            () = look.as_mut() => {}
        }
        if is_slow(
            received.load(Ordering::Relaxed),
            start.elapsed(),
            limits.body_rate,
        ) {
            return Err(BodyError::TooSlow);
        }
        look.set(sleep(LOOK_EVERY));
    }
}

/// How many bytes are taken off the network for a body that may have `max`.
fn heard_out(max: usize) -> usize {
    max.saturating_mul(2)
}

/// How often the rate of a slow body is judged; once a second is what a rate per second means.
const LOOK_EVERY: Duration = Duration::from_secs(1);

fn is_slow(arrived: usize, passed: Duration, rate: usize) -> bool {
    let due = passed.as_millis().saturating_mul(rate as u128) / 1000;
    (arrived as u128) < due
}

async fn gather(mut body: Body, max: usize, received: &AtomicUsize) -> Result<Bytes, BodyError> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut total = 0usize;
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        // Trailers carry nothing that we use.
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else {
            continue;
        };
        total = total.saturating_add(data.len());
        if total > heard_out(max) {
            return Err(BodyError::TooLarge { max });
        }
        received.store(total, Ordering::Relaxed);
        if total > max {
            // It is refused at its end, and nothing of it is kept until then.
            first = Bytes::new();
            rest = BytesMut::new();
        } else if first.is_empty() {
            first = data;
        } else {
            // The buffer grows with what arrived, never with what was announced.
            if rest.is_empty() {
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&data);
        }
    }
    if total > max {
        return Err(BodyError::TooLarge { max });
    }
    Ok(if rest.is_empty() {
        first
    } else {
        rest.freeze()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::{FutureExt, TryStreamExt};

    use super::*;

    #[test]
    fn a_whole_body_needs_no_timer_and_no_copy() {
        // There is no runtime here, so arming a timer would panic.
        let bytes = Bytes::from(vec![b'x'; 1000]);
        let read = read(Body::from(bytes.clone()), 1000, &Limits::default()).now_or_never();
        let got = read.unwrap().unwrap();
        assert_eq!(got.as_ptr(), bytes.as_ptr());
    }

    #[test]
    fn one_byte_too_many_is_refused() {
        let read = read(Body::from(vec![b'x'; 1001]), 1000, &Limits::default()).now_or_never();
        assert_eq!(read.unwrap(), Err(BodyError::TooLarge { max: 1000 }));
    }

    /// Twice as much as allowed is heard out, and no byte more.
    #[test]
    fn what_is_far_too_large_is_refused_before_its_end() {
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
            let read = read(Body::from_stream(stream), 1000, &Limits::default()).now_or_never();
            assert_eq!(read.unwrap(), Err(BodyError::TooLarge { max: 1000 }));
            assert_eq!(pieces.load(Ordering::Relaxed), expected);
        }
        let limits = Limits::default();
        let announced = read(Body::from(vec![b'x'; 2001]), 1000, &limits);
        let refused = announced.now_or_never().unwrap();
        assert_eq!(refused, Err(BodyError::TooLarge { max: 1000 }));
    }

    #[test]
    fn pieces_are_joined_and_counted() {
        for (pieces, expect) in [(10, Ok(1000)), (11, Err(BodyError::TooLarge { max: 1000 }))] {
            let piece = || Ok::<_, std::convert::Infallible>(Bytes::from(vec![b'x'; 100]));
            let stream = futures::stream::iter((0..pieces).map(move |_| piece()));
            let read = read(Body::from_stream(stream), 1000, &Limits::default()).now_or_never();
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
}
