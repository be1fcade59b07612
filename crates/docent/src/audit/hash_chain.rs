//! Entries into lines that hold together: each has its number and the hash of the line before.

use std::time::SystemTime;

use docent_search::Day;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// The hash before the first line.
pub(crate) const NOTHING: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What every file of a log begins with.
pub(crate) const OPENED: &str = "opened";

/// The last line of a log: what the next one has to say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainLink {
    /// Its number, from 1; 0 before the first.
    pub number: u64,
    /// Its hash.
    pub hash: String,
}

impl Default for ChainLink {
    fn default() -> Self {
        Self {
            number: 0,
            hash: NOTHING.to_owned(),
        }
    }
}

impl ChainLink {
    /// The line that follows this one, without its end, and the link to it.
    pub(super) fn next(&self, entry: Map<String, Value>, now: SystemTime) -> (String, Self) {
        let number = self.number.saturating_add(1);
        let mut line = Map::new();
        line.insert("seq".to_owned(), json!(number));
        line.insert("time".to_owned(), json!(stamp(now)));
        line.extend(entry);
        line.insert("prev".to_owned(), json!(self.hash));
        let text = Value::Object(line).to_string();
        let hash = hash(text.as_bytes());
        (text, Self { number, hash })
    }

    /// As it stands in the file beside the log.
    pub(super) fn to_line(&self) -> String {
        format!("{:020} {}\n", self.number, self.hash)
    }

    /// Reads what was told.
    pub(super) fn parse(told: &str) -> Option<Self> {
        let (number, hash) = told.trim_end().split_once(' ')?;
        Some(Self {
            number: number.parse().ok()?,
            hash: hash.to_owned(),
        })
    }
}

/// What a line says of itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ParsedAuditLine {
    pub number: u64,
    pub prev: String,
    pub event: String,
}

impl ParsedAuditLine {
    /// Reads a line, without its end; nothing for what is none.
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

/// The hash of a line without its end.
pub(crate) fn hash(line: &[u8]) -> String {
    let digest = Sha256::digest(line);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A time as `2026-11-15T22:38:18.120Z`.
fn stamp(now: SystemTime) -> String {
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
                r#"{{"seq":1,"time":"2023-11-14T22:13:20.123Z","event":"call","prev":"{NOTHING}"}}"#
            )
        );
        let (second, _) = link.next(entry(), now);
        let said = ParsedAuditLine::read(second.as_bytes()).unwrap();
        assert_eq!((said.number, said.prev), (2, hash(first.as_bytes())));
        assert_eq!(ChainLink::parse(&link.to_line()), Some(link));
        for bad in ["", "{}", "[1]", r#"{"seq":-1,"prev":"","event":""}"#] {
            assert_eq!(ParsedAuditLine::read(bad.as_bytes()), None, "{bad}");
        }
    }
}
