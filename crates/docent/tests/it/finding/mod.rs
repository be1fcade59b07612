//! `find`, records and `list_fields`: through the real router with any corpus, and in the real process with the example
//! corpus, whose settings define names and shapes of its tools.

mod any;
mod example;
mod find_harness;
mod naming;
mod refusals;
mod showing;

use docent::settings::Settings;
use serde_json::{Value, json};

use self::find_harness::{FindHarness, document, ids, names, run, speeches};
use crate::contract;

#[test]
fn the_parameters_follow_from_the_data() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        let find = harness.tool("find").await;
        assert_eq!(
            names(&find["inputSchema"]),
            [
                "query",
                "start_date",
                "end_date",
                "open",
                "min_pages",
                "max_pages",
                "party",
                "tags",
                "limit",
                "offset",
                "sort",
                "facets"
            ]
        );
        let properties = &find["inputSchema"]["properties"];
        assert_eq!(
            properties["party"]["enum"],
            json!(["Civic Union", "Greens", "Labor"])
        );
        assert_eq!(properties["tags"]["enum"], json!(["law", "sea", "tax"]));
        assert_eq!(properties["open"]["type"], "boolean");
        assert_eq!(properties["min_pages"]["type"], "number");
        assert_eq!(
            properties["facets"]["items"]["enum"],
            json!(["open", "party", "tags"])
        );
        assert_eq!(find["inputSchema"]["required"], json!(["query"]));
        assert_eq!(find["annotations"]["readOnlyHint"], true);
        let description = find["description"].as_str().unwrap();
        assert!(
            description.starts_with("Search world (5 documents, 2024)."),
            "{description}"
        );
        assert!(!description.contains("Do not use") && !description.contains("Prefer"));
    });
}

#[test]
fn filters_narrow_together_and_with_those_in_the_query() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        for (arguments, expected) in [
            (
                json!({"query": "ferry", "party": "Labor", "sort": "oldest"}),
                vec!["d0", "d3", "d4"],
            ),
            (
                json!({"query": "ferry", "party": " labor", "open": true, "sort": "newest"}),
                vec!["d4", "d0"],
            ),
            (
                json!({"query": "ferry", "party": ["Greens", "Civic Union"], "sort": "oldest"}),
                vec!["d1", "d2"],
            ),
            (
                json!({"query": "ferry party:Labor", "tags": "tax"}),
                vec!["d0"],
            ),
            (
                json!({"query": "ferry", "start_date": "2024-02-10", "end_date": "2024-03-10", "sort": "oldest"}),
                vec!["d1", "d2"],
            ),
            (
                json!({"query": "", "min_pages": 1.5, "max_pages": 3}),
                vec!["d3", "d2"],
            ),
            (
                json!({"query": "ferry", "party": null, "tags": [], "open": false, "limit": 2.0}),
                vec!["d1", "d3"],
            ),
            (json!({"query": "*", "party": "Greens"}), vec!["d1"]),
            (json!({"query": "zeppelin"}), vec![]),
        ] {
            let data = harness.find(arguments.clone()).await;
            assert_eq!(ids(&data), expected, "{arguments}");
            assert_eq!(data["query"], arguments["query"]);
            assert_eq!(data["total_count"], expected.len(), "{arguments}");
        }
    });
}

#[test]
fn pages_follow_each_other_to_the_end() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        let (mut listed, mut offset) = (Vec::new(), json!(0));
        loop {
            let data = harness
                .find(json!({"query": "", "limit": 2, "offset": offset}))
                .await;
            assert_eq!(data["total_count"], 5);
            listed.extend(ids(&data).into_iter().map(str::to_owned));
            match data.get("next_offset") {
                Some(next) => offset = next.clone(),
                None => break,
            }
        }
        assert_eq!(listed, ["d4", "d3", "d2", "d1", "d0"]);
        let last = harness
            .find(json!({"query": "ferry", "offset": 10_000}))
            .await;
        assert_eq!((ids(&last), &last["total_count"]), (vec![], &json!(5)));
    });
}

#[test]
fn values_are_counted_on_request() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        let data = harness
            .find(json!({"query": "ferry", "limit": 1, "facets": ["party", "tags", "party"]}))
            .await;
        let value = |value: &str, count: u64| json!({"value": value, "count": count});
        assert_eq!(
            data["facets"],
            json!([
                {"field": "party", "more": false,
                 "values": [value("Labor", 3), value("Civic Union", 1), value("Greens", 1)]},
                {"field": "tags", "more": false,
                 "values": [value("sea", 5), value("law", 3), value("tax", 2)]},
            ])
        );
        let none = harness.find(json!({"query": "ferry", "facets": []})).await;
        assert_eq!(none.get("facets"), None);
    });
}

#[test]
fn a_result_shows_its_best_passage_and_its_fields() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        let data = harness
            .find(json!({"query": "speaker 3", "party": "Labor", "limit": 1}))
            .await;
        let mut result = data["results"][0].clone();
        let score = result["relevance_score"].take().as_f64().unwrap();
        assert!(score > 0.0 && score <= 1.0, "{score}");
        assert_eq!(
            result,
            json!({
                "chunk_id": "d3#c0", "document_id": "d3",
                "excerpt": "The ferry sails, said speaker 3.", "relevance_score": null,
                "chunk_index": 0, "title": "d3", "url": "", "date": "2024-04-10",
                "word_count": 6, "party": "Labor", "pages": 3, "open": false,
                "tags": ["sea", "law"]
            })
        );
        let read = harness.call("fetch", json!({"id": "d3#c0"})).await;
        assert_eq!(read["text"], "The ferry sails, said speaker 3.");
    });
}

#[test]
fn a_passage_can_be_fetched_with_the_part_that_holds_it() {
    run(async {
        let text = format!(
            "{}\n\nA zeppelin was listed.",
            "The ferry sails at nine.\n\n".repeat(400)
        );
        let settings = Settings {
            fetch_max_chars: 1_000,
            ..Settings::default()
        };
        let harness = FindHarness::new(vec![contract::long("long", text)], &settings).await;
        let data = harness.find(json!({"query": "zeppelin"})).await;
        let chunk = &data["results"][0]["chunk_id"];
        assert!(
            data["results"][0]["chunk_index"].as_u64().unwrap() > 1,
            "{data}"
        );
        let read = harness.call("fetch", json!({"id": chunk})).await;
        assert_eq!(&read["id"], chunk);
        assert_ne!(
            read["metadata"]["part"].as_str().map(|part| &part[..2]),
            Some("1 ")
        );
        for unknown in ["long#c99999", "other#c0", "long#c"] {
            let refusal = harness.refusal("fetch", json!({"id": unknown})).await;
            assert!(refusal.starts_with("no document with id"), "{refusal}");
        }
    });
}

#[test]
fn ignored_filters_of_a_query_are_noted() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        let data = harness.find(json!({"query": "ferry party:Labour"})).await;
        let note = data["note"].as_str().unwrap();
        assert!(note.starts_with("Ignored `party:Labour`"), "{note}");
        let plain = harness.find(json!({"query": "ferry party:Labor"})).await;
        assert_eq!(plain.get("note"), None);
    });
}

#[test]
fn the_tool_list_has_current_values() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        let parties = async || {
            harness.tool("find").await["inputSchema"]["properties"]["party"]["enum"].clone()
        };
        assert_eq!(parties().await, json!(["Civic Union", "Greens", "Labor"]));
        // The number of documents is unchanged, so only the values can trigger the update.
        let other = document(4, "Harbour", "2024-05-10");
        let same = document(0, "Labor", "2024-01-10");
        harness.put(vec![other, same]).await;
        assert_eq!(
            parties().await,
            json!(["Civic Union", "Greens", "Harbour", "Labor"])
        );
        assert!(!harness.knowledge.refresh_counts().await.unwrap());
        assert_eq!(
            ids(&harness.find(json!({"query": "", "party": "Harbour"})).await),
            ["d4"]
        );
    });
}

#[test]
fn fields_are_listed_read_and_completed() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        let all = harness.call("list_fields", json!({})).await;
        assert_eq!(
            (&all["documents"], &all["more"]),
            (&json!(5), &json!(false))
        );
        let fields = all["fields"].as_array().unwrap();
        for field in fields {
            let filter = field["filter"].as_str().unwrap();
            let found = harness.find(json!({"query": filter})).await;
            assert!(
                !ids(&found).is_empty() && found.get("note").is_none(),
                "{filter}"
            );
        }
        let value = |value: &str, count: u64| json!({"value": value, "count": count});
        let party = json!({"name": "party", "type": "keyword", "documents": 5,
            "values": [value("Labor", 3), value("Civic Union", 1), value("Greens", 1)],
            "filter": "party:Labor"});
        let one = harness.call("list_fields", json!({"field": "Party"})).await;
        assert_eq!(one["fields"], json!([party]));
        assert_eq!(
            harness
                .refusal("list_fields", json!({"field": "partys"}))
                .await,
            "there is no field `partys`\nhint: did you mean `party`? fields are `date`, `open`, \
             `pages`, `party`, `tags`"
        );
        let read = harness
            .mcp("resources/read", json!({"uri": "docent://fields/party"}))
            .await;
        let text = read["contents"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), party);
        let missing = harness
            .rpc("resources/read", json!({"uri": "docent://fields/nope"}))
            .await;
        assert_eq!(missing["error"]["code"], -32002, "{missing}");
        let template = json!({"type": "ref/resource", "uri": "docent://fields/{field}"});
        let prompt = json!({"type": "ref/prompt", "name": "research"});
        for (reference, name, typed, expected) in [
            (&template, "field", "pa", json!(["pages", "party"])),
            (&prompt, "filter", "par", json!(["party:"])),
            (
                &prompt,
                "filter",
                "party:c",
                json!(["party:\"Civic Union\""]),
            ),
        ] {
            let argument = json!({"name": name, "value": typed});
            let params = json!({"ref": reference, "argument": argument});
            let completion = harness.mcp("completion/complete", params).await;
            assert_eq!(completion["completion"]["values"], expected);
        }
        let arguments = json!({"question": "Who sails?", "filter": "party:Labor"});
        let prompt = harness
            .mcp(
                "prompts/get",
                json!({"name": "research", "arguments": arguments}),
            )
            .await;
        let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(text.contains("Put `party:Labor` into the query"), "{text}");
    });
}
