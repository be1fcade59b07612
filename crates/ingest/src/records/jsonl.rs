//! JSON Lines parser: one JSON object per line, one document per object. A malformed line costs only itself.

use std::io::Read;

use serde_json::{Map, Value as Raw};

use crate::decoding::text_stream::TextStream;
use crate::digest::sha256;
use crate::error::IngestError;
use crate::formats::file_format::{FileFormat, no_signature};
use crate::parser::{ParsedFile, ParserInput};
use crate::records::json::parse_record;
use crate::records::line_counter::LineCounter;
use crate::records::record_ids::two_pass;
use crate::records::{RecordCollector, RecordLocation};

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "jsonl",
    kind: "jsonl",
    extensions: &["jsonl", "ndjson"],
    has_signature: no_signature,
    parse,
    stream: Some(stream),
    is_trusted: true,
    kind_inside: None,
    packages: &[],
};

/// The recursion limit of the JSON parser. It parses a value by recursion, one level at a time, so a line with a
/// million brackets would overflow the stack. It is the parser's own limit, and no data that people keep is nested so
/// deeply.
pub(crate) const MAX_NESTING: usize = 127;

pub(crate) fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    two_pass(input, |input| stream(input, &mut &*input.bytes))
}

/// Parses JSON Lines from a stream.
pub(crate) fn stream(
    input: &ParserInput<'_>,
    from: &mut dyn Read,
) -> Result<ParsedFile, IngestError> {
    let limit = input.limits.max_line_bytes;
    let mut records = RecordCollector::new(input);
    let mut lines = JsonlLineReader::new(TextStream::json(from), limit);
    while let Some((number, line)) = lines.next()? {
        let place = RecordLocation::Line(number);
        let line = match line {
            JsonlLine::Whole([]) => continue,
            JsonlLine::Whole(line) => Some(line),
            JsonlLine::TooLong => None,
        };
        if !records.begin(place) {
            break;
        }
        let keys = line.map_or(Err(IngestError::LineTooLong { limit }), |line| {
            parse_object(line, limit)
        });
        match keys {
            Ok(mut keys) => {
                let text = line.map(String::from_utf8_lossy).unwrap_or_default();
                records.reader_keys().mark_unread(&text, &mut keys);
                records.add(place, keys, line.map(sha256));
            }
            Err(reason) => records.skip(place, reason),
        }
    }
    records.finish()
}

/// Reads the lines of a stream and holds no more than one line and the bytes read after it. `at` is where the
/// next line begins.
struct JsonlLineReader<'r> {
    from: TextStream<'r>,
    window: Vec<u8>,
    at: usize,
    counter: LineCounter,
    max_bytes: usize,
    ended: bool,
}

/// One line of the stream, trimmed, or a line that was too long to be held.
enum JsonlLine<'l> {
    Whole(&'l [u8]),
    TooLong,
}

impl<'r> JsonlLineReader<'r> {
    fn new(from: TextStream<'r>, max_bytes: usize) -> Self {
        Self {
            from,
            window: Vec::new(),
            at: 0,
            counter: LineCounter::default(),
            max_bytes,
            ended: false,
        }
    }

    /// Reads the next line with its number. JSON never contains a raw CR or LF inside a value, so either ends
    /// a record; the LF of a CR LF ends an empty line.
    fn next(&mut self) -> Result<Option<(u64, JsonlLine<'_>)>, IngestError> {
        /// Room for white space around a record, which does not count towards its length.
        const ROOM: usize = 64 * 1024;
        let number = self.counter.line();
        let mut scanned = self.at;
        let mut is_too_long = false;
        let end = loop {
            let unscanned = self.window.get(scanned..).unwrap_or_default();
            if let Some(end) = memchr::memchr2(b'\r', b'\n', unscanned) {
                break scanned + end;
            }
            self.window.drain(..self.at);
            self.at = 0;
            if self.window.len() > self.max_bytes.saturating_add(ROOM) {
                // From here on only the end of the line matters.
                is_too_long = true;
                self.counter.advance(&self.window);
                self.window.clear();
            }
            scanned = self.window.len();
            self.ended = self.ended || !self.from.fill(&mut self.window)?;
            if self.ended {
                break scanned;
            }
        };
        if self.ended && end == self.at && end == self.window.len() && !is_too_long {
            return Ok(None);
        }
        let next = self.window.len().min(end + 1);
        self.counter
            .advance(self.window.get(self.at..next).unwrap_or_default());
        let line = self.window.get(self.at..end).unwrap_or_default();
        self.at = next;
        if is_too_long {
            return Ok(Some((number, JsonlLine::TooLong)));
        }
        Ok(Some((number, JsonlLine::Whole(line.trim_ascii()))))
    }
}

/// Parses one line into the keys of a record.
pub(crate) fn parse_object(line: &[u8], limit: usize) -> Result<Map<String, Raw>, IngestError> {
    if line.len() > limit {
        return Err(IngestError::LineTooLong { limit });
    }
    match parse_record(line) {
        Ok(Raw::Object(map)) => Ok(map),
        Ok(_) => Err(IngestError::NotAnObject),
        Err(error) if is_too_nested(&error) => Err(IngestError::TooNested { limit: MAX_NESTING }),
        Err(error) => Err(IngestError::BadJson {
            line: None,
            column: error.column(),
        }),
    }
}

/// Whether the parser hit its recursion limit. `serde_json` reports that only in the message.
pub(crate) fn is_too_nested(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("recursion limit exceeded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::parser::tests::with_input;

    fn parsed(bytes: &[u8], limits: &Limits) -> Result<ParsedFile, IngestError> {
        with_input("hull_records.jsonl", bytes, limits, parse)
    }

    /// Renders each document as `id|title|text` and each skipped line as `line:code`.
    fn show(bytes: &[u8], limits: &Limits) -> Vec<String> {
        let parsed = match parsed(bytes, limits) {
            Ok(parsed) => parsed,
            Err(reason) => return vec![reason.code().to_owned()],
        };
        let documents = parsed
            .documents
            .iter()
            .map(|d| format!("{}|{}|{}", d.id, d.title, d.text));
        let problem = |line: Option<u64>, reason: &IngestError| {
            format!("{}:{}", line.unwrap_or(0), reason.code())
        };
        let skipped = parsed.skipped.iter().map(|s| problem(s.line, &s.reason));
        let warnings = parsed.warnings.iter().map(|w| problem(w.line, &w.reason));
        documents.chain(skipped).chain(warnings).collect()
    }

    fn check(text: &str, expect: &[&str]) {
        assert_eq!(show(text.as_bytes(), &Limits::default()), expect, "{text}");
    }

    #[test]
    fn ids_are_taken_as_they_are() {
        check(r#"{"id":"a b/ü","title":"T","text":"x"}"#, &["a b/ü|T|x"]);
        check(r#"{"id":17,"title":"T","text":"x"}"#, &["17|T|x"]);
        check(r#"{"id":1.5,"title":"T","text":"x"}"#, &["1.5|T|x"]);
        check(
            "\n\r\n{\"title\":\"T\",\"text\":\"x\"}\r\n",
            &["hull_records.jsonl#L3|T|x"],
        );
        check(
            r#"{"id":null,"title":"T","text":"x"}"#,
            &["hull_records.jsonl#L1|T|x"],
        );
        check(r#"{"id":"a#p","title":"T","text":"x"}"#, &["a#p|T|x"]);
    }

    #[test]
    fn ids_that_cannot_be_used_cost_no_record() {
        let long = "x".repeat(513);
        for id in [
            "\"\"",
            "12345678901234567890123",
            "true",
            "[1]",
            r#""a\nb""#,
            r#""a\u200bb""#,
            r#""a#p2""#,
            &format!("\"{long}\""),
        ] {
            check(
                &format!("{{\"id\":1,\"text\":\"x\"}}\n{{\"id\":{id},\"text\":\"y\"}}"),
                &[
                    "hull_records.jsonl#L1||x",
                    "hull_records.jsonl#L2||y",
                    "2:numbered-rows",
                ],
            );
        }
        let exact = "x".repeat(512);
        check(
            &format!(r#"{{"id":"{exact}","title":"T","text":"x"}}"#),
            &[&format!("{exact}|T|x")],
        );
    }

    #[test]
    fn a_bad_line_costs_only_itself() {
        check(
            "{\"id\":1,\"text\":\"x\"}\n{broken\n[1]\n\"s\"\n{}\n{\"id\":2}\n{\"id\":3,\"text\":\"y\"}",
            &[
                "1||x",
                "2|Hull records 2|",
                "3||y",
                "2:bad-json",
                "3:not-an-object",
                "4:not-an-object",
                "5:empty",
            ],
        );
        let bytes = b"{\"id\":1,\"text\":\"\xFF\"}\n{\"id\":2,\"text\":\"y\"}";
        assert_eq!(show(bytes, &Limits::default()), ["2||y", "1:bad-json"]);
        let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
        check(&deep, &["1:too-nested"]);
        let deepest = format!("{}1{}", "{\"a\":".repeat(127), "}".repeat(127));
        let names = vec!["a"; 127].join(".");
        let record = format!("hull_records.jsonl#L1|Hull records, line 1|{names}: 1\n");
        check(&deepest, &[record.as_str(), "1:bad-field"]);
        check("", &["empty"]);
        check("\n\n", &["empty"]);
    }

    #[test]
    fn every_line_end_ends_a_record() {
        let record = |n: u32| format!("{{\"text\":\"{n}\"}}");
        let expect = |line: u32, n: u32| format!("hull_records.jsonl#L{line}||{n}");
        for end in ["\n", "\r", "\r\n"] {
            let text: String = (1..=921).map(|n| record(n) + end).collect();
            let found = show(text.as_bytes(), &Limits::default());
            let all: Vec<_> = (1..=921).map(|n| expect(n, n)).collect();
            assert_eq!(found, all, "{end:?}");
        }
        let mixed = ["", "\r", "\n\r", "\r\n", "\n"].iter().zip(1..);
        let mixed: String = mixed
            .map(|(end, n)| format!("{end}{}", record(n)))
            .collect();
        let lines = [(1, 1), (2, 2), (4, 3), (5, 4), (6, 5)];
        let lines: Vec<_> = lines.iter().map(|(line, n)| expect(*line, *n)).collect();
        assert_eq!(show(mixed.as_bytes(), &Limits::default()), lines);
    }

    #[test]
    fn titles_and_texts_are_found_or_made() {
        check(r#"{"id":1,"subject":"S","body":"b"}"#, &["1|S|b"]);
        check(
            r#"{"id":1,"make":"Orrin","year":1999}"#,
            &["1|Hull records 1|make: Orrin\nyear: 1999\n"],
        );
        check(
            r#"{"make":"Orrin"}"#,
            &["hull_records.jsonl#L1|Hull records, line 1|make: Orrin\n"],
        );
        check(r#"{"id":1,"text":"first\nsecond"}"#, &["1||first\nsecond"]);
    }

    #[test]
    fn utf16_and_marks_are_read() {
        let text = "{\"id\":1,\"text\":\"ü\"}";
        let mut utf16 = vec![0xFF, 0xFE];
        utf16.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(show(&utf16, &Limits::default()), ["1||ü"]);
        assert_eq!(
            show(format!("\u{FEFF}{text}").as_bytes(), &Limits::default()),
            ["1||ü"]
        );
    }

    #[test]
    fn every_bound_holds_and_is_reported() {
        let line = r#"{"id":1,"text":"xx"}"#;
        let with = |limits: Limits, text: &str| show(text.as_bytes(), &limits);
        let line_limits = Limits {
            max_line_bytes: line.len(),
            ..Limits::default()
        };
        assert_eq!(with(line_limits.clone(), line), ["1||xx"]);
        assert_eq!(
            with(line_limits, r#"{"id":1,"text":"xxx"}"#),
            ["1:line-too-long"]
        );
        let records = Limits {
            max_records: 2,
            ..Limits::default()
        };
        let three = [r#"{"id":1,"text":"a"}"#, "{", r#"{"id":3,"text":"c"}"#].join("\n");
        assert_eq!(
            with(records, &three),
            ["1||a", "2:bad-json", "3:too-many-records"]
        );
        let chars = Limits {
            max_text_chars: 2,
            ..Limits::default()
        };
        assert_eq!(with(chars.clone(), line), ["1||xx"]);
        assert_eq!(with(chars, r#"{"id":1,"text":"xxx"}"#), ["1:text-too-long"]);
        let reported = Limits {
            max_reported: 1,
            ..Limits::default()
        };
        assert_eq!(with(reported.clone(), "{\n"), ["1:bad-json"]);
        assert_eq!(with(reported, "{\n{\n{"), ["1:bad-json", "0:more"]);
        let cut = Limits {
            max_value_chars: 1,
            max_reported: 1,
            ..Limits::default()
        };
        let two = [1, 2].map(|id| format!("{{\"id\":{id},\"text\":\"a\",\"f\":\"xx\"}}\n"));
        let found = with(cut, &two.concat());
        let texts = ["1||a\n\nf: xx\n", "2||a\n\nf: xx\n", "1:cut", "0:more"];
        assert_eq!(found, texts);
        let title = Limits {
            max_title_chars: 1,
            ..Limits::default()
        };
        assert_eq!(with(title, line), ["1||xx"]);
    }

    #[test]
    fn lines_that_never_end_are_left_behind() {
        let limits = Limits {
            max_line_bytes: 1_000,
            ..Limits::default()
        };
        let long = format!("{{\"text\":\"{}\"}}", "x".repeat(500_000));
        let good = r#"{"id":1,"text":"y"}"#;
        let text = format!("{long}\n{good}\n{long}");
        assert_eq!(
            show(text.as_bytes(), &limits),
            ["1||y", "1:line-too-long", "3:line-too-long"]
        );
    }

    #[test]
    fn the_hash_is_that_of_the_record() {
        let line = br#"{"id":1,"text":"x"}"#;
        let documents = parsed(line, &Limits::default()).unwrap().documents;
        assert_eq!(documents[0].hash, sha256(line));
    }
}
