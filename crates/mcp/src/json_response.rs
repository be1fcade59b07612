//! HTTP responses with a JSON body. Errors are JSON-RPC errors, which MCP clients parse and people can read.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::json as json_value;

use crate::rpc::{INTERNAL_ERROR, RpcError};

/// Builds the response to a message that was not parsed, so it has no id.
pub(crate) fn answer(status: StatusCode, code: i32, message: &str, hint: &str) -> Response {
    let error = RpcError::new(code, message.to_owned());
    let hinted = match hint {
        "" => error,
        hint => error.with_data(json_value!({"hint": hint})),
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
    error.with_data(json_value!({"hint": hint}))
}

/// Builds the 503 for too many unread responses.
pub(crate) fn refuse_unread() -> Response {
    retry_later(too_many_unread().answer(None))
}

/// Builds a 503 that asks the client to retry after a second.
pub(crate) fn retry_later(answer: String) -> Response {
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, answer);
    let second = HeaderValue::from_static("1");
    response.headers_mut().insert(header::RETRY_AFTER, second);
    response
}

/// Builds a response with a JSON body.
pub(crate) fn json(status: StatusCode, text: String) -> Response {
    respond(status, "application/json", Body::from(shrink_spare(text)))
}

/// Builds a response from an error that has no id.
pub(crate) fn rpc_error_response(status: StatusCode, error: &RpcError) -> Response {
    json(status, error.answer(None))
}

/// Builds a response with a content type and a body.
pub(crate) fn respond(status: StatusCode, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Frees the spare capacity of a text, because what waits to be written is charged by its length.
pub(crate) fn shrink_spare(text: String) -> String {
    let spare = text.capacity() - text.len();
    if spare > SPARE.max(text.len() / 8) {
        // Copied, because `shrink_to_fit` would keep the block: mimalloc does not move an allocation that fills half
        // of its block.
        return text.as_str().to_owned();
    }
    text
}

/// Spare capacity in bytes that is not worth a copy.
const SPARE: usize = 4 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_takes_about_as_much_memory_as_it_is_long() {
        let text = |length: usize, capacity: usize| {
            let mut text = String::with_capacity(capacity);
            text.push_str(&"x".repeat(length));
            let kept = shrink_spare(text);
            (kept.len(), kept.capacity())
        };
        assert_eq!(text(100, SPARE + 100), (100, SPARE + 100));
        assert_eq!(text(100, SPARE + 101), (100, 100));
        assert_eq!(text(80_000, 90_000), (80_000, 90_000));
        assert_eq!(text(80_000, 90_001), (80_000, 80_000));
    }
}
