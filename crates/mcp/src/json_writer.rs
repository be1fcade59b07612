//! Texts into JSON, where most of an answer is long strings: a stretch without anything to escape is
//! found many bytes at a time and copied in one go.

use serde::Serialize;

use crate::rpc::to_text;

/// How many bytes are looked at together; enough for the compiler to use vector instructions.
const BLOCK: usize = 32;

/// What JSON is written onto: a text, or [`Data`].
pub trait JsonSink {
    /// Any JSON.
    fn json(&mut self, json: &str);

    /// JSON without quotes and backslashes.
    fn plain(&mut self, json: &str);

    /// What begins or ends a string, quotes and all that stands beside them, and the same as it stands between
    /// the quotes of another string.
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

/// JSON, and the same JSON as it stands between the quotes of a JSON string.
///
/// A result holds its data both ways. Who writes them together need not look for quotes in what was just
/// written.
#[derive(Debug, Clone, Default)]
pub struct EscapedJson {
    pub(crate) text: String,
    pub(crate) quoted: String,
}

impl EscapedJson {
    /// No JSON yet, with room for this many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            text: String::with_capacity(bytes),
            // Quotes grow.
            quoted: String::with_capacity(bytes + bytes / 8),
        }
    }

    /// Adds JSON, or a piece of it.
    pub fn push(&mut self, json: &str) {
        self.json(json);
    }

    /// The JSON as it is.
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
/// For a tool whose answer is mostly text, writing it through this in
/// [`Tool::json`](crate::Tool::json) costs a third of what serializing it does.
#[derive(Debug)]
pub struct JsonObject<I = String> {
    ink: I,
    is_empty: bool,
}

impl JsonObject {
    /// An object without members, with room for this many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self::append_to(String::with_capacity(bytes))
    }
}

impl<I: JsonSink> JsonObject<I> {
    /// An object without members behind what was written before: [`end`](Self::end) gives both. A list of many
    /// objects is written in one piece this way.
    #[must_use]
    pub const fn append_to(ink: I) -> Self {
        Self {
            ink,
            is_empty: true,
        }
    }

    /// Adds a member that is already JSON.
    pub fn raw(&mut self, key: &str, json: &str) {
        self.value(key, |ink| ink.json(json));
    }

    /// Adds a text. Inlined, so that of a key that is known nothing has to be found out.
    #[inline(always)]
    pub fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        self.ink.quotes("\":\"", "\\\":\\\"");
        escape(text, &mut self.ink);
        self.ink.quotes("\"", "\\\"");
    }

    /// Adds what `write` writes onto the object so far, which must be one JSON value.
    pub(crate) fn value(&mut self, key: &str, write: impl FnOnce(&mut I)) {
        self.key(key);
        self.ink.quotes("\":", "\\\":");
        write(&mut self.ink);
    }

    /// Adds a value that serializes itself.
    pub fn json(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        self.raw(key, &to_text(value));
    }

    /// The object, and what stands before it.
    #[must_use]
    pub fn end(mut self) -> I {
        if self.is_empty {
            self.ink.plain("{");
        }
        self.ink.plain("}");
        self.ink
    }

    /// A key without its last quote, and what parts it from the member before.
    #[inline(always)]
    fn key(&mut self, key: &str) {
        if std::mem::take(&mut self.is_empty) {
            self.ink.quotes("{\"", "{\\\"");
        } else {
            self.ink.quotes(",\"", ",\\\"");
        }
        // Nearly every key is a name.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if key.bytes().all(is_plain) {
            self.ink.plain(key);
        } else {
            escape(key, &mut self.ink);
        }
    }
}

/// Writes a text as it stands between the quotes of a JSON string.
fn escape(text: &str, out: &mut impl JsonSink) {
    let mut rest = text;
    loop {
        // What has to be escaped is ASCII, so that a stretch ends between two characters.
        let (stretch, odd) = rest
            .split_at_checked(plain_prefix_len(rest))
            .unwrap_or((rest, ""));
        out.plain(stretch);
        let Some(byte) = odd.bytes().next() else {
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
        rest = odd.get(1..).unwrap_or_default();
    }
}

/// How many bytes at the beginning of a text need no escaping.
fn plain_prefix_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let length = blocks.iter().take_while(|block| is_plain(block)).count() * BLOCK;
    let tail = bytes.get(length..).unwrap_or_default();
    // The end of a text that is plain so far is looked at as a block too, which overlaps the last one.
    if tail.len() < BLOCK && bytes.last_chunk().is_some_and(is_plain) {
        return text.len();
    }
    length + first_to_escape(tail).unwrap_or(tail.len())
}

/// Whether nothing of a block needs escaping.
#[inline]
fn is_plain(block: &[u8; BLOCK]) -> bool {
    let is_odd =
        |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    block.iter().fold(0, |odd, byte| odd | is_odd(*byte)) == 0
}

/// Where the first byte stands that needs escaping, eight of them at a time.
#[inline]
fn first_to_escape(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let odd = escape_mask(*word);
        if odd != 0 {
            return Some(at * 8 + odd.trailing_zeros() as usize / 8);
        }
    }
    // Filled up with what needs no escaping.
    let mut last = [b'x'; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let odd = escape_mask(last);
    (odd != 0).then(|| words.len() * 8 + odd.trailing_zeros() as usize / 8)
}

/// The lowest bit that is set is in the first byte that needs escaping; none is set when none does.
#[inline]
fn escape_mask(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(word);
    // A byte below `least` borrows from the ones above it, so that these may be taken for odd as well.
    let below = |word: u64, least: u64| word.wrapping_sub(ONES * least) & !word & HIGH;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, 0x20) | is(b'"') | is(b'\\')
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
