//! Defaults, `docent.toml`, the environment and flags into one [`Settings`], later ones winning.
//!
//! Nothing else reads any of the four. Every setting is one line in [`KEYS`]; a key that is not
//! there is refused.

mod auth;
mod engine;
mod fields;
mod files;
mod keys;
mod permissions;
mod reload;
mod setting_key;
mod setting_value;
mod sign_in;
mod telemetry;
mod tools;

use std::ffi::OsString;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use docent_ingest::{IngestOptions, Limits};
use docent_mcp::http::{self, guard::HOST_ORIGINS};
use docent_mcp::{DualFormat, TextForm};
use docent_search::RankingMethod;
use url::Url;

use crate::audit::AuditSettings;
use crate::cli_error::CliError;
use crate::corpus::{IndexMemoryBudget, SyncOptions};
use crate::document_transform::{DocumentTransform, Rule};
use crate::engine_settings::EngineSettings;
use crate::links::UrlTemplate;
use crate::model_settings::ModelSettings;
use crate::permissions::PermissionRules;
use crate::telemetry::TelemetrySettings as Traces;

pub use auth::{AuthSettings, IntrospectionSecret};
pub use files::FileFilterSettings;
pub use keys::KEYS;
pub use reload::{ReloadedSettings, SettingsReloader};
pub use setting_key::SettingKey;
pub(crate) use setting_value::shorten;
pub use setting_value::{InvalidSetting, MAX_LIST, SettingValue};
pub use sign_in::{SignInMethod, SignInSettings};
pub use tools::{FindSettings, NameAlias, RecordSettings, WidgetSettings};

/// The name of the settings file beside the documents.
pub const FILE: &str = "docent.toml";

/// The most characters of a title; with it the instructions still begin with all that matters.
pub const MAX_TITLE_CHARS: usize = 120;

/// The most bytes of a settings file; a full one has three thousand.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Environment variables that start with this are settings.
const PREFIX: &str = "DOCENT_";

/// Everything that can be set, checked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What people call the documents.
    pub title: Option<String>,
    /// What the documents are about, in a sentence.
    pub description: Option<String>,
    /// What to log.
    pub log: String,
    /// Where the index lives, if not in its usual place.
    pub index_dir: Option<PathBuf>,
    /// The address of a document that has none of its own.
    pub documents_url: Option<UrlTemplate>,
    /// Which files of the folder are wanted.
    pub files: FileFilterSettings,
    /// How many results a search gives.
    pub search_results: usize,
    /// How words and meanings are weighed against each other.
    pub search_method: RankingMethod,
    /// How much hits should differ from each other, from 0 to 1.
    pub search_diversity: f32,
    /// Which model makes documents findable by their meaning.
    pub model: ModelSettings,
    /// Which engine holds the index.
    pub engine: EngineSettings,
    /// How many characters of text one fetch gives.
    pub fetch_max_chars: usize,
    /// What `find` is called, takes and gives.
    pub find: FindSettings,
    /// The same for the tool that reads records.
    pub record: RecordSettings,
    /// What is shown in the conversation.
    pub widgets: WidgetSettings,
    /// How to serve.
    pub server: ServerSettings,
    /// Whose tokens count, and what is demanded of callers.
    pub auth: AuthSettings,
    /// How people sign in, where that is done here.
    pub sign_in: SignInSettings,
    /// Bounds on connections and messages.
    pub limits: http::limits::HttpLimits,
    /// Bounds on files and documents.
    pub ingest: Limits,
    /// The memory that indexing may take.
    pub memory: IndexMemoryBudget,
    /// Whether the folder is watched while it is served.
    pub watch: bool,
    /// What is asked of single formats.
    pub formats: IngestOptions,
    /// What is wanted of the documents' fields; only the file can say.
    pub fields: Vec<Rule>,
    /// What is kept of calls.
    pub audit: AuditSettings,
    /// Where traces go.
    pub telemetry: Traces,
    /// Who may read what; only the file can say.
    pub permissions: PermissionRules,
}

impl Settings {
    /// What decides how files become documents.
    #[must_use]
    pub fn document_transform(&self) -> DocumentTransform {
        let shape = DocumentTransform::new(&self.ingest, &self.formats, &self.fields);
        shape.with_permissions(self.permissions.clone())
    }

    /// How the folder is read.
    pub(crate) fn sync_options(&self) -> SyncOptions {
        SyncOptions {
            shape: Arc::new(self.document_transform()),
            choice: self.files.choice(),
            budget: self.memory,
        }
    }
}

/// Where a certificate and its key are; TLS is spoken when both are named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain of certificates.
    pub certificate: Option<PathBuf>,
    /// The private key.
    pub key: Option<PathBuf>,
}

impl TlsFiles {
    /// How addresses of this server begin.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.certificate.is_some() {
            "https"
        } else {
            "http"
        }
    }
}

/// How to serve.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The address at which others reach the server.
    pub public_url: Option<Url>,
    /// Where counts of calls can be seen, apart from everything else.
    pub metrics: Option<SocketAddr>,
    /// The files of a certificate and of its key, where the server speaks TLS itself.
    pub tls: TlsFiles,
    /// More names by which clients may call the server.
    pub allow_hosts: Vec<String>,
    /// Web pages that may call the server.
    pub allow_origins: Vec<String>,
    /// Whether 2026-07-28 requests with incomplete headers are answered all the same.
    pub lenient_modern_headers: bool,
    /// Whether a page at `/preview` plays the host for this server.
    pub preview: bool,
    /// Whether every document has a page at `/d/`.
    pub pages: bool,
    /// What proves to OpenAI that the address is the owner's.
    pub openai_challenge: Option<String>,
    /// When `results` also stand beside `content`.
    pub dual: DualFormat,
    /// What the text of a result holds.
    pub text: TextForm,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            title: None,
            description: None,
            log: "info,rmcp=off,tantivy=warn".to_owned(),
            index_dir: None,
            documents_url: None,
            files: FileFilterSettings::default(),
            search_results: 10,
            search_method: RankingMethod::Hybrid,
            search_diversity: 0.0,
            model: ModelSettings::default(),
            engine: EngineSettings::default(),
            fetch_max_chars: 60_000,
            find: FindSettings::default(),
            record: RecordSettings::default(),
            widgets: WidgetSettings::default(),
            server: ServerSettings {
                listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8787)),
                public_url: None,
                metrics: None,
                tls: TlsFiles::default(),
                allow_hosts: Vec::new(),
                allow_origins: HOST_ORIGINS.map(str::to_owned).to_vec(),
                lenient_modern_headers: false,
                preview: false,
                pages: true,
                openai_challenge: None,
                dual: DualFormat::default(),
                text: TextForm::default(),
            },
            auth: AuthSettings::default(),
            sign_in: SignInSettings::default(),
            limits: http::limits::HttpLimits::default(),
            ingest: Limits::default(),
            memory: IndexMemoryBudget::default(),
            watch: true,
            formats: IngestOptions::default(),
            fields: Vec::new(),
            audit: AuditSettings::default(),
            telemetry: Traces::default(),
            permissions: PermissionRules::default(),
        }
    }
}

/// Where settings come from, besides the defaults.
#[derive(Debug, Default)]
pub struct SettingSources<'a> {
    /// The folder of the documents, in which `docent.toml` may lie.
    pub folder: Option<&'a Path>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The flags, by the keys of their settings.
    pub flags: Vec<(&'static str, SettingValue)>,
}

/// The settings, and what looks like one but is not.
#[derive(Debug)]
pub struct ResolvedSettings {
    /// The settings.
    pub settings: Settings,
    /// Variables of the environment that start like ours and mean nothing. They do not end the
    /// run, because systems set such names too: Kubernetes does for a service called `docent`.
    pub unknown_variables: Vec<String>,
}

/// Brings the four sources together.
pub fn resolve(sources: SettingSources<'_>) -> Result<ResolvedSettings, CliError> {
    let path = sources.folder.map(|folder| folder.join(FILE));
    let text = path.map(|path| read(&path)).transpose()?;
    resolve_text(text.flatten().as_deref(), sources)
}

/// The same, where the text of the file is known.
fn resolve_text(
    text: Option<&str>,
    sources: SettingSources<'_>,
) -> Result<ResolvedSettings, CliError> {
    let mut settings = Settings::default();
    if let (Some(folder), Some(text)) = (sources.folder, text) {
        from_file(&mut settings, folder, text)?;
    }
    let strangers = from_environment(&mut settings, sources.environment)?;
    for (name, given) in sources.flags {
        set(&mut settings, name, &given, None)?;
    }
    permissions::check(&mut settings).map_err(|(key, wrong)| setting_error(&key, wrong, None))?;
    Ok(ResolvedSettings {
        settings,
        unknown_variables: strangers,
    })
}

fn from_file(settings: &mut Settings, folder: &Path, text: &str) -> Result<(), CliError> {
    let path = folder.join(FILE);
    let mut table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().and_then(|span| text.get(..span.start));
        let line = line.map_or(1, |before| before.matches('\n').count() + 1);
        let message = format!("`{}` is not valid TOML at line {line}", path.display());
        CliError::usage(message).hint(error.message().to_owned())
    })?;
    let origin = path.display().to_string();
    // The names of fields are anybody's and may hold points, so they are no keys.
    if let Some(section) = table.remove(fields::SECTION) {
        settings.fields = fields::read(section)
            .map_err(|(key, wrong)| setting_error(&key, wrong, Some(&origin)))?;
    }
    if let Some(section) = table.remove(permissions::SECTION) {
        settings.permissions = permissions::read(section)
            .map_err(|(key, wrong)| setting_error(&key, wrong, Some(&origin)))?;
    }
    let mut given = Vec::new();
    flatten("", table, &mut given);
    for (name, value) in given {
        set(settings, &name, &SettingValue::Toml(value), Some(&origin))?;
    }
    // A relative place in the file means beside the file, wherever the command was typed.
    let (tls, sign_in) = (&mut settings.server.tls, &mut settings.sign_in);
    let auth = &mut settings.auth;
    for place in [
        &mut settings.index_dir,
        &mut settings.audit.file,
        &mut sign_in.dir,
        &mut sign_in.client_ca,
        &mut auth.issuer_ca,
        &mut tls.certificate,
        &mut tls.key,
    ] {
        *place = place.take().map(|place| folder.join(place));
    }
    Ok(())
}

fn read(path: &Path) -> Result<Option<String>, CliError> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CliError::io("read", path, error)),
    };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| CliError::io("read", path, error).hint("save it as UTF-8 text"))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let message = format!("`{}` has more than {MAX_FILE_BYTES} bytes", path.display());
        return Err(CliError::usage(message).hint("keep only settings in it"));
    }
    Ok(Some(text))
}

/// Tables into dotted keys; the parser bounds how deep they go.
fn flatten(prefix: &str, table: toml::Table, into: &mut Vec<(String, toml::Value)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            toml::Value::Table(inner) => flatten(&key, inner, into),
            value => into.push((key, value)),
        }
    }
}

fn from_environment(
    settings: &mut Settings,
    environment: Vec<(OsString, OsString)>,
) -> Result<Vec<String>, CliError> {
    let mut strangers = Vec::new();
    let standard = |name: &OsString| {
        let mut known = telemetry::STANDARD.iter();
        known.find(|(known, _)| name == known).map(|(_, key)| *key)
    };
    // Names that are not ours come first, so that ours win.
    let (foreign, ours): (Vec<_>, Vec<_>) = environment
        .into_iter()
        .partition(|(name, _)| standard(name).is_some());
    for (name, value) in foreign.into_iter().chain(ours) {
        let meant = standard(&name);
        let is_ours = |name: &&str| name.starts_with(PREFIX) || meant.is_some();
        let Some(name) = name.to_str().filter(is_ours) else {
            continue;
        };
        let is_key = |key: &&SettingKey| key.variable() == name || meant == Some(key.name);
        let Some(key) = KEYS.iter().find(is_key) else {
            strangers.push(name.to_owned());
            continue;
        };
        // Deployment files often pass a variable on that nobody set.
        if value.is_empty() {
            continue;
        }
        let origin = format!("environment variable `{name}`");
        let text = value.to_str().ok_or_else(|| {
            CliError::usage(format!("`{}` is not text", key.name)).origin(&origin)
        })?;
        set(
            settings,
            key.name,
            &SettingValue::Text(text.to_owned()),
            Some(&origin),
        )?;
    }
    strangers.sort();
    Ok(strangers)
}

fn set(
    settings: &mut Settings,
    name: &str,
    given: &SettingValue,
    from: Option<&str>,
) -> Result<(), CliError> {
    let Some(key) = KEYS.iter().find(|key| key.name == name) else {
        return Err(unknown(name, from));
    };
    (key.set)(settings, given).map_err(|wrong| setting_error(key.name, wrong, from))
}

fn setting_error(key: &str, wrong: InvalidSetting, from: Option<&str>) -> CliError {
    let message = format!("`{key}` {}: `{}`", wrong.what, wrong.shown);
    with_origin(CliError::usage(message), from).hint(wrong.hint)
}

fn unknown(name: &str, from: Option<&str>) -> CliError {
    let section = name.split_once('.').map_or("", |(section, _)| section);
    let close =
        |key: &&SettingKey| key.name.split_once('.').map_or("", |(found, _)| found) == section;
    let mut known: Vec<_> = KEYS.iter().filter(close).collect();
    if known.is_empty() {
        known = KEYS.iter().collect();
    }
    let known: Vec<_> = known.iter().map(|key| format!("`{}`", key.name)).collect();
    let problem = CliError::usage(format!("there is no setting `{}`", shorten(name, 80)));
    with_origin(problem, from).hint(format!("known are {}", known.join(", ")))
}

fn with_origin(problem: CliError, from: Option<&str>) -> CliError {
    match from {
        Some(from) => problem.origin(from),
        None => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(toml: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), toml).unwrap();
        dir
    }

    fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect()
    }

    fn of_file(toml: &str) -> Result<ResolvedSettings, CliError> {
        let dir = folder(toml);
        resolve(SettingSources {
            folder: Some(dir.path()),
            ..SettingSources::default()
        })
    }

    #[test]
    fn flags_beat_the_environment_and_both_beat_the_file() {
        let dir = folder(
            "[search]\nresults = 3\n[fetch]\nmax_chars = 2000\n[server]\nlisten = \"127.0.0.1:1\"",
        );
        let resolved = resolve(SettingSources {
            folder: Some(dir.path()),
            environment: environment(&[
                ("DOCENT_SEARCH_RESULTS", "4"),
                ("DOCENT_FETCH_MAX_CHARS", "3000"),
            ]),
            flags: vec![("search.results", SettingValue::Text("5".to_owned()))],
        });
        let settings = resolved.unwrap().settings;
        assert_eq!(settings.search_results, 5);
        assert_eq!(settings.fetch_max_chars, 3000);
        assert_eq!(settings.server.listen.port(), 1);
    }

    #[test]
    fn a_wrong_value_names_its_setting_and_its_cure() {
        let problem = of_file("[server]\nlisten = \"80a\"").unwrap_err();
        assert_eq!(problem.message, "`server.listen` is not an address: `80a`");
        assert_eq!(problem.hint.as_deref(), Some("example: `127.0.0.1:8787`"));
        assert_eq!(problem.exit, 2);
        assert!(problem.origin.unwrap().ends_with("docent.toml"));
    }

    #[test]
    fn unknown_keys_are_refused_and_unknown_variables_are_told() {
        let problem = of_file("[search]\nresult = 3").unwrap_err();
        assert_eq!(problem.message, "there is no setting `search.result`");
        assert_eq!(
            problem.hint.as_deref(),
            Some("known are `search.results`, `search.mode`, `search.weight`, `search.diversity`")
        );
        let environment = environment(&[("DOCENT_SERVICE_HOST", "10.0.0.1"), ("HOME", "/x")]);
        let resolved = resolve(SettingSources {
            environment,
            ..SettingSources::default()
        })
        .unwrap();
        assert_eq!(resolved.unknown_variables, ["DOCENT_SERVICE_HOST"]);
    }

    #[test]
    fn a_variable_that_nobody_filled_changes_nothing() {
        let environment = environment(&[("DOCENT_SEARCH_RESULTS", "")]);
        let resolved = resolve(SettingSources {
            environment,
            ..SettingSources::default()
        })
        .unwrap();
        assert_eq!(resolved.settings.search_results, 10);
    }

    #[test]
    fn a_broken_file_says_where() {
        let problem = of_file("title = \"a\"\n[search\n").unwrap_err();
        assert!(
            problem
                .message
                .ends_with("docent.toml` is not valid TOML at line 2"),
            "{problem}"
        );
    }

    #[test]
    fn the_file_ends_at_its_bound() {
        let padded = |size: u64| of_file(&"#".repeat(usize::try_from(size).unwrap()));
        assert!(padded(MAX_FILE_BYTES).is_ok());
        assert!(
            padded(MAX_FILE_BYTES + 1)
                .unwrap_err()
                .message
                .contains("65536 bytes")
        );
    }

    #[test]
    fn a_relative_place_lies_beside_the_file() {
        let toml = "[index]\ndir = \"../idx\"\n[server]\ntls_cert = \"cert.pem\"";
        let dir = folder(toml);
        let resolved = resolve(SettingSources {
            folder: Some(dir.path()),
            ..SettingSources::default()
        })
        .unwrap();
        assert_eq!(resolved.settings.index_dir, Some(dir.path().join("../idx")));
        let certificate = resolved.settings.server.tls.certificate;
        assert_eq!(certificate, Some(dir.path().join("cert.pem")));
    }
}
