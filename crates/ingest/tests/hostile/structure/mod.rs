//! Structural mutations of Word documents and workbooks, parsed by a real child: each is read within the
//! limits or rejected with a reason, nothing is lost silently, and nothing from outside the package
//! appears.

mod mutations;
mod packages;

use std::collections::BTreeMap;
use std::sync::Arc;

use docent_ingest::{FileReadOutcome, FolderSource, IngestError, Limits, ParserPool, clean};
use libtest_mimic::Trial;

use self::mutations::Mutant;
use self::packages::{BODY_WORDS, FIRST_SHEET_WORDS, FOOTNOTE_WORDS, Package, SECOND_SHEET_WORDS};
use crate::{HostileFolder, sandbox, trial};

/// Words of a file next to the packages, which no package may show.
const SECRET: &str = "Quicksand";

const RANDOM: u64 = 200;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("word_documents_with_a_broken_structure", || {
            mutated(&packages::docx());
        }),
        trial("workbooks_with_a_broken_structure", || {
            mutated(&packages::xlsx());
        }),
        trial("two_sheets_of_one_name_are_told", two_sheets_of_one_name),
    ]
}

/// Small limits, so that small packages reach them.
fn limits() -> Limits {
    Limits {
        max_unpacked_bytes: 8 << 20,
        max_text_chars: 20_000,
        max_records: 1_000,
        max_fields: 8,
        max_reported: 20,
        ..Limits::default()
    }
}

fn mutated(package: &Package) {
    let outside = HostileFolder::new();
    outside.write("secret.xml", format!("<w:p><w:t>{SECRET}</w:t></w:p>"));
    let secret = outside.path("secret.xml");
    let mutants: Vec<Mutant> = [
        mutations::of_parts(package),
        mutations::of_targets(package, secret.to_str().unwrap()),
        mutations::of_values(package),
        mutations::of_tags(package),
        mutations::at_random(package, RANDOM),
    ]
    .into_iter()
    .flatten()
    .collect();
    println!("{} {} files", mutants.len(), package.extension);
    let outcomes = read_all(&mutants);
    let mut read = 0;
    let mut failures = Vec::new();
    for mutant in &mutants {
        let outcome = outcomes.get(&mutant.name).unwrap();
        read += usize::from(outcome.is_ok());
        if let Err(why) = check(package, mutant, outcome) {
            failures.push(format!("{}: {why}", mutant.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // Most damage is small. Without this assertion, a reader that rejects every imperfect file would pass.
    assert!(read * 3 > mutants.len(), "only {read} files were read");
}

/// The library looks sheets up by name, so the second one would be read as the first again.
fn two_sheets_of_one_name() {
    let mut package = packages::xlsx();
    let workbook = package
        .parts
        .iter_mut()
        .find(|part| part.name == "xl/workbook.xml")
        .unwrap();
    let text = String::from_utf8(workbook.bytes.clone()).unwrap();
    workbook.bytes = text.replace("\"Notes\"", "\"Fleet\"").into_bytes();
    let folder = HostileFolder::new();
    folder.write("twins.xlsx", package.packed());
    let reading = read_folder(&folder).remove("twins.xlsx").unwrap().unwrap();
    let text = shown(&reading);
    assert_eq!(
        text.matches("Kittiwake").count(),
        2,
        "text and field: {text}"
    );
    assert_eq!(reading.skipped.len(), 1, "{:?}", reading.skipped);
}

fn read_all(mutants: &[Mutant]) -> BTreeMap<String, Result<FileReadOutcome, IngestError>> {
    let folder = HostileFolder::new();
    for mutant in mutants {
        folder.write(&mutant.name, &mutant.bytes);
    }
    let outcomes = read_folder(&folder);
    assert_eq!(outcomes.len(), mutants.len());
    outcomes
}

fn read_folder(folder: &HostileFolder) -> BTreeMap<String, Result<FileReadOutcome, IngestError>> {
    let workers = Arc::new(ParserPool::new(sandbox("__parse")).unwrap());
    let source = FolderSource::open(folder.path(""), limits()).unwrap();
    let source = source.with_workers(workers);
    let entries = source.list().entries;
    let outcome = |entry: &docent_ingest::FileEntry| (entry.path().to_owned(), source.read(entry));
    entries.iter().map(outcome).collect()
}

/// The text of all documents of a file.
fn shown(reading: &FileReadOutcome) -> String {
    let document = |document: &docent_ingest::ParsedDocument| {
        format!(
            "{}\n{}\n{:?}\n",
            document.title, document.text, document.fields
        )
    };
    reading.documents.iter().map(document).collect()
}

fn check(
    package: &Package,
    mutant: &Mutant,
    outcome: &Result<FileReadOutcome, IngestError>,
) -> Result<(), String> {
    let reading = match outcome {
        Ok(reading) => reading,
        Err(reason) => return check_reason(mutant, reason),
    };
    check_bounds(reading)?;
    let text = shown(reading);
    if text.contains(SECRET) || text.contains("root:x:0") {
        return Err("it shows a file from outside".to_owned());
    }
    if text.contains("lollol") {
        return Err("it expands entities".to_owned());
    }
    let is_reported = !reading.skipped.is_empty() || !reading.warnings.is_empty();
    if reading.documents.is_empty() && !is_reported {
        return Err("nothing came out, and nothing was reported".to_owned());
    }
    let mut missing = untouched(package, mutant);
    missing.retain(|word| !text.contains(word));
    if !missing.is_empty() && !is_reported {
        return Err(format!(
            "{missing:?} were lost, and nothing was reported: {text:?}"
        ));
    }
    Ok(())
}

/// Asserts the error code. A crashed child is our fault, whatever the file is.
fn check_reason(mutant: &Mutant, reason: &IngestError) -> Result<(), String> {
    match reason.code() {
        "damaged" | "too-much-inside" | "encrypted" | "unsupported" | "text-too-long" => Ok(()),
        "empty" if mutant.part.is_none() => Ok(()),
        code => Err(format!("{code}: {reason}")),
    }
}

fn check_bounds(reading: &FileReadOutcome) -> Result<(), String> {
    let limits = limits();
    let holds = reading.documents.len() <= limits.max_records + 2
        && reading.skipped.len() <= limits.max_reported + 1
        && reading.warnings.len() <= limits.max_reported + 1
        && reading.documents.iter().all(|document| {
            document.check().is_ok()
                && document.text.chars().count() <= limits.max_text_chars
                && document.title.chars().count() <= limits.max_title_chars
                && document.fields.len() <= limits.max_fields
                && clean(&document.text) == document.text
        });
    holds
        .then_some(())
        .ok_or_else(|| "more than its bounds".to_owned())
}

/// Words of parts that were not mutated: each must appear, or the report must say that something was lost.
///
/// A part that lists other parts decides what belongs to the document, so losing what it no longer lists is
/// right.
fn untouched(package: &Package, mutant: &Mutant) -> Vec<&'static str> {
    let Some(part) = mutant.part.as_deref() else {
        return Vec::new();
    };
    match (package.extension, part) {
        ("docx", "word/document.xml") => FOOTNOTE_WORDS.to_vec(),
        ("docx", "word/footnotes.xml" | "word/endnotes.xml" | "word/_rels/document.xml.rels") => {
            BODY_WORDS.to_vec()
        }
        ("docx", "word/styles.xml" | "word/numbering.xml" | "docProps/core.xml") => {
            [BODY_WORDS, FOOTNOTE_WORDS].concat()
        }
        ("xlsx", "xl/worksheets/sheet1.xml" | "xl/sharedStrings.xml") => {
            SECOND_SHEET_WORDS.to_vec()
        }
        ("xlsx", "xl/worksheets/sheet2.xml") => FIRST_SHEET_WORDS.to_vec(),
        ("xlsx", "xl/styles.xml") => [FIRST_SHEET_WORDS, SECOND_SHEET_WORDS].concat(),
        _ => Vec::new(),
    }
}
