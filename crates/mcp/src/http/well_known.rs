//! Responses at unknown paths, those below `/.well-known` among them.

use axum::response::Response;
use http::StatusCode;

use crate::json_response;

/// Answers OAuth discovery without authentication by a JSON 404, which hosts read as "no sign-in". A 400 or an HTML
/// page makes their setup fail.
pub(crate) async fn no_oauth() -> Response {
    let body = r#"{"error":"not_found","error_description":"this server needs no sign-in"}"#;
    json_response::json(StatusCode::NOT_FOUND, body.to_owned())
}

/// Answers any other unknown path with a JSON 404 that names the MCP endpoint.
pub(crate) async fn not_found() -> Response {
    let body = r#"{"error":"not_found","error_description":"the MCP endpoint is /mcp"}"#;
    json_response::json(StatusCode::NOT_FOUND, body.to_owned())
}
