//! A built-in OAuth 2.1 authorization server, for deployments without an identity provider of their own.
//! Users log in with a password or at an upstream OpenID Connect provider; ChatGPT and Claude connect to it
//! without further software.
//!
//! [`AuthorizationServer::open`] opens its state in a folder, [`routes`](AuthorizationServer::routes) are
//! its endpoints and pages, and [`issuer`](AuthorizationServer::issuer) makes a resource server accept its
//! tokens.
//!
//! ```no_run
//! use docent_oauth::{AuthorizationServer, AuthorizationServerOptions};
//! use docent_mcp::{Auth, http};
//!
//! let options = AuthorizationServerOptions::new("https://docs.example.org", "Harbour archive", "./state");
//! let server = AuthorizationServer::open(options)?;
//! let auth = Auth::builder(["https://docs.example.org"])
//!     .issuer(server.issuer())
//!     .scopes(["docs.read"])
//!     .build()?;
//! let options = http::HttpOptions {
//!     auth: Some(auth),
//!     routes: server.routes(),
//!     ..http::HttpOptions::default()
//! };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! There are no login sessions: the page that asks for the password also asks for consent. A device cookie
//! recognises a browser in which a user has logged in before, but only so that password guessing elsewhere
//! does not rate-limit that user. Each consent creates a grant and every token names its grant (`sid`), so
//! that a grant that ends revokes its tokens at once.

mod authorization_request;
mod authorize_endpoint;
mod client_documents;
mod client_registry;
mod cookie;
mod crypto;
mod device;
mod document_fetcher;
mod fetch_slots;
mod form_params;
mod grant_store;
mod login_rate_limiter;
mod metadata_endpoint;
mod network_rate_limiter;
mod oauth_client;
mod password;
mod pending_clients;
mod rate_limiter;
mod redirect;
mod register_endpoint;
mod reverse_domain;
mod revoke_endpoint;
mod sign_in_pages;
mod signing_keys;
mod store;
mod token_endpoint;
mod upstream_provider;
mod user_store;
mod userinfo_endpoint;

use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use docent_mcp::http::{Route, RouteRequest, RouteResponse};
use docent_mcp::oauth::{audience_urls, base_url, is_scope};
use docent_mcp::{
    AuthError, CertificateAuthorities, Failure, InvalidAuthorities, Issuer, LocalKeys,
    SignatureAlgorithm,
};

pub use document_fetcher::OwnHosts;
pub use password::hash as hash_password;
pub use password::{
    MAX_BYTES as MAX_PASSWORD_BYTES, MIN_CHARS as MIN_PASSWORD_CHARS, PasswordError, new_password,
};
pub use upstream_provider::{ClientSecret, UpstreamError, UpstreamProvider};
pub use user_store::{MAX_CHARS, MAX_GROUPS, MAX_USERS, UserAccount, UserError, UserStore};

use client_documents::ClientDocumentCache;
use client_registry::ClientRegistry;
use crypto::HmacSigner;
use document_fetcher::DocumentFetcher;
use grant_store::GrantStore;
use login_rate_limiter::LoginRateLimiter;
use network_rate_limiter::NetworkRateLimiter;
use password::PasswordChecker;
use signing_keys::{SigningKeyError, SigningKeys};
use store::{AuthStore, StoreError};

/// A clock that returns seconds since 1970; tests pass their own.
pub type UnixClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How users log in.
#[derive(Debug, Clone)]
pub enum LoginMethod {
    /// With a password of the [`UserStore`] in the same folder.
    Password,
    /// At an upstream OpenID Connect provider.
    Upstream(UpstreamProvider),
}

/// The options of an [`AuthorizationServer`].
///
/// ```rust
/// use docent_oauth::{
///     AuthorizationServerOptions, ClientSecret, LoginMethod, UpstreamProvider,
/// };
///
/// let mut options =
///     AuthorizationServerOptions::new("https://docs.example.org", "Harbour archive", "./state");
/// options.login = LoginMethod::Upstream(UpstreamProvider {
///     issuer: "https://login.example.org".to_owned(),
///     client_id: "harbour-archive".to_owned(),
///     client_secret: Some(ClientSecret::new("read from a file")),
/// });
/// assert_eq!(options.scope, "docs.read");
/// ```
#[derive(Clone)]
pub struct AuthorizationServerOptions {
    /// The server's public base URL, which is also the issuer name.
    pub address: String,
    /// Further base URLs of the server. A client may request tokens for any of them (RFC 8707).
    pub more_addresses: Vec<String>,
    /// The server's display name, shown on the consent page.
    pub name: String,
    /// The scope of access tokens, such as `docs.read`.
    pub scope: String,
    /// The folder of the state. It is created if it does not exist.
    pub dir: PathBuf,
    /// How users log in.
    pub login: LoginMethod,
    /// The certificate authorities that are trusted for the provider of [`LoginMethod::Upstream`]; with
    /// `None`, the root certificates that browsers trust.
    pub provider_authorities: Option<CertificateAuthorities>,
    /// Hosts in the operator's network from which client ID metadata documents may be fetched.
    pub own_hosts: OwnHosts,
    /// The clock; the system's by default.
    pub clock: UnixClock,
}

impl AuthorizationServerOptions {
    /// The options with passwords as login method and the scope `docs.read`.
    #[must_use]
    pub fn new(address: impl Into<String>, name: impl Into<String>, dir: impl AsRef<Path>) -> Self {
        let seconds = || SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            address: address.into(),
            more_addresses: Vec::new(),
            name: name.into(),
            scope: "docs.read".to_owned(),
            dir: dir.as_ref().to_owned(),
            login: LoginMethod::Password,
            provider_authorities: None,
            own_hosts: OwnHosts::default(),
            clock: Arc::new(move || seconds().map_or(0, |passed| passed.as_secs())),
        }
    }
}

/// Why an [`AuthorizationServer`] cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorizationServerError {
    /// The base URL or the scope is invalid.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The folder cannot be created or written to.
    #[error("cannot use the folder `{}`", .0.display())]
    Folder(PathBuf, #[source] std::io::Error),
    /// Another process has the folder open; the store has a lock on its file.
    #[error("another server uses the folder `{}`", .0.display())]
    Taken(PathBuf),
    /// The state in the folder cannot be read, or is corrupt.
    #[error("the state in the folder `{}` cannot be used", .0.display())]
    State(PathBuf, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// The certificate authorities for the operator's hosts are not valid certificates.
    #[error(transparent)]
    Authorities(#[from] InvalidAuthorities),
    /// The upstream provider's settings are invalid.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// No password could be hashed, because the operating system gave no random bytes.
    #[error(transparent)]
    Password(#[from] PasswordError),
}

/// An OAuth 2.1 authorization server. A clone shares the same state.
///
/// ```rust,no_run
/// use docent_oauth::{AuthorizationServer, AuthorizationServerOptions};
///
/// let options = AuthorizationServerOptions::new("https://docs.example.org", "Archive", "./state");
/// let server = AuthorizationServer::open(options)?;
/// let (issuer, routes) = (server.issuer(), server.routes());
/// # let _ = (issuer, routes);
/// # Ok::<(), docent_oauth::AuthorizationServerError>(())
/// ```
#[derive(Clone)]
pub struct AuthorizationServer(Arc<AuthorizationServerInner>);

struct AuthorizationServerInner {
    issuer: String,
    /// The accepted values of `resource`, which become the audience of tokens.
    resources: BTreeSet<String>,
    name: String,
    scope: String,
    clock: UnixClock,
    keys: SigningKeys,
    signer: HmacSigner,
    registry: ClientRegistry,
    registrations: NetworkRateLimiter,
    documents: ClientDocumentCache,
    grants: GrantStore,
    sign_in: LoginBackend,
}

/// The login method with the state that it needs. `rate` limits logins by network, `throttle` by user name.
enum LoginBackend {
    Password {
        users: UserStore,
        verifier: PasswordChecker,
        /// Per-network rate limit of password logins, boxed because it is large.
        rate: Box<NetworkRateLimiter>,
        throttle: LoginRateLimiter,
    },
    Upstream(upstream_provider::OidcProvider),
}

impl AuthorizationServer {
    /// Opens the state in a folder, or creates an empty one.
    ///
    /// # Errors
    /// When an option is invalid, or the folder cannot be used.
    pub fn open(options: AuthorizationServerOptions) -> Result<Self, AuthorizationServerError> {
        let issuer = base_url(&options.address)?;
        if !is_scope(&options.scope) {
            return Err(AuthError::Scope(options.scope).into());
        }
        let mut resources = BTreeSet::from_iter(audience_urls(&issuer));
        for address in &options.more_addresses {
            resources.extend(audience_urls(&base_url(address)?));
        }
        let dir = options.dir;
        user_store::make_private(&dir)
            .map_err(|error| AuthorizationServerError::Folder(dir.clone(), error))?;
        let sign_in = match options.login {
            LoginMethod::Password => LoginBackend::Password {
                users: UserStore::in_dir(&dir),
                verifier: PasswordChecker::new()?,
                rate: Box::new(NetworkRateLimiter::new(&network_rate_limiter::SIGN_INS)),
                throttle: LoginRateLimiter::default(),
            },
            LoginMethod::Upstream(upstream) => {
                let trusted = options.provider_authorities;
                LoginBackend::Upstream(upstream_provider::OidcProvider::new(upstream, trusted)?)
            }
        };
        let fetcher = DocumentFetcher::new(options.own_hosts)?;
        let state =
            AuthorizationServerState::open(&dir, (options.clock)()).map_err(
                |error| match error {
                    SigningKeyError::Store(StoreError::Taken) => {
                        AuthorizationServerError::Taken(dir.clone())
                    }
                    SigningKeyError::Store(StoreError::Open(error)) => {
                        AuthorizationServerError::Folder(dir.clone(), error)
                    }
                    other => AuthorizationServerError::State(dir.clone(), Box::new(other)),
                },
            )?;
        Ok(Self(Arc::new(AuthorizationServerInner {
            issuer,
            resources,
            name: options.name,
            scope: options.scope,
            clock: options.clock,
            keys: state.keys,
            signer: state.signer,
            registry: state.registry,
            registrations: NetworkRateLimiter::new(&network_rate_limiter::REGISTRATIONS),
            documents: ClientDocumentCache::new(fetcher),
            grants: state.grants,
            sign_in,
        })))
    }

    /// The issuer of this server's tokens, for [`Auth::builder`](docent_mcp::Auth::builder). It refuses the
    /// tokens of revoked or expired grants.
    #[must_use]
    pub fn issuer(&self) -> Issuer {
        let server = self.clone();
        Issuer::local(self.0.issuer.clone(), self.0.keys.public().clone())
            .algorithms([SignatureAlgorithm::Es256])
            .reject_if(move |caller| {
                let live = |id: &String| server.0.grants.is_live(id, server.now());
                !caller.claim("sid").first().is_some_and(live)
            })
    }

    /// The routes of the endpoints and pages, which need no authentication.
    #[must_use]
    pub fn routes(&self) -> Vec<Route> {
        let mut routes = self.metadata_routes();
        routes.extend([
            self.get("/jwks.json", |server, _| async move {
                Ok(server.jwks_response())
            }),
            self.get("/authorize", Self::show_consent),
            self.post("/authorize", Self::submit_consent),
            self.post("/token", Self::exchange),
            self.post("/register", Self::register),
            self.post("/revoke", Self::revoke),
            self.get("/userinfo", Self::userinfo),
            self.post("/userinfo", Self::userinfo),
        ]);
        if matches!(self.0.sign_in, LoginBackend::Upstream(_)) {
            routes.push(self.get("/callback", Self::handle_callback));
        }
        routes
    }

    fn get<F, R>(&self, path: &str, handler: F) -> Route
    where
        F: Fn(Self, RouteRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Result<RouteResponse, Failure>> + Send + 'static,
    {
        let server = self.clone();
        Route::get(path, move |request| handler(server.clone(), request))
            .open()
            .sign_in()
    }

    fn post<F, R>(&self, path: &str, handler: F) -> Route
    where
        F: Fn(Self, RouteRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Result<RouteResponse, Failure>> + Send + 'static,
    {
        let server = self.clone();
        Route::post(path, move |request| handler(server.clone(), request))
            .open()
            .sign_in()
    }

    fn now(&self) -> u64 {
        (self.0.clock)()
    }

    /// Every scope that can be granted: the server's own first, then those of OpenID Connect.
    fn all_scopes(&self) -> [String; 3] {
        [
            self.0.scope.clone(),
            "openid".to_owned(),
            "email".to_owned(),
        ]
    }
}

/// The state that is loaded from the folder.
struct AuthorizationServerState {
    registry: ClientRegistry,
    keys: SigningKeys,
    signer: HmacSigner,
    grants: GrantStore,
}

impl AuthorizationServerState {
    fn open(dir: &Path, now: u64) -> Result<Self, SigningKeyError> {
        let store = AuthStore::open(dir)?;
        Ok(Self {
            keys: SigningKeys::open(store.clone(), LocalKeys::default(), now)?,
            signer: HmacSigner::new(&signing_keys::secret(&store)?),
            grants: GrantStore::open(store.clone(), now)?,
            registry: ClientRegistry::open(dir, store)?,
        })
    }
}

#[cfg(test)]
#[path = "../../mcp/src/auth/mint.rs"]
#[allow(dead_code, reason = "shared with the tests of the kit")]
mod mint;
#[cfg(test)]
mod tests;
