//! The request guard: checks `Host`, `Origin`, framing and size of a request head before anything else happens.
//!
//! The `Host` check stops DNS rebinding, where a page on another site reaches a server on the user's machine under
//! its own name. The `Origin` check makes a browser lend its user's access only to allowed sites. Each is checked on
//! its own: a valid one never excuses an invalid other.

mod authority;
pub mod cors;
mod rejection;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, ORIGIN, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version};

use self::authority::{HostAuthority, HostRule, OriginRule, RequestOrigin};
pub use self::rejection::GuardRejection;
use crate::limits::HttpLimits;

/// Default origins of a public server: the pages of ChatGPT and Claude.
pub const HOST_ORIGINS: [&str; 2] = ["https://chatgpt.com", "https://claude.ai"];

/// The allowlists of hosts and origins, and the size limits of a request head.
///
/// ```rust
/// use docent_mcp::http::guard::RequestGuard;
///
/// let guard = RequestGuard::new(&["docs.example.com"], &["https://app.example.com"])?;
/// let head = |host: &str| http::Request::get("/mcp").header("host", host).body(());
/// let (known, ()) = head("docs.example.com")?.into_parts();
/// assert!(guard.check(&known).is_ok());
/// let (rebound, ()) = head("evil.example")?.into_parts();
/// assert!(guard.check(&rebound).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RequestGuard {
    any_host: bool,
    hosts: Vec<HostRule>,
    any_origin: bool,
    origins: Vec<OriginRule>,
    header_bytes: usize,
    uri_bytes: usize,
}

/// An invalid entry of one of the allowlists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardEntryError {
    /// The entry is not a host with an optional port.
    #[error("not a host name: `{0}`")]
    Host(String),
    /// The entry is not a scheme and a host with an optional port.
    #[error("not an origin: `{0}`")]
    Origin(String),
}

impl GuardEntryError {
    /// Returns an example of a valid entry.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Host(_) => "example: `docs.example.com`, or `*` for any host",
            Self::Origin(_) => "example: `https://app.example.com`, or `*` for any origin",
        }
    }
}

impl RequestGuard {
    /// Allows the listed hosts and origins and nothing else. `*` in a list allows any.
    ///
    /// A host without a port is allowed with every port. An origin without a port means the default port of its
    /// scheme, and one that ends in `:*` means every port.
    ///
    /// # Errors
    ///
    /// Returns the first entry that is not a host or an origin.
    pub fn new<H: AsRef<str>, O: AsRef<str>>(
        hosts: &[H],
        origins: &[O],
    ) -> Result<Self, GuardEntryError> {
        let limits = HttpLimits::default();
        let mut guard = Self {
            any_host: false,
            hosts: Vec::new(),
            any_origin: false,
            origins: Vec::new(),
            header_bytes: limits.header_bytes,
            uri_bytes: limits.uri_bytes,
        };
        for entry in hosts.iter().map(AsRef::as_ref) {
            if entry == "*" {
                guard.any_host = true;
            } else {
                let rule =
                    HostRule::parse(entry).ok_or_else(|| GuardEntryError::Host(entry.into()))?;
                guard.hosts.push(rule);
            }
        }
        for entry in origins.iter().map(AsRef::as_ref) {
            if entry == "*" {
                guard.any_origin = true;
            } else {
                let rule = OriginRule::parse(entry)
                    .ok_or_else(|| GuardEntryError::Origin(entry.into()))?;
                guard.origins.push(rule);
            }
        }
        Ok(guard)
    }

    /// Allows what is safe because of the address the server listens on.
    ///
    /// A loopback address allows the loopback names, and pages served from them. Every address allows its own number,
    /// and the unspecified address also the loopback names: no other site can make one of these its own name.
    #[must_use]
    pub fn with_listener(mut self, bound: SocketAddr) -> Self {
        let ip = bound.ip();
        if ip.is_loopback() || ip.is_unspecified() {
            self.hosts
                .extend(LOOPBACK.iter().copied().filter_map(HostRule::parse));
        }
        if !ip.is_unspecified() {
            let own = match ip {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => format!("[{ip}]"),
            };
            self.hosts.extend(HostRule::parse(&own));
        }
        if ip.is_loopback() {
            for scheme in ["http", "https"] {
                let entries = LOOPBACK.iter().map(|host| format!("{scheme}://{host}:*"));
                self.origins
                    .extend(entries.filter_map(|entry| OriginRule::parse(&entry)));
            }
        }
        self
    }

    /// Allows the host and the origin of the server's public URL.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL contains no host.
    pub fn with_public_url(mut self, url: &Uri) -> Result<Self, GuardEntryError> {
        let bad = || GuardEntryError::Host(url.to_string());
        let host = url.host().ok_or_else(bad)?;
        let scheme = url.scheme_str().ok_or_else(bad)?;
        let authority = url.authority().ok_or_else(bad)?;
        self.hosts.push(HostRule::parse(host).ok_or_else(bad)?);
        let origin = format!("{scheme}://{authority}");
        self.origins
            .push(OriginRule::parse(&origin).ok_or_else(bad)?);
        Ok(self)
    }

    /// Sets the limits on the size of a request head.
    #[must_use]
    pub fn with_limits(mut self, limits: &HttpLimits) -> Self {
        self.header_bytes = limits.header_bytes;
        self.uri_bytes = limits.uri_bytes;
        self
    }

    /// Checks a request head.
    ///
    /// # Errors
    ///
    /// Returns the first violation: of the framing and size, then the host, then the origin.
    pub fn check(&self, parts: &Parts) -> Result<(), GuardRejection> {
        self.check_message(parts)?;
        self.check_host(parts)?;
        self.check_origin(&parts.headers)
    }

    fn check_message(&self, parts: &Parts) -> Result<(), GuardRejection> {
        let headers = &parts.headers;
        if headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH) {
            return Err(GuardRejection::TwoLengths);
        }
        // hyper accepts any list of codings that ends in `chunked`, and decodes only that one.
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
        let coding = codings.next().map(HeaderValue::as_bytes);
        let known = coding.is_none_or(|coding| coding.eq_ignore_ascii_case(b"chunked"));
        if !known || codings.next().is_some() {
            return Err(GuardRejection::CodingUnknown);
        }
        let target = parts
            .uri
            .path_and_query()
            .map_or(0, |target| target.as_str().len());
        if target > self.uri_bytes {
            return Err(GuardRejection::TargetTooLong);
        }
        // hyper enforces this limit on HTTP/1. On HTTP/2 one byte of a compressed head can be a field that takes a
        // hundred bytes here.
        if headers.len() > MAX_FIELDS {
            return Err(GuardRejection::TooManyFields);
        }
        let size = |(name, value): (&http::HeaderName, &HeaderValue)| {
            name.as_str().len().saturating_add(value.len())
        };
        if headers.iter().map(size).fold(0, usize::saturating_add) > self.header_bytes {
            return Err(GuardRejection::HeadersTooLarge);
        }
        Ok(())
    }

    fn check_host(&self, parts: &Parts) -> Result<(), GuardRejection> {
        let mut values = parts.headers.get_all(HOST).iter();
        let header = values.next();
        if values.next().is_some() {
            return Err(GuardRejection::HostRepeated);
        }
        let header = match header {
            Some(value) => Some(read_host(value.as_bytes())?),
            None => None,
        };
        // The request target contains a host in HTTP/2, and in HTTP/1 if it is written as for a proxy.
        let target = match parts.uri.authority() {
            Some(authority) => Some(read_host(authority.as_str().as_bytes())?),
            None => None,
        };
        let host = match (header, target) {
            (Some(header), Some(target)) if header != target => {
                return Err(GuardRejection::HostsDiffer);
            }
            (Some(header), _) => header,
            (None, Some(target)) if parts.version >= Version::HTTP_2 => target,
            (None, _) => return Err(GuardRejection::HostAbsent),
        };
        let listed = self.hosts.iter().any(|rule| rule.allows(&host));
        if listed || (self.any_host && !host.is_disguised()) {
            Ok(())
        } else {
            Err(GuardRejection::HostUnknown(host.to_string()))
        }
    }

    /// Answers a request: a rejection, a CORS preflight, or the response of `next`.
    pub(crate) async fn apply<F: Future<Output = Response>>(
        &self,
        request: Request,
        next: impl FnOnce(Request) -> F,
    ) -> Response {
        let (parts, body) = request.into_parts();
        if let Err(rejection) = self.check(&parts) {
            tracing::debug!(%rejection, "refused a request");
            let mut response = rejection.into_response();
            // The following bytes of an invalid message cannot be trusted either, so the connection closes.
            if response.status() != StatusCode::FORBIDDEN && parts.version < Version::HTTP_2 {
                response
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            return response;
        }
        let origin = parts.headers.get(ORIGIN).cloned();
        if parts.method == Method::OPTIONS {
            return cors::preflight(&parts.headers, origin);
        }
        let mut response = next(Request::from_parts(parts, body)).await;
        cors::allow(response.headers_mut(), origin);
        response
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), GuardRejection> {
        let mut values = headers.get_all(ORIGIN).iter();
        let Some(value) = values.next() else {
            // Only browsers send `Origin`. A client without it is not a page in a browser.
            return Ok(());
        };
        if values.next().is_some() {
            return Err(GuardRejection::OriginRepeated);
        }
        // This rejects `null` too: it is the origin of sandboxed and local pages, which anyone can create.
        let text = value
            .to_str()
            .map_err(|_| GuardRejection::OriginUnreadable)?;
        let origin = RequestOrigin::parse(text).ok_or(GuardRejection::OriginUnreadable)?;
        if self.any_origin || self.origins.iter().any(|rule| rule.allows(&origin)) {
            Ok(())
        } else {
            Err(GuardRejection::OriginUnknown(quote_prefix(text)))
        }
    }
}

/// Maximum number of header fields in a request. Browsers and hosts send twenty or thirty. Each field is an entry of a
/// map with its own overhead, so thousands of tiny fields would take many times the memory of their bytes.
pub(crate) const MAX_FIELDS: usize = 100;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

fn read_host(bytes: &[u8]) -> Result<HostAuthority<'_>, GuardRejection> {
    let text = std::str::from_utf8(bytes).map_err(|_| GuardRejection::HostUnreadable)?;
    HostAuthority::parse(text).ok_or(GuardRejection::HostUnreadable)
}

/// Truncates a value for quoting in a rejection.
fn quote_prefix(text: &str) -> String {
    docent_unicode::truncate_chars(text, 100).to_owned()
}

/// Middleware that applies a guard: it rejects requests, answers CORS preflights, and adds CORS headers to responses.
///
/// ```rust
/// use std::sync::Arc;
///
/// use axum::middleware::from_fn_with_state;
/// use docent_mcp::http::guard::{RequestGuard, enforce};
///
/// let guard = Arc::new(RequestGuard::new(&["docs.example.com"], &["https://app.example.com"])?);
/// let router: axum::Router = axum::Router::new().layer(from_fn_with_state(guard, enforce));
/// # Ok::<(), docent_mcp::http::guard::GuardEntryError>(())
/// ```
pub async fn enforce(
    State(guard): State<Arc<RequestGuard>>,
    request: Request,
    next: Next,
) -> Response {
    guard.apply(request, |request| next.run(request)).await
}
