//! Who is calling, and may they: the only place where a [`Caller`] is made.
//!
//! [`Auth`] is what a server is given to demand sign-in: `http::Options::auth`. It knows the addresses at
//! which people reach the server, the [issuers](Issuer) whose tokens count, the [API keys](ApiKeys), and
//! the scopes without which nobody gets in. From a request's headers it makes a [`Caller`] or a
//! [refusal](Denied), before the body is read.
//!
//! ```
//! use docent_mcp::{Auth, Demand, Issuer, LocalKeys};
//!
//! // Keys of an authorization server in this very process: no network. `replace` them to rotate.
//! let keys = LocalKeys::default();
//! keys.replace(&serde_json::json!({"keys": [{
//!     "kty": "OKP", "crv": "Ed25519", "kid": "2026-11", "alg": "EdDSA", "use": "sig",
//!     "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
//! }]}))?;
//! let auth = Auth::builder(["https://docs.example.org"])
//!     .issuer(Issuer::local("https://docs.example.org", keys))
//!     .scopes(["docs.read"])
//!     .demand(Demand::Always)
//!     .build()?;
//! # Ok::<(), docent_mcp::AuthError>(())
//! ```
//!
//! A token of such an issuer is a JWT with `typ` = `at+jwt`, a `kid`, `iss` = the issuer's name to the
//! letter, `sub`, `aud` = the `resource` that the client asked for, `exp`, `iat`, and `scope` as one text;
//! `client_id`, `groups`, `email` and other claims are found through [`Caller::claim`].
//! [`Issuer::unless`] is asked for every token, so that a revoked sign-in ends at once.

mod api_key;
pub(crate) mod auth_middleware;
mod caller;
mod certificate_authorities;
mod challenge;
mod discovery;
mod introspection;
mod issuer;
mod jwk;
mod jwks_cache;
mod jwt;
#[cfg(test)]
mod mint;
mod outbound_http;
pub mod server;
mod signed_link;
mod strict_json;

use std::collections::BTreeSet;
use std::sync::Arc;

use http::HeaderMap;
use tokio_util::sync::CancellationToken;

use crate::descriptor::Security;
pub use api_key::{ApiKeyGrant, ApiKeyInfo, ApiKeyStore};
pub use caller::Caller;
pub use certificate_authorities::{
    CertificateAuthorities, InvalidAuthorities, MAX_AUTHORITIES_BYTES,
};
pub(crate) use challenge::{PLACES, WELL_KNOWN};
pub use issuer::{Issuer, IssuerNetwork, IssuerTransport};
pub use jwk::{LocalKeys, SignatureAlgorithm};
pub use signed_link::LinkKey;

/// The most issuers of one server; each token names its own, so this bounds only what is configured.
pub(crate) const MAX_ISSUERS: usize = 16;
/// The most scopes that a server demands.
pub(crate) const MAX_SCOPES: usize = 32;

/// Of whom sign-in is demanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthRequirement {
    /// Of everybody: without a token there is a 401 for every request.
    #[default]
    Always,
    /// Of those who call a tool that needs it. A tool that says nothing about its
    /// [security](crate::Descriptor::security) does.
    ByTool,
    /// Of nobody: a tool that says nothing about its security may be called either way, and learns who
    /// calls. A token that is there must still be good.
    Optional,
}

/// Why an [`Auth`] could not be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// Not an address at which people could reach a server.
    #[error("`{0}` is not an address: use one such as `https://docs.example.org`")]
    Address(String),
    /// Nobody could ever sign in.
    #[error("nobody vouches for callers: name an issuer or add an API key")]
    Nobody,
    /// Two issuers of one name could not be told apart.
    #[error("the issuer `{0}` is there twice: name it once")]
    Twice(String),
    /// More than there is room for.
    #[error("there are too many {0}: leave some out")]
    TooMany(&'static str),
    /// A scope that no header can carry.
    #[error("`{0}` is not a scope: use letters, digits and signs without spaces or quotes")]
    Scope(String),
    /// Keys that cannot be used.
    #[error("the keys cannot be used: {0}")]
    Keys(&'static str),
    /// Two issuers who are asked about opaque tokens: each would see the other's.
    #[error("more than one issuer is to be asked about opaque tokens: name one")]
    Asked,
    /// A name that no API key can have.
    #[error("`{0}` is not a name for an API key: use 1 to 100 letters, digits and signs")]
    KeyName(String),
    /// The file of API keys cannot be read or written.
    #[error("the file of API keys `{0}` cannot be used: {1}")]
    KeyFile(String, String),
    /// The file of the secret that signs links cannot be read or made.
    #[error("the file of the secret for links `{0}` cannot be used: {1}")]
    LinkFile(String, String),
    /// The system gave no random bytes.
    #[error("the system gave no random bytes: try again")]
    Random,
}

/// Why a caller was not let in. It never holds any part of what was presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthRejection {
    /// Nothing was presented.
    Absent,
    /// What was presented does not count; the text says why and may be shown to anybody.
    Bad(&'static str),
    /// Whether it counts cannot be said yet: the issuer's keys are not here.
    Unready,
}

/// What a server demands of those who call, and how it finds out who they are. Clones are one.
#[derive(Clone)]
pub struct Auth(Arc<AuthInner>);

struct AuthInner {
    bases: Vec<String>,
    audiences: BTreeSet<String>,
    issuers: Vec<Issuer>,
    keys: Option<ApiKeyStore>,
    scopes: Vec<String>,
    demand: AuthRequirement,
    name: Option<String>,
    documentation: Option<String>,
}

impl Auth {
    /// Begins with the addresses under which people reach the server, without its endpoint's path; the
    /// first is the public one, which clients are told unless it is http, for use on this machine alone. Tokens must be meant for one of them.
    pub fn builder<S: Into<String>>(addresses: impl IntoIterator<Item = S>) -> AuthBuilder {
        AuthBuilder {
            bases: addresses.into_iter().map(Into::into).collect(),
            audiences: Vec::new(),
            issuers: Vec::new(),
            keys: None,
            scopes: Vec::new(),
            demand: AuthRequirement::default(),
            name: None,
            documentation: None,
        }
    }

    /// Who sent these headers. Without a token that is nobody, unless sign-in is demanded of everybody.
    ///
    /// # Errors
    /// When sign-in is demanded and nothing was presented, or what was presented does not count.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<Caller, AuthRejection> {
        auth_middleware::identify(self, headers).await
    }

    /// True when every issuer's keys are here, so that any good token can be told from a bad one.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.issuers.iter().all(Issuer::is_ready)
    }

    /// Keeps the keys of issuers elsewhere fresh until `stop` fires; begins at once, so that the first
    /// caller finds them here.
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

    /// Who has this token.
    async fn authenticate_token(&self, token: &str, now: u64) -> Result<Caller, AuthRejection> {
        let inner = &self.0;
        if jwt::is_jwt(token) {
            return jwt::verify(token, &inner.issuers, &inner.audiences, now).await;
        }
        let asked = inner
            .issuers
            .iter()
            .find_map(|one| Some((one, one.introspector()?)));
        let Some((issuer, asked)) = asked else {
            return Err(AuthRejection::Bad("the token is not a JWT"));
        };
        let name = issuer.name();
        let caller = asked.identify(name, token, &inner.audiences, now).await?;
        jwt::check_not_revoked(issuer, caller)
    }

    /// Of whom sign-in is demanded.
    #[must_use]
    pub fn requirement(&self) -> AuthRequirement {
        self.0.demand
    }

    /// What a tool that says nothing about its security means.
    fn default_security(&self) -> Vec<Security> {
        let signed_in = Security::OAuth2(self.0.scopes.clone());
        match self.0.demand {
            AuthRequirement::Always | AuthRequirement::ByTool => vec![signed_in],
            AuthRequirement::Optional => vec![Security::NoAuth, signed_in],
        }
    }

    /// The ways to call a tool, its own or the server's.
    pub(crate) fn security_schemes(&self, own: Option<&[Security]>) -> Vec<Security> {
        own.map_or_else(|| self.default_security(), <[Security]>::to_vec)
    }

    /// All scopes that somebody needs to call a tool, if this caller may not.
    pub(crate) fn missing_scope(
        &self,
        caller: &Caller,
        own: Option<&[Security]>,
    ) -> Option<MissingScope> {
        if caller.is_owner() {
            return None;
        }
        let mut needed = None;
        for way in self.security_schemes(own) {
            let Security::OAuth2(scopes) = way else {
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

    /// The server's scopes and then a tool's, each once.
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

/// What somebody needs who may not call a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingScope {
    pub(crate) scopes: Vec<String>,
    pub(crate) signed_in: bool,
}

impl MissingScope {
    /// What somebody lacks where nobody can sign in.
    pub(crate) const fn unknown() -> Self {
        Self {
            scopes: Vec::new(),
            signed_in: false,
        }
    }
}

/// Collects the parts of an [`Auth`].
pub struct AuthBuilder {
    bases: Vec<String>,
    audiences: Vec<String>,
    issuers: Vec<Issuer>,
    keys: Option<ApiKeyStore>,
    scopes: Vec<String>,
    demand: AuthRequirement,
    name: Option<String>,
    documentation: Option<String>,
}

impl AuthBuilder {
    /// Adds somebody whose tokens count. Clients are sent to the first.
    #[must_use]
    pub fn issuer(mut self, issuer: Issuer) -> Self {
        self.issuers.push(issuer);
        self
    }

    /// Takes API keys too, for clients that can send a header.
    #[must_use]
    pub fn keys(mut self, keys: ApiKeyStore) -> Self {
        self.keys = Some(keys);
        self
    }

    /// More names that tokens may be meant for, where a provider does not know our address.
    #[must_use]
    pub fn audiences<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.audiences.extend(names.into_iter().map(Into::into));
        self
    }

    /// The scopes without which nobody who signs in gets in.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Of whom sign-in is demanded.
    #[must_use]
    pub const fn requirement(mut self, demand: AuthRequirement) -> Self {
        self.demand = demand;
        self
    }

    /// What people call the server; hosts may show it when they ask to sign in.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A page about the server for people.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Checks that somebody could sign in.
    ///
    /// # Errors
    /// The first part that makes no sense, with what to change.
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
        // Nobody may pass for an API key.
        let mut names = BTreeSet::from([api_key::ISSUER]);
        for issuer in &self.issuers {
            if !names.insert(issuer.name()) {
                return Err(AuthError::Twice(issuer.name().to_owned()));
            }
        }
        let asked = self
            .issuers
            .iter()
            .filter(|issuer| issuer.introspector().is_some());
        if asked.count() > 1 {
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
            demand: self.demand,
            name: self.name,
            documentation: self.documentation,
        })))
    }
}

/// A scope as RFC 6749 spells it, so that it can stand in a quoted list.
pub(crate) fn is_scope(text: &str) -> bool {
    let plain = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    (1..=256).contains(&text.len()) && text.bytes().all(plain)
}

#[cfg(test)]
mod tests;
