//! An app over HTTP: every route and every layer, in one list.

pub mod accept;
pub(crate) mod answer_queue;
mod batch;
pub mod body;
pub(crate) mod byte_budget;
pub(crate) mod error_response;
pub mod guard;
pub(crate) mod health;
mod http_service;
pub mod limits;
pub(crate) mod mcp_endpoint;
pub(crate) mod protocol_headers;
pub(crate) mod responses;
mod route;
pub(crate) mod sse;
mod tls;
pub(crate) mod well_known;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get, post};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::auth::Auth;
use crate::auth::auth_middleware::{self, AuthMiddleware};
use crate::dispatcher::RequestDispatcher;
use guard::RequestGuard;
pub use health::{ReadinessProbe, ReadinessReport};
use http_service::HttpService;
use limits::HttpLimits;
use mcp_endpoint::McpEndpoint;
use route::RouteTable;
pub use route::{Route, RouteRequest, RouteResponse};
pub use tls::{CertificateError, ServerTls};

/// How an app is served over HTTP.
#[derive(Clone)]
pub struct HttpOptions {
    /// Every bound.
    pub limits: HttpLimits,
    /// Host names that clients may use, beside the loopback ones and the public address.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call, beside the loopback ones and the public address.
    pub allowed_origins: Vec<String>,
    /// The address under which people reach the server, if it is not the one it listens on.
    pub public_url: Option<String>,
    /// Answers 2026-07-28 requests whose headers or metadata are incomplete.
    pub lenient_modern_headers: bool,
    /// Asked at each `/readyz`.
    pub readiness: ReadinessProbe,
    /// Pages beside the MCP endpoint.
    pub routes: Vec<Route>,
    /// What is demanded of those who call; without it everybody is let in, unknown, and no tool may demand sign-in.
    pub auth: Option<Auth>,
    /// Speaks TLS itself. Without it, whatever stands in front does.
    pub tls: Option<ServerTls>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            limits: HttpLimits::default(),
            allowed_hosts: Vec::new(),
            allowed_origins: guard::HOST_ORIGINS.map(str::to_owned).to_vec(),
            public_url: None,
            lenient_modern_headers: false,
            readiness: Arc::new(|| ReadinessReport {
                ready: true,
                parts: serde_json::json!({}),
            }),
            routes: Vec::new(),
            auth: None,
            tls: None,
        }
    }
}

impl HttpOptions {
    /// The guard for a server that listens at `bound`.
    ///
    /// # Errors
    /// When a host, an origin or the public address cannot be understood; the error says which.
    pub fn guard(&self, bound: SocketAddr) -> io::Result<RequestGuard> {
        let bad = |error: guard::GuardEntryError| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{error} ({})", error.hint()),
            )
        };
        let mut guard =
            RequestGuard::new(&self.allowed_hosts, &self.allowed_origins).map_err(bad)?;
        if let Some(url) = &self.public_url {
            let url = url
                .parse()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            guard = guard.with_public_url(&url).map_err(bad)?;
        }
        Ok(guard.with_listener(bound).with_limits(&self.limits))
    }
}

/// Serves an app until `shutdown` fires and the requests in flight are answered.
///
/// # Errors
/// When the listener fails, or a tool demands sign-in and `options` has no `auth`.
pub async fn serve(
    app: App,
    options: HttpOptions,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> io::Result<()> {
    if let (None, Some(tool)) = (&options.auth, app.tool_requiring_sign_in()) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "tool `{tool}` demands sign-in, and nobody can sign in to this server (set `auth` in the options, or add \
                 `Security::NoAuth` to the tool)"
            ),
        ));
    }
    let limits = Arc::new(options.limits.clone());
    let closing = app.inner().closing.clone();
    let guard = options.guard(listener.local_addr()?)?;
    if let Some(auth) = &options.auth {
        auth.keep_keys_fresh(&shutdown);
    }
    let tls = options.tls.clone();
    let site = site(app, options, guard);
    let stop = shutdown.clone();
    // Listeners are told to go first: their streams would otherwise hold up the shutdown.
    tokio::spawn(async move {
        stop.cancelled().await;
        closing.cancel();
    });
    accept::serve(listener, site, limits, tls, shutdown).await
}

/// Serves the routes of `options` alone, without an app: for a program of pages that wants the same
/// guards and bounds.
///
/// # Errors
/// When the listener fails.
pub async fn serve_routes(
    options: HttpOptions,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let guard = options.guard(listener.local_addr()?)?;
    let limits = Arc::new(options.limits);
    let routes = RouteTable::new(options.routes, limits.clone(), AuthMiddleware(options.auth));
    let router = Router::new().fallback(move |request| routes.clone().answer(request));
    let guard = Arc::new(guard);
    let router = router.layer(from_fn_with_state(guard, guard::enforce));
    accept::serve(listener, router, limits, options.tls, shutdown).await
}

/// All of it as a router, for embedding in a larger server and for tests. Where a tool demands sign-in and `options` has no
/// `auth`, calls of it are refused.
pub fn router(app: App, options: HttpOptions, guard: RequestGuard) -> Router {
    Router::new().fallback_service(site(app, options, guard))
}

fn site(app: App, options: HttpOptions, guard: RequestGuard) -> HttpService {
    let limits = Arc::new(options.limits);
    let front = McpEndpoint::new(
        RequestDispatcher::new(app.clone(), limits.clone(), options.auth.clone()),
        options.lenient_modern_headers,
    );
    let health = health::HealthState {
        app,
        readiness: options.readiness,
        auth: options.auth.clone(),
    };
    let gate = AuthMiddleware(options.auth.clone());

    let routes = RouteTable::new(options.routes, limits, gate.clone());
    let endpoint = get(health::root).with_state(health.clone());
    // Everything that leads to the app stands behind the gate; nothing of a body is read before it.
    let gated = Router::new()
        .route("/", endpoint.fallback(health::no_session))
        .route("/mcp", any(health::no_session))
        .route("/mcp/", any(health::no_session))
        .route("/sse", get(sse::open))
        .route("/messages", post(sse::message))
        .with_state(sse::SseStreams::new(front.clone()))
        .route_layer(from_fn_with_state(gate.clone(), auth_middleware::enforce));
    let rest = gated
        .route("/readyz", get(health::readyz).with_state(health))
        .route("/healthz", get(health::healthz))
        .merge(well_known::resource_metadata(options.auth.as_ref()))
        .fallback(move |request| routes.clone().answer(request));
    HttpService::new(guard, gate, front, rest)
}
