//! Survey of a folder from a sample of its files: formats, fields, URLs and top-level folders.

use std::collections::BTreeMap;
use std::path::Path;

use docent_ingest::{FileEntry, FolderSource};
use docent_search::{Catalog, CatalogBuilder, Document, DocumentValue, MAX_CATALOG_FIELDS};

use crate::cli_error::CliError;
use crate::corpus;
use crate::output::ProgressReporter;
use crate::settings::Settings;

/// Sample size in files. It is shared among file extensions in proportion to their counts, with a minimum for each.
const SAMPLE_FILES: usize = 400;
const MIN_PER_EXTENSION: usize = 3;

/// Maximum number of file extensions in the sample.
const MAX_EXTENSIONS: usize = 100;

/// Maximum number of bytes to read. Only the first file may exceed it.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Maximum number of documents to read from one file.
const MAX_DOCUMENTS: usize = 10_000;

/// Maximum number of URLs to keep for inferring the URL template.
const MAX_ADDRESSES: usize = 1_000;

/// What the sample shows about the folder.
pub(super) struct FolderSurvey {
    /// Total number of files in the folder.
    pub files: usize,
    /// Number of files in the sample.
    pub looked_at: usize,
    /// Number of sampled files that contain no document.
    pub unread: usize,
    /// Number of sampled files per format.
    pub kinds: BTreeMap<String, usize>,
    /// Catalog of the fields in the sample.
    pub catalog: Catalog,
    /// The first text value of each field, as an example.
    pub examples: BTreeMap<String, String>,
    /// Ids and URLs of documents that have a URL of their own.
    pub addresses: Vec<(String, String)>,
    /// Number of documents in each top-level folder.
    pub folders: BTreeMap<String, u64>,
}

impl FolderSurvey {
    /// Samples a folder and reads the chosen files.
    pub(super) fn of(folder: &Path, settings: &Settings) -> Result<Self, CliError> {
        let source = corpus::source(folder, settings)?;
        let entries = source.list().entries;
        let sample = sample_entries(&entries);
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
        let mut progress = ProgressReporter::start("reading files");
        let mut bytes_left = MAX_BYTES;
        for (done, entry) in sample.iter().enumerate() {
            progress.at(done, sample.len());
            if survey.looked_at > 0 && entry.size > bytes_left {
                continue;
            }
            bytes_left = bytes_left.saturating_sub(entry.size);
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
        let file = source.open_file(entry);
        *self.kinds.entry(file.kind()).or_default() += 1;
        let documents = file.read().map(|reading| reading.documents);
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

/// Chooses sample files of every extension, evenly spread over the sorted listing.
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
        let part = SAMPLE_FILES * group.len() / entries.len().max(1);
        part.max(MIN_PER_EXTENSION).min(group.len())
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
        let sample: Vec<_> = sample_entries(&entries)
            .iter()
            .map(|entry| entry.path())
            .collect();
        let of = |end: &str| sample.iter().filter(|path| path.ends_with(end)).count();
        assert_eq!((of(".md"), of(".csv"), of("c")), (398, 2, 1));
        assert!(sample.contains(&"0000.md") && sample.iter().any(|path| *path > "0990.md"));
        assert!(sample_entries(&[]).is_empty());
    }
}
