//! Builds JSON-RPC requests as ChatGPT or Claude would send them, in either era of the protocol: the revisions that
//! begin with `initialize`, and 2026-07-28, where every request carries its metadata.

use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::connection::OutgoingRequest;

/// The stateless revision, which has no `initialize` handshake.
pub(crate) const MODERN_REVISION: &str = "2026-07-28";
/// The revisions with an `initialize` handshake, newest first.
pub(crate) const LEGACY_REVISIONS: [&str; 4] =
    ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The client that the check impersonates, because servers behave differently for different hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientIdentity {
    ChatGpt,
    Claude,
}

impl ClientIdentity {
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

/// Builds the requests of one session: its identity, revision, session id and request ids.
#[derive(Debug)]
pub(crate) struct McpRequestBuilder {
    pub identity: ClientIdentity,
    /// The negotiated protocol revision.
    pub version: String,
    pub session: Option<String>,
    last_id: AtomicU64,
}

impl McpRequestBuilder {
    pub(crate) fn new(identity: ClientIdentity, version: &str) -> Self {
        Self {
            identity,
            version: version.to_owned(),
            session: None,
            last_id: AtomicU64::new(0),
        }
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.version == MODERN_REVISION
    }

    pub(crate) fn request(&self, method: &str, params: Value) -> OutgoingRequest {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        self.request_as(json!(id), method, params)
    }

    pub(crate) fn request_as(&self, id: Value, method: &str, mut params: Value) -> OutgoingRequest {
        if self.is_modern()
            && let Some(params) = params.as_object_mut()
        {
            params.insert("_meta".to_owned(), self.meta());
        }
        let name = mcp_name_header(method, &params);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let request = OutgoingRequest {
            id: Some(id),
            ..OutgoingRequest::post(message.to_string())
        };
        self.with_protocol_headers(request, method, name.as_deref())
    }

    pub(crate) fn notification(&self, method: &str) -> OutgoingRequest {
        let message = json!({"jsonrpc": "2.0", "method": method});
        self.with_protocol_headers(OutgoingRequest::post(message.to_string()), method, None)
    }

    /// The `initialize` request of the legacy revisions, always with id 0.
    pub(crate) fn initialize(&self, version: &str) -> OutgoingRequest {
        let params = json!({
            "protocolVersion": version,
            "capabilities": self.identity.capabilities(),
            "clientInfo": self.identity.client(),
        });
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        OutgoingRequest {
            id: Some(json!(0)),
            ..OutgoingRequest::post(message.to_string())
        }
    }

    /// The `_meta` that every request of 2026-07-28 carries: revision, client and capabilities.
    pub(crate) fn meta(&self) -> Value {
        json!({
            META_VERSION: self.version,
            "io.modelcontextprotocol/clientInfo": self.identity.client(),
            "io.modelcontextprotocol/clientCapabilities": self.identity.capabilities(),
        })
    }

    /// Adds the protocol headers: the revision, the session id and, in 2026-07-28, the method and the name.
    pub(crate) fn with_protocol_headers(
        &self,
        request: OutgoingRequest,
        method: &str,
        name: Option<&str>,
    ) -> OutgoingRequest {
        let mut request = request.with_header("MCP-Protocol-Version", &self.version);
        if self.is_modern() {
            request = request.with_header("Mcp-Method", method);
        }
        if let Some(name) = name.filter(|_| self.is_modern()) {
            request = request.with_header("Mcp-Name", name);
        }
        match &self.session {
            Some(session) => request.with_header("Mcp-Session-Id", session),
            None => request,
        }
    }
}

/// The value of the header `Mcp-Name`, which repeats the tool, prompt or URI of the body.
fn mcp_name_header(method: &str, params: &Value) -> Option<String> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    let name = params.get(key)?.as_str()?;
    let plain = name.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    // Names that a header cannot carry are encoded as the protocol prescribes.
    Some(if plain {
        name.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(name))
    })
}
