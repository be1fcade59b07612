//! Ids of documents into who may keep them: the first file, in the order of the listing, that has one.

use std::collections::HashMap;
use std::sync::Arc;

use docent_ingest::{IngestError, Limits};

use super::index_inventory::{IndexInventory, NO_FILE, RowUpdate, RowVersion};

/// Who has which id in this sync.
pub(super) struct IdClaims {
    register: Arc<IndexInventory>,
    /// For each row of the register, who claimed it.
    by: Vec<u32>,
    /// Ids that nobody held before.
    fresh: HashMap<u128, ClaimedVersion>,
    /// Rows whose documents changed.
    changed: HashMap<usize, ClaimedVersion>,
    /// Sources that claimed something, in the order of the listing; the documents of one come together.
    sources: Vec<String>,
    /// Files all of whose documents stay as they are.
    whole: Vec<bool>,
    /// Files that lost an id to one before them.
    robbed: Vec<bool>,
    count: usize,
    /// How many rows of the register are claimed.
    rows: usize,
    most: usize,
}

/// What a document is now: the sum of its content, and its source.
#[derive(Clone, Copy)]
struct ClaimedVersion {
    hash: u64,
    source: u32,
}

/// What came of a claim.
pub(super) enum ClaimOutcome {
    /// The document is held as it is.
    Unchanged,
    /// It is not, and the id is free.
    New,
}

impl IdClaims {
    pub(super) fn new(register: Arc<IndexInventory>, files: usize, limits: &Limits) -> Self {
        Self {
            by: vec![NO_FILE; register.len()],
            register,
            fresh: HashMap::new(),
            changed: HashMap::new(),
            sources: Vec::new(),
            whole: vec![false; files],
            robbed: vec![false; files],
            count: 0,
            rows: 0,
            most: limits.max_documents,
        }
    }

    /// Claims an id for a document, or says who has it.
    pub(super) fn claim(
        &mut self,
        id: &str,
        source: &str,
        hash: &str,
    ) -> Result<ClaimOutcome, IngestError> {
        let key = self.register.hasher().id(id);
        let row = self.register.find(key);
        if let Some(first) = self.holder(key, row) {
            return Err(IngestError::DuplicateId {
                id: id.to_owned(),
                first: first.to_owned(),
            });
        }
        if self.count >= self.most {
            return Err(IngestError::TooManyDocuments { limit: self.most });
        }
        self.count += 1;
        let claimant = self.claimant(source);
        let now = ClaimedVersion {
            hash: self.register.hasher().hash(hash),
            source: claimant,
        };
        let Some(row) = row else {
            self.fresh.insert(key, now);
            return Ok(ClaimOutcome::New);
        };
        self.rows += 1;
        if let Some(by) = self.by.get_mut(row) {
            *by = claimant;
        }
        if self.register.is_document(row, source, hash) {
            return Ok(ClaimOutcome::Unchanged);
        }
        self.changed.insert(row, now);
        let file = self.register.file(row) as usize;
        if self.register.source_of(row) != source
            && let Some(robbed) = self.robbed.get_mut(file)
        {
            *robbed = true;
        }
        Ok(ClaimOutcome::New)
    }

    /// Claims all documents of a file that did not change; false when it cannot keep them all.
    pub(super) fn claim_file(&mut self, file: usize, documents: usize) -> bool {
        let is_held = self.register.count(file) == documents
            && self.robbed.get(file) == Some(&false)
            && self.count + documents <= self.most;
        if let Some(whole) = self.whole.get_mut(file).filter(|_| is_held) {
            *whole = true;
            self.count += documents;
            self.rows += documents;
        }
        is_held
    }

    /// Whether the register has rows that nobody claimed.
    pub(super) fn has_unclaimed(&self) -> bool {
        self.rows < self.register.len()
    }

    /// Whether a document that was held is nobody's any more.
    pub(super) fn is_unclaimed(&self, id: &str) -> bool {
        let row = self.register.find(self.register.hasher().id(id));
        row.is_some_and(|row| self.is_row_unclaimed(row))
    }

    fn is_row_unclaimed(&self, row: usize) -> bool {
        let file = self.register.file(row) as usize;
        self.by.get(row) == Some(&NO_FILE) && self.whole.get(file) != Some(&true)
    }

    /// What is held when everything claimed is, and nothing else but what `is_kept` says of its source.
    pub(super) fn to_inventory(&self, is_kept: impl Fn(&str) -> bool) -> IndexInventory {
        let change = |now: &ClaimedVersion| RowVersion {
            hash: now.hash,
            source: self.source(now.source),
        };
        let of_row = |row: usize| {
            if self.is_row_unclaimed(row) {
                return is_kept(self.register.source_of(row)).then_some(RowUpdate::Same);
            }
            let changed = self.changed.get(&row);
            Some(changed.map_or(RowUpdate::Same, |now| RowUpdate::Changed(change(now))))
        };
        let fresh = self.fresh.iter().map(|(id, now)| (*id, change(now)));
        self.register.updated(of_row, fresh)
    }

    fn source(&self, number: u32) -> &str {
        self.sources.get(number as usize).map_or("", String::as_str)
    }

    fn holder(&self, key: u128, row: Option<usize>) -> Option<&str> {
        let Some(row) = row else {
            return self.fresh.get(&key).map(|now| self.source(now.source));
        };
        if self.whole.get(self.register.file(row) as usize) == Some(&true) {
            return Some(self.register.source_of(row));
        }
        let by = self.by.get(row).filter(|by| **by != NO_FILE)?;
        Some(self.source(*by))
    }

    fn claimant(&mut self, source: &str) -> u32 {
        if self.sources.last().is_none_or(|last| last != source) {
            self.sources.push(source.to_owned());
        }
        u32::try_from(self.sources.len() - 1).unwrap_or(NO_FILE)
    }
}
