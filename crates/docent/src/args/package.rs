//! Arguments of `docent package`.

use std::path::PathBuf;

use clap::Args as Flags;

const EXAMPLES: &str = "\
Examples:
  docent package ./documents
  docent package ./documents --url https://docs.example.org/mcp --author \"Harbour Office\"
  docent package ./documents --bundle-url https://example.org/docs-1.0.0.mcpb --version 1.0.0

Writes into OUT:
  NAME.mcpb                      a bundle for Claude Desktop: docent itself and its manifest
  server.json                    the entry for the MCP registry
  chatgpt-app-submission.json    the answers to ChatGPT's submission form: hints, test cases
and reports the findings of `docent check --as submission`. The test cases are drawn from the
documents; only those that the server passes are written.";

/// Arguments of `docent package`, which builds what directories and registries ask for.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES)]
pub struct PackageArgs {
    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// Output folder
    #[arg(long, value_name = "FOLDER", default_value = "package")]
    pub out: PathBuf,

    /// Public URL of the MCP endpoint [default: from server.public_url]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// Version of the published package
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    pub version: String,

    /// Name of the publisher
    #[arg(long, default_value = "the publisher")]
    pub author: String,

    /// Name in the registry, such as `org.example/docs` [default: from the public URL]
    #[arg(long, value_name = "NAME")]
    pub registry_name: Option<String>,

    /// URL at which people will download the bundle
    #[arg(long, value_name = "URL")]
    pub bundle_url: Option<String>,

    /// URL of the privacy policy
    #[arg(long, value_name = "URL")]
    pub privacy_url: Option<String>,

    /// Program to put into the bundle [default: this one]
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
}
