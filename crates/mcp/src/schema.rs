//! JSON Schemas of a tool's input and output, in the form that every client accepts.
//!
//! Clients of the 2025 revisions refuse the whole tool list if the root of one schema lacks a literal `"type":
//! "object"` or if a property is a boolean schema, and they refuse a result whose `structuredContent` is not an
//! object. So an input that is not an object fails the build, and the form of an output follows from its type alone,
//! which makes it the same in every revision.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Maximum depth to which a root schema is followed through `$ref`, `oneOf`, `anyOf` and `allOf`. Schemas that are
/// generated from types nest a few levels, but `$ref` can form a cycle, which would otherwise never end.
const MAX_DEPTH: usize = 16;

/// How the output of a tool is represented in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputForm {
    /// `()` becomes a result without data.
    Empty,
    /// A string becomes plain text for the model, without data.
    Text,
    /// An object becomes the data unchanged.
    Object,
    /// A list, a number, an `Option` and so on become the member `result` of an object.
    Wrapped,
    /// A type without a schema, such as `serde_json::Value`: each value decides.
    Dynamic,
}

/// The wrapper of an output that is not an object.
#[derive(Serialize, JsonSchema)]
struct WrappedOutput<T> {
    result: T,
}

/// The form and schema of an output type.
pub(crate) struct OutputSchema {
    pub(crate) form: OutputForm,
    pub(crate) schema: Option<Value>,
}

impl OutputSchema {
    pub(crate) fn of<T: JsonSchema>() -> Self {
        let mut schema = generate::<T>(SchemaSettings::draft2020_12().for_serialize());
        let form = form_of(&schema);
        let schema = match form {
            OutputForm::Empty | OutputForm::Text | OutputForm::Dynamic => None,
            OutputForm::Object => {
                set_object_type(&mut schema);
                Some(schema)
            }
            // Generated from a type, so that references inside it resolve.
            OutputForm::Wrapped => Some(generate::<WrappedOutput<T>>(
                SchemaSettings::draft2020_12().for_serialize(),
            )),
        };
        Self { form, schema }
    }
}

/// The schema of an input type. `is_unit` marks `()`, which is an empty object on the wire.
pub(crate) struct InputSchema {
    pub(crate) is_unit: bool,
    pub(crate) schema: Value,
}

impl InputSchema {
    pub(crate) fn of<T: JsonSchema>() -> Self {
        let schema = generate::<T>(SchemaSettings::draft2020_12());
        let is_unit = form_of(&schema) == OutputForm::Empty;
        let schema = if is_unit {
            json!({"type": "object", "properties": {}, "additionalProperties": false})
        } else {
            schema
        };
        Self { is_unit, schema }
    }
}

/// Returns why clients would refuse a tool list with this schema; `None` if they accept it.
pub(crate) fn schema_root_error(schema: &Value) -> Option<&'static str> {
    if schema.get("type") != Some(&json!("object")) {
        return Some("whose root has no `\"type\": \"object\"`");
    }
    let properties = schema.get("properties");
    let is_map = properties.is_none_or(|map| {
        map.as_object()
            .is_some_and(|map| map.values().all(Value::is_object))
    });
    if !is_map {
        return Some("with a property that is no object: write `{}` for any value");
    }
    let required = schema.get("required");
    let is_list = required.is_none_or(|list| {
        list.as_array()
            .is_some_and(|list| list.iter().all(Value::is_string))
    });
    (!is_list).then_some("whose `required` is no list of names")
}

/// Whether the root of a schema is a choice (`oneOf`, `anyOf`, `allOf`), which hosts refuse for an input.
pub(crate) fn is_choice(schema: &Value) -> bool {
    ["oneOf", "anyOf", "allOf"]
        .iter()
        .any(|key| schema.get(key).is_some())
}

/// Generates the JSON Schema of a type, without title and description at the root and with all definitions inlined.
/// The dialect is 2020-12, the protocol's default; hosts fail on `$ref`.
fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings
        .with(|s| {
            s.inline_subschemas = true;
            s.meta_schema = None;
        })
        .with_transform(RecursiveTransform(replace_boolean_properties));
    let generator = settings.into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.shift_remove("title");
        object.shift_remove("description");
        if object.get("type") == Some(&json!("object")) {
            object.entry("properties").or_insert_with(|| json!({}));
        }
    }
    schema
}

/// Replaces boolean property schemas by objects. A field of any type is `true` in JSON Schema, but the TypeScript SDK
/// requires an object.
fn replace_boolean_properties(schema: &mut schemars::Schema) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut) {
        match property {
            Value::Bool(true) => *property = json!({}),
            Value::Bool(false) => *property = json!({"not": {}}),
            _ => {}
        }
    }
}

fn form_of(schema: &Value) -> OutputForm {
    let kind = schema.get("type").and_then(Value::as_str);
    let is_fixed = ["enum", "const"]
        .iter()
        .any(|key| schema.get(key).is_some());
    match kind {
        Some("null") => OutputForm::Empty,
        // The variant names of an enum are data: programs compare them.
        Some("string") if !is_fixed => OutputForm::Text,
        _ if is_object(schema, schema, MAX_DEPTH) => OutputForm::Object,
        _ if is_unconstrained(schema) => OutputForm::Dynamic,
        _ => OutputForm::Wrapped,
    }
}

/// Whether a schema accepts objects only.
fn is_object(schema: &Value, root: &Value, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    if let Some(kind) = schema.get("type") {
        return kind == "object";
    }
    let branches = |key| schema.get(key).and_then(Value::as_array);
    let by_choice = ["oneOf", "anyOf"]
        .into_iter()
        .filter_map(branches)
        .any(|all| !all.is_empty() && all.iter().all(|one| is_object(one, root, depth)));
    let by_all =
        || branches("allOf").is_some_and(|all| all.iter().any(|one| is_object(one, root, depth)));
    let by_reference = || {
        let link = schema.get("$ref").and_then(Value::as_str);
        link.and_then(|link| root.pointer(link.strip_prefix('#')?))
            .is_some_and(|target| is_object(target, root, depth))
    };
    by_choice || by_all() || by_reference()
}

/// Whether a schema has no constraints.
fn is_unconstrained(schema: &Value) -> bool {
    const ANNOTATIONS: [&str; 5] = ["default", "examples", "deprecated", "readOnly", "writeOnly"];
    schema.as_object().is_none_or(|members| {
        members
            .keys()
            .all(|key| ANNOTATIONS.contains(&key.as_str()))
    })
}

fn set_object_type(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        object.insert("type".to_owned(), json!("object"));
    }
}
