//! Resource limits for untrusted input, all in one place. The caller can change all of [`Limits`].

/// The most memory of a parser process, in bytes of address space. It is not one of [`Limits`]: the process sets it for
/// itself before it knows any of them.
pub const MAX_MEMORY_BYTES: u64 = 512 * 1024 * 1024;

/// Resource limits for a source, its files and the documents made from them.
///
/// They are serialized to the sandboxed process that parses a file, so both sides apply the same limits.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    /// The most bytes of one file. A scanned book stays below the default; a disk image does not.
    pub max_file_bytes: u64,
    /// The most bytes of a file that is streamed: JSON Lines, CSV and lists in JSON. The limit bounds time,
    /// not memory; the default takes about an hour to index.
    pub max_stream_bytes: u64,
    /// The most characters of text in one document; the default is about twenty thick novels.
    pub max_text_chars: usize,
    /// The most files and folders below the root; hidden ones do not count.
    pub max_files: usize,
    /// The deepest nesting of folders below the root.
    pub max_depth: usize,
    /// The most bytes of a relative path. Together with `max_files` it bounds the memory of a listing.
    pub max_path_bytes: usize,
    /// The most records in one file of records.
    pub max_records: usize,
    /// The most bytes of one line of a file of records, or of one row of a table.
    pub max_line_bytes: usize,
    /// The most columns of one table; the default is the maximum of a spreadsheet.
    pub max_columns: usize,
    /// The most bytes that one file may expand to: an archive or package with everything inside it, or all
    /// documents of one file together. It is the absolute limit against zip bombs.
    pub max_unpacked_bytes: u64,
    /// The most bytes of a front matter block, without its fences.
    pub max_front_matter_bytes: usize,
    /// The most metadata fields of one document.
    pub max_fields: usize,
    /// The deepest nesting of maps in front matter or a record that is flattened to dotted names.
    pub max_field_depth: usize,
    /// The most characters of a field name.
    pub max_name_chars: usize,
    /// The most characters of one text value of a field.
    pub max_value_chars: usize,
    /// The most values in one list of a field.
    pub max_list_values: usize,
    /// The most characters of a document title.
    pub max_title_chars: usize,
    /// The most characters of a URL. Browsers and hosts have similar limits.
    pub max_url_chars: usize,
    /// The most pages of one document.
    pub max_pages: usize,
    /// The most problems reported for one file, and the most skipped names reported for one listing.
    pub max_reported: usize,
    /// The most documents of a whole corpus.
    pub max_documents: usize,
    /// The deadline of a parser process for one file in seconds, both of CPU time and of wall-clock time. The
    /// slowest legitimate files, thick scanned books, take a tenth of the default.
    pub max_parse_seconds: u64,
    /// The most members of one archive or package, those of nested archives included.
    pub max_members: usize,
    /// The highest expansion ratio of an archive, once it unpacks to more than a megabyte. Text compresses to
    /// a fifth, and the most regular tables to a fiftieth; zip bombs expand a thousandfold.
    pub max_expansion: u64,
    /// The deepest nesting of archives inside archives.
    pub max_nested_archives: usize,
    /// The most parts of one e-mail, at all levels together.
    pub max_mail_parts: usize,
    /// Whether third-party formats are skipped where the sandbox is incomplete. It is not a resource limit,
    /// but it travels with the limits to everything that parses files, so that no caller can forget it.
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
