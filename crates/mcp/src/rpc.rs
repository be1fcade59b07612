//! JSON-RPC responses as text: an id with a result or an error.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The JSON-RPC error code for a body that is not JSON.
pub(crate) const PARSE_ERROR: i32 = -32700;
/// The code for JSON that is no valid request.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// The code for a method that the server does not have.
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
/// The code for parameters that do not fit their method.
pub(crate) const INVALID_PARAMS: i32 = -32602;
/// The code for a failure of the server.
pub(crate) const INTERNAL_ERROR: i32 = -32603;

/// The id of a request, or the token of its progress: a string or an integer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum RequestId {
    Number(i64),
    String(String),
}

/// An error object of JSON-RPC, with optional `data` for hints.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RpcError {
    pub(crate) code: i32,
    pub(crate) message: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The error for parameters that do not fit their method.
    pub(crate) fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The error for a method that the server does not have, or not in this revision.
    pub(crate) fn method_not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(METHOD_NOT_FOUND, message)
    }

    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Renders the response with this error. The id is omitted if it could not be parsed.
    pub(crate) fn answer(&self, id: Option<&RequestId>) -> String {
        #[derive(Serialize)]
        struct RpcErrorResponse<'a> {
            jsonrpc: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a RequestId>,
            error: &'a RpcError,
        }
        to_text(&RpcErrorResponse {
            jsonrpc: "2.0",
            id,
            error: self,
        })
    }
}

/// Renders the response with a result that is already JSON. The text is assembled by hand: a result is most of a
/// response, and parsing it again would double the cost of a small tool. The result is moved within its own buffer,
/// because a second allocation of that size costs more.
pub(crate) fn result_answer(id: &RequestId, mut result: String) -> String {
    let before = [r#"{"jsonrpc":"2.0","id":"#, &to_text(id), r#","result":"#].concat();
    result.reserve(before.len() + 1);
    result.insert_str(0, &before);
    result.push('}');
    result
}

/// Serializes one of our own wire types. They contain only strings, numbers and raw JSON, so this cannot fail; if
/// that ever changes, the client still gets a response that it can parse.
pub(crate) fn to_text(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| {
        tracing::error!(%error, "a response could not be serialized");
        r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"internal error"}}"#.to_owned()
    })
}
