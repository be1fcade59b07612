//! Stdio programs: a few lines of shell are an MCP server.
#![cfg(unix)]

use std::time::Duration;

use docent_check::{CheckOptions, CheckProfile, CheckReport, CheckTarget, check};

/// A shell script that answers by the method in each line; the cases in `extra` come first.
fn script(extra: &str) -> CheckTarget {
    let tools = r#"{"tools":[{"name":"now","title":"Now","description":"Use this when the user asks for the time.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":false}}]}"#;
    let hello = r#"{"protocolVersion":"%s","capabilities":{"tools":{}},"serverInfo":{"name":"clock","version":"1"}}"#;
    let script = format!(
        r#"while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}}]*\).*/\1/p')
  say() {{ printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$1"; }}
  case "$line" in
  {extra}
  *'"initialize"'*)
    asked=$(printf '%s' "$line" | sed -n 's/.*"protocolVersion":"\([^"]*\)".*/\1/p')
    case "$asked" in 2025-*|2024-*) ;; *) asked=2025-11-25 ;; esac
    say "\"result\":$(printf '{hello}' "$asked")" ;;
  *'"notifications/'*) ;;
  *'"ping"'*) say '"result":{{}}' ;;
  *'"cursor"'*) say '"error":{{"code":-32602,"message":"no such page"}}' ;;
  *'"tools/list"'*) say '"result":{tools}' ;;
  *'"name":"now"'*) say '"result":{{"content":[{{"type":"text","text":"noon"}}]}}' ;;
  *'"tools/call"'*) say '"error":{{"code":-32602,"message":"no such tool"}}' ;;
  *) say '"error":{{"code":-32601,"message":"no such method"}}' ;;
  esac
done"#
    );
    CheckTarget::Program(vec!["sh".to_owned(), "-c".to_owned(), script])
}

fn checked(target: &CheckTarget, timeout: Duration) -> CheckReport {
    let options = CheckOptions {
        profiles: vec![
            CheckProfile::Protocol,
            CheckProfile::ChatGpt,
            CheckProfile::Claude,
        ],
        call_timeout: timeout,
        ..CheckOptions::default()
    };
    check(target, &options, &|_| {})
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_good_program_passes() {
    let report = checked(&script(""), LONG);
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|finding| format!("{} {} {}", finding.rule, finding.message, finding.received))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
    assert!(report.passed.contains(&"lifecycle/json-output"));
    assert!(
        report
            .skipped
            .iter()
            .any(|(rule, _)| *rule == "transport/get")
    );
    let revisions = report
        .facts
        .iter()
        .find(|(name, _)| *name == "revisions")
        .unwrap();
    assert_eq!(
        revisions.1,
        "2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05"
    );
}

#[test]
fn a_program_that_prints_its_log_is_found() {
    let report = checked(
        &script(r#"*'"tools/list"'*) echo "listing tools"; say '"result":{"tools":[]}' ;;"#),
        LONG,
    );
    assert!(
        report
            .findings
            .iter()
            .any(|finding| finding.rule == "lifecycle/json-output"),
        "{report:?}"
    );
}

#[test]
fn a_program_that_dies_is_started_again_and_found() {
    let report = checked(&script(r#"*'"id":"deep"'*) exit 1 ;;"#), LONG);
    assert!(
        report.passed.contains(&"security/survives"),
        "a host would start it again: {report:?}"
    );
    let report = checked(&script("*) exit 1 ;;"), LONG);
    assert_eq!(
        report.findings[0].message,
        "the program ended with exit status: 1 before it answered `initialize`"
    );
}

#[test]
fn a_line_ends_at_its_bound() {
    let padded = |length: usize| {
        let pad = format!("head -c {length} /dev/zero | tr '\\0' ' '");
        script(&format!(
            "*'\"prompts/list\"'*) {pad}; say '\"error\":{{\"code\":-32601,\"message\":\"x\"}}' ;;"
        ))
    };
    let too_large = |length: usize| {
        let report = checked(&padded(length), LONG);
        report
            .findings
            .iter()
            .any(|finding| finding.rule == "limits/answer-bytes")
    };
    assert!(!too_large(8 * 1024 * 1024 - 1024));
    assert!(too_large(8 * 1024 * 1024 + 1));
}
