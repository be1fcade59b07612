//! The example corpus in the real process, and the tool list of a server that updates its index while it runs.

use std::path::Path;

use serde_json::{Value, json};

use super::find_harness::{checked, sha256, tool};
use crate::process::{ServerProcess, TestDir};

/// The example corpus without an embedding model, so that no work is pending once it is synchronized.
fn parliament() -> TestDir {
    let dir = TestDir::new();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/parliament");
    let settings = std::fs::read_to_string(corpus.join("docent.toml")).unwrap();
    dir.write(
        "docs/docent.toml",
        &format!("{settings}\n[model]\nname = \"none\"\n"),
    );
    for file in std::fs::read_dir(corpus.join("speeches")).unwrap() {
        let file = file.unwrap();
        let name = format!("docs/speeches/{}", file.file_name().to_string_lossy());
        dir.write(&name, &std::fs::read_to_string(file.path()).unwrap());
    }
    dir
}

#[test]
fn the_example_has_tools_of_its_own_shape() {
    let dir = parliament();
    let server = ServerProcess::start(&dir, &["docs"]);
    server.wait_until_synced();
    let list = server.mcp("tools/list", &json!({}));
    let tools: Vec<_> = list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| &t["name"])
        .collect();
    assert_eq!(
        tools,
        [
            "search",
            "fetch",
            "search_hansard_speeches",
            "fetch_hansard_speech",
            "show_results",
            "show_document",
            "list_fields"
        ]
    );
    let find = tool(&list, "search_hansard_speeches");
    let parties = [
        "Civic Labour",
        "Greenway",
        "Harbour",
        "Independent",
        "Meadow Alliance",
    ];
    let chambers = ["House of Assembly", "Senate"];
    let date = r"^\d{4}-\d{2}-\d{2}$";
    assert_eq!(
        find["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Natural language search query for the content of the speeches; empty to list them."},
                "party": {"type": "string", "enum": parties, "description": format!("Filter by party. Options: {}", parties.join(", "))},
                "chamber": {"type": "string", "enum": chambers, "description": "Filter by chamber. Options: House of Assembly, Senate"},
                "start_date": {"type": "string", "pattern": date, "description": "Start date in ISO 8601 format (YYYY-MM-DD). Example: 2023-02-14. Only speeches on or after this date are returned."},
                "end_date": {"type": "string", "pattern": date, "description": "End date in ISO 8601 format (YYYY-MM-DD). Example: 2025-10-24. Only speeches on or before this date are returned."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10, "description": "Maximum number of results to return (1-100, default 10)."}
            },
            "required": ["query"],
            "additionalProperties": false
        })
    );
    let record = tool(&list, "fetch_hansard_speech");
    assert_eq!(
        record["inputSchema"],
        json!({
            "type": "object",
            "properties": {"speech_id": {"type": "string", "description": "Unique identifier, obtained from the results of search_hansard_speeches."}},
            "required": ["speech_id"],
            "additionalProperties": false
        })
    );
    for tool in [&find, &record] {
        assert_eq!(
            tool["annotations"],
            json!({"title": tool["title"], "readOnlyHint": true, "destructiveHint": false,
                "idempotentHint": true, "openWorldHint": false})
        );
        assert!(tool["description"].as_str().unwrap().len() < 2_048);
    }
    let description = find["description"].as_str().unwrap();
    assert!(
        description.starts_with("Search Parliament of Corrowin (64 speeches, 2023-2025)."),
        "{description}"
    );
    search_then_fetch(&server, &find, &record);
}

fn search_then_fetch(server: &ServerProcess, find: &Value, record: &Value) {
    let keys =
        |object: &Value| -> Vec<String> { object.as_object().unwrap().keys().cloned().collect() };
    let arguments = json!({"query": "ferry timetable", "chamber": "House of Assembly",
        "start_date": "2023-01-01", "end_date": "2023-12-31", "limit": 3});
    let found = checked(find, &server.call("search_hansard_speeches", &arguments));
    assert_eq!(keys(&found), ["speeches", "total_count", "query"]);
    let speeches = found["speeches"].as_array().unwrap();
    assert!(!speeches.is_empty() && speeches.len() <= 3);
    for speech in speeches {
        assert_eq!(
            keys(speech),
            [
                "chunk_id",
                "speech_id",
                "excerpt",
                "relevance_score",
                "chunk_index",
                "speaker",
                "party",
                "chamber",
                "state",
                "date",
                "hansard_reference",
                "title",
                "word_count"
            ]
        );
        assert_eq!(speech["chamber"], "House of Assembly");
        assert!(speech["date"].as_str().unwrap().starts_with("2023-"));
        assert!(speech["excerpt"].as_str().unwrap().chars().count() <= 500);
    }
    let id = &speeches[0]["speech_id"];
    let read = checked(
        record,
        &server.call("fetch_hansard_speech", &json!({"speech_id": id})),
    );
    assert_eq!(
        keys(&read),
        [
            "speech_id",
            "title",
            "full_text",
            "speaker",
            "party",
            "chamber",
            "electorate",
            "state",
            "date",
            "hansard_reference",
            "topic_tags",
            "word_count",
            "content_hash"
        ]
    );
    let text = read["full_text"].as_str().unwrap();
    assert_eq!(read["content_hash"], sha256(text));
    assert_eq!(read["word_count"], text.split_whitespace().count());
    assert_eq!(read["word_count"], speeches[0]["word_count"]);
    assert!(
        read["topic_tags"]
            .as_array()
            .unwrap()
            .iter()
            .all(Value::is_string)
    );
    let chunk = server.call("fetch", &json!({"id": speeches[0]["chunk_id"]}));
    assert_eq!(chunk["structuredContent"]["text"], read["full_text"]);
    let wrong = server.call(
        "search_hansard_speeches",
        &json!({"query": "a", "party": "Labor"}),
    );
    assert_eq!(
        wrong["content"][0]["text"],
        "`party` has no such value: `Labor`\nhint: allowed are `Civic Labour`, `Greenway`, \
         `Harbour`, `Independent`, `Meadow Alliance`"
    );
}

#[test]
fn a_server_that_updates_its_index_lists_the_new_values() {
    let dir = TestDir::new();
    let paper = |party: &str| format!("---\nparty: {party}\n---\nWords.\n");
    dir.write("docs/docent.toml", "[model]\nname = \"none\"\n");
    dir.write("docs/a.md", &paper("Labor"));
    assert_eq!(dir.run(&["index", "docs"]).code, Some(0));
    dir.write("docs/a.md", &paper("Greens"));
    let server = ServerProcess::start(&dir, &["docs"]);
    server.wait_until_synced();
    let find = tool(&server.mcp("tools/list", &json!({})), "find");
    assert_eq!(
        find["inputSchema"]["properties"]["party"]["enum"],
        json!(["Greens"])
    );
}
