//! Somebody whose tokens count: a name, keys, and what is demanded of the tokens.

use std::sync::Arc;
use std::time::Duration;

use super::introspection::Introspection;
use super::jwk::{Algorithm, Key, LocalKeys};
use super::keyring::Keyring;
use super::web::{Fetch, http_fetcher};
use super::{Authorities, Caller, Denied};

type Unless = Arc<dyn Fn(&Caller) -> bool + Send + Sync>;

/// Which addresses an issuer may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// Those of the open internet, over https.
    #[default]
    Public,
    /// Those of private networks too, and http on this machine.
    Private,
}

/// How issuers are reached: at which addresses, and who vouches for those.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// Which addresses they may have.
    pub network: Network,
    /// The authorities whose certificates count, and no others; without any, those that browsers trust.
    pub authorities: Option<Authorities>,
}

impl From<Network> for Reach {
    fn from(network: Network) -> Self {
        Self {
            network,
            authorities: None,
        }
    }
}

/// Somebody whose tokens count. The name is the issuer's address, to the letter as it stands in `iss`.
#[derive(Clone)]
pub struct Issuer {
    name: String,
    keys: Keys,
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) access_tokens_only: bool,
    unless: Option<Unless>,
}

/// How an issuer's tokens are checked.
#[derive(Clone)]
enum Keys {
    /// By keys held in this process.
    Local(LocalKeys),
    /// By keys that the issuer publishes.
    Remote(Arc<Keyring>),
    /// By asking the issuer.
    Asked(Arc<Introspection>),
}

impl Issuer {
    fn new(name: String, keys: Keys) -> Self {
        Self {
            name,
            keys,
            algorithms: Algorithm::USUAL.to_vec(),
            access_tokens_only: false,
            unless: None,
        }
    }

    /// An issuer in this process, whose keys need no network. Its tokens must say that they are access
    /// tokens (`typ` = `at+jwt`).
    #[must_use]
    pub fn local(name: impl Into<String>, keys: LocalKeys) -> Self {
        Self::new(name.into(), Keys::Local(keys)).access_tokens_only(true)
    }

    /// An issuer that publishes its keys: at `jwks_uri`, or where its metadata says.
    #[must_use]
    pub fn remote(
        name: impl Into<String>,
        jwks_uri: Option<String>,
        reach: impl Into<Reach>,
    ) -> Self {
        Self::with_fetcher(name.into(), jwks_uri, http_fetcher(&reach.into()))
    }

    pub(crate) fn with_fetcher(
        name: String,
        jwks_uri: Option<String>,
        web: Arc<dyn Fetch>,
    ) -> Self {
        let keys = Keyring::new(&name, jwks_uri, web);
        Self::new(name, Keys::Remote(Arc::new(keys)))
    }

    /// An issuer of opaque tokens, who is asked about each at `endpoint` (RFC 7662), where we are known as
    /// `client` with a secret.
    #[must_use]
    pub fn introspected(
        name: impl Into<String>,
        endpoint: &str,
        client: (&str, &str),
        reach: impl Into<Reach>,
    ) -> Self {
        Self::with_introspector(name.into(), endpoint, client, http_fetcher(&reach.into()))
    }

    pub(crate) fn with_introspector(
        name: String,
        endpoint: &str,
        (client, secret): (&str, &str),
        web: Arc<dyn Fetch>,
    ) -> Self {
        let asked = Introspection::new(endpoint, client, secret, web);
        Self::new(name, Keys::Asked(Arc::new(asked)))
    }

    /// The only algorithms with which its tokens may be signed.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// The shortest time between two fetches of its keys; half a minute unless told otherwise. A token that
    /// names a key which is not here causes one, and anybody can make such a token.
    #[must_use]
    pub fn cooldown(mut self, time: Duration) -> Self {
        if let Keys::Remote(keys) = &mut self.keys
            && let Some(keys) = Arc::get_mut(keys)
        {
            keys.cooldown = time;
        }
        self
    }

    /// Whether its tokens must say that they are access tokens: `typ` = `at+jwt`.
    #[must_use]
    pub const fn access_tokens_only(mut self, only: bool) -> Self {
        self.access_tokens_only = only;
        self
    }

    /// Refuses somebody whose token is good when this says so, such as after signing out. It is asked at
    /// every request and must not wait.
    #[must_use]
    pub fn reject_if(mut self, gone: impl Fn(&Caller) -> bool + Send + Sync + 'static) -> Self {
        self.unless = Some(Arc::new(gone));
        self
    }

    /// The issuer's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True when its keys are here, or are not needed.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match &self.keys {
            Keys::Local(keys) => !keys.is_empty(),
            Keys::Remote(keys) => keys.is_ready(),
            Keys::Asked(_) => true,
        }
    }

    /// True when the owner of a good token is no longer welcome.
    pub(crate) fn is_revoked(&self, caller: &Caller) -> bool {
        self.unless.as_ref().is_some_and(|gone| gone(caller))
    }

    /// The key that a token of this issuer names.
    pub(crate) async fn key(&self, kid: Option<&str>) -> Result<Key, Denied> {
        const UNKNOWN: Denied = Denied::Bad("the key of the token is not known");
        match &self.keys {
            Keys::Local(keys) if keys.is_empty() => Err(Denied::Unready),
            Keys::Local(keys) => keys.get().find(kid).cloned().ok_or(UNKNOWN),
            Keys::Remote(keys) => keys.key(kid).await,
            Keys::Asked(_) => Err(UNKNOWN),
        }
    }

    /// Its keys, where they have to be fetched again and again.
    pub(crate) fn jwks_cache(&self) -> Option<Arc<Keyring>> {
        match &self.keys {
            Keys::Remote(keys) => Some(keys.clone()),
            Keys::Local(_) | Keys::Asked(_) => None,
        }
    }

    /// The way to ask it about opaque tokens.
    pub(crate) fn introspector(&self) -> Option<&Introspection> {
        match &self.keys {
            Keys::Asked(asked) => Some(asked),
            Keys::Local(_) | Keys::Remote(_) => None,
        }
    }
}
