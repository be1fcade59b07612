//! Arguments of `docent health`.

use clap::{Arg, Args as Flags};

use crate::settings::KEYS;

const EXAMPLES: &str = "\
Examples:
  docent health
  docent health --ready
  docent health https://docs.example.org

For health checks in containers without a shell or curl.
Exit status: 0 healthy, 1 unhealthy or no answer, 2 wrong usage.";

/// Arguments of `docent health`, a health check for container orchestrators.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES, mut_arg("url", with_listen_address))]
pub struct HealthArgs {
    /// URL of the server
    pub url: Option<String>,

    /// Check readiness (/readyz), not only liveness (/healthz)
    #[arg(long)]
    pub ready: bool,

    /// Timeout in seconds, 1 to 600
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,
}

/// Appends the default to the help of the URL: the setting `server.listen`, which only the environment gives here.
fn with_listen_address(arg: Arg) -> Arg {
    let key = KEYS.iter().find(|key| key.name == "server.listen");
    let (Some(key), Some(help)) = (key, arg.get_help()) else {
        return arg;
    };
    let default = format!("from {}, or http://{}", key.variable(), key.default());
    let help = format!("{help} [default: {default}]");
    arg.help(help)
}
