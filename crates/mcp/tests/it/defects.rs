//! Regression tests for the seventeen defects by which a plain rmcp server fails a host. The numbers are those of the
//! table in docs/kit-internals.md. Three are tested elsewhere: Nagle's delay (13) in `src/http/accept.rs`, requests in
//! the log (15) in `crates/docent/tests/it/logged.rs`, and origins without a port (17) in the tests of the request
//! guard.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::server::{LEGACY, MODERN, RouterServer, app, app_with, builder};

/// 1: concurrent requests with one id. Claude has been seen to number every request 1.
#[tokio::test]
async fn requests_with_the_same_id_get_their_own_answers() {
    let gate = Arc::new(Notify::new());
    let server = RouterServer::new(app_with(gate.clone()));
    let call = |query: &str| json!({"name": "slow", "arguments": {"query": query}});
    let other = server.clone();
    let waiting = tokio::spawn(async move {
        other
            .ask(
                "2025-06-18",
                "tools/call",
                json!({"name": "slow", "arguments": {"query": "wait"}}),
            )
            .await
    });
    tokio::task::yield_now().await;
    let quick = server
        .ask("2025-06-18", "tools/call", call("quick"))
        .await
        .json();
    assert_eq!(
        quick["result"]["structuredContent"]["results"],
        json!(["quick"])
    );
    gate.notify_one();
    let slow = waiting.await.unwrap().json();
    assert_eq!(
        slow["result"]["structuredContent"]["results"],
        json!(["wait"])
    );
}

/// 2: requests without a session id, or with one from another server. ChatGPT drops the id between requests.
#[tokio::test]
async fn session_ids_are_neither_required_nor_checked() {
    let server = RouterServer::new(app());
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    for headers in [
        &[][..],
        &[("mcp-session-id", "from-elsewhere"), ("last-event-id", "9")],
    ] {
        let answer = server.post("/mcp", headers, body.as_str()).await;
        assert_eq!(answer.status, 200);
        assert!(!answer.headers.contains_key("mcp-session-id"));
        assert_eq!(
            answer.json()["result"]["tools"].as_array().unwrap().len(),
            2
        );
    }
}

/// 3 and 16: the server is stateless, so `initialize` creates no session and DELETE has none to end.
#[tokio::test]
async fn sessions_cannot_be_started_or_ended() {
    let server = RouterServer::new(app());
    for revision in LEGACY {
        let hello = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answer = server.ask(revision, "initialize", hello).await;
        assert_eq!(answer.json()["result"]["protocolVersion"], revision);
        assert!(!answer.headers.contains_key("mcp-session-id"), "{revision}");
    }
    for path in ["/", "/mcp", "/mcp/"] {
        let request = http::Request::delete(path)
            .header("host", "localhost")
            .body(axum::body::Body::empty());
        let answer = server.send(request.unwrap()).await;
        assert_eq!(
            (answer.status.as_u16(), answer.kind()),
            (405, "application/json"),
            "{path}"
        );
        assert!(
            answer.headers["allow"].to_str().unwrap().contains("POST"),
            "{path}"
        );
    }
}

/// 4: an event stream starts with a message, because old clients fail on an empty event.
#[tokio::test]
async fn a_stream_never_begins_with_an_empty_event() {
    let server = RouterServer::new(app());
    for revision in LEGACY {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        let headers = [
            ("accept", "text/event-stream"),
            ("mcp-protocol-version", revision),
        ];
        let answer = server.post("/mcp", &headers, body).await;
        assert!(answer.text.starts_with("data: {"), "{}", answer.text);
        assert_eq!(answer.messages().len(), 1);
    }
}

/// 5: a panic in a tool, resource or prompt is an error response, and the next request is served.
#[tokio::test]
async fn a_panic_is_answered_and_survived() {
    let server = RouterServer::new(app());
    let with_progress =
        json!({"name": "search", "arguments": {"query": "panic"}, "_meta": {"progressToken": 1}});
    for revision in [LEGACY[2], MODERN] {
        let rows = [
            (
                "tools/call",
                json!({"name": "search", "arguments": {"query": "panic"}}),
            ),
            ("tools/call", with_progress.clone()),
            ("resources/read", json!({"uri": "test://panic/1"})),
            ("prompts/get", json!({"name": "panic"})),
        ];
        for (method, params) in rows {
            let answer = server.ask(revision, method, params).await;
            assert_eq!(answer.code(), -32603, "{revision} {method} {}", answer.text);
            assert!(!answer.text.contains("went wrong"), "{}", answer.text);
        }
        assert_eq!(server.search(revision, "fine").await.status, 200);
    }
}

/// 7: the content type is compared as a media type: case and parameters do not matter.
#[tokio::test]
async fn content_type_ignores_case_and_parameters_but_not_other_types() {
    let server = RouterServer::new(app());
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    for good in [
        "Application/JSON",
        "application/json; charset=utf-8",
        "APPLICATION/JSON;charset=UTF-8",
    ] {
        assert_eq!(
            server
                .post("/", &[("content-type", good)], body.as_str())
                .await
                .status,
            200,
            "{good}"
        );
    }
    let bad = [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/jsonx",
        "",
    ];
    for bad in bad {
        let answer = server
            .post("/", &[("content-type", bad)], body.as_str())
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (415, -32600),
            "{bad}"
        );
    }
}

/// 8 and 12: an invalid message is refused with a JSON-RPC error and the code of the specification.
#[tokio::test]
async fn malformed_messages_get_a_json_rpc_error() {
    let server = RouterServer::new(app());
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}{}}}}}"#,
        "[".repeat(70),
        "]".repeat(70)
    );
    let rows = [
        ("", -32700),
        ("{", -32700),
        ("not json", -32700),
        ("[]", -32600),
        ("{}", -32600),
        ("null", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            -32600,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"METHOD":"ping"}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
            -32600,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, -32600),
        (deep.as_str(), -32600),
    ];
    for (body, code) in rows {
        let answer = server.post("/mcp", &[], body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.kind()),
            (400, "application/json"),
            "{body}"
        );
        assert_eq!(answer.code(), code, "{body}");
        assert_eq!(answer.json()["jsonrpc"], "2.0");
    }
}

/// 9: batches are supported in 2025-03-26, the only revision that had them.
#[tokio::test]
async fn batches_are_answered_in_2025_03_26_alone() {
    let server = RouterServer::new(app());
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": {"name": "search", "arguments": {"query": "x"}}},
        {"jsonrpc": "2.0", "id": 3, "method": "no/such"},
        7,
    ]);
    for headers in [&[][..], &[("mcp-protocol-version", "2025-03-26")]] {
        let answer = server.post("/mcp", headers, batch.to_string()).await;
        let answers = answer.json();
        let ids: Vec<&Value> = answers
            .as_array()
            .unwrap()
            .iter()
            .map(|a| &a["id"])
            .collect();
        assert_eq!(ids, [&json!(1), &json!("b"), &json!(3), &Value::Null]);
        assert_eq!(answers[1]["result"]["results"], json!(["x"]));
        assert_eq!(answers[2]["error"]["code"], -32601);
    }
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25", MODERN] {
        let answer = server
            .post(
                "/mcp",
                &[("mcp-protocol-version", revision)],
                batch.to_string(),
            )
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, -32600),
            "{revision}"
        );
    }
    let notes = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]).to_string();
    assert_eq!(server.post("/mcp", &[], notes).await.status, 202);
}

/// 10: invalid parameters of a known method are -32602, not -32601.
#[tokio::test]
async fn invalid_parameters_get_their_own_error_code() {
    let server = RouterServer::new(app());
    let rows = [
        (
            "tools/call",
            json!({"name": "search", "arguments": "query"}),
        ),
        ("tools/call", json!({"arguments": {}})),
        (
            "tools/call",
            json!({"name": "no-such-tool", "arguments": {}}),
        ),
        ("tools/call", json!({"name": 5})),
        ("resources/read", json!({"uri": 5})),
        ("prompts/get", json!({"name": []})),
        ("prompts/get", json!({"name": "no-such-prompt"})),
        ("completion/complete", json!({"ref": 1})),
        ("tools/list", json!({"cursor": "page-2"})),
        ("resources/list", json!({"cursor": "page-2"})),
    ];
    for revision in ["2025-03-26", "2025-11-25", MODERN] {
        for (method, params) in &rows {
            let answer = server.ask(revision, method, params.clone()).await;
            assert_eq!(
                answer.code(),
                -32602,
                "{revision} {method} {params} {}",
                answer.text
            );
        }
    }
    // Invalid tool arguments are a tool error, which the model can read and correct, and no protocol error.
    for arguments in [
        json!({}),
        json!({"query": 5}),
        json!({"query": "a", "limit": 3}),
    ] {
        let answer = server
            .ask(
                "2025-11-25",
                "tools/call",
                json!({"name": "search", "arguments": arguments}),
            )
            .await;
        let result = &answer.json()["result"];
        assert_eq!(result["isError"], true, "{arguments}");
        assert!(
            result["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("hint:")
        );
    }
}

/// 10, the reverse: unknown methods, and those that 2026-07-28 removed, are -32601.
#[tokio::test]
async fn unknown_and_removed_methods_are_not_found() {
    let server = RouterServer::new(app());
    let removed = [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "no/such",
    ];
    for method in removed {
        let answer = server.ask(MODERN, method, json!({})).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (404, -32601),
            "{method}"
        );
        assert_eq!(answer.json()["id"], 1);
    }
    let legacy = server.ask("2025-11-25", "no/such", json!({})).await;
    assert_eq!((legacy.status.as_u16(), legacy.code()), (200, -32601));
}

/// 11: `initialize` negotiates by its own parameter, whatever protocol version header an earlier session left behind.
#[tokio::test]
async fn initialize_goes_by_its_own_parameter() {
    let server = RouterServer::new(app());
    let hello = |version: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
            {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
        .to_string()
    };
    let rows = [
        ("2025-06-18", "2025-11-25", "2025-06-18"),
        ("2024-11-05", "2025-03-26", "2024-11-05"),
        ("2026-07-28", "2025-11-25", "2025-11-25"),
        ("2099-01-01", "2025-03-26", "2025-11-25"),
    ];
    for (requested, header, expected) in rows {
        let answer = server
            .post(
                "/mcp",
                &[("mcp-protocol-version", header)],
                hello(requested),
            )
            .await;
        assert_eq!(
            answer.json()["result"]["protocolVersion"],
            expected,
            "{requested} {header}"
        );
    }
}

/// 14: members that rmcp's types lack, such as the dual format and security schemes, reach the wire.
#[tokio::test]
async fn results_and_security_schemes_stand_where_hosts_look() {
    let server = RouterServer::new(app());
    for (revision, beside) in [
        ("2024-11-05", true),
        ("2025-03-26", true),
        ("2025-06-18", false),
        (MODERN, false),
    ] {
        let result = server.search(revision, "x").await.json()["result"].clone();
        assert_eq!(result.get("results").is_some(), beside, "{revision}");
        let with_progress =
            json!({"name": "search", "arguments": {"query": "x"}, "_meta": {"progressToken": 1}});
        let streamed = server
            .ask(revision, "tools/call", with_progress)
            .await
            .json();
        assert_eq!(
            streamed["result"].get("results").is_some(),
            beside,
            "{revision} streamed"
        );
    }
    let tool = server
        .ask("2025-11-25", "tools/list", json!({}))
        .await
        .json()["result"]["tools"][0]
        .clone();
    assert_eq!(tool["securitySchemes"], json!([{"type": "noauth"}]));
    assert_eq!(tool["_meta"]["securitySchemes"], tool["securitySchemes"]);
}

/// 14, its settings: dual format always or never, and prose instead of JSON as the text.
#[tokio::test]
async fn the_dual_format_and_the_text_can_be_chosen() {
    use docent_mcp::{DualFormat, TextForm};
    for (dual, revision, beside) in [
        (DualFormat::Always, MODERN, true),
        (DualFormat::Never, "2024-11-05", false),
    ] {
        let app = builder(Arc::default())
            .dual_format(dual)
            .text_form(TextForm::Prose)
            .build()
            .unwrap();
        let result = RouterServer::new(app).search(revision, "x").await.json()["result"].clone();
        assert_eq!(result.get("results").is_some(), beside);
        assert_eq!(
            result["content"],
            json!([{"type": "text", "text": "Title: x"}])
        );
        assert_eq!(result["structuredContent"], json!({"results": ["x"]}));
    }
}
