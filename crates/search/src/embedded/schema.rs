//! A document into the fields of the index on disk, and back.
//!
//! The shape on disk is owned here: a change to anything in this file, or to how words are cut,
//! needs a new [`FORMAT`](super::recover::FORMAT).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use tantivy::TantivyDocument;
use tantivy::schema::{
    BytesOptions, Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
    Value as _,
};
use tantivy::tokenizer::RAW_TOKENIZER_NAME;

use super::{facets, meaning, tokens};
use crate::analysis::detect;
use crate::document::{DocId, Document, Value};

/// The columns that are read without touching the documents themselves.
pub(super) const ID: &str = "id";
pub(super) const SOURCE: &str = "source";
pub(super) const HASH: &str = "hash";
pub(super) const DAY: &str = "day";
pub(super) const LANGUAGE: &str = "language";
pub(super) const KEY: [&str; 2] = ["key_high", "key_low"];

/// The fields of the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// The id: looked up when a document is replaced or fetched, and a column to sort equals by.
    pub id: Field,
    /// Where the document came from, as a column.
    pub source: Field,
    /// The hash of its content, as a column.
    pub hash: Field,
    /// The code of its language.
    pub language: Field,
    /// The terms of the title.
    pub title: Field,
    /// The terms of everything, the title included, with their positions.
    pub body: Field,
    /// The values of its fields; see [`facets`].
    pub facets: Field,
    /// Its day as the number `YYYYMMDD`, as a column.
    pub day: Field,
    /// The two halves of the name its vectors are kept under, as columns.
    pub key: [Field; 2],
    /// The document itself.
    pub stored: Field,
}

/// The schema of every index of this format, and its fields.
pub(super) fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let column = || TextOptions::default().set_fast(RAW_TOKENIZER_NAME);
    let terms = |record: IndexRecordOption| {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(tokens::NAME)
            .set_index_option(record);
        TextOptions::default().set_indexing_options(indexing)
    };
    let exact = || {
        TextFieldIndexing::default()
            .set_tokenizer(RAW_TOKENIZER_NAME)
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::Basic)
    };
    let fields = Fields {
        id: builder.add_text_field(ID, column().set_indexing_options(exact())),
        source: builder.add_text_field(SOURCE, column()),
        hash: builder.add_text_field(HASH, column()),
        language: builder.add_text_field(
            LANGUAGE,
            TextOptions::default().set_indexing_options(exact()),
        ),
        title: builder.add_text_field("title", terms(IndexRecordOption::WithFreqs)),
        body: builder.add_text_field("body", terms(IndexRecordOption::WithFreqsAndPositions)),
        facets: builder.add_text_field(
            "facets",
            TextOptions::default().set_indexing_options(exact()),
        ),
        day: builder.add_i64_field(DAY, NumericOptions::default().set_fast()),
        key: KEY.map(|name| builder.add_u64_field(name, NumericOptions::default().set_fast())),
        stored: builder.add_bytes_field("stored", BytesOptions::default().set_stored()),
    };
    (builder.build(), fields)
}

impl Fields {
    /// A document as the index takes it in.
    pub(super) fn write(&self, document: &Document) -> Result<TantivyDocument, serde_json::Error> {
        let mut entry = TantivyDocument::default();
        entry.add_text(self.id, document.id.as_str());
        entry.add_text(self.source, &document.source);
        entry.add_text(self.hash, &document.hash);
        let language = detect(&document.title, &document.text);
        entry.add_text(self.language, language.code());
        entry.add_text(self.title, tokens::marked(language, &document.title));
        document.searchable(|text| entry.add_text(self.body, tokens::marked(language, text)));
        for term in facets::terms(document) {
            entry.add_text(self.facets, term);
        }
        let key = meaning::key(document);
        for (field, half) in self.key.into_iter().zip([key >> 64, key]) {
            entry.add_u64(field, half as u64);
        }
        if let Some(day) = document.date.as_deref().and_then(day) {
            entry.add_i64(self.day, day);
        }
        entry.add_bytes(self.stored, &serde_json::to_vec(&Stored::from(document))?);
        Ok(entry)
    }

    /// A document as the index gave it back; nothing when it is not one that was written above.
    pub(super) fn read(&self, entry: &TantivyDocument) -> Option<Document> {
        let bytes = entry.get_first(self.stored)?.as_bytes()?;
        serde_json::from_slice::<Stored<'_>>(bytes)
            .ok()?
            .into_document()
    }
}

/// `2024-05-28` as the number 20240528, which sorts like the day.
fn day(text: &str) -> Option<i64> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    digits.parse().ok()
}

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    title: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
    url: Option<Cow<'a, str>>,
    date: Option<Cow<'a, str>>,
    fields: Vec<(Cow<'a, str>, StoredValue<'a>)>,
    source: Cow<'a, str>,
    hash: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredValue<'a> {
    Text(Cow<'a, str>),
    /// The bits of the number: JSON has no infinity, and rounds.
    Number(u64),
    Bool(bool),
    Date(Cow<'a, str>),
    List(Vec<Cow<'a, str>>),
}

impl<'a> From<&'a Document> for Stored<'a> {
    fn from(document: &'a Document) -> Self {
        Self {
            id: document.id.as_str().into(),
            title: document.title.as_str().into(),
            text: document.text.as_str().into(),
            url: document.url.as_deref().map(Cow::from),
            date: document.date.as_deref().map(Cow::from),
            fields: document
                .fields
                .iter()
                .map(|(name, value)| (name.as_str().into(), value.into()))
                .collect(),
            source: document.source.as_str().into(),
            hash: document.hash.as_str().into(),
        }
    }
}

impl Stored<'_> {
    fn into_document(self) -> Option<Document> {
        Some(Document {
            id: DocId::parse(&self.id).ok()?,
            title: self.title.into_owned(),
            text: self.text.into_owned(),
            url: self.url.map(Cow::into_owned),
            date: self.date.map(Cow::into_owned),
            fields: self
                .fields
                .into_iter()
                .map(|(name, value)| (name.into_owned(), value.into()))
                .collect(),
            source: self.source.into_owned(),
            hash: self.hash.into_owned(),
        })
    }
}

impl<'a> From<&'a Value> for StoredValue<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Text(text) => Self::Text(text.as_str().into()),
            Value::Number(number) => Self::Number(number.to_bits()),
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Date(date) => Self::Date(date.as_str().into()),
            Value::List(items) => {
                Self::List(items.iter().map(|item| item.as_str().into()).collect())
            }
        }
    }
}

impl From<StoredValue<'_>> for Value {
    fn from(stored: StoredValue<'_>) -> Self {
        match stored {
            StoredValue::Text(text) => Self::Text(text.into_owned()),
            StoredValue::Number(bits) => Self::Number(f64::from_bits(bits)),
            StoredValue::Bool(flag) => Self::Bool(flag),
            StoredValue::Date(date) => Self::Date(date.into_owned()),
            StoredValue::List(items) => {
                Self::List(items.into_iter().map(Cow::into_owned).collect())
            }
        }
    }
}
