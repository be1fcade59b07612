//! Sign-in at somebody else's OpenID provider: the browser is sent there and comes back with a code, the code becomes an
//! ID token, and what that says about somebody goes into our own tokens.
//!
//! The trip is kept in a cookie under our seal, so nothing is remembered here: the state is the number of the trip, and
//! nonce and verifier follow from it by our secret.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use tokio::time::Instant;
use url::form_urlencoded::{Serializer, byte_serialize};
use url::{Host, Url};

use super::authorization_request::AuthorizationRequest;
use super::authorize_endpoint::{RefusalStage, refuse_to_client};
use super::cookie::BrowserCookie;
use super::form_params::{FormParams, with_query};
use super::grant_store::UserIdentity;
use super::{AuthorizationServer, LoginBackend, crypto, sign_in_pages};
use crate::auth::outbound_http::{self, HttpFetch, http_fetcher};
use crate::auth::{
    CertificateAuthorities, Issuer, IssuerNetwork, IssuerTransport, discovery, jwt, strict_json,
};
use crate::error::Failure;
use crate::http::{RouteRequest, RouteResponse};

/// How long somebody may take at the provider, in seconds.
const TRIP_FOR: u64 = 600;
/// The most bytes of a cookie that browsers keep, with room for its name.
const MAX_COOKIE: usize = 3_800;
/// How long the provider's metadata is kept.
const FRESH: Duration = Duration::from_secs(300);
/// The most bytes of all groups of somebody. A token has to fit into a header.
const MAX_GROUP_BYTES: usize = 8 * 1024;

/// Something that is not shown, not even by mistake.
#[derive(Clone)]
pub struct ClientSecret(String);

impl ClientSecret {
    /// Takes a secret into keeping.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// The provider at which people sign in, and what this server is to it.
#[derive(Debug, Clone)]
pub struct UpstreamProvider {
    /// The provider's address, to the letter as its metadata names it.
    pub issuer: String,
    /// The id under which this server is registered there, with `/callback` below its address as the only redirect uri.
    pub client_id: String,
    /// Its secret, if it has one.
    pub client_secret: Option<ClientSecret>,
}

/// The settings of the provider make no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the https address of a provider")]
pub struct UpstreamError(pub String);

/// What the provider says about itself.
type ProviderMetadata = Arc<Map<String, Value>>;

/// The provider, ready to be talked to.
pub(super) struct OidcProvider {
    upstream: UpstreamProvider,
    host: String,
    web: Arc<dyn HttpFetch>,
    issuer: Issuer,
    metadata: Mutex<Option<(Instant, ProviderMetadata)>>,
}

/// Why somebody could not be signed in. The person reads it; it quotes nothing that came from outside.
#[derive(Debug)]
struct UpstreamSignInError(&'static str);

impl OidcProvider {
    pub(super) fn new(
        upstream: UpstreamProvider,
        authorities: Option<CertificateAuthorities>,
    ) -> Result<Self, UpstreamError> {
        let bad = || UpstreamError(upstream.issuer.clone());
        let url = Url::parse(&upstream.issuer).map_err(|_| bad())?;
        let here = match url.host() {
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        if url.scheme() != "https" && !(url.scheme() == "http" && here) {
            return Err(bad());
        }
        // The owner chose the provider, so it may be in their own network.
        let network = IssuerNetwork::Private;
        let web = http_fetcher(&IssuerTransport {
            network,
            authorities,
        });
        Ok(Self {
            host: url.host_str().ok_or_else(bad)?.to_owned(),
            issuer: Issuer::with_fetcher(upstream.issuer.clone(), None, web.clone()),
            web,
            upstream,
            metadata: Mutex::default(),
        })
    }

    /// What people know the provider by.
    pub(super) fn display_host(&self) -> &str {
        &self.host
    }

    async fn metadata(&self) -> Result<ProviderMetadata, UpstreamSignInError> {
        let kept = {
            let kept = self.metadata.lock().unwrap_or_else(PoisonError::into_inner);
            kept.clone().filter(|(since, _)| since.elapsed() < FRESH)
        };
        if let Some((_, metadata)) = kept {
            return Ok(metadata);
        }
        let found = discovery::metadata(&self.upstream.issuer, self.web.as_ref()).await;
        let found = Arc::new(found.map_err(|why| {
            tracing::warn!(%why, "the provider's metadata did not come");
            UpstreamSignInError("the provider where people sign in does not answer")
        })?);
        let mut kept = self.metadata.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some((Instant::now(), found.clone()));
        Ok(found)
    }

    async fn address(&self, name: &str) -> Result<String, UpstreamSignInError> {
        let metadata = self.metadata().await?;
        discovery::endpoint_url(&metadata, name)
            .ok_or(UpstreamSignInError("the provider lacks an endpoint"))
    }

    /// True when an answer may be the provider's: one that names itself must be the one that was asked, and one that
    /// promises to name itself must do so (RFC 9207).
    async fn is_expected_issuer(&self, iss: Option<&str>) -> Result<bool, UpstreamSignInError> {
        if let Some(iss) = iss {
            return Ok(iss == self.upstream.issuer);
        }
        let metadata = self.metadata().await?;
        let promised = metadata.get("authorization_response_iss_parameter_supported");
        Ok(promised != Some(&Value::Bool(true)))
    }

    /// The answer to a form that is ours alone to send.
    async fn post_form(
        &self,
        url: String,
        authorization: Option<String>,
        body: String,
    ) -> Result<Map<String, Value>, UpstreamSignInError> {
        let form = outbound_http::FormPost {
            authorization,
            body,
        };
        let answer = self.web.post(url, form).await.map_err(|error| {
            tracing::warn!(%error, "the provider refused");
            UpstreamSignInError("the provider did not confirm the sign-in")
        })?;
        strict_json::parse(&answer).ok_or(UpstreamSignInError("the provider's answer is not JSON"))
    }

    /// A code into an ID token, and an access token for the provider's own endpoints.
    async fn tokens(
        &self,
        code: &str,
        verifier: &str,
        redirect: &str,
    ) -> Result<Map<String, Value>, UpstreamSignInError> {
        let url = self.address("token_endpoint").await?;
        let metadata = self.metadata().await?;
        let methods = metadata.get("token_endpoint_auth_methods_supported");
        let methods = methods.and_then(Value::as_array);
        let basic = methods.is_none_or(|all| all.iter().any(|m| m == "client_secret_basic"));
        let (authorization, body) = self.token_request(code, verifier, redirect, basic);
        self.post_form(url, authorization, body).await
    }

    /// What is sent for a code: how we prove who we are, and the form.
    fn token_request(
        &self,
        code: &str,
        verifier: &str,
        redirect: &str,
        basic: bool,
    ) -> (Option<String>, String) {
        let client = &self.upstream.client_id;
        let mut body = Serializer::new(String::new());
        body.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", redirect)
            .append_pair("code_verifier", verifier);
        let authorization = match &self.upstream.client_secret {
            Some(ClientSecret(secret)) if basic => {
                let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", encoded(client), encoded(secret));
                Some(format!("Basic {}", STANDARD.encode(pair)))
            }
            secret => {
                body.append_pair("client_id", client);
                if let Some(ClientSecret(secret)) = secret {
                    body.append_pair("client_secret", secret);
                }
                None
            }
        };
        (authorization, body.finish())
    }

    /// Who came back with this code.
    async fn identity(
        &self,
        code: &str,
        trip: &UpstreamLogin,
        redirect: &str,
        now: u64,
    ) -> Result<UserIdentity, UpstreamSignInError> {
        let tokens = self.tokens(code, &trip.verifier, redirect).await?;
        let text = |name: &str| tokens.get(name).and_then(Value::as_str);
        let id_token =
            text("id_token").ok_or(UpstreamSignInError("the provider gave no ID token"))?;
        let client = &self.upstream.client_id;
        let caller = jwt::verify_id_token(id_token, &self.issuer, client, &trip.nonce, now)
            .await
            .map_err(|why| {
                tracing::warn!(?why, "the provider's ID token was refused");
                UpstreamSignInError("the provider's ID token does not count")
            })?;
        let subject = caller.subject().unwrap_or_default().to_owned();
        let mut said = vec![claims_of(&caller)];
        // Many providers tell the address and the groups only at this endpoint.
        if let (Some(access), Ok(url)) = (
            text("access_token"),
            self.address("userinfo_endpoint").await,
        ) {
            let bearer = Some(format!("Bearer {access}"));
            let told = self
                .post_form(url, bearer, String::new())
                .await
                .unwrap_or_default();
            if told.get("sub").and_then(Value::as_str) == Some(&subject) {
                said.push(told);
            }
        }
        Ok(identity_from_claims(subject, &said))
    }
}

/// The claims that matter here, as an object again.
fn claims_of(caller: &crate::auth::Caller) -> Map<String, Value> {
    let mut claims = Map::new();
    for name in ["email", "email_verified", "groups"] {
        let values = caller.claim(name);
        match (name, values.as_slice()) {
            (_, []) => {}
            ("groups", values) => {
                claims.insert(name.to_owned(), Value::from(values.to_vec()));
            }
            (_, [value, ..]) => {
                claims.insert(name.to_owned(), Value::from(value.as_str()));
            }
        }
    }
    claims
}

/// What several answers say about somebody, the first that says something winning.
pub(super) fn identity_from_claims(subject: String, said: &[Map<String, Value>]) -> UserIdentity {
    let first = |name: &str| said.iter().find_map(|claims| claims.get(name));
    // Some providers write the truth as a text.
    let verified = first("email_verified").map(|value| *value == true || value == "true");
    let email = first("email").and_then(Value::as_str);
    // An address that somebody only claims must not open what another's address opens.
    let email = email.filter(|email| verified != Some(false) && email.len() <= 254);
    let groups: Vec<String> = match first("groups") {
        Some(Value::Array(all)) => all
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        Some(Value::String(one)) => vec![one.clone()],
        _ => Vec::new(),
    };
    let fits = groups.iter().map(String::len).sum::<usize>() <= MAX_GROUP_BYTES;
    if !fits {
        tracing::warn!("somebody has more groups than a token can hold; they count as in none");
    }
    UserIdentity {
        subject,
        email: email.map(str::to_owned),
        email_verified: verified == Some(true),
        groups: if fits { groups } else { Vec::new() },
        stamp: None,
    }
}

/// A browser's way to the provider and back.
struct UpstreamLogin {
    query: String,
    id: String,
    nonce: String,
    verifier: String,
}

impl AuthorizationServer {
    fn upstream_login(&self, id: &str, query: &str) -> UpstreamLogin {
        UpstreamLogin {
            query: query.to_owned(),
            id: id.to_owned(),
            nonce: self.0.seal.sign("nonce", &[id]),
            verifier: self.0.seal.sign("verifier", &[id]),
        }
    }

    fn upstream_login_cookie(&self) -> BrowserCookie {
        BrowserCookie::new("docent-trip", &self.0.issuer)
    }

    fn callback(&self) -> String {
        format!("{}/callback", self.0.issuer)
    }

    /// Sends the browser to the provider, on behalf of a request that has been checked and consented to.
    pub(super) async fn redirect_to_provider(
        &self,
        provider: &OidcProvider,
        query: &str,
        request: &AuthorizationRequest,
    ) -> Result<RouteResponse, Failure> {
        let endpoint = match provider.address("authorization_endpoint").await {
            Ok(endpoint) => endpoint,
            Err(UpstreamSignInError(why)) => return Ok(sign_in_pages::error_page(why).status(502)),
        };
        let trip = self.upstream_login(&crypto::encode(&crypto::random::<16>()?), query);
        let until = (self.now() + TRIP_FOR).to_string();
        let kept = crypto::encode(query.as_bytes());
        let mark = self.0.seal.sign("trip", &[&trip.id, &until, query]);
        let cookie = format!("{}.{until}.{kept}.{mark}", trip.id);
        if cookie.len() > MAX_COOKIE {
            return Ok(sign_in_pages::error_page("the app's request is too long").status(400));
        }
        let (callback, challenge) = (self.callback(), crypto::digest(&trip.verifier));
        let mut values = vec![
            ("response_type", "code"),
            ("client_id", provider.upstream.client_id.as_str()),
            ("redirect_uri", &callback),
            ("scope", "openid email profile"),
            ("state", &trip.id),
            ("nonce", &trip.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        values.extend(request.hint.as_deref().map(|hint| ("login_hint", hint)));
        let to = with_query(&endpoint, &values);
        let cookie = self.upstream_login_cookie().set(&cookie, TRIP_FOR);
        Ok(sign_in_pages::redirect_page(&to).header("set-cookie", cookie))
    }

    /// `GET /callback`: the browser comes back.
    pub(super) async fn handle_callback(
        self,
        visit: RouteRequest,
    ) -> Result<RouteResponse, Failure> {
        let LoginBackend::Upstream(provider) = &self.0.sign_in else {
            return Err(Failure::not_found("/callback"));
        };
        let form = FormParams::parse(visit.query().as_bytes()).unwrap_or_default();
        let Some(trip) = self.pending_login(&visit, &form) else {
            let text = "this sign-in is too old, or began in another browser: go back to the app and connect again";
            return Ok(sign_in_pages::error_page(text).status(403));
        };
        match provider.is_expected_issuer(form.get("iss")).await {
            Ok(true) => {}
            Ok(false) => {
                return Ok(sign_in_pages::error_page("another provider answered").status(403));
            }
            Err(UpstreamSignInError(why)) => return Ok(sign_in_pages::error_page(why).status(502)),
        }
        let request = match self.parse_authorization_request(&trip.query).await {
            Ok(request) => request,
            Err(refused) => return self.refuse(refused, RefusalStage::AfterProvider),
        };
        let Some(code) = form.get("code") else {
            let why = "the user did not sign in";
            return self.refuse(
                refuse_to_client(&request, "access_denied", why),
                RefusalStage::AfterProvider,
            );
        };
        let found = provider
            .identity(code, &trip, &self.callback(), self.now())
            .await;
        let page = match found {
            Ok(person) => self.allow(request, person).await?,
            Err(UpstreamSignInError(why)) => sign_in_pages::error_page(why).status(502),
        };
        Ok(page.header("set-cookie", self.upstream_login_cookie().set("", 0)))
    }

    /// The trip that this browser is on, if it is the one that this answer belongs to.
    fn pending_login(&self, visit: &RouteRequest, form: &FormParams) -> Option<UpstreamLogin> {
        let cookie = self.upstream_login_cookie().read(visit)?;
        let mut parts = cookie.splitn(4, '.');
        let (id, until, kept, mark) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let query = String::from_utf8(crypto::decode(kept)?).ok()?;
        let fresh = until.parse::<u64>().is_ok_and(|until| self.now() < until);
        let ours = self.0.seal.verify("trip", &[id, until, &query], mark);
        let same = form
            .get("state")
            .is_some_and(|state| crypto::constant_time_eq(state, id));
        (fresh && ours && same).then(|| self.upstream_login(id, &query))
    }
}

#[cfg(test)]
mod tests;
