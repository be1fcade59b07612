//! The table of HTTP routes: finds the route of a request, authenticates its caller and runs it within its limits.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode, header};
use tokio::sync::Semaphore;

use super::accept::PeerAddress;
use super::body::{BodyCharge, ReceivedBody};
use super::{body, well_known};
use crate::auth::Caller;
use crate::auth::auth_middleware::AuthMiddleware;
use crate::byte_budget::ConnectionShares;
use crate::call::run_guarded;
use crate::error::{Failure, FailureKind};
use crate::limits::HttpLimits;
use crate::result::internal;
use crate::route::{Route, RoutePool, RouteRequest, RouteResponse};
use crate::uri_template::{TemplateVars, match_pattern};

/// All routes of a server, with the limits and the authentication that they share.
#[derive(Clone)]
pub(crate) struct RouteTable {
    routes: Arc<[Route]>,
    limits: Arc<HttpLimits>,
    authenticator: AuthMiddleware,
    in_flight: Arc<Semaphore>,
}

impl RouteTable {
    pub(crate) fn new(
        mut routes: Vec<Route>,
        limits: Arc<HttpLimits>,
        authenticator: AuthMiddleware,
    ) -> Self {
        for route in &mut routes {
            if let RoutePool::SignIn(places) = &mut route.pool {
                *places = Some(Arc::new(Semaphore::new(limits.sign_in_in_flight)));
            }
        }
        let in_flight = Arc::new(Semaphore::new(limits.in_flight));
        Self {
            routes: routes.into(),
            limits,
            authenticator,
            in_flight,
        }
    }

    /// Returns the in-flight limit of a route, and the maximum size of its bodies.
    fn bounds<'a>(&'a self, route: &'a Route) -> (&'a Arc<Semaphore>, usize) {
        match &route.pool {
            RoutePool::Pages => (&self.in_flight, self.limits.body_bytes),
            RoutePool::SignIn(places) => {
                let places = places.as_ref().unwrap_or(&self.in_flight);
                (places, self.limits.sign_in_bytes)
            }
        }
    }

    fn find(&self, path: &str) -> impl Iterator<Item = (&Route, TemplateVars)> {
        let path = path.to_owned();
        self.routes.iter().filter_map(move |route| {
            let mut vars = match_pattern(&route.pattern, &path)?;
            for value in vars.values_mut() {
                *value = decode(value)?;
            }
            Some((route, vars))
        })
    }

    /// Answers every request whose path is none of the kit's own.
    pub(crate) async fn answer(self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let method = if parts.method == Method::HEAD {
            &Method::GET
        } else {
            &parts.method
        };
        let mut at_path = self.find(parts.uri.path()).peekable();
        if at_path.peek().is_none() {
            return if parts.uri.path().starts_with("/.well-known/") {
                well_known::no_oauth().await
            } else {
                well_known::not_found().await
            };
        }
        let Some((route, vars)) = at_path.find(|(route, _)| route.method == *method) else {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        };
        let caller = if route.open {
            Caller::anonymous()
        } else {
            match self
                .authenticator
                .authenticate(&parts.headers, parts.uri.path())
                .await
            {
                Ok(caller) => caller,
                Err(refusal) => return refusal,
            }
        };
        let shares = parts.extensions.get::<ConnectionShares>();
        let (in_flight, most) = self.bounds(route);
        let charge = shares.map(|shares| BodyCharge {
            share: &shares.bodies,
            headers: &parts.headers,
        });
        let received = match body::receive(body, most, &self.limits, charge).await {
            Ok(received) => received,
            Err(error) => return error.into_response(),
        };
        // The permit is taken after the body is complete, so slow senders take nothing from others.
        let Ok(permit) = in_flight.clone().try_acquire_owned() else {
            let later = [(header::RETRY_AFTER, "1")];
            return (StatusCode::SERVICE_UNAVAILABLE, later, "the server is busy").into_response();
        };
        let ReceivedBody {
            bytes: body,
            counted,
        } = received;
        let shares = shares.cloned();
        let payer = caller.clone();
        let route_request = RouteRequest {
            caller,
            vars,
            query: parts.uri.query().unwrap_or_default().to_owned(),
            peer: parts
                .extensions
                .get::<PeerAddress>()
                .map(|peer| peer.0.ip()),
            headers: parts.headers,
            body,
        };
        let work = run_guarded(self.limits.handler, (route.handler)(route_request));
        let answered = match route.pool.run(work, (permit, counted)).await {
            Ok(answered) => answered,
            Err(error) => {
                return (StatusCode::INTERNAL_SERVER_ERROR, error.message).into_response();
            }
        };
        let answer = answered
            .and_then(RouteResponse::into_response)
            .unwrap_or_else(failed);
        ConnectionShares::charge_to_caller(shares.as_ref(), &payer, answer)
    }
}

/// Renders a failure: the caller's mistakes as text, internal errors as a reference to the log.
fn failed(failure: Failure) -> Response {
    match failure.0 {
        FailureKind::NotFound(_) => (StatusCode::NOT_FOUND, "nothing is here").into_response(),
        FailureKind::Internal(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            internal(error.as_ref()).message,
        )
            .into_response(),
        FailureKind::Refused(message) => (StatusCode::FORBIDDEN, message).into_response(),
        other => (StatusCode::BAD_REQUEST, Failure(other).to_string()).into_response(),
    }
}

/// Decodes percent-encoding; `None` if the result is not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
