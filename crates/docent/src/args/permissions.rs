//! What `docent permissions` takes.

use std::path::PathBuf;

use clap::{Args as Flags, Subcommand};

const EXAMPLES: &str = "\
Examples:
  docent permissions explain hr/pay.md --path ./documents
                                      who may read a document, and by which rule
  docent permissions explain hr/pay.md --as anna
                                      may she, with the groups that she has?
  docent permissions explain hr/pay.md --as group:board
  docent permissions list --unreadable
                                      documents that nobody can read, why, and the cure

NAME is somebody of `docent user`, an API key, a group, an address of mail, `sub:…`, `key:…`, `group:…`,
`signed-in` or `everyone`. They are read from the index; `docent index` brings it up to date.
Exit status: 0 done, or NAME may read it; 1 failed, or NAME may not; 2 wrong usage, or no such document.";

/// What `docent permissions` takes.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct PermissionsArgs {
    /// The folder with the documents
    #[arg(long, global = true, default_value = ".")]
    pub path: PathBuf,

    /// Where the index lives [default: PATH/.docent/index, or the user's cache]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub index: Option<String>,

    /// What to do.
    #[command(subcommand)]
    pub command: PermissionsCommand,
}

/// What can be asked.
#[derive(Debug, Subcommand)]
pub enum PermissionsCommand {
    /// Say who may read a document, and which rule says so
    Explain(ExplainArgs),
    /// List documents and who may read them
    List {
        /// Only documents that nobody can read, with the reason and the cure
        #[arg(long)]
        unreadable: bool,

        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
}

/// A document, and who wants to read it.
#[derive(Debug, Flags)]
pub struct ExplainArgs {
    /// The id of the document, as `search` gives it
    pub id: String,

    /// Whether this one may read it
    #[arg(long = "as", value_name = "NAME")]
    pub who: Option<String>,

    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}
