//! A folder into what a look at some of its files tells: which formats, fields and addresses there are.

use std::collections::BTreeMap;
use std::path::Path;

use docent_ingest::{FileEntry, FolderSource};
use docent_search::{Catalog, CatalogBuilder, Document, DocumentValue, MAX_CATALOG_FIELDS};

use crate::cli_error::CliError;
use crate::corpus;
use crate::output::ProgressReporter;
use crate::settings::Settings;

/// How many files are looked at, in proportion to how many there are of each kind, and at least of each.
const FILES: usize = 400;
const LEAST_OF_EACH: usize = 3;

/// The most kinds of names that are told apart.
const MAX_EXTENSIONS: usize = 100;

/// The most bytes of files that are read, unless the first alone has more.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// The most documents of one file that are looked at.
const MAX_DOCUMENTS: usize = 10_000;

/// The most addresses that are kept to find out how they are made.
const MAX_ADDRESSES: usize = 1_000;

/// What was found.
pub(super) struct FolderSurvey {
    /// Files there are.
    pub files: usize,
    /// Files that were read.
    pub looked_at: usize,
    /// Those of them that gave no document.
    pub unread: usize,
    /// How many files of each kind were read.
    pub kinds: BTreeMap<String, usize>,
    /// The fields.
    pub catalog: Catalog,
    /// The first text that was seen in each field.
    pub examples: BTreeMap<String, String>,
    /// Ids with the addresses that documents have of their own.
    pub addresses: Vec<(String, String)>,
    /// The folders at the top, with how many of the documents lie in each.
    pub folders: BTreeMap<String, u64>,
}

impl FolderSurvey {
    /// Looks at a folder.
    pub(super) fn of(folder: &Path, settings: &Settings) -> Result<Self, CliError> {
        let source = corpus::source(folder, settings)?;
        let entries = source.list().entries;
        let chosen = sample_entries(&entries);
        let mut survey = Self {
            files: entries.len(),
            looked_at: 0,
            unread: 0,
            kinds: BTreeMap::new(),
            catalog: Catalog::default(),
            examples: BTreeMap::new(),
            addresses: Vec::new(),
            folders: BTreeMap::new(),
        };
        let mut catalog = CatalogBuilder::new();
        let mut progress = ProgressReporter::start("looking at files");
        let mut left = MAX_BYTES;
        for (done, entry) in chosen.iter().enumerate() {
            progress.at(done, chosen.len());
            if survey.looked_at > 0 && entry.size > left {
                continue;
            }
            left = left.saturating_sub(entry.size);
            survey.read_entry(&source, entry, &mut catalog);
        }
        progress.finish();
        survey.catalog = catalog.build();
        Ok(survey)
    }

    fn read_entry(
        &mut self,
        source: &FolderSource,
        entry: &FileEntry,
        catalog: &mut CatalogBuilder,
    ) {
        self.looked_at += 1;
        *self.kinds.entry(source.kind(entry)).or_default() += 1;
        let documents = source.read(entry).map(|reading| reading.documents);
        let documents = documents.unwrap_or_default();
        if documents.is_empty() {
            self.unread += 1;
        }
        for document in documents.iter().take(MAX_DOCUMENTS) {
            catalog.document(document);
            self.record_document(document);
        }
    }

    fn record_document(&mut self, document: &Document) {
        if let Some(url) = &document.url
            && self.addresses.len() < MAX_ADDRESSES
        {
            let id = document.id.as_str().to_owned();
            self.addresses.push((id, url.clone()));
        }
        for (name, value) in &document.fields {
            if let DocumentValue::Text(text) = value
                && self.examples.len() < MAX_CATALOG_FIELDS
                && !self.examples.contains_key(name)
            {
                self.examples.insert(name.clone(), text.clone());
            }
        }
        if let Some((folder, _)) = document.source.split_once('/') {
            *self.folders.entry(folder.to_owned()).or_default() += 1;
        }
    }
}

/// Files of every kind of name, spread over the folder.
fn sample_entries(entries: &[FileEntry]) -> Vec<&FileEntry> {
    let mut groups: BTreeMap<&str, Vec<&FileEntry>> = BTreeMap::new();
    for entry in entries {
        let name = entry.path().rsplit('/').next().unwrap_or_default();
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        groups.entry(extension).or_default().push(entry);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let share = |group: &Vec<&FileEntry>| {
        let part = FILES * group.len() / entries.len().max(1);
        part.max(LEAST_OF_EACH).min(group.len())
    };
    let some = groups.iter().take(MAX_EXTENSIONS).flat_map(|group| {
        let count = share(group);
        (0..count).filter_map(move |n| group.get(n * group.len() / count).copied())
    });
    some.collect()
}

#[cfg(test)]
mod tests {
    use docent_ingest::Limits;

    use super::*;

    #[test]
    fn files_of_every_kind_are_looked_at_and_no_more_than_some() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..1_000 {
            std::fs::write(dir.path().join(format!("{n:04}.md")), "a").unwrap();
        }
        for name in ["a.csv", "b.csv", "c"] {
            std::fs::write(dir.path().join(name), "a").unwrap();
        }
        let entries = FolderSource::open(dir.path(), Limits::default())
            .unwrap()
            .list()
            .entries;
        let chosen: Vec<_> = sample_entries(&entries)
            .iter()
            .map(|entry| entry.path())
            .collect();
        let of = |end: &str| chosen.iter().filter(|path| path.ends_with(end)).count();
        assert_eq!((of(".md"), of(".csv"), of("c")), (398, 2, 1));
        assert!(chosen.contains(&"0000.md") && chosen.iter().any(|path| *path > "0990.md"));
        assert!(sample_entries(&[]).is_empty());
    }
}
