//! The accept loop: serves a listening socket over HTTP/1 and HTTP/2, with a deadline for every state of a
//! connection.
//!
//! axum's own loop has no deadlines, so a silent connection, half a request head or a client that stops reading would
//! hold its slot forever (slow loris). One task runs the loop and one task each connection. The loop also checks all
//! connections periodically, and evicts stalled ones when slots or memory run out.

mod connection;
mod connection_state;
mod evict;
mod framing;
mod timeout_policy;
mod tracked_io;

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures::FutureExt;
use http::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{Id, JoinError, JoinSet, unconstrained};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tower::Service;

use self::connection::HttpConnection;
use self::connection_state::{CoarseClock, ConnectionState};
use self::timeout_policy::{ConnectionMonitor, TimeoutPolicy};
use super::ServerTls;
use crate::byte_budget::ServerBudgets;
use crate::limits::HttpLimits;

/// The remote address of a connection, in the extensions of every request. Behind a proxy it is the address of the
/// proxy.
///
/// ```rust
/// use docent_mcp::http::accept::PeerAddress;
///
/// fn remote<T>(request: &http::Request<T>) -> Option<std::net::IpAddr> {
///     request.extensions().get::<PeerAddress>().map(|peer| peer.0.ip())
/// }
/// # let _ = remote::<()>;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

/// A service that answers every request and never fails, such as an axum router. It is implemented for every type
/// that fits; [`serve`] takes one.
///
/// ```rust
/// use docent_mcp::http::accept::InfallibleService;
///
/// fn check(service: impl InfallibleService) -> impl InfallibleService {
///     service
/// }
///
/// let router: axum::Router = axum::Router::new();
/// let _service = check(router);
/// ```
pub trait InfallibleService:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> InfallibleService for S where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Serves `service` on `listener` over HTTP/1 and HTTP/2 until `shutdown` is cancelled.
///
/// Shutdown is graceful: no further connection is accepted, requests that had arrived are answered, and what is still
/// open after `limits.shutdown` is dropped. Dropping the future drops every connection.
///
/// # Errors
///
/// Returns an error if the socket cannot accept at all. Transient errors, such as too many open files, are retried
/// after a pause.
///
/// ```rust,no_run
/// use std::sync::Arc;
///
/// use docent_mcp::http::accept;
/// use docent_mcp::http::limits::HttpLimits;
///
/// # async fn run() -> std::io::Result<()> {
/// let router = axum::Router::new().route("/", axum::routing::get(|| async { "hello" }));
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8787").await?;
/// let limits = Arc::new(HttpLimits::default());
/// accept::serve(listener, router, limits, None, Default::default()).await
/// # }
/// ```
pub async fn serve(
    listener: TcpListener,
    service: impl InfallibleService,
    limits: Arc<HttpLimits>,
    tls: Option<ServerTls>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let _reloading = tls.clone().map(|tls| {
        let task = tokio::spawn(async move { tls.reload_loop().await });
        AbortOnDropHandle::new(task)
    });
    let mut server = HttpServer::new(service, limits, tls);
    let budgets = server.budgets.clone();
    let mut evicted_at = None;
    let mut stopping = pin!(shutdown.cancelled());
    let mut checks = interval(server.policy.tick());
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut resume = None;
    loop {
        tokio::select! {
            biased;
            () = stopping.as_mut() => break,
            _ = checks.tick(), if !server.monitors.is_empty() => server.check_connections(),
            () = eviction_requested(&budgets, evicted_at) => {
                server.evict();
                evicted_at = Some(Instant::now());
            }
            Some(ended) = server.tasks.join_next_with_id() => server.remove_connection(ended),
            accepted = accept(&listener, resume) => {
                resume = match accepted {
                    Ok((stream, peer)) => {
                        server.admit(stream, peer);
                        None
                    }
                    Err(error) => Some(Instant::now() + pause_after(error)?),
                };
            }
        }
    }
    server.close(listener).await;
    Ok(())
}

/// Waits until a budget requests eviction, at most once per [`EVICT_EVERY`], so that eviction cannot starve
/// accepting.
async fn eviction_requested(budgets: &ServerBudgets, evicted_at: Option<Instant>) {
    if let Some(next) = evicted_at.map(|last| last + EVICT_EVERY)
        && Instant::now() < next
    {
        sleep_until(next).await;
    }
    budgets.eviction_requested().await;
}

async fn accept(
    listener: &TcpListener,
    resume: Option<Instant>,
) -> io::Result<(TcpStream, SocketAddr)> {
    if let Some(resume) = resume {
        sleep_until(resume).await;
    }
    listener.accept().await
}

/// Returns the pause after a failed accept, or the error itself if retrying cannot help.
fn pause_after(error: io::Error) -> io::Result<Duration> {
    match error.kind() {
        // The peer disconnected before it was accepted, which does not affect the next one.
        io::ErrorKind::ConnectionAborted
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::Interrupted => Ok(Duration::ZERO),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Err(error),
        _ => {
            tracing::warn!(%error, "accept failed");
            Ok(Duration::from_millis(100))
        }
    }
}

struct HttpServer<S> {
    service: S,
    limits: Arc<HttpLimits>,
    protocol: Arc<auto::Builder<TokioExecutor>>,
    clock: Arc<CoarseClock>,
    policy: TimeoutPolicy,
    tasks: JoinSet<()>,
    monitors: HashMap<Id, ConnectionMonitor>,
    turned_away: u64,
    /// Connections evicted since the last check; `evicting` counts those whose task has not ended yet.
    evicted: u64,
    evicting: usize,
    tls: Option<ServerTls>,
    budgets: ServerBudgets,
}

impl<S: InfallibleService> HttpServer<S> {
    fn new(service: S, limits: Arc<HttpLimits>, tls: Option<ServerTls>) -> Self {
        Self {
            service,
            protocol: Arc::new(protocol(&limits)),
            clock: Arc::new(CoarseClock::new()),
            policy: TimeoutPolicy::new(&limits),
            budgets: ServerBudgets::new(&limits),
            limits,
            tasks: JoinSet::new(),
            monitors: HashMap::new(),
            turned_away: 0,
            evicted: 0,
            evicting: 0,
            tls,
        }
    }

    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) {
        if !self.has_slot() {
            self.turned_away += 1;
            reject_with_503(stream, self.tls.is_some());
            return;
        }
        set_nodelay(&stream);
        let state = Arc::new(ConnectionState::new(Arc::clone(&self.clock)));
        let shares = self.budgets.connection();
        let monitor = ConnectionMonitor::new(Arc::clone(&state), shares.clone());
        let connection = HttpConnection {
            service: self.service.clone(),
            protocol: Arc::clone(&self.protocol),
            state,
            peer: PeerAddress(peer),
            tls: self.tls.clone(),
            shares,
        };
        let task = self.tasks.spawn(connection.run(stream));
        self.monitors.insert(task.id(), monitor);
    }

    fn remove_connection(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!("connection task panicked");
                error.id()
            }
        };
        let monitor = self.monitors.remove(&id);
        if monitor.is_some_and(|monitor| monitor.is_evicted()) {
            self.evicting = self.evicting.saturating_sub(1);
        }
    }

    /// Whether one more connection can be taken. When all slots are taken, connections that have not sent a whole
    /// request are evicted, a few at a time, because finding them takes longer than accepting.
    fn has_slot(&mut self) -> bool {
        let cap = self.limits.connections;
        if self.tasks.len().saturating_sub(self.evicting) < cap {
            return true;
        }
        // Evicted connections hold their slot until their task ends, so their number is bounded too.
        if self.evicting > cap / 8 {
            return false;
        }
        let now = self.clock.refresh();
        let cut = evict::evict_headless(&mut self.monitors, (cap / 32).max(1), now);
        self.note_evicted(cut);
        cut > 0
    }

    fn note_evicted(&mut self, count: usize) {
        self.evicting += count;
        self.evicted += count as u64;
    }

    /// Evicts stalled connections if a byte budget is nearly spent.
    fn evict(&mut self) {
        let now = self.clock.refresh();
        let (answers, requests) = (self.budgets.answers(), self.budgets.requests());
        let unread = evict::evict_unread(&mut self.monitors, answers, &self.policy, now);
        let heads = evict::evict_heads(&mut self.monitors, requests, now);
        if requests.needs_eviction() {
            requests.wait_queue().forward_eviction();
        }
        self.note_evicted(unread + heads);
    }

    fn check_connections(&mut self) {
        let now = self.clock.refresh();
        // The server counts as crowded at seven eighths of its connection limit.
        self.policy.crowded = self.monitors.len() * 8 >= self.limits.connections * 7;
        self.policy.strained = self.budgets.answers().is_half_used();
        self.policy.flooded = self.budgets.requests().is_half_used();
        for monitor in self.monitors.values_mut() {
            monitor.check(&self.policy, now);
        }
        self.evict();
        self.report();
    }

    /// Logs evicted and refused connections, once per check.
    fn report(&mut self) {
        if self.evicted > 0 {
            let evicted = std::mem::take(&mut self.evicted);
            tracing::warn!(evicted, "evicted connections that made no progress");
        }
        if self.turned_away > 0 {
            let cap = self.limits.connections;
            tracing::warn!(
                turned_away = self.turned_away,
                cap,
                "connection limit reached, refused connections"
            );
            self.turned_away = 0;
        }
    }

    /// Shuts down gracefully: answers what has arrived, then drops the rest.
    async fn close(mut self, listener: TcpListener) {
        let mut deadline = pin!(sleep(self.limits.shutdown));
        // Connections in the accept queue of the kernel count as arrived. The short timeout lets the runtime notice
        // them, and the deadline keeps a steady stream of new ones from delaying the shutdown.
        let enough = Instant::now() + 5 * CLOSING_CHECK_INTERVAL;
        while Instant::now() < enough {
            match timeout(CLOSING_CHECK_INTERVAL, listener.accept()).await {
                Ok(Ok((stream, peer))) => self.admit(stream, peer),
                _ => break,
            }
        }
        // The rest of the queue is taken without waiting: closing the socket would reset those connections.
        for _ in 0..self.limits.connections {
            match unconstrained(listener.accept()).now_or_never() {
                Some(Ok((stream, peer))) => self.admit(stream, peer),
                _ => break,
            }
        }
        drop(listener);
        self.policy
            .begin_closing(self.clock.refresh(), CLOSING_CHECK_INTERVAL);
        let mut checks = interval(CLOSING_CHECK_INTERVAL);
        loop {
            tokio::select! {
                biased;
                ended = self.tasks.join_next_with_id() => match ended {
                    Some(ended) => self.remove_connection(ended),
                    None => return,
                },
                _ = checks.tick() => self.check_connections(),
                () = deadline.as_mut() => break,
            }
        }
        tracing::warn!(
            open = self.tasks.len(),
            "shutdown deadline passed, dropped open connections"
        );
    }
}

/// Responses are written whole, so Nagle's algorithm would only delay them.
fn set_nodelay(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set TCP_NODELAY");
    }
}

/// Sends a 503 before closing, without waiting for it to arrive. On a TLS listener it would need a handshake first.
fn reject_with_503(stream: TcpStream, in_tls: bool) {
    if in_tls {
        return;
    }
    // The runtime has not registered the new socket as writable yet, so this writes directly.
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write(FULL);
    }
}

/// Minimum interval between two evictions.
const EVICT_EVERY: Duration = Duration::from_millis(10);

/// Interval of the checks during shutdown, which is shorter because a person waits for it.
const CLOSING_CHECK_INTERVAL: Duration = Duration::from_millis(10);

const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n\
    Content-Length: 0\r\nConnection: close\r\n\r\n";

fn protocol(limits: &HttpLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // HTTP/2 allows no larger window.
    let window = limits.h2_window.min(i32::MAX.unsigned_abs());
    builder
        .http1()
        .timer(TokioTimer::new())
        // hyper would count the pause between requests as part of the next head; our own checks keep the two apart.
        .header_read_timeout(None)
        // Bounds the read buffer of one connection; the request head has to fit in it.
        .max_buf_size(head_bytes(limits));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.h2_streams)
        .max_header_list_size(limits.h2_header_list)
        .initial_stream_window_size(window)
        .initial_connection_window_size(window)
        .max_send_buf_size(window as usize)
        .keep_alive_interval(limits.h2_ping_every)
        .keep_alive_timeout(limits.h2_ping_timeout);
    builder
}

/// Returns the size limit of a request head: target, headers, and the separators of a hundred fields. hyper accepts
/// no less than 8 KiB.
fn head_bytes(limits: &HttpLimits) -> usize {
    let largest = limits.header_bytes.saturating_add(limits.uri_bytes);
    largest.saturating_add(1024).max(8 * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_do_not_wait_for_a_full_packet() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let stream = accepted.unwrap().0.into_std().unwrap();
        let socket = stream.try_clone().unwrap();
        assert!(!socket.nodelay().unwrap());
        let mut server =
            HttpServer::new(axum::Router::new(), Arc::new(HttpLimits::default()), None);
        server.admit(TcpStream::from_std(stream).unwrap(), address);
        assert!(socket.nodelay().unwrap());
        drop(client);
    }
}
