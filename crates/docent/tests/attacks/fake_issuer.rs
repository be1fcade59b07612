//! An issuer on this machine that keeps count of what it is asked, and of how much of it at once.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::wire::read_request;

/// One request to the issuer.
pub(crate) struct Question {
    pub(crate) path: String,
    pub(crate) body: String,
}

/// What was asked so far.
#[derive(Default)]
struct Log {
    paths: Vec<String>,
    at_once: usize,
    most_at_once: usize,
}

/// Answers each question in a thread of its own, so that slow answers overlap.
pub(crate) struct FakeIssuer {
    /// Its address, which is its name.
    pub(crate) name: String,
    log: Arc<Mutex<Log>>,
}

impl FakeIssuer {
    /// Answers with what a closure makes of its name and the question; nothing is a 404.
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
                    // Before the answer is out: whoever gets it may ask the next question at once.
                    log.lock().unwrap().at_once -= 1;
                    reply(stream, found.as_ref());
                });
            }
        });
        Self { name, log }
    }

    /// How often a path was asked for.
    pub(crate) fn asked(&self, path: &str) -> usize {
        let log = self.log.lock().unwrap();
        log.paths.iter().filter(|asked| *asked == path).count()
    }

    /// Questions that are being answered.
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
    // Whoever asked may have gone.
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

/// Where the server under attack says that it is.
pub(crate) const PUBLIC: &str = "https://docs.example.org";

/// What a good token of this issuer says.
pub(crate) fn claims(issuer: &str) -> Value {
    json!({
        "iss": issuer, "sub": "anna", "aud": format!("{PUBLIC}/mcp"), "iat": now(),
        "exp": now() + 3_600, "scope": "docs.read",
    })
}
