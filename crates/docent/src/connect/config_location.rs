//! Locations of the clients' configuration files, per client, scope and platform.

use std::path::PathBuf;

use etcetera::BaseStrategy as _;

use super::{ConfigScope, McpClient};
use crate::cli_error::CliError;

/// Syntax of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigFileFormat {
    Json,
    /// JSON with comments, but without trailing commas.
    JsonWithComments,
    /// JSON with comments and trailing commas.
    Jsonc,
    Toml,
}

/// A configuration file and the section in it that lists MCP servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigLocation {
    pub file: PathBuf,
    pub form: ConfigFileFormat,
    /// Key of the object or table that maps server names to entries.
    pub section: &'static str,
}

/// Base folders of the clients' configuration files, as this user's environment defines them.
#[derive(Debug, Clone)]
pub(crate) struct ConfigDirs {
    pub home: PathBuf,
    /// Where desktop applications store their settings.
    pub programs: PathBuf,
    pub project: PathBuf,
    /// Overrides for single clients, such as `CODEX_HOME`.
    pub claude: Option<PathBuf>,
    pub codex: Option<PathBuf>,
    pub gemini: Option<PathBuf>,
}

impl ConfigDirs {
    /// Determines the folders of the current user.
    pub(crate) fn of_user() -> Result<Self, CliError> {
        let unknown = || {
            CliError::failed("the home directory is unknown")
                .hint("set `HOME`, or follow the printed steps")
        };
        let home = etcetera::home_dir().map_err(|error| unknown().because(error))?;
        let native = etcetera::base_strategy::choose_native_strategy()
            .map_err(|error| unknown().because(error))?;
        // On macOS, applications store settings in `Application Support`, which the strategy calls the data directory.
        let programs = if cfg!(target_os = "macos") {
            native.data_dir()
        } else {
            native.config_dir()
        };
        let project = std::env::current_dir().map_err(|error| {
            CliError::failed("cannot determine the current directory").because(error)
        })?;
        let override_dir = |name: &str| {
            std::env::var_os(name)
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        Ok(Self {
            home,
            programs,
            project,
            claude: override_dir("CLAUDE_CONFIG_DIR"),
            codex: override_dir("CODEX_HOME"),
            gemini: override_dir("GEMINI_CLI_HOME"),
        })
    }

    /// The configuration file of a client; `None` if the client has none in this scope.
    pub(crate) fn find(&self, client: McpClient, scope: ConfigScope) -> Option<ConfigLocation> {
        use ConfigFileFormat::{Json, JsonWithComments, Jsonc, Toml};
        let user = scope == ConfigScope::User;
        let (file, form, section) = match client {
            McpClient::ClaudeCode if user => {
                let folder = self.claude.as_ref().unwrap_or(&self.home);
                (folder.join(".claude.json"), Json, "mcpServers")
            }
            McpClient::ClaudeCode => (self.project.join(".mcp.json"), Json, "mcpServers"),
            McpClient::ClaudeDesktop if user => {
                let folder = self.programs.join("Claude");
                (
                    folder.join("claude_desktop_config.json"),
                    Json,
                    "mcpServers",
                )
            }
            McpClient::Vscode => {
                let user_folder = || self.programs.join("Code").join("User");
                let folder = if user {
                    user_folder()
                } else {
                    self.project.join(".vscode")
                };
                (folder.join("mcp.json"), Jsonc, "servers")
            }
            McpClient::Cursor => {
                let folder = if user { &self.home } else { &self.project };
                (folder.join(".cursor").join("mcp.json"), Json, "mcpServers")
            }
            McpClient::Codex => {
                let folder = match (&self.codex, user) {
                    (Some(folder), true) => folder.clone(),
                    (None, true) => self.home.join(".codex"),
                    (_, false) => self.project.join(".codex"),
                };
                (folder.join("config.toml"), Toml, "mcp_servers")
            }
            McpClient::Gemini => {
                let base = if user {
                    self.gemini.as_ref().unwrap_or(&self.home)
                } else {
                    &self.project
                };
                let file = base.join(".gemini").join("settings.json");
                (file, JsonWithComments, "mcpServers")
            }
            _ => return None,
        };
        Some(ConfigLocation {
            file,
            form,
            section,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_files() {
        let dirs = ConfigDirs {
            home: "/home/ilke".into(),
            programs: "/home/ilke/.config".into(),
            project: "/srv/dam".into(),
            claude: None,
            codex: None,
            gemini: None,
        };
        let file = |client, scope| {
            let found = dirs.find(client, scope);
            found.map(|found| found.file.to_string_lossy().into_owned())
        };
        let table = [
            (
                McpClient::ClaudeCode,
                "/home/ilke/.claude.json",
                Some("/srv/dam/.mcp.json"),
            ),
            (
                McpClient::ClaudeDesktop,
                "/home/ilke/.config/Claude/claude_desktop_config.json",
                None,
            ),
            (
                McpClient::Vscode,
                "/home/ilke/.config/Code/User/mcp.json",
                Some("/srv/dam/.vscode/mcp.json"),
            ),
            (
                McpClient::Cursor,
                "/home/ilke/.cursor/mcp.json",
                Some("/srv/dam/.cursor/mcp.json"),
            ),
            (
                McpClient::Codex,
                "/home/ilke/.codex/config.toml",
                Some("/srv/dam/.codex/config.toml"),
            ),
            (
                McpClient::Gemini,
                "/home/ilke/.gemini/settings.json",
                Some("/srv/dam/.gemini/settings.json"),
            ),
        ];
        for (client, user, project) in table {
            assert_eq!(file(client, ConfigScope::User).as_deref(), Some(user));
            assert_eq!(file(client, ConfigScope::Project).as_deref(), project);
        }
        for client in [
            McpClient::Chatgpt,
            McpClient::Claude,
            McpClient::Inspector,
            McpClient::OpenaiApi,
            McpClient::ClaudeApi,
        ] {
            assert_eq!(file(client, ConfigScope::User), None);
        }
        let overridden = ConfigDirs {
            codex: Some("/c".into()),
            claude: Some("/d".into()),
            ..dirs
        };
        assert_eq!(
            overridden
                .find(McpClient::Codex, ConfigScope::User)
                .unwrap()
                .file,
            PathBuf::from("/c/config.toml")
        );
        assert_eq!(
            overridden
                .find(McpClient::ClaudeCode, ConfigScope::User)
                .unwrap()
                .file,
            PathBuf::from("/d/.claude.json")
        );
    }
}
