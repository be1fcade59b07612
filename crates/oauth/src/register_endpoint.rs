//! Dynamic client registration endpoint (RFC 7591), for clients without a client ID metadata document.

use std::time::Duration;

use docent_mcp::Failure;
use docent_mcp::http::{RouteRequest, RouteResponse};
use serde_json::json;
use tokio::time::Instant;

use super::AuthorizationServer;
use super::oauth_client::ClientMetadata;
use super::pending_clients::RegistrationError;
use super::token_endpoint::{EndpointError, OAuthError, endpoint_response, no_store};

/// The maximum size of the client metadata.
pub(crate) const MAX_BYTES: usize = 16 * 1024;
/// The `Retry-After` when the queue of registrations is full.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);

impl AuthorizationServer {
    /// Handles `POST /register`, rate limited by network.
    pub(super) async fn register(self, request: RouteRequest) -> Result<RouteResponse, Failure> {
        endpoint_response(self.try_register(&request).await)
    }

    async fn try_register(&self, request: &RouteRequest) -> Result<RouteResponse, EndpointError> {
        let bad = |why: &str| OAuthError::new("invalid_client_metadata", why);
        let kind = request.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            return Err(bad("send the metadata as `application/json`")
                .status(415)
                .into());
        }
        if request.body().len() > MAX_BYTES {
            return Err(bad("the metadata is too large").status(413).into());
        }
        // The rate limit comes before any parsing, so that a flood costs no more than a look at the clock.
        if let Err(wait) = self.0.registrations.take(request, Instant::now()) {
            let why = "too many clients register from this network; try again later";
            let refusal = OAuthError::new("temporarily_unavailable", why).status(429);
            return Err(refusal.retry_after(wait).into());
        }
        let metadata: ClientMetadata = serde_json::from_slice(request.body())
            .map_err(|_| bad("the metadata is not a JSON object of texts and lists"))?;
        // Any requested `token_endpoint_auth_method` is accepted; the response tells the client that it is
        // `none` (RFC 7591, section 3.2.1).
        let client = metadata.into_client("").map_err(|error| {
            let kind = if error.0.contains("redirect") {
                "invalid_redirect_uri"
            } else {
                "invalid_client_metadata"
            };
            OAuthError::new(kind, format!("the client {}", error.0))
        })?;
        let now = self.now();
        let client = match self.0.registry.add(client, now).await {
            Ok(client) => client,
            Err(RegistrationError::Busy) => {
                let why = "too many clients register at once; try again in a second";
                let refusal = OAuthError::new("temporarily_unavailable", why).status(503);
                return Err(refusal.retry_after(BUSY_RETRY_AFTER).into());
            }
            Err(RegistrationError::Store(error)) => return Err(error.into()),
        };
        let grants: &[&str] = if client.refreshes {
            &["authorization_code", "refresh_token"]
        } else {
            &["authorization_code"]
        };
        Ok(no_store(
            RouteResponse::json(&json!({
                "client_id": client.id,
                "client_id_issued_at": now,
                "client_name": client.name,
                "redirect_uris": client.redirects,
                "token_endpoint_auth_method": "none",
                "grant_types": grants,
                "response_types": ["code"],
                "scope": self.all_scopes().join(" "),
            }))
            .status(201),
        ))
    }
}
