//! `docent audit`: whether the files of an audit log are as they were written.

use std::process::ExitCode;

use crate::args::AuditCommand;
use crate::audit::verify::verify;
use crate::cli_error::CliError;
use crate::knowledge_base::pluralize;
use crate::output;

pub(super) fn run(command: &AuditCommand) -> Result<ExitCode, CliError> {
    let AuditCommand::Verify { files } = command;
    // What cannot be read is no verdict on the log.
    let verdict = verify(files).map_err(|mut problem| {
        problem.exit = 2;
        problem
    })?;
    match verdict {
        Ok(whole) => {
            for remark in &whole.remarks {
                output::warn(remark, None);
            }
            output::data(&format!(
                "whole: {}, the last is {} with hash {}",
                pluralize(whole.lines, "line"),
                whole.last.number,
                whole.last.hash
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(broken) => {
            output::data(&format!(
                "broken: `{}`, line {}: {}",
                broken.file.display(),
                broken.line,
                broken.why
            ))?;
            Ok(ExitCode::from(1))
        }
    }
}
