//! Login at an upstream OpenID Connect provider: authorization code flow with PKCE as a relying party. The
//! verified claims of the ID token go into our own tokens.
//!
//! The pending login is kept in a cookie with a MAC, so the server stores nothing: `state` is the random id
//! of the login, and nonce and code verifier are derived from it with the server's secret.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use docent_mcp::Failure;
use docent_mcp::http::{RouteRequest, RouteResponse};
use docent_mcp::oauth::{
    FormPost, HttpFetch, endpoint_url, fetch_metadata, http_fetcher, parse_strict_json,
    verify_id_token,
};
use docent_mcp::{CertificateAuthorities, Issuer, IssuerNetwork, IssuerTransport};
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

/// How long a user may take at the provider, in seconds. It covers a forgotten password and a second factor. The state
/// of the login is in a cookie, so a longer time would cost no memory, but leave a half-finished login usable on a
/// shared computer.
const LOGIN_LIFETIME: u64 = 600;
/// The maximum size of a cookie's value: browsers keep 4 KiB, including its name and attributes.
const MAX_COOKIE: usize = 3_800;
/// How long the provider's metadata is cached. Endpoints hardly ever change, but when they do, a login has to work
/// again without a restart; and without a cache every login would begin with one more request to the provider.
const METADATA_TTL: Duration = Duration::from_secs(300);
/// The maximum total length of a user's groups, because a token has to fit into a header.
const MAX_GROUP_BYTES: usize = 8 * 1024;

/// A client secret that `Debug` output never shows.
///
/// ```rust
/// use docent_oauth::ClientSecret;
///
/// let secret = ClientSecret::new("hunter2");
/// assert!(!format!("{secret:?}").contains("hunter2"));
/// ```
#[derive(Clone)]
pub struct ClientSecret(String);

impl ClientSecret {
    /// Wraps a client secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// The upstream OpenID Connect provider, and our client registration there.
///
/// ```rust
/// use docent_oauth::{
///     AuthorizationServerOptions, ClientSecret, LoginMethod, UpstreamProvider,
/// };
///
/// let provider = UpstreamProvider {
///     issuer: "https://login.example.org".to_owned(),
///     client_id: "harbour-archive".to_owned(),
///     client_secret: Some(ClientSecret::new("read from a file")),
/// };
/// // Register `https://docs.example.org/callback` as the redirect URI at the provider.
/// let mut options =
///     AuthorizationServerOptions::new("https://docs.example.org", "Harbour archive", "./state");
/// options.login = LoginMethod::Upstream(provider);
/// ```
#[derive(Debug, Clone)]
pub struct UpstreamProvider {
    /// The provider's issuer URL, exactly as its metadata states it.
    pub issuer: String,
    /// Our client id at the provider. The client's only redirect URI is `/callback` below our base URL.
    pub client_id: String,
    /// The client secret; `None` for a public client.
    pub client_secret: Option<ClientSecret>,
}

/// The issuer URL of the upstream provider is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the https address of a provider")]
pub struct UpstreamError(pub String);

/// The provider's metadata, as it was discovered.
type ProviderMetadata = Arc<Map<String, Value>>;

/// The client of the upstream provider, with a cache of its metadata.
pub(super) struct OidcProvider {
    upstream: UpstreamProvider,
    host: String,
    fetcher: Arc<dyn HttpFetch>,
    issuer: Issuer,
    metadata: Mutex<Option<(Instant, ProviderMetadata)>>,
}

/// Why the login at the provider failed. The text is shown on the error page and quotes nothing from
/// outside.
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
        // The operator chose the provider, so it may be in a private network.
        let network = IssuerNetwork::Private;
        let fetcher = http_fetcher(&IssuerTransport {
            network,
            authorities,
        });
        Ok(Self {
            host: url.host_str().ok_or_else(bad)?.to_owned(),
            issuer: Issuer::with_fetcher(upstream.issuer.clone(), None, fetcher.clone()),
            fetcher,
            upstream,
            metadata: Mutex::default(),
        })
    }

    /// The provider's host, by which users recognise it on the consent page.
    pub(super) fn display_host(&self) -> &str {
        &self.host
    }

    async fn metadata(&self) -> Result<ProviderMetadata, UpstreamSignInError> {
        let kept = {
            let kept = self.metadata.lock().unwrap_or_else(PoisonError::into_inner);
            kept.clone()
                .filter(|(since, _)| since.elapsed() < METADATA_TTL)
        };
        if let Some((_, metadata)) = kept {
            return Ok(metadata);
        }
        let found = fetch_metadata(&self.upstream.issuer, self.fetcher.as_ref()).await;
        let found = Arc::new(found.map_err(|why| {
            tracing::warn!(%why, "cannot fetch the provider's metadata");
            UpstreamSignInError("the provider where people sign in does not answer")
        })?);
        let mut kept = self.metadata.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some((Instant::now(), found.clone()));
        Ok(found)
    }

    async fn address(&self, name: &str) -> Result<String, UpstreamSignInError> {
        let metadata = self.metadata().await?;
        endpoint_url(&metadata, name).ok_or(UpstreamSignInError("the provider lacks an endpoint"))
    }

    /// Validates the `iss` parameter of an authorization response (RFC 9207): it must name this provider,
    /// and must be there if the metadata announces it. This prevents mix-up attacks.
    async fn is_expected_issuer(&self, iss: Option<&str>) -> Result<bool, UpstreamSignInError> {
        if let Some(iss) = iss {
            return Ok(iss == self.upstream.issuer);
        }
        let metadata = self.metadata().await?;
        let promised = metadata.get("authorization_response_iss_parameter_supported");
        Ok(promised != Some(&Value::Bool(true)))
    }

    /// Posts a form to an endpoint of the provider and parses the JSON response.
    async fn post_form(
        &self,
        url: String,
        authorization: Option<String>,
        body: String,
    ) -> Result<Map<String, Value>, UpstreamSignInError> {
        let form = FormPost {
            authorization,
            body,
        };
        let answer = self.fetcher.post(url, form).await.map_err(|error| {
            tracing::warn!(%error, "the provider's endpoint returned an error");
            UpstreamSignInError("the provider did not confirm the sign-in")
        })?;
        parse_strict_json(&answer).ok_or(UpstreamSignInError("the provider's answer is not JSON"))
    }

    /// Exchanges an authorization code for the ID token, and an access token for the provider's UserInfo
    /// endpoint.
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

    /// The token request: the `Authorization` header for client authentication, if `basic`, and the form.
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

    /// The identity of the user who came back with this authorization code.
    async fn identity(
        &self,
        code: &str,
        login: &UpstreamLogin,
        redirect: &str,
        now: u64,
    ) -> Result<UserIdentity, UpstreamSignInError> {
        let tokens = self.tokens(code, &login.verifier, redirect).await?;
        let text = |name: &str| tokens.get(name).and_then(Value::as_str);
        let id_token =
            text("id_token").ok_or(UpstreamSignInError("the provider gave no ID token"))?;
        let client = &self.upstream.client_id;
        let caller = verify_id_token(id_token, &self.issuer, client, &login.nonce, now)
            .await
            .map_err(|why| {
                tracing::warn!(?why, "invalid ID token from the provider");
                UpstreamSignInError("the provider's ID token does not count")
            })?;
        let subject = caller.subject().unwrap_or_default().to_owned();
        let mut sources = vec![claims_of(&caller)];
        // Many providers return e-mail address and groups only from the UserInfo endpoint. Its `sub` must
        // match (OpenID Connect Core, section 5.3.2).
        if let (Some(access), Ok(url)) = (
            text("access_token"),
            self.address("userinfo_endpoint").await,
        ) {
            let bearer = Some(format!("Bearer {access}"));
            let userinfo = self
                .post_form(url, bearer, String::new())
                .await
                .unwrap_or_default();
            if userinfo.get("sub").and_then(Value::as_str) == Some(&subject) {
                sources.push(userinfo);
            }
        }
        Ok(identity_from_claims(subject, &sources))
    }
}

/// The claims of the ID token that are used here, as a JSON object.
fn claims_of(caller: &docent_mcp::Caller) -> Map<String, Value> {
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

/// Merges the claims of several sources; the first one that has a claim wins.
pub(super) fn identity_from_claims(
    subject: String,
    sources: &[Map<String, Value>],
) -> UserIdentity {
    let first = |name: &str| sources.iter().find_map(|claims| claims.get(name));
    // Some providers send the boolean as a string.
    let verified = first("email_verified").map(|value| *value == true || value == "true");
    let email = first("email").and_then(Value::as_str);
    // An unverified address is dropped, because permissions may be granted by e-mail address.
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
        tracing::warn!("the user's groups exceed the size limit of a token, dropping all of them");
    }
    UserIdentity {
        subject,
        email: email.map(str::to_owned),
        email_verified: verified == Some(true),
        groups: if fits { groups } else { Vec::new() },
        stamp: None,
    }
}

/// A pending login at the upstream provider; `id` is the `state` parameter, `query` the client's
/// authorization request.
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
            nonce: self.0.signer.sign("nonce", &[id]),
            verifier: self.0.signer.sign("verifier", &[id]),
        }
    }

    fn upstream_login_cookie(&self) -> BrowserCookie {
        BrowserCookie::new("docent-trip", &self.0.issuer)
    }

    fn callback(&self) -> String {
        format!("{}/callback", self.0.issuer)
    }

    /// Redirects the browser to the provider, for an authorization request that the user has consented to.
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
        let login = self.upstream_login(&crypto::encode(&crypto::random::<16>()?), query);
        let until = (self.now() + LOGIN_LIFETIME).to_string();
        let encoded_query = crypto::encode(query.as_bytes());
        let mac = self.0.signer.sign("trip", &[&login.id, &until, query]);
        let cookie = format!("{}.{until}.{encoded_query}.{mac}", login.id);
        if cookie.len() > MAX_COOKIE {
            return Ok(sign_in_pages::error_page("the app's request is too long").status(400));
        }
        let (callback, challenge) = (self.callback(), crypto::digest(&login.verifier));
        let mut values = vec![
            ("response_type", "code"),
            ("client_id", provider.upstream.client_id.as_str()),
            ("redirect_uri", &callback),
            ("scope", "openid email profile"),
            ("state", &login.id),
            ("nonce", &login.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        values.extend(request.hint.as_deref().map(|hint| ("login_hint", hint)));
        let to = with_query(&endpoint, &values);
        let cookie = self.upstream_login_cookie().set(&cookie, LOGIN_LIFETIME);
        Ok(sign_in_pages::redirect_page(&to).header("set-cookie", cookie))
    }

    /// Handles `GET /callback`, the authorization response of the provider.
    pub(super) async fn handle_callback(
        self,
        http_request: RouteRequest,
    ) -> Result<RouteResponse, Failure> {
        let LoginBackend::Upstream(provider) = &self.0.sign_in else {
            return Err(Failure::not_found("/callback"));
        };
        let form = FormParams::parse(http_request.query().as_bytes()).unwrap_or_default();
        let Some(login) = self.pending_login(&http_request, &form) else {
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
        let request = match self.parse_authorization_request(&login.query).await {
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
            .identity(code, &login, &self.callback(), self.now())
            .await;
        let page = match found {
            Ok(person) => self.allow(request, person).await?,
            Err(UpstreamSignInError(why)) => sign_in_pages::error_page(why).status(502),
        };
        Ok(page.header("set-cookie", self.upstream_login_cookie().set("", 0)))
    }

    /// The pending login of this browser, if its cookie is valid and matches the `state` of the response.
    fn pending_login(
        &self,
        http_request: &RouteRequest,
        form: &FormParams,
    ) -> Option<UpstreamLogin> {
        let cookie = self.upstream_login_cookie().read(http_request)?;
        let mut parts = cookie.splitn(4, '.');
        let (id, until, encoded_query, mac) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let query = String::from_utf8(crypto::decode(encoded_query)?).ok()?;
        let fresh = until.parse::<u64>().is_ok_and(|until| self.now() < until);
        let ours = self.0.signer.verify("trip", &[id, until, &query], mac);
        let same = form
            .get("state")
            .is_some_and(|state| crypto::constant_time_eq(state, id));
        (fresh && ours && same).then(|| self.upstream_login(id, &query))
    }
}

#[cfg(test)]
mod tests;
