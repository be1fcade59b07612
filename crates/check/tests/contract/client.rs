//! The requests of the check: they are those of hosts, within limits, and an unreachable server is one finding.

use std::time::Duration;

use docent_check::{CheckOptions, CheckProfile, CheckReport, CheckTarget, Severity, check};
use serde_json::{Value, json};

use crate::broken::{Broken, result_of};
use crate::server::{CannedReply, ReceivedCall, serve};

fn checked(url: &str, timeout: Duration) -> CheckReport {
    let options = CheckOptions {
        profiles: CheckProfile::ALL.to_vec(),
        call_timeout: timeout,
        ..CheckOptions::default()
    };
    check(&CheckTarget::Url(url.to_owned()), &options, &|_| {})
}

const LONG: Duration = Duration::from_secs(20);

/// Asserts that the only finding is `lifecycle/answers`, with this message.
fn check_trouble(report: &CheckReport, message: &str) {
    let found = report
        .findings
        .iter()
        .find(|finding| finding.rule == "lifecycle/answers");
    assert_eq!(found.map(|finding| finding.message.as_str()), Some(message));
    assert_eq!(report.findings.len(), 1, "one root: {:?}", report.findings);
    assert_eq!(report.worst(), Some(Severity::Error));
    assert!(report.skipped.len() > 100, "rules without data are skipped");
}

#[test]
fn requests_are_those_of_chatgpt() {
    let server = Broken::nothing().serve();
    let report = checked(&server.url, LONG);
    assert_eq!(report.findings, []);
    let calls = server.calls();
    let first = &calls[0];
    assert_eq!(
        (first.method(), &first.body["id"]),
        ("server/discover", &json!("openai-mcp-discover"))
    );
    assert_eq!(first.header("user-agent"), Some("openai-mcp/1.0.0"));
    assert!(first.header("x-docent-check").is_some());
    assert_eq!(first.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(
        first.header("accept"),
        Some("application/json, text/event-stream")
    );
    let second = &calls[1];
    assert_eq!(
        (second.method(), &second.body["params"]["protocolVersion"]),
        ("initialize", &json!("2025-11-25"))
    );
    assert_eq!(second.body["params"]["clientInfo"]["name"], "openai-mcp");
    assert_eq!(calls[2].method(), "notifications/initialized");
    assert!(calls.len() < 120, "{} requests", calls.len());
}

#[test]
fn only_claude_is_asked_about_as_claude() {
    let server = Broken::nothing().serve();
    let options = CheckOptions {
        profiles: vec![CheckProfile::Claude],
        ..CheckOptions::default()
    };
    let _ = check(&CheckTarget::Url(server.url.clone()), &options, &|_| {});
    assert_eq!(server.calls()[0].header("user-agent"), Some("Claude-User"));
}

#[test]
fn sessions_are_kept_and_ended() {
    let server = Broken::nothing().legacy_only().sessions().serve();
    let report = checked(&server.url, LONG);
    assert_eq!(report.findings, []);
    let calls = server.calls();
    let listed = calls
        .iter()
        .find(|call| call.method() == "tools/list")
        .unwrap();
    assert_eq!(listed.header("mcp-session-id"), Some("a-session"));
    assert_eq!(listed.header("mcp-method"), None);
    let end = calls.iter().rfind(|call| call.verb == "DELETE").unwrap();
    assert_eq!(end.header("mcp-session-id"), Some("a-session"));
    let opened = calls
        .iter()
        .filter(|call| call.method() == "initialize" && call.header("authorization").is_none())
        .count();
    let ended = calls.iter().filter(|call| call.verb == "DELETE").count();
    // The `initialize` without a token only probes for a challenge; its session is not used.
    assert_eq!(opened, ended + 1);
}

#[test]
fn tools_that_may_write_are_called_with_leave_only() {
    let writing = || Broken::tools(|tools| tools[2]["annotations"]["readOnlyHint"] = json!(false));
    let called = |broken: Broken| {
        let server = broken.serve();
        let _ = check(
            &CheckTarget::Url(server.url.clone()),
            &broken.options,
            &|_| {},
        );
        server
            .calls()
            .iter()
            .any(|call| call.body["params"]["name"] == "show_status")
    };
    assert!(called(Broken::nothing()));
    assert!(!called(writing()));
    assert!(called(
        writing().checked(|options| options.allow_writes = true)
    ));
}

#[test]
fn a_token_is_sent_and_never_shown() {
    let broken = Broken::reply(|_, call, reply| {
        if call.method() == "tools/list" {
            CannedReply::status(500)
        } else {
            reply
        }
    });
    let broken = broken
        .sign_in()
        .checked(|options| options.token = Some("good-token".to_owned()));
    let server = broken.serve();
    let report = check(
        &CheckTarget::Url(server.url.clone()),
        &broken.options,
        &|_| {},
    );
    assert!(!report.findings.is_empty());
    assert!(!format!("{report:?}").contains("good-token"));
    let listed = server
        .calls()
        .into_iter()
        .find(|call| call.method() == "tools/list")
        .unwrap();
    assert_eq!(listed.header("authorization"), Some("Bearer good-token"));
}

#[test]
fn events_before_the_answer_are_passed_over_and_open_streams_left() {
    let server = Broken::reply(|_, call, reply| {
        let answer: Result<Value, _> = serde_json::from_str(&reply.body);
        let Ok(answer) = answer else { return reply };
        if call.header("accept") != Some("application/json, text/event-stream")
            || reply.status != 200
            || answer.is_array()
        {
            return reply;
        }
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
        let question = json!({"jsonrpc": "2.0", "id": call.body["id"], "method": "ping"});
        CannedReply::events(&[progress, question, answer]).left_open()
    })
    .serve();
    assert_eq!(checked(&server.url, LONG).findings, []);
}

#[test]
fn garbage_is_named() {
    let check_reply = |reply: fn(&ReceivedCall) -> CannedReply, message: &str| {
        let server = serve(reply);
        check_trouble(&checked(&server.url, LONG), message);
    };
    let not_json = "the answer to `initialize` is not valid JSON";
    check_reply(
        |_| CannedReply::raw("application/json", "{nonsense"),
        not_json,
    );
    check_reply(
        |_| CannedReply::raw("text/event-stream", "data: {nonsense\n\n"),
        not_json,
    );
    check_reply(
        |_| CannedReply::raw("application/json", &"[".repeat(100_000)),
        not_json,
    );
    check_reply(
        |_| CannedReply::raw("text/html", "<p>hello"),
        "a web page answers `initialize`: `text/html`",
    );
    check_reply(
        |_| CannedReply::raw("text/event-stream", ""),
        "the event stream ends without an answer to `initialize`",
    );
    let not_an_answer = "the answer to `initialize` is JSON, but not a JSON-RPC answer to it";
    check_reply(
        |_| CannedReply::json(&json!({"jsonrpc": "2.0", "id": 99, "result": {}})),
        not_an_answer,
    );
    check_reply(|_| CannedReply::json(&json!([])), not_an_answer);
    check_reply(
        |call| CannedReply::json(&json!({"jsonrpc": "2.0", "id": call.body["id"]})),
        not_an_answer,
    );
    check_reply(
        |_| CannedReply::status(500),
        "the server answers `initialize` with status 500 and an empty body",
    );
    check_reply(
        |_| CannedReply::status(307).with("Location", "/x"),
        "the server answers `initialize` with status 307 and leads to `/x`",
    );
    let refuse = |call: &ReceivedCall| {
        CannedReply::json(
            &json!({"jsonrpc": "2.0", "id": call.body["id"], "error": {"code": -32000, "message": "no\u{1b}"}}),
        )
    };
    check_reply(
        refuse,
        "the server refuses `initialize` with code -32000: no\u{FFFD}",
    );
}

#[test]
fn control_characters_of_a_server_are_replaced_in_the_report() {
    let server = serve(|call| {
        CannedReply::json(
            &json!({"jsonrpc": "2.0", "id": call.body["id"], "error": {"code": 1, "message": "red\u{9b}31m"}}),
        )
    });
    let report = checked(&server.url, LONG);
    assert!(!format!("{report:?}").contains('\u{9b}'));
    assert!(
        report.findings[0].received.contains("red\u{FFFD}31m"),
        "{report:?}"
    );
}

#[test]
fn an_answer_ends_at_its_bound() {
    const LIMIT: usize = 8 * 1024 * 1024;
    let padded = |size: usize| {
        Broken::reply(move |_, call, mut reply| {
            if call.method() == "resources/templates/list" {
                let spaces = size - reply.body.len();
                reply.body = format!("{}{}", " ".repeat(spaces), reply.body);
            }
            reply
        })
    };
    let too_large = |broken: Broken| {
        let report = checked(&broken.serve().url, LONG);
        report
            .findings
            .iter()
            .any(|finding| finding.rule == "limits/answer-bytes")
    };
    assert!(!too_large(padded(LIMIT)));
    assert!(too_large(padded(LIMIT + 1)));
    let endless = |kind: &'static str| {
        Broken::reply(move |_, call, reply| {
            if call.method() == "prompts/list" {
                CannedReply::endless(kind)
            } else {
                reply
            }
        })
    };
    assert!(too_large(endless("application/json")));
    assert!(too_large(endless("text/event-stream")));
}

#[test]
fn a_list_ends_at_its_bounds() {
    let many = |count: usize| {
        Broken::tools(move |tools| {
            let more = tools[2].clone();
            while tools.len() < count {
                let mut more = more.clone();
                more["name"] = json!(format!("tool_{}", tools.len()));
                more["inputSchema"]["required"] = json!(["file"]);
                tools.push(more);
            }
        })
    };
    let pages = |last: u64| {
        Broken::reply(move |_, call, reply| {
            if call.method() != "tools/list" {
                return reply;
            }
            let cursor = call.body["params"]["cursor"].as_str().unwrap_or("1");
            let Ok(page) = cursor.parse::<u64>() else {
                return reply;
            };
            let mut list =
                json!({"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "public"});
            if page == 1 {
                let first: Value = serde_json::from_str(&reply.body).unwrap_or_default();
                list["tools"] = first["result"]["tools"].clone();
            }
            if page < last {
                list["nextCursor"] = json!((page + 1).to_string());
            }
            result_of(call, &list)
        })
    };
    let endless = |broken: Broken| {
        let report = checked(&broken.serve().url, LONG);
        report
            .findings
            .iter()
            .any(|finding| finding.rule == "tools/list-ends")
    };
    assert!(!endless(many(1_000)));
    assert!(endless(many(1_001)));
    assert!(!endless(pages(50)));
    assert!(endless(pages(51)));
}

#[test]
fn a_silent_server_is_given_up() {
    let brief = Duration::from_millis(200);
    let silent = "the server did not answer in time";
    check_trouble(
        &checked(&serve(|_| CannedReply::silence()).url, brief),
        silent,
    );
    let stalled = serve(|_| CannedReply::raw("text/event-stream", ": wait\n\n").left_open());
    check_trouble(&checked(&stalled.url, brief), silent);
}

#[test]
fn an_address_where_nobody_listens_is_a_finding() {
    // Port 1 is reserved, so no other test can be listening there.
    let report = checked("http://127.0.0.1:1/mcp", LONG);
    check_trouble(&report, "the connection is refused");
    assert!(!report.findings[0].received.is_empty());
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
            &checked(url, LONG),
            &format!("`{url}` is not an http or https address"),
        );
    }
}

#[test]
fn a_large_server_is_not_asked_for_everything() {
    let count_calls = |broken: Broken, fits: fn(&ReceivedCall) -> bool| {
        let server = broken.serve();
        let _ = check(
            &CheckTarget::Url(server.url.clone()),
            &broken.options,
            &|_| {},
        );
        server.calls().iter().filter(|call| fits(call)).count()
    };
    let results = Broken::payload("search", |payload| {
        let hit = |at: u64| json!({"id": format!("many-{at}"), "title": format!("Title {at}"), "url": ""});
        payload["results"] = (0..11).map(hit).collect();
    });
    let fetched = |call: &ReceivedCall| {
        let id = call.body["params"]["arguments"]["id"].as_str();
        call.header("mcp-method").is_some() && id.is_some_and(|id| id.starts_with("many-"))
    };
    assert_eq!(count_calls(results, fetched), 10);
    let tools = Broken::tools(|tools| {
        for at in 0..6 {
            let mut more = tools[2].clone();
            more["name"] = json!(format!("many_{at}"));
            tools.push(more);
        }
    });
    let called = |call: &ReceivedCall| {
        let name = call.body["params"]["name"].as_str();
        name.is_some_and(|name| name.starts_with("many_") || name == "show_status")
    };
    assert_eq!(count_calls(tools, called), 5);
    let widgets = Broken::result("resources/list", |result| {
        let entry = |at: u64| json!({"uri": format!("ui://many/{at}"), "name": "x"});
        result["resources"] = (0..11).map(entry).collect();
    });
    assert_eq!(
        count_calls(widgets, |call| call.method() == "resources/read"),
        10
    );
}

#[test]
fn a_tool_that_asks_for_sign_in_needs_its_metadata() {
    let broken = Broken::tool(|tool| {
        let schemes = json!([{"type": "oauth2", "scopes": ["docs.read"]}]);
        tool["securitySchemes"] = schemes.clone();
        tool["_meta"]["securitySchemes"] = schemes;
    });
    let report = checked(&broken.serve().url, LONG);
    let found: Vec<_> = report.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(found, ["auth/resource-metadata"]);
    assert!(
        report
            .skipped
            .iter()
            .any(|(rule, _)| *rule == "auth/challenge")
    );
}

#[test]
fn a_redirect_on_the_same_host_is_followed_once() {
    let leading = |location: fn(&str) -> String| {
        Broken::reply(move |origin, call, reply| {
            if call.path == "/mcp" && call.verb == "POST" {
                CannedReply::status(307).with("Location", &location(origin))
            } else {
                reply
            }
        })
    };
    for location in [
        |origin: &str| format!("{origin}/mcp/"),
        |_: &str| "/mcp/".to_owned(),
    ] {
        let report = checked(&leading(location).serve().url, LONG);
        let found: Vec<_> = report.findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(found, ["transport/no-redirect", "transport/slash"]);
        assert!(report.passed.len() > 100);
    }
    for location in [
        |_: &str| "http://127.0.0.1:1/mcp".to_owned(),
        |_: &str| "//127.0.0.1:1/".to_owned(),
        |origin: &str| format!("{origin}.a.example/"),
    ] {
        let server = leading(location).serve();
        let origin = server.url.trim_end_matches("/mcp");
        let message = format!(
            "the server answers `initialize` with status 307 and leads to `{}`",
            location(origin)
        );
        check_trouble(&checked(&server.url, LONG), &message);
    }
}
