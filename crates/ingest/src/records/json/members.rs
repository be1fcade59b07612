//! Lazy JSON parsing: splits a JSON text into the members of an object or the elements of an array, which
//! stay raw text until they are needed.

use std::fmt;
use std::io::{ErrorKind, Read};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::IngestError;
use crate::records::jsonl::{MAX_NESTING, is_too_nested};

/// One member of an object: its name and its unparsed value.
#[derive(Debug)]
pub(crate) struct JsonMember<'a> {
    pub name: String,
    pub raw: &'a RawValue,
}

impl JsonMember<'_> {
    /// Whether it has this name, in any case.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// The most members of an object that are kept; an object with more is a table in disguise, with ids as keys. Its
/// members would become fields of one document, of which a document can have far fewer anyway.
pub(crate) const MAX_MEMBERS: usize = 10_000;

/// Parses the members of an object; also returns the text after it.
pub(crate) fn object_members(text: &str) -> Result<(Vec<JsonMember<'_>>, &str), IngestError> {
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_str(text);
    JsonMembersVisitor(&mut found)
        .deserialize(&mut reader)
        .map_err(|error| bad_json(&error))?;
    let mut rest = reader.into_iter::<IgnoredAny>();
    // The offset of the stream is the end of the object.
    let end = rest.byte_offset();
    drop(rest.next());
    Ok((found, text.get(end..).unwrap_or_default()))
}

/// Calls `each` with every element of an array until it returns false. Only white space may follow the array.
pub(crate) fn array_elements<'a>(
    text: &'a str,
    each: impl FnMut(&'a RawValue) -> bool,
) -> Result<(), IngestError> {
    let mut stopped = false;
    let mut reader = serde_json::Deserializer::from_str(text);
    let list = JsonElementsVisitor {
        each,
        stopped: &mut stopped,
    };
    let read = list.deserialize(&mut reader).and_then(|()| reader.end());
    match read {
        // A list that was abandoned midway always looks malformed.
        Err(error) if !stopped => Err(bad_json(&error)),
        _ => Ok(()),
    }
}

/// Does the same for an array that is read from a stream.
pub(crate) fn stream_array_elements(
    from: impl Read,
    each: impl FnMut(&RawValue) -> bool,
) -> Result<(), IngestError> {
    let mut stopped = false;
    let mut reader = serde_json::Deserializer::from_reader(from);
    let list = OwnedJsonElementsVisitor {
        each,
        stopped: &mut stopped,
    };
    let read = list.deserialize(&mut reader).and_then(|()| reader.end());
    match read {
        Err(error) if error.is_io() => Err(IngestError::Unreadable {
            cause: error.io_error_kind().unwrap_or(ErrorKind::Other),
        }),
        Err(error) if !stopped => Err(bad_json(&error)),
        _ => Ok(()),
    }
}

pub(super) fn bad_json(error: &serde_json::Error) -> IngestError {
    if is_too_nested(error) {
        return IngestError::TooNested { limit: MAX_NESTING };
    }
    IngestError::BadJson {
        line: Some(error.line()),
        column: error.column(),
    }
}

struct JsonMembersVisitor<'v, 'de>(&'v mut Vec<JsonMember<'de>>);

impl<'de> DeserializeSeed<'de> for JsonMembersVisitor<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for JsonMembersVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while self.0.len() < MAX_MEMBERS {
            let Some((name, raw)) = map.next_entry()? else {
                return Ok(());
            };
            self.0.push(JsonMember { name, raw });
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

struct JsonElementsVisitor<'s, F> {
    each: F,
    stopped: &'s mut bool,
}

impl<'de, F: FnMut(&'de RawValue) -> bool> DeserializeSeed<'de> for JsonElementsVisitor<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(&'de RawValue) -> bool> Visitor<'de> for JsonElementsVisitor<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(raw) = list.next_element()? {
            if !(self.each)(raw) {
                *self.stopped = true;
                break;
            }
        }
        Ok(())
    }
}

/// The visitor for streams, where elements cannot be borrowed from the input.
struct OwnedJsonElementsVisitor<'s, F> {
    each: F,
    stopped: &'s mut bool,
}

impl<'de, F: FnMut(&RawValue) -> bool> DeserializeSeed<'de> for OwnedJsonElementsVisitor<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(&RawValue) -> bool> Visitor<'de> for OwnedJsonElementsVisitor<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(raw) = list.next_element::<Box<RawValue>>()? {
            if !(self.each)(&raw) {
                *self.stopped = true;
                break;
            }
        }
        Ok(())
    }
}
