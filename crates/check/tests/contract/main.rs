//! The check against a small server that answers as each test tells it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(
    clippy::indexing_slicing,
    reason = "a wrong index in a test is a failed test"
)]

mod server;

use std::time::Duration;

use docent_check::{Report, Severity, check, check_within};
use serde_json::{Value, json};
use server::{Reply, serve};

fn tool(name: &str, argument: &str) -> Value {
    json!({
        "name": name,
        "inputSchema": {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]},
        "annotations": {"readOnlyHint": true, "destructiveHint": false, "openWorldHint": false},
    })
}

fn result(request: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

/// What a good server of the current revision says.
fn modern(request: &Value) -> Value {
    match request["method"].as_str() {
        Some("server/discover") => result(
            request,
            &json!({"supportedVersions": ["2026-07-28", "2025-11-25"]}),
        ),
        Some("tools/list") => result(
            request,
            &json!({"tools": [tool("search", "query"), tool("fetch", "id")]}),
        ),
        _ => {
            json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no such method"}})
        }
    }
}

/// What a good server of the older revision says.
fn legacy(request: &Value) -> Value {
    match request["method"].as_str() {
        Some("initialize") => result(
            request,
            &json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}),
        ),
        Some("server/discover") => {
            json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no such method"}})
        }
        _ => modern(request),
    }
}

/// The messages of all findings.
fn messages(report: &Report) -> Vec<&str> {
    report
        .findings
        .iter()
        .map(|finding| finding.message.as_str())
        .collect()
}

fn check_good(report: &Report) {
    assert_eq!(messages(report), [""; 0]);
    assert_eq!(
        report.passed,
        ["search-fetch/signatures", "tools/hints-explicit"]
    );
    assert_eq!(report.worst(), None);
}

/// One finding that the server cannot be used, with these words.
fn check_trouble(report: &Report, message: &str) {
    assert_eq!(messages(report), [message]);
    assert_eq!(
        (report.findings[0].rule, report.worst()),
        ("target/answers", Some(Severity::Error))
    );
    assert_eq!(report.passed, [""; 0]);
}

#[test]
fn a_good_server_passes_in_json_and_in_events() {
    check_good(&check(&serve(|call| Reply::json(&modern(&call.body))).url));
    check_good(&check(
        &serve(|call| Reply::events(&[modern(&call.body)])).url,
    ));
}

#[test]
fn requests_of_the_current_revision_carry_what_it_asks_for() {
    let server = serve(|call| Reply::json(&modern(&call.body)));
    check_good(&check(&server.url));
    let calls = server.calls();
    let methods: Vec<_> = calls
        .iter()
        .map(|call| call.body["method"].as_str().unwrap())
        .collect();
    assert_eq!(methods, ["server/discover", "tools/list"]);
    for call in &calls {
        assert_eq!(call.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(call.header("mcp-method"), call.body["method"].as_str());
        assert_eq!(
            call.header("accept"),
            Some("application/json, text/event-stream")
        );
        assert_eq!(
            call.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert!(
            call.body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].is_object()
        );
    }
}

#[test]
fn an_older_server_is_greeted_first_and_its_session_is_kept_and_ended() {
    let server = serve(|call| match call.body["method"].as_str() {
        Some("notifications/initialized") => Reply::status(202),
        Some("initialize") => Reply::json(&legacy(&call.body)).with("Mcp-Session-Id", "abc"),
        _ => Reply::json(&legacy(&call.body)),
    });
    check_good(&check(&server.url));
    let calls = server.calls();
    let seen: Vec<_> = calls
        .iter()
        .map(|call| {
            (
                call.verb.as_str(),
                call.body["method"].as_str().unwrap_or(""),
                call.header("mcp-session-id"),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("POST", "server/discover", None),
            ("POST", "initialize", None),
            ("POST", "notifications/initialized", Some("abc")),
            ("POST", "tools/list", Some("abc")),
            ("DELETE", "", Some("abc")),
        ]
    );
    assert_eq!(calls[3].header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(calls[3].header("mcp-method"), None);
}

#[test]
fn a_bad_request_to_the_probe_leads_to_the_older_greeting() {
    let server = serve(|call| match call.body["method"].as_str() {
        Some("server/discover") => Reply::status(400),
        Some("notifications/initialized") => Reply::status(202),
        _ => Reply::json(&legacy(&call.body)),
    });
    check_good(&check(&server.url));
}

#[test]
fn wrong_tools_are_found() {
    let server = serve(|call| {
        if call.body["method"] != "tools/list" {
            return Reply::json(&modern(&call.body));
        }
        let mut search = tool("search", "query");
        search["inputSchema"]["properties"]["limit"] = json!({"type": "integer"});
        let mut fetch = tool("fetch", "id");
        fetch["annotations"] = json!({"readOnlyHint": true});
        Reply::json(&result(&call.body, &json!({"tools": [search, fetch]})))
    });
    let report = check(&server.url);
    let expect = [
        "`search` takes more than `query`",
        "the tool `fetch` has no true or false for `destructiveHint`, `openWorldHint`",
    ];
    assert_eq!(messages(&report), expect);
    assert_eq!(report.findings[0].evidence, "[\"limit\"]");
    assert_eq!(report.counts().errors, 2);
}

#[test]
fn pages_are_followed_to_their_end_and_no_further() {
    let paged = |last: u64| {
        serve(move |call| {
            if call.body["method"] != "tools/list" {
                return Reply::json(&modern(&call.body));
            }
            let page: u64 = call.body["params"]["cursor"]
                .as_str()
                .unwrap_or("1")
                .parse()
                .unwrap();
            let tools = match page {
                1 => json!([tool("search", "query")]),
                2 => json!([tool("fetch", "id")]),
                _ => json!([]),
            };
            let next = (page < last).then(|| (page + 1).to_string());
            let mut list = json!({"tools": tools});
            if let Some(next) = next {
                list["nextCursor"] = json!(next);
            }
            Reply::json(&result(&call.body, &list))
        })
    };
    check_good(&check(&paged(2).url));
    check_good(&check(&paged(50).url));
    check_trouble(
        &check(&paged(51).url),
        "`tools/list` does not end within 50 pages",
    );
}

#[test]
fn a_list_ends_at_its_bound() {
    let many = |count: usize| {
        serve(move |call| {
            if call.body["method"] != "tools/list" {
                return Reply::json(&modern(&call.body));
            }
            let mut tools = vec![tool("x", "y"); count - 2];
            tools.extend([tool("search", "query"), tool("fetch", "id")]);
            Reply::json(&result(&call.body, &json!({"tools": tools})))
        })
    };
    check_good(&check(&many(1_000).url));
    check_trouble(
        &check(&many(1_001).url),
        "`tools/list` does not end within 1000 tools",
    );
}

#[test]
fn events_before_the_answer_are_passed_over_and_open_streams_left() {
    let server = serve(|call| {
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
        let question = json!({"jsonrpc": "2.0", "id": call.body["id"], "method": "ping"});
        Reply::events(&[progress, question, modern(&call.body)]).left_open()
    });
    check_good(&check(&server.url));
}

#[test]
fn garbage_is_named() {
    let check_reply = |reply: fn(&server::Call) -> Reply, message: &str| {
        let server = serve(reply);
        check_trouble(&check(&server.url), message);
    };
    check_reply(
        |_| Reply::raw("application/json", "{nonsense"),
        "the answer is not valid JSON",
    );
    check_reply(
        |_| Reply::raw("application/json", ""),
        "the answer is not valid JSON",
    );
    check_reply(
        |_| Reply::raw("text/html", "<p>hello"),
        "the answer is neither JSON nor an event stream",
    );
    check_reply(
        |_| Reply::raw("text/event-stream", "data: {nonsense\n\n"),
        "the answer is not valid JSON",
    );
    let not_an_answer = "the answer to `initialize` is not a JSON-RPC answer to the request";
    check_reply(|_| Reply::raw("text/event-stream", ""), not_an_answer);
    check_reply(
        |_| Reply::json(&json!({"jsonrpc": "2.0", "id": 99, "result": {}})),
        not_an_answer,
    );
    check_reply(|_| Reply::json(&json!([])), not_an_answer);
    check_reply(
        |call| Reply::json(&json!({"jsonrpc": "2.0", "id": call.body["id"]})),
        not_an_answer,
    );
    check_reply(
        |call| Reply::json(&result(&call.body, &json!({"protocolVersion": "a\nb"}))),
        not_an_answer,
    );
    check_reply(
        |_| Reply::raw("application/json", &"[".repeat(100_000)),
        "the answer is not valid JSON",
    );
    check_reply(
        |_| Reply::status(500),
        "the server answered with status 500",
    );
    check_reply(|_| Reply::status(401), "the server asks for sign-in");
    check_reply(
        |_| Reply::status(307).with("Location", "http://127.0.0.1:1/"),
        "the server redirects to another address",
    );
    let refuse = |call: &server::Call| {
        Reply::json(
            &json!({"jsonrpc": "2.0", "id": call.body["id"], "error": {"code": -32000, "message": "no\u{1b}"}}),
        )
    };
    check_reply(refuse, "the server refuses `initialize` with code -32000");
}

#[test]
fn what_a_server_says_is_shown_safely() {
    let server = serve(|call| {
        Reply::json(
            &json!({"jsonrpc": "2.0", "id": call.body["id"], "error": {"code": 1, "message": "red\u{1b}[31m"}}),
        )
    });
    assert_eq!(check(&server.url).findings[0].evidence, "red\u{FFFD}[31m");
}

#[test]
fn an_answer_ends_at_its_bound() {
    const LIMIT: usize = 8 * 1024 * 1024;
    /// A good answer with as many spaces in front as make it `size` bytes long.
    fn padded(call: &server::Call, size: usize, head: &str, tail: &str) -> String {
        let message = modern(&call.body).to_string();
        let spaces = size - message.len() - head.len() - tail.len();
        format!("{head}{}{message}{tail}", " ".repeat(spaces))
    }
    let json =
        |size| serve(move |call| Reply::raw("application/json", &padded(call, size, "", "")));
    check_good(&check(&json(LIMIT).url));
    let over = "the answer has more than 8388608 bytes";
    check_trouble(&check(&json(LIMIT + 1).url), over);
    let events = |size| {
        serve(move |call| Reply::raw("text/event-stream", &padded(call, size, "data:", "\n\n")))
    };
    check_good(&check(&events(LIMIT).url));
    check_trouble(&check(&events(LIMIT + 1).url), over);
}

#[test]
fn an_endless_answer_is_cut_off() {
    let over = "the answer has more than 8388608 bytes";
    check_trouble(
        &check(&serve(|_| Reply::endless("application/json")).url),
        over,
    );
    check_trouble(
        &check(&serve(|_| Reply::endless("text/event-stream")).url),
        over,
    );
}

#[test]
fn a_silent_server_is_given_up() {
    let brief = Duration::from_millis(200);
    let silent = "the server did not answer in time";
    check_trouble(
        &check_within(&serve(|_| Reply::silence()).url, brief),
        silent,
    );
    let stalled = serve(|_| Reply::raw("text/event-stream", ": wait\n\n").left_open());
    check_trouble(&check_within(&stalled.url, brief), silent);
}

#[test]
fn an_address_where_nobody_listens_is_a_finding() {
    // Port 1 is reserved, so no other test can be listening there.
    let report = check("http://127.0.0.1:1/mcp");
    check_trouble(&report, "the server cannot be reached");
    assert!(!report.findings[0].evidence.is_empty());
}

#[test]
fn only_web_addresses_are_checked() {
    for url in [
        "",
        "ftp://a.example/",
        "a.example",
        "http://",
        "/mcp",
        "file:///etc/passwd",
    ] {
        check_trouble(
            &check(url),
            &format!("`{url}` is not an http or https address"),
        );
    }
}
