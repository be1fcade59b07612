//! Client ID metadata documents: resolves a client id that is an https URL to the metadata at that URL,
//! with a cache.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as AsyncMutex;
use url::{Host, Url};

use super::document_fetcher::{DocumentFetchError, DocumentFetcher, FetchedDocument};
use super::fetch_slots::{FETCHES, FetchSlots, WAITS};
use super::oauth_client::{ClientMetadata, OAuthClient};

/// The maximum length of a client id URL.
const MAX_ADDRESS: usize = 1_024;
/// The capacity of the cache in documents.
const MAX_CACHED: usize = 256;
/// The range of a document's time to live in seconds: at least so long that one login fetches it once, at
/// most a day.
const TTL_RANGE: std::ops::RangeInclusive<u64> = 60..=86_400;
/// The time to live in seconds for a document without a `Cache-Control` header. A login fetches the document once and
/// has it cached until its end; a client that corrects its document sees the new one a few minutes later.
const DEFAULT_TTL: u64 = 300;
/// The time to live in seconds of a failure (negative caching), so that an attacker cannot make us send
/// request after request to a third party.
const FAILURE_TTL: u64 = 30;

/// Why a client with a metadata document is refused. The texts are shown on the error page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DocumentError {
    #[error("the client's id is not an address of a document")]
    Address,
    #[error("the client's document: {0}")]
    Fetch(#[from] DocumentFetchError),
    #[error("the client's document {0}")]
    Content(&'static str),
    #[error("too many documents are being fetched")]
    Busy,
}

type DocumentResult = Result<Arc<OAuthClient>, DocumentError>;

struct CachedClientDocument {
    until: u64,
    outcome: DocumentResult,
}

/// The cache of client ID metadata documents. `fetches` and `waits` limit concurrency by host.
pub(crate) struct ClientDocumentCache {
    fetcher: DocumentFetcher,
    kept: Mutex<HashMap<String, CachedClientDocument>>,
    /// A lock for each URL being fetched (single-flight): concurrent requests for one URL wait for one
    /// fetch. `waits` bounds how many.
    url_locks: Mutex<HashMap<String, UrlLock>>,
    fetches: Arc<FetchSlots>,
    waits: Arc<FetchSlots>,
}

/// The lock of one URL, and the number of its handles: one for each request that holds or awaits it.
#[derive(Default)]
struct UrlLock {
    lock: Arc<AsyncMutex<()>>,
    handles: usize,
}

/// A request's handle of a lock. `Drop` removes an unused lock, also when the caller disconnects.
struct UrlLockHandle<'a> {
    documents: &'a ClientDocumentCache,
    address: &'a str,
    lock: Arc<AsyncMutex<()>>,
}

impl Drop for UrlLockHandle<'_> {
    fn drop(&mut self) {
        let mut url_locks = self.documents.url_locks();
        if let Some(url_lock) = url_locks.get_mut(self.address) {
            url_lock.handles = url_lock.handles.saturating_sub(1);
            if url_lock.handles == 0 {
                url_locks.remove(self.address);
            }
        }
    }
}

impl ClientDocumentCache {
    pub(crate) fn new(fetcher: DocumentFetcher) -> Self {
        Self {
            fetcher,
            kept: Mutex::default(),
            url_locks: Mutex::default(),
            fetches: FetchSlots::new(&FETCHES),
            waits: FetchSlots::new(&WAITS),
        }
    }

    /// The client whose id is `address`, from the cache or fetched.
    pub(crate) async fn client(&self, address: &str, now: u64) -> DocumentResult {
        self.check(address)?;
        if let Some(outcome) = self.cached(address, now) {
            return outcome;
        }
        let _waiting = self.waits.take(&host(address)).ok_or(DocumentError::Busy)?;
        let handle = self.lock_handle(address);
        let _guard = handle.lock.lock().await;
        match self.cached(address, now) {
            Some(outcome) => outcome,
            None => self.fetch(address, now).await,
        }
    }

    fn url_locks(&self) -> MutexGuard<'_, HashMap<String, UrlLock>> {
        self.url_locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_handle<'a>(&'a self, address: &'a str) -> UrlLockHandle<'a> {
        let mut url_locks = self.url_locks();
        let url_lock = url_locks.entry(address.to_owned()).or_default();
        url_lock.handles += 1;
        UrlLockHandle {
            documents: self,
            address,
            lock: url_lock.lock.clone(),
        }
    }

    /// The number of documents that requests are waiting for.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.url_locks().len()
    }

    /// Marks the client's host as known after a login, so that floods of requests with unknown hosts cannot
    /// delay it.
    pub(crate) fn mark_known(&self, address: &str) {
        let host = host(address);
        self.fetches.mark_known(&host);
        self.waits.mark_known(&host);
    }

    /// Validates a client id URL by the rules of the Internet-Draft: https with a path, no userinfo, no
    /// fragment, no dot segments.
    fn check(&self, address: &str) -> Result<(), DocumentError> {
        let plain = address.len() <= MAX_ADDRESS
            && address.starts_with("https://")
            && address.bytes().all(|byte| byte.is_ascii_graphic())
            && !address.contains(['#', '\\', '@']);
        let url = Url::parse(address).ok().filter(|_| plain);
        let url = url.ok_or(DocumentError::Address)?;
        // A URL that the parser would normalize is a second name of the same document.
        if url.as_str() != address || matches!(url.path(), "" | "/") {
            return Err(DocumentError::Address);
        }
        let named = matches!(url.host(), Some(Host::Domain(_)));
        if named || self.fetcher.is_own(url.authority()) {
            Ok(())
        } else {
            Err(DocumentFetchError::NotPublic.into())
        }
    }

    fn cached(&self, address: &str, now: u64) -> Option<DocumentResult> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.get(address).filter(|kept| now < kept.until)?;
        Some(found.outcome.clone())
    }

    async fn fetch(&self, address: &str, now: u64) -> DocumentResult {
        let slot = self.fetches.take(&host(address));
        let slot = slot.ok_or(DocumentError::Busy)?;
        let (fetcher, url) = (self.fetcher.clone(), address.to_owned());
        let fetched = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            fetcher.json(&url)
        });
        let fetched = fetched.await.unwrap_or(Err(DocumentFetchError::Failed));
        let (outcome, kept_for) = match fetched {
            Ok(FetchedDocument { body, fresh_for }) => {
                let kept_for = fresh_for.unwrap_or(DEFAULT_TTL);
                let kept_for = kept_for.clamp(*TTL_RANGE.start(), *TTL_RANGE.end());
                match read(address, &body) {
                    Ok(client) => (Ok(Arc::new(client)), kept_for),
                    Err(error) => (Err(error), FAILURE_TTL),
                }
            }
            Err(error) => (Err(error.into()), FAILURE_TTL),
        };
        self.cache(address, now + kept_for, now, &outcome);
        outcome
    }

    fn cache(&self, address: &str, until: u64, now: u64, outcome: &DocumentResult) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_CACHED {
            kept.retain(|_, kept| now < kept.until);
        }
        if kept.len() >= MAX_CACHED {
            let soonest = kept.iter().min_by_key(|(_, kept)| kept.until);
            if let Some(key) = soonest.map(|(key, _)| key.clone()) {
                kept.remove(&key);
            }
        }
        let outcome = outcome.clone();
        kept.insert(address.to_owned(), CachedClientDocument { until, outcome });
    }
}

/// The host of a URL with its port.
fn host(address: &str) -> String {
    let url = Url::parse(address).ok();
    url.map_or_else(String::new, |url| url.authority().to_owned())
}

/// Parses the document, whose `client_id` must be its own URL.
fn read(address: &str, body: &[u8]) -> Result<OAuthClient, DocumentError> {
    let metadata: ClientMetadata =
        serde_json::from_slice(body).map_err(|_| DocumentError::Content("is not a client's"))?;
    if metadata.client_id.as_deref() != Some(address) {
        return Err(DocumentError::Content("names another client"));
    }
    if metadata.has_secret() {
        return Err(DocumentError::Content("holds a secret, which it cannot"));
    }
    metadata
        .into_public_client(address)
        .map_err(|error| DocumentError::Content(error.0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::document_fetcher::OwnHosts;

    const ADDRESS: &str = "https://app.example/client.json";

    fn documents() -> ClientDocumentCache {
        ClientDocumentCache::new(DocumentFetcher::new(OwnHosts::default()).unwrap())
    }

    #[test]
    fn ids_that_are_addresses_of_documents() {
        let documents = documents();
        for good in [ADDRESS, "https://app.example:8443/a/b?v=1"] {
            assert_eq!(documents.check(good), Ok(()), "{good}");
        }
        let long = format!("https://app.example/{}", "a".repeat(MAX_ADDRESS));
        for bad in [
            "http://app.example/client.json",
            "https://app.example",
            "https://app.example/",
            "https://app.example/a/../client.json",
            "https://app.example/%2e%2e/client.json",
            "https://APP.example/client.json",
            "https://app.example:443/client.json",
            "https://user@app.example/client.json",
            "https://app.example/client.json#a",
            "https://app.example\\client.json",
            "https://127.0.0.1/client.json",
            "https://[::1]/client.json",
            "https://2130706433/client.json",
            "https://0x7f.1/client.json",
            long.as_str(),
            "app",
        ] {
            assert!(documents.check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_document_speaks_for_its_own_address_only() {
        let good = json!({
            "client_id": ADDRESS, "client_name": "Chart room",
            "redirect_uris": ["https://app.example/cb"],
            "token_endpoint_auth_method": "none",
        });
        let read_json = |value: &serde_json::Value| read(ADDRESS, value.to_string().as_bytes());
        assert_eq!(read_json(&good).unwrap().name, "Chart room");
        for (name, value) in [
            ("client_id", json!("https://app.example/other.json")),
            ("client_id", json!(null)),
            ("client_secret", json!("s")),
            ("client_secret_expires_at", json!(0)),
            ("redirect_uris", json!([])),
            ("redirect_uris", json!(["http://evil.example/cb"])),
            ("redirect_uris", json!("https://app.example/cb")),
            ("token_endpoint_auth_method", json!("client_secret_post")),
            ("token_endpoint_auth_method", json!("private_key_jwt")),
            ("response_types", json!(["token"])),
            ("grant_types", json!(["client_credentials"])),
        ] {
            let mut bad = good.clone();
            bad[name] = value.clone();
            assert!(read_json(&bad).is_err(), "{name} {value}");
        }
        let mut chatgpt = good;
        chatgpt["token_endpoint_auth_method"] = json!("private_key_jwt");
        chatgpt["token_endpoint_auth_methods_supported"] = json!(["none", "private_key_jwt"]);
        assert!(read_json(&chatgpt).is_ok());
    }

    #[test]
    fn expired_documents_are_evicted_before_those_that_expire_first() {
        let documents = documents();
        let busy = Err(DocumentError::Busy);
        let at = |n: usize| format!("https://a.example/{n}");
        for n in 0..MAX_CACHED {
            let until = if n < 10 { 200 } else { 1_000 + n as u64 };
            documents.cache(&at(n), until, 100, &busy);
        }
        let count = || documents.kept.lock().unwrap().len();
        documents.cache("https://b.example/1", 900, 199, &busy);
        assert_eq!(count(), MAX_CACHED, "nothing is over, so the soonest goes");
        documents.cache("https://b.example/2", 2_000, 200, &busy);
        assert_eq!(
            count(),
            MAX_CACHED - 8,
            "ten were over, of which one had gone"
        );
        assert_eq!(documents.cached(&at(0), 199), None);
        for n in 0..8 {
            documents.cache(&format!("https://c.example/{n}"), 2_000, 200, &busy);
        }
        documents.cache("https://d.example/", 2_000, 200, &busy);
        assert_eq!(documents.cached("https://b.example/1", 201), None);
        assert!(documents.cached(&at(10), 201).is_some());
    }

    #[tokio::test]
    async fn an_address_that_is_none_is_not_even_called() {
        let documents = documents();
        let of = |size: usize| {
            let head = "https://nowhere.invalid/";
            format!("{head}{}", "x".repeat(size - head.len()))
        };
        for bad in ["https://nowhere.invalid", &of(MAX_ADDRESS + 1)] {
            let result = documents.client(bad, 100).await;
            assert_eq!(result, Err(DocumentError::Address), "{bad}");
            assert_eq!(documents.cached(bad, 100), None);
        }
        let result = documents.client(&of(MAX_ADDRESS), 100).await;
        assert_eq!(
            result,
            Err(DocumentError::Fetch(DocumentFetchError::Failed))
        );
    }

    #[tokio::test]
    async fn the_number_of_waiting_fetches_is_limited() {
        let documents = documents();
        let result = || documents.client("https://nowhere.invalid/1", 100);
        let mut waiting: Vec<_> = (0..WAITS.each_host)
            .map(|_| documents.waits.take("nowhere.invalid").unwrap())
            .collect();
        assert_eq!(result().await, Err(DocumentError::Busy));
        waiting.pop();
        let fetched = Err(DocumentError::Fetch(DocumentFetchError::Failed));
        assert_eq!(result().await, fetched);
        assert_eq!(documents.waiting(), 0);
    }

    #[tokio::test]
    async fn failures_are_kept_for_a_while_and_room_is_bounded() {
        let documents = documents();
        let address = "https://nowhere.invalid/client.json";
        let first = documents.client(address, 100).await.unwrap_err();
        assert!(matches!(first, DocumentError::Fetch(_)));
        assert_eq!(documents.cached(address, 129), Some(Err(first)));
        assert_eq!(documents.cached(address, 130), None);
        for n in 0..=MAX_CACHED {
            let outcome = Err(DocumentError::Busy);
            documents.cache(&format!("https://a.example/{n}"), 1000, 200, &outcome);
        }
        assert_eq!(documents.kept.lock().unwrap().len(), MAX_CACHED);
        assert!(documents.url_locks.lock().unwrap().is_empty());
    }
}
