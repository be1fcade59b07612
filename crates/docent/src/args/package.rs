//! What `docent package` takes.

use std::path::PathBuf;

use clap::Args as Flags;

const EXAMPLES: &str = "\
Examples:
  docent package ./documents
  docent package ./documents --url https://docs.example.org/mcp --author \"Harbour Office\"
  docent package ./documents --bundle-url https://example.org/releases/docs-1.0.0.mcpb --version 1.0.0

Writes into OUT:
  NAME.mcpb                      a bundle for Claude Desktop: docent itself and its manifest
  server.json                    the entry for the MCP registry
  chatgpt-app-submission.json    what ChatGPT's submission form asks: hints, test cases
and ends with what `docent check --as submission` finds. The test cases come from the documents and
are run first; one that the server does not answer is not written.";

/// What `docent package` takes.
#[derive(Debug, Flags)]
#[command(after_help = EXAMPLES)]
pub struct PackageArgs {
    /// The folder with the documents
    #[arg(default_value = ".")]
    pub path: PathBuf,

    /// Where to write
    #[arg(long, value_name = "FOLDER", default_value = "package")]
    pub out: PathBuf,

    /// The public address of the MCP endpoint [default: from server.public_url]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// The version of what is published
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    pub version: String,

    /// Who publishes it
    #[arg(long, default_value = "the publisher")]
    pub author: String,

    /// The name in the registry, such as `org.example/docs` [default: from the public address]
    #[arg(long, value_name = "NAME")]
    pub registry_name: Option<String>,

    /// Where people will download the bundle
    #[arg(long, value_name = "URL")]
    pub bundle_url: Option<String>,

    /// The address of the privacy policy
    #[arg(long, value_name = "URL")]
    pub privacy_url: Option<String>,

    /// The program to put into the bundle [default: this one]
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
}
