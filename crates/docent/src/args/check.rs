//! What `docent check` takes.

use std::path::PathBuf;

use clap::{Args as Flags, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  docent check https://docs.example.org/mcp
                                      as every client it seems to be made for
  docent check https://docs.example.org/mcp --as deep-research,claude
  docent check --stdio -- npx some-server ./files
  docent check                        the folder's own settings and server
  docent check URL --as submission --format sarif > check.sarif
  docent check URL --save-tools tools.json
  docent check URL --baseline tools.json
                                      what breaks for hosts that saw the tools then
  docent check URL --browser          widgets too, in a real browser
  docent check --list-rules --as claude

Profiles: protocol, chatgpt, deep-research, company-knowledge, claude, apps, submission, all.
Only tools that say they only read are called, besides `search` and `fetch`; a check sends at
most 400 requests, one after the other. Rules with their sources: docs/rules.md.

Exit status: 0 no errors found, 1 errors found or the check failed, 2 wrong usage.";

/// What `docent check` takes.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// The address of the MCP endpoint; without it the folder's own server is checked
    #[arg(conflicts_with_all = ["stdio", "path"])]
    pub url: Option<String>,

    /// Check the program after `--`, which speaks MCP on stdin and stdout
    #[arg(long, conflicts_with = "path")]
    pub stdio: bool,

    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND", requires = "stdio")]
    pub command: Vec<String>,

    /// The folder whose server is checked when there is no address [default: .]
    #[arg(long, value_name = "FOLDER")]
    pub path: Option<PathBuf>,

    /// For whom; may be repeated [default: those that the server seems to be made for]
    #[arg(long = "as", value_name = "PROFILE", value_delimiter = ',')]
    pub profiles: Vec<String>,

    /// How to print what was found
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,

    /// Print the findings as JSON
    #[arg(long, conflicts_with = "format")]
    pub json: bool,

    /// A question that `search` should have an answer to; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub query: Vec<String>,

    /// A token to send with every request
    #[arg(long, env = "MCP_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// Sign in, in a browser, where the server asks for it and there is no token
    #[arg(long, conflicts_with_all = ["token", "stdio"])]
    pub login: bool,

    /// The client id to sign in with; without it one is registered
    #[arg(long, value_name = "ID", requires = "login")]
    pub client_id: Option<String>,

    /// Also call tools without arguments that do not say that they only read
    #[arg(long)]
    pub allow_writes: bool,

    /// Also open a few of the addresses that `search` returns
    #[arg(long)]
    pub open_urls: bool,

    /// Also leave one request half sent, to see whether it is cut off within 40 seconds
    #[arg(long)]
    pub slow: bool,

    /// Also show each widget in Chromium, as ChatGPT and as Claude would; `=PATH` names another than the one on PATH
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true)]
    pub browser: Option<Option<PathBuf>>,

    /// Compare with the tools that a host saw at another time
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,

    /// Write the tools to a file, for `--baseline`
    #[arg(long, value_name = "FILE")]
    pub save_tools: Option<PathBuf>,

    /// The longest one answer may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub timeout: u64,

    /// List the rules and check nothing
    #[arg(long)]
    pub list_rules: bool,
}

/// The forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For people at a terminal
    Text,
    /// For programs
    Json,
    /// For code hosts
    Sarif,
    /// For build servers
    Junit,
    /// For issues and pull requests
    Markdown,
    /// One page
    Html,
}
