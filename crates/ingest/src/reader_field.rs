//! The field that names the readers of a document, kept apart from all other fields.
//!
//! Other fields may be dropped where they are empty, flattened where they are maps and cut at a limit. This
//! one guards the document, so that absent, empty, malformed and over the limit stay four different things
//! from the file to whoever decides: only absent means that the document says nothing about its readers.

mod json_scan;
mod names;

use std::fmt;
use std::ops::Deref;

use docent_search::{Document, DocumentValue, MAX_PRINCIPAL_BYTES, MAX_READERS};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Raw};
use unicode_normalization::UnicodeNormalization as _;

use crate::clean::{clean, clean_line};
use crate::format::ParserInput;

use json_scan::Root;
use names::is_nested;
pub use names::{comparable_name, is_or_is_nested_in};

/// The version of the rules by which the field is found. It is part of what a document is compared by, so that an
/// index made by rules that overlooked a field is read again.
pub const READER_RULES: u32 = 2;

/// The most bytes of a text that names all readers, each with a mark and a blank behind it.
const MAX_TEXT_BYTES: usize = MAX_READERS * (MAX_PRINCIPAL_BYTES + 2);

/// What a document says about its readers.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ReaderField {
    /// Nothing: it has no such field.
    #[default]
    Absent,
    /// Something that names nobody, so that nobody may read it.
    Malformed(ReaderFault),
    /// At least one name: a list of names, or a text with commas or semicolons between them.
    Present(DocumentValue),
}

/// Why the field that should name readers names nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ReaderFault {
    /// No value at all.
    Null,
    /// A text or list without a name, or a list with an empty one.
    Empty,
    /// A map.
    Map,
    /// A number or yes-or-no, or a list with something in it that is no text.
    NotText,
    /// Written more than once.
    Repeated,
    /// More names than a document may have.
    TooMany,
    /// A name with too many bytes, or all of them together.
    TooLong,
    /// A name that nobody can have.
    NoName,
    /// Front matter that cannot be read, in which it may stand.
    FrontMatter,
    /// A place that is not looked at, where it stands or may stand.
    Misplaced,
}

impl ReaderFault {
    /// Every fault there is.
    pub const ALL: [Self; 10] = [
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
    ];

    /// A name for it that stays the same from release to release.
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
        }
    }

    /// The fault of this code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.code() == code)
    }

    /// What the owner of the file can do about it.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::Null | Self::Empty => {
                "name its readers, write `nobody`, or take the field out to let the folder's rule or the default count"
            }
            Self::Map => "write a text or a list of texts in place of the map",
            Self::NotText => "write every name as text, in quotes where it looks like a number",
            Self::Repeated => "write the field once",
            Self::TooMany => "name a group in place of its members",
            Self::TooLong | Self::NoName => {
                "write each name as a group, an address of mail, `sub:…` or `key:…`, of at most 500 bytes"
            }
            Self::FrontMatter => {
                "begin the file with the opening line, close the block, and correct what is in it"
            }
            Self::Misplaced => {
                "write it once, among the outermost keys of the record or document that it is about"
            }
        }
    }
}

impl fmt::Display for ReaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("has no value"),
            Self::Empty => f.write_str("is empty or holds an empty name"),
            Self::Map => f.write_str("is a map"),
            Self::NotText => f.write_str("holds something that is no text"),
            Self::Repeated => f.write_str("is written more than once"),
            Self::TooMany => write!(f, "names more than {MAX_READERS} readers"),
            Self::TooLong => write!(f, "has a name of more than {MAX_PRINCIPAL_BYTES} bytes"),
            Self::NoName => f.write_str("has a name that nobody can have"),
            Self::FrontMatter => f.write_str("may stand in front matter that cannot be read"),
            Self::Misplaced => f.write_str("stands, or may stand, where it is not read"),
        }
    }
}

/// A document and what its file says about its readers. Its parts read as those of the document.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedDocument {
    /// The document, open to everyone until somebody has decided.
    pub document: Document,
    /// What its file says about its readers.
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

/// A name of the field, and the folder to whose files it applies; to all without one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderFieldName {
    /// The name, parts of nested maps separated by points.
    pub name: String,
    /// The folder.
    pub under: Option<String>,
}

impl ReaderFieldName {
    fn covers(&self, path: &str) -> bool {
        let Some(folder) = &self.under else {
            return true;
        };
        let rest = path.strip_prefix(folder.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '#']))
    }
}

/// The names under which one file may say who reads its documents; none where nobody asks.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReaderKeys(Vec<String>);

impl ReaderKeys {
    pub(crate) fn for_input(input: &ParserInput<'_>) -> Self {
        let names = input.options.readers.iter();
        let names = names.filter(|name| name.covers(input.path));
        Self(names.map(|name| comparable_name(&name.name)).collect())
    }

    /// Whether anybody asks.
    pub(crate) fn is_configured(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether a key is the field, holds it, or is nested in it.
    pub(crate) fn covers_key(&self, name: &str) -> bool {
        let name = comparable_name(name);
        let is = |key: &String| {
            *key == name || is_nested(key.as_str(), &name) || is_nested(&name, key.as_str())
        };
        self.0.iter().any(is)
    }

    /// Whether a dotted name is the field or nested in it, so that nobody should see it.
    pub(crate) fn hides_key(&self, name: &str) -> bool {
        self.is_configured() && {
            let name = comparable_name(name);
            let is = |key: &String| *key == name || is_nested(&name, key);
            self.0.iter().any(is)
        }
    }

    /// Whether a text seems to give the field a value: its name before a colon or an equals sign.
    pub(crate) fn appears_in(&self, text: &str) -> bool {
        if !self.is_configured() {
            return false;
        }
        let text = text.nfkc().flat_map(char::to_lowercase).nfkc();
        let text: String = text.collect();
        // A nested name stands in parts, of which the last is the one with the value.
        let lasts = self.0.iter().filter_map(|key| key.rsplit('.').next());
        lasts.filter(|last| !last.is_empty()).any(|last| {
            text.match_indices(last).any(|(at, _)| {
                let before = text.get(..at).and_then(|before| before.chars().next_back());
                let after = text.get(at + last.len()..).unwrap_or_default();
                let after = after
                    .trim_start_matches(|c: char| c.is_whitespace() || "\"'`*_”’»".contains(c));
                !before.is_some_and(char::is_alphanumeric) && after.starts_with([':', '=', '.'])
            })
        })
    }

    /// Whether a name before a mark is that of the field: the whole of it, the last part where it is nested, or
    /// the name of something nested in it.
    pub(crate) fn are_called(&self, name: &str) -> bool {
        let name = comparable_name(name);
        let is = |key: &String| {
            let last = key.rsplit('.').next();
            *key == name || last == Some(name.as_str()) || is_nested(&name, key)
        };
        !name.is_empty() && self.0.iter().any(is)
    }

    /// Takes the field out of what a document says, and decides what it is.
    pub(crate) fn take(&self, map: &mut Map<String, Raw>) -> ReaderField {
        let mut decided = ReaderField::Absent;
        for key in &self.0 {
            let mut found = Vec::new();
            take_all(map, "", key, &mut found);
            // The first name that a document has decides, however little it says.
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

    /// Whether a map has the field, under any of its names.
    pub(crate) fn are_in(&self, map: &Map<String, Raw>) -> bool {
        self.0.iter().any(|key| holds(map, "", key))
    }

    /// Makes the field of a document malformed, whatever it is.
    pub(crate) fn mark(&self, map: &mut Map<String, Raw>, fault: ReaderFault) {
        if let Some(key) = self.0.first() {
            let mark = [(MARK.to_owned(), Raw::from(fault.code()))];
            insert_keeping_duplicates(map, key, Raw::Object(mark.into_iter().collect()));
        }
    }

    /// Marks what the JSON text of a record says about its readers and its map does not show: a field that is
    /// written twice, or in an object inside the record, which is no field of the record.
    pub(crate) fn mark_unread(&self, json: &str, map: &mut Map<String, Raw>) {
        let found = json_scan::scan(json, &self.0, Root::Record);
        if found.repeated {
            self.mark(map, ReaderFault::Repeated);
        } else if found.elsewhere {
            self.mark(map, ReaderFault::Misplaced);
        }
    }

    /// Whether the field stands anywhere in a JSON text that is not itself read for readers.
    pub(crate) fn stand_in(&self, json: &str) -> bool {
        json_scan::scan(json, &self.0, Root::Inner).elsewhere
    }

    /// Gives a record without the field the one of what it lies in.
    pub(crate) fn inherit(&self, from: &ReaderField, map: &mut Map<String, Raw>) {
        let Some(key) = self.0.first() else { return };
        if *from == ReaderField::Absent || self.are_in(map) {
            return;
        }
        match from {
            ReaderField::Present(DocumentValue::List(names)) => {
                insert_keeping_duplicates(map, key, names.clone().into())
            }
            ReaderField::Present(value) => {
                insert_keeping_duplicates(map, key, Raw::String(value.to_string()))
            }
            ReaderField::Malformed(fault) => self.mark(map, *fault),
            ReaderField::Absent => {}
        }
    }
}

/// The key of a map that stands for a fault. No file gains by writing it: all that it does is to close.
const MARK: &str = "\u{0}fault";

fn fault_of_mark(raw: &Raw) -> Option<ReaderFault> {
    ReaderFault::from_code(raw.as_object()?.get(MARK)?.as_str()?)
}

/// Puts a value into a map beside one of the same name: names that differ by blanks alone are the same to
/// [`ReaderKeys::take`], so that a field that is written twice stays written twice.
pub(crate) fn insert_keeping_duplicates(map: &mut Map<String, Raw>, name: &str, value: Raw) {
    let mut name = name.to_owned();
    while map.contains_key(&name) {
        name.push(' ');
    }
    map.insert(name, value);
}

/// Takes every value out of a map that stands under a name, wherever points may separate its parts. It calls
/// itself once for each part of the name.
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
                // Where a map should be that may hold the field, there is something else.
                _ => found.extend(map.shift_remove(&name).map(|_| Raw::Null)),
            }
        }
    }
}

/// Whether a map has something under a name; the same walk without taking anything.
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
    let text = clean(text);
    let names = || {
        let parts = text.split([',', ';']).map(str::trim);
        parts.filter(|name| !name.is_empty())
    };
    match names().count() {
        0 => Err(ReaderFault::Empty),
        count if count > MAX_READERS => Err(ReaderFault::TooMany),
        _ if text.len() > MAX_TEXT_BYTES => Err(ReaderFault::TooLong),
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
mod overlooked;
#[cfg(test)]
mod tests;
