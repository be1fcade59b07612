//! The child process of the sandbox: confine itself, send the handshake, and parse one file after the other
//! until the parent closes the pipe.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;

use crate::reader_field::ParsedDocument;

use super::frames::{self, ChunkReader, FrameReader, FrameWriter};
use super::{MAX_ANSWER_BYTES, confinement, error_codec, response_validator};
use crate::digest::sha256;
use crate::error::IngestError;
use crate::formats::by_name;
use crate::limits::Limits;
use crate::options::IngestOptions;
use crate::parser::document_sink::CallbackSink;
use crate::parser::folder_context::FolderContext;
use crate::parser::{IdPass, ParsedFile, ParserInput};

pub(super) fn serve(before: &dyn Fn(&[u8])) -> ExitCode {
    let fresh = confinement::limit_resources();
    let Ok((input, output)) = pipes() else {
        return ExitCode::FAILURE;
    };
    // Panic messages are of no use to the parent, and a file may cause any number of them.
    set_hook(Box::new(|_| ()));
    let confinement = confinement::confine(&input, &output, fresh);
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
    // End of input means that the parent is gone.
    while serve_one_file(&mut input, &mut output, before).is_ok() {}
    ExitCode::SUCCESS
}

/// The two pipes to the parent, moved away from stdin and stdout so that a parser that prints cannot
/// corrupt the response.
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
    // It worked at the start, or the parent knows that it did not; the parent's deadline applies in any
    // case.
    let _ = confinement::limit_cpu_time(time_limit_seconds(&request.limits, request.size));
    let mut chunks = ChunkReader::new(input);
    let mut sent = Ok(());
    let parsed = {
        let mut emit = |document: ParsedDocument| {
            sent = send_document(&document, output);
            sent.is_ok()
        };
        let parse = AssertUnwindSafe(|| request.parse(&mut chunks, before, &mut emit));
        catch_unwind(parse).unwrap_or(Err(IngestError::Crashed))
    };
    // Failing to send a document ends the file if it is too large, and otherwise means that the parent is
    // gone.
    let parsed = match sent {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(answer_too_large()),
        Err(error) => return Err(error),
        Ok(()) => parsed,
    };
    match parsed {
        Ok(parsed) => send(&parsed, output)?,
        Err(reason) => {
            error_codec::encode(FrameWriter::new(frames::FAILED), &reason).send(output)?;
        }
    }
    output.flush()?;
    // Send the response first: the parent then stops sending a file that nobody reads.
    chunks.drain()
}

/// Seconds allowed for parsing a file. Streamed files may be longer than `max_file_bytes`, and their time
/// grows with their length.
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
    /// The file's size when it was opened.
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
                .ok_or_else(|| frames::invalid_data("unknown id pass"))?,
        })
    }

    fn parse(
        &self,
        content: &mut impl Read,
        before: &dyn Fn(&[u8]),
        emit: &mut dyn FnMut(ParsedDocument) -> bool,
    ) -> Result<ParsedFile, IngestError> {
        let unknown = || IngestError::Unsupported {
            kind: self.format.clone(),
        };
        let format = by_name(&self.format).ok_or_else(unknown)?;
        let stream = format.stream;
        let out = CallbackSink::new(emit, stream.is_some());
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
        // Reserve the exact size: doubling the buffer would take half of the child's memory for a large
        // file.
        let mut bytes = Vec::new();
        let size = self.size.min(self.limits.max_file_bytes);
        bytes.reserve_exact(usize::try_from(size).unwrap_or_default().saturating_add(1));
        let read = content.read_to_end(&mut bytes);
        read.map_err(|error| IngestError::from_io(&error))?;
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
        .map_err(|_| frames::invalid_data("the document is not valid"))?;
    response_validator::encode_document(FrameWriter::new(frames::DOCUMENT), document).send(output)
}

/// Sends the remaining documents and the report items one by one. If that is more than the parent accepts,
/// the file fails instead.
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
