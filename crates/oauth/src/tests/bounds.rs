//! Limits: failed logins, sizes and counts, secrets on disk, and markup in names.

use super::*;
use crate::store::CODES;

#[tokio::test]
async fn passwords_cannot_be_guessed_by_trying() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let page = world.ask(&world.request(&client)).await;
    for n in 0..10 {
        let reply = world.sign_in(&page, "anna", "wrong password").await;
        assert_eq!(reply.status, 403, "{n}");
        assert!(reply.body.contains("do not go together"));
    }
    let reply = world.sign_in(&page, "anna", PASSWORD).await;
    assert_eq!(reply.status, 429, "the right one waits too");
    assert!(!reply.header("retry-after").is_empty());
    assert!(!reply.body.contains("code="));
    assert!(
        world
            .sign_in(&page, "nils", PASSWORD)
            .await
            .sent("code")
            .is_some()
    );
    let unknown = world.sign_in(&page, "nobody", PASSWORD).await;
    let wrong = world.sign_in(&page, "nils", "wrong password").await;
    assert_eq!(unknown.status, wrong.status);
    let plain = |reply: &PageReply| reply.body.split_once("<form").unwrap().0.to_owned();
    assert_eq!(plain(&unknown), plain(&wrong), "both are told the same");
    for (name, password) in [
        ("", PASSWORD),
        ("anna", ""),
        (&"a".repeat(2_000)[..], PASSWORD),
    ] {
        assert_eq!(world.sign_in(&page, name, password).await.status, 403);
    }
}

#[tokio::test]
async fn nothing_that_a_client_says_becomes_markup() {
    let world = SignInWorld::new();
    for name in [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "</title><script>alert(1)</script>",
        "a\u{202E}b<svg/onload=alert(1)>",
        "&lt;b&gt;",
    ] {
        let made = world
            .register(json!({"client_name": name, "redirect_uris": [CALLBACK]}))
            .await;
        let client = text(&made.json(), "client_id");
        let state = "\"><script>alert(2)</script>";
        let mut params = world.request(&client);
        params.retain(|(name, _)| *name != "state");
        params.push(("state", state));
        let page = world.ask(&params).await;
        assert_eq!(page.status, 200);
        for bad in ["<script", "<img", "<svg", "\u{202E}"] {
            assert!(!page.body.contains(bad), "{name}: {}", page.body);
        }
        let done = world.sign_in(&page, "anna", PASSWORD).await;
        assert!(!done.body.contains("<script"));
        assert_eq!(done.sent("state").as_deref(), Some(state));
    }
}

#[tokio::test]
async fn registration_takes_what_can_be_meant_and_has_bounds() {
    let world = SignInWorld::new();
    let uris = vec![CALLBACK; 21];
    for (metadata, error) in [
        (json!({}), "invalid_redirect_uri"),
        (json!({"redirect_uris": []}), "invalid_redirect_uri"),
        (json!({"redirect_uris": uris}), "invalid_redirect_uri"),
        (
            json!({"redirect_uris": ["http://evil.example/cb"]}),
            "invalid_redirect_uri",
        ),
        (
            json!({"redirect_uris": ["javascript:alert(1)"]}),
            "invalid_redirect_uri",
        ),
        (
            json!({"redirect_uris": "https://app.example/cb"}),
            "invalid_client_metadata",
        ),
        (
            json!({"redirect_uris": [CALLBACK], "grant_types": ["implicit"]}),
            "invalid_client_metadata",
        ),
        (json!([]), "invalid_client_metadata"),
    ] {
        let reply = world.register(metadata.clone()).await;
        assert_eq!(reply.status, 400, "{metadata}");
        assert_eq!(reply.json()["error"], error, "{metadata}");
    }
    let large = json!({"redirect_uris": [CALLBACK], "logo": "x".repeat(65_536)});
    assert_eq!(world.register(large).await.status, 413);
    let kind = Request::post("/register").header("content-type", "text/plain");
    assert_eq!(world.send(kind, "{}".to_owned()).await.status, 415);
    let reply = world
        .register(json!({"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "client_secret_basic"}))
        .await
        .json();
    assert_eq!(reply["token_endpoint_auth_method"], "none");
    assert!(reply.get("client_secret").is_none());
}

#[tokio::test]
async fn only_digests_are_on_the_disk() {
    let world = SignInWorld::new();
    let (client, tokens) = world.tokens().await;
    let code = world.code(&client).await;
    let refresh = text(&tokens, "refresh_token");
    let access = text(&tokens, "access_token");
    let waiting = world.server().0.grants_on_disk(CODES);
    assert!(waiting >= 1);
    let mut parts = vec![code, access, PASSWORD.to_owned()];
    parts.extend(refresh.split('.').map(str::to_owned));
    for file in std::fs::read_dir(world.dir.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for part in &parts {
            let found = bytes
                .windows(part.len())
                .any(|window| window == part.as_bytes());
            assert!(!found, "a secret is on the disk");
        }
    }
}

#[tokio::test]
async fn one_person_has_a_hundred_grants_and_the_oldest_goes_first() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let mut first = None;
    for n in 0..=grant_store::MAX_GRANTS_PER_USER {
        // This test does not depend on the password, so it skips the hashing.
        let code = world.allow_directly(&client, n as u64).await;
        let reply = world.spend(&client, &code).await.json();
        first.get_or_insert(text(&reply, "access_token"));
    }
    assert_eq!(world.call(&first.unwrap()).await.status, 401);
    let live = world.server().0.grants_on_disk(store::GRANTS);
    assert_eq!(live, grant_store::MAX_GRANTS_PER_USER);
}

#[tokio::test]
async fn a_name_that_nobody_can_have_is_not_counted() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let page = world.ask(&world.request(&client)).await;
    let (most, over) = ("a".repeat(1_024), "a".repeat(1_025));
    for name in ["", over.as_str()] {
        for _ in 0..12 {
            assert_eq!(world.sign_in(&page, name, PASSWORD).await.status, 403);
        }
    }
    for n in 0..12 {
        let expected = if n < 10 { 403 } else { 429 };
        assert_eq!(
            world.sign_in(&page, &most, PASSWORD).await.status,
            expected,
            "{n}"
        );
    }
}

#[tokio::test]
async fn a_browser_keeps_its_cookie_and_a_strange_one_is_replaced() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let target = format!("/authorize?{}", encoded(&world.request(&client)));
    let given = async |cookie: &str| {
        let request = Request::get(&target).header("cookie", cookie);
        let reply = world.send(request, String::new()).await;
        reply
            .header("set-cookie")
            .split(';')
            .next()
            .unwrap()
            .to_owned()
    };
    let first = given("").await;
    assert_eq!(given(&first).await, first);
    for strange in ["", "short", &"x".repeat(44)] {
        let cookie = format!("__Host-docent-form={strange}");
        let new = given(&cookie).await;
        assert!(new != cookie && new.len() == first.len(), "{new}");
    }
}

#[tokio::test]
async fn registration_takes_what_is_just_not_too_much() {
    let world = SignInWorld::new();
    let fill = |size: usize| {
        let empty = json!({"redirect_uris": [CALLBACK], "logo": ""}).to_string();
        json!({"redirect_uris": [CALLBACK], "logo": "x".repeat(size - empty.len())})
    };
    assert_eq!(world.register(fill(16_384)).await.status, 201);
    assert_eq!(world.register(fill(16_385)).await.status, 413);
    for (requested, granted) in [
        (json!(["authorization_code"]), json!(["authorization_code"])),
        (json!(null), json!(["authorization_code", "refresh_token"])),
    ] {
        let made = world
            .register(json!({"redirect_uris": [CALLBACK], "grant_types": requested}))
            .await;
        assert_eq!(made.json()["grant_types"], granted);
        assert_eq!(made.header("cache-control"), "no-store");
    }
}

#[tokio::test]
async fn state_and_nonce_have_a_limited_length() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let (most, over) = ("s".repeat(2_048), "s".repeat(2_049));
    let with = |name: &'static str, value: String| {
        let (world, client) = (&world, client.clone());
        async move {
            let mut params = world.request(&client);
            params.retain(|(key, _)| *key != name);
            params.push((name, value.as_str()));
            world.ask(&params).await
        }
    };
    for name in ["state", "nonce"] {
        assert_eq!(with(name, most.clone()).await.status, 200, "{name}");
        let long = with(name, over.clone()).await;
        assert_eq!(long.sent("error").as_deref(), Some("invalid_request"));
    }
    // The error redirect contains `state`, unless `state` itself is too long.
    assert_eq!(with("state", over).await.sent("state"), None);
    let mut params = world.request(&client);
    params.retain(|(key, _)| !["state", "response_type"].contains(key));
    params.extend([("state", most.as_str()), ("response_type", "token")]);
    let refused = world.ask(&params).await;
    assert_eq!(
        refused.sent("error").as_deref(),
        Some("unsupported_response_type")
    );
    assert_eq!(refused.sent("state"), Some(most));
}
