//! Parsing of field conditions: where `name:value` begins and ends, and whether it is applied, ignored or text.

use std::ops::Range;

use super::IgnoredCondition;
use super::boolean_groups::{BooleanOperator, FilterNode};
use super::field_resolver::{FieldTarget, ResolvedValue, ValueToken, format_condition};
use super::parser::QueryParser;
use super::range::{self, RangeOperator};
use super::scanner::{QueryScanner, is_blank, is_name_char, is_quote};
use crate::catalog::FieldKind;
use crate::filter::{Filter, MAX_CONDITIONS};

/// The separators between a name and its value. The wide colon is what a Chinese or Japanese keyboard types.
const COLONS: [char; 2] = [':', '：'];

/// A condition as it stands in the query, before its values are resolved.
pub(super) struct FieldCondition<'q> {
    at: usize,
    name: &'q str,
    target: FieldTarget<'q>,
    pieces: Vec<ValueToken<'q>>,
}

impl<'q> QueryParser<'q> {
    /// Parses a condition at the cursor, if there is one; otherwise the cursor does not move.
    pub(super) fn condition(&mut self, at: usize, in_group: bool) -> Option<FieldCondition<'q>> {
        let name = self.scan.name();
        let condition = self.condition_after_name(at, name, in_group);
        if condition.is_none() {
            self.scan.back_to(at);
        }
        condition
    }

    fn condition_after_name(
        &mut self,
        at: usize,
        name: &'q str,
        in_group: bool,
    ) -> Option<FieldCondition<'q>> {
        let next = self.scan.peek()?;
        let has_colon = COLONS.contains(&next);
        let sign = range::operator(self.scan.rest());
        if !has_colon && sign.is_none() {
            return None;
        }
        let target = self.fields.target(name)?;
        let pieces = if has_colon {
            self.scan.bump();
            self.pieces(target, in_group)
        } else {
            // `words>500` is a condition only when a field has that name and is ordered.
            let field = self.fields.names.find(name)?;
            let has_order = matches!(field.kind, FieldKind::Number | FieldKind::Date);
            sign.filter(|(compare, _)| has_order || *compare == RangeOperator::At)?;
            vec![self.piece(target, in_group)]
        };
        (!pieces.is_empty()).then_some(FieldCondition {
            at,
            name,
            target,
            pieces,
        })
    }

    fn pieces(&mut self, target: FieldTarget<'q>, in_group: bool) -> Vec<ValueToken<'q>> {
        match self.scan.peek() {
            Some(c) if is_blank(c) => return self.piece_after_blanks(target, in_group),
            Some(c) if COLONS.contains(&c) => return Vec::new(),
            Some('(') => {
                if let Some(inner) = self.scan.parenthesised() {
                    return alternatives(inner);
                }
            }
            _ => {}
        }
        let mut pieces = vec![self.piece(target, in_group)];
        while self.scan.eat(',') {
            let ends = self.scan.peek().is_none_or(|c| is_blank(c) || c == ')');
            if ends {
                break;
            }
            pieces.push(self.piece(target, in_group));
        }
        pieces.retain(|piece| piece.is_quoted || !piece.value.is_empty());
        pieces
    }

    fn piece(&mut self, target: FieldTarget<'q>, in_group: bool) -> ValueToken<'q> {
        if let Some(value) = self.scan.quoted() {
            return ValueToken {
                value,
                is_quoted: true,
            };
        }
        let long = self.fields.long_value(target.field, &mut self.scan);
        let value = long.unwrap_or_else(|| self.scan.run(&[','], in_group));
        ValueToken {
            value: value.trim_matches(is_quote),
            is_quoted: false,
        }
    }

    /// The value after a colon and a blank, as in `party: Labor`. Every other sentence has a colon and a blank, so
    /// the value has to be one that certainly fits the field.
    fn piece_after_blanks(
        &mut self,
        target: FieldTarget<'q>,
        in_group: bool,
    ) -> Vec<ValueToken<'q>> {
        self.scan.skip_blanks();
        let first = self.scan.peek();
        let piece = self.piece(target, in_group);
        let is_measure = first.is_some_and(|c| c.is_ascii_digit() || "<>=≥≤".contains(c));
        let can_be = match target.field.kind {
            FieldKind::Number | FieldKind::Date => is_measure,
            FieldKind::Keyword | FieldKind::Text | FieldKind::List | FieldKind::Bool => true,
        };
        let is_known = |found: ResolvedValue| found.is_sure;
        let fits =
            piece.is_quoted || (can_be && self.fields.resolve(target, piece).is_ok_and(is_known));
        if fits { vec![piece] } else { Vec::new() }
    }

    pub(super) fn push_condition(&mut self, condition: &FieldCondition<'q>) {
        let span = condition.at..self.scan.at();
        let not = self.group().and_then(|group| group.pending_negation);
        let is_negated = not.is_some() || self.is_in_negation();
        let mut nodes = Vec::new();
        for piece in &condition.pieces {
            let result = match self.fields.resolve(condition.target, *piece) {
                Ok(found) => self.within_bounds(found.filter),
                Err(refused) => Err((refused.reason, refused.meant)),
            };
            match result {
                Ok((filter, depth)) => nodes.push(FilterNode {
                    filter,
                    depth,
                    span: span.clone(),
                }),
                Err((reason, meant)) => {
                    let ignored = IgnoredCondition {
                        written: match condition.pieces.len() {
                            1 => self.scan.slice(span.clone()).to_owned(),
                            _ => format_condition(condition.name, piece.value),
                        },
                        reason,
                        meant,
                    };
                    self.out.ignore(condition.at, ignored);
                    if !is_negated {
                        self.out.push_text(piece.value);
                    }
                }
            }
        }
        match FilterNode::joined(BooleanOperator::Or, nodes) {
            Some(node) => {
                let none = self.out.phrases.len()..self.out.phrases.len();
                self.push_operand(Some(node), none);
            }
            None => self.reset_operand(),
        }
    }

    /// Counts the conditions of a filter against the limit, and returns the filter with its depth.
    fn within_bounds(
        &mut self,
        filter: Filter,
    ) -> Result<(Filter, usize), (String, Option<String>)> {
        let (count, depth) = match &filter {
            Filter::Any(parts) => (parts.len(), 2),
            _ => (1, 1),
        };
        if self.conditions + count > MAX_CONDITIONS {
            let reason = format!("a query has at most {MAX_CONDITIONS} conditions");
            return Err((reason, None));
        }
        self.conditions += count;
        Ok((filter, depth))
    }

    /// Reports a condition on an unknown field, if the word looks like one; returns whether it did. The words are
    /// still searched as text, unless they were negated.
    pub(super) fn report_unknown_field(&mut self, at: usize, word: &'q str) -> bool {
        let parts = word.split_once(COLONS);
        let Some((name, value)) = parts.filter(|(name, value)| looks_like_condition(name, value))
        else {
            return false;
        };
        self.compared += 1;
        if self.compared > MAX_CONDITIONS || self.fields.target(name).is_some() {
            return false;
        }
        let end = self.scan.at();
        let is_range = range::operator(value).is_some() || range::range_ends(value).is_some();
        // Quoted text may contain blanks, so the value may go on after the word.
        self.scan.back_to(end - value.len());
        let quoted = self.scan.quoted();
        self.scan.back_to(quoted.map_or(end, |_| self.scan.at()));
        let piece = ValueToken {
            value: quoted.unwrap_or(value),
            is_quoted: quoted.is_some(),
        };
        let nearest = self.fields.nearest(name, piece);
        let misses_a_date = self.fields.misses_a_date(name, piece.value);
        let not = self.group().and_then(|group| group.pending_negation);
        let is_negated = not.is_some_and(|not| not.negates_phrases) || self.is_in_negation();
        let is_meant = nearest.is_some() || piece.is_quoted || is_range || misses_a_date;
        if !is_meant && !is_negated {
            return false;
        }
        let reason = match misses_a_date {
            true => "no document has a date".to_owned(),
            false => format!("no field is named `{name}`"),
        };
        let meant = nearest.map(|field| format_condition(&field.name, piece.value));
        self.ignore(at..self.scan.at(), reason, meant);
        if !is_negated {
            self.out.push_text(name);
            self.out.push_text(piece.value);
        }
        self.reset_operand();
        true
    }

    /// Whether an enclosing group is negated.
    fn is_in_negation(&self) -> bool {
        self.groups.iter().any(|group| group.is_negated)
    }
}

/// Whether these look like a field name and a value. `12:30`, `std::vec` and URLs do not.
fn looks_like_condition(name: &str, value: &str) -> bool {
    let is_name = name.starts_with(char::is_alphabetic) && name.chars().all(is_name_char);
    is_name && !value.is_empty() && !value.starts_with([':', '/', '\\'])
}

/// Parses the alternatives of `party:(Labor OR "Civic Labour")`.
fn alternatives(inner: &str) -> Vec<ValueToken<'_>> {
    let mut scan = QueryScanner::new(inner);
    let mut pieces = Vec::new();
    let mut run: Option<Range<usize>> = None;
    let end = |run: &mut Option<Range<usize>>, pieces: &mut Vec<_>| {
        if let Some(span) = run.take() {
            pieces.push(ValueToken {
                value: inner.get(span).unwrap_or_default(),
                is_quoted: false,
            });
        }
    };
    while scan.skip_blanks() {
        let start = scan.at();
        if let Some(value) = scan.quoted() {
            end(&mut run, &mut pieces);
            pieces.push(ValueToken {
                value,
                is_quoted: true,
            });
        } else if scan.eat(',') {
            end(&mut run, &mut pieces);
        } else {
            let word = scan.run(&[','], false);
            match word {
                "OR" | "or" | "|" | "||" => end(&mut run, &mut pieces),
                _ => run = Some(run.map_or(start, |run| run.start)..scan.at()),
            }
        }
    }
    end(&mut run, &mut pieces);
    pieces
}
