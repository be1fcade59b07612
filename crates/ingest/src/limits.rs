//! Every bound on what comes from outside, in one place. A caller may change any of them.

/// Bounds on a source, its files and the documents made from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file. A scanned book stays below this; a disk image does not.
    pub max_file_bytes: u64,
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
    /// Bytes of one line of a file of records.
    pub max_line_bytes: usize,
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
    /// Files inside a package such as a Word document.
    pub max_parts: usize,
    /// Bytes that the parts of one file unpack to, as far as they are read.
    pub max_unpacked_bytes: u64,
    /// Pages of one document.
    pub max_pages: usize,
    /// Problems reported for one file, and skipped names reported for one listing.
    pub max_reported: usize,
    /// Documents of a whole corpus.
    pub max_documents: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_file_bytes: 64 * 1024 * 1024,
            max_text_chars: 10_000_000,
            max_files: 200_000,
            max_depth: 64,
            max_path_bytes: 1_024,
            max_records: 500_000,
            max_line_bytes: 1024 * 1024,
            max_front_matter_bytes: 64 * 1024,
            max_fields: 64,
            max_field_depth: 8,
            max_name_chars: 128,
            max_value_chars: 4_096,
            max_list_values: 256,
            max_title_chars: 512,
            max_url_chars: 2_048,
            max_parts: 10_000,
            max_unpacked_bytes: 256 * 1024 * 1024,
            max_pages: 5_000,
            max_reported: 1_000,
            max_documents: 2_000_000,
        }
    }
}
