//! A client and a scope into the file that holds its servers, on each system.

use std::path::PathBuf;

use etcetera::BaseStrategy as _;

use super::{ConfigScope, McpClient};
use crate::cli_error::CliError;

/// How a configuration file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigFileFormat {
    Json,
    /// JSON in which its client allows comments.
    JsonWithComments,
    /// JSON in which its client allows comments and a comma after the last member.
    Jsonc,
    Toml,
}

/// A place for servers: a file, and the table in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigLocation {
    pub file: PathBuf,
    pub form: ConfigFileFormat,
    /// The key under which servers stand, by name.
    pub section: &'static str,
}

/// The folders that clients keep their files in.
#[derive(Debug, Clone)]
pub(crate) struct ConfigDirs {
    pub home: PathBuf,
    /// Where programs with windows keep their settings.
    pub programs: PathBuf,
    pub project: PathBuf,
    /// Where the user moved single clients to.
    pub claude: Option<PathBuf>,
    pub codex: Option<PathBuf>,
    pub gemini: Option<PathBuf>,
}

impl ConfigDirs {
    /// Those of this user, as the environment has them.
    pub(crate) fn of_user() -> Result<Self, CliError> {
        let unknown = || {
            CliError::failed("the home folder is not known")
                .hint("set `HOME`, or copy what is shown")
        };
        let home = etcetera::home_dir().map_err(|error| unknown().because(error))?;
        let native = etcetera::base_strategy::choose_native_strategy()
            .map_err(|error| unknown().because(error))?;
        // What a Mac calls the folder for data holds the settings of programs too.
        let programs = if cfg!(target_os = "macos") {
            native.data_dir()
        } else {
            native.config_dir()
        };
        let project = std::env::current_dir()
            .map_err(|error| CliError::failed("the current folder is gone").because(error))?;
        let moved = |name: &str| {
            std::env::var_os(name)
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        Ok(Self {
            home,
            programs,
            project,
            claude: moved("CLAUDE_CONFIG_DIR"),
            codex: moved("CODEX_HOME"),
            gemini: moved("GEMINI_CLI_HOME"),
        })
    }

    /// Where a client keeps its servers; nothing for one without a file, or without one in this scope.
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
        let homes = ConfigDirs {
            home: "/home/ilke".into(),
            programs: "/home/ilke/.config".into(),
            project: "/srv/dam".into(),
            claude: None,
            codex: None,
            gemini: None,
        };
        let file = |client, scope| {
            let found = homes.find(client, scope);
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
        let moved = ConfigDirs {
            codex: Some("/c".into()),
            claude: Some("/d".into()),
            ..homes
        };
        assert_eq!(
            moved
                .find(McpClient::Codex, ConfigScope::User)
                .unwrap()
                .file,
            PathBuf::from("/c/config.toml")
        );
        assert_eq!(
            moved
                .find(McpClient::ClaudeCode, ConfigScope::User)
                .unwrap()
                .file,
            PathBuf::from("/d/.claude.json")
        );
    }
}
