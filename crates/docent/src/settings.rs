//! Configuration: resolves defaults, `docent.toml`, environment variables and flags into one [`Settings`], in that
//! order of precedence.
//!
//! No other module reads these sources. Every setting is one entry in [`KEYS`], except those in `[fields]` and
//! `[permissions]`: names of fields may contain dots, so the modules `fields` and `permissions` read these sections as
//! a whole. An unknown key in the file is an error, so that a typo cannot silently leave a restriction off.

mod auth;
mod engine;
mod fields;
mod files;
mod keys;
mod permissions;
mod reload;
mod setting_default;
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
use crate::display_text::shorten;
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
pub use setting_default::SettingDefault;
pub use setting_key::SettingKey;
pub use setting_value::{InvalidSetting, MAX_LIST, SettingValue};
pub use sign_in::{SignInMethod, SignInSettings};
pub use tools::{FindSettings, NameAlias, RecordSettings, WidgetSettings};

/// Name of the settings file in the documents folder.
pub const FILE: &str = "docent.toml";

/// Maximum length of a title in characters. With it, the essential instructions still fit the first 512 characters that
/// ChatGPT reads.
pub const MAX_TITLE_CHARS: usize = 120;

/// Maximum size of a settings file. One with all settings has about three thousand bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Prefix of the environment variables that are settings.
const PREFIX: &str = "DOCENT_";

/// All settings, parsed and validated. A value of this type is consistent, so other modules do not check it again.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Title of the corpus; the default is the folder's name.
    pub title: Option<String>,
    /// Description of the corpus in one sentence.
    pub description: Option<String>,
    /// Log filter, such as `info,tantivy=warn`.
    pub log: String,
    /// Folder of the index, if not the default location.
    pub index_dir: Option<PathBuf>,
    /// URL template for documents without a URL of their own.
    pub documents_url: Option<UrlTemplate>,
    /// Include and exclude patterns for files.
    pub files: FileFilterSettings,
    /// Number of results per search.
    pub search_results: usize,
    /// Ranking method: how lexical and semantic scores are combined.
    pub search_method: RankingMethod,
    /// Strength of result diversification (MMR), 0 to 1.
    pub search_diversity: f32,
    /// Embedding model for semantic search.
    pub model: ModelSettings,
    /// Search engine that holds the index.
    pub engine: EngineSettings,
    /// Maximum number of characters that one fetch returns.
    pub fetch_max_chars: usize,
    /// Name, parameters and result shape of the `find` tool.
    pub find: FindSettings,
    /// Name, parameter and result shape of the tool that reads records.
    pub record: RecordSettings,
    /// Widgets that hosts render in the conversation.
    pub widgets: WidgetSettings,
    /// HTTP server: addresses, TLS, allowed hosts and response formats.
    pub server: ServerSettings,
    /// Authentication: trusted issuers and what callers must present.
    pub auth: AuthSettings,
    /// Built-in sign-in (authorization server).
    pub sign_in: SignInSettings,
    /// Limits on connections, messages and request rates.
    pub limits: http::limits::HttpLimits,
    /// Limits on files and documents during ingestion.
    pub ingest: Limits,
    /// Memory budget of indexing.
    pub memory: IndexMemoryBudget,
    /// Whether to watch the folder while serving.
    pub watch: bool,
    /// Options of single file formats, such as the table of an SQLite file.
    pub formats: IngestOptions,
    /// Rules that rename, type, hide and add fields; they exist only in the file.
    pub fields: Vec<Rule>,
    /// Audit log of tool calls.
    pub audit: AuditSettings,
    /// Export of traces over OTLP.
    pub telemetry: Traces,
    /// Permission rules for documents; they exist only in the file.
    pub permissions: PermissionRules,
}

impl Settings {
    /// Transform from files to documents. Its fingerprint is stored with each document, so that a change of these
    /// settings reindexes what they affect.
    #[must_use]
    pub fn document_transform(&self) -> DocumentTransform {
        let transform = DocumentTransform::new(&self.ingest, &self.formats, &self.fields);
        transform.with_permissions(self.permissions.clone())
    }

    /// Options of a sync between the folder and the index.
    pub(crate) fn sync_options(&self) -> SyncOptions {
        SyncOptions {
            shape: Arc::new(self.document_transform()),
            choice: self.files.choice(),
            budget: self.memory,
        }
    }
}

/// Paths of a TLS certificate and its private key. The server speaks TLS if both are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM file with the certificate chain.
    pub certificate: Option<PathBuf>,
    /// PEM file with the private key.
    pub key: Option<PathBuf>,
}

impl TlsFiles {
    /// URL scheme of this server: `https` with a certificate, else `http`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.certificate.is_some() {
            "https"
        } else {
            "http"
        }
    }
}

/// Settings of the HTTP server.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Listen address.
    pub listen: SocketAddr,
    /// URL at which clients reach the server through a proxy or a tunnel.
    pub public_url: Option<Url>,
    /// Listen address of the metrics endpoint, separate from the public one.
    pub metrics: Option<SocketAddr>,
    /// Certificate and key, if the server terminates TLS itself.
    pub tls: TlsFiles,
    /// Additional allowed host names, against DNS rebinding.
    pub allow_hosts: Vec<String>,
    /// Origins of web pages that may call the server.
    pub allow_origins: Vec<String>,
    /// Whether to accept requests of protocol version 2026-07-28 with incomplete headers.
    pub lenient_modern_headers: bool,
    /// Whether to serve a page at `/preview` that simulates a host.
    pub preview: bool,
    /// Whether every document has a page at `/d/`.
    pub pages: bool,
    /// Token with which OpenAI verifies the ownership of the domain.
    pub openai_challenge: Option<String>,
    /// When to repeat `results` next to `content` for clients without structured content.
    pub dual: DualFormat,
    /// Format of the text content of results.
    pub text: TextForm,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            title: None,
            description: None,
            log: "info,tantivy=warn".to_owned(),
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

/// The sources of settings besides the defaults. They are arguments, so that tests need no real environment.
#[derive(Debug, Default)]
pub struct SettingSources<'a> {
    /// Documents folder, which may contain a `docent.toml`.
    pub folder: Option<&'a Path>,
    /// Environment variables.
    pub environment: Vec<(OsString, OsString)>,
    /// Flags, by the keys of their settings.
    pub flags: Vec<(&'static str, SettingValue)>,
}

/// The resolved settings, and unknown variables to warn about.
#[derive(Debug)]
pub struct ResolvedSettings {
    /// The merged and validated settings.
    pub settings: Settings,
    /// Unknown variables with our prefix. They are warnings and not errors, because other systems set such names too:
    /// Kubernetes does for a service called `docent`.
    pub unknown_variables: Vec<String>,
}

/// Resolves the settings from all sources.
pub fn resolve(sources: SettingSources<'_>) -> Result<ResolvedSettings, CliError> {
    let path = sources.folder.map(|folder| folder.join(FILE));
    let text = path.map(|path| read(&path)).transpose()?;
    resolve_text(text.flatten().as_deref(), sources)
}

/// Resolves the settings with the given text of the file, so that a reload reads the file only once.
fn resolve_text(
    text: Option<&str>,
    sources: SettingSources<'_>,
) -> Result<ResolvedSettings, CliError> {
    let mut settings = Settings::default();
    if let (Some(folder), Some(text)) = (sources.folder, text) {
        from_file(&mut settings, folder, text)?;
    }
    let unknown_variables = from_environment(&mut settings, sources.environment)?;
    for (name, given) in sources.flags {
        set(&mut settings, name, &given, None)?;
    }
    permissions::check(&mut settings).map_err(|(key, wrong)| setting_error(&key, wrong, None))?;
    Ok(ResolvedSettings {
        settings,
        unknown_variables,
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
    // Names of fields are arbitrary and may contain dots, so these sections cannot be flattened into keys.
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
    // Relative paths in the file are relative to the file, whatever the current directory.
    let (tls, sign_in) = (&mut settings.server.tls, &mut settings.sign_in);
    let auth = &mut settings.auth;
    for path in [
        &mut settings.index_dir,
        &mut settings.audit.file,
        &mut sign_in.dir,
        &mut sign_in.client_ca,
        &mut auth.issuer_ca,
        &mut tls.certificate,
        &mut tls.key,
    ] {
        *path = path.take().map(|path| folder.join(path));
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

/// Flattens tables into dotted keys. The TOML parser bounds their depth.
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
    let mut unknown_variables = Vec::new();
    let standard = |name: &OsString| {
        let mut known = telemetry::STANDARD.iter();
        known.find(|(known, _)| name == known).map(|(_, key)| *key)
    };
    // Standard OpenTelemetry variables are applied first, so that `DOCENT_` variables override them.
    let (foreign, ours): (Vec<_>, Vec<_>) = environment
        .into_iter()
        .partition(|(name, _)| standard(name).is_some());
    for (name, value) in foreign.into_iter().chain(ours) {
        let standard_key = standard(&name);
        let is_ours = |name: &&str| name.starts_with(PREFIX) || standard_key.is_some();
        let Some(name) = name.to_str().filter(is_ours) else {
            continue;
        };
        let is_key = |key: &&SettingKey| key.variable() == name || standard_key == Some(key.name);
        let Some(key) = KEYS.iter().find(is_key) else {
            unknown_variables.push(name.to_owned());
            continue;
        };
        // Deployment files often pass unset variables through as empty ones.
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
    unknown_variables.sort();
    Ok(unknown_variables)
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
