//! Arguments of `docent key`.

use std::path::PathBuf;

use clap::{Args as Flags, Subcommand};

const EXAMPLES: &str = "\
Examples:
  docent key add nightly-report --path ./documents
  docent key add board-app --claim groups=board --claim groups=staff --days 90
  docent key list
  docent key remove nightly-report

A key is shown once, when it is created; only its hash is stored. A client sends it as
`Authorization: Bearer KEY` or `x-api-key: KEY`. Keys are checked if authentication is on;
`auth.api_keys = true` in docent.toml turns it on. See docs/signin.md.";

/// Arguments of `docent key`. The folder is a global flag, so it may follow the subcommand.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES)]
pub struct KeyArgs {
    /// The folder with the documents
    #[arg(long, global = true, default_value = ".")]
    pub path: PathBuf,

    /// The subcommand that was chosen.
    #[command(subcommand)]
    pub command: KeyCommand,
}

/// Operations on the API keys of a folder.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Create a key and print it once
    Add(AddKeyArgs),
    /// List the keys, without their secrets
    List {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke keys by id or by name; a running server refuses them within a second
    Remove {
        /// The id of a key, or a name, which revokes all keys of that name
        key: String,
    },
}

/// Properties of a new API key.
#[derive(Debug, Flags)]
pub struct AddKeyArgs {
    /// Name of the key; whoever holds it may read what permission rules grant this name
    pub name: String,

    /// Scope to grant; may be repeated [default: the scopes that `auth.scopes` requires]
    #[arg(long, value_name = "SCOPE")]
    pub scope: Vec<String>,

    /// Claim about its holder, such as groups=board; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub claim: Vec<String>,

    /// Days until it expires [default: never]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=3660))]
    pub days: Option<u64>,
}
