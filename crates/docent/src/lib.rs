//! argv into a running service: a folder of documents that ChatGPT, Claude and every other MCP
//! client can search, read and cite.
//!
//! What was typed ([`args`]) becomes what it means ([`settings`]), and that becomes work
//! ([`commands`]). The library exists so that the tests can hold the tools to their contract in
//! process; the program is its one user.

pub mod app;
pub mod args;
pub mod audit;
pub mod commands;
pub mod connect;
pub mod corpus;
pub mod engine;
pub mod knowledge;
pub mod links;
pub mod model;
pub mod output;
pub mod pages;
pub mod permissions;
pub mod preview;
pub mod problem;
pub mod settings;
pub mod shape;
pub mod telemetry;
pub mod tools;

mod doctor;
mod eval;
mod fields;
mod layout;
mod logging;
mod losses;
mod meter;
mod package;
mod place;
mod reference;
mod standing;

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
