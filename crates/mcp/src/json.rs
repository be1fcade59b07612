//! Texts into JSON, where most of an answer is long strings: a stretch without anything to escape is
//! found many bytes at a time and copied in one go.

use serde::Serialize;

use crate::rpc::to_text;

/// How many bytes are looked at together; enough for the compiler to use vector instructions.
const BLOCK: usize = 32;

/// A JSON object under construction.
///
/// For a tool whose answer is mostly text, writing it through this in
/// [`Tool::json`](crate::Tool::json) costs a third of what serializing it does.
#[derive(Debug)]
pub struct JsonObject {
    text: String,
    /// What goes before the next member.
    mark: char,
}

impl JsonObject {
    /// An object without members, with room for this many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self::behind(String::with_capacity(bytes))
    }

    /// An object without members behind a text: [`end`](Self::end) gives both. A list of many objects is
    /// written in one piece this way.
    #[must_use]
    pub const fn behind(text: String) -> Self {
        Self { text, mark: '{' }
    }

    /// Adds a member that is already JSON.
    pub fn raw(&mut self, key: &str, json: &str) {
        self.key(key);
        self.text.push_str(json);
    }

    /// Adds a text.
    pub fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        self.text.push('"');
        escape(text, &mut self.text);
        self.text.push('"');
    }

    /// Adds what `write` writes onto the object so far, which must be one JSON value.
    pub(crate) fn value(&mut self, key: &str, write: impl FnOnce(&mut String)) {
        self.key(key);
        write(&mut self.text);
    }

    /// Adds a value that serializes itself.
    pub fn json(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        self.raw(key, &to_text(value));
    }

    /// The object as text.
    #[must_use]
    pub fn end(mut self) -> String {
        if self.mark == '{' {
            self.text.push('{');
        }
        self.text.push('}');
        self.text
    }

    fn key(&mut self, key: &str) {
        self.text.push(std::mem::replace(&mut self.mark, ','));
        self.text.push('"');
        // Nearly every key is a name.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if key.bytes().all(is_plain) {
            self.text.push_str(key);
        } else {
            escape(key, &mut self.text);
        }
        self.text.push_str("\":");
    }
}

/// Writes a text onto `out` as it stands between the quotes of a JSON string.
pub(crate) fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    loop {
        // What has to be escaped is ASCII, so that a stretch ends between two characters.
        let (stretch, odd) = rest.split_at_checked(plain(rest)).unwrap_or((rest, ""));
        out.push_str(stretch);
        let Some(byte) = odd.bytes().next() else {
            return;
        };
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0C => out.push_str("\\f"),
            _ => {
                let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
                out.push_str("\\u00");
                out.extend([digit(byte >> 4), digit(byte & 0xF)]);
            }
        }
        rest = odd.get(1..).unwrap_or_default();
    }
}

/// How many bytes at the beginning of a text need no escaping.
fn plain(text: &str) -> usize {
    let is_odd =
        |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    let (blocks, _) = text.as_bytes().as_chunks::<BLOCK>();
    let is_plain = |block: &[u8; BLOCK]| block.iter().fold(0, |odd, byte| odd | is_odd(*byte)) == 0;
    let length = blocks.iter().take_while(|block| is_plain(block)).count() * BLOCK;
    let tail = text.as_bytes().get(length..).unwrap_or_default();
    // The end of a text that is plain so far is looked at as a block too, which overlaps the last one.
    let last = text.as_bytes().last_chunk::<BLOCK>();
    if tail.len() < BLOCK && last.is_some_and(is_plain) {
        return text.len();
    }
    let end = tail.iter().position(|byte| is_odd(*byte) != 0);
    length + end.unwrap_or(tail.len())
}

/// Writes JSON onto `out` as it stands between the quotes of a JSON string. It has no control
/// characters, so that quotes and backslashes are all there is to escape.
pub(crate) fn escape_json(json: &str, out: &mut String) {
    // What has to be escaped begins the next stretch.
    let mut from = 0;
    for at in memchr::memchr2_iter(b'"', b'\\', json.as_bytes()) {
        out.push_str(json.get(from..at).unwrap_or_default());
        out.push('\\');
        from = at;
    }
    out.push_str(json.get(from..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_what_serde_json_makes_of_them() {
        let every: String = (0..0x250_u32).filter_map(char::from_u32).collect();
        let long = "x".repeat(BLOCK * 3);
        for text in [
            "",
            "plain",
            "\"",
            "\\\\\"\"",
            "a\nb\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f}",
            "日本語 🦀 \u{2028}",
            &every,
            &long,
        ] {
            for padding in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1] {
                let text = format!("{}{text}é", "y".repeat(padding));
                let mut out = String::new();
                escape(&text, &mut out);
                assert_eq!(format!("\"{out}\""), to_text(&text));
            }
        }
    }

    #[test]
    fn objects_are_json() {
        let mut object = JsonObject::with_capacity(0);
        object.text("a\"b", "c\\d");
        object.raw("n", "[1,2]");
        object.json("t", &true);
        assert_eq!(object.end(), r#"{"a\"b":"c\\d","n":[1,2],"t":true}"#);
        assert_eq!(JsonObject::with_capacity(9).end(), "{}");
        let mut second = JsonObject::behind("[{},".to_owned());
        second.text("a", "b");
        assert_eq!(second.end() + "]", r#"[{},{"a":"b"}]"#);
        assert_eq!(JsonObject::behind("[".to_owned()).end(), "[{}");
    }
}
