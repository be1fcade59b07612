//! A server into one short meeting: greet it, list its tools, search once. What a client does when it is
//! added, without the judgement of [`check`](crate::check).

use std::time::Duration;

use serde_json::{Value, json};

use crate::Target;
use crate::exchange::{Exchange, Failure};
use crate::voice::{Identity, LEGACY, Voice};
use crate::wire::http::Http;
use crate::wire::stdio::Program;
use crate::wire::{Ask, Wire};

/// The most characters of anything that a server says of itself.
const MAX_WORDS: usize = 200;
/// The most tools that are named.
const MAX_TOOLS: usize = 100;

/// A server that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Met {
    /// Its title, or its name.
    pub server: String,
    /// The name of the program behind it.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The revision of the protocol that was agreed on.
    pub revision: String,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// What its `search` gave; nothing when it has none.
    pub search: Option<Result<Found, String>>,
}

/// What a search gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What was asked.
    pub query: String,
    /// How many results came.
    pub results: usize,
    /// The title of the first one.
    pub first: Option<String>,
}

/// Why a server was not met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unmet {
    /// Nobody answers at the address, or the program does not start.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// It took too long.
    #[error("the server did not answer in time")]
    TimedOut,
    /// The program ended.
    #[error("the program ended before it answered")]
    Ended,
    /// It wants to know who asks.
    #[error("the server asks for sign-in")]
    Locked,
    /// It refuses the name under which it was called, or the page that called.
    #[error("the server refuses the request with status 403: {0}")]
    Refused(String),
    /// It leads elsewhere.
    #[error("the address leads to `{0}`")]
    Moved(String),
    /// Something else answers there.
    #[error("what answers there is no MCP server: {0}")]
    Stranger(String),
}

/// Meets a server.
///
/// # Errors
/// Why it was not met.
pub fn probe(target: &Target, token: Option<&str>, timeout: Duration) -> Result<Met, Unmet> {
    let wire = wire(target, token, timeout)?;
    let (voice, greeting) = greet(&wire)?;
    let text = |pointer: &str| {
        let found = greeting.pointer(pointer).and_then(Value::as_str);
        found.map(words).unwrap_or_default()
    };
    let tools = tools(&wire, &voice)?;
    let name = text("/serverInfo/name");
    let server = [
        text("/serverInfo/title"),
        name.clone(),
        "a server without a name".to_owned(),
    ];
    let server = server
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or_default();
    let has_search = tools.iter().any(|name| name == "search");
    let search = has_search.then(|| search(&wire, &voice, &server));
    Ok(Met {
        server,
        name,
        version: text("/serverInfo/version"),
        revision: voice.version.clone(),
        tools,
        search,
    })
}

/// A tool's name with its arguments, and what it answered: the result, or why there is none.
pub type Answered = Result<Value, String>;

/// Meets a server and calls tools, one after the other.
///
/// # Errors
/// Why it was not met.
pub fn call(
    target: &Target,
    timeout: Duration,
    calls: &[(String, Value)],
) -> Result<Vec<Answered>, Unmet> {
    let wire = wire(target, None, timeout)?;
    let (voice, _) = greet(&wire)?;
    let answers = calls.iter().map(|(tool, arguments)| {
        let params = json!({"name": tool, "arguments": arguments});
        let called = wire.send(voice.request("tools/call", params));
        succeeded(&called).cloned()
    });
    Ok(answers.collect())
}

fn wire(target: &Target, token: Option<&str>, timeout: Duration) -> Result<Wire, Unmet> {
    Ok(match target {
        Target::Url(url) => {
            let token = token.map(str::to_owned);
            let http = Http::new(url, timeout, Identity::ChatGpt.user_agent(), token);
            Wire::http(http.map_err(|_| Unmet::Unreachable("not a web address".to_owned()))?)
        }
        Target::Program(command) => Wire::program(Program::new(command.clone(), timeout)),
    })
}

/// Says hello as most clients do, and gives the voice to go on with.
fn greet(wire: &Wire) -> Result<(Voice, Value), Unmet> {
    let mut voice = Voice::new(Identity::ChatGpt, LEGACY[0]);
    let greeted = wire.send(voice.initialize(LEGACY[0]));
    let greeting = answered(&greeted)?.clone();
    if let Some(agreed) = greeting.get("protocolVersion").and_then(Value::as_str) {
        voice.version = words(agreed);
    }
    let session = greeted
        .received()
        .and_then(|got| got.header("mcp-session-id"));
    voice.session = session.map(str::to_owned);
    wire.send(voice.notice("notifications/initialized"));
    Ok((voice, greeting))
}

/// The result of a tool that did what it was asked.
fn succeeded(called: &Exchange) -> Result<&Value, String> {
    let result = answered(called).map_err(|unmet| unmet.to_string())?;
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        let said = result.pointer("/content/0/text").and_then(Value::as_str);
        return Err(words(said.unwrap_or("an error without words")));
    }
    Ok(result)
}

/// What an address answers to a plain GET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The status.
    pub status: u16,
    /// The beginning of the body.
    pub text: String,
    /// The clock of whoever answered, as the header `Date` has it.
    pub date: Option<String>,
    /// Where it leads, when it leads elsewhere.
    pub location: Option<String>,
}

/// Gets a page.
///
/// # Errors
/// Why it did not come.
pub fn get(url: &str, timeout: Duration) -> Result<Page, Unmet> {
    let http = Http::new(url, timeout, Identity::ChatGpt.user_agent(), None);
    let http = http.map_err(|_| Unmet::Unreachable("not a web address".to_owned()))?;
    let exchange = Wire::http(http).send(Ask::get(url));
    let received = exchange.outcome.as_ref().map_err(unmet)?;
    let header = |name: &str| received.header(name).map(words);
    Ok(Page {
        status: received.status,
        text: words(&received.text),
        date: header("date"),
        location: header("location"),
    })
}

fn tools(wire: &Wire, voice: &Voice) -> Result<Vec<String>, Unmet> {
    let listed = wire.send(voice.request("tools/list", json!({})));
    answered(&listed).map(names)
}

fn names(listed: &Value) -> Vec<String> {
    let all = listed.get("tools").and_then(Value::as_array);
    let names = all.into_iter().flatten().take(MAX_TOOLS);
    let names = names.filter_map(|tool| tool.get("name")?.as_str().map(words));
    names.collect()
}

/// Searches for what the server calls itself: every corpus should know its own name, and an answer without
/// results is one too.
fn search(wire: &Wire, voice: &Voice, query: &str) -> Result<Found, String> {
    let params = json!({"name": "search", "arguments": {"query": query}});
    let called = wire.send(voice.request("tools/call", params));
    let result = succeeded(&called)?;
    let structured = result.pointer("/structuredContent/results");
    let text = result.pointer("/content/0/text").and_then(Value::as_str);
    let parsed = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let in_text = parsed.as_ref().and_then(|value| value.get("results"));
    let results = structured.or(in_text).and_then(Value::as_array);
    let results = results.ok_or("the answer holds no `results`")?;
    let title = |result: &Value| result.get("title")?.as_str().map(words);
    Ok(Found {
        query: query.to_owned(),
        results: results.len(),
        first: results.first().and_then(title),
    })
}

/// The result of a request, or why there is none.
fn answered(exchange: &Exchange) -> Result<&Value, Unmet> {
    let received = exchange.outcome.as_ref().map_err(unmet)?;
    if let Some(result) = exchange.result() {
        return Ok(result);
    }
    let said = exchange
        .error()
        .and_then(|error| error.get("message")?.as_str());
    Err(match received.status {
        401 => Unmet::Locked,
        403 => Unmet::Refused(words(said.unwrap_or(&received.text))),
        300..=399 => Unmet::Moved(words(received.header("location").unwrap_or("nowhere"))),
        status => {
            let said = said.map_or_else(|| format!("status {status}"), words);
            Unmet::Stranger(said)
        }
    })
}

fn unmet(failure: &Failure) -> Unmet {
    match failure {
        Failure::TimedOut(_) => Unmet::TimedOut,
        Failure::Ended(_) => Unmet::Ended,
        Failure::Unreachable(why) => Unmet::Unreachable(words(why)),
        Failure::ConnectionRefused
        | Failure::NoSuchHost
        | Failure::Tls(_)
        | Failure::NotStarted { .. } => Unmet::Unreachable(words(&failure.to_string())),
        other => Unmet::Stranger(words(&other.to_string())),
    }
}

/// The beginning of a text, on one line and without anything hidden.
fn words(text: &str) -> String {
    let seen = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().take(MAX_WORDS).map(seen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_bounded_and_on_one_line() {
        assert_eq!(words(" a\nb\u{1b}[1m "), "a b [1m");
        assert_eq!(words(&"x".repeat(MAX_WORDS + 1)).len(), MAX_WORDS);
        let listed = json!({"tools": vec![json!({"name": "a"}); MAX_TOOLS + 1]});
        assert_eq!(names(&listed).len(), MAX_TOOLS);
    }

    #[test]
    fn nobody_there_is_said_so() {
        let brief = Duration::from_secs(5);
        let met = probe(
            &Target::Url("http://127.0.0.1:1/mcp".to_owned()),
            None,
            brief,
        );
        assert!(matches!(met, Err(Unmet::Unreachable(_))), "{met:?}");
        let program = Target::Program(vec!["/nonexistent/docent".to_owned()]);
        let met = probe(&program, None, brief);
        assert!(matches!(met, Err(Unmet::Unreachable(_))), "{met:?}");
        let ends = Target::Program(vec!["true".to_owned()]);
        assert_eq!(probe(&ends, None, brief), Err(Unmet::Ended));
        assert!(get("http://127.0.0.1:1/healthz", brief).is_err());
    }
}
