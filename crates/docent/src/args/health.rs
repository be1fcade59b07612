//! Arguments of `docent health`.

use clap::Args as Flags;

const EXAMPLES: &str = "\
Examples:
  docent health
  docent health --ready
  docent health https://docs.example.org

For health checks in containers without a shell or curl.
Exit status: 0 healthy, 1 unhealthy or no answer, 2 wrong usage.";

/// Arguments of `docent health`, a health check for container orchestrators.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES)]
pub struct HealthArgs {
    /// URL of the server [default: from DOCENT_SERVER_LISTEN, or http://127.0.0.1:8787]
    pub url: Option<String>,

    /// Check readiness (/readyz), not only liveness (/healthz)
    #[arg(long)]
    pub ready: bool,

    /// Timeout in seconds, 1 to 600
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,
}
