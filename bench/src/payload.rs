//! The payload file: responses recorded from one server, which the peers then return.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The largest payload file that is read. A tool list and two responses take a few hundred kilobytes at most.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// The arguments of the three benchmarked requests, and the recorded results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Payload {
    /// The query of `search`.
    pub query: String,
    /// The id of the document to `fetch`.
    pub id: String,
    /// The `result` of `tools/list`.
    pub tools_list: Value,
    /// The `result` of `tools/call` for `search`.
    pub search: Value,
    /// The `result` of `tools/call` for `fetch`.
    pub fetch: Value,
}

impl Payload {
    /// Reads a payload file.
    ///
    /// # Errors
    /// When the file cannot be read, is larger than 8 MiB or is not a payload file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text))
            .with_context(|| format!("cannot read `{shown}`"))?;
        if text.len() as u64 > MAX_FILE_BYTES {
            bail!("`{shown}` is larger than {MAX_FILE_BYTES} bytes");
        }
        serde_json::from_str(&text).with_context(|| format!("`{shown}` is not a payload file"))
    }

    /// Writes a payload file that [`Payload::read`] reads.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        Ok(file.flush()?)
    }
}

/// The id of the first hit in the `result` of a `search` call.
#[must_use]
pub fn first_hit(search: &Value) -> Option<&str> {
    search.pointer("/structuredContent/results/0/id")?.as_str()
}

/// The JSON pointer of the first value in `expected` that `actual` lacks or has with another value.
///
/// Members that only `actual` has are allowed, because a peer may add `isError` or `_meta`.
#[must_use]
pub fn first_difference(expected: &Value, actual: &Value) -> Option<String> {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            expected.iter().find_map(|(key, value)| {
                let found = actual
                    .get(key)
                    .map_or_else(|| Some(String::new()), |it| first_difference(value, it));
                found.map(|rest| format!("/{key}{rest}"))
            })
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            let mut pairs = expected.iter().zip(actual).enumerate();
            pairs.find_map(|(at, (one, other))| {
                first_difference(one, other).map(|rest| format!("/{at}{rest}"))
            })
        }
        _ => (expected != actual).then(String::new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_difference_is_a_json_pointer() {
        let expected = json!({"a": {"b": [1, {"c": "x"}]}});
        assert_eq!(first_difference(&expected, &expected), None);
        assert_eq!(
            first_difference(&expected, &json!({"a": {"b": [1, {"c": "x"}]}, "more": 1})),
            None
        );
        let changed = json!({"a": {"b": [1, {"c": "y"}]}});
        assert_eq!(
            first_difference(&expected, &changed).as_deref(),
            Some("/a/b/1/c")
        );
        assert_eq!(
            first_difference(&expected, &json!({"a": {"b": [1]}})).as_deref(),
            Some("/a/b")
        );
        assert_eq!(
            first_difference(&expected, &json!({})).as_deref(),
            Some("/a")
        );
    }

    #[test]
    fn first_hit_is_the_id_of_the_first_result() {
        let search = json!({"structuredContent": {"results": [{"id": "d1"}, {"id": "d2"}]}});
        assert_eq!(first_hit(&search), Some("d1"));
        assert_eq!(
            first_hit(&json!({"structuredContent": {"results": []}})),
            None
        );
    }

    #[test]
    fn the_committed_example_can_be_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("payload.example.json");
        let payload = Payload::read(&path).unwrap();
        assert_eq!(first_hit(&payload.search), Some(payload.id.as_str()));
    }
}
