//! Obsidian syntax: extracts wiki links and tags from a note, such as `[[Winter feed|feeding]]`, `![[Queen
//! list]]` and `#bees/winter`. Code blocks and code spans are skipped.

/// The most characters of a link, its display text included. Two brackets without a partner are common in code and
/// mathematics; the limit keeps the search for a closing pair from running to the end of the note for each of them.
const MAX_LINK_CHARS: usize = 256;

/// The most characters of a tag; longer ones are ignored.
const MAX_TAG_CHARS: usize = 64;

/// The links and tags of a note, without duplicates, in order of appearance.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LinksAndTags {
    pub links: Vec<String>,
    pub tags: Vec<String>,
}

/// Extracts the links and tags of a note, at most `most` of each.
pub(crate) fn extract_links_and_tags(body: &str, most: usize) -> LinksAndTags {
    let mut found = LinksAndTags::default();
    let mut fence: Option<&str> = None;
    for line in body.lines() {
        let trimmed = line.trim_start();
        match fence {
            Some(open) if trimmed.starts_with(open) => fence = None,
            Some(_) => {}
            None => {
                fence = ["```", "~~~"]
                    .into_iter()
                    .find(|fence| trimmed.starts_with(fence));
                if fence.is_none() {
                    scan_line(line, &mut found, most);
                }
            }
        }
    }
    found
}

/// Scans one line; code spans between backticks are skipped.
fn scan_line(line: &str, found: &mut LinksAndTags, most: usize) {
    let mut previous = ' ';
    let mut rest = line;
    while let Some(at) = rest.find(['[', '#', '`']) {
        let (skipped, tail) = rest.split_at(at);
        previous = skipped.chars().next_back().unwrap_or(previous);
        let taken = if let Some(inside) = tail.strip_prefix('`') {
            inside.find('`').map(|end| end + 2)
        } else if let Some(inside) = tail.strip_prefix("[[") {
            link(inside).map(|(target, length)| {
                if let Some(target) = target {
                    push_unique(&mut found.links, target, most);
                }
                length + 4
            })
        } else if tail.starts_with('#') && previous.is_whitespace() {
            if let Some(tag) = tag(tail) {
                push_unique(&mut found.tags, tag, most);
            }
            None
        } else {
            None
        };
        let taken = taken.unwrap_or(1);
        previous = tail.chars().next().unwrap_or(' ');
        rest = tail.get(taken..).unwrap_or_default();
    }
}

/// Parses a link: returns its target if that is a note, and the number of bytes between the brackets.
fn link(inside: &str) -> Option<(Option<&str>, usize)> {
    // The window bounds the search, because a line of brackets would otherwise take quadratic time.
    let window = inside.char_indices().nth(MAX_LINK_CHARS + 2);
    let window = inside.get(..window.map_or(inside.len(), |(at, _)| at))?;
    let end = window.find("]]")?;
    let inner = window.get(..end)?;
    let is_valid = !inner.starts_with(char::is_whitespace) && !inner.contains(['[', '`']);
    if !is_valid {
        return None;
    }
    let target = inner.split(['|', '#', '^']).next().unwrap_or_default();
    let name = target.rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".md").unwrap_or(name).trim();
    let is_note = !name.is_empty() && !is_attachment(name);
    Some((is_note.then_some(name), end))
}

/// Whether a link target is an attachment by its extension. A version such as `1.10` has none.
fn is_attachment(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| {
        (2..=5).contains(&extension.len())
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && extension.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

/// Parses the tag at the start of a text, without its `#`. A bare number is not a tag.
fn tag(text: &str) -> Option<&str> {
    let text = text.strip_prefix('#')?;
    let is_tag_char = |c: char| c.is_alphanumeric() || "_-/".contains(c);
    let end = text.find(|c: char| !is_tag_char(c)).unwrap_or(text.len());
    let tag = text.get(..end)?.trim_matches('/');
    let is_valid = tag
        .chars()
        .any(|c| !c.is_ascii_digit() && c.is_alphanumeric())
        && tag.chars().nth(MAX_TAG_CHARS).is_none();
    is_valid.then_some(tag)
}

/// Appends a word unless the list is full or contains it in any case.
pub(crate) fn push_unique(list: &mut Vec<String>, word: &str, most: usize) {
    let lower = word.to_lowercase();
    if list.len() < most && !list.iter().any(|known| known.to_lowercase() == lower) {
        list.push(word.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, links: &[&str], tags: &[&str]) {
        let found = extract_links_and_tags(body, 5);
        assert_eq!(found.links, links, "{body}");
        assert_eq!(found.tags, tags, "{body}");
    }

    #[test]
    fn links_lead_to_notes() {
        check(
            "See [[Winter feed|feeding]], [[garden/Lane bed#Drain]] and ![[Queen list.md]]; [[winter feed]] again",
            &["Winter feed", "Lane bed", "Queen list"],
            &[],
        );
        check(
            "![[photo.png]] [[scan.pdf|scan]] [[Plan 1.10]]",
            &["Plan 1.10"],
            &[],
        );
        check("[[#Below]] [[ -f x ]] [[open [[Real]]", &["Real"], &[]);
        check("`[[code]]` [one](two.md) [[]]", &[], &[]);
    }

    #[test]
    fn tags_are_words_behind_a_hash() {
        check(
            "#bees and #Bees/Winter, #größe",
            &[],
            &["bees", "Bees/Winter", "größe"],
        );
        check("# Heading\n## Two\nissue #12, C#, a#b, #-", &[], &[]);
        check(
            "`#code`\n```sh\n#!/bin/sh\n# x #no\n```\n#yes",
            &[],
            &["yes"],
        );
        check("~~~\n#no\n~~~\n(#no) [#no](#x)", &[], &[]);
    }

    #[test]
    fn everything_ends_at_its_bound() {
        let many: String = (0..9).map(|n| format!("[[Note {n}]] #tag{n} ")).collect();
        let found = extract_links_and_tags(&many, 5);
        assert_eq!((found.links.len(), found.tags.len()), (5, 5));
        let tag = |chars: usize| {
            extract_links_and_tags(&format!("#{}", "t".repeat(chars)), 5)
                .tags
                .len()
        };
        assert_eq!((tag(MAX_TAG_CHARS), tag(MAX_TAG_CHARS + 1)), (1, 0));
        let link = |chars: usize| {
            extract_links_and_tags(&format!("[[{}]]", "l".repeat(chars)), 5)
                .links
                .len()
        };
        assert_eq!((link(MAX_LINK_CHARS), link(MAX_LINK_CHARS + 1)), (1, 0));
    }

    #[test]
    fn a_line_of_marks_is_read_in_good_time() {
        for mark in ["[[", "#", "`", "[[a|"] {
            extract_links_and_tags(&mark.repeat(200_000), 5);
        }
    }
}
