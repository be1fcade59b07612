//! Per-format ingestion options as plain values. With the defaults every format is read in the way that
//! suits most files.

use serde::{Deserialize, Serialize};

use crate::reader_field::ReaderFieldName;

/// Per-format options, filled from the settings file. The defaults change nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngestOptions {
    /// Which tables or rows of SQLite databases are read.
    pub sqlite: SqliteOptions,
    /// Accepted names of the reader field, in order of preference: the first one that a document has
    /// counts. Empty where no permissions come from the documents.
    pub readers: Vec<ReaderFieldName>,
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
    };
}
