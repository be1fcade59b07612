//! Range syntax: parses comparisons and ranges such as `>500`, `100..200` and `2024-06..` into field tests.

use crate::calendar::{DatePeriod, Day};
use crate::filter::FieldTest;

/// The comparison operators of ranges. For dates, `At` matches within the period that was written, `From` and `To`
/// include it, `After` and `Before` exclude it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RangeOperator {
    At,
    From,
    After,
    To,
    Before,
}

/// The operator signs. A sign that begins with another one comes first.
const SIGNS: [(&str, RangeOperator); 7] = [
    (">=", RangeOperator::From),
    ("<=", RangeOperator::To),
    (">", RangeOperator::After),
    ("<", RangeOperator::Before),
    ("=", RangeOperator::At),
    ("≥", RangeOperator::From),
    ("≤", RangeOperator::To),
];

/// Splits a leading operator from the value after it.
pub(super) fn operator(written: &str) -> Option<(RangeOperator, &str)> {
    let mut signs = SIGNS.iter();
    signs.find_map(|(sign, compare)| Some((*compare, written.strip_prefix(sign)?.trim_start())))
}

/// The two ends of `a..b`. An end that is empty or `*` is open, so it is `None`.
pub(super) fn range_ends(written: &str) -> Option<(Option<&str>, Option<&str>)> {
    let (from, to) = written
        .split_once("..")
        .or_else(|| written.split_once('…'))?;
    let end = |text: &'_ str| Some(text.trim()).is_some_and(|text| !text.is_empty() && text != "*");
    Some((
        end(from).then_some(from.trim()),
        end(to).then_some(to.trim()),
    ))
}

/// Parses a test on numbers. Reversed ends are swapped.
pub(super) fn numbers(written: &str) -> Option<FieldTest> {
    let (from, to) = if let Some((from, to)) = range_ends(written) {
        let from = optional(from, number)?;
        let to = optional(to, number)?;
        match (from, to) {
            (Some(from), Some(to)) if to < from => (Some(to), Some(from)),
            ends => ends,
        }
    } else {
        let (compare, value) = operator(written).unwrap_or((RangeOperator::At, written));
        let value = number(value)?;
        match compare {
            RangeOperator::At => (Some(value), Some(value)),
            RangeOperator::From => (Some(value), None),
            RangeOperator::After => (Some(value.next_up()), None),
            RangeOperator::To => (None, Some(value)),
            RangeOperator::Before => (None, Some(value.next_down())),
        }
    };
    (from.is_some() || to.is_some()).then_some(FieldTest::Number { from, to })
}

/// Parses a finite decimal number; `inf` and `nan` are words here.
fn number(written: &str) -> Option<f64> {
    let is_plain = |b: u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
    let written = Some(written.trim()).filter(|text| text.bytes().all(is_plain))?;
    written
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

/// Parses a test on days. Reversed ends are swapped.
pub(super) fn days(written: &str, today: Day) -> Option<FieldTest> {
    let Some((from, to)) = range_ends(written) else {
        let (compare, value) = operator(written).unwrap_or((RangeOperator::At, written));
        return compared_days(compare, value, today);
    };
    let period = |written: &str| DatePeriod::parse(written, today);
    let from = optional(from, period)?;
    let to = optional(to, period)?;
    let (from, to) = match (from, to) {
        (Some(from), Some(to)) if to.end() < from.first => (Some(to), Some(from)),
        ends => ends,
    };
    let test = between(from.map(|from| from.first), to.map(|to| to.end()));
    (from.is_some() || to.is_some()).then_some(test)
}

/// Compares days with one written date, which may be a period such as `2024-06`.
pub(super) fn compared_days(
    compare: RangeOperator,
    written: &str,
    today: Day,
) -> Option<FieldTest> {
    let period = DatePeriod::parse(written, today)?;
    Some(match compare {
        RangeOperator::At => between(Some(period.first), Some(period.last)),
        RangeOperator::From => between(Some(period.first), None),
        RangeOperator::After => between(Some(period.end().plus_days(1)?), None),
        RangeOperator::To => between(None, Some(period.end())),
        RangeOperator::Before => between(None, Some(period.first.plus_days(-1)?)),
    })
}

fn between(from: Option<Day>, to: Option<Day>) -> FieldTest {
    FieldTest::Date {
        from: from.map(|day| day.to_string()),
        to: to.map(|day| day.to_string()),
    }
}

/// Parses an end that may be open. Returns `None` when there is text that does not parse, so that the whole range
/// is rejected.
fn optional<T>(written: Option<&str>, parse: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    match written {
        Some(written) => parse(written).map(Some),
        None => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_in_every_form() {
        let at = |from, to| Some(FieldTest::Number { from, to });
        let cases = [
            ("500", at(Some(500.0), Some(500.0))),
            ("=500", at(Some(500.0), Some(500.0))),
            (">=500", at(Some(500.0), None)),
            ("≥500", at(Some(500.0), None)),
            ("<=-3.5", at(None, Some(-3.5))),
            (">500", at(Some(500_f64.next_up()), None)),
            ("<0", at(None, Some(0_f64.next_down()))),
            ("100..200", at(Some(100.0), Some(200.0))),
            ("200..100", at(Some(100.0), Some(200.0))),
            ("-5..5", at(Some(-5.0), Some(5.0))),
            ("100…200", at(Some(100.0), Some(200.0))),
            ("100..", at(Some(100.0), None)),
            ("*..1e3", at(None, Some(1_000.0))),
            ("0..99999999999999999999", at(Some(0.0), Some(1e20))),
            ("", None),
            ("..", None),
            ("*..*", None),
            ("many", None),
            ("1e999", None),
            ("nan", None),
            ("inf", None),
            ("1..x", None),
            ("1..2..3", None),
            ("5k", None),
            (">", None),
            (">=..5", None),
        ];
        for (written, expected) in cases {
            assert_eq!(numbers(written), expected, "{written}");
        }
    }

    #[test]
    fn days_are_parsed_in_every_form() {
        let today = Day::new(2024, 8, 15).unwrap();
        let cases = [
            ("2024", "2024-01-01", "2024-12-31"),
            ("2024-06..2024-09", "2024-06-01", "2024-09-30"),
            ("2024-09..2024-06", "2024-06-01", "2024-09-30"),
            ("2024..", "2024-01-01", ""),
            ("..2023", "", "2023-12-31"),
            (">=2024-05", "2024-05-01", ""),
            (">2024-05", "2024-06-01", ""),
            ("<2024", "", "2023-12-31"),
            ("<=2024", "", "2024-12-31"),
            ("30d", "2024-07-16", "2024-08-15"),
            (">=30d", "2024-07-16", ""),
            ("<=30d", "", "2024-07-16"),
            ("60d..30d", "2024-06-16", "2024-07-16"),
            ("today", "2024-08-15", "2024-08-15"),
        ];
        let end = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        for (written, from, to) in cases {
            let expected = FieldTest::Date {
                from: end(from),
                to: end(to),
            };
            assert_eq!(days(written, today), Some(expected), "{written}");
        }
        for written in [
            "",
            "..",
            "soon",
            "2024..soon",
            ">9999",
            "<0000",
            ">=",
            "1..2",
        ] {
            assert_eq!(days(written, today), None, "{written}");
        }
    }
}
