//! A server process on a small corpus, and a client that keeps its connection.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    _folder: TempDir,
}

impl Server {
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
            .expect("the server says where it listens");
        // Somebody must go on reading, or the server would wait to be heard.
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
            let mut connection = Connection::open(&self.address).await;
            let answer = connection
                .send("GET /readyz HTTP/1.1", "")
                .await
                .expect("an answer");
            if answer.body.contains(r#""ready":true"#) && answer.body.contains(r#""documents":3"#) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the server never got ready");
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

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Answer {
    pub(crate) body: String,
    /// The server said that this connection ends here.
    pub(crate) closes: bool,
}

pub(crate) struct Connection {
    stream: TcpStream,
    host: String,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self {
            stream,
            host: address.to_owned(),
        }
    }

    pub(crate) async fn post(&mut self, body: &str) -> Result<Answer, String> {
        self.send("POST /mcp HTTP/1.1", body).await
    }

    pub(crate) async fn send(&mut self, line: &str, body: &str) -> Result<Answer, String> {
        let request = format!(
            "{line}\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream
            .write_all(request.as_bytes())
            .await
            .map_err(|e| format!("not sent: {e}"))?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<Answer, String> {
        let mut seen = Vec::new();
        let mut chunk = [0; 16 * 1024];
        loop {
            if let Some(answer) = whole(&seen) {
                return Ok(answer);
            }
            match self.stream.read(&mut chunk).await {
                Ok(0) => return Err(format!("closed after {} bytes of an answer", seen.len())),
                Ok(count) => seen.extend_from_slice(&chunk[..count]),
                Err(error) => return Err(format!("broken after {} bytes: {error}", seen.len())),
            }
        }
    }
}

/// An answer, once its head and the length that the head names are there.
fn whole(seen: &[u8]) -> Option<Answer> {
    let text = std::str::from_utf8(seen).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let head = head.to_ascii_lowercase();
    let length: usize = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))?
        .trim()
        .parse()
        .ok()?;
    let body = body.get(..length)?.to_owned();
    Some(Answer {
        body,
        closes: head.contains("\r\nconnection: close"),
    })
}
