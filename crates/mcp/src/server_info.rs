//! What a client hears before anything else: who the server is, what it can do, in which language.

use rmcp::model::ServerConfig;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::locale;
use crate::request_context::RequestMeta;
use crate::revision::Revision;

/// The name under which hosts and servers say that they know widgets.
const UI_EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The server's description of itself, for the eras before and since 2026-07-28.
pub(crate) fn server_config(app: &App, modern: bool) -> ServerConfig {
    let inner = app.inner();
    // In the older revisions nothing can be pushed, since no connection outlives its request:
    // promising it would be a lie.
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
    if inner.shelf.widget_names().next().is_some() {
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
        tracing::error!(%error, "the server's own description does not fit rmcp's type");
        ServerConfig::default()
    })
}

/// The same as `server/discover` says it.
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

/// The app's language for whoever greets it, if both sides have named theirs.
pub(crate) fn negotiated_locale(app: &App, meta: &impl serde::Serialize) -> Option<String> {
    let meta = RequestMeta::new(serde_json::value::to_raw_value(meta).ok());
    let get = |key: &str| meta.get(key);
    locale::requested_locale(get)?;
    app.inner().locales.pick(get).map(str::to_owned)
}
