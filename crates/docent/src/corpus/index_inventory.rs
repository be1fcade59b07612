//! What the index holds into a table that says, of every id, whose it is and whether its document changed.
//!
//! Of ids and hashes only sums are kept, so that a million documents take forty megabytes. The sums of ids
//! have 128 bits under keys that nobody knows: no two ids of a corpus have the same.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use docent_ingest::FileEntry;
use docent_search::{Engine, InventoryEntryRef, SearchError};

/// Stands where no file and no document is.
pub(super) const NO_FILE: u32 = u32::MAX;

/// The documents that the index held when a sync began.
#[derive(Default)]
pub(super) struct IndexInventory {
    sums: IdHasher,
    /// By the sum of the id, ascending.
    rows: Vec<InventoryRow>,
    sources: Vec<InventorySource>,
    /// How many documents each file of the listing has.
    counts: Vec<u32>,
}

/// One document.
struct InventoryRow {
    id: u128,
    hash: u64,
    source: u32,
}

/// What became of a row.
pub(super) enum RowUpdate<'n> {
    Same,
    Changed(RowVersion<'n>),
}

/// What a document is now.
pub(super) struct RowVersion<'n> {
    pub hash: u64,
    pub source: &'n str,
}

struct InventorySource {
    name: String,
    /// The file of the listing that it is, or that it lies in.
    file: u32,
}

/// Turns ids into numbers that are as good.
#[derive(Clone, Default)]
pub(super) struct IdHasher(RandomState, RandomState);

impl IdHasher {
    pub(super) fn id(&self, id: &str) -> u128 {
        u128::from(self.0.hash_one(id)) << 64 | u128::from(self.1.hash_one(id))
    }

    pub(super) fn hash(&self, hash: &str) -> u64 {
        self.0.hash_one(hash)
    }
}

impl IndexInventory {
    /// Everything that an engine holds.
    pub(super) async fn of(engine: &dyn Engine) -> Result<Self, SearchError> {
        let mut register = Self::default();
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut last = NO_FILE;
        let mut each = |held: InventoryEntryRef<'_>| {
            let is_last = |source: &&InventorySource| source.name == held.source;
            if register
                .sources
                .get(last as usize)
                .filter(is_last)
                .is_none()
            {
                last = match known.get(held.source) {
                    Some(source) => *source,
                    None => register.add_source(held.source, &mut known),
                };
            }
            register.rows.push(InventoryRow {
                id: register.sums.id(held.id),
                hash: register.sums.hash(held.hash),
                source: last,
            });
        };
        engine.visit_inventory(&mut each).await?;
        drop(known);
        register.rows.sort_unstable_by_key(|row| row.id);
        Ok(register)
    }

    fn add_source(&mut self, name: &str, known: &mut HashMap<String, u32>) -> u32 {
        let number = u32::try_from(self.sources.len()).unwrap_or(NO_FILE);
        self.sources.push(InventorySource {
            name: name.to_owned(),
            file: NO_FILE,
        });
        known.insert(name.to_owned(), number);
        number
    }

    /// Finds out which file of a listing each document belongs to. `files` are its paths.
    pub(super) fn assign_files<'p>(&mut self, files: impl Iterator<Item = &'p str>) {
        let files: HashMap<&str, u32> = files.zip(0..).collect();
        for source in &mut self.sources {
            let name = source.name.as_str();
            // What lies in an archive has a path below that of the archive.
            let above = name
                .match_indices('/')
                .filter_map(|(end, _)| name.get(..end));
            let mut paths = std::iter::once(name).chain(above);
            let file = paths.find_map(|path| files.get(path));
            source.file = file.copied().unwrap_or(NO_FILE);
        }
        self.counts = vec![0; files.len()];
        for row in &self.rows {
            let source = self.sources.get(row.source as usize);
            let file = source.map_or(NO_FILE, |source| source.file);
            if let Some(count) = self.counts.get_mut(file as usize) {
                *count += 1;
            }
        }
    }

    /// The register after changes: what `of_row` says of each row, nothing where it is gone, and what is
    /// new. It is as one made anew, for less.
    pub(super) fn updated<'n>(
        &self,
        of_row: impl Fn(usize) -> Option<RowUpdate<'n>>,
        fresh: impl Iterator<Item = (u128, RowVersion<'n>)>,
    ) -> Self {
        let mut next = Self {
            sums: self.sums.clone(),
            ..Self::default()
        };
        let mut known = HashMap::new();
        let mut number = |next: &mut Self, name: &str| match known.get(name) {
            Some(number) => *number,
            None => next.add_source(name, &mut known),
        };
        for (at, row) in self.rows.iter().enumerate() {
            let (hash, source) = match of_row(at) {
                None => continue,
                Some(RowUpdate::Same) => (row.hash, self.source_of(at)),
                Some(RowUpdate::Changed(change)) => (change.hash, change.source),
            };
            let source = number(&mut next, source);
            next.rows.push(InventoryRow {
                id: row.id,
                hash,
                source,
            });
        }
        for (id, RowVersion { hash, source }) in fresh {
            let source = number(&mut next, source);
            next.rows.push(InventoryRow { id, hash, source });
        }
        next.rows.sort_unstable_by_key(|row| row.id);
        next
    }

    pub(super) fn hasher(&self) -> &IdHasher {
        &self.sums
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many documents a file has.
    pub(super) fn count(&self, file: usize) -> usize {
        self.counts.get(file).map_or(0, |count| *count as usize)
    }

    /// The row of an id.
    pub(super) fn find(&self, id: u128) -> Option<usize> {
        self.rows.binary_search_by_key(&id, |row| row.id).ok()
    }

    /// The file of the listing that a row belongs to.
    pub(super) fn file(&self, row: usize) -> u32 {
        self.source(row).map_or(NO_FILE, |source| source.file)
    }

    /// Where the document of a row came from.
    pub(super) fn source_of(&self, row: usize) -> &str {
        self.source(row).map_or("", |source| source.name.as_str())
    }

    /// Whether a row is this document.
    pub(super) fn is_document(&self, row: usize, source: &str, hash: &str) -> bool {
        let hash = self.sums.hash(hash);
        self.rows.get(row).is_some_and(|row| row.hash == hash) && self.source_of(row) == source
    }

    /// Whether a file was one document of its own name.
    pub(super) fn has_file(&self, entry: &FileEntry) -> bool {
        self.row_of(entry).is_some()
    }

    /// The same, and its content was this.
    pub(super) fn is_file(&self, entry: &FileEntry, sha256: &str) -> bool {
        self.row_of(entry)
            .is_some_and(|row| self.is_document(row, entry.path(), sha256))
    }

    fn row_of(&self, entry: &FileEntry) -> Option<usize> {
        self.find(self.sums.id(entry.id()))
            .filter(|row| self.source_of(*row) == entry.path())
    }

    fn source(&self, row: usize) -> Option<&InventorySource> {
        let row = self.rows.get(row)?;
        self.sources.get(row.source as usize)
    }
}

#[cfg(test)]
mod tests {
    use docent_search::{DocId, Document, DocumentChange as Put, MemoryEngine};

    use super::*;

    fn document(id: &str, source: &str) -> Document {
        Document {
            id: DocId::parse(id).unwrap(),
            title: String::new(),
            text: "x".to_owned(),
            url: None,
            date: None,
            fields: Vec::new(),
            source: source.to_owned(),
            hash: "00000000000000ff".repeat(4),
            readers: docent_search::AllowedReaders::Everyone,
        }
    }

    #[tokio::test]
    async fn documents_belong_to_the_file_they_lie_in() {
        let engine = MemoryEngine::new();
        let held = [
            ("1", "a.csv"),
            ("2", "b.zip/c/d.md"),
            ("3", "b.zip/e.md"),
            ("4", "gone.md"),
        ];
        let changes = held.map(|(id, source)| Put::Put(document(id, source)));
        engine.apply(changes.into()).await.unwrap();
        let mut register = IndexInventory::of(&engine).await.unwrap();
        register.assign_files(["a.csv", "b.zip"].into_iter());
        assert_eq!((register.count(0), register.count(1)), (1, 2));
        let row = |id: &str| register.find(register.hasher().id(id)).unwrap();
        assert_eq!(register.file(row("2")), 1);
        assert_eq!(register.file(row("4")), NO_FILE);
        let (same, other) = ("00000000000000ff".repeat(4), "f".repeat(64));
        assert!(register.is_document(row("3"), "b.zip/e.md", &same));
        assert!(!register.is_document(row("3"), "b.zip/e.md", &other));
        assert!(!register.is_document(row("3"), "b.zip", &same));
        assert_eq!(register.find(register.hasher().id("5")), None);
    }
}
