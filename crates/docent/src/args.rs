//! What was typed: the commands and their flags, with the help that explains them. What a value
//! means, and whether it is a good one, is decided in [`settings`](crate::settings).

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

use clap::{Args as Flags, Parser, Subcommand};

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
use crate::settings::SettingValue;

const EXAMPLES: &str = "\
Examples:
  docent serve ./documents            serve a folder on http://127.0.0.1:8787/mcp
  docent serve ./documents --stdio    serve it to the program that started docent
  docent init ./documents             write a docent.toml with what is in a folder
  docent connect claude-code ./documents --write
                                      connect a client to it
  docent search \"ferry timetable\"     ask the index of the current folder
  docent eval queries.jsonl           score the search on queries you have judged
  docent check https://example.org/mcp
                                      audit any MCP server
  docent preview http://127.0.0.1:8787/mcp
                                      see it as ChatGPT and Claude would show it

Settings come from flags, then from the environment (DOCENT_…), then from `docent.toml`
in the folder of the documents. Exit status: 0 done, 1 failed or errors found, 2 wrong usage.";

/// Serve a folder of documents to ChatGPT, Claude and every other MCP client.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct CliArgs {
    /// What to log to stderr, such as `debug` or `info,tantivy=warn` [env: DOCENT_LOG]
    #[arg(long, global = true, value_name = "FILTER")]
    pub log: Option<String>,

    /// What to do.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Serve a folder: index it, keep it searchable, answer MCP clients
    Serve(ServeArgs),
    /// Connect a client: what to type, its configuration file, and whether it works
    Connect(ConnectArgs),
    /// Find out what is wrong with a folder, its index or this machine, and what mends it
    Doctor(DoctorArgs),
    /// Ask a running server how it is, for health checks without a shell
    Health(HealthArgs),
    /// Look at a folder and write a docent.toml with what was found, all commented out
    Init(InitArgs),
    /// Bring the index of a folder up to date and report what changed
    Index(IndexArgs),
    /// Carry the index of a folder to another engine, without reading or embedding anything again
    Migrate(MigrateArgs),
    /// Ask the index of a folder a question, here in the terminal
    Search(SearchArgs),
    /// Score the search of a folder on your own judged queries
    Eval(EvalArgs),
    /// Audit an MCP server the way ChatGPT and Claude would
    Check(CheckArgs),
    /// Make, list and remove API keys, for clients that can send a header but cannot sign in
    Key(KeyArgs),
    /// Look after the audit log of a server
    Audit(AuditArgs),
    /// Open a page that plays ChatGPT or Claude for an MCP server: call its tools, see its widgets
    Preview(PreviewArgs),
    /// Say who may read a document and why, and which documents nobody can read
    Permissions(PermissionsArgs),
    /// Say who may sign in with a password
    User(UserArgs),
    /// Make a bundle, a registry entry and a submission file of a folder
    Package(PackageArgs),
    /// Print the script that completes commands and flags in your shell
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

Documents, mail, tables and archives of many formats are read, and read again when they
change. The index lives in PATH/.docent/index; the documents themselves are never changed.
GET /readyz tells when a new folder is indexed.";

/// What `docent serve` takes.
#[derive(Debug, Flags)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// Speak MCP on stdin and stdout instead of HTTP
    #[arg(long, conflicts_with = "listen")]
    pub stdio: bool,

    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:8787]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,

    /// The address at which others reach this server, such as a proxy's or a tunnel's
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,

    /// Who signs people in: none, password (see `docent user`), upstream (an OpenID provider) [default: none]
    #[arg(long, value_name = "WHO", conflicts_with = "stdio")]
    pub auth: Option<String>,

    /// Where the index lives [default: PATH/.docent/index, or the user's cache]
    #[arg(long, value_name = "FOLDER")]
    pub index: Option<String>,

    /// Count calls, and show the counts to Prometheus and people at this address
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<String>,

    /// Speak https with the certificate in this file, its chain included; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<String>,

    /// The private key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<String>,

    /// Which files are read.
    #[command(flatten)]
    pub files: FileFilterArgs,

    /// What holds the index: embedded, qdrant; see docs/cluster.md [default: embedded]
    #[arg(long, value_name = "KIND")]
    pub engine: Option<String>,

    /// Look at the folder once, and not again when it changes
    #[arg(long)]
    pub no_watch: bool,

    /// Serve a page at /preview that plays ChatGPT or Claude for this server
    #[arg(long)]
    pub preview: bool,

    /// When `results` also stand beside `content`: auto, always, never [default: auto]
    #[arg(long, value_name = "WHEN")]
    pub dual: Option<String>,

    /// What the text of a result holds: json, prose [default: json]
    #[arg(long, value_name = "FORM")]
    pub text: Option<String>,

    /// Write a line about every tool call to this file
    #[arg(long, value_name = "FILE")]
    pub audit_log: Option<String>,

    /// Another name by which clients may call this server; may be repeated
    #[arg(long, value_name = "HOST")]
    pub allow_host: Vec<String>,

    /// A web page's origin that may call this server; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
}

/// Which files are read.
#[derive(Debug, Flags)]
pub struct FileFilterArgs {
    /// Read only files like this, such as `*.md` or `docs/**`; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub include: Vec<String>,

    /// Leave out files and folders like this, such as `drafts/`; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
}

/// What `docent init` takes.
#[derive(Debug, Flags)]
pub struct InitArgs {
    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// Replace a docent.toml that is there
    #[arg(long)]
    pub force: bool,

    /// Print it instead of writing it
    #[arg(long)]
    pub print: bool,
}

/// What follows the flags of `docent index`.
const INDEX_HELP: &str = "\
Exit status: 0 done, 1 failed, 2 wrong usage, 3 done, but rows or files were lost: each is named in
a line that begins with `error`. Formats that are not read are skipped and no loss.";

/// What `docent index` takes.
#[derive(Debug, Flags)]
#[command(after_help = INDEX_HELP)]
pub struct IndexArgs {
    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// Where the index lives [default: PATH/.docent/index, or the user's cache]
    #[arg(long, value_name = "FOLDER")]
    pub index: Option<String>,

    /// Which files are read.
    #[command(flatten)]
    pub files: FileFilterArgs,

    /// What holds the index: embedded, qdrant; see docs/cluster.md [default: embedded]
    #[arg(long, value_name = "KIND")]
    pub engine: Option<String>,

    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

const MIGRATE_EXAMPLES: &str = "\
Examples:
  docent migrate ./documents --to qdrant      from the folder's index to the cluster of docent.toml
  docent migrate ./documents --to embedded    and back

Begins again where it was interrupted, and compares both at the end. See docs/cluster.md.";

/// What `docent migrate` takes.
#[derive(Debug, Flags)]
#[command(after_help = MIGRATE_EXAMPLES)]
pub struct MigrateArgs {
    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// The engine to carry the index to: qdrant, embedded
    #[arg(long, value_name = "KIND")]
    pub to: String,

    /// Where the index of the folder lives [default: PATH/.docent/index, or the user's cache]
    #[arg(long, value_name = "FOLDER")]
    pub index: Option<String>,

    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

const SEARCH_EXAMPLES: &str = "\
Examples:
  docent search \"ferry timetable\"
  docent search 'housing party:Labor date:2024-06..2024-09 -tag:budget'
  docent search '\"exact words\" since:30d' --explain
  docent search \"who may vote\" --mode lexical --json";

/// What `docent search` takes.
#[derive(Debug, Flags)]
#[command(after_help = SEARCH_EXAMPLES)]
pub struct SearchArgs {
    /// What to look for, filters such as `party:Labor since:30d` included
    pub query: String,

    /// The folder with the documents
    #[arg(long, default_value = ".")]
    pub path: PathBuf,

    /// Where the index lives [default: PATH/.docent/index, or the user's cache]
    #[arg(long, value_name = "FOLDER")]
    pub index: Option<String>,

    /// How many results, 1 to 100 [default: 10]
    #[arg(long, value_name = "N")]
    pub limit: Option<String>,

    /// What to search by: hybrid, lexical (words alone), semantic (meaning alone) [default: hybrid]
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,

    /// Say why each result is where it is
    #[arg(long)]
    pub explain: bool,

    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// What `docent preview` takes.
#[derive(Debug, Flags)]
pub struct PreviewArgs {
    /// The address of the MCP endpoint, such as `http://127.0.0.1:8787/mcp`; no other is called
    pub url: Option<String>,

    /// Where the page is served, on this machine alone; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8790")]
    pub listen: String,

    /// Do not open the page in a browser
    #[arg(long)]
    pub no_open: bool,
}

/// The settings that were given as flags, by their keys.
pub(crate) type SettingOverrides = Vec<(&'static str, SettingValue)>;

impl CliArgs {
    /// The settings among the flags.
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

/// A flag that may be repeated.
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
            assert!(
                crate::settings::KEYS.iter().any(|known| known.name == *key),
                "{key}"
            );
        }
        let hosts = given.iter().find(|(key, _)| *key == "server.allow_hosts");
        assert_eq!(
            hosts.unwrap().1,
            SettingValue::List(vec!["f".to_owned(), "g".to_owned()])
        );
    }
}
