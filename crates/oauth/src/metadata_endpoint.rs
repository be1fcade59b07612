//! Authorization server metadata (RFC 8414, OpenID Connect Discovery) and the key set (JWKS).

use docent_mcp::http::{Route, RouteResponse};
use serde_json::{Value, json};

use super::AuthorizationServer;

/// Clients may cache the metadata and the keys for five minutes.
const CACHE_CONTROL: &str = "public, max-age=300";

impl AuthorizationServer {
    /// The routes of the metadata document, at every well-known path where clients look for it.
    pub(super) fn metadata_routes(&self) -> Vec<Route> {
        // For an issuer with a path, RFC 8414 puts the well-known part before that path and OpenID Connect
        // puts it after.
        let path = self.0.issuer.split_once("://").and_then(|(_, rest)| {
            let at = rest.find('/')?;
            rest.get(at..)
        });
        let mut places = Vec::new();
        for document in ["oauth-authorization-server", "openid-configuration"] {
            places.push(format!("/.well-known/{document}"));
            if let Some(path) = path {
                places.push(format!("/.well-known/{document}{path}"));
                places.push(format!("{path}/.well-known/{document}"));
            }
        }
        places
            .iter()
            .map(|place| {
                self.get(place, |server, _| async move {
                    Ok(RouteResponse::json(&server.metadata())
                        .header("cache-control", CACHE_CONTROL))
                })
            })
            .collect()
    }

    /// One document that satisfies both RFC 8414 and OpenID Connect Discovery.
    fn metadata(&self) -> Value {
        let issuer = &self.0.issuer;
        let at = |path: &str| format!("{issuer}{path}");
        json!({
            "issuer": issuer,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "registration_endpoint": at("/register"),
            "revocation_endpoint": at("/revoke"),
            "userinfo_endpoint": at("/userinfo"),
            "jwks_uri": at("/jwks.json"),
            "scopes_supported": self.all_scopes(),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": true,
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "claims_supported": ["iss", "sub", "aud", "exp", "iat", "email", "email_verified"],
            "request_parameter_supported": false,
            "request_uri_parameter_supported": false,
        })
    }

    /// The public signing keys as a key set.
    pub(super) fn jwks_response(&self) -> RouteResponse {
        RouteResponse::json(&self.0.keys.jwks()).header("cache-control", CACHE_CONTROL)
    }
}
