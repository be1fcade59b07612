//! The child's side: shut in, say hello, then read one file after the other until nobody asks any more.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;

use super::wire::{self, Frame, Received, exactly};
use super::{MAX_ANSWER_BYTES, believe, confine, reasons};
use crate::error::Reason;
use crate::format::{Input, Parsed, by_name};
use crate::limits::Limits;
use crate::options::Options;

pub(super) fn serve(before: &dyn Fn(&[u8])) -> ExitCode {
    confine::bound();
    let Ok((input, output)) = pipes() else {
        return ExitCode::FAILURE;
    };
    // What a panic says is for us alone, and a file may cause any number of them.
    set_hook(Box::new(|_| ()));
    let confinement = confine::shut_in(&input, &output);
    let (mut input, mut output) = (BufReader::new(input), BufWriter::new(output));
    let hello = Frame::new(wire::HELLO).number(confinement.bits());
    if hello
        .send(&mut output)
        .and_then(|()| output.flush())
        .is_err()
    {
        return ExitCode::FAILURE;
    }
    // The end of the input is the end of the parent.
    while one_file(&mut input, &mut output, before).is_ok() {}
    ExitCode::SUCCESS
}

/// The two pipes to the parent, taken away from stdin and stdout: a parser that prints must not be able to
/// talk into the answer.
#[cfg(target_os = "linux")]
fn pipes() -> io::Result<(std::fs::File, std::fs::File)> {
    use std::os::fd::AsFd as _;
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    confine::silence();
    Ok((input.into(), output.into()))
}

#[cfg(not(target_os = "linux"))]
fn pipes() -> io::Result<(io::Stdin, io::Stdout)> {
    Ok((io::stdin(), io::stdout()))
}

fn one_file(
    input: &mut impl Read,
    output: &mut impl Write,
    before: &dyn Fn(&[u8]),
) -> io::Result<()> {
    let request = Request::from(input)?;
    confine::bound_time(request.limits.max_parse_seconds);
    let parse = AssertUnwindSafe(|| {
        before(&request.bytes);
        request.parse()
    });
    let parsed = catch_unwind(parse).unwrap_or(Err(Reason::Crashed));
    match parsed {
        Ok(parsed) => send(&parsed, output)?,
        Err(reason) => reasons::put(Frame::new(wire::FAILED), &reason).send(output)?,
    }
    output.flush()
}

struct Request {
    format: String,
    id: String,
    path: String,
    stem: String,
    sha256: String,
    limits: Limits,
    options: Options,
    bytes: Vec<u8>,
}

impl Request {
    fn from(input: &mut impl Read) -> io::Result<Self> {
        let mut frame = Received::from(input)?;
        let mut request = Self {
            format: frame.text()?,
            id: frame.text()?,
            path: frame.text()?,
            stem: frame.text()?,
            sha256: frame.text()?,
            limits: serde_json::from_str(&frame.text()?)?,
            options: serde_json::from_str(&frame.text()?)?,
            bytes: Vec::new(),
        };
        let length = frame.number()?;
        // As much as is needed and no more: doubling would take half of the child's memory for a large file.
        request
            .bytes
            .reserve_exact(usize::try_from(length).unwrap_or(usize::MAX));
        exactly(input, length, &mut request.bytes)?;
        Ok(request)
    }

    fn parse(&self) -> Result<Parsed, Reason> {
        let unknown = || Reason::Unsupported {
            kind: self.format.clone(),
        };
        let format = by_name(&self.format).ok_or_else(unknown)?;
        (format.parse)(&Input {
            id: &self.id,
            path: &self.path,
            stem: &self.stem,
            bytes: &self.bytes,
            sha256: &self.sha256,
            limits: &self.limits,
            options: &self.options,
        })
    }
}

/// Sends documents and problems one by one. Where there are more than the parent would take, the file has
/// failed, and the parent forgets what it got so far.
fn send(parsed: &Parsed, output: &mut impl Write) -> io::Result<()> {
    let mut weight = 0_usize;
    for document in &parsed.documents {
        let frame = believe::put(Frame::new(wire::DOCUMENT), document);
        weight = weight.saturating_add(believe::weight(frame.len()));
        if weight > MAX_ANSWER_BYTES || document.check().is_err() {
            let limit = MAX_ANSWER_BYTES as u64;
            let reason = Reason::TooMuchInside { limit };
            return reasons::put(Frame::new(wire::FAILED), &reason).send(output);
        }
        frame.send(output)?;
    }
    for found in &parsed.skipped {
        let frame = Frame::new(wire::SKIPPED);
        believe::put_problem(frame, &found.path, found.line, &found.reason).send(output)?;
    }
    for found in &parsed.warnings {
        let frame = Frame::new(wire::WARNING);
        believe::put_problem(frame, &found.path, found.line, &found.reason).send(output)?;
    }
    Frame::new(wire::DONE).send(output)
}
