//! HTTP routes beside the MCP endpoint, which the host program adds, behind the same guard and limits.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tokio::sync::Semaphore;
use tracing::Instrument as _;

use super::accept::PeerAddress;
use super::body::{BodyCharge, ReceivedBody};
use super::byte_budget::ConnectionShares;
use super::limits::HttpLimits;
use super::{body, well_known};
use crate::auth::Caller;
use crate::auth::auth_middleware::AuthMiddleware;
use crate::call::run_guarded;
use crate::error::{Failure, FailureKind};
use crate::resource::{TemplateVars, match_pattern};
use crate::result::internal;
use crate::rpc::RpcError;
use crate::trace::TraceParent;

type RouteHandler =
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
    method: Method,
    pattern: String,
    open: bool,
    pool: RoutePool,
    handler: RouteHandler,
}

/// The pool of limits that a route uses.
#[derive(Debug, Clone)]
enum RoutePool {
    /// The limits that all ordinary routes share.
    Pages,
    /// The limits of sign-in, with a semaphore per route that is created when it is served.
    SignIn(Option<Arc<Semaphore>>),
}

impl RoutePool {
    /// Runs a request, and releases what it holds when the work is done.
    async fn run<T: Send + 'static>(
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
    caller: Caller,
    vars: TemplateVars,
    query: String,
    headers: HeaderMap,
    peer: Option<IpAddr>,
    body: Bytes,
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
    /// some of them wait for a processor, a disk or another server, which must not block the rest.
    pub(crate) fn sign_in(mut self) -> Self {
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
    pub(crate) fn last_header(&self, name: &str) -> Option<&str> {
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

    /// Returns the response body, for tests.
    #[cfg(test)]
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    fn into_response(self) -> Result<Response, Failure> {
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

/// All routes of a server, with the limits and the authentication that they share.
#[derive(Clone)]
pub(crate) struct RouteTable {
    routes: Arc<[Route]>,
    limits: Arc<HttpLimits>,
    authenticator: AuthMiddleware,
    in_flight: Arc<Semaphore>,
}

impl RouteTable {
    pub(crate) fn new(
        mut routes: Vec<Route>,
        limits: Arc<HttpLimits>,
        authenticator: AuthMiddleware,
    ) -> Self {
        for route in &mut routes {
            if let RoutePool::SignIn(places) = &mut route.pool {
                *places = Some(Arc::new(Semaphore::new(limits.sign_in_in_flight)));
            }
        }
        let in_flight = Arc::new(Semaphore::new(limits.in_flight));
        Self {
            routes: routes.into(),
            limits,
            authenticator,
            in_flight,
        }
    }

    /// Returns the in-flight limit of a route, and the maximum size of its bodies.
    fn bounds<'a>(&'a self, route: &'a Route) -> (&'a Arc<Semaphore>, usize) {
        match &route.pool {
            RoutePool::Pages => (&self.in_flight, self.limits.body_bytes),
            RoutePool::SignIn(places) => {
                let places = places.as_ref().unwrap_or(&self.in_flight);
                (places, self.limits.sign_in_bytes)
            }
        }
    }

    fn find(&self, path: &str) -> impl Iterator<Item = (&Route, TemplateVars)> {
        let path = path.to_owned();
        self.routes.iter().filter_map(move |route| {
            let mut vars = match_pattern(&route.pattern, &path)?;
            for value in vars.values_mut() {
                *value = decode(value)?;
            }
            Some((route, vars))
        })
    }

    /// Answers every request whose path is none of the kit's own.
    pub(crate) async fn answer(self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let method = if parts.method == Method::HEAD {
            &Method::GET
        } else {
            &parts.method
        };
        let mut at_path = self.find(parts.uri.path()).peekable();
        if at_path.peek().is_none() {
            return if parts.uri.path().starts_with("/.well-known/") {
                well_known::no_oauth().await
            } else {
                well_known::not_found().await
            };
        }
        let Some((route, vars)) = at_path.find(|(route, _)| route.method == *method) else {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        };
        let caller = if route.open {
            Caller::anonymous()
        } else {
            match self
                .authenticator
                .authenticate(&parts.headers, parts.uri.path())
                .await
            {
                Ok(caller) => caller,
                Err(refusal) => return refusal,
            }
        };
        let shares = parts.extensions.get::<ConnectionShares>();
        let (in_flight, most) = self.bounds(route);
        let charge = shares.map(|shares| BodyCharge {
            share: &shares.bodies,
            headers: &parts.headers,
        });
        let received = match body::receive(body, most, &self.limits, charge).await {
            Ok(received) => received,
            Err(error) => return error.into_response(),
        };
        // The permit is taken after the body is complete, so slow senders take nothing from others.
        let Ok(permit) = in_flight.clone().try_acquire_owned() else {
            let later = [(header::RETRY_AFTER, "1")];
            return (StatusCode::SERVICE_UNAVAILABLE, later, "the server is busy").into_response();
        };
        let ReceivedBody {
            bytes: body,
            counted,
        } = received;
        let shares = shares.cloned();
        let payer = caller.clone();
        let route_request = RouteRequest {
            caller,
            vars,
            query: parts.uri.query().unwrap_or_default().to_owned(),
            peer: parts
                .extensions
                .get::<PeerAddress>()
                .map(|peer| peer.0.ip()),
            headers: parts.headers,
            body,
        };
        let work = run_guarded(self.limits.handler, (route.handler)(route_request));
        let answered = match route.pool.run(work, (permit, counted)).await {
            Ok(answered) => answered,
            Err(error) => {
                return (StatusCode::INTERNAL_SERVER_ERROR, error.message).into_response();
            }
        };
        let answer = answered
            .and_then(RouteResponse::into_response)
            .unwrap_or_else(failed);
        ConnectionShares::charge_to_caller(shares.as_ref(), &payer, answer)
    }
}

/// Renders a failure: the caller's mistakes as text, internal errors as a reference to the log.
fn failed(failure: Failure) -> Response {
    match failure.0 {
        FailureKind::NotFound(_) => (StatusCode::NOT_FOUND, "nothing is here").into_response(),
        FailureKind::Internal(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            internal(error.as_ref()).message,
        )
            .into_response(),
        FailureKind::Refused(message) => (StatusCode::FORBIDDEN, message).into_response(),
        other => (StatusCode::BAD_REQUEST, Failure(other).to_string()).into_response(),
    }
}

/// Decodes percent-encoding; `None` if the result is not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
