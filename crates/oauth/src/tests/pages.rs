//! HTML pages, cookies and protocol responses: texts, escaping, headers and the error codes of the
//! standards.

use std::time::Duration;

use docent_mcp::http::{Route, RouteResponse};

use super::*;
use crate::cookie::BrowserCookie;
use crate::oauth_client::OAuthClient;
use crate::sign_in_pages::{self, ConsentPage, SignInError};

fn body(page: &RouteResponse) -> String {
    String::from_utf8(page.body().to_vec()).unwrap()
}

/// Renders a response as the tests compare it.
async fn answered(page: RouteResponse) -> PageReply {
    let route = Route::get("/p", move |_| {
        let page = page.clone();
        async move { Ok(page) }
    });
    visited(route, Request::get("/p")).await
}

async fn visited(route: Route, request: http::request::Builder) -> PageReply {
    let options = docent_mcp::http::HttpOptions {
        routes: vec![route],
        ..docent_mcp::http::HttpOptions::default()
    };
    let app = App::builder("t", "1.0.0").tool(WhoTool).build().unwrap();
    let guard = RequestGuard::new(&["docs.example.org"], &[ADDRESS]).unwrap();
    let request = request.header("host", "docs.example.org");
    let router = docent_mcp::http::router(app, options, guard);
    let response = router.oneshot(request.body(Body::empty()).unwrap()).await;
    let (parts, body) = response.unwrap().into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    PageReply {
        status: parts.status,
        headers: parts.headers,
        body: String::from_utf8(bytes.to_vec()).unwrap(),
    }
}

fn consent(client: &OAuthClient, at: Option<&str>, error: Option<SignInError>) -> RouteResponse {
    sign_in_pages::consent_page(&ConsentPage {
        server: "Harbour & sons",
        client,
        redirect: "https://app.example/cb",
        sees_email: false,
        query: "a=1&b=\"2\"",
        token: "t",
        hint: None,
        at,
        error,
    })
}

fn client(id: &str, name: &str) -> OAuthClient {
    OAuthClient {
        id: id.to_owned(),
        name: name.to_owned(),
        redirects: vec![CALLBACK.to_owned()],
        refreshes: true,
    }
}

#[tokio::test]
async fn every_sign_of_markup_is_written_out() {
    let page = body(&sign_in_pages::error_page("ab & <c> \"d\" 'e'"));
    assert!(
        page.contains("<p>Ab &amp; &lt;c&gt; &quot;d&quot; &#39;e&#39;.</p>"),
        "{page}"
    );
    assert!(body(&sign_in_pages::error_page("äb")).contains("<p>äb.</p>"));
    let page = body(&sign_in_pages::redirect_page(
        "https://app.example/cb?a=1&b='2'",
    ));
    let to = "https://app.example/cb?a=1&amp;b=&#39;2&#39;";
    assert!(page.contains(&format!("content=\"0; url={to}\"")), "{page}");
    assert!(
        page.contains(&format!("<a href=\"{to}\">Go on</a>")),
        "{page}"
    );
}

#[tokio::test]
async fn the_page_says_who_asks_and_what_is_wrong() {
    let named = client("abc", "Chart <room>");
    let page = body(&consent(&named, None, None));
    assert!(
        page.contains("Let <b>Chart &lt;room&gt;</b> read <b>Harbour &amp; sons</b>?"),
        "{page}"
    );
    assert!(page.contains("<title>Sign in to Harbour &amp; sons</title>"));
    assert!(page.contains("Nobody but the app vouches for its name"));
    assert!(!page.contains("e-mail") && !page.contains("role=\"alert\""));
    assert!(page.contains("name=\"password\"") && page.contains("Sign in and allow"));
    assert!(page.contains("value=\"a=1&amp;b=&quot;2&quot;\""));
    assert!(page.contains("just started this in that app"));

    let nameless = client("https://app.example/client.json", "");
    let page = body(&consent(&nameless, Some("login.example"), None));
    assert!(
        page.contains("Let <b>an app at app.example</b> read"),
        "{page}"
    );
    assert!(page.contains("Identified by app.example"));
    assert!(page.contains("Continue at login.example") && !page.contains("name=\"password\""));

    for (error, status, wait, text) in [
        (SignInError::Wrong, 403, "", "do not go together"),
        (SignInError::Busy, 503, "10", "Many people sign in"),
        (
            SignInError::TooOften(Duration::from_secs(17)),
            429,
            "17",
            "in 17 seconds",
        ),
        (
            SignInError::TooOften(Duration::from_millis(9)),
            429,
            "1",
            "in 1 seconds",
        ),
    ] {
        let reply = answered(consent(&named, None, Some(error))).await;
        assert_eq!(reply.status, status, "{error:?}");
        assert_eq!(reply.header("retry-after"), wait, "{error:?}");
        assert!(
            reply.body.contains("role=\"alert\"") && reply.body.contains(text),
            "{error:?}"
        );
        assert_eq!(reply.header("cache-control"), "no-store");
        assert_eq!(reply.header("x-frame-options"), "DENY");
    }
    let reply = answered(sign_in_pages::redirect("https://app.example/cb?x=1")).await;
    assert_eq!(
        (reply.status.as_u16(), reply.header("location")),
        (302, "https://app.example/cb?x=1")
    );
    assert_eq!(reply.header("cache-control"), "no-store");
}

#[tokio::test]
async fn a_cookie_is_read_whole_and_once() {
    let read = async |address: &'static str, header: String| {
        let route = Route::get("/c", move |request| async move {
            let found = BrowserCookie::new("docent-form", address).read(&request);
            Ok(RouteResponse::new(
                200,
                "text/plain",
                found.unwrap_or("none".to_owned()),
            ))
        });
        visited(route, Request::get("/c").header("cookie", header))
            .await
            .body
    };
    let (most, over) = ("v".repeat(4_096), "v".repeat(4_097));
    for (address, header, expected) in [
        (ADDRESS, "__Host-docent-form=a".to_owned(), "a"),
        (ADDRESS, "x=1; __Host-docent-form=a; y=2".to_owned(), "a"),
        (ADDRESS, "docent-form=a".to_owned(), "none"),
        (
            ADDRESS,
            "__Host-docent-form=a; __Host-docent-form=b".to_owned(),
            "none",
        ),
        (ADDRESS, String::new(), "none"),
        ("http://127.0.0.1:8787", "docent-form=a".to_owned(), "a"),
        (
            "http://127.0.0.1:8787",
            "__Host-docent-form=a".to_owned(),
            "none",
        ),
        (ADDRESS, format!("__Host-docent-form={most}"), most.as_str()),
        (ADDRESS, format!("__Host-docent-form={over}"), "none"),
    ] {
        assert_eq!(read(address, header.clone()).await, expected, "{header}");
    }
    let set = BrowserCookie::new("docent-form", ADDRESS).set("v", 9);
    let rest = "Path=/; Max-Age=9; HttpOnly; SameSite=Lax";
    assert_eq!(set, format!("__Host-docent-form=v; {rest}; Secure"));
    let plain = BrowserCookie::new("docent-form", "http://127.0.0.1").set("v", 9);
    assert_eq!(plain, format!("docent-form=v; {rest}"));
}

#[tokio::test]
async fn userinfo_and_id_tokens_contain_only_granted_claims() {
    let world = SignInWorld::new();
    let client = world.client().await;
    let mut params = world.request(&client);
    params.retain(|(name, _)| *name != "scope");
    params.push(("scope", "openid docs.read"));
    let page = world.ask(&params).await;
    assert!(
        !page.body.contains("e-mail"),
        "it did not ask for the address"
    );
    let code = world.sign_in(&page, "anna", PASSWORD).await.sent("code");
    let tokens = world.spend(&client, &code.unwrap()).await.json();
    let token_claims = claims(&text(&tokens, "id_token"));
    for name in ["email", "email_verified", "groups", "nonce"] {
        assert!(token_claims.get(name).is_none(), "{name}");
    }
    assert_eq!(token_claims["auth_time"], token_claims["iat"]);
    let userinfo = async |authorization: String| {
        let request = Request::post("/userinfo").header("authorization", authorization);
        world.send(request, String::new()).await
    };
    let token = text(&tokens, "access_token");
    let reply = userinfo(format!("bearer {token}")).await;
    assert_eq!(reply.json(), json!({"sub": "anna"}));
    assert_eq!(reply.header("cache-control"), "no-store");
    for bad in [format!("Basic {token}"), token.clone(), String::new()] {
        let reply = userinfo(bad.clone()).await;
        assert_eq!(
            (reply.status.as_u16(), reply.header("www-authenticate")),
            (401, "Bearer"),
            "{bad}"
        );
        assert_eq!(reply.json()["error"], "invalid_request");
    }
    let reply = userinfo(format!("Bearer {token}x")).await;
    assert_eq!(reply.status, 401);
    assert_eq!(
        reply.header("www-authenticate"),
        "Bearer error=\"invalid_token\""
    );
    let (_, plain) = world.tokens().await;
    assert!(plain.get("id_token").is_none(), "it did not ask for one");
    let reply = userinfo(format!("Bearer {}", text(&plain, "access_token"))).await;
    assert_eq!(reply.status, 403);
    assert_eq!(
        reply.header("www-authenticate"),
        "Bearer error=\"insufficient_scope\""
    );
    // A token works at this endpoint exactly as long as at the others, clock skew included.
    world.advance_clock(900 + 31);
    assert_eq!(userinfo(format!("Bearer {token}")).await.status, 401);
}
