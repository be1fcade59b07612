//! What a person or a model typed into words to rank by and conditions to keep.
//!
//! One line holds both: `housing party:Labor date:2024-06..2024-09 -tag:budget "exact phrase"`.
//!
//! - `name:value`, where `name` is a field of the documents; `name:a,b` and `name:(a OR b)` take
//!   either. A value with spaces is quoted, or is one that the documents are known to have.
//! - `words:100..200`, `words:>500`, `date:2024-06`, `date:2024..`, `date:30d` for ranges.
//! - `since:`, `after:`, `before:`, `until:` and `year:` for the date, unless a field is so named.
//! - `-` or `NOT` turns what follows around; `OR` joins its two neighbours; parentheses group.
//! - `"words in quotes"` have to occur together; `-word` must not occur.
//!
//! Nothing is ever refused: what is no condition is text. What looks like one and cannot be kept is
//! told in [`Parsed::ignored`].

mod boolean_groups;
mod condition;
mod field_resolver;
mod filter_display;
mod parse_outcome;
mod parser;
mod range;
mod scanner;
mod word_parsing;

#[cfg(test)]
mod tests;

use crate::calendar::Day;
use crate::catalog::Catalog;
use crate::filter::Filter;
use crate::query::MAX_QUERY_CHARS;

/// The most groups that are open at a time; parentheses inside the innermost group nothing.
pub const MAX_QUERY_DEPTH: usize = 32;

/// The most things that are told to have been ignored.
pub const MAX_IGNORED: usize = 16;

/// How much is told of what stands behind the last character that is looked at.
const MAX_TOLD_CHARS: usize = 40;

/// What a query says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedQuery {
    /// What to rank by: the words, and the words of phrases, without the conditions.
    pub text: String,
    /// What has to occur word by word.
    pub phrases: Vec<String>,
    /// Words and phrases that must not occur.
    pub excluded: Vec<String>,
    /// What a document must be.
    pub filter: Option<Filter>,
    /// What was understood as a condition, in the order of the query. A document has to meet all
    /// of them.
    pub applied: Vec<AppliedCondition>,
    /// What looks like a condition and is not kept, in the order of the query.
    pub ignored: Vec<IgnoredCondition>,
}

/// A condition that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedCondition {
    /// As it was written.
    pub written: String,
    /// What it was taken for, such as `date from 2024-06-01 to 2024-06-30`.
    pub meaning: String,
}

/// A condition that is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredCondition {
    /// As it was written.
    pub written: String,
    /// Why it is not kept.
    pub reason: String,
    /// What to write instead, if that is clear.
    pub meant: Option<String>,
}

/// Reads the first [`MAX_QUERY_CHARS`] characters of a query about the fields of a catalog.
/// `today` is what dates such as `30d` are counted from.
pub fn parse(text: &str, catalog: &Catalog, today: Day) -> ParsedQuery {
    parse_counting_steps(text, catalog, today).0
}

/// What a query says, and how many characters were looked at to know it.
fn parse_counting_steps(text: &str, catalog: &Catalog, today: Day) -> (ParsedQuery, usize) {
    let (looked_at, rest) = cut(text);
    let mut reader = parser::QueryParser::new(looked_at, catalog, today);
    if !rest.is_empty() {
        let ignored = IgnoredCondition {
            written: rest.chars().take(MAX_TOLD_CHARS).collect(),
            reason: format!("a query has at most {MAX_QUERY_CHARS} characters"),
            meant: None,
        };
        reader.out.ignore(looked_at.len(), ignored);
    }
    reader.read()
}

/// The characters that are looked at, and the others. A word is not cut in two: half a condition
/// would be another one.
fn cut(text: &str) -> (&str, &str) {
    let Some((end, next)) = text.char_indices().nth(MAX_QUERY_CHARS) else {
        return (text, "");
    };
    let head = text.get(..end).unwrap_or_default();
    let is_whole = next.is_whitespace() || head.ends_with(char::is_whitespace);
    let last_gap = head.rfind(char::is_whitespace).filter(|_| !is_whole);
    let (head, rest) = text
        .split_at_checked(last_gap.unwrap_or(end))
        .unwrap_or((text, ""));
    (head, rest.trim())
}
