//! Documents that fail closed because their reader field is malformed, and stale documents that were indexed under
//! other permission rules. Both are recognised by their content hash in the inventory, so no document is loaded.

use docent_ingest::ReaderFault;
use docent_search::{DocId, DocumentChange, Engine, InventoryEntryRef};

use super::change_batch::MOST_DOCUMENTS;
use crate::cli_error::CliError;
use crate::document_transform::{DocumentTransform, reader_fault_of};

/// Documents that nobody may read because their reader field is malformed.
#[derive(Debug, Default)]
pub(crate) struct UnreadableDocuments {
    /// The total number of such documents.
    pub count: usize,
    /// The first ones in id order, up to the requested number.
    pub first: Vec<UnreadableDocument>,
}

/// A document with a malformed reader field, for a report.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnreadableDocument {
    pub id: String,
    pub source: String,
    /// The error code of the reader field.
    code: &'static str,
}

impl UnreadableDocument {
    pub(crate) fn fault(&self) -> ReaderFault {
        // The code came from a `ReaderFault`, so it always parses.
        ReaderFault::from_code(self.code).unwrap_or(ReaderFault::Null)
    }
}

impl UnreadableDocuments {
    /// Counts all of them in an engine and lists at most `most`.
    pub(crate) async fn of(engine: &dyn Engine, most: usize) -> Result<Self, CliError> {
        let mut found = Self::default();
        let mut named = std::collections::BTreeSet::new();
        let mut visit = |held: InventoryEntryRef<'_>| {
            let Some(fault) = reader_fault_of(held.hash) else {
                return;
            };
            found.count += 1;
            named.insert(UnreadableDocument {
                id: held.id.to_owned(),
                source: held.source.to_owned(),
                code: fault.code(),
            });
            if named.len() > most {
                named.pop_last();
            }
        };
        engine.visit_inventory(&mut visit).await?;
        found.first = named.into_iter().collect();
        Ok(found)
    }
}

/// Counts the stale documents: those indexed under other rules than the current ones. Zero when the current rules
/// restrict nothing.
pub(crate) async fn count_stale(
    engine: &dyn Engine,
    transform: &DocumentTransform,
) -> Result<usize, CliError> {
    stale_ids(engine, transform).await.map(|ids| ids.len())
}

/// Removes stale documents from the index, because the current rules may deny what the old ones allowed. They come
/// back when their files are read again. Returns how many were removed.
pub(crate) async fn remove_stale(
    engine: &dyn Engine,
    transform: &DocumentTransform,
) -> Result<usize, CliError> {
    let mut ids = stale_ids(engine, transform).await?;
    let count = ids.len();
    while !ids.is_empty() {
        let rest = ids.split_off(ids.len().min(MOST_DOCUMENTS));
        let changes = ids.into_iter().map(DocumentChange::Remove).collect();
        engine.apply(changes).await?;
        ids = rest;
    }
    Ok(count)
}

async fn stale_ids(
    engine: &dyn Engine,
    transform: &DocumentTransform,
) -> Result<Vec<DocId>, CliError> {
    let mut ids = Vec::new();
    if !transform.has_restrictions() {
        return Ok(ids);
    }
    let mut visit = |held: InventoryEntryRef<'_>| {
        if !transform.is_current(held.source, held.hash) {
            ids.extend(DocId::parse(held.id));
        }
    };
    engine.visit_inventory(&mut visit).await?;
    ids.sort();
    Ok(ids)
}
