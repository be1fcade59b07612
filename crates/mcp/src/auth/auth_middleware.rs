//! Authentication middleware: turns a request's headers into a [`Caller`], or into the response that refuses it, before
//! the body is read.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::HeaderMap;

use super::{Auth, Caller};

/// The authentication in front of every endpoint; `None` on a server without authentication.
#[derive(Clone, Default)]
pub(crate) struct AuthMiddleware(pub(crate) Option<Auth>);

impl AuthMiddleware {
    /// Authenticates a request to `path`, or returns the response that refuses it.
    pub(crate) async fn authenticate(
        &self,
        headers: &HeaderMap,
        path: &str,
    ) -> Result<Caller, Response> {
        match &self.0 {
            Some(auth) => auth.admit(headers, path).await,
            None => Ok(Caller::anonymous()),
        }
    }
}

/// The axum layer in front of the MCP endpoints. It attaches the [`Caller`] to the request's extensions.
pub(crate) async fn enforce(
    State(middleware): State<AuthMiddleware>,
    mut request: Request,
    next: Next,
) -> Response {
    match middleware
        .authenticate(request.headers(), request.uri().path())
        .await
    {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => refusal,
    }
}
