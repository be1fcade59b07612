//! HTTP routes beside the MCP endpoint, which the host program and sign-in add: their pattern, request and response.
//! The table in `http/route_table.rs` serves them, behind the same guard and limits as MCP.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tokio::sync::Semaphore;
use tracing::Instrument as _;

use crate::auth::Caller;
use crate::error::Failure;
use crate::result::internal;
use crate::rpc::RpcError;
use crate::trace::TraceParent;
use crate::uri_template::TemplateVars;

pub(crate) type RouteHandler =
    Arc<dyn Fn(RouteRequest) -> BoxFuture<'static, Result<RouteResponse, Failure>> + Send + Sync>;

/// An HTTP route that the server answers, such as `/d/{id}`. The MCP endpoint and its companions take precedence: a
/// route cannot replace them.
///
/// ```rust
/// use docent_mcp::http::{HttpOptions, Route, RouteResponse};
///
/// let route = Route::get("/tides/{harbour}", |request| async move {
///     let harbour = request.var("harbour").unwrap_or_default();
///     let body = serde_json::json!({"harbour": harbour, "high": ["04:12", "16:40"]});
///     Ok(RouteResponse::json(&body).header("cache-control", "max-age=60"))
/// });
/// let options = HttpOptions { routes: vec![route], ..HttpOptions::default() };
/// # let _ = options;
/// ```
#[derive(Clone)]
pub struct Route {
    pub(crate) method: Method,
    pub(crate) pattern: String,
    pub(crate) open: bool,
    pub(crate) pool: RoutePool,
    pub(crate) handler: RouteHandler,
}

/// The pool of limits that a route uses.
#[derive(Debug, Clone)]
pub(crate) enum RoutePool {
    /// The limits that all ordinary routes share.
    Pages,
    /// The limits of sign-in, with a semaphore per route that is created when it is served.
    SignIn(Option<Arc<Semaphore>>),
}

impl RoutePool {
    /// Runs a request, and releases what it holds when the work is done.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, RpcError>> + Send + 'static,
        held: impl Send + 'static,
    ) -> Result<T, RpcError> {
        let work = async move {
            let _held = held;
            work.await
        };
        match self {
            Self::Pages => work.await,
            // Sign-in waits for a processor, a disk or another server, none of which stops when the client
            // disconnects. So the work continues in its own task, and its permit is not released before what it
            // started has ended.
            Self::SignIn(_) => {
                let done = tokio::spawn(work.in_current_span()).await;
                done.unwrap_or_else(|error| Err(internal(&error)))
            }
        }
    }
}

/// A request to a [`Route`], with its complete body.
///
/// ```rust
/// use docent_mcp::Failure;
/// use docent_mcp::http::{Route, RouteRequest, RouteResponse};
///
/// async fn note(request: RouteRequest) -> Result<RouteResponse, Failure> {
///     if request.caller().is_anonymous() {
///         return Err(Failure::refused("sign in to leave a note"));
///     }
///     let text = std::str::from_utf8(request.body())?;
///     Ok(RouteResponse::new(201, "text/plain", format!("noted: {text}")))
/// }
/// let route = Route::post("/notes", note);
/// # let _ = route;
/// ```
#[derive(Debug)]
pub struct RouteRequest {
    pub(crate) caller: Caller,
    pub(crate) vars: TemplateVars,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) body: Bytes,
}

/// The response to a [`RouteRequest`].
///
/// ```rust
/// use docent_mcp::http::RouteResponse;
///
/// let page = RouteResponse::html("<h1>Tides</h1>").status(200).header("cache-control", "no-store");
/// # let _ = page;
/// ```
#[derive(Debug, Clone)]
pub struct RouteResponse {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl Route {
    /// Creates a route for `GET` and `HEAD`. In the pattern `{name}` matches one segment, and `{+name}` any rest.
    #[must_use]
    pub fn get<F, R>(pattern: impl Into<String>, handler: F) -> Self
    where
        F: Fn(RouteRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Result<RouteResponse, Failure>> + Send + 'static,
    {
        Self::new(Method::GET, pattern.into(), handler)
    }

    /// Creates a route for `POST`. The handler is called with the complete body.
    #[must_use]
    pub fn post<F, R>(pattern: impl Into<String>, handler: F) -> Self
    where
        F: Fn(RouteRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Result<RouteResponse, Failure>> + Send + 'static,
    {
        Self::new(Method::POST, pattern.into(), handler)
    }

    fn new<F, R>(method: Method, pattern: String, handler: F) -> Self
    where
        F: Fn(RouteRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Result<RouteResponse, Failure>> + Send + 'static,
    {
        Self {
            method,
            pattern,
            open: false,
            pool: RoutePool::Pages,
            handler: Arc::new(move |request| handler(request).boxed()),
        }
    }
}

impl Route {
    /// Exempts the route from authentication: the page decides for itself, for example by a signature in its URL, and
    /// its caller is always anonymous.
    #[must_use]
    pub const fn open(mut self) -> Self {
        self.open = true;
        self
    }

    /// Uses the limits of sign-in: small bodies, and an in-flight limit of its own. Each route has its own, because
    /// some of them wait for a processor, a disk or another server, which must not block the rest. A request that has
    /// begun runs to its end, also when its client disconnects. The limits are `sign_in_in_flight` and `sign_in_bytes`
    /// of [`HttpLimits`](crate::http::limits::HttpLimits).
    ///
    /// ```rust
    /// use docent_mcp::http::{Route, RouteResponse};
    ///
    /// // A login form of the program's own: anybody may send it, and many at once do not delay other pages.
    /// let login = Route::post("/login", |_| async { Ok(RouteResponse::html("<h1>Welcome</h1>")) })
    ///     .open()
    ///     .sign_in();
    /// # let _ = login;
    /// ```
    #[must_use]
    pub fn sign_in(mut self) -> Self {
        self.pool = RoutePool::SignIn(None);
        self
    }
}

impl RouteRequest {
    /// Returns the caller, as verified by the server.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns a variable of the pattern, percent-decoded.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str)
    }

    /// Returns the query string, as it was sent.
    #[must_use]
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Returns a header that was sent exactly once and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        value.to_str().ok()
    }

    /// Returns the last value of a header that may occur several times, which is the one that the nearest proxy
    /// wrote.
    #[must_use]
    pub fn last_header(&self, name: &str) -> Option<&str> {
        let value = self.headers.get_all(name).iter().next_back()?;
        value.to_str().ok()
    }

    /// Returns the remote IP address of the connection. Behind a proxy this is the address of the proxy.
    #[must_use]
    pub const fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// Returns the `traceparent` of the request, if it is valid.
    #[must_use]
    pub fn trace(&self) -> Option<TraceParent> {
        TraceParent::of(&self.headers)
    }

    /// Returns the request body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

impl RouteResponse {
    /// Creates a response with any status, content type and body.
    #[must_use]
    pub fn new(status: u16, content_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type", content_type.into())],
            body: Bytes::from(body.into()),
        }
    }

    /// Creates an HTML response. Unless you add a `content-security-policy`, the page may load and run nothing.
    #[must_use]
    pub fn html(body: impl Into<String>) -> Self {
        Self::new(200, "text/html; charset=utf-8", body.into())
    }

    /// Creates a JSON response.
    #[must_use]
    pub fn json(body: &serde_json::Value) -> Self {
        Self::new(200, "application/json", body.to_string())
    }

    /// Sets the HTTP status.
    #[must_use]
    pub const fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Returns the response body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    pub(crate) fn into_response(self) -> Result<Response, Failure> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = StatusCode::from_u16(self.status)?;
        let headers = response.headers_mut();
        for (name, value) in self.headers {
            headers.insert(
                HeaderName::from_bytes(name.as_bytes())?,
                HeaderValue::from_str(&value)?,
            );
        }
        let defaults = [
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (
                header::CONTENT_SECURITY_POLICY,
                "default-src 'none'; frame-ancestors 'none'",
            ),
        ];
        for (name, value) in defaults {
            headers
                .entry(name)
                .or_insert(HeaderValue::from_static(value));
        }
        Ok(response)
    }
}
