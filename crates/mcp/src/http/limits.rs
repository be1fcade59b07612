//! Turns "how much is too much" into numbers: every bound of serving, in one place.
//!
//! Plain data without behaviour. Settings files and flags are read elsewhere and end up here, so
//! that a reader can see all bounds at once and a test can set any of them to a small value.

use std::time::Duration;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Every bound of serving. [`Default`] gives the values a public server should run with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// How long a fresh connection may stay silent. Whoever connects has something to say; a
    /// silent socket costs a slot that somebody else could use.
    pub first_byte: Duration,
    /// How long a whole request head may take, from its first byte to the empty line. It is a
    /// total, so sending one byte a second does not extend it.
    pub headers: Duration,
    /// How long a whole request body may take. 1 MiB in this time is 70 KiB/s, which every
    /// working link reaches.
    pub body: Duration,
    /// The slowest average rate of a request body, in bytes per second, so that a trickle ends
    /// before `body` does.
    pub body_rate: usize,
    /// How long a body may flow before its rate is judged; the first packets of a good client
    /// may be slow.
    pub body_grace: Duration,
    /// How long a handler may work on one request. Hosts give up later than this, so our own
    /// message arrives instead of theirs.
    pub handler: Duration,
    /// How long a connection may wait between two requests. Longer than the pause between two
    /// tool calls of one conversation turn, so that keep-alive pays.
    pub idle: Duration,
    /// How long a connection with a request in flight may go without moving any part of an
    /// answer. Only a stuck handler or a reader that stopped reading gets here: where `body` and
    /// `handler` together or two SSE keep-alives are longer, those count instead.
    pub stall: Duration,
    /// How long a connection may take nothing of the answers that wait for it. Taking some of them begins the time
    /// anew, so a poor line gets its answer. Long enough for the kernel's buffer of a slow reader to drain so far
    /// that it takes more.
    pub unread: Duration,
    /// The same while half of `unread_bytes` is spent. Then taking a little is not enough either: what waits has to
    /// go within about sixteen times as long.
    pub unread_strained: Duration,
    /// The same while somebody waits for room in a spent budget: who has taken nothing for this long can be evicted,
    /// those who have waited longest first. Ten times as long where the budget is nearly spent and nobody waits.
    pub unread_full: Duration,
    /// How long an answer or a body waits for room in a spent budget while others are evicted.
    pub room_wait: Duration,
    /// How old a connection may become before it is closed after its current answers, so that
    /// load spreads again after a restart of one replica.
    pub age: Duration,
    /// How long an idle connection is kept after shutdown began, because a request may already
    /// be on its way.
    pub linger: Duration,
    /// How long shutdown waits for requests in flight before the rest is dropped. Common process
    /// managers kill after this time.
    pub shutdown: Duration,
    /// Connections at once. Each may hold one read buffer, so this bounds that memory too.
    pub connections: usize,
    /// Requests worked on at once. More would only queue behind the processors.
    pub in_flight: usize,
    /// Requests to one page of sign-in worked on at once, apart from `in_flight` and from the other pages: a flood on
    /// one leaves the others alone. More than may wait for documents of clients, so that slow hosts do not take them
    /// all; checking a password takes a processor for a while, so many more would only queue.
    pub sign_in_in_flight: usize,
    /// Bytes of answers that wait to be written, of all connections and transports together. A connection may hold
    /// a sixteenth of what is free of it, a verified caller half.
    pub unread_bytes: usize,
    /// Bytes of request heads and bodies that are still coming or being worked on, shared out in the same way.
    pub request_bytes: usize,
    /// Bodies over `big_body` parsed at once: JSON can grow a hundredfold in memory.
    pub big_parses: usize,
    /// From which size, in bytes, a body counts as big for `big_parses`.
    pub big_body: usize,
    /// Bytes of all request headers together. Tokens of 8 KiB with cookies fit twice.
    pub header_bytes: usize,
    /// Bytes of a request target. Nothing we serve needs a longer one.
    pub uri_bytes: usize,
    /// Concurrent HTTP/2 streams on one connection: more than a browser or a host has calls at once, few enough
    /// that one connection is not a crowd.
    pub h2_streams: u32,
    /// Bytes of one HTTP/2 header list, counted after decompression.
    pub h2_header_list: u32,
    /// HTTP/2 flow control window of a stream and of a connection, in bytes: what one peer can
    /// make us hold before a handler reads it.
    pub h2_window: u32,
    /// How often an HTTP/2 peer is pinged, to notice one that vanished without closing.
    pub h2_ping_every: Duration,
    /// How long an HTTP/2 peer may take to answer a ping.
    pub h2_ping_timeout: Duration,
    /// Bytes of any request body.
    pub body_bytes: usize,
    /// Bytes of the body of a request to sign-in. A client's registration with 4 KiB of addresses and all of
    /// its names fits, and so does a consent form that carries a request of 8 KiB.
    pub sign_in_bytes: usize,
    /// Bytes of the body of a `tools/call`. Arguments are questions and ids, not documents.
    pub call_bytes: usize,
    /// Nesting of a JSON body. Parsers recurse; real arguments stay under ten.
    pub json_depth: usize,
    /// Messages in one JSON-RPC batch of the revisions that had batches.
    pub batch: usize,
    /// Tool calls a minute of one verified caller, or of one user by the host's pseudonym; 0 for any
    /// number. A research loop makes a few a second, a runaway one hundreds.
    pub calls_per_minute: u32,
    /// How often an open SSE stream carries a comment, below the idle cut-off of common proxies.
    pub sse_keep_alive: Duration,
    /// Open listen streams in all.
    pub listen_streams: usize,
    /// Streams of the HTTP+SSE transport of one verified caller, and of one connection.
    pub streams_per_caller: usize,
    /// Requests of one such stream worked on at once, the next is told to come back; and of stdio, where it waits.
    /// Both are one conversation, which asks a few things at a time.
    pub stream_in_flight: usize,
    /// Bytes of one line on stdio. Larger than `body_bytes` because that peer is the user's own
    /// host.
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
    /// The same for a listener beside the server, such as one for metrics: its callers are few, and what they hold
    /// should add little to what the server itself may.
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
        // One connection alone holds a 17th.
        assert!(limits.request_bytes / 17 >= limits.body_bytes);
        assert!(limits.stream_in_flight < limits.in_flight);
    }
}
