//! A server into one short meeting: greet it, list its tools, search once. What a client does when it is
//! added, without the judgement of [`check`](crate::check).

use std::time::Duration;

use serde_json::{Value, json};

use crate::CheckTarget;
use crate::connection::http::HttpTarget;
use crate::connection::stdio::ProgramTarget;
use crate::connection::{OutgoingRequest, TargetConnection};
use crate::exchange::{ExchangeError, RecordedExchange};
use crate::request_builder::{ClientIdentity, LEGACY_REVISIONS, McpRequestBuilder};

/// The most characters of anything that a server says of itself.
const MAX_WORDS: usize = 200;
/// The most tools that are named.
const MAX_TOOLS: usize = 100;

/// A server that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSummary {
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
    pub search: Option<Result<ProbeSearch, String>>,
}

/// What a search gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSearch {
    /// What was asked.
    pub query: String,
    /// How many results came.
    pub results: usize,
    /// The title of the first one.
    pub first: Option<String>,
}

/// Why a server was not met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
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
    SignInRequired,
    /// It refuses the name under which it was called, or the page that called.
    #[error("the server refuses the request with status 403: {0}")]
    Refused(String),
    /// It leads elsewhere.
    #[error("the address leads to `{0}`")]
    Redirected(String),
    /// Something else answers there.
    #[error("what answers there is no MCP server: {0}")]
    NotMcp(String),
}

/// Meets a server.
///
/// # Errors
/// Why it was not met.
pub fn probe(
    target: &CheckTarget,
    token: Option<&str>,
    timeout: Duration,
) -> Result<ProbeSummary, ProbeError> {
    let wire = connect(target, token, timeout)?;
    let (voice, greeting) = initialize_session(&wire)?;
    let text = |pointer: &str| {
        let found = greeting.pointer(pointer).and_then(Value::as_str);
        found.map(one_line).unwrap_or_default()
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
    Ok(ProbeSummary {
        server,
        name,
        version: text("/serverInfo/version"),
        revision: voice.version.clone(),
        tools,
        search,
    })
}

/// A tool's name with its arguments, and what it answered: the result, or why there is none.
pub type ToolOutcome = Result<Value, String>;

/// Meets a server and calls tools, one after the other.
///
/// # Errors
/// Why it was not met.
pub fn call(
    target: &CheckTarget,
    timeout: Duration,
    calls: &[(String, Value)],
) -> Result<Vec<ToolOutcome>, ProbeError> {
    let wire = connect(target, None, timeout)?;
    let (voice, _) = initialize_session(&wire)?;
    let answers = calls.iter().map(|(tool, arguments)| {
        let params = json!({"name": tool, "arguments": arguments});
        let called = wire.send(voice.request("tools/call", params));
        tool_result(&called).cloned()
    });
    Ok(answers.collect())
}

fn connect(
    target: &CheckTarget,
    token: Option<&str>,
    timeout: Duration,
) -> Result<TargetConnection, ProbeError> {
    Ok(match target {
        CheckTarget::Url(url) => {
            let token = token.map(str::to_owned);
            let http = HttpTarget::new(url, timeout, ClientIdentity::ChatGpt.user_agent(), token);
            TargetConnection::http(
                http.map_err(|_| ProbeError::Unreachable("not a web address".to_owned()))?,
            )
        }
        CheckTarget::Program(command) => {
            TargetConnection::program(ProgramTarget::new(command.clone(), timeout))
        }
    })
}

/// Says hello as most clients do, and gives the voice to go on with.
fn initialize_session(wire: &TargetConnection) -> Result<(McpRequestBuilder, Value), ProbeError> {
    let mut voice = McpRequestBuilder::new(ClientIdentity::ChatGpt, LEGACY_REVISIONS[0]);
    let greeted = wire.send(voice.initialize(LEGACY_REVISIONS[0]));
    let greeting = request_result(&greeted)?.clone();
    if let Some(agreed) = greeting.get("protocolVersion").and_then(Value::as_str) {
        voice.version = one_line(agreed);
    }
    let session = greeted
        .received()
        .and_then(|got| got.header("mcp-session-id"));
    voice.session = session.map(str::to_owned);
    wire.send(voice.notification("notifications/initialized"));
    Ok((voice, greeting))
}

/// The result of a tool that did what it was asked.
fn tool_result(called: &RecordedExchange) -> Result<&Value, String> {
    let result = request_result(called).map_err(|unmet| unmet.to_string())?;
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        let said = result.pointer("/content/0/text").and_then(Value::as_str);
        return Err(one_line(said.unwrap_or("an error without words")));
    }
    Ok(result)
}

/// What an address answers to a plain GET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedPage {
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
pub fn get(url: &str, timeout: Duration) -> Result<ProbedPage, ProbeError> {
    let http = HttpTarget::new(url, timeout, ClientIdentity::ChatGpt.user_agent(), None);
    let http = http.map_err(|_| ProbeError::Unreachable("not a web address".to_owned()))?;
    let exchange = TargetConnection::http(http).send(OutgoingRequest::get(url));
    let received = exchange.outcome.as_ref().map_err(probe_error)?;
    let header = |name: &str| received.header(name).map(one_line);
    Ok(ProbedPage {
        status: received.status,
        text: one_line(&received.text),
        date: header("date"),
        location: header("location"),
    })
}

fn tools(wire: &TargetConnection, voice: &McpRequestBuilder) -> Result<Vec<String>, ProbeError> {
    let listed = wire.send(voice.request("tools/list", json!({})));
    request_result(&listed).map(names)
}

fn names(listed: &Value) -> Vec<String> {
    let all = listed.get("tools").and_then(Value::as_array);
    let names = all.into_iter().flatten().take(MAX_TOOLS);
    let names = names.filter_map(|tool| tool.get("name")?.as_str().map(one_line));
    names.collect()
}

/// Searches for what the server calls itself: every corpus should know its own name, and an answer without
/// results is one too.
fn search(
    wire: &TargetConnection,
    voice: &McpRequestBuilder,
    query: &str,
) -> Result<ProbeSearch, String> {
    let params = json!({"name": "search", "arguments": {"query": query}});
    let called = wire.send(voice.request("tools/call", params));
    let result = tool_result(&called)?;
    let structured = result.pointer("/structuredContent/results");
    let text = result.pointer("/content/0/text").and_then(Value::as_str);
    let parsed = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let in_text = parsed.as_ref().and_then(|value| value.get("results"));
    let results = structured.or(in_text).and_then(Value::as_array);
    let results = results.ok_or("the answer holds no `results`")?;
    let title = |result: &Value| result.get("title")?.as_str().map(one_line);
    Ok(ProbeSearch {
        query: query.to_owned(),
        results: results.len(),
        first: results.first().and_then(title),
    })
}

/// The result of a request, or why there is none.
fn request_result(exchange: &RecordedExchange) -> Result<&Value, ProbeError> {
    let received = exchange.outcome.as_ref().map_err(probe_error)?;
    if let Some(result) = exchange.result() {
        return Ok(result);
    }
    let said = exchange
        .error()
        .and_then(|error| error.get("message")?.as_str());
    Err(match received.status {
        401 => ProbeError::SignInRequired,
        403 => ProbeError::Refused(one_line(said.unwrap_or(&received.text))),
        300..=399 => {
            ProbeError::Redirected(one_line(received.header("location").unwrap_or("nowhere")))
        }
        status => {
            let said = said.map_or_else(|| format!("status {status}"), one_line);
            ProbeError::NotMcp(said)
        }
    })
}

fn probe_error(failure: &ExchangeError) -> ProbeError {
    match failure {
        ExchangeError::TimedOut(_) => ProbeError::TimedOut,
        ExchangeError::Ended(_) => ProbeError::Ended,
        ExchangeError::Unreachable(why) => ProbeError::Unreachable(one_line(why)),
        ExchangeError::ConnectionRefused
        | ExchangeError::NoSuchHost
        | ExchangeError::Tls(_)
        | ExchangeError::NotStarted { .. } => {
            ProbeError::Unreachable(one_line(&failure.to_string()))
        }
        other => ProbeError::NotMcp(one_line(&other.to_string())),
    }
}

/// The beginning of a text, on one line and without anything hidden.
fn one_line(text: &str) -> String {
    let seen = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().take(MAX_WORDS).map(seen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_bounded_and_on_one_line() {
        assert_eq!(one_line(" a\nb\u{1b}[1m "), "a b [1m");
        assert_eq!(one_line(&"x".repeat(MAX_WORDS + 1)).len(), MAX_WORDS);
        let listed = json!({"tools": vec![json!({"name": "a"}); MAX_TOOLS + 1]});
        assert_eq!(names(&listed).len(), MAX_TOOLS);
    }

    #[test]
    fn nobody_there_is_said_so() {
        let brief = Duration::from_secs(5);
        let met = probe(
            &CheckTarget::Url("http://127.0.0.1:1/mcp".to_owned()),
            None,
            brief,
        );
        assert!(matches!(met, Err(ProbeError::Unreachable(_))), "{met:?}");
        let program = CheckTarget::Program(vec!["/nonexistent/docent".to_owned()]);
        let met = probe(&program, None, brief);
        assert!(matches!(met, Err(ProbeError::Unreachable(_))), "{met:?}");
        let ends = CheckTarget::Program(vec!["true".to_owned()]);
        assert_eq!(probe(&ends, None, brief), Err(ProbeError::Ended));
        assert!(get("http://127.0.0.1:1/healthz", brief).is_err());
    }
}
