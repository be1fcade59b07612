//! File parameters: a file from the conversation, as the object that hosts send today or the plain id of older ones.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A file in a tool's input. A field of this type is listed in `openai/fileParams` automatically. It must be at the
/// top level of the input, because hosts look no deeper.
///
/// The download URL expires soon and comes from outside. Its scheme is checked to be `https`, but whoever fetches it
/// still has to limit size and time, and to refuse addresses inside their own network (SSRF).
///
/// ```rust
/// use docent_mcp::FileParam;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Attachment {
///     file: FileParam,
/// }
///
/// let json = r#"{"file": {"file_id": "f1", "download_url": "https://files.example/f1"}}"#;
/// let input: Attachment = serde_json::from_str(json)?;
/// assert_eq!(input.file.download_url.as_deref(), Some("https://files.example/f1"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileParam {
    /// The id of the file at the host.
    pub id: String,
    /// The URL to download the file from. It is absent on hosts that send the id alone.
    pub download_url: Option<String>,
    /// The media type as the host reports it, such as `image/png`.
    pub mime_type: Option<String>,
    /// The name of the file on the user's machine.
    pub name: Option<String>,
}

/// Schema key that marks this type for the tool adapter. It is removed before the schema reaches a client.
pub(crate) const MARK: &str = "x-docent-file";

/// Maximum length of the id, media type and name in characters. Real ones have under a hundred. The client writes them,
/// and tools put them into logs, file names and messages, which should not have to expect megabytes.
const MAX_CHARS: usize = 512;
/// Maximum length of the download URL in characters. Signed URLs are long.
const MAX_URL_CHARS: usize = 8 * 1024;

impl<'de> Deserialize<'de> for FileParam {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FileParamVisitor)
    }
}

struct FileParamVisitor;

impl<'de> Visitor<'de> for FileParamVisitor {
    type Value = FileParam;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a file object with `file_id` and `download_url`, or a file id")
    }

    fn visit_str<E: Error>(self, id: &str) -> Result<FileParam, E> {
        checked(FileParam {
            id: id.to_owned(),
            download_url: None,
            mime_type: None,
            name: None,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FileParam, A::Error> {
        #[derive(Deserialize)]
        struct FileParamObject {
            file_id: String,
            download_url: Option<String>,
            mime_type: Option<String>,
            file_name: Option<String>,
        }
        let object = FileParamObject::deserialize(MapAccessDeserializer::new(map))?;
        checked(FileParam {
            id: object.file_id,
            download_url: object.download_url,
            mime_type: object.mime_type,
            name: object.file_name,
        })
    }
}

fn checked<E: Error>(file: FileParam) -> Result<FileParam, E> {
    let long = |text: &str, most: usize| text.chars().nth(most).is_some();
    if file.id.is_empty() || long(&file.id, MAX_CHARS) {
        return Err(E::custom(format_args!(
            "`file_id` must have 1 to {MAX_CHARS} characters"
        )));
    }
    for (name, text) in [("mime_type", &file.mime_type), ("file_name", &file.name)] {
        if text.as_ref().is_some_and(|text| long(text, MAX_CHARS)) {
            return Err(E::custom(format_args!(
                "`{name}` has more than {MAX_CHARS} characters"
            )));
        }
    }
    let is_good = |url: &String| url.starts_with("https://") && !long(url, MAX_URL_CHARS);
    if !file.download_url.as_ref().is_none_or(is_good) {
        return Err(E::custom("`download_url` must be an https address"));
    }
    Ok(file)
}

impl JsonSchema for FileParam {
    fn schema_name() -> Cow<'static, str> {
        "FileParam".into()
    }

    fn inline_schema() -> bool {
        true
    }

    /// The object that current hosts fill in. The plain id is accepted too, but hosts that read schemas never send
    /// it.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {
                "download_url": {"type": "string", "format": "uri"},
                "file_id": {"type": "string"},
                "mime_type": {"type": "string"},
                "file_name": {"type": "string"},
            },
            "required": ["download_url", "file_id"],
            MARK: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(value: Value) -> Result<FileParam, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn the_object_of_today_and_the_id_of_the_seed_both_fit() {
        let file = read(
            json!({"file_id": "f1", "download_url": "https://a.example/f", "mime_type": "image/png",
            "file_name": "a.png", "later": 1}),
        );
        assert_eq!(
            file,
            Ok(FileParam {
                id: "f1".to_owned(),
                download_url: Some("https://a.example/f".to_owned()),
                mime_type: Some("image/png".to_owned()),
                name: Some("a.png".to_owned()),
            })
        );
        assert_eq!(read(json!("f1")).unwrap().id, "f1");
        assert_eq!(read(json!({"file_id": "f1"})).unwrap().download_url, None);
    }

    #[test]
    fn invalid_file_objects_are_rejected_with_a_reason() {
        for (value, part) in [
            (json!(1), "a file object"),
            (json!(""), "`file_id`"),
            (json!("x".repeat(MAX_CHARS + 1)), "`file_id`"),
            (json!({"download_url": "https://a.example"}), "`file_id`"),
            (
                json!({"file_id": "a", "download_url": "http://169.254.169.254/"}),
                "https",
            ),
            (
                json!({"file_id": "a", "download_url": "file:///etc/passwd"}),
                "https",
            ),
            (
                json!({"file_id": "a", "file_name": "x".repeat(MAX_CHARS + 1)}),
                "`file_name`",
            ),
            (
                json!({"file_id": "a", "download_url": format!("https://{}", "x".repeat(MAX_URL_CHARS))}),
                "https",
            ),
        ] {
            let problem = read(value.clone()).unwrap_err();
            assert!(problem.contains(part), "{value}: {problem}");
        }
        assert!(read(json!("x".repeat(MAX_CHARS))).is_ok());
    }
}
