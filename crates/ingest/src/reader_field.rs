//! The reader field: the field of a document that lists who may read it, kept apart from all other fields.
//!
//! Other fields may be dropped when empty, flattened when they are maps and truncated at a limit. This one
//! guards the document, so absent, empty, malformed and over the limit remain four different things all the
//! way from the file to the authorization decision: only "absent" means that the document says nothing
//! about its readers.

mod assignments;
mod json_scan;
mod names;

use std::fmt;
use std::ops::Deref;

use docent_search::{Document, DocumentValue, MAX_PRINCIPAL_BYTES, MAX_READERS};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Raw};

use crate::clean::{clean, clean_line};
use crate::folded_path::is_under;
use crate::parser::ParserInput;

use json_scan::JsonScanRoot;
use names::is_nested;
pub use names::{comparable_name, is_or_is_nested_in};

/// Version of the rules by which the field is found. It is part of the fingerprint that documents are
/// compared by, so that an index built by rules that overlooked a field is rebuilt.
pub const READER_RULES: u32 = 4;

/// The longest text that lists readers: as many names as allowed, each followed by a separator and a blank.
/// A parser may truncate the field only beyond this length, because the rest of a cut name is another name.
pub(crate) const MAX_READER_TEXT_BYTES: usize = MAX_READERS * (MAX_PRINCIPAL_BYTES + 2);

/// The content of a document's reader field.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ReaderField {
    /// The document has no such field, so a rule or the default decides.
    #[default]
    Absent,
    /// The field is there but names nobody, so nobody may read the document.
    Malformed(ReaderFault),
    /// At least one name: a list of names, or a text with commas or semicolons between them.
    Present(DocumentValue),
}

/// Why a reader field is malformed and therefore closes its document to everyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ReaderFault {
    /// The field has no value at all.
    Null,
    /// A text or list without a name, or a list with an empty one.
    Empty,
    /// The value is a map.
    Map,
    /// A number, a boolean, or a list with an element that is not text.
    NotText,
    /// The field is written more than once.
    Repeated,
    /// More names than a document may have.
    TooMany,
    /// A name with too many bytes, or too many bytes in total.
    TooLong,
    /// A name that no user, group or key can have.
    NoName,
    /// Front matter that cannot be parsed and may contain the field.
    FrontMatter,
    /// The field is, or may be, in a place where it is not read.
    Misplaced,
    /// `nobody` next to other names.
    Contradictory,
}

impl ReaderFault {
    /// All faults, for tests and for iteration.
    pub const ALL: [Self; 11] = [
        Self::Null,
        Self::Empty,
        Self::Map,
        Self::NotText,
        Self::Repeated,
        Self::TooMany,
        Self::TooLong,
        Self::NoName,
        Self::FrontMatter,
        Self::Misplaced,
        Self::Contradictory,
    ];

    /// A stable identifier, the same from release to release.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Empty => "empty",
            Self::Map => "map",
            Self::NotText => "not-text",
            Self::Repeated => "repeated",
            Self::TooMany => "too-many",
            Self::TooLong => "too-long",
            Self::NoName => "no-name",
            Self::FrontMatter => "front-matter",
            Self::Misplaced => "misplaced",
            Self::Contradictory => "contradictory",
        }
    }

    /// Parses an identifier that [`Self::code`] returned.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.code() == code)
    }

    /// What the owner of the file can do about the fault.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::Null | Self::Empty => {
                "name its readers, write `nobody`, or remove the field so that the folder's rule or the default applies"
            }
            Self::Map => "write a text or a list of texts in place of the map",
            Self::NotText => "write every name as text, in quotes where it looks like a number",
            Self::Repeated => "write the field once",
            Self::TooMany => "name a group in place of its members",
            Self::TooLong | Self::NoName => {
                "write each name as a group, an e-mail address, `sub:…` or `key:…`, of at most 512 bytes"
            }
            Self::FrontMatter => {
                "put the opening line first in the file, close the block and correct its content"
            }
            Self::Misplaced => {
                "write it once, as a top-level key of the record or document it is about"
            }
            Self::Contradictory => "write `nobody` alone, or remove it from the names",
        }
    }
}

impl fmt::Display for ReaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("has no value"),
            Self::Empty => f.write_str("is empty or holds an empty name"),
            Self::Map => f.write_str("is a map"),
            Self::NotText => f.write_str("holds something that is not text"),
            Self::Repeated => f.write_str("is written more than once"),
            Self::TooMany => write!(f, "names more than {MAX_READERS} readers"),
            Self::TooLong => write!(
                f,
                "is too long or has a name of more than {MAX_PRINCIPAL_BYTES} bytes"
            ),
            Self::NoName => f.write_str("has an invalid name"),
            Self::FrontMatter => f.write_str("may stand in front matter that cannot be read"),
            Self::Misplaced => f.write_str("is, or may be, in a place where it is not read"),
            Self::Contradictory => f.write_str("has `nobody` next to other names"),
        }
    }
}

/// A document together with its reader field. It dereferences to the document.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedDocument {
    /// The document, open to everyone until the permissions are applied.
    pub document: Document,
    /// The reader field that its file declares.
    pub readers: ReaderField,
}

impl From<Document> for ParsedDocument {
    fn from(document: Document) -> Self {
        Self {
            document,
            readers: ReaderField::Absent,
        }
    }
}

impl Deref for ParsedDocument {
    type Target = Document;

    fn deref(&self) -> &Document {
        &self.document
    }
}

/// An accepted name of the reader field, and the folder whose files it applies to (all files without one).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderFieldName {
    /// The name, with points between the parts of a nested one.
    pub name: String,
    /// The folder, or `None` for the whole source.
    pub under: Option<String>,
}

impl ReaderFieldName {
    fn covers(&self, path: &str) -> bool {
        is_under(path, self.under.as_deref())
    }
}

/// Names of the reader field that apply to one file, in order of preference. Empty if no permissions come
/// from the documents.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReaderKeys(Vec<String>);

impl ReaderKeys {
    pub(crate) fn for_input(input: &ParserInput<'_>) -> Self {
        let names = input.options.readers.iter();
        let names = names.filter(|name| name.covers(input.path));
        Self(names.map(|name| comparable_name(&name.name)).collect())
    }

    /// The names that apply to any file.
    pub(crate) fn for_any_path(names: &[ReaderFieldName]) -> Self {
        let names = names.iter();
        Self(names.map(|name| comparable_name(&name.name)).collect())
    }

    /// Whether any name of the reader field applies to this file.
    pub(crate) fn is_configured(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether a key is the reader field, contains it, or is nested in it.
    pub(crate) fn covers_key(&self, name: &str) -> bool {
        let name = comparable_name(name);
        let is = |key: &String| {
            *key == name || is_nested(key.as_str(), &name) || is_nested(&name, key.as_str())
        };
        self.0.iter().any(is)
    }

    /// Whether a dotted name is the reader field or nested in it, and so must be hidden from readers.
    pub(crate) fn hides_key(&self, name: &str) -> bool {
        self.is_configured() && {
            let name = comparable_name(name);
            let is = |key: &String| *key == name || is_nested(&name, key);
            self.0.iter().any(is)
        }
    }

    /// Whether a label is the name of the field: all of it, the last part of a nested name, or a name
    /// nested in it.
    pub(crate) fn are_called(&self, name: &str) -> bool {
        let name = comparable_name(name);
        let is = |key: &String| {
            let last = key.rsplit('.').next();
            *key == name || last == Some(name.as_str()) || is_nested(&name, key)
        };
        !name.is_empty() && self.0.iter().any(is)
    }

    /// Removes the field from a document's keys and classifies its value.
    pub(crate) fn take(&self, map: &mut Map<String, Raw>) -> ReaderField {
        let mut decided = ReaderField::Absent;
        for key in &self.0 {
            let mut found = Vec::new();
            take_all(map, "", key, &mut found);
            // The first name that the document has decides, even if its value is empty.
            if decided == ReaderField::Absent {
                let marked = found.iter().find_map(fault_of_mark);
                decided = match (marked, found.pop(), found.is_empty()) {
                    (Some(fault), ..) => ReaderField::Malformed(fault),
                    (None, None, _) => ReaderField::Absent,
                    (None, Some(raw), true) => classify_reader_value(raw),
                    (None, Some(_), false) => ReaderField::Malformed(ReaderFault::Repeated),
                };
            }
        }
        decided
    }

    /// Whether a map has the field under any of its names.
    pub(crate) fn are_in(&self, map: &Map<String, Raw>) -> bool {
        self.0.iter().any(|key| holds(map, "", key))
    }

    /// Marks the field of a document as malformed, whatever value it has.
    pub(crate) fn mark(&self, map: &mut Map<String, Raw>, fault: ReaderFault) {
        if let Some(key) = self.0.first() {
            insert_keeping_duplicates(map, key, fault_mark(fault));
        }
    }

    /// Marks a record as malformed where its JSON text has the field in a way that the parsed map does not
    /// show: written twice, or in a nested object, which is not a field of the record.
    pub(crate) fn mark_unread(&self, json: &str, map: &mut Map<String, Raw>) {
        let found = json_scan::scan(json, self, JsonScanRoot::Record);
        if found.repeated {
            self.mark(map, ReaderFault::Repeated);
        } else if found.elsewhere {
            self.mark(map, ReaderFault::Misplaced);
        }
    }

    /// Marks a record as malformed where a value of it has the field inside, such as a cell with JSON.
    pub(crate) fn mark_inner(&self, map: &mut Map<String, Raw>) {
        if self.is_configured() && map.values().any(|value| json_scan::value_has(value, self)) {
            self.mark(map, ReaderFault::Misplaced);
        }
    }

    /// Whether the field occurs anywhere in a JSON value whose keys are not read as fields.
    pub(crate) fn stand_in(&self, json: &str) -> bool {
        json_scan::scan(json, self, JsonScanRoot::Inner).elsewhere
    }

    /// Whether a text is JSON, or looks like it, and has the field inside.
    pub(crate) fn stand_in_text(&self, text: &str) -> bool {
        self.is_configured() && json_scan::text_has(text, self)
    }

    /// Gives a record without the field that of its container, such as the wrapper object or the file.
    pub(crate) fn inherit(&self, from: &ReaderField, map: &mut Map<String, Raw>) {
        let Some(key) = self.0.first() else { return };
        if *from == ReaderField::Absent || self.are_in(map) {
            return;
        }
        match from {
            ReaderField::Present(DocumentValue::List(names)) => {
                insert_keeping_duplicates(map, key, names.clone().into());
            }
            ReaderField::Present(value) => {
                insert_keeping_duplicates(map, key, Raw::String(value.to_string()));
            }
            ReaderField::Malformed(fault) => self.mark(map, *fault),
            ReaderField::Absent => {}
        }
    }
}

/// The key of a map that stands for a fault. A file cannot gain anything by writing it, because all it does
/// is close the document.
const MARK: &str = "\u{0}fault";

/// A value that [`ReaderKeys::take`] reads as this fault, for parsers that see what a JSON value cannot say.
pub(crate) fn fault_mark(fault: ReaderFault) -> Raw {
    let mark = [(MARK.to_owned(), Raw::from(fault.code()))];
    Raw::Object(mark.into_iter().collect())
}

fn fault_of_mark(raw: &Raw) -> Option<ReaderFault> {
    ReaderFault::from_code(raw.as_object()?.get(MARK)?.as_str()?)
}

/// Inserts a value next to one of the same name instead of replacing it. Names that differ only in blanks
/// are the same to [`ReaderKeys::take`], so a field that is written twice stays detectable. Two values are
/// enough for that, and so a third is not kept.
pub(crate) fn insert_keeping_duplicates(map: &mut Map<String, Raw>, name: &str, value: Raw) {
    let name = match map.contains_key(name) {
        true => format!("{name} "),
        false => name.to_owned(),
    };
    map.entry(name).or_insert(value);
}

/// Removes every value under a name from a map, wherever points may separate the name's parts. It recurses
/// once per part.
fn take_all(map: &mut Map<String, Raw>, above: &str, key: &str, found: &mut Vec<Raw>) {
    let names: Vec<String> = map.keys().cloned().collect();
    for name in names {
        let full = match above {
            "" => comparable_name(&name),
            above => format!("{above}.{}", comparable_name(&name)),
        };
        if full == key {
            found.extend(map.shift_remove(&name));
        } else if is_nested(&full, key) {
            map.shift_remove(&name);
            found.push(Raw::Object(Map::new()));
        } else if is_nested(key, &full) {
            match map.get_mut(&name) {
                Some(Raw::Object(inner)) => take_all(inner, &full, key, found),
                // There is something else in place of the map that could contain the field.
                _ => found.extend(map.shift_remove(&name).map(|_| Raw::Null)),
            }
        }
    }
}

/// Whether a map has something under a name; like `take_all`, but without removing it.
fn holds(map: &Map<String, Raw>, above: &str, key: &str) -> bool {
    map.iter().any(|(name, value)| {
        let full = match above {
            "" => comparable_name(name),
            above => format!("{above}.{}", comparable_name(name)),
        };
        let is_inside = || match value {
            Raw::Object(inner) => holds(inner, &full, key),
            _ => true,
        };
        full == key || is_nested(&full, key) || is_nested(key, &full) && is_inside()
    })
}

fn classify_reader_value(raw: Raw) -> ReaderField {
    let value = match raw {
        Raw::Null => Err(ReaderFault::Null),
        Raw::Object(_) => Err(ReaderFault::Map),
        Raw::Bool(_) | Raw::Number(_) => Err(ReaderFault::NotText),
        Raw::String(text) => text_of_names(&text).map(DocumentValue::Text),
        Raw::Array(items) => list_of_names(items).map(DocumentValue::List),
    };
    value.map_or_else(ReaderField::Malformed, ReaderField::Present)
}

fn text_of_names(text: &str) -> Result<String, ReaderFault> {
    // Before cleaning, which would hide that a parser truncated the text.
    if text.len() > MAX_READER_TEXT_BYTES {
        return Err(ReaderFault::TooLong);
    }
    let text = clean(text);
    let names = || {
        let parts = text.split([',', ';']).map(str::trim);
        parts.filter(|name| !name.is_empty())
    };
    match names().count() {
        0 => Err(ReaderFault::Empty),
        count if count > MAX_READERS => Err(ReaderFault::TooMany),
        _ if text.len() > MAX_READER_TEXT_BYTES => Err(ReaderFault::TooLong),
        _ if names().any(|name| name.len() > MAX_PRINCIPAL_BYTES) => Err(ReaderFault::TooLong),
        _ => Ok(text.trim().to_owned()),
    }
}

fn list_of_names(items: Vec<Raw>) -> Result<Vec<String>, ReaderFault> {
    if items.is_empty() {
        return Err(ReaderFault::Empty);
    }
    if items.len() > MAX_READERS {
        return Err(ReaderFault::TooMany);
    }
    let name = |item: Raw| match item {
        Raw::String(text) if text.len() > MAX_READER_TEXT_BYTES => Err(ReaderFault::TooLong),
        Raw::String(text) => match clean_line(&text) {
            name if name.is_empty() => Err(ReaderFault::Empty),
            name if name.len() > MAX_PRINCIPAL_BYTES => Err(ReaderFault::TooLong),
            name => Ok(name),
        },
        _ => Err(ReaderFault::NotText),
    };
    items.into_iter().map(name).collect()
}

#[cfg(test)]
pub(crate) mod formats;
#[cfg(test)]
mod inner_json;
#[cfg(test)]
mod office_properties;
#[cfg(test)]
mod overlooked;
#[cfg(test)]
mod parquet_sample;
#[cfg(test)]
mod property_files;
#[cfg(test)]
mod property_formats;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod xls_sample;
#[cfg(test)]
mod xlsx_sample;
