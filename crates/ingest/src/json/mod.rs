//! JSON files into documents: a list of objects into one document an object, wherever in the file the list
//! stands; any other object into one document. Lists are read element by element, never as a whole.

mod geo;
mod lines;
mod walk;

use std::io::{BufReader, Read};

use serde_json::value::RawValue;
use serde_json::{Map, Value as Raw};

use crate::digest::sha256;
use crate::error::Reason;
use crate::fields::facts;
use crate::format::{Format, Input, Parsed, begins_with_anything};
use crate::reader_field::{self, ReaderKeys};
use crate::record_ids::{IdPass, take_own_id, twice};
use crate::records::{KEYS, Place, Records};
use crate::text::characters;
use crate::walk::unreadable;
use crate::{code, jsonl, notebook, whole};

pub(crate) use walk::{Entry, elements, entries};

pub(crate) const FORMAT: Format = Format {
    name: "json",
    extensions: &["json", "geojson"],
    begins: begins_with_anything,
    parse,
};

fn parse(input: &Input<'_>) -> Result<Parsed, Reason> {
    code::refuse_lock_file(input)?;
    let text = characters(input.bytes)?;
    let text = text.trim();
    match text.as_bytes().first() {
        None => Err(Reason::Empty),
        Some(b'[') if holds_objects(text) => records(input, text, jsonl_object),
        Some(b'[') => one_document(input, text, &[]),
        Some(b'{') => object(input, text),
        Some(_) => Err(Reason::NotAnObject),
    }
}

/// Bytes that tell a list of objects.
const HEAD: u64 = 4 * 1024;

/// The same for a file that is read while it comes. Only a list of objects can be read so; of anything else
/// the end must be known before its beginning is understood.
pub(crate) fn stream(input: &Input<'_>, from: &mut dyn Read) -> Result<Parsed, Reason> {
    let mut head = Vec::new();
    let begun = (&mut *from).take(HEAD).read_to_end(&mut head);
    begun.map_err(|error| unreadable(&error))?;
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&head);
    let start = text.trim_ascii_start();
    let inside = start.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    if inside.is_some_and(|inside| inside.starts_with(b"{")) {
        code::refuse_lock_file(input)?;
        return list(input, start.chain(from));
    }
    if input.ids == IdPass::Scan {
        // What is read as a whole is read twice there.
        return Ok(Parsed::default());
    }
    whole(input, head, from)
}

fn whole(input: &Input<'_>, mut bytes: Vec<u8>, from: &mut dyn Read) -> Result<Parsed, Reason> {
    let limit = input.limits.max_file_bytes;
    let rest = from.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    rest.map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > limit {
        let bytes = bytes.len() as u64;
        return Err(Reason::TooLarge { bytes, limit });
    }
    parse(&Input {
        bytes: &bytes,
        sha256: &sha256(&bytes),
        ..*input
    })
}

/// Reads a list element by element.
fn list(input: &Input<'_>, from: impl Read) -> Result<Parsed, Reason> {
    let mut records = Records::new(input);
    let mut number = 0;
    let outcome = walk::read_elements(BufReader::new(from), |raw: &RawValue| {
        number += 1;
        record(&mut records, number, raw, jsonl_object)
    });
    finish(records, number, outcome)
}

fn object(input: &Input<'_>, text: &str) -> Result<Parsed, Reason> {
    let (entries, rest) = entries(text)?;
    if !rest.trim().is_empty() {
        // Objects that follow each other are lines of records under another name.
        return jsonl::parse(input);
    }
    let named = |name: &str| entries.iter().find(|entry| entry.name == name);
    let is = |entry: Option<&Entry<'_>>, word: &str| {
        entry.is_some_and(|entry| entry.raw.get().trim_matches('"') == word)
    };
    if named("nbformat").is_some() && (named("cells").is_some() || named("worksheets").is_some()) {
        return notebook::of_entries(input, &entries);
    }
    if is(named("type"), "FeatureCollection")
        && let Some(features) = named("features")
    {
        return records(input, features.raw.get(), geo::feature);
    }
    match list_inside(&entries) {
        Some(list) => records(input, list.get(), jsonl_object),
        None => one_document(input, text, &entries),
    }
}

/// Names under which programs wrap their records.
#[rustfmt::skip]
const WRAPPERS: &[&str] = &[
    "data", "items", "records", "results", "rows", "entries", "documents", "docs", "objects",
    "hits", "list", "values", "elements", "result", "response", "payload", "content",
];

/// The list of objects that an object is there to carry: the only one under a usual name, or the only one
/// at all where nothing says that the object is itself a document.
fn list_inside<'a>(entries: &[Entry<'a>]) -> Option<&'a RawValue> {
    /// Wrappers inside wrappers.
    const MOST_LEVELS: usize = 4;
    let mut inner = Vec::new();
    let mut entries = entries;
    for _ in 0..MOST_LEVELS {
        let is_any = |names: &[&str], entry: &Entry<'_>| {
            names
                .iter()
                .any(|name| entry.name.eq_ignore_ascii_case(name))
        };
        let lists: Vec<_> = entries
            .iter()
            .filter(|entry| holds_objects(entry.raw.get()))
            .collect();
        let wrapped: Vec<_> = lists
            .iter()
            .filter(|entry| is_any(WRAPPERS, entry))
            .collect();
        let is_document = entries.iter().any(|entry| {
            is_any(KEYS.title, entry)
                || is_any(KEYS.text, entry) && entry.raw.get().starts_with('"')
        });
        match (wrapped.as_slice(), lists.as_slice()) {
            ([one], _) => return Some(one.raw),
            ([], [one]) if !is_document => return Some(one.raw),
            ([], []) => {}
            _ => return None,
        }
        let mut objects = entries
            .iter()
            .filter(|entry| is_any(WRAPPERS, entry) && entry.raw.get().starts_with('{'));
        let (Some(wrapper), None) = (objects.next(), objects.next()) else {
            return None;
        };
        inner = walk::entries(wrapper.raw.get()).ok()?.0;
        entries = &inner;
    }
    drop(inner);
    None
}

/// Whether a value is a list whose first element is an object.
fn holds_objects(raw: &str) -> bool {
    let inside = raw.strip_prefix('[').map(str::trim_start);
    inside.is_some_and(|inside| inside.starts_with('{'))
}

type ReadRecord = fn(&str, usize, &ReaderKeys) -> Result<Map<String, Raw>, Reason>;

fn jsonl_object(raw: &str, limit: usize, _: &ReaderKeys) -> Result<Map<String, Raw>, Reason> {
    jsonl::object(raw.as_bytes(), limit)
}

fn records(input: &Input<'_>, list: &str, read: ReadRecord) -> Result<Parsed, Reason> {
    twice(input, |input| {
        let mut records = Records::new(input);
        let mut number = 0;
        let outcome = elements(list, |raw| {
            number += 1;
            record(&mut records, number, raw, read)
        });
        finish(records, number, outcome)
    })
}

/// Adds one element; false when no more fit.
fn record(records: &mut Records<'_>, number: u64, raw: &RawValue, read: ReadRecord) -> bool {
    let place = Place::Row(number);
    if !records.begin(place) {
        return false;
    }
    match read(
        raw.get(),
        records.limits().max_line_bytes,
        records.reader_keys(),
    ) {
        Ok(mut keys) => {
            records.reader_keys().note_repeated(raw.get(), &mut keys);
            records.add(place, keys, Some(sha256(raw.get().as_bytes())));
        }
        Err(reason) => records.skip(place, reason),
    }
    true
}

fn finish(
    mut records: Records<'_>,
    number: u64,
    outcome: Result<(), Reason>,
) -> Result<Parsed, Reason> {
    if let Err(reason) = outcome {
        if number == 0 {
            return Err(reason);
        }
        records.skip(Place::Row(number + 1), reason);
    }
    records.finish()
}

/// An object that is a document of its own: what it says about itself are the fields, and all of it the
/// text.
fn one_document(input: &Input<'_>, text: &str, entries: &[Entry<'_>]) -> Result<Parsed, Reason> {
    let readers = ReaderKeys::of(input);
    let lines = lines::of(text, input.limits.max_text_chars, &readers)?;
    let mut keys = small_entries(entries, input.limits.max_line_bytes, &readers);
    readers.note_repeated(text, &mut keys);
    // Among keys that are passed over may be the one that names the readers.
    let is_cut = entries.len() >= walk::MOST_ENTRIES;
    let (id, bad_id) = match take_own_id(&mut keys) {
        Ok(id) => (id, None),
        Err(reason) => (None, Some(reason)),
    };
    let mut facts = facts(keys, &KEYS, input);
    if lines.trim().is_empty() {
        return Err(Reason::Empty);
    }
    if is_cut {
        facts.doubt(&readers);
    }
    facts.warnings.splice(0..0, bad_id);
    let text = facts.text.take().unwrap_or(lines);
    whole::named(input, id, text, facts)
}

/// The entries of an object that together have no more bytes than a record may have.
fn small_entries(entries: &[Entry<'_>], limit: usize, readers: &ReaderKeys) -> Map<String, Raw> {
    let mut left = limit;
    let mut keys = Map::new();
    for entry in entries {
        let raw = entry.raw.get();
        if readers.concern(&entry.name) {
            // However long all of it is: what is too long to be read names nobody.
            let value = Some(raw).filter(|raw| raw.len() <= limit);
            let value = value.and_then(|raw| serde_json::from_str(raw).ok());
            reader_field::put(&mut keys, &entry.name, value.unwrap_or_default());
            continue;
        }
        if raw.len() <= left
            && let Ok(value) = serde_json::from_str(raw)
        {
            left -= raw.len();
            keys.entry(entry.name.clone()).or_insert(value);
        }
    }
    keys
}

#[cfg(test)]
mod tests;
