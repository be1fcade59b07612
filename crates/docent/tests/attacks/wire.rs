//! Raw HTTP clients for the attacks: they write bytes to real sockets, in HTTP/1 and HTTP/2, and can stop reading.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::{ServerProcess, TestDir};

/// The timeout of socket reads, which only ends a hanging test; it is not an expected duration.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn connect(server: &ServerProcess) -> TcpStream {
    let stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The head of a `POST` request with this `Content-Length`.
pub(crate) fn post_head(path: &str, kind: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\
         Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// Sends a JSON body, and returns the status and body of the answer.
pub(crate) fn post(server: &ServerProcess, path: &str, body: &str) -> (u16, String) {
    let mut stream = connect(server);
    let head = post_head(path, "application/json", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    answer(&mut BufReader::new(stream)).expect("an answer")
}

/// Reads the next answer: its status, and its body if it has a `Content-Length`.
pub(crate) fn answer(stream: &mut BufReader<TcpStream>) -> Option<(u16, String)> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((status, String::from_utf8(body).unwrap()))
}

pub(crate) fn call(tool: &str, arguments: &Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

/// An SSE stream of the HTTP+SSE transport of 2024. Only the address for messages is read; the caller decides about the
/// rest.
pub(crate) struct EventStream {
    pub(crate) stream: BufReader<TcpStream>,
    pub(crate) messages: String,
}

impl EventStream {
    /// Opens a stream and reads its address for messages.
    ///
    /// # Errors
    /// The status with which the server refuses.
    pub(crate) fn open(server: &ServerProcess) -> Result<Self, u16> {
        let mut stream = connect(server);
        let head = "GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        let status: u16 = line.split(' ').nth(1).unwrap().parse().unwrap();
        if status != 200 {
            return Err(status);
        }
        loop {
            let mut line = String::new();
            assert!(stream.read_line(&mut line).unwrap() > 0, "no address");
            if let Some(messages) = line.strip_prefix("data: ") {
                let messages = messages.trim().to_owned();
                return Ok(Self { stream, messages });
            }
        }
    }

    /// The data of the next message; `None` if the stream ended or only comments came before the timeout.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let mut line = String::new();
            if self.stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).ok();
            }
        }
        None
    }
}

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;

/// An HTTP/2 client with a flow-control window of zero, so that the server can send headers but no body.
pub(crate) struct MuteConnection {
    stream: TcpStream,
    next: u32,
    /// The ids of the HTTP/2 streams that have an answer.
    answered: BTreeSet<u32>,
}

impl MuteConnection {
    pub(crate) fn open(server: &ServerProcess) -> Self {
        let mut stream = connect(server);
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .unwrap();
        // Setting 4, SETTINGS_INITIAL_WINDOW_SIZE, is 0.
        let settings = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
        stream.write_all(&settings).unwrap();
        Self {
            stream,
            next: 1,
            answered: BTreeSet::new(),
        }
    }

    /// Sends a message without waiting for an answer.
    pub(crate) fn post(&mut self, body: &str) {
        let mut block = vec![0x83, 0x86];
        for (name, value) in [
            (4, "/mcp"),
            (1, "localhost"),
            (31, "application/json"),
            (19, "application/json"),
        ] {
            // HPACK literal without indexing, with the name as an index into the static table.
            if name < 15 {
                block.push(name);
            } else {
                block.extend([15, name - 15]);
            }
            block.push(u8::try_from(value.len()).unwrap());
            block.extend(value.as_bytes());
        }
        let mut bytes = frame(HEADERS, 4, self.next, &block);
        bytes.extend(frame(0, 1, self.next, body.as_bytes()));
        self.next += 2;
        // Errors are ignored, because the server may have closed the connection.
        let _ = self.stream.write_all(&bytes);
    }

    /// Whether the next answer has status 200. A request on a stream that the server refuses is answered with something
    /// else. `None` if the connection ended or only pings came before the timeout.
    pub(crate) fn answered(&mut self) -> Option<bool> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let mut payload = vec![0; length];
            self.stream.read_exact(&mut payload).ok()?;
            match head[3] {
                // 0x88 is `:status: 200` in the static table of HPACK.
                HEADERS => {
                    self.answered.insert(id);
                    return Some(payload.first() == Some(&0x88));
                }
                // One that is refused. An answer that is given up after its head has counted already.
                RST_STREAM if self.answered.insert(id) => return Some(false),
                SETTINGS | PING if head[4] & 1 == 0 => {
                    let payload = if head[3] == PING { payload } else { Vec::new() };
                    self.stream
                        .write_all(&frame(head[3], 1, 0, &payload))
                        .ok()?;
                }
                _ => {}
            }
        }
        None
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A memory value from `/proc/<pid>/status`, in bytes.
pub(crate) fn memory(server: &ServerProcess, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.unwrap().trim_start_matches(':').trim();
    number.trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Writes a document whose `fetch` answer has half a megabyte: characters of four bytes, each twice in the answer.
pub(crate) fn long_document(dir: &TestDir) {
    let sentence: String = ('\u{20000}'..'\u{20028}').collect();
    let text = format!("{sentence}. ").repeat(1_600);
    dir.write("docs/long.txt", &text);
}

/// A request as a test server received it.
pub(crate) struct ReceivedRequest {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
}

/// Reads one request with a `Content-Length`; `None` if the client hung up or sent something else.
pub(crate) fn read_request(stream: &TcpStream) -> Option<ReceivedRequest> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (verb, path) = (words.next()?, words.next()?);
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(ReceivedRequest { verb, path, body })
}
