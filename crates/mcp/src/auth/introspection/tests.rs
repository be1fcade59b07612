//! Tests of token introspection: the request, the validation of the response, the cache and its limits.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;

use super::super::outbound_http::HttpFetchError;
use super::*;

const ISSUER: &str = "https://a.example";
const NOW: u64 = 1_800_000_000;

/// An introspection endpoint with one answer for every token. It records the requests that it receives.
#[derive(Clone)]
struct FakeIntrospectionEndpoint {
    answer: Arc<Mutex<Result<String, HttpFetchError>>>,
    requests: Arc<Mutex<Vec<(String, String, String)>>>,
    wait: Duration,
}

impl FakeIntrospectionEndpoint {
    fn new(answer: &Value) -> Self {
        Self {
            answer: Arc::new(Mutex::new(Ok(answer.to_string()))),
            requests: Arc::default(),
            wait: Duration::ZERO,
        }
    }

    fn request_count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

impl HttpFetch for FakeIntrospectionEndpoint {
    fn get(&self, _: String) -> BoxFuture<'static, Result<Vec<u8>, HttpFetchError>> {
        async { Err(HttpFetchError::Unreachable) }.boxed()
    }

    fn post(
        &self,
        url: String,
        form: FormPost,
    ) -> BoxFuture<'static, Result<Vec<u8>, HttpFetchError>> {
        let this = self.clone();
        async move {
            this.requests.lock().unwrap().push((
                url,
                form.authorization.unwrap_or_default(),
                form.body,
            ));
            tokio::time::sleep(this.wait).await;
            let answer = this.answer.lock().unwrap().clone();
            answer.map(String::into_bytes)
        }
        .boxed()
    }
}

fn active() -> Value {
    json!({"active": true, "sub": "u", "aud": "api://docs", "exp": NOW + 60, "scope": "docs.read"})
}

fn introspector(endpoint: &FakeIntrospectionEndpoint) -> TokenIntrospector {
    TokenIntrospector::new(
        "https://a.example/introspect",
        "me@x",
        "s:e c",
        Arc::new(endpoint.clone()),
    )
}

async fn verify(introspector: &TokenIntrospector, token: &str) -> Result<Caller, AuthRejection> {
    let audiences = ["api://docs".to_owned()].into();
    introspector.verify(ISSUER, token, &audiences, NOW).await
}

#[tokio::test(start_paused = true)]
async fn the_issuer_is_asked_once_a_minute() {
    let endpoint = FakeIntrospectionEndpoint::new(&active());
    let introspector = introspector(&endpoint);
    for _ in 0..5 {
        let caller = verify(&introspector, "a/b+c").await.unwrap();
        assert_eq!(caller.subject(), Some("u"));
        assert_eq!(caller.issuer(), Some(ISSUER));
        assert!(caller.has_scope("docs.read"));
    }
    assert_eq!(endpoint.request_count(), 1);
    let requests = endpoint.requests.lock().unwrap()[0].clone();
    assert_eq!(requests.0, "https://a.example/introspect");
    assert_eq!(
        requests.1,
        format!("Basic {}", STANDARD.encode("me%40x:s%3Ae%20c"))
    );
    assert_eq!(requests.2, "token=a%2Fb%2Bc&token_type_hint=access_token");
    tokio::time::advance(CACHE_TTL).await;
    *endpoint.answer.lock().unwrap() = Ok(json!({"active": false}).to_string());
    let inactive = verify(&introspector, "a/b+c").await;
    assert_eq!(inactive, Err(AuthRejection::Bad("the token is not active")));
    assert_eq!(verify(&introspector, "a/b+c").await, inactive);
    assert_eq!(endpoint.request_count(), 2);
}

#[tokio::test(start_paused = true)]
async fn introspection_responses_are_validated_like_tokens() {
    for (changes, good) in [
        (json!({}), true),
        (json!({"iss": ISSUER}), true),
        (json!({"iss": "https://b.example"}), false),
        (json!({"iss": [ISSUER]}), false),
        (json!({"active": "true"}), false),
        (json!({"active": null}), false),
        (json!({"aud": "api://other"}), false),
        (json!({"aud": null}), false),
        (json!({"exp": NOW - 31}), false),
        (json!({"exp": null}), false),
        (json!({"sub": null}), false),
    ] {
        let mut answer = active();
        for (name, value) in changes.as_object().unwrap() {
            answer[name] = value.clone();
        }
        let endpoint = FakeIntrospectionEndpoint::new(&answer);
        let found = verify(&introspector(&endpoint), "token").await;
        assert_eq!(found.is_ok(), good, "{changes}: {found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_is_down_is_asked_again() {
    let endpoint = FakeIntrospectionEndpoint::new(&active());
    let introspector = introspector(&endpoint);
    for down in [
        Err(HttpFetchError::Unreachable),
        Ok("junk".to_owned()),
        Ok("[]".to_owned()),
    ] {
        *endpoint.answer.lock().unwrap() = down;
        assert_eq!(
            verify(&introspector, "token").await,
            Err(AuthRejection::Unready)
        );
    }
    *endpoint.answer.lock().unwrap() = Ok(active().to_string());
    assert!(verify(&introspector, "token").await.is_ok());
    assert_eq!(endpoint.request_count(), 4);
}

#[tokio::test(start_paused = true)]
async fn tokens_have_a_form_and_a_bound() {
    let endpoint = FakeIntrospectionEndpoint::new(&active());
    let introspector = introspector(&endpoint);
    let long = |size: usize| "x".repeat(size);
    assert!(verify(&introspector, &long(MAX_OPAQUE_BYTES)).await.is_ok());
    for bad in [
        long(MAX_OPAQUE_BYTES + 1),
        "a b".to_owned(),
        "a\n".to_owned(),
        "ä".to_owned(),
    ] {
        let found = verify(&introspector, &bad).await;
        assert_eq!(found, Err(AuthRejection::Bad("the token is malformed")));
    }
    assert_eq!(
        endpoint.request_count(),
        1,
        "the rest was not sent anywhere"
    );
}

#[tokio::test(start_paused = true)]
async fn questions_at_once_have_a_bound() {
    let endpoint = FakeIntrospectionEndpoint {
        wait: Duration::from_secs(1),
        ..FakeIntrospectionEndpoint::new(&active())
    };
    let introspector = Arc::new(introspector(&endpoint));
    let all = (0..MAX_IN_FLIGHT + 1).map(|n| {
        let introspector = introspector.clone();
        async move { verify(&introspector, &format!("t{n}")).await }
    });
    let answers = futures::future::join_all(all).await;
    let good = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(good, MAX_IN_FLIGHT);
    assert!(answers.contains(&Err(AuthRejection::Unready)));
}

#[tokio::test(start_paused = true)]
async fn a_question_keeps_its_place_when_the_caller_hangs_up() {
    let endpoint = FakeIntrospectionEndpoint {
        wait: Duration::from_secs(1),
        ..FakeIntrospectionEndpoint::new(&active())
    };
    let introspector = introspector(&endpoint);
    for n in 0..MAX_IN_FLIGHT {
        let token = format!("t{n}");
        let left =
            tokio::time::timeout(Duration::from_millis(1), verify(&introspector, &token)).await;
        assert!(left.is_err(), "it was still under way");
    }
    assert_eq!(
        verify(&introspector, "another").await,
        Err(AuthRejection::Unready)
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(verify(&introspector, "another").await.is_ok());
    // The answer to a request that nobody waited for is cached too.
    assert!(verify(&introspector, "t0").await.is_ok());
    assert_eq!(endpoint.request_count(), MAX_IN_FLIGHT + 1);
}

#[tokio::test(start_paused = true)]
async fn the_introspection_cache_is_limited() {
    let endpoint = FakeIntrospectionEndpoint::new(&active());
    let introspector = introspector(&endpoint);
    for n in 0..MAX_CACHED + 1 {
        assert!(verify(&introspector, &format!("t{n}")).await.is_ok());
    }
    assert_eq!(introspector.cache().active.len(), MAX_CACHED);
    tokio::time::advance(CACHE_TTL).await;
    assert!(verify(&introspector, "new").await.is_ok());
    assert_eq!(
        introspector.cache().active.len(),
        1,
        "what has ended made room"
    );
}

#[tokio::test(start_paused = true)]
async fn made_up_tokens_take_no_room_from_those_that_count() {
    let endpoint = FakeIntrospectionEndpoint::new(&active());
    let introspector = introspector(&endpoint);
    assert!(verify(&introspector, "good").await.is_ok());
    *endpoint.answer.lock().unwrap() = Ok(json!({"active": false}).to_string());
    for n in 0..MAX_CACHED + 1 {
        assert_eq!(verify(&introspector, &format!("t{n}")).await, Err(INACTIVE));
    }
    assert_eq!(introspector.cache().inactive.len(), MAX_CACHED);
    let before = endpoint.request_count();
    assert!(verify(&introspector, "good").await.is_ok());
    assert_eq!(verify(&introspector, "t0").await, Err(INACTIVE));
    assert_eq!(endpoint.request_count(), before, "both are still known");
    // A token that was active and no longer is stays valid no longer than the cache's time to live.
    tokio::time::advance(CACHE_TTL).await;
    assert_eq!(verify(&introspector, "good").await, Err(INACTIVE));
    assert!(introspector.cache().active.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_made_up_tokens_locks_out_nobody_who_signed_in() {
    let endpoint = FakeIntrospectionEndpoint {
        wait: Duration::from_secs(4),
        ..FakeIntrospectionEndpoint::new(&active())
    };
    let introspector = Arc::new(introspector(&endpoint));
    assert!(verify(&introspector, "good").await.is_ok());
    tokio::time::advance(CACHE_TTL).await;
    let flood: Vec<_> = (0..MAX_IN_FLIGHT)
        .map(|n| {
            let introspector = introspector.clone();
            tokio::spawn(async move { verify(&introspector, &format!("t{n}")).await })
        })
        .collect();
    while endpoint.request_count() < 1 + MAX_IN_FLIGHT {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        verify(&introspector, "another").await,
        Err(AuthRejection::Unready)
    );
    assert!(
        verify(&introspector, "good").await.is_ok(),
        "it is introspector again"
    );
    for one in flood {
        one.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_understood_lets_nobody_in() {
    for answer in [
        "",
        "null",
        "[]",
        "true",
        "{",
        r#"{"active": "true", "sub": "u", "aud": "api://docs"}"#,
        r#"{"active": 1, "sub": "u", "aud": "api://docs"}"#,
        r#"{"active": false, "active": true, "sub": "u", "aud": "api://docs"}"#,
        r#"{"active": true}"#,
        r#"{"active": true, "sub": "u"}"#,
        r#"{"active": true, "aud": "api://docs"}"#,
    ] {
        let endpoint = FakeIntrospectionEndpoint::new(&json!(null));
        *endpoint.answer.lock().unwrap() = Ok(answer.to_owned());
        assert!(
            verify(&introspector(&endpoint), "t").await.is_err(),
            "{answer}"
        );
    }
    for error in [HttpFetchError::Unreachable, HttpFetchError::Status(500)] {
        let endpoint = FakeIntrospectionEndpoint::new(&active());
        *endpoint.answer.lock().unwrap() = Err(error);
        assert_eq!(
            verify(&introspector(&endpoint), "t").await,
            Err(AuthRejection::Unready)
        );
    }
}
