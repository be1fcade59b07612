//! Client ID metadata documents: fetching over TLS, caching and validation. The document host is a local
//! server that serves what each test sets.

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use docent_mcp::http::{Route, RouteResponse, ServerTls};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::client_documents::{ClientDocumentCache, DocumentError};
use crate::document_fetcher::{DocumentFetchError, DocumentFetcher, FetchedDocument, MAX_BYTES};

struct DocumentHost {
    /// The host and port of the document URLs.
    authority: String,
    /// The host's self-signed certificate in PEM.
    pem: String,
    page: Arc<Mutex<RouteResponse>>,
    /// The number of requests, and the `Accept` header of the last one.
    request_count: Arc<AtomicUsize>,
    accept: Arc<Mutex<String>>,
    /// Requests are answered only while this semaphore has permits.
    open: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Drop for DocumentHost {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl DocumentHost {
    async fn new() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (cert, key) = (dir.path().join("cert"), dir.path().join("key"));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let host = Self {
            authority,
            pem: made.cert.pem(),
            page: Arc::new(Mutex::new(RouteResponse::json(&json!({})))),
            request_count: Arc::default(),
            accept: Arc::default(),
            open: Arc::new(Semaphore::new(1_000)),
            stop: CancellationToken::new(),
        };
        let (page, request_count, accept) = (
            host.page.clone(),
            host.request_count.clone(),
            host.accept.clone(),
        );
        let open = host.open.clone();
        let route = Route::get("/{+name}", move |request| {
            request_count.fetch_add(1, Ordering::SeqCst);
            request
                .header("accept")
                .unwrap_or_default()
                .clone_into(&mut accept.lock().unwrap());
            let (page, open) = (page.clone(), open.clone());
            async move {
                let _room = open.acquire().await.unwrap();
                let page = page.lock().unwrap().clone();
                Ok(page)
            }
        });
        let options = docent_mcp::http::HttpOptions {
            routes: vec![route],
            tls: Some(ServerTls::load(cert, key).unwrap()),
            ..docent_mcp::http::HttpOptions::default()
        };
        tokio::spawn(docent_mcp::http::serve_routes(
            options,
            listener,
            host.stop.clone(),
        ));
        host
    }

    fn address(&self) -> String {
        format!("https://{}/client.json", self.authority)
    }

    fn own(&self) -> OwnHosts {
        OwnHosts {
            names: vec![self.authority.clone()],
            authorities: Some(self.pem.clone()),
        }
    }

    fn serve(&self, page: RouteResponse) {
        *self.page.lock().unwrap() = page;
    }

    /// Serves a valid document with this `Cache-Control`.
    fn serve_document(&self, address: &str, control: &str) {
        let page = RouteResponse::json(&json!({
            "client_id": address, "client_name": "Chart room", "redirect_uris": [CALLBACK],
        }));
        self.serve(page.header("cache-control", control));
    }

    fn request_count(&self) -> usize {
        self.request_count.load(Ordering::SeqCst)
    }

    async fn fetch(&self, own: OwnHosts) -> Result<FetchedDocument, DocumentFetchError> {
        let (fetcher, address) = (DocumentFetcher::new(own).unwrap(), self.address());
        tokio::task::spawn_blocking(move || fetcher.json(&address))
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn a_document_is_json_of_some_size_behind_a_plain_200() {
    let host = DocumentHost::new().await;
    host.serve(
        RouteResponse::new(200, "application/json", "{\"a\":1}")
            .header("cache-control", "max-age=7"),
    );
    let expected = FetchedDocument {
        body: b"{\"a\":1}".to_vec(),
        fresh_for: Some(7),
    };
    assert_eq!(host.fetch(host.own()).await, Ok(expected));
    assert_eq!(*host.accept.lock().unwrap(), "application/json");
    for (kind, taken) in [
        ("application/json; charset=utf-8", true),
        ("Application/JSON", true),
        ("application/ld+json", true),
        ("text/json", false),
        ("text/ld+json", false),
        ("application/jsonp", false),
        ("text/html", false),
        ("", false),
    ] {
        host.serve(RouteResponse::new(200, kind, "{}"));
        let reply = host.fetch(host.own()).await;
        match taken {
            true => assert_eq!(reply.unwrap().body, b"{}", "{kind}"),
            false => assert_eq!(reply, Err(DocumentFetchError::NotJson), "{kind}"),
        }
    }
    for status in [201, 302, 404, 500] {
        let elsewhere = format!("https://{}/other", host.authority);
        host.serve(
            RouteResponse::new(status, "application/json", "{}").header("location", elsewhere),
        );
        let request_count = host.request_count();
        assert_eq!(
            host.fetch(host.own()).await,
            Err(DocumentFetchError::Status(status))
        );
        assert_eq!(
            host.request_count(),
            request_count + 1,
            "no redirect is followed"
        );
    }
    let most = usize::try_from(MAX_BYTES).unwrap();
    for (size, taken) in [(most, true), (most + 1, false)] {
        host.serve(RouteResponse::new(
            200,
            "application/json",
            " ".repeat(size),
        ));
        let reply = host.fetch(host.own()).await.map(|found| found.body.len());
        let expected = if taken {
            Ok(size)
        } else {
            Err(DocumentFetchError::TooLarge)
        };
        assert_eq!(reply, expected);
    }
}

#[tokio::test]
async fn only_hosts_that_the_owner_named_are_called_at_home() {
    let host = DocumentHost::new().await;
    host.serve(RouteResponse::json(&json!({})));
    assert!(host.fetch(host.own()).await.is_ok());
    let stranger = OwnHosts {
        names: vec!["127.0.0.1:1".to_owned(), "127.0.0.1".to_owned()],
        ..host.own()
    };
    assert_eq!(
        host.fetch(stranger).await,
        Err(DocumentFetchError::NotPublic)
    );
    let unvouched = OwnHosts {
        authorities: None,
        ..host.own()
    };
    assert_eq!(host.fetch(unvouched).await, Err(DocumentFetchError::Failed));
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let misled = OwnHosts {
        authorities: Some(other.cert.pem()),
        ..host.own()
    };
    assert_eq!(host.fetch(misled).await, Err(DocumentFetchError::Failed));
    assert_eq!(host.request_count(), 1);
}

#[tokio::test]
async fn a_document_is_kept_as_long_as_it_says_within_reason() {
    let host = DocumentHost::new().await;
    let address = host.address();
    for (control, kept) in [
        ("max-age=3600", 3_600),
        ("max-age=1", 60),
        ("no-store", 60),
        ("max-age=999999", 86_400),
        ("public", 300),
    ] {
        let documents = ClientDocumentCache::new(DocumentFetcher::new(host.own()).unwrap());
        host.serve_document(&address, control);
        let request_count = host.request_count();
        for (now, fetches) in [(1_000, 1), (1_000 + kept - 1, 1), (1_000 + kept, 2)] {
            let client = documents.client(&address, now).await.unwrap();
            assert_eq!(
                (client.id.as_str(), client.name.as_str()),
                (&*address, "Chart room")
            );
            assert_eq!(
                host.request_count() - request_count,
                fetches,
                "{control} at {now}"
            );
        }
    }
}

#[tokio::test]
async fn a_document_error_is_cached_for_half_a_minute() {
    let host = DocumentHost::new().await;
    let (address, documents) = (
        host.address(),
        ClientDocumentCache::new(DocumentFetcher::new(host.own()).unwrap()),
    );
    host.serve_document("https://app.example/other.json", "max-age=3600");
    let wrong = Err(DocumentError::Content("names another client"));
    assert_eq!(documents.client(&address, 100).await, wrong);
    host.serve_document(&address, "max-age=3600");
    assert_eq!(documents.client(&address, 129).await, wrong);
    assert!(documents.client(&address, 130).await.is_ok());
    assert_eq!(host.request_count(), 2);
    host.serve(RouteResponse::new(200, "application/json", "[]"));
    let broken = Err(DocumentError::Content("is not a client's"));
    assert_eq!(documents.client(&address, 10_000).await, broken);
}

#[tokio::test]
async fn many_who_ask_at_once_are_one_fetch_and_a_host_has_two() {
    let host = DocumentHost::new().await;
    let documents = Arc::new(ClientDocumentCache::new(
        DocumentFetcher::new(host.own()).unwrap(),
    ));
    host.serve_document(&host.address(), "max-age=3600");
    let shut = host.open.clone().acquire_many_owned(1_000).await.unwrap();
    let ask = |address: String| {
        let documents = documents.clone();
        tokio::spawn(async move { documents.client(&address, 100).await })
    };
    let same: Vec<_> = (0..8).map(|_| ask(host.address())).collect();
    let others: Vec<_> = (0..1)
        .map(|n| ask(format!("https://{}/{n}", host.authority)))
        .collect();
    while host.request_count() < 2 {
        tokio::task::yield_now().await;
    }
    let third = format!("https://{}/third", host.authority);
    assert_eq!(
        documents.client(&third, 100).await,
        Err(DocumentError::Busy)
    );
    // Another host is fetched from meanwhile.
    let elsewhere = documents.client("https://nowhere.invalid/c", 100).await;
    assert_eq!(
        elsewhere,
        Err(DocumentError::Fetch(DocumentFetchError::Failed))
    );
    drop(shut);
    for one in same {
        assert!(one.await.unwrap().is_ok());
    }
    for other in others {
        let result = other.await.unwrap();
        assert_eq!(result, Err(DocumentError::Content("names another client")));
    }
    assert_eq!(host.request_count(), 2);
    // A refused request can be repeated at once.
    assert_ne!(
        documents.client(&third, 100).await,
        Err(DocumentError::Busy)
    );
}

#[tokio::test]
async fn a_cancelled_fetch_releases_its_slot() {
    let host = DocumentHost::new().await;
    let documents = ClientDocumentCache::new(DocumentFetcher::new(host.own()).unwrap());
    let shut = host.open.clone().acquire_many_owned(1_000).await.unwrap();
    {
        let address = host.address();
        let (first, second) = (
            documents.client(&address, 100),
            documents.client(&address, 100),
        );
        tokio::pin!(first, second);
        while host.request_count() < 1 {
            tokio::select! {
                biased;
                _ = &mut first => panic!("nobody was answered yet"),
                _ = &mut second => panic!("nobody was answered yet"),
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(documents.waiting(), 1, "both want one document");
    }
    assert_eq!(documents.waiting(), 0);
    drop(shut);
}

#[tokio::test]
async fn a_client_with_a_document_signs_somebody_in() {
    let host = DocumentHost::new().await;
    let address = host.address();
    host.serve_document(&address, "max-age=60");
    let world = SignInWorld::with_own_hosts(host.own());
    let mut params = world.request(&address);
    let page = world.ask(&params).await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(
        page.body.contains("Identified by 127.0.0.1"),
        "{}",
        page.body
    );
    let code = world.sign_in(&page, "anna", PASSWORD).await.sent("code");
    let reply = world.spend(&address, &code.unwrap()).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let token = text(&reply.json(), "access_token");
    assert_eq!(claims(&token)["client_id"], *address);
    assert_eq!(world.call(&token).await.status, 200);

    params.retain(|(name, _)| *name != "redirect_uri");
    params.push(("redirect_uri", "https://app.example/other"));
    assert_eq!(world.ask(&params).await.status, 400);
    host.serve(RouteResponse::new(404, "text/plain", ""));
    world.advance_clock(61);
    let page = world.ask(&world.request(&address)).await;
    assert_eq!(page.status, 400);
    assert!(
        page.body.contains("it was not found: status 404"),
        "{}",
        page.body
    );
}

#[tokio::test]
async fn where_too_many_documents_are_fetched_the_person_is_told_to_wait() {
    let host = DocumentHost::new().await;
    let world = SignInWorld::with_own_hosts(host.own());
    let shut = host.open.clone().acquire_many_owned(1_000).await.unwrap();
    let ask = |n: usize| {
        let (world, address) = (&world, format!("https://{}/{n}", host.authority));
        async move { world.ask(&world.request(&address)).await }
    };
    let two = futures::future::join_all((0..2).map(ask));
    tokio::pin!(two);
    while host.request_count() < 2 {
        tokio::select! {
            biased;
            _ = &mut two => panic!("nobody was answered yet"),
            () = tokio::task::yield_now() => {}
        }
    }
    let third = ask(3).await;
    assert_eq!(third.status, 400);
    assert!(
        third.body.contains("Too many apps are signing in at once"),
        "{}",
        third.body
    );
    drop(shut);
    for reply in two.await {
        assert!(
            reply.body.contains("names another client") || reply.body.contains("is not a client")
        );
    }
}
