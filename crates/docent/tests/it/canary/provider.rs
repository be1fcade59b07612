//! Canary test for an upstream identity provider: it receives none of the tokens and codes that the server itself
//! issues.

use super::*;

#[test]
fn a_provider_gets_no_secret_of_others() {
    let (signer, authority) = (Signer::p256("k1"), TestAuthority::new());
    let upstream_token = "CANARY-access-token-of-the-provider";
    let id_token = Arc::new(Mutex::new(String::new()));
    let provider = MockPeer::start(Some(authority.vouch("localhost")), |name| {
        let metadata = json!({
            "issuer": name, "authorization_endpoint": format!("{name}/authorize"),
            "token_endpoint": format!("{name}/token"), "userinfo_endpoint": format!("{name}/userinfo"),
            "jwks_uri": format!("{name}/jwks"),
        });
        let (keys, id_token) = (jwks(&[&signer]), id_token.clone());
        move |path: &str, _: &RouteRequest| match path {
            ".well-known/openid-configuration" => RouteResponse::json(&metadata),
            "jwks" => RouteResponse::json(&keys),
            "token" => {
                let id = id_token.lock().unwrap().clone();
                RouteResponse::json(
                    &json!({"id_token": id, "access_token": upstream_token, "token_type": "Bearer"}),
                )
            }
            "userinfo" => RouteResponse::json(&json!({"sub": "up-1", "groups": ["crew"]})),
            _ => not_found(),
        }
    });
    let dir = TestDir::small();
    dir.write("ca.pem", &authority.pem);
    let settings = format!(
        "search.mode = \"lexical\"\n[auth]\nissuer_ca = \"../ca.pem\"\n[auth.upstream]\nissuer = \"{}\"\n\
         client_id = \"docent\"\n",
        provider.name
    );
    dir.write("docs/docent.toml", &settings);
    let client_secret = "CANARY-secret-of-our-own";
    let variable = "DOCENT_AUTH_UPSTREAM_CLIENT_SECRET";
    let mut canary = CanaryServer::start(dir, "upstream", (variable, client_secret));
    let browser = canary.browser.clone();
    let client = browser.register();
    let (mut own, mut theirs) = (
        Vec::new(),
        vec![client_secret.to_owned(), upstream_token.to_owned()],
    );
    for n in 0..20 {
        let page = browser.authorize(&client);
        let gone = browser.submit_consent(&page, &[]);
        let (state, nonce) = (
            gone.redirect_parameter("state"),
            gone.redirect_parameter("nonce"),
        );
        let claims = json!({
            "iss": provider.name, "aud": "docent", "sub": "up-1", "iat": now(), "exp": now() + 60, "nonce": nonce,
        });
        let token = signer.token_with(&json!({"typ": "JWT"}), &claims);
        *id_token.lock().unwrap() = token.clone();
        let code = format!("CANARY-code-of-the-provider-{n}");
        let target = format!("/callback?code={code}&state={state}");
        // The callback without the browser's cookie must be refused, which guards against login CSRF.
        canary.keep(&browser.get(&target, ""));
        let cookie = format!("Cookie: {}\r\n", gone.cookie());
        let back = browser.get(&target, &cookie);
        let ours = back.redirect_parameter("code");
        let got = browser.redeem(&client, &ours);
        assert_eq!(got.status, 200, "{}", got.body);
        let (access, first) = (
            text(&got.json(), "access_token"),
            text(&got.json(), "refresh_token"),
        );
        let header = format!("Authorization: Bearer {access}\r\n");
        let arguments = json!({"name": "search", "arguments": {"query": "ferry"}});
        let got = browser.rpc("/mcp", &header, "tools/call", &arguments);
        assert_eq!(got.status, 200, "{}", got.body);
        canary.keep(&got);
        let got = browser.refresh(&client, &first);
        let second = text(&got.json(), "refresh_token");
        // A code that was redeemed, and tokens that are not access tokens of this server, are refused.
        for got in [
            browser.redeem(&client, &ours),
            browser.rpc(
                "/mcp",
                &format!("Authorization: Bearer {token}\r\n"),
                "tools/list",
                &json!({}),
            ),
            browser.rpc(
                "/mcp",
                &format!("Authorization: Bearer {second}\r\n"),
                "tools/list",
                &json!({}),
            ),
        ] {
            assert!((400..=401).contains(&got.status), "{}", got.body);
            canary.keep(&got);
        }
        own.extend([ours, first, second]);
        own.extend(parts(&access));
        theirs.extend(parts(&token));
        theirs.push(code);
    }
    let received = provider.received();
    assert!(
        received.contains("CANARY-code-of-the-provider-19"),
        "{received}"
    );
    assert_eq!(found(&received, &own), None, "the provider");
    own.extend(theirs);
    canary.search(&own);
}
