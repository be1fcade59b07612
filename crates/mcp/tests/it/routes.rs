//! Custom HTTP routes beside the MCP endpoint, behind the same request guard and limits.

use axum::body::Body;
use docent_mcp::http::limits::HttpLimits;
use docent_mcp::http::{HttpOptions, Route, RouteRequest, RouteResponse, serve_routes};
use docent_mcp::{App, Failure};
use http::Request;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::{MODERN, RouterServer, RpcReply};

fn routes() -> Vec<Route> {
    let document = |visit: RouteRequest| async move {
        let id = visit.var("id").unwrap_or_default();
        match id {
            "missing" => Err(Failure::not_found(id)),
            "mistake" => Err(Failure::caller("no such page").hint("go back")),
            "secret" => Err(Failure::refused("not for you")),
            "broken" => Err(std::io::Error::other("a secret cause").into()),
            "panic" => panic!("a page went wrong"),
            "header" => Ok(RouteResponse::html("x").header("x-bad", "a\nb")),
            _ => Ok(RouteResponse::html(format!(
                "<p>{id}|{}</p>",
                visit.query()
            ))),
        }
    };
    let echo = |visit: RouteRequest| async move {
        Ok(RouteResponse::json(&json!({
            "size": visit.body().len(),
            "header": visit.header("x-test"),
            "rest": visit.var("rest"),
            "anonymous": visit.caller().is_anonymous(),
        }))
        .status(201))
    };
    vec![
        Route::get("/d/{id}", document),
        Route::post("/echo/{+rest}", echo),
        // These two paths belong to the kit, whose own routes take precedence.
        Route::get("/healthz", |_| async { Ok(RouteResponse::html("mine")) }),
        Route::post("/mcp", |_| async { Ok(RouteResponse::html("mine")) }),
    ]
}

fn server() -> RouterServer {
    let limits = HttpLimits {
        body_bytes: 1_000,
        ..HttpLimits::default()
    };
    let options = HttpOptions {
        routes: routes(),
        limits,
        ..HttpOptions::default()
    };
    RouterServer::with(App::builder("a", "1").build().unwrap(), options)
}

async fn get(path: &str) -> RpcReply {
    let request = Request::get(path)
        .header("host", "localhost")
        .body(Body::empty());
    server().send(request.unwrap()).await
}

#[tokio::test]
async fn a_route_returns_the_response_of_its_handler() {
    let page = get("/d/a%20b%C3%A9?x=1&y").await;
    assert_eq!(
        (page.status.as_u16(), page.kind()),
        (200, "text/html; charset=utf-8")
    );
    assert_eq!(page.text, "<p>a bé|x=1&y</p>");
    assert_eq!(
        page.headers["content-security-policy"],
        "default-src 'none'; frame-ancestors 'none'"
    );
    assert_eq!(page.headers["x-content-type-options"], "nosniff");
    let posted = server()
        .post("/echo/b/c?q", &[("x-test", "yes")], "12345")
        .await;
    assert_eq!(posted.status, 201);
    assert_eq!(
        posted.json(),
        json!({"size": 5, "header": "yes", "rest": "b/c", "anonymous": true})
    );
}

#[tokio::test]
async fn failures_map_to_client_and_server_errors() {
    for (path, status, text) in [
        ("/d/missing", 404, "nothing is here"),
        ("/d/mistake", 400, "no such page (go back)"),
        ("/d/secret", 403, "not for you"),
        ("/d/%ff", 404, "not_found"),
        ("/d/a/b", 404, "not_found"),
        ("/elsewhere", 404, "the MCP endpoint is /mcp"),
        ("/echo/x", 405, ""),
    ] {
        let answer = get(path).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.text.contains(text), "{path}: {}", answer.text);
    }
    for path in ["/d/broken", "/d/panic", "/d/header"] {
        let answer = get(path).await;
        assert_eq!(answer.status, 500, "{path}");
        assert!(
            answer.text.contains("reference") && !answer.text.contains("secret"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_guards_and_bounds_of_the_endpoint_hold_for_routes() {
    let from = |host: &str, origin: &str| {
        let request = Request::get("/d/a")
            .header("host", host.to_owned())
            .header("origin", origin.to_owned());
        request.body(Body::empty()).unwrap()
    };
    let server = server();
    assert_eq!(
        server
            .send(from("localhost", "https://chatgpt.com"))
            .await
            .status,
        200
    );
    assert_eq!(
        server
            .send(from("evil.example", "https://chatgpt.com"))
            .await
            .status,
        403
    );
    assert_eq!(
        server
            .send(from("localhost", "https://evil.example"))
            .await
            .status,
        403
    );
    assert_eq!(
        server.post("/echo/x", &[], "x".repeat(1_000)).await.status,
        201
    );
    assert_eq!(
        server.post("/echo/x", &[], "x".repeat(1_001)).await.status,
        413
    );
    let none = HttpLimits {
        in_flight: 0,
        ..HttpLimits::default()
    };
    let options = HttpOptions {
        routes: routes(),
        limits: none,
        ..HttpOptions::default()
    };
    let busy = RouterServer::with(App::builder("a", "1").build().unwrap(), options);
    let answer = busy.send(from("localhost", "https://chatgpt.com")).await;
    assert_eq!(
        (
            answer.status.as_u16(),
            answer.headers["retry-after"].to_str().unwrap()
        ),
        (503, "1")
    );
}

#[tokio::test]
async fn a_route_cannot_take_the_place_of_the_kits_own() {
    assert_eq!(get("/healthz").await.text, r#"{"status":"ok"}"#);
    let answer = server().ask(MODERN, "tools/list", json!({})).await.json();
    assert_eq!(answer["result"]["tools"], json!([]));
}

#[tokio::test]
async fn routes_can_be_served_without_an_app() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let options = HttpOptions {
        routes: routes(),
        ..HttpOptions::default()
    };
    let serving = tokio::spawn(serve_routes(options, listener, stop.clone()));
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET /d/x HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("<p>x|</p>"),
        "{answer}"
    );
    stop.cancel();
    serving.await.unwrap().unwrap();
}
