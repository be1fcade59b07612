//! Authentication of MCP requests (OAuth 2.0 resource server): the only module that creates a [`Caller`].
//!
//! [`Auth`] is the configuration that turns authentication on (`http::HttpOptions::auth`). It holds the
//! server's base URLs, the trusted [issuers](Issuer), the [API keys](ApiKeyStore), and the scopes that
//! every caller needs. From a request's headers it produces a [`Caller`] or an [`AuthRejection`], before
//! the body is read.
//!
//! ```
//! use docent_mcp::{Auth, AuthRequirement, Issuer, LocalKeys};
//!
//! // Keys of an authorization server in the same process: no network. Call `replace` to rotate them.
//! let keys = LocalKeys::default();
//! keys.replace(&serde_json::json!({"keys": [{
//!     "kty": "OKP", "crv": "Ed25519", "kid": "2026-11", "alg": "EdDSA", "use": "sig",
//!     "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
//! }]}))?;
//! let auth = Auth::builder(["https://docs.example.org"])
//!     .issuer(Issuer::local("https://docs.example.org", keys))
//!     .scopes(["docs.read"])
//!     .requirement(AuthRequirement::Always)
//!     .build()?;
//! # Ok::<(), docent_mcp::AuthError>(())
//! ```
//!
//! An access token of such an issuer is a JWT (RFC 9068) with the header members `typ` = `at+jwt` and
//! `kid`, and the claims `iss` (the issuer's exact name), `sub`, `aud` (the `resource` that the client
//! requested, RFC 8707), `exp`, `iat`, and `scope` as one space-separated string. `client_id`, `groups`,
//! `email` and other claims are read with [`Caller::claim`]. [`Issuer::reject_if`] runs for every token, so
//! that a revoked sign-in ends at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::HeaderMap;
use tokio_util::sync::CancellationToken;

use super::api_key::ApiKeyStore;
use super::caller::API_KEY_ISSUER;
use super::{Caller, Issuer, MissingScope, challenge, credential, jwt};
use crate::security::Security;

/// The maximum number of configured issuers. A token names its own issuer, so this bounds configuration
/// only.
pub(crate) const MAX_ISSUERS: usize = 16;
/// The maximum number of scopes that the server requires of every caller.
pub(crate) const MAX_SCOPES: usize = 32;

/// Which requests need authentication.
///
/// ```rust
/// use docent_mcp::{Auth, AuthRequirement, Issuer, LocalKeys};
///
/// let issuer = Issuer::local("https://id.example.org", LocalKeys::default());
/// let auth = Auth::builder(["https://docs.example.org"])
///     .issuer(issuer)
///     // Only tools that declare `Security::NoAuth` can be called anonymously.
///     .requirement(AuthRequirement::ByTool)
///     .build()?;
/// assert_eq!(auth.requirement(), AuthRequirement::ByTool);
/// # Ok::<(), docent_mcp::AuthError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthRequirement {
    /// Every request: one without a credential gets a 401.
    #[default]
    Always,
    /// Only calls of tools that need it. A tool that declares no [security](crate::ToolDescriptor::security)
    /// scheme needs it.
    ByTool,
    /// No request: a tool that declares no security scheme accepts both anonymous and authenticated calls,
    /// and learns who calls. A credential that is sent must still be valid.
    Optional,
}

/// Why an [`Auth`] could not be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// A base URL that is not an absolute http or https URL.
    #[error("`{0}` is not an address: use one such as `https://docs.example.org`")]
    Address(String),
    /// Neither an issuer nor an API key is configured, so that nobody could authenticate.
    #[error("no issuer and no API keys are configured: name an issuer or add an API key")]
    Nobody,
    /// Two issuers have the same name, so that their tokens could not be told apart.
    #[error("duplicate issuer `{0}`: name it once")]
    Twice(String),
    /// A configured list exceeds its limit; the text names the list.
    #[error("too many {0}: leave some out")]
    TooMany(&'static str),
    /// A scope with a character that RFC 6749 does not allow in a scope token.
    #[error("`{0}` is not a scope: use letters, digits and signs without spaces or quotes")]
    Scope(String),
    /// A JSON Web Key Set without a usable verification key.
    #[error("invalid key set: {0}")]
    Keys(&'static str),
    /// More than one issuer uses token introspection. An opaque token names no issuer, so that each
    /// introspection endpoint would see the tokens of the other issuers.
    #[error("more than one issuer uses token introspection: name one")]
    Asked,
    /// An API key's name that is empty, too long, or has control characters.
    #[error("`{0}` is not a name for an API key: use 1 to 100 letters, digits and signs")]
    KeyName(String),
    /// The file of API keys cannot be read or written.
    #[error("cannot use the API key file `{0}`: {1}")]
    KeyFile(String, String),
    /// The file with the link signing secret cannot be read or created.
    #[error("cannot use the link secret file `{0}`: {1}")]
    LinkFile(String, String),
    /// The operating system's random number generator failed.
    #[error("no random bytes from the operating system: try again")]
    Random,
}

/// Why a request was not authenticated. It never holds any part of the credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthRejection {
    /// The request carried no credential.
    Absent,
    /// The credential is invalid. The text is the `error_description` of the challenge and safe to show to
    /// anybody.
    Bad(&'static str),
    /// The credential cannot be verified yet, because the issuer's keys have not been fetched. It becomes a
    /// 503 with `Retry-After`.
    Unready,
}

/// The server's authentication settings: what it requires of callers, and whom it trusts to identify them.
/// A clone shares the same state.
///
/// ```rust
/// use docent_mcp::http::HttpOptions;
/// use docent_mcp::{Auth, Issuer, IssuerNetwork};
///
/// let auth = Auth::builder(["https://docs.example.org"])
///     .issuer(Issuer::remote("https://login.example.org", None, IssuerNetwork::Public))
///     .scopes(["docs.read"])
///     .build()?;
/// let options = HttpOptions { auth: Some(auth), ..HttpOptions::default() };
/// # let _ = options;
/// # Ok::<(), docent_mcp::AuthError>(())
/// ```
#[derive(Clone)]
pub struct Auth(pub(super) Arc<AuthInner>);

/// The settings that all clones of an [`Auth`] share.
pub(super) struct AuthInner {
    pub(super) bases: Vec<String>,
    pub(super) audiences: BTreeSet<String>,
    pub(super) issuers: Vec<Issuer>,
    pub(super) keys: Option<ApiKeyStore>,
    pub(super) scopes: Vec<String>,
    pub(super) requirement: AuthRequirement,
    pub(super) name: Option<String>,
    pub(super) documentation: Option<String>,
}

impl Auth {
    /// Starts with the server's base URLs, each without the endpoint's path. The first is the public one,
    /// which the metadata names; if it is http (local use only), the metadata names the base URL that the
    /// client used. A token's audience must match one of them.
    pub fn builder<S: Into<String>>(addresses: impl IntoIterator<Item = S>) -> AuthBuilder {
        AuthBuilder {
            bases: addresses.into_iter().map(Into::into).collect(),
            audiences: Vec::new(),
            issuers: Vec::new(),
            keys: None,
            scopes: Vec::new(),
            requirement: AuthRequirement::default(),
            name: None,
            documentation: None,
        }
    }

    /// Authenticates a request by its headers. A request without a credential is anonymous, unless
    /// [`AuthRequirement::Always`] is set.
    ///
    /// # Errors
    /// When authentication is required and there is no credential, or when the credential is invalid.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<Caller, AuthRejection> {
        credential::identify(self, headers).await
    }

    /// True when the keys of every issuer are available, so that any token can be verified. Readiness
    /// checks use it.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.issuers.iter().all(Issuer::is_ready)
    }

    /// Keeps the cached key sets of remote issuers fresh until `stop` fires. The first fetch starts at
    /// once, so that the first caller does not wait for it.
    pub(crate) fn keep_keys_fresh(&self, stop: &CancellationToken) {
        for keys in self.0.issuers.iter().filter_map(Issuer::jwks_cache) {
            let stop = stop.clone();
            tokio::spawn(async move {
                loop {
                    tokio::select! {
                        () = keys.refresh() => {}
                        () = stop.cancelled() => return,
                    }
                    tokio::select! {
                        () = tokio::time::sleep(keys.next_refresh()) => {}
                        () = stop.cancelled() => return,
                    }
                }
            });
        }
    }

    /// Verifies a bearer token: a JWT by its issuer's keys, anything else by token introspection.
    pub(super) async fn verify_token(
        &self,
        token: &str,
        now: u64,
    ) -> Result<Caller, AuthRejection> {
        let inner = &self.0;
        if jwt::is_jwt(token) {
            return jwt::verify_access_token(token, &inner.issuers, &inner.audiences, now).await;
        }
        let introspector = inner
            .issuers
            .iter()
            .find_map(|one| Some((one, one.introspector()?)));
        let Some((issuer, introspector)) = introspector else {
            return Err(AuthRejection::Bad("the token is not a JWT"));
        };
        let name = issuer.name();
        let caller = introspector
            .verify(name, token, &inner.audiences, now)
            .await?;
        jwt::check_not_revoked(issuer, caller)
    }

    /// Which requests need authentication.
    #[must_use]
    pub fn requirement(&self) -> AuthRequirement {
        self.0.requirement
    }

    /// The security schemes of a tool that declares none.
    fn default_security(&self) -> Vec<Security> {
        let signed_in = Security::OAuth2(self.0.scopes.clone());
        match self.0.requirement {
            AuthRequirement::Always | AuthRequirement::ByTool => vec![signed_in],
            AuthRequirement::Optional => vec![Security::NoAuth, signed_in],
        }
    }

    /// The security schemes that apply to a tool: its own, or else the server's default.
    pub(crate) fn security_schemes(&self, own: Option<&[Security]>) -> Vec<Security> {
        own.map_or_else(|| self.default_security(), <[Security]>::to_vec)
    }

    /// The scopes that a call of the tool needs if this caller lacks one of them; `None` when the call is
    /// allowed.
    pub(crate) fn missing_scope(
        &self,
        caller: &Caller,
        own: Option<&[Security]>,
    ) -> Option<MissingScope> {
        if caller.is_owner() {
            return None;
        }
        let mut needed = None;
        for scheme in self.security_schemes(own) {
            let Security::OAuth2(scopes) = scheme else {
                return None;
            };
            let all = self.with_base_scopes(&scopes);
            if !caller.is_anonymous() && all.iter().all(|scope| caller.has_scope(scope)) {
                return None;
            }
            needed.get_or_insert(all);
        }
        Some(MissingScope {
            scopes: needed.unwrap_or_default(),
            signed_in: !caller.is_anonymous(),
        })
    }

    /// The server's required scopes followed by the tool's, without duplicates.
    fn with_base_scopes(&self, scopes: &[String]) -> Vec<String> {
        let mut all = self.0.scopes.clone();
        for scope in scopes {
            if !all.contains(scope) {
                all.push(scope.clone());
            }
        }
        all
    }
}

/// Builds an [`Auth`]; [`build`](Self::build) checks the parts together.
///
/// ```rust
/// use docent_mcp::{Auth, AuthRequirement, Issuer, IssuerNetwork};
///
/// let auth = Auth::builder(["https://docs.example.org"])
///     .issuer(Issuer::remote("https://login.example.org", None, IssuerNetwork::Public))
///     .requirement(AuthRequirement::ByTool)
///     .name("Harbour archive")
///     .documentation("https://docs.example.org/help")
///     .build()?;
/// assert_eq!(auth.requirement(), AuthRequirement::ByTool);
/// # Ok::<(), docent_mcp::AuthError>(())
/// ```
pub struct AuthBuilder {
    bases: Vec<String>,
    audiences: Vec<String>,
    issuers: Vec<Issuer>,
    keys: Option<ApiKeyStore>,
    scopes: Vec<String>,
    requirement: AuthRequirement,
    name: Option<String>,
    documentation: Option<String>,
}

impl AuthBuilder {
    /// Adds a trusted issuer. The metadata lists issuers in this order, and clients use the first.
    #[must_use]
    pub fn issuer(mut self, issuer: Issuer) -> Self {
        self.issuers.push(issuer);
        self
    }

    /// Accepts API keys too, for clients that can send a header but cannot run an OAuth flow.
    #[must_use]
    pub fn keys(mut self, keys: ApiKeyStore) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Adds accepted values of `aud`, for providers that do not issue tokens for the server's URL (RFC
    /// 8707).
    #[must_use]
    pub fn audiences<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.audiences.extend(names.into_iter().map(Into::into));
        self
    }

    /// The scopes that every authenticated caller needs.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Sets which requests need authentication.
    #[must_use]
    pub const fn requirement(mut self, requirement: AuthRequirement) -> Self {
        self.requirement = requirement;
        self
    }

    /// The `resource_name` of the metadata (RFC 9728); hosts may show it in their sign-in dialog.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The `resource_documentation` of the metadata: the URL of a page about the server for people.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Validates the parts.
    ///
    /// # Errors
    /// The first invalid part, with what to change.
    pub fn build(self) -> Result<Auth, AuthError> {
        if self.issuers.is_empty() && self.keys.is_none() {
            return Err(AuthError::Nobody);
        }
        if self.issuers.len() > MAX_ISSUERS {
            return Err(AuthError::TooMany("issuers"));
        }
        if self.scopes.len() > MAX_SCOPES {
            return Err(AuthError::TooMany("scopes"));
        }
        // The pseudo-issuer of API keys is reserved, so that no issuer's callers can pass for API keys.
        let mut names = BTreeSet::from([API_KEY_ISSUER]);
        for issuer in &self.issuers {
            if !names.insert(issuer.name()) {
                return Err(AuthError::Twice(issuer.name().to_owned()));
            }
        }
        let introspecting = self
            .issuers
            .iter()
            .filter(|issuer| issuer.introspector().is_some());
        if introspecting.count() > 1 {
            return Err(AuthError::Asked);
        }
        if let Some(bad) = self.scopes.iter().find(|scope| !is_scope(scope)) {
            return Err(AuthError::Scope(bad.clone()));
        }
        let bases = self.bases.iter().map(|base| challenge::base_url(base));
        let bases: Vec<String> = bases.collect::<Result<_, _>>()?;
        if bases.is_empty() {
            return Err(AuthError::Address(String::new()));
        }
        let audiences = bases
            .iter()
            .flat_map(|base| challenge::audience_urls(base))
            .chain(self.audiences.iter().map(|name| challenge::canonical(name)))
            .collect();
        Ok(Auth(Arc::new(AuthInner {
            bases,
            audiences,
            issuers: self.issuers,
            keys: self.keys,
            scopes: self.scopes,
            requirement: self.requirement,
            name: self.name,
            documentation: self.documentation,
        })))
    }
}

/// True for a scope token by the grammar of RFC 6749 (section 3.3), which can stand inside a quoted header
/// parameter.
#[must_use]
pub fn is_scope(text: &str) -> bool {
    let plain = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    (1..=256).contains(&text.len()) && text.bytes().all(plain)
}

#[cfg(test)]
mod tests;
