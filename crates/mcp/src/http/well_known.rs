//! Responses at `/.well-known`, and at every unknown path.

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::{HeaderMap, StatusCode};

use crate::auth::{Auth, MCP_PATHS, WELL_KNOWN};
use crate::json_response;

/// Routes for the protected resource metadata (RFC 9728) of every endpoint; none if authentication is not configured.
pub(crate) fn resource_metadata(auth: Option<&Auth>) -> Router {
    let mut router = Router::new();
    let Some(auth) = auth else {
        return router;
    };
    for resource in MCP_PATHS {
        let path = format!("{WELL_KNOWN}{}", resource.trim_end_matches('/'));
        let auth = auth.clone();
        let answer = move |headers: HeaderMap| async move { auth.metadata(&headers, resource) };
        router = router.route(&path, get(answer));
    }
    router
}

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
