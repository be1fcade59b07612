//! Login at an upstream provider: the complete flow, and attacks on the callback. The provider is a local
//! server that follows each test's script.

use std::sync::Mutex;

use docent_mcp::http::{Route, RouteResponse};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::mint::{Signer, jwks};

/// The responses that the provider gives next.
#[derive(Clone)]
struct ProviderScript {
    header: Value,
    claims: Value,
    userinfo: Value,
    status: u16,
}

struct ProviderFixture {
    world: SignInWorld,
    issuer: String,
    script: Arc<Mutex<ProviderScript>>,
    /// The last token request: its form and its `Authorization` header.
    last_request: Arc<Mutex<(String, String)>>,
    stop: CancellationToken,
}

impl Drop for ProviderFixture {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl ProviderFixture {
    async fn new() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let script = Arc::new(Mutex::new(ProviderScript {
            header: json!({"typ": "JWT"}),
            claims: json!({}),
            userinfo: json!({}),
            status: 200,
        }));
        let last_request = Arc::new(Mutex::new((String::new(), String::new())));
        let stop = CancellationToken::new();
        let routes = routes(&issuer, &script, &last_request);
        let options = docent_mcp::http::HttpOptions {
            routes,
            ..docent_mcp::http::HttpOptions::default()
        };
        tokio::spawn(docent_mcp::http::serve_routes(
            options,
            listener,
            stop.clone(),
        ));
        let world = SignInWorld::with(LoginMethod::Upstream(UpstreamProvider {
            issuer: issuer.clone(),
            client_id: "docent".to_owned(),
            client_secret: Some(ClientSecret::new("se:cret")),
        }));
        Self {
            world,
            issuer,
            script,
            last_request,
            stop,
        }
    }

    /// Consents and follows the redirect to the provider. Returns the login cookie and the authorization
    /// URL.
    async fn start_login(&self) -> (String, url::Url) {
        let client = self.world.client().await;
        let page = self.world.ask(&self.world.request(&client)).await;
        assert!(page.body.contains("Continue at 127.0.0.1"), "{}", page.body);
        let gone = self
            .world
            .submit_form(&page, &[("decision", "allow")])
            .await;
        let cookie = gone
            .header("set-cookie")
            .split(';')
            .next()
            .unwrap()
            .to_owned();
        let target = gone.target();
        let get = |name: &str| {
            target
                .query_pairs()
                .find(|(key, _)| key == name)
                .unwrap()
                .1
                .into_owned()
        };
        let now = self.world.clock.load(Ordering::SeqCst);
        let mut script = self.script.lock().unwrap();
        script.claims = json!({
            "iss": self.issuer, "aud": "docent", "sub": "up-1", "iat": now, "exp": now + 60, "nonce": get("nonce"),
        });
        script.userinfo = json!({"sub": "up-1", "email": "anna@port.example", "email_verified": true, "groups": ["crew"]});
        drop(script);
        (cookie, target)
    }

    async fn call_back(&self, cookie: &str, values: &[(&str, &str)]) -> PageReply {
        let request =
            Request::get(format!("/callback?{}", encoded(values))).header("cookie", cookie);
        self.world.send(request, String::new()).await
    }

    fn change(&self, change: impl FnOnce(&mut ProviderScript)) {
        change(&mut self.script.lock().unwrap());
    }
}

fn routes(
    issuer: &str,
    script: &Arc<Mutex<ProviderScript>>,
    last_request: &Arc<Mutex<(String, String)>>,
) -> Vec<Route> {
    let signer = Arc::new(Signer::p256("k1"));
    let keys = jwks(&[&signer]);
    let metadata = json!({
        "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"), "userinfo_endpoint": format!("{issuer}/userinfo"),
        "jwks_uri": format!("{issuer}/jwks"),
    });
    let fixed = |path: &str, value: Value| {
        Route::get(path, move |_| {
            let value = value.clone();
            async move { Ok(RouteResponse::json(&value)) }
        })
    };
    let (for_token, for_info, last_request) =
        (script.clone(), script.clone(), last_request.clone());
    vec![
        fixed("/.well-known/openid-configuration", metadata),
        fixed("/jwks", keys),
        Route::post("/token", move |request| {
            let body = String::from_utf8_lossy(request.body()).into_owned();
            *last_request.lock().unwrap() = (
                body,
                request
                    .header("authorization")
                    .unwrap_or_default()
                    .to_owned(),
            );
            let script = for_token.lock().unwrap().clone();
            let token = signer.token_with(&script.header, &script.claims);
            async move {
                Ok(RouteResponse::json(
                    &json!({"id_token": token, "access_token": "a", "token_type": "Bearer"}),
                )
                .status(script.status))
            }
        }),
        Route::post("/userinfo", move |_| {
            let script = for_info.lock().unwrap().clone();
            async move { Ok(RouteResponse::json(&script.userinfo)) }
        }),
    ]
}

#[tokio::test]
async fn there_and_back_with_what_the_provider_knows() {
    let fixture = ProviderFixture::new().await;
    let (cookie, target) = fixture.start_login().await;
    assert!(
        target
            .as_str()
            .starts_with(&format!("{}/authorize?", fixture.issuer))
    );
    let get = |name: &str| {
        target
            .query_pairs()
            .find(|(key, _)| key == name)
            .unwrap()
            .1
            .into_owned()
    };
    assert_eq!(get("redirect_uri"), format!("{ADDRESS}/callback"));
    assert_eq!(get("code_challenge_method"), "S256");
    assert!(get("scope").split(' ').any(|scope| scope == "openid"));
    assert!(
        !target.as_str().contains("app.example"),
        "the provider need not know who asks"
    );

    let reply = fixture
        .call_back(&cookie, &[("code", "c1"), ("state", &get("state"))])
        .await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let (form, authorization) = fixture.last_request.lock().unwrap().clone();
    let form = super::form_params::FormParams::parse(form.as_bytes()).unwrap();
    assert_eq!(
        crypto::digest(form.get("code_verifier").unwrap()),
        get("code_challenge")
    );
    assert_eq!(form.get("code"), Some("c1"));
    assert!(form.get("client_secret").is_none());
    // Client id and secret are form-encoded before they are joined (RFC 6749, section 2.3.1).
    assert_eq!(authorization, "Basic ZG9jZW50OnNlJTNBY3JldA==");

    assert_eq!(reply.sent("state").as_deref(), Some("s&1"));
    let code = reply.sent("code").unwrap();
    let query = cookie.split('.').nth(2).unwrap();
    let query = String::from_utf8(crypto::decode(query).unwrap()).unwrap();
    let client = super::form_params::FormParams::parse(query.as_bytes()).unwrap();
    let client = client.get("client_id").unwrap();
    let tokens = fixture.world.spend(client, &code).await.json();
    let token_claims = claims(&text(&tokens, "access_token"));
    assert_eq!(token_claims["iss"], ADDRESS);
    assert_eq!(token_claims["sub"], "up-1");
    assert_eq!(token_claims["email"], "anna@port.example");
    assert_eq!(token_claims["groups"], json!(["crew"]));
    let called = fixture.world.call(&text(&tokens, "access_token")).await;
    assert!(
        called.body.contains("up-1|anna@port.example|crew"),
        "{}",
        called.body
    );
    // A refresh cannot check an upstream account, so the grant ends sooner.
    fixture.world.advance_clock(29 * 86_400);
    let again = fixture
        .world
        .refresh(client, &text(&tokens, "refresh_token"))
        .await;
    assert_eq!(again.status, 200, "{}", again.body);
    fixture.world.advance_clock(86_400);
    let late = fixture
        .world
        .refresh(client, &text(&again.json(), "refresh_token"))
        .await;
    assert_eq!(late.json()["error"], "invalid_grant");
}

#[tokio::test]
async fn an_id_token_must_be_ours_and_of_this_trip() {
    let fixture = ProviderFixture::new().await;
    let cases = [
        ("another nonce", "nonce", json!("other")),
        ("no nonce", "nonce", json!(null)),
        ("another client's", "aud", json!("other")),
        ("no audience", "aud", json!(null)),
        ("presented by another", "azp", json!("other")),
        ("another issuer's", "iss", json!("https://evil.example")),
        ("expired", "exp", json!(1)),
        ("nobody's", "sub", json!("")),
        ("unsigned", "alg", json!("none")),
        ("with an unknown key", "kid", json!("k2")),
        ("an access token", "typ", json!("at+jwt")),
        ("refused", "status", json!(400)),
    ];
    for (what, name, value) in cases {
        let before = fixture.script.lock().unwrap().clone();
        let (cookie, target) = fixture.start_login().await;
        let state = target
            .query_pairs()
            .find(|(key, _)| key == "state")
            .unwrap()
            .1
            .into_owned();
        fixture.change(|script| match name {
            "status" => script.status = 400,
            "alg" | "kid" | "typ" => script.header[name] = value,
            _ => script.claims[name] = value,
        });
        let reply = fixture
            .call_back(&cookie, &[("code", "c"), ("state", &state)])
            .await;
        assert_eq!(reply.status, 502, "{what}: {}", reply.body);
        assert!(!reply.body.contains("app.example"), "{what}");
        fixture.change(|script| *script = before);
    }
}

#[tokio::test]
async fn an_answer_counts_in_the_browser_that_left_with_it() {
    let fixture = ProviderFixture::new().await;
    let (cookie, target) = fixture.start_login().await;
    let state = target
        .query_pairs()
        .find(|(key, _)| key == "state")
        .unwrap()
        .1
        .into_owned();
    let (others, _) = fixture.start_login().await;
    let (name, value) = cookie.split_once('=').unwrap();
    let parts: Vec<_> = value.split('.').map(str::to_owned).collect();
    let tampered = |at: usize, to: &str| {
        let mut parts = parts.clone();
        parts[at] = to.to_owned();
        format!("{name}={}", parts.join("."))
    };
    let evil = crypto::encode(b"client_id=evil");
    for (what, cookie, state) in [
        ("no cookie", String::new(), state.as_str()),
        ("another browser's", others, state.as_str()),
        ("no state", cookie.clone(), ""),
        ("another state", cookie.clone(), "AAAAAAAAAAAAAAAAAAAAAA"),
        ("another request", tampered(2, &evil), state.as_str()),
        ("a longer life", tampered(1, "99999999999"), state.as_str()),
        (
            "another trip",
            tampered(0, "AAAAAAAAAAAAAAAAAAAAAA"),
            "AAAAAAAAAAAAAAAAAAAAAA",
        ),
        ("twice", format!("{cookie}; {cookie}"), state.as_str()),
    ] {
        let reply = fixture
            .call_back(&cookie, &[("code", "c"), ("state", state)])
            .await;
        assert_eq!(reply.status, 403, "{what}: {}", reply.body);
    }
    let mixed = [
        ("code", "c"),
        ("state", state.as_str()),
        ("iss", "https://evil.example"),
    ];
    assert_eq!(fixture.call_back(&cookie, &mixed).await.status, 403);
    let gone = [("error", "access_denied"), ("state", state.as_str())];
    let reply = fixture.call_back(&cookie, &gone).await;
    assert_eq!(reply.sent("error").as_deref(), Some("access_denied"));
    assert_eq!(reply.sent("iss").as_deref(), Some(ADDRESS));
    fixture.world.advance_clock(600);
    let late = fixture
        .call_back(&cookie, &[("code", "c"), ("state", &state)])
        .await;
    assert_eq!(late.status, 403, "too old");
}

#[tokio::test]
async fn claims_of_an_upstream_provider_are_validated() {
    let of = |userinfo: Value| {
        let userinfo_claims = userinfo.as_object().unwrap().clone();
        super::upstream_provider::identity_from_claims("up-1".to_owned(), &[userinfo_claims])
    };
    let unverified = of(json!({"email": "boss@port.example", "email_verified": false}));
    assert_eq!(
        unverified.email, None,
        "an address that is only claimed opens nothing"
    );
    let silent = of(json!({"email": "a@port.example"}));
    assert_eq!(
        (silent.email.as_deref(), silent.email_verified),
        (Some("a@port.example"), false)
    );
    assert!(of(json!({"email": "a@port.example", "email_verified": "true"})).email_verified);
    assert_eq!(of(json!({"groups": "crew"})).groups, ["crew"]);
    assert_eq!(of(json!({"groups": ["crew", 7]})).groups, ["crew"]);
    let fits = vec!["g".repeat(64); 128];
    assert_eq!(of(json!({"groups": fits})).groups.len(), 128);
    let many = vec!["g".repeat(64); 129];
    assert_eq!(of(json!({"groups": many})).groups.len(), 0);

    let fixture = ProviderFixture::new().await;
    let (cookie, target) = fixture.start_login().await;
    let state = target
        .query_pairs()
        .find(|(key, _)| key == "state")
        .unwrap()
        .1
        .into_owned();
    fixture.change(|script| script.userinfo["sub"] = json!("somebody else"));
    let reply = fixture
        .call_back(&cookie, &[("code", "c"), ("state", &state)])
        .await;
    assert!(reply.sent("code").is_some());
}

#[tokio::test]
async fn the_provider_learns_who_will_sign_in() {
    let fixture = ProviderFixture::new().await;
    let client = fixture.world.client().await;
    let long = "n".repeat(201);
    for (hint, passed_on) in [
        ("anna@port.example", Some("anna@port.example")),
        ("a&prompt=none", Some("a&prompt=none")),
        (long.as_str(), None),
    ] {
        let mut request = fixture.world.request(&client);
        request.push(("login_hint", hint));
        let page = fixture.world.ask(&request).await;
        let gone = fixture
            .world
            .submit_form(&page, &[("decision", "allow")])
            .await;
        assert_eq!(gone.sent("login_hint").as_deref(), passed_on);
        assert_eq!(gone.sent("prompt"), None);
    }
}

#[tokio::test]
async fn a_provider_that_is_away_is_told_to_the_person() {
    let world = SignInWorld::with(LoginMethod::Upstream(UpstreamProvider {
        issuer: "http://127.0.0.1:9".to_owned(),
        client_id: "docent".to_owned(),
        client_secret: None,
    }));
    let client = world.client().await;
    let page = world.ask(&world.request(&client)).await;
    let reply = world.submit_form(&page, &[("decision", "allow")]).await;
    assert_eq!(reply.status, 502);
    assert!(reply.body.contains("does not answer"), "{}", reply.body);
    for bad in [
        "login.example.org",
        "http://login.example.org",
        "ftp://login.example.org",
        "",
    ] {
        let login = LoginMethod::Upstream(UpstreamProvider {
            issuer: bad.to_owned(),
            client_id: "docent".to_owned(),
            client_secret: None,
        });
        let dir = tempfile::tempdir().unwrap();
        let opened = AuthorizationServer::open(AuthorizationServerOptions {
            login,
            ..AuthorizationServerOptions::new(ADDRESS, "x", dir.path())
        });
        assert!(
            matches!(opened, Err(AuthorizationServerError::Upstream(_))),
            "{bad}"
        );
    }
}

#[tokio::test]
async fn a_request_that_no_cookie_can_hold_is_refused() {
    let fixture = ProviderFixture::new().await;
    let client = fixture.world.client().await;
    let empty = encoded(&[&fixture.world.request(&client)[..], &[("pad", "")]].concat());
    // The largest query whose cookie, with id, expiry and MAC, has 3,800 bytes; then one byte more.
    for (size, status) in [(2_791, 200), (2_792, 400)] {
        let pad = "x".repeat(size - empty.len());
        let mut params = fixture.world.request(&client);
        params.push(("pad", &pad));
        let page = fixture.world.ask(&params).await;
        let gone = fixture
            .world
            .submit_form(&page, &[("decision", "allow")])
            .await;
        assert_eq!(gone.status, status, "{size}");
        if status == 200 {
            let cookie = gone.header("set-cookie").split(';').next().unwrap();
            assert_eq!(cookie.split_once('=').unwrap().1.len(), 3_800);
        }
    }
}
