//! Arguments of `docent permissions`.

use std::path::PathBuf;

use clap::{Args as Flags, Subcommand};

const EXAMPLES: &str = "\
Examples:
  docent permissions explain hr/pay.md --path ./documents
                                      show who may read a document, and by which rule
  docent permissions explain hr/pay.md --as anna
                                      check whether anna may, with her groups
  docent permissions explain hr/pay.md --as group:board
  docent permissions list --unreadable
                                      list documents that nobody can read, why, and the fix

NAME is a user of `docent user`, an API key, a group, an email address, `sub:…`, `key:…`, `group:…`,
`signed-in` or `everyone`. The readers of a document come from the index, which `docent index`
updates; the file itself shows which rule named them.
Exit status: 0 success, or NAME may read it; 1 failure, or NAME may not; 2 wrong usage, or no such
document.";

/// Arguments of `docent permissions`, which explains the access control of an index.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct PermissionsArgs {
    /// The folder with the documents
    #[arg(long, global = true, default_value = ".")]
    pub path: PathBuf,

    /// Where the index is stored [default: PATH/.docent/index, or the user's cache directory]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub index: Option<String>,

    /// The subcommand that was chosen.
    #[command(subcommand)]
    pub command: PermissionsCommand,
}

/// Queries about who may read which document.
#[derive(Debug, Subcommand)]
pub enum PermissionsCommand {
    /// Show who may read a document, and which rule decides it
    Explain(ExplainArgs),
    /// List documents and who may read them
    List {
        /// Only documents that nobody can read, with the reason and the fix
        #[arg(long)]
        unreadable: bool,

        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The document to explain, and optionally the caller to check it for.
#[derive(Debug, Flags)]
pub struct ExplainArgs {
    /// Id of the document, as `search` returns it
    pub id: String,

    /// Check whether this caller may read it
    #[arg(long = "as", value_name = "NAME")]
    pub who: Option<String>,

    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}
