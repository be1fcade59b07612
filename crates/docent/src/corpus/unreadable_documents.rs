//! Documents that fail closed because their reader field is malformed, and stale documents that were indexed under
//! other permission rules. Both are recognised by their content hash in the inventory, so no document is loaded.

use std::collections::{BTreeMap, BTreeSet};

use docent_ingest::ReaderFault;
use docent_search::{DocId, DocumentChange, Engine, InventoryEntryRef};

use super::change_batch::MAX_COMMIT_DOCUMENTS;
use crate::cli_error::CliError;
use crate::document_transform::{DocumentTransform, reader_fault_of};

/// Documents that nobody may read because their reader field is malformed.
#[derive(Debug, Default)]
pub(crate) struct UnreadableDocuments {
    /// The total number of such documents.
    pub count: usize,
    /// The first ones in id order, up to the requested number.
    pub first: Vec<UnreadableDocument>,
    /// The first of their files by name, up to the same number, with what is wrong in each.
    pub files: Vec<UnreadableFile>,
}

/// A file with documents that nobody may read because of the same fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnreadableFile {
    pub source: String,
    pub fault: ReaderFault,
    /// How many of its documents have this fault.
    pub documents: usize,
}

/// A document with a malformed reader field, for a report.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnreadableDocument {
    pub id: String,
    pub source: String,
    /// The error code of the reader field.
    code: &'static str,
}

/// The fault with this code, which came from a [`ReaderFault`], so it always parses.
fn fault_of(code: &str) -> ReaderFault {
    ReaderFault::from_code(code).unwrap_or(ReaderFault::Null)
}

impl UnreadableDocuments {
    /// Counts all of them in an engine, and lists at most `most` of them and of their files.
    pub(crate) async fn of(engine: &dyn Engine, most: usize) -> Result<Self, CliError> {
        let mut found = Self::default();
        let mut named = BTreeSet::new();
        let mut files: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
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
            *files
                .entry((held.source.to_owned(), fault.code()))
                .or_default() += 1;
            // A file that leaves has `most` files before it, so it never comes back with a count that is too small.
            if files.len() > most {
                files.pop_last();
            }
        };
        engine.visit_inventory(&mut visit).await?;
        found.first = named.into_iter().collect();
        let file = |((source, code), documents): ((String, &str), usize)| UnreadableFile {
            source,
            fault: fault_of(code),
            documents,
        };
        found.files = files.into_iter().map(file).collect();
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
        let rest = ids.split_off(ids.len().min(MAX_COMMIT_DOCUMENTS));
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
