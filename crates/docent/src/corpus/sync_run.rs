//! The state machine of one sync: turns parsed files into index changes and collects the report.
//!
//! Files are processed in listing order, because that order decides which file keeps a contested id.

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

use super::change_batch::{ChangeBatch, MAX_COMMIT_DOCUMENTS};
use super::file_state::{FileProblems, FileState, FileStateCache};
use super::id_claims::{ClaimOutcome, IdClaims};
use super::prefetch::{FilePrefetcher, ReadEvent, SyncInput};
use super::{SyncObserver, SyncReport};
use crate::cli_error::CliError;
use crate::document_transform::DocumentTransform;

/// A running sync: id claims, the current write batch, the file states of the previous and of this sync, and the
/// report.
pub(super) struct SyncRun<'a> {
    engine: &'a dyn Engine,
    transform: Arc<DocumentTransform>,
    entries: Arc<[FileEntry]>,
    claims: IdClaims,
    batch: ChangeBatch,
    /// The file states of the previous sync, which become those of this one.
    pub(super) seen: FileStateCache,
    /// Files and folders that could not be read in this sync.
    unreadable: HashSet<String>,
    /// Whether an earlier file was changed or removed, so that contested ids may resolve differently now.
    earlier_file_changed: bool,
    pub(super) report: SyncReport,
}

/// The results of the file that is being processed.
#[derive(Default)]
struct FileSyncState {
    documents: usize,
    /// Whether its format has been counted already.
    counted: bool,
    /// Documents whose id was qualified with the file name because the earlier file `first` has it.
    renamed: u64,
    first: String,
    contested: bool,
    problems: FileProblems,
    /// Documents whose id got a number because the same file has it twice, with one such id as an example.
    repeated: u64,
    repeated_id: String,
    /// Problems beyond the reporting limit, and how many of them lost a document.
    unlisted: u64,
    lost: u64,
}

impl<'a> SyncRun<'a> {
    pub(super) fn new(engine: &'a dyn Engine, input: SyncInput, seen: FileStateCache) -> Self {
        let SyncInput {
            entries,
            inventory,
            transform,
            budget,
        } = input;
        Self {
            engine,
            claims: IdClaims::new(inventory, entries.len(), &transform.limits),
            transform,
            batch: ChangeBatch::new(budget),
            unreadable: HashSet::new(),
            earlier_file_changed: seen.has_removed_files(&entries),
            seen,
            report: SyncReport {
                files: entries.len(),
                ..SyncReport::default()
            },
            entries,
        }
    }

    /// Processes one file of the listing; false when the observer stopped the sync.
    pub(super) async fn sync_file(
        &mut self,
        at: usize,
        prefetcher: &FilePrefetcher,
        observer: &mut (dyn SyncObserver + Send),
    ) -> Result<bool, CliError> {
        let entries = self.entries.clone();
        let Some(entry) = entries.get(at) else {
            return Ok(true);
        };
        let state = self.seen.previous(entry).cloned();
        if let Some(state) = state.as_ref().filter(|state| state.matches(entry)) {
            if self.keep_unchanged(at, entry, state) {
                return Ok(true);
            }
            prefetcher.read_now(at)?;
        }
        let mut file = FileSyncState::default();
        loop {
            let Some(event) = prefetcher.next(at, &|| observer.stop()) else {
                return Ok(false);
            };
            match event {
                ReadEvent::Kind(kind) => {
                    if !std::mem::replace(&mut file.counted, true) {
                        self.report.formats.begin_file(kind);
                    }
                }
                ReadEvent::Documents(documents) => {
                    for document in documents {
                        self.add_document(document, &mut file);
                    }
                }
                ReadEvent::Same(found) => {
                    if self.keep_same_content(at, entry, state.as_ref(), &found) {
                        return Ok(true);
                    }
                    prefetcher.read_now(at)?;
                }
                ReadEvent::End(read) => {
                    self.finish_file(entry, read, file);
                    return Ok(true);
                }
            }
            if self.batch.is_due() {
                self.flush(observer).await?;
            }
        }
    }

    /// Keeps the documents of a file whose size and timestamp did not change; false when it must be read after all.
    fn keep_unchanged(&mut self, at: usize, entry: &FileEntry, state: &Arc<FileState>) -> bool {
        let may_differ = state.contested && self.earlier_file_changed;
        if may_differ || !self.claims.claim_file(at, state.documents) {
            return false;
        }
        self.report.unchanged += state.documents;
        self.seen.keep(entry, state);
        self.list_all(state.problems.clone());
        true
    }

    /// Keeps the documents of a file that was touched but has the same checksum; false when it must be read after all.
    fn keep_same_content(
        &mut self,
        at: usize,
        entry: &FileEntry,
        state: Option<&Arc<FileState>>,
        found: &FileFingerprint,
    ) -> bool {
        let mut fresh = FileState::from(found);
        fresh.documents = 1;
        if let Some(state) = state {
            fresh.documents = state.documents;
            fresh.contested = state.contested;
            fresh.problems = state.problems.clone();
        }
        let may_differ = fresh.contested && self.earlier_file_changed;
        if may_differ || !self.claims.claim_file(at, fresh.documents) {
            return false;
        }
        self.report.unchanged += fresh.documents;
        self.report.formats.unchanged(fresh.documents);
        self.report_all(fresh.problems.clone());
        self.seen.record(entry, fresh, SystemTime::now());
        true
    }

    /// Applies the document transform, claims an id and adds the document to the batch when it is new or changed.
    fn add_document(&mut self, parsed: ParsedDocument, file: &mut FileSyncState) {
        let (mut document, reasons) = self.transform.apply(parsed);
        for reason in reasons {
            file.warn(
                IngestWarning {
                    path: document.source.clone(),
                    line: line(&document),
                    reason,
                },
                self.transform.limits.max_reported,
            );
        }
        let size = document.bytes();
        let claimed = if size > MAX_DOCUMENT_BYTES {
            Err(IngestError::TooLarge {
                bytes: size as u64,
                limit: MAX_DOCUMENT_BYTES as u64,
            })
        } else {
            self.claim(&mut document, file)
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
                file.contested = true;
                let skipped = SkippedItem {
                    line: line(&document),
                    path: document.source,
                    reason,
                };
                file.skip(skipped, self.transform.limits.max_reported);
                return;
            }
        }
        file.documents += 1;
    }

    /// Claims an id for a document and resolves duplicates, so that no document is lost because of its id.
    ///
    /// When an earlier file has the id, it is qualified with the name of the document's file: two tables that
    /// both count their rows from one are both indexed. When the same file has it, which happens only to a
    /// file that was written while it was read and to an archive with duplicate names, a number is appended.
    fn claim(
        &mut self,
        document: &mut Document,
        file: &mut FileSyncState,
    ) -> Result<ClaimOutcome, IngestError> {
        let id = document.id.to_string();
        let claimed = self.claims.claim(&id, &document.source, &document.hash);
        let Err(IngestError::DuplicateId { first, .. }) = &claimed else {
            return claimed;
        };
        file.contested = true;
        if *first != document.source
            && let Some(qualified) = qualified_id(&document.source, &id)
        {
            let again = self
                .claims
                .claim(qualified.as_str(), &document.source, &document.hash);
            if !matches!(again, Err(IngestError::DuplicateId { .. })) {
                file.renamed += 1;
                file.first.clone_from(first);
                document.id = qualified;
                return again;
            }
        }
        self.claim_numbered(document, &id, file).unwrap_or(claimed)
    }

    /// Claims the id with the next free number of its file appended; `None` after 100 collisions.
    fn claim_numbered(
        &mut self,
        document: &mut Document,
        id: &str,
        file: &mut FileSyncState,
    ) -> Option<Result<ClaimOutcome, IngestError>> {
        /// Bounds the search when real ids happen to end like generated ones.
        const MAX_TRIES: u64 = 100;
        for _ in 0..MAX_TRIES {
            file.repeated += 1;
            let qualified = qualified_id(&document.source, &format!("{id}~{}", file.repeated + 1))?;
            let claimed = self
                .claims
                .claim(qualified.as_str(), &document.source, &document.hash);
            if !matches!(claimed, Err(IngestError::DuplicateId { .. })) {
                file.repeated_id = id.to_owned();
                document.id = qualified;
                return Some(claimed);
            }
        }
        None
    }

    /// Completes a file: merges its problems into the report and records its state for the next sync.
    fn finish_file(
        &mut self,
        entry: &FileEntry,
        read: Result<FileReadOutcome, IngestError>,
        mut file: FileSyncState,
    ) {
        self.earlier_file_changed = true;
        let mut state = match read {
            Ok(reading) => {
                // Problems of the parser come before those of the documents.
                file.problems.skipped.splice(0..0, reading.skipped);
                file.problems.warnings.splice(0..0, reading.warnings);
                FileState::from(&reading.fingerprint)
            }
            Err(reason) => {
                file.problems.skipped.push(SkippedItem {
                    path: entry.path().to_owned(),
                    line: None,
                    reason,
                });
                FileState::from(entry)
            }
        };
        if file.unlisted > 0 {
            let (count, lost) = (file.unlisted, file.lost);
            file.problems.skipped.push(SkippedItem {
                path: entry.path().to_owned(),
                line: None,
                reason: IngestError::More { count, lost },
            });
        }
        if file.renamed > 0 {
            file.problems.warnings.push(IngestWarning {
                path: entry.path().to_owned(),
                line: None,
                reason: IngestError::SharedIds {
                    count: file.renamed,
                    first: file.first,
                },
            });
        }
        if file.repeated > 0 {
            file.problems.warnings.push(IngestWarning {
                path: entry.path().to_owned(),
                line: None,
                reason: IngestError::RepeatedIds {
                    count: file.repeated,
                    id: file.repeated_id,
                },
            });
        }
        state.documents = file.documents;
        state.contested = file.contested;
        state.problems = file.problems.clone();
        self.report_all(file.problems);
        self.seen.record(entry, state, SystemTime::now());
    }

    pub(super) async fn flush(
        &mut self,
        observer: &mut (dyn SyncObserver + Send),
    ) -> Result<(), CliError> {
        let changes = self.batch.take();
        if !changes.is_empty() {
            self.apply(changes, observer).await?;
        }
        Ok(())
    }

    async fn apply(
        &mut self,
        changes: Vec<DocumentChange>,
        observer: &mut (dyn SyncObserver + Send),
    ) -> Result<(), CliError> {
        let start = Instant::now();
        self.engine.apply(changes).await?;
        self.batch.written(start.elapsed());
        observer.applied(self.engine.status().await?);
        Ok(())
    }

    /// Removes the documents that no file claimed. Documents of unreadable files and folders stay: a disk that
    /// fails for a moment must not empty the index.
    pub(super) async fn remove_unclaimed(
        &mut self,
        observer: &mut (dyn SyncObserver + Send),
    ) -> Result<(), CliError> {
        if !self.claims.has_unclaimed() {
            return Ok(());
        }
        let mut removed: Vec<DocId> = Vec::new();
        let (claims, unreadable, report) = (&self.claims, &self.unreadable, &mut self.report);
        let transform = &self.transform;
        let mut visit = |held: InventoryEntryRef<'_>| {
            if !claims.is_unclaimed(held.id) {
                return;
            }
            // A document indexed under older permission rules fails closed: its file cannot be read again, so it
            // would keep the readers of the old rules.
            let is_safe =
                !transform.has_restrictions() || transform.is_current(held.source, held.hash);
            if is_safe && is_below(held.source, unreadable) {
                report.kept += 1;
            } else if let Ok(id) = DocId::parse(held.id) {
                removed.push(id);
            }
        };
        self.engine.visit_inventory(&mut visit).await?;
        self.report.removed = removed.len();
        removed.sort();
        while !removed.is_empty() {
            let rest = removed.split_off(removed.len().min(MAX_COMMIT_DOCUMENTS));
            let changes = removed.into_iter().map(DocumentChange::Remove).collect();
            self.apply(changes, observer).await?;
            removed = rest;
        }
        Ok(())
    }

    /// Stores the inventory with its index generation, so that the next sync does not have to load it.
    pub(super) async fn remember_inventory(&mut self) -> Result<(), CliError> {
        let unreadable = &self.unreadable;
        let held = self
            .claims
            .to_inventory(|source| is_below(source, unreadable));
        let generation = self.engine.status().await?.generation;
        self.seen.held = Some((generation, held));
        Ok(())
    }

    /// Counts and lists the problems of the current file.
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

    /// Counts and lists a file or folder that was skipped before it was opened.
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
        if self.report.skipped.len() < self.transform.limits.max_reported {
            self.report.skipped.push(skipped);
            return;
        }
        self.report.unlisted += 1;
        // The list is bounded. A harmless entry makes room, so that many pictures cannot hide a damaged table.
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
        if self.report.warnings.len() < self.transform.limits.max_reported {
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

/// The line number of a record whose id was derived from its line.
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
