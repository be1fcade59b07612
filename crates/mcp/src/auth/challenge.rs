//! What a client is told about signing in: the `WWW-Authenticate` of a refusal, and the metadata of
//! RFC 9728 to which it points.

use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::{Auth, AuthError, AuthRejection, Caller, MissingScope};
use crate::http::responses;
use crate::rpc::RpcError;

/// Where the server answers MCP, each a resource of its own.
pub(crate) const PLACES: [&str; 3] = ["/mcp", "/", "/sse"];
/// Where a resource's metadata is found, before its path.
pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// No such code in the protocol: "who is calling" is asked before any of it.
const UNAUTHORIZED: i32 = -32001;
/// The longest address under which people reach a server.
const MAX_ADDRESS_BYTES: usize = 512;
/// Seconds after which keys may have come.
const RETRY: &str = "5";

/// An address without its last slash, if it is one that can stand before a path.
pub(super) fn base_url(address: &str) -> Result<String, AuthError> {
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

/// Everything by which a token may call a server at this address: the addresses of its endpoints, with
/// and without the slash that some clients add or drop.
pub(super) fn audience_urls(base: &str) -> Vec<String> {
    let base = canonical(base);
    let mut names = vec![base.clone()];
    for place in PLACES {
        names.push(format!("{base}{place}"));
        if place != "/" {
            names.push(format!("{base}{place}/"));
        }
    }
    names
}

/// An address of the web with its scheme and host in lower case, which mean the same in any; the path
/// does not, and neither does a name of another kind.
pub(super) fn canonical(address: &str) -> String {
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

/// The endpoint that a request went to, as its resource is called.
fn endpoint_path(path: &str) -> &'static str {
    match path {
        "/" => "/",
        "/sse" | "/messages" => "/sse",
        _ => "/mcp",
    }
}

impl Auth {
    /// The public address; on this machine alone, the one of ours that the client used. A proxy may put
    /// its own idea into `Host`, so that a public server does not go by it.
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

    /// The address of the metadata of the endpoint at `path`.
    pub(crate) fn metadata_url(&self, headers: &HeaderMap, path: &str) -> String {
        let suffix = Some(endpoint_path(path)).filter(|place| *place != "/");
        let base = self.public_base(headers);
        format!("{base}{WELL_KNOWN}{}", suffix.unwrap_or_default())
    }

    /// The metadata of RFC 9728 for the endpoint at `path`.
    pub(crate) fn metadata(&self, headers: &HeaderMap, path: &str) -> Response {
        let inner = &self.0;
        let issuers: Vec<&str> = inner.issuers.iter().map(super::Issuer::name).collect();
        let mut document = json!({
            "resource": format!("{}{}", self.public_base(headers), endpoint_path(path)),
            "authorization_servers": issuers,
            "scopes_supported": inner.scopes,
            "bearer_methods_supported": ["header"],
        });
        // An empty list would say that no sign-in is needed; keys are handed out in person.
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
        let mut response = responses::json(StatusCode::OK, document.to_string());
        // The document names the host that was asked for.
        let headers = response.headers_mut();
        headers.insert(header::VARY, HeaderValue::from_static("host, origin"));
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=300"),
        );
        response
    }

    /// The answer to somebody who was not let in.
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
                    responses::rpc_error_response(StatusCode::SERVICE_UNAVAILABLE, &error);
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
                let told = Some(("invalid_token", why));
                let challenge = self.challenge(headers, path, scopes, told);
                with_challenge(StatusCode::UNAUTHORIZED, &error, &challenge)
            }
        }
    }

    /// The answer to somebody who may not call a tool: a real 401 or 403, which is what makes most hosts
    /// ask the user.
    pub(crate) fn refuse_missing_scope(
        &self,
        lack: &MissingScope,
        headers: &HeaderMap,
        path: &str,
    ) -> Response {
        if lack.signed_in {
            let error = RpcError::new(UNAUTHORIZED, "this needs more than was granted");
            let told = Some(("insufficient_scope", "this needs more than was granted"));
            let challenge = self.challenge(headers, path, &lack.scopes, told);
            return with_challenge(StatusCode::FORBIDDEN, &error, &challenge);
        }
        let error = RpcError::new(UNAUTHORIZED, "sign in first");
        let challenge = self.challenge(headers, path, &lack.scopes, None);
        with_challenge(StatusCode::UNAUTHORIZED, &error, &challenge)
    }

    /// The server's own scopes, for somebody who signed in without them.
    pub(crate) fn missing_base_scope(&self, caller: &Caller) -> Option<MissingScope> {
        let all = self.0.scopes.iter().all(|scope| caller.has_scope(scope));
        (!all).then(|| MissingScope {
            scopes: self.0.scopes.clone(),
            signed_in: !caller.is_anonymous(),
        })
    }

    /// The challenge as ChatGPT reads it inside a tool's result, which wants both an error and its
    /// description.
    pub(crate) fn in_band_challenge(&self, lack: &MissingScope) -> String {
        let why = if lack.signed_in {
            "This needs more than was granted"
        } else {
            "Sign in to continue"
        };
        let told = Some(("insufficient_scope", why));
        self.challenge(&HeaderMap::new(), "/mcp", &lack.scopes, told)
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
    let mut response = responses::rpc_error_response(status, error);
    // Addresses and scopes were checked when the server was set up, so this always fits.
    if let Ok(value) = HeaderValue::from_str(challenge) {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, value);
    }
    response
}
