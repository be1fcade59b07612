//! Optional request parameters: `login_hint`, and client authentication methods that are not supported.

use super::*;

#[tokio::test]
async fn a_login_hint_fills_the_form() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let consent_for = |hint: &'static str| {
        let mut request = world.request(&client);
        request.push(("login_hint", hint));
        let world = &world;
        async move { world.ask(&request).await }
    };
    let page = consent_for("anna@port.example").await;
    let form = page.body.split_once("<form").unwrap().1;
    assert!(
        form.contains(" required value=\"anna@port.example\">"),
        "{form}"
    );
    assert!(
        form.contains("maxlength=\"512\" required autofocus>"),
        "{form}"
    );
    // The hint only fills the form; any user may log in.
    let reply = world.sign_in(&page, "nils", PASSWORD).await;
    assert!(reply.sent("code").is_some(), "{}", reply.body);
    let page = consent_for("\"><script>alert(1)</script>").await;
    assert!(!page.body.contains("<script"), "{}", page.body);
    assert!(
        page.body.contains("value=\"&quot;&gt;&lt;script&gt;"),
        "{}",
        page.body
    );
    let long: &'static str = "n".repeat(201).leak();
    for none in ["", long, "a\nb"] {
        let page = consent_for(none).await;
        let name = page.body.split_once("<label>Name").unwrap().1;
        let name = name.split_once("</label>").unwrap().0;
        assert!(!name.contains("value="), "{name}");
        assert!(
            name.ends_with("maxlength=\"200\" required autofocus>"),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_client_that_signs_for_itself_is_told_that_nobody_asks_for_it() {
    let world = SignInWorld::new();
    let metadata = world.get("/.well-known/oauth-authorization-server").await;
    let methods = &metadata.json()["token_endpoint_auth_methods_supported"];
    assert_eq!(*methods, json!(["none"]));
    let client = world.client().await;
    let code = world.code(&client).await;
    let assertion = [
        ("grant_type", "authorization_code"),
        ("client_id", client.as_str()),
        ("code", &code),
        ("redirect_uri", CALLBACK),
        ("code_verifier", VERIFIER),
        (
            "client_assertion_type",
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        ),
        ("client_assertion", "a.b.c"),
    ];
    let reply = world.post("/token", &assertion).await;
    assert_eq!(reply.status, 401);
    assert_eq!(reply.json()["error"], "invalid_client");
    let why = text(&reply.json(), "error_description");
    assert!(why.contains("send `client_id` alone"), "{why}");
    // The refused request did not spend the code.
    assert_eq!(world.spend(&client, &code).await.status, 200);
    let registered = world
        .register(
            json!({"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "private_key_jwt"}),
        )
        .await;
    assert_eq!(registered.json()["token_endpoint_auth_method"], "none");
}
