//! Tests of [`Auth`] as a whole: its validation, missing scopes, and the dispatch of credentials.

mod metadata;

use std::sync::Mutex;

use http::{HeaderMap, HeaderValue, header};
use serde_json::json;

use super::*;
use crate::auth::mint::{Signer, jwks};
use crate::auth::outbound_http;
use crate::auth::{ApiKeyGrant, IntrospectionClient, IssuerNetwork, LocalKeys};

const BASE: &str = "https://docs.example.org";

const INTROSPECTION_CLIENT: IntrospectionClient<'static> = IntrospectionClient {
    id: "c",
    secret: "s",
};

fn local(name: &str) -> Issuer {
    Issuer::local(name, LocalKeys::default())
}

fn builder() -> AuthBuilder {
    Auth::builder([BASE]).issuer(local("https://a.example"))
}

#[test]
fn a_lock_that_nobody_could_open_does_not_build() {
    let fails = |builder: AuthBuilder| builder.build().err().unwrap();
    assert_eq!(fails(Auth::builder([BASE])), AuthError::Nobody);
    assert!(matches!(
        fails(builder().scopes(["a b"])),
        AuthError::Scope(_)
    ));
    assert!(matches!(
        fails(builder().issuer(local("https://a.example"))),
        AuthError::Twice(_)
    ));
    // An issuer with the name of the pseudo-issuer could pass for API keys.
    assert!(matches!(
        fails(builder().issuer(local("key"))),
        AuthError::Twice(_)
    ));
    let none: [&str; 0] = [];
    let nowhere = Auth::builder(none).issuer(local("https://a.example"));
    assert!(matches!(fails(nowhere), AuthError::Address(_)));
    let issuers = |count: usize| {
        let mut builder = Auth::builder([BASE]);
        for n in 0..count {
            builder = builder.issuer(local(&format!("https://{n}.example")));
        }
        builder.build().map(|_| ())
    };
    assert_eq!(issuers(MAX_ISSUERS), Ok(()));
    assert_eq!(issuers(MAX_ISSUERS + 1), Err(AuthError::TooMany("issuers")));
    let scopes = |count: usize| {
        let all: Vec<String> = (0..count).map(|n| format!("s{n}")).collect();
        builder().scopes(all).build().map(|_| ())
    };
    assert_eq!(scopes(MAX_SCOPES), Ok(()));
    assert_eq!(scopes(MAX_SCOPES + 1), Err(AuthError::TooMany("scopes")));
    let introspected = |name: &str| {
        Issuer::introspected(
            name,
            "https://a.example/i",
            INTROSPECTION_CLIENT,
            IssuerNetwork::Public,
        )
    };
    let one = builder().issuer(introspected("https://x.example"));
    assert!(one.build().is_ok());
    let two = builder()
        .issuer(introspected("https://x.example"))
        .issuer(introspected("https://y.example"));
    assert_eq!(fails(two), AuthError::Asked);
}

#[test]
fn scopes_are_words() {
    for good in [
        "a",
        "docs.read",
        "https://a.example/x",
        "a:b!#~",
        &"x".repeat(256),
    ] {
        assert!(is_scope(good), "{good}");
    }
    for bad in [
        "",
        "a b",
        "a\"b",
        "a\\b",
        "ä",
        "a\n",
        "\u{7f}",
        &"x".repeat(257),
    ] {
        assert!(!is_scope(bad), "{bad}");
    }
}

#[test]
fn a_lock_is_ready_when_every_issuer_is() {
    let keys = LocalKeys::default();
    let auth = builder()
        .issuer(Issuer::local("https://b.example", keys.clone()))
        .build()
        .unwrap();
    assert!(!auth.is_ready());
    keys.replace(&jwks(&[&Signer::ed25519("k")])).unwrap();
    assert!(!auth.is_ready(), "the other has none");
    let auth = Auth::builder([BASE])
        .issuer(Issuer::local("https://b.example", keys))
        .issuer(Issuer::introspected(
            "https://x.example",
            "https://x.example/i",
            INTROSPECTION_CLIENT,
            IssuerNetwork::Public,
        ))
        .build()
        .unwrap();
    assert!(auth.is_ready());
    let remote = Issuer::remote("https://r.example", None, IssuerNetwork::Public);
    assert!(
        !Auth::builder([BASE])
            .issuer(remote)
            .build()
            .unwrap()
            .is_ready()
    );
}

fn caller(scopes: &[&str]) -> Caller {
    let scopes = scopes.iter().map(|&scope| scope.to_owned()).collect();
    Caller::verified("i", "s", None, scopes, serde_json::Map::new())
}

#[test]
fn a_missing_scope_error_lists_all_required_scopes() {
    let auth = builder()
        .scopes(["base"])
        .requirement(AuthRequirement::ByTool)
        .build()
        .unwrap();
    let own = [Security::oauth2(["x", "base", "y"])];
    let lack = |caller: &Caller, own: Option<&[Security]>| {
        auth.missing_scope(caller, own)
            .map(|lack| (lack.scopes.join(" "), lack.signed_in))
    };
    let all = "base x y".to_owned();
    let nobody = Caller::anonymous();
    assert_eq!(lack(&nobody, Some(&own)), Some((all.clone(), false)));
    assert_eq!(
        lack(&caller(&["base", "x"]), Some(&own)),
        Some((all.clone(), true))
    );
    assert_eq!(lack(&caller(&["x", "y"]), Some(&own)), Some((all, true)));
    assert_eq!(lack(&caller(&["base", "x", "y"]), Some(&own)), None);
    assert_eq!(lack(&Caller::owner(), Some(&own)), None);
    assert_eq!(lack(&nobody, Some(&[Security::NoAuth])), None);
    let either = [Security::oauth2(["x"]), Security::NoAuth];
    assert_eq!(lack(&nobody, Some(&either)), None);
    let two = [Security::oauth2(["x"]), Security::oauth2(["y"])];
    assert_eq!(lack(&caller(&["base", "y"]), Some(&two)), None);
    assert_eq!(
        lack(&caller(&["base"]), Some(&two)),
        Some(("base x".to_owned(), true))
    );
    // A tool without security schemes has the server's default.
    assert_eq!(lack(&nobody, None), Some(("base".to_owned(), false)));
    assert_eq!(lack(&caller(&["base"]), None), None);
    let open = builder()
        .scopes(["base"])
        .requirement(AuthRequirement::Optional)
        .build()
        .unwrap();
    assert_eq!(open.missing_scope(&nobody, None), None);
    assert_eq!(open.security_schemes(None).len(), 2);
    assert_eq!(auth.security_schemes(None), [Security::oauth2(["base"])]);
    assert_eq!(auth.security_schemes(Some(&either)), either);
    assert_eq!(auth.missing_base_scope(&caller(&["base"])), None);
    assert!(auth.missing_base_scope(&caller(&[])).unwrap().signed_in);
    assert!(!auth.missing_base_scope(&nobody).unwrap().signed_in);
}

#[test]
fn addresses_are_checked_when_the_lock_is_built() {
    for (good, base) in [
        ("https://docs.example.org", "https://docs.example.org"),
        ("https://docs.example.org/", "https://docs.example.org"),
        ("http://127.0.0.1:8787", "http://127.0.0.1:8787"),
        ("https://example.org/a/b/", "https://example.org/a/b"),
    ] {
        assert_eq!(challenge::base_url(good).unwrap(), base);
    }
    let long = format!("https://a.example/{}", "x".repeat(600));
    for bad in [
        "",
        "docs.example.org",
        "ftp://a.example",
        "https://",
        "https://a.example?x",
        "https://a.example/\"",
        "https://a.example/#x",
        "/a",
        &long,
    ] {
        assert!(challenge::base_url(bad).is_err(), "{bad}");
    }
}

#[test]
fn our_names_are_our_endpoints() {
    assert_eq!(
        challenge::audience_urls("HTTPS://Docs.Example.org/A"),
        [
            "https://docs.example.org/A",
            "https://docs.example.org/A/mcp",
            "https://docs.example.org/A/mcp/",
            "https://docs.example.org/A/",
            "https://docs.example.org/A/sse",
            "https://docs.example.org/A/sse/",
        ]
    );
    for (given, expected) in [
        ("HTTPS://A.Example/PATH?Q", "https://a.example/PATH?Q"),
        ("HTTP://A.Example", "http://a.example"),
        ("https://A.Example?X", "https://a.example?X"),
        ("https://A.Example#X", "https://a.example#X"),
        ("api://App", "api://App"),
        ("Some Name", "Some Name"),
    ] {
        assert_eq!(challenge::canonical(given), expected);
    }
}

fn headers(token: &str) -> HeaderMap {
    let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    [(header::AUTHORIZATION, value)].into_iter().collect()
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_secs()
}

#[tokio::test]
async fn every_kind_of_credential_finds_its_way() {
    let signer = Signer::ed25519("k");
    let local = LocalKeys::default();
    local.replace(&jwks(&[&signer])).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let keys = ApiKeyStore::open(dir.path().join("keys")).unwrap();
    let grant = ApiKeyGrant {
        name: "ci".to_owned(),
        ..ApiKeyGrant::default()
    };
    let key = keys.add(grant, now()).unwrap();
    let issuer = || Issuer::local("https://a.example", local.clone());
    let claims = json!({"iss": "https://a.example", "sub": "u", "aud": format!("{BASE}/mcp"), "exp": now() + 60});
    let token = signer.token(&claims);
    let auth = Auth::builder([BASE])
        .issuer(issuer())
        .keys(keys)
        .build()
        .unwrap();
    let by_token = auth.identify(&headers(&token)).await.unwrap();
    assert_eq!(by_token.subject(), Some("u"));
    let by_key = auth.identify(&headers(&key)).await.unwrap();
    assert_eq!(by_key.subject(), Some("ci"));
    let own = [("x-api-key", &key)].map(|(name, key)| {
        (
            http::HeaderName::from_static(name),
            HeaderValue::from_str(key).unwrap(),
        )
    });
    let by_header = auth.identify(&own.into_iter().collect()).await.unwrap();
    assert_eq!(by_header, by_key);
    assert_eq!(
        auth.identify(&HeaderMap::new()).await,
        Err(AuthRejection::Absent)
    );
    assert_eq!(
        auth.identify(&headers("opaque")).await,
        Err(AuthRejection::Bad("the token is not a JWT"))
    );
    let without = Auth::builder([BASE])
        .issuer(issuer())
        .requirement(AuthRequirement::Optional)
        .build()
        .unwrap();
    assert_eq!(
        without.identify(&headers(&key)).await,
        Err(AuthRejection::Bad("the API key is not known"))
    );
    assert_eq!(
        without.identify(&HeaderMap::new()).await,
        Ok(Caller::anonymous())
    );
}

/// A fake that answers every introspection request alike and fetches nothing.
struct StaticFetch(Mutex<serde_json::Value>);

impl outbound_http::HttpFetch for StaticFetch {
    fn get(
        &self,
        _: String,
    ) -> futures::future::BoxFuture<'static, Result<Vec<u8>, outbound_http::HttpFetchError>> {
        Box::pin(async { Err(outbound_http::HttpFetchError::Unreachable) })
    }

    fn post(
        &self,
        _: String,
        _: outbound_http::FormPost,
    ) -> futures::future::BoxFuture<'static, Result<Vec<u8>, outbound_http::HttpFetchError>> {
        let says = self.0.lock().unwrap().to_string().into_bytes();
        Box::pin(async { Ok(says) })
    }
}

#[tokio::test]
async fn an_opaque_token_is_asked_about_and_a_jwt_is_not() {
    let says = json!({"active": true, "sub": "u", "aud": format!("{BASE}/mcp"), "exp": now() + 60});
    let introspected = Issuer::with_introspector(
        "https://x.example".to_owned(),
        "https://x.example/i",
        INTROSPECTION_CLIENT,
        Arc::new(StaticFetch(Mutex::new(says))),
    );
    let auth = Auth::builder([BASE])
        .issuer(introspected.reject_if(|caller| caller.client() == Some("gone")))
        .build()
        .unwrap();
    let caller = auth.identify(&headers("opaque")).await.unwrap();
    assert_eq!(
        (caller.issuer(), caller.subject()),
        (Some("https://x.example"), Some("u"))
    );
    let claims = json!({"iss": "https://x.example", "sub": "u", "aud": format!("{BASE}/mcp"), "exp": now() + 60});
    let jwt = Signer::ed25519("k").token(&claims);
    let refused = auth.identify(&headers(&jwt)).await;
    assert_eq!(
        refused,
        Err(AuthRejection::Bad("the key of the token is not known"))
    );
}

#[tokio::test(start_paused = true)]
async fn keys_are_kept_until_the_server_stops() {
    let fetch = Arc::new(StaticFetch(Mutex::new(json!({}))));
    let issuer = Issuer::with_fetcher("https://r.example".to_owned(), None, fetch.clone());
    let auth = Auth::builder([BASE]).issuer(issuer).build().unwrap();
    let stop = CancellationToken::new();
    auth.keep_keys_fresh(&stop);
    tokio::time::sleep(std::time::Duration::from_secs(100)).await;
    // The background task and this test each hold the keys; after the task has ended, only `Auth` does.
    stop.cancel();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    drop(auth);
    assert_eq!(Arc::strong_count(&fetch), 1, "the task has gone");
}
