//! Property tests of the query parser: invariants that hold for any query.

use proptest::collection::vec;
use proptest::prelude::*;

use super::bombs::bounded;
use super::{catalog, today};
use crate::calendar::Day;
use crate::filter::{FieldTest, Filter};
use crate::grammar::parse;

/// Generates fragments of the grammar among arbitrary text, in any order.
fn query() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![
            "party", "words", "date", "open", "since", "topic_tags", "keywords", "foo", ":", ":",
            "Labor", "Greens", "Civic", "Union", "5", "2024", "2024-06", "30d", "yes", "..", ">",
            "<=", "=", ",", "\"", "“", "”", "(", ")", "-", " ", " ", " ", "OR", "AND", "NOT",
            "or", "housing", "the", "\u{202E}", "\0", "é", "東京", "party:Labor", " -party:Greens ",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "\\PC{0,8}",
    ];
    (vec(piece, 0..60), prop::sample::select(vec!["", " "]))
        .prop_map(|(pieces, between)| pieces.join(between))
}

fn leaf() -> impl Strategy<Value = Filter> {
    let is = |name: &'static str, values: Vec<&'static str>| {
        prop::sample::select(values).prop_map(move |value| (name, FieldTest::Is(value.to_owned())))
    };
    let day = || (-3_000_i64..30_000).prop_map(|n| Day::from_number(n).unwrap().to_string());
    let dates =
        (prop::option::of(day()), day(), any::<bool>()).prop_map(|(other, day, is_from)| {
            let (from, to) = match other {
                Some(other) if other < day => (Some(other), Some(day)),
                Some(other) => (Some(day), Some(other)),
                None if is_from => (Some(day), None),
                None => (None, Some(day)),
            };
            ("date", FieldTest::Date { from, to })
        });
    let finite = || any::<f64>().prop_filter("finite", |number| number.is_finite());
    let numbers = (prop::option::of(finite()), finite(), any::<bool>()).prop_map(
        |(other, number, is_from)| {
            let (from, to) = match other {
                Some(other) => (Some(other.min(number)), Some(other.max(number))),
                None if is_from => (Some(number), None),
                None => (None, Some(number)),
            };
            ("words", FieldTest::Number { from, to })
        },
    );
    let any_text = "[^\"\\s\\p{C}][^\"\\p{C}]{0,20}[^\"\\s\\p{C}]"
        .prop_filter("has something to compare", |text: &String| {
            !crate::filter::fold_value(text).is_empty()
        })
        .prop_map(|text| ("keywords", FieldTest::Is(text)));
    prop_oneof![
        is(
            "party",
            vec!["Labor", "Greens", "Meadow Alliance", "Union, Old"]
        ),
        is("topic_tags", vec!["budget", "tarn-orr"]),
        any_text,
        dates,
        numbers,
        any::<bool>().prop_map(|flag| ("open", FieldTest::Bool(flag))),
    ]
    .prop_map(|(name, test)| Filter::Field {
        name: name.to_owned(),
        test,
    })
}

fn filter() -> impl Strategy<Value = Filter> {
    leaf().prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Filter::All),
            vec(inner.clone(), 2..4).prop_map(Filter::Any),
            inner.prop_map(|inner| Filter::Not(Box::new(inner))),
        ]
    })
}

/// The normal form that the parser produces: no group inside a group of the same kind, no double negation.
fn normalized(filter: Filter) -> Filter {
    let spread = |parts: Vec<Filter>, is_all: bool| -> Vec<Filter> {
        let parts = parts.into_iter().map(normalized);
        parts
            .flat_map(|part| match part {
                Filter::All(inner) if is_all => inner,
                Filter::Any(inner) if !is_all => inner,
                part => vec![part],
            })
            .collect()
    };
    match filter {
        Filter::All(parts) => Filter::All(spread(parts, true)),
        Filter::Any(parts) => Filter::Any(spread(parts, false)),
        Filter::Not(part) => match normalized(*part) {
            Filter::Not(inner) => *inner,
            part => Filter::Not(Box::new(part)),
        },
        leaf @ Filter::Field { .. } => leaf,
    }
}

/// Formats a filter as a query that parses to it.
fn written(filter: &Filter) -> String {
    let join = |parts: &[Filter], word: &str| {
        let parts: Vec<_> = parts.iter().map(written).collect();
        format!("({})", parts.join(word))
    };
    match filter {
        Filter::All(parts) => join(parts, " "),
        Filter::Any(parts) => join(parts, " OR "),
        Filter::Not(part) => format!("-({})", written(part)),
        Filter::Field { name, test } => match test {
            FieldTest::Is(value) => format!("{name}:\"{value}\""),
            FieldTest::Bool(flag) => format!("{name}:{flag}"),
            FieldTest::Number { from, to } => {
                let end =
                    |end: &Option<f64>| end.map_or_else(String::new, |end| format!("{end:e}"));
                format!("{name}:{}..{}", end(from), end(to))
            }
            FieldTest::Date { from, to } => {
                let end = |end: &Option<String>| end.clone().unwrap_or_default();
                format!("{name}:{}..{}", end(from), end(to))
            }
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_query_is_answered(query in query()) {
        bounded(&query);
    }

    #[test]
    fn every_string_is_answered(query in any::<String>()) {
        bounded(&query);
    }

    #[test]
    fn a_written_filter_is_read_again(filter in filter()) {
        let filter = normalized(filter);
        let query = written(&filter);
        prop_assume!(query.chars().count() <= crate::query::MAX_QUERY_CHARS);
        let parsed = parse(&query, &catalog(), today());
        prop_assert_eq!(parsed.filter, Some(filter), "{}", query);
        prop_assert_eq!(parsed.ignored, []);
        prop_assert_eq!(parsed.text, "");
    }

    #[test]
    fn words_alone_are_text(words in vec("[a-z]{1,8}", 1..20)) {
        let operators = ["or", "and", "not"];
        prop_assume!(!words.iter().any(|word| operators.contains(&word.as_str())));
        let query = words.join(" ");
        let parsed = parse(&query, &catalog(), today());
        prop_assert_eq!(parsed.text, query);
        prop_assert_eq!(parsed.filter, None);
        prop_assert!(parsed.applied.is_empty() && parsed.ignored.is_empty());
    }
}
