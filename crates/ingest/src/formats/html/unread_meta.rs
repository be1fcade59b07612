//! Counts `<meta>` elements with the access control field in the raw text of a page, also where the parser
//! does not see them: in `<noscript>`, after an unclosed `<title>`, in a comment.
//!
//! If the raw text has more of them than the parser found, one was overlooked, and the page fails closed.

use docent_unicode::truncate_bytes;

use crate::reader_field::ReaderKeys;

use super::head::NAMING;

/// The most bytes of one tag, and of one attribute value, that are examined.
const MAX_TAG_BYTES: usize = 4 * 1024;
const MAX_VALUE_BYTES: usize = 512;

/// Counts the `meta` tags with the access control field, wherever they stand in the text.
pub(super) fn count(text: &str, readers: &ReaderKeys) -> usize {
    let starts = text.match_indices('<');
    let tags = starts.filter_map(|(at, _)| meta(text.get(at + 1..)?));
    tags.filter(|tag| names_readers(tag, readers)).count()
}

/// The attributes of a `meta` tag, up to its end or to the start of another tag.
fn meta(text: &str) -> Option<&str> {
    let (name, rest) = text.split_at_checked("meta".len())?;
    let is_meta = name.eq_ignore_ascii_case("meta")
        && rest.starts_with(|c: char| c.is_whitespace() || c == '/');
    let rest = truncate_bytes(rest, MAX_TAG_BYTES);
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

/// The attribute value at the start of a text, in quotes or up to white space.
fn value(text: &str) -> &str {
    let text = truncate_bytes(text, MAX_VALUE_BYTES);
    let value = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text.split(quote).nth(1),
        _ => text.split_whitespace().next(),
    };
    value.unwrap_or_default().trim_end_matches('/')
}
