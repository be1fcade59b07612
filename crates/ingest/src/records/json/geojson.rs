//! GeoJSON: each feature becomes a record of its properties, its geometry type, and the coordinates if it is
//! a point. Other coordinates, often megabytes of outlines, are skipped.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Raw};

use super::members::{JsonMember, MAX_MEMBERS, object_members};
use crate::error::IngestError;
use crate::reader_field::{self, ReaderFault, ReaderKeys};
use crate::records::jsonl;

/// A geometry whose coordinates stay unparsed, since only those of points are needed.
#[derive(Deserialize)]
struct GeoJsonGeometry<'a> {
    r#type: Option<String>,
    #[serde(borrow)]
    coordinates: Option<&'a RawValue>,
}

/// The most bytes of an id and of the coordinates of a point; anything longer is neither.
const MAX_ID_BYTES: usize = 4_096;

/// Whether the `type` of an object is this one, in any case.
pub(super) fn is_of_type(entries: &[JsonMember<'_>], kind: &str) -> bool {
    let has_kind = |entry: &JsonMember<'_>| {
        let kind_text = Some(entry.raw.get()).filter(|raw| raw.len() <= MAX_ID_BYTES);
        let kind_text = kind_text.and_then(|raw| serde_json::from_str::<String>(raw).ok());
        kind_text.is_some_and(|kind_text| kind_text.trim().eq_ignore_ascii_case(kind))
    };
    entries
        .iter()
        .any(|entry| entry.is("type") && has_kind(entry))
}

/// Parses one feature into the keys of a record.
pub(super) fn feature_record(
    raw: &str,
    limit: usize,
    readers: &ReaderKeys,
) -> Result<Map<String, Raw>, IngestError> {
    if !raw.starts_with('{') {
        return Err(IngestError::NotAnObject);
    }
    let (entries, _) = object_members(raw)?;
    let named = |name: &'static str| entries.iter().filter(move |entry| entry.is(name));
    let first = |name: &'static str| named(name).next().map(|entry| entry.raw.get());
    if first("properties").is_none() && first("geometry").is_none() {
        // An element without properties and geometry may still be a plain record.
        let mut keys = jsonl::parse_object(raw.as_bytes(), limit)?;
        readers.mark_unread(raw, &mut keys);
        return Ok(keys);
    }
    let mut keys = match first("properties") {
        Some(properties) if properties.starts_with('{') => {
            jsonl::parse_object(properties.as_bytes(), limit)?
        }
        _ => Map::new(),
    };
    if readers.is_configured() {
        add_readers(&entries, readers, &mut keys);
    }
    let is_short = |raw: &&str| raw.len() <= MAX_ID_BYTES;
    let id = first("id").filter(is_short);
    if let Some(id) = id.and_then(|raw| serde_json::from_str(raw).ok()) {
        keys.entry("id").or_insert(id);
    }
    let geometry = first("geometry").map(serde_json::from_str::<Option<GeoJsonGeometry<'_>>>);
    // An invalid geometry costs the record its location and nothing else.
    if let Some(Ok(Some(geometry))) = geometry {
        if let Some(kind) = geometry.r#type {
            keys.entry("geometry").or_insert(Raw::String(kind));
        }
        let coordinates = geometry.coordinates.map(RawValue::get).filter(is_short);
        let coordinates = coordinates.and_then(|raw| serde_json::from_str::<Vec<f64>>(raw).ok());
        if let Some([longitude, latitude, ..]) = coordinates.as_deref() {
            keys.entry("longitude").or_insert((*longitude).into());
            keys.entry("latitude").or_insert((*latitude).into());
        }
    }
    Ok(keys)
}

/// Merges an access control field that stands beside the properties into them. In both places at once it
/// counts as a duplicate.
fn add_readers(entries: &[JsonMember<'_>], readers: &ReaderKeys, keys: &mut Map<String, Raw>) {
    let mut is_misplaced = entries.len() >= MAX_MEMBERS;
    let mut properties = 0;
    for entry in entries {
        let raw = entry.raw.get();
        if readers.covers_key(&entry.name) {
            let value = serde_json::from_str(raw).unwrap_or_default();
            reader_field::insert_keeping_duplicates(keys, &entry.name, value);
        } else if entry.is("properties") {
            properties += 1;
            match raw.starts_with('{') {
                true => readers.mark_unread(raw, keys),
                false => is_misplaced |= raw != "null",
            }
        } else {
            is_misplaced |= readers.stand_in(raw);
        }
    }
    if properties > 1 {
        readers.mark(keys, ReaderFault::Repeated);
    }
    if is_misplaced {
        readers.mark(keys, ReaderFault::Misplaced);
    }
}

/// Collects the access control fields among the properties of a feature collection.
pub(super) fn put_readers(
    entry: &JsonMember<'_>,
    readers: &ReaderKeys,
    named: &mut Map<String, Raw>,
) {
    let raw = entry.raw.get();
    match serde_json::from_str::<Map<String, Raw>>(raw) {
        Ok(properties) => {
            for (name, value) in properties {
                if readers.covers_key(&name) {
                    reader_field::insert_keeping_duplicates(named, &name, value);
                }
            }
            readers.mark_unread(raw, named);
        }
        Err(_) if readers.stand_in(raw) => readers.mark(named, ReaderFault::Misplaced),
        Err(_) => {}
    }
}
