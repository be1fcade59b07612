//! Protocol version negotiation, from what a request itself declares.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::revision::Revision;
use crate::rpc::RpcError;
use crate::rpc_message::{RpcParams, RpcRequest};

/// The protocol version and capabilities that a request declares in `_meta`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct DeclaredProtocol<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default)]
    version: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow, default)]
    capabilities: Option<&'a RawValue>,
}

impl<'a> DeclaredProtocol<'a> {
    pub(crate) fn of(params: &RpcParams<'a>) -> Self {
        // A `_meta` that is not an object declares nothing; the method that reads it reports the error.
        params
            .meta
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
    }

    pub(crate) fn version(&self) -> Option<String> {
        RpcParams::string(self.version)
    }

    /// Returns the error for the first required member that is missing or of the wrong type.
    pub(crate) fn missing_member(&self) -> Option<RpcError> {
        let missing = if self.version().is_none() {
            "io.modelcontextprotocol/protocolVersion"
        } else if self
            .capabilities
            .is_none_or(|raw| !raw.get().starts_with('{'))
        {
            "io.modelcontextprotocol/clientCapabilities"
        } else {
            return None;
        };
        Some(RpcError::invalid_params(format!(
            "the request's `_meta` has no valid `{missing}`"
        )))
    }
}

/// Returns the error for an unsupported revision, with the list of supported ones.
pub(crate) fn unsupported_version(requested: &str) -> RpcError {
    let supported: Vec<&str> = Revision::ALL
        .iter()
        .map(|revision| revision.as_str())
        .collect();
    RpcError::new(
        -32022,
        format!(
            "protocol version `{}` is not supported",
            shorten_for_message(requested)
        ),
    )
    .with_data(json!({"supported": supported, "requested": requested}))
}

/// Negotiates the revision of `initialize`: the requested one if it has a handshake, or else the newest that has one.
/// The result is never 2026-07-28, because a client that sends `initialize` cannot speak it.
pub(crate) fn negotiate_revision(params: &RpcParams<'_>) -> Revision {
    let requested = RpcParams::string(params.protocol_version);
    let known = requested.as_deref().and_then(Revision::parse);
    known
        .filter(|revision| !revision.is_modern())
        .unwrap_or(Revision::V2025_11_25)
}

/// Whether a request is a `server/discover` without metadata. Such a probe is answered despite the missing members,
/// because one host is known to give up on an error.
pub(crate) fn is_bare_discover(request: &RpcRequest<'_>) -> bool {
    request.method == "server/discover" && request.params.meta.is_none()
}

/// Truncates untrusted text to 80 characters for use in a message.
pub(crate) fn shorten_for_message(text: &str) -> Cow<'_, str> {
    const MAX_CHARS: usize = 80;
    docent_unicode::ellipsize(text, MAX_CHARS)
}
