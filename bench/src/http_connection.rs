//! A minimal HTTP/1.1 client on one keep-alive connection: it posts a body and reads the whole response, within a
//! deadline.
//!
//! It writes and parses HTTP itself. A client library would need about as much processor time for each response as the
//! fastest server here, so the benchmark would measure the library.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::{Buf, Bytes, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::benchmark_request::{AcceptHeader, PROTOCOL_VERSION};
use crate::loopback_target::LoopbackTarget;

/// The longest wait for one response. A server that takes longer counts as broken.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest response body that is read.
pub const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// The largest status line and headers that are read.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// One open HTTP/1.1 connection.
#[derive(Debug)]
pub struct HttpConnection {
    stream: TcpStream,
    /// The start of every request, up to the value of `Content-Length`.
    request_head: String,
    /// The current request; kept so that its memory is reused.
    request: Vec<u8>,
    /// Bytes that were received but not parsed yet.
    buffer: BytesMut,
}

/// A complete response.
#[derive(Debug)]
pub struct HttpResponse {
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type`, or an empty text if there is none.
    pub content_type: String,
    /// The whole body.
    pub body: Bytes,
}

/// The parsed status line and headers of a response, as far as they describe its body.
#[derive(Debug, PartialEq, Eq)]
struct ResponseHead {
    /// The length of the head itself.
    bytes: usize,
    status: u16,
    content_type: String,
    /// The `Content-Length`; absent for a chunked body.
    length: Option<usize>,
}

impl HttpConnection {
    /// Connects to `target`.
    ///
    /// # Errors
    /// When nothing listens there, or the connection is not established in time.
    pub async fn open(target: &LoopbackTarget, accept: AcceptHeader) -> anyhow::Result<Self> {
        let stream = timeout(RESPONSE_TIMEOUT, TcpStream::connect(target.address())).await??;
        // With Nagle's algorithm, the second small packet of a request may wait for the server's delayed
        // acknowledgement, and every server would look 40 ms slow.
        stream.set_nodelay(true)?;
        let request_head = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\naccept: {}\r\ncontent-type: application/json\r\n\
             mcp-protocol-version: {PROTOCOL_VERSION}\r\ncontent-length: ",
            target.path(),
            target.address(),
            accept.header(),
        );
        Ok(Self {
            stream,
            request_head,
            request: Vec::new(),
            buffer: BytesMut::new(),
        })
    }

    /// Posts `body` and reads the whole response.
    ///
    /// # Errors
    /// When the connection breaks, the response is too large or the deadline passes.
    pub async fn post(&mut self, body: &[u8]) -> anyhow::Result<HttpResponse> {
        self.request.clear();
        self.request.extend_from_slice(self.request_head.as_bytes());
        write!(self.request, "{}\r\n\r\n", body.len())?;
        self.request.extend_from_slice(body);
        timeout(RESPONSE_TIMEOUT, self.exchange())
            .await
            .context("no response in time")?
    }

    async fn exchange(&mut self) -> anyhow::Result<HttpResponse> {
        self.stream.write_all(&self.request).await?;
        let head = loop {
            if let Some(head) = parse_head(&self.buffer)? {
                break head;
            }
            self.fill_buffer().await?;
        };
        self.buffer.advance(head.bytes);
        let body = match head.length {
            Some(length) => self.read_exact(length).await?,
            None => self.read_chunked().await?,
        };
        Ok(HttpResponse {
            status: head.status,
            content_type: head.content_type,
            body,
        })
    }

    async fn read_exact(&mut self, length: usize) -> anyhow::Result<Bytes> {
        ensure!(
            length <= MAX_BODY_BYTES,
            "the response body has {length} bytes"
        );
        while self.buffer.len() < length {
            self.fill_buffer().await?;
        }
        Ok(self.buffer.split_to(length).freeze())
    }

    async fn read_chunked(&mut self) -> anyhow::Result<Bytes> {
        let mut body = BytesMut::new();
        loop {
            let line = loop {
                match memmem::find(&self.buffer, b"\r\n") {
                    Some(end) => break self.buffer.split_to(end + 2),
                    None => self.fill_buffer().await?,
                }
            };
            let size = std::str::from_utf8(&line)?.trim();
            let size = usize::from_str_radix(size.split(';').next().unwrap_or_default(), 16)?;
            let chunk = self.read_exact(size + 2).await?;
            if size == 0 {
                return Ok(body.freeze());
            }
            ensure!(
                body.len() + size <= MAX_BODY_BYTES,
                "the response body is too large"
            );
            body.extend_from_slice(chunk.get(..size).unwrap_or_default());
        }
    }

    async fn fill_buffer(&mut self) -> anyhow::Result<()> {
        self.buffer.reserve(16 * 1024);
        ensure!(
            self.stream.read_buf(&mut self.buffer).await? > 0,
            "the server closed the connection"
        );
        Ok(())
    }
}

/// Parses the head of a response; `None` if it is not complete yet.
fn parse_head(received: &[u8]) -> anyhow::Result<Option<ResponseHead>> {
    let Some(end) = memmem::find(received, b"\r\n\r\n") else {
        ensure!(
            received.len() <= MAX_HEAD_BYTES,
            "the response head is too large"
        );
        return Ok(None);
    };
    let text = std::str::from_utf8(received.get(..end).unwrap_or_default())?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let mut head = ResponseHead {
        bytes: end + 4,
        status: status.context("no status line")?.parse()?,
        content_type: String::new(),
        length: None,
    };
    let mut chunked = false;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            head.length = Some(value.parse()?);
        } else if name.eq_ignore_ascii_case("content-type") {
            head.content_type = value.to_owned();
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = value.eq_ignore_ascii_case("chunked");
        }
    }
    if head.length.is_none() && !chunked {
        bail!("the response has neither a length nor chunks");
    }
    Ok(Some(head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// Sends `response` to one request, in pieces of three bytes, and reads it.
    async fn read_response(response: &'static [u8]) -> anyhow::Result<HttpResponse> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target: LoopbackTarget = format!("http://{}/mcp", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            for piece in response.chunks(3) {
                stream.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        HttpConnection::open(&target, AcceptHeader::Json)
            .await
            .unwrap()
            .post(b"{}")
            .await
    }

    #[tokio::test]
    async fn bodies_of_known_length_and_in_chunks_are_read() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 5\r\n\r\nhello";
        let chunked = b"HTTP/1.1 201 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n";
        let one = read_response(plain).await.unwrap();
        assert_eq!(
            (one.status, one.content_type.as_str(), &one.body[..]),
            (200, "text/x", &b"hello"[..])
        );
        let two = read_response(chunked).await.unwrap();
        assert_eq!((two.status, &two.body[..]), (201, &b"hello"[..]));
    }

    #[tokio::test]
    async fn malformed_and_oversized_responses_are_errors() {
        let long: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 8388609\r\n\r\n";
        for response in [
            &b"HTTP/1.1 200 OK\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
            b"nonsense\r\n\r\n",
            long,
        ] {
            assert!(
                read_response(response).await.is_err(),
                "{}",
                String::from_utf8_lossy(response)
            );
        }
    }
}
