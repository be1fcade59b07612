//! Registry of all settings of the configuration but those in `[fields]` and `[permissions]`.
//!
//! To add a setting, add a field to [`Settings`](super::Settings), an entry here and a row to `docs/settings.md`; tests
//! compare the three. Add a path also to the list in `from_file` of `settings.rs`, so that a relative one is relative to
//! the folder of `docent.toml`. `CONTRIBUTING.md` has the other files to edit.

use std::path::PathBuf;
use std::time::Duration;

use docent_mcp::{DualFormat, TextForm};
use docent_search::{MAX_FIELDS, MAX_SOURCE_BYTES, RankingMethod, ServiceKey};

use super::setting_default::{SettingDefault, StatesDefault as _};
use super::setting_key::SettingKey;
use super::setting_value::{InvalidSetting, SettingValue};
use super::{MAX_TITLE_CHARS, auth, engine, files, sign_in, telemetry, tools};
use crate::corpus::IndexMemoryBudget;
use crate::engine_settings::EngineKind;
use crate::links::UrlTemplate;
use crate::logging;

const DUAL: [(&str, DualFormat); 3] = [
    ("auto", DualFormat::Auto),
    ("always", DualFormat::Always),
    ("never", DualFormat::Never),
];

const TEXT: [(&str, TextForm); 2] = [("json", TextForm::Json), ("prose", TextForm::Prose)];

const MODES: [(&str, RankingMethod); 3] = [
    ("hybrid", RankingMethod::Hybrid),
    ("lexical", RankingMethod::Lexical),
    ("semantic", RankingMethod::Semantic),
];

const ENGINES: [(&str, EngineKind); 2] = [
    ("embedded", EngineKind::Embedded),
    ("qdrant", EngineKind::Qdrant),
];

const MIB: u64 = 1024 * 1024;
const GIB: u64 = 1024 * 1024 * 1024;

/// Upper limit of the body size setting. Queries and ids are small, so no client needs more.
const MAX_BODY: u64 = 64 * 1024 * 1024;

/// Maximum length of an SQL query in the settings; a longer one belongs into a view.
const MAX_QUERY_CHARS: usize = 10_000;

/// Parses a timeout between one second and one day.
fn seconds(value: &SettingValue) -> Result<Duration, InvalidSetting> {
    value.number(1..=86_400).map(Duration::from_secs)
}

/// Parses the path of a file or folder.
fn path(value: &SettingValue) -> Result<Option<PathBuf>, InvalidSetting> {
    value.line(4_096).map(|path| Some(path.into()))
}

/// Defines a setting: its key, its field of [`Settings`](super::Settings), and the parser of its values. The default is
/// that of the field, so it is stated only there.
macro_rules! setting {
    ($name:literal, $($field:ident).+, $parse:expr) => {
        SettingKey::new(
            $name,
            |settings| settings.$($field).+.setting_default(),
            |settings, value| {
                let parse: fn(&SettingValue) -> Result<_, InvalidSetting> = $parse;
                settings.$($field).+ = parse(value)?;
                Ok(())
            },
        )
    };
}

/// Defines a setting whose value is one of several words: its key, its field and the table of the words.
macro_rules! choice_setting {
    ($name:literal, $($field:ident).+, $choices:expr) => {
        SettingKey::new(
            $name,
            |settings| SettingDefault::choice(&$choices, &settings.$($field).+),
            |settings, value| {
                settings.$($field).+ = value.choice(&$choices)?;
                Ok(())
            },
        )
    };
}

/// All settings, in the order in which hints list them.
pub const KEYS: &[SettingKey] = &[
    setting!("title", title, |v| v.line(MAX_TITLE_CHARS).map(Some))
        .default_description("the folder's name"),
    setting!("description", description, |v| v.line(500).map(Some)),
    setting!("log", log, filter).flag("--log"),
    setting!("server.listen", server.listen, SettingValue::address).flag("--listen"),
    setting!("server.public_url", server.public_url, |v| v
        .web_address()
        .map(Some))
    .flag("--public-url"),
    setting!(
        "server.allow_hosts",
        server.allow_hosts,
        SettingValue::hosts
    )
    .flag("--allow-host"),
    setting!(
        "server.allow_origins",
        server.allow_origins,
        SettingValue::origins
    )
    .flag("--allow-origin"),
    setting!(
        "server.lenient_modern_headers",
        server.lenient_modern_headers,
        SettingValue::boolean
    ),
    setting!("server.metrics", server.metrics, |v| v.address().map(Some)).flag("--metrics"),
    setting!("server.tls_cert", server.tls.certificate, path).flag("--tls-cert"),
    setting!("server.tls_key", server.tls.key, path).flag("--tls-key"),
    setting!("server.preview", server.preview, SettingValue::boolean).flag("--preview"),
    choice_setting!("server.dual", server.dual, DUAL).flag("--dual"),
    choice_setting!("server.text", server.text, TEXT).flag("--text"),
    setting!("telemetry.otlp_endpoint", telemetry.endpoint, |v| v
        .web_address()
        .map(Some)),
    setting!("telemetry.service_name", telemetry.service, |v| v.line(100)),
    setting!("telemetry.headers", telemetry.headers, telemetry::headers),
    setting!("auth.issuers", auth.issuers, auth::issuers),
    setting!("auth.required", auth.required, SettingValue::boolean),
    setting!("auth.scopes", auth.scopes, SettingValue::list),
    setting!("auth.audiences", auth.audiences, SettingValue::list),
    setting!("auth.algorithms", auth.algorithms, auth::algorithms),
    setting!(
        "auth.access_tokens_only",
        auth.access_tokens_only,
        SettingValue::boolean
    ),
    setting!(
        "auth.private_network",
        auth.private_network,
        SettingValue::boolean
    ),
    setting!("auth.issuer_ca", auth.issuer_ca, path),
    setting!("auth.introspection.url", auth.introspection.url, |v| {
        auth::address(v).map(Some)
    }),
    setting!(
        "auth.introspection.issuer",
        auth.introspection.issuer,
        |v| auth::address(v).map(Some)
    ),
    setting!(
        "auth.introspection.client_id",
        auth.introspection.client_id,
        |v| v.line(500)
    ),
    setting!(
        "auth.introspection.client_secret",
        auth.introspection.client_secret,
        auth::secret
    ),
    setting!("auth.api_keys", auth.api_keys, SettingValue::boolean),
    setting!("auth.link_days", auth.link_days, |v| v.number(1..=366)),
    choice_setting!("auth.mode", sign_in.method, sign_in::SIGN_IN_METHODS).flag("--auth"),
    setting!("auth.dir", sign_in.dir, path).default_description(".docent/sign-in"),
    setting!("auth.upstream.issuer", sign_in.upstream_issuer, |v| {
        sign_in::issuer(v).map(Some)
    }),
    setting!("auth.upstream.client_id", sign_in.upstream_client_id, |v| v
        .line(500)
        .map(Some)),
    setting!(
        "auth.upstream.client_secret",
        sign_in.upstream_client_secret,
        |v| sign_in::secret(v).map(Some)
    ),
    setting!(
        "auth.client_hosts",
        sign_in.client_hosts,
        SettingValue::hosts
    ),
    setting!("auth.client_ca", sign_in.client_ca, path),
    setting!("index.dir", index_dir, path)
        .default_description(".docent/index")
        .flag("--index"),
    setting!("documents.url", documents_url, |v| template(v).map(Some)),
    setting!("documents.include", files.include, files::patterns).flag("--include"),
    setting!("documents.exclude", files.exclude, files::patterns).flag("--exclude"),
    setting!(
        "documents.gitignore",
        files.gitignore,
        SettingValue::boolean
    ),
    setting!("search.results", search_results, |v| v.size(1..=100)).flag("--limit"),
    choice_setting!("search.mode", search_method, MODES).flag("--mode"),
    SettingKey::new(
        "search.weight",
        |settings| match settings.search_method {
            RankingMethod::Fixed(weight) => weight.setting_default(),
            _ => None::<f32>.setting_default(),
        },
        |settings, value| {
            settings.search_method = RankingMethod::Fixed(value.fraction()?);
            Ok(())
        },
    ),
    setting!("search.diversity", search_diversity, SettingValue::fraction),
    setting!("model.name", model.name, |v| v.line(200)),
    setting!("model.url", model.url, |v| v.web_address().map(Some)),
    setting!("model.key", model.key, |v| secret(v).map(Some)),
    setting!("model.dimensions", model.dimensions, |v| v
        .size(1..=4_096)
        .map(Some)),
    setting!("model.query_prefix", model.query_prefix, |v| v.line(500)),
    setting!("model.passage_prefix", model.passage_prefix, |v| v
        .line(500)),
    choice_setting!("engine.kind", engine.kind, ENGINES).flag("--engine"),
    setting!(
        "engine.addresses",
        engine.cluster.addresses,
        engine::addresses
    ),
    setting!("engine.key", engine.cluster.key, |v| secret(v).map(Some)),
    setting!("engine.ca_file", engine.cluster.ca_file, path),
    setting!(
        "engine.collection",
        engine.cluster.collection,
        engine::collection
    ),
    setting!("engine.shards", engine.cluster.shards, |v| {
        engine::small_number(v, 1_024).map(Some)
    }),
    setting!("engine.replicas", engine.cluster.replicas, |v| {
        engine::small_number(v, 16)
    }),
    setting!(
        "engine.quantized",
        engine.cluster.quantized,
        SettingValue::boolean
    ),
    setting!(
        "engine.vectors_on_disk",
        engine.cluster.vectors_on_disk,
        |v| v.boolean().map(Some)
    ),
    setting!(
        "engine.words_on_disk",
        engine.cluster.words_on_disk,
        SettingValue::boolean
    ),
    setting!(
        "engine.documents_on_disk",
        engine.cluster.documents_on_disk,
        SettingValue::boolean
    ),
    SettingKey::new(
        "engine.timeout_ms",
        |settings| {
            settings
                .engine
                .cluster
                .timeout
                .as_millis()
                .setting_default()
        },
        |settings, value| {
            let number = value.number(100..=60_000)?;
            settings.engine.cluster.timeout = Duration::from_millis(number);
            Ok(())
        },
    ),
    setting!("fetch.max_chars", fetch_max_chars, |v| v
        .size(1_000..=100_000)),
    setting!("audit.file", audit.file, path).flag("--audit-log"),
    setting!("audit.queries", audit.queries, SettingValue::boolean),
    setting!("audit.max_bytes", audit.max_bytes, |v| v
        .number(65_536..=1_024 * GIB)),
    setting!("find.enabled", find.enabled, SettingValue::boolean),
    setting!("find.name", find.name, tools::tool),
    setting!("find.title", find.title, tools::title),
    setting!("find.parameters", find.parameters, tools::names),
    setting!("find.list", find.list, tools::list),
    setting!("find.result", find.result, tools::names),
    setting!("find.prefer", find.prefer, SettingValue::boolean),
    setting!("record.name", record.name, |v| tools::tool(v).map(Some)),
    setting!("record.title", record.title, tools::title),
    setting!("record.parameter", record.parameter, tools::name),
    setting!("record.result", record.result, tools::record),
    setting!("widgets.enabled", widgets.enabled, SettingValue::boolean),
    setting!("widgets.domain", widgets.domain, |v| tools::domain(v)
        .map(Some)),
    setting!("server.pages", server.pages, SettingValue::boolean),
    setting!("server.openai_challenge", server.openai_challenge, |v| {
        tools::token(v).map(Some)
    }),
    setting!("limits.connections", limits.connections, |v| v
        .size(1..=1_000_000)),
    setting!("limits.in_flight", limits.in_flight, |v| v
        .size(1..=100_000)),
    setting!("limits.listen_streams", limits.listen_streams, |v| v
        .size(0..=1_000_000)),
    setting!(
        "limits.streams_per_caller",
        limits.streams_per_caller,
        |v| v.size(1..=100_000)
    ),
    setting!("limits.unread_bytes", limits.unread_bytes, |v| v
        .size(MIB..=64 * GIB)),
    setting!("limits.unread_seconds", limits.unread, seconds),
    setting!("limits.request_bytes", limits.request_bytes, |v| v
        .size(MIB..=64 * GIB)),
    setting!("limits.body_bytes", limits.body_bytes, |v| v
        .size(1_024..=MAX_BODY)),
    setting!("limits.call_bytes", limits.call_bytes, |v| v
        .size(1_024..=MAX_BODY)),
    // The JSON parser has its own limit of 128 levels.
    setting!("limits.json_depth", limits.json_depth, |v| v.size(8..=120)),
    setting!("limits.batch", limits.batch, |v| v.size(1..=1_000)),
    setting!("limits.calls_per_minute", limits.calls_per_minute, |v| {
        v.size(0..=1_000_000)
            .map(|n| u32::try_from(n).unwrap_or(u32::MAX))
    }),
    setting!("limits.stdio_line", limits.stdio_line, |v| v
        .size(1_024..=GIB)),
    setting!("limits.first_byte_seconds", limits.first_byte, seconds),
    setting!("limits.headers_seconds", limits.headers, seconds),
    setting!("limits.body_seconds", limits.body, seconds),
    setting!("limits.handler_seconds", limits.handler, seconds),
    setting!("limits.idle_seconds", limits.idle, seconds),
    setting!("limits.age_seconds", limits.age, seconds),
    setting!("limits.shutdown_seconds", limits.shutdown, seconds),
    setting!("index.memory_mib", memory, |v| v
        .size(IndexMemoryBudget::LEAST_MIB as u64..=65_536)
        .map(IndexMemoryBudget::of_mib)),
    setting!("watch", watch, SettingValue::boolean),
    setting!("ingest.max_file_bytes", ingest.max_file_bytes, |v| v
        .number(1..=GIB)),
    setting!("ingest.max_stream_bytes", ingest.max_stream_bytes, |v| v
        .number(1..=1024 * GIB)),
    // The index accepts at most ten million characters of four bytes each for one document.
    setting!("ingest.max_text_chars", ingest.max_text_chars, |v| v
        .size(1..=10_000_000)),
    setting!("ingest.max_files", ingest.max_files, |v| v
        .size(1..=10_000_000)),
    setting!("ingest.max_depth", ingest.max_depth, |v| v.size(0..=256)),
    setting!("ingest.max_path_bytes", ingest.max_path_bytes, |v| v
        .size(1..=MAX_SOURCE_BYTES as u64)),
    setting!("ingest.max_records", ingest.max_records, |v| v
        .size(1..=10_000_000)),
    setting!("ingest.max_line_bytes", ingest.max_line_bytes, |v| v
        .size(1..=GIB)),
    setting!(
        "ingest.max_front_matter_bytes",
        ingest.max_front_matter_bytes,
        |v| v.size(1..=16_777_216)
    ),
    setting!("ingest.max_fields", ingest.max_fields, |v| v
        .size(0..=MAX_FIELDS as u64)),
    setting!("ingest.max_columns", ingest.max_columns, |v| v
        .size(1..=1_000_000)),
    // A parser process has 512 MiB for everything.
    setting!(
        "ingest.max_unpacked_bytes",
        ingest.max_unpacked_bytes,
        |v| v.number(1..=GIB / 2)
    ),
    setting!("ingest.max_pages", ingest.max_pages, |v| v
        .size(1..=100_000)),
    setting!("ingest.max_members", ingest.max_members, |v| v
        .size(1..=1_000_000)),
    setting!("ingest.max_parse_seconds", ingest.max_parse_seconds, |v| v
        .number(1..=600)),
    setting!(
        "ingest.require_sandbox",
        ingest.require_sandbox,
        SettingValue::boolean
    ),
    setting!("sqlite.table", formats.sqlite.table, |v| v
        .line(MAX_TITLE_CHARS)
        .map(Some)),
    setting!("sqlite.query", formats.sqlite.query, |v| v
        .line(MAX_QUERY_CHARS)
        .map(Some)),
    setting!("ingest.max_documents", ingest.max_documents, |v| v
        .size(1..=100_000_000)),
];

fn filter(given: &SettingValue) -> Result<String, InvalidSetting> {
    let text = given.line(500)?;
    if logging::check(&text) {
        return Ok(text);
    }
    Err(given.invalid("is not a log filter", "example: `info,tantivy=warn`"))
}

/// Parses a secret. An error does not show the value.
fn secret(given: &SettingValue) -> Result<ServiceKey, InvalidSetting> {
    let hidden =
        |_| SettingValue::Text(String::new()).invalid("is not a line of text", "write one line");
    given.line(2_000).map(ServiceKey::new).map_err(hidden)
}

fn template(given: &SettingValue) -> Result<UrlTemplate, InvalidSetting> {
    let text = given.line(1_000)?;
    UrlTemplate::parse(&text).ok_or_else(|| {
        given.invalid(
            "is not a web address with `{id}`",
            "example: `https://docs.example.org/read/{id}`",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    /// The documentation has exactly one row per key, with its default, variable and flag.
    #[test]
    fn every_key_is_documented() {
        let page = include_str!("../../../../docs/settings.md");
        for key in KEYS {
            let start = format!("| `{}` |", key.name);
            let row = page.lines().find(|line| line.starts_with(&start));
            let row =
                row.unwrap_or_else(|| panic!("docs/settings.md has no row for `{}`", key.name));
            let mut parts = vec![key.default().to_string(), format!("`{}`", key.variable())];
            parts.extend(key.flag.map(|flag| format!("`{flag}`")));
            for part in parts {
                assert!(row.contains(&part), "`{part}` is missing in: {row}");
            }
        }
        let rows = page.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(
            rows,
            KEYS.len(),
            "docs/settings.md has a row that is no setting"
        );
    }

    /// The default of each key is a value that the file accepts too, and that changes nothing.
    #[test]
    fn defaults_can_be_written_into_the_file() {
        let defaults = Settings::default();
        let mut checked = 0;
        for key in KEYS {
            let SettingDefault::Value(default) = key.default() else {
                continue;
            };
            let mut settings = defaults.clone();
            (key.set)(&mut settings, &SettingValue::Text(default))
                .unwrap_or_else(|wrong| panic!("{}: {wrong:?}", key.name));
            assert_eq!(
                format!("{settings:?}"),
                format!("{defaults:?}"),
                "{}",
                key.name
            );
            checked += 1;
        }
        assert!(checked > 70, "only {checked} settings have a default");
    }
}
