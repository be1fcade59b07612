//! Tests of the key set cache over time: rotation, withdrawal, floods of unknown keys and an unreachable
//! issuer.

use std::collections::HashMap;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;

use super::super::mint::{Signer, jwks};
use super::super::outbound_http::{FormPost, HttpFetchError};
use super::*;

const ISSUER: &str = "https://a.example";
const JWKS: &str = "https://a.example/jwks";
const OIDC: &str = "https://a.example/.well-known/openid-configuration";

type FakePages = HashMap<String, Result<Vec<u8>, HttpFetchError>>;

/// A fake network with a few pages that records the requested URLs.
#[derive(Clone, Default)]
struct FakeJwksHost(Arc<Mutex<(FakePages, Vec<String>)>>, Arc<Mutex<Duration>>);

impl FakeJwksHost {
    fn set(&self, url: &str, page: Result<Value, HttpFetchError>) {
        let page = page.map(|value| value.to_string().into_bytes());
        self.0.lock().unwrap().0.insert(url.to_owned(), page);
    }

    fn requests(&self, url: &str) -> usize {
        let requests = &self.0.lock().unwrap().1;
        requests.iter().filter(|one| *one == url).count()
    }

    fn keys(&self, signers: &[&Signer]) {
        self.set(JWKS, Ok(jwks(signers)));
    }
}

impl HttpFetch for FakeJwksHost {
    fn get(&self, url: String) -> BoxFuture<'static, Result<Vec<u8>, HttpFetchError>> {
        let this = self.clone();
        async move {
            // Long enough for every other task to arrive and wait for the fetch.
            let wait = *this.1.lock().unwrap();
            tokio::time::sleep(wait + Duration::from_millis(100)).await;
            let mut inner = this.0.lock().unwrap();
            inner.1.push(url.clone());
            inner
                .0
                .get(&url)
                .cloned()
                .unwrap_or(Err(HttpFetchError::Status(404)))
        }
        .boxed()
    }

    fn post(&self, _: String, _: FormPost) -> BoxFuture<'static, Result<Vec<u8>, HttpFetchError>> {
        async { Err(HttpFetchError::Unreachable) }.boxed()
    }
}

fn cache(network: &FakeJwksHost) -> Arc<JwksCache> {
    let jwks = Some(JWKS.to_owned());
    Arc::new(JwksCache::new(ISSUER, jwks, Arc::new(network.clone())))
}

const UNKNOWN: AuthRejection = AuthRejection::Bad("the key of the token is not known");

#[tokio::test(start_paused = true)]
async fn keys_come_once_and_are_kept() {
    let (network, a) = (FakeJwksHost::default(), Signer::ed25519("a"));
    network.keys(&[&a]);
    let cache = cache(&network);
    assert!(!cache.is_ready());
    assert_eq!(cache.next_refresh(), COOLDOWN);
    for _ in 0..10 {
        assert!(cache.key(Some("a")).await.is_ok());
    }
    assert_eq!(network.requests(JWKS), 1);
    assert!(cache.is_ready());
    assert_eq!(cache.next_refresh(), FRESH - COOLDOWN);
}

#[tokio::test(start_paused = true)]
async fn a_new_key_is_picked_up_by_one_fetch() {
    let (network, a, b) = (
        FakeJwksHost::default(),
        Signer::ed25519("a"),
        Signer::ed25519("b"),
    );
    network.keys(&[&a]);
    let cache = cache(&network);
    cache.key(Some("a")).await.unwrap();
    network.keys(&[&a, &b]);
    assert_eq!(cache.key(Some("b")).await, Err(UNKNOWN), "too soon");
    tokio::time::advance(COOLDOWN).await;
    assert!(cache.key(Some("b")).await.is_ok());
    assert_eq!(network.requests(JWKS), 2);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_unknown_keys_are_one_fetch_in_half_a_minute() {
    let (network, a) = (FakeJwksHost::default(), Signer::ed25519("a"));
    network.keys(&[&a]);
    let cache = cache(&network);
    cache.key(Some("a")).await.unwrap();
    tokio::time::advance(COOLDOWN).await;
    let all = (0..10_000).map(|n| {
        let cache = cache.clone();
        async move { cache.key(Some(&format!("k{n}"))).await }
    });
    let answers = futures::future::join_all(all).await;
    assert!(answers.into_iter().all(|answer| answer == Err(UNKNOWN)));
    assert_eq!(network.requests(JWKS), 2);
}

#[tokio::test(start_paused = true)]
async fn callers_who_hang_up_neither_end_a_fetch_nor_begin_another() {
    let (network, a, b) = (
        FakeJwksHost::default(),
        Signer::ed25519("a"),
        Signer::ed25519("b"),
    );
    network.keys(&[&a]);
    let cache = cache(&network);
    cache.key(Some("a")).await.unwrap();
    network.keys(&[&a, &b]);
    tokio::time::advance(COOLDOWN).await;
    *network.1.lock().unwrap() = Duration::from_secs(1);
    for n in 0..100 {
        let kid = format!("k{n}");
        let moment = Duration::from_millis(1);
        let left = tokio::time::timeout(moment, cache.key(Some(&kid))).await;
        assert!(left.is_err(), "it was still under way");
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(network.requests(JWKS), 2);
    assert!(cache.key(Some("b")).await.is_ok(), "the fetch was of use");
}

#[tokio::test(start_paused = true)]
async fn a_removed_key_is_refused_within_ten_minutes() {
    let (network, a, b) = (
        FakeJwksHost::default(),
        Signer::ed25519("a"),
        Signer::ed25519("b"),
    );
    network.keys(&[&a, &b]);
    let cache = cache(&network);
    cache.key(Some("a")).await.unwrap();
    network.keys(&[&b]);
    tokio::time::advance(FRESH - Duration::from_secs(1)).await;
    assert!(cache.key(Some("a")).await.is_ok());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(cache.key(Some("a")).await, Err(UNKNOWN));
    assert!(cache.key(Some("b")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn known_keys_count_for_an_hour_while_the_issuer_is_down() {
    let (network, a) = (FakeJwksHost::default(), Signer::ed25519("a"));
    network.keys(&[&a]);
    let cache = cache(&network);
    cache.key(Some("a")).await.unwrap();
    network.set(JWKS, Err(HttpFetchError::Unreachable));
    tokio::time::advance(STALE - Duration::from_secs(2)).await;
    assert!(cache.key(Some("a")).await.is_ok());
    assert_eq!(cache.key(Some("b")).await, Err(UNKNOWN));
    assert!(cache.is_ready());
    assert_eq!(cache.next_refresh(), COOLDOWN, "it is tried again soon");
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(cache.key(Some("a")).await, Err(AuthRejection::Unready));
    assert!(!cache.is_ready());
    // The issuer is reachable again, and its keys are fetched.
    network.keys(&[&a]);
    tokio::time::advance(COOLDOWN).await;
    assert!(cache.key(Some("a")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_slow_issuer_holds_up_nobody_whose_key_is_here() {
    let (network, a) = (FakeJwksHost::default(), Signer::ed25519("a"));
    network.keys(&[&a]);
    let cache = cache(&network);
    cache.key(Some("a")).await.unwrap();
    tokio::time::advance(FRESH).await;
    *network.1.lock().unwrap() = Duration::from_secs(60);
    let first = tokio::spawn({
        let cache = cache.clone();
        async move { cache.refresh().await }
    });
    tokio::time::sleep(Duration::from_millis(1)).await;
    let before = Instant::now();
    assert!(cache.key(Some("a")).await.is_ok());
    assert_eq!(before.elapsed(), Duration::ZERO);
    // The wait for an unresponsive issuer is bounded.
    assert_eq!(cache.key(Some("b")).await, Err(UNKNOWN));
    assert!(before.elapsed() <= REFRESH_TIMEOUT);
    first.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_any_key_the_caller_is_told_to_come_back() {
    let network = FakeJwksHost::default();
    let cache = cache(&network);
    for page in [
        Err(HttpFetchError::TooLong),
        Ok(json!({"keys": []})),
        Ok(json!([])),
        Ok(json!("junk")),
    ] {
        network.set(JWKS, page);
        tokio::time::advance(COOLDOWN).await;
        assert_eq!(cache.key(Some("a")).await, Err(AuthRejection::Unready));
    }
    assert_eq!(network.requests(JWKS), 4);
}

#[tokio::test(start_paused = true)]
async fn the_issuer_says_where_its_keys_are() {
    let (network, a) = (FakeJwksHost::default(), Signer::ed25519("a"));
    network.keys(&[&a]);
    let cache = Arc::new(JwksCache::new(ISSUER, None, Arc::new(network.clone())));
    let tries = [
        (Err(HttpFetchError::Status(404)), false),
        (
            Ok(json!({"issuer": "https://b.example", "jwks_uri": JWKS})),
            false,
        ),
        (Ok(json!({"issuer": ISSUER})), false),
        (Ok(json!(["issuer"])), false),
        (Ok(json!({"issuer": ISSUER, "jwks_uri": JWKS})), true),
    ];
    for (page, found) in tries {
        network.set(OIDC, page.clone());
        tokio::time::advance(COOLDOWN).await;
        assert_eq!(cache.key(Some("a")).await.is_ok(), found, "{page:?}");
    }
    assert_eq!(network.requests(JWKS), 1);
    assert_eq!(
        network.requests("https://a.example/.well-known/oauth-authorization-server"),
        5
    );
}
