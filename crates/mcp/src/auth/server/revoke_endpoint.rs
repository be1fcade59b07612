//! `/revoke`: the end of a grant (RFC 7009), by its refresh token or an access token.

use super::token_endpoint::{EndpointError, endpoint_response, no_store, parse_form_body};
use super::{AuthorizationServer, grant_store};
use crate::auth::{Caller, jwt};
use crate::error::Failure;
use crate::http::{RouteRequest, RouteResponse};

impl AuthorizationServer {
    /// `POST /revoke`. Whether there was something to end is nobody's business.
    pub(super) async fn revoke(self, visit: RouteRequest) -> Result<RouteResponse, Failure> {
        endpoint_response(self.try_revoke(&visit).await)
    }

    async fn try_revoke(&self, visit: &RouteRequest) -> Result<RouteResponse, EndpointError> {
        let form = parse_form_body(visit)?;
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

    /// The grant of an access token of ours that is still good.
    async fn grant_of_token(&self, token: &str) -> Option<String> {
        let caller = self.token_owner(token).await?;
        caller.claim("sid").into_iter().next()
    }

    /// Who owns an access token, for the endpoints of this server.
    pub(crate) async fn token_owner(&self, token: &str) -> Option<Caller> {
        let issuers = [self.issuer()];
        let verified = jwt::verify(token, &issuers, &self.0.resources, self.now());
        verified.await.ok()
    }
}
