//! BibTeX and BibLaTeX parser: one document per entry, as Zotero and other reference managers export a
//! library.
//!
//! A malformed entry costs only itself: the parser recovers at the next line that begins an entry.

mod latex;

use serde_json::Value as Raw;

use crate::decoding::decode_text;
use crate::digest::sha256;
use crate::error::IngestError;
use crate::exports::bibliography::{BibliographicRecord, file_name, given_name_first, split_list};
use crate::formats::file_format::{FileFormat, no_signature};
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field;
use crate::records::record_ids::two_pass;
use crate::records::{RecordCollector, RecordLocation};
use latex::latex_to_text;

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "bibtex",
    kind: "bibtex",
    extensions: &["bib", "bibtex"],
    has_signature: no_signature,
    parse,
    stream: None,
    is_trusted: false,
    kind_inside: None,
    packages: &[],
};

/// The most fields of one entry and `@string` macros of one file; the rest is ignored. Reference managers write some
/// dozens of fields. They are kept in memory until the entry ends, and an entry without a closing brace ends with the
/// file.
const MAX_FIELDS: usize = 200;
const MAX_STRINGS: usize = 1_000;

/// The most bytes of one `@string` macro. Macros expand wherever they are named and may name other macros, so that
/// without a bound a short file could grow into a very long text. They stand for names of journals and publishers,
/// which are short.
const MAX_STRING_BYTES: usize = 4_096;

/// The month macros that BibTeX predefines, in calendar order.
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    let text = decode_text(input.bytes)?;
    two_pass(input, |input| entries(input, &text))
}

fn entries(input: &ParserInput<'_>, text: &str) -> Result<ParsedFile, IngestError> {
    let mut records = RecordCollector::new(input);
    let mut scanner = BibtexReader::new(text, input.limits.max_line_bytes);
    while let Some((line, entry)) = scanner.next() {
        let place = RecordLocation::Line(line);
        if !records.begin(place) {
            break;
        }
        match entry {
            Ok(entry) if entry.fields.is_empty() => records.skip(place, IngestError::Empty),
            Ok(mut entry) => {
                let hash = sha256(entry.source.as_bytes());
                let readers = entry.take_readers(records.reader_keys());
                let mut keys = entry.into_bibliographic_record().into_keys();
                for (name, value) in readers {
                    reader_field::insert_keeping_duplicates(
                        &mut keys,
                        &name,
                        Raw::String(latex_to_text(&value)),
                    );
                }
                records.add(place, keys, Some(hash));
            }
            Err(reason) => records.skip(place, reason),
        }
    }
    records.finish()
}

/// One entry, `@article{key, name = value, …}`, with its source text, whose checksum detects changes.
#[derive(Debug, Default)]
struct BibtexEntry<'t> {
    kind: String,
    key: String,
    fields: Vec<(String, String)>,
    source: &'t str,
}

/// Scans a text from one `@` to the next. It tracks the line number up to `counted`, the `@string` macros
/// seen so far, and the most bytes that one entry may have.
struct BibtexReader<'t> {
    text: &'t str,
    at: usize,
    line: u64,
    counted: usize,
    strings: Vec<(String, String)>,
    max_bytes: usize,
}

impl<'t> BibtexReader<'t> {
    fn new(text: &'t str, max_bytes: usize) -> Self {
        Self {
            text,
            at: 0,
            line: 1,
            counted: 0,
            strings: Vec::new(),
            max_bytes,
        }
    }

    /// The next entry and the line on which it begins. Text between entries is a comment in BibTeX.
    fn next(&mut self) -> Option<(u64, Result<BibtexEntry<'t>, IngestError>)> {
        loop {
            let rest = self.text.get(self.at..)?;
            let start = self.at + rest.find('@')?;
            let passed = self.text.get(self.counted..start).unwrap_or_default();
            self.line += passed.matches('\n').count() as u64;
            self.counted = start;
            self.at = start + 1;
            let Some((kind, open)) = self.head() else {
                continue;
            };
            let end = match self.end(open) {
                Ok(end) => end,
                Err(reason) => return Some((self.line, Err(reason))),
            };
            let inside = self.text.get(open + 1..end).unwrap_or_default();
            self.at = end + 1;
            match kind.as_str() {
                "comment" | "preamble" => {}
                "string" => self.define_string(inside),
                _ => {
                    let mut entry = self.entry(inside);
                    entry.kind = kind;
                    entry.source = self.text.get(start..=end).unwrap_or_default();
                    return Some((self.line, Ok(entry)));
                }
            }
        }
    }

    /// The entry type after the `@`, and the offset of its opening bracket.
    fn head(&self) -> Option<(String, usize)> {
        let rest = self.text.get(self.at..)?;
        let length = rest.find(|c: char| !c.is_ascii_alphabetic())?;
        let after = rest.get(length..)?;
        let bracket = after.len() - after.trim_start().len();
        let is_open = after.trim_start().starts_with(['{', '(']);
        let word = rest.get(..length).filter(|word| !word.is_empty())?;
        is_open.then(|| (word.to_ascii_lowercase(), self.at + length + bracket))
    }

    /// Finds the bracket that closes the one at `open`. Nesting is counted and not recursed into, so that
    /// depth costs nothing.
    fn end(&mut self, open: usize) -> Result<usize, IngestError> {
        let bytes = self.text.as_bytes();
        let is_round = bytes.get(open) == Some(&b'(');
        let (mut depth, mut escaped) = (0_u64, false);
        for (at, byte) in bytes.iter().enumerate().skip(open) {
            if at - open > self.max_bytes {
                let ends = at..=self.text.len();
                self.at = ends
                    .into_iter()
                    .find(|end| self.text.is_char_boundary(*end))
                    .unwrap_or(at);
                return Err(IngestError::LineTooLong {
                    limit: self.max_bytes,
                });
            }
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'{' => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                b')' if is_round && depth == 0 => return Ok(at),
                // A line that begins with `@word` is the next entry: this one was never closed.
                b'@' if starts_entry_line(bytes, at) => {
                    self.at = at;
                    return Err(unclosed_entry());
                }
                _ => {}
            }
            if depth == 0 && !is_round {
                return Ok(at);
            }
        }
        self.at = bytes.len();
        Err(unclosed_entry())
    }

    fn define_string(&mut self, inside: &str) {
        let mut fields = self.fields(inside);
        if let Some((name, value)) = fields.pop().filter(|_| self.strings.len() < MAX_STRINGS)
            && value.len() <= MAX_STRING_BYTES
        {
            self.strings.push((name, value));
        }
    }

    fn entry(&self, inside: &str) -> BibtexEntry<'t> {
        let (key, rest) = inside.split_once(',').unwrap_or((inside, ""));
        BibtexEntry {
            key: key.trim().to_owned(),
            fields: self.fields(rest),
            ..BibtexEntry::default()
        }
    }

    /// Parses the field list `name = {value}, name = "value" # macro, name = 2021`.
    fn fields(&self, text: &str) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        let mut rest = text;
        while let Some((name, after)) = rest.split_once('=') {
            if fields.len() >= MAX_FIELDS {
                break;
            }
            let name = name.trim().trim_start_matches(',').trim();
            let (value, after) = self.value(after);
            if !name.is_empty() && !name.contains(char::is_whitespace) {
                fields.push((name.to_ascii_lowercase(), value));
            }
            rest = after;
        }
        fields
    }

    /// Concatenates the `#`-separated parts of a value; returns it with the text after the next comma.
    fn value<'v>(&self, text: &'v str) -> (String, &'v str) {
        let mut value = String::new();
        let mut rest = text.trim_start();
        loop {
            let (part, after) = match rest.as_bytes().first() {
                Some(b'{') => enclosed(rest, b'}'),
                Some(b'"') => enclosed(rest, b'"'),
                _ => {
                    let end = rest.find([',', '#']).unwrap_or(rest.len());
                    let (word, after) = rest.split_at(end);
                    (self.expand_string(word.trim()), after)
                }
            };
            if value.len() + part.len() <= self.max_bytes {
                value.push_str(&part);
            }
            let after = after.trim_start();
            match after.strip_prefix('#') {
                Some(more) => rest = more.trim_start(),
                None => {
                    let next = after.find(',').map_or(after.len(), |at| at + 1);
                    return (value, after.get(next..).unwrap_or_default());
                }
            }
        }
    }

    /// Expands an `@string` macro; the last definition wins, and an unknown word or a number stands for
    /// itself.
    fn expand_string(&self, word: &str) -> String {
        let known = self
            .strings
            .iter()
            .rev()
            .find(|(name, _)| name.eq_ignore_ascii_case(word));
        known.map_or_else(|| word.to_owned(), |(_, value)| value.clone())
    }
}

fn unclosed_entry() -> IngestError {
    IngestError::Damaged {
        what: "an entry has no closing brace".into(),
    }
}

/// Whether the `@` at this offset is the first character of a line and begins an entry.
fn starts_entry_line(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    before == Some(&b'\n') && bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic)
}

/// Splits a text that begins with a delimiter into the content up to the closing delimiter and the rest.
/// Nested braces and escaped characters do not close it.
fn enclosed(text: &str, close: u8) -> (String, &str) {
    let (mut depth, mut escaped) = (0_u64, false);
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            byte if byte == close && depth == 0 => {
                let inside = text.get(1..at).unwrap_or_default();
                return (inside.to_owned(), text.get(at + 1..).unwrap_or_default());
            }
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    (text.get(1..).unwrap_or_default().to_owned(), "")
}

impl BibtexEntry<'_> {
    /// Removes the fields that carry access control, so that they are not indexed as metadata.
    fn take_readers(&mut self, readers: &reader_field::ReaderKeys) -> Vec<(String, String)> {
        let all = std::mem::take(&mut self.fields).into_iter();
        let (taken, others) = all.partition(|(name, _)| readers.covers_key(name));
        self.fields = others;
        taken
    }

    fn into_bibliographic_record(self) -> BibliographicRecord {
        let mut work = BibliographicRecord {
            id: (!self.key.is_empty()).then_some(Raw::String(self.key)),
            kind: Some(self.kind),
            ..BibliographicRecord::default()
        };
        let (mut year, mut month) = (None, None);
        for (name, value) in self.fields {
            let words = latex_to_text(&value);
            if words.is_empty() {
                continue;
            }
            match name.as_str() {
                "title" => work.title = Some(words),
                "author" => work.authors = person_names(&value),
                "editor" => work.editors = person_names(&value),
                "abstract" => work.summary = Some(words),
                "date" => work.date = Some(words),
                "year" => year = Some(words),
                "month" => month = month_number(&words),
                "journal" | "journaltitle" | "booktitle" => work.publication = Some(words),
                "doi" => work.doi = Some(words),
                "url" => work.url = Some(words),
                "keywords" => work.tags = split_list(&words, &[',', ';']),
                "file" => work.attachments = attachment_names(&value),
                _ => work.rest.push((name, Raw::String(words))),
            }
        }
        work.date = work.date.or_else(|| {
            let year = year?;
            Some(month.map_or_else(|| year.clone(), |month| format!("{year}-{month:02}")))
        });
        work
    }
}

fn month_number(word: &str) -> Option<usize> {
    let lower = word.to_lowercase();
    let at = MONTHS.iter().position(|month| lower.starts_with(month));
    at.map(|at| at + 1)
        .or_else(|| lower.parse().ok().filter(|month| (1..=12).contains(month)))
}

/// Parses an author list such as `Reis, Ana and {Tide Office}`. A name in braces is an organization and is
/// not split.
fn person_names(value: &str) -> Vec<String> {
    let names = value.split(" and ").map(|name| {
        let is_organization = name.trim().starts_with('{') && name.trim().ends_with('}');
        let name = latex_to_text(name);
        if is_organization {
            name
        } else {
            given_name_first(&name)
        }
    });
    names.filter(|name| !name.is_empty()).take(256).collect()
}

/// Parses an attachment list such as `Full Text:files/12/tides.pdf:application/pdf`, entries separated by
/// semicolons.
fn attachment_names(value: &str) -> Vec<String> {
    let files = value.replace("\\;", " ").replace("\\:", ":");
    let path = |file: &str| {
        let parts: Vec<&str> = file.split(':').collect();
        let path = match parts.as_slice() {
            [_, path @ .., kind] if kind.contains('/') && !path.is_empty() => path.join(":"),
            _ => file.to_owned(),
        };
        file_name(&path)
    };
    let names = files.split(';').map(path);
    names.filter(|name| !name.is_empty()).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::parser::tests::{shown, with_input};

    fn check(text: &str, expect: &[&str]) {
        let limits = Limits {
            max_line_bytes: 400,
            ..Limits::default()
        };
        let parsed = with_input("lib.bib", text.as_bytes(), &limits, parse).unwrap();
        assert_eq!(shown(&parsed), expect, "{text}");
    }

    #[test]
    fn entries_are_read() {
        check(
            "@string{hs = \"Harbour Studies\"}\n% a comment\n@Article{reis2021,\n  title = {The {Tides} of Corrowin},\n  author = {Reis, Ana and {Tide Office}},\n  journal = hs # \" B\",\n  year = 2021, month = mar,\n}\n@comment{@book{no, title={No}}}\n@book(slate, title = \"Slate \\\"{u}ber {\\'e}\", editor = {Tom Harrow})",
            &[
                "reis2021|The Tides of Corrowin|Ana Reis, Tide Office (2021). The Tides of Corrowin. Harbour Studies B",
                "slate|Slate über é|Tom Harrow. Slate über é",
            ],
        );
    }

    #[test]
    fn a_bad_entry_costs_only_itself() {
        check(
            "@article{open, title = {Never closed\n\n@book{good, title = {Good}}\n@nothing\n@misc{, }",
            &["good|Good|Good", "lib.bib:1:damaged", "lib.bib:5:empty"],
        );
    }

    #[test]
    fn an_entry_ends_at_its_bound() {
        let entry = |chars: usize| format!("@misc{{a, title = {{{}}}}}", "t".repeat(chars));
        // The limit applies from the first brace to the last.
        let frame = entry(0).len() - "@misc{".len();
        let read = |chars: usize| {
            let limits = Limits {
                max_line_bytes: 400,
                ..Limits::default()
            };
            let text = entry(chars);
            let parsed = with_input("lib.bib", text.as_bytes(), &limits, parse).unwrap();
            parsed.documents.len()
        };
        assert_eq!((read(400 - frame), read(401 - frame)), (1, 0));
    }

    #[test]
    fn the_entry_after_an_oversized_one_is_read() {
        for shift in 0..3 {
            let long = format!(
                "@misc{{a, title = {{{}{}}}}}",
                "x".repeat(shift),
                "é".repeat(400)
            );
            check(
                &format!("{long}\n@misc{{b, title = {{B}}}}"),
                &["b|B|B", "lib.bib:1:line-too-long"],
            );
        }
    }

    #[test]
    fn deep_and_broken_texts_are_read_in_good_time() {
        for text in ["{", "@a{", "@a{b,c=", "\"", "=", "#", "@string{a="] {
            let text = text.repeat(100_000);
            let _ = with_input("lib.bib", text.as_bytes(), &Limits::default(), parse);
        }
    }

    #[test]
    fn files_have_names() {
        let names =
            attachment_names("Full Text:files/12/tides.pdf:application/pdf;C\\:\\\\lib\\\\b.pdf");
        assert_eq!(names, ["tides.pdf", "b.pdf"]);
    }
}
