//! OAuth discovery as hosts do it: the 401 challenge, the protected resource metadata (RFC 9728) and the authorization
//! server metadata (RFC 8414, OpenID Connect Discovery). Then it sends forged tokens, which a server must refuse.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::SurveySession;
use crate::connection::OutgoingRequest;
use crate::exchange::RecordedExchange;
use crate::request_builder::{LEGACY_REVISIONS, McpRequestBuilder};

/// The timeout of each discovery request: hosts give each step ten seconds.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// The recorded exchanges of OAuth discovery.
#[derive(Default)]
pub(crate) struct SignInSurvey {
    /// An `initialize` request without a token.
    pub challenge: Option<Arc<RecordedExchange>>,
    /// The protected resource metadata, from each place where hosts look, in their order.
    pub resource: Vec<MetadataDocument>,
    /// The metadata of the first authorization server, from each place where hosts look.
    pub server: Vec<MetadataDocument>,
    /// Requests with forged tokens, each with what is wrong with its token.
    pub forged: Vec<(&'static str, Arc<RecordedExchange>)>,
}

/// One well-known address and what it returned. `place` is the description that findings use.
pub(crate) struct MetadataDocument {
    pub url: String,
    pub place: &'static str,
    pub exchange: Arc<RecordedExchange>,
}

impl MetadataDocument {
    /// The metadata document: the JSON object of a response with status 200.
    pub(crate) fn json(&self) -> Option<&Value> {
        let received = self.exchange.received()?;
        let first = received.messages.first().filter(|first| first.is_object());
        first.filter(|_| received.status == 200)
    }

    pub(crate) fn status(&self) -> Option<u16> {
        self.exchange.status()
    }
}

impl SignInSurvey {
    /// Whether the server requires a token for every request.
    pub(crate) fn is_asked(&self) -> bool {
        self.challenge
            .as_ref()
            .and_then(|exchange| exchange.status())
            == Some(401)
    }

    /// The protected resource metadata that a host would use: the first that exists.
    pub(crate) fn resource_json(&self) -> Option<&Value> {
        self.resource.iter().find_map(MetadataDocument::json)
    }

    /// The authorization server metadata that a host would use: the first that exists.
    pub(crate) fn server_json(&self) -> Option<&Value> {
        self.server.iter().find_map(MetadataDocument::json)
    }

    /// The first entry of `authorization_servers` in the resource metadata.
    pub(crate) fn issuer(&self) -> Option<&str> {
        let servers = self.resource_json()?.get("authorization_servers")?;
        servers.get(0)?.as_str()
    }

    /// The value of `WWW-Authenticate` in the challenge.
    pub(crate) fn header(&self) -> Option<&str> {
        self.challenge
            .as_ref()?
            .received()?
            .header("www-authenticate")
    }
}

/// Parses one parameter of a challenge, such as `resource_metadata`, quoted or not.
pub(crate) fn challenge_parameter(header: &str, name: &str) -> Option<String> {
    let at = header.match_indices(name).find(|(at, _)| {
        let before = header.get(..*at).and_then(|text| text.chars().last());
        before.is_none_or(|c| c == ' ' || c == ',')
    });
    let rest = header
        .get(at?.0 + name.len()..)?
        .trim_start()
        .strip_prefix('=')?
        .trim_start();
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().map(str::to_owned),
        None => rest.split([',', ' ']).next().map(str::to_owned),
    }
}

pub(super) fn discover(ctx: &mut SurveySession) {
    let Some(http) = ctx.wire.as_http() else {
        return;
    };
    let (origin, path) = (http.origin(), http.path());
    let builder = McpRequestBuilder::new(ctx.identity, LEGACY_REVISIONS[0]);
    let mut sign_in = SignInSurvey {
        challenge: Some(
            ctx.wire
                .send(builder.initialize(LEGACY_REVISIONS[0]).anonymous()),
        ),
        ..SignInSurvey::default()
    };
    let named = sign_in
        .header()
        .and_then(|header| challenge_parameter(header, "resource_metadata"));
    let well_known = format!("{origin}/.well-known/oauth-protected-resource");
    let suffixed = format!("{well_known}{}", path.trim_end_matches('/'));
    if let Some(named) = named.filter(|named| *named != suffixed && *named != well_known) {
        fetch_metadata(ctx, &mut sign_in.resource, "named by the challenge", named);
    }
    if suffixed != well_known {
        fetch_metadata(
            ctx,
            &mut sign_in.resource,
            "with the path of the endpoint",
            suffixed,
        );
    }
    fetch_metadata(ctx, &mut sign_in.resource, "at the root", well_known);
    match sign_in.issuer().map(str::to_owned) {
        Some(issuer) => {
            for (place, url) in server_metadata_urls(&issuer) {
                fetch_metadata(ctx, &mut sign_in.server, place, url);
            }
        }
        None => {
            let url = format!("{origin}/.well-known/oauth-authorization-server");
            fetch_metadata(ctx, &mut sign_in.server, "at the root", url);
        }
    }
    if sign_in.is_asked() {
        let url = ctx.survey.url.clone().unwrap_or_default();
        for (what, token) in forged_tokens(&url, sign_in.issuer().unwrap_or(&origin)) {
            let request = builder.initialize(LEGACY_REVISIONS[0]).anonymous();
            let request = request.with_header("Authorization", &format!("Bearer {token}"));
            sign_in.forged.push((what, ctx.wire.send(request)));
        }
    }
    ctx.survey.sign_in = Some(sign_in);
}

/// Requests one metadata document. The server chose the URL, so the SSRF guard decides whether it is requested.
fn fetch_metadata(
    ctx: &SurveySession,
    documents: &mut Vec<MetadataDocument>,
    place: &'static str,
    url: String,
) {
    if ctx
        .wire
        .as_http()
        .is_some_and(|http| http.may_request(&url))
    {
        let request = OutgoingRequest::get(&url)
            .anonymous()
            .with_timeout(STEP_TIMEOUT);
        let exchange = ctx
            .wire
            .send(request.with_header("Accept", "application/json"));
        documents.push(MetadataDocument {
            url,
            place,
            exchange,
        });
    }
}

/// The addresses where hosts look for the metadata of an authorization server, in their order.
fn server_metadata_urls(issuer: &str) -> Vec<(&'static str, String)> {
    let issuer = issuer.trim_end_matches('/');
    let after_scheme = issuer.find("://").map_or(0, |at| at + 3);
    let path_at = issuer.get(after_scheme..).and_then(|rest| rest.find('/'));
    let (origin, path) = match path_at {
        Some(at) => issuer.split_at(after_scheme + at),
        None => (issuer, ""),
    };
    let mut places = vec![
        (
            "oauth-authorization-server",
            format!("{origin}/.well-known/oauth-authorization-server{path}"),
        ),
        (
            "openid-configuration",
            format!("{origin}/.well-known/openid-configuration{path}"),
        ),
    ];
    if !path.is_empty() {
        let url = format!("{issuer}/.well-known/openid-configuration");
        places.push(("openid-configuration after the path", url));
    }
    places
}

/// Forged tokens. Each has one defect that it is named after, and none has a valid signature.
fn forged_tokens(url: &str, issuer: &str) -> Vec<(&'static str, String)> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let token = |algorithm: &str, audience: &str, expires: u64, signature: &str| {
        let header = json!({"alg": algorithm, "typ": "JWT", "kid": "1"});
        let claims = json!({
            "iss": issuer, "aud": audience, "sub": "docent-check", "iat": expires.saturating_sub(600),
            "exp": expires, "scope": "openid",
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.{signature}", part(&header), part(&claims))
    };
    let signature = URL_SAFE_NO_PAD.encode([7u8; 256]);
    vec![
        (
            "a text that is no token",
            "docent-check-no-token".to_owned(),
        ),
        (
            "a token without a signature",
            token("none", url, now + 600, ""),
        ),
        (
            "a token with a made-up signature",
            token("RS256", url, now + 600, &signature),
        ),
        (
            "an expired token",
            token("RS256", url, now.saturating_sub(3_600), &signature),
        ),
        (
            "a token for another server",
            token("RS256", "https://other.example/mcp", now + 600, &signature),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_challenge_are_found() {
        let header =
            "Bearer error=\"invalid_token\", resource_metadata=\"https://a/x\", scope=read";
        assert_eq!(
            challenge_parameter(header, "resource_metadata").as_deref(),
            Some("https://a/x")
        );
        assert_eq!(
            challenge_parameter(header, "scope").as_deref(),
            Some("read")
        );
        assert_eq!(challenge_parameter(header, "metadata"), None);
        assert_eq!(challenge_parameter("", "scope"), None);
    }

    #[test]
    fn metadata_is_looked_for_where_hosts_look() {
        let urls: Vec<_> = server_metadata_urls("https://a.example/t/1/")
            .into_iter()
            .map(|(_, url)| url)
            .collect();
        assert_eq!(
            urls,
            [
                "https://a.example/.well-known/oauth-authorization-server/t/1",
                "https://a.example/.well-known/openid-configuration/t/1",
                "https://a.example/t/1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(server_metadata_urls("https://a.example").len(), 2);
    }
}
