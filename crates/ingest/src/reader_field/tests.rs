//! Tests for the values of the reader field: a list of names, or nobody.

use super::*;
use serde_json::json;

fn keys(names: &[&str]) -> ReaderKeys {
    ReaderKeys(names.iter().map(|name| comparable_name(name)).collect())
}

fn taken(names: &[&str], raw: Raw) -> (ReaderField, Raw) {
    let Raw::Object(mut map) = raw else {
        panic!("not an object")
    };
    let field = keys(names).take(&mut map);
    (field, Raw::Object(map))
}

fn check(raw: impl Into<Raw>, expect: Result<DocumentValue, ReaderFault>) {
    let (field, _) = taken(&["allowed"], json!({ "allowed": raw.into() }));
    let expect = expect.map_or_else(ReaderField::Malformed, ReaderField::Present);
    assert_eq!(field, expect);
}

fn text(text: &str) -> Result<DocumentValue, ReaderFault> {
    Ok(DocumentValue::Text(text.to_owned()))
}

fn list(names: &[&str]) -> Result<DocumentValue, ReaderFault> {
    Ok(DocumentValue::List(
        names.iter().map(|n| (*n).to_owned()).collect(),
    ))
}

#[test]
fn only_texts_and_lists_of_texts_name_readers() {
    check(json!("hr"), text("hr"));
    check(json!(" hr, a@b.example; "), text("hr, a@b.example;"));
    check(json!(["hr", " sub:7 "]), list(&["hr", "sub:7"]));
    for (raw, fault) in [
        (json!(null), ReaderFault::Null),
        (json!(""), ReaderFault::Empty),
        (json!(" \u{200B}\n"), ReaderFault::Empty),
        (json!(",;,"), ReaderFault::Empty),
        (json!([]), ReaderFault::Empty),
        (json!(["hr", ""]), ReaderFault::Empty),
        (json!([null]), ReaderFault::NotText),
        (json!(["hr", null]), ReaderFault::NotText),
        (json!(["hr", 7]), ReaderFault::NotText),
        (json!([["hr"]]), ReaderFault::NotText),
        (json!([{"group": "hr"}]), ReaderFault::NotText),
        (json!(7), ReaderFault::NotText),
        (json!(true), ReaderFault::NotText),
        (json!({}), ReaderFault::Map),
        (json!({"groups": ["hr"]}), ReaderFault::Map),
    ] {
        check(raw, Err(fault));
    }
}

#[test]
fn names_end_at_their_bounds() {
    let many = |count: usize| (0..count).map(|n| format!("g{n}")).collect::<Vec<_>>();
    let exact = many(MAX_READERS);
    let over = many(MAX_READERS + 1);
    check(json!(exact), Ok(DocumentValue::List(exact.clone())));
    check(json!(over), Err(ReaderFault::TooMany));
    check(json!(exact.join(",")), text(&exact.join(",")));
    check(json!(over.join(",")), Err(ReaderFault::TooMany));
    let longest = "x".repeat(MAX_PRINCIPAL_BYTES);
    check(json!([longest]), list(&[&longest]));
    check(json!(longest), text(&longest));
    let longer = format!("{longest}x");
    check(json!([longer]), Err(ReaderFault::TooLong));
    check(json!(format!("hr,{longer}")), Err(ReaderFault::TooLong));
    let blanks = format!("hr,{}", " ".repeat(MAX_READER_TEXT_BYTES));
    check(json!(blanks), Err(ReaderFault::TooLong));
    check(json!(["hr", blanks]), Err(ReaderFault::TooLong));
    // Longer than the limit before hidden characters go: the text may have been truncated.
    let hidden = format!("hr{}", "\u{200B}".repeat(MAX_READER_TEXT_BYTES / 3));
    check(json!(hidden), Err(ReaderFault::TooLong));
    let hint = ReaderFault::TooLong.hint();
    assert!(hint.contains(&format!("{MAX_PRINCIPAL_BYTES} bytes")));
}

#[test]
fn a_field_is_found_however_its_name_is_written() {
    let hr = || ReaderField::Present(DocumentValue::Text("hr".to_owned()));
    for name in [
        "allowed",
        "Allowed",
        "ALLOWED ",
        " allowed",
        "allo\u{200B}wed",
    ] {
        let (field, rest) = taken(&["allowed"], json!({"a": 1, name: "hr", "b": 2}));
        assert_eq!((field, rest), (hr(), json!({"a": 1, "b": 2})), "{name:?}");
    }
    for (own, name) in [
        ("für", "fu\u{308}r"),
        ("fu\u{308}r", "FÜR"),
        ("allowed", "ａllowed"),
    ] {
        let (field, rest) = taken(&[own], json!({name: "hr", "b": 2}));
        assert_eq!((field, rest), (hr(), json!({"b": 2})), "{name:?}");
    }
    let (field, rest) = taken(&["allowed"], json!({"allowed_by": "x", "disallowed": "y"}));
    assert_eq!(field, ReaderField::Absent);
    assert_eq!(rest, json!({"allowed_by": "x", "disallowed": "y"}));
    let twice = json!({"allowed": "everyone", "Allowed": "hr"});
    let (field, rest) = taken(&["allowed"], twice);
    assert_eq!(field, ReaderField::Malformed(ReaderFault::Repeated));
    assert_eq!(rest, json!({}));
    let (field, rest) = taken(&["allowed"], json!({"allowed.groups": "hr"}));
    assert_eq!(
        (field, rest),
        (ReaderField::Malformed(ReaderFault::Map), json!({}))
    );
}

#[test]
fn a_nested_field_is_found_by_its_dotted_name() {
    let field = |raw: Raw| taken(&["access.groups"], raw).0;
    let hr = ReaderField::Present(DocumentValue::List(vec!["hr".to_owned()]));
    assert_eq!(field(json!({"access": {"groups": ["hr"]}})), hr);
    assert_eq!(field(json!({"Access": {"Groups ": ["hr"], "x": 1}})), hr);
    assert_eq!(field(json!({"access.groups": ["hr"]})), hr);
    assert_eq!(field(json!({"access": {"x": 1}})), ReaderField::Absent);
    for raw in [
        json!({"access": null}),
        json!({"access": ["hr"]}),
        json!({"access": "hr"}),
        json!({"access": {"groups": null}}),
        json!({"access": {"groups": ["hr"]}, "access.groups": "everyone"}),
        json!({"access": {"groups": {"x": "hr"}}}),
    ] {
        assert!(
            matches!(field(raw.clone()), ReaderField::Malformed(_)),
            "{raw}"
        );
    }
}

#[test]
fn the_first_name_that_is_there_decides() {
    let field = |raw: Raw| taken(&["allowed", "groups"], raw);
    let (found, rest) = field(json!({"groups": "hr", "x": 1}));
    assert_eq!(
        found,
        ReaderField::Present(DocumentValue::Text("hr".to_owned()))
    );
    assert_eq!(rest, json!({"x": 1}));
    let (found, rest) = field(json!({"groups": "hr", "allowed": null}));
    assert_eq!(found, ReaderField::Malformed(ReaderFault::Null));
    assert_eq!(rest, json!({}));
}

#[test]
fn a_repeated_key_of_json_is_noticed() {
    let check = |names: &[&str], text: &str, is_repeated: bool| {
        let mut map: Map<String, Raw> = serde_json::from_str(text).unwrap();
        let keys = keys(names);
        keys.mark_unread(text, &mut map);
        let repeated = ReaderField::Malformed(ReaderFault::Repeated);
        assert_eq!(keys.take(&mut map) == repeated, is_repeated, "{text}");
    };
    check(&["allowed"], r#"{"allowed":"hr","a":1,"a":2}"#, false);
    check(&["allowed"], r#"{"allowed":[],"allowed":"everyone"}"#, true);
    check(
        &["allowed"],
        r#"{"allowed":"hr","ALLOWED":"everyone"}"#,
        true,
    );
    check(
        &["allowed"],
        r#"{"\u0061llowed":"hr","allowed":"everyone"}"#,
        true,
    );
    check(&["a.b"], r#"{"a":{"b":"hr"},"a":{}}"#, true);
    check(&["a.b"], r#"{"a":{"b":"hr","b":"everyone"}}"#, true);
    check(&["a.b"], r#"{"a":{"b":"hr"},"c":{"d":1}}"#, false);
    check(&[], r#"{"allowed":"hr","allowed":"everyone"}"#, false);
}

#[test]
fn a_text_names_the_field_before_a_mark() {
    let keys = keys(&["allowed"]);
    for text in [
        "allowed: hr",
        "x\n  \"Allowed\" : 1",
        "allowed=['hr']",
        "{allowed: x}",
        "allowed.groups: x",
    ] {
        assert!(keys.appears_in(text), "{text}");
    }
    for text in ["", "allowed", "it is allowed to: go", "disallowed: x"] {
        assert!(!keys.appears_in(text), "{text}");
    }
    assert!(!ReaderKeys::default().appears_in("allowed: hr"));
}

#[test]
fn a_name_counts_in_its_folder() {
    let name = ReaderFieldName {
        name: "allowed".to_owned(),
        under: Some("hr".to_owned()),
    };
    assert!(name.covers("hr") && name.covers("hr/a.md") && name.covers("hr#x"));
    assert!(!name.covers("hrx/a.md") && !name.covers("a/hr"));
}
