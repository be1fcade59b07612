//! Property test: for any corpus and any call, `find` and its relatives keep their schemas.

use docent::settings::Settings;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::find_harness::{FindHarness, checked, ids, names, run};
use crate::contract;

/// Generates arguments that a model might send, valid and invalid.
fn arguments() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!("2024-02-29")),
        Just(json!([])),
        Just(json!(["a", "b"])),
    ];
    let name = prop_oneof![
        Just("limit".to_owned()),
        Just("sort".to_owned()),
        Just("facets".to_owned()),
        Just("start_date".to_owned()),
        Just("next".to_owned()),
        "[a-z_]{1,8}",
    ];
    let others = prop::collection::vec((name, leaf), 0..3);
    ("\\PC{0,20}", others).prop_map(|(query, others)| {
        let mut all = json!({"query": query});
        for (name, value) in others {
            all[name] = value;
        }
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_corpus_and_any_call_keep_the_contract(
        documents in prop::collection::vec(contract::documents(), 0..8),
        calls in prop::collection::vec(arguments(), 1..4),
    ) {
        run(async {
            let mut settings = Settings::default();
            settings.record.name = Some("record".to_owned());
            let harness = FindHarness::new(documents.clone(), &settings).await;
            let find = harness.tool("find").await;
            assert!(find["description"].as_str().unwrap().len() < 2_048);
            assert!(jsonschema::draft202012::new(&find["inputSchema"]).is_ok());
            for name in names(&find["inputSchema"]) {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
                assert!(name.starts_with(|c: char| c.is_ascii_alphabetic()), "{name}");
                assert!(name.len() <= 64 && name.chars().all(plain), "{name}");
            }
            harness.call("list_fields", json!({})).await;
            let all = harness.find(json!({"query": "", "limit": 100})).await;
            let mut found = ids(&all);
            found.sort_unstable();
            let mut held: Vec<_> = documents.iter().map(|one| one.id.as_str()).collect();
            held.sort_unstable();
            held.dedup();
            assert_eq!(found, held);
            for id in held {
                harness.call("record", json!({"id": id})).await;
            }
            let allowed = jsonschema::draft202012::new(&find["inputSchema"]).unwrap();
            for arguments in calls {
                let params = json!({"name": "find", "arguments": arguments});
                let result = harness.mcp("tools/call", params).await;
                if result["isError"] != true {
                    let data = checked(&find, &result);
                    assert!(data["total_count"].as_u64().unwrap() >= ids(&data).len() as u64);
                } else if allowed.is_valid(&arguments) {
                    // A call that the schema accepts may be refused only for a rule that JSON Schema cannot express.
                    let refusal = result["content"][0]["text"].as_str().unwrap();
                    assert!(refusal.contains("is not a day") || refusal.contains("greater"), "{refusal}");
                }
            }
        });
    }
}
