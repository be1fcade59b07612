//! Issuer metadata discovery by RFC 8414 and OpenID Connect Discovery: from an issuer's name to its
//! endpoints.

use serde_json::{Map, Value};

use super::outbound_http::HttpFetch;
use super::strict_json;

/// The maximum length of a URL in an issuer's metadata.
const MAX_URL_BYTES: usize = 2_048;

/// The candidate URLs of an issuer's metadata, in the order in which the MCP specification asks clients to
/// try them.
pub(crate) fn metadata_urls(issuer: &str) -> Vec<String> {
    let Some((scheme, rest)) = issuer.split_once("://") else {
        return Vec::new();
    };
    let (host, path) = match rest.split_once('/') {
        Some((host, path)) => (host, path.trim_end_matches('/')),
        None => (rest, ""),
    };
    let slash = if path.is_empty() { "" } else { "/" };
    let mut places = vec![
        format!("{scheme}://{host}/.well-known/oauth-authorization-server{slash}{path}"),
        format!("{scheme}://{host}/.well-known/openid-configuration{slash}{path}"),
    ];
    if !path.is_empty() {
        places.push(format!(
            "{scheme}://{host}/{path}/.well-known/openid-configuration"
        ));
    }
    places
}

/// Fetches the issuer's metadata. A document whose `issuer` differs is refused (RFC 8414, section 3.3), or
/// one issuer could impersonate another.
///
/// # Errors
/// When none of the candidate URLs has the issuer's metadata. The text quotes nothing from a response.
pub async fn metadata(issuer: &str, web: &dyn HttpFetch) -> Result<Map<String, Value>, String> {
    let mut last = "its name is not an address".to_owned();
    for place in metadata_urls(issuer) {
        match web.get(place).await {
            Err(error) => last = error.to_string(),
            Ok(bytes) => match strict_json::parse(&bytes) {
                None => last = "its metadata is not JSON".to_owned(),
                Some(found) if found.get("issuer").and_then(Value::as_str) != Some(issuer) => {
                    last = "its metadata names another issuer".to_owned();
                }
                Some(found) => return Ok(found),
            },
        }
    }
    Err(last)
}

/// An endpoint URL from the metadata, if it is there and not too long.
#[must_use]
pub fn endpoint_url(metadata: &Map<String, Value>, name: &str) -> Option<String> {
    let url = metadata.get(name)?.as_str()?;
    (url.len() <= MAX_URL_BYTES).then(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_where_clients_look() {
        let at = "https://a.example/.well-known";
        assert_eq!(
            metadata_urls("https://a.example"),
            [
                format!("{at}/oauth-authorization-server"),
                format!("{at}/openid-configuration")
            ]
        );
        assert_eq!(
            metadata_urls("https://a.example/"),
            metadata_urls("https://a.example")
        );
        assert_eq!(
            metadata_urls("https://a.example/t/1/"),
            [
                format!("{at}/oauth-authorization-server/t/1"),
                format!("{at}/openid-configuration/t/1"),
                "https://a.example/t/1/.well-known/openid-configuration".to_owned(),
            ]
        );
        assert!(metadata_urls("a.example").is_empty());
    }

    #[tokio::test]
    async fn the_error_is_that_of_the_last_discovery_address() {
        struct FixedFetch(Result<&'static str, super::super::outbound_http::HttpFetchError>);
        type FixedFetchFuture =
            futures::future::BoxFuture<'static, Result<Vec<u8>, HttpFetchError>>;
        use super::super::outbound_http::{FormPost, HttpFetchError};
        impl HttpFetch for FixedFetch {
            fn get(&self, _: String) -> FixedFetchFuture {
                let answer = self.0.map(|text| text.as_bytes().to_vec());
                Box::pin(async { answer })
            }
            fn post(&self, _: String, _: FormPost) -> FixedFetchFuture {
                Box::pin(async { Err(HttpFetchError::Unreachable) })
            }
        }
        let other = r#"{"issuer":"https://b.example"}"#;
        for (answer, why) in [
            (Err(HttpFetchError::TooLong), "the answer is too long"),
            (Ok("junk"), "its metadata is not JSON"),
            (Ok(other), "its metadata names another issuer"),
            (Ok("{}"), "its metadata names another issuer"),
        ] {
            let actual = metadata("https://a.example", &FixedFetch(answer)).await;
            assert_eq!(actual, Err(why.to_owned()));
        }
        let nowhere = metadata("a.example", &FixedFetch(Ok(other))).await;
        assert_eq!(nowhere, Err("its name is not an address".to_owned()));
        let found = metadata("https://b.example", &FixedFetch(Ok(other))).await;
        assert!(found.unwrap().contains_key("issuer"));
    }

    #[test]
    fn addresses_have_a_bound() {
        let of = |size: usize| {
            let text = "x".repeat(size);
            let metadata = [("jwks_uri".to_owned(), Value::from(text))]
                .into_iter()
                .collect();
            endpoint_url(&metadata, "jwks_uri").is_some()
        };
        assert!(of(MAX_URL_BYTES));
        assert!(!of(MAX_URL_BYTES + 1));
        assert_eq!(endpoint_url(&Map::new(), "jwks_uri"), None);
    }
}
