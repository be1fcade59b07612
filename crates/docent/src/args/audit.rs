//! What `docent audit` takes.

use std::path::PathBuf;

use clap::{Args as Flags, Subcommand};

const EXAMPLES: &str = "\
Examples:
  docent audit verify audit.jsonl
  docent audit verify audit.jsonl.000000012345 audit.jsonl

Exit status: 0 nobody changed it, 1 somebody did, 2 it cannot be read.";

/// What `docent audit` takes.
#[derive(Debug, Flags)]
pub struct AuditArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: AuditCommand,
}

/// What can be done with an audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Say whether somebody changed, removed or reordered lines, and name the first bad one
    #[command(after_help = EXAMPLES)]
    Verify {
        /// The files of the log, the oldest first
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}
