//! What `docent connect` takes.

use std::path::PathBuf;

use clap::{Args as Flags, ValueEnum};

use crate::connect::{ConfigScope, McpClient};

const EXAMPLES: &str = "\
Examples:
  docent connect                        list the clients
  docent connect chatgpt ./documents    what to type in ChatGPT, and what is still missing
  docent connect claude-code ./documents --write
                                        write it into Claude Code's own configuration
  docent connect codex --url https://docs.example.org/mcp --write
  docent connect vscode ./documents --scope project --write
  docent connect claude-code ./documents --remove

Without --url, --http or --stdio: the public address of docent.toml if there is one, else a program
that the client starts by itself (--stdio) where the client can do that. The connection is tried as
the client would. Exit status: 0 it answers, 1 something is missing, 2 wrong usage.";

/// What `docent connect` takes.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES)]
pub struct ConnectArgs {
    /// Which client; without one, all are listed
    pub client: Option<McpClient>,

    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// The address of the MCP endpoint, such as a tunnel's
    #[arg(long, value_name = "URL", conflicts_with_all = ["stdio", "http"])]
    pub url: Option<String>,

    /// The address at which `docent serve` listens on this machine
    #[arg(long, conflicts_with = "stdio")]
    pub http: bool,

    /// Have the client start docent by itself
    #[arg(long)]
    pub stdio: bool,

    /// What the client calls the server [default: from the title]
    #[arg(long)]
    pub name: Option<String>,

    /// The environment variable with the token to send; the token itself is written nowhere
    #[arg(long, value_name = "VARIABLE")]
    pub token_env: Option<String>,

    /// Write it into the client's configuration file, with a backup beside it
    #[arg(long, conflicts_with = "remove")]
    pub write: bool,

    /// Take it out of the client's configuration file again
    #[arg(long)]
    pub remove: bool,

    /// Whose configuration: the user's, or the project's in the current folder
    #[arg(long, value_enum, default_value_t = ConfigScope::User)]
    pub scope: ConfigScope,

    /// Replace or remove a server of that name that is not this one
    #[arg(long)]
    pub force: bool,

    /// Do not try the connection
    #[arg(long)]
    pub no_verify: bool,

    /// How to print it
    #[arg(long, value_enum, default_value_t = PrintFormat::Text)]
    pub print: PrintFormat,
}

/// How something is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PrintFormat {
    /// For people at a terminal
    Text,
    /// For programs
    Json,
}
