//! Turns a listening socket and a router into a server that nobody can hold up.
//!
//! This is our own accept loop because the router's crate has none with deadlines: a silent
//! connection, half a head or a reader that stops reading would be kept for ever. One task runs
//! the loop, one task each connection. The loop also makes the rounds and judges every connection.

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
use super::byte_budget::ServerBudgets;
use super::limits::HttpLimits;
use super::tls::ServerTls;

/// The address a request came from, in the extensions of every request.
///
/// Behind a proxy this is the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

/// What answers requests: a router, or whatever else never fails.
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

/// Serves `service` on `listener` until `shutdown` is cancelled, over HTTP/1 and HTTP/2 alike.
///
/// After that no connection is accepted, requests that had arrived are answered, and what is
/// still open when `limits.shutdown` has passed is dropped. Dropping the future drops every
/// connection.
///
/// # Errors
///
/// Fails when the socket is not one that can accept. Passing failures such as too many open
/// files are waited out instead.
pub async fn serve(
    listener: TcpListener,
    service: impl InfallibleService,
    limits: Arc<HttpLimits>,
    tls: Option<ServerTls>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let _renewing = tls.clone().map(|tls| {
        let task = tokio::spawn(async move { tls.reload_loop().await });
        AbortOnDropHandle::new(task)
    });
    let mut server = HttpServer::new(service, limits, tls);
    let budgets = server.budgets.clone();
    let mut evicted_at = None;
    let mut stopping = pin!(shutdown.cancelled());
    let mut rounds = interval(server.rules.tick());
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut resume = None;
    loop {
        tokio::select! {
            biased;
            () = stopping.as_mut() => break,
            _ = rounds.tick(), if !server.watches.is_empty() => server.check_connections(),
            () = eviction_called(&budgets, evicted_at) => {
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

/// Waits for a call for eviction, but not so soon after the last that nothing else is done.
async fn eviction_called(budgets: &ServerBudgets, evicted_at: Option<Instant>) {
    if let Some(next) = evicted_at.map(|last| last + EVICT_EVERY)
        && Instant::now() < next
    {
        sleep_until(next).await;
    }
    budgets.eviction_called().await;
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

/// How long to wait after a failed accept, or the error itself when waiting cannot help.
fn pause_after(error: io::Error) -> io::Result<Duration> {
    match error.kind() {
        // The peer was gone before we came: the next one is not affected.
        io::ErrorKind::ConnectionAborted
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::Interrupted => Ok(Duration::ZERO),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Err(error),
        _ => {
            tracing::warn!(%error, "a connection could not be accepted");
            Ok(Duration::from_millis(100))
        }
    }
}

struct HttpServer<S> {
    service: S,
    limits: Arc<HttpLimits>,
    protocol: Arc<auto::Builder<TokioExecutor>>,
    clock: Arc<CoarseClock>,
    rules: TimeoutPolicy,
    tasks: JoinSet<()>,
    watches: HashMap<Id, ConnectionMonitor>,
    turned_away: u64,
    /// Connections that were evicted, since the last round; and those of them that are not gone yet.
    evicted: u64,
    leaving: usize,
    tls: Option<ServerTls>,
    budgets: ServerBudgets,
}

impl<S: InfallibleService> HttpServer<S> {
    fn new(service: S, limits: Arc<HttpLimits>, tls: Option<ServerTls>) -> Self {
        Self {
            service,
            protocol: Arc::new(protocol(&limits)),
            clock: Arc::new(CoarseClock::new()),
            rules: TimeoutPolicy::new(&limits),
            budgets: ServerBudgets::new(&limits),
            limits,
            tasks: JoinSet::new(),
            watches: HashMap::new(),
            turned_away: 0,
            evicted: 0,
            leaving: 0,
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
        let pulse = Arc::new(ConnectionState::new(Arc::clone(&self.clock)));
        let shares = self.budgets.connection();
        let watch = ConnectionMonitor::new(Arc::clone(&pulse), shares.clone());
        let connection = HttpConnection {
            service: self.service.clone(),
            protocol: Arc::clone(&self.protocol),
            pulse,
            peer: PeerAddress(peer),
            tls: self.tls.clone(),
            shares,
        };
        let task = self.tasks.spawn(connection.run(stream));
        self.watches.insert(task.id(), watch);
    }

    fn remove_connection(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!("a connection ended by a panic");
                error.id()
            }
        };
        let watch = self.watches.remove(&id);
        if watch.is_some_and(|watch| watch.is_evicted()) {
            self.leaving = self.leaving.saturating_sub(1);
        }
    }

    /// Whether one more connection can be taken. When all slots are taken, those who have sent no whole request yet
    /// lose theirs, a few at a time: looking for them takes longer than accepting.
    fn has_slot(&mut self) -> bool {
        let cap = self.limits.connections;
        if self.tasks.len().saturating_sub(self.leaving) < cap {
            return true;
        }
        // Until they are gone there are more connections than slots, so their number is bounded too.
        if self.leaving > cap / 8 {
            return false;
        }
        let now = self.clock.refresh();
        let cut = evict::headless(&mut self.watches, (cap / 32).max(1), now);
        self.note_evicted(cut);
        cut > 0
    }

    fn note_evicted(&mut self, count: usize) {
        self.leaving += count;
        self.evicted += count as u64;
    }

    /// Makes room in the budgets that are nearly spent.
    fn evict(&mut self) {
        let now = self.clock.refresh();
        let (answers, requests) = (self.budgets.answers(), self.budgets.requests());
        let unread = evict::unread(&mut self.watches, answers, &self.rules, now);
        let heads = evict::heads(&mut self.watches, requests, now);
        if requests.is_pressed() {
            requests.pressure().spread();
        }
        self.note_evicted(unread + heads);
    }

    fn check_connections(&mut self) {
        let now = self.clock.refresh();
        // Seven eighths full.
        self.rules.crowded = self.watches.len() * 8 >= self.limits.connections * 7;
        self.rules.strained = self.budgets.answers().is_strained();
        self.rules.flooded = self.budgets.requests().is_strained();
        for watch in self.watches.values_mut() {
            watch.check(&self.rules, now);
        }
        self.evict();
        self.report();
    }

    /// Says once a round how many had to go.
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
                "no room for more connections"
            );
            self.turned_away = 0;
        }
    }

    /// Answers what has arrived, then lets go of the rest.
    async fn close(mut self, listener: TcpListener) {
        let mut deadline = pin!(sleep(self.limits.shutdown));
        // Connections that the kernel has accepted for us count as arrived. The moment of
        // patience lets the runtime notice them; a crowd that keeps coming does not extend it.
        let enough = Instant::now() + 5 * ROUND_WHEN_CLOSING;
        while Instant::now() < enough {
            match timeout(ROUND_WHEN_CLOSING, listener.accept()).await {
                Ok(Ok((stream, peer))) => self.admit(stream, peer),
                _ => break,
            }
        }
        // Those who came meanwhile are taken without waiting for more: closing the socket resets
        // whoever is left in its queue.
        for _ in 0..self.limits.connections {
            match unconstrained(listener.accept()).now_or_never() {
                Some(Ok((stream, peer))) => self.admit(stream, peer),
                _ => break,
            }
        }
        drop(listener);
        self.rules
            .begin_closing(self.clock.refresh(), ROUND_WHEN_CLOSING);
        let mut rounds = interval(ROUND_WHEN_CLOSING);
        loop {
            tokio::select! {
                biased;
                ended = self.tasks.join_next_with_id() => match ended {
                    Some(ended) => self.remove_connection(ended),
                    None => return,
                },
                _ = rounds.tick() => self.check_connections(),
                () = deadline.as_mut() => break,
            }
        }
        tracing::warn!(
            open = self.tasks.len(),
            "dropped what was still open at the deadline"
        );
    }
}

/// Answers are written whole; waiting to fill a packet would only delay them.
fn set_nodelay(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "answers on this connection may be late");
    }
}

/// A plain answer beats a bare close, but nobody waits for it to arrive. In TLS it would take a greeting.
fn reject_with_503(stream: TcpStream, in_tls: bool) {
    if in_tls {
        return;
    }
    // The runtime does not know yet that a new socket can be written to, so ask the kernel.
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write(FULL);
    }
}

/// How often connections are evicted at most.
const EVICT_EVERY: Duration = Duration::from_millis(10);

/// A person waits for a shutdown, so the rounds are quicker then.
const ROUND_WHEN_CLOSING: Duration = Duration::from_millis(10);

const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n\
    Content-Length: 0\r\nConnection: close\r\n\r\n";

fn protocol(limits: &HttpLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // The protocol knows no larger window.
    let window = limits.h2_window.min(i32::MAX.unsigned_abs());
    builder
        .http1()
        .timer(TokioTimer::new())
        // hyper would count the wait between requests as part of the next head; the rounds keep
        // the two apart.
        .header_read_timeout(None)
        // What one connection can make us hold; the head has to fit in it.
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

/// The largest head: its target, its headers, and what HTTP/1 writes between a hundred of them. hyper takes no less than
/// 8 KiB.
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
        let same = stream.try_clone().unwrap();
        assert!(!same.nodelay().unwrap());
        let mut server =
            HttpServer::new(axum::Router::new(), Arc::new(HttpLimits::default()), None);
        server.admit(TcpStream::from_std(stream).unwrap(), address);
        assert!(same.nodelay().unwrap());
        drop(client);
    }
}
