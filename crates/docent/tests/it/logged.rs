//! Privacy of the log: at the trace level it contains no word of documents, queries or credentials.

use serde_json::{Value, json};

use crate::process::{ServerProcess, TestDir};

/// Unique marker words, one for each kind of text that must not be in a log.
const TEXT: &str = "kelpwright";
const TITLE: &str = "Mossgallon";
const QUERY: &str = "thistledrum";
const TOKEN: &str = "pebblequill";

fn corpus() -> TestDir {
    let dir = TestDir::small();
    let note =
        format!("---\ntitle: {TITLE}\nsecret: {TEXT}field\n---\nThe {TEXT} sails at noon.\n");
    dir.write("docs/note.md", &note);
    dir.write(
        "docs/page.html",
        &format!("<html><title>{TITLE} two</title><p>{TEXT}</p></html>"),
    );
    dir.write(
        "docs/rows.csv",
        &format!("title,text\n{TITLE} three,{TEXT} rows\n"),
    );
    dir.write(
        "docs/broken.json",
        &format!("[{{\"title\": \"{TITLE}\", \"text\": \"{TEXT}"),
    );
    dir.write(
        "docs/broken.md",
        &format!("---\ntitle: {TITLE}: {TEXT}: x\n---\n{TEXT}\n"),
    );
    dir
}

fn calls() -> Vec<Value> {
    let call = |name: &str, arguments: Value, meta: Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
               "params": {"name": name, "arguments": arguments, "_meta": meta}})
    };
    let none = json!({});
    vec![
        call(
            "search",
            json!({"query": format!("{QUERY} {TEXT}")}),
            none.clone(),
        ),
        call(
            "search",
            json!({"query": format!("{QUERY} secret:{QUERY} date:{QUERY}")}),
            none.clone(),
        ),
        call(
            "search",
            json!({"query": QUERY}),
            json!({"progressToken": QUERY}),
        ),
        call("search", json!({"query": [QUERY]}), none.clone()),
        call("fetch", json!({"id": "note.md"}), none.clone()),
        call("fetch", json!({"id": QUERY}), none.clone()),
        call(
            "find",
            json!({"query": QUERY, "secret": QUERY, "limit": 3}),
            none.clone(),
        ),
        call("show_results", json!({"query": QUERY}), none.clone()),
        call(
            "show_document",
            json!({"id": "note.md", "query": QUERY}),
            none.clone(),
        ),
        call(QUERY, json!({"query": QUERY}), none),
        json!({"jsonrpc": "2.0", "id": QUERY, "method": "resources/read", "params": {"uri": format!("docent://{QUERY}")}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "prompts/get", "params": {"name": "research", "arguments": {"question": QUERY}}}),
        json!({"jsonrpc": "2.0", "id": 4, "method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": QUERY}, "argument": {"name": "a", "value": QUERY}}}),
    ]
}

fn assert_no_markers(log: &str) {
    for line in log.lines() {
        for word in [TEXT, TITLE, QUERY, TOKEN] {
            assert!(!line.contains(word), "`{word}` in: {line}");
        }
    }
}

#[test]
fn the_log_of_a_server_contains_no_text_of_callers() {
    let dir = corpus();
    let server = ServerProcess::start(&dir, &["docs", "--log", "trace"]);
    server.wait_until_synced();
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for call in calls() {
        let (head, _) = server.raw("POST", "/mcp", Some(&call), &token);
        assert!(head.starts_with("HTTP/1.1 "), "{head}");
    }
    server.raw("POST", "/mcp", Some(&json!(QUERY)), &token);
    server.raw("GET", &format!("/d/{QUERY}"), None, &token);
    server.raw("GET", "/d/note.md", None, &token);
    let modern = format!("MCP-Protocol-Version: {QUERY}\r\n{token}");
    server.raw("POST", "/mcp", calls().first(), &modern);
    let log = server.log();
    // The log level is high enough for the test to mean something.
    assert!(log.contains("DEBUG") || log.contains("TRACE"), "{log}");
    assert_no_markers(&log);
}

#[test]
fn the_log_over_stdio_contains_no_text_of_callers() {
    let dir = corpus();
    let calls = calls().into_iter().map(|call| call.to_string());
    let ran = dir.stdio(&["--log", "trace"], calls.chain([QUERY.to_owned()]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.lines().count() > 5, "{ran:?}");
    assert_no_markers(&ran.stderr);
}

/// The report of an indexing run names files and reasons, and quotes nothing from the files.
#[test]
fn the_report_of_indexing_contains_no_text_of_documents() {
    let dir = corpus();
    let ran = dir.run(&["index", "docs", "--log", "trace"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("broken.json"), "{ran:?}");
    assert_no_markers(&ran.stderr);
    assert_no_markers(&ran.stdout);
}
