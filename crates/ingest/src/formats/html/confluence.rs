//! Confluence export: metadata that Confluence renders around a page, such as breadcrumbs, byline and
//! attachments. It stands outside the content, in elements with fixed ids and classes.

use serde_json::{Map, Value as Raw};

use crate::clean::clean_line;
use crate::dates::written_date::parse_written_date;

use super::emitter::HtmlTag;

/// The most breadcrumbs and attachments, and the most bytes of each.
const MAX_NAMES: usize = 256;
const MAX_BYTES: usize = 1_024;

/// Whether an element is the content container of an exported page.
pub(super) fn is_content(tag: &HtmlTag) -> bool {
    let has_class = |class: &str| {
        class
            .split_ascii_whitespace()
            .any(|word| word == "wiki-content")
    };
    tag.get("id") == Some("main-content") && tag.get("class").is_some_and(has_class)
}

/// The element to which the current text belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConfluenceSection {
    Breadcrumbs,
    Byline,
    Content,
    Attachment,
}

/// The metadata collected around a page. `open` is the element of interest that is currently open, and its
/// depth.
#[derive(Debug, Default)]
pub(super) struct ConfluenceMetadata {
    is_page: bool,
    crumbs: Vec<String>,
    byline: String,
    attachments: Vec<String>,
    open: Option<(ConfluenceSection, usize)>,
}

impl ConfluenceMetadata {
    pub(super) fn open(&mut self, tag: &HtmlTag, depth: usize) {
        if let Some((section, _)) = self.open {
            if section == ConfluenceSection::Breadcrumbs && tag.name == "li" {
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
        let section = if is_content(tag) {
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
        self.open = Some((section, depth));
    }

    pub(super) fn text(&mut self, text: &str) {
        match self.open {
            Some((ConfluenceSection::Breadcrumbs, _)) => add(self.crumbs.last_mut(), text),
            Some((ConfluenceSection::Byline, _)) => add(Some(&mut self.byline), text),
            Some((ConfluenceSection::Attachment, _)) => add(self.attachments.last_mut(), text),
            Some((ConfluenceSection::Content, _)) | None => {}
        }
    }

    /// Handles the end of the element at this depth.
    pub(super) fn close(&mut self, depth: usize) {
        if self.open.is_some_and(|(_, open)| open >= depth) {
            self.open = None;
        }
    }

    /// Adds the collected metadata to the keys of the page, if it is a Confluence page.
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
        let byline = clean_line(&self.byline);
        set(
            "author",
            between(&byline, &["Created by ", "Added by "]).map(Raw::String),
        );
        set(
            "editor",
            between(&byline, &["modified by ", "edited by "]).map(Raw::String),
        );
        let day = byline
            .rsplit_once(" on ")
            .and_then(|(_, day)| parse_written_date(day));
        set("modified", day.clone().map(Raw::String));
        set("date", day.map(Raw::String));
        let attachments = names(&self.attachments);
        set(
            "attachments",
            (!attachments.is_empty()).then(|| attachments.into()),
        );
        // The window title is prefixed with the name of the space.
        let title = keys.get("title").and_then(Raw::as_str);
        let page_title = title.zip(crumbs.first()).and_then(|(title, space)| {
            let page_title = title.strip_prefix(space.as_str())?.strip_prefix(" : ")?;
            Some(page_title.trim().to_owned())
        });
        if let Some(page_title) = page_title.filter(|page_title| !page_title.is_empty()) {
            keys.insert("title".to_owned(), page_title.into());
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

/// The name in a byline: it follows one of these phrases and ends at a comma or before the date.
fn between(byline: &str, words: &[&str]) -> Option<String> {
    let from = words.iter().find_map(|word| byline.split_once(word))?.1;
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
    fn the_byline_names_author_and_editor() {
        for (byline, author, editor) in [
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
                between(byline, &["Created by ", "Added by "]).as_deref(),
                author,
                "{byline}"
            );
            assert_eq!(
                between(byline, &["modified by ", "edited by "]).as_deref(),
                editor,
                "{byline}"
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
