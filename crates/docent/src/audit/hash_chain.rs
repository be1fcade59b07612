//! Hash chain of the audit log: each line has a sequence number and the SHA-256 of the line before, so that editing,
//! removing or reordering lines breaks the chain.

use std::time::SystemTime;

use docent_search::Day;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// The `prev` hash of the first line, which has no predecessor.
pub(crate) const GENESIS_HASH: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";

/// The event with which every file of a log begins. A file that starts otherwise has lost its first lines.
pub(crate) const OPENED: &str = "opened";

/// End of the chain: the last line of a log, as the next line refers to it. The default is the start of an empty log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainLink {
    /// Sequence number of the line, from 1; 0 before the first.
    pub number: u64,
    /// SHA-256 of the line without its line end, in hexadecimal.
    pub hash: String,
}

impl Default for ChainLink {
    fn default() -> Self {
        Self {
            number: 0,
            hash: GENESIS_HASH.to_owned(),
        }
    }
}

impl ChainLink {
    /// Formats an entry as the next line of the chain. Returns the line without its line end, and its link.
    pub(super) fn next(&self, entry: Map<String, Value>, now: SystemTime) -> (String, Self) {
        let number = self.number.saturating_add(1);
        let mut line = Map::new();
        line.insert("seq".to_owned(), json!(number));
        line.insert("time".to_owned(), json!(rfc3339(now)));
        line.extend(entry);
        line.insert("prev".to_owned(), json!(self.hash));
        let text = Value::Object(line).to_string();
        let hash = hash(text.as_bytes());
        (text, Self { number, hash })
    }

    /// Format of the head file: number and hash of the last line. The number is padded, so that rewriting never shrinks
    /// it.
    pub(super) fn to_line(&self) -> String {
        format!("{:020} {}\n", self.number, self.hash)
    }

    /// Parses the content of a head file; `None` if it is malformed.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (number, hash) = text.trim_end().split_once(' ')?;
        Some(Self {
            number: number.parse().ok()?,
            hash: hash.to_owned(),
        })
    }
}

/// The fields of a line that verification needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ParsedAuditLine {
    pub number: u64,
    pub prev: String,
    pub event: String,
}

impl ParsedAuditLine {
    /// Parses a line without its line end; `None` if it is not an audit log entry.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let line: Map<String, Value> = serde_json::from_slice(line).ok()?;
        let text = |name: &str| line.get(name)?.as_str().map(str::to_owned);
        Some(Self {
            number: line.get("seq")?.as_u64()?,
            prev: text("prev")?,
            event: text("event")?,
        })
    }
}

/// SHA-256 of a line without its line end, in hexadecimal.
pub(crate) fn hash(line: &[u8]) -> String {
    let digest = Sha256::digest(line);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Formats a time as RFC 3339 in UTC with milliseconds: `2026-11-15T22:38:18.120Z`.
fn rfc3339(now: SystemTime) -> String {
    const DAY: u64 = 24 * 60 * 60;
    let since = now.duration_since(SystemTime::UNIX_EPOCH);
    let since = since.unwrap_or_default();
    let seconds = since.as_secs();
    let day = i64::try_from(seconds / DAY).ok().and_then(Day::from_number);
    let day = day.unwrap_or(Day::EPOCH);
    let (hour, minute) = (seconds % DAY / 3_600, seconds % 3_600 / 60);
    let (second, milli) = (seconds % 60, since.subsec_millis());
    format!("{day}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_says_what_came_before() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        let entry = || json!({"event": "call"}).as_object().cloned().unwrap();
        let (first, link) = ChainLink::default().next(entry(), now);
        assert_eq!(
            first,
            format!(
                r#"{{"seq":1,"time":"2023-11-14T22:13:20.123Z","event":"call","prev":"{GENESIS_HASH}"}}"#
            )
        );
        let (second, _) = link.next(entry(), now);
        let parsed = ParsedAuditLine::read(second.as_bytes()).unwrap();
        assert_eq!((parsed.number, parsed.prev), (2, hash(first.as_bytes())));
        assert_eq!(ChainLink::parse(&link.to_line()), Some(link));
        for bad in ["", "{}", "[1]", r#"{"seq":-1,"prev":"","event":""}"#] {
            assert_eq!(ParsedAuditLine::read(bad.as_bytes()), None, "{bad}");
        }
    }
}
