//! Command-line arguments: the subcommands, their flags and their help texts.
//!
//! A flag that is also a setting stays a plain text here; [`settings`](crate::settings) parses and validates it, so
//! that the file, the environment and the command line report the same errors.

mod audit;
mod check;
mod connect;
mod doctor;
mod eval;
mod health;
mod key;
mod package;
mod permissions;
mod reference;
mod user;

use std::path::PathBuf;

use clap::{Arg, ArgAction, Args as Flags, Parser, Subcommand};

pub use self::audit::{AuditArgs, AuditCommand};
pub use self::check::{CheckArgs, ReportFormat};
pub use self::connect::{ConnectArgs, PrintFormat};
pub use self::doctor::DoctorArgs;
pub use self::eval::EvalArgs;
pub use self::health::HealthArgs;
pub use self::key::{AddKeyArgs, KeyArgs, KeyCommand};
pub use self::package::PackageArgs;
pub use self::permissions::{ExplainArgs, PermissionsArgs, PermissionsCommand};
pub use self::reference::{CompletionsArgs, ManPageArgs};
pub use self::user::{AddUserArgs, ChangePasswordArgs, UserArgs, UserCommand};
use crate::settings::{KEYS, SettingDefault, SettingKey, SettingValue};

const EXAMPLES: &str = "\
Examples:
  docent serve ./documents            serve a folder on http://127.0.0.1:8787/mcp
  docent serve ./documents --stdio    serve a folder on stdin and stdout
  docent init ./documents             write a docent.toml for a folder
  docent connect claude-code ./documents --write
                                      connect a client to it
  docent search \"ferry timetable\"     search the index of the current folder
  docent eval queries.jsonl           measure search quality on your judged queries
  docent check https://example.org/mcp
                                      check any MCP server
  docent preview http://127.0.0.1:8787/mcp
                                      see it as ChatGPT and Claude would show it

Flags override the environment (DOCENT_…), which overrides `docent.toml` in the folder of the
documents. Exit status: 0 success, 1 failure or errors found, 2 wrong usage.";

/// Serve a folder of documents to ChatGPT, Claude and every other MCP client.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct CliArgs {
    /// Log filter for stderr, such as `debug` or `info,tantivy=warn` [env: DOCENT_LOG]
    #[arg(long, global = true, value_name = "FILTER")]
    pub log: Option<String>,

    /// The subcommand that was chosen.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// The subcommands of `docent`.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Serve a folder: index it, keep the index up to date and answer MCP clients
    Serve(ServeArgs),
    /// Connect a client: show the steps, edit its configuration file and test the connection
    Connect(ConnectArgs),
    /// Diagnose the settings, folder, index and machine, and suggest a fix for each problem
    Doctor(DoctorArgs),
    /// Check the health of a running server, for containers without a shell
    Health(HealthArgs),
    /// Inspect a folder and write a docent.toml for it, with every setting commented out
    Init(InitArgs),
    /// Update the index of a folder and report what changed
    Index(IndexArgs),
    /// Copy the index of a folder to another engine, with its vectors
    Migrate(MigrateArgs),
    /// Search the index of a folder in the terminal
    Search(SearchArgs),
    /// Measure the search quality of a folder on your own judged queries
    Eval(EvalArgs),
    /// Check an MCP server against the protocol and the rules of ChatGPT and Claude
    Check(CheckArgs),
    /// Create, list and revoke API keys, for clients that can send a header but cannot sign in
    Key(KeyArgs),
    /// Verify the audit log of a server
    Audit(AuditArgs),
    /// Open a page that simulates ChatGPT or Claude for an MCP server: call its tools, see its widgets
    Preview(PreviewArgs),
    /// Explain who may read a document, and list documents that nobody can read
    Permissions(PermissionsArgs),
    /// Manage the users who sign in with a password
    User(UserArgs),
    /// Package a folder for distribution: a bundle, a registry entry and a submission file
    Package(PackageArgs),
    /// Print the completion script for your shell
    Completions(CompletionsArgs),
    /// Print or write the manual pages
    Man(ManPageArgs),
}

const SERVE_EXAMPLES: &str = "\
Examples:
  docent serve ./documents
  docent serve ./documents --listen 0.0.0.0:8787 --public-url https://docs.example.org
  docent serve ./documents --auth password --public-url https://docs.example.org
  docent serve ./documents --stdio

Reads documents, mail, tables and archives of many formats, and reindexes a file when it
changes. The index is stored in PATH/.docent/index; your files are never modified.
GET /readyz returns 200 once a new folder is indexed.";

/// Arguments of `docent serve`, which mirror the settings of the same names.
#[derive(Debug, Flags)]
#[command(after_help = SERVE_EXAMPLES, mut_args = with_default)]
pub struct ServeArgs {
    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// Speak MCP on stdin and stdout instead of HTTP
    #[arg(long, conflicts_with = "listen")]
    pub stdio: bool,

    /// Listen address; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,

    /// The URL at which clients reach this server through a proxy or a tunnel
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,

    /// Sign-in method: none, password (see `docent user`), upstream (an OpenID provider)
    #[arg(long, value_name = "METHOD", conflicts_with = "stdio")]
    pub auth: Option<String>,

    /// Where the index is stored [default: PATH/.docent/index, or the user's cache directory]
    #[arg(long, value_name = "FOLDER")]
    pub index: Option<String>,

    /// Serve metrics at this address: /metrics for Prometheus, / for people
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<String>,

    /// Speak https with the certificate chain in this PEM file, which is reloaded when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<String>,

    /// PEM file with the private key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<String>,

    /// Filters that choose which files are indexed.
    #[command(flatten)]
    pub files: FileFilterArgs,

    /// Where to keep the index: embedded (a folder), qdrant (a cluster, see docs/cluster.md)
    #[arg(long, value_name = "KIND")]
    pub engine: Option<String>,

    /// Scan the folder once and do not watch it for changes
    #[arg(long)]
    pub no_watch: bool,

    /// Serve a page at /preview that simulates ChatGPT or Claude for this server
    #[arg(long)]
    pub preview: bool,

    /// When to repeat `results` next to `content`, for old clients: auto, always, never
    #[arg(long, value_name = "WHEN")]
    pub dual: Option<String>,

    /// Format of a result's text content: json, prose
    #[arg(long, value_name = "FORM")]
    pub text: Option<String>,

    /// Append a line for every tool call to this audit log
    #[arg(long, value_name = "FILE")]
    pub audit_log: Option<String>,

    /// Another host name by which clients may call this server; may be repeated
    #[arg(long, value_name = "HOST")]
    pub allow_host: Vec<String>,

    /// Origin of a web page that may call this server; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
}

/// Filters that choose which files of the folder are indexed.
#[derive(Debug, Flags)]
pub struct FileFilterArgs {
    /// Read only files that match this pattern, such as `*.md` or `docs/**`; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub include: Vec<String>,

    /// Skip files and folders that match this pattern, such as `drafts/`; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
}

/// Arguments of `docent init`, which writes a settings file.
#[derive(Debug, Flags)]
pub struct InitArgs {
    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// Replace an existing docent.toml
    #[arg(long)]
    pub force: bool,

    /// Print the file instead of writing it
    #[arg(long)]
    pub print: bool,
}

/// Help text below the flags of `docent index`. It documents exit status 3, which no other command has.
const INDEX_HELP: &str = "\
Exit status: 0 success, 1 failure, 2 wrong usage, 3 indexed with losses: a line that begins with
`error` names each row or file that was lost. Unsupported formats are skipped and do not count.";

/// Arguments of `docent index`, which updates an index once and exits.
#[derive(Debug, Flags)]
#[command(after_help = INDEX_HELP, mut_args = with_default)]
pub struct IndexArgs {
    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// Where the index is stored [default: PATH/.docent/index, or the user's cache directory]
    #[arg(long, value_name = "FOLDER")]
    pub index: Option<String>,

    /// Filters that choose which files are indexed.
    #[command(flatten)]
    pub files: FileFilterArgs,

    /// Where to keep the index: embedded (a folder), qdrant (a cluster, see docs/cluster.md)
    #[arg(long, value_name = "KIND")]
    pub engine: Option<String>,

    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

const MIGRATE_EXAMPLES: &str = "\
Examples:
  docent migrate ./documents --to qdrant      from the folder's index to the cluster in docent.toml
  docent migrate ./documents --to embedded    from the cluster to the folder's index

Reads no files, and embeds only documents that have no vectors yet. Resumes where it was
interrupted, and compares both indexes at the end. See docs/cluster.md.";

/// Arguments of `docent migrate`, which copies an index to another engine.
#[derive(Debug, Flags)]
#[command(after_help = MIGRATE_EXAMPLES)]
pub struct MigrateArgs {
    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// The engine to copy the index to: qdrant, embedded
    #[arg(long, value_name = "KIND")]
    pub to: String,

    /// Where the index of the folder is stored [default: PATH/.docent/index, or the user's cache directory]
    #[arg(long, value_name = "FOLDER")]
    pub index: Option<String>,

    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

const SEARCH_EXAMPLES: &str = "\
Examples:
  docent search \"ferry timetable\"
  docent search 'housing party:Harbour date:2024-06..2025-06 -topic_tags:budget'
  docent search '\"lead pipes\" since:2025' --explain
  docent search \"who may vote\" --mode lexical --json";

/// Arguments of `docent search`, which queries an index without a server.
#[derive(Debug, Flags)]
#[command(after_help = SEARCH_EXAMPLES, mut_args = with_default)]
pub struct SearchArgs {
    /// The query, which may contain filters such as `party:Harbour since:2024-06`
    pub query: String,

    /// The folder with the documents
    #[arg(long, default_value = ".")]
    pub path: PathBuf,

    /// Where the index is stored [default: PATH/.docent/index, or the user's cache directory]
    #[arg(long, value_name = "FOLDER")]
    pub index: Option<String>,

    /// Number of results, 1 to 100
    #[arg(long, value_name = "N")]
    pub limit: Option<String>,

    /// Search method: hybrid, lexical (keywords only), semantic (embeddings only)
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,

    /// Show the scores that rank each result
    #[arg(long)]
    pub explain: bool,

    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `docent preview`, which serves the test host on this machine.
#[derive(Debug, Flags)]
pub struct PreviewArgs {
    /// URL of the MCP endpoint, such as `http://127.0.0.1:8787/mcp`; the page can call no other
    pub url: Option<String>,

    /// Listen address of the page, on this machine only; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8790")]
    pub listen: String,

    /// Do not open the page in a browser
    #[arg(long)]
    pub no_open: bool,
}

/// Appends the default to the help of a flag that gives a setting its value. A flag that may be repeated states none:
/// lists of defaults are in docs/settings.md.
fn with_default(arg: Arg) -> Arg {
    let flag = arg.get_long().map(|long| format!("--{long}"));
    let key = KEYS.iter().find(|key| key.flag == flag.as_deref());
    let key = key.filter(|_| flag.is_some() && matches!(arg.get_action(), ArgAction::Set));
    match (key.map(SettingKey::default), arg.get_help()) {
        (Some(SettingDefault::Value(default)), Some(help)) => {
            let help = format!("{help} [default: {default}]");
            arg.help(help)
        }
        _ => arg,
    }
}

/// Settings given as flags, by their keys. They override the environment and `docent.toml`.
pub(crate) type SettingOverrides = Vec<(&'static str, SettingValue)>;

impl CliArgs {
    /// Collects the flags that are settings. Commands without such flags contribute only `--log`.
    pub(crate) fn overrides(&self) -> SettingOverrides {
        let mut given = match &self.command {
            CliCommand::Serve(serve) => serve.overrides(),
            CliCommand::Index(index) => {
                let mut given = text_override("index.dir", index.index.as_ref());
                given.extend(text_override("engine.kind", index.engine.as_ref()));
                given.extend(index.files.overrides());
                given
            }
            CliCommand::Migrate(migrate) => text_override("index.dir", migrate.index.as_ref()),
            CliCommand::Search(search) => {
                let mut given = text_override("index.dir", search.index.as_ref());
                given.extend(text_override("search.results", search.limit.as_ref()));
                given.extend(text_override("search.mode", search.mode.as_ref()));
                given
            }
            CliCommand::Eval(eval) => {
                let mut given = text_override("index.dir", eval.index.as_ref());
                given.extend(text_override("search.mode", eval.mode.as_ref()));
                given
            }
            CliCommand::Doctor(doctor) => {
                let mut given = text_override("index.dir", doctor.index.as_ref());
                given.extend(text_override("server.listen", doctor.listen.as_ref()));
                given.extend(text_override(
                    "server.public_url",
                    doctor.public_url.as_ref(),
                ));
                given
            }
            CliCommand::Permissions(permissions) => {
                text_override("index.dir", permissions.index.as_ref())
            }
            CliCommand::Audit(_)
            | CliCommand::Check(_)
            | CliCommand::Health(_)
            | CliCommand::Key(_)
            | CliCommand::User(_)
            | CliCommand::Package(_)
            | CliCommand::Connect(_)
            | CliCommand::Init(_)
            | CliCommand::Preview(_)
            | CliCommand::Completions(_)
            | CliCommand::Man(_) => Vec::new(),
        };
        given.extend(text_override("log", self.log.as_ref()));
        given
    }
}

impl ServeArgs {
    fn overrides(&self) -> SettingOverrides {
        let flags = [
            ("server.listen", &self.listen),
            ("server.public_url", &self.public_url),
            ("auth.mode", &self.auth),
            ("server.metrics", &self.metrics),
            ("server.tls_cert", &self.tls_cert),
            ("server.tls_key", &self.tls_key),
            ("server.dual", &self.dual),
            ("server.text", &self.text),
            ("index.dir", &self.index),
            ("audit.file", &self.audit_log),
            ("engine.kind", &self.engine),
        ];
        let mut given: SettingOverrides = flags
            .into_iter()
            .flat_map(|(key, value)| text_override(key, value.as_ref()))
            .collect();
        given.extend(list_override("server.allow_hosts", &self.allow_host));
        given.extend(list_override("server.allow_origins", &self.allow_origin));
        given.extend(self.files.overrides());
        if self.preview {
            given.push(("server.preview", SettingValue::Text("true".to_owned())));
        }
        if self.no_watch {
            given.push(("watch", SettingValue::Text("false".to_owned())));
        }
        given
    }
}

impl FileFilterArgs {
    fn overrides(&self) -> SettingOverrides {
        let mut given = list_override("documents.include", &self.include);
        given.extend(list_override("documents.exclude", &self.exclude));
        given
    }
}

/// Override from a flag that may be repeated. No occurrence means no override, so the file's list stays.
fn list_override(key: &'static str, values: &[String]) -> SettingOverrides {
    let given = Some(values).filter(|values| !values.is_empty());
    given
        .map(|values| (key, SettingValue::List(values.to_vec())))
        .into_iter()
        .collect()
}

fn text_override(key: &'static str, value: Option<&String>) -> SettingOverrides {
    value
        .map(|text| (key, SettingValue::Text(text.clone())))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        CliArgs::command().debug_assert();
    }

    #[test]
    fn the_examples_name_the_default_address() {
        let key = KEYS.iter().find(|key| key.name == "server.listen").unwrap();
        let address = format!("serve a folder on http://{}/mcp", key.default());
        assert!(EXAMPLES.contains(&address), "{EXAMPLES}");
    }

    #[test]
    fn help_states_the_defaults_of_settings() {
        let command = CliArgs::command();
        let help = |command: &clap::Command, flag: &str| {
            let mut arguments = command.get_arguments();
            let found = arguments.find(|arg| arg.get_long() == Some(flag)).unwrap();
            found.get_help().unwrap().to_string()
        };
        let ends = |name: &str, flag: &str, end: &str| {
            let text = help(command.find_subcommand(name).unwrap(), flag);
            assert!(text.ends_with(end), "{name} {flag}: {text}");
        };
        ends("serve", "listen", "a free port [default: 127.0.0.1:8787]");
        ends("search", "limit", "1 to 100 [default: 10]");
        ends("eval", "mode", "(embeddings only) [default: hybrid]");
        // A list, a switch, a setting without default, and a flag of the same name that is no setting.
        ends("serve", "allow-origin", "may be repeated");
        ends("serve", "no-watch", "do not watch it for changes");
        ends("serve", "metrics", "/ for people");
        ends("doctor", "listen", "[default: from docent.toml]");
        ends("preview", "listen", "picks a free port");
    }

    #[test]
    fn every_flag_is_a_known_setting() {
        let typed = [
            "docent",
            "serve",
            "--listen",
            "a",
            "--public-url",
            "b",
            "--auth",
            "j",
            "--dual",
            "c",
            "--text",
            "d",
            "--index",
            "e",
            "--engine",
            "j",
            "--allow-host",
            "f",
            "--allow-host",
            "g",
            "--allow-origin",
            "h",
            "--metrics",
            "m",
            "--tls-cert",
            "k",
            "--tls-key",
            "l",
            "--include",
            "*.md",
            "--exclude",
            "drafts/",
            "--preview",
            "--log",
            "i",
        ];
        let given = CliArgs::parse_from(typed).overrides();
        assert_eq!(given.len(), 16);
        for (key, _) in &given {
            assert!(KEYS.iter().any(|known| known.name == *key), "{key}");
        }
        let hosts = given.iter().find(|(key, _)| *key == "server.allow_hosts");
        assert_eq!(
            hosts.unwrap().1,
            SettingValue::List(vec!["f".to_owned(), "g".to_owned()])
        );
    }
}
