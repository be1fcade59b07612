//! Trusted token issuers: a name, a source of verification keys, and the requirements for the issuer's
//! tokens.

use std::sync::Arc;
use std::time::Duration;

use super::introspection::TokenIntrospector;
use super::jwk::{LocalKeys, SignatureAlgorithm, VerificationKey};
use super::jwks_cache::JwksCache;
use super::outbound_http::{HttpFetch, http_fetcher};
use super::{AuthRejection, Caller, CertificateAuthorities};

type RevocationCheck = Arc<dyn Fn(&Caller) -> bool + Send + Sync>;

/// The networks in which an issuer's URLs may be. It limits server-side request forgery (SSRF).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IssuerNetwork {
    /// Public addresses only, over https.
    #[default]
    Public,
    /// Addresses of private networks too, and http to a loopback address.
    Private,
}

/// How issuers are reached: the allowed networks, and the certificate authorities that are trusted.
///
/// ```rust,no_run
/// use docent_mcp::{CertificateAuthorities, Issuer, IssuerNetwork, IssuerTransport};
///
/// let pem = std::fs::read_to_string("/etc/docs/private-ca.pem")?;
/// let transport = IssuerTransport {
///     network: IssuerNetwork::Private,
///     authorities: Some(CertificateAuthorities::parse(&pem)?),
/// };
/// let issuer = Issuer::remote("https://login.internal", None, transport);
/// # let _ = issuer;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct IssuerTransport {
    /// The networks in which the issuer's endpoints may be.
    pub network: IssuerNetwork,
    /// The only trusted certificate authorities; with `None`, the root certificates that browsers trust.
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

/// The client id and the secret with which we authenticate at an introspection endpoint.
#[derive(Clone, Copy)]
pub struct IntrospectionClient<'a> {
    /// The client id.
    pub id: &'a str,
    /// The secret that belongs to it.
    pub secret: &'a str,
}

/// A trusted issuer of access tokens. Its name is the issuer URL, exactly as it stands in the claim `iss`.
///
/// ```rust
/// use docent_mcp::{Issuer, IssuerNetwork, SignatureAlgorithm};
///
/// let issuer = Issuer::remote("https://login.example.org", None, IssuerNetwork::Public)
///     .algorithms([SignatureAlgorithm::Rs256])
///     .reject_if(|caller| caller.subject() == Some("signed-out"));
/// assert_eq!(issuer.name(), "https://login.example.org");
/// ```
#[derive(Clone)]
pub struct Issuer {
    name: String,
    keys: IssuerKeySource,
    pub(crate) algorithms: Vec<SignatureAlgorithm>,
    pub(crate) access_tokens_only: bool,
    revocation_check: Option<RevocationCheck>,
}

/// How an issuer's tokens are verified.
#[derive(Clone)]
enum IssuerKeySource {
    /// With keys held in this process.
    Local(LocalKeys),
    /// With the key set (JWKS) that the issuer publishes.
    Remote(Arc<JwksCache>),
    /// By token introspection (RFC 7662): one request per token.
    Introspected(Arc<TokenIntrospector>),
}

impl Issuer {
    fn new(name: String, keys: IssuerKeySource) -> Self {
        Self {
            name,
            keys,
            algorithms: SignatureAlgorithm::USUAL.to_vec(),
            access_tokens_only: false,
            revocation_check: None,
        }
    }

    /// An issuer in this process, whose keys need no network. Its tokens must have the type of access
    /// tokens (`typ` = `at+jwt`, RFC 9068).
    #[must_use]
    pub fn local(name: impl Into<String>, keys: LocalKeys) -> Self {
        Self::new(name.into(), IssuerKeySource::Local(keys)).access_tokens_only(true)
    }

    /// An issuer that publishes a key set: at `jwks_uri`, or where its metadata (RFC 8414 or OpenID Connect
    /// discovery) says.
    #[must_use]
    pub fn remote(
        name: impl Into<String>,
        jwks_uri: Option<String>,
        transport: impl Into<IssuerTransport>,
    ) -> Self {
        Self::with_fetcher(name.into(), jwks_uri, http_fetcher(&transport.into()))
    }

    /// An issuer that publishes a key set, reached through an HTTP client of the caller's choice.
    #[must_use]
    pub fn with_fetcher(
        name: String,
        jwks_uri: Option<String>,
        fetcher: Arc<dyn HttpFetch>,
    ) -> Self {
        let keys = JwksCache::new(&name, jwks_uri, fetcher);
        Self::new(name, IssuerKeySource::Remote(Arc::new(keys)))
    }

    /// An issuer of opaque tokens. Each token is looked up at the introspection `endpoint` (RFC 7662),
    /// where we authenticate as `client`.
    ///
    /// ```rust
    /// use docent_mcp::{IntrospectionClient, Issuer, IssuerNetwork};
    ///
    /// let client = IntrospectionClient { id: "docs", secret: "s3cret" };
    /// let endpoint = "https://login.example.org/introspect";
    /// let issuer = Issuer::introspected("https://login.example.org", endpoint, client, IssuerNetwork::Public);
    /// assert_eq!(issuer.name(), "https://login.example.org");
    /// ```
    #[must_use]
    pub fn introspected(
        name: impl Into<String>,
        endpoint: &str,
        client: IntrospectionClient<'_>,
        transport: impl Into<IssuerTransport>,
    ) -> Self {
        Self::with_introspector(
            name.into(),
            endpoint,
            client,
            http_fetcher(&transport.into()),
        )
    }

    pub(crate) fn with_introspector(
        name: String,
        endpoint: &str,
        client: IntrospectionClient<'_>,
        fetcher: Arc<dyn HttpFetch>,
    ) -> Self {
        let introspector = TokenIntrospector::new(endpoint, client.id, client.secret, fetcher);
        Self::new(name, IssuerKeySource::Introspected(Arc::new(introspector)))
    }

    /// The allowlist of signature algorithms. A token with any other `alg` is refused.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = SignatureAlgorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// The shortest time between two fetches of the issuer's key set; 30 seconds by default. A token with
    /// an unknown `kid` triggers a fetch, and anybody can make such a token, so this is a rate limit.
    #[must_use]
    pub fn cooldown(mut self, time: Duration) -> Self {
        if let IssuerKeySource::Remote(keys) = &mut self.keys
            && let Some(keys) = Arc::get_mut(keys)
        {
            keys.cooldown = time;
        }
        self
    }

    /// Whether tokens must have the type of access tokens, `typ` = `at+jwt` (RFC 9068).
    #[must_use]
    pub const fn access_tokens_only(mut self, only: bool) -> Self {
        self.access_tokens_only = only;
        self
    }

    /// Refuses valid tokens for which `is_revoked` returns true, such as after a sign-out. It runs for every
    /// request and must not block.
    #[must_use]
    pub fn reject_if(
        mut self,
        is_revoked: impl Fn(&Caller) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.revocation_check = Some(Arc::new(is_revoked));
        self
    }

    /// The issuer's name, as it stands in `iss`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True when the issuer's keys are available, or when it needs none (introspection).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match &self.keys {
            IssuerKeySource::Local(keys) => !keys.is_empty(),
            IssuerKeySource::Remote(keys) => keys.is_ready(),
            IssuerKeySource::Introspected(_) => true,
        }
    }

    /// True when the revocation check refuses the caller of an otherwise valid token.
    pub(crate) fn is_revoked(&self, caller: &Caller) -> bool {
        self.revocation_check
            .as_ref()
            .is_some_and(|check| check(caller))
    }

    /// The verification key with this `kid`; without a `kid`, the only key.
    pub(crate) async fn key(&self, kid: Option<&str>) -> Result<VerificationKey, AuthRejection> {
        const UNKNOWN: AuthRejection = AuthRejection::Bad("the key of the token is not known");
        match &self.keys {
            IssuerKeySource::Local(keys) if keys.is_empty() => Err(AuthRejection::Unready),
            IssuerKeySource::Local(keys) => keys.get().find(kid).cloned().ok_or(UNKNOWN),
            IssuerKeySource::Remote(keys) => keys.key(kid).await,
            IssuerKeySource::Introspected(_) => Err(UNKNOWN),
        }
    }

    /// The key set cache of a remote issuer, which has to be refreshed in the background.
    pub(crate) fn jwks_cache(&self) -> Option<Arc<JwksCache>> {
        match &self.keys {
            IssuerKeySource::Remote(keys) => Some(keys.clone()),
            IssuerKeySource::Local(_) | IssuerKeySource::Introspected(_) => None,
        }
    }

    /// The introspection client, for an issuer of opaque tokens.
    pub(crate) fn introspector(&self) -> Option<&TokenIntrospector> {
        match &self.keys {
            IssuerKeySource::Introspected(introspector) => Some(introspector),
            IssuerKeySource::Local(_) | IssuerKeySource::Remote(_) => None,
        }
    }
}
