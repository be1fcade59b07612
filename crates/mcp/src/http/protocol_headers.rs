//! Validation of the protocol headers against the body: decides the revision of a POST, or why it is refused.
//!
//! Proxies route by the headers and servers answer by the body, so the two must never disagree. The checks run in the
//! order in which hosts test them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::app::App;
use crate::protocol_version::{
    DeclaredProtocol, is_bare_discover, negotiate_revision, shorten_for_message,
    unsupported_version,
};
use crate::revision::Revision;
use crate::rpc::RpcError;
use crate::rpc_message::{RpcParams, RpcRequest};

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Determines the revision of a request from its headers and metadata.
pub(crate) fn request_revision(
    headers: &HeaderMap,
    request: &RpcRequest<'_>,
    app: &App,
    lenient: bool,
) -> Result<Revision, RpcError> {
    let header = single_header(headers, VERSION)?;
    let declared = DeclaredProtocol::of(&request.params);
    let Some(version) = declared.version() else {
        return revision_without_meta(header, request, &declared, lenient);
    };
    match header {
        None if lenient => {}
        None => {
            return Err(header_mismatch(
                "`_meta` declares a version but `MCP-Protocol-Version` is missing",
            ));
        }
        Some(header) if header != version => {
            let (header, version) = (shorten_for_message(header), shorten_for_message(&version));
            return Err(header_mismatch(format!(
                "`MCP-Protocol-Version` is `{header}`, `_meta` says `{version}`"
            )));
        }
        Some(_) => {}
    }
    let known = Revision::parse(&version);
    if let Some(legacy) = known.filter(|revision| !revision.is_modern()) {
        return Ok(legacy);
    }
    if let Some(error) = declared.missing_member().filter(|_| !lenient) {
        return Err(error);
    }
    routing_headers(headers, request, lenient)?;
    if request.method == "tools/call" {
        parameter_headers(headers, request, app)?;
    }
    known.ok_or_else(|| unsupported_version(&version))
}

/// Determines the revision of a request without metadata: a legacy one, unless the header says otherwise.
fn revision_without_meta(
    header: Option<&str>,
    request: &RpcRequest<'_>,
    declared: &DeclaredProtocol<'_>,
    lenient: bool,
) -> Result<Revision, RpcError> {
    match header.map(|text| (text, Revision::parse(text))) {
        Some((_, Some(revision))) if revision.is_modern() => {
            if lenient {
                return Ok(revision);
            }
            Err(declared
                .missing_member()
                .unwrap_or_else(|| RpcError::invalid_request("`_meta` is missing")))
        }
        Some((text, None)) => Err(unsupported_version(text)),
        // In `initialize` its own parameter counts, because clients repeat the header of an older session here.
        _ if request.method == "initialize" => Ok(negotiate_revision(&request.params)),
        _ if is_bare_discover(request) => Ok(Revision::V2026_07_28),
        Some((_, Some(revision))) => Ok(revision),
        None => Ok(Revision::ASSUMED),
    }
}

fn routing_headers(
    headers: &HeaderMap,
    request: &RpcRequest<'_>,
    lenient: bool,
) -> Result<(), RpcError> {
    match single_header(headers, METHOD)? {
        None if lenient => {}
        None => return Err(header_mismatch("`Mcp-Method` is missing")),
        Some(method) if method != request.method => {
            return Err(header_mismatch(format!(
                "`Mcp-Method` is `{}`, the body says otherwise",
                shorten_for_message(method)
            )));
        }
        Some(_) => {}
    }
    let params = &request.params;
    let subject = match request.method.as_ref() {
        "tools/call" | "prompts/get" => params.name,
        "resources/read" => params.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.task_id,
        _ => return Ok(()),
    };
    // A body without the name is refused by the method itself.
    let Some(expected) = RpcParams::string(subject) else {
        return Ok(());
    };
    match single_header(headers, NAME)? {
        None if lenient => Ok(()),
        None => Err(header_mismatch("`Mcp-Name` is missing")),
        Some(name) if decode_header_value(name)? != expected => Err(header_mismatch(format!(
            "`Mcp-Name` is `{}`, the body says otherwise",
            shorten_for_message(name)
        ))),
        Some(_) => Ok(()),
    }
}

/// Checks `Mcp-Param-*` headers, for tools whose schema declares them.
fn parameter_headers(
    headers: &HeaderMap,
    request: &RpcRequest<'_>,
    app: &App,
) -> Result<(), RpcError> {
    let name = RpcParams::string(request.params.name).unwrap_or_default();
    let Some(entry) = app.tool(&name).filter(|entry| !entry.headers.is_empty()) else {
        return Ok(());
    };
    let arguments = request.params.arguments.map_or("{}", RawValue::get);
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    for (property, header) in &entry.headers {
        let sent = single_header(headers, &format!("mcp-param-{header}"))?;
        let body = match arguments.get(property) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => Some(value.to_string()),
            _ => None,
        };
        let same = match (sent, &body) {
            (None, None) => true,
            (Some(sent), Some(body)) => decode_header_value(sent)? == *body,
            _ => false,
        };
        if !same {
            return Err(header_mismatch(format!(
                "`Mcp-Param-{header}` does not match `{property}`"
            )));
        }
    }
    Ok(())
}

/// Returns the single value of a header, trimmed. A repeated header is an error.
fn single_header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(header_mismatch(format!("`{name}` is given twice")));
    }
    value
        .to_str()
        .map(|text| Some(text.trim()))
        .map_err(|_| header_mismatch(format!("`{name}` is not text")))
}

/// Decodes `=?base64?…?=`, the encoding of values that a header cannot contain.
fn decode_header_value(value: &str) -> Result<String, RpcError> {
    let Some(inner) = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    else {
        return Ok(value.to_owned());
    };
    let bytes = STANDARD
        .decode(inner)
        .map_err(|_| header_mismatch("a header's base64 is broken"))?;
    String::from_utf8(bytes).map_err(|_| header_mismatch("a header's base64 is not UTF-8"))
}

fn header_mismatch(message: impl Into<std::borrow::Cow<'static, str>>) -> RpcError {
    RpcError::new(-32020, message)
}
