//! Folder source: lists a folder and parses its files into documents.
//!
//! Every file is opened beneath the root, one path component at a time, without following links. Nothing
//! outside can be read, whatever is renamed or linked meanwhile. A hard link is the file itself and is read.

mod file_kind;

use std::io::Read as _;
use std::path::{Component, Path};
use std::sync::Arc;

use crate::reader_field::ParsedDocument;
use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions};

use crate::digest::hashing_reader::HashingReader;
use crate::digest::sha256;
use crate::error::{IngestError, IngestWarning, SkippedItem};
use crate::folder::file_entry::{FileEntry, FileFingerprint};
use crate::folder::file_filter::FileFilter;
use crate::folder::walk::{FolderListing, list_folder};
use crate::formats::detect;
use crate::formats::file_format::{FileFormat, StreamParser};
use crate::limits::Limits;
use crate::options::IngestOptions;
use crate::parser::document_sink::{CallbackSink, DocumentBatcher};
use crate::parser::{HEAD_BYTES, IdPass, ParsedFile, ParserInput};
use crate::sandbox::{Confinement, ParseTask, ParserPool};
use crate::source_path::stem_and_extension;

/// A folder whose files are parsed into documents.
#[derive(Debug)]
pub struct FolderSource {
    root: Dir,
    limits: Limits,
    options: IngestOptions,
    filter: FileFilter,
    workers: Option<Arc<ParserPool>>,
}

/// The result of reading one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileReadOutcome {
    /// The name of the format as which it was parsed.
    pub format: &'static str,
    /// Its documents in file order; empty if they were streamed to a sink.
    pub documents: Vec<ParsedDocument>,
    /// Lines and records that produced no document.
    pub skipped: Vec<SkippedItem>,
    /// Parts that were indexed, but not exactly as written.
    pub warnings: Vec<IngestWarning>,
    /// The fingerprint of the content that was read.
    pub fingerprint: FileFingerprint,
}

impl FolderSource {
    /// Opens the root folder. The root itself may be a symbolic link; below it no link is followed.
    pub fn open(root: impl AsRef<Path>, limits: Limits) -> Result<Self, IngestError> {
        let root = Dir::open_ambient_dir(root, ambient_authority()).map_err(|error| {
            IngestError::Root {
                cause: error.kind(),
            }
        })?;
        Ok(Self {
            root,
            limits,
            options: IngestOptions::default(),
            filter: FileFilter::default(),
            workers: None,
        })
    }

    /// Sets the format options with which files are parsed.
    #[must_use]
    pub fn with_options(mut self, options: IngestOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the filter that selects files.
    #[must_use]
    pub fn with_filter(mut self, filter: FileFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Parses third-party formats in sandboxed child processes. A server always does this. Without it every
    /// file is parsed in the current process, which is acceptable for tests and for trusted files.
    #[must_use]
    pub fn with_workers(mut self, workers: Arc<ParserPool>) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Lists the files below the root, sorted by id, and what was left out. The reader field of the options decides which
    /// pages of a Notion export are restricted by the table beside them.
    pub fn list(&self) -> FolderListing {
        list_folder(
            &self.root,
            &self.limits,
            &self.filter,
            &self.options.readers,
        )
    }

    /// Parses one file and returns all of its documents.
    pub fn read(&self, entry: &FileEntry) -> Result<FileReadOutcome, IngestError> {
        let mut documents = Vec::new();
        let mut outcome = self.read_into(entry, &mut |mut batch| {
            documents.append(&mut batch);
            true
        })?;
        outcome.documents = documents;
        Ok(outcome)
    }

    /// Parses one file and streams its documents to `sink` in batches, in file order, so that a file of
    /// records may be of any length. When `sink` returns false, reading stops and the result is
    /// [`IngestError::Gone`]. The outcome contains no documents. If parsing fails, the documents already
    /// handed over remain valid.
    pub fn read_into(
        &self,
        entry: &FileEntry,
        sink: &mut dyn FnMut(Vec<ParsedDocument>) -> bool,
    ) -> Result<FileReadOutcome, IngestError> {
        let (mut file, mut fingerprint) = self.open_file(&entry.place.relative)?;
        let (stem, extension) = stem_and_extension(&entry.place.relative);
        let mut head = Vec::new();
        read_prefix(&mut file, HEAD_BYTES as u64, &mut head)?;
        let format = detect(&head, &extension)?;
        self.check_sandbox(format)?;
        let mut content = self.bounded_reader(file, format.stream.is_some(), &fingerprint)?;
        content.rewind()?;
        let mut input = ParserInput {
            id: entry.id(),
            path: entry.path(),
            stem: &stem,
            bytes: &[],
            sha256: "",
            limits: &self.limits,
            options: &self.options,
            folder_context: &entry.folder_context,
            sink: None,
            ids: IdPass::Own,
        };
        let parsed = match (&self.workers, format.stream) {
            (Some(workers), Some(_)) if !format.is_trusted => {
                let size = fingerprint.size;
                let read = |input: &ParserInput<'_>,
                            content: &mut HashingReader,
                            sink: &mut BatchSink<'_>| {
                    let task = ParseTask {
                        format,
                        input,
                        size,
                    };
                    workers.read(&task, content, sink)
                };
                two_pass_stream(&input, &mut content, sink, read)?
            }
            (Some(workers), None) if !format.is_trusted => {
                let task = ParseTask {
                    format,
                    input: &input,
                    size: fingerprint.size,
                };
                workers.read(&task, &mut content, sink)?
            }
            (_, Some(stream)) => {
                let read = |input: &ParserInput<'_>,
                            content: &mut HashingReader,
                            sink: &mut BatchSink<'_>| {
                    parse_stream(stream, input, content, sink)
                };
                two_pass_stream(&input, &mut content, sink, read)?
            }
            (_, None) => {
                let mut bytes = Vec::new();
                let read = content.read_to_end(&mut bytes);
                read.map_err(|error| {
                    content
                        .failure()
                        .cloned()
                        .unwrap_or(IngestError::from_io(&error))
                })?;
                let sha256 = sha256(&bytes);
                (input.bytes, input.sha256) = (&bytes, &sha256);
                let mut parsed = (format.parse)(&input)?;
                if !sink(std::mem::take(&mut parsed.documents)) {
                    return Err(IngestError::Gone);
                }
                parsed
            }
        };
        (fingerprint.size, fingerprint.sha256) = content.finish()?;
        Ok(FileReadOutcome {
            format: format.name,
            documents: Vec::new(),
            skipped: parsed.skipped,
            warnings: parsed.warnings,
            fingerprint,
        })
    }

    /// Computes the fingerprint of a file without parsing it, to detect changes.
    pub fn fingerprint(&self, entry: &FileEntry) -> Result<FileFingerprint, IngestError> {
        let (mut file, mut fingerprint) = self.open_file(&entry.place.relative)?;
        let (_, extension) = stem_and_extension(&entry.place.relative);
        let mut head = Vec::new();
        read_prefix(&mut file, HEAD_BYTES as u64, &mut head)?;
        let format = detect(&head, &extension).ok();
        // A file that must not be parsed must not pass as unchanged either.
        format.map_or(Ok(()), |format| self.check_sandbox(format))?;
        let is_stream = format.is_some_and(|format| format.stream.is_some());
        let mut content = self.bounded_reader(file, is_stream, &fingerprint)?;
        content.rewind()?;
        (fingerprint.size, fingerprint.sha256) = content.finish()?;
        Ok(fingerprint)
    }

    /// Fails closed for a third-party format if the sandbox is required and is missing or incomplete.
    fn check_sandbox(&self, format: &FileFormat) -> Result<(), IngestError> {
        match &self.workers {
            _ if format.is_trusted => Ok(()),
            Some(workers) => workers.check_confinement(&self.limits),
            None if self.limits.require_sandbox => Err(IngestError::NoSandbox {
                gaps: Confinement::default().gaps(),
            }),
            None => Ok(()),
        }
    }

    /// Opens a reader that enforces the size limit, even if the file grows meanwhile.
    fn bounded_reader(
        &self,
        file: File,
        is_stream: bool,
        fingerprint: &FileFingerprint,
    ) -> Result<HashingReader, IngestError> {
        let limit = if is_stream {
            self.limits.max_stream_bytes
        } else {
            self.limits.max_file_bytes
        };
        if fingerprint.size > limit {
            let bytes = fingerprint.size;
            return Err(IngestError::TooLarge { bytes, limit });
        }
        Ok(HashingReader::new(file, limit))
    }

    /// Opens a file below the root and records its size and modification time before anything is read.
    fn open_file(&self, relative: &Path) -> Result<(File, FileFingerprint), IngestError> {
        let mut parts: Vec<_> = relative.components().collect();
        let Some(Component::Normal(name)) = parts.pop() else {
            return Err(IngestError::Gone);
        };
        let mut dir = self
            .root
            .try_clone()
            .map_err(|error| IngestError::from_io(&error))?;
        for part in parts {
            let next = dir.open_dir_nofollow(part.as_os_str());
            dir = next.map_err(|error| open_error(&dir, part.as_ref(), &error))?;
        }
        // Non-blocking: a pipe that replaced the file would block until somebody writes to it.
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        let file = dir.open_with(name, &options);
        let file = file.map_err(|error| open_error(&dir, name.as_ref(), &error))?;
        let metadata = file
            .metadata()
            .map_err(|error| IngestError::from_io(&error))?;
        if !metadata.is_file() {
            return Err(IngestError::Special);
        }
        let modified = metadata
            .modified()
            .ok()
            .map(cap_std::time::SystemTime::into_std);
        Ok((
            file,
            FileFingerprint {
                size: metadata.len(),
                modified,
                sha256: String::new(),
            },
        ))
    }
}

/// Receives documents in batches; returns false to stop.
type BatchSink<'a> = dyn FnMut(Vec<ParsedDocument>) -> bool + 'a;

/// Parses a stream of records in two passes: the first scans the ids, and the second creates the documents
/// with the ids that the scan decided on.
fn two_pass_stream(
    input: &ParserInput<'_>,
    content: &mut HashingReader,
    sink: &mut BatchSink<'_>,
    read: impl Fn(
        &ParserInput<'_>,
        &mut HashingReader,
        &mut BatchSink<'_>,
    ) -> Result<ParsedFile, IngestError>,
) -> Result<ParsedFile, IngestError> {
    let pass = |ids| ParserInput { ids, ..*input };
    let scan = read(&pass(IdPass::Scan), content, &mut |_| true);
    if let Some(reason) = content.failure() {
        return Err(reason.clone());
    }
    if matches!(scan, Err(IngestError::Gone)) {
        return scan;
    }
    content.rewind()?;
    let mut parsed = read(&pass(IdPass::from_scan(&scan)), content, sink)?;
    parsed.prepend_warnings(scan);
    Ok(parsed)
}

/// Parses a stream in this process and batches its documents.
fn parse_stream(
    stream: StreamParser,
    input: &ParserInput<'_>,
    content: &mut HashingReader,
    sink: &mut BatchSink<'_>,
) -> Result<ParsedFile, IngestError> {
    let mut batcher = DocumentBatcher::new(sink);
    let mut callback = |document| batcher.put(document);
    let callback_sink = CallbackSink::new(&mut callback, true);
    let input = ParserInput {
        sink: Some(&callback_sink),
        ..*input
    };
    let mut parsed = stream(&input, content);
    // Content that could not be streamed after all arrives as one list.
    let remaining = parsed.as_mut().map(|parsed| &mut parsed.documents);
    for document in remaining.map(std::mem::take).unwrap_or_default() {
        batcher.push(document);
    }
    if !batcher.flush() {
        return Err(IngestError::Gone);
    }
    match content.failure() {
        Some(reason) => Err(reason.clone()),
        None => parsed,
    }
}

fn read_prefix(file: &mut File, max_bytes: u64, bytes: &mut Vec<u8>) -> Result<(), IngestError> {
    file.take(max_bytes)
        .read_to_end(bytes)
        .map(drop)
        .map_err(|error| IngestError::from_io(&error))
}

/// Maps an open error to its cause. Operating systems report a link under different error codes.
fn open_error(dir: &Dir, name: &Path, error: &std::io::Error) -> IngestError {
    match dir.symlink_metadata(name) {
        Ok(metadata) if metadata.is_symlink() => IngestError::Link,
        _ => IngestError::from_io(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_root_are_refused() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::fs::write(outer.path().join("secret.txt"), "secret").unwrap();
        std::fs::write(root.join("a/good.txt"), "good").unwrap();
        let source = FolderSource::open(&root, Limits::default()).unwrap();
        assert!(source.open_file(Path::new("a/good.txt")).is_ok());
        let absolute = outer.path().join("secret.txt");
        for path in [
            "../secret.txt",
            "a/../../secret.txt",
            "..",
            "a/..",
            ".",
            "",
            "/",
            absolute.to_str().unwrap(),
        ] {
            assert!(source.open_file(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn folders_are_no_files() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("a.txt")).unwrap();
        let source = FolderSource::open(root.path(), Limits::default()).unwrap();
        assert_eq!(
            source.open_file(Path::new("a.txt")).map(drop),
            Err(IngestError::Special)
        );
    }
}
