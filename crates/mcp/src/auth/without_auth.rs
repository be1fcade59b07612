//! Takes the place of authentication in a build without the feature `auth`.
//!
//! Its type has no values, so a server has no authentication there, and the compiler knows that none of this runs. What
//! asks for authentication, such as the dispatcher and the HTTP transport, is the same in every build.

use crate::auth::{Caller, MissingScope};
use crate::security::Security;

/// Authentication, which needs the feature `auth`. There is no value of this type.
#[derive(Debug, Clone)]
pub enum DisabledAuth {}

impl DisabledAuth {
    pub(crate) fn security_schemes(&self, _: Option<&[Security]>) -> Vec<Security> {
        match *self {}
    }

    pub(crate) fn missing_scope(&self, _: &Caller, _: Option<&[Security]>) -> Option<MissingScope> {
        match *self {}
    }

    pub(crate) fn in_band_challenge(&self, _: &MissingScope) -> String {
        match *self {}
    }
}

/// The part that only the HTTP transport asks for.
#[cfg(feature = "http")]
mod of_http {
    use axum::Router;
    use axum::response::Response;
    use http::HeaderMap;
    use tokio_util::sync::CancellationToken;

    use super::DisabledAuth;
    use crate::auth::{Caller, MissingScope};

    impl DisabledAuth {
        pub(crate) fn is_ready(&self) -> bool {
            match *self {}
        }

        pub(crate) fn keep_keys_fresh(&self, _: &CancellationToken) {
            match *self {}
        }

        pub(crate) async fn admit(&self, _: &HeaderMap, _: &str) -> Result<Caller, Response> {
            match *self {}
        }

        pub(crate) fn metadata_routes(&self) -> Router {
            match *self {}
        }

        pub(crate) fn refuse_missing_scope(
            &self,
            _: &MissingScope,
            _: &HeaderMap,
            _: &str,
        ) -> Response {
            match *self {}
        }
    }
}
