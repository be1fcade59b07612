//! Conflict resolution for document ids: the first file in listing order that claims an id keeps it.
//!
//! The claims of a sync also tell which documents are new, changed or unchanged, and which ones nobody claims any
//! more, so that they are removed.

use std::collections::HashMap;
use std::sync::Arc;

use docent_ingest::{IngestError, Limits};

use super::index_inventory::{IndexInventory, NO_FILE, RowUpdate, RowVersion};

/// The ids claimed during one sync, over the inventory of the index as it was when the sync began.
///
/// Rows of the inventory are claimed by number, new ids by their hash; a file that did not change claims all of its
/// rows at once. Sources are stored once, in listing order, because the documents of one source arrive together.
pub(super) struct IdClaims {
    inventory: Arc<IndexInventory>,
    /// The claiming source of each inventory row, or `NO_FILE`.
    claimed_by: Vec<u32>,
    /// Ids that the inventory does not hold.
    new_ids: HashMap<u128, ClaimedVersion>,
    /// The new versions of rows whose documents changed.
    changed: HashMap<usize, ClaimedVersion>,
    sources: Vec<String>,
    /// Files that keep all of their documents unchanged.
    kept_whole: Vec<bool>,
    /// Files that lost an id to an earlier file.
    lost_an_id: Vec<bool>,
    count: usize,
    /// How many inventory rows are claimed.
    rows: usize,
    max_documents: usize,
}

/// The current version of a document: the hash of its content and its source.
#[derive(Clone, Copy)]
struct ClaimedVersion {
    hash: u64,
    source: u32,
}

/// The result of a claim, which decides whether the document is written.
pub(super) enum ClaimOutcome {
    /// The index holds exactly this document; nothing is written.
    Unchanged,
    /// The document is new or changed, and its id is free.
    New,
}

impl IdClaims {
    pub(super) fn new(inventory: Arc<IndexInventory>, files: usize, limits: &Limits) -> Self {
        Self {
            claimed_by: vec![NO_FILE; inventory.len()],
            inventory,
            new_ids: HashMap::new(),
            changed: HashMap::new(),
            sources: Vec::new(),
            kept_whole: vec![false; files],
            lost_an_id: vec![false; files],
            count: 0,
            rows: 0,
            max_documents: limits.max_documents,
        }
    }

    /// Claims an id for a document. A duplicate is an error that names the source that was first.
    pub(super) fn claim(
        &mut self,
        id: &str,
        source: &str,
        hash: &str,
    ) -> Result<ClaimOutcome, IngestError> {
        let key = self.inventory.hasher().id(id);
        let row = self.inventory.find(key);
        if let Some(first) = self.holder(key, row) {
            return Err(IngestError::DuplicateId {
                id: id.to_owned(),
                first: first.to_owned(),
            });
        }
        if self.count >= self.max_documents {
            return Err(IngestError::TooManyDocuments {
                limit: self.max_documents,
            });
        }
        self.count += 1;
        let claimant = self.claimant(source);
        let now = ClaimedVersion {
            hash: self.inventory.hasher().hash(hash),
            source: claimant,
        };
        let Some(row) = row else {
            self.new_ids.insert(key, now);
            return Ok(ClaimOutcome::New);
        };
        self.rows += 1;
        if let Some(by) = self.claimed_by.get_mut(row) {
            *by = claimant;
        }
        if self.inventory.is_document(row, source, hash) {
            return Ok(ClaimOutcome::Unchanged);
        }
        self.changed.insert(row, now);
        let file = self.inventory.file(row) as usize;
        if self.inventory.source_of(row) != source
            && let Some(lost) = self.lost_an_id.get_mut(file)
        {
            *lost = true;
        }
        Ok(ClaimOutcome::New)
    }

    /// Claims all documents of an unchanged file; false when it cannot keep all of them and must be read.
    pub(super) fn claim_file(&mut self, file: usize, documents: usize) -> bool {
        let is_held = self.inventory.count(file) == documents
            && self.lost_an_id.get(file) == Some(&false)
            && self.count + documents <= self.max_documents;
        if let Some(kept) = self.kept_whole.get_mut(file).filter(|_| is_held) {
            *kept = true;
            self.count += documents;
            self.rows += documents;
        }
        is_held
    }

    /// Whether the inventory has rows that no file claimed.
    pub(super) fn has_unclaimed(&self) -> bool {
        self.rows < self.inventory.len()
    }

    /// Whether the index holds a document that no file claimed.
    pub(super) fn is_unclaimed(&self, id: &str) -> bool {
        let row = self.inventory.find(self.inventory.hasher().id(id));
        row.is_some_and(|row| self.is_row_unclaimed(row))
    }

    fn is_row_unclaimed(&self, row: usize) -> bool {
        let file = self.inventory.file(row) as usize;
        self.claimed_by.get(row) == Some(&NO_FILE) && self.kept_whole.get(file) != Some(&true)
    }

    /// The inventory after this sync: all claimed documents, and of the unclaimed ones those whose source
    /// `is_kept` retains.
    pub(super) fn to_inventory(&self, is_kept: impl Fn(&str) -> bool) -> IndexInventory {
        let change = |now: &ClaimedVersion| RowVersion {
            hash: now.hash,
            source: self.source(now.source),
        };
        let of_row = |row: usize| {
            if self.is_row_unclaimed(row) {
                return is_kept(self.inventory.source_of(row)).then_some(RowUpdate::Same);
            }
            let changed = self.changed.get(&row);
            Some(changed.map_or(RowUpdate::Same, |now| RowUpdate::Changed(change(now))))
        };
        let new_ids = self.new_ids.iter().map(|(id, now)| (*id, change(now)));
        self.inventory.updated(of_row, new_ids)
    }

    fn source(&self, number: u32) -> &str {
        self.sources.get(number as usize).map_or("", String::as_str)
    }

    fn holder(&self, key: u128, row: Option<usize>) -> Option<&str> {
        let Some(row) = row else {
            return self.new_ids.get(&key).map(|now| self.source(now.source));
        };
        if self.kept_whole.get(self.inventory.file(row) as usize) == Some(&true) {
            return Some(self.inventory.source_of(row));
        }
        let by = self.claimed_by.get(row).filter(|by| **by != NO_FILE)?;
        Some(self.source(*by))
    }

    fn claimant(&mut self, source: &str) -> u32 {
        if self.sources.last().is_none_or(|last| last != source) {
            self.sources.push(source.to_owned());
        }
        u32::try_from(self.sources.len() - 1).unwrap_or(NO_FILE)
    }
}
