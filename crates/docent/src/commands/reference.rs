//! `docent completions` and `docent man`: print shell completions and manual pages.

use std::process::ExitCode;

use crate::args::{CompletionsArgs, ManPageArgs};
use crate::cli_error::CliError;
use crate::display_text::shorten;
use crate::output;
use crate::reference;

pub(super) fn completions(completions: &CompletionsArgs) -> Result<ExitCode, CliError> {
    // Not sanitized: the script is generated and must reach the shell unchanged.
    output::styled(reference::completions(completions.shell)?.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn man(man: &ManPageArgs) -> Result<ExitCode, CliError> {
    if let Some(folder) = &man.dir {
        let count = reference::write_pages(folder)?;
        output::say(&format!("wrote {count} pages into `{}`", folder.display()));
        return Ok(ExitCode::SUCCESS);
    }
    if man.markdown {
        output::data(reference::markdown().trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let file = match &man.command {
        Some(command) => format!("docent-{command}.1"),
        None => "docent.1".to_owned(),
    };
    let pages = reference::pages()?;
    let page = pages.iter().find(|(name, _)| *name == file);
    let (_, page) = page.ok_or_else(|| {
        let typed = man.command.as_deref().unwrap_or_default();
        CliError::usage(format!("there is no command `{}`", shorten(typed, 80)))
            .hint("`docent --help` lists them")
    })?;
    output::styled(page.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
