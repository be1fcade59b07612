//! Unit tests of the JSON parser: files and the documents that they become.

use super::*;
use crate::limits::Limits;
use crate::parser::tests::with_input;

/// Renders each document as `id|title|text` and each skipped element as `row:code`.
fn show(text: &str, limits: &Limits) -> Vec<String> {
    let parsed = match with_input("boat_data.json", text.as_bytes(), limits, parse) {
        Ok(parsed) => parsed,
        Err(reason) => return vec![reason.code().to_owned()],
    };
    let documents = parsed
        .documents
        .iter()
        .map(|d| format!("{}|{}|{}", d.id, d.title, d.text.replace('\n', " ")));
    let skipped = parsed
        .skipped
        .iter()
        .map(|s| format!("{}:{}", s.line.unwrap_or(0), s.reason.code()));
    let warnings = parsed
        .warnings
        .iter()
        .map(|w| format!("w:{}", w.reason.code()));
    documents.chain(skipped).chain(warnings).collect()
}

fn check(text: &str, expect: &[&str]) {
    assert_eq!(show(text, &Limits::default()), expect, "{text}");
}

#[test]
fn lists_of_objects_are_records() {
    check(
        r#" [{"id":1,"text":"x"}, {"id":2,"text":"y"}, 3, {}] "#,
        &["1||x", "2||y", "3:not-an-object", "4:empty"],
    );
    check(
        r#" [{"id":1,"text":"x"}, {"text":"y"}, {"id":"a#p2"}] "#,
        &[
            "boat_data.json#L1||x",
            "boat_data.json#L2||y",
            "boat_data.json#L3|Boat data, row 3|id: a#p2 ",
            "w:numbered-rows",
        ],
    );
}

#[test]
fn wrapped_lists_are_found() {
    for text in [
        r#"{"count":1,"results":[{"id":1,"text":"x"}]}"#,
        r#"{"boats":[{"id":1,"text":"x"}],"count":1,"next":null,"warnings":[]}"#,
        r#"{"response":{"data":{"docs":[{"id":1,"text":"x"}]}}}"#,
    ] {
        check(text, &["1||x"]);
    }
}

#[test]
fn nothing_beside_a_list_is_lost() {
    check(
        r#"{"data":[{"id":"d1","title":"one"}],"included":[{"id":"i1"},{"id":"i2"}],"note":"lostword note"}"#,
        &[
            "d1|one|",
            "boat_data.json#included/1|Boat data, included, row 1|id: i1 ",
            "boat_data.json#included/2|Boat data, included, row 2|id: i2 ",
            "w:beside-records",
        ],
    );
    check(
        r#"{"name":"Export","items":[{"id":1,"text":"x"}],"links":[{"a":1}]}"#,
        &[
            "1||x",
            "boat_data.json#links/1|Boat data, links, row 1|a: 1 ",
            "w:beside-records",
        ],
    );
    check(
        r#"{"docs":[{"id":1,"text":"x"}],"items":[{"id":1,"text":"y"}]}"#,
        &["boat_data.json#docs/1||x", "boat_data.json#items/1||y"],
    );
    check(
        r#"{"items":[{"id":1,"text":"x"}],"items":[{"id":2,"text":"y"}]}"#,
        &["boat_data.json#items/1||x", "boat_data.json#items%202/1||y"],
    );
    let records: Vec<_> = (0..500)
        .map(|n| format!(r#"{{"id":{n},"text":"x"}}"#))
        .collect();
    let found = show(
        &format!("[null, {}]", records.join(",")),
        &Limits::default(),
    );
    let documents = found.iter().filter(|one| one.ends_with("||x")).count();
    assert_eq!(
        (documents, found.last().unwrap().as_str()),
        (500, "1:empty")
    );
    check(
        r#"["x", {"id":1,"text":"y"}]"#,
        &["1||y", "1:not-an-object"],
    );
}

#[test]
fn other_objects_are_one_document() {
    check(
        r#"{"name":"Stew","steps":[{"do":"chop"},{"do":"boil"}],"for":4,"none":null}"#,
        &["boat_data.json|Stew|name: Stew steps.do: chop steps.do: boil for: 4 "],
    );
    check(
        r#"{"a":[{"x":1}],"b":[{"x":2}]}"#,
        &["boat_data.json|Boat data|a.x: 1 b.x: 2 "],
    );
    check(r#"{"id":"k7","body":"words"}"#, &["k7|Boat data|words"]);
    check(
        r#"{"id":"a\u200b","body":"words"}"#,
        &["boat_data.json|Boat data|words", "w:bad-id"],
    );
    check(
        r#"["a",["b",1.5],true]"#,
        &["boat_data.json|Boat data|a b 1.5 true "],
    );
    check("{}", &["empty"]);
    check("[]", &["empty"]);
    check("7", &["not-an-object"]);
    check(" ", &["empty"]);
}

#[test]
fn lines_of_records_under_another_name_are_read() {
    check(
        "{\"id\":1,\"text\":\"x\"}\n{\"id\":2,\"text\":\"y\"}\n{\"id\":",
        &["1||x", "2||y", "3:bad-json"],
    );
}

#[test]
fn features_are_records() {
    check(
        r#"{"type":"FeatureCollection","features":[
            {"type":"Feature","id":9,"properties":{"name":"Light","height":12},"geometry":{"type":"Point","coordinates":[-4.5,55.25]}},
            {"type":"Feature","id":8,"properties":null,"geometry":{"type":"LineString","coordinates":[[1,2],[3,4]]}},
            {"type":"Feature","properties":{"id":"w","text":"wall"},"geometry":null}]}"#,
        &[
            "9|Light|height: 12 geometry: Point longitude: -4.5 latitude: 55.25 ",
            "8|Boat data 8|geometry: LineString ",
            "w||wall",
        ],
    );
}

#[test]
fn a_feature_alone_is_a_record() {
    check(
        r#"{"type":"Feature","id":9,"properties":{"name":"Light","height":12},"geometry":{"type":"Point","coordinates":[-4.5,55.25]}}"#,
        &["9|Light|height: 12 geometry: Point longitude: -4.5 latitude: 55.25 "],
    );
    check(
        r#"{"Type":"FeatureCollection","features":[{"properties":{"id":1,"text":"x"},"geometry":{"type":5}}]}"#,
        &["1||x"],
    );
}

#[test]
fn broken_files_say_where() {
    let broken = with_input("a.json", b"{\"a\":\n  x}", &Limits::default(), parse);
    let message = broken.unwrap_err().to_string();
    assert_eq!(message, "it is not valid JSON, at line 2, column 3");
    check(r#"[{"id":1,"text":"x"}, {"id":"#, &["1||x", "2:bad-json"]);
    check(r#"[{"id":1,"text":"x"}] tail"#, &["1||x", "2:bad-json"]);
    check("[1, 2", &["bad-json"]);
}

#[test]
fn depth_is_bounded() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |levels: usize| format!("{}1{}", open.repeat(levels), close.repeat(levels));
        assert_ne!(show(&nested(127), &Limits::default()), ["too-nested"]);
        check(&nested(128), &["too-nested"]);
        check(&nested(1_000_000), &["too-nested"]);
        check(
            &open.repeat(1_000_000),
            &[if open == "[" {
                "too-nested"
            } else {
                "bad-json"
            }],
        );
    }
    let inside = format!(
        r#"[{{"id":1,"text":"x"}},{{"a":{}1{}}}]"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    check(&inside, &["1||x", "2:too-nested"]);
}

#[test]
fn every_bound_holds() {
    let records = Limits {
        max_records: 2,
        ..Limits::default()
    };
    let three = r#"[{"id":1,"text":"a"},{"id":2,"text":"b"},{"id":3,"text":"c"}]"#;
    assert_eq!(
        show(three, &records),
        ["1||a", "2||b", "3:too-many-records"]
    );
    let record = r#"{"id":1,"text":"a"}"#;
    let bytes = |max_line_bytes| Limits {
        max_line_bytes,
        ..Limits::default()
    };
    let one = format!("[{record}]");
    assert_eq!(show(&one, &bytes(record.len())), ["1||a"]);
    assert_eq!(show(&one, &bytes(record.len() - 1)), ["1:line-too-long"]);
    let chars = |max_text_chars| Limits {
        max_text_chars,
        ..Limits::default()
    };
    assert_eq!(
        show(r#"{"a":"bc"}"#, &chars(6)),
        ["boat_data.json|Boat data|a: bc "]
    );
    assert_eq!(show(r#"{"a":"bc"}"#, &chars(5)), ["text-too-long"]);
    // A long key before many values would be repeated in every line.
    let name = "n".repeat(10_000);
    let wide = format!(r#"{{"{name}":[{}1]}}"#, "1,".repeat(10_000));
    assert_eq!(show(&wide, &chars(100_000)), ["text-too-long"]);
}
