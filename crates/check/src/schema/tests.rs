//! Values that match a schema, values that do not, and invalid schemas.
//!
//! What the validator does not know must find no fault: a false positive would be a finding against a server that did
//! nothing wrong. Cycles of `$ref` and deep values must end.

use super::*;
use serde_json::json;

fn check(schema: &Value, value: &Value, expect: &[&str]) {
    assert_eq!(validate_value(value, schema), expect, "{value} in {schema}");
}

#[test]
fn values_that_fit_pass_and_others_are_named() {
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 1},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "maxItems": 2},
            "size": {"type": ["integer", "null"], "minimum": 0},
            "kind": {"enum": ["a", "b"]},
            "any": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        },
        "required": ["id"],
        "additionalProperties": false,
        "$defs": {"tag": {"type": "string"}},
    });
    check(
        &schema,
        &json!({"id": "x", "tags": ["a"], "size": null, "kind": "a", "any": 1}),
        &[],
    );
    check(&schema, &json!({}), &["`/` lacks `id`"]);
    check(&schema, &json!([]), &["`/` is array, not \"object\""]);
    check(
        &schema,
        &json!({"id": ""}),
        &["`/id` is below its `minLength`"],
    );
    check(
        &schema,
        &json!({"id": "x", "tags": [1]}),
        &["`/tags/0` is number, not \"string\""],
    );
    check(
        &schema,
        &json!({"id": "x", "tags": ["", "", ""]}),
        &["`/tags` is above its `maxItems`"],
    );
    check(
        &schema,
        &json!({"id": "x", "size": -1}),
        &["`/size` is out of range"],
    );
    check(
        &schema,
        &json!({"id": "x", "kind": "c"}),
        &["`/kind` is none of the values listed"],
    );
    check(
        &schema,
        &json!({"id": "x", "any": []}),
        &["`/any` fits nothing in its `anyOf`"],
    );
    check(
        &schema,
        &json!({"id": "x", "more": 1}),
        &["`/more` is not allowed"],
    );
}

#[test]
fn unsupported_keywords_are_ignored() {
    check(
        &json!({"format": "date", "pattern": "^a", "x-own": 1, "not": {}}),
        &json!("b"),
        &[],
    );
    check(
        &json!({"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": false}),
        &json!({"y": 1}),
        &[],
    );
    check(
        &json!({"oneOf": [{"type": "string"}, {"type": "string", "format": "uri"}]}),
        &json!("a"),
        &[],
    );
    check(&json!({"$ref": "https://a.example/schema"}), &json!(1), &[]);
}

#[test]
fn loops_and_depths_end() {
    let looped = json!({"$ref": "#"});
    assert_eq!(validate_value(&json!(1), &looped), [""; 0]);
    let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["x"]});
    let mut value = json!({});
    for _ in 0..100 {
        value = json!({"next": value});
    }
    assert_eq!(validate_value(&value, &tree).len(), MAX_FAULTS);
}

#[test]
fn schemas_that_are_none_are_named() {
    let flawed = |schema: Value| validate_schema(&schema);
    assert_eq!(
        flawed(json!({"type": "object", "properties": {"a": true, "b": {"type": "integer"}}})),
        [""; 0]
    );
    assert_eq!(
        flawed(json!({"type": "text"})),
        ["`/type` cannot be \"text\""]
    );
    assert_eq!(
        flawed(json!({"properties": {"a": {"required": true}}})),
        ["`/properties/a/required` cannot be true"]
    );
    assert_eq!(
        flawed(json!({"properties": []})),
        ["`/properties` is not an object"]
    );
    assert_eq!(
        flawed(json!({"anyOf": []})),
        ["`/anyOf` is not a list of schemas"]
    );
    assert_eq!(
        flawed(json!({"items": 5})),
        ["`/items` is neither an object nor true or false"]
    );
    assert_eq!(
        flawed(json!({"$ref": "#/$defs/gone"})),
        ["`/$ref` cannot be \"#/$defs/gone\""]
    );
    assert_eq!(
        flawed(json!({"minimum": 1, "exclusiveMinimum": true})),
        ["`/exclusiveMinimum` cannot be true"]
    );
}

#[test]
fn links_out_of_a_schema_are_found() {
    let schema =
        json!({"properties": {"a": {"$ref": "https://a.example/x"}, "b": {"$ref": "#/$defs/b"}}});
    assert_eq!(remote_refs(&schema), ["https://a.example/x"]);
}
