//! `docent init`: surveys a folder and writes a docent.toml that fits it. Every setting is commented out, so that the
//! file changes nothing until it is edited.

mod settings_template;
mod survey;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use docent_atomic_file::FileAccess;

use super::default_title;
use crate::args;
use crate::cli_error::CliError;
use crate::display_text::pluralize;
use crate::output;
use crate::settings::{FILE, Settings};
use survey::FolderSurvey;

pub(super) fn run(init: &args::InitArgs, settings: &Settings) -> Result<ExitCode, CliError> {
    let folder = super::folder(&init.path)?;
    let target = folder.join(FILE);
    if !init.print && !init.force && target.symlink_metadata().is_ok() {
        let message = format!("`{}` is already there", target.display());
        let hint = "replace it with `--force`, or print a new one with `--print`";
        return Err(CliError::usage(message).hint(hint));
    }
    let survey = FolderSurvey::of(&folder, settings)?;
    let text = settings_template::write(&survey, &default_title(&folder));
    if init.print {
        output::data(text.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    write_file(&folder, &text, init.force)?;
    let fields = survey.catalog.fields.len() as u64;
    output::say(&format!(
        "wrote `{}`: {} in {} of {}",
        target.display(),
        pluralize(fields, "field"),
        pluralize(survey.catalog.documents, "document"),
        pluralize(survey.looked_at as u64, "file"),
    ));
    output::say("nothing is set yet; remove the `#` before each setting that you want");
    Ok(ExitCode::SUCCESS)
}

/// Writes the file: by atomic rename if it may replace another, else with `create_new`, which never overwrites and also
/// works on file systems without hard links.
fn write_file(folder: &Path, text: &str, may_replace: bool) -> Result<(), CliError> {
    let path = folder.join(FILE);
    let written = if may_replace {
        docent_atomic_file::replace(&path, text.as_bytes(), FileAccess::Default)
    } else {
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        file.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
    };
    written.map_err(|error| CliError::io("write", &path, error))
}
