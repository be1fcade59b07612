//! Tests of the protected resource metadata and the background refresh of keys.

use super::*;

/// A document that serves both as an issuer's metadata and as its key set.
struct PublishedMetadata(serde_json::Value);

impl outbound_http::HttpFetch for PublishedMetadata {
    fn get(
        &self,
        _: String,
    ) -> futures::future::BoxFuture<'static, Result<Vec<u8>, outbound_http::HttpFetchError>> {
        let bytes = self.0.to_string().into_bytes();
        Box::pin(async { Ok(bytes) })
    }

    fn post(
        &self,
        _: String,
        _: outbound_http::FormPost,
    ) -> futures::future::BoxFuture<'static, Result<Vec<u8>, outbound_http::HttpFetchError>> {
        Box::pin(async { Err(outbound_http::HttpFetchError::Unreachable) })
    }
}

#[tokio::test(start_paused = true)]
async fn keys_are_here_before_the_first_caller_and_stay_fresh() {
    let mut document = jwks(&[&Signer::ed25519("k")]);
    document["issuer"] = json!("https://r.example");
    document["jwks_uri"] = json!("https://r.example/jwks");
    let web = Arc::new(PublishedMetadata(document));
    let issuer = Issuer::with_fetcher("https://r.example".to_owned(), None, web);
    let auth = Auth::builder([BASE]).issuer(issuer).build().unwrap();
    assert!(!auth.is_ready());
    let stop = CancellationToken::new();
    auth.keep_keys_fresh(&stop);
    let pass = |seconds: u64| tokio::time::sleep(std::time::Duration::from_secs(seconds));
    pass(1).await;
    assert!(auth.is_ready());
    pass(3 * 3_600).await;
    assert!(auth.is_ready(), "nobody asked, and they are fresh");
    stop.cancel();
    pass(2 * 3_600).await;
    assert!(!auth.is_ready(), "nobody keeps them any more");
}

async fn described(auth: &Auth) -> (HeaderMap, serde_json::Value) {
    let (parts, body) = auth.metadata(&HeaderMap::new(), "/mcp").into_parts();
    let bytes = axum::body::to_bytes(body, 10_000).await.unwrap();
    (parts.headers, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn resource_metadata_contains_what_was_configured() {
    let dir = tempfile::tempdir().unwrap();
    let keys = ApiKeyStore::open(dir.path().join("keys")).unwrap();
    let only_keys = Auth::builder([BASE]).keys(keys).build().unwrap();
    let (headers, document) = described(&only_keys).await;
    // An empty list would mean that no sign-in is needed.
    assert_eq!(document.get("authorization_servers"), None);
    assert_eq!(document.get("resource_name"), None);
    assert_eq!(headers["vary"], "host, origin");
    assert_eq!(headers["cache-control"], "public, max-age=300");
    let auth = builder()
        .name("Harbour archive")
        .documentation("https://docs.example.org/about")
        .build()
        .unwrap();
    let (_, document) = described(&auth).await;
    assert_eq!(document["resource"], format!("{BASE}/mcp"));
    assert_eq!(
        document["authorization_servers"],
        json!(["https://a.example"])
    );
    assert_eq!(document["resource_name"], "Harbour archive");
    assert_eq!(
        document["resource_documentation"],
        "https://docs.example.org/about"
    );
}

#[tokio::test]
async fn a_token_may_be_meant_for_a_name_that_the_provider_knows() {
    let signer = Signer::ed25519("k");
    let keys = LocalKeys::default();
    keys.replace(&jwks(&[&signer])).unwrap();
    let lock = |names: &[&str]| {
        let issuer = Issuer::local("https://a.example", keys.clone());
        let issuer = issuer.access_tokens_only(false);
        let builder = Auth::builder([BASE]).issuer(issuer);
        builder.audiences(names.to_vec()).build().unwrap()
    };
    let token = |aud: &str| {
        signer
            .token(&json!({"iss": "https://a.example", "sub": "u", "aud": aud, "exp": now() + 60}))
    };
    let both = ["api://docs", "HTTPS://Other.example"].as_slice();
    for (names, aud, good) in [
        (both, "api://docs", true),
        (both, "https://other.example", true),
        (both, BASE, true),
        (both, "api://other", false),
        ([].as_slice(), "api://docs", false),
    ] {
        let found = lock(names).identify(&headers(&token(aud))).await;
        assert_eq!(found.is_ok(), good, "{aud}");
    }
}

#[test]
fn addresses_have_a_bound() {
    let of = |size: usize| format!("{BASE}/{}", "x".repeat(size - BASE.len() - 1));
    assert!(challenge::base_url(&of(512)).is_ok());
    assert!(challenge::base_url(&of(513)).is_err());
}

#[tokio::test]
async fn an_issuer_on_this_machine_is_asked_where_the_owner_allows_it() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/i", listener.local_addr().unwrap());
    let says = json!({"active": true, "sub": "u", "aud": BASE, "exp": now() + 60});
    let route = crate::http::Route::post("/i", move |_| {
        let page = crate::http::RouteResponse::json(&says);
        async move { Ok(page) }
    });
    let options = crate::http::HttpOptions {
        routes: vec![route],
        ..crate::http::HttpOptions::default()
    };
    let stop = CancellationToken::new();
    tokio::spawn(crate::http::serve_routes(options, listener, stop.clone()));
    let identify = async |network: IssuerNetwork| {
        let issuer = Issuer::introspected(
            "https://x.example",
            &endpoint,
            INTROSPECTION_CLIENT,
            network,
        );
        let auth = Auth::builder([BASE]).issuer(issuer).build().unwrap();
        auth.identify(&headers("opaque")).await
    };
    let caller = identify(IssuerNetwork::Private).await.unwrap();
    assert_eq!(caller.subject(), Some("u"));
    assert_eq!(
        identify(IssuerNetwork::Public).await,
        Err(AuthRejection::Unready)
    );
    stop.cancel();
}
