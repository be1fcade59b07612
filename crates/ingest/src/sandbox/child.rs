//! The child's side: shut in, say hello, then read one file after the other until nobody asks any more.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;

use crate::reader_field::ParsedDocument;

use super::frames::{self, ChunkReader, FrameReader, FrameWriter};
use super::{MAX_ANSWER_BYTES, confinement, error_codec, response_validator};
use crate::digest::sha256;
use crate::document_sink::CallbackSink;
use crate::error::IngestError;
use crate::exports::FolderContext;
use crate::folder_walk::from_io_error;
use crate::format::{ParsedFile, ParserInput, by_name};
use crate::limits::Limits;
use crate::options::IngestOptions;
use crate::record_ids::IdPass;

pub(super) fn serve(before: &dyn Fn(&[u8])) -> ExitCode {
    let fresh = confinement::bound();
    let Ok((input, output)) = pipes() else {
        return ExitCode::FAILURE;
    };
    // What a panic says is for us alone, and a file may cause any number of them.
    set_hook(Box::new(|_| ()));
    let confinement = confinement::shut_in((&input, &output), fresh);
    let (mut input, mut output) = (BufReader::new(input), BufWriter::new(output));
    let [limits, landlock, seccomp] = confinement.to_numbers();
    let hello = FrameWriter::new(frames::HELLO)
        .number(limits)
        .number(landlock)
        .number(seccomp);
    if hello
        .send(&mut output)
        .and_then(|()| output.flush())
        .is_err()
    {
        return ExitCode::FAILURE;
    }
    // The end of the input is the end of the parent.
    while serve_one_file(&mut input, &mut output, before).is_ok() {}
    ExitCode::SUCCESS
}

/// The two pipes to the parent, taken away from stdin and stdout: a parser that prints must not be able to
/// talk into the answer.
#[cfg(target_os = "linux")]
fn pipes() -> io::Result<(std::fs::File, std::fs::File)> {
    use std::os::fd::AsFd as _;
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    confinement::redirect_stdio_to_null();
    Ok((input.into(), output.into()))
}

#[cfg(not(target_os = "linux"))]
fn pipes() -> io::Result<(io::Stdin, io::Stdout)> {
    Ok((io::stdin(), io::stdout()))
}

fn serve_one_file(
    input: &mut impl Read,
    output: &mut impl Write,
    before: &dyn Fn(&[u8]),
) -> io::Result<()> {
    let request = ParseRequest::from(input)?;
    // It worked at the start, or the parent knows that it did not; the parent's own clock runs all the same.
    let _ = confinement::bound_time(time_limit_seconds(&request.limits, request.size));
    let mut chunks = ChunkReader::new(input);
    let mut sent = Ok(());
    let parsed = {
        let mut take = |document: ParsedDocument| {
            sent = send_document(&document, output);
            sent.is_ok()
        };
        let parse = AssertUnwindSafe(|| request.parse(&mut chunks, before, &mut take));
        catch_unwind(parse).unwrap_or(Err(IngestError::Crashed))
    };
    // A document that could not be sent is the end of the file, or of the parent.
    let parsed = match sent {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(answer_too_large()),
        Err(error) => return Err(error),
        Ok(()) => parsed,
    };
    match parsed {
        Ok(parsed) => send(&parsed, output)?,
        Err(reason) => {
            error_codec::encode(FrameWriter::new(frames::FAILED), &reason).send(output)?
        }
    }
    output.flush()?;
    // The answer first: who has it sends no more of a file that nobody reads.
    chunks.drain()
}

/// The seconds that reading a file may take: the same for every file that is read as a whole, and more for
/// one that is longer than those may be.
pub(super) fn time_limit_seconds(limits: &Limits, size: u64) -> u64 {
    let times = size / limits.max_file_bytes.max(1);
    limits.max_parse_seconds.saturating_mul(times + 1)
}

struct ParseRequest {
    format: String,
    id: String,
    path: String,
    stem: String,
    limits: Limits,
    options: IngestOptions,
    /// What the file had when it was opened.
    size: u64,
    ids: IdPass,
}

impl ParseRequest {
    fn from(input: &mut impl Read) -> io::Result<Self> {
        let mut frame = FrameReader::from(input)?;
        Ok(Self {
            format: frame.text()?,
            id: frame.text()?,
            path: frame.text()?,
            stem: frame.text()?,
            limits: serde_json::from_str(&frame.text()?)?,
            options: serde_json::from_str(&frame.text()?)?,
            size: frame.number()?,
            ids: IdPass::from_number(frame.number()?)
                .ok_or_else(|| frames::invalid_data("no such pass"))?,
        })
    }

    fn parse(
        &self,
        content: &mut impl Read,
        before: &dyn Fn(&[u8]),
        take: &mut dyn FnMut(ParsedDocument) -> bool,
    ) -> Result<ParsedFile, IngestError> {
        let unknown = || IngestError::Unsupported {
            kind: self.format.clone(),
        };
        let format = by_name(&self.format).ok_or_else(unknown)?;
        let stream = format.stream_parser();
        let out = CallbackSink::new(take, stream.is_some());
        let mut input = ParserInput {
            id: &self.id,
            path: &self.path,
            stem: &self.stem,
            bytes: &[],
            sha256: "",
            limits: &self.limits,
            options: &self.options,
            folder_context: &FolderContext::NONE,
            sink: Some(&out),
            ids: self.ids,
        };
        if let Some(stream) = stream {
            return stream(&input, content);
        }
        let bytes = self.whole(content)?;
        before(&bytes);
        let sha256 = sha256(&bytes);
        (input.bytes, input.sha256) = (&bytes, &sha256);
        (format.parse)(&input)
    }

    fn whole(&self, content: &mut impl Read) -> Result<Vec<u8>, IngestError> {
        // As much as is needed and no more: doubling would take half of the child's memory for a large file.
        let mut bytes = Vec::new();
        let size = self.size.min(self.limits.max_file_bytes);
        bytes.reserve_exact(usize::try_from(size).unwrap_or_default().saturating_add(1));
        let read = content.read_to_end(&mut bytes);
        read.map_err(|error| from_io_error(&error))?;
        Ok(bytes)
    }
}

fn answer_too_large() -> IngestError {
    let limit = MAX_ANSWER_BYTES as u64;
    IngestError::TooMuchInside { limit }
}

fn send_document(document: &ParsedDocument, output: &mut impl Write) -> io::Result<()> {
    document
        .check()
        .map_err(|_| frames::invalid_data("no engine takes this document"))?;
    response_validator::encode_document(FrameWriter::new(frames::DOCUMENT), document).send(output)
}

/// Sends the documents that are left, and problems, one by one. Where there are more than the parent would
/// take, the file has failed.
fn send(parsed: &ParsedFile, output: &mut impl Write) -> io::Result<()> {
    let weight = |document: &ParsedDocument| response_validator::document_weight(document.bytes());
    let weight: usize = parsed.documents.iter().map(weight).sum();
    if weight > MAX_ANSWER_BYTES || parsed.documents.iter().any(|one| one.check().is_err()) {
        return error_codec::encode(FrameWriter::new(frames::FAILED), &answer_too_large())
            .send(output);
    }
    for document in &parsed.documents {
        send_document(document, output)?;
    }
    for found in &parsed.skipped {
        let frame = FrameWriter::new(frames::SKIPPED);
        response_validator::encode_report_item(frame, &found.path, found.line, &found.reason)
            .send(output)?;
    }
    for found in &parsed.warnings {
        let frame = FrameWriter::new(frames::WARNING);
        response_validator::encode_report_item(frame, &found.path, found.line, &found.reason)
            .send(output)?;
    }
    FrameWriter::new(frames::DONE)
        .number(u64::from(parsed.numbered))
        .send(output)
}
