//! Streaming scan of JSON text for the reader field where a parsed map does not show it: written twice, or
//! in another object than the record. It builds no tree, so text of any length takes constant memory.
//!
//! A string may contain JSON again, as in a database column or an export. Such strings are scanned too.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use serde_json::Value as Raw;

use super::ReaderKeys;
use super::names::{comparable_name, is_nested, rest_of};

/// The deepest that JSON inside of strings of JSON is scanned. Each level at least doubles the escapes, so
/// nothing real comes near it.
const MAX_TEXT_DEPTH: usize = 4;

/// Occurrences of the reader field that a map of the outermost keys does not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FieldOccurrences {
    /// Some object has the field, or a part of its name, twice.
    pub repeated: bool,
    /// The field occurs in a nested object, or the outermost value is a list.
    pub elsewhere: bool,
}

/// Which object of the text has its fields read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonScanRoot {
    /// The outermost object, whose keys are read as fields.
    Record,
    /// None: the text is a value nested in what is read.
    Inner,
}

/// Scans the JSON text of a record, or of a value in it. Invalid JSON was rejected before; a truncated text
/// is scanned as far as it goes.
pub(super) fn scan(json: &str, readers: &ReaderKeys, root: JsonScanRoot) -> FieldOccurrences {
    let mut found = FieldOccurrences::default();
    if readers.is_configured() {
        let names = all_names(readers);
        drop(parse_all(
            json,
            FieldScan::new(readers, &names, root, &mut found),
        ));
    }
    found
}

/// Whether a value of a record has the field inside.
pub(super) fn value_has(value: &Raw, readers: &ReaderKeys) -> bool {
    match value {
        Raw::String(text) => text_has(text, readers),
        Raw::Array(_) | Raw::Object(_) => {
            let mut found = FieldOccurrences::default();
            let names = all_names(readers);
            let scan = FieldScan::new(readers, &names, JsonScanRoot::Inner, &mut found);
            scan.deserialize(value).is_err() || found.elsewhere
        }
        Raw::Null | Raw::Bool(_) | Raw::Number(_) => false,
    }
}

/// Whether a text that looks like JSON has the field inside.
pub(super) fn text_has(text: &str, readers: &ReaderKeys) -> bool {
    let mut found = FieldOccurrences::default();
    scan_inner_text(text, readers, 1, &mut found);
    found.elsewhere
}

/// Scans a string that may contain JSON. What looks like JSON but cannot be parsed, such as a dictionary as
/// Python prints it, is searched line by line for the field and a separator.
fn scan_inner_text(text: &str, readers: &ReaderKeys, depth: usize, found: &mut FieldOccurrences) {
    let text = text.trim();
    if !looks_like_json(text) {
        return;
    }
    if depth > MAX_TEXT_DEPTH {
        found.elsewhere = true;
        return;
    }
    let names = all_names(readers);
    let mut inner = FieldScan::new(readers, &names, JsonScanRoot::Inner, found);
    inner.text_depth = depth;
    let is_valid = parse_all(text, inner).is_ok();
    found.elsewhere |= !is_valid && text.lines().any(|line| readers.are_assigned_in_line(line));
}

/// Whether a trimmed text begins like an object, or like a list that ends as one or contains objects.
fn looks_like_json(text: &str) -> bool {
    text.starts_with('{')
        || text
            .strip_prefix('[')
            .is_some_and(|rest| rest.ends_with(']') || rest.trim_start().starts_with(['{', '[']))
}

/// Parses a text as one JSON value.
fn parse_all(json: &str, scan: FieldScan<'_, '_>) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(json);
    scan.deserialize(&mut reader)?;
    reader.end()
}

/// All names of the field and all their parts.
fn all_names(readers: &ReaderKeys) -> HashSet<&str> {
    let parts = readers.0.iter().flat_map(|key| key.split('.'));
    readers.0.iter().map(String::as_str).chain(parts).collect()
}

/// The scan of one value. It recurses once per level, which the parser bounds.
struct FieldScan<'s, 'k> {
    readers: &'k ReaderKeys,
    names: &'s HashSet<&'k str>,
    /// Whether this object's fields are read.
    is_record: bool,
    /// The rest of dotted names that began in an enclosing object.
    pending: Vec<&'k str>,
    /// How many strings are around this value.
    text_depth: usize,
    found: &'s mut FieldOccurrences,
}

impl<'s, 'k> FieldScan<'s, 'k> {
    fn new(
        readers: &'k ReaderKeys,
        names: &'s HashSet<&'k str>,
        root: JsonScanRoot,
        found: &'s mut FieldOccurrences,
    ) -> Self {
        Self {
            readers,
            names,
            is_record: root == JsonScanRoot::Record,
            pending: Vec::new(),
            text_depth: 0,
            found,
        }
    }

    /// A scan of a value nested in this one.
    fn inner(&mut self, pending: Vec<&'k str>) -> FieldScan<'_, 'k> {
        FieldScan {
            readers: self.readers,
            names: self.names,
            is_record: false,
            pending,
            text_depth: self.text_depth,
            found: &mut *self.found,
        }
    }

    /// Checks a key of an object whose fields are not read. Returns the rest of the dotted names that begin
    /// with it.
    fn check_key(&mut self, name: &str) -> Vec<&'k str> {
        let wanted = self.readers.0.iter().map(String::as_str);
        let mut pending = Vec::new();
        for wanted in wanted.chain(self.pending.iter().copied()) {
            if wanted == name || is_nested(name, wanted) {
                self.found.elsewhere = true;
            }
            pending.extend(rest_of(wanted, name));
        }
        pending
    }
}

impl<'de> DeserializeSeed<'de> for FieldScan<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldScan<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        scan_inner_text(text, self.readers, self.text_depth + 1, self.found);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let pending = std::mem::take(&mut self.pending);
        while list
            .next_element_seed(self.inner(pending.clone()))?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let key = comparable_name(&key);
            // Nested names inside a record are resolved when the field is taken out of its map.
            let pending = match self.is_record {
                true => Vec::new(),
                false => self.check_key(&key),
            };
            if self.names.contains(key.as_str()) && !seen.insert(key) {
                self.found.repeated = true;
            }
            map.next_value_seed(self.inner(pending))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> ReaderKeys {
        ReaderKeys(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn check(names: &[&str], json: &str, root: JsonScanRoot, repeated: bool, elsewhere: bool) {
        let expect = FieldOccurrences {
            repeated,
            elsewhere,
        };
        assert_eq!(scan(json, &keys(names), root), expect, "{json}");
    }

    #[test]
    fn a_field_elsewhere_is_seen_at_any_depth() {
        for (json, elsewhere) in [
            (r#"{"allowed":"hr","text":"x"}"#, false),
            (r#"{"text":"allowed"}"#, false),
            (r#"{"a":{"allowed":"hr"}}"#, true),
            (r#"{"a":[1,[{"b":{"\"Allowed\"":"hr"}}]]}"#, true),
            (r#"{"a":{"allowed.groups":"hr"}}"#, true),
            (r#"[{"allowed":"hr"}]"#, true),
            (r#"{"a":{"allowed_by":"hr"}}"#, false),
        ] {
            check(&["allowed"], json, JsonScanRoot::Record, false, elsewhere);
        }
        check(
            &["allowed"],
            r#"{"allowed":1}"#,
            JsonScanRoot::Inner,
            false,
            true,
        );
        check(
            &[],
            r#"{"a":{"allowed":1}}"#,
            JsonScanRoot::Inner,
            false,
            false,
        );
    }

    #[test]
    fn a_nested_name_is_followed() {
        for (json, elsewhere) in [
            (r#"{"access":{"groups":["hr"]}}"#, false),
            (r#"{"x":{"access":{"groups":["hr"]}}}"#, true),
            (r#"{"x":{"access":[{"groups":["hr"]}]}}"#, true),
            (r#"{"x":{"access.groups":["hr"]}}"#, true),
            (r#"{"x":{"groups":["hr"]}}"#, false),
            (r#"{"x":{"access":{"other":1}},"groups":2}"#, false),
        ] {
            check(
                &["access.groups"],
                json,
                JsonScanRoot::Record,
                false,
                elsewhere,
            );
        }
    }

    #[test]
    fn a_repeated_key_is_seen() {
        for json in [
            r#"{"allowed":[],"allowed":"everyone"}"#,
            r#"{"allowed":"hr","ALLOWED":"everyone"}"#,
            r#"{"allowed":"hr","ａllowed":"everyone"}"#,
        ] {
            check(&["allowed"], json, JsonScanRoot::Record, true, false);
        }
        let json = r#"{"allowed":"hr","a":1,"a":2}"#;
        check(&["allowed"], json, JsonScanRoot::Record, false, false);
    }

    #[test]
    fn strings_that_contain_json_are_scanned() {
        for (text, expect) in [
            (r#"{"allowed":"hr"}"#, true),
            (" \n{\"a\":[{\"Allowed\":1}]}\n", true),
            (r#"[{"allowed":"hr"}]"#, true),
            (r#"[1,[2,{"allowed":"hr"}]]"#, true),
            (r#"{"a":"{\"allowed\":\"hr\"}"}"#, true),
            ("{'a': 1, 'allowed': ['hr']}", true),
            ("[{'allowed': None}]", true),
            ("['x', {'allowed': 1}]", true),
            ("{a: 1,\n allowed: hr}", true),
            (r#"{"a":1}{"allowed":"hr"}"#, true),
            (r#"{"a":1,"allowed":"hr"#, true),
            ("{allowed=hr}", true),
            (r#"{"a":"allowed"}"#, false),
            (r#"["allowed"]"#, false),
            (r#"{"allowed_by":"x"}"#, false),
            ("allowed: dogs", false),
            ("[Park](park.md): allowed: dogs on a leash", false),
            ("[1] allowed: dogs", false),
            ("{{Park}} Dogs are not allowed. Cats: yes", false),
            ("{", false),
            ("[]", false),
            ("", false),
        ] {
            assert_eq!(text_has(text, &keys(&["allowed"])), expect, "{text}");
        }
        assert!(!text_has(r#"{"allowed":1}"#, &keys(&[])));
    }

    #[test]
    fn json_in_strings_is_scanned_to_its_limit() {
        let nested = |depth: usize, inner: &str| {
            (1..depth).fold(inner.to_owned(), |text, _| {
                format!("[{}]", serde_json::to_string(&text).unwrap())
            })
        };
        let keys = keys(&["allowed"]);
        for depth in 1..=MAX_TEXT_DEPTH {
            assert!(text_has(&nested(depth, r#"{"allowed":1}"#), &keys));
            assert!(!text_has(&nested(depth, r#"{"other":1}"#), &keys));
        }
        let deep = nested(MAX_TEXT_DEPTH + 1, r#"{"other":1}"#);
        assert!(text_has(&deep, &keys));
        // Deeper than the parser follows.
        let deep = format!("{}{{\"allowed\":1}}{}", "[".repeat(300), "]".repeat(300));
        assert!(text_has(&deep, &keys));
    }
}
