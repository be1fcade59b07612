//! A mock token issuer on loopback that counts its requests by path, and how many of them run concurrently.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::wire::read_request;

/// A request that the issuer received.
pub(crate) struct Question {
    pub(crate) path: String,
    pub(crate) body: String,
}

/// The request counters of the issuer.
#[derive(Default)]
struct Log {
    paths: Vec<String>,
    at_once: usize,
    most_at_once: usize,
}

/// The mock issuer. Each request has a thread of its own, so that slow answers overlap.
pub(crate) struct FakeIssuer {
    /// The base URL, which is also the `iss` of its tokens.
    pub(crate) name: String,
    log: Arc<Mutex<Log>>,
}

impl FakeIssuer {
    /// Starts an issuer whose answers come from a closure, by its name and the request; `None` becomes a 404.
    pub(crate) fn start(
        answer: impl Fn(&str, &Question) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = format!("http://{}", listener.local_addr().unwrap());
        let log: Arc<Mutex<Log>> = Arc::default();
        let (shared, kept) = (Arc::new((name.clone(), answer)), Arc::clone(&log));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (shared, log) = (Arc::clone(&shared), Arc::clone(&kept));
                std::thread::spawn(move || {
                    let Some(question) = question(&stream) else {
                        return;
                    };
                    log.lock().unwrap().begin(&question.path);
                    let found = (shared.1)(&shared.0, &question);
                    // Counted down before the answer is sent, because its receiver may send the next request
                    // immediately.
                    log.lock().unwrap().at_once -= 1;
                    reply(stream, found.as_ref());
                });
            }
        });
        Self { name, log }
    }

    /// The number of requests for a path.
    pub(crate) fn asked(&self, path: &str) -> usize {
        let log = self.log.lock().unwrap();
        log.paths.iter().filter(|asked| *asked == path).count()
    }

    /// The number of requests in flight.
    pub(crate) fn at_once(&self) -> usize {
        self.log.lock().unwrap().at_once
    }

    pub(crate) fn most_at_once(&self) -> usize {
        self.log.lock().unwrap().most_at_once
    }
}

impl Log {
    fn begin(&mut self, path: &str) {
        self.paths.push(path.to_owned());
        self.at_once += 1;
        self.most_at_once = self.most_at_once.max(self.at_once);
    }
}

fn question(stream: &TcpStream) -> Option<Question> {
    let request = read_request(stream)?;
    Some(Question {
        path: request.path,
        body: String::from_utf8(request.body).ok()?,
    })
}

fn reply(mut stream: TcpStream, found: Option<&Value>) {
    let status = if found.is_some() { 200 } else { 404 };
    let body = found.map(Value::to_string).unwrap_or_default();
    // Errors are ignored, because the client may have disconnected.
    let _ = write!(
        stream,
        "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_secs()
}

/// The public URL of the server under attack, and thus the base of its token audience.
pub(crate) const PUBLIC: &str = "https://docs.example.org";

/// The claims of a valid token of this issuer.
pub(crate) fn claims(issuer: &str) -> Value {
    json!({
        "iss": issuer, "sub": "anna", "aud": format!("{PUBLIC}/mcp"), "iat": now(),
        "exp": now() + 3_600, "scope": "docs.read",
    })
}
