//! Health endpoints: liveness and readiness as JSON, for people, probes and load balancers.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::responses;
use crate::app::App;
use crate::auth::Auth;
use crate::json_response;
use crate::rpc::RpcError;

/// Readiness of the app, with the state of its parts as a JSON object.
#[derive(Debug, Clone)]
pub struct ReadinessReport {
    /// Whether the app is ready; false while its answers would be wrong or missing.
    pub ready: bool,
    /// A JSON object whose members are reported beside `ready`.
    pub parts: Value,
}

/// The readiness probe, which is called at every `/readyz`.
///
/// ```rust
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use docent_mcp::http::{HttpOptions, ReadinessReport};
///
/// let is_loaded = Arc::new(AtomicBool::new(false));
/// let probed = Arc::clone(&is_loaded);
/// let options = HttpOptions {
///     readiness: Arc::new(move || ReadinessReport {
///         ready: probed.load(Ordering::Relaxed),
///         parts: serde_json::json!({"documents": 1_200}),
///     }),
///     ..HttpOptions::default()
/// };
/// assert!(!(options.readiness)().ready);
/// is_loaded.store(true, Ordering::Relaxed);
/// assert!((options.readiness)().ready);
/// ```
pub type ReadinessProbe = Arc<dyn Fn() -> ReadinessReport + Send + Sync>;

#[derive(Clone)]
pub(crate) struct HealthState {
    pub(crate) app: App,
    pub(crate) readiness: ReadinessProbe,
    pub(crate) auth: Option<Auth>,
}

/// `GET /healthz`: liveness. The process answers.
pub(crate) async fn healthz() -> Response {
    json_response::json(StatusCode::OK, r#"{"status":"ok"}"#.to_owned())
}

/// `GET /readyz`: readiness, part by part. The server is not ready from the moment shutdown begins.
pub(crate) async fn readyz(State(health): State<HealthState>) -> Response {
    let ReadinessReport { ready, parts } = (health.readiness)();
    let closing = health.app.inner().closing.is_cancelled();
    let keys = health.auth.as_ref().map(Auth::is_ready);
    let ready = ready && keys != Some(false) && !closing;
    let mut body = json!({"ready": ready});
    if let (Some(body), Value::Object(parts)) = (body.as_object_mut(), parts) {
        body.extend(parts.into_iter().filter(|(key, _)| key != "ready"));
        if let Some(keys) = keys {
            let sign_in = if keys { "ready" } else { "waiting for keys" };
            body.insert("sign_in".to_owned(), sign_in.into());
        }
        if closing {
            body.insert("closing".to_owned(), true.into());
        }
    }
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    json_response::json(status, body.to_string())
}

/// `GET /`: a status page for people and probes. A client that requests a stream gets an error that there is none.
pub(crate) async fn root(State(health): State<HealthState>, headers: HeaderMap) -> Response {
    if responses::wants_stream(&headers) {
        return no_stream("GET, POST");
    }
    let identity = &health.app.inner().identity;
    let body = json!({
        "status": "ok",
        "name": identity.name,
        "title": identity.title,
        "version": identity.version,
        "mcp": ["/mcp", "/"],
    });
    json_response::json(StatusCode::OK, body.to_string())
}

/// Any method but `POST` at the MCP endpoint: the server has no stream to open and no session to end.
pub(crate) async fn no_session() -> Response {
    no_stream("POST")
}

fn no_stream(allow: &'static str) -> Response {
    let error = RpcError::new(
        -32000,
        "this server keeps no sessions: send each message as a POST",
    );
    let mut response = json_response::rpc_error_response(StatusCode::METHOD_NOT_ALLOWED, &error);
    response
        .headers_mut()
        .insert(http::header::ALLOW, http::HeaderValue::from_static(allow));
    response
}
