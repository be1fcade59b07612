//! Parses and validates an authorization request (RFC 6749, OAuth 2.1) into an [`AuthorizationRequest`] or
//! a refusal.
//!
//! Until client and redirect URI are validated, an error is shown to the user only, because redirecting
//! would make an open redirector. From then on the client may get it too, once the user has seen a page.

use std::sync::Arc;

use docent_mcp::Failure;
use docent_mcp::oauth::canonical_url;

use super::AuthorizationServer;
use super::client_documents::DocumentError;
use super::crypto;
use super::form_params::{FormError, FormParams};
use super::oauth_client::{OAuthClient, is_document_url};

/// The maximum length of `state` and of `nonce`.
const MAX_STATE: usize = 2_048;
/// The maximum length of `login_hint`; the form limits user names likewise.
const MAX_HINT: usize = 200;
/// The length of an S256 code challenge: 32 bytes in base64url.
const CHALLENGE_CHARS: usize = 43;

/// An authorization request whose parameters have all been validated.
#[derive(Debug, Clone)]
pub(crate) struct AuthorizationRequest {
    pub(crate) client: Arc<OAuthClient>,
    pub(crate) redirect: String,
    pub(crate) state: Option<String>,
    pub(crate) challenge: String,
    pub(crate) resource: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) nonce: Option<String>,
    /// The `login_hint`: the user name that the client expects.
    pub(crate) hint: Option<String>,
}

/// Why an authorization request is refused, and who is told.
#[derive(Debug)]
pub(crate) enum AuthorizationRefusal {
    /// Shown to the user only, because there is no redirect URI that can be trusted.
    Here(String),
    /// An OAuth error for the client, sent to its redirect URI through the user's browser.
    Back {
        to: String,
        state: Option<String>,
        error: &'static str,
        why: &'static str,
    },
    /// An internal failure of the server.
    Failed(Failure),
}

impl From<Failure> for AuthorizationRefusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<FormError> for AuthorizationRefusal {
    fn from(error: FormError) -> Self {
        Self::Here(error.to_string())
    }
}

impl AuthorizationServer {
    /// Validates a request from the query of `GET /authorize`.
    pub(crate) async fn parse_authorization_request(
        &self,
        query: &str,
    ) -> Result<AuthorizationRequest, AuthorizationRefusal> {
        let form = FormParams::parse(query.as_bytes())?;
        let client = self.requesting_client(&form).await?;
        let redirect = self.redirect(&form, &client)?;
        let state = form.get("state").map(str::to_owned);
        let back = |error, why| AuthorizationRefusal::Back {
            to: redirect.clone(),
            // A `state` over the limit is not sent back either.
            state: state.clone().filter(|state| state.len() <= MAX_STATE),
            error,
            why,
        };
        check_shape(&form).map_err(|(error, why)| back(error, why))?;
        let challenge = form.get("code_challenge").unwrap_or_default().to_owned();
        let resource = self.resource(form.get("resource")).ok_or_else(|| {
            back(
                "invalid_target",
                "`resource` is not an address of this server",
            )
        })?;
        let scopes = self
            .scopes(form.get("scope"))
            .ok_or_else(|| back("invalid_scope", "none of these scopes can be granted"))?;
        Ok(AuthorizationRequest {
            nonce: form.get("nonce").map(str::to_owned),
            hint: form.get("login_hint").and_then(login_hint),
            client,
            redirect,
            state,
            challenge,
            resource,
            scopes,
        })
    }

    async fn requesting_client(
        &self,
        form: &FormParams,
    ) -> Result<Arc<OAuthClient>, AuthorizationRefusal> {
        let id = form.get("client_id").ok_or_else(|| {
            AuthorizationRefusal::Here("the app did not say which one it is".to_owned())
        })?;
        if is_document_url(id) {
            let found = self.0.documents.client(id, self.now()).await;
            return found.map_err(|error| match error {
                DocumentError::Busy => AuthorizationRefusal::Here(
                    "too many apps are signing in at once; try again in a moment".to_owned(),
                ),
                error => {
                    AuthorizationRefusal::Here(format!("the app cannot be identified: {error}"))
                }
            });
        }
        let found = self.0.registry.find(id, self.now()).await;
        let found = found.map_err(|error| AuthorizationRefusal::Failed(error.into()))?;
        found.map(Arc::new).ok_or_else(|| {
            AuthorizationRefusal::Here(
                "the app is not known here (any more): remove this connection in the app and add it again"
                    .to_owned(),
            )
        })
    }

    fn redirect(
        &self,
        form: &FormParams,
        client: &OAuthClient,
    ) -> Result<String, AuthorizationRefusal> {
        let bad = |text: &str| AuthorizationRefusal::Here(text.to_owned());
        match form.get("redirect_uri") {
            Some(requested) if client.allows_redirect(requested) => Ok(requested.to_owned()),
            Some(_) => Err(bad(
                "the app wants its answer at an address that it did not register",
            )),
            None => Err(bad("the app did not say where its answer should go")),
        }
    }

    /// The requested resource in canonical form (RFC 8707), if it is one of ours; the MCP endpoint when
    /// there is none.
    pub(crate) fn resource(&self, requested: Option<&str>) -> Option<String> {
        let Some(requested) = requested else {
            return Some(format!("{}/mcp", canonical_url(&self.0.issuer)));
        };
        Some(canonical_url(requested)).filter(|requested| self.0.resources.contains(requested))
    }

    /// The granted subset of the requested scopes, in our order. Unknown scopes are ignored, as RFC 6749
    /// (section 3.3) allows; `None` when none is left.
    pub(crate) fn scopes(&self, requested: Option<&str>) -> Option<Vec<String>> {
        let Some(requested) = requested else {
            return Some(vec![self.0.scope.clone()]);
        };
        let requested: Vec<_> = requested.split(' ').collect();
        let granted: Vec<_> = self
            .all_scopes()
            .into_iter()
            .filter(|known| requested.contains(&known.as_str()))
            .collect();
        (!granted.is_empty()).then_some(granted)
    }
}

/// Sanitizes the `login_hint`. It is only a convenience, so an unusable one is no error.
fn login_hint(text: &str) -> Option<String> {
    let text = text.trim();
    let hidden = |c: char| c.is_control() || docent_unicode::is_invisible(c);
    let fits = (1..=MAX_HINT).contains(&text.len()) && !text.chars().any(hidden);
    fits.then(|| text.to_owned())
}

type OAuthErrorText = (&'static str, &'static str);

/// Validates the parameters that need no other state: PKCE with S256, the response type and mode, lengths.
fn check_shape(form: &FormParams) -> Result<(), OAuthErrorText> {
    if form
        .get("state")
        .is_some_and(|state| state.len() > MAX_STATE)
    {
        return Err(("invalid_request", "`state` is too long"));
    }
    if form
        .get("nonce")
        .is_some_and(|nonce| nonce.len() > MAX_STATE)
    {
        return Err(("invalid_request", "`nonce` is too long"));
    }
    if form.get("request").is_some() {
        return Err(("request_not_supported", "send the parameters themselves"));
    }
    if form.get("request_uri").is_some() {
        return Err((
            "request_uri_not_supported",
            "send the parameters themselves",
        ));
    }
    if form.get("response_type") != Some("code") {
        return Err((
            "unsupported_response_type",
            "`response_type` must be `code`",
        ));
    }
    if form
        .get("response_mode")
        .is_some_and(|mode| mode != "query")
    {
        return Err(("invalid_request", "`response_mode` must be `query`"));
    }
    if form.get("code_challenge_method") != Some("S256") {
        return Err(("invalid_request", "`code_challenge_method` must be `S256`"));
    }
    let challenge = form.get("code_challenge").unwrap_or_default();
    if challenge.len() != CHALLENGE_CHARS || crypto::decode(challenge).is_none() {
        return Err((
            "invalid_request",
            "`code_challenge` is not an S256 challenge",
        ));
    }
    // There are no login sessions, so `prompt=none` can never succeed.
    let silent = form.get("prompt").unwrap_or_default();
    if silent.split(' ').any(|word| word == "none") {
        return Err(("login_required", "the user has to sign in"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_a_name_or_nothing() {
        let longest = "n".repeat(MAX_HINT);
        for good in ["anna", "anna@port.example", "Zoë", longest.as_str()] {
            assert_eq!(login_hint(&format!(" {good} ")).as_deref(), Some(good));
        }
        for bad in [
            "",
            "  ",
            "a\nb",
            "a\u{0}",
            "an\u{2800}na",
            &format!("{longest}n"),
        ] {
            assert_eq!(login_hint(bad), None, "{bad}");
        }
    }
}
