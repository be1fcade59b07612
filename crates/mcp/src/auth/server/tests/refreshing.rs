//! Refresh tokens in the wrong hands, at the wrong time, for the wrong thing.

use super::*;

#[tokio::test]
async fn an_old_refresh_token_ends_everything() {
    let world = SignInWorld::new();
    let (client, tokens) = world.tokens().await;
    let first = text(&tokens, "refresh_token");
    let second = text(
        &world.refresh(&client, &first).await.json(),
        "refresh_token",
    );
    let third = world.refresh(&client, &second).await.json();
    assert_eq!(world.call(&text(&third, "access_token")).await.status, 200);
    let reused = world.refresh(&client, &first).await;
    assert_eq!(reused.json()["error"], "invalid_grant");
    let after = world.refresh(&client, &text(&third, "refresh_token")).await;
    assert_eq!(after.json()["error"], "invalid_grant");
    assert_eq!(world.call(&text(&third, "access_token")).await.status, 401);
}

#[tokio::test]
async fn a_lost_answer_is_forgiven_once_and_a_thief_is_noticed_all_the_same() {
    let world = SignInWorld::new();
    let (client, tokens) = world.tokens().await;
    let first = text(&tokens, "refresh_token");
    let lost = text(
        &world.refresh(&client, &first).await.json(),
        "refresh_token",
    );
    world.pass(29);
    let again = world.refresh(&client, &first).await;
    assert_eq!(again.status, 200, "{}", again.body);
    // Whoever has the lost one is not who asked again; nobody can tell which of them is the thief.
    assert_eq!(
        world.refresh(&client, &lost).await.json()["error"],
        "invalid_grant"
    );
    let got = world
        .refresh(&client, &text(&again.json(), "refresh_token"))
        .await;
    assert_eq!(got.json()["error"], "invalid_grant");

    let (client, tokens) = world.tokens().await;
    let first = text(&tokens, "refresh_token");
    assert_eq!(world.refresh(&client, &first).await.status, 200);
    world.pass(30);
    assert_eq!(
        world.refresh(&client, &first).await.json()["error"],
        "invalid_grant"
    );
}

#[tokio::test]
async fn refresh_tokens_belong_to_their_client_and_give_no_more_than_was_allowed() {
    let world = SignInWorld::new();
    let (client, tokens) = world.tokens().await;
    let token = text(&tokens, "refresh_token");
    let stranger = world.client().await;
    assert_eq!(
        world.refresh(&stranger, &token).await.json()["error"],
        "invalid_grant"
    );
    for (name, value, error) in [
        ("scope", "docs.read openid", "invalid_scope"),
        ("scope", "admin", "invalid_scope"),
        ("resource", "https://docs.example.org/", "invalid_target"),
        ("resource", "https://evil.example/", "invalid_target"),
    ] {
        let values = [
            ("grant_type", "refresh_token"),
            ("client_id", &client),
            ("refresh_token", &token),
            (name, value),
        ];
        assert_eq!(
            world.post("/token", &values).await.json()["error"],
            error,
            "{name} {value}"
        );
    }
    let (id, _) = token.split_once('.').unwrap();
    for bad in [
        "",
        "x",
        "x.y",
        id,
        &format!("{id}."),
        &format!("{token}x"),
        &"a".repeat(12_000),
    ] {
        let got = world.refresh(&client, bad).await;
        assert!(got.status == 400, "{bad}");
    }
    // None of that was the token, so it still works.
    assert_eq!(world.refresh(&client, &token).await.status, 200);
}

#[tokio::test]
async fn a_refresh_may_ask_for_less_and_every_token_is_another() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let mut asked = world.request(&client);
    asked.retain(|(name, _)| *name != "scope");
    asked.push(("scope", "docs.read openid email"));
    let page = world.ask(&asked).await;
    let code = world.sign_in(&page, "anna", PASSWORD).await.sent("code");
    let mut tokens = world.spend(&client, &code.unwrap()).await.json();
    let mut seen = std::collections::BTreeSet::new();
    for (scope, granted) in [
        ("docs.read", "docs.read"),
        ("openid  docs.read ", "openid docs.read"),
        ("docs.read openid email", "docs.read openid email"),
    ] {
        let refresh = text(&tokens, "refresh_token");
        let nothing = [
            ("grant_type", "refresh_token"),
            ("client_id", &client),
            ("refresh_token", &refresh),
            ("scope", " "),
        ];
        let refused = world.post("/token", &nothing).await.json();
        assert_eq!(refused["error"], "invalid_scope");
        let values = [&nothing[..3], &[("scope", scope)]].concat();
        tokens = world.post("/token", &values).await.json();
        assert_eq!(tokens["scope"], granted);
        let said = claims(&text(&tokens, "access_token"));
        assert_eq!(said["scope"], granted);
        assert!(
            seen.insert(text(&said, "jti")),
            "a token is another each time"
        );
        assert_eq!(tokens.get("id_token").is_some(), granted.contains("openid"));
    }
}

/// A refresh waits for no registration by construction: the two have writers of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_is_answered_while_the_writer_of_registrations_is_held() {
    let world = Arc::new(SignInWorld::new());
    let (client, tokens) = world.tokens().await;
    let waiting = world.client().await;
    let held = world.server().0.registry.hold_writer();
    let registrations: Vec<_> = (0..30)
        .map(|_| {
            let world = world.clone();
            tokio::spawn(async move { world.client().await })
        })
        .collect();
    // Longer than any machine takes: a refresh that waits for the writer would wait for ever.
    let hang = std::time::Duration::from_secs(60);
    let work = async {
        let mut token = text(&tokens, "refresh_token");
        for _ in 0..10 {
            let got = world.refresh(&client, &token).await;
            assert_eq!(got.status, 200, "{}", got.body);
            token = text(&got.json(), "refresh_token");
        }
        // Neither does whoever signs in through a client that registered before.
        let code = world.code(&waiting).await;
        assert_eq!(world.spend(&waiting, &code).await.status, 200);
    };
    let done = tokio::time::timeout(hang, work).await;
    let early = registrations.iter().filter(|one| one.is_finished()).count();
    drop(held);
    assert!(done.is_ok(), "a refresh waits for registrations");
    assert_eq!(early, 0, "the writer was held");
    for one in registrations {
        one.await.unwrap();
    }
}
