//! Turns one keep-alive connection into answers: post a body, read the whole answer, within a deadline.
//!
//! It speaks HTTP/1.1 by hand. A client library costs about as much for each answer as the fastest
//! server here, and would measure itself.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::{Buf, Bytes, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::question::{Accept, PROTOCOL_VERSION};
use crate::target::Target;

/// The longest wait for one answer. A slower server is broken, not slow.
pub const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// The largest answer that is read.
pub const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// The largest head of an answer.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// One open HTTP/1.1 connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// What every request begins with, up to the length of its body.
    head: String,
    request: Vec<u8>,
    seen: BytesMut,
}

/// One complete answer.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type`, empty when there is none.
    pub content_type: String,
    /// The whole body.
    pub body: Bytes,
}

/// What the head of an answer says about its body.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    bytes: usize,
    status: u16,
    content_type: String,
    /// Absent for a body in chunks.
    length: Option<usize>,
}

impl Connection {
    /// Connects to `target`.
    ///
    /// # Errors
    /// When nothing listens there, or not within the deadline.
    pub async fn open(target: &Target, accept: Accept) -> anyhow::Result<Self> {
        let stream = timeout(ANSWER_DEADLINE, TcpStream::connect(target.address())).await??;
        // Without this the second small packet of a request may wait for the server's delayed
        // acknowledgement, and every server would look 40 ms slow.
        stream.set_nodelay(true)?;
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\naccept: {}\r\ncontent-type: application/json\r\n\
             mcp-protocol-version: {PROTOCOL_VERSION}\r\ncontent-length: ",
            target.path(),
            target.address(),
            accept.header(),
        );
        Ok(Self {
            stream,
            head,
            request: Vec::new(),
            seen: BytesMut::new(),
        })
    }

    /// Posts `body` and reads the whole answer.
    ///
    /// # Errors
    /// When the connection breaks, the answer is too large or the deadline passes.
    pub async fn ask(&mut self, body: &[u8]) -> anyhow::Result<Answer> {
        self.request.clear();
        self.request.extend_from_slice(self.head.as_bytes());
        write!(self.request, "{}\r\n\r\n", body.len())?;
        self.request.extend_from_slice(body);
        timeout(ANSWER_DEADLINE, self.exchange())
            .await
            .context("no answer in time")?
    }

    async fn exchange(&mut self) -> anyhow::Result<Answer> {
        self.stream.write_all(&self.request).await?;
        let head = loop {
            if let Some(head) = parse_head(&self.seen)? {
                break head;
            }
            self.more().await?;
        };
        self.seen.advance(head.bytes);
        let body = match head.length {
            Some(length) => self.take(length).await?,
            None => self.chunks().await?,
        };
        Ok(Answer {
            status: head.status,
            content_type: head.content_type,
            body,
        })
    }

    async fn take(&mut self, length: usize) -> anyhow::Result<Bytes> {
        ensure!(length <= MAX_ANSWER_BYTES, "an answer of {length} bytes");
        while self.seen.len() < length {
            self.more().await?;
        }
        Ok(self.seen.split_to(length).freeze())
    }

    async fn chunks(&mut self) -> anyhow::Result<Bytes> {
        let mut body = BytesMut::new();
        loop {
            let line = loop {
                match memmem::find(&self.seen, b"\r\n") {
                    Some(end) => break self.seen.split_to(end + 2),
                    None => self.more().await?,
                }
            };
            let size = std::str::from_utf8(&line)?.trim();
            let size = usize::from_str_radix(size.split(';').next().unwrap_or_default(), 16)?;
            let chunk = self.take(size + 2).await?;
            if size == 0 {
                return Ok(body.freeze());
            }
            ensure!(
                body.len() + size <= MAX_ANSWER_BYTES,
                "an answer without end"
            );
            body.extend_from_slice(chunk.get(..size).unwrap_or_default());
        }
    }

    async fn more(&mut self) -> anyhow::Result<()> {
        self.seen.reserve(16 * 1024);
        ensure!(
            self.stream.read_buf(&mut self.seen).await? > 0,
            "the server hung up"
        );
        Ok(())
    }
}

/// The head of an answer, once it is there.
fn parse_head(seen: &[u8]) -> anyhow::Result<Option<Head>> {
    let Some(end) = memmem::find(seen, b"\r\n\r\n") else {
        ensure!(seen.len() <= MAX_HEAD_BYTES, "a head without end");
        return Ok(None);
    };
    let text = std::str::from_utf8(seen.get(..end).unwrap_or_default())?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let mut head = Head {
        bytes: end + 4,
        status: status.context("no status")?.parse()?,
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
        bail!("the answer does not say how long it is");
    }
    Ok(Some(head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// Gives `said` for one request, in pieces of three bytes.
    async fn answer(said: &'static [u8]) -> anyhow::Result<Answer> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target: Target = format!("http://{}/mcp", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut seen = [0; 1024];
            let _ = stream.read(&mut seen).await;
            for piece in said.chunks(3) {
                stream.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        Connection::open(&target, Accept::Json)
            .await
            .unwrap()
            .ask(b"{}")
            .await
    }

    #[tokio::test]
    async fn bodies_of_known_length_and_in_chunks_are_read() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 5\r\n\r\nhello";
        let chunked = b"HTTP/1.1 201 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n";
        let one = answer(plain).await.unwrap();
        assert_eq!(
            (one.status, one.content_type.as_str(), &one.body[..]),
            (200, "text/x", &b"hello"[..])
        );
        let two = answer(chunked).await.unwrap();
        assert_eq!((two.status, &two.body[..]), (201, &b"hello"[..]));
    }

    #[tokio::test]
    async fn what_cannot_be_measured_is_an_error() {
        let long: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 8388609\r\n\r\n";
        for said in [
            &b"HTTP/1.1 200 OK\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
            b"nonsense\r\n\r\n",
            long,
        ] {
            assert!(
                answer(said).await.is_err(),
                "{}",
                String::from_utf8_lossy(said)
            );
        }
    }
}
