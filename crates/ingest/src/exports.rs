//! What other programs leave in the files they export, into what it means: names, properties, tags, links.

pub(crate) mod apple_notes;
pub(crate) mod bibliography;
pub(crate) mod notion;
pub(crate) mod obsidian;
pub(crate) mod redundant_files;

/// What the folder around a file tells about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FolderContext {
    /// Whether it is a folder of notes whose `#tags` are tags.
    pub vault: bool,
    /// The day on which a list beside it says that the file was written.
    pub day: Option<String>,
}

impl FolderContext {
    /// Nothing is known.
    pub(crate) const NONE: Self = Self {
        vault: false,
        day: None,
    };
}
