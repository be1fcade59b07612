//! Tests of the upstream provider's client: requests, caching, and which claims are accepted.

use docent_mcp::oauth::HttpFetchError;
use docent_mcp::{Caller, LocalKeys};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;

use super::*;
use crate::mint::{Signer, jwks};

const ISSUER: &str = "https://login.example";

/// Recorded token requests: `Authorization` header and body.
type RecordedRequests = Vec<(Option<String>, String)>;

/// A fake provider that records its requests.
#[derive(Clone)]
struct FakeOidcProvider {
    metadata: Value,
    fetched: Arc<Mutex<usize>>,
    requests: Arc<Mutex<RecordedRequests>>,
}

impl FakeOidcProvider {
    fn new(methods: &Value) -> Self {
        let metadata = json!({
            "issuer": ISSUER, "token_endpoint": "https://login.example/token",
            "token_endpoint_auth_methods_supported": methods,
        });
        Self {
            metadata,
            fetched: Arc::default(),
            requests: Arc::default(),
        }
    }
}

impl HttpFetch for FakeOidcProvider {
    fn get(&self, _: String) -> BoxFuture<'static, Result<Vec<u8>, HttpFetchError>> {
        *self.fetched.lock().unwrap() += 1;
        let bytes = self.metadata.to_string().into_bytes();
        async { Ok(bytes) }.boxed()
    }

    fn post(
        &self,
        _: String,
        form: FormPost,
    ) -> BoxFuture<'static, Result<Vec<u8>, HttpFetchError>> {
        let requests = (form.authorization, form.body);
        self.requests.lock().unwrap().push(requests);
        async { Ok(b"{}".to_vec()) }.boxed()
    }
}

fn provider(fake: &FakeOidcProvider, secret: Option<&str>) -> OidcProvider {
    let upstream = UpstreamProvider {
        issuer: ISSUER.to_owned(),
        client_id: "do cent".to_owned(),
        client_secret: secret.map(ClientSecret::new),
    };
    OidcProvider {
        fetcher: Arc::new(fake.clone()),
        ..OidcProvider::new(upstream, None).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_is_fetched_once_in_five_minutes() {
    let fake = FakeOidcProvider::new(&json!(null));
    let provider = provider(&fake, None);
    for (seconds, fetched) in [(0, 1), (0, 1), (299, 1), (1, 2), (1, 2)] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        assert!(provider.metadata().await.is_ok());
        assert_eq!(*fake.fetched.lock().unwrap(), fetched);
    }
}

#[tokio::test]
async fn we_prove_who_we_are_in_the_way_that_the_provider_knows() {
    let form = "grant_type=authorization_code&code=c&redirect_uri=https%3A%2F%2Fa.example%2F&code_verifier=v";
    let basic = Some("Basic ZG8rY2VudDpzJTNB".to_owned());
    let posted = format!("{form}&client_id=do+cent&client_secret=s%3A");
    let public = format!("{form}&client_id=do+cent");
    for (methods, secret, expected) in [
        (json!(null), Some("s:"), (basic.clone(), form.to_owned())),
        (
            json!(["client_secret_post", "client_secret_basic"]),
            Some("s:"),
            (basic, form.to_owned()),
        ),
        (json!(["client_secret_post"]), Some("s:"), (None, posted)),
        (json!(["none"]), None, (None, public.clone())),
        (json!(null), None, (None, public)),
    ] {
        let fake = FakeOidcProvider::new(&methods);
        let provider = provider(&fake, secret);
        let done = provider.tokens("c", "v", "https://a.example/").await;
        assert!(done.is_ok());
        assert_eq!(*fake.requests.lock().unwrap(), [expected], "{methods}");
    }
}

/// The caller of an ID token with these claims.
async fn caller_of_id_token(claims: Value) -> Caller {
    let signer = Signer::ed25519("k");
    let keys = LocalKeys::default();
    keys.replace(&jwks(&[&signer])).unwrap();
    let mut all = json!({
        "iss": ISSUER, "sub": "u", "aud": "docent", "nonce": "n", "iat": 1_000, "exp": 1_100,
    });
    let members = claims.as_object().unwrap().clone();
    all.as_object_mut().unwrap().extend(members);
    let token = signer.token_with(&json!({"typ": "JWT"}), &all);
    let issuer = Issuer::local(ISSUER, keys);
    let verified = verify_id_token(&token, &issuer, "docent", "n", 1_050).await;
    verified.unwrap()
}

#[tokio::test]
async fn of_an_id_token_the_address_and_the_groups_are_taken() {
    let of = async |claims: Value| claims_of(&caller_of_id_token(claims).await);
    let claims = of(json!({
        "email": "a@port.example", "email_verified": true, "groups": ["crew", "guests"], "name": "Anna",
    }))
    .await;
    let expected =
        json!({"email": "a@port.example", "email_verified": "true", "groups": ["crew", "guests"]});
    assert_eq!(Value::Object(claims), expected);
    assert_eq!(
        Value::Object(of(json!({"groups": "crew"})).await),
        json!({"groups": ["crew"]})
    );
    assert!(of(json!({"name": "Anna"})).await.is_empty());
}

#[test]
fn the_first_who_says_something_is_believed() {
    let merged = |all: &[Value]| {
        let all: Vec<_> = all
            .iter()
            .map(|one| one.as_object().unwrap().clone())
            .collect();
        identity_from_claims("u".to_owned(), &all)
    };
    let both = merged(&[
        json!({"email": "a@port.example", "email_verified": "true"}),
        json!({"email": "b@port.example", "email_verified": false, "groups": ["crew"]}),
    ]);
    assert_eq!(
        (both.email.as_deref(), both.email_verified),
        (Some("a@port.example"), true)
    );
    assert_eq!(both.groups, ["crew"]);
    for (size, taken) in [(254, true), (255, false)] {
        let email = format!("{}@port.example", "a".repeat(size - 13));
        assert_eq!(
            merged(&[json!({"email": email})]).email.is_some(),
            taken,
            "{size}"
        );
    }
    let odd = merged(&[json!({"email": 7, "groups": {"a": 1}})]);
    assert!(odd.email.is_none() && odd.groups.is_empty() && !odd.email_verified);
}

#[test]
fn a_provider_is_on_https_or_on_this_machine() {
    for (issuer, shown) in [
        ("https://login.example/realm", Some("login.example")),
        ("http://localhost:8080", Some("localhost")),
        ("http://127.0.0.1:8080", Some("127.0.0.1")),
        ("http://[::1]:8080", Some("[::1]")),
        ("http://10.0.0.1", None),
        ("http://[fd00::1]", None),
        ("http://localhost.evil.example", None),
        ("ftp://localhost", None),
        ("data:text/plain,x", None),
    ] {
        let made = OidcProvider::new(
            UpstreamProvider {
                issuer: issuer.to_owned(),
                client_id: "docent".to_owned(),
                client_secret: None,
            },
            None,
        );
        assert_eq!(
            made.ok().as_ref().map(OidcProvider::display_host),
            shown,
            "{issuer}"
        );
    }
}

#[tokio::test]
async fn a_provider_that_promises_the_issuer_parameter_has_to_send_it() {
    for (promised, iss, taken) in [
        (json!(null), None, true),
        (json!(false), None, true),
        (json!(true), None, false),
        (json!(true), Some(ISSUER), true),
        (json!(false), Some(ISSUER), true),
        (json!(true), Some("https://evil.example"), false),
        (json!(null), Some("https://evil.example"), false),
        (json!(null), Some(""), false),
    ] {
        let mut fake = FakeOidcProvider::new(&json!(null));
        fake.metadata["authorization_response_iss_parameter_supported"] = promised.clone();
        let answers = provider(&fake, None).is_expected_issuer(iss).await.unwrap();
        assert_eq!(answers, taken, "{promised} {iss:?}");
    }
}
