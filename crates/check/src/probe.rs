//! Smoke test of an MCP server: `initialize`, `tools/list`, one `search`, and single tool calls or GETs.
//!
//! This is what a client does when a server is added to it, without the rules of [`check`](crate::check). Texts of the
//! server are cut to 200 characters on one line, because callers print them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::CheckTarget;
use crate::connection::http::HttpTarget;
use crate::connection::stdio::ProgramTarget;
use crate::connection::{OutgoingRequest, TargetConnection};
use crate::exchange::{ExchangeError, RecordedExchange};
use crate::request_builder::{ClientIdentity, LEGACY_REVISIONS, McpRequestBuilder};
use crate::text::truncate_chars;

/// The longest text of the server that is kept, in characters.
const MAX_CHARS: usize = 200;
/// The most tool names that a summary lists.
const MAX_TOOLS: usize = 100;

/// What a reachable server says about itself, and what one search returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSummary {
    /// The title of the server, or else its name.
    pub server: String,
    /// The `name` in the server's `serverInfo`.
    pub name: String,
    /// The `version` in the server's `serverInfo`.
    pub version: String,
    /// The protocol revision that was negotiated.
    pub revision: String,
    /// The names of the tools, at most 100.
    pub tools: Vec<String>,
    /// The outcome of calling its `search` tool; `None` when there is no such tool.
    pub search: Option<Result<ProbeSearch, String>>,
}

/// The outcome of the one search of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSearch {
    /// The query that was sent.
    pub query: String,
    /// The number of results.
    pub results: usize,
    /// The title of the first result.
    pub first: Option<String>,
}

/// Why a probe failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The connection failed, or the program did not start.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// There was no answer within the timeout.
    #[error("the server did not answer in time")]
    TimedOut,
    /// The program exited before it answered.
    #[error("the program ended before it answered")]
    Ended,
    /// The server requires sign-in: status 401.
    #[error("the server asks for sign-in")]
    SignInRequired,
    /// Status 403, such as for a `Host` or an `Origin` that the server does not allow.
    #[error("the server refuses the request with status 403: {0}")]
    Refused(String),
    /// The server redirects, to this address.
    #[error("the address redirects to `{0}`")]
    Redirected(String),
    /// Something other than an MCP server answers at the address.
    #[error("not an MCP server: {0}")]
    NotMcp(String),
}

/// Connects to a server, initializes a session, lists the tools, and searches once where there is a `search` tool.
///
/// # Errors
/// Why the connection, the initialization or the list of tools failed. A failed search is part of the summary.
pub fn probe(
    target: &CheckTarget,
    token: Option<&str>,
    timeout: Duration,
) -> Result<ProbeSummary, ProbeError> {
    let connection = connect(target, token, timeout)?;
    let (builder, handshake) = initialize_session(&connection)?;
    let text = |pointer: &str| {
        let found = handshake.pointer(pointer).and_then(Value::as_str);
        found.map(single_line).unwrap_or_default()
    };
    let tools = tools(&connection, &builder)?;
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
    let search = has_search.then(|| search(&connection, &builder, &server));
    Ok(ProbeSummary {
        server,
        name,
        version: text("/serverInfo/version"),
        revision: builder.version.clone(),
        tools,
        search,
    })
}

/// The result of one tool call, or the error message of the tool or of the transport.
pub type ToolOutcome = Result<Value, String>;

/// Initializes a session and calls the named tools with their arguments, one after the other.
///
/// # Errors
/// Why the connection or the initialization failed. A failed call is an entry of the list.
pub fn call(
    target: &CheckTarget,
    timeout: Duration,
    calls: &[(String, Value)],
) -> Result<Vec<ToolOutcome>, ProbeError> {
    let connection = connect(target, None, timeout)?;
    let (builder, _) = initialize_session(&connection)?;
    let answers = calls.iter().map(|(tool, arguments)| {
        let params = json!({"name": tool, "arguments": arguments});
        let called = connection.send(builder.request("tools/call", params));
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

/// Runs the `initialize` handshake, and returns the request builder of the session with the server's result.
fn initialize_session(
    connection: &TargetConnection,
) -> Result<(McpRequestBuilder, Value), ProbeError> {
    let mut builder = McpRequestBuilder::new(ClientIdentity::ChatGpt, LEGACY_REVISIONS[0]);
    let exchange = connection.send(builder.initialize(LEGACY_REVISIONS[0]));
    let handshake = request_result(&exchange)?.clone();
    if let Some(agreed) = handshake.get("protocolVersion").and_then(Value::as_str) {
        builder.version = single_line(agreed);
    }
    let session = exchange
        .received()
        .and_then(|got| got.header("mcp-session-id"));
    builder.session = session.map(str::to_owned);
    connection.send(builder.notification("notifications/initialized"));
    Ok((builder, handshake))
}

/// The result of a successful tool call, or the text of its error.
fn tool_result(called: &RecordedExchange) -> Result<&Value, String> {
    let result = request_result(called).map_err(|error| error.to_string())?;
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        let message = result.pointer("/content/0/text").and_then(Value::as_str);
        return Err(single_line(message.unwrap_or("an error without a message")));
    }
    Ok(result)
}

/// The response to a plain GET, cut to what callers show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedPage {
    /// The HTTP status code.
    pub status: u16,
    /// The beginning of the body, on one line.
    pub text: String,
    /// The header `Date`: the clock of the server, which callers compare with their own.
    pub date: Option<String>,
    /// The header `Location`, the target of a redirect.
    pub location: Option<String>,
}

/// Sends one GET without following redirects.
///
/// # Errors
/// Why there was no response; a response of any status is a page.
pub fn get(url: &str, timeout: Duration) -> Result<ProbedPage, ProbeError> {
    let http = HttpTarget::new(url, timeout, ClientIdentity::ChatGpt.user_agent(), None);
    let http = http.map_err(|_| ProbeError::Unreachable("not a web address".to_owned()))?;
    let exchange = TargetConnection::http(http).send(OutgoingRequest::get(url));
    let received = exchange.outcome.as_ref().map_err(probe_error)?;
    let header = |name: &str| received.header(name).map(single_line);
    Ok(ProbedPage {
        status: received.status,
        text: single_line(&received.text),
        date: header("date"),
        location: header("location"),
    })
}

fn tools(
    connection: &TargetConnection,
    builder: &McpRequestBuilder,
) -> Result<Vec<String>, ProbeError> {
    let listed = connection.send(builder.request("tools/list", json!({})));
    request_result(&listed).map(names)
}

fn names(listed: &Value) -> Vec<String> {
    let all = listed.get("tools").and_then(Value::as_array);
    let names = all.into_iter().flatten().take(MAX_TOOLS);
    let names = names.filter_map(|tool| tool.get("name")?.as_str().map(single_line));
    names.collect()
}

/// Searches for the server's own title: a corpus is likely to contain its own name, and an empty result still proves
/// that the tool works.
fn search(
    connection: &TargetConnection,
    builder: &McpRequestBuilder,
    query: &str,
) -> Result<ProbeSearch, String> {
    let params = json!({"name": "search", "arguments": {"query": query}});
    let called = connection.send(builder.request("tools/call", params));
    let result = tool_result(&called)?;
    let structured = result.pointer("/structuredContent/results");
    let text = result.pointer("/content/0/text").and_then(Value::as_str);
    let parsed = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let in_text = parsed.as_ref().and_then(|value| value.get("results"));
    let results = structured.or(in_text).and_then(Value::as_array);
    let results = results.ok_or("the answer holds no `results`")?;
    let title = |result: &Value| result.get("title")?.as_str().map(single_line);
    Ok(ProbeSearch {
        query: query.to_owned(),
        results: results.len(),
        first: results.first().and_then(title),
    })
}

/// The JSON-RPC result of an exchange, or the reason why there is none.
fn request_result(exchange: &RecordedExchange) -> Result<&Value, ProbeError> {
    let received = exchange.outcome.as_ref().map_err(probe_error)?;
    if let Some(result) = exchange.result() {
        return Ok(result);
    }
    let message = exchange
        .error()
        .and_then(|error| error.get("message")?.as_str());
    Err(match received.status {
        401 => ProbeError::SignInRequired,
        403 => ProbeError::Refused(single_line(message.unwrap_or(&received.text))),
        300..=399 => ProbeError::Redirected(single_line(
            received.header("location").unwrap_or("nowhere"),
        )),
        status => {
            let message = message.map_or_else(|| format!("status {status}"), single_line);
            ProbeError::NotMcp(message)
        }
    })
}

fn probe_error(failure: &ExchangeError) -> ProbeError {
    match failure {
        ExchangeError::TimedOut(_) => ProbeError::TimedOut,
        ExchangeError::Ended(_) => ProbeError::Ended,
        ExchangeError::Unreachable(why) => ProbeError::Unreachable(single_line(why)),
        ExchangeError::ConnectionRefused
        | ExchangeError::NoSuchHost
        | ExchangeError::Tls(_)
        | ExchangeError::NotStarted { .. } => {
            ProbeError::Unreachable(single_line(&failure.to_string()))
        }
        other => ProbeError::NotMcp(single_line(&other.to_string())),
    }
}

/// The beginning of a text, on one line and without control characters.
fn single_line(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let start = truncate_chars(text.trim(), MAX_CHARS);
    start.chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_server_are_truncated_to_one_line() {
        assert_eq!(single_line(" a\nb\u{1b}[1m "), "a b [1m");
        assert_eq!(single_line(&"x".repeat(MAX_CHARS + 1)).len(), MAX_CHARS);
        let listed = json!({"tools": vec![json!({"name": "a"}); MAX_TOOLS + 1]});
        assert_eq!(names(&listed).len(), MAX_TOOLS);
    }

    #[test]
    fn an_unreachable_server_is_an_error() {
        let brief = Duration::from_secs(5);
        let result = probe(
            &CheckTarget::Url("http://127.0.0.1:1/mcp".to_owned()),
            None,
            brief,
        );
        assert!(
            matches!(result, Err(ProbeError::Unreachable(_))),
            "{result:?}"
        );
        let program = CheckTarget::Program(vec!["/nonexistent/docent".to_owned()]);
        let result = probe(&program, None, brief);
        assert!(
            matches!(result, Err(ProbeError::Unreachable(_))),
            "{result:?}"
        );
        let ends = CheckTarget::Program(vec!["true".to_owned()]);
        assert_eq!(probe(&ends, None, brief), Err(ProbeError::Ended));
        assert!(get("http://127.0.0.1:1/healthz", brief).is_err());
    }
}
