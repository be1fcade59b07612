//! argv into a running service: a folder of documents that ChatGPT, Claude and every other MCP
//! client can search, read and cite.
//!
//! What was typed ([`args`]) becomes what it means ([`settings`]), and that becomes work
//! ([`commands`]). The library exists so that the tests can hold the tools to their contract in
//! process; the program is its one user.

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

/// Reads the command line, does what it says, and tells how it ended.
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
