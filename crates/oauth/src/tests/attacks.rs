//! Attacks on the sign-in: tampered requests, codes and forms.

use super::*;

fn without<'a>(mut values: Vec<(&'a str, &'a str)>, name: &str) -> Vec<(&'a str, &'a str)> {
    values.retain(|(key, _)| *key != name);
    values
}

fn with<'a>(
    values: Vec<(&'a str, &'a str)>,
    name: &'a str,
    value: &'a str,
) -> Vec<(&'a str, &'a str)> {
    let mut values = without(values, name);
    values.push((name, value));
    values
}

#[tokio::test]
async fn redirects_only_go_to_registered_addresses() {
    let world = SignInWorld::new();
    let client = world.client().await;
    for bad in [
        "https://app.example/cb/",
        "https://app.example/cb2",
        "https://app.example/c",
        "https://app.example/cb?x=1",
        "https://app.example/cb#x",
        "https://app.example.evil.example/cb",
        "https://evil.example/cb",
        "https://app.example@evil.example/cb",
        "http://app.example/cb",
        "https://app.example:8443/cb",
        "//app.example/cb",
        "javascript:alert(1)",
        "data:text/html,x",
    ] {
        let reply = world
            .ask(&with(world.request(&client), "redirect_uri", bad))
            .await;
        assert_eq!(reply.status, 400, "{bad}");
        assert!(
            reply.headers.get("location").is_none() && !reply.body.contains("evil"),
            "{bad}"
        );
    }
    for missing in ["redirect_uri", "client_id"] {
        let reply = world.ask(&without(world.request(&client), missing)).await;
        assert_eq!(reply.status, 400, "{missing}");
    }
    let unknown = world
        .ask(&with(
            world.request(&client),
            "client_id",
            "AAAAAAAAAAAAAAAAAAAAAA",
        ))
        .await;
    assert_eq!(unknown.status, 400);
    assert!(unknown.body.contains("not known here"));
}

#[tokio::test]
async fn requests_that_are_not_granted_go_back_with_the_right_error() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let long = "s".repeat(2_049);
    for (name, value, error) in [
        ("response_type", "token", "unsupported_response_type"),
        (
            "response_type",
            "code id_token",
            "unsupported_response_type",
        ),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("code_challenge", &CHALLENGE[1..], "invalid_request"),
        (
            "code_challenge",
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw+cM",
            "invalid_request",
        ),
        ("resource", "https://evil.example/mcp", "invalid_target"),
        (
            "resource",
            "https://docs.example.org/mcpx",
            "invalid_target",
        ),
        (
            "resource",
            "https://docs.example.org.evil.example/mcp",
            "invalid_target",
        ),
        ("resource", "https://docs.example.org/MCP", "invalid_target"),
        ("scope", "admin", "invalid_scope"),
        ("prompt", "none", "login_required"),
        ("request", "x", "request_not_supported"),
        (
            "request_uri",
            "https://evil.example/r",
            "request_uri_not_supported",
        ),
        ("response_mode", "fragment", "invalid_request"),
        ("state", &long, "invalid_request"),
    ] {
        let reply = world.ask(&with(world.request(&client), name, value)).await;
        assert!(!reply.redirects(), "{name} {value}: {}", reply.body);
        assert_eq!(
            reply.sent("error").as_deref(),
            Some(error),
            "{name} {value}"
        );
        assert_eq!(reply.sent("iss").as_deref(), Some(ADDRESS));
    }
    // Other spellings of our own URL are accepted.
    for good in [
        "https://docs.example.org",
        "https://docs.example.org/",
        "HTTPS://DOCS.example.org/mcp/",
    ] {
        let reply = world
            .ask(&with(world.request(&client), "resource", good))
            .await;
        assert_eq!(reply.status, 200, "{good}");
    }
    let mut twice = world.request(&client);
    twice.push(("redirect_uri", "https://evil.example/cb"));
    assert_eq!(world.ask(&twice).await.status, 400);
}

#[tokio::test]
async fn a_code_is_spent_once_by_whoever_asked_for_it() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let stranger = world.client().await;
    let short = "a".repeat(42);
    let good = |code: &str| {
        vec![
            ("grant_type".to_owned(), "authorization_code".to_owned()),
            ("client_id".to_owned(), client.clone()),
            ("code".to_owned(), code.to_owned()),
            ("redirect_uri".to_owned(), CALLBACK.to_owned()),
            ("code_verifier".to_owned(), VERIFIER.to_owned()),
        ]
    };
    for (name, value, status, error) in [
        ("client_id", stranger.as_str(), 400, "invalid_grant"),
        ("client_id", "nobody", 401, "invalid_client"),
        ("client_id", "", 401, "invalid_client"),
        ("code_verifier", "", 400, "invalid_request"),
        ("code_verifier", CHALLENGE, 400, "invalid_grant"),
        ("code_verifier", &short, 400, "invalid_grant"),
        (
            "code_verifier",
            "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXj",
            400,
            "invalid_grant",
        ),
        (
            "redirect_uri",
            "https://app.example/other",
            400,
            "invalid_grant",
        ),
        (
            "resource",
            "https://docs.example.org/",
            400,
            "invalid_target",
        ),
        ("resource", "https://evil.example/", 400, "invalid_target"),
        ("code", "AAAA", 400, "invalid_grant"),
        (
            "grant_type",
            "client_credentials",
            400,
            "unsupported_grant_type",
        ),
        ("grant_type", "password", 400, "unsupported_grant_type"),
        ("client_secret", "s", 401, "invalid_client"),
    ] {
        let code = world.code(&client).await;
        let mut values = good(&code);
        values.retain(|(key, _)| key != name);
        values.push((name.to_owned(), value.to_owned()));
        let values: Vec<_> = values
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        let reply = world.post("/token", &values).await;
        assert_eq!(reply.status, status, "{name} {value}: {}", reply.body);
        assert_eq!(reply.json()["error"], error, "{name} {value}");
        assert_eq!(reply.header("cache-control"), "no-store");
    }
}

#[tokio::test]
async fn a_wrong_try_spends_the_code_and_a_second_one_ends_the_grant() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let code = world.code(&client).await;
    let wrong = [
        ("grant_type", "authorization_code"),
        ("client_id", &client),
        ("code", &code),
        ("code_verifier", CHALLENGE),
    ];
    assert_eq!(
        world.post("/token", &wrong).await.json()["error"],
        "invalid_grant"
    );
    assert_eq!(
        world.spend(&client, &code).await.json()["error"],
        "invalid_grant"
    );

    let code = world.code(&client).await;
    let tokens = world.spend(&client, &code).await.json();
    let access = text(&tokens, "access_token");
    assert_eq!(world.call(&access).await.status, 200);
    assert_eq!(
        world.spend(&client, &code).await.json()["error"],
        "invalid_grant"
    );
    assert_eq!(
        world.call(&access).await.status,
        401,
        "a code that comes twice was stolen"
    );
    let reply = world
        .refresh(&client, &text(&tokens, "refresh_token"))
        .await;
    assert_eq!(reply.json()["error"], "invalid_grant");
}

#[tokio::test]
async fn many_at_once_get_one_grant_of_one_code() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let code = world.code(&client).await;
    let tries = (0..16).map(|_| world.spend(&client, &code));
    let reply = futures::future::join_all(tries).await;
    let good = reply.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(good, 1);
}

#[tokio::test]
async fn a_code_is_good_for_a_minute_and_across_a_restart() {
    let mut world = SignInWorld::new();
    let client = world.client().await;
    let (kept, late) = (world.code(&client).await, world.code(&client).await);
    world.restart();
    world.advance_clock(59);
    assert_eq!(world.spend(&client, &kept).await.status, 200);
    world.advance_clock(1);
    assert_eq!(
        world.spend(&client, &late).await.json()["error"],
        "invalid_grant"
    );
}

#[tokio::test]
async fn a_consent_form_is_bound_to_its_browser_and_its_request() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let page = world.ask(&world.request(&client)).await;
    let cookie = page
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let token = page.hidden("token");
    let longer = token.replacen(|c: char| c.is_ascii_digit(), "9", 1);
    let evil = page
        .hidden("request")
        .replace("app.example", "evil.example");
    let others = "__Host-docent-form=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for (what, name, value, counts) in [
        ("as it is", "", "", true),
        ("no cookie", "cookie", "", false),
        ("another cookie", "cookie", others, false),
        ("another request", "request", &evil, false),
        ("no token", "token", "", false),
        ("a longer life", "token", &longer, false),
        ("from another site", "sec-fetch-site", "cross-site", false),
        ("from a sibling", "sec-fetch-site", "same-site", false),
        ("from another page", "origin", "https://evil.example", false),
        ("as text", "content-type", "text/plain", false),
    ] {
        let mut head = vec![
            ("content-type", "application/x-www-form-urlencoded"),
            ("cookie", &cookie),
            ("sec-fetch-site", "same-origin"),
            ("origin", ADDRESS),
        ];
        let request = page.hidden("request");
        let mut body = vec![
            ("request", request.as_str()),
            ("token", &token),
            ("name", "anna"),
            ("password", PASSWORD),
            ("decision", "allow"),
        ];
        for (key, old) in head.iter_mut().chain(body.iter_mut()) {
            if *key == name {
                *old = value;
            }
        }
        let mut sent = Request::post("/authorize");
        for (key, value) in head {
            sent = sent.header(key, value);
        }
        let reply = world.send(sent, encoded(&body)).await;
        assert_eq!(reply.status == 200, counts, "{what}: {}", reply.status);
        assert_eq!(reply.body.contains("code="), counts, "{what}");
    }
    world.advance_clock(900);
    let late = world.sign_in(&page, "anna", PASSWORD).await;
    assert_eq!(late.status, 403, "too old");
}

#[tokio::test]
async fn a_client_with_a_document_elsewhere_is_not_fetched_from_private_networks() {
    let world = SignInWorld::new();
    for id in [
        "https://127.0.0.1/client.json",
        "https://[::1]/client.json",
        "https://[::ffff:10.0.0.1]/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://10.0.0.1/client.json",
        "https://localhost/client.json",
        "https://app.example",
        "https://user@app.example/client.json",
    ] {
        let reply = world.ask(&with(world.request("x"), "client_id", id)).await;
        assert_eq!(reply.status, 400, "{id}");
        assert!(
            reply.body.contains("cannot be identified"),
            "{id}: {}",
            reply.body
        );
    }
}
