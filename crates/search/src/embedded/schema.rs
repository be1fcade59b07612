//! The schema of the index on disk: converts documents into its fields, and back.
//!
//! This module owns the format. A change to anything in this file, or to how text is tokenized, needs a new
//! [`FORMAT`](super::index_folder::FORMAT).

use tantivy::TantivyDocument;
use tantivy::schema::{
    BytesOptions, Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
    Value as _,
};
use tantivy::tokenizer::RAW_TOKENIZER_NAME;

use super::{semantic_index, tokenizer};
use crate::analysis::detect;
use crate::document::Document;
use crate::facet_terms;
use crate::ranking::ScoredField;
use crate::reader_identity::AllowedReaders;
use crate::stored_document::{StoredDocument, day_number};

/// The names of the columns (fast fields) that are read without touching stored documents.
pub(super) const ID: &str = "id";
pub(super) const SOURCE: &str = "source";
pub(super) const HASH: &str = "hash";
pub(super) const DAY: &str = "day";
pub(super) const LANGUAGE: &str = "language";
pub(super) const READERS: &str = "readers";
pub(super) const KEY: [&str; 2] = ["key_high", "key_low"];

/// A marker among the readers of every restricted document. No principal has this name.
pub(super) const RESTRICTED: &str = "\0";

/// The field handles of the schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexFields {
    /// The id: indexed for lookups and deletions, and a column to break ties by.
    pub id: Field,
    /// The source of the document, as a column.
    pub source: Field,
    /// The hash of its content, as a column.
    pub hash: Field,
    /// The code of its language.
    pub language: Field,
    /// The posting lists of the title.
    pub title: Field,
    /// The posting lists of all text, title included, with positions for phrases.
    pub body: Field,
    /// The values of its metadata fields; see [`facet_terms`].
    pub facets: Field,
    /// For a restricted document, its readers and [`RESTRICTED`].
    pub readers: Field,
    /// Its day as the number `YYYYMMDD`, as a column.
    pub day: Field,
    /// The two halves of the key of its vectors, as columns.
    pub key: [Field; 2],
    /// The document itself as JSON.
    pub stored: Field,
}

/// The schema of every index of this format, with its field handles.
pub(super) fn schema() -> (Schema, IndexFields) {
    let mut builder = Schema::builder();
    let column = || TextOptions::default().set_fast(RAW_TOKENIZER_NAME);
    let terms = |record: IndexRecordOption| {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(tokenizer::NAME)
            .set_index_option(record);
        TextOptions::default().set_indexing_options(indexing)
    };
    let exact = || {
        TextFieldIndexing::default()
            .set_tokenizer(RAW_TOKENIZER_NAME)
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::Basic)
    };
    let fields = IndexFields {
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
        readers: builder.add_text_field(
            READERS,
            TextOptions::default().set_indexing_options(exact()),
        ),
        day: builder.add_i64_field(DAY, NumericOptions::default().set_fast()),
        key: KEY.map(|name| builder.add_u64_field(name, NumericOptions::default().set_fast())),
        stored: builder.add_bytes_field("stored", BytesOptions::default().set_stored()),
    };
    (builder.build(), fields)
}

impl IndexFields {
    /// The index field of a part of the document that BM25 scores.
    pub(super) fn scored(&self, field: ScoredField) -> Field {
        match field {
            ScoredField::Content => self.body,
            ScoredField::Title => self.title,
        }
    }

    /// Converts a document into an entry of the index.
    pub(super) fn write(&self, document: &Document) -> Result<TantivyDocument, serde_json::Error> {
        let mut entry = TantivyDocument::default();
        entry.add_text(self.id, document.id.as_str());
        entry.add_text(self.source, &document.source);
        entry.add_text(self.hash, &document.hash);
        let language = detect(&document.title, &document.text);
        entry.add_text(self.language, language.code());
        entry.add_text(
            self.title,
            tokenizer::with_language_mark(language, &document.title),
        );
        document.for_each_searchable(|text| {
            entry.add_text(self.body, tokenizer::with_language_mark(language, text));
        });
        for term in facet_terms::terms(document) {
            entry.add_text(self.facets, term);
        }
        if document.readers != AllowedReaders::Everyone {
            entry.add_text(self.readers, RESTRICTED);
        }
        for principal in document.readers.named() {
            entry.add_text(self.readers, principal.as_str());
        }
        let key = semantic_index::vector_key(document);
        for (field, half) in self.key.into_iter().zip([key >> 64, key]) {
            entry.add_u64(field, half as u64);
        }
        if let Some(day) = document.date.as_deref().and_then(day_number) {
            entry.add_i64(self.day, day);
        }
        entry.add_bytes(
            self.stored,
            &serde_json::to_vec(&StoredDocument::from(document))?,
        );
        Ok(entry)
    }

    /// Decodes the document of an index entry; `None` when it is not one that this module has written.
    pub(super) fn read(&self, entry: &TantivyDocument) -> Option<Document> {
        let bytes = entry.get_first(self.stored)?.as_bytes()?;
        serde_json::from_slice::<StoredDocument<'_>>(bytes)
            .ok()?
            .into_document()
    }
}
