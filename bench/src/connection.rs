//! Turns one keep-alive connection into answers: post a body, read the whole answer, within a deadline.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::question::{Accept, PROTOCOL_VERSION};
use crate::target::Target;

/// The longest wait for one answer. A slower server is broken, not slow.
pub const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// The largest answer that is read.
pub const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// One open HTTP/1.1 connection.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    target: Target,
    accept: Accept,
}

/// One complete answer.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The `Content-Type`, empty when there is none.
    pub content_type: String,
    /// The whole body.
    pub body: Bytes,
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
        let (sender, driver) = handshake(TokioIo::new(stream)).await?;
        // The driver ends by itself when `sender` is dropped or the server hangs up; `ask` reports
        // the failure, so the driver's own result says nothing new.
        tokio::spawn(driver);
        Ok(Self {
            sender,
            target: target.clone(),
            accept,
        })
    }

    /// Posts `body` and reads the whole answer.
    ///
    /// # Errors
    /// When the connection breaks, the answer is too large or the deadline passes.
    pub async fn ask(&mut self, body: Bytes) -> anyhow::Result<Answer> {
        let request = Request::post(self.target.path())
            .header(HOST, self.target.address().to_string())
            .header(ACCEPT, self.accept.header())
            .header(CONTENT_TYPE, "application/json")
            .header("mcp-protocol-version", PROTOCOL_VERSION)
            .body(Full::new(body))?;
        timeout(ANSWER_DEADLINE, self.exchange(request))
            .await
            .context("no answer in time")?
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<Answer> {
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        let content_type = head
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("cannot read the answer: {error}"))?;
        Ok(Answer {
            status: head.status,
            content_type,
            body: body.to_bytes(),
        })
    }
}
