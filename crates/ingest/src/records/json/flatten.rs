//! JSON flattening: renders a JSON value as lines of the form `path.to.value: value`, as a stream and without
//! building it in memory.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::members::bad_json;
use crate::clean::clean_line;
use crate::error::IngestError;

/// Flattens a JSON text to one line per value, at most `max_chars` characters in total. `name` is the path of the
/// outermost value, and values whose path `is_hidden` are left out.
pub(super) fn flatten_to_lines(
    name: &str,
    text: &str,
    max_chars: usize,
    is_hidden: &dyn Fn(&str) -> bool,
) -> Result<String, IngestError> {
    let mut lines = JsonFlattener {
        out: String::new(),
        name: name.to_owned(),
        chars_left: max_chars,
        is_full: false,
        is_hidden,
    };
    if is_hidden(name) {
        return Ok(lines.out);
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = JsonValueSeed(&mut lines)
        .deserialize(&mut reader)
        .and_then(|()| reader.end());
    match read {
        Err(_) if lines.is_full => Err(IngestError::TextTooLong { limit: max_chars }),
        Err(error) => Err(bad_json(&error)),
        Ok(()) => Ok(lines.out),
    }
}

/// The output so far, and the dotted path of the next value. Access control fields are left out of it: their
/// values must not become searchable text.
struct JsonFlattener<'k> {
    out: String,
    /// The dotted path of the next value.
    name: String,
    chars_left: usize,
    is_full: bool,
    /// Whether a path is left out, as that of an access control field is.
    is_hidden: &'k dyn Fn(&str) -> bool,
}

impl JsonFlattener<'_> {
    fn push<E: serde::de::Error>(&mut self, value: &str) -> Result<(), E> {
        if value.is_empty() {
            return Ok(());
        }
        let line = if self.name.is_empty() {
            format!("{value}\n")
        } else {
            format!("{}: {value}\n", self.name)
        };
        let chars = line.chars().count();
        if chars > self.chars_left {
            self.is_full = true;
            return Err(E::custom("full"));
        }
        self.chars_left -= chars;
        self.out.push_str(&line);
        Ok(())
    }
}

/// Visits one value at the current path. Recurses once per level; the parser bounds the levels.
struct JsonValueSeed<'l, 'k>(&'l mut JsonFlattener<'k>);

impl<'de> DeserializeSeed<'de> for JsonValueSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonValueSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<(), E> {
        self.0.push(if flag { "true" } else { "false" })
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<(), E> {
        self.0.push(&number.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        self.0.push(&number.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        self.0.push(&number.to_string())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.0.push(&clean_line(text))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(JsonValueSeed(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let parent_length = self.0.name.len();
        while let Some(key) = map.next_key::<String>()? {
            if parent_length > 0 {
                self.0.name.push('.');
            }
            self.0.name.push_str(&clean_line(&key));
            // A path longer than the remaining budget can never be written.
            if self.0.name.len() / 4 > self.0.chars_left {
                self.0.is_full = true;
                return Err(A::Error::custom("full"));
            }
            if (self.0.is_hidden)(&self.0.name) {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(JsonValueSeed(self.0))?;
            }
            self.0.name.truncate(parent_length);
        }
        Ok(())
    }
}
