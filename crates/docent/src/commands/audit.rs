//! `docent audit`: verifies the hash chain of an audit log. Exit status 1 means tampering, 2 that it cannot be read.

use std::process::ExitCode;

use crate::args::AuditCommand;
use crate::audit::verify::verify;
use crate::cli_error::CliError;
use crate::display_text::pluralize;
use crate::output;

pub(super) fn run(command: &AuditCommand) -> Result<ExitCode, CliError> {
    let AuditCommand::Verify { files } = command;
    // An unreadable file is not a verdict on the log, so it must not share exit status 1.
    let verdict = verify(files).map_err(|mut problem| {
        problem.exit = 2;
        problem
    })?;
    match verdict {
        Ok(log) => {
            for remark in &log.remarks {
                output::warn(remark, None);
            }
            output::data(&format!(
                "intact: {}, the last is {} with hash {}",
                pluralize(log.lines, "line"),
                log.last.number,
                log.last.hash
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(tampered) => {
            output::data(&format!(
                "tampered: `{}`, line {}: {}",
                tampered.file.display(),
                tampered.line,
                tampered.why
            ))?;
            Ok(ExitCode::from(1))
        }
    }
}
