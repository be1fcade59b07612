//! Documents that not everyone may read, through the real server: each caller sees their own, and what is
//! another's looks like what is not there, to the byte.

mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use docent::audit::{AuditLog, AuditSettings};
use serde_json::{Value, json};

use self::world::{ASKS, Ask, Client, GROUPS, NOBODY, PLAIN, TRACE, World};
use crate::process::{Dir, Server, until};

const CALLS: usize = 10_000;
const AT_ONCE: usize = 64;

/// The answer about the other group is the answer about no group, but for the name that was asked with.
fn is_absent(answer: &str, absent: &str, other: &str) -> bool {
    answer.replace(other, NOBODY) == *absent
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_of_two_readers_show_nothing_of_the_other() {
    let world = Arc::new(World::start(None).await);
    // What each hears about a group that is not there.
    let mut absent: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut client = Client::new(&world);
    for group in GROUPS {
        for ask in ASKS {
            let answer = client.ask(ask, NOBODY, Some(&world.keys[group])).await;
            absent.entry(group).or_default().push(answer);
        }
    }
    let absent = Arc::new(absent);
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..AT_ONCE {
        let (world, absent) = (world.clone(), absent.clone());
        tasks.spawn(async move {
            let mut client = Client::new(&world);
            for n in (worker..CALLS).step_by(AT_ONCE) {
                let (own, other) = (GROUPS[n % 2], GROUPS[(n + 1) % 2]);
                let key = Some(world.keys[own].as_str());
                let kind = (n / 2) % (ASKS.len() * 2 + PLAIN.len());
                if let Some(ask) = ASKS.get(kind) {
                    let answer = client.ask(*ask, other, key).await;
                    let missing = &absent[own][kind];
                    assert!(is_absent(&answer, missing, other), "{answer}\n{missing}");
                } else if let Some(ask) = ASKS.get(kind - ASKS.len()) {
                    let answer = client.ask(*ask, own, key).await;
                    assert!(!answer.contains(other), "a foreign byte: {answer}");
                    let is_page = matches!(ask, Ask::Page(_));
                    assert!(
                        is_page || answer.contains(own),
                        "nothing of one's own: {answer}"
                    );
                } else {
                    let ask = PLAIN[kind - ASKS.len() * 2];
                    let answer = client.ask(ask, own, key).await;
                    assert!(!answer.contains(other), "a foreign byte: {answer}");
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_not_signed_in_sees_what_is_for_everyone() {
    let world = World::start(None).await;
    let mut client = Client::new(&world);
    for group in GROUPS {
        for ask in ASKS {
            let answer = client.ask(ask, group, None).await;
            let missing = client.ask(ask, NOBODY, None).await;
            assert!(is_absent(&answer, &missing, group), "{answer}\n{missing}");
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
    let page = client.ask(Ask::Page("/d/open-001"), "", None).await;
    assert!(page.contains("cache-control: public"), "{page}");
    // A browser has no token: what is not for everyone opens to a signed link alone.
    let key = Some(world.keys["pear"].as_str());
    let page = client.ask(Ask::Page("/d/pear-003"), "", key).await;
    assert!(page.starts_with("HTTP/1.1 404"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "each kind of line is looked at")]
async fn every_call_is_written_down_without_names_or_questions() {
    let dir = Dir::new();
    let path = dir.path().join("audit.jsonl");
    let audit = Arc::new(AuditLog::open(&path, &AuditSettings::default()).unwrap());
    let world = World::start(Some(audit.clone())).await;
    let mut client = Client::new(&world);
    for group in GROUPS {
        for ask in [ASKS[0], ASKS[4], ASKS[0]] {
            client.ask(ask, group, Some(&world.keys[group])).await;
        }
    }
    client.ask(PLAIN[0], "", None).await;
    client.ask(ASKS[4], NOBODY, None).await;
    client
        .ask(
            Ask::Rpc("tools/call", r#"{"name":"nope","arguments":{}}"#),
            "",
            None,
        )
        .await;
    for (ask, key) in [
        (PLAIN[7], Some("pear")),
        (
            Ask::Rpc("resources/read", r#"{"uri":"docent://fields/ferry"}"#),
            None,
        ),
        (Ask::Page("/d/open-001?q=ferry"), None),
        (Ask::Page("/d/pear-003?exp=1&sig=canary"), None),
    ] {
        let key = key.map(|group| world.keys[group].as_str());
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
    let told: Vec<_> = lines[10..]
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
    assert_eq!(told, expected, "{text}");
    assert!(
        lines[10..].iter().all(|line| line["trace"] == TRACE),
        "{text}"
    );
    assert_eq!(lines[10]["caller"], calls[0]["caller"]);
    assert_eq!(lines[12]["caller"], "anonymous");
    let verified = dir.run(&["audit", "verify", "audit.jsonl"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(
        verified.stdout.starts_with("whole: 14 lines"),
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
    let dir = Dir::small();
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
    let server = Server::start(&dir, &["docs", "--audit-log", "audit.jsonl"]);
    server.wait_for("nobody can sign in, so callers see only what everyone may read");
    let ready = server.wait_until_synced();
    assert_eq!(ready.get("documents"), None, "{ready}");
    let ids = |server: &Server| {
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
    // The owner, at the terminal, sees all of it.
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
            .contains("`audit.file` lies among the documents"),
        "{inside:?}"
    );
}
