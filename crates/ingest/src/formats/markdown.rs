//! Markdown parser: one file becomes one document. The text stays Markdown, which people and models read
//! equally well; front matter is taken out and becomes title, date, URL and fields.

use docent_search::DocumentValue;
use serde_json::{Map, Value as Raw};

use crate::clean::{clean_line, truncate_chars};
use crate::dates;
use crate::decoding::decode_clean;
use crate::error::IngestError;
use crate::exports::{notion, obsidian};
use crate::fields::front_matter::{FrontMatter, read, take_readers, unread_behind};
use crate::fields::list_syntax::ListSyntax;
use crate::fields::metadata::{ExtractedMetadata, KeyMapping, extract_metadata};
use crate::formats::file_format::{FileFormat, no_signature};
use crate::limits::Limits;
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::{self, ReaderFault, ReaderField, ReaderKeys};
use crate::records::notion_table::NO_PROPERTY;
use crate::single_document::build_document;

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "markdown",
    kind: "markdown",
    extensions: &["md", "markdown", "mdown", "mkd", "mdx"],
    has_signature: no_signature,
    parse,
    stream: None,
    is_trusted: true,
    kind_inside: None,
    packages: &[],
};

const KEYS: KeyMapping = KeyMapping {
    title: &["title"],
    text: &[],
    url: &["url", "link", "canonical"],
};

/// Keys under which a note may state its creation date, used where `date` is missing.
const CREATED_KEYS: &[&str] = &[
    "created",
    "created at",
    "created_at",
    "created time",
    "date created",
    "creation date",
    "published",
];

fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    let text = decode_clean(input.bytes, input.limits.max_text_chars)?;
    let readers = ReaderKeys::for_input(input);
    let (mut metadata, body) = match read(&text, input.limits, &readers) {
        FrontMatter::Absent => metadata_without_front_matter(input, &text, &readers),
        FrontMatter::Present(keys, body) => {
            let mut metadata = metadata_from_keys(keys, input);
            if metadata.readers == ReaderField::Absent
                && unread_behind(body, &readers) != ReaderField::Absent
            {
                metadata.mark_readers_malformed(&readers);
                metadata.warnings.push(IngestError::FrontMatterPlace);
            }
            (metadata, body)
        }
        FrontMatter::DuplicateKeys(keys, body, reason) => {
            let mut metadata = metadata_from_keys(keys, input);
            metadata.mark_readers_malformed(&readers);
            metadata.warnings.push(reason);
            (metadata, body)
        }
        FrontMatter::Malformed(reason) => {
            let mut metadata = ExtractedMetadata {
                warnings: vec![reason],
                ..ExtractedMetadata::default()
            };
            metadata.mark_readers_malformed(&readers);
            (metadata, text.as_str())
        }
    };
    let is_restricted = input.folder_context.is_restricted_page && readers.is_configured();
    if is_restricted && metadata.readers == ReaderField::Absent {
        metadata.readers = ReaderField::Malformed(NO_PROPERTY);
    }
    if metadata.title.is_none() {
        metadata.title = title_heading(body, input.limits.max_title_chars);
    }
    add_links_and_tags(
        &mut metadata,
        body,
        input.folder_context.vault,
        input.limits,
    );
    metadata.date = metadata.date.take().or_else(|| creation_date(&metadata));
    build_document(input, body.to_owned(), metadata)
}

fn metadata_from_keys(mut keys: Map<String, Raw>, input: &ParserInput<'_>) -> ExtractedMetadata {
    let readers = take_readers(&mut keys, &ReaderKeys::for_input(input));
    ExtractedMetadata {
        readers,
        ..extract_metadata(split_list_values(keys), &KEYS, input)
    }
}

/// Metadata of a text without front matter. For a page exported from Notion it comes from the property
/// lines that Notion writes below the heading.
fn metadata_without_front_matter<'t>(
    input: &ParserInput<'_>,
    text: &'t str,
    readers: &ReaderKeys,
) -> (ExtractedMetadata, &'t str) {
    let title = first_heading(text, input.limits.max_title_chars);
    let address = notion::page_url(input.stem, title.as_deref().unwrap_or_default());
    let mut properties = match &address {
        Some(_) => notion::properties(text),
        None => Map::new(),
    };
    // The reader field of a Notion export is looked for in the file's properties whatever its heading says,
    // so that an edited heading cannot switch the permission off.
    if notion::name_and_id(input.stem).is_some() && readers.is_configured() {
        properties.retain(|name, _| !readers.covers_key(name));
        let lines = notion::reader_lines(text, readers);
        for (name, value) in lines.named {
            reader_field::insert_keeping_duplicates(&mut properties, &name, Raw::String(value));
        }
        if lines.is_doubtful {
            readers.mark(&mut properties, ReaderFault::Misplaced);
        }
    }
    let mut metadata = extract_metadata(properties, &KEYS, input);
    if let Some(address) = address {
        metadata.title = title;
        metadata.url.get_or_insert(address);
    }
    (metadata, text)
}

/// Splits values of list-like keys such as `tags` that are written in one line with commas.
fn split_list_values(mut keys: Map<String, Raw>) -> Map<String, Raw> {
    for (name, value) in &mut keys {
        if let Raw::String(text) = value
            && let Some(list) = ListSyntax::infer_syntax(name, &[text.as_str()])
                .and_then(|syntax| syntax.parse_list(text))
        {
            *value = list;
        }
    }
    keys
}

/// Adds the `links` field (the notes that a note links to) and, in an Obsidian vault, merges the `#tags` of
/// the text into the tags of the front matter.
fn add_links_and_tags(
    metadata: &mut ExtractedMetadata,
    body: &str,
    in_vault: bool,
    limits: &Limits,
) {
    let found = obsidian::extract_links_and_tags(body, limits.max_list_values);
    let named = |metadata: &ExtractedMetadata, name: &str| {
        let known = metadata.fields.iter();
        known
            .map(|(known, _)| known)
            .position(|known| known.eq_ignore_ascii_case(name))
    };
    let room = |metadata: &ExtractedMetadata| metadata.fields.len() < limits.max_fields;
    if !found.links.is_empty() && named(metadata, "links").is_none() && room(metadata) {
        let links = DocumentValue::List(found.links);
        metadata.fields.push(("links".to_owned(), links));
    }
    if !in_vault {
        return;
    }
    let at = named(metadata, "tags");
    let mut tags = Vec::new();
    let mut keep = |tag: &str| {
        let tag = tag.trim().trim_start_matches('#');
        if !tag.is_empty() {
            obsidian::push_unique(&mut tags, tag, limits.max_list_values);
        }
    };
    match at
        .and_then(|at| metadata.fields.get(at))
        .map(|(_, value)| value)
    {
        Some(DocumentValue::List(list)) => list.iter().for_each(|tag| keep(tag)),
        // Obsidian accepts tags separated by blanks as well as by commas.
        Some(DocumentValue::Text(text)) => text.split([',', ' ']).for_each(&mut keep),
        _ => {}
    }
    found.tags.iter().for_each(|tag| keep(tag));
    if tags.is_empty() {
        return;
    }
    let tags = DocumentValue::List(tags);
    if let Some((_, value)) = at.and_then(|at| metadata.fields.get_mut(at)) {
        *value = tags;
    } else if room(metadata) {
        metadata.fields.push(("tags".to_owned(), tags));
    }
}

fn creation_date(metadata: &ExtractedMetadata) -> Option<String> {
    CREATED_KEYS.iter().find_map(|name| {
        let mut fields = metadata.fields.iter();
        let (_, value) = fields.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        match value {
            DocumentValue::Date(day) => Some(day.clone()),
            DocumentValue::Text(text) => dates::parse_date(text),
            _ => None,
        }
    })
}

/// The text of the first level-one heading, `# so` or underlined with `=`, that is not inside code.
pub(crate) fn first_heading(body: &str, max_chars: usize) -> Option<String> {
    let mut found = None;
    visit_headings(body, max_chars, |level, words| {
        found = (level == 1).then_some(words);
        found.is_none()
    });
    found
}

/// The heading that serves as title: the first of level one, else the first of any level. Many texts begin with `##`,
/// because the page that shows them has a heading of its own.
fn title_heading(body: &str, max_chars: usize) -> Option<String> {
    let mut found: Option<String> = None;
    visit_headings(body, max_chars, |level, words| {
        if level == 1 || found.is_none() {
            found = Some(words);
        }
        level != 1
    });
    found
}

/// Calls `visit` with the level and the text of each heading that is not inside code, until it returns false.
fn visit_headings(body: &str, max_chars: usize, mut visit: impl FnMut(usize, String) -> bool) {
    let mut fence: Option<&str> = None;
    // The line above, and whether it is the only one of its paragraph.
    let (mut above, mut is_alone) = ("", true);
    for line in body.lines() {
        let shown = line.trim();
        if let Some(open) = fence {
            if shown.starts_with(open) && shown.trim_start_matches(open).is_empty() {
                fence = None;
            }
            continue;
        }
        fence = ["```", "~~~"]
            .into_iter()
            .find(|fence| shown.starts_with(fence));
        let is_indented = line.starts_with("    ") || line.starts_with('\t');
        let heading = match heading_marked_by_signs(shown) {
            _ if is_indented => None,
            None => heading_marked_by_line(shown, above, is_alone),
            found => found,
        };
        if let Some((level, words)) = heading {
            // Markup and link targets are removed later, so read more than is kept; but cap it, since a line
            // may hold a million brackets.
            let words: String = words.chars().take(max_chars.saturating_mul(4)).collect();
            let mut words = plain_words(&words);
            truncate_chars(&mut words, max_chars);
            if !words.is_empty() && !visit(level, words) {
                return;
            }
        }
        is_alone = above.is_empty();
        above = if fence.is_some() || is_indented {
            ""
        } else {
            shown
        };
    }
}

/// The level and the text of a heading such as `## Fares ##`.
fn heading_marked_by_signs(line: &str) -> Option<(usize, &str)> {
    let words = line.trim_start_matches('#');
    let level = line.len() - words.len();
    let words = words.strip_prefix(' ')?.trim_end_matches('#');
    (1..=6).contains(&level).then_some((level, words))
}

/// The level and the text of a heading that `line` underlines, with `=` for the first level and `-` for the second.
///
/// Dashes have other meanings too: they end front matter, which may be too damaged to be read as such, and stand
/// between paragraphs and below the header of a table. So there have to be three, below a line of plain text that is
/// alone and no item of a list.
fn heading_marked_by_line<'t>(
    line: &str,
    above: &'t str,
    is_alone: bool,
) -> Option<(usize, &'t str)> {
    let is_made_of = |sign: u8| !line.is_empty() && line.bytes().all(|byte| byte == sign);
    if is_made_of(b'=') {
        return Some((1, above));
    }
    let digits = above.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_item = digits.len() < above.len() && digits.starts_with(['.', ')']);
    let is_plain = above.starts_with(char::is_alphanumeric) && !above.contains('|') && !is_item;
    (is_made_of(b'-') && line.len() >= 3 && is_alone && is_plain).then_some((2, above))
}

/// Strips emphasis, code marks and link targets from a heading.
fn plain_words(markdown: &str) -> String {
    let mut out = String::new();
    let mut rest = markdown;
    while let Some(at) = rest.find(['[', '*', '`']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let link = from
            .strip_prefix('[')
            .and_then(|from| from.split_once("]("));
        match link.and_then(|(words, target)| Some((words, target.split_once(')')?.1))) {
            Some((words, after)) => {
                out.extend(words.chars().filter(|c| !"*`".contains(*c)));
                rest = after;
            }
            None => {
                if from.starts_with('[') {
                    out.push('[');
                }
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    clean_line(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expect: Option<&str>) {
        assert_eq!(first_heading(body, 20).as_deref(), expect, "{body:?}");
    }

    #[test]
    fn the_first_heading_is_found() {
        check("text\n\n# Rail *link* ##\n# Other", Some("Rail link"));
        check("## Second\n\nRail link\n=========\n", Some("Rail link"));
        check("   # Indented a little", Some("Indented a little"));
        check("# \n# Next", Some("Next"));
        check("# [The `plan`](http://a.example) [x]", Some("The plan [x]"));
        check("no heading\n## second\n#tag", None);
        check("\n===", None);
    }

    fn check_title(body: &str, expect: Option<&str>) {
        assert_eq!(title_heading(body, 20).as_deref(), expect, "{body:?}");
    }

    #[test]
    fn a_lower_heading_is_the_title_of_a_text_without_a_higher_one() {
        check_title("text\n\n## Fares ##\n\n### Children", Some("Fares"));
        check_title("### Fares\n## Times", Some("Fares"));
        check_title("## Second\n# First\n# Other", Some("First"));
        check_title("## Second\n\nFirst\n=====\n", Some("First"));
        check_title("Fares\n-----\n\n## Times", Some("Fares"));
        check_title("####### Seven", None);
        check_title("##fares", None);
        check_title("```\n## comment\n```\n    ## code\n", None);
    }

    #[test]
    fn dashes_below_other_things_make_no_title() {
        check_title("---\ntitle: [x\n---\nwords", None);
        check_title("one\ntwo\n---\n", None);
        check_title("- item\n---\n", None);
        check_title("1. item\n---\n", None);
        check_title("Anna\n--\n", None);
        check_title("> quote\n---\n", None);
        check_title("a | b\n-----\n", None);
        check_title("words\n\n---\n", None);
        check_title("```\ncode\n```\n---\n", None);
    }

    #[test]
    fn code_is_no_heading() {
        check("```sh\n# comment\n```\n# Real", Some("Real"));
        check("~~~\n```\n# comment\n~~~\n# Real", Some("Real"));
        check("    # code\n# Real", Some("Real"));
        check("```\n# never closed", None);
        check("a\n```\n===\n```\n", None);
    }

    #[test]
    fn headings_end_at_their_bound() {
        let exact = "a".repeat(20);
        check(&format!("# {exact}"), Some(&exact));
        check(&format!("# {exact}b"), Some(&exact));
    }

    #[test]
    fn a_line_of_brackets_is_read_in_good_time() {
        let line = format!("# {}", "[".repeat(200_000));
        assert_eq!(first_heading(&line, 20).map(|words| words.len()), Some(20));
    }
}
