//! Field resolution: turns a field name and a written value into a filter, or into the reason why it is none.

use std::collections::BTreeMap;

use super::range::{self, RangeOperator};
use super::scanner::{QueryScanner, is_blank, is_quote};
use crate::calendar::Day;
use crate::catalog::{
    Catalog, CatalogField, FieldKind, FieldNameIndex, FieldValueIndex, MAX_KEYWORD_CHARS,
    RangeBound,
};
use crate::filter::{FieldTest, Filter, fold_value};

/// The most values of a field that a rejection lists.
const MAX_LISTED_VALUES: usize = 10;

/// Punctuation that ends a sentence rather than a value.
const FULL_STOPS: [char; 7] = ['.', ',', ';', ':', '!', '?', ')'];

/// The field that a name refers to. Names such as `since` also fix how its dates are compared.
#[derive(Clone, Copy)]
pub(super) struct FieldTarget<'c> {
    pub field: &'c CatalogField,
    /// The comparison that the name implies, as `since` does.
    compare: Option<RangeOperator>,
}

/// One value as it was written, without its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueToken<'q> {
    pub value: &'q str,
    pub is_quoted: bool,
}

/// A value that was resolved to a filter.
pub(super) struct ResolvedValue {
    pub filter: Filter,
    /// Whether the catalog confirms it; false for free text that may or may not occur.
    pub is_sure: bool,
}

/// A value that could not be resolved, with the reason and a correction.
pub(super) struct RejectedValue {
    pub reason: String,
    pub meant: Option<String>,
}

/// Resolves names and values against a catalog. The lookup tables of each field are built on first use and kept.
pub(super) struct FieldResolver<'c> {
    pub names: FieldNameIndex<'c>,
    catalog: &'c Catalog,
    values: BTreeMap<&'c str, FieldValueIndex<'c>>,
    today: Day,
}

impl<'c> FieldResolver<'c> {
    pub(super) fn new(catalog: &'c Catalog, today: Day) -> Self {
        Self {
            names: FieldNameIndex::of(catalog),
            catalog,
            values: BTreeMap::new(),
            today,
        }
    }

    /// The date field: the one named `date`, otherwise the first field of dates.
    fn date(&self) -> Option<&'c CatalogField> {
        let is_date = |field: &&CatalogField| field.kind == FieldKind::Date;
        let named = self.names.find("date").filter(is_date);
        named.or_else(|| self.catalog.fields.iter().find(is_date))
    }

    /// Resolves a name: a field, or else a date keyword such as `since`.
    pub(super) fn target(&self, name: &str) -> Option<FieldTarget<'c>> {
        if let Some(field) = self.names.find(name) {
            return Some(FieldTarget {
                field,
                compare: None,
            });
        }
        Some(FieldTarget {
            compare: Some(date_keyword(name)?),
            field: self.date()?,
        })
    }

    /// Whether this is a condition on a date while no document has one.
    pub(super) fn misses_a_date(&self, name: &str, value: &str) -> bool {
        let is_date = || range::days(value, self.today).is_some();
        date_keyword(name).is_some() && self.date().is_none() && is_date()
    }

    /// The field that was probably meant by an unknown name. A number, date or flag field only counts when the
    /// value fits it.
    pub(super) fn nearest(
        &mut self,
        name: &str,
        piece: ValueToken<'_>,
    ) -> Option<&'c CatalogField> {
        let field = self.names.nearest(name)?;
        let target = FieldTarget {
            field,
            compare: None,
        };
        let is_text = matches!(
            field.kind,
            FieldKind::Keyword | FieldKind::Text | FieldKind::List
        );
        (is_text || self.resolve(target, piece).is_ok()).then_some(field)
    }

    fn values(&mut self, field: &'c CatalogField) -> &FieldValueIndex<'c> {
        self.values
            .entry(&field.name)
            .or_insert_with(|| FieldValueIndex::of(field))
    }

    /// Takes the longest listed value of several words at the cursor: `Meadow Alliance` needs no quotes when the
    /// catalog lists it.
    pub(super) fn long_value<'q>(
        &mut self,
        field: &'c CatalogField,
        scan: &mut QueryScanner<'q>,
    ) -> Option<&'q str> {
        let start = scan.at();
        let values = self.values(field);
        let mut best = None;
        loop {
            scan.take_while(|c| !is_blank(c) && !is_quote(c) && !matches!(c, ',' | '(' | ')'));
            let written = scan.slice(start..scan.at());
            let value = written.trim_end_matches(FULL_STOPS);
            let is_long = value.contains(is_blank);
            if is_long && values.find(value).is_some() {
                best = Some((value, scan.at()));
            }
            let is_too_long = written.chars().nth(2 * MAX_KEYWORD_CHARS).is_some();
            let goes_on = scan.peek().is_some_and(is_blank) && values.has_longer_value(written);
            if is_too_long || !goes_on {
                break;
            }
            scan.take_while(is_blank);
        }
        scan.back_to(best.map_or(start, |(_, end)| end));
        best.map(|(value, _)| value)
    }

    /// Resolves one value by the kind of the field.
    pub(super) fn resolve(
        &mut self,
        target: FieldTarget<'c>,
        piece: ValueToken<'_>,
    ) -> Result<ResolvedValue, RejectedValue> {
        let FieldTarget { field, compare } = target;
        let today = self.today;
        let stripped = piece.value.trim_end_matches(FULL_STOPS);
        let trimmed = if piece.is_quoted {
            piece.value
        } else {
            stripped
        };
        let parse_either = |parse: &dyn Fn(&str) -> Option<FieldTest>| {
            parse(piece.value).or_else(|| parse(trimmed))
        };
        let test = match (compare, field.kind) {
            (Some(RangeOperator::At), _) | (None, FieldKind::Date) => {
                parse_either(&|written| range::days(written, today))
                    .ok_or_else(|| no_date(piece.value))
            }
            (Some(compare), _) => {
                parse_either(&|written| range::compared_days(compare, written, today))
                    .ok_or_else(|| no_date(piece.value))
            }
            (None, FieldKind::Number) => {
                parse_either(&range::numbers).ok_or_else(|| no_number(piece.value))
            }
            (None, FieldKind::Bool) => parse_either(&flag).ok_or_else(|| no_flag(piece.value)),
            (None, FieldKind::Keyword | FieldKind::Text | FieldKind::List) => {
                return self.resolve_text(field, piece, trimmed);
            }
        }?;
        Ok(ResolvedValue {
            filter: condition(field, test),
            is_sure: true,
        })
    }

    fn resolve_text(
        &mut self,
        field: &'c CatalogField,
        piece: ValueToken<'_>,
        trimmed: &str,
    ) -> Result<ResolvedValue, RejectedValue> {
        let value = match range::operator(trimmed) {
            Some((RangeOperator::At, value)) if !piece.is_quoted => value,
            _ => trimmed,
        };
        if fold_value(value).is_empty() {
            return Err(RejectedValue {
                reason: format!("`{}` needs a value", field.name),
                meant: None,
            });
        }
        let today = self.today;
        let values = self.values(field);
        let exact = values.find(piece.value).or_else(|| values.find(value));
        let by_partial_match = || values.with_words(value).filter(|_| field.is_enumerated());
        if let Some(value) = exact.or_else(by_partial_match) {
            return Ok(ResolvedValue {
                filter: condition(field, FieldTest::Is(value.to_owned())),
                is_sure: exact.is_some(),
            });
        }
        if field.is_enumerated() {
            let nearest = values.nearest(value);
            return Err(RejectedValue {
                reason: no_value(field, value),
                meant: nearest.map(|value| format_condition(&field.name, value)),
            });
        }
        Ok(ResolvedValue {
            filter: open_text(field, value, today),
            is_sure: false,
        })
    }
}

/// The comparison of a date keyword, if the name is one.
fn date_keyword(name: &str) -> Option<RangeOperator> {
    Some(match name.to_ascii_lowercase().as_str() {
        "date" | "year" => RangeOperator::At,
        "since" => RangeOperator::From,
        "after" => RangeOperator::After,
        "until" => RangeOperator::To,
        "before" => RangeOperator::Before,
        _ => return None,
    })
}

/// A test for free text. Where the field also has numbers or dates, the text may match one of them too.
fn open_text(field: &CatalogField, value: &str, today: Day) -> Filter {
    let other = match &field.range {
        Some((RangeBound::Number(_), _)) => range::numbers(value),
        Some((RangeBound::Date(_), _)) => range::days(value, today),
        None => None,
    };
    let text = condition(field, FieldTest::Is(value.to_owned()));
    match other {
        Some(test) => Filter::Any(vec![text, condition(field, test)]),
        None => text,
    }
}

fn condition(field: &CatalogField, test: FieldTest) -> Filter {
    Filter::Field {
        name: field.name.clone(),
        test,
    }
}

fn flag(written: &str) -> Option<FieldTest> {
    let written = written.strip_prefix('=').unwrap_or(written);
    match written.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(FieldTest::Bool(true)),
        "false" | "no" | "off" | "0" => Some(FieldTest::Bool(false)),
        _ => None,
    }
}

fn no_date(value: &str) -> RejectedValue {
    RejectedValue {
        reason: format!("`{value}` is not a date such as `2024-06-30`, `2024-06` or `30d`"),
        meant: None,
    }
}

fn no_number(value: &str) -> RejectedValue {
    RejectedValue {
        reason: format!("`{value}` is not a number such as `500`, `>500` or `100..200`"),
        meant: None,
    }
}

fn no_flag(value: &str) -> RejectedValue {
    RejectedValue {
        reason: format!("`{value}` is neither `true` nor `false`"),
        meant: None,
    }
}

fn no_value(field: &CatalogField, value: &str) -> String {
    let name = &field.name;
    let listed: Vec<String> = field
        .values
        .iter()
        .take(MAX_LISTED_VALUES)
        .map(|(value, _)| format!("`{value}`"))
        .collect();
    let names = listed.join(", ");
    match field.values.len().saturating_sub(listed.len()) {
        _ if listed.is_empty() => format!("no document has a value of `{name}`"),
        0 => format!("no `{name}` is `{value}`, only {names}"),
        rest => format!("no `{name}` is `{value}`, only {names} and {rest} more"),
    }
}

/// Formats a condition as it has to be typed, with quotes and underscores where they are needed.
pub(super) fn format_condition(name: &str, value: &str) -> String {
    let name = name.replace(' ', "_");
    let needs_quotes = |c: char| is_blank(c) || is_quote(c) || matches!(c, ',' | '(' | ')');
    if value.contains(needs_quotes) || value.ends_with(FULL_STOPS) {
        format!("{name}:\"{value}\"")
    } else {
        format!("{name}:{value}")
    }
}
