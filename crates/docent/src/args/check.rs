//! Arguments of `docent check`.

use std::path::PathBuf;

use clap::{Args as Flags, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  docent check https://docs.example.org/mcp
                                      with the profiles that fit the server
  docent check https://docs.example.org/mcp --as deep-research,claude
  docent check --stdio -- npx some-server ./files
  docent check                        check the server of the current folder
  docent check URL --as submission --format sarif > check.sarif
  docent check URL --save-tools tools.json
  docent check URL --baseline tools.json
                                      find changes that break hosts with the old tools
  docent check URL --browser          also render the widgets in a real browser
  docent check --list-rules --as claude

Profiles: protocol, chatgpt, deep-research, company-knowledge, claude, apps, submission, all.
Besides `search` and `fetch`, only tools that declare themselves read-only are called. A check
sends at most 400 requests, one after the other. Rules and their sources: docs/rules.md.

Exit status: 0 no errors found, 1 errors found or the check failed, 2 wrong usage.";

/// Arguments of `docent check`, which tests an MCP server against the rules of its hosts.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// URL of the MCP endpoint; without it, docent starts and checks the server of a folder
    #[arg(conflicts_with_all = ["stdio", "path"])]
    pub url: Option<String>,

    /// Check the program named after `--`, which speaks MCP on stdin and stdout
    #[arg(long, conflicts_with = "path")]
    pub stdio: bool,

    /// The program to start, and its arguments
    #[arg(last = true, value_name = "COMMAND", requires = "stdio")]
    pub command: Vec<String>,

    /// The folder whose server is checked if no URL is given [default: .]
    #[arg(long, value_name = "FOLDER")]
    pub path: Option<PathBuf>,

    /// Profile of rules to apply; may be repeated [default: the profiles that fit the server]
    #[arg(long = "as", value_name = "PROFILE", value_delimiter = ',')]
    pub profiles: Vec<String>,

    /// Format of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub format: ReportFormat,

    /// Print the findings as JSON
    #[arg(long, conflicts_with = "format")]
    pub json: bool,

    /// A query for which `search` should find something; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub query: Vec<String>,

    /// Bearer token to send with every request
    #[arg(long, env = "MCP_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// Sign in with a browser if the server requires it
    #[arg(long, conflicts_with_all = ["token", "stdio"])]
    pub login: bool,

    /// Client id for the sign-in [default: a newly registered client]
    #[arg(long, value_name = "ID", requires = "login")]
    pub client_id: Option<String>,

    /// Also call tools without arguments that do not declare themselves read-only
    #[arg(long)]
    pub allow_writes: bool,

    /// Also request a few of the URLs that `search` returns
    #[arg(long)]
    pub open_urls: bool,

    /// Also send one incomplete request, and check that the server closes it within 40 seconds
    #[arg(long)]
    pub slow: bool,

    /// Also render each widget in Chromium as ChatGPT and as Claude would; `=PATH` chooses the browser
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true)]
    pub browser: Option<Option<PathBuf>>,

    /// Compare with tools that `--save-tools` wrote earlier
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,

    /// Write the server's tools to a file, for a later `--baseline`
    #[arg(long, value_name = "FILE")]
    pub save_tools: Option<PathBuf>,

    /// Timeout for each response, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub timeout: u64,

    /// List the rules and check nothing
    #[arg(long)]
    pub list_rules: bool,
}

/// Output formats of a report, for people, scripts and continuous integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Text for people at a terminal
    Text,
    /// JSON for scripts
    Json,
    /// SARIF for code scanning on code hosts
    Sarif,
    /// JUnit XML for build servers
    Junit,
    /// Markdown for issues and pull requests
    Markdown,
    /// A self-contained HTML page
    Html,
}
