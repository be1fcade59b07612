//! A wish into what stands for it in the client's configuration.

use serde_json::{Map, Value, json};

use super::{ClientTransport, ConnectionSpec, McpClient};

/// What a server is in a configuration: keys to set, and keys that would contradict them. Whatever else
/// somebody wrote there stays.
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

/// What belongs to a server that is reached by its address.
const OF_ADDRESSES: &[&str] = &["type", "url", "httpUrl", "headers", "bearer_token_env_var"];
/// What belongs to a server that is started.
const OF_PROGRAMS: &[&str] = &["type", "command", "args", "env", "cwd"];

impl ServerEntry {
    pub(crate) fn of(wish: &ConnectionSpec) -> Self {
        let (mut set, drop) = match &wish.transport {
            ClientTransport::Http(url) => (address(wish.client, url.as_str()), OF_PROGRAMS),
            ClientTransport::Stdio(command) => (program(wish.client, command), OF_ADDRESSES),
        };
        if let (ClientTransport::Http(_), Some(variable)) = (&wish.transport, &wish.token_env) {
            let (key, value) = token(wish.client, variable);
            set.insert(key.to_owned(), value);
        }
        Self { set, drop }
    }

    /// The entry as it would stand alone.
    pub(crate) fn to_value(&self) -> Value {
        Value::Object(self.set.clone())
    }

    /// The entry over one that is there.
    pub(crate) fn merged_with(&self, there: &Value) -> Value {
        let mut merged = there.as_object().cloned().unwrap_or_default();
        for key in self.dropped() {
            merged.shift_remove(key);
        }
        for (key, value) in &self.set {
            merged.insert(key.clone(), value.clone());
        }
        Value::Object(merged)
    }

    /// The keys that go.
    pub(crate) fn dropped(&self) -> impl Iterator<Item = &'static str> {
        self.drop
            .iter()
            .copied()
            .filter(|key| !self.set.contains_key(*key))
    }

    /// Whether what is there was put there by us, or leads to the same place.
    pub(crate) fn is_same_server(&self, there: &Value) -> bool {
        let ours = |value: &Value| {
            let command = value.get("command").and_then(Value::as_str);
            let name = command.and_then(|path| path.rsplit(['/', '\\']).next());
            let args = value.get("args").and_then(Value::as_array);
            let serves = args.is_some_and(|args| args.first() == Some(&json!("serve")));
            serves && name.is_some_and(|name| name.starts_with("docent"))
        };
        let leads_here = self
            .set
            .get("url")
            .is_some_and(|url| there.get("url") == Some(url) || there.get("httpUrl") == Some(url));
        ours(there) || leads_here
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

/// How each client reads a token from the environment, so that no file has to hold it.
fn token(client: McpClient, variable: &str) -> (&'static str, Value) {
    let header = |value: String| ("headers", json!({"Authorization": value}));
    match client {
        McpClient::Codex => ("bearer_token_env_var", json!(variable)),
        McpClient::Vscode | McpClient::Cursor => header(format!("Bearer ${{env:{variable}}}")),
        _ => header(format!("Bearer ${{{variable}}}")),
    }
}
