//! `docent check`: the address of an MCP server into findings.

use std::process::ExitCode;

use crate::problem::Problem;

pub(super) fn run(url: &str, as_json: bool) -> Result<ExitCode, Problem> {
    let _ = (url, as_json);
    Ok(ExitCode::SUCCESS)
}
