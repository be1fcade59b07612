//! Arguments of `docent audit`.

use std::path::PathBuf;

use clap::{Args as Flags, Subcommand};

const EXAMPLES: &str = "\
Examples:
  docent audit verify audit.jsonl
  docent audit verify audit.jsonl.000000012345 audit.jsonl

Exit status: 0 the log is intact, 1 it was tampered with, 2 it cannot be read.";

/// Arguments of `docent audit`, all of which belong to its subcommand.
#[derive(Debug, Flags)]
pub struct AuditArgs {
    /// The subcommand that was chosen.
    #[command(subcommand)]
    pub command: AuditCommand,
}

/// Operations on an audit log. Verifying needs no server and no settings, only the files.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check the hash chain: report the first line that was changed, removed or reordered
    #[command(after_help = EXAMPLES)]
    Verify {
        /// The files of the log, oldest first
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}
