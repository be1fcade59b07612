//! An opened file: its type for reports, its fingerprint and its documents, from one open and one recognition.

use std::io::Read as _;

use cap_std::fs::File;

use super::file_kind::{kind_in_content, kind_name};
use super::{FileReadOutcome, FolderSource};
use crate::digest::hashing_reader::HashingReader;
use crate::digest::sha256;
use crate::error::IngestError;
use crate::folder::file_entry::{FileEntry, FileFingerprint};
use crate::formats::detect;
use crate::formats::file_format::{FileFormat, StreamParser};
use crate::parser::document_sink::{CallbackSink, DocumentBatcher};
use crate::parser::{HEAD_BYTES, IdPass, ParsedFile, ParserInput};
use crate::reader_field::ParsedDocument;
use crate::sandbox::ParseTask;
use crate::source_path::stem_and_extension;

/// A file of a [`FolderSource`] that was opened once. Another file that takes its place meanwhile changes nothing: the
/// type, the fingerprint and the documents are those of the same file.
#[derive(Debug)]
pub struct OpenedFile<'a> {
    source: &'a FolderSource,
    entry: &'a FileEntry,
    stem: String,
    extension: String,
    content: Result<RecognizedContent, IngestError>,
}

/// The content of a file whose beginning could be read.
#[derive(Debug)]
struct RecognizedContent {
    file: File,
    /// The first [`HEAD_BYTES`] of the content.
    head: Vec<u8>,
    format: Result<&'static FileFormat, IngestError>,
}

impl RecognizedContent {
    fn new(file: File, extension: &str) -> Result<Self, IngestError> {
        let mut head = Vec::new();
        let read = (&file).take(HEAD_BYTES as u64).read_to_end(&mut head);
        read.map_err(|error| IngestError::from_io(&error))?;
        let format = detect(&head, extension);
        Ok(Self { file, head, format })
    }

    /// The fingerprint without a checksum: size and modification time from before anything is read, so that a change
    /// while reading is noticed by the next run.
    fn stat(&self) -> Result<FileFingerprint, IngestError> {
        let metadata = self.file.metadata();
        let metadata = metadata.map_err(|error| IngestError::from_io(&error))?;
        let modified = metadata.modified().ok();
        Ok(FileFingerprint {
            size: metadata.len(),
            modified: modified.map(cap_std::time::SystemTime::into_std),
            sha256: String::new(),
        })
    }
}

impl<'a> OpenedFile<'a> {
    pub(super) fn open(source: &'a FolderSource, entry: &'a FileEntry) -> Self {
        let (stem, extension) = stem_and_extension(&entry.place.relative);
        let opened = source.open_beneath_root(&entry.place.relative);
        let content = opened.and_then(|file| RecognizedContent::new(file, &extension));
        Self {
            source,
            entry,
            stem,
            extension,
            content,
        }
    }

    /// The type of the file, by content first. A file that cannot be opened, or whose format is not supported,
    /// is named by its extension.
    pub fn kind(&self) -> String {
        let content = self.content.as_ref().map_err(Clone::clone);
        let known = content.and_then(|content| {
            let format = content.format.clone()?;
            let (file, head) = (&content.file, &content.head);
            Ok(kind_in_content(format, file, head, &self.extension))
        });
        kind_name(known, &self.extension)
    }

    /// Computes the fingerprint of the content without parsing it, to detect changes.
    pub fn fingerprint(&self) -> Result<FileFingerprint, IngestError> {
        let content = self.content.as_ref().map_err(Clone::clone)?;
        let mut fingerprint = content.stat()?;
        let format = content.format.as_ref().ok().copied();
        // A file that must not be parsed must not pass as unchanged either.
        format.map_or(Ok(()), |format| self.source.check_sandbox(format))?;
        let is_stream = format.is_some_and(|format| format.stream.is_some());
        let mut reader = self.bounded_reader(&content.file, is_stream, &fingerprint)?;
        reader.rewind()?;
        (fingerprint.size, fingerprint.sha256) = reader.finish()?;
        Ok(fingerprint)
    }

    /// Parses the file and returns all of its documents.
    pub fn read(&self) -> Result<FileReadOutcome, IngestError> {
        let mut documents = Vec::new();
        let mut outcome = self.read_into(&mut |mut batch| {
            documents.append(&mut batch);
            true
        })?;
        outcome.documents = documents;
        Ok(outcome)
    }

    /// Parses the file and streams its documents to `sink` in batches, in file order, so that a file of
    /// records may be of any length. When `sink` returns false, reading stops and the result is
    /// [`IngestError::Gone`]. The outcome contains no documents. If parsing fails, the documents already
    /// handed over remain valid.
    pub fn read_into(
        &self,
        sink: &mut dyn FnMut(Vec<ParsedDocument>) -> bool,
    ) -> Result<FileReadOutcome, IngestError> {
        let content = self.content.as_ref().map_err(Clone::clone)?;
        let mut fingerprint = content.stat()?;
        let format = content.format.clone()?;
        self.source.check_sandbox(format)?;
        let mut reader =
            self.bounded_reader(&content.file, format.stream.is_some(), &fingerprint)?;
        reader.rewind()?;
        let parsed = self.parse(format, fingerprint.size, &mut reader, sink)?;
        (fingerprint.size, fingerprint.sha256) = reader.finish()?;
        Ok(FileReadOutcome {
            format: format.name,
            documents: Vec::new(),
            skipped: parsed.skipped,
            warnings: parsed.warnings,
            fingerprint,
        })
    }

    /// Parses the content here or in a parser process, as a whole or as a stream.
    fn parse(
        &self,
        format: &'static FileFormat,
        size: u64,
        content: &mut HashingReader<'_>,
        sink: &mut BatchSink<'_>,
    ) -> Result<ParsedFile, IngestError> {
        let mut input = ParserInput {
            id: self.entry.id(),
            path: self.entry.path(),
            stem: &self.stem,
            bytes: &[],
            sha256: "",
            limits: &self.source.limits,
            options: &self.source.options,
            folder_context: &self.entry.folder_context,
            sink: None,
            ids: IdPass::Own,
        };
        let workers = self.source.workers.as_ref();
        match (workers.filter(|_| !format.is_trusted), format.stream) {
            (Some(workers), Some(_)) => {
                let read = |input: &ParserInput<'_>,
                            content: &mut HashingReader<'_>,
                            sink: &mut BatchSink<'_>| {
                    let task = ParseTask {
                        format,
                        input,
                        size,
                    };
                    workers.read(&task, content, sink)
                };
                two_pass_stream(&input, content, sink, read)
            }
            (Some(workers), None) => {
                let task = ParseTask {
                    format,
                    input: &input,
                    size,
                };
                workers.read(&task, content, sink)
            }
            (None, Some(stream)) => {
                let read = |input: &ParserInput<'_>,
                            content: &mut HashingReader<'_>,
                            sink: &mut BatchSink<'_>| {
                    parse_stream(stream, input, content, sink)
                };
                two_pass_stream(&input, content, sink, read)
            }
            (None, None) => {
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
                Ok(parsed)
            }
        }
    }

    /// A reader that enforces the size limit, even if the file grows meanwhile.
    fn bounded_reader<'f>(
        &self,
        file: &'f File,
        is_stream: bool,
        fingerprint: &FileFingerprint,
    ) -> Result<HashingReader<'f>, IngestError> {
        let limits = &self.source.limits;
        let limit = if is_stream {
            limits.max_stream_bytes
        } else {
            limits.max_file_bytes
        };
        if fingerprint.size > limit {
            let bytes = fingerprint.size;
            return Err(IngestError::TooLarge { bytes, limit });
        }
        Ok(HashingReader::new(file, limit))
    }
}

/// Receives documents in batches; returns false to stop.
type BatchSink<'a> = dyn FnMut(Vec<ParsedDocument>) -> bool + 'a;

/// Parses a stream of records in two passes: the first scans the ids, and the second creates the documents
/// with the ids that the scan decided on.
fn two_pass_stream(
    input: &ParserInput<'_>,
    content: &mut HashingReader<'_>,
    sink: &mut BatchSink<'_>,
    read: impl Fn(
        &ParserInput<'_>,
        &mut HashingReader<'_>,
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
    content: &mut HashingReader<'_>,
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
