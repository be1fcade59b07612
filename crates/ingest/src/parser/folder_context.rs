//! What the folder around a file says about the file, such as that it is an Obsidian vault.

/// What the folder around a file says about it. It is collected while the folder is listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FolderContext {
    /// Whether the file lies in an Obsidian vault, where `#tags` in the text are tags.
    pub vault: bool,
    /// The creation date from the list that an Apple Notes export puts beside its notes.
    pub day: Option<String>,
    /// Whether the file is a page of a Notion database whose table has the reader field. Such a page without
    /// the field has an empty one, which Notion omits.
    pub is_restricted_page: bool,
}

impl FolderContext {
    /// The context of a file about whose folder nothing is known, such as an archive member.
    pub(crate) const NONE: Self = Self {
        vault: false,
        day: None,
        is_restricted_page: false,
    };
}
