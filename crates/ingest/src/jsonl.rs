//! Files of records, one JSON object a line, into one document a record. A bad line costs only itself.

use docent_search::{DocId, Document, Error};
use serde_json::{Map, Value as Raw};

use crate::clean::{clean, cut};
use crate::digest::sha256;
use crate::entry::shorten;
use crate::error::{Reason, Skipped, Warning};
use crate::fields::{Facts, Keys, facts, take};
use crate::format::{Format, Input, Parsed, begins_with_anything};
use crate::report::{Problem as _, Reported};
use crate::text::{characters, is_utf16, title_from_name};

pub(crate) const FORMAT: Format = Format {
    name: "jsonl",
    extensions: &["jsonl", "ndjson"],
    begins: begins_with_anything,
    parse,
};

const KEYS: Keys = Keys {
    title: &["title", "name", "subject"],
    text: &["text", "content", "body"],
    url: &["url", "link"],
};

fn parse(input: &Input<'_>) -> Result<Parsed, Reason> {
    // JSON is UTF-8, so a line in another encoding is a bad line; only the mark of UTF-16 is believed.
    let utf16 = if is_utf16(input.bytes) {
        Some(characters(input.bytes)?)
    } else {
        None
    };
    let bytes = utf16.as_ref().map_or(input.bytes, |text| text.as_bytes());
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut documents = Vec::new();
    let mut skipped = Reported::new(input.limits.max_reported);
    let mut warnings = Reported::new(input.limits.max_reported);
    let mut records = 0;
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        records += 1;
        if records > input.limits.max_records {
            let limit = input.limits.max_records;
            skipped.push(Skipped::new(
                input.path,
                Some(number),
                Reason::TooManyRecords { limit },
            ));
            break;
        }
        match record(input, number, line) {
            Ok((document, reasons)) => {
                documents.push(document);
                for reason in reasons {
                    warnings.push(Warning::new(input.path, Some(number), reason));
                }
            }
            Err(reason) => skipped.push(Skipped::new(input.path, Some(number), reason)),
        }
    }
    if records == 0 {
        return Err(Reason::Empty);
    }
    let (skipped, warnings) = (skipped.finish(input.path), warnings.finish(input.path));
    Ok(Parsed {
        documents,
        skipped,
        warnings,
    })
}

fn record(input: &Input<'_>, number: u64, line: &[u8]) -> Result<(Document, Vec<Reason>), Reason> {
    let mut map = object(line, input.limits.max_line_bytes)?;
    let own_id = own_id(&mut map)?;
    let mut facts = facts(map, &KEYS, input.limits);
    if facts.title.is_none() && facts.text.is_none() && facts.fields.is_empty() {
        return Err(Reason::Empty);
    }
    let title = facts
        .title
        .take()
        .unwrap_or_else(|| title(input, &facts, own_id.as_ref(), number));
    let text = facts.text.take().unwrap_or_else(|| text_of_fields(&facts));
    let limit = input.limits.max_text_chars;
    if text.chars().nth(limit).is_some() {
        return Err(Reason::TextTooLong { limit });
    }
    let id = match own_id {
        Some(id) => id,
        None => document_id(&shorten(format!("{}#L{number}", input.id)))?,
    };
    let document = Document {
        id,
        title,
        text,
        url: facts.url,
        date: facts.date,
        fields: facts.fields,
        source: input.path.to_owned(),
        hash: sha256(line),
    };
    Ok((document, facts.warnings))
}

fn object(line: &[u8], limit: usize) -> Result<Map<String, Raw>, Reason> {
    if line.len() > limit {
        return Err(Reason::LineTooLong { limit });
    }
    // The parser itself refuses more than 128 levels.
    match serde_json::from_slice(line) {
        Ok(Raw::Object(map)) => Ok(map),
        Ok(_) => Err(Reason::NotAnObject),
        Err(error) => Err(Reason::BadJson {
            column: error.column(),
        }),
    }
}

/// The record's own id. It must come back from a client exactly as it went out, so it is taken as it is
/// or not at all.
fn own_id(map: &mut Map<String, Raw>) -> Result<Option<DocId>, Reason> {
    let text = match take(map, &["id"], |raw| Some(raw.clone())) {
        None | Some(Raw::Null) => return Ok(None),
        Some(Raw::String(text)) => text,
        // Beyond this many digits two numbers can be read as the same one.
        Some(Raw::Number(number))
            if number.is_f64() && number.as_f64().is_none_or(|n| n.abs() >= 9e15) =>
        {
            return Err(bad_id("it is too large a number to be exact"));
        }
        Some(Raw::Number(number)) => number.to_string(),
        Some(_) => return Err(bad_id("it is neither text nor a number")),
    };
    if clean(&text) != text {
        return Err(bad_id("it holds a control or invisible character"));
    }
    if names_a_page(&text) {
        return Err(bad_id("it ends like the id of a continuation page"));
    }
    document_id(&text).map(Some)
}

fn document_id(text: &str) -> Result<DocId, Reason> {
    DocId::parse(text).map_err(|error| match error {
        Error::Id { reason } => bad_id(reason),
        other => bad_id(&other.to_string()),
    })
}

fn bad_id(why: &str) -> Reason {
    Reason::BadId {
        why: why.to_owned(),
    }
}

/// Long documents are read page by page under `<id>#p2` and so on, so no document may be called that.
pub(crate) fn names_a_page(id: &str) -> bool {
    let digits = |tail: &str| !tail.is_empty() && tail.bytes().all(|byte| byte.is_ascii_digit());
    id.rsplit_once("#p").is_some_and(|(_, tail)| digits(tail))
}

/// A record with a text needs no title of our making. One without is named after its file and which
/// record it is.
fn title(input: &Input<'_>, facts: &Facts, id: Option<&DocId>, number: u64) -> String {
    let mut title = match (&facts.text, id) {
        (Some(_), _) => String::new(),
        (None, Some(id)) => format!("{} {id}", title_from_name(input)),
        (None, None) => format!("{}, line {number}", title_from_name(input)),
    };
    cut(&mut title, input.limits.max_title_chars);
    title
}

/// A record without a text is read as the list of its fields.
fn text_of_fields(facts: &Facts) -> String {
    facts
        .fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn parsed(bytes: &[u8], limits: &Limits) -> Result<Parsed, Reason> {
        let input = Input {
            id: "r.jsonl",
            path: "r.jsonl",
            stem: "hull_records",
            bytes,
            sha256: "",
            limits,
        };
        parse(&input)
    }

    /// `id|title|text` for a document, `line:code` for a skipped line.
    fn show(bytes: &[u8], limits: &Limits) -> Vec<String> {
        let parsed = match parsed(bytes, limits) {
            Ok(parsed) => parsed,
            Err(reason) => return vec![reason.code().to_owned()],
        };
        let documents = parsed
            .documents
            .iter()
            .map(|d| format!("{}|{}|{}", d.id, d.title, d.text));
        let problem =
            |line: Option<u64>, reason: &Reason| format!("{}:{}", line.unwrap_or(0), reason.code());
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
            &["r.jsonl#L3|T|x"],
        );
        check(r#"{"id":null,"title":"T","text":"x"}"#, &["r.jsonl#L1|T|x"]);
        check(r#"{"id":"a#p","title":"T","text":"x"}"#, &["a#p|T|x"]);
    }

    #[test]
    fn ids_that_cannot_be_used_cost_their_record() {
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
                &format!("{{\"id\":{id},\"text\":\"x\"}}\n{{\"id\":1,\"text\":\"y\"}}"),
                &["1||y", "1:bad-id"],
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
                "3||y",
                "2:bad-json",
                "3:not-an-object",
                "4:not-an-object",
                "5:empty",
                "6:empty",
            ],
        );
        let bytes = b"{\"id\":1,\"text\":\"\xFF\"}\n{\"id\":2,\"text\":\"y\"}";
        assert_eq!(show(bytes, &Limits::default()), ["2||y", "1:bad-json"]);
        let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
        check(&deep, &["1:bad-json"]);
        check("", &["empty"]);
        check("\n\n", &["empty"]);
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
            &["r.jsonl#L1|Hull records, line 1|make: Orrin\n"],
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
        let two = "{\"id\":1,\"text\":\"a\",\"f\":\"xx\"}\n".repeat(2);
        assert_eq!(with(cut, &two), ["1||a", "1||a", "1:cut", "0:more"]);
        let title = Limits {
            max_title_chars: 1,
            ..Limits::default()
        };
        assert_eq!(with(title, line), ["1||xx"]);
    }

    #[test]
    fn the_hash_is_that_of_the_record() {
        let line = br#"{"id":1,"text":"x"}"#;
        let documents = parsed(line, &Limits::default()).unwrap().documents;
        assert_eq!(documents[0].hash, sha256(line));
    }
}
