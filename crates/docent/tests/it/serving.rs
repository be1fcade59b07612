//! `docent serve` as a real process: indexing at start, the tools over HTTP and stdio, shutdown, and what it prints.

use serde_json::{Value, json};

use crate::process::{ProcessOutput, ServerProcess, TestDir, shown};

/// Id of the pseudo document that describes the search itself.
const ABOUT: &str = "docent:about-this-search";

fn text(result: &Value) -> Value {
    assert_eq!(
        result["content"].as_array().map(Vec::len),
        Some(1),
        "{result}"
    );
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

#[test]
fn a_new_folder_is_indexed_searched_and_read() {
    let dir = TestDir::small();
    let server = ServerProcess::start(&dir, &["docs"]);
    let ready = server.wait_until_synced();
    assert_eq!(ready["ready"], true);
    assert_eq!(ready["documents"], 3);
    assert_eq!(ready["lexical"], json!({"state": "ready", "documents": 3}));
    let vectors = server.wait_until_embedded();
    assert_eq!(vectors, json!({"state": "ready", "documents": 3}));
    let found = server.call("search", &json!({"query": "ferry"}));
    let expected = json!({"results": [
        {"id": "ferry.md", "title": "The ferry", "url": "", "text": "The ferry sails at nine."}
    ]});
    assert_eq!(
        (&found["structuredContent"], text(&found)),
        (&expected, expected.clone())
    );
    let read = server.call("fetch", &json!({"id": "r1"}));
    let expected = json!({
        "id": "r1", "title": "Levee", "text": "The levee holds.", "url": "https://a.example/r1",
        "metadata": {
            "sha256": "3cc14f8f8b926e1f4f0c9d10ce14c34a4bae89b0cd3db28032c7934cfed8fff6",
            "source": "records.jsonl", "word_count": "3"
        }
    });
    assert_eq!(
        (&read["structuredContent"], text(&read)),
        (&expected, expected.clone())
    );
    let missing = server.call("fetch", &json!({"id": "r2"}));
    assert_eq!(missing["isError"], true);
    assert_eq!(
        missing["content"][0]["text"],
        "no document with id `r2`\nhint: ids come from `search`; search again"
    );
    let empty = server.call("search", &json!({"query": ""}));
    let only = &empty["structuredContent"]["results"];
    assert_eq!(
        (only.as_array().map(Vec::len), &only[0]["id"]),
        (Some(1), &json!(ABOUT))
    );
    let fields = server.call("fetch", &json!({"id": ABOUT}));
    let text = fields["structuredContent"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("# About this search\n\nThere are 3 documents."),
        "{text}"
    );
    let extra = server.call("search", &json!({"query": "ferry", "limit": 3}));
    assert_eq!(extra["isError"], true, "{extra}");
}

#[test]
fn the_tools_are_listed_exactly_as_hosts_require() {
    let dir = TestDir::small();
    dir.write("docs/docent.toml", "title = \"Harbour papers\"\n");
    let server = ServerProcess::start(&dir, &["docs"]);
    server.wait_until_synced();
    let list = server.mcp("tools/list", &json!({}));
    let [search, fetch, ..] = list["tools"].as_array().unwrap().as_slice() else {
        panic!("{list}")
    };
    assert_eq!(
        search["inputSchema"],
        json!({"type":"object","properties":{"query":{"type":"string","description":"Search query."}},
            "required":["query"],"additionalProperties":false})
    );
    assert_eq!(
        fetch["inputSchema"],
        json!({"type":"object","properties":{"id":{"type":"string","description":"Document id from search."}},
            "required":["id"],"additionalProperties":false})
    );
    assert_eq!(
        search["outputSchema"],
        json!({"type":"object","properties":{"results":{"type":"array","items":{"type":"object","properties":{
            "id":{"type":"string"},"title":{"type":"string"},"url":{"type":"string"},"text":{"type":"string"}},
            "required":["id","title","url"]}}},"required":["results"]})
    );
    assert_eq!(
        fetch["outputSchema"],
        json!({"type":"object","properties":{"id":{"type":"string"},"title":{"type":"string"},"text":{"type":"string"},
            "url":{"type":"string"},"metadata":{"type":"object","additionalProperties":{"type":"string"}}},
            "required":["id","title","text","url"]})
    );
    for tool in [search, fetch] {
        assert_eq!(
            tool["annotations"],
            json!({"title": tool["title"], "readOnlyHint": true, "destructiveHint": false,
                "idempotentHint": true, "openWorldHint": false})
        );
        for key in [
            "openai/toolInvocation/invoking",
            "openai/toolInvocation/invoked",
        ] {
            assert!(tool["_meta"][key].as_str().unwrap().chars().count() <= 64);
        }
    }
    assert_eq!(fetch["_meta"]["anthropic/maxResultSizeChars"], 150_000);
    // The description was rebuilt after indexing: it names the number of documents.
    let description = search["description"].as_str().unwrap();
    assert!(
        description
            .starts_with("Use this when the user asks about Harbour papers. Searches 3 documents"),
        "{description}"
    );
}

#[test]
fn the_prompt_and_the_overview_can_be_read() {
    let dir = TestDir::small();
    let server = ServerProcess::start(&dir, &["docs"]);
    server.wait_until_synced();
    let resources = server.mcp("resources/list", &json!({}));
    let uri = &resources["resources"][0]["uri"];
    assert_eq!(uri, "docent://corpus");
    let overview = server.mcp("resources/read", &json!({"uri": uri}));
    let overview = overview["contents"][0]["text"].as_str().unwrap().to_owned();
    assert!(
        overview.starts_with("# docs\n\n- Size: 3 documents\n- Fields in `metadata`: speaker\n"),
        "{overview}"
    );
    let prompt = server.mcp(
        "prompts/get",
        &json!({"name": "research", "arguments": {"question": "Who sails?"}}),
    );
    assert!(
        prompt["messages"][0]["content"]["text"]
            .as_str()
            .unwrap()
            .contains("Who sails?")
    );
}

#[test]
fn an_existing_index_is_served_at_once_and_then_updated() {
    let dir = TestDir::small();
    assert_eq!(dir.run(&["index", "docs"]).code, Some(0));
    dir.write("docs/new.md", "A zeppelin was seen.\n");
    dir.remove("docs/slate.txt");
    let server = ServerProcess::start(&dir, &["docs"]);
    assert!(
        server.log().contains("docent 0.1.0: docs, 3 documents\n"),
        "{}",
        server.log()
    );
    let (status, _) = server.http("GET", "/readyz", None);
    assert_eq!(status, 200);
    server.wait_for("3 documents: 1 indexed, 2 unchanged, 1 removed, 0 skipped");
    let found = server.call("search", &json!({"query": "zeppelin"}));
    assert_eq!(found["structuredContent"]["results"][0]["id"], "new.md");
}

#[test]
fn an_empty_folder_is_served_with_a_warning() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path().join("docs")).unwrap();
    let server = ServerProcess::start(&dir, &["docs"]);
    let folder = shown(&dir.path().join("docs"));
    server.wait_for(&format!("warning: there are no documents in `{folder}`"));
    assert_eq!(server.wait_until_synced()["ready"], true);
    let found = server.call("search", &json!({"query": "anything"}));
    assert_eq!(found["structuredContent"]["results"][0]["id"], ABOUT);
}

#[test]
fn a_second_server_only_reads_the_index() {
    let dir = TestDir::small();
    let first = ServerProcess::start(&dir, &["docs"]);
    first.wait_until_synced();
    let second = ServerProcess::start(&dir, &["docs"]);
    assert!(
        second.log().starts_with(
            "warning: another process is writing the index, so it is opened read-only\n"
        )
    );
    let (status, ready) = second.http("GET", "/readyz", None);
    assert_eq!(
        (status, &ready["sync"]["state"]),
        (200, &json!("read-only"))
    );
    let found = second.call("search", &json!({"query": "ferry"}));
    assert_eq!(found["structuredContent"]["results"][0]["id"], "ferry.md");
    let ran = dir.run(&["index", "docs"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("is already open for writing\nhint: "),
        "{ran:?}"
    );
}

#[test]
fn an_address_in_use_is_named() {
    let dir = TestDir::small();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = dir.run(&["serve", "docs", "--listen", &address]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr
            .starts_with(&format!("error: the address `{address}` is in use")),
        "{ran:?}"
    );
    assert!(ran.stderr.ends_with(
        "\nhint: stop the other server, or choose another address with `--listen 127.0.0.1:0`\n"
    ));
}

#[test]
fn the_addresses_for_hosts_are_printed() {
    let dir = TestDir::small();
    let public = ServerProcess::start(&dir, &["docs", "--public-url", "https://docs.example.org"]);
    public.wait_for("  ChatGPT      https://docs.example.org/mcp");
    public.wait_for("  Claude       https://docs.example.org/mcp");
    drop(public);
    let private = ServerProcess::start(&dir, &["docs"]);
    private.wait_for(&format!(
        "claude mcp add --transport http docent http://{}/mcp",
        private.address
    ));
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_server_in_order() {
    for signal in ["-TERM", "-INT"] {
        let dir = TestDir::small();
        let mut server = ServerProcess::start(&dir, &["docs"]);
        server.wait_until_synced();
        server.signal(signal);
        assert_eq!(server.wait(), Some(0), "{}", server.log());
        server.wait_for("stopping");
    }
}

#[test]
fn docent_check_finds_nothing() {
    let dir = TestDir::small();
    let server = ServerProcess::start(&dir, &["docs"]);
    server.wait_until_synced();
    let url = format!("http://{}/mcp", server.address);
    let ran = dir.run(&["check", &url, "--as", "protocol,chatgpt,claude"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let summary = "\n0 errors, 0 warnings, 0 notes, ";
    assert!(ran.stdout.contains(summary), "{ran:?}");
}

fn stdio(dir: &TestDir, args: &[&str], messages: &[Value]) -> ProcessOutput {
    dir.stdio(args, messages.iter().map(Value::to_string))
}

fn conversation(version: &str) -> [Value; 4] {
    let client = json!({"name": "test", "version": "0"});
    let search = json!({"name": "search", "arguments": {"query": "levee"}});
    [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": version, "capabilities": {}, "clientInfo": client}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": search}),
    ]
}

fn answer(ran: &ProcessOutput, id: u64) -> Value {
    let lines: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let found = lines.iter().find(|line| line["id"] == id).cloned();
    found.unwrap_or_else(|| panic!("no answer {id}: {ran:?}"))["result"].take()
}

#[test]
fn stdio_has_nothing_but_messages_on_stdout() {
    let dir = TestDir::small();
    assert_eq!(dir.run(&["index", "docs"]).code, Some(0));
    let ran = stdio(&dir, &[], &conversation("2025-06-18"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout
            .lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok()),
        "{ran:?}"
    );
    assert_eq!(answer(&ran, 1)["serverInfo"]["title"], "docs");
    assert_eq!(answer(&ran, 2)["tools"].as_array().map(Vec::len), Some(6));
    assert_eq!(
        answer(&ran, 3)["structuredContent"]["results"][0]["id"],
        "r1"
    );
    assert!(
        ran.stderr.contains("speaking MCP on stdin and stdout"),
        "{ran:?}"
    );
}

#[test]
fn old_clients_get_results_beside_prose() {
    let dir = TestDir::small();
    assert_eq!(dir.run(&["index", "docs"]).code, Some(0));
    let old = answer(
        &stdio(&dir, &["--text", "prose"], &conversation("2024-11-05")),
        3,
    );
    assert_eq!(old["results"][0]["id"], "r1");
    assert_eq!(
        old["content"][0]["text"],
        "Title: Levee\nURL: https://a.example/r1\nID: r1\n\nThe levee holds."
    );
    let never = answer(
        &stdio(&dir, &["--dual", "never"], &conversation("2024-11-05")),
        3,
    );
    assert!(never.get("results").is_none());
    let always = answer(
        &stdio(&dir, &["--dual", "always"], &conversation("2025-11-25")),
        3,
    );
    assert_eq!(always["results"], always["structuredContent"]["results"]);
}

#[test]
fn no_text_of_documents_or_queries_is_logged() {
    let dir = TestDir::small();
    let server = ServerProcess::start(&dir, &["docs"]);
    server.wait_until_synced();
    server.call("search", &json!({"query": "ferry nonesuch"}));
    server.call("fetch", &json!({"id": "nonesuch"}));
    server.call("fetch", &json!({"id": "ferry.md"}));
    let log = server.log();
    assert!(
        !log.contains("nonesuch") && !log.contains("sails at nine"),
        "{log}"
    );
}
