//! Test server and raw TCP clients for the connection layer: HTTP/1.1 as text and HTTP/2 as frames, without a
//! client library that would repair what a test breaks on purpose.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use docent_mcp::http::limits::HttpLimits;
use docent_mcp::http::{ServerTls, accept};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Upper bound on every wait, so that a hung test fails instead of blocking the suite. No test measures speed with it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Deadline short enough for a test to wait until it expires.
pub(crate) const SHORT: Duration = Duration::from_millis(150);

/// Deadline that no test reaches, which disables a limit.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// Limits with every deadline disabled. A test overrides the single limit that it is about.
pub(crate) fn patient() -> HttpLimits {
    HttpLimits {
        first_byte: NEVER,
        headers: NEVER,
        body: NEVER,
        idle: NEVER,
        stall: NEVER,
        age: NEVER,
        shutdown: NEVER,
        linger: Duration::from_millis(100),
        ..HttpLimits::default()
    }
}

/// Awaits an event that must happen, and panics with its name after [`PATIENCE`].
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} did not happen"),
    }
}

pub(crate) struct AcceptServer {
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) served: JoinHandle<std::io::Result<()>>,
}

impl AcceptServer {
    pub(crate) async fn start(limits: HttpLimits, router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, limits, router)
    }

    pub(crate) fn on(listener: TcpListener, limits: HttpLimits, router: Router) -> Self {
        Self::with_tls(listener, limits, router, None)
    }

    pub(crate) fn with_tls(
        listener: TcpListener,
        limits: HttpLimits,
        router: Router,
        tls: Option<ServerTls>,
    ) -> Self {
        let stop = CancellationToken::new();
        let address = listener.local_addr().unwrap();
        let serving = accept::serve(listener, router, Arc::new(limits), tls, stop.clone());
        Self {
            address,
            stop,
            served: tokio::spawn(serving),
        }
    }

    pub(crate) async fn client(&self) -> RawClient {
        RawClient::new(TcpStream::connect(self.address).await.unwrap())
    }

    /// Awaits the end of the accept loop, which must return without an error.
    pub(crate) async fn stopped(self) {
        soon("the end of serving", self.served)
            .await
            .unwrap()
            .unwrap();
    }
}

/// One HTTP/1.1 response as it came over the wire.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl RawResponse {
    pub(crate) fn closes(&self) -> bool {
        self.head
            .to_ascii_lowercase()
            .contains("\r\nconnection: close\r\n")
    }
}

pub(crate) struct RawClient {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
}

impl RawClient {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    pub(crate) async fn get(&mut self, path: &str) -> RawResponse {
        self.send(get(path)).await;
        self.answer().await.expect("an answer")
    }

    /// Reads more bytes into the buffer. Returns false at the end of the connection.
    pub(crate) async fn more(&mut self) -> bool {
        let mut piece = [0; 4096];
        // A reset counts as the end: the connection is closed either way.
        let count = soon(
            "more bytes or the end of the connection",
            self.stream.read(&mut piece),
        )
        .await
        .unwrap_or(0);
        self.unread.extend_from_slice(&piece[..count]);
        count > 0
    }

    /// Reads the next response with its body. Returns `None` when the connection ended first.
    pub(crate) async fn answer(&mut self) -> Option<RawResponse> {
        let end = loop {
            if let Some(at) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.more().await {
                return None;
            }
        };
        let head = String::from_utf8(self.unread.drain(..end).collect()).unwrap();
        let length = head
            .to_ascii_lowercase()
            .split_once("content-length: ")
            .map(|(_, rest)| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
        while self.unread.len() < length.unwrap_or(0) {
            assert!(self.more().await, "the connection ended in a body: {head}");
        }
        let body = self.unread.drain(..length.unwrap_or(0)).collect();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Some(RawResponse {
            status,
            head,
            body: String::from_utf8(body).unwrap(),
        })
    }

    /// Reads everything until the connection ends.
    pub(crate) async fn rest(mut self) -> String {
        while self.more().await {}
        String::from_utf8_lossy(&self.unread).into_owned()
    }

    /// Awaits the close of the connection and asserts that no byte came before it.
    pub(crate) async fn closed_silently(self) {
        assert_eq!(self.rest().await, "");
    }

    /// Sends one byte at a time, as a Slowloris attack does, until the server closes the connection.
    pub(crate) async fn trickle(mut self, byte: u8) {
        let mut piece = [0; 64];
        let trickling = async {
            loop {
                let pause =
                    tokio::time::timeout(Duration::from_millis(5), self.stream.read(&mut piece));
                match pause.await {
                    Ok(Ok(0) | Err(_)) => return,
                    Ok(Ok(_)) => continue,
                    Err(_) => {}
                }
                if self.stream.write_all(&[byte]).await.is_err() {
                    return;
                }
            }
        };
        soon("the end of a trickling connection", trickling).await;
    }
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

pub(crate) fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// HTTP/2 (RFC 9113) written out in frames, so that a test controls each byte.
pub(crate) mod h2 {
    use super::{AsyncReadExt, AsyncWriteExt, RawClient, soon};

    pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RESET: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;

    #[derive(Debug, PartialEq, Eq)]
    pub(crate) struct H2Frame {
        pub(crate) kind: u8,
        pub(crate) flags: u8,
        pub(crate) stream: u32,
        pub(crate) payload: Vec<u8>,
    }

    pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut bytes = length[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    fn literal(name: u8, value: &str) -> Vec<u8> {
        // HPACK literal without indexing; the name is its index in the static table.
        let mut bytes = if name < 15 {
            vec![name]
        } else {
            vec![15, name - 15]
        };
        bytes.push(u8::try_from(value.len()).unwrap());
        bytes.extend(value.as_bytes());
        bytes
    }

    /// `GET path` with an `:authority` and an optional `host` header, in one HEADERS frame that ends the stream.
    pub(crate) fn get(stream: u32, path: &str, authority: &str, host: Option<&str>) -> Vec<u8> {
        let mut block = vec![0x82, 0x86];
        block.extend(literal(4, path));
        block.extend(literal(1, authority));
        if let Some(host) = host {
            block.extend(literal(38, host));
        }
        frame(HEADERS, 0b101, stream, &block)
    }

    /// Header block of a `GET /` with this many fields of one byte each, and a body that never comes (an HPACK bomb).
    /// The first block of a connection adds the field to the dynamic table; later ones refer to it.
    pub(crate) fn packed(stream: u32, fields: usize) -> Vec<u8> {
        let mut block = vec![0x82, 0x86];
        block.extend(literal(4, "/"));
        block.extend(literal(1, "localhost"));
        let taught = if stream == 1 {
            // Adds `a` with an empty value to the dynamic table.
            block.extend([0x40, 1, b'a', 0]);
            1
        } else {
            0
        };
        block.extend(vec![0xbe; fields - taught]);
        frame(HEADERS, 0b100, stream, &block)
    }

    impl RawClient {
        pub(crate) async fn send_preface(&mut self) {
            self.send(PREFACE).await;
            self.send(frame(SETTINGS, 0, 0, &[])).await;
        }

        /// Reads the next frame. Returns `None` at the end of the connection.
        pub(crate) async fn frame(&mut self) -> Option<H2Frame> {
            let mut head = [0; 9];
            soon("a frame", self.stream.read_exact(&mut head))
                .await
                .ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let mut payload = vec![0; length];
            soon("a payload", self.stream.read_exact(&mut payload))
                .await
                .ok()?;
            Some(H2Frame {
                kind: head[3],
                flags: head[4],
                stream,
                payload,
            })
        }

        /// Reads up to the next frame of this kind, and acknowledges SETTINGS and PING as a correct peer does.
        pub(crate) async fn frame_of(&mut self, kind: u8) -> Option<H2Frame> {
            loop {
                let next = self.frame().await?;
                if matches!(next.kind, SETTINGS | PING) && next.flags & 1 == 0 {
                    let payload = if next.kind == PING {
                        next.payload.clone()
                    } else {
                        vec![]
                    };
                    // The server may have closed the connection after its last frame.
                    let _ = self
                        .stream
                        .write_all(&frame(next.kind, 1, 0, &payload))
                        .await;
                }
                if next.kind == kind {
                    return Some(next);
                }
            }
        }

        /// Reads all frames until the connection ends, and acknowledges none of them.
        pub(crate) async fn closed(mut self) {
            while self.frame().await.is_some() {}
        }
    }
}

/// Sends a message when it is dropped, which shows that the handler or the response was released.
pub(crate) struct DropSignal(pub(crate) tokio::sync::mpsc::UnboundedSender<()>);

impl Drop for DropSignal {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}
