//! Streaming scan of JSON text for the reader field where a parsed map does not show it: written twice, or
//! in another object than the record. It builds no tree, so text of any length takes constant memory.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::names::{comparable_name, is_nested, rest_of};

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
pub(super) enum Root {
    /// The outermost object, whose keys are read as fields.
    Record,
    /// None: the text is a value nested in what is read.
    Inner,
}

/// Scans a text for these names, which must be in comparable form.
pub(super) fn scan(json: &str, keys: &[String], root: Root) -> FieldOccurrences {
    let mut found = FieldOccurrences::default();
    if keys.is_empty() {
        return found;
    }
    let parts = keys.iter().flat_map(|key| key.split('.'));
    let names = keys.iter().map(String::as_str).chain(parts).collect();
    let mut reader = serde_json::Deserializer::from_str(json);
    let scan = FieldScan {
        keys,
        names: &names,
        is_record: root == Root::Record,
        pending: Vec::new(),
        found: &mut found,
    };
    // Invalid JSON was rejected before; a truncated text is scanned as far as it goes.
    drop(scan.deserialize(&mut reader));
    found
}

/// The scan of one value. It recurses once per level, which the parser bounds. `names` holds the keys and
/// all their parts, `is_record` says whether this object's fields are read, and `pending` holds the rest of
/// dotted names that began in an enclosing object.
struct FieldScan<'s, 'k> {
    keys: &'k [String],
    names: &'s HashSet<&'k str>,
    is_record: bool,
    pending: Vec<&'k str>,
    found: &'s mut FieldOccurrences,
}

impl<'k> FieldScan<'_, 'k> {
    /// A scan of a value nested in this one.
    fn inner(&mut self, pending: Vec<&'k str>) -> FieldScan<'_, 'k> {
        FieldScan {
            keys: self.keys,
            names: self.names,
            is_record: false,
            pending,
            found: &mut *self.found,
        }
    }

    /// Checks a key of an object whose fields are not read. Returns the rest of the dotted names that begin
    /// with it.
    fn check_key(&mut self, name: &str) -> Vec<&'k str> {
        let wanted = self.keys.iter().map(String::as_str);
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

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
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

    fn check(keys: &[&str], json: &str, root: Root, repeated: bool, elsewhere: bool) {
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        let expect = FieldOccurrences {
            repeated,
            elsewhere,
        };
        assert_eq!(scan(json, &keys, root), expect, "{json}");
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
            check(&["allowed"], json, Root::Record, false, elsewhere);
        }
        check(&["allowed"], r#"{"allowed":1}"#, Root::Inner, false, true);
        check(&[], r#"{"a":{"allowed":1}}"#, Root::Inner, false, false);
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
            check(&["access.groups"], json, Root::Record, false, elsewhere);
        }
    }

    #[test]
    fn a_repeated_key_is_seen() {
        for json in [
            r#"{"allowed":[],"allowed":"everyone"}"#,
            r#"{"allowed":"hr","ALLOWED":"everyone"}"#,
            r#"{"allowed":"hr","ａllowed":"everyone"}"#,
        ] {
            check(&["allowed"], json, Root::Record, true, false);
        }
        let json = r#"{"allowed":"hr","a":1,"a":2}"#;
        check(&["allowed"], json, Root::Record, false, false);
    }
}
