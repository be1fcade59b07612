//! The JSON-RPC request of each benchmarked operation, and the marker that a correct response to it contains.

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use crate::payload::{Payload, first_hit};

/// The protocol revision of all requests: the one that most clients use, and that every peer answers without a
/// handshake.
pub const PROTOCOL_VERSION: &str = "2025-06-18";

/// A benchmarked operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Operation {
    /// `tools/list`
    ToolsList,
    /// `tools/call` of `search`
    Search,
    /// `tools/call` of `fetch`
    Fetch,
}

/// The media types that the client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AcceptHeader {
    /// Only `application/json`.
    Json,
    /// JSON and an event stream, as the specification requires and as ChatGPT sends.
    Both,
}

impl AcceptHeader {
    /// The value of the `Accept` header.
    #[must_use]
    pub const fn header(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Both => "application/json, text/event-stream",
        }
    }
}

/// The body to post, and a text that every correct response contains.
#[derive(Clone, Debug)]
pub struct BenchmarkRequest {
    /// The JSON-RPC request.
    pub body: Bytes,
    /// A text that every correct response contains.
    pub marker: String,
}

impl BenchmarkRequest {
    /// The request of `operation`, with the query and the id of `payload`.
    ///
    /// # Errors
    /// When the payload has no hit or no tool that a response could be recognized by.
    pub fn new(operation: Operation, payload: &Payload) -> anyhow::Result<Self> {
        let (body, marker) = match operation {
            Operation::ToolsList => (tools_list(), last_tool(&payload.tools_list)?),
            Operation::Search => {
                let hit = first_hit(&payload.search).context("the recorded search has no hit")?;
                (search(&payload.query), hit.to_owned())
            }
            Operation::Fetch => (fetch(&payload.id), payload.id.clone()),
        };
        // Servers escape JSON differently. Plain characters look the same in the responses of all of them.
        if marker.is_empty() || !marker.bytes().all(is_plain) {
            bail!("`{marker}` cannot be recognized in a response, because JSON may escape it");
        }
        Ok(Self {
            body: Bytes::from(body.to_string()),
            marker,
        })
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&' | b'\'')
}

/// The name of the last tool, because a truncated list does not contain it.
fn last_tool(result: &Value) -> anyhow::Result<String> {
    let tools = result.get("tools").and_then(Value::as_array);
    let name = tools.and_then(|tools| tools.last()?.get("name")?.as_str());
    Ok(name.context("the recorded tool list is empty")?.to_owned())
}

/// The request for the list of tools.
#[must_use]
pub fn tools_list() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
}

/// The request that searches for `query`.
#[must_use]
pub fn search(query: &str) -> Value {
    call("search", &json!({ "query": query }))
}

/// The request that fetches the document `id`.
#[must_use]
pub fn fetch(id: &str) -> Value {
    call("fetch", &json!({ "id": id }))
}

fn call(tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(id: &str) -> Payload {
        Payload {
            query: "water".into(),
            id: id.into(),
            tools_list: json!({"tools": [{"name": "search"}, {"name": "fetch"}]}),
            search: json!({"structuredContent": {"results": [{"id": id}]}}),
            fetch: json!({}),
        }
    }

    #[test]
    fn each_operation_has_its_body_and_marker() {
        let ask = |operation| BenchmarkRequest::new(operation, &payload("d1")).unwrap();
        assert_eq!(ask(Operation::ToolsList).marker, "fetch");
        assert_eq!(ask(Operation::Search).marker, "d1");
        let body: Value = serde_json::from_slice(&ask(Operation::Search).body).unwrap();
        assert_eq!(body["params"]["arguments"]["query"], "water");
        let body: Value = serde_json::from_slice(&ask(Operation::Fetch).body).unwrap();
        assert_eq!(
            body["params"],
            json!({"name": "fetch", "arguments": {"id": "d1"}})
        );
    }

    #[test]
    fn a_marker_that_json_may_escape_is_refused() {
        for id in ["", "a\"b", "a\\b", "é", "a\n"] {
            assert!(
                BenchmarkRequest::new(Operation::Fetch, &payload(id)).is_err(),
                "{id:?}"
            );
        }
        assert!(BenchmarkRequest::new(Operation::Fetch, &payload("a/b.md#p2")).is_ok());
    }
}
