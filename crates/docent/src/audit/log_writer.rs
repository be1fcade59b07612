//! Writer of the audit log: continues the chain after a restart, truncates a torn line after a crash, rotates by size.
//!
//! A head file beside the log holds the number and the hash of the last line. Without it, removing lines at the end
//! would leave a valid chain and go unnoticed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::hash_chain::{self, ChainLink, OPENED, ParsedAuditLine};
use super::hmac::sibling_path;
use crate::cli_error::CliError;

/// Maximum length of a line in bytes.
pub(crate) const MAX_LINE_BYTES: u64 = 256 * 1024;

/// An audit log that is open for writing, under an exclusive file lock. `bytes` is the length of the valid part of the
/// file: complete lines that were written successfully.
pub(super) struct AuditLogWriter {
    path: PathBuf,
    file: File,
    bytes: u64,
    last: ChainLink,
    max_bytes: u64,
}

type AuditEntry = Map<String, Value>;

impl AuditLogWriter {
    /// Opens or creates a log, verifies that its last line is an entry, and appends an `opened` entry.
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
                let Some(parsed) = ParsedAuditLine::read(line) else {
                    let message = format!(
                        "the last line of `{}` is not an audit log entry",
                        path.display()
                    );
                    let hint = "move the file away; a new log is created at the next start";
                    return Err(CliError::failed(message).hint(hint));
                };
                ChainLink {
                    number: parsed.number,
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
                "the audit log ends with a torn line; truncating it"
            );
            let torn = json!({"event": "torn", "bytes": end.torn});
            entries.extend(torn.as_object().cloned());
        }
        log.write(entries.into_iter(), SystemTime::now())
            .map_err(failed)?;
        Ok(log)
    }

    /// Replaces the file, so that a test can inject one whose writes fail.
    #[cfg(test)]
    pub(super) fn with_file(mut self, file: File) -> Self {
        self.file = file;
        self
    }

    /// Appends entries, all of them or none, and syncs them to disk.
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
        // Truncates what an earlier failed write left after the last complete line.
        self.file.set_len(self.bytes)?;
        self.file.seek(SeekFrom::Start(self.bytes))?;
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()?;
        self.bytes += text.len() as u64;
        self.last = last;
        self.write_head();
        Ok(())
    }

    /// Updates the head file. If that fails, the old head stays valid: it only covers fewer lines.
    fn write_head(&self) {
        let path = sibling_path(&self.path, "head");
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .and_then(|mut file| file.write_all(self.last.to_line().as_bytes()));
        if let Err(error) = written {
            tracing::warn!(%error, path = %path.display(), "cannot update the head file of the audit log");
        }
    }

    /// Rotates the log: renames the file to the number of its last line and continues the chain in a new file.
    fn rotate(&mut self, now: SystemTime) -> io::Result<()> {
        let rotated = sibling_path(&self.path, &format!("{:012}", self.last.number));
        std::fs::rename(&self.path, &rotated)?;
        let file = match open(&self.path) {
            Ok(file) => file,
            Err(error) => {
                // Undoes the rename, so that the open file stays the current log.
                let _ = std::fs::rename(&rotated, &self.path);
                return Err(error);
            }
        };
        // The file is new, so the lock is free.
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

/// The end of a log file: how many bytes are complete lines, how many follow as a torn line, and the last complete line
/// without its line end.
struct LogTail {
    whole: u64,
    torn: u64,
    line: Option<Vec<u8>>,
}

impl LogTail {
    /// Reads only the last two maximum line lengths, which always contain the last complete line.
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
