//! Two issuers at one server: what one of them signed counts in its own name alone, whatever the token says.

use serde_json::json;

use crate::world::{AuthWorld, RawRequest, STRICT, claims};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_one_issuer_signs_nothing_in_the_name_of_the_other() {
    let world = AuthWorld::start().await;
    let (remote, local) = (world.claims(), claims(STRICT));
    let named = |kid: &str| json!({"kid": kid});
    let nameless = json!({"kid": null});
    for (what, token, status) in [
        ("the issuer elsewhere", world.ed.token(&remote), 200),
        ("the issuer here", world.strict.token(&local), 200),
        ("here for elsewhere", world.strict.token(&remote), 401),
        ("elsewhere for here", world.ed.token(&local), 401),
        // Under the name of a key that the other one has.
        (
            "here, named as elsewhere",
            world.strict.token_with(&named("ed"), &remote),
            401,
        ),
        (
            "elsewhere, named as here",
            world.ed.token_with(&named("strict"), &local),
            401,
        ),
        (
            "elsewhere, without a name",
            world.ed.token_with(&nameless, &local),
            401,
        ),
        (
            "here, without a name",
            world.strict.token_with(&nameless, &remote),
            401,
        ),
    ] {
        let answered = world
            .server
            .send(&RawRequest::call("whoami").bearer(&token))
            .await;
        assert_eq!(answered.status, status, "{what}: {}", answered.body);
    }
    // Two issuers in one token are no issuer.
    let mut both = remote;
    both["iss"] = json!([world.provider.name, STRICT]);
    let answered = world
        .server
        .send(&RawRequest::call("whoami").bearer(&world.ed.token(&both)))
        .await;
    assert_eq!(answered.status, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_unknown_keys_holds_up_nobody_with_a_known_one() {
    let world = AuthWorld::start().await;
    let good = world.ed.token(&world.claims());
    let server = &world.server;
    assert_eq!(
        server
            .send(&RawRequest::call("whoami").bearer(&good))
            .await
            .status,
        200
    );
    let flood = (0..200).map(|n| {
        let kid = json!({"kid": format!("unknown-{n}")});
        let token = world.ed.token_with(&kid, &world.claims());
        async move {
            server
                .send(&RawRequest::call("whoami").bearer(&token))
                .await
                .status
        }
    });
    let others = (0..20).map(|_| async {
        server
            .send(&RawRequest::call("whoami").bearer(&good))
            .await
            .status
    });
    let (flood, others) = futures::join!(
        futures::future::join_all(flood),
        futures::future::join_all(others)
    );
    assert!(flood.iter().all(|status| *status == 401), "{flood:?}");
    assert!(others.iter().all(|status| *status == 200), "{others:?}");
}
