//! What stands at `/.well-known`, and at every address where nothing stands.

use axum::response::Response;
use http::StatusCode;

use super::answer;

/// OAuth discovery while no sign-in is configured: a JSON 404, which hosts read as "no sign-in".
/// A 400 or a page of HTML makes their wizards fail.
pub(crate) async fn no_oauth() -> Response {
    let body = r#"{"error":"not_found","error_description":"this server needs no sign-in"}"#;
    answer::json(StatusCode::NOT_FOUND, body.to_owned())
}

/// Any other address.
pub(crate) async fn not_found() -> Response {
    let body = r#"{"error":"not_found","error_description":"the MCP endpoint is /mcp"}"#;
    answer::json(StatusCode::NOT_FOUND, body.to_owned())
}
