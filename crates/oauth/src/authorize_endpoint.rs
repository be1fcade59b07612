//! Authorization endpoint: shows the consent page, checks the login, and redirects back with an
//! authorization code.

use docent_mcp::Failure;
use docent_mcp::http::{RouteRequest, RouteResponse};
use tokio::time::Instant;

use super::authorization_request::{AuthorizationRefusal, AuthorizationRequest};
use super::client_registry::KnownClient;
use super::cookie::BrowserCookie;
use super::device::{self, DEVICE_COOKIE_LIFETIME};
use super::form_params::with_query;
use super::grant_store::{
    AuthorizationCode, CODE_LIFETIME, GRANT_LIFETIME, GrantError, GrantedAccess,
    UPSTREAM_GRANT_LIFETIME, UserIdentity,
};
use super::password::HashingQueue;
use super::sign_in_pages::{self, ConsentPage, SignInError};
use super::token_endpoint::parse_form_body;
use super::user_store::UserAccount;
use super::{AuthorizationServer, LoginBackend, crypto};

/// The lifetime of a consent form in seconds: time enough to look for one's password. The form contains the whole
/// authorization request under a MAC, so nothing is stored for it; its expiry is all that limits for how long it can be
/// replayed.
pub(crate) const FORM_LIFETIME: u64 = 900;
/// The maximum length of a user name in a login.
const MAX_NAME: usize = 1_024;

/// A submitted consent form with a valid MAC, and the authorization request that it contains.
pub(crate) struct SubmittedForm {
    pub(crate) query: String,
    pub(crate) form: super::form_params::FormParams,
}

impl AuthorizationServer {
    /// Handles `GET /authorize`: validates the request and shows the consent page.
    pub(super) async fn show_consent(
        self,
        http_request: RouteRequest,
    ) -> Result<RouteResponse, Failure> {
        match self.parse_authorization_request(http_request.query()).await {
            Ok(request) => self.consent_page(&http_request, http_request.query(), &request, None),
            Err(refused) => self.refuse(refused, RefusalStage::Unseen),
        }
    }

    /// Handles `POST /authorize`: the submitted consent form.
    pub(super) async fn submit_consent(
        self,
        http_request: RouteRequest,
    ) -> Result<RouteResponse, Failure> {
        let Some(sent) = self.submitted_form(&http_request) else {
            let text = "this form is too old, or was not opened in this browser: go back to the app and connect again";
            return Ok(sign_in_pages::error_page(text).status(403));
        };
        let request = match self.parse_authorization_request(&sent.query).await {
            Ok(request) => request,
            Err(refused) => return self.refuse(refused, RefusalStage::AfterForm),
        };
        if sent.form.get("decision") != Some("allow") {
            let why = "the user did not allow it";
            return self.refuse(
                refuse_to_client(&request, "access_denied", why),
                RefusalStage::AfterForm,
            );
        }
        match &self.0.sign_in {
            LoginBackend::Password { .. } => match self.check_password(&http_request, &sent).await?
            {
                Ok(person) => {
                    let device = self.remembered_device(&http_request, &person.subject)?;
                    let page = self.allow(request, person).await?;
                    Ok(page.header("set-cookie", device))
                }
                Err(error) => self.consent_page(&http_request, &sent.query, &request, Some(error)),
            },
            LoginBackend::Upstream(provider) => {
                self.redirect_to_provider(provider, &sent.query, &request)
                    .await
            }
        }
    }

    fn cookie(&self) -> BrowserCookie {
        BrowserCookie::new("docent-form", &self.0.issuer)
    }

    fn device_cookie(&self) -> BrowserCookie {
        BrowserCookie::new("docent-device", &self.0.issuer)
    }

    /// The `Set-Cookie` value of the device cookie after `name` has logged in.
    fn remembered_device(
        &self,
        http_request: &RouteRequest,
        name: &str,
    ) -> Result<String, Failure> {
        let cookie = self.device_cookie();
        let previous = cookie.read(http_request);
        let value = device::remembered(&self.0.signer, previous.as_deref(), name, self.now())?;
        Ok(cookie.set(&value, DEVICE_COOKIE_LIFETIME))
    }

    /// Renders the consent page. Its form contains the authorization request and a MAC that binds it to
    /// this browser's cookie and an expiry time (CSRF protection).
    fn consent_page(
        &self,
        http_request: &RouteRequest,
        query: &str,
        request: &AuthorizationRequest,
        error: Option<SignInError>,
    ) -> Result<RouteResponse, Failure> {
        let browser = match self
            .cookie()
            .read(http_request)
            .filter(|value| value.len() == 43)
        {
            Some(browser) => browser,
            None => crypto::secret()?,
        };
        let until = (self.now() + FORM_LIFETIME).to_string();
        let token = self.0.signer.sign("form", &[&browser, query, &until]);
        let at = match &self.0.sign_in {
            LoginBackend::Password { .. } => None,
            LoginBackend::Upstream(provider) => Some(provider.display_host()),
        };
        let page = sign_in_pages::consent_page(&ConsentPage {
            server: &self.0.name,
            client: &request.client,
            redirect: &request.redirect,
            sees_email: request.scopes.iter().any(|scope| scope == "email"),
            query,
            token: &format!("{until}.{token}"),
            hint: request.hint.as_deref(),
            at,
            error,
        });
        Ok(page.header("set-cookie", self.cookie().set(&browser, FORM_LIFETIME)))
    }

    /// The form, if its MAC is valid, it has not expired, and it comes from the browser that it was given
    /// to.
    fn submitted_form(&self, http_request: &RouteRequest) -> Option<SubmittedForm> {
        // Browsers send `Sec-Fetch-Site`; a client that does not still needs the cookie.
        if !matches!(
            http_request.header("sec-fetch-site"),
            None | Some("same-origin" | "none")
        ) {
            return None;
        }
        let form = parse_form_body(http_request).ok()?;
        let browser = self.cookie().read(http_request)?;
        let query = form.get("request")?.to_owned();
        let (until, token) = form.get("token")?.split_once('.')?;
        let fresh = until.parse::<u64>().is_ok_and(|until| self.now() < until);
        let ours = self
            .0
            .signer
            .verify("form", &[&browser, &query, until], token);
        (fresh && ours).then_some(SubmittedForm { query, form })
    }

    /// Checks the user name and password of a form, within the rate limits.
    async fn check_password(
        &self,
        http_request: &RouteRequest,
        sent: &SubmittedForm,
    ) -> Result<Result<UserIdentity, SignInError>, Failure> {
        let LoginBackend::Password {
            users,
            verifier,
            rate,
            throttle,
        } = &self.0.sign_in
        else {
            return Ok(Err(SignInError::Wrong));
        };
        let name = sent.form.get("name").unwrap_or_default().trim().to_owned();
        let password = sent.form.get("password").unwrap_or_default();
        if name.is_empty() || name.len() > MAX_NAME || password.is_empty() {
            return Ok(Err(SignInError::Wrong));
        }
        // An HMAC instead of the name, because people type passwords into the wrong field and a plain hash
        // could be guessed offline.
        let name_mac = self.0.signer.sign("log", &[&name]);
        let cookie = self.device_cookie().read(http_request);
        let device = device::known(&self.0.signer, cookie.as_deref(), &name, self.now());
        let now = Instant::now();
        // Names are easy to make up, networks less so. A known browser has a bucket that nobody else can
        // use up.
        if device.is_none()
            && let Err(wait) = rate.take(http_request, now)
        {
            tracing::debug!("rate limit exceeded: sign-ins from one network");
            return Ok(Err(SignInError::NetworkTooOften(wait)));
        }
        if let Err(wait) = throttle.take(&name, device.as_ref(), now) {
            tracing::warn!(user = %name_mac, "rate limit exceeded: wrong passwords for one user name");
            return Ok(Err(SignInError::TooOften(wait)));
        }
        let (user_store, lookup_name) = (users.clone(), name.clone());
        let user = tokio::task::spawn_blocking(move || user_store.find(&lookup_name)).await??;
        let hash = user.as_ref().map(|user| user.password.as_str());
        let queue = match device {
            None => HashingQueue::Anybody,
            Some(_) => HashingQueue::KnownBrowser,
        };
        let Ok(right) = verifier.check(password, hash, queue).await else {
            // The password was not checked, so this was no guess and the token goes back.
            throttle.refund(&name, device.as_ref());
            return Ok(Err(SignInError::Busy));
        };
        let Some(user) = user.filter(|_| right) else {
            tracing::info!(user = %name_mac, "login failed: wrong user name or password");
            return Ok(Err(SignInError::Wrong));
        };
        throttle.refund(&name, device.as_ref());
        Ok(Ok(identity_of(&user)))
    }

    /// Stores an authorization code for the consented access and redirects back to the client with it.
    pub(crate) async fn allow(
        &self,
        request: AuthorizationRequest,
        person: UserIdentity,
    ) -> Result<RouteResponse, Failure> {
        let now = self.now();
        let code = AuthorizationCode {
            allowed: GrantedAccess {
                client: request.client.id.clone(),
                resource: request.resource.clone(),
                scopes: request.scopes.clone(),
                person,
                refreshes: request.client.refreshes,
                at: now,
                until: now + self.grant_lifetime(),
            },
            redirect: request.redirect.clone(),
            challenge: request.challenge.clone(),
            nonce: request.nonce.clone(),
            ends: now + CODE_LIFETIME,
            spent: None,
        };
        let client = KnownClient::from(request.client.as_ref());
        match self.0.grants.allow(code, client, now).await? {
            Ok(code) => {
                if request.client.has_document() {
                    self.0.documents.mark_known(&request.client.id);
                }
                let to = self.redirect_url(&request.redirect, &[("code", &code)], &request.state);
                Ok(sign_in_pages::redirect_page(&to))
            }
            Err(GrantError::TooMany) => {
                let why = "too many people sign in at once";
                self.refuse(
                    refuse_to_client(&request, "temporarily_unavailable", why),
                    RefusalStage::AfterForm,
                )
            }
            Err(_) => self.refuse(
                refuse_to_client(&request, "server_error", "try again"),
                RefusalStage::AfterForm,
            ),
        }
    }

    fn grant_lifetime(&self) -> u64 {
        match self.0.sign_in {
            LoginBackend::Password { .. } => GRANT_LIFETIME,
            LoginBackend::Upstream(_) => UPSTREAM_GRANT_LIFETIME,
        }
    }

    /// The redirect URI with the response parameters, the unchanged `state`, and `iss` (RFC 9207).
    fn redirect_url(
        &self,
        redirect: &str,
        params: &[(&str, &str)],
        state: &Option<String>,
    ) -> String {
        let mut values = params.to_vec();
        if let Some(state) = state {
            values.push(("state", state));
        }
        values.push(("iss", &self.0.issuer));
        with_query(redirect, &values)
    }

    /// The response to a refused authorization request.
    pub(crate) fn refuse(
        &self,
        refused: AuthorizationRefusal,
        stage: RefusalStage,
    ) -> Result<RouteResponse, Failure> {
        match refused {
            AuthorizationRefusal::Here(text) => Ok(sign_in_pages::error_page(&text).status(400)),
            AuthorizationRefusal::Failed(failure) => Err(failure),
            AuthorizationRefusal::Back {
                to,
                state,
                error,
                why,
            } => {
                let params = [("error", error), ("error_description", why)];
                let to = self.redirect_url(&to, &params, &state);
                Ok(match stage {
                    RefusalStage::Unseen => sign_in_pages::refused_page(error, why, &to),
                    RefusalStage::AfterForm => sign_in_pages::redirect_page(&to),
                    RefusalStage::AfterProvider => sign_in_pages::redirect(&to),
                })
            }
        }
    }
}

/// How far a request came before it was refused, which decides how the client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalStage {
    /// The user has seen no page of ours: an error page without a redirect, against open redirection.
    Unseen,
    /// The user submitted our form. A page forwards the browser: a redirect would be subject to the form's
    /// CSP (`form-action`), through however many hosts the client redirects the browser.
    AfterForm,
    /// The user consented here and came back from the upstream provider, so a plain redirect works.
    AfterProvider,
}

/// A refusal that is sent to the client of a validated request.
pub(crate) fn refuse_to_client(
    request: &AuthorizationRequest,
    error: &'static str,
    why: &'static str,
) -> AuthorizationRefusal {
    AuthorizationRefusal::Back {
        to: request.redirect.clone(),
        state: request.state.clone(),
        error,
        why,
    }
}

/// The identity of a password account. The operator entered its e-mail address, so it counts as verified.
pub(crate) fn identity_of(user: &UserAccount) -> UserIdentity {
    UserIdentity {
        subject: user.name.clone(),
        email: user.email.clone(),
        email_verified: user.email.is_some(),
        groups: user.groups.clone(),
        stamp: Some(crypto::digest(&user.password)),
    }
}
