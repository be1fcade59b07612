//! Features of GeoJSON into records: their properties, and of their shape only what it is and where a
//! point lies. Outlines of many megabytes are skipped over.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Raw};

use super::walk::entries;
use crate::error::Reason;
use crate::jsonl;
use crate::reader_field::{self, ReaderKeys};

#[derive(Deserialize)]
struct Feature<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    properties: Option<&'a RawValue>,
    #[serde(borrow)]
    geometry: Option<Geometry<'a>>,
}

#[derive(Deserialize)]
struct Geometry<'a> {
    r#type: Option<String>,
    #[serde(borrow)]
    coordinates: Option<&'a RawValue>,
}

/// What is longer is no id, nor the place of a point.
const MOST_ID_BYTES: usize = 4_096;

/// The keys and values of one feature.
pub(super) fn feature(
    raw: &str,
    limit: usize,
    readers: &ReaderKeys,
) -> Result<Map<String, Raw>, Reason> {
    let Ok(feature) = serde_json::from_str::<Feature<'_>>(raw) else {
        // Whatever it is, it may still be a record.
        return jsonl::object(raw.as_bytes(), limit);
    };
    let mut keys = match feature.properties {
        Some(properties) if properties.get() != "null" => {
            jsonl::object(properties.get().as_bytes(), limit)?
        }
        _ => Map::new(),
    };
    // Beside the properties it counts as well; in both places it is written twice.
    if readers.are_set() {
        for entry in entries(raw)?.0 {
            if readers.concern(&entry.name) {
                let value = serde_json::from_str(entry.raw.get()).unwrap_or_default();
                reader_field::put(&mut keys, &entry.name, value);
            }
        }
    }
    let id = feature.id.filter(|raw| raw.get().len() <= MOST_ID_BYTES);
    if let Some(id) = id.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
        keys.entry("id").or_insert(id);
    }
    if let Some(geometry) = feature.geometry {
        if let Some(kind) = geometry.r#type {
            keys.entry("geometry").or_insert(Raw::String(kind));
        }
        let place = geometry
            .coordinates
            .filter(|raw| raw.get().len() <= MOST_ID_BYTES);
        let place = place.and_then(|raw| serde_json::from_str::<Vec<f64>>(raw.get()).ok());
        if let Some([longitude, latitude, ..]) = place.as_deref() {
            keys.entry("longitude").or_insert((*longitude).into());
            keys.entry("latitude").or_insert((*latitude).into());
        }
    }
    Ok(keys)
}
