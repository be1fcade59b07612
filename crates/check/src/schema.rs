//! JSON Schema validator: of values against a schema, and of schemas themselves.
//!
//! It judges the servers of others, so it avoids false positives: unknown keywords, `format` and `pattern` never fail,
//! and neither does a schema that exceeds the limits on depth and steps.

mod keywords;
#[cfg(test)]
mod tests;

use crate::text::truncate_chars;
use serde_json::{Map, Value};

/// The deepest nesting and the most steps of one validation, since `$ref` can form cycles.
const MAX_DEPTH: usize = 48;
const MAX_STEPS: usize = 50_000;
/// The most errors that one validation reports.
const MAX_FAULTS: usize = 5;

const KINDS: [&str; 7] = [
    "string", "number", "integer", "boolean", "object", "array", "null",
];

/// Validates a value against a schema. Each error names a path and what is wrong there.
pub(crate) fn validate_value(value: &Value, schema: &Value) -> Vec<String> {
    let mut walk = SchemaWalker {
        root: schema,
        steps: 0,
        faults: Vec::new(),
    };
    walk.value(value, schema, &SchemaPath::root());
    walk.faults
}

/// Validates a schema itself. Each error names a path and what is wrong there.
pub(crate) fn validate_schema(schema: &Value) -> Vec<String> {
    let mut walk = SchemaWalker {
        root: schema,
        steps: 0,
        faults: Vec::new(),
    };
    walk.schema(schema, &SchemaPath::root());
    walk.faults
}

/// The `$ref` values that point to the network, outside of the schema.
pub(crate) fn remote_refs(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![schema];
    let mut steps = 0;
    while let Some(value) = waiting.pop() {
        steps += 1;
        if steps > MAX_STEPS {
            break;
        }
        match value {
            Value::Object(members) => {
                let link = members.get("$ref").and_then(Value::as_str);
                found.extend(link.filter(|link| link.contains("://")).map(str::to_owned));
                waiting.extend(members.values());
            }
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    found.truncate(MAX_FAULTS);
    found
}

struct SchemaWalker<'a> {
    root: &'a Value,
    steps: usize,
    faults: Vec<String>,
}

/// The position of the walk in the value or schema, as a JSON pointer, with its depth.
struct SchemaPath {
    text: String,
    depth: usize,
}

impl SchemaPath {
    fn root() -> Self {
        Self {
            text: String::new(),
            depth: 0,
        }
    }

    fn to(&self, part: &str) -> Self {
        let part = truncate_chars(part, 80);
        Self {
            text: format!("{}/{part}", self.text),
            depth: self.depth + 1,
        }
    }
}

impl<'a> SchemaWalker<'a> {
    fn is_within_limits(&mut self, path: &SchemaPath) -> bool {
        self.steps += 1;
        path.depth <= MAX_DEPTH && self.steps <= MAX_STEPS && self.faults.len() < MAX_FAULTS
    }

    fn fault(&mut self, path: &SchemaPath, what: &str) {
        let place = if path.text.is_empty() {
            "/"
        } else {
            &path.text
        };
        self.faults.push(format!("`{place}` {what}"));
    }

    fn resolved(&self, link: &str) -> Option<&'a Value> {
        let pointer = link.strip_prefix('#')?;
        self.root.pointer(pointer)
    }

    fn value(&mut self, value: &Value, schema: &'a Value, path: &SchemaPath) {
        if !self.is_within_limits(path) {
            return;
        }
        let schema = match schema {
            Value::Bool(false) => return self.fault(path, "is not allowed"),
            Value::Object(schema) => schema,
            _ => return,
        };
        if let Some(link) = schema.get("$ref").and_then(Value::as_str)
            && let Some(target) = self.resolved(link)
        {
            let deeper = SchemaPath {
                text: path.text.clone(),
                depth: path.depth + 1,
            };
            self.value(value, target, &deeper);
        }
        if let Some(kinds) = schema.get("type")
            && !is_of_type(value, kinds)
        {
            return self.fault(path, &format!("is {}, not {kinds}", kind_of(value)));
        }
        if schema.get("const").is_some_and(|only| only != value) {
            self.fault(path, "is not the only value allowed");
        }
        let listed = schema.get("enum").and_then(Value::as_array);
        if listed.is_some_and(|listed| !listed.contains(value)) {
            self.fault(path, "is none of the values listed");
        }
        self.sizes(value, schema, path);
        self.choices(value, schema, path);
        match value {
            Value::Object(members) => self.members(members, schema, path),
            Value::Array(items) => self.items(items, schema, path),
            _ => {}
        }
    }

    fn sizes(&mut self, value: &Value, schema: &Map<String, Value>, path: &SchemaPath) {
        let size = match value {
            Value::String(text) => Some((text.chars().count(), "minLength", "maxLength")),
            Value::Array(items) => Some((items.len(), "minItems", "maxItems")),
            Value::Object(members) => Some((members.len(), "minProperties", "maxProperties")),
            _ => None,
        };
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        if let Some((size, least, most)) = size {
            let size = size as f64;
            if bound(least).is_some_and(|least| size < least) {
                self.fault(path, &format!("is below its `{least}`"));
            }
            if bound(most).is_some_and(|most| size > most) {
                self.fault(path, &format!("is above its `{most}`"));
            }
        }
        if let Some(number) = value.as_f64() {
            let low = bound("minimum").is_some_and(|least| number < least)
                || bound("exclusiveMinimum").is_some_and(|least| number <= least);
            let high = bound("maximum").is_some_and(|most| number > most)
                || bound("exclusiveMaximum").is_some_and(|most| number >= most);
            if low || high {
                self.fault(path, "is out of range");
            }
        }
    }

    /// Validates `allOf`, `anyOf` and `oneOf`. A value that matches several branches of `oneOf` passes, because the
    /// formats and patterns that may distinguish them are not evaluated.
    fn choices(&mut self, value: &Value, schema: &'a Map<String, Value>, path: &SchemaPath) {
        for part in schema
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let deeper = SchemaPath {
                text: path.text.clone(),
                depth: path.depth + 1,
            };
            self.value(value, part, &deeper);
        }
        for name in ["anyOf", "oneOf"] {
            let Some(parts) = schema.get(name).and_then(Value::as_array) else {
                continue;
            };
            let mut fits = parts.is_empty();
            for part in parts {
                let mut trial = SchemaWalker {
                    root: self.root,
                    steps: self.steps,
                    faults: Vec::new(),
                };
                let deeper = SchemaPath {
                    text: path.text.clone(),
                    depth: path.depth + 1,
                };
                trial.value(value, part, &deeper);
                self.steps = trial.steps;
                fits |= trial.faults.is_empty();
            }
            if !fits {
                self.fault(path, &format!("fits nothing in its `{name}`"));
            }
        }
    }

    fn members(
        &mut self,
        members: &Map<String, Value>,
        schema: &'a Map<String, Value>,
        path: &SchemaPath,
    ) {
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                self.fault(path, &format!("lacks `{name}`"));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let by_pattern = schema.contains_key("patternProperties");
        for (name, value) in members {
            let known = properties.and_then(|properties| properties.get(name));
            match (known, schema.get("additionalProperties")) {
                (Some(part), _) => self.value(value, part, &path.to(name)),
                (None, Some(others)) if !by_pattern => self.value(value, others, &path.to(name)),
                _ => {}
            }
        }
    }

    fn items(&mut self, items: &[Value], schema: &'a Map<String, Value>, path: &SchemaPath) {
        let prefix = schema.get("prefixItems").and_then(Value::as_array);
        let rest = schema.get("items");
        for (at, item) in items.iter().enumerate() {
            let own = prefix.and_then(|prefix| prefix.get(at));
            // In drafts before 2020-12, a list under `items` means `prefixItems`.
            let own = own.or_else(|| match rest {
                Some(Value::Array(listed)) => listed.get(at),
                rest => rest,
            });
            if let Some(part) = own {
                self.value(item, part, &path.to(&at.to_string()));
            }
        }
    }
}

fn is_of_type(value: &Value, kinds: &Value) -> bool {
    let fits = |kind: &Value| match kind.as_str() {
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some("boolean") => value.is_boolean(),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("null") => value.is_null(),
        _ => true,
    };
    match kinds {
        Value::Array(kinds) => kinds.iter().any(fits),
        kind => fits(kind),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
