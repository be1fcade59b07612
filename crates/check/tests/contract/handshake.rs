//! Every way in which a handshake fails, with a real server or program for each: the message of the one finding, and
//! its fix.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use docent_check::{CheckOptions, CheckProfile, CheckReport, CheckTarget, Severity, check};
use serde_json::json;

use crate::broken::Broken;
use crate::server::{CannedReply, ReceivedCall, serve};

const LONG: Duration = Duration::from_secs(20);
const BRIEF: Duration = Duration::from_millis(300);

fn checked(target: &CheckTarget, timeout: Duration) -> CheckReport {
    let options = CheckOptions {
        profiles: CheckProfile::ALL.to_vec(),
        call_timeout: timeout,
        ..CheckOptions::default()
    };
    check(target, &options, &|_| {})
}

/// Asserts that there is exactly one finding, with this message and these words in its fix, and that every other rule
/// is skipped with its reason.
fn check_root(report: &CheckReport, message: &str, hint: &str) {
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|finding| (finding.rule, finding.severity, finding.message.as_str()))
        .collect();
    assert_eq!(
        found,
        [("lifecycle/answers", Severity::Error, message)],
        "{hint}"
    );
    let fix = report.findings[0].fix;
    assert!(fix.contains(hint), "{message}: {fix}");
    let others = report
        .skipped
        .iter()
        .filter(|(_, reason)| !reason.starts_with("not checked, because"));
    assert_eq!(others.collect::<Vec<_>>(), [] as [&(_, _); 0]);
    assert!(report.passed.is_empty(), "{:?}", report.passed);
}

fn page(status: u16, html: &str) -> CannedReply {
    CannedReply::raw("text/html; charset=utf-8", html).coded(status)
}

type Case = (fn(&ReceivedCall) -> CannedReply, &'static str, &'static str);

#[test]
fn unexpected_answers_to_initialize_are_described() {
    let cases: [Case; 19] = [
        (
            |_| page(200, "<!doctype html><title>Welcome\u{1b}[2J</title>"),
            "a web page answers `initialize`: `text/html`, a page called `Welcome\u{FFFD}[2J`",
            "correct the path",
        ),
        (
            |_| CannedReply::raw("text/plain", "hello"),
            "the answer to `initialize` is neither JSON nor an event stream, but `text/plain`",
            "`Content-Type`",
        ),
        (
            |_| CannedReply::status(200),
            "the server answers `initialize` with status 200 and an empty body",
            "in the answer to the same POST",
        ),
        (
            |_| CannedReply::status(202),
            "the server answers `initialize` with status 202 and an empty body",
            "in the answer to the same POST",
        ),
        (
            |_| CannedReply::raw("application/json", "{\"status\": \"ok\"}"),
            "the answer to `initialize` is JSON, but not a JSON-RPC answer to it",
            "another service",
        ),
        (
            |_| CannedReply::raw("application/json", "{nonsense"),
            "the answer to `initialize` is not valid JSON",
            "one whole JSON-RPC message",
        ),
        (
            |_| CannedReply::raw("text/event-stream", ": nothing\n\n"),
            "the event stream ends without an answer to `initialize`",
            "before it ends",
        ),
        (
            |_| CannedReply::status(302).with("Location", "https://login.example/?next=mcp"),
            "the server answers `initialize` with status 302 and leads to `https://login.example/?next=mcp`",
            "a login page",
        ),
        (
            |_| CannedReply::status(400),
            "the server answers `initialize` with status 400 and an empty body",
            "look at what it says",
        ),
        (
            |_| page(403, "<html><title>Attention required</title>"),
            "the server answers `initialize` with status 403 and `text/html`, a page called `Attention required`",
            "bot protection",
        ),
        (
            |_| CannedReply::raw("application/json", "{\"error\": \"forbidden\"}").coded(403),
            "the server answers `initialize` with status 403 and `application/json`",
            "`Host`",
        ),
        (
            |_| page(404, "<h1>Not Found</h1>"),
            "the server answers `initialize` with status 404 and `text/html`",
            "MCP endpoints often end in `/mcp`",
        ),
        (
            |_| CannedReply::status(405).with("Allow", "GET"),
            "the server answers `initialize` with status 405 and an empty body",
            "streamable HTTP",
        ),
        (
            |_| CannedReply::status(415),
            "the server answers `initialize` with status 415 and an empty body",
            "application/json",
        ),
        (
            |_| CannedReply::status(429),
            "the server answers `initialize` with status 429 and an empty body",
            "rate limit",
        ),
        (
            |_| CannedReply::raw("text/plain", "boom").coded(500),
            "the server answers `initialize` with status 500 and `text/plain`",
            "log",
        ),
        (
            |_| CannedReply::status(502),
            "the server answers `initialize` with status 502 and an empty body",
            "behind the proxy",
        ),
        (
            |_| CannedReply::status(504),
            "the server answers `initialize` with status 504 and an empty body",
            "gave up waiting",
        ),
        (
            |call| {
                CannedReply::json(&json!({"jsonrpc": "2.0", "id": call.body["id"],
                    "error": {"code": -32600, "message": "no\nway"}}))
                .coded(400)
            },
            "the server refuses `initialize` with code -32600: no\u{FFFD}way (status 400)",
            "look at what it says",
        ),
    ];
    for (reply, message, hint) in cases {
        let server = serve(reply);
        let report = checked(&CheckTarget::Url(server.url.clone()), LONG);
        check_root(&report, message, hint);
        // A server that fails the handshake gets no further requests.
        assert!(server.calls().len() <= 2, "{message}");
    }
}

/// A TCP server that writes these bytes to every connection, and then waits for the client to close it.
fn raw(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            std::thread::spawn(move || {
                let _ = stream.write_all(bytes);
                let _ = stream.read_to_end(&mut Vec::new());
            });
        }
    });
    address
}

#[test]
fn connections_that_fail_are_told_apart() {
    let at = |url: String, timeout| checked(&CheckTarget::Url(url), timeout);
    // Port 1 is reserved, so no other test can be listening there.
    check_root(
        &at("http://127.0.0.1:1/mcp".to_owned(), LONG),
        "the connection is refused",
        "start the server, or correct the port",
    );
    check_root(
        &at("https://host.invalid/mcp".to_owned(), LONG),
        "the host name cannot be resolved",
        "DNS",
    );
    let silent = serve(|_| CannedReply::silence());
    check_root(
        &at(silent.url, BRIEF),
        "the server did not answer in time",
        "`--timeout`",
    );
    let plain = raw(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let report = at(format!("https://{plain}/mcp"), LONG);
    let message = report.findings[0].message.clone();
    assert!(
        message.starts_with("the TLS handshake failed: "),
        "{message}"
    );
    check_root(&report, &message, "`http://`");
    // The TLS alert that a server sends to a client that speaks plain HTTP.
    let tls = raw(b"\x15\x03\x01\x00\x02\x02\x46\r\n\r\n");
    let report = at(format!("http://{tls}/mcp"), LONG);
    let message = report.findings[0].message.clone();
    assert!(
        message.starts_with("the response is not HTTP: "),
        "{message}"
    );
    check_root(&report, &message, "`https://`");
}

#[test]
fn a_refused_token_is_not_a_missing_one() {
    let locked = |token: Option<&str>| {
        let broken = Broken::nothing().sign_in();
        let token = token.map(str::to_owned);
        let broken = broken.checked(|options| options.token.clone_from(&token));
        check(
            &CheckTarget::Url(broken.serve().url),
            &broken.options,
            &|_| {},
        )
    };
    let report = locked(Some("stale"));
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|finding| &finding.message)
        .collect();
    assert_eq!(found, ["the server refuses the token with status 401"]);
    assert!(report.findings[0].fix.contains("--login"));
    let report = locked(None);
    assert_eq!(report.findings, [], "a server may require sign-in");
    let is_skipped =
        |(_, reason): &(_, &str)| *reason == "the server asks for sign-in; give a token";
    assert!(report.skipped.iter().any(is_skipped));
}

#[cfg(unix)]
mod programs {
    use super::*;

    fn shell(script: &str) -> CheckTarget {
        CheckTarget::Program(vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()])
    }

    #[test]
    fn how_a_program_fails_is_named() {
        let nobody = CheckTarget::Program(vec!["/no/such/program".to_owned()]);
        check_root(
            &checked(&nobody, LONG),
            "`/no/such/program` cannot be started: No such file or directory (os error 2)",
            "PATH",
        );
        let folder = CheckTarget::Program(vec!["/".to_owned()]);
        check_root(
            &checked(&folder, LONG),
            "`/` cannot be started: Permission denied (os error 13)",
            "executable",
        );
        let cases = [
            (
                "exit 0",
                "the program ended with exit status: 0 before it answered `initialize`",
                "run the command in a terminal",
                "",
            ),
            (
                "echo starting >&2; printf 'no key\\033[31m\\n' >&2; exit 3",
                "the program ended with exit status: 3 before it answered `initialize`",
                "what it says on stderr",
                "stderr: starting / no key\u{FFFD}[31m",
            ),
            (
                "echo Usage: server; exit 2",
                "the program ended with exit status: 2 before it answered `initialize`",
                "nothing but messages to stdout",
                "stdout: Usage: server",
            ),
            (
                "kill -9 $$",
                "the program ended with signal: 9 (SIGKILL) before it answered `initialize`",
                "run the command in a terminal",
                "",
            ),
        ];
        for (script, message, hint, evidence) in cases {
            let report = checked(&shell(script), LONG);
            check_root(&report, message, hint);
            let received = &report.findings[0].received;
            assert!(received.contains(evidence), "{script}: {received}");
        }
        let report = checked(&shell("echo Listening on 80; cat >/dev/null"), BRIEF);
        check_root(
            &report,
            "the program writes something other than JSON to stdout, and no answer",
            "write logs to stderr",
        );
        let report = checked(&shell("echo waiting >&2; cat >/dev/null"), BRIEF);
        check_root(
            &report,
            "the program did not answer `initialize` in time",
            "flush stdout",
        );
        assert!(report.findings[0].received.contains("stderr: waiting"));
    }
}
