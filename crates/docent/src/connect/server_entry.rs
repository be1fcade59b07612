//! The entry that represents a server in a client's configuration file, in each client's dialect.

use serde_json::{Map, Value, json};

use super::{ClientTransport, ConnectionSpec, McpClient};

/// Server entry as an edit: keys to set, and keys to drop because they would contradict the transport. Other keys of an
/// existing entry are kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerEntry {
    pub set: Map<String, Value>,
    pub drop: &'static [&'static str],
}

/// Where an entry stands in a file: the section that lists servers, and the name of the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryPath<'a> {
    pub section: &'a str,
    pub name: &'a str,
}

/// Keys of a server that is reached over HTTP, dropped when it becomes a stdio server.
const HTTP_KEYS: &[&str] = &["type", "url", "httpUrl", "headers", "bearer_token_env_var"];
/// Keys of a server that is started over stdio, dropped when it becomes an HTTP server.
const STDIO_KEYS: &[&str] = &["type", "command", "args", "env", "cwd"];

impl ServerEntry {
    pub(crate) fn of(spec: &ConnectionSpec) -> Self {
        let (mut set, drop) = match &spec.transport {
            ClientTransport::Http(url) => (address(spec.client, url.as_str()), STDIO_KEYS),
            ClientTransport::Stdio(command) => (program(spec.client, command), HTTP_KEYS),
        };
        if let (ClientTransport::Http(_), Some(variable)) = (&spec.transport, &spec.token_env) {
            let (key, value) = token(spec.client, variable);
            set.insert(key.to_owned(), value);
        }
        Self { set, drop }
    }

    /// The entry as a value of its own, for a file that does not contain the server yet.
    pub(crate) fn to_value(&self) -> Value {
        Value::Object(self.set.clone())
    }

    /// Merges the entry into an existing one.
    pub(crate) fn merged_with(&self, existing: &Value) -> Value {
        let mut merged = existing.as_object().cloned().unwrap_or_default();
        for key in self.dropped() {
            merged.shift_remove(key);
        }
        for (key, value) in &self.set {
            merged.insert(key.clone(), value.clone());
        }
        Value::Object(merged)
    }

    /// Keys to remove from an existing entry: those of the other transport, unless they are set anyway.
    pub(crate) fn dropped(&self) -> impl Iterator<Item = &'static str> {
        self.drop
            .iter()
            .copied()
            .filter(|key| !self.set.contains_key(*key))
    }

    /// Whether an existing entry is ours to change: it starts `docent serve`, or it has the same URL.
    pub(crate) fn is_same_server(&self, existing: &Value) -> bool {
        let ours = |value: &Value| {
            let command = value.get("command").and_then(Value::as_str);
            let name = command.and_then(|path| path.rsplit(['/', '\\']).next());
            let args = value.get("args").and_then(Value::as_array);
            let serves = args.is_some_and(|args| args.first() == Some(&json!("serve")));
            serves && name.is_some_and(|name| name.starts_with("docent"))
        };
        let leads_here = self.set.get("url").is_some_and(|url| {
            existing.get("url") == Some(url) || existing.get("httpUrl") == Some(url)
        });
        ours(existing) || leads_here
    }
}

fn address(client: McpClient, url: &str) -> Map<String, Value> {
    let typed = !matches!(client, McpClient::Cursor | McpClient::Codex);
    let mut set = Map::new();
    if typed {
        set.insert("type".to_owned(), json!("http"));
    }
    set.insert("url".to_owned(), json!(url));
    set
}

fn program(client: McpClient, command: &[String]) -> Map<String, Value> {
    let typed = matches!(client, McpClient::ClaudeCode | McpClient::Vscode);
    let mut set = Map::new();
    if typed {
        set.insert("type".to_owned(), json!("stdio"));
    }
    if let Some((program, arguments)) = command.split_first() {
        set.insert("command".to_owned(), json!(program));
        set.insert("args".to_owned(), json!(arguments));
    }
    set
}

/// Reference to the token's environment variable in each client's syntax, so that the file does not contain the secret.
fn token(client: McpClient, variable: &str) -> (&'static str, Value) {
    let header = |value: String| ("headers", json!({"Authorization": value}));
    match client {
        McpClient::Codex => ("bearer_token_env_var", json!(variable)),
        McpClient::Vscode | McpClient::Cursor => header(format!("Bearer ${{env:{variable}}}")),
        _ => header(format!("Bearer ${{{variable}}}")),
    }
}
