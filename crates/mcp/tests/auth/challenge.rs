//! Discovery before sign-in: protected resource metadata (RFC 9728) and the `WWW-Authenticate` challenge on every
//! route that needs a token.

use docent_mcp::{Auth, AuthRequirement, Issuer, LocalKeys};
use serde_json::json;

use crate::fixture::{AuthFixture, AuthReply, AuthTestServer, BASE, RawRequest};
use crate::mint::{Signer, jwks};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_endpoint_has_metadata_of_its_own() {
    let fixture = AuthFixture::start().await;
    for (place, resource) in [("", "/"), ("/mcp", "/mcp"), ("/sse", "/sse")] {
        let path = format!("/.well-known/oauth-protected-resource{place}");
        let answered = fixture.server.get(&path).await;
        assert_eq!(answered.status, 200, "{path}");
        assert_eq!(
            answered.json(),
            json!({
                "resource": format!("{BASE}{resource}"),
                "authorization_servers": [fixture.provider.name, "https://strict.example"],
                "scopes_supported": ["docs.read"],
                "bearer_methods_supported": ["header"],
                "resource_name": "Example documents",
            })
        );
    }
    for absent in [
        "/.well-known/oauth-protected-resource/other",
        "/.well-known/openid-configuration",
    ] {
        let answered = fixture.server.get(absent).await;
        assert_eq!(answered.status, 404, "{absent}");
        assert_eq!(answered.json()["error"], "not_found");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_to_the_app_is_challenged() {
    let fixture = AuthFixture::start().await;
    let routes = [
        ("POST", "/mcp", "/mcp"),
        ("POST", "/mcp/", "/mcp"),
        ("GET", "/mcp", "/mcp"),
        ("DELETE", "/mcp", "/mcp"),
        ("POST", "/", ""),
        ("GET", "/", ""),
        ("GET", "/sse", "/sse"),
        ("POST", "/messages?sessionId=x", "/sse"),
        ("GET", "/closed", "/mcp"),
    ];
    for (method, path, place) in routes {
        let answered = fixture
            .server
            .raw(method, &RawRequest::call("open").at(path))
            .await;
        assert_eq!(answered.status, 401, "{method} {path}");
        let expected = format!(
            r#"Bearer resource_metadata="{BASE}/.well-known/oauth-protected-resource{place}", scope="docs.read""#
        );
        assert_eq!(
            answered.header("www-authenticate"),
            Some(expected.as_str()),
            "{method} {path}"
        );
    }
    // The first token makes the server fetch the issuer's keys, which readiness waits for.
    let good = RawRequest::call("open").bearer(&fixture.ed.token(&fixture.claims()));
    assert_eq!(fixture.server.send(&good).await.status, 200);
    let open = ["/healthz", "/readyz", "/public"];
    for path in open {
        assert_eq!(fixture.server.get(path).await.status, 200, "{path}");
    }
}

/// The 401 is sent before the body is read, so that a client without a token cannot hold a connection with one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unauthorized_request_is_rejected_before_its_body() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let fixture = AuthFixture::start().await;
    let mut stream = tokio::net::TcpStream::connect(&fixture.server.address)
        .await
        .unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n",
        fixture.server.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = [0; 12];
    stream.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"HTTP/1.1 401");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_that_was_used_is_the_one_in_the_metadata() {
    let signer = Signer::ed25519("k");
    let keys = LocalKeys::default();
    keys.replace(&jwks(&[&signer])).unwrap();
    let bases = [
        "http://127.0.0.1:1",
        "http://localhost:8787",
        "http://127.0.0.1:8787/",
    ];
    let auth = Auth::builder(bases)
        .issuer(Issuer::local("https://a.example", keys))
        .build()
        .unwrap();
    let server = AuthTestServer::start(auth).await;
    for (host, base) in [
        ("localhost:8787", "http://localhost:8787"),
        ("LOCALHOST:8787", "http://localhost:8787"),
        ("127.0.0.1:8787", "http://127.0.0.1:8787"),
        ("localhost:9", "http://127.0.0.1:1"),
    ] {
        let sent = RawRequest::call("open")
            .with("host", host)
            .at("/.well-known/oauth-protected-resource/mcp");
        let answered: AuthReply = server.raw("GET", &sent).await;
        assert_eq!(answered.json()["resource"], format!("{base}/mcp"), "{host}");
        let refused = server
            .send(&RawRequest::call("open").with("host", host))
            .await;
        let challenge = refused.header("www-authenticate").unwrap().to_owned();
        assert!(
            challenge.contains(&format!("\"{base}/.well-known/")),
            "{challenge}"
        );
        assert!(
            !challenge.contains("scope="),
            "no scope is configured: {challenge}"
        );
    }
}

/// A proxy may send any allowed `Host`. The metadata of a server with a public URL names that URL all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metadata_names_the_public_url_whatever_host_a_proxy_sends() {
    let signer = Signer::ed25519("k");
    let keys = LocalKeys::default();
    keys.replace(&jwks(&[&signer])).unwrap();
    let auth = Auth::builder([BASE, "http://localhost:8787"]);
    let auth = auth
        .issuer(Issuer::local("https://a.example", keys))
        .build()
        .unwrap();
    let server = AuthTestServer::start(auth).await;
    let sent = RawRequest::call("open").with("host", "localhost:8787");
    let answered = server
        .raw("GET", &sent.at("/.well-known/oauth-protected-resource"))
        .await;
    assert_eq!(answered.json()["resource"], format!("{BASE}/"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_knows_its_visitor_unless_it_is_open() {
    let fixture = AuthFixture::with(AuthRequirement::Always).await;
    let token = fixture.ed.token(&fixture.claims());
    let page = |path: &str| RawRequest::call("x").bearer(&token).at(path);
    let closed = fixture.server.raw("GET", &page("/closed")).await;
    assert_eq!(closed.body, "Some(\"user-1\")");
    let open = fixture.server.raw("GET", &page("/public")).await;
    assert_eq!(open.body, "None");
}
