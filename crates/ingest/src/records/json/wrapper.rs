//! Wrapper objects: finds the lists of records inside an object such as `{"data": [...]}`, the access control
//! field that applies to all of them, and text that belongs to none.

use serde_json::Map;
use serde_json::value::RawValue;

use super::members::{self, JsonMember};
use super::{geojson, holds_objects};
use crate::clean::{clean_line, truncate_chars};
use crate::reader_field::{self, ReaderFault, ReaderField, ReaderKeys};
use crate::records::KEYS;

/// The usual member names under which programs wrap their records. An object with one list can be a wrapper or a
/// document that has a list, and hardly anything but the name distinguishes them; taken for a document, a table of
/// thousands of rows would become a single text.
#[rustfmt::skip]
const WRAPPERS: &[&str] = &[
    "data", "items", "records", "results", "rows", "entries", "documents", "docs", "objects",
    "hits", "list", "values", "elements", "result", "response", "payload", "content",
];

/// The most levels of wrappers inside wrappers. Answers of web services nest two or three, such as `response`, `data`
/// and `items`. Deeper lists belong to something, and would lose what they belong to if they were taken out of it.
const MAX_LEVELS: usize = 4;

/// The most member names that a warning lists, and the characters of each.
const MAX_BESIDE: usize = 8;
const MAX_NAME_CHARS: usize = 60;

/// The contents of an object that only wraps records.
#[derive(Debug)]
pub(super) struct Wrapper<'a> {
    /// The lists of records in it.
    pub lists: Vec<RecordList<'a>>,
    /// The access control field for records that have none of their own.
    pub readers: ReaderField,
    /// The names of members that are neither records nor mere numbers and flags.
    pub beside: Vec<String>,
}

/// One list of records in a wrapper.
#[derive(Debug)]
pub(super) struct RecordList<'a> {
    pub name: String,
    pub raw: &'a RawValue,
    /// Whether it is the main list, whose record ids are ids of the file.
    pub is_main: bool,
    pub is_geo: bool,
}

/// Finds the lists of records in an object. If exactly one list has a usual wrapper name, it is the main list
/// and the others are kept beside it. If several have such a name, none is the main list. A single list under
/// any other name counts if nothing suggests that the object is a document itself.
pub(super) fn find<'a>(outer: &[JsonMember<'a>], readers: &ReaderKeys) -> Option<Wrapper<'a>> {
    let mut scan = WrapperScan::new(readers);
    let mut inner: Vec<JsonMember<'a>>;
    let mut entries = outer;
    for _ in 0..MAX_LEVELS {
        if let Some(lists) = lists_of(entries) {
            let is_list = |entry: &JsonMember<'_>| {
                let is_it = |list: &RecordList<'_>| std::ptr::eq(list.raw, entry.raw);
                lists.iter().any(is_it)
            };
            let is_geo = lists.iter().any(|list| list.is_geo);
            scan.add_members(entries, is_geo, is_list);
            return Some(scan.into_wrapper(lists));
        }
        if entries.iter().any(|entry| holds_objects(entry.raw.get())) {
            return None;
        }
        let mut objects = entries
            .iter()
            .filter(|entry| is_any(WRAPPERS, entry) && entry.raw.get().starts_with('{'));
        let (Some(wrapper), None) = (objects.next(), objects.next()) else {
            return None;
        };
        scan.add_members(entries, false, |entry| std::ptr::eq(entry.raw, wrapper.raw));
        inner = members::object_members(wrapper.raw.get()).ok()?.0;
        entries = &inner;
    }
    None
}

fn is_any(names: &[&str], entry: &JsonMember<'_>) -> bool {
    names.iter().any(|name| entry.is(name))
}

fn lists_of<'a>(entries: &[JsonMember<'a>]) -> Option<Vec<RecordList<'a>>> {
    let is_collection = geojson::is_of_type(entries, "FeatureCollection");
    let is_geo = |entry: &JsonMember<'_>| {
        is_collection && entry.is("features") && entry.raw.get().starts_with('[')
    };
    let lists: Vec<_> = entries
        .iter()
        .filter(|entry| is_geo(entry) || holds_objects(entry.raw.get()))
        .collect();
    let is_wrapped = |entry: &JsonMember<'_>| match is_collection {
        true => is_geo(entry),
        false => is_any(WRAPPERS, entry),
    };
    let wrapped = lists.iter().filter(|entry| is_wrapped(entry)).count();
    let is_document = || {
        entries.iter().any(|entry| {
            is_any(KEYS.title, entry)
                || is_any(KEYS.text, entry) && entry.raw.get().starts_with('"')
        })
    };
    let is_main = |entry: &JsonMember<'_>| match wrapped {
        0 => true,
        1 => is_wrapped(entry),
        _ => false,
    };
    if wrapped == 0 && (lists.len() != 1 || is_document()) {
        return None;
    }
    let list = |entry: &&JsonMember<'a>| RecordList {
        name: entry.name.clone(),
        raw: entry.raw,
        is_main: is_main(entry),
        is_geo: is_geo(entry),
    };
    Some(lists.iter().map(list).collect())
}

/// What was found in the wrappers on the way to the lists.
struct WrapperScan<'k> {
    keys: &'k ReaderKeys,
    /// All access control fields so far. Two wrappers that both have one count as a duplicate.
    named: Map<String, serde_json::Value>,
    beside: Vec<String>,
}

impl<'k> WrapperScan<'k> {
    fn new(keys: &'k ReaderKeys) -> Self {
        Self {
            keys,
            named: Map::new(),
            beside: Vec::new(),
        }
    }

    fn add_members(
        &mut self,
        entries: &[JsonMember<'_>],
        is_geo: bool,
        is_read: impl Fn(&JsonMember<'_>) -> bool,
    ) {
        let is_cut = entries.len() >= members::MAX_MEMBERS;
        let mut is_misplaced = is_cut && self.keys.is_configured();
        for entry in entries.iter().filter(|entry| !is_read(entry)) {
            if self.keys.covers_key(&entry.name) {
                let value = serde_json::from_str(entry.raw.get()).unwrap_or_default();
                reader_field::insert_keeping_duplicates(&mut self.named, &entry.name, value);
                continue;
            }
            if is_geo && entry.is("properties") {
                geojson::put_readers(entry, self.keys, &mut self.named);
            } else {
                is_misplaced |= self.keys.stand_in(entry.raw.get());
            }
            let is_known = is_geo && is_any(&["type", "bbox", "crs"], entry);
            if !is_known && is_content(entry.raw.get()) && self.beside.len() < MAX_BESIDE {
                let mut name = clean_line(&entry.name);
                truncate_chars(&mut name, MAX_NAME_CHARS);
                self.beside.push(name);
            }
        }
        if is_misplaced {
            self.keys.mark(&mut self.named, ReaderFault::Misplaced);
        }
    }

    fn into_wrapper<'a>(mut self, lists: Vec<RecordList<'a>>) -> Wrapper<'a> {
        Wrapper {
            lists,
            readers: self.keys.take(&mut self.named),
            beside: self.beside,
        }
    }
}

/// Whether a value is content and not a number or a flag, with which APIs report the number of records or
/// whether more are to come.
fn is_content(raw: &str) -> bool {
    let is_empty = |open: char, close: char| {
        let inside = raw
            .strip_prefix(open)
            .and_then(|raw| raw.strip_suffix(close));
        inside.is_some_and(|inside| inside.trim().is_empty())
    };
    raw.starts_with(['"', '[', '{'])
        && !is_empty('"', '"')
        && !is_empty('[', ']')
        && !is_empty('{', '}')
}
