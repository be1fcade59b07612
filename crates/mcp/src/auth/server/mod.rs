//! An authorization server for people without one: OAuth 2.1 with passwords or with a provider's sign-in, good enough
//! for ChatGPT and Claude to connect with no other software.
//!
//! [`AuthorizationServer::open`] reads its state from a folder; [`routes`](AuthorizationServer::routes) are its
//! endpoints and pages, and [`issuer`](AuthorizationServer::issuer) lets a server accept its tokens.
//!
//! ```no_run
//! use docent_mcp::sign_in::{AuthorizationServer, Login, Options};
//! use docent_mcp::{Auth, http};
//!
//! let options = Options::new("https://docs.example.org", "Harbour archive", "./state");
//! let server = AuthorizationServer::open(options)?;
//! let auth = Auth::builder(["https://docs.example.org"])
//!     .issuer(server.issuer())
//!     .scopes(["docs.read"])
//!     .build()?;
//! let options = http::Options { auth: Some(auth), routes: server.routes(), ..http::Options::default() };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nobody is remembered between two sign-ins: the page that asks for the password is the page that asks for
//! consent. A browser in which somebody signed in is known again, but only so that guesses elsewhere do not keep it
//! waiting. What a sign-in allowed is a grant, and every token names its own, so that a grant that ends takes its tokens
//! along.

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
mod oauth_client;
mod password;
mod pending_clients;
mod rate_limit;
mod redirect;
mod register_endpoint;
mod registration_limiter;
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

pub use super::InvalidAuthorities;
use super::challenge::{audience_urls, base_url};
use super::{AuthError, CertificateAuthorities, Issuer, LocalKeys, SignatureAlgorithm, is_scope};
use crate::error::Failure;
use crate::http::{Route, RouteRequest, RouteResponse};
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
use password::PasswordChecker;
use registration_limiter::NetworkRate;
use signing_keys::{SigningKeyError, SigningKeys};
use store::{AuthStore, StoreError};

/// The clock: seconds since 1970.
pub type UnixClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How people prove who they are.
#[derive(Debug, Clone)]
pub enum LoginMethod {
    /// With a password of [`Users`] in the same folder.
    Password,
    /// At an OpenID provider.
    Upstream(UpstreamProvider),
}

/// What an [`AuthorizationServer`] is made from.
#[derive(Clone)]
pub struct AuthorizationServerOptions {
    /// The address at which people reach the server, which is also the name of the issuer.
    pub address: String,
    /// More addresses under which it is reached; tokens may be meant for any of them.
    pub more_addresses: Vec<String>,
    /// What people call the server.
    pub name: String,
    /// What a token has to allow; one scope, such as `docs.read`.
    pub scope: String,
    /// The folder of the state. It is made if it is not there.
    pub dir: PathBuf,
    /// How people prove who they are.
    pub login: LoginMethod,
    /// The authorities that vouch for the provider of [`Login::Upstream`], if not those that browsers trust.
    pub provider_authorities: Option<CertificateAuthorities>,
    /// Hosts of the owner's own network that may hold documents of clients.
    pub own_hosts: OwnHosts,
    /// The clock.
    pub clock: UnixClock,
}

impl AuthorizationServerOptions {
    /// Sign-in with passwords, for the scope `docs.read`.
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
    /// The address or the scope makes no sense.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The folder cannot be made or written to.
    #[error("cannot use the folder `{}`", .0.display())]
    Folder(PathBuf, #[source] std::io::Error),
    /// Another server has the folder.
    #[error("another server uses the folder `{}`", .0.display())]
    Taken(PathBuf),
    /// The state in the folder fails or is damaged.
    #[error("the state in the folder `{}` cannot be used", .0.display())]
    State(PathBuf, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// The authorities of the owner's hosts are not certificates.
    #[error(transparent)]
    Authorities(#[from] InvalidAuthorities),
    /// The provider's settings make no sense.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The system gave no randomness.
    #[error(transparent)]
    Password(#[from] PasswordError),
}

/// An authorization server. Clones are one.
#[derive(Clone)]
pub struct AuthorizationServer(Arc<AuthorizationServerInner>);

struct AuthorizationServerInner {
    issuer: String,
    /// Everything that a token may be meant for.
    resources: BTreeSet<String>,
    name: String,
    scope: String,
    clock: UnixClock,
    keys: SigningKeys,
    seal: HmacSigner,
    registry: ClientRegistry,
    registrations: NetworkRate,
    documents: ClientDocumentCache,
    grants: GrantStore,
    sign_in: LoginBackend,
}

/// How people prove who they are, with what that takes.
enum LoginBackend {
    Password {
        users: UserStore,
        verifier: PasswordChecker,
        /// How often one network may try a password.
        rate: Box<NetworkRate>,
        throttle: LoginRateLimiter,
    },
    Upstream(upstream_provider::OidcProvider),
}

impl AuthorizationServer {
    /// Opens the state in a folder, or begins with an empty one.
    ///
    /// # Errors
    /// When an option makes no sense, or the folder cannot be used.
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
                rate: Box::new(NetworkRate::new(&registration_limiter::SIGN_INS)),
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
            seal: state.seal,
            registry: state.registry,
            registrations: NetworkRate::new(&registration_limiter::REGISTRATIONS),
            documents: ClientDocumentCache::new(fetcher),
            grants: state.grants,
            sign_in,
        })))
    }

    /// Lets a server accept this one's tokens, as long as their grants live.
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

    /// The endpoints and pages. They are open to everybody.
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
        Route::get(path, move |visit| handler(server.clone(), visit))
            .open()
            .sign_in()
    }

    fn post<F, R>(&self, path: &str, handler: F) -> Route
    where
        F: Fn(Self, RouteRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Result<RouteResponse, Failure>> + Send + 'static,
    {
        let server = self.clone();
        Route::post(path, move |visit| handler(server.clone(), visit))
            .open()
            .sign_in()
    }

    fn now(&self) -> u64 {
        (self.0.clock)()
    }

    /// Every scope that can be granted: ours first, then what OpenID clients ask for.
    fn all_scopes(&self) -> [String; 3] {
        [
            self.0.scope.clone(),
            "openid".to_owned(),
            "email".to_owned(),
        ]
    }
}

/// What is read from the folder.
struct AuthorizationServerState {
    registry: ClientRegistry,
    keys: SigningKeys,
    seal: HmacSigner,
    grants: GrantStore,
}

impl AuthorizationServerState {
    fn open(dir: &Path, now: u64) -> Result<Self, SigningKeyError> {
        let store = AuthStore::open(dir)?;
        Ok(Self {
            keys: SigningKeys::open(store.clone(), LocalKeys::default(), now)?,
            seal: HmacSigner::new(&signing_keys::secret(&store)?),
            grants: GrantStore::open(store.clone(), now)?,
            registry: ClientRegistry::open(dir, store)?,
        })
    }
}

#[cfg(test)]
mod tests;
