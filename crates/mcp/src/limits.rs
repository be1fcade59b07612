//! The limits of serving: every bound on time, size and number, in one place.
//!
//! Plain data without behaviour. Settings files and flags are parsed elsewhere and end up here, so that a reader sees
//! all limits at once and a test can set any of them to a small value.

use std::time::Duration;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// All limits of serving. [`Default`] returns the values that a public server should run with.
///
/// ```rust
/// use std::time::Duration;
///
/// use docent_mcp::http::HttpOptions;
/// use docent_mcp::http::limits::HttpLimits;
///
/// let limits = HttpLimits {
///     calls_per_minute: 60,
///     handler: Duration::from_secs(10),
///     ..HttpLimits::default()
/// };
/// let options = HttpOptions { limits, ..HttpOptions::default() };
/// # let _ = options;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// How long a new connection may stay silent. A client connects because it has something to send; a silent socket
    /// only occupies a slot.
    pub first_byte: Duration,
    /// How long a request head may take in total, from its first byte to the empty line. Sending one byte a second
    /// does not extend it (slow loris).
    pub headers: Duration,
    /// How long a request body may take in total. 1 MiB in this time is 70 KiB/s, which every working link reaches.
    pub body: Duration,
    /// Minimum average rate of a request body in bytes per second, so that a trickle is cut before `body` expires.
    pub body_rate: usize,
    /// How long a body may arrive before its rate is checked, because the first packets of a good client can be slow.
    pub body_grace: Duration,
    /// How long a handler may work on one request. Hosts give up later than this, so the client gets our error
    /// message instead of a timeout.
    pub handler: Duration,
    /// How long a connection may be idle between two requests. It is longer than the pause between two tool calls of
    /// one conversation turn, so that keep-alive pays off.
    pub idle: Duration,
    /// How long a connection with a request in flight may go without sending any part of a response. Only a stuck
    /// handler or a client that stopped reading gets here: if `body` and `handler` together, or two SSE keep-alives,
    /// are longer, those apply instead.
    pub stall: Duration,
    /// How long a client may read nothing of its pending responses. Reading some of them restarts the time, so a slow
    /// link gets its response. It is long enough for the kernel buffer of a slow reader to drain.
    pub unread: Duration,
    /// Replaces `unread` while half of `unread_bytes` is in use. Then reading a little is not enough either: what
    /// waits has to be read within about sixteen times as long.
    pub unread_strained: Duration,
    /// Replaces `unread` while something waits for room in a spent budget: a client that has read nothing for this
    /// long can be evicted, longest stalled first. Ten times as long if the budget is nearly spent and nothing waits.
    pub unread_full: Duration,
    /// How long a response or a body waits for room in a spent budget while others are evicted.
    pub room_wait: Duration,
    /// How old a connection may become before it is closed after its current responses, so that load spreads again
    /// after a restart of one replica.
    pub age: Duration,
    /// How long an idle connection is kept after shutdown began, because a request may already be in transit.
    pub linger: Duration,
    /// How long shutdown waits for requests in flight before it drops the rest. Common process managers kill the
    /// process after this time.
    pub shutdown: Duration,
    /// Maximum number of connections. Each may hold one read buffer, so this limits that memory too.
    pub connections: usize,
    /// Maximum number of requests in flight. More would only queue for the processors.
    pub in_flight: usize,
    /// Maximum number of requests in flight for one sign-in page, separate from `in_flight` and from the other pages,
    /// so that a flood on one leaves the others alone. It exceeds the number of concurrent client document fetches,
    /// so that slow hosts cannot use up all permits; checking a password keeps a processor busy, so many more would
    /// only queue.
    pub sign_in_in_flight: usize,
    /// Byte budget of responses that wait to be written, over all connections and transports. A connection may hold a
    /// sixteenth of what is free, a verified caller half.
    pub unread_bytes: usize,
    /// Byte budget of request heads and bodies that are incomplete or being processed, shared in the same way.
    pub request_bytes: usize,
    /// Maximum number of bodies over `big_body` that are parsed at the same time, because JSON can grow a hundredfold
    /// in memory.
    pub big_parses: usize,
    /// Size in bytes from which a body counts as large for `big_parses`.
    pub big_body: usize,
    /// Maximum size of all request headers in bytes. Tokens of 8 KiB with cookies fit twice.
    pub header_bytes: usize,
    /// Maximum size of a request target in bytes. No route needs a longer one.
    pub uri_bytes: usize,
    /// Maximum number of concurrent HTTP/2 streams per connection: more than a browser or host has calls in flight,
    /// and few enough that one connection cannot act like a crowd.
    pub h2_streams: u32,
    /// Maximum size of an HTTP/2 header list in bytes, after decompression.
    pub h2_header_list: u32,
    /// HTTP/2 flow control window of a stream and of a connection in bytes: what one client can make the server
    /// buffer before a handler reads it.
    pub h2_window: u32,
    /// Interval of HTTP/2 pings, which detect a client that vanished without closing.
    pub h2_ping_every: Duration,
    /// How long an HTTP/2 client may take to answer a ping.
    pub h2_ping_timeout: Duration,
    /// Maximum size of any request body in bytes.
    pub body_bytes: usize,
    /// Maximum size of the body of a sign-in request in bytes. A client registration with 4 KiB of redirect URIs and
    /// all of its names fits, and so does a consent form with a request of 8 KiB.
    pub sign_in_bytes: usize,
    /// Maximum size of the body of a `tools/call` in bytes. Arguments are questions and ids, not documents.
    pub call_bytes: usize,
    /// Maximum nesting of a JSON body. Parsers recurse, and real arguments stay under ten levels.
    pub json_depth: usize,
    /// Maximum number of messages in one JSON-RPC batch, for the revision that has batches.
    pub batch: usize,
    /// Rate limit: tool calls per minute of one verified caller, or of one user by the host's pseudonym. 0 turns it
    /// off. A research loop makes a few calls a second, a runaway loop hundreds.
    pub calls_per_minute: u32,
    /// Interval of keep-alive comments on an open SSE stream, below the idle timeout of common proxies.
    pub sse_keep_alive: Duration,
    /// Maximum number of open listener streams in total.
    pub listen_streams: usize,
    /// Maximum number of HTTP+SSE streams of one verified caller, and of one connection.
    pub streams_per_caller: usize,
    /// Maximum number of requests in flight of one such stream, where the next one is refused, and of stdio, where it
    /// waits. Both are one conversation, which asks a few things at a time.
    pub stream_in_flight: usize,
    /// Maximum length of a line on stdio in bytes. It is larger than `body_bytes`, because that client is the user's
    /// own host.
    pub stdio_line: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(5),
            headers: Duration::from_secs(10),
            body: Duration::from_secs(15),
            body_rate: KIB,
            body_grace: Duration::from_secs(2),
            handler: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            stall: Duration::from_secs(60),
            unread: Duration::from_secs(30),
            unread_strained: Duration::from_secs(2),
            unread_full: Duration::from_millis(50),
            room_wait: Duration::from_secs(1),
            age: Duration::from_secs(600),
            linger: Duration::from_millis(500),
            shutdown: Duration::from_secs(30),
            connections: 4_096,
            in_flight: 256,
            sign_in_in_flight: 64,
            unread_bytes: 64 * MIB,
            request_bytes: 64 * MIB,
            big_parses: 4,
            big_body: 64 * KIB,
            header_bytes: 32 * KIB,
            uri_bytes: 8 * KIB,
            h2_streams: 32,
            h2_header_list: 16 * 1024,
            h2_window: 256 * 1024,
            h2_ping_every: Duration::from_secs(20),
            h2_ping_timeout: Duration::from_secs(10),
            body_bytes: MIB,
            sign_in_bytes: 16 * KIB,
            call_bytes: 256 * KIB,
            json_depth: 64,
            batch: 32,
            calls_per_minute: 1_200,
            sse_keep_alive: Duration::from_secs(15),
            listen_streams: 2_000,
            streams_per_caller: 16,
            stream_in_flight: 32,
            stdio_line: 4 * MIB,
        }
    }
}

impl HttpLimits {
    /// Returns tighter limits for a side listener, such as one for metrics: it has few clients, and they should add
    /// little to the memory that the server itself may use.
    #[must_use]
    pub fn for_side_listener(mut self) -> Self {
        self.unread_bytes = self.unread_bytes.min(4 * MIB);
        self.request_bytes = self.request_bytes.min(MIB);
        self.connections = self.connections.min(64);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_do_not_contradict_each_other() {
        let limits = HttpLimits::default();
        assert!(
            limits.stall > limits.body + limits.handler,
            "a slow good request would be cut"
        );
        assert!(
            limits.stall >= 4 * limits.sse_keep_alive,
            "a quiet stream would be cut"
        );
        assert!(
            limits.shutdown >= limits.handler,
            "a handler at work would be dropped"
        );
        assert!(limits.call_bytes <= limits.body_bytes && limits.big_body <= limits.body_bytes);
        assert!(
            limits.listen_streams < limits.connections,
            "no room beside the listeners"
        );
        assert!(limits.body_bytes <= limits.stdio_line);
        assert!(
            limits.unread_strained < limits.unread && limits.unread < limits.stall,
            "unread answers would wait for the general limit"
        );
        assert!(
            10 * limits.unread_full < limits.room_wait,
            "nobody would be evicted in time"
        );
        assert!(limits.sign_in_bytes <= limits.body_bytes);
        // A single connection can hold a 17th of the budget.
        assert!(limits.request_bytes / 17 >= limits.body_bytes);
        assert!(limits.stream_in_flight < limits.in_flight);
    }
}
