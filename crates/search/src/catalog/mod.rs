//! Field catalog: which metadata fields the documents have, of what kind and with which values. The query language
//! resolves names and values against it, and models read it to learn what they can filter by.

mod builder;
mod fuzzy_lookup;

pub use builder::{
    CatalogBuilder, MAX_CATALOG_FIELDS, MAX_KEYWORD_CHARS, MAX_KEYWORDS, MAX_TRACKED,
};
pub(crate) use fuzzy_lookup::{FieldNameIndex, FieldValueIndex};

/// The catalog of all documents that one reader may see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// The number of documents.
    pub documents: u64,
    /// The fields, most frequent first, then by name. The document's own date is the field `date` unless the data
    /// has a field of that name.
    pub fields: Vec<CatalogField>,
    /// Whether there are more fields than `fields` lists.
    pub more: bool,
}

impl Catalog {
    /// The field that `name` refers to. Case, accents, underscores and hyphens are ignored, unless two fields
    /// differ in nothing else.
    pub fn field(&self, name: &str) -> Option<&CatalogField> {
        FieldNameIndex::of(self).find(name)
    }

    /// The closest field name, by edit distance or by one of its words, as a suggestion for an unknown name; `None`
    /// when two are equally close.
    pub fn nearest(&self, name: &str) -> Option<&CatalogField> {
        FieldNameIndex::of(self).nearest(name)
    }
}

/// One metadata field of the documents.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogField {
    /// The name as the documents write it.
    pub name: String,
    /// The kind of its values.
    pub kind: FieldKind,
    /// The number of documents that have the field.
    pub documents: u64,
    /// Its values with the number of documents that have each, most frequent first, then by value. A keyword lists
    /// all of them, other kinds the most frequent, numbers and dates none. Of several spellings of a value one is
    /// listed.
    pub values: Vec<(String, u64)>,
    /// Whether there are more values than `values` lists.
    pub more: bool,
    /// The smallest and the largest number, or the first and the last day. A text field has a range when some of
    /// its values are numbers or days.
    pub range: Option<(RangeBound, RangeBound)>,
}

impl CatalogField {
    /// The listed value that `written` refers to, spelled as in the documents.
    pub fn value(&self, written: &str) -> Option<&str> {
        FieldValueIndex::of(self).find(written)
    }

    /// The closest listed value, by edit distance or by its words, as a suggestion for one that no document has.
    pub fn nearest(&self, written: &str) -> Option<&str> {
        FieldValueIndex::of(self).nearest(written)
    }

    /// Whether `values` lists every value of the field.
    pub fn is_enumerated(&self) -> bool {
        matches!(self.kind, FieldKind::Keyword | FieldKind::List) && !self.more
    }
}

/// The kind of the values of a field, inferred from the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// One of at most [`MAX_KEYWORDS`] short texts that recur across documents.
    Keyword,
    /// Free text, or values of mixed kinds.
    Text,
    /// A list of short texts, such as tags.
    List,
    /// A number, integer or decimal.
    Number,
    /// A calendar day without a time.
    Date,
    /// A flag, `true` or `false`.
    Bool,
}

/// The lower or upper bound of the values of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum RangeBound {
    /// The smallest or the largest number.
    Number(f64),
    /// The first or the last day, as `YYYY-MM-DD`.
    Date(String),
}
