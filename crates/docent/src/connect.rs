//! Connecting MCP clients to a server: setup steps for each client, edits of its configuration file, and a diagnosis of
//! what is still missing.

pub(crate) mod config_edit;
pub(crate) mod config_location;
pub(crate) mod config_store;
pub(crate) mod connection_status;
pub(crate) mod server_entry;
pub(crate) mod setup_steps;

mod json_file;
mod toml_file;

use clap::ValueEnum;
use url::{Host, Url};

/// Supported MCP clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum McpClient {
    /// ChatGPT in developer mode, on the web
    Chatgpt,
    /// claude.ai, and through it Claude on phones and desktops
    Claude,
    /// Claude Desktop, which starts docent over stdio
    ClaudeDesktop,
    /// Claude Code
    ClaudeCode,
    /// Visual Studio Code
    Vscode,
    /// Cursor
    Cursor,
    /// Codex CLI and its editor extensions
    Codex,
    /// Gemini CLI
    Gemini,
    /// The MCP Inspector
    Inspector,
    /// The OpenAI Responses API
    OpenaiApi,
    /// The Claude Messages API
    ClaudeApi,
}

/// Where the requests of a client come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientLocation {
    Local,
    /// The vendor's servers, which can reach only public https URLs.
    Remote,
}

/// Which configuration of a client to edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConfigScope {
    /// The configuration of the user, for all projects
    User,
    /// The configuration of the project in the current folder
    Project,
}

impl McpClient {
    /// Identifier on the command line, such as `claude-code`.
    #[must_use]
    pub fn id(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Product name in messages, such as `Claude Code`.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Chatgpt => "ChatGPT",
            Self::Claude => "claude.ai",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Vscode => "VS Code",
            Self::Cursor => "Cursor",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Inspector => "the MCP Inspector",
            Self::OpenaiApi => "the OpenAI Responses API",
            Self::ClaudeApi => "the Claude Messages API",
        }
    }

    pub(crate) fn reach(self) -> ClientLocation {
        match self {
            Self::Chatgpt | Self::Claude | Self::OpenaiApi | Self::ClaudeApi => {
                ClientLocation::Remote
            }
            _ => ClientLocation::Local,
        }
    }

    /// Whether the client can start a program and speak MCP with it over stdio.
    pub(crate) fn starts_programs(self) -> bool {
        self.reach() == ClientLocation::Local
    }

    /// Whether the client accepts the URL of an HTTP server.
    pub(crate) fn takes_addresses(self) -> bool {
        self != Self::ClaudeDesktop
    }
}

/// How a client reaches the server: by URL, or by starting a command over stdio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientTransport {
    Http(Url),
    /// The program to start, followed by its arguments.
    Stdio(Vec<String>),
}

impl ClientTransport {
    /// Whether the vendor's servers can reach it: an https URL whose host is neither private, loopback nor link-local,
    /// and whose name has a dot and no local suffix such as `.local`.
    pub(crate) fn is_public(&self) -> bool {
        let Self::Http(url) = self else {
            return false;
        };
        let known_outside = match url.host() {
            Some(Host::Ipv4(ip)) => {
                !(ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified())
            }
            Some(Host::Ipv6(ip)) => {
                !(ip.is_loopback() || ip.is_unique_local() || ip.is_unspecified())
            }
            Some(Host::Domain(name)) => {
                let local = [".local", ".localhost", ".internal", ".lan", ".home.arpa"];
                name.contains('.') && !local.iter().any(|end| name.ends_with(end))
            }
            None => false,
        };
        url.scheme() == "https" && known_outside
    }
}

/// Specification of a connection: the client, the transport and everything that the setup steps mention.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionSpec {
    pub client: McpClient,
    pub name: String,
    pub title: String,
    pub transport: ClientTransport,
    /// Name of the environment variable that holds the bearer token.
    pub token_env: Option<String>,
    pub scope: ConfigScope,
    /// Path of the documents folder, for hints that contain a `docent serve` command.
    pub folder: String,
    /// Configured listen address of `docent serve` for that folder.
    pub listen: String,
}

/// Maximum length of a server name. Some clients append tool names to it and allow 64 characters in total.
pub(crate) const MAX_NAME: usize = 32;

/// Slug of a title that every client accepts as a server name: lower-case letters, digits and dashes.
pub(crate) fn name_of(title: &str) -> String {
    let mut name = String::new();
    for c in title.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        } else if !name.ends_with('-') && !name.is_empty() {
            name.push('-');
        }
        if name.len() >= MAX_NAME {
            break;
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() {
        "docent".to_owned()
    } else {
        name.to_owned()
    }
}

/// Whether every client accepts this server name.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_become_names() {
        for (title, name) in [
            ("Parliament of Corrowin", "parliament-of-corrowin"),
            ("  Notes (2024)! ", "notes-2024"),
            ("日本語", "docent"),
            ("", "docent"),
        ] {
            assert_eq!(name_of(title), name);
            assert!(is_name(name));
        }
        assert_eq!(name_of(&"x".repeat(99)).len(), MAX_NAME);
        for bad in ["", "a b", "a.b", "ü", &"x".repeat(MAX_NAME + 1)] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn public_is_what_others_can_reach() {
        let public = |url: &str| ClientTransport::Http(Url::parse(url).unwrap()).is_public();
        for url in ["https://docs.example.org/mcp", "https://8.8.8.8/mcp"] {
            assert!(public(url), "{url}");
        }
        for url in [
            "http://docs.example.org/mcp",
            "https://localhost/mcp",
            "https://127.0.0.1/mcp",
            "https://192.168.1.2/mcp",
            "https://[::1]/mcp",
            "https://box.local/mcp",
            "https://intranet/mcp",
        ] {
            assert!(!public(url), "{url}");
        }
        assert!(!ClientTransport::Stdio(vec!["docent".to_owned()]).is_public());
    }
}
