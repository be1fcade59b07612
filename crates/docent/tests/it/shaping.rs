//! `[fields]` of docent.toml from the file to the results: renamed, typed, hidden and added fields.

use serde_json::json;

use crate::process::{ServerProcess, TestDir};

fn folder() -> TestDir {
    let dir = TestDir::new();
    dir.write(
        "docs/2024/rail.md",
        "---\ntitle: Rail\nAuthor Name: Ilke\nsecret: plover\nlength: twelve\n---\nThe rail link opens.\n",
    );
    dir.write(
        "docs/boats.csv",
        "id,name,Built,secret\n7,Heron,12 Mar 1998,plover\n8,Gull,soon,plover\n",
    );
    dir
}

const RULES: &str = "[fields.author]\nfrom = \"Author Name\"\n\
    [fields.secret]\nhide = true\n\
    [fields.length]\ntype = \"number\"\n\
    [fields.date]\nfrom = \"Built\"\n\
    [fields.year]\npath = \"{year}/\"\ntype = \"number\"\n\
    [fields.kind]\nvalue = \"minutes\"\nunder = \"2024\"\n";

#[test]
fn fields_are_renamed_typed_hidden_and_added() {
    let dir = folder();
    let plain = dir.run(&["index", "docs", "--json"]).json();
    assert_eq!(
        (&plain["indexed"], &plain["warnings"]),
        (&json!(3), &json!([]))
    );
    dir.write("docs/docent.toml", RULES);
    let report = dir.run(&["index", "docs", "--json"]).json();
    assert_eq!(
        (&report["indexed"], &report["unchanged"]),
        (&json!(3), &json!(0)),
        "{report}"
    );
    let warnings: Vec<_> = report["warnings"].as_array().unwrap().iter().collect();
    let warnings: Vec<_> = warnings
        .iter()
        .map(|one| (&one["path"], &one["code"], one["message"].as_str().unwrap()))
        .collect();
    let left_out = |name: &str, kind: &str, value: &str| {
        format!("the value of `{name}` is left out because it is no {kind}: `{value}`")
    };
    assert_eq!(
        warnings,
        [
            (
                &json!("2024/rail.md"),
                &json!("wrong-type"),
                left_out("length", "number", "twelve").as_str()
            ),
            (
                &json!("boats.csv"),
                &json!("wrong-type"),
                left_out("date", "date", "soon").as_str()
            ),
        ]
    );
    let again = dir.run(&["index", "docs", "--json"]).json();
    assert_eq!(
        (&again["indexed"], &again["unchanged"]),
        (&json!(0), &json!(3)),
        "{again}"
    );

    let server = ServerProcess::start(&dir, &["docs"]);
    server.wait_until_synced();
    let known = |id: &str| {
        let read = server.call("fetch", &json!({"id": id}));
        read["structuredContent"]["metadata"].clone()
    };
    let rail = known("2024/rail.md");
    assert_eq!(
        [
            &rail["author"],
            &rail["year"],
            &rail["kind"],
            &rail["source"]
        ],
        ["Ilke", "2024", "minutes", "2024/rail.md"]
    );
    assert_eq!(
        (rail.get("secret"), rail.get("length")),
        (None, None),
        "{rail}"
    );
    assert_eq!(known("7")["date"], "1998-03-12");
    assert_eq!(known("8").get("date"), None);
    let fields = server.call("list_fields", &json!({})).to_string();
    assert!(
        fields.contains("author") && !fields.contains("secret"),
        "{fields}"
    );
    // A row without a text column is indexed as the list of its fields, which must not contain a hidden field.
    for (query, results) in [("plover", 0), ("author:Ilke", 1), ("year:2024", 1)] {
        let found = server.call("find", &json!({"query": query}));
        let total = &found["structuredContent"]["total_count"];
        assert_eq!(total, results, "{query}: {found}");
    }
}

#[test]
fn only_documents_that_a_changed_rule_covers_are_reindexed() {
    let dir = folder();
    dir.write("docs/docent.toml", RULES);
    dir.run(&["index", "docs"]);
    dir.write("docs/docent.toml", &RULES.replace("minutes", "records"));
    let report = dir.run(&["index", "docs", "--json"]).json();
    assert_eq!(
        (&report["indexed"], &report["unchanged"]),
        (&json!(1), &json!(2)),
        "{report}"
    );
    dir.remove("docs/docent.toml");
    let report = dir.run(&["index", "docs", "--json"]).json();
    assert_eq!(report["indexed"], 3, "{report}");
}

#[test]
fn a_bad_rule_is_named_with_a_hint() {
    let dir = folder();
    dir.write(
        "docs/docent.toml",
        "[fields.author]\nfrm = \"Author Name\"\n",
    );
    let ran = dir.run(&["index", "docs"]);
    assert_eq!(ran.code, Some(2));
    let place = dir.path().join("docs/docent.toml");
    assert_eq!(
        ran.stderr,
        format!(
            "error: `fields.author` has no setting: `frm`\nfrom: {}\nhint: known are `from`, `type`, \
             `hide`, `path`, `value`, `under`; a name with a point is written in quotes: `[fields.\"a.b\"]`\n",
            place.display()
        )
    );
}
