//! Registry of all settings of the configuration but those in `[fields]` and `[permissions]`.
//!
//! To add a setting, add a field to [`Settings`](super::Settings), an entry here and a row to `docs/settings.md`; tests
//! compare the three. Add a path also to the list in `from_file` of `settings.rs`, so that a relative one is relative to
//! the folder of `docent.toml`. `CONTRIBUTING.md` has the other files to edit.

use std::time::Duration;

use docent_mcp::{DualFormat, TextForm};
use docent_search::{MAX_FIELDS, MAX_SOURCE_BYTES, RankingMethod, ServiceKey};

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

/// All settings, in the order in which hints list them.
pub const KEYS: &[SettingKey] = &[
    SettingKey::new("title", "the folder's name", |s, v| {
        v.line(MAX_TITLE_CHARS).map(|text| s.title = Some(text))
    }),
    SettingKey::new("description", "none", |s, v| {
        v.line(500).map(|text| s.description = Some(text))
    }),
    SettingKey::new("log", "info,rmcp=off,tantivy=warn", |s, v| {
        filter(v).map(|text| s.log = text)
    })
    .flag("--log"),
    SettingKey::new("server.listen", "127.0.0.1:8787", |s, v| {
        v.address().map(|a| s.server.listen = a)
    })
    .flag("--listen"),
    SettingKey::new("server.public_url", "none", |s, v| {
        v.web_address().map(|url| s.server.public_url = Some(url))
    })
    .flag("--public-url"),
    SettingKey::new("server.allow_hosts", "[]", |s, v| {
        v.hosts().map(|list| s.server.allow_hosts = list)
    })
    .flag("--allow-host"),
    SettingKey::new(
        "server.allow_origins",
        "https://chatgpt.com,https://claude.ai",
        |s, v| v.origins().map(|list| s.server.allow_origins = list),
    )
    .flag("--allow-origin"),
    SettingKey::new("server.lenient_modern_headers", "false", |s, v| {
        v.boolean().map(|on| s.server.lenient_modern_headers = on)
    }),
    SettingKey::new("server.metrics", "none", |s, v| {
        v.address().map(|a| s.server.metrics = Some(a))
    })
    .flag("--metrics"),
    SettingKey::new("server.tls_cert", "none", |s, v| {
        v.line(4_096)
            .map(|file| s.server.tls.certificate = Some(file.into()))
    })
    .flag("--tls-cert"),
    SettingKey::new("server.tls_key", "none", |s, v| {
        v.line(4_096)
            .map(|file| s.server.tls.key = Some(file.into()))
    })
    .flag("--tls-key"),
    SettingKey::new("server.preview", "false", |s, v| {
        v.boolean().map(|on| s.server.preview = on)
    })
    .flag("--preview"),
    SettingKey::new("server.dual", "auto", |s, v| {
        v.choice(&DUAL).map(|when| s.server.dual = when)
    })
    .flag("--dual"),
    SettingKey::new("server.text", "json", |s, v| {
        v.choice(&TEXT).map(|form| s.server.text = form)
    })
    .flag("--text"),
    SettingKey::new("telemetry.otlp_endpoint", "none", |s, v| {
        v.web_address().map(|url| s.telemetry.endpoint = Some(url))
    }),
    SettingKey::new("telemetry.service_name", "docent", |s, v| {
        v.line(100).map(|name| s.telemetry.service = name)
    }),
    SettingKey::new("telemetry.headers", "[]", |s, v| {
        telemetry::headers(v).map(|headers| s.telemetry.headers = headers)
    }),
    SettingKey::new("auth.issuers", "[]", |s, v| {
        auth::issuers(v).map(|list| s.auth.issuers = list)
    }),
    SettingKey::new("auth.required", "true", |s, v| {
        v.boolean().map(|on| s.auth.required = on)
    }),
    SettingKey::new("auth.scopes", "docs.read", |s, v| {
        v.list().map(|list| s.auth.scopes = list)
    }),
    SettingKey::new("auth.audiences", "[]", |s, v| {
        v.list().map(|list| s.auth.audiences = list)
    }),
    SettingKey::new("auth.algorithms", "RS256,PS256,ES256,EdDSA", |s, v| {
        auth::algorithms(v).map(|list| s.auth.algorithms = list)
    }),
    SettingKey::new("auth.access_tokens_only", "false", |s, v| {
        v.boolean().map(|on| s.auth.access_tokens_only = on)
    }),
    SettingKey::new("auth.private_network", "false", |s, v| {
        v.boolean().map(|on| s.auth.private_network = on)
    }),
    SettingKey::new("auth.issuer_ca", "none", |s, v| {
        v.line(4_096)
            .map(|file| s.auth.issuer_ca = Some(file.into()))
    }),
    SettingKey::new("auth.introspection.url", "none", |s, v| {
        auth::address(v).map(|url| s.auth.introspection.url = Some(url))
    }),
    SettingKey::new("auth.introspection.issuer", "none", |s, v| {
        auth::address(v).map(|name| s.auth.introspection.issuer = Some(name))
    }),
    SettingKey::new("auth.introspection.client_id", "none", |s, v| {
        v.line(500).map(|id| s.auth.introspection.client_id = id)
    }),
    SettingKey::new("auth.introspection.client_secret", "none", |s, v| {
        auth::secret(v).map(|secret| s.auth.introspection.client_secret = secret)
    }),
    SettingKey::new("auth.api_keys", "false", |s, v| {
        v.boolean().map(|on| s.auth.api_keys = on)
    }),
    SettingKey::new("auth.link_days", "7", |s, v| {
        v.number(1..=366).map(|days| s.auth.link_days = days)
    }),
    SettingKey::new("auth.mode", "none", |s, v| {
        v.choice(&sign_in::SIGN_IN_METHODS)
            .map(|by| s.sign_in.by = by)
    })
    .flag("--auth"),
    SettingKey::new("auth.dir", ".docent/sign-in", |s, v| {
        v.line(4_096).map(|dir| s.sign_in.dir = Some(dir.into()))
    }),
    SettingKey::new("auth.upstream.issuer", "none", |s, v| {
        sign_in::issuer(v).map(|url| s.sign_in.upstream_issuer = Some(url))
    }),
    SettingKey::new("auth.upstream.client_id", "none", |s, v| {
        v.line(500)
            .map(|id| s.sign_in.upstream_client_id = Some(id))
    }),
    SettingKey::new("auth.upstream.client_secret", "none", |s, v| {
        sign_in::secret(v).map(|secret| s.sign_in.upstream_client_secret = Some(secret))
    }),
    SettingKey::new("auth.client_hosts", "[]", |s, v| {
        v.hosts().map(|list| s.sign_in.client_hosts = list)
    }),
    SettingKey::new("auth.client_ca", "none", |s, v| {
        v.line(4_096)
            .map(|file| s.sign_in.client_ca = Some(file.into()))
    }),
    SettingKey::new("index.dir", ".docent/index", |s, v| {
        v.line(4_096).map(|dir| s.index_dir = Some(dir.into()))
    })
    .flag("--index"),
    SettingKey::new("documents.url", "none", |s, v| {
        template(v).map(|url| s.documents_url = Some(url))
    }),
    SettingKey::new("documents.include", "[]", |s, v| {
        files::patterns(v).map(|list| s.files.include = list)
    })
    .flag("--include"),
    SettingKey::new("documents.exclude", "[]", |s, v| {
        files::patterns(v).map(|list| s.files.exclude = list)
    })
    .flag("--exclude"),
    SettingKey::new("documents.gitignore", "true", |s, v| {
        v.boolean().map(|on| s.files.gitignore = on)
    }),
    SettingKey::new("search.results", "10", |s, v| {
        v.size(1..=100).map(|n| s.search_results = n)
    })
    .flag("--limit"),
    SettingKey::new("search.mode", "hybrid", |s, v| {
        v.choice(&MODES).map(|mode| s.search_method = mode)
    })
    .flag("--mode"),
    SettingKey::new("search.weight", "none", |s, v| {
        v.fraction()
            .map(|weight| s.search_method = RankingMethod::Fixed(weight))
    }),
    SettingKey::new("search.diversity", "0", |s, v| {
        v.fraction().map(|amount| s.search_diversity = amount)
    }),
    SettingKey::new("model.name", "granite", |s, v| {
        v.line(200).map(|name| s.model.name = name)
    }),
    SettingKey::new("model.url", "none", |s, v| {
        v.web_address().map(|url| s.model.url = Some(url))
    }),
    SettingKey::new("model.key", "none", |s, v| {
        secret(v).map(|key| s.model.key = Some(key))
    }),
    SettingKey::new("model.dimensions", "none", |s, v| {
        v.size(1..=4_096).map(|n| s.model.dimensions = Some(n))
    }),
    SettingKey::new("model.query_prefix", "none", |s, v| {
        v.line(500).map(|text| s.model.query_prefix = text)
    }),
    SettingKey::new("model.passage_prefix", "none", |s, v| {
        v.line(500).map(|text| s.model.passage_prefix = text)
    }),
    SettingKey::new("engine.kind", "embedded", |s, v| {
        v.choice(&ENGINES).map(|kind| s.engine.kind = kind)
    })
    .flag("--engine"),
    SettingKey::new("engine.addresses", "[]", |s, v| {
        engine::addresses(v).map(|list| s.engine.cluster.addresses = list)
    }),
    SettingKey::new("engine.key", "none", |s, v| {
        secret(v).map(|key| s.engine.cluster.key = Some(key))
    }),
    SettingKey::new("engine.ca_file", "none", |s, v| {
        v.line(4_096)
            .map(|file| s.engine.cluster.ca_file = Some(file.into()))
    }),
    SettingKey::new("engine.collection", "docent", |s, v| {
        engine::collection(v).map(|name| s.engine.cluster.collection = name)
    }),
    SettingKey::new("engine.shards", "none", |s, v| {
        engine::small_number(v, 1_024).map(|n| s.engine.cluster.shards = Some(n))
    }),
    SettingKey::new("engine.replicas", "2", |s, v| {
        engine::small_number(v, 16).map(|n| s.engine.cluster.replicas = n)
    }),
    SettingKey::new("engine.quantized", "true", |s, v| {
        v.boolean().map(|on| s.engine.cluster.quantized = on)
    }),
    SettingKey::new("engine.vectors_on_disk", "none", |s, v| {
        v.boolean()
            .map(|on| s.engine.cluster.vectors_on_disk = Some(on))
    }),
    SettingKey::new("engine.words_on_disk", "true", |s, v| {
        v.boolean().map(|on| s.engine.cluster.words_on_disk = on)
    }),
    SettingKey::new("engine.documents_on_disk", "true", |s, v| {
        v.boolean()
            .map(|on| s.engine.cluster.documents_on_disk = on)
    }),
    SettingKey::new("engine.timeout_ms", "1500", |s, v| {
        v.number(100..=60_000)
            .map(|n| s.engine.cluster.timeout = Duration::from_millis(n))
    }),
    SettingKey::new("fetch.max_chars", "60000", |s, v| {
        v.size(1_000..=100_000).map(|n| s.fetch_max_chars = n)
    }),
    SettingKey::new("audit.file", "none", |s, v| {
        v.line(4_096).map(|file| s.audit.file = Some(file.into()))
    })
    .flag("--audit-log"),
    SettingKey::new("audit.queries", "false", |s, v| {
        v.boolean().map(|on| s.audit.queries = on)
    }),
    SettingKey::new("audit.max_bytes", "67108864", |s, v| {
        v.number(65_536..=1_024 * GIB)
            .map(|bytes| s.audit.max_bytes = bytes)
    }),
    SettingKey::new("find.enabled", "true", |s, v| {
        v.boolean().map(|on| s.find.enabled = on)
    }),
    SettingKey::new("find.name", "find", |s, v| {
        tools::tool(v).map(|name| s.find.name = name)
    }),
    SettingKey::new("find.title", "Find documents", |s, v| {
        tools::title(v).map(|title| s.find.title = title)
    }),
    SettingKey::new("find.parameters", "[]", |s, v| {
        tools::names(v).map(|names| s.find.parameters = names)
    }),
    SettingKey::new("find.list", "results", |s, v| {
        tools::list(v).map(|name| s.find.list = name)
    }),
    SettingKey::new("find.result", "[]", |s, v| {
        tools::names(v).map(|names| s.find.result = names)
    }),
    SettingKey::new("find.prefer", "false", |s, v| {
        v.boolean().map(|on| s.find.prefer = on)
    }),
    SettingKey::new("record.name", "none", |s, v| {
        tools::tool(v).map(|name| s.record.name = Some(name))
    }),
    SettingKey::new("record.title", "Read a record", |s, v| {
        tools::title(v).map(|title| s.record.title = title)
    }),
    SettingKey::new("record.parameter", "id", |s, v| {
        tools::name(v).map(|name| s.record.parameter = name)
    }),
    SettingKey::new("record.result", "[]", |s, v| {
        tools::record(v).map(|names| s.record.result = names)
    }),
    SettingKey::new("widgets.enabled", "true", |s, v| {
        v.boolean().map(|on| s.widgets.enabled = on)
    }),
    SettingKey::new("widgets.domain", "none", |s, v| {
        tools::domain(v).map(|origin| s.widgets.domain = Some(origin))
    }),
    SettingKey::new("server.pages", "true", |s, v| {
        v.boolean().map(|on| s.server.pages = on)
    }),
    SettingKey::new("server.openai_challenge", "none", |s, v| {
        tools::token(v).map(|token| s.server.openai_challenge = Some(token))
    }),
    SettingKey::new("limits.connections", "4096", |s, v| {
        v.size(1..=1_000_000).map(|n| s.limits.connections = n)
    }),
    SettingKey::new("limits.in_flight", "256", |s, v| {
        v.size(1..=100_000).map(|n| s.limits.in_flight = n)
    }),
    SettingKey::new("limits.listen_streams", "2000", |s, v| {
        v.size(0..=1_000_000).map(|n| s.limits.listen_streams = n)
    }),
    SettingKey::new("limits.streams_per_caller", "16", |s, v| {
        v.size(1..=100_000).map(|n| s.limits.streams_per_caller = n)
    }),
    SettingKey::new("limits.unread_bytes", "67108864", |s, v| {
        v.size(MIB..=64 * GIB).map(|n| s.limits.unread_bytes = n)
    }),
    SettingKey::new("limits.unread_seconds", "30", |s, v| {
        seconds(v).map(|time| s.limits.unread = time)
    }),
    SettingKey::new("limits.request_bytes", "67108864", |s, v| {
        v.size(MIB..=64 * GIB).map(|n| s.limits.request_bytes = n)
    }),
    SettingKey::new("limits.body_bytes", "1048576", |s, v| {
        v.size(1_024..=MAX_BODY).map(|n| s.limits.body_bytes = n)
    }),
    SettingKey::new("limits.call_bytes", "262144", |s, v| {
        v.size(1_024..=MAX_BODY).map(|n| s.limits.call_bytes = n)
    }),
    SettingKey::new("limits.json_depth", "64", |s, v| {
        // The JSON parser has its own limit of 128 levels.
        v.size(8..=120).map(|n| s.limits.json_depth = n)
    }),
    SettingKey::new("limits.batch", "32", |s, v| {
        v.size(1..=1_000).map(|n| s.limits.batch = n)
    }),
    SettingKey::new("limits.calls_per_minute", "1200", |s, v| {
        let most = v.size(0..=1_000_000)?;
        s.limits.calls_per_minute = u32::try_from(most).unwrap_or(u32::MAX);
        Ok(())
    }),
    SettingKey::new("limits.stdio_line", "4194304", |s, v| {
        v.size(1_024..=GIB).map(|n| s.limits.stdio_line = n)
    }),
    SettingKey::new("limits.first_byte_seconds", "5", |s, v| {
        seconds(v).map(|time| s.limits.first_byte = time)
    }),
    SettingKey::new("limits.headers_seconds", "10", |s, v| {
        seconds(v).map(|time| s.limits.headers = time)
    }),
    SettingKey::new("limits.body_seconds", "15", |s, v| {
        seconds(v).map(|time| s.limits.body = time)
    }),
    SettingKey::new("limits.handler_seconds", "30", |s, v| {
        seconds(v).map(|time| s.limits.handler = time)
    }),
    SettingKey::new("limits.idle_seconds", "60", |s, v| {
        seconds(v).map(|time| s.limits.idle = time)
    }),
    SettingKey::new("limits.age_seconds", "600", |s, v| {
        seconds(v).map(|time| s.limits.age = time)
    }),
    SettingKey::new("limits.shutdown_seconds", "30", |s, v| {
        seconds(v).map(|time| s.limits.shutdown = time)
    }),
    SettingKey::new("index.memory_mib", "512", |s, v| {
        v.size(IndexMemoryBudget::LEAST_MIB as u64..=65_536)
            .map(|n| s.memory = IndexMemoryBudget::of_mib(n))
    }),
    SettingKey::new("watch", "true", |s, v| v.boolean().map(|on| s.watch = on)),
    SettingKey::new("ingest.max_file_bytes", "67108864", |s, v| {
        v.number(1..=GIB).map(|n| s.ingest.max_file_bytes = n)
    }),
    SettingKey::new("ingest.max_stream_bytes", "17179869184", |s, v| {
        v.number(1..=1024 * GIB)
            .map(|n| s.ingest.max_stream_bytes = n)
    }),
    // The index accepts at most ten million characters of four bytes each for one document.
    SettingKey::new("ingest.max_text_chars", "10000000", |s, v| {
        v.size(1..=10_000_000).map(|n| s.ingest.max_text_chars = n)
    }),
    SettingKey::new("ingest.max_files", "200000", |s, v| {
        v.size(1..=10_000_000).map(|n| s.ingest.max_files = n)
    }),
    SettingKey::new("ingest.max_depth", "64", |s, v| {
        v.size(0..=256).map(|n| s.ingest.max_depth = n)
    }),
    SettingKey::new("ingest.max_path_bytes", "1024", |s, v| {
        v.size(1..=MAX_SOURCE_BYTES as u64)
            .map(|n| s.ingest.max_path_bytes = n)
    }),
    SettingKey::new("ingest.max_records", "2000000", |s, v| {
        v.size(1..=10_000_000).map(|n| s.ingest.max_records = n)
    }),
    SettingKey::new("ingest.max_line_bytes", "1048576", |s, v| {
        v.size(1..=GIB).map(|n| s.ingest.max_line_bytes = n)
    }),
    SettingKey::new("ingest.max_front_matter_bytes", "65536", |s, v| {
        v.size(1..=16_777_216)
            .map(|n| s.ingest.max_front_matter_bytes = n)
    }),
    SettingKey::new("ingest.max_fields", "64", |s, v| {
        v.size(0..=MAX_FIELDS as u64)
            .map(|n| s.ingest.max_fields = n)
    }),
    SettingKey::new("ingest.max_columns", "16384", |s, v| {
        v.size(1..=1_000_000).map(|n| s.ingest.max_columns = n)
    }),
    // A parser process has 512 MiB for everything.
    SettingKey::new("ingest.max_unpacked_bytes", "268435456", |s, v| {
        v.number(1..=GIB / 2)
            .map(|n| s.ingest.max_unpacked_bytes = n)
    }),
    SettingKey::new("ingest.max_pages", "5000", |s, v| {
        v.size(1..=100_000).map(|n| s.ingest.max_pages = n)
    }),
    SettingKey::new("ingest.max_members", "10000", |s, v| {
        v.size(1..=1_000_000).map(|n| s.ingest.max_members = n)
    }),
    SettingKey::new("ingest.max_parse_seconds", "20", |s, v| {
        v.number(1..=600).map(|n| s.ingest.max_parse_seconds = n)
    }),
    SettingKey::new("ingest.require_sandbox", "false", |s, v| {
        v.boolean().map(|on| s.ingest.require_sandbox = on)
    }),
    SettingKey::new("sqlite.table", "none", |s, v| {
        v.line(MAX_TITLE_CHARS)
            .map(|name| s.formats.sqlite.table = Some(name))
    }),
    SettingKey::new("sqlite.query", "none", |s, v| {
        v.line(MAX_QUERY_CHARS)
            .map(|query| s.formats.sqlite.query = Some(query))
    }),
    SettingKey::new("ingest.max_documents", "2000000", |s, v| {
        v.size(1..=100_000_000).map(|n| s.ingest.max_documents = n)
    }),
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
            let mut parts = vec![key.default.to_owned(), format!("`{}`", key.variable())];
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

    /// The documented default of each key equals the value in [`Settings::default`].
    #[test]
    fn the_defaults_are_what_they_are_said_to_be() {
        let fresh = format!("{:?}", Settings::default());
        for key in KEYS {
            let text = SettingValue::Text(key.default.to_owned());
            if [
                "the folder's name",
                "none",
                "[]",
                ".docent/index",
                ".docent/sign-in",
            ]
            .contains(&key.default)
            {
                continue;
            }
            let mut changed = Settings::default();
            (key.set)(&mut changed, &text)
                .unwrap_or_else(|wrong| panic!("{}: {wrong:?}", key.name));
            assert_eq!(format!("{changed:?}"), fresh, "{}", key.name);
        }
    }
}
