//! Proxies for tests. A round-robin load balancer sends a request to the next backend, and retries it on another when a
//! backend gives no response. A byte counter forwards connections to one server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) struct LoadBalancer {
    port: u16,
    backends: Arc<Vec<u16>>,
}

impl LoadBalancer {
    /// Starts a balancer and reserves a free port for each backend; the test starts the backends on these ports.
    pub(crate) fn start(count: usize) -> Self {
        let taken: Vec<_> = (0..count)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let backends = taken
            .iter()
            .map(|one| one.local_addr().unwrap().port())
            .collect();
        drop(taken);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let balancer = Self {
            port: listener.local_addr().unwrap().port(),
            backends: Arc::new(backends),
        };
        let (backends, turn) = (balancer.backends.clone(), Arc::new(AtomicUsize::new(0)));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (backends, turn) = (backends.clone(), turn.clone());
                std::thread::spawn(move || serve(client, &backends, &turn));
            }
        });
        balancer
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn backends(&self) -> &[u16] {
        &self.backends
    }
}

/// Handles one request, and then closes the connection.
fn serve(mut client: TcpStream, backends: &[u16], turn: &AtomicUsize) {
    let Some((head, body)) = request(&client) else {
        return;
    };
    let first = turn.fetch_add(1, Ordering::Relaxed);
    for step in 0..backends.len() {
        let port = backends[(first + step) % backends.len()];
        if let Some(answer) = forward(port, &head, &body) {
            let _ = client.write_all(&answer);
            return;
        }
    }
    let _ = client
        .write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
}

/// Reads a request: its header lines without `Connection` and `Host`, and its body.
fn request(client: &TcpStream) -> Option<(Vec<String>, Vec<u8>)> {
    let mut reader = BufReader::new(client);
    let (mut head, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_owned();
        let lower = line.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if !lower.starts_with("connection:") && !lower.starts_with("host:") {
            head.push(line);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// Forwards a request to one backend. Returns `None` when the backend gives no response.
fn forward(port: u16, head: &[String], body: &[u8]) -> Option<Vec<u8>> {
    let mut server = TcpStream::connect(("127.0.0.1", port)).ok()?;
    server
        .set_read_timeout(Some(Duration::from_secs(30)))
        .ok()?;
    let head = head.join("\r\n");
    let head = format!("{head}\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n");
    server.write_all(head.as_bytes()).ok()?;
    server.write_all(body).ok()?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).ok()?;
    answer.starts_with(b"HTTP/1.1 ").then_some(answer)
}

/// Forwards connections to one server, and counts the bytes that come back.
pub(crate) struct ByteCounter {
    port: u16,
    received: Arc<AtomicU64>,
}

impl ByteCounter {
    /// Starts in front of a server at an `http` address.
    pub(crate) fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let counter = Self {
            port: listener.local_addr().unwrap().port(),
            received: Arc::default(),
        };
        let server = server.trim_start_matches("http://").to_owned();
        let received = counter.received.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&server) else {
                    continue;
                };
                let (to_client, to_server) = (client.try_clone(), server.try_clone());
                let received = received.clone();
                std::thread::spawn(move || pipe(server, to_client.unwrap(), Some(&received)));
                std::thread::spawn(move || pipe(client, to_server.unwrap(), None));
            }
        });
        counter
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The bytes that the server sent so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::SeqCst)
    }
}

/// Forwards one direction of a connection until its end.
fn pipe(mut from: TcpStream, mut to: TcpStream, counted: Option<&AtomicU64>) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        if let Some(counted) = counted {
            counted.fetch_add(length as u64, Ordering::SeqCst);
        }
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}
