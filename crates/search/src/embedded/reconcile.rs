//! Words and ledger into a writer whose two sides tell the same.
//!
//! They always do unless a part of one was lost. Then documents that only one of them knows, or that
//! they know differently, are removed from both: they are missing, and whoever keeps the index in step
//! with its source brings them again.

use std::collections::HashMap;
use std::path::Path;

use tantivy::{Index, IndexReader};

use super::durable_directory::DurableDirectory;
use super::ledger::{self, DocumentLedger};
use super::quarantine::Quarantine;
use super::recovery;
use super::schema::IndexFields;
use super::snapshot::IndexSnapshot;
use super::writer::{CommitPayload, CommitWriter};
use crate::document::DocId;
use crate::engine::{DocumentChange, InventoryEntry, MAX_CHANGES, collect_inventory};
use crate::error::SearchError;

/// Opens the ledger beside the words and compares the two.
pub(super) fn open_reconciled_writer(
    words: &Path,
    (index, disk): (Index, DurableDirectory),
    (reader, fields): (&IndexReader, IndexFields),
    aside: &mut Quarantine,
) -> Result<CommitWriter, SearchError> {
    let known = |source| recovery::map_tantivy_error(words, source);
    let (mut ledger, is_new) = open(words, aside)?;
    let commit = CommitPayload::last(&index).map_err(known)?;
    // Nobody else writes while we hold the lock, so the reader shows the last commit.
    let documents = reader.searcher().num_docs();
    let is_whole = documents == commit.rows.documents;
    if is_whole && ledger.digest_at(commit.generation)? == commit.rows {
        return Ok(CommitWriter::new((index, disk), fields, ledger));
    }
    let snapshot = IndexSnapshot::newest(&index, reader).map_err(known)?;
    let inventory = collect_inventory(|each| snapshot.visit_inventory(each).map_err(known))?;
    if is_new && is_whole {
        // The words have passed every check, so a lost ledger can be made from them.
        ledger.replace(&inventory, commit.generation)?;
        return Ok(CommitWriter::new((index, disk), fields, ledger));
    }
    let listed = collect_inventory(|each| ledger.visit_inventory(commit.generation, each))?;
    let (agreed, strange) = compare(listed, inventory);
    tracing::warn!(
        documents,
        agreed = agreed.len(),
        "words and ledger differ; what differs is made again"
    );
    ledger.replace(&agreed, commit.generation)?;
    let mut writer = CommitWriter::new((index, disk), fields, ledger);
    for ids in strange.chunks(MAX_CHANGES) {
        let gone: Vec<_> = ids.iter().cloned().map(DocumentChange::Remove).collect();
        writer.commit(words, &gone)?;
    }
    Ok(writer)
}

/// The ledger, and whether it was made just now.
fn open(words: &Path, aside: &mut Quarantine) -> Result<(DocumentLedger, bool), SearchError> {
    let path = words.join(ledger::NAME);
    let is_new = !path.exists();
    match DocumentLedger::open(words) {
        Err(error @ SearchError::Corrupt { .. }) => {
            aside.isolate(&path, error.to_string())?;
            Ok((DocumentLedger::open(words)?, true))
        }
        other => Ok((other?, is_new)),
    }
}

/// The documents that both sides know alike, and the ids of the others that the words have.
fn compare(
    ledger: Vec<InventoryEntry>,
    words: Vec<InventoryEntry>,
) -> (Vec<InventoryEntry>, Vec<DocId>) {
    let mut found: HashMap<DocId, Vec<InventoryEntry>> = HashMap::new();
    for held in words {
        found.entry(held.id.clone()).or_default().push(held);
    }
    let mut agreed = Vec::new();
    for held in ledger {
        // A document that is there twice is known to nobody.
        if found
            .get(&held.id)
            .is_some_and(|copies| *copies == [held.clone()])
        {
            found.remove(&held.id);
            agreed.push(held);
        }
    }
    let mut strange: Vec<_> = found.into_keys().collect();
    strange.sort();
    (agreed, strange)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(id: &str, hash: &str) -> InventoryEntry {
        InventoryEntry {
            id: DocId::parse(id).unwrap(),
            source: "a.md".to_owned(),
            hash: hash.to_owned(),
        }
    }

    #[test]
    fn only_what_both_know_alike_and_once_is_agreed_on() {
        let ledger = ["a", "b", "c", "d"].map(|id| held(id, "1")).to_vec();
        let words = vec![
            held("a", "1"),
            held("b", "2"),
            held("c", "1"),
            held("c", "1"),
            held("e", "1"),
        ];
        let (agreed, strange) = compare(ledger, words);
        assert_eq!(agreed, [held("a", "1")]);
        let strange: Vec<_> = strange.iter().map(DocId::as_str).collect();
        assert_eq!(strange, ["b", "c", "e"]);
    }
}
