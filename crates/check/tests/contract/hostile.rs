//! Servers and programs that attack the check: their cost is bounded, their text is sanitized, and they cannot direct
//! the check to other hosts (SSRF).

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use docent_check::{CheckOptions, CheckProfile, CheckReport, CheckTarget, check, render};
use serde_json::{Value, json};

use crate::broken::{Broken, result_of};
use crate::server::{CannedReply, serve, serve_at};

const LONG: Duration = Duration::from_secs(20);

fn checked(target: &CheckTarget, timeout: Duration) -> CheckReport {
    let options = CheckOptions {
        profiles: CheckProfile::ALL.to_vec(),
        call_timeout: timeout,
        ..CheckOptions::default()
    };
    check(target, &options, &|_| {})
}

/// A server that requires sign-in chooses the URL of its metadata. The check never calls link-local addresses, such as
/// a cloud's metadata service; the unit tests of `connection::network` cover targets on the internet.
#[test]
fn metadata_leads_to_no_link_local_address() {
    let broken = Broken::reply(|origin, call, mut reply| {
        let blocked = "https://169.254.169.254";
        if reply.status == 401 {
            let challenge = format!("Bearer resource_metadata=\"{blocked}/latest/meta-data\"");
            reply.headers.retain(|(name, _)| name != "WWW-Authenticate");
            return reply.with("WWW-Authenticate", &challenge);
        }
        if call.path.contains("oauth-protected-resource") {
            let document =
                json!({"resource": format!("{origin}/mcp"), "authorization_servers": [blocked]});
            return CannedReply::json(&document);
        }
        reply
    });
    let server = broken.sign_in().serve();
    let report = checked(&CheckTarget::Url(server.url), LONG);
    let metadata = report
        .findings
        .iter()
        .find(|finding| finding.rule == "auth/server-metadata")
        .unwrap();
    assert!(
        metadata.received.contains("the address was not called"),
        "{metadata:?}"
    );
}

/// Other schemes, plain http to other hosts, and hosts that only begin like a loopback address are never requested.
#[test]
fn metadata_leads_to_no_other_scheme() {
    for away in [
        "file:///etc/passwd",
        "http://127.0.0.1.evil.invalid/x",
        "http://public.invalid/x",
        "gopher://127.0.0.1/",
        "https://",
    ] {
        let broken = Broken::reply(move |_, _, mut reply| {
            if reply.status == 401 {
                let challenge = format!("Bearer resource_metadata=\"{away}\"");
                reply.headers.retain(|(name, _)| name != "WWW-Authenticate");
                return reply.with("WWW-Authenticate", &challenge);
            }
            reply
        });
        let server = broken.sign_in().serve();
        let report = checked(&CheckTarget::Url(server.url), LONG);
        assert!(
            !format!("{report:?}").contains(&format!("GET {away}")),
            "{away}"
        );
    }
}

#[test]
fn the_json_of_an_answer_has_a_bound_of_memory() {
    let broken = Broken::reply(|_, call, reply| {
        if call.method() == "prompts/list" {
            let many = vec![Value::Array(Vec::new()); 500_000];
            return result_of(call, &json!({ "prompts": many }));
        }
        reply
    });
    let report = checked(&CheckTarget::Url(broken.serve().url), LONG);
    let found = report
        .findings
        .iter()
        .find(|finding| finding.rule == "limits/answer-bytes")
        .unwrap();
    assert_eq!(
        found.message,
        "the JSON of an answer takes more than 32 MiB of memory"
    );
}

/// Page after page of small text that is large in memory: the check stops when its budget is spent, and skips the rules
/// whose data it did not read.
#[test]
fn all_answers_together_have_a_bound_of_memory() {
    let server = Broken::reply(|_, call, reply| {
        if call.method() != "tools/list" {
            return reply;
        }
        // About 20 MiB a page.
        let many = vec![json!({"a": 0}); 40_000];
        let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "_meta": {"x": many}});
        let list = json!({"tools": [tool], "nextCursor": "next", "resultType": "complete", "ttlMs": 0, "cacheScope": "public"});
        result_of(call, &list)
    })
    .serve();
    let report = checked(&CheckTarget::Url(server.url.clone()), LONG);
    assert!(
        (2..=4).contains(&report.tools.len()),
        "{}",
        report.tools.len()
    );
    for rule in ["tools/list-ends", "tools/list-stable"] {
        assert!(
            report.skipped.iter().any(|(skipped, _)| *skipped == rule),
            "{rule}"
        );
    }
}

#[test]
fn fifty_thousand_tools_are_a_thousand() {
    let broken = Broken::reply(|_, call, reply| {
        if call.method() != "tools/list" {
            return reply;
        }
        let tool = |n: usize| json!({"name": format!("t{n}\u{1b}[31m<img>")});
        let tools: Vec<Value> = (0..50_000).map(tool).collect();
        let list =
            json!({"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"});
        result_of(call, &list)
    });
    let report = checked(&CheckTarget::Url(broken.serve().url), LONG);
    assert_eq!(report.tools.len(), 1_000);
    assert!(report.findings.len() <= 200, "{}", report.findings.len());
    for rule in docent_check::rules() {
        let of_rule = report.findings.iter().filter(|one| one.rule == rule.id);
        assert!(of_rule.count() <= 10, "{}", rule.id);
    }
    let texts = [
        render::terminal(&report, render::TerminalStyle::Plain),
        render::html(&report),
        render::markdown(&report),
        render::junit(&report),
        render::json(&report).to_string(),
        render::sarif(&report).to_string(),
    ];
    for text in &texts {
        assert!(text.len() < 1024 * 1024, "{} bytes", text.len());
        assert!(!text.contains('\u{1b}'));
    }
    // In Markdown, what stands between backticks is text.
    let markdown: String = texts[2].split('`').step_by(2).collect();
    for text in [&texts[1], &markdown, &texts[3]] {
        assert!(!text.contains("<img>"), "markup of the server in a report");
    }
}

/// A server that repeats the same bytes, with or without a pause, and never completes its response.
fn dripping(piece: &'static [u8], pause: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\n");
                while sent.is_ok() {
                    std::thread::sleep(pause);
                    sent = stream.write_all(piece);
                }
            });
        }
    });
    url
}

#[test]
fn headers_have_a_bound_in_bytes_and_time() {
    let flood = dripping(
        b"X-Flood: 0123456789012345678901234567890123456789\r\n",
        Duration::ZERO,
    );
    let report = checked(&CheckTarget::Url(flood), LONG);
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].rule, "lifecycle/answers");
    assert_ne!(
        report.findings[0].message,
        "the server did not answer in time"
    );
    let slow = dripping(b"x", Duration::from_millis(20));
    let report = checked(&CheckTarget::Url(slow), Duration::from_millis(300));
    assert_eq!(
        report.findings[0].message,
        "the server did not answer in time"
    );
    let comments = serve(|_| CannedReply::raw("text/event-stream", ": wait\n\n").left_open());
    let report = checked(&CheckTarget::Url(comments.url), Duration::from_millis(300));
    assert_eq!(
        report.findings[0].message,
        "the server did not answer in time"
    );
}

/// Responses that never end count against the budget for what was read of them.
#[test]
fn endless_answers_are_counted_against_the_check() {
    let server = Broken::reply(|_, call, reply| {
        let is_known = ["initialize", "server/discover", "notifications/initialized"];
        if is_known.contains(&call.method()) {
            return reply;
        }
        CannedReply::endless("application/json")
    })
    .serve();
    let report = checked(&CheckTarget::Url(server.url.clone()), LONG);
    assert!(!report.findings.is_empty());
    // Eight megabytes each, sixty-four in all.
    let endless = server
        .calls()
        .iter()
        .filter(|call| call.method() == "tools/list")
        .count();
    assert!(endless <= 9, "{endless}");
}

#[test]
fn the_redirect_of_a_target_goes_to_the_same_machine() {
    // The host name is resolved once, for both URLs.
    let patience = crate::server::Patience { headers: None };
    let server = serve_at("/mcp", patience, |origin, call| {
        if call.path == "/mcp" {
            return CannedReply::status(308).with("Location", &format!("{origin}/there"));
        }
        CannedReply::status(404)
    });
    let report = checked(&CheckTarget::Url(server.url.clone()), LONG);
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert!(server.calls().iter().any(|call| call.path == "/there"));
}

#[cfg(unix)]
mod programs {
    use super::*;

    fn shell(script: &str) -> CheckTarget {
        CheckTarget::Program(vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()])
    }

    fn root(script: &str, timeout: Duration) -> String {
        let report = checked(&shell(script), timeout);
        assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
        report.findings[0].message.clone()
    }

    #[test]
    fn floods_of_a_program_end_at_their_bounds() {
        let flooded = "more than 1000 lines came before the answer";
        let lines = r#"yes '{"jsonrpc":"2.0","method":"notifications/progress"}'"#;
        assert_eq!(root(lines, LONG), flooded);
        assert_eq!(root("yes", LONG), flooded);
        assert_eq!(root("yes ''", LONG), flooded);
        let endless = "tr '\\0' x </dev/zero";
        assert_eq!(
            root(endless, LONG),
            "the answer has more than 8388608 bytes"
        );
    }

    #[test]
    fn a_flood_of_stderr_is_read_and_its_end_kept() {
        let report = checked(
            &shell("yes 0123456789 | head -n 200000 >&2; echo the end >&2; exit 1"),
            LONG,
        );
        let received = &report.findings[0].received;
        assert!(received.ends_with("0123456789 / the end"), "{received}");
        assert!(received.len() < 700, "{received}");
    }

    /// The grandchild left the process group and holds stdout open; the check does not wait for it.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_that_forks_and_ends_is_not_waited_for() {
        let began = std::time::Instant::now();
        let message = root("setsid sleep 30 & exit 7", LONG);
        assert_eq!(
            message,
            "the program ended with exit status: 7 before it answered `initialize`"
        );
        assert!(began.elapsed() < LONG);
    }

    /// A program that reads nothing, ignores signals and never exits by itself.
    #[test]
    fn a_program_that_reads_nothing_and_never_ends_is_given_up() {
        let folder = std::env::temp_dir().join(format!("docent-check-{}", std::process::id()));
        let _ = std::fs::remove_file(&folder);
        let script = format!(
            "trap '' TERM HUP PIPE; sleep 600 & echo $! >> {}; wait",
            folder.display()
        );
        let message = root(&script, Duration::from_millis(200));
        assert_eq!(message, "the program did not answer `initialize` in time");
        let started = std::fs::read_to_string(&folder).unwrap();
        let _ = std::fs::remove_file(&folder);
        for pid in started.split_whitespace() {
            // It was killed; the system may take a moment to remove the process.
            let is_there = || {
                let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
                state.is_ok_and(|state| !state.contains(") Z"))
            };
            let end = std::time::Instant::now() + LONG;
            while is_there() && std::time::Instant::now() < end {
                std::thread::sleep(Duration::from_millis(10));
            }
            assert!(!is_there(), "its child {pid} is still there");
        }
    }
}
