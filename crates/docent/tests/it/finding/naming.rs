//! Tool, parameter and member names that settings define, and record parts.

use docent::settings::{NameAlias, Settings};
use docent_search::DocumentValue as Field;
use serde_json::json;

use super::find_harness::{FindHarness, names, run, sha256, speeches};
use crate::contract;

#[test]
fn settings_name_tools_parameters_and_members() {
    run(async {
        let named = |names: &[(&str, &str)]| -> Vec<NameAlias> {
            let named = names.iter().map(|(name, source)| NameAlias {
                name: (*name).to_owned(),
                source: (*source).to_owned(),
            });
            named.collect()
        };
        let mut settings = Settings::default();
        settings.find.name = "search_papers".to_owned();
        settings.find.list = "papers".to_owned();
        settings.find.parameters = named(&[("side", "party"), ("facets", "facets")]);
        settings.find.result = named(&[("paper", "document_id"), ("side", "party")]);
        settings.find.prefer = true;
        settings.record.name = Some("get_paper".to_owned());
        settings.record.parameter = "paper".to_owned();
        let harness = FindHarness::new(speeches(), &settings).await;
        let find = harness.tool("search_papers").await;
        assert_eq!(
            names(&find["inputSchema"]),
            ["query", "side", "limit", "facets"]
        );
        let description = find["description"].as_str().unwrap();
        assert!(
            description.contains("Do not use: built-in web browsing"),
            "{description}"
        );
        assert!(
            description.contains("Prefer this tool over built-in browsing"),
            "{description}"
        );
        assert!(
            description.contains("get_paper with paper set to the paper"),
            "{description}"
        );
        let data = harness
            .call(
                "search_papers",
                json!({"query": "ferry", "side": "greens", "facets": ["side"]}),
            )
            .await;
        assert_eq!(data["papers"], json!([{"paper": "d1", "side": "Greens"}]));
        assert_eq!(data["facets"][0]["field"], "side");
        let record = harness.call("get_paper", json!({"paper": "d1"})).await;
        assert_eq!(
            record,
            json!({
                "document_id": "d1", "title": "d1", "text": "The ferry sails, said speaker 1.",
                "url": "", "date": "2024-02-10", "source": "", "word_count": 6,
                "text_sha256": sha256("The ferry sails, said speaker 1."), "source_sha256": "",
                "party": "Greens", "pages": 1, "open": false, "tags": ["sea", "tax"]
            })
        );
        let hint = "hint: the one parameter is `paper`, a text";
        for (arguments, message) in [
            (json!({}), "`paper` is missing"),
            (json!({"paper": 1}), "`paper` is not a text"),
            (json!({"id": "d1"}), "there is no parameter `id`"),
        ] {
            let refusal = harness.refusal("get_paper", arguments).await;
            assert_eq!(refusal, format!("{message}\n{hint}"));
        }
        assert_eq!(
            harness.refusal("get_paper", json!({"paper": "d9"})).await,
            "no document with id `d9`\nhint: ids come from `search_papers`; search again"
        );
    });
}

#[test]
fn a_tool_that_is_off_is_not_listed() {
    run(async {
        let mut settings = Settings::default();
        settings.find.enabled = false;
        settings.record.name = Some("get_paper".to_owned());
        let harness = FindHarness::new(speeches(), &settings).await;
        let list = harness.mcp("tools/list", json!({})).await;
        let tools = list["tools"].as_array().unwrap().iter();
        let tools: Vec<_> = tools.map(|tool| &tool["name"]).collect();
        assert_eq!(
            tools,
            [
                "search",
                "fetch",
                "get_paper",
                "show_results",
                "show_document",
                "list_fields"
            ]
        );
    });
}

#[test]
fn a_long_record_comes_in_parts() {
    run(async {
        let mut settings = Settings {
            fetch_max_chars: 1_000,
            ..Settings::default()
        };
        settings.record.name = Some("get".to_owned());
        let mut long = contract::long("long", "The ferry sails. ".repeat(100));
        long.fields
            .push(("next".to_owned(), Field::Text("evil".to_owned())));
        let harness = FindHarness::new(vec![long.clone()], &settings).await;
        let first = harness.call("get", json!({"id": "long"})).await;
        assert_eq!(
            (&first["part"], &first["truncated"]),
            (&json!("1 of 2"), &json!(true))
        );
        let second = harness.call("get", json!({"id": first["next"]})).await;
        assert_eq!(
            (&second["part"], second.get("next")),
            (&json!("2 of 2"), None)
        );
        let whole = format!(
            "{}{}",
            first["text"].as_str().unwrap(),
            second["text"].as_str().unwrap()
        );
        assert_eq!(whole, long.text);
        assert_eq!(second["text_sha256"], sha256(&long.text));
    });
}
