//! Parses the JSON of a record and keeps every value of a repeated key. The last one counts, as in every JSON parser
//! that builds a map; the earlier ones are kept beside it under a name that says so.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value as Raw};

use crate::fields::metadata::REPEATED;

/// Parses a whole JSON text.
pub(crate) fn parse(json: &[u8]) -> serde_json::Result<Raw> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let value = RecordValue.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// One value. It recurses once per level; the parser bounds the levels.
struct RecordValue;

impl<'de> DeserializeSeed<'de> for RecordValue {
    type Value = Raw;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Raw, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RecordValue {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Raw, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Raw, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Raw, E> {
        Ok(Number::from_f64(number).map_or(Raw::Null, Raw::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Raw, E> {
        Ok(Raw::String(text))
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(RecordValue)? {
            values.push(value);
        }
        Ok(Raw::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut members = RecordMembers::default();
        while let Some(name) = map.next_key::<String>()? {
            members.insert(name, map.next_value_seed(RecordValue)?);
        }
        Ok(Raw::Object(members.finish()))
    }
}

/// Collects the members of an object. Each key is looked up once, so that an object with one key many times takes no
/// longer than any other.
#[derive(Default)]
pub(super) struct RecordMembers {
    keys: Map<String, Raw>,
    replaced: BTreeMap<String, Vec<Raw>>,
}

impl RecordMembers {
    pub(super) fn insert(&mut self, name: String, value: Raw) {
        match self.keys.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(value);
            }
            Entry::Occupied(mut entry) => {
                let earlier = entry.insert(value);
                if earlier != *entry.get() {
                    let replaced = self.replaced.entry(entry.key().clone());
                    replaced.or_default().push(earlier);
                }
            }
        }
    }

    /// All members; the replaced values of a key are one member more, as a list where there are several.
    pub(super) fn finish(mut self) -> Map<String, Raw> {
        for (mut name, mut values) in self.replaced {
            name.push(REPEATED);
            match self.keys.entry(name) {
                Entry::Vacant(entry) => {
                    let only = (values.len() == 1).then(|| values.pop()).flatten();
                    entry.insert(only.unwrap_or(Raw::Array(values)));
                }
                // The text has a key with this end itself.
                Entry::Occupied(mut entry) => {
                    values.push(entry.get_mut().take());
                    entry.insert(Raw::Array(values));
                }
            }
        }
        self.keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(json: &str, expect: &Raw) {
        assert_eq!(&parse(json.as_bytes()).unwrap(), expect, "{json}");
    }

    #[test]
    fn values_are_those_of_any_parser() {
        for json in [
            "{}",
            r#"{"a":null,"b":[true,-1,18446744073709551615,1.5e3,"\u00fc\n"],"c":{"d":{}}}"#,
            r#"["a",{"b":""}]"#,
            "12345678901234567890123",
        ] {
            check(json, &serde_json::from_str(json).unwrap());
        }
        for json in ["", "{", "{} x", "1e999", r#"{"a":1,}"#] {
            let same = serde_json::from_str::<Raw>(json).unwrap_err().to_string();
            assert_eq!(parse(json.as_bytes()).unwrap_err().to_string(), same);
        }
        let deep = "[".repeat(200);
        let refused = parse(deep.as_bytes()).unwrap_err();
        assert!(crate::records::jsonl::is_too_nested(&refused));
    }

    #[test]
    fn every_value_of_a_repeated_key_is_kept() {
        check(
            r#"{"a":1,"b":2,"a":3,"a":4}"#,
            &json!({"a": 4, "b": 2, "a\0": [1, 3]}),
        );
        check(r#"{"a":{"b":1,"b":2}}"#, &json!({"a": {"b": 2, "b\0": 1}}));
        check(r#"{"a":1,"a":1}"#, &json!({"a": 1}));
        check(
            r#"{"a":1,"a\u0000":2,"a":3,"a\u0000":4}"#,
            &json!({"a": 3, "a\0": [1, 4], "a\0\0": 2}),
        );
    }

    /// Fails by its time where a repeated key is looked for among all its earlier values.
    #[test]
    fn one_key_many_times_is_one_list() {
        const TIMES: usize = 300_000;
        let members: Vec<_> = (0..TIMES).map(|n| format!("\"a\":{n}")).collect();
        let parsed = parse(format!("{{{}}}", members.join(",")).as_bytes()).unwrap();
        assert_eq!(parsed["a"], TIMES - 1);
        assert_eq!(parsed["a\0"].as_array().unwrap().len(), TIMES - 1);
    }
}
