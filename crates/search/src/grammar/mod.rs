//! Query language: parses what a person or a model typed into ranked words, phrases and filters.
//!
//! One line holds them all: `housing party:Labor date:2024-06..2024-09 -tag:budget "exact phrase"`.
//!
//! - `name:value` filters by a field of the documents; `name:a,b` and `name:(a OR b)` match either value. A value with
//!   spaces is quoted, unless it is one that the catalog lists.
//! - `words:100..200`, `words:>500`, `date:2024-06`, `date:2024..` and `date:30d` are ranges.
//! - `since:`, `after:`, `before:`, `until:` and `year:` filter by the date, unless a field has that name.
//! - `-` or `NOT` negates what follows; `OR` joins its two neighbours; parentheses group.
//! - `"words in quotes"` are a phrase that has to occur; `-word` must not occur.
//!
//! No query is a syntax error: whatever is no condition is text. What looks like a condition but cannot be applied is
//! reported in [`ParsedQuery::ignored`], so that a model can correct its query.

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

/// The deepest nesting of groups. Parentheses inside the innermost group are skipped and group nothing.
pub const MAX_QUERY_DEPTH: usize = 32;

/// The most ignored conditions that are reported for one query.
pub const MAX_IGNORED: usize = 16;

/// How many characters are quoted of the text beyond the length limit.
const MAX_QUOTED_CHARS: usize = 40;

/// A parsed query: what to rank by and what to filter by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedQuery {
    /// The words to rank by, including those of phrases but without conditions.
    pub text: String,
    /// Phrases that have to occur word by word.
    pub phrases: Vec<String>,
    /// Words and phrases that must not occur.
    pub excluded: Vec<String>,
    /// The filter that every hit has to match.
    pub filter: Option<Filter>,
    /// The conditions that are applied, in the order of the query. A document has to meet all of them.
    pub applied: Vec<AppliedCondition>,
    /// What looks like a condition but is not applied, in the order of the query.
    pub ignored: Vec<IgnoredCondition>,
}

/// A condition that is applied, with an explanation that people and models can check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedCondition {
    /// The condition as it stands in the query.
    pub written: String,
    /// What it was understood as, such as `date from 2024-06-01 to 2024-06-30`.
    pub meaning: String,
}

/// A condition that is not applied, with the reason and, if there is one, a correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredCondition {
    /// The condition as it stands in the query.
    pub written: String,
    /// Why it is not applied.
    pub reason: String,
    /// The condition to write instead, if there is a clear candidate.
    pub meant: Option<String>,
}

/// Parses the first [`MAX_QUERY_CHARS`] characters of a query against the fields of a catalog. Relative dates such
/// as `30d` count from `today`.
pub fn parse(text: &str, catalog: &Catalog, today: Day) -> ParsedQuery {
    parse_counting_steps(text, catalog, today).0
}

/// Parses a query and counts the characters the scanner visited, so that tests can show that the work is linear.
fn parse_counting_steps(text: &str, catalog: &Catalog, today: Day) -> (ParsedQuery, usize) {
    let (head, rest) = cut(text);
    let mut parser = parser::QueryParser::new(head, catalog, today);
    if !rest.is_empty() {
        let ignored = IgnoredCondition {
            written: rest.chars().take(MAX_QUOTED_CHARS).collect(),
            reason: format!("a query has at most {MAX_QUERY_CHARS} characters"),
            meant: None,
        };
        parser.out.ignore(head.len(), ignored);
    }
    parser.read()
}

/// Splits a query at the length limit. It never splits a word: half a condition would be a different one.
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
