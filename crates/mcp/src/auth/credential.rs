//! The credential of a request: an access token, an API key or none, found in the headers and turned into a [`Caller`]
//! or into a 401, 403 or 503 response.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::response::Response;
use http::{HeaderMap, header};

use super::{Auth, AuthRejection, AuthRequirement, Caller};

/// The header in which clients that do not use `Authorization` send an API key.
const API_KEY: &str = "x-api-key";

impl Auth {
    /// Authenticates a request to `path`, or returns the response that refuses it.
    pub(crate) async fn admit(&self, headers: &HeaderMap, path: &str) -> Result<Caller, Response> {
        let caller = match self.identify(headers).await {
            Ok(caller) => caller,
            Err(denied) => {
                tracing::debug!(?denied, "refused a caller");
                return Err(self.refuse(denied, headers, path));
            }
        };
        // Where anonymous callers are allowed, each tool declares what it needs.
        let missing = (self.requirement() == AuthRequirement::Always)
            .then(|| self.missing_base_scope(&caller))
            .flatten();
        match missing {
            Some(missing) => Err(self.refuse_missing_scope(&missing, headers, path)),
            None => Ok(caller),
        }
    }
}

/// The credential in a request's headers, not yet verified.
#[derive(Debug, PartialEq, Eq)]
enum PresentedCredential<'a> {
    Nothing,
    Bearer(&'a str),
    ApiKey(&'a str),
}

pub(super) async fn identify(auth: &Auth, headers: &HeaderMap) -> Result<Caller, AuthRejection> {
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_secs())
    };
    match presented_credential(headers)? {
        PresentedCredential::Nothing if auth.requirement() == AuthRequirement::Always => {
            Err(AuthRejection::Absent)
        }
        PresentedCredential::Nothing => Ok(Caller::anonymous()),
        PresentedCredential::ApiKey(key) => auth.authenticate_key(key, now()),
        PresentedCredential::Bearer(token) if super::api_key::is_key(token) => {
            auth.authenticate_key(token, now())
        }
        PresentedCredential::Bearer(token) => auth.verify_token(token, now()).await,
    }
}

/// Finds the single credential of a request. Two are refused, because a proxy and we could each look at a
/// different one.
fn presented_credential(headers: &HeaderMap) -> Result<PresentedCredential<'_>, AuthRejection> {
    let mut all = headers
        .get_all(header::AUTHORIZATION)
        .iter()
        .map(|value| (false, value))
        .chain(headers.get_all(API_KEY).iter().map(|value| (true, value)));
    let Some((is_key, value)) = all.next() else {
        return Ok(PresentedCredential::Nothing);
    };
    if all.next().is_some() {
        return Err(AuthRejection::Bad("more than one credential was sent"));
    }
    let value = value
        .to_str()
        .map_err(|_| AuthRejection::Bad("the credential is not plain text"))?
        .trim();
    if is_key {
        return Ok(PresentedCredential::ApiKey(value));
    }
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(AuthRejection::Bad(
            "the scheme of the credential must be Bearer",
        ));
    }
    match token.trim_start() {
        "" => Err(AuthRejection::Bad("the token is empty")),
        token => Ok(PresentedCredential::Bearer(token)),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            (HeaderName::from_static(name), value)
        };
        let mut map = HeaderMap::new();
        for (name, value) in pairs.iter().map(pair) {
            map.append(name, value);
        }
        map
    }

    #[test]
    fn one_credential_is_found() {
        let cases: [(&[(&str, &str)], PresentedCredential<'_>); 6] = [
            (&[], PresentedCredential::Nothing),
            (
                &[("authorization", "Bearer abc")],
                PresentedCredential::Bearer("abc"),
            ),
            (
                &[("authorization", "bearer abc")],
                PresentedCredential::Bearer("abc"),
            ),
            (
                &[("authorization", " BEARER   abc ")],
                PresentedCredential::Bearer("abc"),
            ),
            (
                &[("x-api-key", " abc ")],
                PresentedCredential::ApiKey("abc"),
            ),
            (&[("x-other", "abc")], PresentedCredential::Nothing),
        ];
        for (given, expected) in cases {
            assert_eq!(
                presented_credential(&headers(given)),
                Ok(expected),
                "{given:?}"
            );
        }
    }

    #[test]
    fn anything_else_is_refused_in_words() {
        let cases: [(&[(&str, &str)], &str); 8] = [
            (&[("authorization", "")], "must be Bearer"),
            (&[("authorization", "Bearer")], "empty"),
            (&[("authorization", "Bearer   ")], "empty"),
            (&[("authorization", "Basic abc")], "must be Bearer"),
            (&[("authorization", "Bearerabc")], "must be Bearer"),
            (&[("authorization", "Bearer \u{fc}")], "plain text"),
            (
                &[("authorization", "Bearer a"), ("authorization", "Bearer a")],
                "more than one",
            ),
            (
                &[("authorization", "Bearer a"), ("x-api-key", "a")],
                "more than one",
            ),
        ];
        for (given, expected) in cases {
            let Err(AuthRejection::Bad(why)) = presented_credential(&headers(given)) else {
                panic!("{given:?} was taken")
            };
            assert!(why.contains(expected), "{given:?}: {why}");
        }
    }
}
