//! Token revocation endpoint (RFC 7009): revokes a grant by its refresh token or one of its access tokens.

use docent_mcp::Caller;
use docent_mcp::Failure;
use docent_mcp::http::{RouteRequest, RouteResponse};
use docent_mcp::oauth::verify_access_token;

use super::token_endpoint::{EndpointError, endpoint_response, no_store, parse_form_body};
use super::{AuthorizationServer, grant_store};

impl AuthorizationServer {
    /// Handles `POST /revoke`. It succeeds for unknown tokens too, as RFC 7009 requires.
    pub(super) async fn revoke(self, request: RouteRequest) -> Result<RouteResponse, Failure> {
        endpoint_response(self.try_revoke(&request).await)
    }

    async fn try_revoke(&self, request: &RouteRequest) -> Result<RouteResponse, EndpointError> {
        let form = parse_form_body(request)?;
        let client = self.known_client(&form).await?;
        let token = form.get("token").unwrap_or_default();
        let id = match grant_store::parse_refresh_token(token) {
            Some((id, _)) => Some(id),
            None => self.grant_of_token(token).await,
        };
        if let Some(id) = id {
            self.0.grants.end(&id, Some(&client.id)).await?;
        }
        Ok(no_store(RouteResponse::new(200, "application/json", "{}")))
    }

    /// The grant id (`sid`) of a valid access token of this server.
    async fn grant_of_token(&self, token: &str) -> Option<String> {
        let caller = self.token_owner(token).await?;
        caller.claim("sid").into_iter().next()
    }

    /// Validates an access token of this server and returns its caller.
    pub(crate) async fn token_owner(&self, token: &str) -> Option<Caller> {
        let issuers = [self.issuer()];
        let verified = verify_access_token(token, &issuers, &self.0.resources, self.now());
        verified.await.ok()
    }
}
