//! Turns a status and a message into an answer that MCP clients understand and people can read.

use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use serde_json::json;

/// The message is not a request as the protocol wants it.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// Something went wrong on our side.
pub(crate) const INTERNAL_ERROR: i32 = -32603;

/// An answer to a message that was not read, so it carries no id.
pub(crate) fn answer(status: StatusCode, code: i32, message: &str, hint: &str) -> Response {
    let mut error = json!({ "code": code, "message": message });
    if let (Some(error), false) = (error.as_object_mut(), hint.is_empty()) {
        error.insert("data".to_owned(), json!({ "hint": hint }));
    }
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
