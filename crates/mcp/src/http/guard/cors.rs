//! Turns an allowed origin into the headers that let a browser use our answers.
//!
//! Only browser tools need these; the hosts call from their own servers. Answers never allow
//! credentials, so a page can use them only with a token it holds itself.

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
/// Two hours, the longest that common browsers keep.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// How many `Mcp-Param-*` names of one preflight are allowed.
pub const PARAMS: usize = 32;
/// How long one `Mcp-Param-*` name may be, in bytes.
pub const PARAM_BYTES: usize = 64;

/// Answers an `OPTIONS` request whose origin, if it has one, was found allowed.
///
/// Without an origin the answer is the same with `*`, for people who look with a command line.
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

/// Adds to any answer what lets a page of the allowed origin read it.
pub fn allow(headers: &mut HeaderMap, origin: Option<HeaderValue>) {
    let origin = origin.unwrap_or(const { HeaderValue::from_static("*") });
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    // A cache must not hand the answer for one origin to another.
    headers.append(VARY, HeaderValue::from_name(ORIGIN));
}

/// The fixed list and the names of tool parameters that the page asks for.
///
/// Those names depend on the tools, so a list cannot hold them; their prefix can be checked.
fn allowed_headers(request: &HeaderMap) -> HeaderValue {
    let mut list = String::from(REQUESTED);
    let asked = request.get_all(ACCESS_CONTROL_REQUEST_HEADERS);
    let names = asked
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
