//! Export conventions of other programs: what Notion, Obsidian, Apple Notes, Zotero and others encode in file
//! names, folders and markup.

pub(crate) mod apple_notes;
pub(crate) mod bibliography;
pub(crate) mod notion;
pub(crate) mod obsidian;
pub(crate) mod redundant_files;
