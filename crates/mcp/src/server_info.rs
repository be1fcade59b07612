//! Server information for `initialize` and `server/discover`: identity, capabilities and negotiated language.

use rmcp::model::ServerConfig;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::locale;
use crate::request_meta::RequestMeta;
use crate::revision::Revision;

/// Name of the MCP Apps extension, by which hosts and servers declare support for widgets.
const UI_EXTENSION: &str = "io.modelcontextprotocol/ui";

/// Builds the server description, for revisions before 2026-07-28 or since then (`modern`).
pub(crate) fn server_config(app: &App, modern: bool) -> ServerConfig {
    let inner = app.inner();
    // Older revisions cannot receive notifications, since no connection outlives its request, so they must not be
    // promised.
    let listed = || match modern {
        true => json!({"listChanged": true}),
        false => json!({}),
    };
    let resources = match modern {
        true => json!({"listChanged": true, "subscribe": true}),
        false => json!({}),
    };
    let mut capabilities = Map::new();
    capabilities.insert("tools".to_owned(), listed());
    capabilities.insert("resources".to_owned(), resources);
    capabilities.insert("prompts".to_owned(), listed());
    capabilities.insert("completions".to_owned(), json!({}));
    if inner.registry.widget_names().next().is_some() {
        capabilities.insert("extensions".to_owned(), json!({UI_EXTENSION: {}}));
    }
    if inner.logging {
        capabilities.insert("logging".to_owned(), json!({}));
    }
    let info = json!({
        "protocolVersion": Revision::V2025_11_25.as_str(),
        "capabilities": capabilities,
        "serverInfo": inner.identity.wire,
        "instructions": inner.identity.instructions,
    });
    serde_json::from_value(info).unwrap_or_else(|error| {
        tracing::error!(%error, "server info does not convert to rmcp's type");
        ServerConfig::default()
    })
}

/// Converts the server description to the result of `server/discover`.
pub(crate) fn discover_result(info: ServerConfig) -> Value {
    let versions = Revision::ALL.map(Revision::as_str);
    let mut result = Map::new();
    result.insert("supportedVersions".to_owned(), json!(versions));
    result.insert("capabilities".to_owned(), json!(info.capabilities));
    if let Some(instructions) = info.instructions {
        result.insert("instructions".to_owned(), instructions.into());
    }
    Value::Object(result)
}

/// Returns the app's language for this client, if the client names its language and the app lists its own.
pub(crate) fn negotiated_locale(app: &App, meta: &impl serde::Serialize) -> Option<String> {
    let meta = RequestMeta::new(serde_json::value::to_raw_value(meta).ok());
    let get = |key: &str| meta.get(key);
    locale::requested_locale(get)?;
    app.inner().locales.pick(get).map(str::to_owned)
}
