//! A mock HTTP server: one thread for each connection, and a closure that makes the reply.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// One request as the mock server received it.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedCall {
    pub verb: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub text: String,
    /// The parsed JSON of the body; null where it is not JSON.
    pub body: Value,
}

impl ReceivedCall {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// A reply, with what the server does after its body.
#[derive(Clone)]
pub(crate) struct CannedReply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub then: Then,
}

/// What the server does after it has sent the body.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Then {
    Close,
    /// Keeps the connection open until the client closes it.
    Wait,
    /// Repeats the body until the client closes the connection.
    Repeat,
    /// Sends nothing, not even a status line.
    Silence,
}

impl CannedReply {
    pub(crate) fn json(message: &Value) -> Self {
        Self::raw("application/json; charset=utf-8", &message.to_string())
    }

    pub(crate) fn events(messages: &[Value]) -> Self {
        let event = |message: &Value| format!("event: message\ndata: {message}\n\n");
        let events: String = messages.iter().map(event).collect();
        Self::raw("text/event-stream", &events)
    }

    pub(crate) fn raw(content_type: &str, body: &str) -> Self {
        Self {
            status: 200,
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            body: body.to_owned(),
            then: Then::Close,
        }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: String::new(),
            then: Then::Close,
        }
    }

    pub(crate) fn silence() -> Self {
        Self {
            then: Then::Silence,
            ..Self::status(200)
        }
    }

    pub(crate) fn endless(content_type: &str) -> Self {
        Self {
            then: Then::Repeat,
            ..Self::raw(content_type, &" ".repeat(64 * 1024))
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn coded(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn left_open(mut self) -> Self {
        self.then = Then::Wait;
        self
    }

    /// Sends the reply. A client that closes the connection ends an endless one.
    fn send(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        if self.then != Then::Silence {
            let mut head = format!("HTTP/1.1 {} X\r\n", self.status);
            for (name, value) in &self.headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            // Without `Content-Length`, the body ends with the connection.
            if self.then == Then::Close {
                head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
            }
            write!(stream, "{head}Connection: close\r\n\r\n{}", self.body)?;
        }
        match self.then {
            Then::Close => Ok(()),
            Then::Wait | Then::Silence => stream.read(&mut [0]).map(drop),
            Then::Repeat => loop {
                stream.write_all(self.body.as_bytes())?;
            },
        }
    }
}

/// A running mock server, which runs until the test process exits.
pub(crate) struct Server {
    pub url: String,
    calls: Arc<Mutex<Vec<ReceivedCall>>>,
}

impl Server {
    pub(crate) fn calls(&self) -> Vec<ReceivedCall> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.clone()
    }
}

/// How long the server waits for a slow client.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// The timeout for the rest of a request; `None` waits forever.
    pub headers: Option<Duration>,
}

/// Starts a server at `/mcp` that answers every request with `reply`.
pub(crate) fn serve(
    reply: impl Fn(&ReceivedCall) -> CannedReply + Send + Sync + 'static,
) -> Server {
    let patience = Patience {
        headers: Some(Duration::from_millis(100)),
    };
    serve_at("/mcp", patience, move |_, call| reply(call))
}

/// Starts a server at any path; the closure also gets the origin of the server.
pub(crate) fn serve_at(
    path: &str,
    patience: Patience,
    reply: impl Fn(&str, &ReceivedCall) -> CannedReply + Send + Sync + 'static,
) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let url = format!("{origin}{path}");
    let calls = Arc::new(Mutex::new(Vec::new()));
    let (log, reply) = (Arc::clone(&calls), Arc::new(reply));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let (log, reply, origin) = (Arc::clone(&log), Arc::clone(&reply), origin.clone());
            std::thread::spawn(move || {
                let Some(call) = read_call(&stream, patience) else {
                    return;
                };
                log.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(call.clone());
                // The client may hang up at any time.
                let _ = reply(&origin, &call).send(&mut stream);
            });
        }
    });
    Server { url, calls }
}

fn read_call(stream: &TcpStream, patience: Patience) -> Option<ReceivedCall> {
    stream.set_read_timeout(patience.headers).ok()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let verb = words.next()?.to_owned();
    let path = words.next()?.to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    stream.set_read_timeout(None).ok()?;
    let mut call = ReceivedCall {
        verb,
        path,
        headers,
        text: String::new(),
        body: Value::Null,
    };
    let length = call
        .header("content-length")
        .and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    call.text = String::from_utf8_lossy(&body).into_owned();
    call.body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(call)
}
