//! Words, phrases and the words that operate on them, as they come by in a query.

use std::ops::Range;

use super::boolean_groups::{BooleanOperator, NegationToken, OperatorToken};
use super::parse_outcome::PhraseToken;
use super::parser::QueryParser;
use crate::analysis::is_stop_word;
use crate::filter::fold_value;

impl<'q> QueryParser<'q> {
    /// Takes the word that stands here.
    pub(super) fn word(&mut self, at: usize, in_group: bool) {
        let word = self.scan.run(&[], in_group);
        if word.is_empty() {
            // A stray mark that nothing else takes.
            self.scan.bump();
            return;
        }
        if self.is_operator(at, word) || self.report_unknown_field(at, word) {
            return;
        }
        let not = self.group().and_then(|group| group.not.take());
        let excludes = not.filter(|not| not.negates_words);
        self.put(at..self.scan.at(), word, not, excludes.is_some());
        if let Some(group) = self.group() {
            group.last_word = Some(word);
        }
    }

    /// Takes the phrase that ends here.
    pub(super) fn phrase(&mut self, at: usize, text: &'q str) {
        let not = self.group().and_then(|group| group.not.take());
        let excludes = not.filter(|not| not.negates_phrases);
        self.put(at..self.scan.at(), text.trim(), not, excludes.is_some());
    }

    /// Puts a word or a phrase among those that are wanted or those that are not.
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

    /// Notes `OR`, `AND` and `NOT`; whether they join anything is known when the next thing comes.
    fn is_operator(&mut self, at: usize, word: &'q str) -> bool {
        let (join, is_firm) = match word {
            "OR" => (BooleanOperator::Or, true),
            "or" | "Or" | "|" | "||" => (BooleanOperator::Or, false),
            "AND" => (BooleanOperator::And, true),
            "and" | "And" | "&&" => (BooleanOperator::And, false),
            "NOT" | "not" | "Not" => {
                let holds_for_words = word == "NOT" && self.is_negation_operator();
                self.not(NegationToken {
                    written: word,
                    at,
                    negates_phrases: word == "NOT",
                    negates_words: holds_for_words,
                });
                return true;
            }
            _ => return false,
        };
        let Some(group) = self.groups.last_mut() else {
            return false;
        };
        let is_between = group.last.is_some() && group.joint.is_none() && group.not.is_none();
        if is_between {
            group.joint = Some(OperatorToken {
                written: word,
                at,
                join,
                is_uppercase: is_firm,
            });
        }
        // What would join a condition that is not kept is not kept either.
        is_between || (is_firm && group.follows_nothing)
    }

    /// Whether `NOT` turns around the word behind it. It does not in "do NOT enter": English puts
    /// one of the words that say nothing before it.
    fn is_negation_operator(&self) -> bool {
        let Some(group) = self.groups.last() else {
            return false;
        };
        let follows = match group.last_word {
            Some(word) => !is_stop_word(&fold_value(word)),
            None => group.last.is_some(),
        };
        let is_joined = group.joint.is_some_and(|joint| joint.is_uppercase);
        self.capitals_mean_something && (follows || is_joined)
    }

    pub(super) fn not(&mut self, not: NegationToken<'q>) {
        let before = self.group().and_then(|group| group.not.replace(not));
        if let Some(before) = before {
            self.out.push_text(before.written);
        }
    }

    /// Operators at the end of a group operate on nothing: they are words.
    pub(super) fn flush_operators(&mut self) {
        let Some(group) = self.group() else {
            return;
        };
        let joint = group.joint.take().map(|joint| joint.written);
        let not = group.not.take().map(|not| not.written);
        for word in [joint, not].into_iter().flatten() {
            self.out.push_text(word);
        }
    }
}
