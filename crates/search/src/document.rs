//! What a source is turned into before it is indexed: an id, a title, a text and where it came from.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::analysis;
use crate::error::SearchError;
use crate::reader_identity::{AllowedReaders, MAX_READERS};

/// The most bytes an id may have. Ids travel in tool calls and in addresses, so they stay short.
pub const MAX_ID_BYTES: usize = 512;

/// The most bytes one document may hold in all its parts together. Ten million characters, the most
/// that is read out of one file, fit even when each of them takes four bytes.
pub const MAX_DOCUMENT_BYTES: usize = 48 * 1024 * 1024;

/// The most bytes of the path a document came from; the same as the longest path Linux opens.
pub const MAX_SOURCE_BYTES: usize = 4_096;

/// The most bytes of a content hash; a SHA-256 in hexadecimal has half as many.
pub const MAX_HASH_BYTES: usize = 128;

/// The most bytes of an address; browsers and servers refuse longer ones.
pub const MAX_URL_BYTES: usize = 8_192;

/// The most fields one document may carry.
pub const MAX_FIELDS: usize = 256;

/// The most characters of a text that become the name of a document without a title.
const MAX_NAME_CHARS: usize = 80;

/// The field that stands for the document's own day.
pub(crate) const DATE: &str = "date";

/// The name of one document: 1 to [`MAX_ID_BYTES`] bytes without control characters.
///
/// Cloning is cheap: the text is shared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocId(Arc<str>);

impl DocId {
    /// Reads an id, or says why `text` cannot be one.
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        let reason = if text.is_empty() {
            "it is empty"
        } else if text.len() > MAX_ID_BYTES {
            "it has more than 512 bytes"
        } else if text.chars().any(char::is_control) {
            "it holds a control character"
        } else {
            return Ok(Self(text.into()));
        };
        Err(SearchError::Id { reason })
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One thing that can be found, read and cited.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The name it is fetched by.
    pub id: DocId,
    /// What its source calls it; empty where that gives it no name. See [`Document::name`].
    pub title: String,
    /// Its whole text.
    pub text: String,
    /// Where a person can look at it, if anywhere.
    pub url: Option<String>,
    /// The day it speaks of or was written on, as `YYYY-MM-DD`.
    pub date: Option<String>,
    /// What else is known about it, in the order of the source. Texts and lists are searchable.
    pub fields: Vec<(String, DocumentValue)>,
    /// The path inside the corpus it came from, parts separated by `/`.
    pub source: String,
    /// The SHA-256 of the content it came from, in hexadecimal.
    pub hash: String,
    /// Who may read it, and know that it is there.
    pub readers: AllowedReaders,
}

impl Document {
    /// The bytes of all its parts together, as [`MAX_DOCUMENT_BYTES`] counts them.
    pub fn bytes(&self) -> usize {
        let optional = |part: &Option<String>| part.as_ref().map_or(0, String::len);
        let fields: usize = self
            .fields
            .iter()
            .map(|(name, value)| name.len() + value.bytes())
            .sum();
        self.id.as_str().len()
            + self.title.len()
            + self.text.len()
            + optional(&self.url)
            + optional(&self.date)
            + fields
            + self.source.len()
            + self.hash.len()
            + self.readers.bytes()
    }

    /// Refuses a document that is over one of the limits above. Every engine asks this of every
    /// document of a batch before it applies the first.
    pub fn check(&self) -> Result<(), SearchError> {
        let parts = [
            ("document", self.bytes(), MAX_DOCUMENT_BYTES),
            (
                "address",
                self.url.as_ref().map_or(0, String::len),
                MAX_URL_BYTES,
            ),
            ("source path", self.source.len(), MAX_SOURCE_BYTES),
            ("content hash", self.hash.len(), MAX_HASH_BYTES),
            ("list of fields", self.fields.len(), MAX_FIELDS),
            ("list of readers", self.readers.named().count(), MAX_READERS),
        ];
        for (part, size, limit) in parts {
            if size > limit {
                return Err(SearchError::TooLarge {
                    what: format!("the {part} of `{}`", self.id),
                    size,
                    limit,
                });
            }
        }
        Ok(())
    }
}

impl Document {
    /// What a reader would call it: its title, or else how its text begins, or else its id.
    ///
    /// A beginning made into a title is for people alone. Counted as one when ranking, it says
    /// some words of the text twice: on CoSQA, whose functions have no titles, that cost words
    /// alone .017 of nDCG@10.
    pub fn name(&self) -> Cow<'_, str> {
        let first = |text: &str| {
            let mut lines = text.lines().map(str::trim);
            lines
                .find(|line| !line.is_empty())
                .map(|line| beginning(line).into_owned())
        };
        match self.title.trim() {
            "" => first(&self.text).map_or(Cow::Borrowed(self.id.as_str()), Cow::Owned),
            title => Cow::Borrowed(title),
        }
    }

    /// The code of the language it is evidently written in, such as `en`; nothing in doubt.
    pub fn language(&self) -> Option<&'static str> {
        analysis::confident_language_code(&self.title, &self.text)
    }

    /// The fields, and the document's own day as the field `date` unless it has one of that name.
    pub(crate) fn filterable_fields(&self) -> impl Iterator<Item = (&str, Cow<'_, DocumentValue>)> {
        let own = self
            .date
            .as_ref()
            .filter(|_| self.fields.iter().all(|(name, _)| name != DATE));
        let day = own.map(|day| (DATE, Cow::Owned(DocumentValue::Date(day.clone()))));
        let fields = self
            .fields
            .iter()
            .map(|(name, value)| (name.as_str(), Cow::Borrowed(value)));
        fields.chain(day)
    }

    /// Hands over each part that a reader can find the document by.
    pub(crate) fn for_each_searchable(&self, mut take: impl FnMut(&str)) {
        take(&self.title);
        take(&self.text);
        for (_, value) in &self.fields {
            match value {
                DocumentValue::Text(text) => take(text),
                DocumentValue::List(items) => items.iter().for_each(|item| take(item)),
                DocumentValue::Number(_) | DocumentValue::Bool(_) | DocumentValue::Date(_) => {}
            }
        }
    }
}

/// A line, or as many of its first words as make a name.
fn beginning(line: &str) -> Cow<'_, str> {
    let Some((end, _)) = line.char_indices().nth(MAX_NAME_CHARS) else {
        return Cow::Borrowed(line);
    };
    let (start, _) = line.split_at(end);
    let words = start.rsplit_once(char::is_whitespace);
    let words = words.map_or(start, |(words, _)| words.trim_end());
    Cow::Owned(format!("{words}…"))
}

/// One field's value.
#[derive(Clone, Debug, PartialEq)]
pub enum DocumentValue {
    /// Words.
    Text(String),
    /// A number.
    Number(f64),
    /// Yes or no.
    Bool(bool),
    /// A day, as `YYYY-MM-DD`.
    Date(String),
    /// Several words or phrases, such as tags.
    List(Vec<String>),
}

impl DocumentValue {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Date(text) => text.len(),
            Self::Number(_) => size_of::<f64>(),
            Self::Bool(_) => size_of::<bool>(),
            // An empty item still costs its place in the list.
            Self::List(items) => items
                .iter()
                .map(|item| item.len() + size_of::<String>())
                .sum(),
        }
    }
}

impl fmt::Display for DocumentValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::Date(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::List(items) => f.write_str(&items.join(", ")),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::reader_identity::Principal;

    /// A document of nothing but a text.
    pub(crate) fn plain(text: &str) -> Document {
        Document {
            id: DocId::parse("a").unwrap(),
            title: String::new(),
            text: text.to_owned(),
            url: None,
            date: None,
            fields: Vec::new(),
            source: String::new(),
            hash: String::new(),
            readers: AllowedReaders::Everyone,
        }
    }

    #[test]
    fn ids_have_bounds() {
        let longest = "x".repeat(MAX_ID_BYTES);
        for good in ["a", "hr/12#2", "日本", longest.as_str()] {
            assert_eq!(DocId::parse(good).unwrap().as_str(), good);
        }
        let too_long = "x".repeat(MAX_ID_BYTES + 1);
        for bad in ["", "a\0", "a\nb", "a\u{85}", too_long.as_str()] {
            assert!(
                matches!(DocId::parse(bad), Err(SearchError::Id { .. })),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_document_always_has_a_name() {
        let full = "eight ch ".repeat(10);
        let cut = format!("{}…", ["eight ch"; 8].join(" ") + " eight");
        for (title, text, name) in [
            ("Title", "Text", "Title"),
            ("  ", "\n \n  First line \nsecond", "First line"),
            ("", "", "a"),
            ("", " \n ", "a"),
            ("", full.get(..80).unwrap(), full.get(..80).unwrap()),
            ("", &full, &cut),
            ("", &"x".repeat(80), &"x".repeat(80)),
            ("", &"ü".repeat(81), &format!("{}…", "ü".repeat(80))),
        ] {
            let (title, text) = (title.to_owned(), text.to_owned());
            let document = Document {
                title,
                text,
                ..plain("")
            };
            assert_eq!(document.name(), name);
        }
    }

    #[test]
    fn each_part_has_a_bound() {
        type GrowPart = fn(&mut Document, usize);
        let parts: [(usize, GrowPart); 6] = [
            (MAX_READERS, |document, size| {
                let names = (0..size).map(|n| format!("group:{n}"));
                let named = names.map(|name| Principal::parse(&name).unwrap());
                document.readers = AllowedReaders::Only(named.collect());
            }),
            (MAX_SOURCE_BYTES, |document, size| {
                document.source = "x".repeat(size);
            }),
            (MAX_HASH_BYTES, |document, size| {
                document.hash = "x".repeat(size);
            }),
            (MAX_URL_BYTES, |document, size| {
                document.url = Some("x".repeat(size));
            }),
            (MAX_FIELDS, |document, size| {
                document.fields = vec![("f".to_owned(), DocumentValue::Bool(true)); size];
            }),
            // The id of the document takes one byte of its own.
            (MAX_DOCUMENT_BYTES - 1, |document, size| {
                document.text = "x".repeat(size);
            }),
        ];
        for (limit, grow) in parts {
            let mut document = plain("");
            grow(&mut document, limit);
            assert!(document.check().is_ok(), "{limit}");
            grow(&mut document, limit + 1);
            assert!(
                matches!(document.check(), Err(SearchError::TooLarge { .. })),
                "{limit}"
            );
        }
    }

    #[test]
    fn a_long_list_of_nothing_still_weighs() {
        let mut document = plain("");
        document.fields = vec![(
            "f".to_owned(),
            DocumentValue::List(vec![String::new(); 3_000_000]),
        )];
        assert!(document.check().is_err());
    }

    #[test]
    fn values_read_as_one_line() {
        let list = DocumentValue::List(vec!["a".to_owned(), "b".to_owned()]);
        let cases = [
            (DocumentValue::Text("words".to_owned()), "words"),
            (DocumentValue::Number(3.0), "3"),
            (DocumentValue::Number(0.5), "0.5"),
            (DocumentValue::Bool(true), "true"),
            (DocumentValue::Date("2024-05-01".to_owned()), "2024-05-01"),
            (list, "a, b"),
        ];
        for (value, expected) in cases {
            assert_eq!(value.to_string(), expected);
        }
    }
}
