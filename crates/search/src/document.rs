//! The document: what ingestion produces and engines index, with its limits.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::analysis;
use crate::error::SearchError;
use crate::reader_identity::{AllowedReaders, MAX_READERS};

/// The longest document id, in bytes. Ids travel in tool calls and URLs, so they stay short.
pub const MAX_ID_BYTES: usize = 512;

/// The largest document, in bytes of all its parts. Ten million characters, the most that is read from one file,
/// fit even at four bytes each.
pub const MAX_DOCUMENT_BYTES: usize = 48 * 1024 * 1024;

/// The longest source path, in bytes; the limit of Linux.
pub const MAX_SOURCE_BYTES: usize = 4_096;

/// The longest content hash, in bytes; a SHA-256 in hexadecimal has half as many.
pub const MAX_HASH_BYTES: usize = 128;

/// The longest URL, in bytes; browsers and servers reject longer ones.
pub const MAX_URL_BYTES: usize = 8_192;

/// The most metadata fields of one document. Every field adds terms to the index and columns to its catalog. Tables
/// have some dozens of columns; a record with hundreds of keys is data with keys as values.
pub const MAX_FIELDS: usize = 256;

/// The longest name that is made of a text without a title, in characters.
const MAX_NAME_CHARS: usize = 80;

/// The field name under which the document's own date can be filtered.
pub(crate) const DATE: &str = "date";

/// A document id: 1 to [`MAX_ID_BYTES`] bytes without control characters.
///
/// Cloning is cheap, because the text is shared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocId(Arc<str>);

impl DocId {
    /// Parses an id; the error says why `text` is none.
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

    /// The id as a string slice.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A document: the unit that is found, fetched and cited.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The id it is fetched by.
    pub id: DocId,
    /// The title; empty when the source gives none. See [`Document::name`].
    pub title: String,
    /// The full text.
    pub text: String,
    /// The URL where people can open it, if there is one.
    pub url: Option<String>,
    /// Its date, as `YYYY-MM-DD`.
    pub date: Option<String>,
    /// Metadata fields, in the order of the source. Texts and lists are searchable.
    pub fields: Vec<(String, DocumentValue)>,
    /// The path of its source file inside the corpus, separated by `/`.
    pub source: String,
    /// The SHA-256 of the content it was made of, in hexadecimal.
    pub hash: String,
    /// Who may read it and know that it exists.
    pub readers: AllowedReaders,
}

impl Document {
    /// The size of all its parts in bytes, as [`MAX_DOCUMENT_BYTES`] counts them.
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

    /// Rejects a document that exceeds one of the limits. Every engine checks all documents of a batch before it
    /// applies the first.
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
    /// The display name: the title, else the beginning of the text, else the id.
    ///
    /// A name made of the text is for display only. Ranked as a title it would count some words of the text twice:
    /// on CoSQA, whose functions have no titles, that cost lexical search .017 of nDCG@10.
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

    /// The ISO 639-1 code of its language, such as `en`; `None` in doubt.
    pub fn language(&self) -> Option<&'static str> {
        analysis::confident_language_code(&self.title, &self.text)
    }

    /// All fields, including the document's own date as the field `date` unless the data has a field of that name.
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

    /// Calls `take` with each searchable part: title, text, and fields of texts and lists.
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

/// The first words of a line, as many as fit a name.
fn beginning(line: &str) -> Cow<'_, str> {
    let Some((end, _)) = line.char_indices().nth(MAX_NAME_CHARS) else {
        return Cow::Borrowed(line);
    };
    let (start, _) = line.split_at(end);
    let words = start.rsplit_once(char::is_whitespace);
    let words = words.map_or(start, |(words, _)| words.trim_end());
    Cow::Owned(format!("{words}…"))
}

/// The value of a metadata field.
#[derive(Clone, Debug, PartialEq)]
pub enum DocumentValue {
    /// A text of any length.
    Text(String),
    /// A number, integer or decimal.
    Number(f64),
    /// A flag, true or false.
    Bool(bool),
    /// A calendar day, as `YYYY-MM-DD`.
    Date(String),
    /// A list of texts, such as tags.
    List(Vec<String>),
}

impl DocumentValue {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Date(text) => text.len(),
            Self::Number(_) => size_of::<f64>(),
            Self::Bool(_) => size_of::<bool>(),
            // Even an empty item takes memory in the list.
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

    /// A document with a text and nothing else.
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
            // The id takes one byte of its own.
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
    fn a_long_list_of_empty_items_counts_towards_the_limit() {
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
