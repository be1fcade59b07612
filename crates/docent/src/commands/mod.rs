//! The subcommands, and the context that those with a folder share. To add one, add a module here, a variant of
//! [`CliCommand`] and an arm in [`run`].

mod audit;
mod check;
mod connect;
mod doctor;
mod eval;
mod health;
mod index;
mod init;
mod key;
mod migrate;
mod package;
mod permissions;
mod preview;
mod problem_lines;
mod reference;
mod search;
mod serve;
mod user;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use docent_search::EmbeddedEngine;
use tokio::runtime::{Builder, Runtime};

use crate::args::{CliArgs, CliCommand, SettingOverrides};
use crate::cli_error::CliError;
use crate::display_text::one_line;
use crate::index_location::{self, IndexLocation};
use crate::settings::{self, ResolvedSettings, SettingSources, Settings};
use crate::telemetry::{SpanExportLayer, SpanExporter};
use crate::{logging, output};

/// Runs the subcommand and returns its exit status.
///
/// # Errors
/// If the command fails; the error carries message, hint and exit status for the terminal.
pub fn run(args: CliArgs) -> Result<ExitCode, CliError> {
    let flags = args.overrides();
    match args.command {
        CliCommand::Serve(serve) => {
            serve::run(&CommandContext::open(&serve.path, flags)?, serve.stdio)
        }
        CliCommand::Index(index) => {
            index::run(&CommandContext::open(&index.path, flags)?, index.json)
        }
        CliCommand::Migrate(migrate) => {
            migrate::run(&CommandContext::open(&migrate.path, flags)?, &migrate)
        }
        CliCommand::Search(search) => {
            search::run(&CommandContext::open(&search.path, flags)?, &search)
        }
        CliCommand::Eval(eval) => eval::run(&CommandContext::open(&eval.path, flags)?, &eval),
        CliCommand::Key(key) => key::run(&CommandContext::open(&key.path, flags)?, &key.command),
        CliCommand::Connect(connect) => connect::run(&connect, flags),
        CliCommand::Doctor(doctor) => doctor::run(&doctor, flags),
        CliCommand::Health(health) => health::run(&health, &load_settings(None, flags)?),
        CliCommand::Completions(shell) => reference::completions(&shell),
        CliCommand::Man(man) => reference::man(&man),
        CliCommand::Package(package) => package::run(&package, flags),
        CliCommand::Init(init) => init::run(&init, &load_settings(None, flags)?),
        CliCommand::Permissions(permissions) => permissions::run(
            &CommandContext::open(&permissions.path, flags)?,
            &permissions.command,
        ),
        CliCommand::Preview(preview) => {
            load_settings(None, flags)?;
            preview::run(&preview)
        }
        CliCommand::User(user) => {
            user::run(&CommandContext::open(&user.path, flags)?, &user.command)
        }
        CliCommand::Audit(audit) => {
            load_settings(None, flags)?;
            audit::run(&audit.command)
        }
        CliCommand::Check(check) => check::run(&check, flags),
    }
}

/// Context of a command on a folder: the resolved settings, the location of the index, the flags and the span exporter.
/// The folder is canonical, so that each folder has exactly one index in the cache. Flags are kept, because they
/// override a settings file that changes while the server runs.
struct CommandContext {
    folder: PathBuf,
    settings: Settings,
    index_location: IndexLocation,
    flags: SettingOverrides,
    traces: Option<Arc<SpanExporter>>,
}

impl CommandContext {
    fn open(path: &Path, flags: SettingOverrides) -> Result<Self, CliError> {
        let folder = folder(path)?;
        let settings = resolve_settings(Some(&folder), flags.clone())?;
        let traces = SpanExporter::start(&settings.telemetry)?;
        logging::start(&settings.log, traces.clone().map(SpanExportLayer::new));
        let index_location = IndexLocation::new(
            &folder,
            settings.index_dir.as_deref(),
            index_location::cache(),
        );
        Ok(Self {
            folder,
            settings,
            index_location,
            flags,
            traces,
        })
    }

    /// Folder for users, grants and API keys, as configured or beside the documents.
    fn sign_in_dir(&self) -> PathBuf {
        let set = self.settings.sign_in.dir.clone();
        set.unwrap_or_else(|| index_location::sign_in(&self.folder))
    }

    /// Title of the documents if none is configured.
    fn name(&self) -> String {
        default_title(&self.folder)
    }
}

/// Derives a title from the name of a folder.
fn default_title(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let name = one_line(&name, settings::MAX_TITLE_CHARS);
    if name.is_empty() {
        "documents".to_owned()
    } else {
        name
    }
}

fn folder(path: &Path) -> Result<PathBuf, CliError> {
    let shown = path.display();
    let folder = path.canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => CliError::usage(format!("there is no folder `{shown}`"))
            .hint("name the folder with your documents, such as `./documents`"),
        _ => CliError::io("open", path, error).hint("name a folder that you may read"),
    })?;
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(CliError::usage(format!("`{shown}` is not a folder")).hint("name the folder it lies in"))
}

/// Resolves the settings and starts logging.
fn load_settings(folder: Option<&Path>, flags: SettingOverrides) -> Result<Settings, CliError> {
    let settings = resolve_settings(folder, flags)?;
    logging::start(&settings.log, None);
    Ok(settings)
}

fn resolve_settings(folder: Option<&Path>, flags: SettingOverrides) -> Result<Settings, CliError> {
    let environment = std::env::vars_os().collect();
    let ResolvedSettings {
        settings,
        unknown_variables,
    } = settings::resolve(SettingSources {
        folder,
        environment,
        flags,
    })?;
    for name in unknown_variables {
        let text = format!("environment variable `{name}` is not a setting");
        output::warn(&text, Some("see docs/settings.md for their names"));
    }
    Ok(settings)
}

fn runtime() -> Result<Runtime, CliError> {
    let built = Builder::new_multi_thread().enable_all().build();
    built.map_err(|error| CliError::failed("cannot start threads").because(error))
}

/// Warns about corrupt segments that were found when the index was opened, and about an index of another format
/// version.
fn warn_corrupt_index(engine: &EmbeddedEngine) {
    for what in engine.quarantined() {
        let hint = "it is rebuilt from the documents";
        output::warn(&format!("corrupt index segment: {what}"), Some(hint));
    }
    if engine.has_other_versions() {
        output::say("the index has another format version; a new one is built beside it");
    }
}
