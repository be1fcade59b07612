//! Calls that `find` refuses, with the exact message and hint of each.

use docent::settings::Settings;
use serde_json::json;

use super::find_harness::{FindHarness, run, speeches};

const QUERY: &str = "pass the words to search for as `query`; an empty text lists everything";
const PARTIES: &str = "allowed are `Civic Union`, `Greens`, `Labor`";
const DAY: &str = "write it as YYYY-MM-DD, such as `2024-05-28`";
const LIMIT: &str = "pass a number from 1 to 100, or leave it out";
const OFFSET: &str = "pass a number from 0 to 10000, or leave it out";
const KNOWN: &str = "known are `query`, `start_date`, `end_date`, `open`, `min_pages`, `max_pages`, \
                     `party`, `tags`, `limit`, `offset`, `sort`, `facets`";

/// Rows of (arguments besides the query, expected message, expected hint).
const CASES: [(&str, &str, &str); 25] = [
    (r#""query": null"#, "`query` is missing", QUERY),
    (
        r#""query": 5"#,
        "`query` is not a text: `5`",
        "pass one text",
    ),
    (r#""author": "x""#, "there is no parameter `author`", KNOWN),
    (
        r#""party": "Labour""#,
        "`party` has no such value: `Labour`",
        "did you mean `Labor`? allowed are `Civic Union`, `Greens`, `Labor`",
    ),
    (
        r#""party": "Whigs""#,
        "`party` has no such value: `Whigs`",
        PARTIES,
    ),
    (
        r#""party": ["Labor", "Whigs"]"#,
        "`party` has no such value: `Whigs`",
        PARTIES,
    ),
    (r#""party": """#, "`party` has no such value: ``", PARTIES),
    (r#""party": 7"#, "`party` is not a text: `7`", PARTIES),
    (r#""party": [7]"#, "`party` is not a text: `[7]`", PARTIES),
    (
        r#""start_date": "2024-13-45""#,
        "`start_date` is not a day: `2024-13-45`",
        DAY,
    ),
    (
        r#""end_date": "last June""#,
        "`end_date` is not a day: `last June`",
        DAY,
    ),
    (
        r#""start_date": 2024"#,
        "`start_date` is not a day: `2024`",
        DAY,
    ),
    (
        r#""start_date": "2024-03-01", "end_date": "2024-02-01""#,
        "`start_date` is greater than `end_date`",
        "swap the two values",
    ),
    (
        r#""min_pages": 3, "max_pages": 2"#,
        "`min_pages` is greater than `max_pages`",
        "swap the two values",
    ),
    (
        r#""min_pages": "3""#,
        "`min_pages` is not a number: `3`",
        "pass a number without quotes",
    ),
    (
        r#""open": "yes""#,
        "`open` is neither true nor false: `yes`",
        "allowed are `true` and `false`",
    ),
    (
        r#""limit": 0"#,
        "`limit` is not a whole number from 1 to 100: `0`",
        LIMIT,
    ),
    (
        r#""limit": 101"#,
        "`limit` is not a whole number from 1 to 100: `101`",
        LIMIT,
    ),
    (
        r#""limit": "5""#,
        "`limit` is not a whole number from 1 to 100: `5`",
        LIMIT,
    ),
    (
        r#""limit": 1.5"#,
        "`limit` is not a whole number from 1 to 100: `1.5`",
        LIMIT,
    ),
    (
        r#""offset": 10001"#,
        "`offset` is not a whole number from 0 to 10000: `10001`",
        OFFSET,
    ),
    (
        r#""offset": -1"#,
        "`offset` is not a whole number from 0 to 10000: `-1`",
        OFFSET,
    ),
    (
        r#""sort": "best""#,
        "`sort` is not an order: `best`",
        "allowed are `relevance`, `newest`, `oldest`",
    ),
    (
        r#""facets": "pages""#,
        "`facets` has no such field: `pages`",
        "allowed are `open`, `party`, `tags`",
    ),
    (
        r#""tags": {"a": 1}"#,
        r#"`tags` is not a text: `{"a":1}`"#,
        "allowed are `law`, `sea`, `tax`",
    ),
];

#[test]
fn a_wrong_call_gets_the_allowed_values() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        for (sent, message, hint) in CASES {
            // Of two JSON members with one name the last one counts.
            let arguments = serde_json::from_str(&format!(r#"{{"query": "a", {sent}}}"#)).unwrap();
            let refusal = harness.refusal("find", arguments).await;
            assert_eq!(refusal, format!("{message}\nhint: {hint}"), "{sent}");
        }
        let missing = harness.refusal("find", json!({})).await;
        assert!(missing.starts_with("`query` is missing"), "{missing}");
        // A null value does not make an unknown parameter acceptable.
        let unknown = json!({"query": "a", "pages": null});
        let unknown = harness.refusal("find", unknown).await;
        assert!(
            unknown.starts_with("there is no parameter `pages`"),
            "{unknown}"
        );
    });
}

#[test]
fn every_list_has_a_limit() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        let parties = |count: usize| vec!["Labor"; count];
        harness
            .find(json!({"query": "a", "party": parties(16), "limit": 100, "offset": 10_000}))
            .await;
        let refusal = harness
            .refusal("find", json!({"query": "a", "party": parties(17)}))
            .await;
        assert_eq!(
            refusal,
            format!("`party` has more than 16 values\nhint: {PARTIES}")
        );
        let facets = |count: usize| vec!["party"; count];
        harness
            .find(json!({"query": "a", "facets": facets(16)}))
            .await;
        let refusal = harness
            .refusal("find", json!({"query": "a", "facets": facets(17)}))
            .await;
        assert!(
            refusal.starts_with("`facets` has more than 16 values"),
            "{refusal}"
        );
    });
}

#[test]
fn a_query_with_too_many_conditions_is_refused_and_one_less_is_not() {
    run(async {
        let harness = FindHarness::new(speeches(), &Settings::default()).await;
        let query = |count: usize| vec!["party:Labor"; count].join(" ");
        let parties = ["Labor", "Greens"];
        harness
            .find(json!({"query": query(62), "party": parties}))
            .await;
        let refusal = harness
            .refusal("find", json!({"query": query(63), "party": parties}))
            .await;
        assert!(refusal.contains("conditions of the filter"), "{refusal}");
    });
}
