//! The MCP endpoint in every protocol revision: paths, `Accept`, headers that must agree with the body, results and
//! errors.

use axum::body::Body;
use docent_mcp::http::HttpOptions;
use docent_mcp::http::limits::HttpLimits;
use http::Request;
use serde_json::{Value, json};

use crate::server::{LEGACY, MODERN, RouterServer, app, shaped};

/// Every combination of 13 `Accept` values, 3 paths and 5 revisions gets a response of the requested type.
#[tokio::test]
async fn every_accept_on_every_path_in_every_revision_is_answered() {
    let server = RouterServer::new(app());
    let accepts = [
        ("", "text/event-stream"),
        ("*/*", "text/event-stream"),
        ("application/json, text/event-stream", "text/event-stream"),
        ("text/event-stream, application/json", "text/event-stream"),
        ("text/event-stream", "text/event-stream"),
        ("Text/Event-Stream", "text/event-stream"),
        ("application/json", "application/json"),
        ("APPLICATION/JSON", "application/json"),
        ("application/json, */*", "application/json"),
        (
            "application/json;q=0.9, text/event-stream;q=0.8",
            "application/json",
        ),
        (
            "application/json, text/event-stream;q=0",
            "application/json",
        ),
        ("text/html", "text/event-stream"),
        ("application/*", "text/event-stream"),
    ];
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let (headers, body) = shaped(revision, "tools/list", json!({}));
        for path in ["/", "/mcp", "/mcp/"] {
            for (accept, kind) in accepts {
                let mut all: Vec<(&str, &str)> =
                    headers.iter().map(|(k, v)| (*k, v.as_str())).collect();
                all.push(("accept", accept));
                let answer = server.post(path, &all, body.to_string()).await;
                assert_eq!(
                    (answer.status.as_u16(), answer.kind()),
                    (200, kind),
                    "{revision} {path} {accept}"
                );
                assert_eq!(answer.json()["result"]["tools"][0]["name"], "search");
            }
        }
    }
}

/// The first message of ChatGPT byte for byte, and the same message without its extensions.
#[tokio::test]
async fn the_probe_of_chatgpt_is_answered() {
    let server = RouterServer::new(app());
    let probe = r#"{"jsonrpc":"2.0","id":"openai-mcp-discover","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"openai-mcp","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{"experimental":{"openai/visibility":{"enabled":true}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}}}}"#;
    let headers = [
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "server/discover"),
        ("user-agent", "openai-mcp/1.0.0"),
    ];
    let bare = r#"{"jsonrpc":"2.0","id":"openai-mcp-discover","method":"server/discover"}"#;
    for (headers, body) in [
        (&headers[..], probe),
        (&[], bare),
        (&[("mcp-protocol-version", "2025-11-25")], bare),
    ] {
        let answer = server.post("/", headers, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let message = answer.json();
        assert_eq!(message["id"], "openai-mcp-discover");
        let result = &message["result"];
        assert_eq!(result["resultType"], "complete");
        assert_eq!(
            result["supportedVersions"],
            json!([
                MODERN,
                "2025-11-25",
                "2025-06-18",
                "2025-03-26",
                "2024-11-05"
            ])
        );
        assert!(result["ttlMs"].is_u64() && result["cacheScope"] == "public");
        assert_eq!(result["instructions"], "Search first.");
        let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(
            (&server["name"], &server["title"]),
            (&json!("test-app"), &json!("Test app"))
        );
    }
}

/// Row of (headers, parameters, expected status, expected JSON-RPC code).
type HeaderCase = (Vec<(&'static str, &'static str)>, Value, u16, i64);

/// Protocol headers must agree with the body. Each row has the status and code that hosts expect.
#[tokio::test]
async fn headers_and_body_must_agree() {
    let server = RouterServer::new(app());
    let meta = |version: &str| json!({"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}});
    let call = |meta: Value| json!({"name": "search", "arguments": {"query": "x"}, "_meta": meta});
    let version = ("mcp-protocol-version", MODERN);
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "search");
    let good = meta(MODERN);
    let no_capabilities = json!({"io.modelcontextprotocol/protocolVersion": MODERN});
    let rows: Vec<HeaderCase> = vec![
        (vec![version, method, name], call(good.clone()), 200, 0),
        (
            vec![version, method, ("mcp-name", "=?base64?c2VhcmNo?=")],
            call(good.clone()),
            200,
            0,
        ),
        (
            vec![
                version,
                ("mcp-method", " tools/call "),
                ("mcp-name", "  search "),
            ],
            call(good.clone()),
            200,
            0,
        ),
        (
            vec![version, method, name],
            json!({"name": "search", "arguments": {"query": "x"}}),
            400,
            -32602,
        ),
        (vec![version, method, name], call(json!({})), 400, -32602),
        (
            vec![version, method, name],
            call(no_capabilities),
            400,
            -32602,
        ),
        (vec![method, name], call(good.clone()), 400, -32020),
        (
            vec![("mcp-protocol-version", "2025-11-25"), method, name],
            call(good.clone()),
            400,
            -32020,
        ),
        (
            vec![version, method, name],
            call(meta("v999.0.0")),
            400,
            -32020,
        ),
        (vec![version, name], call(good.clone()), 400, -32020),
        (
            vec![version, ("mcp-method", "TOOLS/CALL"), name],
            call(good.clone()),
            400,
            -32020,
        ),
        (
            vec![version, ("mcp-method", "tools/list"), name],
            call(good.clone()),
            400,
            -32020,
        ),
        (vec![version, method], call(good.clone()), 400, -32020),
        (
            vec![version, method, ("mcp-name", "fetch")],
            call(good.clone()),
            400,
            -32020,
        ),
        (
            vec![version, method, ("mcp-name", "=?base64?c2Vhc!!?=")],
            call(good.clone()),
            400,
            -32020,
        ),
        (
            vec![version, method, name, ("mcp-name", "search")],
            call(good.clone()),
            400,
            -32020,
        ),
        (
            vec![version, version, method, name],
            call(good.clone()),
            400,
            -32020,
        ),
        (
            vec![("mcp-protocol-version", "v999.0.0"), method, name],
            call(meta("v999.0.0")),
            400,
            -32022,
        ),
        (
            vec![("mcp-protocol-version", "v999.0.0")],
            call(json!({})),
            400,
            -32022,
        ),
        (
            vec![("mcp-protocol-version", "2024-01-01")],
            json!({"name": "search", "arguments": {"query": "x"}}),
            400,
            -32022,
        ),
    ];
    for (headers, params, status, code) in rows {
        let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params})
            .to_string();
        let answer = server.post("/mcp", &headers, body.as_str()).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (status, code),
            "{headers:?} {body}"
        );
        assert_eq!(answer.json()["id"], 9, "{headers:?}");
        if code == -32022 {
            assert!(
                answer.json()["error"]["data"]["supported"]
                    .as_array()
                    .unwrap()
                    .len()
                    == 5
            );
        }
    }
}

/// Lenient mode, for hosts that omit the headers of 2026-07-28: a missing header passes, a contradiction does not.
#[tokio::test]
async fn lenient_headers_forgive_absence_but_not_contradiction() {
    let server = RouterServer::with(
        app(),
        HttpOptions {
            lenient_modern_headers: true,
            ..HttpOptions::default()
        },
    );
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}});
    assert_eq!(server.post("/", &[], bare.to_string()).await.status, 200);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "x"}}});
    let answer = server
        .post("/", &[("mcp-protocol-version", MODERN)], call.to_string())
        .await;
    assert_eq!(
        answer.json()["result"]["resultType"],
        "complete",
        "{}",
        answer.text
    );
    let wrong = [
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/list"),
    ];
    assert_eq!(
        server.post("/", &wrong, bare.to_string()).await.code(),
        -32020
    );
}

/// Results of 2026-07-28 carry their type, the server and, when they can be cached, a lifetime. Older ones do not.
#[tokio::test]
async fn modern_results_are_marked_and_legacy_results_are_not() {
    let server = RouterServer::new(app());
    let rows = [
        ("tools/list", json!({}), true),
        ("resources/list", json!({}), true),
        ("resources/templates/list", json!({}), true),
        ("resources/read", json!({"uri": "test://page"}), true),
        ("prompts/list", json!({}), true),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "?"}, "argument": {"name": "a", "value": ""}}),
            false,
        ),
        (
            "tools/call",
            json!({"name": "search", "arguments": {"query": "x"}}),
            false,
        ),
    ];
    for (method, params, cacheable) in rows {
        let modern = server.ask(MODERN, method, params.clone()).await.json()["result"].clone();
        assert_eq!(modern["resultType"], "complete", "{method} {modern}");
        assert!(
            modern["_meta"]["io.modelcontextprotocol/serverInfo"].is_object(),
            "{method}"
        );
        assert_eq!(
            (modern["ttlMs"].is_u64(), modern["cacheScope"].is_string()),
            (cacheable, cacheable),
            "{method}"
        );
        for revision in LEGACY {
            let legacy =
                server.ask(revision, method, params.clone()).await.json()["result"].clone();
            for key in ["resultType", "ttlMs", "cacheScope", "_meta"] {
                assert!(legacy.get(key).is_none(), "{revision} {method} {key}");
            }
        }
    }
}

/// An app without tools, resources and prompts returns empty lists, not errors.
#[tokio::test]
async fn an_empty_app_answers_empty_lists() {
    let server = RouterServer::new(docent_mcp::App::builder("empty", "1").build().unwrap());
    for revision in LEGACY.into_iter().chain([MODERN]) {
        for (method, key) in [
            ("tools/list", "tools"),
            ("resources/list", "resources"),
            ("prompts/list", "prompts"),
        ] {
            assert_eq!(
                server.ask(revision, method, json!({})).await.json()["result"][key],
                json!([]),
                "{revision}"
            );
        }
    }
}

#[tokio::test]
async fn a_missing_resource_has_the_code_of_its_era() {
    let server = RouterServer::new(app());
    for (revision, code) in [("2025-11-25", -32002), (MODERN, -32602)] {
        let answer = server
            .ask(revision, "resources/read", json!({"uri": "test://none"}))
            .await;
        assert_eq!(answer.code(), code);
        assert_eq!(answer.json()["error"]["data"]["uri"], "test://none");
    }
}

/// A caller's mistake is a tool error with its text; an internal failure is a protocol error without its cause.
#[tokio::test]
async fn the_callers_mistake_is_shown_and_our_failure_is_not() {
    let server = RouterServer::new(app());
    let mistake = server.search("2025-11-25", "mistake").await.json();
    assert_eq!(mistake["result"]["isError"], true);
    assert_eq!(
        mistake["result"]["content"][0]["text"],
        "nobody knows that\nhint: ask something else"
    );
    let broken = server.search("2025-11-25", "broken").await;
    assert_eq!(broken.code(), -32603);
    assert!(
        broken.text.contains("reference") && !broken.text.contains("secret"),
        "{}",
        broken.text
    );
}

#[tokio::test]
async fn notifications_are_accepted_without_a_body() {
    let server = RouterServer::new(app());
    for method in [
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/unheard-of",
    ] {
        let note = json!({"jsonrpc": "2.0", "method": method}).to_string();
        let answer = server.post("/mcp", &[], note).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (202, ""));
    }
}

/// Paths beside the endpoint: health, readiness, sign-in metadata and 404.
#[tokio::test]
async fn health_metadata_and_unknown_paths() {
    let server = RouterServer::new(app());
    let get = |path: &str, accept: &str| {
        Request::get(path)
            .header("host", "localhost")
            .header("accept", accept)
            .body(Body::empty())
            .unwrap()
    };
    let rows = [
        ("/", "*/*", 200),
        ("/", "text/event-stream", 405),
        ("/mcp", "text/event-stream", 405),
        ("/mcp/", "*/*", 405),
        ("/healthz", "*/*", 200),
        ("/readyz", "*/*", 200),
        ("/.well-known/oauth-protected-resource", "*/*", 404),
        ("/.well-known/oauth-protected-resource/mcp", "*/*", 404),
        ("/.well-known/oauth-authorization-server", "*/*", 404),
        ("/.well-known/openid-configuration", "*/*", 404),
        ("/nowhere", "*/*", 404),
    ];
    for (path, accept, status) in rows {
        let answer = server.send(get(path, accept)).await;
        assert_eq!(
            (answer.status.as_u16(), answer.kind()),
            (status, "application/json"),
            "{path} {accept}"
        );
        answer.json();
    }
    assert_eq!(
        server.send(get("/readyz", "*/*")).await.json()["ready"],
        true
    );
    assert_eq!(
        server.send(get("/", "*/*")).await.json()["name"],
        "test-app"
    );
}

/// A body at the size limit passes; one byte more is refused with 413.
#[tokio::test]
async fn a_body_over_the_limit_is_rejected() {
    let limits = HttpLimits {
        body_bytes: 4_000,
        call_bytes: 2_000,
        big_body: 1_000,
        ..HttpLimits::default()
    };
    let server = RouterServer::with(
        app(),
        HttpOptions {
            limits,
            ..HttpOptions::default()
        },
    );
    let padded = |method: &str, size: usize| {
        let head = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"search","arguments":{{"query":""#
        );
        let tail = "\"}}}";
        format!("{head}{}{tail}", "x".repeat(size - head.len() - tail.len()))
    };
    for (method, size, status) in [
        ("tools/call", 2_000, 200),
        ("tools/call", 2_001, 413),
        ("ping", 4_000, 200),
        ("ping", 4_001, 413),
    ] {
        let answer = server.post("/mcp", &[], padded(method, size)).await;
        assert_eq!(
            answer.status.as_u16(),
            status,
            "{method} {size} {}",
            answer.text
        );
        assert_eq!(answer.json()["jsonrpc"], "2.0");
    }
}

/// Requests beyond the limit in flight get 503 with `Retry-After`.
#[tokio::test]
async fn a_request_beyond_the_limit_in_flight_gets_retry_after() {
    let gate = std::sync::Arc::new(tokio::sync::Notify::new());
    let limits = HttpLimits {
        in_flight: 1,
        ..HttpLimits::default()
    };
    let app = crate::server::app_with(gate.clone());
    let server = RouterServer::with(
        app,
        HttpOptions {
            limits,
            ..HttpOptions::default()
        },
    );
    let other = server.clone();
    let wait = json!({"name": "slow", "arguments": {"query": "wait"}});
    let busy = tokio::spawn(async move { other.ask("2025-06-18", "tools/call", wait).await });
    tokio::task::yield_now().await;
    let refused = server.search("2025-06-18", "x").await;
    assert_eq!(refused.status, 503);
    assert!(refused.headers.contains_key("retry-after"));
    gate.notify_one();
    assert_eq!(busy.await.unwrap().status, 200);
    assert_eq!(server.search("2025-06-18", "x").await.status, 200);
}

/// A handler that never ends is cancelled at its deadline, and the caller gets an error.
#[tokio::test(start_paused = true)]
async fn endless_work_is_stopped() {
    let server = RouterServer::new(app());
    let wait = json!({"name": "slow", "arguments": {"query": "wait"}});
    let result = server.ask("2025-06-18", "tools/call", wait).await.json()["result"].clone();
    assert_eq!(result["isError"], true);
    assert!(
        result["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("30 seconds")
    );
}
