//! Tests of the `Host` and `Origin` checks against DNS rebinding: the table of hosts and the table of origins, each row
//! alone and all rows combined, on every route and method.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test helpers may panic"
)]

mod cors;
mod table;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::any;
use docent_mcp::http::guard::{self, HOST_ORIGINS, RequestGuard};
use docent_mcp::http::limits::HttpLimits;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, CONNECTION, CONTENT_LENGTH,
    HOST, ORIGIN, TRANSFER_ENCODING,
};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version};
use http_body_util::BodyExt;
use proptest::prelude::*;
use tower::ServiceExt;

use table::*;

fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 8787))
}

fn guard() -> RequestGuard {
    let hosts = [
        "search.example.org",
        "pinned.example.org:8443",
        "tls.example.org:443",
    ];
    let mut origins = HOST_ORIGINS.to_vec();
    origins.extend(["https://app.example.com", "http://tools.example.com:*"]);
    origins.push("chrome-extension://abcdef");
    let public = Uri::from_static("https://docs.example.com/mcp");
    let guard = RequestGuard::new(&hosts, &origins).unwrap();
    guard
        .with_listener(local())
        .with_public_url(&public)
        .unwrap()
}

fn router(guard: RequestGuard) -> Router {
    let mut router = Router::new();
    for route in ROUTES.iter().filter(|route| **route != "/absent") {
        router = router.route(route, any(|| async { "reached" }));
    }
    router
        .fallback(|| async { (StatusCode::NOT_FOUND, "reached") })
        .layer(from_fn_with_state(Arc::new(guard), guard::enforce))
}

fn request(host: &HostCase, origin: &[&[u8]], method: &Method, path: &str) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method.clone();
    *request.version_mut() = host.version;
    *request.uri_mut() = format!("{}{path}", host.target).parse().unwrap();
    let headers = request.headers_mut();
    for (name, values) in [(HOST, host.stated), (ORIGIN, origin)] {
        for value in values {
            headers.append(name.clone(), HeaderValue::from_bytes(value).unwrap());
        }
    }
    // A valid token does not excuse a wrong host or origin.
    headers.insert("authorization", HeaderValue::from_static("Bearer good"));
    request
}

async fn text(response: Response) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn check(
    router: &Router,
    host: &HostCase,
    origin: (&str, &[&[u8]], u16),
    at: (&Method, &str),
) {
    let (method, path) = at;
    let case = format!("host {}, origin {}, {method} {path}", host.name, origin.0);
    let request = request(host, origin.1, method, path);
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    // The host is checked before the origin, so a wrong host decides the status.
    let expect = if host.expect == OK {
        origin.2
    } else {
        host.expect
    };
    if expect != OK {
        assert_eq!(status, expect, "{case}");
        assert!(
            !response.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN),
            "{case}"
        );
        let closes = response.headers().contains_key(CONNECTION);
        assert_eq!(
            closes,
            expect == BAD && host.version < Version::HTTP_2,
            "{case}"
        );
        let body = text(response).await;
        // A response to HEAD has no body.
        if *method != Method::HEAD {
            let body: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert!(body["error"]["message"].is_string(), "{case}");
            assert!(body["error"]["data"]["hint"].is_string(), "{case}");
        }
        return;
    }
    let allowed = response
        .headers()
        .get(ACCESS_CONTROL_ALLOW_ORIGIN)
        .unwrap()
        .as_bytes();
    assert_eq!(
        allowed,
        *origin.1.first().unwrap_or(&b"*".as_slice()),
        "{case}"
    );
    assert!(
        !response
            .headers()
            .contains_key(ACCESS_CONTROL_ALLOW_CREDENTIALS),
        "{case}"
    );
    if *method == Method::OPTIONS {
        assert_eq!(status, 204, "{case}");
    } else {
        assert_eq!(status, if path == "/absent" { 404 } else { OK }, "{case}");
        let body = text(response).await;
        assert!(body == "reached" || *method == Method::HEAD, "{case}");
    }
}

#[test]
fn the_table_is_as_long_as_promised() {
    assert!(
        HOSTS.len() >= 40 && ORIGINS.len() >= 40,
        "{} {}",
        HOSTS.len(),
        ORIGINS.len()
    );
}

#[tokio::test]
async fn each_host_is_checked_on_its_own() {
    let router = router(guard());
    for host in HOSTS {
        for method in &METHODS {
            for route in ROUTES {
                check(&router, host, ORIGINS[0], (method, route)).await;
            }
        }
    }
}

#[tokio::test]
async fn each_origin_is_checked_on_its_own() {
    let router = router(guard());
    for origin in ORIGINS {
        for method in &METHODS {
            for route in ROUTES {
                check(&router, &HOSTS[0], *origin, (method, route)).await;
            }
        }
    }
}

#[tokio::test]
async fn host_and_origin_are_checked_together() {
    let router = router(guard());
    for host in HOSTS {
        for origin in ORIGINS {
            for route in ["/mcp", "/healthz", "/.well-known/oauth-protected-resource"] {
                check(&router, host, *origin, (&Method::POST, route)).await;
            }
        }
    }
}

/// Returns the status of the guard for one `Host` and an optional `Origin`.
fn judge(guard: &RequestGuard, host: &str, origin: Option<&str>) -> u16 {
    let mut request = Request::builder().uri("/mcp").header(HOST, host);
    if let Some(origin) = origin {
        request = request.header(ORIGIN, origin);
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    guard
        .check(&parts)
        .map_or_else(|refusal| refusal.status().as_u16(), |()| OK)
}

const EMPTY: [&str; 0] = [];

#[test]
fn any_host_still_refuses_disguises() {
    let guard = RequestGuard::new(&["*"], &EMPTY).unwrap();
    for host in [
        "evil.example",
        "10.1.2.3:80",
        "[fd00::1]",
        "localhost",
        "3f2a1b9c:8787",
    ] {
        assert_eq!(judge(&guard, host, None), OK, "{host}");
    }
    for host in [
        "evil.example.",
        "127.1",
        "0x7f.1",
        "0.0.0.0",
        "[::]",
        "[::ffff:1.2.3.4]",
    ] {
        assert_eq!(judge(&guard, host, None), NO, "{host}");
    }
    assert_eq!(judge(&guard, "a@b", None), BAD);
    // Allowing any host does not allow any origin.
    assert_eq!(
        judge(&guard, "evil.example", Some("http://evil.example")),
        NO
    );
}

#[test]
fn any_origin_still_refuses_junk() {
    let guard = RequestGuard::new(&["docs.example.com"], &["*"]).unwrap();
    assert_eq!(
        judge(&guard, "docs.example.com", Some("https://evil.example")),
        OK
    );
    assert_eq!(judge(&guard, "docs.example.com", Some("null")), NO);
    assert_eq!(judge(&guard, "docs.example.com", Some("junk")), NO);
    // Allowing any origin does not allow any host.
    assert_eq!(
        judge(&guard, "evil.example", Some("https://evil.example")),
        NO
    );
}

#[test]
fn the_listening_address_decides_what_is_safe_by_default() {
    let none = || RequestGuard::new(&EMPTY, &EMPTY).unwrap();
    let page = Some("http://localhost:6274");
    // (listening on, host, origin, expected)
    let rows = [
        ([127, 0, 0, 1], "localhost:1", None, OK),
        ([127, 0, 0, 1], "localhost:1", page, OK),
        ([127, 0, 0, 3], "127.0.0.3:1", None, OK),
        ([0, 0, 0, 0], "localhost:1", None, OK),
        ([0, 0, 0, 0], "0.0.0.0:1", None, NO),
        ([0, 0, 0, 0], "localhost:1", page, NO),
        ([0, 0, 0, 0], "192.168.1.5", None, NO),
        ([192, 168, 1, 5], "192.168.1.5:1", None, OK),
        ([192, 168, 1, 5], "192.168.1.6:1", None, NO),
        ([192, 168, 1, 5], "localhost", None, NO),
        ([192, 168, 1, 5], "192.168.1.5:1", page, NO),
    ];
    for (ip, host, origin, expect) in rows {
        let guard = none().with_listener(SocketAddr::from((ip, 1)));
        assert_eq!(
            judge(&guard, host, origin),
            expect,
            "{ip:?} {host} {origin:?}"
        );
    }
    assert_eq!(
        judge(&none(), "localhost", None),
        NO,
        "an empty allowlist must refuse everything"
    );
}

#[test]
fn bad_entries_are_named() {
    for entry in [
        "",
        "a b",
        "http://a",
        "a@b",
        "localhost.",
        "0.0.0.0",
        "127.1",
        "a:0",
        "**",
    ] {
        let error = RequestGuard::new(&[entry], &EMPTY).unwrap_err();
        assert_eq!(error.to_string(), format!("not a host name: `{entry}`"));
    }
    for entry in [
        "",
        "null",
        "app.example.com",
        "https://a/",
        "https://*",
        "https://a:x",
    ] {
        let error = RequestGuard::new(&EMPTY, &[entry]).unwrap_err();
        assert_eq!(error.to_string(), format!("not an origin: `{entry}`"));
    }
    let guard = RequestGuard::new(&EMPTY, &EMPTY).unwrap();
    assert!(guard.with_public_url(&Uri::from_static("/mcp")).is_err());
}

#[tokio::test]
async fn heads_are_bounded() {
    let limits = HttpLimits {
        header_bytes: 1000,
        uri_bytes: 100,
        ..HttpLimits::default()
    };
    let router = router(guard().with_limits(&limits));
    let send = async |path: String, padding: usize| {
        let mut request = request(&HOSTS[0], &[], &Method::GET, &path);
        let taken: usize = request
            .headers()
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        let value = "x".repeat(padding - taken - "x-pad".len());
        request
            .headers_mut()
            .insert("x-pad", HeaderValue::try_from(value).unwrap());
        router
            .clone()
            .oneshot(request)
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    let path = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
    assert_eq!(send("/mcp".into(), 1000).await, OK);
    assert_eq!(send("/mcp".into(), 1001).await, 431);
    assert_eq!(send(path(100), 500).await, 404);
    assert_eq!(send(path(101), 500).await, 414);
}

/// hyper itself refuses more than 100 header fields on HTTP/1, but not on HTTP/2.
#[tokio::test]
async fn a_hundred_header_fields_are_enough() {
    let router = router(guard());
    for (fields, expected) in [(100, OK), (101, 431)] {
        let mut request = request(&HOSTS[0], &[], &Method::GET, "/mcp");
        let headers = request.headers_mut();
        while headers.len() < fields {
            headers.append("a", HeaderValue::from_static(""));
        }
        let answer = router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status().as_u16(), expected, "{fields}");
    }
}

#[tokio::test]
async fn two_lengths_are_refused() {
    let mut request = request(&HOSTS[0], &[], &Method::POST, "/mcp");
    request
        .headers_mut()
        .insert(CONTENT_LENGTH, HeaderValue::from_static("3"));
    request
        .headers_mut()
        .insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    let response = router(guard()).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(response.headers()[CONNECTION], "close");
}

#[tokio::test]
async fn a_refusal_quotes_only_a_little() {
    let host = format!("{}.example", "a.".repeat(100));
    let origin = format!("https://{host}");
    let guard = guard();
    let mut builder = Request::builder().uri("/").header(HOST, "localhost");
    builder = builder.header(ORIGIN, &origin);
    let (parts, ()) = builder.body(()).unwrap().into_parts();
    let message = guard.check(&parts).unwrap_err().to_string();
    assert!(message.len() < 200, "{message}");
}

/// Random hosts and origins composed of allowed values and separators, close to the allowlist.
fn near() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "localhost",
        "127.0.0.1",
        "[::1]",
        "docs.example.com",
        "evil",
        "search.example.org",
        ".",
        ":",
        ":80",
        ":8787",
        "@",
        "/",
        "#",
        "?",
        "\\",
        "%00",
        " ",
        "[",
        "]",
        "0",
        "x",
        "LOCALHOST",
        "\u{ff0e}",
        "https://",
        "http://",
        "null",
        ",",
        "app.example.com",
    ]);
    prop::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn only_what_is_allowed_passes(host in near(), origin in near()) {
        let guard = guard();
        let value = |text: &str| HeaderValue::from_bytes(text.as_bytes()).unwrap();
        let judge = |name: HeaderName, text: &str| {
            let mut request = Request::new(());
            request.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
            request.headers_mut().insert(name, value(text));
            guard.check(&request.into_parts().0).is_ok()
        };
        // Reference implementation: the same rules in their simplest form.
        let without_port = |text: &str| match text.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok_and(|port| port > 0) => name.to_lowercase(),
            _ => text.to_lowercase(),
        };
        let loopback = ["localhost", "127.0.0.1", "[::1]"];
        let known = ["docs.example.com", "search.example.org"];
        let host_known = [&loopback[..], &known[..]].concat().contains(&&*without_port(&host));
        prop_assert_eq!(judge(HOST, &host), host_known, "host {:?}", host);

        let plain = without_port(&origin);
        let local = |scheme: &str| plain.strip_prefix(scheme).is_some_and(|at| loopback.contains(&at));
        let exact = ["https://docs.example.com", "https://app.example.com"].contains(&&*origin.to_lowercase());
        let origin_known = local("http://") || local("https://") || exact;
        prop_assert_eq!(judge(ORIGIN, &origin), origin_known, "origin {:?}", origin);
    }
}
