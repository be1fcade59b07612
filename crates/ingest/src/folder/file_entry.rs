//! Listing entries: one file of a folder, and the fingerprint that detects changes.

use std::time::SystemTime;

use crate::parser::folder_context::FolderContext;
use crate::source_path::SourcePath;

/// One file of a [`FolderSource`](crate::FolderSource), as it was when the folder was listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    pub(crate) place: SourcePath,
    /// The size of the file in bytes.
    pub size: u64,
    /// The modification time, if the system records it.
    pub modified: Option<SystemTime>,
    /// What the folder around the file says about it.
    pub(crate) folder_context: FolderContext,
}

impl FileEntry {
    /// The id of the file: its path with every byte outside `A-Za-z0-9._/-` percent-encoded. It depends on no
    /// other file. A path too long for an id is truncated and ends in the first half of its SHA-256.
    pub fn id(&self) -> &str {
        &self.place.id
    }

    /// Whether other files decide who may read its documents, so that the file itself does not show whether it
    /// has to be read again: a page of a Notion database, whose table may have the reader field.
    pub fn depends_on_others(&self) -> bool {
        self.folder_context.is_restricted_page
    }

    /// The path inside the source, parts separated by `/`, safe to print.
    pub fn path(&self) -> &str {
        &self.place.printable
    }
}

/// The fingerprint of a file when it was read; equal fingerprints mean equal content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFingerprint {
    /// The number of bytes that were read.
    pub size: u64,
    /// The modification time before the file was read, so that a change while reading is noticed by the next
    /// run.
    pub modified: Option<SystemTime>,
    /// The SHA-256 checksum of the content, in hexadecimal.
    pub sha256: String,
}
