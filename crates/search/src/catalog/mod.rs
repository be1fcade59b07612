//! Which fields the documents have, of what kind, and with which values.

mod builder;
mod fuzzy_lookup;

pub use builder::{
    CatalogBuilder, MAX_CATALOG_FIELDS, MAX_KEYWORD_CHARS, MAX_KEYWORDS, MAX_TRACKED,
};
pub(crate) use fuzzy_lookup::{FieldNameIndex, FieldValueIndex};

/// What is known about the fields of all documents that a reader may see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// How many documents there are.
    pub documents: u64,
    /// The fields, those of most documents first, then by name. The document's own date is the
    /// field `date` unless a field of that name is in the data.
    pub fields: Vec<CatalogField>,
    /// Whether there are fields that `fields` does not name.
    pub more: bool,
}

impl Catalog {
    /// The field that a reader means by `name`. Case, accents, underscores and hyphens do not
    /// count, unless two fields differ in nothing else.
    pub fn field(&self, name: &str) -> Option<&CatalogField> {
        FieldNameIndex::of(self).find(name)
    }

    /// The one field whose name is close to a name that no field has.
    pub fn nearest(&self, name: &str) -> Option<&CatalogField> {
        FieldNameIndex::of(self).nearest(name)
    }
}

/// One field.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogField {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: FieldKind,
    /// How many documents have it.
    pub documents: u64,
    /// Its values with the number of documents that have each, most first, then by value. All of
    /// them for a keyword, the most frequent ones for others, none for numbers and dates. Of a
    /// value written in several ways one is named.
    pub values: Vec<(String, u64)>,
    /// Whether there are values that `values` does not name.
    pub more: bool,
    /// The least and the greatest number, or the first and the last day. A field of texts has one
    /// when some of its values are no texts but numbers or days.
    pub range: Option<(RangeBound, RangeBound)>,
}

impl CatalogField {
    /// The value that a reader means by `written`, as the documents write it.
    pub fn value(&self, written: &str) -> Option<&str> {
        FieldValueIndex::of(self).find(written)
    }

    /// The one value that is close to what no document has.
    pub fn nearest(&self, written: &str) -> Option<&str> {
        FieldValueIndex::of(self).nearest(written)
    }

    /// Whether every value that the field can have is among `values`.
    pub fn is_enumerated(&self) -> bool {
        matches!(self.kind, FieldKind::Keyword | FieldKind::List) && !self.more
    }
}

/// What the values of a field are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// One of a few words or phrases.
    Keyword,
    /// Any text.
    Text,
    /// Several words or phrases, such as tags.
    List,
    /// A number.
    Number,
    /// A day.
    Date,
    /// Yes or no.
    Bool,
}

/// An end of a range.
#[derive(Clone, Debug, PartialEq)]
pub enum RangeBound {
    /// A number.
    Number(f64),
    /// A day, as `YYYY-MM-DD`.
    Date(String),
}
