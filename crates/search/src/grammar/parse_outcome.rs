//! Collects the result of parsing: text, phrases, exclusions and ignored conditions, each up to its limit.

use std::ops::Range;

use super::boolean_groups::{BooleanOperator, FilterNode};
use super::scanner::{QueryScanner, is_quote};
use super::{AppliedCondition, IgnoredCondition, MAX_IGNORED, ParsedQuery};
use crate::query::MAX_QUERY_TERMS;

/// A phrase or an excluded word with its position in the query. `has_to_occur` is cleared for phrases joined by
/// `OR`.
#[derive(Clone, Copy)]
pub(super) struct PhraseToken<'q> {
    pub at: usize,
    pub written: &'q str,
    pub text: &'q str,
    pub has_to_occur: bool,
}

/// The result so far. Ignored conditions carry their position, because they are not found in the order of the
/// query.
#[derive(Default)]
pub(super) struct ParseOutcome<'q> {
    text: String,
    pub phrases: Vec<PhraseToken<'q>>,
    excluded: Vec<PhraseToken<'q>>,
    ignored: Vec<(usize, IgnoredCondition)>,
}

impl<'q> ParseOutcome<'q> {
    /// Appends words to the text that is ranked by.
    pub(super) fn push_text(&mut self, words: &str) {
        let words = words.trim();
        if !self.text.is_empty() && !words.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(words);
    }

    pub(super) fn require(&mut self, phrase: PhraseToken<'q>) {
        if self.phrases.len() < MAX_QUERY_TERMS {
            self.phrases.push(phrase);
        }
    }

    pub(super) fn exclude(&mut self, phrase: PhraseToken<'q>) {
        let is_punctuation = |c: char| is_quote(c) || ".,;:!?".contains(c);
        if self.excluded.len() < MAX_QUERY_TERMS {
            self.excluded.push(PhraseToken {
                text: phrase.text.trim_matches(is_punctuation),
                ..phrase
            });
        }
    }

    /// Phrases that are joined by `OR` become optional: none of them has to occur.
    pub(super) fn make_optional(&mut self, join: BooleanOperator, phrases: Range<usize>) {
        let phrases = self.phrases.get_mut(phrases).unwrap_or_default();
        for phrase in phrases {
            phrase.has_to_occur &= join != BooleanOperator::Or;
        }
    }

    pub(super) fn ignore(&mut self, at: usize, ignored: IgnoredCondition) {
        if self.ignored.len() < MAX_IGNORED {
            self.ignored.push((at, ignored));
        }
    }

    pub(super) fn finish(mut self, nodes: Vec<FilterNode>, scan: &QueryScanner<'q>) -> ParsedQuery {
        let has_text = self.text.contains(char::is_alphanumeric);
        if !has_text && nodes.is_empty() {
            // A query of exclusions alone selects nothing useful, so the excluded words become the query.
            for phrase in std::mem::take(&mut self.excluded) {
                self.push_text(phrase.text);
            }
        }
        self.phrases.retain(|phrase| phrase.has_to_occur);
        self.ignored.sort_by_key(|(at, _)| *at);
        let texts = |phrases: &[PhraseToken<'_>]| {
            let texts = phrases.iter().map(|phrase| phrase.text.to_owned());
            texts.collect::<Vec<_>>()
        };
        ParsedQuery {
            applied: self.applied(&nodes, scan),
            phrases: texts(&self.phrases),
            excluded: texts(&self.excluded),
            text: self.text,
            filter: FilterNode::joined(BooleanOperator::And, nodes).map(|node| node.filter),
            ignored: self.ignored.into_iter().map(|(_, one)| one).collect(),
        }
    }

    /// The applied conditions, phrases and exclusions, in the order of the query.
    fn applied(&self, nodes: &[FilterNode], scan: &QueryScanner<'_>) -> Vec<AppliedCondition> {
        let conditions = nodes.iter().map(|node| {
            let written = scan.slice(node.span.clone());
            (node.span.start, written, node.filter.to_string())
        });
        let describe = |phrase: &PhraseToken<'q>, relation| {
            let meaning = format!("{relation} `{}`", phrase.text);
            (phrase.at, phrase.written, meaning)
        };
        let with = self.phrases.iter().map(|phrase| describe(phrase, "with"));
        let without = self
            .excluded
            .iter()
            .map(|phrase| describe(phrase, "without"));
        let mut applied: Vec<_> = conditions.chain(with).chain(without).collect();
        applied.sort_by_key(|(at, _, _)| *at);
        let applied = applied
            .into_iter()
            .map(|(_, written, meaning)| AppliedCondition {
                written: written.to_owned(),
                meaning,
            });
        applied.collect()
    }
}
