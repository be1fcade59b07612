//! Validation of schemas: whether every known keyword has a value of the right type.
//!
//! Unknown keywords are ignored, because JSON Schema permits them. A `$ref` within the document must resolve; other
//! links are not followed, since a check never loads what a schema names. Depth, steps and faults are bounded, as for
//! values.

use serde_json::{Map, Value};

use super::{KINDS, SchemaPath, SchemaWalker};
use crate::text::truncate_chars;

impl<'a> SchemaWalker<'a> {
    pub(super) fn schema(&mut self, schema: &'a Value, path: &SchemaPath) {
        if !self.is_within_limits(path) {
            return;
        }
        let Value::Object(schema) = schema else {
            if !schema.is_boolean() {
                self.fault(path, "is neither an object nor true or false");
            }
            return;
        };
        self.keywords(schema, path);
        for name in [
            "properties",
            "$defs",
            "definitions",
            "patternProperties",
            "dependentSchemas",
        ] {
            match schema.get(name) {
                Some(Value::Object(parts)) => {
                    for (key, part) in parts {
                        self.schema(part, &path.to(name).to(key));
                    }
                }
                Some(_) => self.fault(&path.to(name), "is not an object"),
                None => {}
            }
        }
        for name in [
            "additionalProperties",
            "not",
            "if",
            "then",
            "else",
            "contains",
            "propertyNames",
        ] {
            if let Some(part) = schema.get(name) {
                self.schema(part, &path.to(name));
            }
        }
        match schema.get("items") {
            Some(Value::Array(parts)) => {
                for part in parts {
                    self.schema(part, &path.to("items"));
                }
            }
            Some(part) => self.schema(part, &path.to("items")),
            None => {}
        }
        for name in ["allOf", "anyOf", "oneOf", "prefixItems"] {
            match schema.get(name) {
                Some(Value::Array(parts)) if !parts.is_empty() => {
                    for part in parts {
                        self.schema(part, &path.to(name));
                    }
                }
                Some(_) => self.fault(&path.to(name), "is not a list of schemas"),
                None => {}
            }
        }
    }

    /// Checks the keywords whose values are no schemas, such as `type`, `required` and `minimum`.
    fn keywords(&mut self, schema: &Map<String, Value>, path: &SchemaPath) {
        let is_kind = |kind: &Value| kind.as_str().is_some_and(|kind| KINDS.contains(&kind));
        let is_texts = |list: &Value| {
            let list = list.as_array();
            list.is_some_and(|list| list.iter().all(Value::is_string))
        };
        for (name, value) in schema {
            let good = match name.as_str() {
                "type" => match value {
                    Value::Array(kinds) => !kinds.is_empty() && kinds.iter().all(is_kind),
                    kind => is_kind(kind),
                },
                "required" => is_texts(value),
                "enum" => value.is_array(),
                "title" | "description" | "pattern" | "format" | "$comment" => value.is_string(),
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties" => value.as_f64().is_some_and(|size| size >= 0.0),
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
                    value.is_number()
                }
                "$ref" => match value.as_str() {
                    Some(link) if link.starts_with("#/") => self.resolved(link).is_some(),
                    Some(_) => true,
                    None => false,
                },
                _ => true,
            };
            if !good {
                let written = value.to_string();
                let shown = truncate_chars(&written, 60);
                self.fault(&path.to(name), &format!("cannot be {shown}"));
            }
        }
    }
}
