//! A folder into words that can be trusted, or the reason why it cannot.
//!
//! Opening is recovering: lock, check the format, check every sum, then open. What is damaged is set
//! aside when the index is opened for writing, since it can always be made again from its documents;
//! the rest stays and answers. A reader has nothing to make it again from and refuses.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tantivy::directory::error::{LockError, OpenReadError};
use tantivy::directory::{Directory, META_LOCK};
use tantivy::index::{SegmentComponent, SegmentId, SegmentMeta};
use tantivy::{Index, IndexSettings, TantivyError};

use super::checksums::{FileChecksums, is_segment_file};
use super::durable_directory::{DurableDirectory, META};
use super::index_folder::{self, FORMAT};
use super::quarantine::Quarantine;
use super::schema::{IndexFields, schema};
use super::tokenizer;
use crate::error::SearchError;
use crate::folder_lock;

/// The file that says which format an index has. It is written last when an index is made, so an
/// index without it was never finished.
const FORMAT_FILE: &str = "docent-index.json";

/// tantivy's list of the files it may remove.
const MANAGED: &str = ".managed.json";

/// The lock that the one process that may write holds for as long as it has the index open.
const LOCK: &str = folder_lock::WRITER_LOCK_FILE;

#[derive(Serialize, Deserialize)]
struct FormatFile {
    format: u32,
}

/// What the one who opens an index wants to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessMode {
    Write,
    Read,
}

/// Words that passed every check.
pub(super) struct RecoveredIndex {
    pub index: Index,
    pub disk: DurableDirectory,
    pub fields: IndexFields,
    /// The folder they are in.
    pub words: PathBuf,
    /// What did not pass.
    pub quarantine: Quarantine,
    /// Held for as long as the index may be written to.
    pub lock: Option<File>,
}

/// Opens the words of the index in `dir`; makes some there when there are none and they are to be
/// written to.
pub(super) fn open(dir: &Path, access: AccessMode) -> Result<RecoveredIndex, SearchError> {
    let words = index_folder::words_folder(dir);
    let mut aside = Quarantine::of(dir);
    let ((index, disk), lock) = match access {
        AccessMode::Write => {
            fs::create_dir_all(dir).map_err(|source| SearchError::io(dir, source))?;
            let lock = folder_lock::lock(dir, LOCK)?;
            (open_to_write(&words, &mut aside)?, Some(lock))
        }
        AccessMode::Read if words.join(FORMAT_FILE).exists() => (open_to_read(&words, dir)?, None),
        AccessMode::Read => {
            return Err(SearchError::Missing {
                path: dir.to_owned(),
            });
        }
    };
    let (_, fields) = schema();
    Ok(RecoveredIndex {
        index,
        disk,
        fields,
        words,
        quarantine: aside,
        lock,
    })
}

fn open_to_read(words: &Path, dir: &Path) -> Result<(Index, DurableDirectory), SearchError> {
    let disk =
        DurableDirectory::open(words).map_err(|source| map_tantivy_error(dir, source.into()))?;
    check_format(words)?;
    let (index, damaged) = open_checked(words, &disk)?;
    match damaged.into_iter().next() {
        None => Ok((index, disk)),
        Some(part) => Err(SearchError::corrupt(dir, part.why)),
    }
}

fn open_to_write(
    words: &Path,
    aside: &mut Quarantine,
) -> Result<(Index, DurableDirectory), SearchError> {
    match prepare(words, aside) {
        Err(error @ (SearchError::Corrupt { .. } | SearchError::Format { .. })) => {
            aside.isolate(words, error.to_string())?;
            prepare(words, aside)
        }
        other => other,
    }
}

/// Opens the words in their folder, without the segments that are damaged.
fn prepare(words: &Path, aside: &mut Quarantine) -> Result<(Index, DurableDirectory), SearchError> {
    fs::create_dir_all(words).map_err(|source| SearchError::io(words, source))?;
    let disk =
        DurableDirectory::open(words).map_err(|source| map_tantivy_error(words, source.into()))?;
    if words.join(FORMAT_FILE).exists() {
        check_format(words)?;
    } else {
        create(words, &disk)?;
    }
    list_files(words, &disk)?;
    let (index, damaged) = open_checked(words, &disk)?;
    remove_torn_files(words);
    if damaged.is_empty() {
        return Ok((index, disk));
    }
    let ids: Vec<_> = damaged.iter().map(|part| part.segment.id()).collect();
    drop_segments(words, &disk, &ids)?;
    for part in damaged {
        for file in files(&part.segment) {
            aside.isolate(&words.join(file), part.why.as_str())?;
        }
    }
    let (index, _) = open_checked(words, &disk)?;
    Ok((index, disk))
}

fn check_format(words: &Path) -> Result<(), SearchError> {
    let path = words.join(FORMAT_FILE);
    let content = fs::read(&path).map_err(|source| SearchError::io(&path, source))?;
    match serde_json::from_slice(&content) {
        Ok(FormatFile { format: FORMAT }) => Ok(()),
        Ok(FormatFile { format }) => Err(SearchError::Format {
            path: words.to_owned(),
            found: format.to_string(),
            expected: FORMAT,
        }),
        Err(_) => Err(SearchError::corrupt(
            words,
            format!("`{FORMAT_FILE}` cannot be read"),
        )),
    }
}

/// Makes words without a document, or makes some again that were left unfinished. Words that have
/// documents are never touched here, whoever made them.
fn create(words: &Path, disk: &DurableDirectory) -> Result<(), SearchError> {
    let known = |source| map_tantivy_error(words, source);
    if disk
        .exists(Path::new(META))
        .map_err(|source| known(source.into()))?
    {
        let found = Index::open(disk.clone()).and_then(|index| index.searchable_segment_metas());
        if !found.map_err(known)?.is_empty() {
            return Err(SearchError::corrupt(
                words,
                format!("`{FORMAT_FILE}` is missing"),
            ));
        }
    }
    // One thread less for each segment: our documents are small and the indexing threads suffice.
    let settings = IndexSettings {
        docstore_compress_dedicated_thread: false,
        ..Default::default()
    };
    Index::create(disk.clone(), schema().0, settings).map_err(known)?;
    let content =
        serde_json::to_vec(&FormatFile { format: FORMAT }).map_err(SearchError::engine)?;
    disk.write(FORMAT_FILE, &content)
        .and_then(|()| folder_lock::sync_folder(words.parent().unwrap_or(words)))
        .map_err(|source| SearchError::io(&words.join(FORMAT_FILE), source))
}

/// Writes down which files tantivy may remove: all there are that look like its own. Its own list has
/// no sum, and a file that is not on it would stay for ever.
fn list_files(words: &Path, disk: &DurableDirectory) -> Result<(), SearchError> {
    let io = |source| SearchError::io(words, source);
    let mut files = BTreeSet::from([PathBuf::from(META)]);
    for entry in fs::read_dir(words).map_err(io)? {
        let name = PathBuf::from(entry.map_err(io)?.file_name());
        if is_segment_file(&name.to_string_lossy()) {
            files.insert(name);
        }
    }
    let listed = fs::read(words.join(MANAGED)).ok();
    let listed = listed.and_then(|content| serde_json::from_slice(&content).ok());
    if listed.as_ref() == Some(&files) {
        return Ok(());
    }
    let content = serde_json::to_vec(&files).map_err(SearchError::engine)?;
    disk.write(MANAGED, &content).map_err(io)
}

/// A segment of which a file is not what was written.
struct CorruptSegment {
    segment: SegmentMeta,
    why: String,
}

/// Checks every byte of the words before one of them is believed. Returns the damaged segments; when
/// it is the file that names the segments there is nothing to return.
fn open_checked(
    words: &Path,
    disk: &DurableDirectory,
) -> Result<(Index, Vec<CorruptSegment>), SearchError> {
    let known = |source| map_tantivy_error(words, source);
    // While this is held no other process takes files away that were just found in the index.
    let reading = disk
        .acquire_lock(&META_LOCK)
        .map_err(|source| known(source.into()))?;
    if !disk
        .meta_is_intact()
        .map_err(|source| known(source.into()))?
    {
        return Err(SearchError::corrupt(
            words,
            format!("the sum of `{META}` does not match"),
        ));
    }
    let mut index = Index::open(disk.clone()).map_err(known)?;
    if index.schema() != schema().0 {
        return Err(SearchError::corrupt(
            words,
            "it has other fields than its format says",
        ));
    }
    // Read after the names of the segments, so that it lists all of them.
    let sums = disk.checksums().map_err(|source| known(source.into()))?;
    let sums = sums.unwrap_or_default();
    let mut damaged = Vec::new();
    for segment in index.searchable_segment_metas().map_err(known)? {
        if let Some(why) = check_segment(words, (&index, &sums), &segment)? {
            damaged.push(CorruptSegment { segment, why });
        }
    }
    drop(reading);
    index.set_tokenizers(tokenizer::manager());
    Ok((index, damaged))
}

fn files(segment: &SegmentMeta) -> impl Iterator<Item = PathBuf> {
    let parts = [
        SegmentComponent::Postings,
        SegmentComponent::Positions,
        SegmentComponent::FastFields,
        SegmentComponent::FieldNorms,
        SegmentComponent::Terms,
        SegmentComponent::Store,
    ];
    let deletions = segment.has_deletes().then_some(SegmentComponent::Delete);
    let parts = parts.into_iter().chain(deletions);
    parts.map(|part| segment.relative_path(part))
}

/// Compares the sums of each file of a segment, and says what is wrong.
fn check_segment(
    words: &Path,
    (index, sums): (&Index, &FileChecksums),
    segment: &SegmentMeta,
) -> Result<Option<String>, SearchError> {
    for file in files(segment) {
        if !sums.is_intact(words, &file) {
            let why = format!("`{}` is not the file that was written", file.display());
            return Ok(Some(why));
        }
        let sum = index.directory().validate_checksum(&file);
        match sum.map_err(|source| map_tantivy_error(words, source.into())) {
            Ok(true) => {}
            Ok(false) => {
                let why = format!("the sum of `{}` does not match", file.display());
                return Ok(Some(why));
            }
            Err(SearchError::Corrupt { reason, .. }) => return Ok(Some(reason)),
            Err(SearchError::Format { found, .. }) => return Ok(Some(found)),
            Err(other) => return Err(other),
        }
    }
    Ok(None)
}

/// Makes a commit of what is left without these segments.
fn drop_segments(
    words: &Path,
    disk: &DurableDirectory,
    damaged: &[SegmentId],
) -> Result<(), SearchError> {
    let unreadable = || SearchError::corrupt(words, format!("`{META}` cannot be read"));
    let content = disk.atomic_read(Path::new(META));
    let content = content.map_err(|source| map_tantivy_error(words, source.into()))?;
    let mut meta: serde_json::Value = serde_json::from_slice(&content).map_err(|_| unreadable())?;
    let segments = meta
        .get_mut("segments")
        .and_then(|list| list.as_array_mut());
    let id = |segment: &serde_json::Value| {
        let id = segment.get("segment_id")?.clone();
        serde_json::from_value::<SegmentId>(id).ok()
    };
    segments
        .ok_or_else(unreadable)?
        .retain(|segment| id(segment).is_some_and(|id| !damaged.contains(&id)));
    let content = serde_json::to_vec(&meta).map_err(SearchError::engine)?;
    disk.atomic_write(Path::new(META), &content)
        .map_err(|source| SearchError::io(&words.join(META), source))
}

/// Removes what a process that was killed left half written. Whole files that no commit names are
/// removed by the writer, which knows them.
fn remove_torn_files(words: &Path) {
    let Ok(entries) = fs::read_dir(words) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(".tmp") {
            // What cannot be removed now is tried again at the next start.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// What a failure of tantivy means to the one who opened the index in `dir`.
pub(super) fn map_tantivy_error(dir: &Path, source: TantivyError) -> SearchError {
    let io = |path: PathBuf, source: &std::io::Error| {
        let kept = std::io::Error::new(source.kind(), source.to_string());
        SearchError::io(&dir.join(path), kept)
    };
    let reason = source.to_string();
    match source {
        TantivyError::LockFailure(LockError::LockBusy, _) => SearchError::Locked {
            path: dir.to_owned(),
        },
        TantivyError::LockFailure(LockError::IoError(source), _)
        | TantivyError::IoError(source) => io(PathBuf::new(), &source),
        TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(path)) => {
            SearchError::corrupt(dir, format!("`{}` is missing", path.display()))
        }
        // A file too short to have a footer is told as a failure to read it.
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, filepath }) => {
            match io_error.kind() {
                std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData => {
                    SearchError::corrupt(dir, format!("`{}` is cut short", filepath.display()))
                }
                _ => io(filepath, &io_error),
            }
        }
        TantivyError::DataCorruption(_) | TantivyError::DeserializeError(_) => {
            SearchError::corrupt(dir, reason)
        }
        TantivyError::IncompatibleIndex(_)
        | TantivyError::OpenReadError(OpenReadError::IncompatibleIndex(_)) => SearchError::Format {
            path: dir.to_owned(),
            found: reason,
            expected: FORMAT,
        },
        other => SearchError::engine(other),
    }
}
