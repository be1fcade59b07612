//! Reconciles the lexical index with the ledger when the writer opens.
//!
//! They agree unless a part of one was lost. Then the documents that only one of them has, or that they have
//! differently, are removed from both: they count as missing, and the next synchronisation with the source
//! adds them again.

use std::collections::HashMap;
use std::path::Path;

use tantivy::IndexReader;

use super::ledger::{self, DocumentLedger};
use super::quarantine::Quarantine;
use super::recovery;
use super::snapshot::IndexSnapshot;
use super::writer::{CommitPayload, CommitWriter, WritableIndex};
use crate::document::DocId;
use crate::engine::{DocumentChange, InventoryEntry, MAX_CHANGES, collect_inventory};
use crate::error::SearchError;

/// Opens the ledger beside the index, compares the two, and opens the writer.
pub(super) fn open_reconciled_writer(
    lexical_dir: &Path,
    target: WritableIndex,
    reader: &IndexReader,
    quarantine: &mut Quarantine,
) -> Result<CommitWriter, SearchError> {
    let map_error = |source| recovery::map_tantivy_error(lexical_dir, source);
    let (mut ledger, is_new) = open(lexical_dir, quarantine)?;
    let commit = CommitPayload::last(&target.index).map_err(map_error)?;
    // Nobody else writes while we hold the lock, so the reader shows the last commit.
    let documents = reader.searcher().num_docs();
    let is_complete = documents == commit.rows.documents;
    if is_complete && ledger.digest_at(commit.generation)? == commit.rows {
        return Ok(CommitWriter::new(target, ledger));
    }
    let snapshot = IndexSnapshot::newest(&target.index, reader).map_err(map_error)?;
    let inventory = collect_inventory(|each| snapshot.visit_inventory(each).map_err(map_error))?;
    if is_new && is_complete {
        // The index has passed every check, so a lost ledger is rebuilt from it.
        ledger.replace(&inventory, commit.generation)?;
        return Ok(CommitWriter::new(target, ledger));
    }
    let listed = collect_inventory(|each| ledger.visit_inventory(commit.generation, each))?;
    let (agreed, unexpected) = compare(listed, inventory);
    tracing::warn!(
        documents,
        agreed = agreed.len(),
        "index and ledger disagree, removing what differs and rebuilding"
    );
    ledger.replace(&agreed, commit.generation)?;
    let mut writer = CommitWriter::new(target, ledger);
    for ids in unexpected.chunks(MAX_CHANGES) {
        let removals: Vec<_> = ids.iter().cloned().map(DocumentChange::Remove).collect();
        writer.commit(lexical_dir, &removals)?;
    }
    Ok(writer)
}

/// Opens the ledger, and says whether it was created just now.
fn open(
    lexical_dir: &Path,
    quarantine: &mut Quarantine,
) -> Result<(DocumentLedger, bool), SearchError> {
    let path = lexical_dir.join(ledger::NAME);
    let is_new = !path.exists();
    match DocumentLedger::open(lexical_dir) {
        Err(error @ SearchError::Corrupt { .. }) => {
            quarantine.isolate(&path, error.to_string())?;
            Ok((DocumentLedger::open(lexical_dir)?, true))
        }
        other => Ok((other?, is_new)),
    }
}

/// The documents on which both sides agree, and the ids of all others in the index.
fn compare(
    ledger: Vec<InventoryEntry>,
    index: Vec<InventoryEntry>,
) -> (Vec<InventoryEntry>, Vec<DocId>) {
    let mut found: HashMap<DocId, Vec<InventoryEntry>> = HashMap::new();
    for entry in index {
        found.entry(entry.id.clone()).or_default().push(entry);
    }
    let mut agreed = Vec::new();
    for entry in ledger {
        // A document that is in the index twice cannot be trusted.
        if found
            .get(&entry.id)
            .is_some_and(|copies| *copies == [entry.clone()])
        {
            found.remove(&entry.id);
            agreed.push(entry);
        }
    }
    let mut unexpected: Vec<_> = found.into_keys().collect();
    unexpected.sort();
    (agreed, unexpected)
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
        let index = vec![
            held("a", "1"),
            held("b", "2"),
            held("c", "1"),
            held("c", "1"),
            held("e", "1"),
        ];
        let (agreed, unexpected) = compare(ledger, index);
        assert_eq!(agreed, [held("a", "1")]);
        let unexpected: Vec<_> = unexpected.iter().map(DocId::as_str).collect();
        assert_eq!(unexpected, ["b", "c", "e"]);
    }
}
