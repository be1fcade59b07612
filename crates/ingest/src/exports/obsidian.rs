//! The text of a note into the notes it links to and the tags it bears, as Obsidian and its relatives write them:
//! `[[Winter feed|feeding]]`, `![[Queen list]]`, `#bees/winter`. Code is not looked at.

/// The longest link, with what stands behind its bar.
const MAX_LINK_CHARS: usize = 256;

/// The longest tag.
const MAX_TAG_CHARS: usize = 64;

/// What a note says between its words, each thing once, in its order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LinksAndTags {
    pub links: Vec<String>,
    pub tags: Vec<String>,
}

/// Looks for links and tags, so many of each at most.
pub(crate) fn extract_links_and_tags(body: &str, most: usize) -> LinksAndTags {
    let mut found = LinksAndTags::default();
    let mut fence: Option<&str> = None;
    for line in body.lines() {
        let shown = line.trim_start();
        match fence {
            Some(open) if shown.starts_with(open) => fence = None,
            Some(_) => {}
            None => {
                fence = ["```", "~~~"]
                    .into_iter()
                    .find(|fence| shown.starts_with(fence));
                if fence.is_none() {
                    scan_line(line, &mut found, most);
                }
            }
        }
    }
    found
}

/// One line, without what stands between backticks.
fn scan_line(line: &str, found: &mut LinksAndTags, most: usize) {
    let mut before = ' ';
    let mut rest = line;
    while let Some(at) = rest.find(['[', '#', '`']) {
        let (skipped, from) = rest.split_at(at);
        before = skipped.chars().next_back().unwrap_or(before);
        let taken = if let Some(inside) = from.strip_prefix('`') {
            inside.find('`').map(|end| end + 2)
        } else if let Some(inside) = from.strip_prefix("[[") {
            link(inside).map(|(target, length)| {
                if let Some(target) = target {
                    push_unique(&mut found.links, target, most);
                }
                length + 4
            })
        } else if from.starts_with('#') && before.is_whitespace() {
            if let Some(tag) = tag(from) {
                push_unique(&mut found.tags, tag, most);
            }
            None
        } else {
            None
        };
        let taken = taken.unwrap_or(1);
        before = from.chars().next().unwrap_or(' ');
        rest = from.get(taken..).unwrap_or_default();
    }
}

/// The note that a link leads to, if it leads to one, and how many bytes stand between its brackets.
fn link(inside: &str) -> Option<(Option<&str>, usize)> {
    // No further than a link may reach, or a line of brackets would be read once for each of them.
    let window = inside.char_indices().nth(MAX_LINK_CHARS + 2);
    let window = inside.get(..window.map_or(inside.len(), |(at, _)| at))?;
    let end = window.find("]]")?;
    let inner = window.get(..end)?;
    let sound = !inner.starts_with(char::is_whitespace) && !inner.contains(['[', '`']);
    if !sound {
        return None;
    }
    let target = inner.split(['|', '#', '^']).next().unwrap_or_default();
    let name = target.rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".md").unwrap_or(name).trim();
    let is_note = !name.is_empty() && !is_attachment(name);
    Some((is_note.then_some(name), end))
}

/// Pictures, sounds and papers have an extension; a version such as `1.10` is none.
fn is_attachment(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| {
        (2..=5).contains(&extension.len())
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && extension.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

/// The tag at the start of a text, without its `#`. A number is none.
fn tag(text: &str) -> Option<&str> {
    let text = text.strip_prefix('#')?;
    let of_tag = |c: char| c.is_alphanumeric() || "_-/".contains(c);
    let end = text.find(|c: char| !of_tag(c)).unwrap_or(text.len());
    let tag = text.get(..end)?.trim_matches('/');
    let sound = tag
        .chars()
        .any(|c| !c.is_ascii_digit() && c.is_alphanumeric())
        && tag.chars().nth(MAX_TAG_CHARS).is_none();
    sound.then_some(tag)
}

/// Adds what is not there yet; letters count as the same in both cases.
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
