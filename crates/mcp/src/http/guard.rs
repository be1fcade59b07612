//! Turns a request's head into leave to go on, or into a refusal.
//!
//! `Host` is checked so that a page on another site cannot reach a server on the user's machine by
//! pointing its own name at it; `Origin` is checked so that a browser only lends its user's access
//! to sites we know. Each is checked alone: a good one never excuses a bad one.

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
use super::limits::HttpLimits;

/// Origins that a public server lists unless told otherwise: the pages of the two hosts.
pub const HOST_ORIGINS: [&str; 2] = ["https://chatgpt.com", "https://claude.ai"];

/// Who may be addressed, and from whose pages.
#[derive(Debug, Clone)]
pub struct RequestGuard {
    any_host: bool,
    hosts: Vec<HostRule>,
    any_origin: bool,
    origins: Vec<OriginRule>,
    header_bytes: usize,
    uri_bytes: usize,
}

/// An entry of the two lists that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardEntryError {
    /// Not a host with an optional port.
    #[error("not a host name: `{0}`")]
    Host(String),
    /// Not a scheme and a host with an optional port.
    #[error("not an origin: `{0}`")]
    Origin(String),
}

impl GuardEntryError {
    /// An example of a good entry.
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
    /// A host without a port is allowed with every port. An origin without a port means its
    /// scheme's default port, and one ending in `:*` means every port.
    ///
    /// # Errors
    ///
    /// Names the first entry that is not a host or an origin.
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

    /// Adds what is safe to allow because of the address we listen on.
    ///
    /// On a loopback address, its names and pages served from it. On every address, its own
    /// number, and on all addresses at once the loopback names: another site can make none of
    /// these its own name.
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

    /// Adds the host and the origin of the address under which the world knows us.
    ///
    /// # Errors
    ///
    /// Fails when the address names no host.
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

    /// Takes over the bounds on the size of a head.
    #[must_use]
    pub fn with_limits(mut self, limits: &HttpLimits) -> Self {
        self.header_bytes = limits.header_bytes;
        self.uri_bytes = limits.uri_bytes;
        self
    }

    /// Checks a request's head.
    ///
    /// # Errors
    ///
    /// Says what was wrong first: the message itself, then its host, then its origin.
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
        // hyper lets any list pass that ends in `chunked`, and undoes only that.
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
        // hyper refuses more on HTTP/1. On HTTP/2 one byte of a packed head can be a field, which takes a hundred here.
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
        let mut stated = parts.headers.get_all(HOST).iter();
        let header = stated.next();
        if stated.next().is_some() {
            return Err(GuardRejection::HostRepeated);
        }
        let header = match header {
            Some(value) => Some(read_host(value.as_bytes())?),
            None => None,
        };
        // The target names a host in HTTP/2, and in HTTP/1 when written as for a proxy.
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

    /// The answer to a request: of whoever comes next, where it may go on.
    pub(crate) async fn apply<F: Future<Output = Response>>(
        &self,
        request: Request,
        next: impl FnOnce(Request) -> F,
    ) -> Response {
        let (parts, body) = request.into_parts();
        if let Err(refusal) = self.check(&parts) {
            tracing::debug!(%refusal, "refused a request");
            let mut response = refusal.into_response();
            // Whoever wrote an improper message may mean something else by its next bytes too.
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
        let mut stated = headers.get_all(ORIGIN).iter();
        let Some(value) = stated.next() else {
            // Only browsers send it. Whoever does not is not a page in somebody's browser.
            return Ok(());
        };
        if stated.next().is_some() {
            return Err(GuardRejection::OriginRepeated);
        }
        // `null` ends here too: sandboxed and local pages, which anyone can make.
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

/// Header fields of a request.
pub(crate) const MAX_FIELDS: usize = 100;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

fn read_host(bytes: &[u8]) -> Result<HostAuthority<'_>, GuardRejection> {
    let text = std::str::from_utf8(bytes).map_err(|_| GuardRejection::HostUnreadable)?;
    HostAuthority::parse(text).ok_or(GuardRejection::HostUnreadable)
}

/// A refusal quotes what it refuses, but not a page of it.
fn quote_prefix(text: &str) -> String {
    text.chars().take(100).collect()
}

/// The layer around every route: refuses, answers preflights, and adds what browsers need.
///
/// For `axum::middleware::from_fn_with_state` with an `Arc<Guard>`.
pub async fn enforce(
    State(guard): State<Arc<RequestGuard>>,
    request: Request,
    next: Next,
) -> Response {
    guard.apply(request, |request| next.run(request)).await
}
