//! `/authorize`: a client's request into a page that asks the person, and their answer into one for the client.

use tokio::time::Instant;

use super::authorization_request::{AuthorizationRefusal, AuthorizationRequest};
use super::client_registry::KnownClient;
use super::cookie::BrowserCookie;
use super::device::{self, KNOWN_FOR};
use super::form_params::with_query;
use super::grant_store::{
    AuthorizationCode, CODE_FOR, GrantError, GrantedAccess, LIVES_FOR, UPSTREAM_LIVES_FOR,
    UserIdentity,
};
use super::password::HashLane;
use super::sign_in_pages::{self, ConsentPage, SignInError};
use super::token_endpoint::parse_form_body;
use super::user_store::UserAccount;
use super::{AuthorizationServer, LoginBackend, crypto};
use crate::error::Failure;
use crate::http::{RouteRequest, RouteResponse};

/// How long a form can be sent, in seconds: as long as somebody may look for their password.
pub(crate) const FORM_FOR: u64 = 900;
/// The most bytes of a name that is tried.
const MAX_NAME: usize = 1_024;

/// A form that was sent: what it was about, and who sends it.
pub(crate) struct SubmittedForm {
    pub(crate) query: String,
    pub(crate) form: super::form_params::FormParams,
}

impl AuthorizationServer {
    /// `GET /authorize`.
    pub(super) async fn show_consent(self, visit: RouteRequest) -> Result<RouteResponse, Failure> {
        match self.parse_authorization_request(visit.query()).await {
            Ok(request) => self.consent_page(&visit, visit.query(), &request, None),
            Err(refused) => self.refuse(refused, RefusalStage::Unseen),
        }
    }

    /// `POST /authorize`.
    pub(super) async fn submit_consent(
        self,
        visit: RouteRequest,
    ) -> Result<RouteResponse, Failure> {
        let Some(sent) = self.submitted_form(&visit) else {
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
            LoginBackend::Password { .. } => match self.check_password(&visit, &sent).await? {
                Ok(person) => {
                    let device = self.remembered_device(&visit, &person.subject)?;
                    let page = self.allow(request, person).await?;
                    Ok(page.header("set-cookie", device))
                }
                Err(trouble) => self.consent_page(&visit, &sent.query, &request, Some(trouble)),
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

    /// The header by which this browser is known again, for `name`.
    fn remembered_device(&self, visit: &RouteRequest, name: &str) -> Result<String, Failure> {
        let cookie = self.device_cookie();
        let before = cookie.read(visit);
        let value = device::remembered(&self.0.seal, before.as_deref(), name, self.now())?;
        Ok(cookie.set(&value, KNOWN_FOR))
    }

    /// The page that asks. Its form holds the request itself, sealed to this browser and this hour.
    fn consent_page(
        &self,
        visit: &RouteRequest,
        query: &str,
        request: &AuthorizationRequest,
        trouble: Option<SignInError>,
    ) -> Result<RouteResponse, Failure> {
        let browser = match self.cookie().read(visit).filter(|value| value.len() == 43) {
            Some(browser) => browser,
            None => crypto::secret()?,
        };
        let until = (self.now() + FORM_FOR).to_string();
        let token = self.0.seal.sign("form", &[&browser, query, &until]);
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
            trouble,
        });
        Ok(page.header("set-cookie", self.cookie().set(&browser, FORM_FOR)))
    }

    /// The form, if it is one of ours, still fresh, and sent by the browser that was given it.
    fn submitted_form(&self, visit: &RouteRequest) -> Option<SubmittedForm> {
        // Browsers say where a form was; whoever says nothing still needs the cookie.
        if !matches!(
            visit.header("sec-fetch-site"),
            None | Some("same-origin" | "none")
        ) {
            return None;
        }
        let form = parse_form_body(visit).ok()?;
        let browser = self.cookie().read(visit)?;
        let query = form.get("request")?.to_owned();
        let (until, token) = form.get("token")?.split_once('.')?;
        let fresh = until.parse::<u64>().is_ok_and(|until| self.now() < until);
        let ours = self
            .0
            .seal
            .verify("form", &[&browser, &query, until], token);
        (fresh && ours).then_some(SubmittedForm { query, form })
    }

    /// Who sent the form, by their password.
    async fn check_password(
        &self,
        visit: &RouteRequest,
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
        // Keyed, because people type passwords into the wrong field, and a plain hash can be guessed on.
        let shown = self.0.seal.sign("log", &[&name]);
        let cookie = self.device_cookie().read(visit);
        let device = device::known(&self.0.seal, cookie.as_deref(), &name, self.now());
        let now = Instant::now();
        // Names can be made up, networks less so. A known browser has counters that nobody else uses up.
        if device.is_none()
            && let Err(wait) = rate.take(visit, now)
        {
            tracing::debug!("too many sign-ins from one network");
            return Ok(Err(SignInError::NetworkTooOften(wait)));
        }
        if let Err(wait) = throttle.take(&name, device.as_ref(), now) {
            tracing::warn!(user = %shown, "too many wrong passwords");
            return Ok(Err(SignInError::TooOften(wait)));
        }
        let (list, asked) = (users.clone(), name.clone());
        let user = tokio::task::spawn_blocking(move || list.find(&asked)).await??;
        let hash = user.as_ref().map(|user| user.password.as_str());
        let lane = match device {
            None => HashLane::Anybody,
            Some(_) => HashLane::KnownBrowser,
        };
        let Ok(right) = verifier.check(password, hash, lane).await else {
            // Nobody looked at the password, so this was no guess.
            throttle.refund(&name, device.as_ref());
            return Ok(Err(SignInError::Busy));
        };
        let Some(user) = user.filter(|_| right) else {
            tracing::info!(user = %shown, "a wrong name or password");
            return Ok(Err(SignInError::Wrong));
        };
        throttle.refund(&name, device.as_ref());
        Ok(Ok(identity_of(&user)))
    }

    /// Keeps what was allowed and hands the client its code.
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
            ends: now + CODE_FOR,
            spent: None,
        };
        let client = KnownClient::from(request.client.as_ref());
        match self.0.grants.allow(code, client, now).await? {
            Ok(code) => {
                if request.client.has_document() {
                    self.0.documents.trust(&request.client.id);
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
            LoginBackend::Password { .. } => LIVES_FOR,
            LoginBackend::Upstream(_) => UPSTREAM_LIVES_FOR,
        }
    }

    /// The address of an answer: what it says, the state as it came, and who says it.
    fn redirect_url(
        &self,
        redirect: &str,
        says: &[(&str, &str)],
        state: &Option<String>,
    ) -> String {
        let mut values = says.to_vec();
        if let Some(state) = state {
            values.push(("state", state));
        }
        values.push(("iss", &self.0.issuer));
        with_query(redirect, &values)
    }

    /// The answer to a request that is not granted.
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
                let says = [("error", error), ("error_description", why)];
                let to = self.redirect_url(&to, &says, &state);
                Ok(match stage {
                    RefusalStage::Unseen => sign_in_pages::refused_page(error, why, &to),
                    RefusalStage::AfterForm => sign_in_pages::redirect_page(&to),
                    RefusalStage::AfterProvider => sign_in_pages::redirect(&to),
                })
            }
        }
    }
}

/// How far a request came before it was refused, which decides how its client learns of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalStage {
    /// Nobody has seen a page of ours: the person is told, and nobody is sent anywhere.
    Unseen,
    /// A person sent our form. A page hands the answer over: a redirect would be held to the form's policy, through
    /// however many hosts the client sends the browser on.
    AfterForm,
    /// A person consented here and came back from the provider.
    AfterProvider,
}

/// A refusal that goes back to the client of a request.
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

/// What tokens tell about somebody with a password. The owner wrote the address down, so it counts as verified.
pub(crate) fn identity_of(user: &UserAccount) -> UserIdentity {
    UserIdentity {
        subject: user.name.clone(),
        email: user.email.clone(),
        email_verified: user.email.is_some(),
        groups: user.groups.clone(),
        stamp: Some(crypto::digest(&user.password)),
    }
}
