//! Arguments of `docent connect`.

use std::path::PathBuf;

use clap::{Args as Flags, ValueEnum};

use crate::connect::{ConfigScope, McpClient};

const EXAMPLES: &str = "\
Examples:
  docent connect                        list the supported clients
  docent connect chatgpt ./documents    show the steps in ChatGPT, and what is still missing
  docent connect claude-code ./documents --write
                                        edit Claude Code's own configuration
  docent connect codex --url https://docs.example.org/mcp --write
  docent connect vscode ./documents --scope project --write
  docent connect claude-code ./documents --remove

Without --url, --http or --stdio, the client gets the public URL of docent.toml; if that is not set,
it starts docent itself over stdio, if it can. Docent then tests the connection as the client would.
Exit status: 0 the server answers, 1 something is missing, 2 wrong usage.";

/// Arguments of `docent connect`, which registers the server of a folder with an MCP client.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES)]
pub struct ConnectArgs {
    /// The client to connect; without it, docent lists all clients
    pub client: Option<McpClient>,

    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// URL of the MCP endpoint, such as that of a tunnel
    #[arg(long, value_name = "URL", conflicts_with_all = ["stdio", "http"])]
    pub url: Option<String>,

    /// Use the address at which `docent serve` listens on this machine
    #[arg(long, conflicts_with = "stdio")]
    pub http: bool,

    /// Let the client start docent and talk to it over stdio
    #[arg(long)]
    pub stdio: bool,

    /// Name of the server in the client [default: derived from the title]
    #[arg(long)]
    pub name: Option<String>,

    /// Environment variable that holds the bearer token; the token itself is never written
    #[arg(long, value_name = "VARIABLE")]
    pub token_env: Option<String>,

    /// Add the server to the client's configuration file, after a backup
    #[arg(long, conflicts_with = "remove")]
    pub write: bool,

    /// Remove the server from the client's configuration file
    #[arg(long)]
    pub remove: bool,

    /// Which configuration to edit: the user's, or that of the project in the current folder
    #[arg(long, value_enum, default_value_t = ConfigScope::User)]
    pub scope: ConfigScope,

    /// Replace or remove another server that has the same name
    #[arg(long)]
    pub force: bool,

    /// Do not test the connection
    #[arg(long)]
    pub no_verify: bool,

    /// Format of the output
    #[arg(long, value_enum, default_value_t = PrintFormat::Text)]
    pub print: PrintFormat,
}

/// Output formats of `docent connect`, for people and for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PrintFormat {
    /// Text for people at a terminal
    Text,
    /// JSON for scripts
    Json,
}
