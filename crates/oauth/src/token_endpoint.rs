//! Token endpoint (RFC 6749): exchanges an authorization code or a refresh token for an access token.

use std::time::Duration;

use docent_mcp::Failure;
use docent_mcp::http::{RouteRequest, RouteResponse};
use serde_json::{Map, Value, json};

use super::client_registry::KnownClient;
use super::form_params::FormParams;
use super::grant_store::{CodeRedemption, GrantError, GrantedAccess, IssuedGrant, UserIdentity};
use super::oauth_client::is_document_url;
use super::signing_keys::SigningKeyError;
use super::{AuthorizationServer, LoginBackend, crypto};

/// The lifetime of an access token in seconds. Hosts refresh it without the user, so a short one costs nobody anything.
/// The refresh checks the account again, so this is how long a removed one can still be used at most.
pub(crate) const ACCESS_TOKEN_LIFETIME: u64 = 900;

/// An OAuth error response (RFC 6749, section 5.2).
#[derive(Debug)]
pub(crate) struct OAuthError {
    status: u16,
    error: &'static str,
    why: String,
    retry_after: Option<Duration>,
}

impl OAuthError {
    pub(crate) fn new(error: &'static str, why: impl Into<String>) -> Self {
        let status = if error == "invalid_client" { 401 } else { 400 };
        Self {
            status,
            error,
            why: why.into(),
            retry_after: None,
        }
    }

    /// Adds a `Retry-After` header, for an error that ends by itself.
    pub(crate) const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    pub(crate) const fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Renders the JSON error response, which must not be cached.
    pub(crate) fn into_response(self) -> RouteResponse {
        let body = json!({"error": self.error, "error_description": self.why});
        let page = no_store(RouteResponse::json(&body).status(self.status));
        match self.retry_after {
            None => page,
            Some(wait) => {
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                page.header("retry-after", seconds.max(1).to_string())
            }
        }
    }
}

/// Marks a response as not cacheable, as RFC 6749 requires for tokens.
pub(crate) fn no_store(page: RouteResponse) -> RouteResponse {
    page.header("cache-control", "no-store")
        .header("pragma", "no-cache")
}

/// Parses a form body, which must have the content type of a form.
pub(crate) fn parse_form_body(request: &RouteRequest) -> Result<FormParams, OAuthError> {
    let kind = request.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let why = "send the parameters as `application/x-www-form-urlencoded`";
        return Err(OAuthError::new("invalid_request", why).status(415));
    }
    FormParams::parse(request.body())
        .map_err(|error| OAuthError::new("invalid_request", error.to_string()))
}

/// A client error for the OAuth response, or an internal failure.
pub(crate) enum EndpointError {
    Refused(OAuthError),
    Failed(Failure),
}

impl From<OAuthError> for EndpointError {
    fn from(refusal: OAuthError) -> Self {
        Self::Refused(refusal)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for EndpointError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Maps the outcome of an endpoint to its response.
pub(crate) fn endpoint_response(
    outcome: Result<RouteResponse, EndpointError>,
) -> Result<RouteResponse, Failure> {
    match outcome {
        Ok(page) => Ok(page),
        Err(EndpointError::Refused(refusal)) => Ok(refusal.into_response()),
        Err(EndpointError::Failed(failure)) => Err(failure),
    }
}

impl AuthorizationServer {
    /// Handles `POST /token` for both supported grant types.
    pub(super) async fn exchange(self, request: RouteRequest) -> Result<RouteResponse, Failure> {
        endpoint_response(self.try_exchange(&request).await)
    }

    async fn try_exchange(&self, request: &RouteRequest) -> Result<RouteResponse, EndpointError> {
        let form = parse_form_body(request)?;
        match form.get("grant_type") {
            Some("authorization_code") => self.redeem_code(&form).await,
            Some("refresh_token") => self.redeem_refresh_token(&form).await,
            Some(_) => Err(OAuthError::new(
                "unsupported_grant_type",
                "`grant_type` must be `authorization_code` or `refresh_token`",
            )
            .into()),
            None => Err(OAuthError::new("invalid_request", "`grant_type` is missing").into()),
        }
    }

    /// The client of a request, unauthenticated because all clients are public. A client ID metadata
    /// document need not be fetched here: codes and refresh tokens are bound to the client id they were
    /// issued for.
    pub(crate) async fn known_client(
        &self,
        form: &FormParams,
    ) -> Result<KnownClient, EndpointError> {
        let id = form
            .get("client_id")
            .ok_or_else(|| OAuthError::new("invalid_client", "`client_id` is missing"))?;
        if form.get("client_secret").is_some() || form.get("client_assertion").is_some() {
            let why = "clients here have no secret: send `client_id` alone";
            return Err(OAuthError::new("invalid_client", why).into());
        }
        if is_document_url(id) {
            return Ok(KnownClient {
                id: id.to_owned(),
                registered: None,
            });
        }
        let found = self.0.registry.find(id, self.now()).await?;
        let client = found.ok_or_else(|| {
            OAuthError::new("invalid_client", "the client is not known; register again")
        })?;
        Ok(KnownClient::from(&client))
    }

    /// The `resource` parameter in canonical form (RFC 8707), if it is present and ours.
    fn named_resource(&self, form: &FormParams) -> Result<Option<String>, OAuthError> {
        match form.get("resource") {
            None => Ok(None),
            Some(asked) => self.resource(Some(asked)).map(Some).ok_or_else(|| {
                OAuthError::new(
                    "invalid_target",
                    "`resource` is not an address of this server",
                )
            }),
        }
    }

    async fn redeem_code(&self, form: &FormParams) -> Result<RouteResponse, EndpointError> {
        let missing =
            |name: &str| OAuthError::new("invalid_request", format!("`{name}` is missing"));
        let code = form.get("code").ok_or_else(|| missing("code"))?;
        let verifier = form
            .get("code_verifier")
            .ok_or_else(|| missing("code_verifier"))?;
        let spending = CodeRedemption {
            code: code.to_owned(),
            client: self.known_client(form).await?,
            redirect: form.get("redirect_uri").map(str::to_owned),
            verifier: verifier.to_owned(),
            resource: self.named_resource(form)?,
        };
        let granted = self.0.grants.spend(spending, self.now()).await?;
        let granted = granted.map_err(|why| grant_refused(why, "the code"))?;
        self.tokens(&granted, None)
    }

    async fn redeem_refresh_token(
        &self,
        form: &FormParams,
    ) -> Result<RouteResponse, EndpointError> {
        let token = form
            .get("refresh_token")
            .ok_or_else(|| OAuthError::new("invalid_request", "`refresh_token` is missing"))?;
        let client = self.known_client(form).await?;
        let resource = self.named_resource(form)?;
        let ended = || {
            OAuthError::new(
                "invalid_grant",
                "the refresh token has ended: sign in again",
            )
        };
        let allowed = self.0.grants.peek(token).await?.ok_or_else(ended)?;
        if allowed.client != client.id {
            return Err(ended().into());
        }
        if resource.is_some_and(|resource| resource != allowed.resource) {
            return Err(OAuthError::new(
                "invalid_target",
                "`resource` is not the one that was allowed",
            )
            .into());
        }
        let scopes = narrow_scopes(form.get("scope"), &allowed.scopes)?;
        let Some(person) = self.current_identity(&allowed).await? else {
            if let Some((id, _)) = super::grant_store::parse_refresh_token(token) {
                self.0.grants.end(&id, None).await?;
            }
            return Err(ended().into());
        };
        let granted = self.0.grants.refresh(token, client, person, self.now());
        let granted = granted
            .await?
            .map_err(|why| grant_refused(why, "the refresh token"))?;
        self.tokens(&granted, Some(&scopes))
    }

    /// The user's current identity; `None` when the account no longer exists or its password has changed.
    /// Upstream accounts cannot be checked.
    async fn current_identity(
        &self,
        allowed: &GrantedAccess,
    ) -> Result<Option<UserIdentity>, EndpointError> {
        let LoginBackend::Password { users, .. } = &self.0.sign_in else {
            return Ok(Some(allowed.person.clone()));
        };
        let (users, name) = (users.clone(), allowed.person.subject.clone());
        let user = tokio::task::spawn_blocking(move || users.find(&name)).await??;
        let person = user.as_ref().map(super::authorize_endpoint::identity_of);
        Ok(person.filter(|person| person.stamp == allowed.person.stamp))
    }

    /// The token response for a grant: access token, and if applicable refresh token and ID token.
    /// `narrower` are the scopes of a refresh that asks for fewer.
    fn tokens(
        &self,
        granted: &IssuedGrant,
        narrower: Option<&[String]>,
    ) -> Result<RouteResponse, EndpointError> {
        let now = self.now();
        let allowed = &granted.allowed;
        let scopes = narrower.unwrap_or(&allowed.scopes);
        let scope = scopes.join(" ");
        let mut claims = self.claims(allowed, &allowed.resource, now);
        claims.insert("client_id".to_owned(), json!(allowed.client));
        claims.insert("scope".to_owned(), json!(scope));
        claims.insert("sid".to_owned(), json!(granted.id));
        claims.insert(
            "jti".to_owned(),
            json!(crypto::encode(&crypto::random::<12>()?)),
        );
        let access = self.0.keys.sign("at+jwt", &Value::Object(claims), now)?;
        let mut body = Map::from_iter([
            ("access_token".to_owned(), json!(access)),
            ("token_type".to_owned(), json!("Bearer")),
            ("expires_in".to_owned(), json!(ACCESS_TOKEN_LIFETIME)),
            ("scope".to_owned(), json!(scope)),
        ]);
        if let Some(refresh) = &granted.refresh {
            body.insert("refresh_token".to_owned(), json!(refresh));
        }
        if scopes.iter().any(|scope| scope == "openid") {
            let token = self.id_token(granted, scopes, now)?;
            body.insert("id_token".to_owned(), json!(token));
        }
        Ok(no_store(RouteResponse::json(&Value::Object(body))))
    }

    /// An OpenID Connect ID token. It tells the client who logged in and authorizes nothing.
    fn id_token(
        &self,
        granted: &IssuedGrant,
        scopes: &[String],
        now: u64,
    ) -> Result<String, SigningKeyError> {
        let allowed = &granted.allowed;
        let mut claims = self.claims(allowed, &allowed.client, now);
        claims.remove("groups");
        if !scopes.iter().any(|scope| scope == "email") {
            claims.remove("email");
            claims.remove("email_verified");
        }
        claims.insert("auth_time".to_owned(), json!(allowed.at));
        if let Some(nonce) = &granted.nonce {
            claims.insert("nonce".to_owned(), json!(nonce));
        }
        self.0.keys.sign("JWT", &Value::Object(claims), now)
    }

    /// The claims that access tokens and ID tokens share.
    fn claims(&self, allowed: &GrantedAccess, audience: &str, now: u64) -> Map<String, Value> {
        let mut claims = allowed.person.claims(&self.0.issuer);
        let mut say = |name: &str, value: Value| claims.insert(name.to_owned(), value);
        say("aud", json!(audience));
        say("iat", json!(now));
        say("exp", json!(now + ACCESS_TOKEN_LIFETIME));
        claims
    }
}

/// The scopes of a refresh request: all of the granted ones, or the requested subset (RFC 6749, section 6).
fn narrow_scopes(asked: Option<&str>, allowed: &[String]) -> Result<Vec<String>, OAuthError> {
    let Some(asked) = asked else {
        return Ok(allowed.to_vec());
    };
    let asked: Vec<_> = asked.split(' ').filter(|scope| !scope.is_empty()).collect();
    let all = asked
        .iter()
        .all(|scope| allowed.iter().any(|known| known == scope));
    if all && !asked.is_empty() {
        Ok(asked.into_iter().map(str::to_owned).collect())
    } else {
        Err(OAuthError::new("invalid_scope", "more than was allowed"))
    }
}

/// Maps the reason to an OAuth error. The client learns only the error code; the reason is in the log,
/// because it would help an attacker who guesses.
fn grant_refused(why: GrantError, what: &str) -> OAuthError {
    tracing::info!(?why, "token request refused");
    match why {
        GrantError::OtherResource => OAuthError::new(
            "invalid_target",
            "`resource` is not the one that was allowed",
        ),
        GrantError::TooMany => OAuthError::new("temporarily_unavailable", "try again").status(503),
        _ => OAuthError::new(
            "invalid_grant",
            format!("{what} is not good (any more), or not for this request"),
        ),
    }
}
