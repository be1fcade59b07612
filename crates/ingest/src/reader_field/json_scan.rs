//! A JSON text searched for the readers' field where no map shows it: written twice, or in an object other than
//! the one whose field it should be. No tree is built, so that a text of any length costs no memory.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::names::{comparable_name, is_nested, rest_of};

/// What a JSON text says about readers that a map of its outermost keys does not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sightings {
    /// Some object has two keys that are the field, or a part of its name.
    pub repeated: bool,
    /// The field stands in an object inside the outermost one, or the outermost value is a list.
    pub elsewhere: bool,
}

/// Which values of a text have a field of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// The outermost object: what stands in it is read.
    Record,
    /// None: the text is a value inside of what is read.
    Inner,
}

/// Looks through a text for these names, all of them comparable.
pub(super) fn scan(json: &str, keys: &[String], root: Root) -> Sightings {
    let mut found = Sightings::default();
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
        begun: Vec::new(),
        found: &mut found,
    };
    // What is no JSON has been refused before; a text that ends early is looked at as far as it goes.
    drop(scan.deserialize(&mut reader));
    found
}

/// One value. It calls itself once for each level, which the parser bounds.
struct FieldScan<'s, 'k> {
    keys: &'k [String],
    /// The keys and all their parts.
    names: &'s HashSet<&'k str>,
    /// Whether the fields of this object are read.
    is_record: bool,
    /// What is still to come of names that began in an object above whose fields are not read.
    begun: Vec<&'k str>,
    found: &'s mut Sightings,
}

impl<'k> FieldScan<'_, 'k> {
    /// A value inside of this one.
    fn inner(&mut self, begun: Vec<&'k str>) -> FieldScan<'_, 'k> {
        FieldScan {
            keys: self.keys,
            names: self.names,
            is_record: false,
            begun,
            found: &mut *self.found,
        }
    }

    /// Looks at a key of an object whose fields are not read; gives what is to come of names that it begins.
    fn see(&mut self, name: &str) -> Vec<&'k str> {
        let wanted = self.keys.iter().map(String::as_str);
        let mut begun = Vec::new();
        for wanted in wanted.chain(self.begun.iter().copied()) {
            if wanted == name || is_nested(name, wanted) {
                self.found.elsewhere = true;
            }
            begun.extend(rest_of(wanted, name));
        }
        begun
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
        let begun = std::mem::take(&mut self.begun);
        while list.next_element_seed(self.inner(begun.clone()))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let key = comparable_name(&key);
            // A nested name in a record is followed by whoever takes it out of the record's map.
            let begun = match self.is_record {
                true => Vec::new(),
                false => self.see(&key),
            };
            if self.names.contains(key.as_str()) && !seen.insert(key) {
                self.found.repeated = true;
            }
            map.next_value_seed(self.inner(begun))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &[&str], json: &str, root: Root, repeated: bool, elsewhere: bool) {
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        let expect = Sightings {
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
