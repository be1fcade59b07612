//! Server information for `initialize` and `server/discover`: identity and capabilities.

use serde_json::{Map, Value, json};

use crate::app::App;
use crate::revision::Revision;

/// Name of the MCP Apps extension, by which hosts and servers declare support for widgets.
const UI_EXTENSION: &str = "io.modelcontextprotocol/ui";

/// Describes the server, for revisions before 2026-07-28 or since then (`modern`).
pub(crate) fn describe(app: &App, modern: bool) -> Map<String, Value> {
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
    let mut server = Map::new();
    server.insert("capabilities".to_owned(), capabilities.into());
    server.insert("serverInfo".to_owned(), inner.identity.wire.clone());
    if let Some(instructions) = &inner.identity.instructions {
        server.insert("instructions".to_owned(), instructions.as_str().into());
    }
    server
}

/// Turns the description into the result of `server/discover`, which has the identity in its `_meta` instead.
pub(crate) fn discovered(mut server: Map<String, Value>) -> Map<String, Value> {
    server.remove("serverInfo");
    let versions = Revision::ALL.map(Revision::as_str);
    server.insert("supportedVersions".to_owned(), json!(versions));
    server
}
