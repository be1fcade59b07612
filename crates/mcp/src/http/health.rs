//! Is the process alive, and can it answer: JSON for people, probes and load balancers.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::responses;
use crate::app::App;
use crate::auth::Auth;
use crate::rpc::RpcError;

/// Whether the app can answer, and the state of each of its parts as a JSON object.
#[derive(Debug, Clone)]
pub struct ReadinessReport {
    /// False while answers would be wrong or missing.
    pub ready: bool,
    /// Members that stand beside `ready`.
    pub parts: Value,
}

/// Asked at each `/readyz`.
pub type ReadinessProbe = Arc<dyn Fn() -> ReadinessReport + Send + Sync>;

#[derive(Clone)]
pub(crate) struct HealthState {
    pub(crate) app: App,
    pub(crate) readiness: ReadinessProbe,
    pub(crate) auth: Option<Auth>,
}

/// `GET /healthz`: the process answers.
pub(crate) async fn healthz() -> Response {
    responses::json(StatusCode::OK, r#"{"status":"ok"}"#.to_owned())
}

/// `GET /readyz`: the app can answer, part by part. Not ready from the moment shutdown begins.
pub(crate) async fn readyz(State(health): State<HealthState>) -> Response {
    let ReadinessReport { ready, parts } = (health.readiness)();
    let closing = health.app.inner().closing.is_cancelled();
    let keys = health.auth.as_ref().map(Auth::is_ready);
    let ready = ready && keys != Some(false) && !closing;
    let mut body = json!({"ready": ready});
    if let (Some(body), Value::Object(parts)) = (body.as_object_mut(), parts) {
        body.extend(parts.into_iter().filter(|(key, _)| key != "ready"));
        if let Some(keys) = keys {
            let told = if keys { "ready" } else { "waiting for keys" };
            body.insert("sign_in".to_owned(), told.into());
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
    responses::json(status, body.to_string())
}

/// `GET /`: health for people and probes; a client that wants a stream learns that there is none.
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
    responses::json(StatusCode::OK, body.to_string())
}

/// Anything but a `POST` to the MCP endpoint: nothing to listen to and no session to end.
pub(crate) async fn no_session() -> Response {
    no_stream("POST")
}

fn no_stream(allow: &'static str) -> Response {
    let error = RpcError::new(
        -32000,
        "this server keeps no sessions: send each message as a POST",
    );
    let mut response = responses::rpc_error_response(StatusCode::METHOD_NOT_ALLOWED, &error);
    response
        .headers_mut()
        .insert(http::header::ALLOW, http::HeaderValue::from_static(allow));
    response
}
