//! Verification of an audit log: recomputes the hash chain over its files and reports the first line that breaks it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use super::hash_chain::{self, ChainLink, GENESIS_HASH, OPENED, ParsedAuditLine};
use super::hmac::sibling_path;
use super::log_writer::MAX_LINE_BYTES;
use crate::cli_error::CliError;

/// An intact log. Remarks are findings that are no proof of tampering, such as a torn last line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct VerifiedLog {
    /// Total number of lines.
    pub lines: u64,
    /// Number and hash of the last line, for comparison with a copy kept elsewhere.
    pub last: ChainLink,
    /// Warnings that do not break the chain.
    pub remarks: Vec<String>,
}

/// The first line that breaks the hash chain.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TamperedLine {
    /// Path of the file that contains the line.
    pub file: PathBuf,
    /// Line number, from 1; one past the last if lines are missing at the end.
    pub line: u64,
    /// Reason, such as a hash mismatch.
    pub why: String,
}

/// Verifies files in the given order, oldest first. The outer error is about reading them, the inner one about the
/// chain.
pub(crate) fn verify(files: &[PathBuf]) -> Result<Result<VerifiedLog, TamperedLine>, CliError> {
    let mut chain = ChainVerifier::default();
    for path in files {
        let head = head(path)?;
        chain.begin(head);
        match chain.file(path)? {
            Ok(()) => {}
            Err(tampered) => return Ok(Err(tampered)),
        }
    }
    let last = files.last().map_or(Path::new(""), PathBuf::as_path);
    if chain.head.is_none() {
        let path = sibling_path(last, "head");
        chain.remarks.push(format!(
            "`{}` is missing: lines removed at the end cannot be detected",
            path.display()
        ));
    }
    Ok(Ok(VerifiedLog {
        lines: chain.lines,
        last: chain.last.unwrap_or_default(),
        remarks: chain.remarks,
    }))
}

/// Reads the head file beside a log; `None` if it is missing or malformed.
fn head(path: &Path) -> Result<Option<ChainLink>, CliError> {
    let path = sibling_path(path, "head");
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(ChainLink::parse(&text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::io("read", &path, error)),
    }
}

#[derive(Default)]
struct ChainVerifier {
    last: Option<ChainLink>,
    head: Option<ChainLink>,
    lines: u64,
    remarks: Vec<String>,
}

impl ChainVerifier {
    fn begin(&mut self, head: Option<ChainLink>) {
        self.head = head;
    }

    fn file(&mut self, path: &Path) -> Result<Result<(), TamperedLine>, CliError> {
        let failed = |error| CliError::io("read", path, error);
        let mut file = BufReader::new(File::open(path).map_err(failed)?);
        let mut number = 0;
        let tampered = |line: u64, why: String| TamperedLine {
            file: path.to_owned(),
            line,
            why,
        };
        loop {
            let mut line = Vec::new();
            let most = MAX_LINE_BYTES + 1;
            let read = file.by_ref().take(most).read_until(b'\n', &mut line);
            if read.map_err(failed)? == 0 {
                break;
            }
            number += 1;
            if line.pop_if(|end| *end == b'\n').is_none() {
                if line.len() as u64 >= most {
                    return Ok(Err(tampered(
                        number,
                        format!("the line exceeds {MAX_LINE_BYTES} bytes"),
                    )));
                }
                let bytes = line.len();
                let remark = format!(
                    "`{}` ends with a torn line of {bytes} bytes",
                    path.display()
                );
                self.remarks.push(remark);
                break;
            }
            if let Err(why) = self.line(&line, number == 1) {
                return Ok(Err(tampered(number, why)));
            }
        }
        if let Err(why) = self.end() {
            return Ok(Err(tampered(number + 1, why)));
        }
        Ok(Ok(()))
    }

    fn line(&mut self, line: &[u8], is_first: bool) -> Result<(), String> {
        let parsed = ParsedAuditLine::read(line).ok_or("it is not an audit log entry")?;
        if is_first && parsed.event != OPENED {
            return Err(
                "the file does not begin with an `opened` entry: earlier lines are missing"
                    .to_owned(),
            );
        }
        match &self.last {
            Some(last) if parsed.prev != last.hash => {
                return Err("`prev` does not match the hash of the previous line".to_owned());
            }
            Some(last) if parsed.number != last.number + 1 => {
                return Err(format!("`seq` is not {}", last.number + 1));
            }
            None if parsed.number == 1 && parsed.prev != GENESIS_HASH => {
                return Err("`seq` is 1, but `prev` refers to an earlier line".to_owned());
            }
            None if parsed.number == 0 => return Err("`seq` is 0".to_owned()),
            None if parsed.number > 1 => self.remarks.push(format!(
                "the log begins with entry {}; earlier files were not verified",
                parsed.number
            )),
            _ => {}
        }
        let link = ChainLink {
            number: parsed.number,
            hash: hash_chain::hash(line),
        };
        if let Some(head) = &self.head
            && head.number == link.number
            && head.hash != link.hash
        {
            return Err("its hash does not match the head file".to_owned());
        }
        self.last = Some(link);
        self.lines += 1;
        Ok(())
    }

    fn end(&self) -> Result<(), String> {
        let last = self.last.as_ref().map_or(0, |last| last.number);
        match &self.head {
            Some(head) if head.number > last => Err(format!(
                "{} lines are missing at the end",
                head.number - last
            )),
            _ => Ok(()),
        }
    }
}
