//! The task of one connection: serves its requests until it ends or the accept loop commands it to close.

use std::convert::Infallible;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse as _;
use futures::FutureExt;
use http::header::CONNECTION;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::connection_state::{CloseCommand, ConnectionState, RequestInFlight};
use super::tracked_io::{MonitoredStream, TrackedBody};
use super::{InfallibleService, PeerAddress};
use crate::byte_budget::{ByteReservation, ConnectionShare, ConnectionShares, ResponseCaller};
use crate::http::ServerTls;
use crate::http::body::{BodyCharge, BodyError};
use crate::http::guard::{GuardRejection, MAX_FIELDS};
use crate::json_response;
use crate::rpc::{INTERNAL_ERROR, INVALID_REQUEST};

/// Everything that the task of one connection needs.
pub(super) struct HttpConnection<S> {
    pub(super) service: S,
    pub(super) protocol: Arc<auto::Builder<TokioExecutor>>,
    pub(super) state: Arc<ConnectionState>,
    pub(super) peer: PeerAddress,
    pub(super) tls: Option<ServerTls>,
    pub(super) shares: ConnectionShares,
}

impl<S: InfallibleService> HttpConnection<S> {
    /// Serves the connection, after a TLS handshake if the server has a certificate.
    pub(super) async fn run(self, stream: TcpStream) {
        let Some(tls) = &self.tls else {
            return self.serve(stream).await;
        };
        self.state.note_tls_handshake();
        // Boxed, because the state of a handshake is large and most servers run behind a TLS proxy.
        let mut handshake = Box::pin(tls.accept(stream));
        let tls_stream = poll_fn(|cx| {
            self.state.waker().register(cx.waker());
            if self.state.order() == CloseCommand::Cut {
                return Poll::Ready(None);
            }
            handshake.as_mut().poll(cx).map(Result::ok)
        });
        let tls_stream = tls_stream.await;
        drop(handshake);
        if let Some(stream) = tls_stream {
            self.state.note_handshake_done();
            self.serve(stream).await;
        }
    }

    async fn serve<T>(self, stream: T)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self {
            service: handler,
            protocol,
            state,
            peer,
            tls: _,
            shares,
        } = self;
        let requests = Arc::clone(&shares.bodies);
        let io = TokioIo::new(MonitoredStream::new(stream, Arc::clone(&state), requests));
        let request_state = Arc::clone(&state);
        let service = service_fn(move |request: Request<hyper::body::Incoming>| {
            let busy = RequestInFlight::begin(&request_state, request.version() == Version::HTTP_2);
            let mut request = request.map(Body::new);
            let admitted = admit(&mut request, &shares);
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(shares.clone());
            let share = Arc::clone(&shares.answers);
            answer(handler.clone(), request, admitted, busy, share)
        });
        let mut http = pin!(protocol.serve_connection(io, service));
        let mut is_closing = false;
        poll_fn(|cx| {
            state.waker().register(cx.waker());
            if http.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let order = state.order();
            if order == CloseCommand::Cut {
                return Poll::Ready(());
            }
            if !is_closing && state.may_close(order) {
                is_closing = true;
                http.as_mut().graceful_shutdown();
                return http.as_mut().poll(cx).map(drop);
            }
            Poll::Pending
        })
        .await;
    }
}

/// How long a request may keep its turn. An answer that is computed at once takes a few milliseconds.
const MAX_TURN: Duration = Duration::from_millis(100);

const AMBIGUOUS: &str = "the framing of the request is ambiguous";

/// Checks and charges a request head before its handler runs, because thousands of HTTP/2 streams may have to wait
/// for their turn. A waiting head counts against the byte budget; a refused one is freed at once.
fn admit(
    request: &mut Request<Body>,
    shares: &ConnectionShares,
) -> Result<Option<ByteReservation>, Box<Response<Body>>> {
    let refusal = if request.headers().len() > MAX_FIELDS {
        GuardRejection::TooManyFields.into_response()
    } else if request.version() < Version::HTTP_2 {
        // HTTP/1 has one request at a time, handled by the task of the connection.
        return Ok(None);
    } else {
        let charge = BodyCharge {
            share: &shares.bodies,
            headers: request.headers(),
        };
        match shares.bodies.reserve(charge.overhead(), None) {
            Some(counted) => return Ok(Some(counted)),
            None => BodyError::Crowded.into_response(),
        }
    };
    *request.headers_mut() = HeaderMap::new();
    Err(Box::new(refusal))
}

async fn answer(
    mut service: impl InfallibleService,
    request: Request<Body>,
    admitted: Result<Option<ByteReservation>, Box<Response<Body>>>,
    busy: RequestInFlight,
    share: Arc<ConnectionShare>,
) -> Result<Response<TrackedBody>, Infallible> {
    let can_close = request.version() < Version::HTTP_2;
    // Kept until the response is charged.
    let mut turn = None;
    let mut response = if busy.is_ambiguous() {
        let hint = "end lines with CR LF, and give the length of the body once";
        json_response::answer(StatusCode::BAD_REQUEST, INVALID_REQUEST, AMBIGUOUS, hint)
    } else if let Err(refusal) = admitted {
        *refusal
    } else {
        if share.has_room() && share.budget().is_half_used() {
            turn = Box::pin(share.wait_for_turn()).await;
        }
        // The handler starts now. From here on only a body that does not arrive at once is charged.
        drop(admitted);
        if !share.has_room() {
            let refused = json_response::refuse_unread();
            return Ok(refused.map(|body| TrackedBody::refusal(body, busy)));
        }
        let called = AssertUnwindSafe(async move { service.call(request).await });
        let mut called = pin!(called.catch_unwind());
        // A slow body or a slow tool gives its turn back before it is done.
        let in_turn = match &turn {
            Some(_) => timeout(MAX_TURN, &mut called).await.ok(),
            None => None,
        };
        let answered = match in_turn {
            Some(answered) => answered,
            None => {
                turn = None;
                called.await
            }
        };
        match answered {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_) => {
                // The panic message goes to the panic hook of the process, never to the client.
                tracing::error!("a handler panicked");
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                json_response::answer(status, INTERNAL_ERROR, "internal error", "")
            }
        }
    };
    if can_close && busy.is_last() {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let caller = response.extensions_mut().remove::<ResponseCaller>();
    let (head, body) = response.into_parts();
    let tracked = TrackedBody::new(body, busy, &share, caller.map(|caller| caller.0));
    let charged = tracked.await;
    drop(turn);
    Ok(match charged {
        Ok(body) => Response::from_parts(head, body),
        Err(busy) => json_response::refuse_unread().map(|body| TrackedBody::refusal(body, busy)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byte_budget::ServerBudgets;
    use crate::limits::HttpLimits;

    fn request(version: Version, fields: usize) -> Request<Body> {
        let mut request = Request::new(Body::empty());
        *request.version_mut() = version;
        for _ in 0..fields {
            let value = HeaderValue::from_static("");
            request.headers_mut().append("a", value);
        }
        request
    }

    #[test]
    fn heads_of_http2_are_counted_before_their_tasks_run() {
        let budgets = ServerBudgets::new(&HttpLimits::default());
        let (one, two) = (budgets.connection(), budgets.connection());
        let waiting = admit(&mut request(Version::HTTP_2, 100), &one).unwrap();
        assert!(one.bodies.held() > 100 * 100);
        let none = admit(&mut request(Version::HTTP_11, 100), &two).unwrap();
        assert!(none.is_none() && two.bodies.held() == 0);
        drop(waiting);
        assert_eq!(one.bodies.held(), 0);
    }

    #[test]
    fn a_rejected_request_drops_its_headers() {
        let budgets = ServerBudgets::new(&HttpLimits::default());
        let mut packed = request(Version::HTTP_2, 101);
        let refused = admit(&mut packed, &budgets.connection()).unwrap_err();
        assert_eq!(
            (refused.status().as_u16(), packed.headers().len()),
            (431, 0)
        );
        // A budget of zero for requests.
        let limits = HttpLimits {
            request_bytes: 0,
            ..HttpLimits::default()
        };
        let budgets = ServerBudgets::new(&limits);
        let mut crowded = request(Version::HTTP_2, 1);
        let _held = budgets.connection().bodies.charge(1);
        let shares = budgets.connection();
        let _other = shares.bodies.charge(1);
        let refused = admit(&mut crowded, &shares).unwrap_err();
        assert_eq!(
            (refused.status().as_u16(), crowded.headers().len()),
            (503, 0)
        );
    }
}
