//! The complete sign-in from the first request to a tool call, with refresh, restart and revocation.

use super::*;

#[tokio::test]
async fn from_registration_to_a_call_that_knows_who_asks() {
    let world = SignInWorld::new();
    let refused = world.call("nothing").await;
    assert_eq!(refused.status, 401);
    let (client, tokens) = world.tokens().await;
    let access = text(&tokens, "access_token");
    let reply = world.call(&access).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert!(
        reply.body.contains("anna|anna@port.example|crew"),
        "{}",
        reply.body
    );

    let claims = claims(&access);
    assert_eq!(claims["aud"], "https://docs.example.org/mcp");
    assert_eq!(claims["iss"], ADDRESS);
    assert_eq!(claims["client_id"], client.as_str());
    assert_eq!(claims["scope"], "docs.read");
    assert_eq!(tokens["expires_in"], 900);
    assert!(tokens.get("id_token").is_none());
}

#[tokio::test]
async fn the_answer_carries_state_and_issuer_for_better_and_for_worse() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let page = world.ask(&world.request(&client)).await;
    assert_eq!(page.status, 200);
    let allowed = world.sign_in(&page, "anna", PASSWORD).await;
    let denied = world.submit_form(&page, &[("decision", "deny")]).await;
    let mut wrong = world.request(&client);
    wrong.retain(|(name, _)| *name != "code_challenge");
    let refused = world.ask(&wrong).await;
    assert_eq!(denied.sent("error").as_deref(), Some("access_denied"));
    assert_eq!(refused.sent("error").as_deref(), Some("invalid_request"));
    assert!(allowed.redirects() && denied.redirects() && !refused.redirects());
    for reply in [&allowed, &denied, &refused] {
        assert_eq!(reply.sent("state").as_deref(), Some("s&1"));
        assert_eq!(reply.sent("iss").as_deref(), Some(ADDRESS));
        assert!(
            reply
                .target()
                .as_str()
                .starts_with("https://app.example/cb?")
        );
    }
}

#[tokio::test]
async fn the_consent_page_names_client_host_and_server_and_has_strict_headers() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let page = world.ask(&world.request(&client)).await;
    for shown in ["Chart room", "app.example", "Harbour &lt;archive&gt;"] {
        assert!(page.body.contains(shown), "{shown}: {}", page.body);
    }
    let policy = page.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !page.body.contains("<script"));
    assert_eq!(page.header("x-frame-options"), "DENY");
    assert_eq!(page.header("cache-control"), "no-store");
    let cookie = page.header("set-cookie");
    for part in [
        "__Host-docent-form=",
        "HttpOnly",
        "Secure",
        "SameSite=Lax",
        "Path=/",
    ] {
        assert!(cookie.contains(part), "{cookie}");
    }
}

#[tokio::test]
async fn refresh_tokens_turn_and_outlive_a_restart() {
    let mut world = SignInWorld::new();
    let (client, tokens) = world.tokens().await;
    let first = text(&tokens, "refresh_token");
    world.restart();
    let reply = world.refresh(&client, &first).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let second = text(&reply.json(), "refresh_token");
    assert_ne!(first, second);
    let access = text(&reply.json(), "access_token");
    assert_eq!(world.call(&access).await.status, 200);
    world.advance_clock(29 * 86_400);
    let third = world.refresh(&client, &second).await;
    assert_eq!(third.status, 200, "{}", third.body);
    world.advance_clock(31 * 86_400);
    let late = world
        .refresh(&client, &text(&third.json(), "refresh_token"))
        .await;
    assert_eq!(late.json()["error"], "invalid_grant");
}

#[tokio::test]
async fn a_grant_ends_for_good_after_half_a_year() {
    let world = SignInWorld::new();
    let (client, tokens) = world.tokens().await;
    let mut token = text(&tokens, "refresh_token");
    for _ in 0..8 {
        world.advance_clock(20 * 86_400);
        token = text(
            &world.refresh(&client, &token).await.json(),
            "refresh_token",
        );
    }
    world.advance_clock(20 * 86_400);
    let reply = world.refresh(&client, &token).await;
    assert_eq!(reply.json()["error"], "invalid_grant");
}

#[tokio::test]
async fn groups_and_addresses_are_those_of_today() {
    let world = SignInWorld::new();
    let (client, tokens) = world.tokens().await;
    UserStore::in_dir(world.dir.path())
        .update("anna", |user| user.groups = vec!["captains".to_owned()])
        .unwrap();
    let reply = world
        .refresh(&client, &text(&tokens, "refresh_token"))
        .await;
    let claims = claims(&text(&reply.json(), "access_token"));
    assert_eq!(claims["groups"], json!(["captains"]));
}

#[tokio::test]
async fn removing_a_user_or_changing_a_password_revokes_grants() {
    let world = SignInWorld::new();
    let users = UserStore::in_dir(world.dir.path());
    let (client, tokens) = world.tokens().await;
    let (other, others) = world.tokens().await;
    let new = hash_password("another password").unwrap();
    users.update("anna", |user| user.password = new).unwrap();
    let reply = world
        .refresh(&client, &text(&tokens, "refresh_token"))
        .await;
    assert_eq!(reply.json()["error"], "invalid_grant");
    // The revoked grant invalidates its access tokens too.
    assert_eq!(world.call(&text(&tokens, "access_token")).await.status, 401);
    users.remove("anna").unwrap();
    let reply = world.refresh(&other, &text(&others, "refresh_token")).await;
    assert_eq!(reply.json()["error"], "invalid_grant");
}

#[tokio::test]
async fn a_revoked_grant_ends_at_once() {
    for kind in ["refresh_token", "access_token"] {
        let world = SignInWorld::new();
        let (client, tokens) = world.tokens().await;
        let access = text(&tokens, "access_token");
        assert_eq!(world.call(&access).await.status, 200);
        let stranger = world.client().await;
        let token = text(&tokens, kind);
        let others = world
            .post("/revoke", &[("token", &token), ("client_id", &stranger)])
            .await;
        assert_eq!(others.status, 200);
        assert_eq!(
            world.call(&access).await.status,
            200,
            "another client's word ends nothing"
        );
        let reply = world
            .post("/revoke", &[("token", &token), ("client_id", &client)])
            .await;
        assert_eq!(reply.status, 200);
        assert_eq!(world.call(&access).await.status, 401);
        let again = world
            .refresh(&client, &text(&tokens, "refresh_token"))
            .await;
        assert_eq!(again.json()["error"], "invalid_grant");
    }
}

#[tokio::test]
async fn openid_clients_learn_who_it_is() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let mut params = world.request(&client);
    params.retain(|(name, _)| *name != "scope");
    params.extend([
        ("scope", "openid email docs.read unknown"),
        ("nonce", "n-1"),
    ]);
    let page = world.ask(&params).await;
    assert!(page.body.contains("see your e-mail address"));
    let code = world
        .sign_in(&page, "anna", PASSWORD)
        .await
        .sent("code")
        .unwrap();
    let tokens = world.spend(&client, &code).await.json();
    assert_eq!(tokens["scope"], "docs.read openid email");
    let id_token = text(&tokens, "id_token");
    let token_claims = claims(&id_token);
    assert_eq!(
        (&token_claims["aud"], &token_claims["nonce"]),
        (&json!(client), &json!("n-1"))
    );
    assert_eq!(token_claims["email"], "anna@port.example");
    assert_eq!(
        world.call(&id_token).await.status,
        401,
        "an ID token opens nothing"
    );

    let bearer = format!("Bearer {}", text(&tokens, "access_token"));
    let request = Request::get("/userinfo").header("authorization", bearer);
    let info = world.send(request, String::new()).await;
    assert_eq!(
        info.json(),
        json!({"sub": "anna", "email": "anna@port.example", "email_verified": true})
    );
    assert_eq!(world.get("/userinfo").await.status, 401);
    let (_, plain) = world.tokens().await;
    let bearer = format!("Bearer {}", text(&plain, "access_token"));
    let request = Request::get("/userinfo").header("authorization", bearer);
    assert_eq!(world.send(request, String::new()).await.status, 403);
}

#[tokio::test]
async fn metadata_is_where_clients_look_and_says_what_is_so() {
    let world = SignInWorld::new();
    for place in ["oauth-authorization-server", "openid-configuration"] {
        let reply = world.get(&format!("/.well-known/{place}")).await;
        let document = reply.json();
        assert_eq!(document["issuer"], ADDRESS);
        assert_eq!(
            document["code_challenge_methods_supported"],
            json!(["S256"])
        );
        assert_eq!(
            document["token_endpoint_auth_methods_supported"],
            json!(["none"])
        );
        assert_eq!(document["client_id_metadata_document_supported"], true);
        assert_eq!(
            document["authorization_response_iss_parameter_supported"],
            true
        );
        for endpoint in [
            "authorization_endpoint",
            "token_endpoint",
            "registration_endpoint",
            "jwks_uri",
        ] {
            assert!(text(&document, endpoint).starts_with(ADDRESS), "{endpoint}");
        }
    }
    let keys = world.get("/jwks.json").await.json();
    assert_eq!(keys["keys"][0]["kty"], "EC");
    assert!(keys["keys"][0].get("d").is_none());
    let resource = world
        .get("/.well-known/oauth-protected-resource/mcp")
        .await
        .json();
    assert_eq!(resource["authorization_servers"], json!([ADDRESS]));
}

#[tokio::test]
async fn programs_on_the_users_machine_take_any_port() {
    let world = SignInWorld::new();
    let registered = world
        .register(json!({"redirect_uris": ["http://127.0.0.1/callback"], "grant_types": ["authorization_code"]}))
        .await;
    let client = text(&registered.json(), "client_id");
    let mut params = world.request(&client);
    params.retain(|(name, _)| *name != "redirect_uri");
    params.push(("redirect_uri", "http://127.0.0.1:51234/callback"));
    let page = world.ask(&params).await;
    assert!(page.body.contains("this computer"), "{}", page.body);
    let reply = world.sign_in(&page, "anna", PASSWORD).await;
    assert_eq!(reply.target().port(), Some(51234));
    let code = reply.sent("code").unwrap();
    let values = [
        ("grant_type", "authorization_code"),
        ("client_id", client.as_str()),
        ("code", &code),
        ("code_verifier", VERIFIER),
    ];
    let tokens = world.post("/token", &values).await.json();
    assert!(
        tokens.get("refresh_token").is_none(),
        "it did not ask for one"
    );
    assert_eq!(world.call(&text(&tokens, "access_token")).await.status, 200);
}
