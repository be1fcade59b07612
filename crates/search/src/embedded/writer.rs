//! Changes into one commit that lasts.

use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::{Index, IndexWriter, TantivyError, Term};

use super::schema::Fields;
use crate::engine::{Change, Generation};

/// What one indexing thread may hold in memory before it writes a segment. tantivy takes no less
/// than fifteen million bytes.
const SMALL_BUDGET: usize = 16_000_000;
const LARGE_BUDGET: usize = 64_000_000;

/// What all indexing threads may hold together, unless somebody says otherwise.
const MOST_BYTES: usize = 128_000_000;

/// From this many bytes of documents on, a batch is worth more than one thread.
const LARGE_BATCH_BYTES: usize = 8 * 1024 * 1024;

/// The most indexing threads; more of them only make more segments to merge.
const MAX_THREADS: usize = 4;

/// How many segments of a size are merged into one. Each of them costs every search a little.
const SEGMENTS_TO_MERGE: usize = 5;

/// Segments below this many documents are merged as if they had as many.
const SMALLEST_LAYER: u32 = 1_000;

/// The part of deleted documents from which on a segment is written anew without them.
const MAX_DELETED: f32 = 0.3;

/// The one that writes. It costs threads and memory, so it is opened by the first change.
pub(super) struct Writer {
    index: Index,
    fields: Fields,
    open: Option<IndexWriter>,
    /// Whether the open one has room for large batches.
    is_large: bool,
    most_bytes: usize,
}

impl Writer {
    pub(super) fn new(index: Index, fields: Fields) -> Self {
        Self {
            index,
            fields,
            open: None,
            is_large: false,
            most_bytes: MOST_BYTES,
        }
    }

    /// Holds at most about so many bytes from the next opening on.
    pub(super) fn limit(&mut self, bytes: usize) {
        self.most_bytes = bytes;
    }

    /// Writes all changes as one commit that carries `generation`, or none of them.
    ///
    /// After a failure the writer is thrown away: what it holds in memory, and whether the disk
    /// took what it was given, can no longer be known. The next one starts from the last commit.
    pub(super) fn commit(
        &mut self,
        changes: &[Change],
        generation: Generation,
    ) -> tantivy::Result<()> {
        let is_large = is_large(changes);
        let mut writer = match self.open.take() {
            Some(writer) if self.is_large || !is_large => writer,
            small => {
                if let Some(small) = small {
                    small.wait_merging_threads()?;
                }
                self.is_large = is_large;
                open(&self.index, is_large, self.most_bytes)?
            }
        };
        self.stage(&writer, changes)?;
        let mut commit = writer.prepare_commit()?;
        commit.set_payload(&generation.to_string());
        commit.commit()?;
        self.open = Some(writer);
        Ok(())
    }

    fn stage(&self, writer: &IndexWriter, changes: &[Change]) -> tantivy::Result<()> {
        for change in changes {
            match change {
                Change::Put(document) => {
                    writer.delete_term(Term::from_field_text(self.fields.id, document.id.as_str()));
                    writer.add_document(self.fields.write(document)?)?;
                }
                Change::Remove(id) => {
                    writer.delete_term(Term::from_field_text(self.fields.id, id.as_str()));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Writer {
    /// Lets merges that have begun come to their end. Cut short, they could still write into the
    /// folder while the next one to open it has already looked at what is there.
    fn drop(&mut self) {
        if let Some(writer) = self.open.take()
            && let Err(error) = writer.wait_merging_threads()
        {
            tracing::warn!(%error, "a merge did not end well; its segments stay as they were");
        }
    }
}

/// The generation of the last commit.
pub(super) fn generation(index: &Index) -> tantivy::Result<Generation> {
    let Some(payload) = index.load_metas()?.payload else {
        return Ok(Generation::default());
    };
    payload.parse().map(Generation).map_err(|_| {
        TantivyError::InternalError("the last commit does not say its generation".to_owned())
    })
}

/// Whether a batch is worth more than one thread.
fn is_large(changes: &[Change]) -> bool {
    let bytes = |change: &Change| match change {
        Change::Put(document) => document.bytes(),
        Change::Remove(_) => 0,
    };
    changes.iter().map(bytes).sum::<usize>() >= LARGE_BATCH_BYTES
}

fn open(index: &Index, is_large: bool, most_bytes: usize) -> tantivy::Result<IndexWriter> {
    let (threads, budget) = if !is_large {
        (1, SMALL_BUDGET)
    } else {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let most = (most_bytes / SMALL_BUDGET).clamp(1, MAX_THREADS);
        let threads = cores.min(most);
        let budget = (most_bytes / threads).clamp(SMALL_BUDGET, LARGE_BUDGET);
        (threads, budget)
    };
    let options = IndexWriterOptions::builder()
        .num_worker_threads(threads)
        .num_merge_threads(1)
        .memory_budget_per_thread(budget)
        .build();
    let writer: IndexWriter = index.writer_with_options(options)?;
    // A process that was killed may have left a file that no commit names but whose name the next
    // commit would choose again, and tantivy never writes over a file.
    writer.garbage_collect_files().wait()?;
    let mut merging = LogMergePolicy::default();
    merging.set_min_num_segments(SEGMENTS_TO_MERGE);
    merging.set_min_layer_size(SMALLEST_LAYER);
    merging.set_del_docs_ratio_before_merge(MAX_DELETED);
    writer.set_merge_policy(Box::new(merging));
    Ok(writer)
}
