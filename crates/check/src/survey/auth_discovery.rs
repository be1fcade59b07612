//! Follows the steps of sign-in up to the login page: the challenge, the metadata of the resource, the
//! metadata of the authorization server; and tries tokens that nobody may accept.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::SurveySession;
use crate::connection::OutgoingRequest;
use crate::exchange::RecordedExchange;
use crate::request_builder::{LEGACY_REVISIONS, McpRequestBuilder};

/// Hosts give each step of discovery ten seconds.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// What was seen of sign-in.
#[derive(Default)]
pub(crate) struct SignInSurvey {
    /// A request without a token.
    pub challenge: Option<Arc<RecordedExchange>>,
    /// Metadata of the resource: where it was looked for, in the order of hosts.
    pub resource: Vec<MetadataDocument>,
    /// Metadata of the first authorization server: where it was looked for.
    pub server: Vec<MetadataDocument>,
    /// Requests with tokens that are none.
    pub forged: Vec<(&'static str, Arc<RecordedExchange>)>,
}

/// One place where metadata may be.
pub(crate) struct MetadataDocument {
    pub url: String,
    pub place: &'static str,
    pub exchange: Arc<RecordedExchange>,
}

impl MetadataDocument {
    /// The document, where there is one.
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
    /// Whether the server asks for a token at the door.
    pub(crate) fn is_asked(&self) -> bool {
        self.challenge
            .as_ref()
            .and_then(|exchange| exchange.status())
            == Some(401)
    }

    /// The metadata of the resource that a host would use.
    pub(crate) fn resource_json(&self) -> Option<&Value> {
        self.resource.iter().find_map(MetadataDocument::json)
    }

    /// The metadata of the authorization server that a host would use.
    pub(crate) fn server_json(&self) -> Option<&Value> {
        self.server.iter().find_map(MetadataDocument::json)
    }

    /// The issuer that the resource names first.
    pub(crate) fn issuer(&self) -> Option<&str> {
        let servers = self.resource_json()?.get("authorization_servers")?;
        servers.get(0)?.as_str()
    }

    /// The challenge itself.
    pub(crate) fn header(&self) -> Option<&str> {
        self.challenge
            .as_ref()?
            .received()?
            .header("www-authenticate")
    }
}

/// A parameter of a challenge, such as `resource_metadata`.
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

pub(super) fn discover(visit: &mut SurveySession) {
    let Some(http) = visit.wire.as_http() else {
        return;
    };
    let (origin, path) = (http.origin(), http.path());
    let voice = McpRequestBuilder::new(visit.identity, LEGACY_REVISIONS[0]);
    let mut sign_in = SignInSurvey {
        challenge: Some(
            visit
                .wire
                .send(voice.initialize(LEGACY_REVISIONS[0]).anonymous()),
        ),
        ..SignInSurvey::default()
    };
    let named = sign_in
        .header()
        .and_then(|header| challenge_parameter(header, "resource_metadata"));
    let well_known = format!("{origin}/.well-known/oauth-protected-resource");
    let suffixed = format!("{well_known}{}", path.trim_end_matches('/'));
    if let Some(named) = named.filter(|named| *named != suffixed && *named != well_known) {
        fetch_metadata(
            visit,
            &mut sign_in.resource,
            "named by the challenge",
            named,
        );
    }
    if suffixed != well_known {
        fetch_metadata(
            visit,
            &mut sign_in.resource,
            "with the path of the endpoint",
            suffixed,
        );
    }
    fetch_metadata(visit, &mut sign_in.resource, "at the root", well_known);
    match sign_in.issuer().map(str::to_owned) {
        Some(issuer) => {
            for (place, url) in server_metadata_urls(&issuer) {
                fetch_metadata(visit, &mut sign_in.server, place, url);
            }
        }
        None => {
            let url = format!("{origin}/.well-known/oauth-authorization-server");
            fetch_metadata(visit, &mut sign_in.server, "at the root", url);
        }
    }
    if sign_in.is_asked() {
        let url = visit.survey.url.clone().unwrap_or_default();
        for (what, token) in forged_tokens(&url, sign_in.issuer().unwrap_or(&origin)) {
            let ask = voice.initialize(LEGACY_REVISIONS[0]).anonymous();
            let ask = ask.with_header("Authorization", &format!("Bearer {token}"));
            sign_in.forged.push((what, visit.wire.send(ask)));
        }
    }
    visit.survey.sign_in = Some(sign_in);
}

/// Asks for one document. What a server names may be anywhere, so the wire decides whether it is asked.
fn fetch_metadata(
    visit: &SurveySession,
    documents: &mut Vec<MetadataDocument>,
    place: &'static str,
    url: String,
) {
    if visit
        .wire
        .as_http()
        .is_some_and(|http| http.may_request(&url))
    {
        let ask = OutgoingRequest::get(&url)
            .anonymous()
            .with_timeout(STEP_TIMEOUT);
        let exchange = visit
            .wire
            .send(ask.with_header("Accept", "application/json"));
        documents.push(MetadataDocument {
            url,
            place,
            exchange,
        });
    }
}

/// Where hosts look for the metadata of an authorization server, in their order.
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

/// Tokens that only a server accepts which does not look: each says what is right about it otherwise.
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
