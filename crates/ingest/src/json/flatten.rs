//! Any JSON text into readable lines, `name.of.the.value: value`, without building it in memory.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::members::bad_json;
use crate::clean::clean_line;
use crate::error::IngestError;
use crate::reader_field::ReaderKeys;

/// The values of a text, one a line, at most so many characters.
pub(super) fn flatten_to_lines(
    text: &str,
    max_chars: usize,
    readers: &ReaderKeys,
) -> Result<String, IngestError> {
    let mut lines = JsonFlattener {
        out: String::new(),
        name: String::new(),
        left: max_chars,
        full: false,
        readers,
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = JsonValueSeed(&mut lines)
        .deserialize(&mut reader)
        .and_then(|()| reader.end());
    match read {
        Err(_) if lines.full => Err(IngestError::TextTooLong { limit: max_chars }),
        Err(error) => Err(bad_json(&error)),
        Ok(()) => Ok(lines.out),
    }
}

struct JsonFlattener<'k> {
    out: String,
    /// The name of the value that comes next, its parts separated by points.
    name: String,
    left: usize,
    full: bool,
    /// What must not be read by those whom it names.
    readers: &'k ReaderKeys,
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
        if chars > self.left {
            self.full = true;
            return Err(E::custom("full"));
        }
        self.left -= chars;
        self.out.push_str(&line);
        Ok(())
    }
}

/// One value at the current name. It calls itself once per level, and the parser bounds the levels.
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
        let before = self.0.name.len();
        while let Some(key) = map.next_key::<String>()? {
            if before > 0 {
                self.0.name.push('.');
            }
            self.0.name.push_str(&clean_line(&key));
            // A name longer than all the text there may be is never written.
            if self.0.name.len() / 4 > self.0.left {
                self.0.full = true;
                return Err(A::Error::custom("full"));
            }
            if self.0.readers.hides_key(&self.0.name) {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(JsonValueSeed(self.0))?;
            }
            self.0.name.truncate(before);
        }
        Ok(())
    }
}
