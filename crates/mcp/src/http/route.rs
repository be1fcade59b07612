//! Pages beside the MCP endpoint: what the host program adds, behind the same guards and bounds.

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
use super::body::{BodyAccount, ReceivedBody};
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

/// One more address that the server answers, such as `/d/{id}`. The MCP endpoint and its companions
/// come first: a route cannot take their place.
#[derive(Clone)]
pub struct Route {
    method: Method,
    pattern: String,
    open: bool,
    pool: RoutePool,
    handler: RouteHandler,
}

/// Which bounds a route works under.
#[derive(Debug, Clone)]
enum RoutePool {
    /// Those of all pages together.
    Pages,
    /// Those of sign-in; its places are made when it is served.
    SignIn(Option<Arc<Semaphore>>),
}

impl RoutePool {
    /// Does the work of a request, and lets go of what it holds when that is done.
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
            // Sign-in waits for a processor, a disk or another server, none of which stops when the visitor hangs up.
            // So the work goes on too: its place must not be free while what it began is under way.
            Self::SignIn(_) => {
                let done = tokio::spawn(work.in_current_span()).await;
                done.unwrap_or_else(|error| Err(internal(&error)))
            }
        }
    }
}

/// A request to a [`Route`].
#[derive(Debug)]
pub struct RouteRequest {
    caller: Caller,
    vars: TemplateVars,
    query: String,
    headers: HeaderMap,
    peer: Option<IpAddr>,
    body: Bytes,
}

/// The answer to a [`Visit`].
#[derive(Debug, Clone)]
pub struct RouteResponse {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl Route {
    /// Answers `GET` and `HEAD` at a pattern with `{name}` for one segment and `{+name}` for any rest.
    #[must_use]
    pub fn get<F, R>(pattern: impl Into<String>, handler: F) -> Self
    where
        F: Fn(RouteRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Result<RouteResponse, Failure>> + Send + 'static,
    {
        Self::new(Method::GET, pattern.into(), handler)
    }

    /// Answers `POST` at a pattern. The body has come whole when the handler is called.
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
            handler: Arc::new(move |visit| handler(visit).boxed()),
        }
    }
}

impl Route {
    /// Lets everybody in where the server demands sign-in: the page decides by itself, such as by a
    /// signature in its address, and its visitor is always anonymous.
    #[must_use]
    pub const fn open(mut self) -> Self {
        self.open = true;
        self
    }

    /// Works under the bounds of sign-in: small bodies, and places for requests in flight of its own. Each route has
    /// its own, because some of them wait for a processor, a disk or another server, and the rest must not.
    pub(crate) fn sign_in(mut self) -> Self {
        self.pool = RoutePool::SignIn(None);
        self
    }
}

impl RouteRequest {
    /// Who is visiting, as verified by the server.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// A variable of the pattern, decoded.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str)
    }

    /// What follows the `?`, as it was sent.
    #[must_use]
    pub fn query(&self) -> &str {
        &self.query
    }

    /// A header, if it was sent once and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        value.to_str().ok()
    }

    /// The last line of a header that may come in several, which is the one that the nearest proxy wrote.
    pub(crate) fn last_header(&self, name: &str) -> Option<&str> {
        let value = self.headers.get_all(name).iter().next_back()?;
        value.to_str().ok()
    }

    /// The address that the connection comes from, if it came over one. Behind a proxy this is the proxy.
    #[must_use]
    pub const fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// The `traceparent` of the request, if it is one.
    #[must_use]
    pub fn trace(&self) -> Option<TraceParent> {
        TraceParent::of(&self.headers)
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

impl RouteResponse {
    /// An answer of any type.
    #[must_use]
    pub fn new(status: u16, content_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type", content_type.into())],
            body: Bytes::from(body.into()),
        }
    }

    /// A web page. Unless a `content-security-policy` is added, it may load and run nothing.
    #[must_use]
    pub fn html(body: impl Into<String>) -> Self {
        Self::new(200, "text/html; charset=utf-8", body.into())
    }

    /// A JSON document.
    #[must_use]
    pub fn json(body: &serde_json::Value) -> Self {
        Self::new(200, "application/json", body.to_string())
    }

    /// Replaces the status.
    #[must_use]
    pub const fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// What it holds.
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
        let otherwise = [
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (
                header::CONTENT_SECURITY_POLICY,
                "default-src 'none'; frame-ancestors 'none'",
            ),
        ];
        for (name, value) in otherwise {
            headers
                .entry(name)
                .or_insert(HeaderValue::from_static(value));
        }
        Ok(response)
    }
}

/// Every route, with the bounds they share.
#[derive(Clone)]
pub(crate) struct RouteTable {
    routes: Arc<[Route]>,
    limits: Arc<HttpLimits>,
    gate: AuthMiddleware,
    in_flight: Arc<Semaphore>,
}

impl RouteTable {
    pub(crate) fn new(
        mut routes: Vec<Route>,
        limits: Arc<HttpLimits>,
        gate: AuthMiddleware,
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
            gate,
            in_flight,
        }
    }

    /// The places for requests in flight of a route, and the most bytes of their bodies.
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

    /// Answers whatever is at none of the kit's own addresses.
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
                .gate
                .authenticate(&parts.headers, parts.uri.path())
                .await
            {
                Ok(caller) => caller,
                Err(refusal) => return refusal,
            }
        };
        let shares = parts.extensions.get::<ConnectionShares>();
        let (in_flight, most) = self.bounds(route);
        let account = shares.map(|shares| BodyAccount {
            share: &shares.bodies,
            headers: &parts.headers,
        });
        let received = match body::receive(body, most, &self.limits, account).await {
            Ok(received) => received,
            Err(error) => return error.into_response(),
        };
        // Not before the body is there: who sends it slowly takes nothing from others.
        let Ok(permit) = in_flight.clone().try_acquire_owned() else {
            let later = [(header::RETRY_AFTER, "1")];
            return (StatusCode::SERVICE_UNAVAILABLE, later, "the server is busy").into_response();
        };
        let ReceivedBody {
            bytes: body,
            counted,
        } = received;
        let shares = shares.cloned();
        let visitor = caller.clone();
        let visit = RouteRequest {
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
        let work = run_guarded(self.limits.handler, (route.handler)(visit));
        let answered = match route.pool.run(work, (permit, counted)).await {
            Ok(answered) => answered,
            Err(error) => {
                return (StatusCode::INTERNAL_SERVER_ERROR, error.message).into_response();
            }
        };
        let answer = answered
            .and_then(RouteResponse::into_response)
            .unwrap_or_else(failed);
        ConnectionShares::charge_to_caller(shares.as_ref(), &visitor, answer)
    }
}

/// The caller's mistakes are said in words, ours stay opaque.
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

/// Undoes percent-encoding; nothing for what is not text.
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
