//! A server's address into findings: does this MCP server do what hosts ask of one?
//!
//! [`check`] calls the server as a client would and holds its answers against the rules of hosts. This crate
//! shares no code with the servers it looks at, so that a mistake made on both sides cannot hide.

mod error;
mod report;
mod rules;
mod sse;
mod target;

use std::time::Duration;

use error::Error;
pub use report::{Counts, Finding, Report, Severity};
use target::Target;

/// The longest one call may take, from looking up the name to the last byte. Hosts give up at about a
/// minute; a server that needs half of that to list its tools has a problem.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Checks the MCP server at `url`, waiting for its answers. Trouble in talking to it is a finding too.
pub fn check(url: &str) -> Report {
    check_within(url, CALL_TIMEOUT)
}

/// [`check`] with another bound on every call.
pub fn check_within(url: &str, call_timeout: Duration) -> Report {
    let mut report = Report::new(url);
    match visit(url, call_timeout) {
        Ok(server) => {
            for rule in rules::RULES {
                report.add(rule.id(), rule.check(&server));
            }
        }
        Err(error) => report.add("target/answers", vec![trouble(&error)]),
    }
    report
}

fn visit(url: &str, call_timeout: Duration) -> Result<rules::Server, Error> {
    let mut target = Target::connect(url, call_timeout)?;
    let tools = target.tools();
    target.leave();
    Ok(rules::Server { tools: tools? })
}

fn trouble(error: &Error) -> Finding {
    Finding {
        rule: "target/answers",
        severity: Severity::Error,
        message: error.to_string(),
        evidence: error.evidence(),
        hint: error.hint(),
        source: "MCP specification, basic/transports/streamable-http",
        as_of: "2026-11-15",
    }
}
