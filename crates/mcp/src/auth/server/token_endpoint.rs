//! `/token`: a code or a refresh token into an access token.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::client_registry::KnownClient;
use super::form_params::FormParams;
use super::grant_store::{CodeRedemption, GrantError, GrantedAccess, IssuedGrant, UserIdentity};
use super::oauth_client::is_document_url;
use super::signing_keys::SigningKeyError;
use super::{AuthorizationServer, LoginBackend, crypto};
use crate::error::Failure;
use crate::http::{RouteRequest, RouteResponse};

/// How long an access token is good for, in seconds. Hosts refresh by themselves.
pub(crate) const ACCESS_FOR: u64 = 900;

/// A refusal as RFC 6749 writes it.
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

    /// One that ends by itself after this long.
    pub(crate) const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    pub(crate) const fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The answer.
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

/// An answer that nobody keeps a copy of.
pub(crate) fn no_store(page: RouteResponse) -> RouteResponse {
    page.header("cache-control", "no-store")
        .header("pragma", "no-cache")
}

/// The values of a form that was posted as one.
pub(crate) fn parse_form_body(visit: &RouteRequest) -> Result<FormParams, OAuthError> {
    let kind = visit.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let why = "send the parameters as `application/x-www-form-urlencoded`";
        return Err(OAuthError::new("invalid_request", why).status(415));
    }
    FormParams::parse(visit.body())
        .map_err(|error| OAuthError::new("invalid_request", error.to_string()))
}

/// A refusal, or a failure of ours.
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

/// The answer for either outcome.
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
    /// `POST /token`.
    pub(super) async fn exchange(self, visit: RouteRequest) -> Result<RouteResponse, Failure> {
        endpoint_response(self.try_exchange(&visit).await)
    }

    async fn try_exchange(&self, visit: &RouteRequest) -> Result<RouteResponse, EndpointError> {
        let form = parse_form_body(visit)?;
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

    /// A client that may be known. A client with a document needs no look at it here: codes and refresh tokens hold
    /// the id they were made for.
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

    /// The resource that is named once more, if it is.
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

    /// Who somebody is by now; nobody when they may no longer sign in, or have another password.
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

    /// The answer to a good request: tokens for a grant.
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
            ("expires_in".to_owned(), json!(ACCESS_FOR)),
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

    /// What tells a client who signed in; it opens nothing.
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

    /// What every token says about its owner.
    fn claims(&self, allowed: &GrantedAccess, audience: &str, now: u64) -> Map<String, Value> {
        let person = &allowed.person;
        let mut claims = Map::new();
        let mut say = |name: &str, value: Value| claims.insert(name.to_owned(), value);
        say("iss", json!(self.0.issuer));
        say("sub", json!(person.subject));
        say("aud", json!(audience));
        say("iat", json!(now));
        say("exp", json!(now + ACCESS_FOR));
        if let Some(email) = &person.email {
            say("email", json!(email));
            say("email_verified", json!(person.email_verified));
        }
        if !person.groups.is_empty() {
            say("groups", json!(person.groups));
        }
        claims
    }
}

/// The scopes of a refresh: all of them, or some.
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

/// What a client learns: which kind of error it is, and not what would help somebody to guess on.
fn grant_refused(why: GrantError, what: &str) -> OAuthError {
    tracing::info!(?why, "a token was refused");
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
