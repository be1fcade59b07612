//! Setup instructions for each client: where to click, what to type and what to paste.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use url::Url;

use super::server_entry::ServerEntry;
use super::{ClientTransport, ConfigScope, ConnectionSpec, McpClient};

/// One step of the setup: an instruction, and optionally the exact text to type or paste.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SetupStep {
    pub say: String,
    pub paste: Option<String>,
}

fn say(text: impl Into<String>) -> SetupStep {
    SetupStep {
        say: text.into(),
        paste: None,
    }
}

fn paste(text: impl Into<String>, code: impl Into<String>) -> SetupStep {
    SetupStep {
        say: text.into(),
        paste: Some(code.into()),
    }
}

/// Setup steps for the client and transport of a connection, in order.
pub(crate) fn steps(spec: &ConnectionSpec) -> Vec<SetupStep> {
    let url = match &spec.transport {
        ClientTransport::Http(url) => url.as_str(),
        ClientTransport::Stdio(_) => "",
    };
    match spec.client {
        McpClient::Chatgpt => chatgpt(spec, url),
        McpClient::Claude => claude(spec, url),
        McpClient::ClaudeDesktop => vec![
            paste(
                "Settings, Developer, Edit Config: put this into the file",
                file_json(spec, "mcpServers"),
            ),
            say("quit Claude Desktop and start it again"),
        ],
        McpClient::ClaudeCode => vec![
            paste("type in a terminal", claude_code(spec)),
            say("`/mcp` in Claude Code shows it, and signs in where the server asks for it"),
        ],
        McpClient::Vscode => vscode(spec),
        McpClient::Cursor => cursor(spec),
        McpClient::Codex => codex(spec),
        McpClient::Gemini => vec![
            paste("type in a terminal", gemini(spec)),
            say(
                "`/mcp` in Gemini CLI shows it; servers start only in folders that you told it to trust",
            ),
        ],
        McpClient::Inspector => vec![paste("type in a terminal", inspector(spec))],
        McpClient::OpenaiApi => vec![paste(
            "type in a terminal, with your model and your key",
            openai_api(spec, url),
        )],
        McpClient::ClaudeApi => vec![paste(
            "type in a terminal, with your model and your key",
            claude_api(spec, url),
        )],
    }
}

/// Note that follows a write: how the client picks up its changed configuration file.
pub(crate) fn after_writing(client: McpClient, scope: ConfigScope) -> &'static str {
    match (client, scope) {
        (McpClient::ClaudeCode, ConfigScope::Project) => {
            "Claude Code asks once, when it starts in this folder, whether it may use the server"
        }
        (McpClient::ClaudeCode, ConfigScope::User) => "`claude mcp list` shows it",
        (McpClient::Codex, ConfigScope::Project) => {
            "Codex reads it in projects that you trust; `codex mcp list` shows it"
        }
        (McpClient::Codex, ConfigScope::User) => "`codex mcp list` shows it",
        (McpClient::Gemini, _) => {
            "`gemini mcp list` shows it, in folders that you told Gemini CLI to trust"
        }
        (McpClient::ClaudeDesktop, _) => "quit Claude Desktop and start it again",
        (McpClient::Vscode, _) => "`MCP: List Servers` in VS Code shows it and starts it",
        _ => "restart the client, or reload its tools",
    }
}

fn chatgpt(spec: &ConnectionSpec, url: &str) -> Vec<SetupStep> {
    vec![
        say("Settings, Apps & Connectors, Advanced settings: turn on developer mode"),
        paste("Create: as the name", spec.title.clone()),
        paste("as the MCP server URL", url),
        say("as authentication: none, or OAuth where the server asks for sign-in; then Create"),
        say("in a chat: +, More, pick it; after tools changed, press Refresh on its settings page"),
    ]
}

fn claude(spec: &ConnectionSpec, url: &str) -> Vec<SetupStep> {
    let mut link = String::from("https://claude.ai/customize/connectors");
    if let Ok(mut whole) = Url::parse(&link) {
        whole
            .query_pairs_mut()
            .append_pair("modal", "add-custom-connector")
            .append_pair("connectorName", &spec.title)
            .append_pair("connectorUrl", url);
        link = whole.into();
    }
    vec![
        paste("open this page and confirm", link),
        paste(
            "or Customize, Connectors, Add custom connector, and paste",
            url,
        ),
    ]
}

/// Value of the `--scope` flag of the clients' own commands.
fn scope(spec: &ConnectionSpec) -> &'static str {
    match spec.scope {
        ConfigScope::User => "user",
        ConfigScope::Project => "project",
    }
}

/// The `--header` flag for the bearer token, if one is used; `value` formats the reference to the environment variable.
fn header(spec: &ConnectionSpec, value: impl FnOnce(&str) -> String) -> String {
    let flag = |variable: &String| {
        let value = value(variable);
        format!(" --header \"Authorization: Bearer {value}\"")
    };
    spec.token_env.as_ref().map(flag).unwrap_or_default()
}

fn claude_code(spec: &ConnectionSpec) -> String {
    let scope = scope(spec);
    let name = &spec.name;
    match &spec.transport {
        ClientTransport::Http(url) => {
            let header = header(spec, |variable| format!("${variable}"));
            let url = shell_quote(url.as_str());
            format!("claude mcp add --transport http --scope {scope} {name} {url}{header}")
        }
        ClientTransport::Stdio(command) => {
            format!(
                "claude mcp add --scope {scope} {name} -- {}",
                shell_command_line(command)
            )
        }
    }
}

fn vscode(spec: &ConnectionSpec) -> Vec<SetupStep> {
    let mut server = Map::from_iter([("name".to_owned(), json!(spec.name))]);
    server.extend(ServerEntry::of(spec).set);
    let server = Value::Object(server).to_string();
    vec![
        paste(
            "type in a terminal",
            format!("code --add-mcp {}", shell_quote(&server)),
        ),
        paste(
            "or put this into `.vscode/mcp.json`",
            file_json(spec, "servers"),
        ),
    ]
}

fn cursor(spec: &ConnectionSpec) -> Vec<SetupStep> {
    let config = STANDARD.encode(ServerEntry::of(spec).to_value().to_string());
    let mut steps = Vec::new();
    if let Ok(mut link) = Url::parse("cursor://anysphere.cursor-deeplink/mcp/install") {
        link.query_pairs_mut()
            .append_pair("name", &spec.name)
            .append_pair("config", &config);
        steps.push(paste("open this link", link));
    }
    steps.push(paste(
        "or put this into `~/.cursor/mcp.json`",
        file_json(spec, "mcpServers"),
    ));
    steps
}

fn codex(spec: &ConnectionSpec) -> Vec<SetupStep> {
    let name = &spec.name;
    let command = match &spec.transport {
        ClientTransport::Http(url) => {
            let token = spec
                .token_env
                .as_ref()
                .map_or_else(String::new, |variable| {
                    format!(" --bearer-token-env-var {}", shell_quote(variable))
                });
            format!(
                "codex mcp add {name} --url {}{token}",
                shell_quote(url.as_str())
            )
        }
        ClientTransport::Stdio(command) => {
            format!("codex mcp add {name} -- {}", shell_command_line(command))
        }
    };
    vec![
        paste("type in a terminal", command),
        say("`/mcp` in Codex shows it; `codex mcp login` signs in where the server asks for it"),
    ]
}

fn gemini(spec: &ConnectionSpec) -> String {
    let scope = scope(spec);
    let name = &spec.name;
    match &spec.transport {
        ClientTransport::Http(url) => {
            // The reference is stored in the file, so the shell must not expand it.
            let header = header(spec, |variable| format!("\\${{{variable}}}"));
            let url = shell_quote(url.as_str());
            format!("gemini mcp add --transport http --scope {scope}{header} {name} {url}")
        }
        ClientTransport::Stdio(command) => format!(
            "gemini mcp add --scope {scope} {name} {}",
            shell_command_line(command)
        ),
    }
}

fn inspector(spec: &ConnectionSpec) -> String {
    let program = "npx -y @modelcontextprotocol/inspector --cli --method tools/list";
    match &spec.transport {
        ClientTransport::Http(url) => {
            format!(
                "{program} --transport http --server-url {}",
                shell_quote(url.as_str())
            )
        }
        ClientTransport::Stdio(command) => format!(
            "{program} --transport stdio -- {}",
            shell_command_line(command)
        ),
    }
}

fn openai_api(spec: &ConnectionSpec, url: &str) -> String {
    let mut tool = json!({
        "type": "mcp", "server_label": spec.name, "server_url": url,
        "require_approval": "never", "allowed_tools": ["search", "fetch"],
    });
    let input = format!("What do the documents of {} tell?", spec.title);
    if spec.token_env.is_some() {
        set(&mut tool, "authorization", TOKEN);
    }
    let body = json!({"model": "YOUR_MODEL", "input": input, "tools": [tool]});
    curl(
        "https://api.openai.com/v1/responses",
        &["Authorization: Bearer $OPENAI_API_KEY"],
        &body,
        spec.token_env.as_ref(),
    )
}

fn claude_api(spec: &ConnectionSpec, url: &str) -> String {
    let mut server = json!({"type": "url", "url": url, "name": spec.name});
    if spec.token_env.is_some() {
        set(&mut server, "authorization_token", TOKEN);
    }
    let question = format!("What do the documents of {} tell?", spec.title);
    let body = json!({
        "model": "YOUR_MODEL", "max_tokens": 1024,
        "messages": [{"role": "user", "content": question}],
        "mcp_servers": [server],
        "tools": [{"type": "mcp_toolset", "mcp_server_name": spec.name}],
    });
    curl(
        "https://api.anthropic.com/v1/messages",
        &[
            "x-api-key: $ANTHROPIC_API_KEY",
            "anthropic-version: 2023-06-01",
            "anthropic-beta: mcp-client-2025-11-20",
        ],
        &body,
        spec.token_env.as_ref(),
    )
}

fn set(object: &mut Value, key: &str, value: &str) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), json!(value));
    }
}

/// Placeholder for the token until the body is shell-quoted. A control character, which no URL or title contains.
const TOKEN: &str = "\u{1}";

fn curl(url: &str, headers: &[&str], body: &Value, token: Option<&String>) -> String {
    let mut lines = vec![format!("curl {url}")];
    lines.extend(headers.iter().map(|header| format!("-H \"{header}\"")));
    lines.push("-H \"Content-Type: application/json\"".to_owned());
    let mut body = format!("{body:#}").replace('\'', "'\\''");
    if let Some(variable) = token {
        // Ends the single quotes before the variable and reopens them after it, so that the shell expands it.
        body = body.replace("\\u0001", &format!("'\"${variable}\"'"));
    }
    lines.push(format!("-d '{body}'"));
    lines.join(" \\\n  ")
}

/// Content of a configuration file that contains only this server.
fn file_json(spec: &ConnectionSpec, section: &str) -> String {
    let name = spec.name.clone();
    let servers = Map::from_iter([(name, ServerEntry::of(spec).to_value())]);
    format!("{:#}", json!({section: servers}))
}

/// Quotes a command line for a POSIX shell.
pub(crate) fn shell_command_line(command: &[String]) -> String {
    let words: Vec<_> = command.iter().map(|word| shell_quote(word)).collect();
    words.join(" ")
}

/// Quotes a word for a POSIX shell if it needs quotes.
pub(crate) fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(client: McpClient, transport: ClientTransport) -> ConnectionSpec {
        ConnectionSpec {
            client,
            name: "dam".to_owned(),
            title: "The dam's papers".to_owned(),
            transport,
            token_env: None,
            scope: ConfigScope::User,
            folder: "/srv/dam papers".to_owned(),
            listen: "127.0.0.1:8787".to_owned(),
        }
    }

    fn address() -> ClientTransport {
        ClientTransport::Http(Url::parse("https://dam.example/mcp").unwrap())
    }

    fn program() -> ClientTransport {
        let words = ["/opt/docent", "serve", "/srv/dam papers", "--stdio"];
        ClientTransport::Stdio(words.map(str::to_owned).to_vec())
    }

    fn first_paste(spec: &ConnectionSpec) -> String {
        steps(spec).into_iter().find_map(|step| step.paste).unwrap()
    }

    #[test]
    fn commands_are_what_their_clients_take() {
        for (client, transport, expected) in [
            (
                McpClient::ClaudeCode,
                address(),
                "claude mcp add --transport http --scope user dam https://dam.example/mcp",
            ),
            (
                McpClient::ClaudeCode,
                program(),
                "claude mcp add --scope user dam -- /opt/docent serve '/srv/dam papers' --stdio",
            ),
            (
                McpClient::Codex,
                address(),
                "codex mcp add dam --url https://dam.example/mcp",
            ),
            (
                McpClient::Codex,
                program(),
                "codex mcp add dam -- /opt/docent serve '/srv/dam papers' --stdio",
            ),
            (
                McpClient::Gemini,
                address(),
                "gemini mcp add --transport http --scope user dam https://dam.example/mcp",
            ),
            (
                McpClient::Gemini,
                program(),
                "gemini mcp add --scope user dam /opt/docent serve '/srv/dam papers' --stdio",
            ),
            (
                McpClient::Claude,
                address(),
                "https://claude.ai/customize/connectors?modal=add-custom-connector&connectorName=The+dam%27s+papers&connectorUrl=https%3A%2F%2Fdam.example%2Fmcp",
            ),
            (
                McpClient::Vscode,
                address(),
                r#"code --add-mcp '{"name":"dam","type":"http","url":"https://dam.example/mcp"}'"#,
            ),
        ] {
            assert_eq!(first_paste(&spec(client, transport)), expected);
        }
    }

    /// A real shell parses the command back to the same JSON, with quotes in titles and with the token expanded.
    #[cfg(unix)]
    #[test]
    fn a_shell_reads_what_was_meant() {
        for client in [McpClient::OpenaiApi, McpClient::ClaudeApi] {
            let spec = ConnectionSpec {
                token_env: Some("DAM_TOKEN".to_owned()),
                ..spec(client, address())
            };
            let script = first_paste(&spec).replacen("curl", "printf '%s\\n'", 1);
            let ran = std::process::Command::new("sh")
                .args(["-c", &script])
                .env("DAM_TOKEN", "s3cret")
                .output()
                .unwrap();
            let printed = String::from_utf8(ran.stdout).unwrap();
            let body = printed.split_once("-d\n").unwrap().1;
            let body: Value = serde_json::from_str(body).unwrap();
            let token = body
                .pointer("/tools/0/authorization")
                .or(body.pointer("/mcp_servers/0/authorization_token"));
            assert_eq!(token, Some(&json!("s3cret")), "{body}");
            assert!(body.to_string().contains("The dam's papers"));
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_cut_them() {
        for (word, expected) in [
            ("a/b-c", "a/b-c"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("", "''"),
            ("$x", "'$x'"),
        ] {
            assert_eq!(shell_quote(word), expected);
        }
    }
}
