//! The Host × Origin table: each row alone and all rows together, on every route and method.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::any;
use docent_mcp::http::guard::{self, Guard, HOST_ORIGINS, cors};
use docent_mcp::http::limits::Limits;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, CONNECTION, CONTENT_LENGTH, HOST, ORIGIN, TRANSFER_ENCODING,
    VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version};
use http_body_util::BodyExt;
use proptest::prelude::*;
use tower::ServiceExt;

const OK: u16 = 200;
const BAD: u16 = 400;
const NO: u16 = 403;

/// One way to say which host is meant.
struct Host {
    name: &'static str,
    version: Version,
    /// What stands before the path: the authority of HTTP/2 or of an absolute target.
    target: &'static str,
    stated: &'static [&'static [u8]],
    expect: u16,
}

const fn h1(name: &'static str, stated: &'static [&'static [u8]], expect: u16) -> Host {
    Host {
        name,
        version: Version::HTTP_11,
        target: "",
        stated,
        expect,
    }
}

const fn to(
    name: &'static str,
    version: Version,
    target: &'static str,
    stated: &'static [&'static [u8]],
    expect: u16,
) -> Host {
    Host {
        name,
        version,
        target,
        stated,
        expect,
    }
}

const V1: Version = Version::HTTP_11;
const V2: Version = Version::HTTP_2;

#[rustfmt::skip]
const HOSTS: &[Host] = &[
    h1("exact", &[b"localhost:8787"], OK),
    h1("no port", &[b"localhost"], OK),
    h1("other port", &[b"localhost:1"], OK),
    h1("upper case", &[b"LOCALHOST:8787"], OK),
    h1("loopback v4", &[b"127.0.0.1:8787"], OK),
    h1("loopback v6", &[b"[::1]:8787"], OK),
    h1("loopback v6 written out", &[b"[0:0:0:0:0:0:0:1]"], OK),
    h1("public", &[b"docs.example.com"], OK),
    h1("public with port", &[b"docs.example.com:443"], OK),
    h1("listed", &[b"Search.Example.org:9"], OK),
    h1("listed with its port", &[b"pinned.example.org:8443"], OK),
    h1("listed with another port", &[b"pinned.example.org:8444"], NO),
    h1("listed without its port", &[b"pinned.example.org"], NO),
    h1("listed with default port left out", &[b"tls.example.org"], OK),
    h1("evil", &[b"evil.example"], NO),
    h1("loopback as prefix", &[b"localhost.evil"], NO),
    h1("loopback as suffix", &[b"evil.localhost"], NO),
    h1("listed as suffix", &[b"evilsearch.example.org"], NO),
    h1("listed as parent", &[b"a.search.example.org"], NO),
    h1("trailing dot", &[b"localhost.:8787"], NO),
    h1("listed, trailing dot", &[b"docs.example.com."], NO),
    h1("any address", &[b"0.0.0.0:8787"], NO),
    h1("any v6 address", &[b"[::]:8787"], NO),
    h1("short v4", &[b"127.1:8787"], NO),
    h1("decimal v4", &[b"2130706433"], NO),
    h1("hexadecimal v4", &[b"0x7f000001"], NO),
    h1("octal v4", &[b"0177.0.0.1"], NO),
    h1("other loopback v4", &[b"127.0.0.2"], NO),
    h1("v4 mapped", &[b"[::ffff:127.0.0.1]:8787"], NO),
    h1("userinfo", &[b"localhost@evil.example"], BAD),
    h1("userinfo before ours", &[b"evil@localhost:8787"], BAD),
    h1("empty", &[b""], BAD),
    h1("port alone", &[b":8787"], BAD),
    h1("empty port", &[b"localhost:"], BAD),
    h1("port too large", &[b"localhost:65536"], BAD),
    h1("port zero", &[b"localhost:0"], BAD),
    h1("port with sign", &[b"localhost:+80"], BAD),
    h1("two ports", &[b"localhost:80:80"], BAD),
    h1("with path", &[b"localhost/x"], BAD),
    h1("with space", &[b"localhost evil"], BAD),
    h1("list", &[b"localhost, evil.example"], BAD),
    h1("empty label", &[b"localhost..evil"], BAD),
    h1("not ascii", &[b"localh\xc3\xb6st"], BAD),
    h1("not utf-8", &[b"localhost\xff"], BAD),
    h1("v6 without brackets", &[b"::1"], BAD),
    h1("v6 with zone", &[b"[::1%25lo]"], BAD),
    h1("open bracket", &[b"[::1"], BAD),
    h1("two, equal", &[b"localhost", b"localhost"], BAD),
    h1("two, one evil", &[b"localhost", b"evil.example"], BAD),
    h1("absent", &[], BAD),
    to("absent in 1.0", Version::HTTP_10, "", &[], BAD),
    to("absolute target", V1, "http://localhost:8787", &[b"localhost:8787"], OK),
    to("absolute target differs", V1, "http://evil.example", &[b"localhost:8787"], BAD),
    to("host differs from absolute target", V1, "http://localhost", &[b"evil.example"], BAD),
    to("ports differ", V1, "http://localhost:1", &[b"localhost:2"], BAD),
    to("absolute target without host", V1, "http://localhost", &[], BAD),
    to("absolute target, both evil", V1, "http://evil.example", &[b"evil.example"], NO),
    to("authority", V2, "http://localhost:8787", &[], OK),
    to("authority evil", V2, "http://evil.example", &[], NO),
    to("authority with userinfo", V2, "http://a@localhost", &[], BAD),
    to("authority and equal host", V2, "http://localhost", &[b"LOCALHOST"], OK),
    to("authority differs from host", V2, "http://localhost", &[b"evil.example"], BAD),
    to("host differs from authority", V2, "http://evil.example", &[b"localhost"], BAD),
    to("no authority but host", V2, "", &[b"localhost"], OK),
    to("no authority and no host", V2, "", &[], BAD),
];

#[rustfmt::skip]
const ORIGINS: &[(&str, &[&[u8]], u16)] = &[
    ("absent", &[], OK),
    ("listed", &[b"https://app.example.com"], OK),
    ("listed, upper case", &[b"HTTPS://App.Example.com"], OK),
    ("listed, default port spelled out", &[b"https://app.example.com:443"], OK),
    ("host of ours", &[b"https://chatgpt.com"], OK),
    ("other host of ours", &[b"https://claude.ai"], OK),
    ("public", &[b"https://docs.example.com"], OK),
    ("loopback", &[b"http://localhost:6274"], OK),
    ("loopback v4", &[b"http://127.0.0.1:6274"], OK),
    ("loopback v6", &[b"https://[::1]:6274"], OK),
    ("any port listed", &[b"http://tools.example.com:5173"], OK),
    ("any port listed, none given", &[b"http://tools.example.com"], OK),
    ("extension listed", &[b"chrome-extension://abcdef"], OK),
    ("evil", &[b"https://evil.example"], NO),
    ("null", &[b"null"], NO),
    ("listed as prefix", &[b"https://app.example.com.evil.example"], NO),
    ("listed as suffix", &[b"https://evilapp.example.com"], NO),
    ("subdomain of listed", &[b"https://x.app.example.com"], NO),
    ("parent of listed", &[b"https://example.com"], NO),
    ("loopback as prefix", &[b"http://localhost.evil"], NO),
    ("loopback as suffix", &[b"http://evil.localhost"], NO),
    ("loopback, trailing dot", &[b"http://localhost."], NO),
    ("short v4", &[b"http://127.1"], NO),
    ("any address", &[b"http://0.0.0.0:8787"], NO),
    ("http for https", &[b"http://app.example.com"], NO),
    ("http with the port of https", &[b"http://app.example.com:443"], NO),
    ("https for http", &[b"https://tools.example.com"], NO),
    ("other port", &[b"https://app.example.com:8443"], NO),
    ("port of http", &[b"https://app.example.com:80"], NO),
    ("port of another scheme", &[b"chrome-extension://abcdef:443"], NO),
    ("two, equal", &[b"https://app.example.com", b"https://app.example.com"], NO),
    ("two, one evil", &[b"https://app.example.com", b"https://evil.example"], NO),
    ("list", &[b"https://app.example.com, https://evil.example"], NO),
    ("space between", &[b"https://app.example.com https://evil.example"], NO),
    ("with path", &[b"https://app.example.com/"], NO),
    ("with query", &[b"https://app.example.com?x"], NO),
    ("userinfo", &[b"https://app.example.com@evil.example"], NO),
    ("no scheme", &[b"app.example.com"], NO),
    ("scheme alone", &[b"https://"], NO),
    ("scheme not one", &[b"ht tps://app.example.com"], NO),
    ("star", &[b"*"], NO),
    ("star port", &[b"https://app.example.com:*"], NO),
    ("empty", &[b""], NO),
    ("not utf-8", &[b"https://app.example.com\xff"], NO),
];

const ROUTES: &[&str] = &[
    "/",
    "/mcp",
    "/mcp/",
    "/healthz",
    "/readyz",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/openai-apps-challenge",
    "/widgets/results",
    "/absent",
];

const METHODS: [Method; 6] = [
    Method::GET,
    Method::POST,
    Method::DELETE,
    Method::PUT,
    Method::HEAD,
    Method::OPTIONS,
];

fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 8787))
}

fn guard() -> Guard {
    let hosts = [
        "search.example.org",
        "pinned.example.org:8443",
        "tls.example.org:443",
    ];
    let mut origins = HOST_ORIGINS.to_vec();
    origins.extend(["https://app.example.com", "http://tools.example.com:*"]);
    origins.push("chrome-extension://abcdef");
    let public = Uri::from_static("https://docs.example.com/mcp");
    let guard = Guard::new(&hosts, &origins).unwrap();
    guard
        .with_listener(local())
        .with_public_url(&public)
        .unwrap()
}

fn router(guard: Guard) -> Router {
    let mut router = Router::new();
    for route in ROUTES.iter().filter(|route| **route != "/absent") {
        router = router.route(route, any(|| async { "reached" }));
    }
    router
        .fallback(|| async { (StatusCode::NOT_FOUND, "reached") })
        .layer(from_fn_with_state(Arc::new(guard), guard::enforce))
}

fn request(host: &Host, origin: &[&[u8]], method: &Method, path: &str) -> Request<Body> {
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
    // A good token does not excuse a bad host or origin.
    headers.insert("authorization", HeaderValue::from_static("Bearer good"));
    request
}

async fn text(response: Response) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn check(router: &Router, host: &Host, origin: (&str, &[&[u8]], u16), at: (&Method, &str)) {
    let (method, path) = at;
    let says = format!("host {}, origin {}, {method} {path}", host.name, origin.0);
    let request = request(host, origin.1, method, path);
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    // The first thing that is wrong decides; what is wrong with the host comes first.
    let expect = if host.expect == OK {
        origin.2
    } else {
        host.expect
    };
    if expect != OK {
        assert_eq!(status, expect, "{says}");
        assert!(
            !response.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN),
            "{says}"
        );
        let closes = response.headers().contains_key(CONNECTION);
        assert_eq!(
            closes,
            expect == BAD && host.version < Version::HTTP_2,
            "{says}"
        );
        let body = text(response).await;
        // An answer to HEAD has no body.
        if *method != Method::HEAD {
            let body: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert!(body["error"]["message"].is_string(), "{says}");
            assert!(body["error"]["data"]["hint"].is_string(), "{says}");
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
        "{says}"
    );
    assert!(
        !response
            .headers()
            .contains_key(ACCESS_CONTROL_ALLOW_CREDENTIALS),
        "{says}"
    );
    if *method == Method::OPTIONS {
        assert_eq!(status, 204, "{says}");
    } else {
        assert_eq!(status, if path == "/absent" { 404 } else { OK }, "{says}");
        let body = text(response).await;
        assert!(body == "reached" || *method == Method::HEAD, "{says}");
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
async fn each_host_alone() {
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
async fn each_origin_alone() {
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
async fn both_together() {
    let router = router(guard());
    for host in HOSTS {
        for origin in ORIGINS {
            for route in ["/mcp", "/healthz", "/.well-known/oauth-protected-resource"] {
                check(&router, host, *origin, (&Method::POST, route)).await;
            }
        }
    }
}

/// The status with which a guard answers one `Host`, or one `Host` and one `Origin`.
fn judge(guard: &Guard, host: &str, origin: Option<&str>) -> u16 {
    let mut request = Request::builder().uri("/mcp").header(HOST, host);
    if let Some(origin) = origin {
        request = request.header(ORIGIN, origin);
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    guard
        .check(&parts)
        .map_or_else(|refusal| refusal.status().as_u16(), |()| OK)
}

const NOTHING: [&str; 0] = [];

#[test]
fn any_host_still_refuses_disguises() {
    let guard = Guard::new(&["*"], &NOTHING).unwrap();
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
    // Any host is not any origin.
    assert_eq!(
        judge(&guard, "evil.example", Some("http://evil.example")),
        NO
    );
}

#[test]
fn any_origin_still_refuses_junk() {
    let guard = Guard::new(&["docs.example.com"], &["*"]).unwrap();
    assert_eq!(
        judge(&guard, "docs.example.com", Some("https://evil.example")),
        OK
    );
    assert_eq!(judge(&guard, "docs.example.com", Some("null")), NO);
    assert_eq!(judge(&guard, "docs.example.com", Some("junk")), NO);
    // Any origin is not any host.
    assert_eq!(
        judge(&guard, "evil.example", Some("https://evil.example")),
        NO
    );
}

#[test]
fn the_listening_address_decides_what_is_safe_by_default() {
    let none = || Guard::new(&NOTHING, &NOTHING).unwrap();
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
        "nothing is allowed unasked"
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
        let error = Guard::new(&[entry], &NOTHING).unwrap_err();
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
        let error = Guard::new(&NOTHING, &[entry]).unwrap_err();
        assert_eq!(error.to_string(), format!("not an origin: `{entry}`"));
    }
    let guard = Guard::new(&NOTHING, &NOTHING).unwrap();
    assert!(guard.with_public_url(&Uri::from_static("/mcp")).is_err());
}

#[tokio::test]
async fn heads_are_bounded() {
    let limits = Limits {
        header_bytes: 1000,
        uri_bytes: 100,
        ..Limits::default()
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

async fn preflight(origin: Option<&str>, asked: &str) -> HeaderMap {
    let origins: Vec<&[u8]> = origin.iter().map(|origin| origin.as_bytes()).collect();
    let mut request = request(&HOSTS[0], &origins, &Method::OPTIONS, "/mcp");
    let headers = request.headers_mut();
    headers.insert(
        ACCESS_CONTROL_REQUEST_METHOD,
        HeaderValue::from_static("POST"),
    );
    headers.insert(
        ACCESS_CONTROL_REQUEST_HEADERS,
        HeaderValue::from_str(asked).unwrap(),
    );
    let response = router(guard()).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    response.headers().clone()
}

fn value(headers: &HeaderMap, name: HeaderName) -> String {
    let all = headers
        .get_all(name)
        .iter()
        .map(|value| value.to_str().unwrap());
    all.collect::<Vec<_>>().join(", ")
}

const ALWAYS: &str = "Content-Type, Accept, Authorization, MCP-Protocol-Version, \
    Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID";

#[tokio::test]
async fn a_preflight_gets_the_lists() {
    for (origin, echoed) in [
        (Some("https://app.example.com"), "https://app.example.com"),
        (None, "*"),
    ] {
        let headers = preflight(origin, "content-type, x-evil").await;
        assert_eq!(value(&headers, ACCESS_CONTROL_ALLOW_ORIGIN), echoed);
        assert_eq!(
            value(&headers, ACCESS_CONTROL_ALLOW_METHODS),
            "GET, POST, DELETE, OPTIONS"
        );
        assert_eq!(value(&headers, ACCESS_CONTROL_ALLOW_HEADERS), ALWAYS);
        let exposed = "Mcp-Session-Id, WWW-Authenticate, MCP-Protocol-Version";
        assert_eq!(value(&headers, ACCESS_CONTROL_EXPOSE_HEADERS), exposed);
        assert!(value(&headers, VARY).contains("origin"));
    }
}

#[tokio::test]
async fn a_preflight_allows_tool_parameters_up_to_a_bound() {
    let origin = Some("https://app.example.com");
    let allowed = |headers: HeaderMap| {
        let list = value(&headers, ACCESS_CONTROL_ALLOW_HEADERS);
        list.strip_prefix(ALWAYS).unwrap().to_owned()
    };
    let some = preflight(
        origin,
        "Mcp-Param-Query,mcp-param-x , mcp-param-, mcp-paramx",
    )
    .await;
    assert_eq!(allowed(some), ", Mcp-Param-Query, mcp-param-x");

    let names = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("mcp-param-{n}")).collect();
        names.join(",")
    };
    let at_bound = allowed(preflight(origin, &names(cors::PARAMS)).await);
    assert_eq!(at_bound.matches("mcp-param-").count(), cors::PARAMS);
    let past_bound = allowed(preflight(origin, &names(cors::PARAMS + 1)).await);
    assert_eq!(past_bound, at_bound);

    let long = |bytes: usize| format!("mcp-param-{}", "x".repeat(bytes - "mcp-param-".len()));
    let longest = long(cors::PARAM_BYTES);
    assert_eq!(
        allowed(preflight(origin, &longest).await),
        format!(", {longest}")
    );
    assert_eq!(
        allowed(preflight(origin, &long(cors::PARAM_BYTES + 1)).await),
        ""
    );
}

/// Texts near the border between what is allowed and what is not.
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
        // The same rules once more, as crudely as can be.
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
