//! The storage format of documents, which the on-disk engine and the cluster share.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::document::{DocId, Document, DocumentValue};
use crate::reader_identity::{AllowedReaders, Principal};

/// The date as a number that sorts like it: `2024-05-28` becomes 20240528.
pub(crate) fn day_number(text: &str) -> Option<i64> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    digits.parse().ok()
}

#[derive(Serialize, Deserialize)]
pub(crate) struct StoredDocument<'a> {
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
    /// `None` when everyone may read it. The field is mandatory on disk, so that a document of another shape fails
    /// to parse instead of being readable by everyone (fails closed).
    readers: Option<Vec<Cow<'a, str>>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredValue<'a> {
    Text(Cow<'a, str>),
    /// The bits of the number, because JSON has no infinity and rounds.
    Number(u64),
    Bool(bool),
    Date(Cow<'a, str>),
    List(Vec<Cow<'a, str>>),
}

impl<'a> From<&'a Document> for StoredDocument<'a> {
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
            readers: match &document.readers {
                AllowedReaders::Everyone => None,
                AllowedReaders::Only(named) => {
                    Some(named.iter().map(|one| one.as_str().into()).collect())
                }
            },
        }
    }
}

impl StoredDocument<'_> {
    pub(crate) fn into_document(self) -> Option<Document> {
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
            readers: match self.readers {
                None => AllowedReaders::Everyone,
                Some(named) => {
                    let named = named.iter().map(|one| Principal::parse(one).ok());
                    AllowedReaders::Only(named.collect::<Option<_>>()?)
                }
            },
        })
    }
}

impl<'a> From<&'a DocumentValue> for StoredValue<'a> {
    fn from(value: &'a DocumentValue) -> Self {
        match value {
            DocumentValue::Text(text) => Self::Text(text.as_str().into()),
            DocumentValue::Number(number) => Self::Number(number.to_bits()),
            DocumentValue::Bool(flag) => Self::Bool(*flag),
            DocumentValue::Date(date) => Self::Date(date.as_str().into()),
            DocumentValue::List(items) => {
                Self::List(items.iter().map(|item| item.as_str().into()).collect())
            }
        }
    }
}

impl From<StoredValue<'_>> for DocumentValue {
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
