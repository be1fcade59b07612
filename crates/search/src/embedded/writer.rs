//! The writer: turns a batch of changes into one durable commit.

use std::fmt;
use std::path::Path;

use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, UserOperation};
use tantivy::{Index, IndexWriter, TantivyError, Term};

use super::durable_directory::DurableDirectory;
use super::ledger::DocumentLedger;
use super::recovery;
use super::schema::IndexFields;
use super::set_digest::SetDigest;
use crate::engine::{DocumentChange, Generation, InventoryEntryRef};
use crate::error::SearchError;
use crate::failpoints;

/// The least and the most that one indexing thread may hold in memory before it writes a segment. A small batch never
/// fills its budget, so it gets little more than tantivy's minimum of fifteen million bytes; with more, a first build
/// writes fewer segments that have to be merged later.
const SMALL_BUDGET: usize = 16_000_000;
const LARGE_BUDGET: usize = 64_000_000;

/// What all indexing threads may hold together by default. They divide it among themselves. An index is also built
/// while the server answers, so indexing may not take the memory that a small machine needs for searches.
const DEFAULT_MAX_BYTES: usize = 128_000_000;

/// From this many bytes of documents on, a batch gets more than one thread. Every thread writes a segment of its own,
/// so on a small batch more threads would save no time and leave segments that each search has to visit.
const LARGE_BATCH_BYTES: usize = 8 * 1024 * 1024;

/// The most indexing threads; more of them only create more segments to merge.
const MAX_THREADS: usize = 4;

/// How many segments of a size are merged into one. Each segment costs every search a little.
const SEGMENTS_TO_MERGE: usize = 5;

/// Segments with fewer documents than this count as one size for merging. Otherwise segments of one, ten and a hundred
/// documents would be three sizes, and an index with many small commits would keep several segments of each.
const SMALLEST_LAYER: u32 = 1_000;

/// The share of deleted documents from which on a segment is rewritten without its tombstones. Deleted documents still
/// take part in posting lists and statistics; rewriting at the first of them would copy a whole segment for every
/// change of a file.
const MAX_DELETED: f32 = 0.3;

/// The open tantivy index, as its writer needs it.
pub(super) struct WritableIndex {
    pub index: Index,
    pub disk: DurableDirectory,
    pub fields: IndexFields,
}

/// The only writer of an index. tantivy's own writer costs threads and memory, so it is opened by the first
/// change.
pub(super) struct CommitWriter {
    index: Index,
    disk: DurableDirectory,
    fields: IndexFields,
    open: Option<IndexWriter>,
    ledger: DocumentLedger,
    /// Whether the open writer has room for large batches.
    is_large: bool,
    max_bytes: usize,
}

impl CommitWriter {
    pub(super) fn new(target: WritableIndex, ledger: DocumentLedger) -> Self {
        Self {
            index: target.index,
            disk: target.disk,
            fields: target.fields,
            open: None,
            ledger,
            is_large: false,
            max_bytes: DEFAULT_MAX_BYTES,
        }
    }

    /// Limits the memory of the next tantivy writer that is opened, approximately.
    pub(super) fn limit(&mut self, bytes: usize) {
        self.max_bytes = bytes;
    }

    /// Writes all changes as one commit, or none of them: write-ahead into the ledger, then into the index. Returns the
    /// generation that the commit carries.
    ///
    /// The ledger goes first, because its entry is only an announcement: without the commit that carries its
    /// generation, recovery ignores it. In the other order, a crash in between would leave a commit that the ledger
    /// does not know, and recovery would have to delete its documents.
    ///
    /// After a failure tantivy's writer is discarded, because neither its memory nor what reached the disk is known any
    /// more. The next one starts from the last commit.
    pub(super) fn commit(
        &mut self,
        dir: &Path,
        changes: &[DocumentChange],
    ) -> Result<Generation, SearchError> {
        let map_error = |source| recovery::map_tantivy_error(dir, source);
        // Read from disk: a batch that failed after its commit has used up a generation all the same.
        let present = CommitPayload::last(&self.index)
            .map_err(map_error)?
            .generation;
        let next = CommitPayload {
            generation: present.next(),
            rows: self
                .ledger
                .record_pending(changes, present, present.next())?,
        };
        self.write(changes, next).map_err(map_error)?;
        Ok(next.generation)
    }

    /// Visits every document that the ledger lists.
    pub(super) fn visit_inventory(
        &mut self,
        present: Generation,
        each: &mut dyn FnMut(InventoryEntryRef<'_>),
    ) -> Result<(), SearchError> {
        self.ledger.visit_inventory(present, each)
    }

    fn write(&mut self, changes: &[DocumentChange], commit: CommitPayload) -> tantivy::Result<()> {
        let is_large = is_large(changes);
        let mut writer = match self.open.take() {
            Some(writer) if self.is_large || !is_large => writer,
            small => {
                if let Some(small) = small {
                    small.wait_merging_threads()?;
                }
                self.is_large = is_large;
                self.disk.reset_failure();
                open(&self.index, is_large, self.max_bytes)?
            }
        };
        self.stage(&writer, changes)?;
        failpoints::pass("words-staged")?;
        let mut prepared = writer.prepare_commit()?;
        prepared.set_payload(&commit.to_string());
        prepared.commit()?;
        self.open = Some(writer);
        Ok(())
    }

    fn stage(&self, writer: &IndexWriter, changes: &[DocumentChange]) -> tantivy::Result<()> {
        for change in changes {
            match change {
                DocumentChange::Put(document) => {
                    writer.delete_term(Term::from_field_text(self.fields.id, document.id.as_str()));
                    writer.add_document(self.fields.write(document)?)?;
                }
                DocumentChange::Remove(id) => {
                    writer.delete_term(Term::from_field_text(self.fields.id, id.as_str()));
                }
            }
        }
        Ok(())
    }
}

impl Drop for CommitWriter {
    /// Waits for running merges to finish. A merge that outlived this could write into the folder while the
    /// next process to open it has already read the file list.
    fn drop(&mut self) {
        if let Some(writer) = self.open.take()
            && let Err(error) = writer.wait_merging_threads()
        {
            tracing::warn!(%error, "merge failed, its segments stay as they were");
        }
    }
}

/// What a commit says about itself: its generation, and the digest of its documents for comparison with the
/// ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CommitPayload {
    pub generation: Generation,
    pub rows: SetDigest,
}

impl CommitPayload {
    /// The payload of the last commit.
    pub(super) fn last(index: &Index) -> tantivy::Result<Self> {
        let Some(payload) = index.load_metas()?.payload else {
            return Ok(Self::default());
        };
        let parsed = payload.split_once(' ').and_then(|(generation, rows)| {
            Some(Self {
                generation: Generation(generation.parse().ok()?),
                rows: SetDigest::parse(rows)?,
            })
        });
        parsed.ok_or_else(|| {
            TantivyError::InternalError("the last commit has no readable payload".to_owned())
        })
    }
}

impl fmt::Display for CommitPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.generation, self.rows)
    }
}

/// Whether a batch gets more than one thread.
fn is_large(changes: &[DocumentChange]) -> bool {
    let bytes = |change: &DocumentChange| match change {
        DocumentChange::Put(document) => document.bytes(),
        DocumentChange::Remove(_) => 0,
    };
    changes.iter().map(bytes).sum::<usize>() >= LARGE_BATCH_BYTES
}

fn open(index: &Index, is_large: bool, max_bytes: usize) -> tantivy::Result<IndexWriter> {
    let (threads, budget) = if !is_large {
        (1, SMALL_BUDGET)
    } else {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let most = (max_bytes / SMALL_BUDGET).clamp(1, MAX_THREADS);
        let threads = cores.min(most);
        let budget = (max_bytes / threads).clamp(SMALL_BUDGET, LARGE_BUDGET);
        (threads, budget)
    };
    let options = IndexWriterOptions::builder()
        .num_worker_threads(threads)
        .num_merge_threads(1)
        .memory_budget_per_thread(budget)
        .build();
    let writer: IndexWriter = index.writer_with_options(options)?;
    // A new writer gives its first operation the number of the last commit. A merge that starts before the
    // next commit takes an operation of that number for done, so a document whose deletion had it would come
    // back. An empty operation uses the number up.
    writer.run(std::iter::empty::<UserOperation>())?;
    // Garbage collection of files: a process that was killed may have left a file that no commit names, but
    // whose name the next commit would choose again, and tantivy never overwrites a file.
    writer.garbage_collect_files().wait()?;
    let mut merging = LogMergePolicy::default();
    merging.set_min_num_segments(SEGMENTS_TO_MERGE);
    merging.set_min_layer_size(SMALLEST_LAYER);
    merging.set_del_docs_ratio_before_merge(MAX_DELETED);
    writer.set_merge_policy(Box::new(merging));
    Ok(writer)
}

#[cfg(test)]
mod tests {
    use tantivy::indexer::NoMergePolicy;

    use super::super::schema::schema;
    use super::super::tokenizer;
    use super::*;
    use crate::document::tests::plain;
    use crate::document::{DocId, Document};

    const SEGMENTS: usize = SEGMENTS_TO_MERGE + 1;

    fn document(id: &str) -> Document {
        Document {
            id: DocId::parse(id).unwrap(),
            ..plain("A ferry.")
        }
    }

    fn delete(writer: &IndexWriter, fields: IndexFields, id: &str) {
        writer.delete_term(Term::from_field_text(fields.id, id));
    }

    /// Segments that are ready for a merge, every other one with a document deleted by the last commit.
    fn index() -> (Index, IndexFields) {
        let (schema, fields) = schema();
        let mut index = Index::create_in_ram(schema);
        index.set_tokenizers(tokenizer::manager());
        let mut writer = open(&index, false, DEFAULT_MAX_BYTES).unwrap();
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for segment in 0..SEGMENTS {
            for n in 0..3 {
                let one = document(&format!("{segment}-{n}"));
                writer.add_document(fields.write(&one).unwrap()).unwrap();
            }
            writer.commit().unwrap();
        }
        for segment in (0..SEGMENTS).step_by(2) {
            delete(&writer, fields, &format!("{segment}-2"));
        }
        writer.commit().unwrap();
        writer.wait_merging_threads().unwrap();
        (index, fields)
    }

    #[test]
    fn the_first_deletion_of_a_new_writer_survives_a_merge() {
        for segment in 0..SEGMENTS {
            let (index, fields) = index();
            let before = index.reader().unwrap().searcher().num_docs();
            let mut writer = open(&index, false, DEFAULT_MAX_BYTES).unwrap();
            let id = format!("{segment}-0");
            delete(&writer, fields, &id);
            let new = fields.write(&document(&id)).unwrap();
            writer.add_document(new).unwrap();
            writer.commit().unwrap();
            writer.wait_merging_threads().unwrap();
            let searcher = index.reader().unwrap().searcher();
            assert!(searcher.segment_readers().len() < SEGMENTS, "a merge");
            assert_eq!(searcher.num_docs(), before, "{id}");
        }
    }
}
