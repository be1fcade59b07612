//! `<meta name="allowed">` where no browser sees an element: in `<noscript>`, behind a `<title>` that is never
//! closed, in a comment. More of them in the text of a page than among its elements mean that one is not read.

use crate::reader_field::ReaderKeys;

use super::head::NAMING;

/// Bytes of one tag, and of one value in it, that are looked at.
const MAX_TAG_BYTES: usize = 4 * 1024;
const MAX_VALUE_BYTES: usize = 512;

/// How many tags in a text are `meta` elements that name readers, wherever they stand.
pub(super) fn count(text: &str, readers: &ReaderKeys) -> usize {
    let starts = text.match_indices('<');
    let tags = starts.filter_map(|(at, _)| meta(text.get(at + 1..)?));
    tags.filter(|tag| names_readers(tag, readers)).count()
}

/// What follows the name of a `meta` element, up to its end or the start of another.
fn meta(text: &str) -> Option<&str> {
    let (name, rest) = text.split_at_checked("meta".len())?;
    let is_meta = name.eq_ignore_ascii_case("meta")
        && rest.starts_with(|c: char| c.is_whitespace() || c == '/');
    let rest = beginning(rest, MAX_TAG_BYTES);
    is_meta.then(|| rest.split(['>', '<']).next().unwrap_or(rest))
}

fn names_readers(tag: &str, readers: &ReaderKeys) -> bool {
    tag.match_indices('=').any(|(at, _)| {
        let (before, after) = tag.split_at(at);
        let before = before.trim_end().as_bytes();
        let is_naming = NAMING.iter().any(|name| {
            let start = before.len().checked_sub(name.len());
            let end = start.and_then(|start| before.get(start..));
            end.is_some_and(|end| end.eq_ignore_ascii_case(name.as_bytes()))
        });
        is_naming && readers.covers_key(value(after.get(1..).unwrap_or_default().trim_start()))
    })
}

/// The value that a text begins with, in quotes or up to a blank.
fn value(text: &str) -> &str {
    let text = beginning(text, MAX_VALUE_BYTES);
    let value = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text.split(quote).nth(1),
        _ => text.split_whitespace().next(),
    };
    value.unwrap_or_default().trim_end_matches('/')
}

fn beginning(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}
