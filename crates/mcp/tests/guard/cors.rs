//! CORS for browser clients: preflight responses, and the headers on every other response.

use docent_mcp::http::guard::cors;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD,
    VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use tower::ServiceExt;

use crate::table::HOSTS;
use crate::{guard, request, router};

async fn preflight(origin: Option<&str>, requested: &str) -> HeaderMap {
    let origins: Vec<&[u8]> = origin.iter().map(|origin| origin.as_bytes()).collect();
    let mut request = request(&HOSTS[0], &origins, &Method::OPTIONS, "/mcp");
    let headers = request.headers_mut();
    headers.insert(
        ACCESS_CONTROL_REQUEST_METHOD,
        HeaderValue::from_static("POST"),
    );
    headers.insert(
        ACCESS_CONTROL_REQUEST_HEADERS,
        HeaderValue::from_str(requested).unwrap(),
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

const ALWAYS: &str = "Content-Type, Accept, Authorization, X-API-Key, MCP-Protocol-Version, \
    Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID";

#[tokio::test]
async fn a_preflight_gets_the_lists() {
    for (origin, allowed) in [
        (Some("https://app.example.com"), "https://app.example.com"),
        (None, "*"),
    ] {
        let headers = preflight(origin, "content-type, x-evil").await;
        assert_eq!(value(&headers, ACCESS_CONTROL_ALLOW_ORIGIN), allowed);
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
