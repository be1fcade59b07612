//! The address of an MCP server into its answers: JSON-RPC over POST, answered with JSON or an event stream,
//! every wait and every answer bounded.

use std::io::{self, BufReader, Read};
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::{HeaderValue, Response, Uri};
use ureq::{Agent, Body};

use crate::error::Error;
use crate::sse::next_data;

/// The most bytes of one answer; the same as the most that hosts are known to take.
const MAX_ANSWER: u64 = 8 * 1024 * 1024;
/// The most tools and pages of tools that are looked at.
const MAX_TOOLS: usize = 1_000;
const MAX_PAGES: usize = 50;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// A server that answered.
pub(crate) struct Target {
    url: String,
    agent: Agent,
    /// Legacy revisions name the revision in a header only; modern ones name it in every request too.
    version: HeaderValue,
    modern: bool,
    session: Option<HeaderValue>,
    last_id: u64,
}

impl Target {
    /// Finds out which revision the server speaks, in the order in which ChatGPT asks.
    pub(crate) fn connect(url: &str, call_timeout: Duration) -> Result<Self, Error> {
        let mut target = Self {
            url: url.to_owned(),
            agent: agent(url, call_timeout)?,
            version: HeaderValue::from_static(MODERN),
            modern: true,
            session: None,
            last_id: 0,
        };
        match target.call("server/discover", json!({})) {
            Ok(found) if names_modern(&found) => return Ok(target),
            Err(error) if !error.is_about_the_protocol() => return Err(error),
            _ => target.modern = false,
        }
        target.version = HeaderValue::from_static(LEGACY);
        target.initialize()?;
        Ok(target)
    }

    fn initialize(&mut self) -> Result<(), Error> {
        let me = json!({"name": "docent-check", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": me});
        let result = self.call("initialize", params)?;
        let version = result.get("protocolVersion").and_then(Value::as_str);
        let why = "`protocolVersion` is missing or no date";
        let unusable = Error::NotAnAnswer {
            method: "initialize",
            why,
        };
        self.version = version
            .and_then(|version| HeaderValue::from_str(version).ok())
            .ok_or(unusable)?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.post("notifications/initialized", &ready).map(drop)
    }

    /// All tools, from as many pages as the server makes of them.
    pub(crate) fn tools(&mut self) -> Result<Vec<Value>, Error> {
        let mut tools = Vec::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let mut page = self.call("tools/list", params)?;
            let Some(Value::Array(more)) = page.get_mut("tools").map(Value::take) else {
                return Err(Error::NotAnAnswer {
                    method: "tools/list",
                    why: "`tools` is not a list",
                });
            };
            tools.extend(more);
            if tools.len() > MAX_TOOLS {
                return Err(Error::Endless {
                    limit: "1000 tools",
                });
            }
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(tools),
            }
        }
        Err(Error::Endless { limit: "50 pages" })
    }

    /// Ends the session, if the server opened one. Nothing depends on whether that works.
    pub(crate) fn leave(&self) {
        if let Some(session) = &self.session {
            let _ = self
                .agent
                .delete(&self.url)
                .header("Mcp-Session-Id", session)
                .call();
        }
    }

    /// One request and the result it gets.
    fn call(&mut self, method: &'static str, mut params: Value) -> Result<Value, Error> {
        self.last_id += 1;
        if self.modern
            && let Some(params) = params.as_object_mut()
        {
            let me = json!({"name": "docent-check", "version": env!("CARGO_PKG_VERSION")});
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": me,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            params.insert("_meta".to_owned(), meta);
        }
        let id = json!(self.last_id);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let response = self.post(method, &request)?;
        if let Some(session) = response.headers().get("mcp-session-id") {
            self.session = Some(session.clone());
        }
        let mut message = answer(response, &id, method)?;
        if let Some(error) = message.get("error") {
            let code = error
                .get("code")
                .and_then(Value::as_i64)
                .unwrap_or_default();
            let text = error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default();
            return Err(Error::Refused {
                method,
                code,
                message: text.to_owned(),
            });
        }
        let why = "it has neither `result` nor `error`";
        message
            .get_mut("result")
            .map(Value::take)
            .ok_or(Error::NotAnAnswer { method, why })
    }

    fn post(&self, method: &'static str, message: &Value) -> Result<Response<Body>, Error> {
        let mut request = self
            .agent
            .post(&self.url)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream");
        if method != "initialize" {
            request = request.header("MCP-Protocol-Version", &self.version);
        }
        if self.modern {
            request = request.header("Mcp-Method", method);
        }
        if let Some(session) = &self.session {
            request = request.header("Mcp-Session-Id", session);
        }
        let response = request
            .send(message.to_string())
            .map_err(|error| failed(&error))?;
        match response.status().as_u16() {
            200..=299 => Ok(response),
            300..=399 => Err(Error::Redirect {
                location: header(&response, "location"),
            }),
            401 => Err(Error::SignIn),
            status => Err(Error::Status { status }),
        }
    }
}

/// A client that follows no redirect and waits for nothing longer than asked.
fn agent(url: &str, call_timeout: Duration) -> Result<Agent, Error> {
    let bad = || Error::BadUrl {
        url: url.to_owned(),
    };
    let uri: Uri = url.parse().map_err(|_| bad())?;
    let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(bad)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(bad());
    }
    let mut config = Agent::config_builder()
        .timeout_global(Some(call_timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("docent-check/", env!("CARGO_PKG_VERSION")));
    // A proxy cannot reach this machine, and a check of it must not leave it.
    if matches!(host, "localhost" | "[::1]") || host.starts_with("127.") {
        config = config.proxy(None);
    }
    Ok(config.build().new_agent())
}

/// The message in a response that answers the request with this id.
fn answer(response: Response<Body>, id: &Value, method: &'static str) -> Result<Value, Error> {
    let found = header(&response, "content-type");
    let kind = found
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let mut body = BufReader::new(response.into_body().into_reader().take(MAX_ANSWER + 1));
    let fits = |message: &Value| message.get("id") == Some(id) && message.get("method").is_none();
    match kind.as_str() {
        "application/json" => {
            let mut bytes = Vec::new();
            body.read_to_end(&mut bytes).map_err(broken)?;
            within_limit(&body)?;
            let message = serde_json::from_slice(&bytes).map_err(|_| Error::NotJson)?;
            let why = "its `id` is not that of the request";
            if fits(&message) {
                Ok(message)
            } else {
                Err(Error::NotAnAnswer { method, why })
            }
        }
        "text/event-stream" => loop {
            let data = next_data(&mut body).map_err(broken)?;
            within_limit(&body)?;
            let why = "the stream ended without it";
            let data = data.ok_or(Error::NotAnAnswer { method, why })?;
            let message: Value = serde_json::from_str(&data).map_err(|_| Error::NotJson)?;
            // Progress and log messages may come before the answer.
            if fits(&message) {
                return Ok(message);
            }
        },
        _ => Err(Error::ContentType { found }),
    }
}

fn within_limit<R: Read>(body: &BufReader<io::Take<R>>) -> Result<(), Error> {
    if body.get_ref().limit() == 0 {
        Err(Error::TooLarge { limit: MAX_ANSWER })
    } else {
        Ok(())
    }
}

fn header(response: &Response<Body>, name: &str) -> String {
    let value = response.headers().get(name).map(HeaderValue::as_bytes);
    String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
}

fn names_modern(discovered: &Value) -> bool {
    let versions = discovered
        .get("supportedVersions")
        .and_then(Value::as_array);
    versions.is_some_and(|versions| versions.iter().any(|version| version == MODERN))
}

fn failed(error: &ureq::Error) -> Error {
    match error {
        ureq::Error::Timeout(_) => Error::TimedOut,
        other => Error::Unreachable {
            cause: other.to_string(),
        },
    }
}

fn broken(error: io::Error) -> Error {
    failed(&ureq::Error::from(error))
}
