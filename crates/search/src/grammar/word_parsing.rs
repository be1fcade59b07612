//! Parsing of words, phrases and the operators `OR`, `AND` and `NOT`.

use std::ops::Range;

use super::boolean_groups::{BooleanOperator, NegationToken, OperatorToken};
use super::parse_outcome::PhraseToken;
use super::parser::QueryParser;
use crate::analysis::is_stop_word;
use crate::filter::fold_value;

impl<'q> QueryParser<'q> {
    /// Parses the word at the cursor: an operator, an unknown field or plain text.
    pub(super) fn word(&mut self, at: usize, in_group: bool) {
        let word = self.scan.run(&[], in_group);
        if word.is_empty() {
            // A stray character that no other rule consumes.
            self.scan.bump();
            return;
        }
        if self.is_operator(at, word) || self.report_unknown_field(at, word) {
            return;
        }
        let not = self.group().and_then(|group| group.pending_negation.take());
        let excludes = not.filter(|not| not.negates_words);
        self.put(at..self.scan.at(), word, not, excludes.is_some());
        if let Some(group) = self.group() {
            group.last_word = Some(word);
        }
    }

    /// Handles the quoted phrase that ends at the cursor.
    pub(super) fn phrase(&mut self, at: usize, text: &'q str) {
        let not = self.group().and_then(|group| group.pending_negation.take());
        let excludes = not.filter(|not| not.negates_phrases);
        self.put(at..self.scan.at(), text.trim(), not, excludes.is_some());
    }

    /// Adds a word or a phrase either to the query or, when it is negated, to the exclusions. A negation inside a
    /// negated group cancels out.
    fn put(
        &mut self,
        span: Range<usize>,
        text: &'q str,
        not: Option<NegationToken<'q>>,
        excludes: bool,
    ) {
        let start = not.filter(|_| excludes).map_or(span.start, |not| not.at);
        let is_phrase = span.len() > text.len();
        let phrase = PhraseToken {
            at: start,
            written: self.scan.slice(start..span.end),
            text,
            has_to_occur: true,
        };
        let group_excludes = self.groups.last().is_some_and(|group| group.excludes_words);
        let can_occur = text.contains(char::is_alphanumeric);
        let before = self.out.phrases.len();
        if can_occur && excludes != group_excludes {
            self.push_operand(None, before..before);
            self.out.exclude(phrase);
            return;
        }
        if is_phrase && can_occur {
            self.out.require(phrase);
        }
        self.push_operand(None, before..self.out.phrases.len());
        if let Some(not) = not.filter(|_| !excludes) {
            self.out.push_text(not.written);
        }
        self.out.push_text(text);
    }

    /// Records `OR`, `AND` and `NOT`. Whether they join anything is known only when the next operand comes, so they
    /// stay pending until then. Lower-case operators join conditions but not words.
    fn is_operator(&mut self, at: usize, word: &'q str) -> bool {
        let (operator, is_uppercase) = match word {
            "OR" => (BooleanOperator::Or, true),
            "or" | "Or" | "|" | "||" => (BooleanOperator::Or, false),
            "AND" => (BooleanOperator::And, true),
            "and" | "And" | "&&" => (BooleanOperator::And, false),
            "NOT" | "not" | "Not" => {
                let negates_words = word == "NOT" && self.is_negation_operator();
                self.not(NegationToken {
                    written: word,
                    at,
                    negates_phrases: word == "NOT",
                    negates_words,
                });
                return true;
            }
            _ => return false,
        };
        let Some(group) = self.groups.last_mut() else {
            return false;
        };
        let is_between = group.last.is_some()
            && group.pending_operator.is_none()
            && group.pending_negation.is_none();
        if is_between {
            group.pending_operator = Some(OperatorToken {
                written: word,
                at,
                operator,
                is_uppercase,
            });
        }
        // An operator after an ignored condition is dropped with it.
        is_between || (is_uppercase && group.follows_nothing)
    }

    /// Whether `NOT` negates the word after it. It does not in "do NOT enter": English puts a stop word before it.
    fn is_negation_operator(&self) -> bool {
        let Some(group) = self.groups.last() else {
            return false;
        };
        let follows = match group.last_word {
            Some(word) => !is_stop_word(&fold_value(word)),
            None => group.last.is_some(),
        };
        let is_joined = group
            .pending_operator
            .is_some_and(|joint| joint.is_uppercase);
        self.capitals_mean_something && (follows || is_joined)
    }

    pub(super) fn not(&mut self, not: NegationToken<'q>) {
        let before = self
            .group()
            .and_then(|group| group.pending_negation.replace(not));
        if let Some(before) = before {
            self.out.push_text(before.written);
        }
    }

    /// Turns pending operators at the end of a group into text, because they have no operand.
    pub(super) fn flush_operators(&mut self) {
        let Some(group) = self.group() else {
            return;
        };
        let joint = group.pending_operator.take().map(|joint| joint.written);
        let not = group.pending_negation.take().map(|not| not.written);
        for word in [joint, not].into_iter().flatten() {
            self.out.push_text(word);
        }
    }
}
