//! What `docent health` takes.

use clap::Args as Flags;

const EXAMPLES: &str = "\
Examples:
  docent health
  docent health --ready
  docent health https://docs.example.org

For health checks of containers, where there is no shell and no curl.
Exit status: 0 it is well, 1 it is not or nobody answers, 2 wrong usage.";

/// What `docent health` takes.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES)]
pub struct HealthArgs {
    /// The address of the server [default: where DOCENT_SERVER_LISTEN says, or http://127.0.0.1:8787]
    pub url: Option<String>,

    /// Ask whether it can answer everything, not only whether it lives
    #[arg(long)]
    pub ready: bool,

    /// How long it may take, 1 to 600 seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,
}
