//! Opaque tokens: what is asked, what is believed, and how much is kept.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;

use super::super::outbound_http::HttpFetchError;
use super::*;

const ISSUER: &str = "https://a.example";
const NOW: u64 = 1_800_000_000;

/// An issuer that says one thing of every token, and notes what it was asked.
#[derive(Clone)]
struct FakeIntrospectionEndpoint {
    says: Arc<Mutex<Result<String, HttpFetchError>>>,
    heard: Arc<Mutex<Vec<(String, String, String)>>>,
    wait: Duration,
}

impl FakeIntrospectionEndpoint {
    fn new(says: &Value) -> Self {
        Self {
            says: Arc::new(Mutex::new(Ok(says.to_string()))),
            heard: Arc::default(),
            wait: Duration::ZERO,
        }
    }

    fn asked(&self) -> usize {
        self.heard.lock().unwrap().len()
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
            this.heard.lock().unwrap().push((
                url,
                form.authorization.unwrap_or_default(),
                form.body,
            ));
            tokio::time::sleep(this.wait).await;
            let says = this.says.lock().unwrap().clone();
            says.map(String::into_bytes)
        }
        .boxed()
    }
}

fn active() -> Value {
    json!({"active": true, "sub": "u", "aud": "api://docs", "exp": NOW + 60, "scope": "docs.read"})
}

fn asked(web: &FakeIntrospectionEndpoint) -> TokenIntrospector {
    TokenIntrospector::new(
        "https://a.example/introspect",
        "me@x",
        "s:e c",
        Arc::new(web.clone()),
    )
}

async fn identify(asked: &TokenIntrospector, token: &str) -> Result<Caller, AuthRejection> {
    let audiences = ["api://docs".to_owned()].into();
    asked.identify(ISSUER, token, &audiences, NOW).await
}

#[tokio::test(start_paused = true)]
async fn the_issuer_is_asked_once_a_minute() {
    let web = FakeIntrospectionEndpoint::new(&active());
    let asked = asked(&web);
    for _ in 0..5 {
        let caller = identify(&asked, "a/b+c").await.unwrap();
        assert_eq!(caller.subject(), Some("u"));
        assert_eq!(caller.issuer(), Some(ISSUER));
        assert!(caller.has_scope("docs.read"));
    }
    assert_eq!(web.asked(), 1);
    let heard = web.heard.lock().unwrap()[0].clone();
    assert_eq!(heard.0, "https://a.example/introspect");
    assert_eq!(
        heard.1,
        format!("Basic {}", STANDARD.encode("me%40x:s%3Ae%20c"))
    );
    assert_eq!(heard.2, "token=a%2Fb%2Bc&token_type_hint=access_token");
    tokio::time::advance(KEPT).await;
    *web.says.lock().unwrap() = Ok(json!({"active": false}).to_string());
    let gone = identify(&asked, "a/b+c").await;
    assert_eq!(
        gone,
        Err(AuthRejection::Bad("the token does not count, or no longer"))
    );
    assert_eq!(identify(&asked, "a/b+c").await, gone);
    assert_eq!(web.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_issuer_says_is_checked_like_a_token() {
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
        let mut says = active();
        for (name, value) in changes.as_object().unwrap() {
            says[name] = value.clone();
        }
        let web = FakeIntrospectionEndpoint::new(&says);
        let found = identify(&asked(&web), "token").await;
        assert_eq!(found.is_ok(), good, "{changes}: {found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_is_down_is_asked_again() {
    let web = FakeIntrospectionEndpoint::new(&active());
    let asked = asked(&web);
    for down in [
        Err(HttpFetchError::Unreachable),
        Ok("junk".to_owned()),
        Ok("[]".to_owned()),
    ] {
        *web.says.lock().unwrap() = down;
        assert_eq!(identify(&asked, "token").await, Err(AuthRejection::Unready));
    }
    *web.says.lock().unwrap() = Ok(active().to_string());
    assert!(identify(&asked, "token").await.is_ok());
    assert_eq!(web.asked(), 4);
}

#[tokio::test(start_paused = true)]
async fn tokens_have_a_form_and_a_bound() {
    let web = FakeIntrospectionEndpoint::new(&active());
    let asked = asked(&web);
    let long = |size: usize| "x".repeat(size);
    assert!(identify(&asked, &long(MAX_OPAQUE_BYTES)).await.is_ok());
    for bad in [
        long(MAX_OPAQUE_BYTES + 1),
        "a b".to_owned(),
        "a\n".to_owned(),
        "ä".to_owned(),
    ] {
        let found = identify(&asked, &bad).await;
        assert_eq!(found, Err(AuthRejection::Bad("the token is not one")));
    }
    assert_eq!(web.asked(), 1, "the rest was not sent anywhere");
}

#[tokio::test(start_paused = true)]
async fn questions_at_once_have_a_bound() {
    let web = FakeIntrospectionEndpoint {
        wait: Duration::from_secs(1),
        ..FakeIntrospectionEndpoint::new(&active())
    };
    let asked = Arc::new(asked(&web));
    let all = (0..MAX_ASKED + 1).map(|n| {
        let asked = asked.clone();
        async move { identify(&asked, &format!("t{n}")).await }
    });
    let answers = futures::future::join_all(all).await;
    let good = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(good, MAX_ASKED);
    assert!(answers.contains(&Err(AuthRejection::Unready)));
}

#[tokio::test(start_paused = true)]
async fn a_question_keeps_its_place_when_the_caller_hangs_up() {
    let web = FakeIntrospectionEndpoint {
        wait: Duration::from_secs(1),
        ..FakeIntrospectionEndpoint::new(&active())
    };
    let asked = asked(&web);
    for n in 0..MAX_ASKED {
        let token = format!("t{n}");
        let left = tokio::time::timeout(Duration::from_millis(1), identify(&asked, &token)).await;
        assert!(left.is_err(), "it was still under way");
    }
    assert_eq!(
        identify(&asked, "another").await,
        Err(AuthRejection::Unready)
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(identify(&asked, "another").await.is_ok());
    // What the issuer said to nobody is not asked again.
    assert!(identify(&asked, "t0").await.is_ok());
    assert_eq!(web.asked(), MAX_ASKED + 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_has_a_bound() {
    let web = FakeIntrospectionEndpoint::new(&active());
    let asked = asked(&web);
    for n in 0..MAX_REMEMBERED + 1 {
        assert!(identify(&asked, &format!("t{n}")).await.is_ok());
    }
    assert_eq!(asked.remembered().good.len(), MAX_REMEMBERED);
    tokio::time::advance(KEPT).await;
    assert!(identify(&asked, "new").await.is_ok());
    assert_eq!(asked.remembered().good.len(), 1, "what has ended made room");
}

#[tokio::test(start_paused = true)]
async fn made_up_tokens_take_no_room_from_those_that_count() {
    let web = FakeIntrospectionEndpoint::new(&active());
    let asked = asked(&web);
    assert!(identify(&asked, "good").await.is_ok());
    *web.says.lock().unwrap() = Ok(json!({"active": false}).to_string());
    for n in 0..MAX_REMEMBERED + 1 {
        assert_eq!(identify(&asked, &format!("t{n}")).await, Err(NOT_GOOD));
    }
    assert_eq!(asked.remembered().bad.len(), MAX_REMEMBERED);
    let before = web.asked();
    assert!(identify(&asked, "good").await.is_ok());
    assert_eq!(identify(&asked, "t0").await, Err(NOT_GOOD));
    assert_eq!(web.asked(), before, "both are still known");
    // What counted and does not any more is not good a moment longer than it was promised.
    tokio::time::advance(KEPT).await;
    assert_eq!(identify(&asked, "good").await, Err(NOT_GOOD));
    assert!(asked.remembered().good.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_made_up_tokens_locks_out_nobody_who_signed_in() {
    let web = FakeIntrospectionEndpoint {
        wait: Duration::from_secs(4),
        ..FakeIntrospectionEndpoint::new(&active())
    };
    let asked = Arc::new(asked(&web));
    assert!(identify(&asked, "good").await.is_ok());
    tokio::time::advance(KEPT).await;
    let flood: Vec<_> = (0..MAX_ASKED)
        .map(|n| {
            let asked = asked.clone();
            tokio::spawn(async move { identify(&asked, &format!("t{n}")).await })
        })
        .collect();
    while web.asked() < 1 + MAX_ASKED {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        identify(&asked, "another").await,
        Err(AuthRejection::Unready)
    );
    assert!(identify(&asked, "good").await.is_ok(), "it is asked again");
    for one in flood {
        one.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_understood_lets_nobody_in() {
    for says in [
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
        let web = FakeIntrospectionEndpoint::new(&json!(null));
        *web.says.lock().unwrap() = Ok(says.to_owned());
        assert!(identify(&asked(&web), "t").await.is_err(), "{says}");
    }
    for error in [HttpFetchError::Unreachable, HttpFetchError::Status(500)] {
        let web = FakeIntrospectionEndpoint::new(&active());
        *web.says.lock().unwrap() = Err(error);
        assert_eq!(
            identify(&asked(&web), "t").await,
            Err(AuthRejection::Unready)
        );
    }
}
