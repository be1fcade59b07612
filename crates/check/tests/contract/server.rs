//! A server of one connection after another on this machine, which records what it is asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// One request as it arrived.
#[derive(Clone)]
pub(crate) struct Call {
    pub verb: String,
    pub headers: Vec<(String, String)>,
    /// The JSON of the body; null where there is none.
    pub body: Value,
}

impl Call {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }
}

/// What is sent back.
pub(crate) struct Reply {
    head: String,
    body: String,
    then: Then,
}

/// What follows the body.
#[derive(PartialEq)]
enum Then {
    Close,
    /// The connection stays until the client has enough of it.
    Wait,
    /// More of the same until the client has enough of it.
    Repeat,
}

impl Reply {
    pub(crate) fn json(message: &Value) -> Self {
        Self::raw("application/json; charset=utf-8", &message.to_string())
    }

    pub(crate) fn events(messages: &[Value]) -> Self {
        let events: String = messages
            .iter()
            .map(|message| format!("event: message\ndata: {message}\n\n"))
            .collect();
        Self::raw("text/event-stream", &events)
    }

    pub(crate) fn raw(content_type: &str, body: &str) -> Self {
        Self {
            head: format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n"),
            body: body.to_owned(),
            then: Then::Close,
        }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self {
            head: format!("HTTP/1.1 {status} X\r\n"),
            body: String::new(),
            then: Then::Close,
        }
    }

    pub(crate) fn silence() -> Self {
        Self {
            head: String::new(),
            body: String::new(),
            then: Then::Wait,
        }
    }

    pub(crate) fn endless(content_type: &str) -> Self {
        let body = " ".repeat(64 * 1024);
        Self {
            then: Then::Repeat,
            ..Self::raw(content_type, &body)
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub(crate) fn left_open(mut self) -> Self {
        self.then = Then::Wait;
        self
    }

    /// Sends the reply. A client that has enough closes the connection, and that ends the sending.
    fn send(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        if !self.head.is_empty() {
            // Bodies of unknown length end with the connection.
            let length = if self.then == Then::Close {
                format!("Content-Length: {}\r\n", self.body.len())
            } else {
                String::new()
            };
            write!(
                stream,
                "{}{length}Connection: close\r\n\r\n{}",
                self.head, self.body
            )?;
        }
        match self.then {
            Then::Close => Ok(()),
            Then::Wait => stream.read(&mut [0]).map(drop),
            Then::Repeat => loop {
                stream.write_all(self.body.as_bytes())?;
            },
        }
    }
}

/// A running server. It ends with the test's process.
pub(crate) struct Server {
    pub url: String,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Server {
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Starts a server that answers every request with what `reply` makes of it.
pub(crate) fn serve(reply: impl Fn(&Call) -> Reply + Send + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let calls = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&calls);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let Some(call) = read_call(&stream) else {
                continue;
            };
            log.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(call.clone());
            // The client may hang up at any time.
            let _ = reply(&call).send(&mut stream);
        }
    });
    Server { url, calls }
}

fn read_call(stream: &TcpStream) -> Option<Call> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let verb = line.split(' ').next()?.to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut call = Call {
        verb,
        headers,
        body: Value::Null,
    };
    let length = call
        .header("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    call.body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(call)
}
