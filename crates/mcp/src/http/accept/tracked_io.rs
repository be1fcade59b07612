//! Instrumented I/O: a socket and a response body that report activity to the connection state and charge their bytes
//! to the budgets.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection_state::{ConnectionState, RequestInFlight};
use super::framing::FramingScanner;
use crate::byte_budget::{ByteReservation, CallerSlot, ConnectionShare};

/// A socket that reports received bytes, runs the framing scanner, and charges long incomplete HTTP/1 heads.
#[derive(Debug)]
pub(super) struct MonitoredStream<S> {
    stream: S,
    state: Arc<ConnectionState>,
    scanner: FramingScanner,
    requests: Arc<ConnectionShare>,
    head: Option<PartialHead>,
}

#[derive(Debug)]
struct PartialHead {
    bytes: usize,
    counted: ByteReservation,
}

/// Bytes of a request head that are free of charge. Nearly every head is shorter and arrives at once, so it would be
/// charged and released within microseconds; only what stays in memory for longer is worth the accounting.
const UNCOUNTED_HEAD: usize = 4 * 1024;

impl<S> MonitoredStream<S> {
    pub(super) fn new(
        stream: S,
        state: Arc<ConnectionState>,
        requests: Arc<ConnectionShare>,
    ) -> Self {
        Self {
            stream,
            state,
            scanner: FramingScanner::default(),
            requests,
            head: None,
        }
    }

    /// Charges an incomplete head to the budget. An error means that there is no room for it.
    fn count_head(&mut self) -> io::Result<()> {
        let bytes = self.scanner.partial_head();
        if bytes <= UNCOUNTED_HEAD {
            self.head = None;
            return Ok(());
        }
        let fits = match &mut self.head {
            Some(head) => {
                let more = bytes.saturating_sub(head.bytes);
                head.bytes = bytes;
                head.counted.grow(more)
            }
            None => {
                let counted = self.requests.reserve(bytes, None);
                self.head = counted.map(|counted| PartialHead { bytes, counted });
                self.head.is_some()
            }
        };
        if fits {
            Ok(())
        } else {
            Err(io::Error::other("too many incomplete request heads"))
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MonitoredStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buf);
        let fresh = buf.filled().get(before..).unwrap_or_default();
        if !fresh.is_empty() && this.scanner.read(fresh) {
            this.state.note_head_bytes();
            this.state.note_findings(this.scanner.findings());
            if this.scanner.partial_head() > UNCOUNTED_HEAD || this.head.is_some() {
                this.count_head()?;
            }
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MonitoredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A part of a response, charged until it has been written to the socket, however the protocol queues it.
#[derive(Debug)]
pub(super) struct MeteredBuf {
    bytes: Bytes,
    counted: Option<ByteReservation>,
}

impl Buf for MeteredBuf {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(counted) = &self.counted {
            counted.share().record_taken(count);
        }
    }
}

/// A response body that keeps its request in flight until it has been sent, and charges its bytes until they are
/// written.
#[derive(Debug)]
pub(super) struct TrackedBody {
    body: Body,
    busy: RequestInFlight,
    counted: BodyAccounting,
}

/// How the bytes of a response are charged.
#[derive(Debug)]
enum BodyAccounting {
    /// Not charged, because it is an error or empty.
    Free,
    /// Charged at once, since its length is known.
    Whole(ByteReservation),
    /// Charged part by part. `unread` is an extra charge for as long as the client does not ask for the next part.
    Stream {
        share: Arc<ConnectionShare>,
        caller: Option<CallerSlot>,
        unread: Option<ByteReservation>,
    },
}

/// Overhead of a response in bytes: its head, and the state of an HTTP/2 stream.
const OVERHEAD: usize = 1024;

/// The charge of an event stream while its client reads nothing, as a divisor of the budget. Waiting messages are
/// charged by length in addition. It stands for the task, the channel and the HTTP/2 stream that an idle reader keeps
/// open: 64 such streams strain the budget, so they are closed long before all listener permits are taken.
const UNREAD_STREAM_PART: usize = 128;

fn unread_stream_charge(share: &ConnectionShare) -> usize {
    share.budget().total() / UNREAD_STREAM_PART
}

impl TrackedBody {
    /// Charges a response, or returns its request if there is no room. While the budget is spent, it waits briefly
    /// for others to be evicted.
    pub(super) async fn new(
        body: Body,
        busy: RequestInFlight,
        share: &Arc<ConnectionShare>,
        caller: Option<CallerSlot>,
    ) -> Result<Self, RequestInFlight> {
        let counted = match body.size_hint().exact() {
            Some(0) => BodyAccounting::Free,
            Some(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let bytes = length.saturating_add(OVERHEAD);
                match share.reserve_evicting(bytes, caller).await {
                    Some(reservation) => BodyAccounting::Whole(reservation),
                    None => return Err(busy),
                }
            }
            None => match share
                .reserve_evicting(unread_stream_charge(share), caller)
                .await
            {
                Some(reservation) => BodyAccounting::Stream {
                    share: Arc::clone(share),
                    caller,
                    unread: Some(reservation),
                },
                None => return Err(busy),
            },
        };
        Ok(Self {
            body,
            busy,
            counted,
        })
    }

    /// Wraps an error response, which is small and always sent.
    pub(super) fn refusal(body: Body, busy: RequestInFlight) -> Self {
        Self {
            body,
            busy,
            counted: BodyAccounting::Free,
        }
    }
}

impl BodyAccounting {
    fn frame(
        &mut self,
        frame: Frame<Bytes>,
        is_last: bool,
    ) -> Result<Frame<MeteredBuf>, axum::Error> {
        let length = frame.data_ref().map_or(0, Bytes::len);
        let counted = match self {
            Self::Free => None,
            Self::Whole(_) if is_last => match std::mem::replace(self, Self::Free) {
                Self::Whole(all) => Some(all),
                _ => None,
            },
            Self::Whole(rest) => Some(rest.split(length)),
            Self::Stream {
                share,
                caller,
                unread,
            } => {
                // The client asked for this part, so it is not behind with earlier ones.
                *unread = None;
                let part = share.reserve(length, *caller);
                *unread = Some(share.charge(unread_stream_charge(share)));
                // A client that falls this far behind, or comes when the budget is spent, loses its stream.
                Some(part.ok_or_else(|| axum::Error::new(UnreadOverflow))?)
            }
        };
        Ok(frame.map_data(|bytes| MeteredBuf { bytes, counted }))
    }

    /// Removes the extra charge: the client has read everything so far.
    fn release_unread(&mut self) {
        if let Self::Stream { unread, .. } = self {
            *unread = None;
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("too many unread responses")]
struct UnreadOverflow;

impl HttpBody for TrackedBody {
    type Data = MeteredBuf;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<MeteredBuf>, axum::Error>>> {
        let this = &mut *self;
        let polled = match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(polled) => polled,
            Poll::Pending => {
                this.counted.release_unread();
                return Poll::Pending;
            }
        };
        this.busy.note_progress();
        let is_last = this.body.is_end_stream();
        Poll::Ready(match polled {
            Some(Ok(frame)) => Some(this.counted.frame(frame, is_last)),
            Some(Err(error)) => Some(Err(error)),
            None => {
                this.counted.release_unread();
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
