//! Query parser: takes one word, phrase, condition or parenthesis after the other. Open groups are kept on an
//! explicit stack instead of the call stack, so nesting cannot exhaust it.

use std::ops::Range;

use super::boolean_groups::{BooleanOperator, FilterNode, LastOperand, NegationToken, ParenGroup};
use super::field_resolver::FieldResolver;
use super::parse_outcome::ParseOutcome;
use super::scanner::{QueryScanner, is_blank, is_quote};
use super::{IgnoredCondition, MAX_QUERY_DEPTH, ParsedQuery};
use crate::calendar::Day;
use crate::catalog::Catalog;
use crate::filter::MAX_FILTER_DEPTH;

/// The deepest filter a group may have, so that the three levels its neighbours can add still fit.
const MAX_GROUP_DEPTH: usize = MAX_FILTER_DEPTH - 3;

/// The state of parsing one query.
pub(super) struct QueryParser<'q> {
    pub(super) scan: QueryScanner<'q>,
    pub(super) fields: FieldResolver<'q>,
    pub(super) out: ParseOutcome<'q>,
    /// The stack of open groups, outermost first; the first is the whole query.
    pub(super) groups: Vec<ParenGroup<'q>>,
    /// Open parentheses beyond the nesting limit, which group nothing.
    ungrouped_parens: usize,
    /// Whether a word in capitals stands out: false when the query has no lower-case letter.
    pub(super) capitals_mean_something: bool,
    pub(super) conditions: usize,
    /// How many unknown names were compared with the fields. Each comparison costs an edit distance for every
    /// field, so their number is limited.
    pub(super) compared: usize,
}

impl<'q> QueryParser<'q> {
    pub(super) fn new(text: &'q str, catalog: &'q Catalog, today: Day) -> Self {
        Self {
            scan: QueryScanner::new(text),
            fields: FieldResolver::new(catalog, today),
            out: ParseOutcome::default(),
            groups: vec![ParenGroup::default()],
            ungrouped_parens: 0,
            capitals_mean_something: text.contains(char::is_lowercase),
            conditions: 0,
            compared: 0,
        }
    }

    /// Parses the whole query; also returns how many characters the scanner visited.
    pub(super) fn read(mut self) -> (ParsedQuery, usize) {
        while self.scan.skip_blanks() {
            self.step();
        }
        while self.groups.len() > 1 {
            self.close();
        }
        self.flush_operators();
        let nodes = self
            .groups
            .pop()
            .map(ParenGroup::finish)
            .unwrap_or_default();
        (self.out.finish(nodes, &self.scan), self.scan.steps())
    }

    fn step(&mut self) {
        let at = self.scan.at();
        let in_group = self.groups.len() > 1 || self.ungrouped_parens > 0;
        match self.scan.peek() {
            Some('(') => {
                self.scan.bump();
                self.open(at);
            }
            Some(')') if in_group => {
                self.scan.bump();
                self.close();
            }
            Some('-') if self.is_negation() => {
                self.scan.bump();
                self.not(NegationToken {
                    written: "-",
                    at,
                    negates_phrases: true,
                    negates_words: true,
                });
            }
            _ => {
                if let Some(text) = self.scan.quoted() {
                    self.phrase(at, text);
                } else if let Some(condition) = self.condition(at, in_group) {
                    self.push_condition(&condition);
                } else {
                    self.word(at, in_group);
                }
            }
        }
    }

    /// Whether the hyphen here negates: it does at the beginning of a word, unless a digit follows. `-5` is a
    /// number.
    fn is_negation(&self) -> bool {
        let begins = |c: char| is_blank(c) || c == '(';
        let next = self.scan.rest().chars().nth(1);
        self.scan.previous().is_none_or(begins)
            && next.is_some_and(|c| c.is_alphabetic() || is_quote(c) || c == '(')
    }

    fn open(&mut self, at: usize) {
        if self.groups.len() > MAX_QUERY_DEPTH {
            self.ungrouped_parens += 1;
            return;
        }
        let phrases_before = self.out.phrases.len();
        let Some(outer) = self.groups.last_mut() else {
            return;
        };
        let not = outer.pending_negation.take();
        let excludes = not.is_some_and(|not| not.negates_words);
        let group = ParenGroup {
            start: not.map_or(at, |not| not.at),
            is_negated: not.is_some(),
            excludes_words: outer.excludes_words != excludes,
            phrases_before,
            ..ParenGroup::default()
        };
        self.groups.push(group);
    }

    fn close(&mut self) {
        if self.ungrouped_parens > 0 {
            self.ungrouped_parens -= 1;
            return;
        }
        self.flush_operators();
        let Some(group) = self.groups.pop() else {
            return;
        };
        let (start, is_negated, has_words) = (group.start, group.is_negated, group.has_words);
        let phrases = group.phrases_before..self.out.phrases.len();
        let node = FilterNode::joined(BooleanOperator::And, group.finish());
        let node = node.map(|node| if is_negated { node.negated() } else { node });
        let span = start..self.scan.at();
        match node {
            Some(node) if node.depth > MAX_GROUP_DEPTH => {
                self.reset_operand();
                let reason = format!("a filter has at most {MAX_FILTER_DEPTH} levels");
                self.ignore(span, reason, None);
            }
            Some(node) => self.push_operand(Some(FilterNode { span, ..node }), phrases),
            None if has_words => self.push_operand(None, phrases),
            None => {}
        }
    }

    /// Adds a condition (or words, when `node` is `None`) to the current group, joined by the pending operator and
    /// negated by the pending negation.
    pub(super) fn push_operand(&mut self, node: Option<FilterNode>, phrases: Range<usize>) {
        let is_condition = node.is_some();
        let join = self.join(is_condition, &phrases);
        let not = self.group().and_then(|group| group.pending_negation.take());
        let Some(group) = self.group() else {
            return;
        };
        group.has_words |= !is_condition;
        group.follows_nothing = false;
        group.last_word = None;
        group.last = Some(LastOperand {
            is_condition,
            phrases,
        });
        if let Some(node) = node {
            let node = match not {
                Some(not) => FilterNode {
                    span: not.at..node.span.end,
                    ..node.negated()
                },
                None => node,
            };
            group.push(node, join);
        }
    }

    /// Resolves the pending operator between the last operand and the next. Between words, `or` is plain text, and
    /// `OR` only makes the phrases beside it optional.
    fn join(&mut self, is_condition: bool, phrases: &Range<usize>) -> Option<BooleanOperator> {
        let group = self.group()?;
        let joint = group.pending_operator.take()?;
        let (was_condition, before) = group
            .last
            .as_ref()
            .map(|last| (last.is_condition, last.phrases.clone()))?;
        let are_conditions = is_condition && was_condition;
        let is_operator = joint.is_uppercase && self.capitals_mean_something;
        if !are_conditions && !is_operator {
            self.out.push_text(joint.written);
            return None;
        }
        self.out.make_optional(joint.operator, before);
        self.out.make_optional(joint.operator, phrases.clone());
        if joint.operator == BooleanOperator::Or && is_condition != was_condition {
            let span = joint.at..joint.at + joint.written.len();
            let reason = "`OR` joins a filter with a filter, or a word with a word".to_owned();
            self.ignore(span, reason, None);
        }
        are_conditions.then_some(joint.operator)
    }

    /// Forgets the last operand and the pending operators after an ignored condition: nothing can be joined with
    /// it.
    pub(super) fn reset_operand(&mut self) {
        if let Some(group) = self.group() {
            group.pending_operator = None;
            group.pending_negation = None;
            group.last = None;
            group.last_word = None;
            group.follows_nothing = true;
        }
    }

    pub(super) fn group(&mut self) -> Option<&mut ParenGroup<'q>> {
        self.groups.last_mut()
    }

    /// Reports a span of the query as an ignored condition.
    pub(super) fn ignore(&mut self, span: Range<usize>, reason: String, meant: Option<String>) {
        let ignored = IgnoredCondition {
            written: self.scan.slice(span.clone()).to_owned(),
            reason,
            meant,
        };
        self.out.ignore(span.start, ignored);
    }
}
