//! Arguments of `docent doctor`.

use std::path::PathBuf;

use clap::Args as Flags;

const EXAMPLES: &str = "\
Checks the settings, folder, index, permissions, model, disk, clock, file watching, sandbox, port
and public URL. Changes nothing. Does not check the nodes of a cluster.
Exit status: 0 nothing is wrong (there may be warnings), 1 something is wrong, 2 wrong usage.";

/// Arguments of `docent doctor`, which diagnoses a folder before or while it is served.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// The public URL to check [default: from docent.toml]
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,

    /// The listen address to check [default: from docent.toml]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,

    /// Where the index is stored [default: PATH/.docent/index, or the user's cache directory]
    #[arg(long, value_name = "FOLDER")]
    pub index: Option<String>,

    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}
