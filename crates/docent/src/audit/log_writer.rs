//! Lines into a file that lasts: continued after a restart, mended after a crash, begun anew when it is large.
//!
//! Beside it stands the number and the hash of its last line, so that lines cut off at the end are missed too.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::hash_chain::{self, ChainLink, OPENED, ParsedAuditLine};
use super::hmac::sibling_path;
use crate::cli_error::CliError;

/// The most bytes of a line.
pub(crate) const MAX_LINE_BYTES: u64 = 256 * 1024;

/// A log that is written.
pub(super) struct AuditLogWriter {
    path: PathBuf,
    file: File,
    /// How much of the file is known to be whole lines.
    bytes: u64,
    last: ChainLink,
    max_bytes: u64,
}

type AuditEntry = Map<String, Value>;

impl AuditLogWriter {
    /// Opens a log and writes that it was opened.
    pub(super) fn open(path: &Path, max_bytes: u64) -> Result<Self, CliError> {
        let failed = |error| CliError::io("write", path, error);
        let mut file = open(path).map_err(failed)?;
        if file.try_lock().is_err() {
            let message = format!("another process writes the audit log `{}`", path.display());
            return Err(CliError::failed(message).hint("give each server a file of its own"));
        }
        let end = LogTail::of(&mut file).map_err(failed)?;
        let last = match &end.line {
            None => ChainLink::default(),
            Some(line) => {
                let Some(said) = ParsedAuditLine::read(line) else {
                    let message = format!("`{}` does not end like an audit log", path.display());
                    let hint = "move it away, and another is begun";
                    return Err(CliError::failed(message).hint(hint));
                };
                ChainLink {
                    number: said.number,
                    hash: hash_chain::hash(line),
                }
            }
        };
        let mut log = Self {
            path: path.to_owned(),
            file,
            bytes: end.whole,
            last,
            max_bytes,
        };
        let mut entries = vec![opened_entry()];
        if end.torn > 0 {
            tracing::warn!(
                bytes = end.torn,
                "the audit log ended within a line; it is cut off"
            );
            let torn = json!({"event": "torn", "bytes": end.torn});
            entries.extend(torn.as_object().cloned());
        }
        log.write(entries.into_iter(), SystemTime::now())
            .map_err(failed)?;
        Ok(log)
    }

    /// The same log, written to another file: one that fails.
    #[cfg(test)]
    pub(super) fn with_file(mut self, file: File) -> Self {
        self.file = file;
        self
    }

    /// Adds lines, all of them or none, and keeps them.
    pub(super) fn write(
        &mut self,
        entries: impl Iterator<Item = AuditEntry>,
        now: SystemTime,
    ) -> io::Result<()> {
        if self.bytes >= self.max_bytes {
            self.rotate(now)?;
        }
        let mut last = self.last.clone();
        let mut text = String::new();
        for entry in entries {
            let (line, link) = last.next(entry, now);
            last = link;
            text.push_str(&line);
            text.push('\n');
        }
        self.append(&text, last)
    }

    fn append(&mut self, text: &str, last: ChainLink) -> io::Result<()> {
        // What an earlier failure left behind the last whole line is written over.
        self.file.set_len(self.bytes)?;
        self.file.seek(SeekFrom::Start(self.bytes))?;
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()?;
        self.bytes += text.len() as u64;
        self.last = last;
        self.write_head();
        Ok(())
    }

    /// Says beside the log how it ends. Where that fails, what it said before still holds.
    fn write_head(&self) {
        let path = sibling_path(&self.path, "head");
        let told = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .and_then(|mut file| file.write_all(self.last.to_line().as_bytes()));
        if let Err(error) = told {
            tracing::warn!(%error, path = %path.display(), "the end of the audit log is not noted");
        }
    }

    /// Puts the file aside, called after its last line, and goes on in a new one.
    fn rotate(&mut self, now: SystemTime) -> io::Result<()> {
        let aside = sibling_path(&self.path, &format!("{:012}", self.last.number));
        std::fs::rename(&self.path, &aside)?;
        let file = match open(&self.path) {
            Ok(file) => file,
            Err(error) => {
                // The file that is open goes on to be the log.
                let _ = std::fs::rename(&aside, &self.path);
                return Err(error);
            }
        };
        // The name is ours alone, and so the lock is to be had.
        let _ = file.try_lock();
        self.file = file;
        self.bytes = 0;
        let (line, last) = self.last.next(opened_entry(), now);
        self.append(&format!("{line}\n"), last)
    }
}

fn opened_entry() -> AuditEntry {
    let entry = json!({"event": OPENED, "version": env!("CARGO_PKG_VERSION")});
    entry.as_object().cloned().unwrap_or_default()
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// How a file ends.
struct LogTail {
    /// The bytes up to the end of the last whole line.
    whole: u64,
    /// The bytes behind it.
    torn: u64,
    /// The last whole line, without its end.
    line: Option<Vec<u8>>,
}

impl LogTail {
    /// Looks at the last bytes of a file; no line is longer.
    fn of(file: &mut File) -> io::Result<Self> {
        let size = file.metadata()?.len();
        let start = size.saturating_sub(MAX_LINE_BYTES * 2);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(MAX_LINE_BYTES * 2).read_to_end(&mut bytes)?;
        let ends = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte == b'\n');
        let Some(end) = ends(&bytes) else {
            return Ok(Self {
                whole: 0,
                torn: size,
                line: None,
            });
        };
        let before = bytes.get(..end).unwrap_or_default();
        let first = ends(before).map_or(0, |at| at + 1);
        let whole = start + end as u64 + 1;
        Ok(Self {
            whole,
            torn: size - whole,
            line: before.get(first..).map(<[u8]>::to_vec),
        })
    }
}
