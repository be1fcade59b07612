//! Line-based reading of judgement files: size limits, line numbers, and errors that name file and line.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::cli_error::CliError;
use crate::display_text::shorten;

/// The size limit of a file of queries or judgements. A hundred thousand queries with hundreds of judgements each
/// fit.
pub(crate) const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// The length limit of a line in bytes, the same as in JSON Lines documents.
pub(crate) const MAX_LINE_BYTES: usize = 1024 * 1024;

/// The length limit of an id, the same as for document ids.
const MAX_ID_BYTES: usize = docent_search::MAX_ID_BYTES;

/// The highest relevance grade. No test collection distinguishes more.
pub(crate) const MAX_GRADE: u32 = 1_000;

/// How many invalid lines are listed when they are skipped; the rest is counted.
const MAX_NAMED: usize = 5;

/// Reads a file within a size limit.
pub(crate) fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, CliError> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => CliError::usage(format!("there is no file `{shown}`"))
            .hint(
                "name a file that is there; `docent eval --make 50 --out queries.jsonl` drafts one",
            ),
        _ => CliError::io("open", path, error),
    })?;
    let mut bytes = Vec::new();
    // Reading one byte more than allowed detects a file above the limit.
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| CliError::io("read", path, error))?;
    if bytes.len() as u64 > most {
        let megabytes = most / (1024 * 1024);
        return Err(
            CliError::usage(format!("`{shown}` has more than {megabytes} MB"))
                .hint("split it, and evaluate the parts one by one"),
        );
    }
    Ok(bytes)
}

/// The non-empty lines, numbered from 1. A byte order mark and surrounding whitespace, such as the carriage returns
/// of Windows, are stripped.
pub(crate) fn numbered(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    lines
        .map(|(number, line)| (number, line.trim_ascii()))
        .filter(|(_, line)| !line.is_empty())
}

/// An error in one line, still without file name and line number.
#[derive(Debug)]
pub(crate) struct LineError {
    /// What is wrong, in lower case.
    pub(crate) message: String,
    /// What a valid line contains instead.
    pub(crate) hint: &'static str,
}

impl LineError {
    pub(crate) fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Self {
            message: message.into(),
            hint,
        }
    }
}

/// Decodes a line as UTF-8 within the length limit.
pub(crate) fn text(line: &[u8]) -> Result<&str, LineError> {
    if line.len() > MAX_LINE_BYTES {
        return Err(LineError::new(
            format!("the line has more than {MAX_LINE_BYTES} bytes"),
            "one query a line; shorten its list of relevant documents",
        ));
    }
    std::str::from_utf8(line)
        .map_err(|_| LineError::new("the line is not UTF-8", "save the file as UTF-8"))
}

/// Validates the id of a query or a document.
pub(crate) fn id(text: &str) -> Result<String, LineError> {
    let hint = "an id has 1 to 512 bytes and no control characters";
    if text.is_empty() {
        return Err(LineError::new("an id is empty", hint));
    }
    if text.len() > MAX_ID_BYTES || text.chars().any(char::is_control) {
        return Err(LineError::new(
            format!("`{}` is not an id", shorten(text, 60)),
            hint,
        ));
    }
    Ok(text.to_owned())
}

/// Validates a grade. Negative grades, which some TREC collections use, mean not relevant and become 0.
pub(crate) fn grade(number: Option<i64>, shown: &str) -> Result<u32, LineError> {
    let grade = number.map(|number| u32::try_from(number.max(0)).unwrap_or(u32::MAX));
    grade.filter(|grade| *grade <= MAX_GRADE).ok_or_else(|| {
        LineError::new(
            format!("`{}` is not a grade", shorten(shown, 60)),
            "a grade is a whole number up to 1000; 0 means not relevant",
        )
    })
}

/// The error policy for one file: the first invalid line aborts, or with `skip` all of them are counted and the first
/// five are listed.
pub(crate) struct LineErrorLog {
    path: String,
    skip: bool,
    /// The first skipped lines with their errors, ready to print.
    pub(crate) named: Vec<String>,
    /// The number of skipped lines.
    pub(crate) count: usize,
}

impl LineErrorLog {
    pub(crate) fn new(path: &Path, skip: bool) -> Self {
        Self {
            path: path.display().to_string(),
            skip,
            named: Vec::new(),
            count: 0,
        }
    }

    /// Unwraps the result of a line; `None` when the line was invalid and is skipped.
    pub(crate) fn accept<T>(
        &mut self,
        line: usize,
        parsed: Result<T, LineError>,
    ) -> Result<Option<T>, CliError> {
        let LineError { message, hint } = match parsed {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error,
        };
        let place = format!("{}:{line}", self.path);
        if !self.skip {
            return Err(CliError::usage(message).origin(place).hint(hint));
        }
        self.count += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(format!("{place}: {message} ({hint})"));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers() {
        let lines: Vec<_> = numbered(b"\xEF\xBB\xBFa\r\n\n  \nb\n").collect();
        assert_eq!(lines, [(1, &b"a"[..]), (4, &b"b"[..])]);
        assert_eq!(numbered(b"").count(), 0);
    }

    #[test]
    fn lines_and_ids_and_grades_have_bounds() {
        assert!(text(&[b'a'; MAX_LINE_BYTES]).is_ok());
        assert!(text(&[b'a'; MAX_LINE_BYTES + 1]).is_err());
        assert!(text(b"\xFF").is_err());
        assert!(id(&"a".repeat(MAX_ID_BYTES)).is_ok());
        for bad in [
            String::new(),
            "a".repeat(MAX_ID_BYTES + 1),
            "a\tb".to_owned(),
        ] {
            assert!(id(&bad).is_err(), "{bad}");
        }
        assert_eq!(grade(Some(1_000), "").unwrap(), 1_000);
        assert_eq!(grade(Some(-2), "").unwrap(), 0);
        for bad in [Some(1_001), Some(i64::MAX), None] {
            assert!(grade(bad, "x").is_err(), "{bad:?}");
        }
    }

    #[test]
    fn files_end_at_their_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q");
        std::fs::write(&path, [b'a'; 8]).unwrap();
        assert_eq!(bytes(&path, 8).unwrap().len(), 8);
        let problem = bytes(&path, 7).unwrap_err();
        assert!(problem.message.ends_with("has more than 0 MB"), "{problem}");
        assert_eq!(bytes(&dir.path().join("none"), 8).unwrap_err().exit, 2);
    }

    #[test]
    fn bad_lines_end_the_reading_or_are_counted() {
        let bad = || Err::<(), _>(LineError::new("no", "do"));
        let problem = LineErrorLog::new(Path::new("q"), false)
            .accept(3, bad())
            .unwrap_err();
        assert_eq!((problem.origin.as_deref(), problem.exit), (Some("q:3"), 2));
        let mut faults = LineErrorLog::new(Path::new("q"), true);
        for line in 0..=MAX_NAMED {
            assert!(faults.accept(line, bad()).unwrap().is_none());
        }
        assert_eq!(
            (faults.named.len(), faults.count),
            (MAX_NAMED, MAX_NAMED + 1)
        );
        assert_eq!(faults.named[1], "q:1: no (do)");
    }
}
