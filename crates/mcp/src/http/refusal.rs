//! Turns a status and a message into an answer that MCP clients understand and people can read.

use axum::response::Response;
use http::StatusCode;
use serde_json::json;

use super::answer::refuse;
use crate::rpc::RpcError;

/// The message is not a request as the protocol wants it.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// Something went wrong on our side.
pub(crate) const INTERNAL_ERROR: i32 = -32603;

/// An answer to a message that was not read, so it carries no id.
pub(crate) fn answer(status: StatusCode, code: i32, message: &str, hint: &str) -> Response {
    let error = RpcError::new(code, message.to_owned());
    let hinted = match hint {
        "" => error,
        hint => error.with_data(json!({"hint": hint})),
    };
    refuse(status, &hinted)
}
