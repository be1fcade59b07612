//! Refresh tokens: rotation, reuse detection, expiry and narrowed scopes.

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
    world.advance_clock(29);
    let again = world.refresh(&client, &first).await;
    assert_eq!(again.status, 200, "{}", again.body);
    // The token that was lost was not used by whoever retried. Nobody can tell which of the two is the
    // thief, so the grant ends.
    assert_eq!(
        world.refresh(&client, &lost).await.json()["error"],
        "invalid_grant"
    );
    let reply = world
        .refresh(&client, &text(&again.json(), "refresh_token"))
        .await;
    assert_eq!(reply.json()["error"], "invalid_grant");

    let (client, tokens) = world.tokens().await;
    let first = text(&tokens, "refresh_token");
    assert_eq!(world.refresh(&client, &first).await.status, 200);
    world.advance_clock(30);
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
        let reply = world.refresh(&client, bad).await;
        assert!(reply.status == 400, "{bad}");
    }
    // None of these was the token, so it still works.
    assert_eq!(world.refresh(&client, &token).await.status, 200);
}

#[tokio::test]
async fn a_refresh_may_ask_for_less_and_every_token_is_another() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let mut params = world.request(&client);
    params.retain(|(name, _)| *name != "scope");
    params.push(("scope", "docs.read openid email"));
    let page = world.ask(&params).await;
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
        let token_claims = claims(&text(&tokens, "access_token"));
        assert_eq!(token_claims["scope"], granted);
        assert!(
            seen.insert(text(&token_claims, "jti")),
            "a token is another each time"
        );
        assert_eq!(tokens.get("id_token").is_some(), granted.contains("openid"));
    }
}

/// A refresh never waits for registrations by construction: each database has its own writer.
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
    // Longer than any machine needs: a refresh that waited for the writer would never return.
    let hang = std::time::Duration::from_secs(60);
    let work = async {
        let mut token = text(&tokens, "refresh_token");
        for _ in 0..10 {
            let reply = world.refresh(&client, &token).await;
            assert_eq!(reply.status, 200, "{}", reply.body);
            token = text(&reply.json(), "refresh_token");
        }
        // A login through a client that registered before does not wait either.
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
