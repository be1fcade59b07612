//! What the index holds into the documents that nobody may read because their own field is malformed, and
//! those that were made under other rules. Hashes tell both, so that no document is loaded.

use docent_ingest::ReaderFault;
use docent_search::{DocId, DocumentChange, Engine, InventoryEntryRef};

use super::change_batch::MOST_DOCUMENTS;
use crate::cli_error::CliError;
use crate::document_transform::{DocumentTransform, reader_fault_of};

/// Documents whose own field names nobody.
#[derive(Debug, Default)]
pub(crate) struct UnreadableDocuments {
    /// How many there are.
    pub count: usize,
    /// The first of them, in the order of their ids.
    pub first: Vec<UnreadableDocument>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnreadableDocument {
    pub id: String,
    pub source: String,
    /// The code of what is wrong with its field.
    code: &'static str,
}

impl UnreadableDocument {
    pub(crate) fn fault(&self) -> ReaderFault {
        // The code is one of those that there are.
        ReaderFault::from_code(self.code).unwrap_or(ReaderFault::Null)
    }
}

impl UnreadableDocuments {
    /// All that an engine holds, of which at most so many are named.
    pub(crate) async fn of(engine: &dyn Engine, most: usize) -> Result<Self, CliError> {
        let mut found = Self::default();
        let mut named = std::collections::BTreeSet::new();
        let mut each = |held: InventoryEntryRef<'_>| {
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
        engine.visit_inventory(&mut each).await?;
        found.first = named.into_iter().collect();
        Ok(found)
    }
}

/// How many documents were made under other rules than these, where these let not everyone read everything.
pub(crate) async fn count_stale(
    engine: &dyn Engine,
    shape: &DocumentTransform,
) -> Result<usize, CliError> {
    stale_ids(engine, shape).await.map(|ids| ids.len())
}

/// Takes documents out of the index that were made under other rules, so that nobody finds one that the rules
/// of today may close. They come back when their files are read again. Says how many there were.
pub(crate) async fn remove_stale(
    engine: &dyn Engine,
    shape: &DocumentTransform,
) -> Result<usize, CliError> {
    let mut ids = stale_ids(engine, shape).await?;
    let count = ids.len();
    while !ids.is_empty() {
        let rest = ids.split_off(ids.len().min(MOST_DOCUMENTS));
        let changes = ids.into_iter().map(DocumentChange::Remove).collect();
        engine.apply(changes).await?;
        ids = rest;
    }
    Ok(count)
}

async fn stale_ids(engine: &dyn Engine, shape: &DocumentTransform) -> Result<Vec<DocId>, CliError> {
    let mut ids = Vec::new();
    if !shape.has_restrictions() {
        return Ok(ids);
    }
    let mut each = |held: InventoryEntryRef<'_>| {
        if !shape.is_current(held.source, held.hash) {
            ids.extend(DocId::parse(held.id));
        }
    };
    engine.visit_inventory(&mut each).await?;
    ids.sort();
    Ok(ids)
}
