//! What `docent doctor` takes.

use std::path::PathBuf;

use clap::Args as Flags;

const EXAMPLES: &str = "\
Looks at the settings, the folder, the index, its readers, the model, the disk, the clock, what can be
watched, the sandbox, the port and the public address, and changes nothing.
Exit status: 0 nothing is wrong (there may be warnings), 1 something is wrong, 2 wrong usage.";

/// What `docent doctor` takes.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// The address at which others should reach the server, if docent.toml has none
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,

    /// Where to listen, if docent.toml says nothing
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,

    /// Where the index lives [default: PATH/.docent/index, or the user's cache]
    #[arg(long, value_name = "FOLDER")]
    pub index: Option<String>,

    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}
