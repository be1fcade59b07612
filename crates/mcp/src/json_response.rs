//! HTTP responses with a JSON body. Errors are JSON-RPC errors, which MCP clients parse and people can read.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::json as json_value;

use crate::answer_error::{too_busy, too_many_unread};
use crate::reply::shrink_spare;
use crate::rpc::RpcError;

/// Builds the response to a message that was not parsed, so it has no id.
pub(crate) fn answer(status: StatusCode, code: i32, message: &str, hint: &str) -> Response {
    let error = RpcError::new(code, message.to_owned());
    let hinted = match hint {
        "" => error,
        hint => error.with_data(json_value!({"hint": hint})),
    };
    rpc_error_response(status, &hinted)
}

/// Builds the 503 for too many requests in flight.
pub(crate) fn busy() -> Response {
    retry_later(too_busy().answer(None))
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
