//! Every bound on what comes from outside, in one place. A caller may change any of them.

/// Bounds on a source, its files and the documents made from them.
///
/// They travel to the child process that parses, so that they can be written and read.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    /// Bytes of one file. A scanned book stays below this; a disk image does not.
    pub max_file_bytes: u64,
    /// Bytes of one file that is read row by row and never as a whole: JSON lines, tables of separated values
    /// and lists in JSON. It bounds time, not memory; an hour at the speed of indexing.
    pub max_stream_bytes: u64,
    /// Characters of text in one document; about twenty thick novels.
    pub max_text_chars: usize,
    /// Files and folders seen below the root, hidden ones not counted.
    pub max_files: usize,
    /// Folders inside folders below the root.
    pub max_depth: usize,
    /// Bytes of a path relative to the root; bounds the memory of a listing together with `max_files`.
    pub max_path_bytes: usize,
    /// Records in one file of records.
    pub max_records: usize,
    /// Bytes of one line of a file of records, or of one row of a table.
    pub max_line_bytes: usize,
    /// Columns of one table; as many as a spreadsheet can have.
    pub max_columns: usize,
    /// Bytes that one file may become: a package or an archive unpacked with all that is inside it, or all
    /// its documents together.
    pub max_unpacked_bytes: u64,
    /// Bytes of a front matter block, its fences not counted.
    pub max_front_matter_bytes: usize,
    /// Fields of one document.
    pub max_fields: usize,
    /// Maps inside maps in front matter or a record that are flattened into dotted names.
    pub max_field_depth: usize,
    /// Characters of a field's name.
    pub max_name_chars: usize,
    /// Characters of one text value.
    pub max_value_chars: usize,
    /// Values in one list.
    pub max_list_values: usize,
    /// Characters of a title.
    pub max_title_chars: usize,
    /// Characters of a web address. Browsers and hosts stop at about this length too.
    pub max_url_chars: usize,
    /// Pages of one document.
    pub max_pages: usize,
    /// Problems reported for one file, and skipped names reported for one listing.
    pub max_reported: usize,
    /// Documents of a whole corpus.
    pub max_documents: usize,
    /// Seconds that a child process may take for one file, of its processor and on the clock. The slowest
    /// honest files, thick scanned books, take a tenth of it.
    pub max_parse_seconds: u64,
    /// Files inside one archive or package, those in archives inside it included.
    pub max_members: usize,
    /// How often larger than the archive that may be, once it is more than a megabyte. Text packs to a
    /// fifth, the most regular tables to a fiftieth; bombs are a thousand times larger.
    pub max_expansion: u64,
    /// Archives inside archives.
    pub max_nested_archives: usize,
    /// Parts of one e-mail, at all levels together.
    pub max_mail_parts: usize,
    /// Whether files whose parsers are not ours are left out where a child process cannot build every wall
    /// around itself. It is no bound on a document, but it travels with them to everybody who reads files, so
    /// that nobody can forget it.
    pub require_sandbox: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_file_bytes: 64 * 1024 * 1024,
            max_stream_bytes: 16 * 1024 * 1024 * 1024,
            max_text_chars: 10_000_000,
            max_files: 200_000,
            max_depth: 64,
            max_path_bytes: 1_024,
            max_records: 2_000_000,
            max_line_bytes: 1024 * 1024,
            max_columns: 16_384,
            max_unpacked_bytes: 256 * 1024 * 1024,
            max_front_matter_bytes: 64 * 1024,
            max_fields: 64,
            max_field_depth: 8,
            max_name_chars: 128,
            max_value_chars: 4_096,
            max_list_values: 256,
            max_title_chars: 512,
            max_url_chars: 2_048,
            max_pages: 5_000,
            max_reported: 1_000,
            max_documents: 2_000_000,
            max_parse_seconds: 20,
            max_members: 10_000,
            max_expansion: 100,
            max_nested_archives: 3,
            max_mail_parts: 1_000,
            require_sandbox: false,
        }
    }
}
