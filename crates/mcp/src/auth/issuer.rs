//! Somebody whose tokens count: a name, keys, and what is demanded of the tokens.

use std::sync::Arc;
use std::time::Duration;

use super::introspection::TokenIntrospector;
use super::jwk::{LocalKeys, SignatureAlgorithm, VerificationKey};
use super::jwks_cache::JwksCache;
use super::outbound_http::{HttpFetch, http_fetcher};
use super::{AuthRejection, Caller, CertificateAuthorities};

type RevocationCheck = Arc<dyn Fn(&Caller) -> bool + Send + Sync>;

/// Which addresses an issuer may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IssuerNetwork {
    /// Those of the open internet, over https.
    #[default]
    Public,
    /// Those of private networks too, and http on this machine.
    Private,
}

/// How issuers are reached: at which addresses, and who vouches for those.
#[derive(Debug, Clone, Default)]
pub struct IssuerTransport {
    /// Which addresses they may have.
    pub network: IssuerNetwork,
    /// The authorities whose certificates count, and no others; without any, those that browsers trust.
    pub authorities: Option<CertificateAuthorities>,
}

impl From<IssuerNetwork> for IssuerTransport {
    fn from(network: IssuerNetwork) -> Self {
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
    keys: IssuerKeySource,
    pub(crate) algorithms: Vec<SignatureAlgorithm>,
    pub(crate) access_tokens_only: bool,
    unless: Option<RevocationCheck>,
}

/// How an issuer's tokens are checked.
#[derive(Clone)]
enum IssuerKeySource {
    /// By keys held in this process.
    Local(LocalKeys),
    /// By keys that the issuer publishes.
    Remote(Arc<JwksCache>),
    /// By asking the issuer.
    Asked(Arc<TokenIntrospector>),
}

impl Issuer {
    fn new(name: String, keys: IssuerKeySource) -> Self {
        Self {
            name,
            keys,
            algorithms: SignatureAlgorithm::USUAL.to_vec(),
            access_tokens_only: false,
            unless: None,
        }
    }

    /// An issuer in this process, whose keys need no network. Its tokens must say that they are access
    /// tokens (`typ` = `at+jwt`).
    #[must_use]
    pub fn local(name: impl Into<String>, keys: LocalKeys) -> Self {
        Self::new(name.into(), IssuerKeySource::Local(keys)).access_tokens_only(true)
    }

    /// An issuer that publishes its keys: at `jwks_uri`, or where its metadata says.
    #[must_use]
    pub fn remote(
        name: impl Into<String>,
        jwks_uri: Option<String>,
        reach: impl Into<IssuerTransport>,
    ) -> Self {
        Self::with_fetcher(name.into(), jwks_uri, http_fetcher(&reach.into()))
    }

    pub(crate) fn with_fetcher(
        name: String,
        jwks_uri: Option<String>,
        web: Arc<dyn HttpFetch>,
    ) -> Self {
        let keys = JwksCache::new(&name, jwks_uri, web);
        Self::new(name, IssuerKeySource::Remote(Arc::new(keys)))
    }

    /// An issuer of opaque tokens, who is asked about each at `endpoint` (RFC 7662), where we are known as
    /// `client` with a secret.
    #[must_use]
    pub fn introspected(
        name: impl Into<String>,
        endpoint: &str,
        client: (&str, &str),
        reach: impl Into<IssuerTransport>,
    ) -> Self {
        Self::with_introspector(name.into(), endpoint, client, http_fetcher(&reach.into()))
    }

    pub(crate) fn with_introspector(
        name: String,
        endpoint: &str,
        (client, secret): (&str, &str),
        web: Arc<dyn HttpFetch>,
    ) -> Self {
        let asked = TokenIntrospector::new(endpoint, client, secret, web);
        Self::new(name, IssuerKeySource::Asked(Arc::new(asked)))
    }

    /// The only algorithms with which its tokens may be signed.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = SignatureAlgorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// The shortest time between two fetches of its keys; half a minute unless told otherwise. A token that
    /// names a key which is not here causes one, and anybody can make such a token.
    #[must_use]
    pub fn cooldown(mut self, time: Duration) -> Self {
        if let IssuerKeySource::Remote(keys) = &mut self.keys
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
            IssuerKeySource::Local(keys) => !keys.is_empty(),
            IssuerKeySource::Remote(keys) => keys.is_ready(),
            IssuerKeySource::Asked(_) => true,
        }
    }

    /// True when the owner of a good token is no longer welcome.
    pub(crate) fn is_revoked(&self, caller: &Caller) -> bool {
        self.unless.as_ref().is_some_and(|gone| gone(caller))
    }

    /// The key that a token of this issuer names.
    pub(crate) async fn key(&self, kid: Option<&str>) -> Result<VerificationKey, AuthRejection> {
        const UNKNOWN: AuthRejection = AuthRejection::Bad("the key of the token is not known");
        match &self.keys {
            IssuerKeySource::Local(keys) if keys.is_empty() => Err(AuthRejection::Unready),
            IssuerKeySource::Local(keys) => keys.get().find(kid).cloned().ok_or(UNKNOWN),
            IssuerKeySource::Remote(keys) => keys.key(kid).await,
            IssuerKeySource::Asked(_) => Err(UNKNOWN),
        }
    }

    /// Its keys, where they have to be fetched again and again.
    pub(crate) fn jwks_cache(&self) -> Option<Arc<JwksCache>> {
        match &self.keys {
            IssuerKeySource::Remote(keys) => Some(keys.clone()),
            IssuerKeySource::Local(_) | IssuerKeySource::Asked(_) => None,
        }
    }

    /// The way to ask it about opaque tokens.
    pub(crate) fn introspector(&self) -> Option<&TokenIntrospector> {
        match &self.keys {
            IssuerKeySource::Asked(asked) => Some(asked),
            IssuerKeySource::Local(_) | IssuerKeySource::Remote(_) => None,
        }
    }
}
