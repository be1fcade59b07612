//! Parts of OAuth for a program that is an authorization server or a relying party itself, as `docent-oauth` is.
//!
//! A server that only checks tokens needs none of them: [`Auth`](crate::Auth) does it all. An authorization server adds
//! its endpoints with [`Route::open`](crate::http::Route::open) and [`Route::sign_in`](crate::http::Route::sign_in),
//! and makes the server accept its tokens with [`Issuer::local`](crate::Issuer::local). What both sides have to judge
//! alike is here: URLs and their canonical form, the audiences of a server, scopes, tokens and their claims, and
//! requests to other servers that cannot be led into the operator's network.
//!
//! ```
//! use docent_mcp::oauth::{audience_urls, base_url, canonical_url, is_public_address, is_scope};
//!
//! let base = base_url("https://docs.example.org/")?;
//! assert_eq!(base, "https://docs.example.org");
//! let resource = canonical_url("HTTPS://Docs.Example.org/mcp");
//! assert!(audience_urls(&base).contains(&resource));
//! assert!(is_scope("docs.read") && !is_scope("docs read"));
//! assert!(!is_public_address("192.168.0.1".parse()?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use crate::auth::{
    FormPost, HttpFetch, HttpFetchError, audience_urls, base_url, canonical_url, endpoint_url,
    fetch_metadata, http_fetcher, is_public_address, is_scope, parse_strict_json, values_of_claim,
    verify_access_token, verify_id_token,
};
