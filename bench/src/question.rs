//! Turns an operation into the JSON-RPC body that is posted and the marker that its answer must hold.

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use crate::payload::{Payload, first_hit};

/// The revision spoken: the one most clients speak today, and one that every peer answers without a handshake.
pub const PROTOCOL_VERSION: &str = "2025-06-18";

/// One of the three things a host asks for.
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

/// Which kinds of answer the client says it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Accept {
    /// `application/json` alone.
    Json,
    /// JSON and an event stream, as the specification asks of clients and as ChatGPT does.
    Both,
}

impl Accept {
    /// The value of the `Accept` header.
    #[must_use]
    pub const fn header(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Both => "application/json, text/event-stream",
        }
    }
}

/// The body to post, and the text without which the answer counts as an error.
#[derive(Clone, Debug)]
pub struct Question {
    /// The JSON-RPC request.
    pub body: Bytes,
    /// The text to find in every answer.
    pub marker: String,
}

impl Question {
    /// The question of `operation`, with the query and the id of `payload`.
    ///
    /// # Errors
    /// When the payload holds no hit or no tool, so that there is nothing to recognise an answer by.
    pub fn new(operation: Operation, payload: &Payload) -> anyhow::Result<Self> {
        let (body, marker) = match operation {
            Operation::ToolsList => (tools_list(), last_tool(&payload.tools_list)?),
            Operation::Search => {
                let hit = first_hit(&payload.search).context("the recorded search has no hit")?;
                (search(&payload.query), hit.to_owned())
            }
            Operation::Fetch => (fetch(&payload.id), payload.id.clone()),
        };
        // Servers escape differently. A marker of plain characters looks the same in all of them.
        if marker.is_empty() || !marker.bytes().all(is_plain) {
            bail!("`{marker}` cannot be recognised in an answer, because JSON may escape it");
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

/// The last tool's name: an answer that was cut short does not hold it.
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
        let ask = |operation| Question::new(operation, &payload("d1")).unwrap();
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
                Question::new(Operation::Fetch, &payload(id)).is_err(),
                "{id:?}"
            );
        }
        assert!(Question::new(Operation::Fetch, &payload("a/b.md#p2")).is_ok());
    }
}
