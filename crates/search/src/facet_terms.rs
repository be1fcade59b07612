//! Encoding of metadata fields as sortable index terms, and back.
//!
//! Every value of every field is one term of one index field: the field name, a marker of its type, and the value
//! in an encoding whose byte order is the order of the values. So a value, a range of dates or numbers, and all
//! values of a field are each one contiguous range of the term dictionary, and a thousand field names cost no more
//! than one.

use std::ops::Range;

use crate::calendar::Day;
use crate::catalog::CatalogBuilder;
use crate::document::{Document, DocumentValue};
use crate::filter::{FieldTest, fold_value};

/// The terminator of a field name or a folded text, neither of which contains it.
pub(crate) const END: char = '\0';

/// The longest value that is stored for display, in characters; as many are compared.
const MAX_SHOWN_CHARS: usize = 256;

/// The character after [`END`], as the exclusive upper bound of a range.
const AFTER: char = '\u{1}';

/// The markers of the value types.
const TEXT: char = 't';
const ITEM: char = 'l';
const LIST: char = 'L';
const NUMBER: char = 'n';
const DATE: char = 'd';
const BOOL: char = 'b';

/// The terms of all fields of a document, sorted and without duplicates.
pub(crate) fn terms(document: &Document) -> Vec<String> {
    let mut terms = Vec::new();
    for (name, value) in document.filterable_fields() {
        let start = start(name);
        match value.as_ref() {
            DocumentValue::Text(text) => terms.push(text_term(&start, TEXT, text)),
            DocumentValue::List(items) => {
                terms.push(format!("{start}{LIST}"));
                terms.extend(items.iter().map(|item| text_term(&start, ITEM, item)));
            }
            // NaN passes no test, and would sort after all numbers.
            DocumentValue::Number(number) if number.is_nan() => {}
            DocumentValue::Number(number) => {
                terms.push(format!("{start}{NUMBER}{}", sortable(*number)));
            }
            DocumentValue::Date(day) => {
                let day = Day::parse(day).map(|day| format!("{start}{DATE}{day}"));
                terms.extend(day);
            }
            DocumentValue::Bool(flag) => terms.push(format!("{start}{BOOL}{}", u8::from(*flag))),
        }
    }
    terms.sort_unstable();
    terms.dedup();
    terms
}

fn text_term(start: &str, mark: char, text: &str) -> String {
    let folded = fold_value(text);
    let shown: String = sanitize(text.trim())
        .chars()
        .take(MAX_SHOWN_CHARS)
        .collect();
    format!("{start}{mark}{}{END}{shown}", sanitize(&folded))
}

/// The range of terms that holds every value of a field.
pub(crate) fn field_range(name: &str) -> Range<String> {
    let name = sanitize(name);
    format!("{name}{END}")..format!("{name}{AFTER}")
}

/// The ranges of terms whose documents pass a test.
pub(crate) fn ranges(name: &str, test: &FieldTest) -> Vec<Range<String>> {
    let start = start(name);
    match test {
        FieldTest::Is(text) => {
            let text = sanitize(&fold_value(text));
            let one = |mark: char| {
                format!("{start}{mark}{text}{END}")..format!("{start}{mark}{text}{AFTER}")
            };
            vec![one(TEXT), one(ITEM)]
        }
        FieldTest::Number { from, to } if [from, to].into_iter().flatten().any(|x| x.is_nan()) => {
            Vec::new()
        }
        FieldTest::Number { from, to } => {
            let from = from.map_or(String::new(), sortable);
            // Range ends are exclusive, so one more character includes the bound itself.
            let to = to.map_or("g".to_owned(), |to| sortable(to) + "0");
            vec![format!("{start}{NUMBER}{from}")..format!("{start}{NUMBER}{to}")]
        }
        FieldTest::Date { from, to } => {
            let day = |bound: &Option<String>| match bound {
                Some(bound) => Day::parse(bound).map(|day| Some(day.to_string())),
                None => Some(None),
            };
            let (Some(from), Some(to)) = (day(from), day(to)) else {
                return Vec::new();
            };
            let to = to.map_or("~".to_owned(), |to| to + " ");
            let from = from.unwrap_or_default();
            vec![format!("{start}{DATE}{from}")..format!("{start}{DATE}{to}")]
        }
        FieldTest::Bool(flag) => {
            let value = format!("{start}{BOOL}{}", u8::from(*flag));
            vec![value.clone()..value + " "]
        }
    }
}

/// Decodes a term and adds it to the catalog, with its number of documents.
pub(crate) fn add_to_catalog(term: &str, documents: u64, catalog: &mut CatalogBuilder) {
    let Some((name, value)) = term.split_once(END) else {
        return;
    };
    let mut chars = value.chars();
    let mark = chars.next();
    let rest = chars.as_str();
    match mark {
        Some(TEXT) => catalog.text(name, shown(rest), documents),
        Some(ITEM) => catalog.item(name, shown(rest), documents),
        Some(LIST) => catalog.list(name, documents),
        Some(NUMBER) => {
            if let Some(number) = from_sortable(rest) {
                catalog.number(name, (number, number), documents);
            }
        }
        Some(DATE) => {
            if let Some(day) = Day::parse(rest) {
                catalog.date(name, (day, day), documents);
            }
        }
        Some(BOOL) => catalog.flag(name, rest == "1", documents),
        _ => {}
    }
}

/// The value of a term for display; `None` for a term that only marks the presence of a list.
pub(crate) fn display_value(term: &str) -> Option<String> {
    let (_, value) = term.split_once(END)?;
    let mut chars = value.chars();
    let mark = chars.next()?;
    let rest = chars.as_str();
    match mark {
        TEXT | ITEM => Some(shown(rest).to_owned()),
        NUMBER => from_sortable(rest).map(|number| DocumentValue::Number(number).to_string()),
        DATE => Some(rest.to_owned()),
        BOOL => Some((rest == "1").to_string()),
        _ => None,
    }
}

fn shown(rest: &str) -> &str {
    rest.split_once(END).map_or(rest, |(_, shown)| shown)
}

fn start(name: &str) -> String {
    sanitize(name) + "\0"
}

/// Replaces the two reserved characters by spaces.
pub(crate) fn sanitize(text: &str) -> String {
    text.replace([END, AFTER], " ")
}

/// Order-preserving encoding of a number as sixteen hexadecimal digits: flips the sign bit, or all bits of a
/// negative number.
fn sortable(number: f64) -> String {
    // Both zeros are equal.
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    let flipped = if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    };
    format!("{flipped:016x}")
}

fn from_sortable(digits: &str) -> Option<f64> {
    let flipped = u64::from_str_radix(digits, 16).ok()?;
    let bits = if flipped >> 63 == 1 {
        flipped & !(1 << 63)
    } else {
        !flipped
    };
    Some(f64::from_bits(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_like_numbers() {
        let numbers = [
            f64::NEG_INFINITY,
            -1e300,
            -2.0,
            -0.5,
            0.0,
            1e-300,
            0.5,
            1.0,
            10.0,
            9e99,
            f64::INFINITY,
        ];
        let terms = numbers.map(sortable);
        assert!(terms.is_sorted());
        let back = terms.each_ref().map(|term| from_sortable(term).unwrap());
        assert_eq!(back, numbers);
        assert_eq!(sortable(-0.0), sortable(0.0));
    }

    #[test]
    fn a_value_is_within_the_range_of_its_test_and_of_its_field() {
        let text = text_term("party\0", TEXT, "LÁBOR  Party");
        let [is, _] = &ranges("party", &FieldTest::Is("labor party".to_owned()))[..] else {
            panic!("two ranges");
        };
        assert!(is.contains(&text));
        assert!(field_range("party").contains(&text));
        assert!(!field_range("part").contains(&text));
        assert!(!field_range("party ").contains(&text));
        assert_eq!(display_value(&text).as_deref(), Some("LÁBOR  Party"));
        let [longer, _] = &ranges("party", &FieldTest::Is("labor".to_owned()))[..] else {
            panic!("two ranges");
        };
        assert!(!longer.contains(&text));
    }

    #[test]
    fn both_ends_belong_to_a_range() {
        let number = FieldTest::Number {
            from: Some(-1.5),
            to: Some(2.0),
        };
        let range = &ranges("n", &number)[0];
        for (n, inside) in [(-1.6, false), (-1.5, true), (2.0, true), (2.1, false)] {
            assert_eq!(
                range.contains(&format!("n\0n{}", sortable(n))),
                inside,
                "{n}"
            );
        }
        let day = FieldTest::Date {
            from: Some("2024-05-01".to_owned()),
            to: Some("2024-05-31".to_owned()),
        };
        let range = &ranges("date", &day)[0];
        for (day, inside) in [
            ("2024-04-30", false),
            ("2024-05-01", true),
            ("2024-05-31", true),
            ("2024-06-01", false),
        ] {
            assert_eq!(range.contains(&format!("date\0d{day}")), inside, "{day}");
        }
    }
}
