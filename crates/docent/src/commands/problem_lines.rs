//! The problems of a sync as lines for people: losses first, then skipped files, then warnings.
//!
//! Losses and warnings have a line each, because each has a fix of its own. Files that were skipped for the same reason
//! share a line: a folder may hold thousands of them, and what matters is hard to find between them.

use std::collections::HashMap;

use docent_ingest::{IngestError, SkippedItem};

use crate::corpus::SyncReport;

/// The names that the line of a group gives as examples.
const MAX_EXAMPLES: usize = 3;

/// Extensions of pictures. Other files of these formats have a reason of their own, such as that they are links.
const PICTURES: &[&str] = &[
    "avif", "bmp", "gif", "heic", "ico", "jpeg", "jpg", "png", "svg", "tif", "tiff", "webp",
];

/// The first `most` lines, and how many problems they leave out.
pub(super) fn problem_lines(report: &SyncReport, most: usize) -> Vec<String> {
    let (lost, skipped): (Vec<_>, Vec<_>) = report
        .skipped
        .iter()
        .partition(|skipped| skipped.reason.lost_items() > 0);
    let lost = lost
        .into_iter()
        .map(|item| (1, line("error", &item.path, item.line, &item.reason)));
    let skipped = groups(&skipped)
        .into_iter()
        .map(|group| (group.items.len(), group.line()));
    let warned = report
        .warnings
        .iter()
        .map(|item| (1, line("warning", &item.path, item.line, &item.reason)));
    let all = report.skipped.len() + report.warnings.len() + report.unlisted;
    let (mut lines, mut listed) = (Vec::new(), 0);
    for (problems, line) in lost.chain(skipped).chain(warned).take(most) {
        listed += problems;
        lines.push(line);
    }
    if all > listed {
        lines.push(format!(
            "{} more; `docent index --json` lists them",
            all - listed
        ));
    }
    lines
}

/// Skipped files that share a line.
struct SkippedGroup<'a> {
    is_pictures: bool,
    items: Vec<&'a SkippedItem>,
}

/// Groups files by reason, in the order of their first file. Parts of files are listed one by one, because a line number
/// alone says nothing.
fn groups<'a>(skipped: &[&'a SkippedItem]) -> Vec<SkippedGroup<'a>> {
    let mut groups: Vec<SkippedGroup<'a>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for item in skipped {
        let is_pictures = is_picture(item);
        let key = match item.line {
            Some(line) => format!("{}:{line}", item.path),
            None if is_pictures => String::new(),
            None => item.reason.to_string(),
        };
        let at = *places.entry(key).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.items.push(item),
            None => groups.push(SkippedGroup {
                is_pictures,
                items: vec![item],
            }),
        }
    }
    groups
}

fn is_picture(item: &SkippedItem) -> bool {
    let is_unread = matches!(
        item.reason,
        IngestError::Unsupported { .. } | IngestError::Binary
    );
    let extension = item.path.rsplit_once('.').map(|(_, extension)| extension);
    let is_known = |extension: &str| {
        let mut known = PICTURES.iter();
        known.any(|known| known.eq_ignore_ascii_case(extension))
    };
    is_unread && extension.is_some_and(is_known)
}

impl SkippedGroup<'_> {
    fn line(&self) -> String {
        let count = self.items.len();
        match self.items.as_slice() {
            [] => String::new(),
            [one] => line("skipped", &one.path, one.line, &one.reason),
            _ if self.is_pictures => {
                format!("skipped: {count} pictures, in which Docent does not look for text")
            }
            [first, ..] => {
                let names = self.items.iter().take(MAX_EXAMPLES);
                let names: Vec<_> = names.map(|item| at(&item.path, None)).collect();
                let more = match count.saturating_sub(MAX_EXAMPLES) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let (reason, hint, names) = (&first.reason, first.reason.hint(), names.join(", "));
                format!("skipped: {count} files: {reason} ({hint}): {names}{more}")
            }
        }
    }
}

fn line(what: &str, path: &str, line: Option<u64>, reason: &IngestError) -> String {
    format!("{what}: {}: {reason} ({})", at(path, line), reason.hint())
}

/// Formats a path with its line. The folder itself is shown as a dot.
fn at(path: &str, line: Option<u64>) -> String {
    let path = if path.is_empty() { "." } else { path };
    line.map_or_else(|| path.to_owned(), |line| format!("{path}:{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(path: &str, line: Option<u64>, reason: IngestError) -> SkippedItem {
        SkippedItem {
            path: path.to_owned(),
            line,
            reason,
        }
    }

    fn check(skipped: Vec<SkippedItem>, most: usize, expect: &[&str]) {
        let report = SyncReport {
            skipped,
            ..SyncReport::default()
        };
        let lines = problem_lines(&report, most);
        assert_eq!(lines.len(), expect.len(), "{lines:?}");
        for (line, expect) in lines.iter().zip(expect) {
            assert!(line.contains(expect), "{line:?} has no {expect:?}");
        }
    }

    #[test]
    fn files_skipped_for_one_reason_share_a_line() {
        let link = |path: &str| item(path, None, IngestError::Link);
        let files = vec![
            link("a"),
            item("rows.csv", Some(3), IngestError::Empty),
            link("b"),
            item("empty.md", None, IngestError::Empty),
            item("rows.csv", Some(4), IngestError::Empty),
            link("c"),
            link("d"),
            link("e"),
        ];
        let lines = [
            "skipped: 5 files: this is a symbolic link (",
            "skipped: rows.csv:3: ",
            "skipped: empty.md: ",
            "skipped: rows.csv:4: ",
        ];
        check(files.clone(), 10, &lines);
        check(files.clone(), 10, &["): a, b, c and 2 more", "", "", ""]);
        check(
            files,
            1,
            &["5 files", "3 more; `docent index --json` lists them"],
        );
        check(vec![link("a"), link("b")], 10, &["): a, b"]);
    }

    #[test]
    fn pictures_are_a_count() {
        let png = |path: &str| {
            let kind = "png".to_owned();
            item(path, None, IngestError::Unsupported { kind })
        };
        let gif = item("c.GIF", None, IngestError::Binary);
        let many = vec![
            png("a.png"),
            gif,
            png("b.png"),
            item("x.png", None, IngestError::Link),
        ];
        let lines = [
            "skipped: 3 pictures, in which",
            "skipped: x.png: this is a symbolic link",
        ];
        check(many, 10, &lines);
        check(
            vec![png("a.png")],
            10,
            &["skipped: a.png: the format `png` is not"],
        );
    }

    #[test]
    fn losses_have_a_line_each() {
        let lost = |path: &str| item(path, None, IngestError::Encrypted);
        let many = vec![
            item("l", None, IngestError::Link),
            lost("a.pdf"),
            lost("b.pdf"),
        ];
        let lines = ["error: a.pdf: ", "error: b.pdf: ", "skipped: l: "];
        check(many, 10, &lines);
    }
}
