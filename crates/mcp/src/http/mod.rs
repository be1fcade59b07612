//! The HTTP transport: options, routes and middleware of a server, assembled in one place.

pub mod accept;
mod batch;
pub mod body;
pub mod guard;
pub(crate) mod health;
mod http_service;
pub(crate) mod mcp_endpoint;
pub(crate) mod protocol_headers;
pub(crate) mod responses;
mod route_table;
pub(crate) mod sse;
#[cfg(feature = "tls")]
mod tls;
pub(crate) mod well_known;
#[cfg(not(feature = "tls"))]
mod without_tls;

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
use crate::limits::HttpLimits;
pub use crate::route::{Route, RouteRequest, RouteResponse};
use guard::RequestGuard;
pub use health::{ReadinessProbe, ReadinessReport};
use http_service::HttpService;
use mcp_endpoint::McpEndpoint;
use route_table::RouteTable;
#[cfg(feature = "tls")]
pub use tls::{CertificateError, ServerTls};
#[cfg(not(feature = "tls"))]
pub use without_tls::DisabledTls as ServerTls;

/// The limits of serving.
pub mod limits {
    pub use crate::limits::HttpLimits;
}

/// Options of an HTTP server. The default is safe for a public server without sign-in.
///
/// ```rust
/// use docent_mcp::http::{HttpOptions, Route, RouteResponse};
///
/// let options = HttpOptions {
///     public_url: Some("https://tides.example.com".to_owned()),
///     allowed_origins: vec!["https://chatgpt.com".to_owned()],
///     routes: vec![Route::get("/about", |_| async { Ok(RouteResponse::html("<h1>Tides</h1>")) })],
///     ..HttpOptions::default()
/// };
/// let guard = options.guard("127.0.0.1:8787".parse()?)?;
/// # let _ = guard;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct HttpOptions {
    /// The limits on time, size and number.
    pub limits: HttpLimits,
    /// Allowlist of host names, in addition to the loopback names and the public URL.
    pub allowed_hosts: Vec<String>,
    /// Allowlist of web origins, in addition to the loopback origins and the public URL.
    pub allowed_origins: Vec<String>,
    /// The URL under which clients reach the server, if it is not the address it listens on.
    pub public_url: Option<String>,
    /// Accepts requests of 2026-07-28 with incomplete headers or metadata.
    pub lenient_modern_headers: bool,
    /// The readiness probe, called at every `/readyz`.
    pub readiness: ReadinessProbe,
    /// HTTP routes beside the MCP endpoint.
    pub routes: Vec<Route>,
    /// Authentication. Without it every caller is anonymous, and no tool may require sign-in.
    pub auth: Option<Auth>,
    /// The TLS certificate of the server. Without it, TLS is left to a proxy in front.
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
    /// Builds the request guard for a server that listens at `bound`.
    ///
    /// # Errors
    /// Returns an error that names the host, origin or public URL that is not valid.
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

/// Serves an app on a listener until `shutdown` is cancelled and the requests in flight are answered.
///
/// # Errors
/// Returns an error if the listener fails, or if a tool requires sign-in and `options` has no `auth`.
///
/// ```rust,no_run
/// use docent_mcp::{App, http};
/// use tokio_util::sync::CancellationToken;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let app = App::builder("tides", "1.0.0").build()?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8787").await?;
/// let shutdown = CancellationToken::new();
/// let stop = shutdown.clone();
/// tokio::spawn(async move {
///     let _ = tokio::signal::ctrl_c().await;
///     stop.cancel();
/// });
/// http::serve(app, http::HttpOptions::default(), listener, shutdown).await?;
/// # Ok(())
/// # }
/// ```
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
                "tool `{tool}` requires sign-in, but the server has no authentication (set `auth` in the options, or add \
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
    let site = http_service(app, options, guard);
    let stop = shutdown.clone();
    // Listeners are closed first, because their streams would hold up the shutdown.
    tokio::spawn(async move {
        stop.cancelled().await;
        closing.cancel();
    });
    accept::serve(listener, site, limits, tls, shutdown).await
}

/// Serves only the routes of `options`, without an app, for a web program that wants the same guard and limits.
///
/// # Errors
/// Returns an error if the listener fails.
///
/// ```rust,no_run
/// use docent_mcp::http::{HttpOptions, Route, RouteResponse, serve_routes};
///
/// # async fn run() -> std::io::Result<()> {
/// let options = HttpOptions {
///     routes: vec![Route::get("/", |_| async { Ok(RouteResponse::html("<h1>Tides</h1>")) })],
///     ..HttpOptions::default()
/// };
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8788").await?;
/// serve_routes(options, listener, Default::default()).await
/// # }
/// ```
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

/// Returns the server as an axum router, for embedding in a larger server and for tests. If a tool requires sign-in
/// and `options` has no `auth`, its calls are refused.
///
/// ```rust
/// use docent_mcp::{App, http};
///
/// let app = App::builder("tides", "1.0.0").build()?;
/// let options = http::HttpOptions::default();
/// let guard = options.guard("127.0.0.1:8787".parse()?)?;
/// let router = axum::Router::new().merge(http::router(app, options, guard));
/// # let _: axum::Router = router;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn router(app: App, options: HttpOptions, guard: RequestGuard) -> Router {
    Router::new().fallback_service(http_service(app, options, guard))
}

fn http_service(app: App, options: HttpOptions, guard: RequestGuard) -> HttpService {
    let limits = Arc::new(options.limits);
    let endpoint = McpEndpoint::new(
        RequestDispatcher::new(app.clone(), limits.clone(), options.auth.clone()),
        options.lenient_modern_headers,
    );
    let health = health::HealthState {
        app,
        readiness: options.readiness,
        auth: options.auth.clone(),
    };
    let authenticator = AuthMiddleware(options.auth.clone());

    let routes = RouteTable::new(options.routes, limits, authenticator.clone());
    let health_root = get(health::root).with_state(health.clone());
    // Everything that reaches the app is authenticated, before any part of a body is read.
    let gated = Router::new()
        .route("/", health_root.fallback(health::no_session))
        .route("/mcp", any(health::no_session))
        .route("/mcp/", any(health::no_session))
        .route("/sse", get(sse::open))
        .route("/messages", post(sse::message))
        .with_state(sse::SseStreams::new(endpoint.clone()))
        .route_layer(from_fn_with_state(
            authenticator.clone(),
            auth_middleware::enforce,
        ));
    let rest = gated
        .route("/readyz", get(health::readyz).with_state(health))
        .route("/healthz", get(health::healthz))
        .merge(
            options
                .auth
                .as_ref()
                .map_or_else(Router::new, Auth::metadata_routes),
        )
        .fallback(move |request| routes.clone().answer(request));
    HttpService::new(guard, authenticator, endpoint, rest)
}
