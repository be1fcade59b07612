//! Turns one socket into answers, until it ends or is ordered to.

use std::convert::Infallible;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use axum::body::Body;
use futures::FutureExt;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::pulse::{Busy, Order, Pulse};
use super::stream::{Tracked, Watched};
use super::{Answering, Peer};
use crate::http::budget::{AnswerOwner, ConnectionShare, ConnectionShares};
use crate::http::refusal::{self, INTERNAL_ERROR, INVALID_REQUEST};
use crate::http::tls::Tls;

/// What one connection needs to be served.
pub(super) struct Connection<S> {
    pub(super) service: S,
    pub(super) protocol: Arc<auto::Builder<TokioExecutor>>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) peer: Peer,
    pub(super) tls: Option<Tls>,
    pub(super) shares: ConnectionShares,
}

impl<S: Answering> Connection<S> {
    /// Serves until the peer goes, or is told to.
    pub(super) async fn run(self, stream: TcpStream) {
        let Some(tls) = &self.tls else {
            return self.serve(stream).await;
        };
        self.pulse.greeted();
        // Boxed: its state is large, and most servers stand behind something that speaks TLS.
        let mut greeting = Box::pin(tls.accept(stream));
        let greeted = poll_fn(|cx| {
            self.pulse.waker().register(cx.waker());
            if self.pulse.order() == Order::Cut {
                return Poll::Ready(None);
            }
            greeting.as_mut().poll(cx).map(Result::ok)
        });
        let greeted = greeted.await;
        drop(greeting);
        if let Some(stream) = greeted {
            self.pulse.opened();
            self.serve(stream).await;
        }
    }

    async fn serve<T>(self, stream: T)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self {
            service: answering,
            protocol,
            pulse,
            peer,
            tls: _,
            shares,
        } = self;
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&pulse)));
        let counted = Arc::clone(&pulse);
        let service = service_fn(move |request: Request<hyper::body::Incoming>| {
            let busy = Busy::begin(&counted, request.version() == Version::HTTP_2);
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(shares.clone());
            answer(
                answering.clone(),
                request,
                busy,
                Arc::clone(&shares.answers),
            )
        });
        let mut http = pin!(protocol.serve_connection(io, service));
        let mut told = false;
        poll_fn(|cx| {
            pulse.waker().register(cx.waker());
            if http.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let order = pulse.order();
            if order == Order::Cut {
                return Poll::Ready(());
            }
            if !told && pulse.may_close(order) {
                told = true;
                http.as_mut().graceful_shutdown();
                return http.as_mut().poll(cx).map(drop);
            }
            Poll::Pending
        })
        .await;
    }
}

const AMBIGUOUS: &str = "the framing of the request is ambiguous";

async fn answer(
    mut service: impl Answering,
    request: Request<Body>,
    busy: Busy,
    share: Arc<ConnectionShare>,
) -> Result<Response<Tracked>, Infallible> {
    let can_close = request.version() < Version::HTTP_2;
    let mut response = if busy.is_ambiguous() {
        let hint = "end lines with CR LF, and give the length of the body once";
        refusal::answer(StatusCode::BAD_REQUEST, INVALID_REQUEST, AMBIGUOUS, hint)
    } else if !share.has_room() {
        let refused = refusal::unread();
        return Ok(refused.map(|body| Tracked::refusal(body, busy)));
    } else {
        let called = AssertUnwindSafe(async move { service.call(request).await });
        match called.catch_unwind().await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_) => {
                // The panic itself goes to the process's panic hook; the peer learns nothing.
                tracing::error!("a handler panicked");
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                refusal::answer(status, INTERNAL_ERROR, "internal error", "")
            }
        }
    };
    if can_close && busy.is_last() {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let owner = response.extensions_mut().remove::<AnswerOwner>();
    let (head, body) = response.into_parts();
    Ok(
        match Tracked::new(body, busy, &share, owner.map(|owner| owner.0)) {
            Ok(body) => Response::from_parts(head, body),
            Err(busy) => refusal::unread().map(|body| Tracked::refusal(body, busy)),
        },
    )
}
