//! One sync on its way: what was read of the files into changes of the index.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use docent_ingest::{
    FileEntry, FileFingerprint, FileReadOutcome, IngestError, IngestWarning, ParsedDocument,
    SkippedItem, qualified_id,
};
use docent_search::{
    DocId, Document, DocumentChange, Engine, InventoryEntryRef, MAX_DOCUMENT_BYTES,
};

use super::change_batch::{ChangeBatch, MOST_DOCUMENTS};
use super::file_state::{FileProblems, FileState, FileStateCache};
use super::id_claims::{ClaimOutcome, IdClaims};
use super::index_inventory::IndexInventory;
use super::memory_budget::IndexMemoryBudget;
use super::prefetch::{FilePrefetcher, ReadEvent};
use super::{SyncObserver, SyncReport};
use crate::cli_error::CliError;
use crate::document_transform::DocumentTransform;

/// One sync on its way.
pub(super) struct SyncRun<'a> {
    engine: &'a dyn Engine,
    shape: Arc<DocumentTransform>,
    entries: Arc<[FileEntry]>,
    claims: IdClaims,
    batch: ChangeBatch,
    /// What the sync before saw, and what this one sees.
    pub(super) seen: FileStateCache,
    /// Files and folders that could not be read this time.
    unreadable: HashSet<String>,
    /// Whether a file that is gone or changed came before.
    disturbed: bool,
    pub(super) report: SyncReport,
}

/// What has come of the file that is being taken in.
#[derive(Default)]
struct FileSyncState {
    documents: usize,
    /// Whether its kind has been counted.
    counted: bool,
    /// Documents that got another id because a file before has theirs, and that file.
    renamed: u64,
    first: String,
    contested: bool,
    problems: FileProblems,
    /// Documents that got a number because their own file has their id twice, and one of those ids.
    repeated: u64,
    repeated_id: String,
    /// Problems that are only counted, and how many of them are documents that were lost.
    unlisted: u64,
    lost: u64,
}

impl<'a> SyncRun<'a> {
    pub(super) fn new(
        engine: &'a dyn Engine,
        shape: Arc<DocumentTransform>,
        budget: IndexMemoryBudget,
        (entries, register): (Arc<[FileEntry]>, Arc<IndexInventory>),
        seen: FileStateCache,
    ) -> Self {
        Self {
            engine,
            claims: IdClaims::new(register, entries.len(), &shape.limits),
            shape,
            batch: ChangeBatch::new(budget),
            unreadable: HashSet::new(),
            disturbed: seen.has_removed_files(&entries),
            seen,
            report: SyncReport {
                files: entries.len(),
                ..SyncReport::default()
            },
            entries,
        }
    }

    /// Takes in one file of the listing; false when somebody stopped it.
    pub(super) async fn sync_file(
        &mut self,
        at: usize,
        ahead: &FilePrefetcher,
        watch: &mut (dyn SyncObserver + Send),
    ) -> Result<bool, CliError> {
        let entries = self.entries.clone();
        let Some(entry) = entries.get(at) else {
            return Ok(true);
        };
        let look = self.seen.previous(entry).cloned();
        if let Some(look) = look.as_ref().filter(|look| look.matches(entry)) {
            if self.keep_unchanged(at, entry, look) {
                return Ok(true);
            }
            ahead.read_now(at)?;
        }
        let mut taken = FileSyncState::default();
        loop {
            let Some(piece) = ahead.next(at, &|| watch.stop()) else {
                return Ok(false);
            };
            match piece {
                ReadEvent::Kind(kind) => {
                    if !std::mem::replace(&mut taken.counted, true) {
                        self.report.formats.begin_file(kind);
                    }
                }
                ReadEvent::Documents(documents) => {
                    for document in documents {
                        self.add_document(document, &mut taken);
                    }
                }
                ReadEvent::Same(found) => {
                    if self.keep_same_content(at, entry, look.as_ref(), &found) {
                        return Ok(true);
                    }
                    ahead.read_now(at)?;
                }
                ReadEvent::End(read) => {
                    self.finish_file(entry, read, taken);
                    return Ok(true);
                }
            }
            if self.batch.is_due() {
                self.flush(watch).await?;
            }
        }
    }

    /// Keeps the documents of a file that did not change; false when it must be read after all.
    fn keep_unchanged(&mut self, at: usize, entry: &FileEntry, look: &Arc<FileState>) -> bool {
        let may_differ = look.contested && self.disturbed;
        if may_differ || !self.claims.claim_file(at, look.documents) {
            return false;
        }
        self.report.unchanged += look.documents;
        self.seen.keep(entry, look);
        self.list_all(look.problems.clone());
        true
    }

    /// The same for a file that looks different and has the content it had.
    fn keep_same_content(
        &mut self,
        at: usize,
        entry: &FileEntry,
        look: Option<&Arc<FileState>>,
        found: &FileFingerprint,
    ) -> bool {
        let mut fresh = FileState::from(found);
        fresh.documents = 1;
        if let Some(look) = look {
            fresh.documents = look.documents;
            fresh.contested = look.contested;
            fresh.problems = look.problems.clone();
        }
        let may_differ = fresh.contested && self.disturbed;
        if may_differ || !self.claims.claim_file(at, fresh.documents) {
            return false;
        }
        self.report.unchanged += fresh.documents;
        self.report.formats.unchanged(fresh.documents);
        self.report_all(fresh.problems.clone());
        self.seen.record(entry, fresh, SystemTime::now());
        true
    }

    /// Takes in one document.
    fn add_document(&mut self, parsed: ParsedDocument, taken: &mut FileSyncState) {
        let (mut document, reasons) = self.shape.apply(parsed);
        for reason in reasons {
            taken.warn(
                IngestWarning {
                    path: document.source.clone(),
                    line: line(&document),
                    reason,
                },
                self.shape.limits.max_reported,
            );
        }
        let size = document.bytes();
        let claimed = if size > MAX_DOCUMENT_BYTES {
            Err(IngestError::TooLarge {
                bytes: size as u64,
                limit: MAX_DOCUMENT_BYTES as u64,
            })
        } else {
            self.claim(&mut document, taken)
        };
        match claimed {
            Ok(ClaimOutcome::Unchanged) => {
                self.report.unchanged += 1;
                self.report.formats.unchanged(1);
            }
            Ok(ClaimOutcome::New) => {
                self.report.indexed += 1;
                self.report.formats.indexed();
                self.batch.put(document);
            }
            Err(reason) => {
                taken.contested = true;
                let skipped = SkippedItem {
                    line: line(&document),
                    path: document.source,
                    reason,
                };
                taken.skip(skipped, self.shape.limits.max_reported);
                return;
            }
        }
        taken.documents += 1;
    }

    /// Claims the id of a document. Where a file before has it, the document is called after its own file
    /// too, so that two tables that both count their rows from one are both found. Where its own file has it,
    /// which only a file does that was written while it was read, or an archive with a name twice in it, a
    /// number comes behind. No document is lost for its id.
    fn claim(
        &mut self,
        document: &mut Document,
        taken: &mut FileSyncState,
    ) -> Result<ClaimOutcome, IngestError> {
        let id = document.id.to_string();
        let claimed = self.claims.claim(&id, &document.source, &document.hash);
        let Err(IngestError::DuplicateId { first, .. }) = &claimed else {
            return claimed;
        };
        taken.contested = true;
        if *first != document.source
            && let Some(own) = qualified_id(&document.source, &id)
        {
            let again = self
                .claims
                .claim(own.as_str(), &document.source, &document.hash);
            if !matches!(again, Err(IngestError::DuplicateId { .. })) {
                taken.renamed += 1;
                taken.first.clone_from(first);
                document.id = own;
                return again;
            }
        }
        self.claim_numbered(document, &id, taken).unwrap_or(claimed)
    }

    /// Claims the id with the next number of its file behind it.
    fn claim_numbered(
        &mut self,
        document: &mut Document,
        id: &str,
        taken: &mut FileSyncState,
    ) -> Option<Result<ClaimOutcome, IngestError>> {
        /// Ids that end like ours and belong to somebody else.
        const MOST_TRIES: u64 = 100;
        for _ in 0..MOST_TRIES {
            taken.repeated += 1;
            let own = qualified_id(&document.source, &format!("{id}~{}", taken.repeated + 1))?;
            let claimed = self
                .claims
                .claim(own.as_str(), &document.source, &document.hash);
            if !matches!(claimed, Err(IngestError::DuplicateId { .. })) {
                taken.repeated_id = id.to_owned();
                document.id = own;
                return Some(claimed);
            }
        }
        None
    }

    /// Notes how a file ended.
    fn finish_file(
        &mut self,
        entry: &FileEntry,
        read: Result<FileReadOutcome, IngestError>,
        mut taken: FileSyncState,
    ) {
        self.disturbed = true;
        let mut look = match read {
            Ok(reading) => {
                // First what its parser found, then what came of its documents.
                taken.problems.skipped.splice(0..0, reading.skipped);
                taken.problems.warnings.splice(0..0, reading.warnings);
                FileState::from(&reading.fingerprint)
            }
            Err(reason) => {
                taken.problems.skipped.push(SkippedItem {
                    path: entry.path().to_owned(),
                    line: None,
                    reason,
                });
                FileState::from(entry)
            }
        };
        if taken.unlisted > 0 {
            let (count, lost) = (taken.unlisted, taken.lost);
            taken.problems.skipped.push(SkippedItem {
                path: entry.path().to_owned(),
                line: None,
                reason: IngestError::More { count, lost },
            });
        }
        if taken.renamed > 0 {
            taken.problems.warnings.push(IngestWarning {
                path: entry.path().to_owned(),
                line: None,
                reason: IngestError::SharedIds {
                    count: taken.renamed,
                    first: taken.first,
                },
            });
        }
        if taken.repeated > 0 {
            taken.problems.warnings.push(IngestWarning {
                path: entry.path().to_owned(),
                line: None,
                reason: IngestError::RepeatedIds {
                    count: taken.repeated,
                    id: taken.repeated_id,
                },
            });
        }
        look.documents = taken.documents;
        look.contested = taken.contested;
        look.problems = taken.problems.clone();
        self.report_all(taken.problems);
        self.seen.record(entry, look, SystemTime::now());
    }

    pub(super) async fn flush(
        &mut self,
        watch: &mut (dyn SyncObserver + Send),
    ) -> Result<(), CliError> {
        let changes = self.batch.take();
        if !changes.is_empty() {
            self.apply(changes, watch).await?;
        }
        Ok(())
    }

    async fn apply(
        &mut self,
        changes: Vec<DocumentChange>,
        watch: &mut (dyn SyncObserver + Send),
    ) -> Result<(), CliError> {
        let start = Instant::now();
        self.engine.apply(changes).await?;
        self.batch.written(start.elapsed());
        watch.applied(self.engine.status().await?);
        Ok(())
    }

    /// Removes what nobody claimed. Documents of what could not be read stay: a disk that fails
    /// for a moment must not empty the index.
    pub(super) async fn remove_unclaimed(
        &mut self,
        watch: &mut (dyn SyncObserver + Send),
    ) -> Result<(), CliError> {
        if !self.claims.has_unclaimed() {
            return Ok(());
        }
        let mut gone: Vec<DocId> = Vec::new();
        let (claims, unreadable, report) = (&self.claims, &self.unreadable, &mut self.report);
        let shape = &self.shape;
        let mut each = |held: InventoryEntryRef<'_>| {
            if !claims.is_unclaimed(held.id) {
                return;
            }
            // What cannot be read again under new rules would stay as open as the old ones left it.
            let is_safe = !shape.has_restrictions() || shape.is_current(held.source, held.hash);
            if is_safe && is_below(held.source, unreadable) {
                report.kept += 1;
            } else if let Ok(id) = DocId::parse(held.id) {
                gone.push(id);
            }
        };
        self.engine.visit_inventory(&mut each).await?;
        self.report.removed = gone.len();
        gone.sort();
        while !gone.is_empty() {
            let rest = gone.split_off(gone.len().min(MOST_DOCUMENTS));
            let changes = gone.into_iter().map(DocumentChange::Remove).collect();
            self.apply(changes, watch).await?;
            gone = rest;
        }
        Ok(())
    }

    /// Notes what the index holds now, so that the next sync need not ask for all of it.
    pub(super) async fn remember_inventory(&mut self) -> Result<(), CliError> {
        let unreadable = &self.unreadable;
        let held = self
            .claims
            .to_inventory(|source| is_below(source, unreadable));
        let generation = self.engine.status().await?.generation;
        self.seen.held = Some((generation, held));
        Ok(())
    }

    /// Reports what was wrong with the file that is being taken in.
    fn report_all(&mut self, problems: FileProblems) {
        for skipped in &problems.skipped {
            self.report.formats.skip(&skipped.reason);
        }
        for warning in &problems.warnings {
            self.report.formats.warn(&warning.reason);
        }
        self.list_all(problems);
    }

    fn list_all(&mut self, problems: FileProblems) {
        for skipped in problems.skipped {
            self.list(skipped);
        }
        for warning in problems.warnings {
            self.warn(warning);
        }
    }

    /// Reports something that was left out before it was opened.
    pub(super) fn skip(&mut self, skipped: SkippedItem) {
        self.report.formats.skip(&skipped.reason);
        self.list(skipped);
    }

    fn list(&mut self, skipped: SkippedItem) {
        if matches!(skipped.reason, IngestError::Unreadable { .. }) {
            self.unreadable.insert(skipped.path.clone());
        }
        let lost = skipped.reason.lost_items();
        self.report.lost += lost;
        if self.report.skipped.len() < self.shape.limits.max_reported {
            self.report.skipped.push(skipped);
            return;
        }
        self.report.unlisted += 1;
        // Many pictures must not keep a damaged table off the list.
        let listed = &mut self.report.skipped;
        let is_harmless = |listed: &SkippedItem| listed.reason.lost_items() == 0;
        if lost > 0
            && let Some(at) = listed.iter().rposition(is_harmless)
        {
            listed.remove(at);
            listed.push(skipped);
        }
    }

    fn warn(&mut self, warning: IngestWarning) {
        if self.report.warnings.len() < self.shape.limits.max_reported {
            self.report.warnings.push(warning);
        } else {
            self.report.unlisted += 1;
        }
    }
}

impl FileSyncState {
    fn skip(&mut self, skipped: SkippedItem, most: usize) {
        if self.problems.skipped.len() < most {
            self.problems.skipped.push(skipped);
        } else {
            self.unlisted += 1;
            self.lost += skipped.reason.lost_items();
        }
    }

    fn warn(&mut self, warning: IngestWarning, most: usize) {
        if self.problems.warnings.len() < most {
            self.problems.warnings.push(warning);
        } else {
            self.unlisted += 1;
        }
    }
}

/// The line of a record that is called after it.
fn line(document: &Document) -> Option<u64> {
    let (_, line) = document.id.as_str().rsplit_once("#L")?;
    line.parse().ok()
}

/// True when a path or one of the folders above it is in the set; the root is the empty path.
pub(super) fn is_below(path: &str, set: &HashSet<String>) -> bool {
    let folders = path
        .match_indices('/')
        .filter_map(|(end, _)| path.get(..end));
    !set.is_empty() && folders.chain(["", path]).any(|part| set.contains(part))
}
