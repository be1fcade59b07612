//! A field's name and what is written behind it into a filter, or into the reason why not.

use std::collections::BTreeMap;

use super::range::{self, Compare};
use super::scan::{Scan, is_blank, is_quote};
use crate::calendar::Day;
use crate::catalog::{Bound, Catalog, Field, Kind, MAX_KEYWORD_CHARS, Names, Values};
use crate::filter::{Filter, Test, fold_value};

/// The most values that a reason names.
const MAX_VALUES_TOLD: usize = 10;

/// Marks that end a sentence rather than a value.
const FULL_STOPS: [char; 7] = ['.', ',', ';', ':', '!', '?', ')'];

/// What a name stands for.
#[derive(Clone, Copy)]
pub(super) struct Target<'c> {
    pub field: &'c Field,
    /// How its days are compared, when the name says so, as `since` does.
    compare: Option<Compare>,
}

/// One value as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'q> {
    pub value: &'q str,
    pub is_quoted: bool,
}

/// A value that was understood.
pub(super) struct Found {
    pub filter: Filter,
    /// Whether it is known to make sense, and not just a text that may occur.
    pub is_sure: bool,
}

/// A value that was not.
pub(super) struct Refused {
    pub reason: String,
    pub meant: Option<String>,
}

/// The fields of a catalog, ready to be looked up again and again.
pub(super) struct Fields<'c> {
    pub names: Names<'c>,
    catalog: &'c Catalog,
    values: BTreeMap<&'c str, Values<'c>>,
    today: Day,
}

impl<'c> Fields<'c> {
    pub(super) fn new(catalog: &'c Catalog, today: Day) -> Self {
        Self {
            names: Names::of(catalog),
            catalog,
            values: BTreeMap::new(),
            today,
        }
    }

    /// The field that words about time are about.
    fn date(&self) -> Option<&'c Field> {
        let is_date = |field: &&Field| field.kind == Kind::Date;
        let named = self.names.find("date").filter(is_date);
        named.or_else(|| self.catalog.fields.iter().find(is_date))
    }

    /// What a name stands for: a field, or else a word about the date.
    pub(super) fn target(&self, name: &str) -> Option<Target<'c>> {
        if let Some(field) = self.names.find(name) {
            return Some(Target {
                field,
                compare: None,
            });
        }
        Some(Target {
            compare: Some(date_keyword(name)?),
            field: self.date()?,
        })
    }

    /// Whether this would be about the date if there were one.
    pub(super) fn misses_a_date(&self, name: &str, value: &str) -> bool {
        let is_date = || range::days(value, self.today).is_some();
        date_keyword(name).is_some() && self.date().is_none() && is_date()
    }

    /// The field that was meant by a name that none has. A date is not meant by what is no date.
    pub(super) fn nearest(&mut self, name: &str, piece: Piece<'_>) -> Option<&'c Field> {
        let field = self.names.nearest(name)?;
        let target = Target {
            field,
            compare: None,
        };
        let is_text = matches!(field.kind, Kind::Keyword | Kind::Text | Kind::List);
        (is_text || self.resolve(target, piece).is_ok()).then_some(field)
    }

    fn values(&mut self, field: &'c Field) -> &Values<'c> {
        self.values
            .entry(&field.name)
            .or_insert_with(|| Values::of(field))
    }

    /// Takes a value of several words, if that is what stands here: `Meadow Alliance` needs no
    /// quotes when the documents have it.
    pub(super) fn long_value<'q>(
        &mut self,
        field: &'c Field,
        scan: &mut Scan<'q>,
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

    /// What one value means.
    pub(super) fn resolve(
        &mut self,
        target: Target<'c>,
        piece: Piece<'_>,
    ) -> Result<Found, Refused> {
        let Target { field, compare } = target;
        let today = self.today;
        let stripped = piece.value.trim_end_matches(FULL_STOPS);
        let trimmed = if piece.is_quoted {
            piece.value
        } else {
            stripped
        };
        let either =
            |read: &dyn Fn(&str) -> Option<Test>| read(piece.value).or_else(|| read(trimmed));
        let test = match (compare, field.kind) {
            (Some(Compare::At), _) | (None, Kind::Date) => {
                either(&|written| range::days(written, today)).ok_or_else(|| no_date(piece.value))
            }
            (Some(compare), _) => either(&|written| range::compared_days(compare, written, today))
                .ok_or_else(|| no_date(piece.value)),
            (None, Kind::Number) => either(&range::numbers).ok_or_else(|| no_number(piece.value)),
            (None, Kind::Bool) => either(&flag).ok_or_else(|| no_flag(piece.value)),
            (None, Kind::Keyword | Kind::Text | Kind::List) => {
                return self.resolve_text(field, piece, trimmed);
            }
        }?;
        Ok(Found {
            filter: condition(field, test),
            is_sure: true,
        })
    }

    fn resolve_text(
        &mut self,
        field: &'c Field,
        piece: Piece<'_>,
        trimmed: &str,
    ) -> Result<Found, Refused> {
        let plain = match range::operator(trimmed) {
            Some((Compare::At, value)) if !piece.is_quoted => value,
            _ => trimmed,
        };
        if fold_value(plain).is_empty() {
            return Err(Refused {
                reason: format!("nothing is written behind `{}`", field.name),
                meant: None,
            });
        }
        let today = self.today;
        let values = self.values(field);
        let exact = values.find(piece.value).or_else(|| values.find(plain));
        let by_words = || values.with_words(plain).filter(|_| field.is_enumerated());
        if let Some(value) = exact.or_else(by_words) {
            return Ok(Found {
                filter: condition(field, Test::Is(value.to_owned())),
                is_sure: exact.is_some(),
            });
        }
        if field.is_enumerated() {
            let nearest = values.nearest(plain);
            return Err(Refused {
                reason: no_value(field, plain),
                meant: nearest.map(|value| format_condition(&field.name, value)),
            });
        }
        Ok(Found {
            filter: open_text(field, plain, today),
            is_sure: false,
        })
    }
}

/// How a word about dates compares, if it is one.
fn date_keyword(name: &str) -> Option<Compare> {
    Some(match name.to_ascii_lowercase().as_str() {
        "date" | "year" => Compare::At,
        "since" => Compare::From,
        "after" => Compare::After,
        "until" => Compare::To,
        "before" => Compare::Before,
        _ => return None,
    })
}

/// A text that may occur. Where the field also has numbers or days, it may be one of them too.
fn open_text(field: &Field, value: &str, today: Day) -> Filter {
    let other = match &field.range {
        Some((Bound::Number(_), _)) => range::numbers(value),
        Some((Bound::Date(_), _)) => range::days(value, today),
        None => None,
    };
    let text = condition(field, Test::Is(value.to_owned()));
    match other {
        Some(test) => Filter::Any(vec![text, condition(field, test)]),
        None => text,
    }
}

fn condition(field: &Field, test: Test) -> Filter {
    Filter::Field {
        name: field.name.clone(),
        test,
    }
}

fn flag(written: &str) -> Option<Test> {
    let written = written.strip_prefix('=').unwrap_or(written);
    match written.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(Test::Bool(true)),
        "false" | "no" | "off" | "0" => Some(Test::Bool(false)),
        _ => None,
    }
}

fn no_date(value: &str) -> Refused {
    Refused {
        reason: format!("`{value}` is not a date such as `2024-06-30`, `2024-06` or `30d`"),
        meant: None,
    }
}

fn no_number(value: &str) -> Refused {
    Refused {
        reason: format!("`{value}` is not a number such as `500`, `>500` or `100..200`"),
        meant: None,
    }
}

fn no_flag(value: &str) -> Refused {
    Refused {
        reason: format!("`{value}` is neither `true` nor `false`"),
        meant: None,
    }
}

fn no_value(field: &Field, value: &str) -> String {
    let name = &field.name;
    let told: Vec<String> = field
        .values
        .iter()
        .take(MAX_VALUES_TOLD)
        .map(|(value, _)| format!("`{value}`"))
        .collect();
    let list = told.join(", ");
    match field.values.len().saturating_sub(told.len()) {
        _ if told.is_empty() => format!("no document has a value of `{name}`"),
        0 => format!("no `{name}` is `{value}`, only {list}"),
        rest => format!("no `{name}` is `{value}`, only {list} and {rest} more"),
    }
}

/// A condition as it has to be written to be understood.
pub(super) fn format_condition(name: &str, value: &str) -> String {
    let name = name.replace(' ', "_");
    let needs_quotes = |c: char| is_blank(c) || is_quote(c) || matches!(c, ',' | '(' | ')');
    if value.contains(needs_quotes) || value.ends_with(FULL_STOPS) {
        format!("{name}:\"{value}\"")
    } else {
        format!("{name}:{value}")
    }
}
