//! How a host talks: a method and its parameters into the request that ChatGPT or Claude would send, in
//! either era of the protocol.

use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::wire::Ask;

/// The revision without a handshake.
pub(crate) const MODERN: &str = "2026-07-28";
/// The revisions that begin with `initialize`, newest first.
pub(crate) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Whom a server is told that it talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    ChatGpt,
    Claude,
}

impl Identity {
    pub(crate) fn user_agent(self) -> &'static str {
        match self {
            Self::ChatGpt => "openai-mcp/1.0.0",
            Self::Claude => "Claude-User",
        }
    }

    fn client(self) -> Value {
        match self {
            Self::ChatGpt => json!({"name": "openai-mcp", "version": "1.0.0"}),
            Self::Claude => json!({"name": "claude-ai", "version": "0.1.0"}),
        }
    }

    fn capabilities(self) -> Value {
        let ui =
            json!({"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}});
        match self {
            Self::ChatGpt => {
                json!({"experimental": {"openai/visibility": {"enabled": true}}, "extensions": ui})
            }
            Self::Claude => json!({"extensions": ui}),
        }
    }
}

/// One side of a conversation.
#[derive(Debug)]
pub(crate) struct Voice {
    pub identity: Identity,
    /// The revision it speaks.
    pub version: String,
    pub session: Option<String>,
    last_id: AtomicU64,
}

impl Voice {
    pub(crate) fn new(identity: Identity, version: &str) -> Self {
        Self {
            identity,
            version: version.to_owned(),
            session: None,
            last_id: AtomicU64::new(0),
        }
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.version == MODERN
    }

    /// A request with the next id.
    pub(crate) fn request(&self, method: &str, params: Value) -> Ask {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        self.request_as(json!(id), method, params)
    }

    /// A request with this id.
    pub(crate) fn request_as(&self, id: Value, method: &str, mut params: Value) -> Ask {
        if self.is_modern()
            && let Some(params) = params.as_object_mut()
        {
            params.insert("_meta".to_owned(), self.meta());
        }
        let name = named(method, &params);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let ask = Ask {
            id: Some(id),
            ..Ask::post(message.to_string())
        };
        self.headed(ask, method, name.as_deref())
    }

    /// A notification.
    pub(crate) fn notice(&self, method: &str) -> Ask {
        let message = json!({"jsonrpc": "2.0", "method": method});
        self.headed(Ask::post(message.to_string()), method, None)
    }

    /// The greeting of the older revisions.
    pub(crate) fn initialize(&self, version: &str) -> Ask {
        let params = json!({
            "protocolVersion": version,
            "capabilities": self.identity.capabilities(),
            "clientInfo": self.identity.client(),
        });
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        Ask {
            id: Some(json!(0)),
            ..Ask::post(message.to_string())
        }
    }

    /// What every request of the newer revision says of its sender.
    pub(crate) fn meta(&self) -> Value {
        json!({
            META_VERSION: self.version,
            "io.modelcontextprotocol/clientInfo": self.identity.client(),
            "io.modelcontextprotocol/clientCapabilities": self.identity.capabilities(),
        })
    }

    /// The headers of the revision and of the session.
    pub(crate) fn headed(&self, ask: Ask, method: &str, name: Option<&str>) -> Ask {
        let mut ask = ask.with("MCP-Protocol-Version", &self.version);
        if self.is_modern() {
            ask = ask.with("Mcp-Method", method);
        }
        if let Some(name) = name.filter(|_| self.is_modern()) {
            ask = ask.with("Mcp-Name", name);
        }
        match &self.session {
            Some(session) => ask.with("Mcp-Session-Id", session),
            None => ask,
        }
    }
}

/// What the header `Mcp-Name` repeats of the body.
fn named(method: &str, params: &Value) -> Option<String> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    let name = params.get(key)?.as_str()?;
    let plain = name.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    // What a header cannot carry travels in the protocol's own wrapping.
    Some(if plain {
        name.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(name))
    })
}
