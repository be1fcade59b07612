//! The `docent` program as a library: an MCP server over a folder of documents that ChatGPT, Claude and every other
//! MCP client can search, read and cite.
//!
//! It has three layers, and each uses only those before it: command-line arguments ([`args`]), resolved settings
//! ([`settings`]) and commands ([`commands`]). It is a library so that tests can call the MCP tools in process; the
//! `docent` binary is its only user.

pub mod app;
pub mod args;
pub mod audit;
pub mod cli_error;
pub mod commands;
pub mod connect;
pub mod corpus;
pub mod document_transform;
pub mod engine_settings;
pub mod knowledge_base;
pub mod links;
pub mod model_settings;
pub mod output;
pub mod pages;
pub mod permissions;
pub mod preview;
pub mod settings;
pub mod telemetry;
pub mod tools;

mod display_text;
mod doctor;
mod eval;
mod fields;
mod index_location;
mod layout;
mod logging;
mod loss_report;
mod metrics;
mod package;
mod readiness;
mod reference;

use std::process::ExitCode;

use clap::Parser as _;

/// Parses the command line and runs the command. An error is printed on stderr and becomes the exit status: 2 for wrong
/// usage, 1 for a failure.
pub fn main() -> ExitCode {
    let args = args::CliArgs::parse();
    match commands::run(args) {
        Ok(code) => code,
        Err(problem) => {
            output::error(&problem);
            ExitCode::from(problem.exit)
        }
    }
}
