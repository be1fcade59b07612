//! Conditions that stand beside each other, or between `OR`, `AND` and parentheses, into one.
//!
//! `AND` binds first, then `OR`, then standing side by side: `a b OR c d` wants `a`, one of `b` and
//! `c`, and `d`, as people mean it; `a AND b OR c AND d` wants one of the two pairs.

use std::ops::Range;

use crate::filter::Filter;

/// A condition and where it stands in the query.
pub(super) struct FilterNode {
    pub filter: Filter,
    /// How many levels it has.
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

    /// One condition of several; those of the same kind inside it are spread out.
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

/// How two conditions are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BooleanOperator {
    And,
    Or,
}

/// A word that joins what stands before it with what comes.
#[derive(Clone, Copy)]
pub(super) struct OperatorToken<'q> {
    pub written: &'q str,
    pub at: usize,
    pub join: BooleanOperator,
    /// Whether it is written as an operator; `or` is one only between conditions.
    pub is_uppercase: bool,
}

/// A mark that turns around what comes.
#[derive(Clone, Copy)]
pub(super) struct NegationToken<'q> {
    pub written: &'q str,
    pub at: usize,
    /// Whether it turns phrases around: `not` is part of the sentence.
    pub negates_phrases: bool,
    /// Whether it turns words around: in "do NOT enter" it is part of the sentence.
    pub negates_words: bool,
}

/// What came last.
pub(super) struct LastOperand {
    pub is_condition: bool,
    /// The phrases in it, by their places in the list of phrases.
    pub phrases: Range<usize>,
}

/// What stands between two parentheses, or in the whole query.
#[derive(Default)]
pub(super) struct ParenGroup<'q> {
    pub start: usize,
    /// Whether its conditions are turned around once it ends.
    pub is_negated: bool,
    /// Whether its words must not occur, all groups around it considered.
    pub excludes_words: bool,
    pub has_words: bool,
    /// How many phrases there were when it began.
    pub phrases_before: usize,
    pub joint: Option<OperatorToken<'q>>,
    pub not: Option<NegationToken<'q>>,
    pub last: Option<LastOperand>,
    /// Whether what came last is a condition that is not kept.
    pub follows_nothing: bool,
    /// The word right before this place, if it is one.
    pub last_word: Option<&'q str>,
    /// Those that stand side by side and are complete.
    pub all: Vec<FilterNode>,
    /// The parts of an `OR` that may go on.
    pub any: Vec<FilterNode>,
    /// The parts of an `AND` that may go on.
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

    /// The conditions, all of which have to be met.
    pub(super) fn finish(mut self) -> Vec<FilterNode> {
        self.end_both();
        self.end_any();
        self.all
    }
}
