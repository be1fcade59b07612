//! CORS: the headers that let a browser use responses for an allowed origin.
//!
//! Only browser tools need them, since hosts call from their own servers. Responses never allow credentials, so a
//! page can use them only with a token of its own.

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW,
    ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, StatusCode};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, MCP-Protocol-Version");
const REQUESTED: &str = "Content-Type, Accept, Authorization, X-API-Key, MCP-Protocol-Version, \
    Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID";
/// Preflight cache lifetime: two hours, the maximum of common browsers.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// Maximum number of `Mcp-Param-*` names that one preflight allows.
pub const PARAMS: usize = 32;
/// Maximum length of an `Mcp-Param-*` name in bytes.
pub const PARAM_BYTES: usize = 64;

/// Answers an `OPTIONS` request whose origin, if it has one, was allowed.
///
/// Without an origin the response is the same with `*`, for command-line tools.
///
/// ```rust
/// use docent_mcp::http::guard::cors;
///
/// let response = cors::preflight(&http::HeaderMap::new(), None);
/// assert_eq!(response.status(), 204);
/// assert_eq!(response.headers()["access-control-allow-origin"], "*");
/// ```
#[must_use]
pub fn preflight(request: &HeaderMap, origin: Option<HeaderValue>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    allow(headers, origin);
    headers.insert(ALLOW, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers(request));
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    headers.append(VARY, HeaderValue::from_name(ACCESS_CONTROL_REQUEST_HEADERS));
    response
}

/// Adds the headers that let a page of the allowed origin read a response.
pub fn allow(headers: &mut HeaderMap, origin: Option<HeaderValue>) {
    let origin = origin.unwrap_or(const { HeaderValue::from_static("*") });
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    // Keeps caches from serving the response for one origin to another.
    headers.append(VARY, HeaderValue::from_name(ORIGIN));
}

/// Returns the fixed list of headers, plus the tool parameter headers that the page requests.
///
/// Parameter names depend on the tools, so a fixed list cannot contain them, but their prefix can be checked.
fn allowed_headers(request: &HeaderMap) -> HeaderValue {
    let mut list = String::from(REQUESTED);
    let requested = request.get_all(ACCESS_CONTROL_REQUEST_HEADERS);
    let names = requested
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|v| v.split(','));
    for name in names
        .map(str::trim)
        .filter(|name| is_param(name))
        .take(PARAMS)
    {
        list.push_str(", ");
        list.push_str(name);
    }
    HeaderValue::try_from(list).unwrap_or(const { HeaderValue::from_static(REQUESTED) })
}

fn is_param(name: &str) -> bool {
    const PREFIX: &str = "mcp-param-";
    name.len() > PREFIX.len()
        && name.len() <= PARAM_BYTES
        && name
            .get(..PREFIX.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
