//! Server process on a small corpus, and an HTTP client with keep-alive connections.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) struct LoadServer {
    child: Child,
    pub(crate) address: String,
    _folder: TempDir,
}

impl LoadServer {
    /// Starts the real binary on a folder of three documents and waits until they are indexed.
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("a", "The harbour wall."),
            ("b", "A harbour fee."),
            ("c", "Barley."),
        ] {
            std::fs::write(folder.path().join(format!("{name}.md")), text).unwrap();
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_docent"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .arg(folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines
            .find_map(|line| {
                line.ok()?
                    .strip_prefix("listening on http://")
                    .map(str::to_owned)
            })
            .expect("the server did not print its address");
        // Keeps draining stderr, or the server would block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let server = Self {
            child,
            address,
            _folder: folder,
        };
        server.ready().await;
        server
    }

    async fn ready(&self) {
        for _ in 0..600 {
            let mut connection = LoadConnection::open(&self.address).await;
            let answer = connection
                .send("GET /readyz HTTP/1.1", "")
                .await
                .expect("a response");
            if answer.body.contains(r#""ready":true"#) && answer.body.contains(r#""documents":3"#) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the server did not become ready");
    }

    pub(crate) fn memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").trim().parse().unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    pub(crate) async fn exited(&mut self) -> ExitStatus {
        for _ in 0..1_000 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        panic!("the server did not end");
    }
}

impl Drop for LoadServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct LoadReply {
    pub(crate) body: String,
    /// Whether the response has `Connection: close`.
    pub(crate) closes: bool,
}

pub(crate) struct LoadConnection {
    stream: TcpStream,
    host: String,
}

impl LoadConnection {
    pub(crate) async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self {
            stream,
            host: address.to_owned(),
        }
    }

    pub(crate) async fn post(&mut self, body: &str) -> Result<LoadReply, String> {
        self.send("POST /mcp HTTP/1.1", body).await
    }

    pub(crate) async fn send(&mut self, line: &str, body: &str) -> Result<LoadReply, String> {
        let request = format!(
            "{line}\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream
            .write_all(request.as_bytes())
            .await
            .map_err(|e| format!("write failed: {e}"))?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<LoadReply, String> {
        let mut received = Vec::new();
        let mut chunk = [0; 16 * 1024];
        loop {
            if let Some(answer) = parse_reply(&received) {
                return Ok(answer);
            }
            match self.stream.read(&mut chunk).await {
                Ok(0) => {
                    return Err(format!(
                        "connection closed after {} bytes of a response",
                        received.len()
                    ));
                }
                Ok(count) => received.extend_from_slice(&chunk[..count]),
                Err(error) => {
                    return Err(format!(
                        "read failed after {} bytes: {error}",
                        received.len()
                    ));
                }
            }
        }
    }
}

/// Parses a response once its head and the `Content-Length` bytes of its body have arrived.
fn parse_reply(received: &[u8]) -> Option<LoadReply> {
    let text = std::str::from_utf8(received).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let head = head.to_ascii_lowercase();
    let length: usize = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))?
        .trim()
        .parse()
        .ok()?;
    let body = body.get(..length)?.to_owned();
    Some(LoadReply {
        body,
        closes: head.contains("\r\nconnection: close"),
    })
}
