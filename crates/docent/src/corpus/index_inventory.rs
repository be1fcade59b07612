//! The inventory of the index: for every document id, the source it came from and a hash of its content.
//!
//! A sync compares the folder with this table. Ids and content hashes are stored as hashes, so that a million
//! documents take forty megabytes. Ids get 128 bits of keyed hash with random keys: collisions within a corpus
//! are not to be expected, and nobody can construct one.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use docent_ingest::FileEntry;
use docent_search::{Engine, InventoryEntryRef, SearchError};

/// Sentinel number for "no file" and "no source".
pub(super) const NO_FILE: u32 = u32::MAX;

/// The documents that the index held when a sync began, as rows sorted by hashed id for binary search.
#[derive(Default)]
pub(super) struct IndexInventory {
    hasher: IdHasher,
    /// Sorted by hashed id, ascending.
    rows: Vec<InventoryRow>,
    sources: Vec<InventorySource>,
    /// The number of documents of each file in the listing.
    counts: Vec<u32>,
}

/// One document: its hashed id, its hashed content and the number of its source.
struct InventoryRow {
    id: u128,
    hash: u64,
    source: u32,
}

/// What a sync did to the document of a row that stays.
pub(super) enum RowUpdate<'n> {
    Same,
    Changed(RowVersion<'n>),
}

/// The new content hash and source of a document.
pub(super) struct RowVersion<'n> {
    pub hash: u64,
    pub source: &'n str,
}

struct InventorySource {
    name: String,
    /// The listed file that is this source or contains it, as an archive does.
    file: u32,
}

/// Hashes ids to 128 bits and content hashes to 64 bits with keys that are random for each inventory.
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
    /// Loads the inventory of everything an engine holds.
    pub(super) async fn of(engine: &dyn Engine) -> Result<Self, SearchError> {
        let mut inventory = Self::default();
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut last = NO_FILE;
        let mut visit = |held: InventoryEntryRef<'_>| {
            let is_last = |source: &&InventorySource| source.name == held.source;
            if inventory
                .sources
                .get(last as usize)
                .filter(is_last)
                .is_none()
            {
                last = match known.get(held.source) {
                    Some(source) => *source,
                    None => inventory.add_source(held.source, &mut known),
                };
            }
            inventory.rows.push(InventoryRow {
                id: inventory.hasher.id(held.id),
                hash: inventory.hasher.hash(held.hash),
                source: last,
            });
        };
        engine.visit_inventory(&mut visit).await?;
        drop(known);
        inventory.rows.sort_unstable_by_key(|row| row.id);
        Ok(inventory)
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

    /// Assigns every document to the file of the listing that it came from. `files` are the listed paths, in order.
    pub(super) fn assign_files<'p>(&mut self, files: impl Iterator<Item = &'p str>) {
        let files: HashMap<&str, u32> = files.zip(0..).collect();
        for source in &mut self.sources {
            let name = source.name.as_str();
            // The source of an archive member is a path below the path of the archive.
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

    /// The inventory after a sync: each row as `of_row` says, without the rows for which it says `None`, and the
    /// new documents. The result equals a freshly loaded inventory, without reading the index again.
    pub(super) fn updated<'n>(
        &self,
        of_row: impl Fn(usize) -> Option<RowUpdate<'n>>,
        new_documents: impl Iterator<Item = (u128, RowVersion<'n>)>,
    ) -> Self {
        let mut next = Self {
            hasher: self.hasher.clone(),
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
        for (id, RowVersion { hash, source }) in new_documents {
            let source = number(&mut next, source);
            next.rows.push(InventoryRow { id, hash, source });
        }
        next.rows.sort_unstable_by_key(|row| row.id);
        next
    }

    pub(super) fn hasher(&self) -> &IdHasher {
        &self.hasher
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The number of documents that a listed file has in the index.
    pub(super) fn count(&self, file: usize) -> usize {
        self.counts.get(file).map_or(0, |count| *count as usize)
    }

    /// The row of a hashed id, by binary search.
    pub(super) fn find(&self, id: u128) -> Option<usize> {
        self.rows.binary_search_by_key(&id, |row| row.id).ok()
    }

    /// The listed file that a row belongs to, or `NO_FILE`.
    pub(super) fn file(&self, row: usize) -> u32 {
        self.source(row).map_or(NO_FILE, |source| source.file)
    }

    /// The path that the document of a row came from.
    pub(super) fn source_of(&self, row: usize) -> &str {
        self.source(row).map_or("", |source| source.name.as_str())
    }

    /// Whether a row holds this version of a document from this source.
    pub(super) fn is_document(&self, row: usize, source: &str, hash: &str) -> bool {
        let hash = self.hasher.hash(hash);
        self.rows.get(row).is_some_and(|row| row.hash == hash) && self.source_of(row) == source
    }

    /// Whether the index holds a document under the file's own id.
    pub(super) fn has_file(&self, entry: &FileEntry) -> bool {
        self.row_of(entry).is_some()
    }

    /// Whether the index holds a document under the file's own id with this content hash.
    pub(super) fn is_file(&self, entry: &FileEntry, sha256: &str) -> bool {
        self.row_of(entry)
            .is_some_and(|row| self.is_document(row, entry.path(), sha256))
    }

    fn row_of(&self, entry: &FileEntry) -> Option<usize> {
        self.find(self.hasher.id(entry.id()))
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
        let mut inventory = IndexInventory::of(&engine).await.unwrap();
        inventory.assign_files(["a.csv", "b.zip"].into_iter());
        assert_eq!((inventory.count(0), inventory.count(1)), (1, 2));
        let row = |id: &str| inventory.find(inventory.hasher().id(id)).unwrap();
        assert_eq!(inventory.file(row("2")), 1);
        assert_eq!(inventory.file(row("4")), NO_FILE);
        let (same, other) = ("00000000000000ff".repeat(4), "f".repeat(64));
        assert!(inventory.is_document(row("3"), "b.zip/e.md", &same));
        assert!(!inventory.is_document(row("3"), "b.zip/e.md", &other));
        assert!(!inventory.is_document(row("3"), "b.zip", &same));
        assert_eq!(inventory.find(inventory.hasher().id("5")), None);
    }
}
