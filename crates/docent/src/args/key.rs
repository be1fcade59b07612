//! What `docent key` takes.

use std::path::PathBuf;

use clap::{Args as Flags, Subcommand};

const EXAMPLES: &str = "\
Examples:
  docent key add nightly-report --path ./documents
  docent key add board-app --claim groups=board --claim groups=staff --days 90
  docent key list
  docent key remove nightly-report

A key is shown once, when it is made; only a hash of it is kept. A client sends it as
`Authorization: Bearer KEY` or `x-api-key: KEY`. Keys count where sign-in is on, and
`auth.api_keys = true` in docent.toml is enough for that. See docs/signin.md.";

/// What `docent key` takes.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES)]
pub struct KeyArgs {
    /// The folder with the documents
    #[arg(long, global = true, default_value = ".")]
    pub path: PathBuf,

    /// What to do.
    #[command(subcommand)]
    pub command: KeyCommand,
}

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Make a key and print it, this once
    Add(AddKeyArgs),
    /// Say which keys there are
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove keys by their id or by their name; they open nothing a second later
    Remove {
        /// The id, or the name of one or several
        key: String,
    },
}

/// A key to be made.
#[derive(Debug, Flags)]
pub struct AddKeyArgs {
    /// Whose it is; what is permitted to this name is permitted to whoever has the key
    pub name: String,

    /// What it grants; may be repeated [default: what `auth.scopes` demands]
    #[arg(long, value_name = "SCOPE")]
    pub scope: Vec<String>,

    /// More about its owner, such as groups=board; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub claim: Vec<String>,

    /// After how many days it ends [default: never]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=3660))]
    pub days: Option<u64>,
}
