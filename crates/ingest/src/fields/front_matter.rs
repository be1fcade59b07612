//! Front matter parser for Markdown: YAML between `---` lines or TOML between `+++` lines.

mod bare_header;
mod export_block;
mod unread;

use docent_unicode::truncate_bytes;
use serde_json::{Map, Value as Raw};

use crate::error::IngestError;
use crate::limits::Limits;
use crate::reader_field::{ReaderFault, ReaderField, ReaderKeys};

pub(crate) use unread::{unread, unread_behind, unread_in_code, unread_in_data};

/// The result of looking for front matter at the start of a text.
pub(crate) enum FrontMatter<'a> {
    /// The text begins without any front matter.
    Absent,
    /// The parsed keys, and the text after the closing fence.
    Present(Map<String, Raw>, &'a str),
    /// Front matter with a duplicate key, while access control is configured: which of the two values counts
    /// cannot be known.
    DuplicateKeys(Map<String, Raw>, &'a str, IngestError),
    /// Text that was meant as front matter and cannot be parsed.
    Malformed(IngestError),
}

/// Parses the front matter of a cleaned text.
pub(crate) fn read<'a>(text: &'a str, limits: &Limits, readers: &ReaderKeys) -> FrontMatter<'a> {
    let limit = limits.max_front_matter_bytes;
    for (fence, ends, language) in [
        ("---", &["---", "..."][..], "YAML"),
        ("+++", &["+++"], "TOML"),
    ] {
        let Some((first, after)) = text.split_once('\n') else {
            continue;
        };
        if first.trim_end() != fence {
            continue;
        }
        let Some((block, body)) = split_at_fence(after, ends, limit) else {
            let is_intended =
                looks_like_keys(after) || readers.appears_in(truncate_bytes(after, limit));
            if is_intended {
                return FrontMatter::Malformed(IngestError::FrontMatterTooLong { limit });
            }
            break;
        };
        // Two thematic breaks with prose between them are not front matter.
        if !block.trim().is_empty() && !looks_like_keys(block) && !readers.appears_in(block) {
            break;
        }
        let broken = |line: Option<u64>| IngestError::FrontMatter {
            language: language.into(),
            // The opening fence is line 1 of the file.
            line: line.map(|line| line + 1),
        };
        let keys = if language == "YAML" {
            yaml(block, OnDuplicateKey::FirstWins)
        } else {
            toml(block)
        };
        let body = body.trim_start_matches('\n');
        return match keys {
            Ok(keys) if readers.is_configured() && language == "YAML" => {
                match yaml(block, OnDuplicateKey::Refuse) {
                    Ok(_) => FrontMatter::Present(keys, body),
                    Err(line) => FrontMatter::DuplicateKeys(keys, body, broken(line)),
                }
            }
            Ok(keys) => FrontMatter::Present(keys, body),
            Err(line) => FrontMatter::Malformed(broken(line)),
        };
    }
    match unread(text, readers) {
        ReaderField::Absent => FrontMatter::Absent,
        _ => FrontMatter::Malformed(IngestError::FrontMatterPlace),
    }
}

/// The access control field in the front matter of a text that is not a document of its own, such as the
/// first cell of a notebook.
pub(crate) fn readers_of(text: &str, limits: &Limits, readers: &ReaderKeys) -> ReaderField {
    if !readers.is_configured() {
        return ReaderField::Absent;
    }
    match read(text, limits, readers) {
        FrontMatter::Absent => ReaderField::Absent,
        FrontMatter::Present(mut keys, body) => match take_readers(&mut keys, readers) {
            ReaderField::Absent => unread_behind(body, readers),
            field => field,
        },
        FrontMatter::DuplicateKeys(..) | FrontMatter::Malformed(_) => {
            ReaderField::Malformed(ReaderFault::FrontMatter)
        }
    }
}

/// Removes the access control field from the parsed keys. A field nested inside another key is rejected as
/// misplaced.
pub(crate) fn take_readers(keys: &mut Map<String, Raw>, readers: &ReaderKeys) -> ReaderField {
    if readers.is_configured() {
        let json = serde_json::to_string(keys).unwrap_or_default();
        readers.mark_unread(&json, keys);
    }
    readers.take(keys)
}

/// How duplicate keys in YAML are handled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnDuplicateKey {
    /// A duplicate key should not cost the document all its other keys.
    FirstWins,
    Refuse,
}

/// Splits a text at the first line that equals one of `ends`, if there is one within `limit` bytes.
fn split_at_fence<'a>(text: &'a str, ends: &[&str], limit: usize) -> Option<(&'a str, &'a str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at > limit {
            return None;
        }
        if ends.contains(&line.trim_end()) {
            return Some((text.get(..at)?, text.get(at + line.len()..)?));
        }
        at += line.len();
    }
    None
}

fn looks_like_keys(block: &str) -> bool {
    let is_content = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let first = block.lines().map(str::trim).find(is_content);
    // A block of nothing but comments consists of keys that were commented out.
    first.is_none_or(|line| line.contains([':', '=', '{']) || line.starts_with('['))
}

/// Parses YAML; fails with the line of the block at which parsing stopped.
fn yaml(block: &str, on_repeat: OnDuplicateKey) -> Result<Map<String, Raw>, Option<u64>> {
    // A resource budget against YAML bombs. A block has at most 64 KiB by default, so these limits are far
    // above any real front matter. Each use of an alias counts, also when aliases are nested.
    let budget = serde_saphyr::budget! {
        max_nodes: 20_000,
        max_events: 60_000,
        max_depth: 32,
        flow_nesting_limit: 32,
        max_aliases: 256,
        max_anchors: 256,
        max_total_scalar_bytes: 1024 * 1024,
    };
    let options = serde_saphyr::options! {
        budget: budget,
        duplicate_keys: match on_repeat {
            OnDuplicateKey::FirstWins => serde_saphyr::DuplicateKeyPolicy::FirstWins,
            OnDuplicateKey::Refuse => serde_saphyr::DuplicateKeyPolicy::Error,
        },
        // The Norway problem: `NO` and `on` stay strings; only `true` and `false` are booleans.
        strict_booleans: true,
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
        // Error messages must not leak text of a document into logs.
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options(block, options) {
        Ok(Raw::Object(map)) => Ok(map),
        Ok(Raw::Null) => Ok(Map::new()),
        Ok(_) => Err(None),
        Err(error) => Err(error.location().map(|location| location.line())),
    }
}

fn toml(block: &str) -> Result<Map<String, Raw>, Option<u64>> {
    let line = |error: &toml::de::Error| {
        let before = block.get(..error.span()?.start)?;
        u64::try_from(before.matches('\n').count() + 1).ok()
    };
    let table: toml::Table = block.parse().map_err(|error| line(&error))?;
    Ok(table
        .into_iter()
        .map(|(key, value)| (key, from_toml(value)))
        .collect())
}

/// Converts TOML to JSON. Recursion is safe: the parser has rejected deep nesting already.
fn from_toml(value: toml::Value) -> Raw {
    match value {
        toml::Value::String(text) => Raw::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(moment) => Raw::String(moment.to_string()),
        toml::Value::Array(values) => values.into_iter().map(from_toml).collect(),
        toml::Value::Table(table) => Raw::Object(
            table
                .into_iter()
                .map(|(key, value)| (key, from_toml(value)))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str, limits: &Limits) -> String {
        match read(text, limits, &ReaderKeys::default()) {
            FrontMatter::Absent => "plain".to_owned(),
            FrontMatter::Present(keys, body) => format!("{} | {body}", Raw::Object(keys)),
            FrontMatter::DuplicateKeys(_, _, reason) | FrontMatter::Malformed(reason) => {
                format!("{}: {reason}", reason.code())
            }
        }
    }

    fn check(text: &str, expect: &str) {
        assert_eq!(show(text, &Limits::default()), expect, "{text:?}");
    }

    #[test]
    fn yaml_is_read() {
        check(
            "---\na: 1\nb: [x, \"y: z\"]\nc: {d: true}\n---\n\nBody\n",
            "{\"a\":1,\"b\":[\"x\",\"y: z\"],\"c\":{\"d\":true}} | Body\n",
        );
        check(
            "---\nday: 2024-03-12\ncountry: NO\nzip: \"007\"\n...\nx",
            r#"{"day":"2024-03-12","country":"NO","zip":"007"} | x"#,
        );
        check("---\n---\nx", "{} | x");
        check("---\n# off: 1\n---\nx", "{} | x");
        check("---  \na: 1\na: 2\n1: b\n---", r#"{"a":1,"1":"b"} | "#);
        check(
            "---\na: &x [p]\nb: *x\n---\n",
            r#"{"a":["p"],"b":["p"]} | "#,
        );
        // A merged key (`<<`) counts like any other, for access control as well.
        check(
            "---\nbase: &b {k: 1}\n<<: *b\n---\n",
            r#"{"base":{"k":1},"k":1} | "#,
        );
        check(
            "---\nn: .nan\nh: 1e999\nbig: 123456789012345678901\n---\n",
            r#"{"n":".nan","h":".inf","big":1.2345678901234568e+20} | "#,
        );
    }

    #[test]
    fn toml_is_read_in_order() {
        check(
            "+++\nz = 1\na = 2024-03-12\nt = 2024-03-12T10:00:00Z\nf = 1.5\n[m]\nk = [true]\n+++\nx",
            r#"{"z":1,"a":"2024-03-12","t":"2024-03-12T10:00:00Z","f":1.5,"m":{"k":[true]}} | x"#,
        );
        check(
            "+++\na = \n+++\nx",
            "bad-front-matter: the front matter is not valid TOML, at line 2",
        );
    }

    #[test]
    fn rules_and_prose_are_no_front_matter() {
        check("# Title\n", "plain");
        check("---", "plain");
        check("---\nprose\n---\nmore", "plain");
        check("---\nprose without end", "plain");
        check("----\na: 1\n---\n", "plain");
        check("\n---\na: 1\n---\n", "plain");
    }

    #[test]
    fn broken_blocks_name_the_line_and_nothing_of_the_text() {
        check(
            "---\nok: 1\ntitle: a: b\n---\nx",
            "bad-front-matter: the front matter is not valid YAML, at line 3",
        );
        check(
            "---\n- a: 1\n---\nx",
            "bad-front-matter: the front matter is not valid YAML",
        );
        check(
            "---\na: 1\nno end",
            "front-matter-too-long: the front matter has no closing line within 65536 bytes",
        );
    }

    #[test]
    fn the_block_ends_at_its_bound() {
        let limits = Limits {
            max_front_matter_bytes: 5,
            ..Limits::default()
        };
        assert_eq!(show("---\na: 1\n---\nx", &limits), r#"{"a":1} | x"#);
        assert!(show("---\na: 12\n---\nx", &limits).starts_with("front-matter-too-long"));
    }

    #[test]
    fn bombs_end_early() {
        let mut bomb = String::from("---\na0: &a0 [x,x,x,x,x,x,x,x,x]\n");
        for n in 1..12 {
            let below = format!("*a{},", n - 1).repeat(9);
            bomb.push_str(&format!("a{n}: &a{n} [{below}]\n"));
        }
        bomb.push_str("---\n");
        assert!(show(&bomb, &Limits::default()).starts_with("bad-front-matter"));
        let wide = format!(
            "---\na: &a {}\nb: [{}]\n---\n",
            "x".repeat(60_000),
            "*a,".repeat(200)
        );
        assert!(show(&wide, &Limits::default()).starts_with("bad-front-matter"));
        let deep = format!("---\na: {}\n---\n", "[".repeat(20_000));
        assert!(show(&deep, &Limits::default()).starts_with("bad-front-matter"));
        let deep_toml = format!("+++\na = {}\n+++\n", "[".repeat(20_000));
        assert!(show(&deep_toml, &Limits::default()).starts_with("bad-front-matter"));
        let dotted = format!("+++\n{}a = 1\n+++\n", "a.".repeat(20_000));
        assert!(show(&dotted, &Limits::default()).starts_with("bad-front-matter"));
    }
}
