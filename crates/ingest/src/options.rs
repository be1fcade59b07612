//! What the owner of a folder may ask of single formats, as plain values. Without them every format does
//! what suits most files.

use serde::{Deserialize, Serialize};

use crate::reader_field::ReaderFieldName;

/// Wishes about formats. The settings file fills them; the defaults ask for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngestOptions {
    /// What of a SQLite database is read.
    pub sqlite: SqliteOptions,
    /// The names of the field that names readers, the first that a document has counting; none where no field
    /// does.
    pub readers: Vec<ReaderFieldName>,
}

/// Which rows of SQLite databases become documents; by default those of every ordinary table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqliteOptions {
    /// `sqlite.table`: only this table. A view may be named here too.
    pub table: Option<String>,
    /// `sqlite.query`: the rows of this `SELECT`, and no others. It wins over `table`.
    pub query: Option<String>,
}

impl IngestOptions {
    /// No wishes.
    pub const NONE: Self = Self {
        sqlite: SqliteOptions {
            table: None,
            query: None,
        },
        readers: Vec::new(),
    };
}
