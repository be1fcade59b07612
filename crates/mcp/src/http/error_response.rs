//! HTTP error responses with a JSON-RPC error as their body, which MCP clients parse and people can read.

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use super::responses::rpc_error_response;
use crate::rpc::RpcError;

/// JSON-RPC error code for an invalid request.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC error code for an internal error.
pub(crate) const INTERNAL_ERROR: i32 = -32603;

/// Builds the response to a message that was not parsed, so it has no id.
pub(crate) fn answer(status: StatusCode, code: i32, message: &str, hint: &str) -> Response {
    let error = RpcError::new(code, message.to_owned());
    let hinted = match hint {
        "" => error,
        hint => error.with_data(json!({"hint": hint})),
    };
    rpc_error_response(status, &hinted)
}

/// The error for more requests in flight than the limit allows.
pub(crate) fn too_busy() -> RpcError {
    RpcError::new(INTERNAL_ERROR, "the server is busy; try again in a second")
}

/// Builds the 503 for too many requests in flight.
pub(crate) fn busy() -> Response {
    retry_later(too_busy().answer(None))
}

/// The error for unread responses that exceed the share of the connection or its caller, or the whole budget.
pub(crate) fn too_many_unread() -> RpcError {
    let hint = "read the pending responses on this connection, then try again";
    let error = RpcError::new(INTERNAL_ERROR, "too many unread responses");
    error.with_data(json!({"hint": hint}))
}

/// Builds the 503 for too many unread responses.
pub(crate) fn refuse_unread() -> Response {
    retry_later(too_many_unread().answer(None))
}

/// Builds a 503 that asks the client to retry after a second.
pub(crate) fn retry_later(answer: String) -> Response {
    let mut response = super::responses::json(StatusCode::SERVICE_UNAVAILABLE, answer);
    let second = HeaderValue::from_static("1");
    response.headers_mut().insert(header::RETRY_AFTER, second);
    response
}
