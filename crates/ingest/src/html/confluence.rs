//! What Confluence writes around a page that it exports (where the page stands, who wrote it, what is attached) into
//! keys and values. All of it stands outside the text, in elements with names of their own.

use serde_json::{Map, Value as Raw};

use crate::clean::clean_line;
use crate::written_date::parse_written_date;

use super::emitter::HtmlTag;

/// The most steps of a path and attachments, and the most bytes of each.
const MAX_NAMES: usize = 256;
const MAX_BYTES: usize = 1_024;

/// Whether an element holds the text of a page, and nothing else.
pub(super) fn is_content(tag: &HtmlTag) -> bool {
    let has_class = |class: &str| {
        class
            .split_ascii_whitespace()
            .any(|word| word == "wiki-content")
    };
    tag.get("id") == Some("main-content") && tag.get("class").is_some_and(has_class)
}

/// Which of the elements with names the text at hand belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConfluenceSection {
    Breadcrumbs,
    Byline,
    Content,
    Attachment,
}

/// What was seen around a page.
#[derive(Debug, Default)]
pub(super) struct ConfluenceMetadata {
    is_page: bool,
    crumbs: Vec<String>,
    byline: String,
    attachments: Vec<String>,
    /// The element that is open, and how deep it lies.
    open: Option<(ConfluenceSection, usize)>,
}

impl ConfluenceMetadata {
    pub(super) fn open(&mut self, tag: &HtmlTag, depth: usize) {
        if let Some((part, _)) = self.open {
            if part == ConfluenceSection::Breadcrumbs && tag.name == "li" {
                begin(&mut self.crumbs);
            }
            return;
        }
        let is_attached = |tag: &HtmlTag| {
            tag.name == "a"
                && tag
                    .get("href")
                    .is_some_and(|href| href.starts_with("attachments/"))
        };
        let part = if is_content(tag) {
            self.is_page = true;
            ConfluenceSection::Content
        } else if tag.get("id") == Some("breadcrumbs") {
            ConfluenceSection::Breadcrumbs
        } else if tag.get("class") == Some("page-metadata") {
            ConfluenceSection::Byline
        } else if is_attached(tag) {
            begin(&mut self.attachments);
            ConfluenceSection::Attachment
        } else {
            return;
        };
        self.open = Some((part, depth));
    }

    pub(super) fn text(&mut self, text: &str) {
        match self.open {
            Some((ConfluenceSection::Breadcrumbs, _)) => add(self.crumbs.last_mut(), text),
            Some((ConfluenceSection::Byline, _)) => add(Some(&mut self.byline), text),
            Some((ConfluenceSection::Attachment, _)) => add(self.attachments.last_mut(), text),
            Some((ConfluenceSection::Content, _)) | None => {}
        }
    }

    /// An element at this depth has ended.
    pub(super) fn close(&mut self, depth: usize) {
        if self.open.is_some_and(|(_, open)| open >= depth) {
            self.open = None;
        }
    }

    /// Adds what was seen to what the page says about itself, if it is a page of Confluence.
    pub(super) fn add_to(&self, keys: &mut Map<String, Raw>) {
        if !self.is_page {
            return;
        }
        let names = |list: &[String]| -> Vec<String> {
            let names = list.iter().map(|name| clean_line(name));
            names.filter(|name| !name.is_empty()).collect()
        };
        let crumbs = names(&self.crumbs);
        let mut set = |name: &str, value: Option<Raw>| {
            if let Some(value) = value {
                keys.entry(name).or_insert(value);
            }
        };
        set("space", crumbs.first().cloned().map(Raw::String));
        let parents: Vec<_> = crumbs.iter().skip(1).cloned().collect();
        set("parents", (!parents.is_empty()).then(|| parents.into()));
        let said = clean_line(&self.byline);
        set(
            "author",
            between(&said, &["Created by ", "Added by "]).map(Raw::String),
        );
        set(
            "editor",
            between(&said, &["modified by ", "edited by "]).map(Raw::String),
        );
        let day = said
            .rsplit_once(" on ")
            .and_then(|(_, day)| parse_written_date(day));
        set("modified", day.clone().map(Raw::String));
        set("date", day.map(Raw::String));
        let attachments = names(&self.attachments);
        set(
            "attachments",
            (!attachments.is_empty()).then(|| attachments.into()),
        );
        // The title of the window has the space before the page.
        let title = keys.get("title").and_then(Raw::as_str);
        let own = title.zip(crumbs.first()).and_then(|(title, space)| {
            let own = title.strip_prefix(space.as_str())?.strip_prefix(" : ")?;
            Some(own.trim().to_owned())
        });
        if let Some(own) = own.filter(|own| !own.is_empty()) {
            keys.insert("title".to_owned(), own.into());
        }
    }
}

fn begin(list: &mut Vec<String>) {
    if list.len() < MAX_NAMES {
        list.push(String::new());
    }
}

fn add(to: Option<&mut String>, text: &str) {
    if let Some(to) = to.filter(|to| to.len() + text.len() <= MAX_BYTES) {
        to.push_str(text);
    }
}

/// The name between one of these words and what follows a name: a comma, or the day.
fn between(said: &str, words: &[&str]) -> Option<String> {
    let from = words.iter().find_map(|word| said.split_once(word))?.1;
    let end = [", last ", " on "]
        .iter()
        .filter_map(|mark| from.find(mark))
        .min();
    let name = from.get(..end.unwrap_or(from.len()))?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wrote_a_page_is_told_in_words() {
        for (said, author, editor) in [
            (
                "Created by Ana Reis, last modified by Tom Harrow on Jan 14, 2026",
                Some("Ana Reis"),
                Some("Tom Harrow"),
            ),
            (
                "Created by Ana Reis, last modified on Jan 14, 2026",
                Some("Ana Reis"),
                None,
            ),
            (
                "Created by Ana Reis on Jan 14, 2026",
                Some("Ana Reis"),
                None,
            ),
            (
                "Added by Ana Reis, last edited by Tom Harrow on Jan 14, 2026 (view change)",
                Some("Ana Reis"),
                Some("Tom Harrow"),
            ),
            ("Version 3", None, None),
        ] {
            assert_eq!(
                between(said, &["Created by ", "Added by "]).as_deref(),
                author,
                "{said}"
            );
            assert_eq!(
                between(said, &["modified by ", "edited by "]).as_deref(),
                editor,
                "{said}"
            );
        }
    }

    #[test]
    fn names_end_at_their_bounds() {
        let mut list = Vec::new();
        (0..=MAX_NAMES).for_each(|_| begin(&mut list));
        assert_eq!(list.len(), MAX_NAMES);
        let mut text = String::new();
        add(Some(&mut text), &"x".repeat(MAX_BYTES));
        add(Some(&mut text), "x");
        assert_eq!(text.len(), MAX_BYTES);
    }
}
