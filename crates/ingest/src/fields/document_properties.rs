//! Document properties: collects what office files, books and PDFs state about themselves, under the keys
//! that all of them share.
//!
//! A property that is the reader field is collected by stricter rules. Other properties keep their first
//! value, are dropped when blank and are cut at a limit; the reader field keeps every value that the file
//! has, so that an empty, repeated or overlong one closes the document instead of counting as absent.

use docent_search::MAX_READERS;
use serde_json::{Map, Value as Raw};

use crate::dates::written_date::parse_written_date;
use crate::error::IngestError;
use crate::reader_field::{
    self, MAX_READER_TEXT_BYTES, ReaderFault, ReaderKeys, comparable_name, fault_mark,
};
use crate::xml::XmlReader;

/// The most bytes kept of one property. Titles, authors and keywords are short; a property that holds a whole text is
/// used as a store by some program, and would be shown beside every answer from the document.
const MAX_PROPERTY_BYTES: usize = 64 * 1024;

/// The most values of a list that are worth collecting: one more than a reader field may have, so that the
/// excess is noticed.
pub(crate) const MAX_LISTED_VALUES: usize = MAX_READERS + 1;

/// The properties of one file.
pub(crate) struct DocumentProperties<'r> {
    readers: &'r ReaderKeys,
    found: Map<String, Raw>,
    /// The properties that are the reader field, as often as the file has them, but at most twice each: two
    /// already make the field ambiguous.
    reader_values: Vec<(String, Raw)>,
}

impl<'r> DocumentProperties<'r> {
    pub(crate) fn new(readers: &'r ReaderKeys) -> Self {
        Self {
            readers,
            found: Map::new(),
            reader_values: Vec::new(),
        }
    }

    /// Whether a property is the reader field, contains it, or is nested in it.
    pub(crate) fn is_reader_field(&self, key: &str) -> bool {
        self.readers.covers_key(key)
    }

    /// The length at which a property is cut. The reader field is cut only beyond the length at which it is
    /// malformed, because its last name would become another one.
    pub(crate) fn max_bytes(&self, key: &str) -> usize {
        match self.is_reader_field(key) {
            true => MAX_READER_TEXT_BYTES + 1,
            false => MAX_PROPERTY_BYTES,
        }
    }

    /// Reads the text of the element that was opened last, up to the length that its property may have.
    pub(crate) fn text_of(
        &self,
        key: &str,
        xml: &mut XmlReader<'_>,
    ) -> Result<String, IngestError> {
        xml.text_content(self.max_bytes(key))
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        self.found.contains_key(key) || self.reader_values.iter().any(|(name, _)| name == key)
    }

    /// Adds a property that a file has at most once; of a repeated one the first value counts.
    pub(crate) fn add(&mut self, key: &str, text: String) {
        if self.is_reader_field(key) {
            self.add_reader_value(key, Raw::String(text));
        } else if !text.trim().is_empty() {
            self.found.entry(key).or_insert(Raw::String(text));
        }
    }

    /// Adds all values of a property that the format allows to be repeated. Fields keep at most `limit` of
    /// them.
    pub(crate) fn add_list(&mut self, key: &str, mut values: Vec<String>, limit: usize) {
        let is_reader_field = self.is_reader_field(key);
        if !is_reader_field {
            values.retain(|value| !value.trim().is_empty());
            values.truncate(limit);
        }
        let value = match values.len() {
            0 => return,
            1 => values.pop().map_or(Raw::Null, Raw::String),
            _ => Raw::from(values),
        };
        if is_reader_field {
            self.add_reader_value(key, value);
        } else {
            self.found.entry(key).or_insert(value);
        }
    }

    /// Records why a property that is the reader field names nobody.
    pub(crate) fn add_fault(&mut self, key: &str, fault: ReaderFault) {
        if self.is_reader_field(key) {
            self.add_reader_value(key, fault_mark(fault));
        }
    }

    /// Records a property that becomes no field. It closes the document if it is called like the reader
    /// field, since somebody may have meant it.
    pub(crate) fn pass_over(&mut self, name: &str) {
        if self.readers.hides_key(name) {
            self.add_reader_value(name, fault_mark(ReaderFault::Misplaced));
        }
    }

    fn add_reader_value(&mut self, name: &str, value: Raw) {
        let same = comparable_name(name);
        let known = self.reader_values.iter();
        let count = known
            .filter(|(known, _)| comparable_name(known) == same)
            .count();
        if count < 2 {
            self.reader_values.push((name.to_owned(), value));
        }
    }

    /// The properties as keys for [`extract_metadata`](crate::fields::metadata::extract_metadata), in the order that
    /// all formats share.
    pub(crate) fn into_keys(mut self) -> Map<String, Raw> {
        let order = [
            "title",
            "date",
            "modified",
            "author",
            "subject",
            "description",
            "keywords",
            "category",
            "publisher",
            "identifier",
            "language",
        ];
        let mut keys = Map::new();
        for key in order {
            let value = self.found.remove(key);
            if let Some(value) = value.and_then(|value| normalize(key, value)) {
                keys.insert(key.to_owned(), value);
            }
        }
        for (name, value) in self.reader_values {
            let value = normalize(&name, value.clone()).unwrap_or(value);
            reader_field::insert_keeping_duplicates(&mut keys, &name, value);
        }
        keys
    }
}

/// A value with dates in ISO form and keywords split into a list; `None` for a date that cannot be parsed.
fn normalize(key: &str, value: Raw) -> Option<Raw> {
    match (key, value) {
        ("date" | "modified", Raw::String(text)) => parse_written_date(&text).map(Raw::String),
        // A text that may have been cut stays whole, so that its length shows.
        ("keywords", Raw::String(text)) if text.len() <= MAX_READER_TEXT_BYTES => {
            let words = text.split([',', ';']).map(str::trim);
            let words = words.filter(|word| !word.is_empty());
            Some(words.map(|word| Raw::String(word.to_owned())).collect())
        }
        (_, value) => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keys(add: impl Fn(&mut DocumentProperties<'_>)) -> Raw {
        let readers = ReaderKeys::default();
        let mut properties = DocumentProperties::new(&readers);
        add(&mut properties);
        Raw::Object(properties.into_keys())
    }

    #[test]
    fn properties_have_one_order_and_their_first_value() {
        let found = keys(|properties| {
            properties.add("keywords", "ferry; tide, ".to_owned());
            properties.add("author", "A".to_owned());
            properties.add("author", "B".to_owned());
            properties.add("title", " ".to_owned());
            properties.add("title", "T".to_owned());
            properties.add("date", "2024-03-12T10:00:00Z".to_owned());
            properties.add("modified", "soon".to_owned());
            properties.pass_over("version");
        });
        assert_eq!(
            found.to_string(),
            r#"{"title":"T","date":"2024-03-12","author":"A","keywords":["ferry","tide"]}"#
        );
    }

    #[test]
    fn lists_lose_blanks_and_end_at_their_limit() {
        let found = |values: &[&str]| {
            let values = || values.iter().map(|value| (*value).to_owned()).collect();
            keys(|properties| properties.add_list("author", values(), 2))
        };
        assert_eq!(found(&["", " "]), json!({}));
        assert_eq!(found(&["", "A"]), json!({"author": "A"}));
        assert_eq!(found(&["A", "B", "C"]), json!({"author": ["A", "B"]}));
    }
}
