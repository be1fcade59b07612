//! Arguments of `docent user`.

use std::path::PathBuf;

use clap::{Args as Flags, Subcommand};

const EXAMPLES: &str = "\
Examples:
  docent user add anna --email anna@port.example --group crew --path ./documents
                                      add a user; the new password is printed once
  docent user add nils --stdin < password.txt
                                      add a user with a password of your choice
  docent user list --path ./documents
  docent user password anna           reset a password; access ends within 15 minutes
  docent user remove anna             remove a user; access ends within 15 minutes

Users sign in if the folder is served with `--auth password`. See docs/signin.md.";

/// Arguments of `docent user`, which manages accounts of the built-in sign-in.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct UserArgs {
    /// The folder with the documents
    #[arg(long, global = true, default_value = ".")]
    pub path: PathBuf,

    /// The subcommand that was chosen.
    #[command(subcommand)]
    pub command: UserCommand,
}

/// Operations on the user accounts of a folder.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Add a user; a new password is printed once
    Add(AddUserArgs),
    /// List the users
    List {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Reset a user's password; the new one is printed once
    Password(ChangePasswordArgs),
    /// Remove a user
    Remove {
        /// Name of the user
        name: String,
    },
}

/// Properties of a new user account.
#[derive(Debug, Flags)]
pub struct AddUserArgs {
    /// User name to sign in with
    pub name: String,

    /// Email address, for permission rules and for hosts that ask for it
    #[arg(long, value_name = "ADDRESS")]
    pub email: Option<String>,

    /// Group that the user belongs to; may be repeated
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,

    /// Read the password from the first line of stdin
    #[arg(long)]
    pub stdin: bool,
}

/// The user whose password is reset, and where the new one comes from.
#[derive(Debug, Flags)]
pub struct ChangePasswordArgs {
    /// Name of the user
    pub name: String,

    /// Read the password from the first line of stdin
    #[arg(long)]
    pub stdin: bool,
}
