//! Authentication of MCP requests: the only module that creates a [`Caller`].
//!
//! Every build knows callers and the scopes that they lack. With the feature `auth`, an [`Auth`] turns the headers of a
//! request into a verified caller; without it, an [`Auth`] cannot exist, and every caller over HTTP is anonymous.

#[cfg(feature = "auth")]
mod api_key;
#[cfg(feature = "http")]
pub(crate) mod auth_middleware;
mod caller;
#[cfg(feature = "auth")]
mod certificate_authorities;
#[cfg(feature = "auth")]
mod challenge;
#[cfg(feature = "auth")]
mod credential;
#[cfg(feature = "auth")]
mod discovery;
#[cfg(feature = "auth")]
mod introspection;
#[cfg(feature = "auth")]
mod issuer;
#[cfg(feature = "auth")]
mod jwk;
#[cfg(feature = "auth")]
mod jwks_cache;
#[cfg(feature = "auth")]
mod jwt;
#[cfg(feature = "auth")]
#[cfg(test)]
mod mint;
#[cfg(feature = "auth")]
mod outbound_http;
#[cfg(feature = "auth")]
mod resource_server;
#[cfg(feature = "auth")]
mod signed_link;
#[cfg(feature = "auth")]
mod strict_json;
#[cfg(not(feature = "auth"))]
mod without_auth;

#[cfg(feature = "auth")]
pub use api_key::{ApiKeyGrant, ApiKeyInfo, ApiKeyStore};
pub use caller::Caller;
#[cfg(feature = "auth")]
pub use caller::values_of_claim;
#[cfg(feature = "auth")]
pub use certificate_authorities::{
    CertificateAuthorities, InvalidAuthorities, MAX_AUTHORITIES_BYTES,
};
#[cfg(feature = "auth")]
pub use challenge::{audience_urls, base_url, canonical as canonical_url};
#[cfg(feature = "auth")]
pub use discovery::{endpoint_url, metadata as fetch_metadata};
#[cfg(feature = "auth")]
pub use issuer::{IntrospectionClient, Issuer, IssuerNetwork, IssuerTransport};
#[cfg(feature = "auth")]
pub use jwk::{LocalKeys, SignatureAlgorithm};
#[cfg(feature = "auth")]
pub use jwt::{verify_access_token, verify_id_token};
#[cfg(feature = "auth")]
pub use outbound_http::{
    FormPost, HttpFetch, HttpFetchError, http_fetcher, is_public as is_public_address,
};
#[cfg(feature = "auth")]
pub(crate) use resource_server::MAX_SCOPES;
#[cfg(feature = "auth")]
pub use resource_server::{Auth, AuthBuilder, AuthError, AuthRejection, AuthRequirement, is_scope};
#[cfg(feature = "auth")]
pub use signed_link::LinkKey;
#[cfg(feature = "auth")]
pub use strict_json::parse as parse_strict_json;
#[cfg(not(feature = "auth"))]
pub use without_auth::DisabledAuth as Auth;

/// The scopes that a call needs and the caller lacks. `signed_in` decides between a 401 (sign in first) and
/// a 403 (`insufficient_scope`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingScope {
    pub(crate) scopes: Vec<String>,
    pub(crate) signed_in: bool,
}

impl MissingScope {
    /// The value for a server without authentication, where no scopes are known and nobody can sign in.
    pub(crate) const fn unknown() -> Self {
        Self {
            scopes: Vec::new(),
            signed_in: false,
        }
    }
}
