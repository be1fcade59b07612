//! Issuer mix-up: two issuers at one server. A key is valid for its own issuer only, whatever `iss` and `kid` say.

use serde_json::json;

use crate::fixture::{AuthFixture, RawRequest, STRICT, claims};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_one_issuer_signs_nothing_in_the_name_of_the_other() {
    let fixture = AuthFixture::start().await;
    let (remote, local) = (fixture.claims(), claims(STRICT));
    let with_kid = |kid: &str| json!({"kid": kid});
    let without_kid = json!({"kid": null});
    for (what, token, status) in [
        ("remote issuer", fixture.ed.token(&remote), 200),
        ("local issuer", fixture.strict.token(&local), 200),
        (
            "local key, remote issuer",
            fixture.strict.token(&remote),
            401,
        ),
        ("remote key, local issuer", fixture.ed.token(&local), 401),
        // With the `kid` of a key of the other issuer.
        (
            "local key with a remote kid",
            fixture.strict.token_with(&with_kid("ed"), &remote),
            401,
        ),
        (
            "remote key with a local kid",
            fixture.ed.token_with(&with_kid("strict"), &local),
            401,
        ),
        (
            "remote key without a kid",
            fixture.ed.token_with(&without_kid, &local),
            401,
        ),
        (
            "local key without a kid",
            fixture.strict.token_with(&without_kid, &remote),
            401,
        ),
    ] {
        let answered = fixture
            .server
            .send(&RawRequest::call("whoami").bearer(&token))
            .await;
        assert_eq!(answered.status, status, "{what}: {}", answered.body);
    }
    // An `iss` with two issuers is no valid issuer.
    let mut both = remote;
    both["iss"] = json!([fixture.provider.name, STRICT]);
    let answered = fixture
        .server
        .send(&RawRequest::call("whoami").bearer(&fixture.ed.token(&both)))
        .await;
    assert_eq!(answered.status, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_unknown_keys_holds_up_nobody_with_a_known_one() {
    let fixture = AuthFixture::start().await;
    let good = fixture.ed.token(&fixture.claims());
    let server = &fixture.server;
    assert_eq!(
        server
            .send(&RawRequest::call("whoami").bearer(&good))
            .await
            .status,
        200
    );
    let flood = (0..200).map(|n| {
        let kid = json!({"kid": format!("unknown-{n}")});
        let token = fixture.ed.token_with(&kid, &fixture.claims());
        async move {
            server
                .send(&RawRequest::call("whoami").bearer(&token))
                .await
                .status
        }
    });
    let known = (0..20).map(|_| async {
        server
            .send(&RawRequest::call("whoami").bearer(&good))
            .await
            .status
    });
    let (flood, known) = futures::join!(
        futures::future::join_all(flood),
        futures::future::join_all(known)
    );
    assert!(flood.iter().all(|status| *status == 401), "{flood:?}");
    assert!(known.iter().all(|status| *status == 200), "{known:?}");
}
