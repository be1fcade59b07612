//! Bearer challenges and protected resource metadata: the `WWW-Authenticate` header of a refusal (RFC
//! 6750), and the RFC 9728 document to which it points.

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::{Auth, AuthError, AuthRejection, Caller, MissingScope};
use crate::json_response;
use crate::rpc::RpcError;

/// The paths of the MCP endpoints. Each is a protected resource of its own.
const MCP_PATHS: [&str; 3] = ["/mcp", "/", "/sse"];
/// The well-known path prefix of protected resource metadata (RFC 9728); the resource's path follows it.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// A JSON-RPC error code of ours. The protocol has none, because authentication precedes it.
const UNAUTHORIZED: i32 = -32001;
/// The maximum length of a base URL. The URL stands in the challenge of every response without a sign-in, and in the
/// audience of every token, so a long one would not fit into the headers that proxies accept.
const MAX_ADDRESS_BYTES: usize = 512;
/// The `Retry-After` of a 503, in seconds. A 503 means that an issuer's keys are not here yet; a fetch of them takes at
/// most as long as its timeout, so this is when asking again can have another outcome.
const RETRY: &str = "5";

/// Validates a base URL and strips its trailing slashes, so that a path can be appended.
///
/// # Errors
/// When it is not an absolute http or https URL, has a query, or is longer than 512 bytes.
pub fn base_url(address: &str) -> Result<String, AuthError> {
    let bad = || AuthError::Address(address.to_owned());
    let uri: http::Uri = address.parse().map_err(|_| bad())?;
    let web = matches!(uri.scheme_str(), Some("https" | "http"));
    let plain = address
        .bytes()
        .all(|byte| matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b'\\' | b'#'));
    let fits = address.len() <= MAX_ADDRESS_BYTES;
    if !(web && plain && fits) || uri.host().is_none() || uri.query().is_some() {
        return Err(bad());
    }
    Ok(address.trim_end_matches('/').to_owned())
}

/// The accepted audiences of a server at this base URL: its endpoints, with and without the trailing slash
/// that some clients add or drop. `base` is a result of [`base_url`].
#[must_use]
pub fn audience_urls(base: &str) -> Vec<String> {
    let base = canonical(base);
    let mut names = vec![base.clone()];
    for path in MCP_PATHS {
        names.push(format!("{base}{path}"));
        if path != "/" {
            names.push(format!("{base}{path}/"));
        }
    }
    names
}

/// Lower-cases the scheme and host of an http(s) URL, which are case-insensitive. The path is not, and
/// other identifiers stay as they are.
#[must_use]
pub fn canonical(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    if !["http", "https"]
        .iter()
        .any(|web| scheme.eq_ignore_ascii_case(web))
    {
        return address.to_owned();
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    format!(
        "{}://{}{path}",
        scheme.to_ascii_lowercase(),
        authority.to_ascii_lowercase()
    )
}

/// The endpoint that identifies the resource of a request: `/messages` belongs to `/sse`, unknown paths to
/// `/mcp`.
fn endpoint_path(path: &str) -> &'static str {
    match path {
        "/" => "/",
        "/sse" | "/messages" => "/sse",
        _ => "/mcp",
    }
}

impl Auth {
    /// The base URL that clients see. A public (https) server always uses its first, because a proxy may
    /// rewrite `Host`. A local server uses the one that matches the request's `Host`.
    fn public_base(&self, headers: &HeaderMap) -> &str {
        let first = self.0.bases.first().map_or("", String::as_str);
        if first.starts_with("https://") {
            return first;
        }
        let host = headers
            .get(header::HOST)
            .and_then(|value| value.to_str().ok());
        let named = self.0.bases.iter().find(|base| {
            let authority = base.split_once("://").map_or("", |(_, rest)| rest);
            let authority = authority.split('/').next().unwrap_or_default();
            host.is_some_and(|host| host.eq_ignore_ascii_case(authority))
        });
        named.map_or(first, String::as_str)
    }

    /// The URL of the protected resource metadata of the endpoint at `path`.
    pub(crate) fn metadata_url(&self, headers: &HeaderMap, path: &str) -> String {
        let suffix = Some(endpoint_path(path)).filter(|path| *path != "/");
        let base = self.public_base(headers);
        format!("{base}{WELL_KNOWN}{}", suffix.unwrap_or_default())
    }

    /// The routes of the protected resource metadata of every endpoint.
    pub(crate) fn metadata_routes(&self) -> Router {
        let mut router = Router::new();
        for resource in MCP_PATHS {
            let path = format!("{WELL_KNOWN}{}", resource.trim_end_matches('/'));
            let auth = self.clone();
            let answer = move |headers: HeaderMap| async move { auth.metadata(&headers, resource) };
            router = router.route(&path, get(answer));
        }
        router
    }

    /// The protected resource metadata (RFC 9728) of the endpoint at `path`.
    pub(crate) fn metadata(&self, headers: &HeaderMap, path: &str) -> Response {
        let inner = &self.0;
        let issuers: Vec<&str> = inner.issuers.iter().map(super::Issuer::name).collect();
        let mut document = json!({
            "resource": format!("{}{}", self.public_base(headers), endpoint_path(path)),
            "authorization_servers": issuers,
            "scopes_supported": inner.scopes,
            "bearer_methods_supported": ["header"],
        });
        // An empty list would mean that no sign-in is needed. Without issuers only API keys count, and
        // those are handed out in person.
        if issuers.is_empty()
            && let Some(document) = document.as_object_mut()
        {
            document.shift_remove("authorization_servers");
        }
        let optional = [
            ("resource_name", &inner.name),
            ("resource_documentation", &inner.documentation),
        ];
        for (key, value) in optional {
            if let (Some(document), Some(value)) = (document.as_object_mut(), value) {
                document.insert(key.to_owned(), Value::from(value.as_str()));
            }
        }
        let mut response = json_response::json(StatusCode::OK, document.to_string());
        // The document depends on the request's `Host`, so caches must vary on it.
        let headers = response.headers_mut();
        headers.insert(header::VARY, HeaderValue::from_static("host, origin"));
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=300"),
        );
        response
    }

    /// The response to a request that failed authentication: a 401 with a challenge, or a 503 while the
    /// issuer's keys are missing.
    pub(crate) fn refuse(
        &self,
        denied: AuthRejection,
        headers: &HeaderMap,
        path: &str,
    ) -> Response {
        let scopes = &self.0.scopes;
        match denied {
            AuthRejection::Unready => {
                let error = RpcError::new(
                    UNAUTHORIZED,
                    "the keys of the issuer are not here yet; try again",
                );
                let mut response =
                    json_response::rpc_error_response(StatusCode::SERVICE_UNAVAILABLE, &error);
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY));
                response
            }
            AuthRejection::Absent => {
                let error = RpcError::new(UNAUTHORIZED, "sign in first");
                let challenge = self.challenge(headers, path, scopes, None);
                with_challenge(StatusCode::UNAUTHORIZED, &error, &challenge)
            }
            AuthRejection::Bad(why) => {
                let error = RpcError::new(UNAUTHORIZED, why);
                let reason = Some(("invalid_token", why));
                let challenge = self.challenge(headers, path, scopes, reason);
                with_challenge(StatusCode::UNAUTHORIZED, &error, &challenge)
            }
        }
    }

    /// The response to a call that needs more scopes: a real HTTP 401 or 403, because that is what makes
    /// most hosts start their sign-in.
    pub(crate) fn refuse_missing_scope(
        &self,
        missing: &MissingScope,
        headers: &HeaderMap,
        path: &str,
    ) -> Response {
        if missing.signed_in {
            let error = RpcError::new(UNAUTHORIZED, "this needs more than was granted");
            let reason = Some(("insufficient_scope", "this needs more than was granted"));
            let challenge = self.challenge(headers, path, &missing.scopes, reason);
            return with_challenge(StatusCode::FORBIDDEN, &error, &challenge);
        }
        let error = RpcError::new(UNAUTHORIZED, "sign in first");
        let challenge = self.challenge(headers, path, &missing.scopes, None);
        with_challenge(StatusCode::UNAUTHORIZED, &error, &challenge)
    }

    /// The server's required scopes, if the caller lacks one of them.
    pub(crate) fn missing_base_scope(&self, caller: &Caller) -> Option<MissingScope> {
        let all = self.0.scopes.iter().all(|scope| caller.has_scope(scope));
        (!all).then(|| MissingScope {
            scopes: self.0.scopes.clone(),
            signed_in: !caller.is_anonymous(),
        })
    }

    /// The challenge for ChatGPT, which reads it inside a tool's result and requires both `error` and
    /// `error_description`.
    pub(crate) fn in_band_challenge(&self, missing: &MissingScope) -> String {
        let why = if missing.signed_in {
            "This needs more than was granted"
        } else {
            "Sign in to continue"
        };
        let reason = Some(("insufficient_scope", why));
        self.challenge(&HeaderMap::new(), "/mcp", &missing.scopes, reason)
    }

    fn challenge(
        &self,
        headers: &HeaderMap,
        path: &str,
        scopes: &[String],
        error: Option<(&str, &str)>,
    ) -> String {
        let mut text = String::from("Bearer ");
        if let Some((error, why)) = error {
            text.push_str(&format!(r#"error="{error}", error_description="{why}", "#));
        }
        text.push_str(&format!(
            r#"resource_metadata="{}""#,
            self.metadata_url(headers, path)
        ));
        if !scopes.is_empty() {
            text.push_str(&format!(r#", scope="{}""#, scopes.join(" ")));
        }
        text
    }
}

fn with_challenge(status: StatusCode, error: &RpcError, challenge: &str) -> Response {
    let mut response = json_response::rpc_error_response(status, error);
    // Base URLs and scopes were validated when the server was built, so the value is always a valid header.
    if let Ok(value) = HeaderValue::from_str(challenge) {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, value);
    }
    response
}
