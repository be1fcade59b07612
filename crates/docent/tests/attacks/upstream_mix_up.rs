//! Login CSRF, mix-up and replay attacks on the OpenID callback: an answer for another browser, a repeated one, one of
//! another issuer or one with markup signs nobody in and redirects nobody.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::browser::{Browser, CALLBACK, HttpReply, form};
use crate::fake_issuer::{FakeIssuer, Question, now};
use crate::mint::{Signer, jwks};
use crate::process::{ServerProcess, TestDir};

const EVIL: &str = "https://evil.example";
const MARKUP: &str = "\"><script>alert(1)</script>";

/// A code for which the provider answers late and with an error.
pub(crate) const SLOW_CODE: &str = "slow";

/// The ID tokens by authorization code; a code can be exchanged once.
type Codes = Arc<Mutex<HashMap<String, String>>>;

fn provider(signer: &Signer, codes: &Codes) -> FakeIssuer {
    let (keys, codes) = (jwks(&[signer]), Arc::clone(codes));
    FakeIssuer::start(move |name, question| match question.path.as_str() {
        "/.well-known/openid-configuration" => Some(json!({
            "issuer": name, "authorization_endpoint": format!("{name}/authorize"),
            "token_endpoint": format!("{name}/token"), "jwks_uri": format!("{name}/jwks"),
            "authorization_response_iss_parameter_supported": true,
        })),
        "/jwks" => Some(keys.clone()),
        "/token" => spent(&codes, question),
        _ => None,
    })
}

/// The token response for a code, which is then used up.
fn spent(codes: &Codes, question: &Question) -> Option<Value> {
    let values = url::form_urlencoded::parse(question.body.as_bytes());
    let code = values.into_owned().find(|(name, _)| name == "code")?.1;
    if code == SLOW_CODE {
        std::thread::sleep(Duration::from_secs(1));
    }
    let id_token = codes.lock().unwrap().remove(&code)?;
    Some(json!({"id_token": id_token, "access_token": "theirs", "token_type": "Bearer"}))
}

pub(crate) struct World {
    signer: Signer,
    codes: Codes,
    pub(crate) provider: FakeIssuer,
    pub(crate) browser: Browser,
    pub(crate) client: String,
    _server: ServerProcess,
}

/// A browser that has been sent to the provider.
pub(crate) struct Trip {
    /// The `Cookie` header with its line break.
    pub(crate) cookie: String,
    pub(crate) state: String,
    nonce: String,
}

impl World {
    pub(crate) fn start(dir: &TestDir) -> Self {
        let (signer, codes) = (Signer::p256("k1"), Codes::default());
        let provider = provider(&signer, &codes);
        let settings = format!(
            "search.mode = \"lexical\"\n[auth.upstream]\nissuer = \"{}\"\nclient_id = \"docent\"\n",
            provider.name
        );
        dir.write("docs/docent.toml", &settings);
        let mut command = dir.serve(&["docs", "--no-watch", "--auth", "upstream"]);
        command.env("DOCENT_AUTH_UPSTREAM_CLIENT_SECRET", "hush");
        let server = ServerProcess::of(command);
        let address = server.address.clone();
        let browser = Browser { address };
        Self {
            client: browser.register(),
            signer,
            codes,
            provider,
            browser,
            _server: server,
        }
    }

    /// Gives consent in a fresh browser and follows the redirect to the provider, with its `state` and `nonce`.
    pub(crate) fn depart(&self) -> Trip {
        let page = self.browser.authorize(&self.client);
        let gone = self.browser.submit_consent(&page, &[]);
        Trip {
            cookie: format!("Cookie: {}\r\n", gone.cookie()),
            state: gone.redirect_parameter("state"),
            nonce: gone.redirect_parameter("nonce"),
        }
    }

    /// Registers a code at the provider for an ID token with these changes of its claims.
    fn code(&self, name: &str, nonce: &str, changes: &Value) -> String {
        let mut claims = json!({
            "iss": self.provider.name, "aud": "docent", "sub": "anna", "iat": now(),
            "exp": now() + 60, "nonce": nonce,
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let token = self.signer.token_with(&json!({"typ": "JWT"}), &claims);
        self.codes.lock().unwrap().insert(name.to_owned(), token);
        name.to_owned()
    }

    fn come_back(&self, values: &[(&str, &str)], cookie: &str) -> HttpReply {
        self.browser
            .get(&format!("/callback?{}", form(values)), cookie)
    }
}

/// Asserts that the flow ends on an error page: no code, no redirect, and no text of the request.
fn assert_stopped(what: &str, got: &HttpReply, statuses: &[u16]) {
    assert!(statuses.contains(&got.status), "{what}: {}", got.status);
    let head = got.head.to_ascii_lowercase();
    assert!(
        !head.contains("\nlocation:") && !head.contains("\nrefresh:"),
        "{what}: {head}"
    );
    assert!(
        head.contains("content-security-policy: default-src 'none'"),
        "{what}: {head}"
    );
    // A cookie may only be deleted, not set.
    let sets: Vec<_> = head
        .lines()
        .filter(|line| line.starts_with("set-cookie:"))
        .collect();
    assert!(
        sets.iter().all(|line| line.contains("max-age=0")),
        "{what}: {sets:?}"
    );
    for word in ["http-equiv", "<script", "evil.example", "code=", "<a "] {
        assert!(!got.body.contains(word), "{what} has {word}: {}", got.body);
    }
}

#[test]
fn an_answer_counts_in_the_browser_that_asked_and_nowhere_else() {
    let dir = TestDir::small();
    let world = World::start(&dir);
    let (ours, theirs) = (world.depart(), world.depart());
    let code = world.code("c1", &ours.nonce, &json!({}));
    let issuer = world.provider.name.clone();
    let (code, iss) = (("code", code.as_str()), ("iss", issuer.as_str()));
    let state = ("state", ours.state.as_str());
    let longer = format!("{}x", ours.state);
    let twice = format!(
        "{}; {}\r\n",
        ours.cookie.trim_end(),
        ours.cookie.trim_end().trim_start_matches("Cookie: ")
    );
    let cookie = ours.cookie.as_str();
    for (what, values, cookie) in [
        ("no cookie", vec![code, state, iss], ""),
        (
            "another browser",
            vec![code, state, iss],
            theirs.cookie.as_str(),
        ),
        ("two cookies", vec![code, state, iss], twice.as_str()),
        ("no state", vec![code, iss], cookie),
        ("an empty state", vec![code, ("state", ""), iss], cookie),
        (
            "another state",
            vec![code, ("state", &theirs.state), iss],
            cookie,
        ),
        (
            "a longer state",
            vec![code, ("state", &longer), iss],
            cookie,
        ),
        ("the state twice", vec![code, state, state, iss], cookie),
        (
            "another state beside it",
            vec![code, state, ("state", &theirs.state), iss],
            cookie,
        ),
        ("two codes", vec![code, ("code", "c2"), state, iss], cookie),
        ("no issuer, though promised", vec![code, state], cookie),
        ("an empty issuer", vec![code, state, ("iss", "")], cookie),
        ("another issuer", vec![code, state, ("iss", EVIL)], cookie),
        (
            "an issuer with markup",
            vec![code, state, ("iss", MARKUP)],
            cookie,
        ),
        ("two issuers", vec![code, state, iss, ("iss", EVIL)], cookie),
    ] {
        let got = world.come_back(&values, cookie);
        assert_stopped(what, &got, &[403]);
    }
    assert_eq!(world.provider.asked("/token"), 0, "no code went anywhere");
    // The genuine answer still works in the right browser after all these attempts.
    let back = world.come_back(&[code, state, iss], cookie);
    let spent = world
        .browser
        .redeem(&world.client, &back.redirect_parameter("code"));
    assert_eq!(spent.status, 200, "{}", spent.body);
    // A replay fails: the browser's cookie is deleted, and with a saved cookie the code is used up.
    assert!(back.head.to_ascii_lowercase().contains("max-age=0"));
    let again = world.come_back(&[code, state, iss], "");
    assert_stopped("again, without the cookie", &again, &[403]);
    let again = world.come_back(&[code, state, iss], cookie);
    assert_stopped("again, with the cookie", &again, &[502]);
}

#[test]
fn a_code_of_somebody_else_signs_nobody_in() {
    let dir = TestDir::small();
    let world = World::start(&dir);
    let (ours, theirs) = (world.depart(), world.depart());
    let issuer = world.provider.name.clone();
    for (what, nonce, changes) in [
        ("the code of another browser", &theirs.nonce, json!({})),
        (
            "a token of another issuer",
            &ours.nonce,
            json!({"iss": EVIL}),
        ),
        (
            "a token for another app",
            &ours.nonce,
            json!({"aud": "another"}),
        ),
        (
            "a token that ended",
            &ours.nonce,
            json!({"exp": now() - 600, "iat": now() - 900}),
        ),
        (
            "a token without a nonce",
            &String::new(),
            json!({"nonce": null}),
        ),
    ] {
        let code = world.code("c", nonce, &changes);
        let values = [
            ("code", code.as_str()),
            ("state", ours.state.as_str()),
            ("iss", issuer.as_str()),
        ];
        let got = world.come_back(&values, &ours.cookie);
        assert_stopped(what, &got, &[502]);
    }
    let unknown = [
        ("code", "made-up"),
        ("state", ours.state.as_str()),
        ("iss", issuer.as_str()),
    ];
    let got = world.come_back(&unknown, &ours.cookie);
    assert_stopped("a code that the provider does not know", &got, &[502]);
}

#[test]
fn an_error_of_the_provider_brings_nothing_along() {
    let dir = TestDir::small();
    let world = World::start(&dir);
    let trip = world.depart();
    let errors = [
        ("error", MARKUP),
        ("error_description", MARKUP),
        ("error_uri", EVIL),
        ("redirect_uri", EVIL),
    ];
    let mut values = errors.to_vec();
    values.push(("state", &trip.state));
    assert_stopped("without a cookie", &world.come_back(&values, ""), &[403]);
    assert_stopped(
        "without `iss`",
        &world.come_back(&values, &trip.cookie),
        &[403],
    );
    // In the right browser the app gets `access_denied`, without the error texts of the provider.
    values.push(("iss", &world.provider.name));
    let got = world.come_back(&values, &trip.cookie);
    assert_eq!(got.status, 302, "{}", got.body);
    let head = got.head.to_ascii_lowercase();
    let location = head
        .lines()
        .find_map(|line| line.strip_prefix("location: "));
    let location = location.unwrap_or_default();
    assert!(
        location.starts_with(&format!("{CALLBACK}?error=access_denied&")),
        "{location}"
    );
    for word in ["evil", "alert", "%3c", "code="] {
        assert!(
            !location.contains(word) && !got.body.contains(word),
            "{location}"
        );
    }
    assert_eq!(world.provider.asked("/token"), 0);
}
