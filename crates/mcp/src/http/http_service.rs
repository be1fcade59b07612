//! The HTTP service: answers MCP messages directly, and sends everything else to the router.
//!
//! Nearly all requests are tool calls, and routing them through the router's middleware takes longer than parsing
//! them. So they are answered here, behind the same guard and authentication.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Method;
use tower::Service;

use super::guard::RequestGuard;
use super::mcp_endpoint::McpEndpoint;
use crate::auth::auth_middleware::AuthMiddleware;

/// The paths at which the MCP endpoint accepts messages.
const ENDPOINT: [&str; 3] = ["/", "/mcp", "/mcp/"];

/// The service of the whole server: the request guard, the MCP endpoint and the router.
#[derive(Clone)]
pub(crate) struct HttpService(Arc<HttpServiceInner>);

struct HttpServiceInner {
    guard: RequestGuard,
    authenticator: AuthMiddleware,
    endpoint: McpEndpoint,
    rest: Router,
}

impl HttpService {
    /// Creates the service. `rest` handles everything but MCP messages, and authenticates its routes itself.
    pub(crate) fn new(
        guard: RequestGuard,
        authenticator: AuthMiddleware,
        endpoint: McpEndpoint,
        rest: Router,
    ) -> Self {
        Self(Arc::new(HttpServiceInner {
            guard,
            authenticator,
            endpoint,
            // Binding the state in advance makes the router cheaper to call.
            rest: rest.with_state(()),
        }))
    }
}

impl HttpServiceInner {
    async fn answer(&self, request: Request) -> Response {
        if request.method() != Method::POST || !ENDPOINT.contains(&request.uri().path()) {
            return match self.rest.clone().call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
        }
        // Authentication comes before any part of the body is read.
        let admitted = self
            .authenticator
            .authenticate(request.headers(), request.uri().path());
        match admitted.await {
            Ok(caller) => self.endpoint.post(&caller, request).await,
            Err(refusal) => refusal,
        }
    }
}

impl Service<Request> for HttpService {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let parts = self.0.clone();
        async move {
            let answer = parts.guard.apply(request, |request| parts.answer(request));
            Ok(answer.await)
        }
        .boxed()
    }
}
