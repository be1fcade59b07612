//! What `docent user` takes.

use std::path::PathBuf;

use clap::{Args as Flags, Subcommand};

const EXAMPLES: &str = "\
Examples:
  docent user add anna --email anna@port.example --group crew --path ./documents
                                      add somebody; their new password is printed once
  docent user add nils --stdin < password.txt
                                      add somebody with a password of your own
  docent user list --path ./documents
  docent user password anna           give somebody a new password; it ends their sign-ins
  docent user remove anna             end their sign-ins for good

They sign in where the folder is served with `--auth password`. See docs/signin.md.";

/// What `docent user` takes.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct UserArgs {
    /// The folder with the documents
    #[arg(long, global = true, default_value = ".")]
    pub path: PathBuf,

    /// What to do.
    #[command(subcommand)]
    pub command: UserCommand,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Add somebody, with a new password that is printed once
    Add(AddUserArgs),
    /// Show who may sign in
    List {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Give somebody a new password, which is printed once
    Password(ChangePasswordArgs),
    /// Remove somebody
    Remove {
        /// Who
        name: String,
    },
}

/// Somebody new.
#[derive(Debug, Flags)]
pub struct AddUserArgs {
    /// The name to sign in with
    pub name: String,

    /// Their e-mail address, for rules and for hosts that ask for it
    #[arg(long, value_name = "ADDRESS")]
    pub email: Option<String>,

    /// A group they belong to; may be repeated
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,

    /// Take the first line of stdin as the password
    #[arg(long)]
    pub stdin: bool,
}

/// Somebody who gets a new password.
#[derive(Debug, Flags)]
pub struct ChangePasswordArgs {
    /// Who
    pub name: String,

    /// Take the first line of stdin as the password
    #[arg(long)]
    pub stdin: bool,
}
