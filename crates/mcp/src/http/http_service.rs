//! A request into its answer: of the MCP endpoint at once, of everything else by its route.
//!
//! Nearly all requests are calls of tools, and a router that finds their handler behind two layers takes longer
//! than reading them does. So these are answered here, by the same guard and the same gate.

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

/// The paths of the MCP endpoint.
const ENDPOINT: [&str; 3] = ["/", "/mcp", "/mcp/"];

/// Everything that is served.
#[derive(Clone)]
pub(crate) struct HttpService(Arc<HttpServiceInner>);

struct HttpServiceInner {
    guard: RequestGuard,
    gate: AuthMiddleware,
    front: McpEndpoint,
    rest: Router,
}

impl HttpService {
    /// `rest` answers whatever is not a message, and has its own gate.
    pub(crate) fn new(
        guard: RequestGuard,
        gate: AuthMiddleware,
        front: McpEndpoint,
        rest: Router,
    ) -> Self {
        Self(Arc::new(HttpServiceInner {
            guard,
            gate,
            front,
            // Binding the state once makes the router cheaper to call.
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
        // Nothing of a body is read before the gate.
        let admitted = self
            .gate
            .authenticate(request.headers(), request.uri().path());
        match admitted.await {
            Ok(caller) => self.front.post(&caller, request).await,
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
