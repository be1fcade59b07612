//! Operator precedence: builds one filter from conditions joined by `OR`, `AND`, juxtaposition and parentheses.
//!
//! `AND` binds tightest, then `OR`, then juxtaposition: `a b OR c d` means `a`, one of `b` and `c`, and `d`, as
//! people intend it; `a AND b OR c AND d` means one of the two pairs.

use std::ops::Range;

use crate::filter::Filter;

/// A filter with its nesting depth and its span in the query.
pub(super) struct FilterNode {
    pub filter: Filter,
    /// The number of nesting levels, which is limited.
    pub depth: usize,
    pub span: Range<usize>,
}

impl FilterNode {
    pub(super) fn negated(self) -> Self {
        let Self {
            filter,
            depth,
            span,
        } = self;
        match filter {
            Filter::Not(inner) => Self {
                filter: *inner,
                depth: depth - 1,
                span,
            },
            filter => Self {
                filter: Filter::Not(Box::new(filter)),
                depth: depth + 1,
                span,
            },
        }
    }

    /// Joins several filters to one. Parts that have the same operator are flattened into it.
    pub(super) fn joined(join: BooleanOperator, mut nodes: Vec<Self>) -> Option<Self> {
        let start = nodes.iter().map(|node| node.span.start).min()?;
        let end = nodes.iter().map(|node| node.span.end).max()?;
        if nodes.len() == 1 {
            return nodes.pop();
        }
        let mut depth = 0;
        let mut parts = Vec::new();
        for node in nodes {
            match (join, node.filter) {
                (BooleanOperator::And, Filter::All(inner))
                | (BooleanOperator::Or, Filter::Any(inner)) => {
                    depth = depth.max(node.depth - 1);
                    parts.extend(inner);
                }
                (_, filter) => {
                    depth = depth.max(node.depth);
                    parts.push(filter);
                }
            }
        }
        Some(Self {
            filter: match join {
                BooleanOperator::And => Filter::All(parts),
                BooleanOperator::Or => Filter::Any(parts),
            },
            depth: depth + 1,
            span: start..end,
        })
    }
}

/// The operator between two conditions or words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BooleanOperator {
    And,
    Or,
}

/// A pending operator, waiting for its right operand.
#[derive(Clone, Copy)]
pub(super) struct OperatorToken<'q> {
    pub written: &'q str,
    pub at: usize,
    pub operator: BooleanOperator,
    /// Whether it is in capitals; `or` is an operator only between conditions.
    pub is_uppercase: bool,
}

/// A pending negation, waiting for its operand.
#[derive(Clone, Copy)]
pub(super) struct NegationToken<'q> {
    pub written: &'q str,
    pub at: usize,
    /// Whether it negates phrases: `-` and `NOT` do, `not` is part of the sentence.
    pub negates_phrases: bool,
    /// Whether it negates words: `NOT` does not in "do NOT enter", where it is part of the sentence.
    pub negates_words: bool,
}

/// The last operand of a group: the left side of an operator that may follow.
pub(super) struct LastOperand {
    pub is_condition: bool,
    /// Its phrases, as indices into the list of phrases.
    pub phrases: Range<usize>,
}

/// The state of one open parenthesis, or of the whole query.
#[derive(Default)]
pub(super) struct ParenGroup<'q> {
    pub start: usize,
    /// Whether its filter is negated when it closes.
    pub is_negated: bool,
    /// Whether its words are excluded, with the negations of all enclosing groups counted.
    pub excludes_words: bool,
    pub has_words: bool,
    /// The number of phrases before the group, which tells its own ones apart.
    pub phrases_before: usize,
    pub pending_operator: Option<OperatorToken<'q>>,
    pub pending_negation: Option<NegationToken<'q>>,
    pub last: Option<LastOperand>,
    /// Whether the last operand was an ignored condition.
    pub follows_nothing: bool,
    /// The preceding word, if nothing stands between.
    pub last_word: Option<&'q str>,
    /// The complete operands of the juxtaposition.
    pub all: Vec<FilterNode>,
    /// The operands of an `OR` that may continue.
    pub any: Vec<FilterNode>,
    /// The operands of an `AND` that may continue.
    pub both: Vec<FilterNode>,
}

impl ParenGroup<'_> {
    pub(super) fn push(&mut self, node: FilterNode, join: Option<BooleanOperator>) {
        if join != Some(BooleanOperator::And) {
            self.end_both();
        }
        if join.is_none() {
            self.end_any();
        }
        self.both.push(node);
    }

    fn end_both(&mut self) {
        let both = std::mem::take(&mut self.both);
        self.any
            .extend(FilterNode::joined(BooleanOperator::And, both));
    }

    fn end_any(&mut self) {
        let any = std::mem::take(&mut self.any);
        self.all
            .extend(FilterNode::joined(BooleanOperator::Or, any));
    }

    /// Closes all pending operators and returns the conditions, all of which have to be met.
    pub(super) fn finish(mut self) -> Vec<FilterNode> {
        self.end_both();
        self.end_any();
        self.all
    }
}
