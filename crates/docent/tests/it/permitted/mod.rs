//! Document permissions through the real server: each reader sees their own documents, and a forbidden document is
//! indistinguishable from a missing one, byte for byte.

mod permission_server;

use std::collections::BTreeMap;
use std::sync::Arc;

use docent::audit::{AuditLog, AuditSettings};
use serde_json::{Value, json};

use self::permission_server::{
    ASKS, GROUPS, NOBODY, PLAIN, PermissionServer, ReaderClient, ReaderRequest, TRACE,
};
use crate::process::{ServerProcess, TestDir, until};

const CALLS: usize = 10_000;
const CONCURRENT: usize = 64;

/// Whether the response about another group equals the response about a group that does not exist, but for its name.
fn looks_absent(answer: &str, absent: &str, other: &str) -> bool {
    answer.replace(other, NOBODY) == *absent
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_of_two_readers_show_nothing_of_the_other() {
    let server = Arc::new(PermissionServer::start(None).await);
    // Reference responses: what each reader gets about a group that does not exist.
    let mut absent: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut client = ReaderClient::new(&server);
    for group in GROUPS {
        for ask in ASKS {
            let answer = client.ask(ask, NOBODY, Some(&server.keys[group])).await;
            absent.entry(group).or_default().push(answer);
        }
    }
    let absent = Arc::new(absent);
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..CONCURRENT {
        let (server, absent) = (server.clone(), absent.clone());
        tasks.spawn(async move {
            let mut client = ReaderClient::new(&server);
            for n in (worker..CALLS).step_by(CONCURRENT) {
                let (own, other) = (GROUPS[n % 2], GROUPS[(n + 1) % 2]);
                let key = Some(server.keys[own].as_str());
                let kind = (n / 2) % (ASKS.len() * 2 + PLAIN.len());
                if let Some(ask) = ASKS.get(kind) {
                    let answer = client.ask(*ask, other, key).await;
                    let missing = &absent[own][kind];
                    assert!(looks_absent(&answer, missing, other), "{answer}\n{missing}");
                } else if let Some(ask) = ASKS.get(kind - ASKS.len()) {
                    let answer = client.ask(*ask, own, key).await;
                    assert!(
                        !answer.contains(other),
                        "a byte of the other group: {answer}"
                    );
                    let is_page = matches!(ask, ReaderRequest::Page(_));
                    assert!(
                        is_page || answer.contains(own),
                        "no document of the reader's own group: {answer}"
                    );
                } else {
                    let ask = PLAIN[kind - ASKS.len() * 2];
                    let answer = client.ask(ask, own, key).await;
                    assert!(
                        !answer.contains(other),
                        "a byte of the other group: {answer}"
                    );
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

/// Without it, a new tool could leak what this test never asks.
#[tokio::test]
async fn every_tool_is_asked_about_documents_of_others() {
    let server = PermissionServer::start(None).await;
    let mut client = ReaderClient::new(&server);
    let answer = client
        .ask(ReaderRequest::Rpc("tools/list", "{}"), "", None)
        .await;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let tools = body["result"]["tools"].as_array().unwrap();
    assert!(tools.len() >= 7, "{tools:?}");
    for tool in tools {
        let call = format!("{{\"name\":{},", tool["name"]);
        let is_asked = ASKS.iter().any(|ask| {
            matches!(ask, ReaderRequest::Rpc("tools/call", params) if params.starts_with(&call))
        });
        assert!(is_asked, "no request of `ASKS` calls {}", tool["name"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anonymous_callers_see_public_documents_alone() {
    let server = PermissionServer::start(None).await;
    let mut client = ReaderClient::new(&server);
    for group in GROUPS {
        for ask in ASKS {
            let answer = client.ask(ask, group, None).await;
            let missing = client.ask(ask, NOBODY, None).await;
            assert!(
                looks_absent(&answer, &missing, group),
                "{answer}\n{missing}"
            );
        }
    }
    for ask in PLAIN {
        let answer = client.ask(ask, "", None).await;
        assert!(
            GROUPS.iter().all(|group| !answer.contains(group)),
            "{answer}"
        );
    }
    let found = client.ask(PLAIN[0], "", None).await;
    assert!(found.contains("open-001"), "{found}");
    let page = client
        .ask(ReaderRequest::Page("/d/open-001"), "", None)
        .await;
    assert!(page.contains("cache-control: public"), "{page}");
    // Pages are opened in a browser, which has no token, so a restricted page needs a signed link.
    let key = Some(server.keys["pear"].as_str());
    let page = client
        .ask(ReaderRequest::Page("/d/pear-003"), "", key)
        .await;
    assert!(page.starts_with("HTTP/1.1 404"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "every kind of line is checked")]
async fn the_audit_log_has_every_call_without_names_or_queries() {
    let dir = TestDir::new();
    let path = dir.path().join("audit.jsonl");
    let audit = Arc::new(AuditLog::open(&path, &AuditSettings::default()).unwrap());
    let server = PermissionServer::start(Some(audit.clone())).await;
    let mut client = ReaderClient::new(&server);
    for group in GROUPS {
        for ask in [ASKS[0], ASKS[4], ASKS[0]] {
            client.ask(ask, group, Some(&server.keys[group])).await;
        }
    }
    client.ask(PLAIN[0], "", None).await;
    client.ask(ASKS[4], NOBODY, None).await;
    client
        .ask(
            ReaderRequest::Rpc("tools/call", r#"{"name":"nope","arguments":{}}"#),
            "",
            None,
        )
        .await;
    for (ask, key) in [
        (PLAIN[7], Some("pear")),
        (
            ReaderRequest::Rpc("resources/read", r#"{"uri":"docent://fields/ferry"}"#),
            None,
        ),
        (ReaderRequest::Page("/d/open-001?q=ferry"), None),
        (ReaderRequest::Page("/d/pear-003?exp=1&sig=canary"), None),
    ] {
        let key = key.map(|group| server.keys[group].as_str());
        client.ask(ask, "", key).await;
    }
    tokio::task::spawn_blocking(move || audit.close())
        .await
        .unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    for secret in ["canary", "reader-of", "docent_", "ferry"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let calls: Vec<_> = lines
        .iter()
        .filter(|line| line["event"] == "call")
        .collect();
    assert_eq!(calls.len(), 9, "{text}");
    assert_eq!(calls[0]["caller"], calls[1]["caller"]);
    assert_ne!(calls[0]["caller"], calls[3]["caller"]);
    assert_eq!(calls[0]["arguments"], calls[2]["arguments"]);
    assert_ne!(calls[0]["arguments"], calls[1]["arguments"]);
    assert_eq!(calls[1]["results"], json!(["pear-003"]));
    assert_eq!(calls[6]["caller"], "anonymous");
    let statuses: Vec<_> = calls
        .iter()
        .map(|call| call["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses[..7], ["done"; 7]);
    assert_eq!(statuses[7..], ["mistaken"; 2]);
    assert!(calls.iter().all(|call| call["trace"] == TRACE), "{text}");
    let events: Vec<_> = lines[10..]
        .iter()
        .map(|line| {
            (
                &line["event"],
                &line["results"],
                &line["status"],
                &line["tool"],
            )
        })
        .collect();
    let (done, mistaken, none) = (&json!("done"), &json!("mistaken"), &Value::Null);
    let expected = [
        (&json!("read"), &json!(["docent://corpus"]), done, none),
        (&json!("read"), &json!([]), mistaken, none),
        (&json!("page"), &json!(["open-001"]), done, none),
        (&json!("page"), &json!([]), mistaken, none),
    ];
    assert_eq!(events, expected, "{text}");
    assert!(
        lines[10..].iter().all(|line| line["trace"] == TRACE),
        "{text}"
    );
    assert_eq!(lines[10]["caller"], calls[0]["caller"]);
    assert_eq!(lines[12]["caller"], "anonymous");
    let verified = dir.run(&["audit", "verify", "audit.jsonl"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(
        verified.stdout.starts_with("intact: 14 lines"),
        "{verified:?}"
    );
    std::fs::write(&path, text.replacen("\"fetch\"", "\"fetsh\"", 1)).unwrap();
    let verified = dir.run(&["audit", "verify", "audit.jsonl"]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.stdout.contains("line 4:"), "{verified:?}");
    assert_eq!(dir.run(&["audit", "verify", "absent.jsonl"]).code, Some(2));
}

const RULES: &str = "search.mode = \"lexical\"\n[permissions]\ndefault = \"everyone\"\nfield = \"allowed\"\n\
    [[permissions.folder]]\npath = \"hr/**\"\ngroups = [\"hr\"]\n";

#[test]
fn rules_hold_for_a_folder_and_change_while_it_serves() {
    let dir = TestDir::small();
    dir.write("docs/hr/pay.md", "The ferry captain earns much.\n");
    dir.write(
        "docs/hr/list.csv",
        "id,title,text\nrow1,Pay,The ferry cook earns more.\n",
    );
    dir.write(
        "docs/board.md",
        "---\nallowed: [board]\n---\nThe ferry is sold.\n",
    );
    dir.write("docs/docent.toml", RULES);
    let server = ServerProcess::start(&dir, &["docs", "--audit-log", "audit.jsonl"]);
    server.wait_for("nobody can sign in, so callers see only what everyone may read");
    let ready = server.wait_until_synced();
    assert_eq!(ready.get("documents"), None, "{ready}");
    let ids = |server: &ServerProcess| {
        let found = server.call("find", &json!({"query": "ferry", "limit": 50}));
        let results = found["structuredContent"]["results"]
            .as_array()
            .unwrap()
            .clone();
        let mut ids: Vec<_> = results
            .iter()
            .map(|one| one["document_id"].to_string())
            .collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&server), ["\"ferry.md\""]);
    assert_eq!(
        server.call("fetch", &json!({"id": "hr/pay.md"}))["isError"],
        true
    );
    // The owner sees every document at the terminal.
    let found = dir.run(&["search", "ferry", "--path", "docs", "--json"]);
    assert_eq!(
        found.json()["results"].as_array().unwrap().len(),
        4,
        "{found:?}"
    );
    assert!(!found.stdout.contains("allowed"), "{found:?}");
    dir.write(
        "docs/docent.toml",
        &RULES.replace("groups = [\"hr\"]", "readers = \"everyone\""),
    );
    until(|| (ids(&server).len() == 3).then_some(()))
        .unwrap_or_else(|| panic!("{:?}", ids(&server)));
    dir.write(
        "docs/docent.toml",
        &RULES.replace("default = \"everyone\"", "default = \"nobody\""),
    );
    until(|| ids(&server).is_empty().then_some(())).unwrap_or_else(|| panic!("{:?}", ids(&server)));
    assert_eq!(
        server.call("fetch", &json!({"id": "ferry.md"}))["isError"],
        true
    );
    drop(server);
    let verified = dir.run(&["audit", "verify", "audit.jsonl"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let inside = dir.run(&["serve", "docs", "--audit-log", "docs/audit.jsonl"]);
    assert_eq!(inside.code, Some(2), "{inside:?}");
    assert!(
        inside
            .stderr
            .contains("`audit.file` is inside the documents folder"),
        "{inside:?}"
    );
}
