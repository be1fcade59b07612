//! Turns a status and a message into an answer that MCP clients understand and people can read.

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use super::responses::rpc_error_response;
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
    rpc_error_response(status, &hinted)
}

/// More is being worked on than there is room for.
pub(crate) fn too_busy() -> RpcError {
    RpcError::new(INTERNAL_ERROR, "the server is busy; try again in a second")
}

/// The answer to a message that was not read for that reason.
pub(crate) fn busy() -> Response {
    retry_later(too_busy().answer(None))
}

/// More answers wait to be read than this connection, its caller or all of them together may have.
pub(crate) fn too_many_unread() -> RpcError {
    let hint = "read the answers that wait on this connection, then try again";
    let error = RpcError::new(INTERNAL_ERROR, "too many answers wait to be read");
    error.with_data(json!({"hint": hint}))
}

/// The answer to a message that was not worked on for that reason.
pub(crate) fn refuse_unread() -> Response {
    retry_later(too_many_unread().answer(None))
}

/// Has the client come back in a second.
pub(crate) fn retry_later(answer: String) -> Response {
    let mut response = super::responses::json(StatusCode::SERVICE_UNAVAILABLE, answer);
    let second = HeaderValue::from_static("1");
    response.headers_mut().insert(header::RETRY_AFTER, second);
    response
}
