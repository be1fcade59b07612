//! Per-format ingestion options as plain values. With the defaults every format is read in the way that
//! suits most files.

use serde::{Deserialize, Serialize};

use crate::folded_path::is_under;
use crate::reader_field::ReaderFieldName;

/// Per-format options, filled from the settings file. The defaults change nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngestOptions {
    /// Which tables or rows of SQLite databases are read.
    pub sqlite: SqliteOptions,
    /// Accepted names of the reader field, in order of preference: the first one that a document has
    /// counts. Empty where no permissions come from the documents.
    pub readers: Vec<ReaderFieldName>,
    /// Fields that the settings hide. Fields themselves are hidden after parsing; parsers leave them out of texts
    /// that hold more than the fields.
    pub hidden: Vec<HiddenField>,
}

/// A field that the settings hide, with everything nested in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenField {
    /// The name of the field.
    pub name: String,
    /// The folder, or `None` for the whole source.
    pub under: Option<String>,
}

/// Which rows of SQLite databases become documents; by default the rows of every ordinary table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqliteOptions {
    /// `sqlite.table`: read only this table or view.
    pub table: Option<String>,
    /// `sqlite.query`: read the rows of this `SELECT` and nothing else. It takes precedence over `table`.
    pub query: Option<String>,
}

impl IngestOptions {
    /// The defaults as a constant: no options set.
    pub const NONE: Self = Self {
        sqlite: SqliteOptions {
            table: None,
            query: None,
        },
        readers: Vec::new(),
        hidden: Vec::new(),
    };

    /// Whether a field of the documents of a file is hidden.
    pub(crate) fn hides(&self, path: &str, field: &str) -> bool {
        self.hidden.iter().any(|hidden| {
            let rest = field.strip_prefix(hidden.name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                && is_under(path, hidden.under.as_deref())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_field_hides_what_is_nested_in_it_below_its_folder() {
        let hidden = |name: &str, under: Option<&str>| HiddenField {
            name: name.to_owned(),
            under: under.map(str::to_owned),
        };
        let options = IngestOptions {
            hidden: vec![hidden("note", None), hidden("berth", Some("boats"))],
            ..IngestOptions::default()
        };
        for (path, field, is_hidden) in [
            ("a.csv", "note", true),
            ("a.csv", "note.by", true),
            ("a.csv", "noted", false),
            ("a.csv", "berth", false),
            ("boats/a.csv", "berth", true),
            ("Boats/a.csv", "berth", true),
            ("boats.csv", "berth", false),
        ] {
            assert_eq!(options.hides(path, field), is_hidden, "{path} {field}");
        }
    }
}
