//! The files of an audit log into whether nobody has changed them, and else the first line that shows it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use super::hash_chain::{self, ChainLink, NOTHING, OPENED, ParsedAuditLine};
use super::hmac::sibling_path;
use super::log_writer::MAX_LINE_BYTES;
use crate::cli_error::CliError;

/// A log that is whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct VerifiedLog {
    /// How many lines there are.
    pub lines: u64,
    /// The last of them.
    pub last: ChainLink,
    /// What there is to say all the same.
    pub remarks: Vec<String>,
}

/// The first line that shows a change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TamperedLine {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; one behind the last where lines are missing there.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}

/// Looks at files in their order, the oldest first.
pub(crate) fn verify(files: &[PathBuf]) -> Result<Result<VerifiedLog, TamperedLine>, CliError> {
    let mut chain = ChainVerifier::default();
    for path in files {
        let head = head(path)?;
        chain.begin(head);
        match chain.file(path)? {
            Ok(()) => {}
            Err(broken) => return Ok(Err(broken)),
        }
    }
    let last = files.last().map_or(Path::new(""), PathBuf::as_path);
    if chain.head.is_none() {
        let path = sibling_path(last, "head");
        chain.remarks.push(format!(
            "`{}` is not there: lines cut off at the end would not be missed",
            path.display()
        ));
    }
    Ok(Ok(VerifiedLog {
        lines: chain.lines,
        last: chain.last.unwrap_or_default(),
        remarks: chain.remarks,
    }))
}

/// What is said beside a file about its end; nothing where nothing is.
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
        let broken = |line: u64, why: String| TamperedLine {
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
                    return Ok(Err(broken(number, "it is longer than any line".to_owned())));
                }
                let bytes = line.len();
                let remark = format!("`{}` ends within a line of {bytes} bytes", path.display());
                self.remarks.push(remark);
                break;
            }
            if let Err(why) = self.line(&line, number == 1) {
                return Ok(Err(broken(number, why)));
            }
        }
        if let Err(why) = self.end() {
            return Ok(Err(broken(number + 1, why)));
        }
        Ok(Ok(()))
    }

    fn line(&mut self, line: &[u8], is_first: bool) -> Result<(), String> {
        let said = ParsedAuditLine::read(line).ok_or("it is no line of an audit log")?;
        if is_first && said.event != OPENED {
            return Err("the file does not begin with it: lines before it are missing".to_owned());
        }
        match &self.last {
            Some(last) if said.prev != last.hash => {
                return Err("the line before it is not the one it was written after".to_owned());
            }
            Some(last) if said.number != last.number + 1 => {
                return Err(format!("its number is not {}", last.number + 1));
            }
            None if said.number == 1 && said.prev != NOTHING => {
                return Err("it says to be the first, and to follow another".to_owned());
            }
            None if said.number == 0 => return Err("its number is 0".to_owned()),
            None if said.number > 1 => self.remarks.push(format!(
                "it begins with line {} of its log; the files before it were not looked at",
                said.number
            )),
            _ => {}
        }
        let link = ChainLink {
            number: said.number,
            hash: hash_chain::hash(line),
        };
        if let Some(head) = &self.head
            && head.number == link.number
            && head.hash != link.hash
        {
            return Err("it is not the line that was noted when it was written".to_owned());
        }
        self.last = Some(link);
        self.lines += 1;
        Ok(())
    }

    fn end(&self) -> Result<(), String> {
        let last = self.last.as_ref().map_or(0, |last| last.number);
        match &self.head {
            Some(head) if head.number > last => {
                Err(format!("{} lines are missing here", head.number - last))
            }
            _ => Ok(()),
        }
    }
}
