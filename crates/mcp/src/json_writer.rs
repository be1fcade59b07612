//! A JSON writer for answers that are mostly long strings.
//!
//! It searches for characters to escape in blocks of 32 bytes, and copies each clean stretch at once.

use serde::Serialize;

use crate::rpc::to_text;

/// Block size of the search in bytes; enough for the compiler to use vector instructions.
const BLOCK: usize = 32;

/// The target of the writer: a [`String`], or [`EscapedJson`].
///
/// A caller picks the method by what it knows about a piece of JSON, so that nothing is scanned twice.
pub trait JsonSink {
    /// Appends any JSON; a sink that escapes has to scan it.
    fn json(&mut self, json: &str);

    /// Appends JSON that is known to contain no quotes and backslashes.
    fn plain(&mut self, json: &str);

    /// Appends punctuation that contains quotes, given both plain and escaped for use inside another string.
    fn quotes(&mut self, json: &str, quoted: &str);
}

impl JsonSink for String {
    #[inline]
    fn json(&mut self, json: &str) {
        self.push_str(json);
    }

    #[inline]
    fn plain(&mut self, json: &str) {
        self.push_str(json);
    }

    #[inline]
    fn quotes(&mut self, json: &str, _: &str) {
        self.push_str(json);
    }
}

/// JSON together with the same JSON escaped for use inside a JSON string.
///
/// A tool result contains its data both ways. Writing them together saves a search for quotes in what was just
/// written.
///
/// ```rust
/// use docent_mcp::{EscapedJson, JsonObject};
///
/// let mut object = JsonObject::append_to(EscapedJson::with_capacity(64));
/// object.text("harbour", "Port Ellin");
/// object.json("high_water", &["04:12", "16:40"]);
/// let data = object.end();
/// assert_eq!(data.as_str(), r#"{"harbour":"Port Ellin","high_water":["04:12","16:40"]}"#);
/// ```
#[derive(Debug, Clone, Default)]
pub struct EscapedJson {
    pub(crate) text: String,
    pub(crate) quoted: String,
}

impl EscapedJson {
    /// Creates an empty value with room for this many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            text: String::with_capacity(bytes),
            // Escaped quotes take two bytes.
            quoted: String::with_capacity(bytes + bytes / 8),
        }
    }

    /// Appends JSON, or a part of it.
    pub fn push(&mut self, json: &str) {
        self.json(json);
    }

    /// Returns the plain JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl JsonSink for EscapedJson {
    #[inline]
    fn json(&mut self, json: &str) {
        self.text.push_str(json);
        escape_json(json, &mut self.quoted);
    }

    #[inline]
    fn plain(&mut self, json: &str) {
        self.text.push_str(json);
        self.quoted.push_str(json);
    }

    #[inline]
    fn quotes(&mut self, json: &str, quoted: &str) {
        self.text.push_str(json);
        self.quoted.push_str(quoted);
    }
}

/// A JSON object under construction.
///
/// For a tool whose answer is mostly text, writing it this way in [`Tool::json`](crate::Tool::json) takes a third of
/// the time of serializing it.
///
/// ```rust
/// use docent_mcp::JsonObject;
///
/// let mut object = JsonObject::with_capacity(64);
/// object.text("harbour", "Port Ellin");
/// object.raw("tides", "[1,2]");
/// assert_eq!(object.end(), r#"{"harbour":"Port Ellin","tides":[1,2]}"#);
/// ```
#[derive(Debug)]
pub struct JsonObject<S = String> {
    sink: S,
    is_empty: bool,
}

impl JsonObject {
    /// Creates an empty object with room for this many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self::append_to(String::with_capacity(bytes))
    }
}

impl<S: JsonSink> JsonObject<S> {
    /// Starts an object behind existing output; [`end`](Self::end) returns both. A list of objects can be written
    /// into one buffer this way.
    #[must_use]
    pub const fn append_to(sink: S) -> Self {
        Self {
            sink,
            is_empty: true,
        }
    }

    /// Adds a member whose value is already JSON.
    pub fn raw(&mut self, key: &str, json: &str) {
        self.value(key, |sink| sink.json(json));
    }

    /// Adds a string member. Always inlined, so that the checks of a constant key are done at compile time.
    #[inline(always)]
    pub fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        self.sink.quotes("\":\"", "\\\":\\\"");
        escape(text, &mut self.sink);
        self.sink.quotes("\"", "\\\"");
    }

    /// Adds a member whose value `write` appends to the output; it must be one JSON value.
    pub(crate) fn value(&mut self, key: &str, write: impl FnOnce(&mut S)) {
        self.key(key);
        self.sink.quotes("\":", "\\\":");
        write(&mut self.sink);
    }

    /// Adds a member by serializing a value.
    pub fn json(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        self.raw(key, &to_text(value));
    }

    /// Ends the object, and returns it with everything written before.
    #[must_use]
    pub fn end(mut self) -> S {
        if self.is_empty {
            self.sink.plain("{");
        }
        self.sink.plain("}");
        self.sink
    }

    /// Writes the separator and a key without its closing quote.
    #[inline(always)]
    fn key(&mut self, key: &str) {
        if std::mem::take(&mut self.is_empty) {
            self.sink.quotes("{\"", "{\\\"");
        } else {
            self.sink.quotes(",\"", ",\\\"");
        }
        // Nearly every key is an identifier, which needs no escaping.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if key.bytes().all(is_plain) {
            self.sink.plain(key);
        } else {
            escape(key, &mut self.sink);
        }
    }
}

/// Escapes a text for use inside a JSON string.
fn escape(text: &str, out: &mut impl JsonSink) {
    let mut rest = text;
    loop {
        // Characters to escape are ASCII, so a stretch always ends at a character boundary.
        let (stretch, tail) = rest
            .split_at_checked(plain_prefix_len(rest))
            .unwrap_or((rest, ""));
        out.plain(stretch);
        let Some(byte) = tail.bytes().next() else {
            return;
        };
        match byte {
            b'"' => out.quotes(r#"\""#, r#"\\\""#),
            b'\\' => out.quotes(r"\\", r"\\\\"),
            b'\n' => out.quotes(r"\n", r"\\n"),
            b'\r' => out.quotes(r"\r", r"\\r"),
            b'\t' => out.quotes(r"\t", r"\\t"),
            0x08 => out.quotes(r"\b", r"\\b"),
            0x0C => out.quotes(r"\f", r"\\f"),
            _ => out.json(&format!(r"\u{byte:04x}")),
        }
        rest = tail.get(1..).unwrap_or_default();
    }
}

/// Returns the length of the prefix that needs no escaping.
fn plain_prefix_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let length = blocks.iter().take_while(|block| is_plain(block)).count() * BLOCK;
    let tail = bytes.get(length..).unwrap_or_default();
    // The tail of a clean text is checked as one more block, which overlaps the last one.
    if tail.len() < BLOCK && bytes.last_chunk().is_some_and(is_plain) {
        return text.len();
    }
    length + first_to_escape(tail).unwrap_or(tail.len())
}

/// Whether a block contains nothing to escape.
#[inline]
fn is_plain(block: &[u8; BLOCK]) -> bool {
    let needs_escape =
        |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    block
        .iter()
        .fold(0, |found, byte| found | needs_escape(*byte))
        == 0
}

/// Finds the first byte to escape, eight bytes at a time.
#[inline]
fn first_to_escape(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let mask = escape_mask(*word);
        if mask != 0 {
            return Some(at * 8 + mask.trailing_zeros() as usize / 8);
        }
    }
    // Padded with a byte that needs no escaping.
    let mut last = [b'x'; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let mask = escape_mask(last);
    (mask != 0).then(|| words.len() * 8 + mask.trailing_zeros() as usize / 8)
}

/// Returns a mask whose lowest set bit is in the first byte to escape; 0 if there is none.
#[inline]
fn escape_mask(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(word);
    // A byte below `least` borrows from the bytes above it, so those may be marked wrongly; only the lowest mark
    // counts.
    let below = |word: u64, least: u64| word.wrapping_sub(ONES * least) & !word & HIGH;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, 0x20) | is(b'"') | is(b'\\')
}

/// Escapes JSON for use inside a JSON string. Valid JSON has no control characters outside of escapes, so only quotes
/// and backslashes change.
pub(crate) fn escape_json(json: &str, out: &mut String) {
    // The escaped character itself starts the next stretch.
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
            for padding in [0, 1, 7, 8, 9, BLOCK - 1, BLOCK, BLOCK + 1] {
                let text = format!("{}{text}é", "y".repeat(padding));
                let mut out = String::new();
                escape(&text, &mut out);
                assert_eq!(format!("\"{out}\""), to_text(&text));
                let mut data = EscapedJson::default();
                escape(&text, &mut data);
                assert_eq!(data.text, out);
                assert_eq!(format!("\"{}\"", data.quoted), to_text(&out));
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
        let mut second = JsonObject::append_to("[{},".to_owned());
        second.text("a", "b");
        assert_eq!(second.end() + "]", r#"[{},{"a":"b"}]"#);
        assert_eq!(JsonObject::append_to("[".to_owned()).end(), "[{}");
    }

    #[test]
    fn data_is_the_same_json_twice() {
        let mut data = EscapedJson::with_capacity(9);
        data.push("[");
        let mut object = JsonObject::append_to(data);
        object.text("a\"b", "c\\d");
        object.text("key", "\u{1}…");
        object.raw("n", r#"["x\"y"]"#);
        object.json("t", &["\n"]);
        let mut data = object.end();
        data.push(",{}]");
        let json = r#"[{"a\"b":"c\\d","key":"\u0001…","n":["x\"y"],"t":["\n"]},{}]"#;
        assert_eq!(data.as_str(), json);
        assert_eq!(format!("\"{}\"", data.quoted), to_text(json));
    }
}
