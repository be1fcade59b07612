//! A client and a scope into the file that holds its servers, on each system.

use std::path::PathBuf;

use etcetera::BaseStrategy as _;

use super::{Client, Scope};
use crate::problem::Problem;

/// How a configuration file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    /// JSON in which its client allows comments.
    JsonWithComments,
    /// JSON in which its client allows comments and a comma after the last member.
    Jsonc,
    Toml,
}

/// A place for servers: a file, and the table in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whereabouts {
    pub file: PathBuf,
    pub form: Form,
    /// The key under which servers stand, by name.
    pub section: &'static str,
}

/// The folders that clients keep their files in.
#[derive(Debug, Clone)]
pub(crate) struct Homes {
    pub home: PathBuf,
    /// Where programs with windows keep their settings.
    pub programs: PathBuf,
    pub project: PathBuf,
    /// Where the user moved single clients to.
    pub claude: Option<PathBuf>,
    pub codex: Option<PathBuf>,
    pub gemini: Option<PathBuf>,
}

impl Homes {
    /// Those of this user, as the environment has them.
    pub(crate) fn of_user() -> Result<Self, Problem> {
        let unknown = || {
            Problem::failed("the home folder is not known")
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
            .map_err(|error| Problem::failed("the current folder is gone").because(error))?;
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
    pub(crate) fn find(&self, client: Client, scope: Scope) -> Option<Whereabouts> {
        use Form::{Json, JsonWithComments, Jsonc, Toml};
        let user = scope == Scope::User;
        let (file, form, section) = match client {
            Client::ClaudeCode if user => {
                let folder = self.claude.as_ref().unwrap_or(&self.home);
                (folder.join(".claude.json"), Json, "mcpServers")
            }
            Client::ClaudeCode => (self.project.join(".mcp.json"), Json, "mcpServers"),
            Client::ClaudeDesktop if user => {
                let folder = self.programs.join("Claude");
                (
                    folder.join("claude_desktop_config.json"),
                    Json,
                    "mcpServers",
                )
            }
            Client::Vscode => {
                let user_folder = || self.programs.join("Code").join("User");
                let folder = if user {
                    user_folder()
                } else {
                    self.project.join(".vscode")
                };
                (folder.join("mcp.json"), Jsonc, "servers")
            }
            Client::Cursor => {
                let folder = if user { &self.home } else { &self.project };
                (folder.join(".cursor").join("mcp.json"), Json, "mcpServers")
            }
            Client::Codex => {
                let folder = match (&self.codex, user) {
                    (Some(folder), true) => folder.clone(),
                    (None, true) => self.home.join(".codex"),
                    (_, false) => self.project.join(".codex"),
                };
                (folder.join("config.toml"), Toml, "mcp_servers")
            }
            Client::Gemini => {
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
        Some(Whereabouts {
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
        let homes = Homes {
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
                Client::ClaudeCode,
                "/home/ilke/.claude.json",
                Some("/srv/dam/.mcp.json"),
            ),
            (
                Client::ClaudeDesktop,
                "/home/ilke/.config/Claude/claude_desktop_config.json",
                None,
            ),
            (
                Client::Vscode,
                "/home/ilke/.config/Code/User/mcp.json",
                Some("/srv/dam/.vscode/mcp.json"),
            ),
            (
                Client::Cursor,
                "/home/ilke/.cursor/mcp.json",
                Some("/srv/dam/.cursor/mcp.json"),
            ),
            (
                Client::Codex,
                "/home/ilke/.codex/config.toml",
                Some("/srv/dam/.codex/config.toml"),
            ),
            (
                Client::Gemini,
                "/home/ilke/.gemini/settings.json",
                Some("/srv/dam/.gemini/settings.json"),
            ),
        ];
        for (client, user, project) in table {
            assert_eq!(file(client, Scope::User).as_deref(), Some(user));
            assert_eq!(file(client, Scope::Project).as_deref(), project);
        }
        for client in [
            Client::Chatgpt,
            Client::Claude,
            Client::Inspector,
            Client::OpenaiApi,
            Client::ClaudeApi,
        ] {
            assert_eq!(file(client, Scope::User), None);
        }
        let moved = Homes {
            codex: Some("/c".into()),
            claude: Some("/d".into()),
            ..homes
        };
        assert_eq!(
            moved.find(Client::Codex, Scope::User).unwrap().file,
            PathBuf::from("/c/config.toml")
        );
        assert_eq!(
            moved.find(Client::ClaudeCode, Scope::User).unwrap().file,
            PathBuf::from("/d/.claude.json")
        );
    }
}
