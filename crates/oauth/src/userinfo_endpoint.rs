//! OpenID Connect UserInfo endpoint.

use docent_mcp::Failure;
use docent_mcp::http::{RouteRequest, RouteResponse};
use serde_json::{Map, Value, json};

use super::AuthorizationServer;
use super::token_endpoint::no_store;

impl AuthorizationServer {
    /// Handles `GET` and `POST /userinfo`, for access tokens with the scope `openid`.
    pub(super) async fn userinfo(self, request: RouteRequest) -> Result<RouteResponse, Failure> {
        let token = request.header("authorization").and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme
                .eq_ignore_ascii_case("bearer")
                .then_some(token.trim())
        });
        let refuse = |status: u16, challenge: &str| {
            let page = RouteResponse::json(&json!({"error": challenge})).status(status);
            let error = format!("Bearer error=\"{challenge}\"");
            Ok(no_store(page).header("www-authenticate", error))
        };
        let Some(token) = token else {
            let page = RouteResponse::json(&json!({"error": "invalid_request"})).status(401);
            return Ok(no_store(page).header("www-authenticate", "Bearer"));
        };
        let Some(caller) = self.token_owner(token).await else {
            return refuse(401, "invalid_token");
        };
        if !caller.has_scope("openid") {
            return refuse(403, "insufficient_scope");
        }
        let subject = json!(caller.subject().unwrap_or_default());
        let mut body = Map::from_iter([("sub".to_owned(), subject)]);
        if caller.has_scope("email")
            && let Some(email) = caller.claim("email").first()
        {
            let verified = caller
                .claim("email_verified")
                .first()
                .is_some_and(|v| v == "true");
            body.insert("email".to_owned(), json!(email));
            body.insert("email_verified".to_owned(), json!(verified));
        }
        Ok(no_store(RouteResponse::json(&Value::Object(body))))
    }
}
