//! Jupyter notebook parser: one notebook becomes one document with its prose as it is, its code in fenced
//! blocks and the beginning of each output. Pictures are left out.

use std::fmt;

use docent_search::DocumentValue;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value as Raw};

use crate::clean::{clean, clean_line, truncate_chars};
use crate::decoding::decode_text;
use crate::error::IngestError;
use crate::fields::front_matter;
use crate::fields::metadata::ExtractedMetadata;
use crate::formats::file_format::{FileFormat, no_signature};
use crate::formats::markdown::first_heading;
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::{self, ReaderFault, ReaderField, ReaderKeys};
use crate::records::json::{JsonMember, array_elements, object_members};
use crate::single_document;

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "notebook",
    kind: "notebook",
    extensions: &["ipynb"],
    has_signature: no_signature,
    parse,
    stream: None,
    is_trusted: false,
    kind_inside: None,
    packages: &[],
};

/// Characters and lines kept of one output, enough to see what it was. Outputs are often logs and printed tables of
/// megabytes, which would drown the words and the code that the notebook was written for.
const MOST_OUTPUT_CHARS: usize = 1_000;
const MOST_OUTPUT_LINES: usize = 20;

/// Outputs kept of one cell; a loop that prints produces one after the other.
const MOST_OUTPUTS: usize = 50;

const MOST_CELLS: usize = 20_000;

#[derive(Deserialize)]
struct NotebookCell<'a> {
    #[serde(default)]
    cell_type: String,
    /// Notebooks of format 3 call the source of a code cell its `input`.
    #[serde(default, alias = "input")]
    source: MultilineText,
    /// Kept as raw JSON: a cell may have any number of outputs, pictures among them.
    #[serde(borrow)]
    outputs: Option<&'a RawValue>,
    /// The heading level; only format 3 has heading cells.
    level: Option<u8>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CellOutput {
    text: MultilineText,
    data: MimeBundle,
    ename: Option<String>,
    evalue: Option<String>,
}

#[derive(Deserialize, Default)]
struct MimeBundle {
    #[serde(default, rename = "text/plain")]
    plain: MultilineText,
}

/// A string that the format writes either whole or as a list of lines, joined while it is deserialized.
#[derive(Default)]
struct MultilineText(String);

impl MultilineText {
    fn text(&self) -> String {
        clean(&self.0)
    }
}

impl<'de> Deserialize<'de> for MultilineText {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(MultilineTextVisitor)
    }
}

struct MultilineTextVisitor;

impl<'de> Visitor<'de> for MultilineTextVisitor {
    type Value = MultilineText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or its lines")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<MultilineText, E> {
        Ok(MultilineText(text.to_owned()))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<MultilineText, E> {
        Ok(MultilineText::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut lines: A) -> Result<MultilineText, A::Error> {
        let mut text = String::new();
        while let Some(line) = lines.next_element::<String>()? {
            text.push_str(&line);
        }
        Ok(MultilineText(text))
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NotebookMetadata {
    kernelspec: KernelInfo,
    language_info: KernelInfo,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct KernelInfo {
    language: Option<String>,
    name: Option<String>,
}

impl NotebookMetadata {
    fn language(self) -> Option<String> {
        let language = self.language_info.name.or(self.kernelspec.language)?;
        let mut language = clean_line(&language).to_lowercase();
        truncate_chars(&mut language, 32);
        (!language.is_empty()).then_some(language)
    }
}

/// The reader field of a notebook: from its metadata, its outermost object, or front matter in its first
/// prose cell. Finding it in two of these places is an error.
fn readers(input: &ParserInput<'_>, entries: &[JsonMember<'_>], first: &str) -> ReaderField {
    let keys = ReaderKeys::for_input(input);
    if !keys.is_configured() {
        return ReaderField::Absent;
    }
    let mut map = Map::new();
    for entry in entries {
        let raw = entry.raw.get();
        let is_object = raw.starts_with('{');
        if keys.covers_key(&entry.name) {
            let value = serde_json::from_str(raw).unwrap_or_default();
            reader_field::insert_keeping_duplicates(&mut map, &entry.name, value);
        } else if entry.is("metadata") && is_object {
            let inner: Map<String, Raw> = serde_json::from_str(raw).unwrap_or_default();
            for (name, value) in inner.into_iter().filter(|(name, _)| keys.covers_key(name)) {
                reader_field::insert_keeping_duplicates(&mut map, &name, value);
            }
            keys.mark_unread(raw, &mut map);
        } else if keys.stand_in(raw) {
            keys.mark(&mut map, ReaderFault::Misplaced);
        }
    }
    let in_cell = front_matter::readers_of(first, input.limits, &keys);
    match (keys.take(&mut map), in_cell) {
        (readers, ReaderField::Absent) | (ReaderField::Absent, readers) => readers,
        _ => ReaderField::Malformed(ReaderFault::Repeated),
    }
}

fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    let text = decode_text(input.bytes)?;
    let (entries, _) = object_members(text.trim())?;
    parse_members(input, &entries)
}

/// Parses a notebook from the members of its outermost object.
pub(crate) fn parse_members(
    input: &ParserInput<'_>,
    entries: &[JsonMember<'_>],
) -> Result<ParsedFile, IngestError> {
    let named = |name: &str| entries.iter().find(|entry| entry.is(name));
    let metadata = named("metadata").and_then(|entry| serde_json::from_str(entry.raw.get()).ok());
    let language = metadata
        .unwrap_or_else(NotebookMetadata::default)
        .language();
    let mut builder = NotebookBuilder {
        text: String::new(),
        first: None,
        language: language.clone().unwrap_or_default(),
        cells: 0,
        bad: 0,
        limit: input.limits.max_text_chars,
    };
    if let Some(cells) = named("cells") {
        builder.read(cells.raw.get())?;
    } else if let Some(sheets) = named("worksheets") {
        array_elements(sheets.raw.get(), |sheet| {
            let cells =
                crate::records::json::object_members(sheet.get()).map(|(entries, _)| entries);
            let cells = cells.unwrap_or_default();
            let cells = cells.iter().find(|entry| entry.is("cells"));
            cells.is_none_or(|cells| builder.read(cells.raw.get()).is_ok())
        })?;
    }
    let readers = readers(input, entries, builder.first.as_deref().unwrap_or_default());
    builder.into_document(input, language, readers)
}

/// Builds a notebook's text cell by cell, and counts the cells that could not be read. `first` is the first
/// prose cell, where people write front matter.
struct NotebookBuilder {
    text: String,
    first: Option<String>,
    language: String,
    cells: usize,
    bad: usize,
    limit: usize,
}

impl NotebookBuilder {
    fn read(&mut self, cells: &str) -> Result<(), IngestError> {
        array_elements(cells, |raw| {
            self.cells += 1;
            match serde_json::from_str::<NotebookCell<'_>>(raw.get()) {
                Ok(cell) => self.add(&cell),
                Err(_) => self.bad += 1,
            }
            // A character has at most four bytes, so this stops only after the text is certainly too long.
            self.cells < MOST_CELLS && self.text.len() / 4 <= self.limit
        })
    }

    fn add(&mut self, cell: &NotebookCell<'_>) {
        let source = cell.source.text();
        let source = source.trim_matches('\n');
        match cell.cell_type.as_str() {
            "code" => {
                let language = self.language.clone();
                self.fenced(&language, source);
                if let Some(outputs) = cell.outputs {
                    self.add_outputs(outputs.get());
                }
            }
            "heading" => {
                let level = usize::from(cell.level.unwrap_or(1).clamp(1, 6));
                self.block(&format!("{} {source}", "#".repeat(level)));
            }
            _ => {
                self.first.get_or_insert_with(|| source.to_owned());
                self.block(source);
            }
        }
    }

    fn add_outputs(&mut self, outputs: &str) {
        let mut count = 0;
        let read = array_elements(outputs, |raw| {
            count += 1;
            match serde_json::from_str::<CellOutput>(raw.get()) {
                Ok(output) => self.fenced("output", &output.summary()),
                Err(_) => self.bad += 1,
            }
            count < MOST_OUTPUTS
        });
        self.bad += usize::from(read.is_err());
    }

    fn block(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn fenced(&mut self, word: &str, text: &str) {
        if !text.trim().is_empty() {
            let fence = fence_for(text);
            self.block(&format!("{fence}{word}\n{text}\n{fence}"));
        }
    }

    fn into_document(
        self,
        input: &ParserInput<'_>,
        language: Option<String>,
        readers: ReaderField,
    ) -> Result<ParsedFile, IngestError> {
        // A language alone is not content worth a document.
        if self.text.trim().is_empty() {
            return Err(IngestError::Empty);
        }
        let mut warnings = Vec::new();
        if self.bad > 0 {
            let what = format!("{} cells cannot be read", self.bad);
            warnings.push(IngestError::Damaged { what: what.into() });
        }
        if self.cells >= MOST_CELLS {
            warnings.push(IngestError::TooManyRecords { limit: MOST_CELLS });
        }
        let language = language.map(|name| ("language".to_owned(), DocumentValue::Text(name)));
        let metadata = ExtractedMetadata {
            title: first_heading(&self.text, input.limits.max_title_chars),
            fields: language.into_iter().take(input.limits.max_fields).collect(),
            warnings,
            readers,
            ..ExtractedMetadata::default()
        };
        single_document::build_document(input, self.text, metadata)
    }
}

impl CellOutput {
    /// The output as text, shortened to the limits above.
    fn summary(&self) -> String {
        let mut text = self.text.text();
        if text.is_empty() {
            text = self.data.plain.text();
        }
        if text.is_empty()
            && let Some(error) = &self.ename
        {
            let why = self.evalue.as_deref().unwrap_or_default();
            text = clean(&format!("{error}: {why}"));
        }
        let lines: Vec<_> = text
            .trim_matches('\n')
            .lines()
            .take(MOST_OUTPUT_LINES + 1)
            .collect();
        let mut short = lines.get(..MOST_OUTPUT_LINES).unwrap_or(&lines).join("\n");
        let longer = lines.len() > MOST_OUTPUT_LINES;
        if truncate_chars(&mut short, MOST_OUTPUT_CHARS) || longer {
            short.push_str("\n…");
        }
        short
    }
}

/// A code fence that does not occur in the code itself.
pub(crate) fn fence_for(code: &str) -> &'static str {
    let used = code
        .lines()
        .any(|line| line.trim_start().starts_with("```"));
    if used { "~~~" } else { "```" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::parser::tests::with_input;

    fn check(json: &str, limits: &Limits, expect: Result<(&str, &str), &str>) {
        let found = with_input("tide_study.ipynb", json.as_bytes(), limits, parse);
        let found = found.map(|parsed| {
            let document = parsed.documents.into_iter().next().unwrap();
            (document.title.clone(), document.text.clone())
        });
        let found = found
            .as_ref()
            .map(|(title, text)| (title.as_str(), text.as_str()));
        assert_eq!(found.map_err(IngestError::code), expect, "{json}");
    }

    #[test]
    fn cells_follow_each_other() {
        check(
            r##"{"nbformat":4,"metadata":{"language_info":{"name":"Python"}},"cells":[
                {"cell_type":"markdown","source":["# Tides\n","of Ellin"]},
                {"cell_type":"code","source":"print(1)","outputs":[{"output_type":"stream","text":["1\n"]},
                    {"output_type":"display_data","data":{"image/png":"AAAA","text/plain":["<Figure>"]}},
                    {"output_type":"error","ename":"ValueError","evalue":"no tide"}]},
                {"cell_type":"code","source":"x = '''\n```\n'''"},
                {"cell_type":"raw","source":""}, 7]}"##,
            &Limits::default(),
            Ok((
                "Tides",
                "# Tides\nof Ellin\n\n```python\nprint(1)\n```\n\n```output\n1\n```\n\n```output\n<Figure>\n```\n\n```output\nValueError: no tide\n```\n\n~~~python\nx = '''\n```\n'''\n~~~\n",
            )),
        );
    }

    #[test]
    fn old_notebooks_are_read() {
        check(
            r#"{"nbformat":3,"worksheets":[{"cells":[{"cell_type":"heading","level":2,"source":"Fares"},
                {"cell_type":"code","language":"python","input":["f = 3"],"outputs":[{"text":"3"}]}]}]}"#,
            &Limits::default(),
            Ok((
                "Tide study",
                "## Fares\n\n```\nf = 3\n```\n\n```output\n3\n```\n",
            )),
        );
    }

    #[test]
    fn outputs_and_texts_end_at_their_bounds() {
        let shown = |text: String| {
            let text = MultilineText(text);
            CellOutput {
                text,
                data: MimeBundle::default(),
                ename: None,
                evalue: None,
            }
            .summary()
        };
        assert_eq!(shown("x".repeat(1_000)), "x".repeat(1_000));
        assert_eq!(
            shown("x".repeat(1_001)),
            format!("{}\n…", "x".repeat(1_000))
        );
        assert_eq!(shown("x\n".repeat(20)).lines().count(), 20);
        assert_eq!(shown("x\n".repeat(21)).lines().last(), Some("…"));
        let limits = |max_text_chars| Limits {
            max_text_chars,
            ..Limits::default()
        };
        let json = r#"{"cells":[{"cell_type":"markdown","source":"abc"}]}"#;
        check(json, &limits(4), Ok(("Tide study", "abc\n")));
        check(json, &limits(3), Err("text-too-long"));
        check(r#"{"cells":[]}"#, &limits(3), Err("empty"));
        check(r#"{"cells":7}"#, &limits(3), Err("bad-json"));
    }

    #[test]
    fn outputs_are_counted() {
        let outputs = r#"{"text":"x"},"#.repeat(MOST_OUTPUTS + 1);
        let json = format!(
            r#"{{"cells":[{{"cell_type":"code","source":"a","outputs":[{outputs}{{}}]}}]}}"#
        );
        let parsed = with_input("a.ipynb", json.as_bytes(), &Limits::default(), parse).unwrap();
        assert_eq!(parsed.documents[0].text.matches('x').count(), MOST_OUTPUTS);
    }

    #[test]
    fn cells_are_counted() {
        let cells = r#"{"cell_type":"markdown","source":"a"},"#.repeat(MOST_CELLS + 1);
        let json = format!(r#"{{"cells":[{cells}{{}}]}}"#);
        let parsed = with_input("a.ipynb", json.as_bytes(), &Limits::default(), parse).unwrap();
        assert_eq!(parsed.documents[0].text.matches('a').count(), MOST_CELLS);
        assert_eq!(parsed.warnings[0].reason.code(), "too-many-records");
    }
}
