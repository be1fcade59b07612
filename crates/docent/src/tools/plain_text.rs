//! The plain-text rendering of structured answers, for hosts that show text only.

use serde_json::Value;

/// Renders an object as `name: value` lines. Objects in lists come first, as separate blocks.
pub(super) fn lines(value: &Value) -> String {
    let Value::Object(object) = value else {
        return flat(value);
    };
    let mut text = String::new();
    let mut blocks = Vec::new();
    for (name, value) in object {
        match value {
            Value::Array(items) if items.iter().any(Value::is_object) => {
                blocks.extend(items.iter().map(block));
            }
            value => text.push_str(&format!("{name}: {}\n", flat(value))),
        }
    }
    blocks.push(text.trim_end().to_owned());
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n\n---\n\n")
}

fn block(item: &Value) -> String {
    let Value::Object(object) = item else {
        return flat(item);
    };
    let lines = object
        .iter()
        .map(|(name, value)| format!("{name}: {}", flat(value)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Renders a value on one line; nested values as JSON.
fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if !items.iter().any(|item| item.is_object() || item.is_array()) => {
            items.iter().map(flat).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_reads_as_lines() {
        let answer = json!({
            "results": [{"id": "a", "tags": ["x", "y"]}, {"id": "b", "n": 3}],
            "total_count": 2,
            "empty": []
        });
        assert_eq!(
            lines(&answer),
            "id: a\ntags: x, y\n\n---\n\nid: b\nn: 3\n\n---\n\ntotal_count: 2\nempty:"
        );
        assert_eq!(lines(&json!("x")), "x");
    }
}
