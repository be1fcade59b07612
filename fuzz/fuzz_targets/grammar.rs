//! Fuzzes the query parser. It accepts every input, its output has a limited size, and every text that it reports is
//! part of the query.

#![no_main]

use std::sync::LazyLock;

use docent_search::grammar::parse;
use docent_search::{
    Catalog, CatalogBuilder, Day, FieldTest, Filter, MAX_CONDITIONS, MAX_FILTER_DEPTH, MAX_IGNORED,
    MAX_QUERY_CHARS, MAX_QUERY_TERMS, ParsedQuery,
};
use libfuzzer_sys::fuzz_target;

/// A catalog with fields of every type, and values that look like operators of the query language.
static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    let mut builder = CatalogBuilder::new();
    builder.documents(400);
    for party in ["Labor", "Greens", "Meadow Alliance", "Union, Old", "OR"] {
        builder.text("party", party, 80);
    }
    builder.list("topic_tags", 400);
    for tag in ["budget", "ferries", "tarn-orr"] {
        builder.item("topic_tags", tag, 100);
    }
    builder.number("words", (10.0, 4_000.0), 400);
    let day = |text| Day::parse(text).unwrap();
    builder.date("date", (day("2023-01-05"), day("2024-06-30")), 400);
    builder.flag("open", true, 200);
    builder.build()
});

fuzz_target!(|text: &str| {
    let today = Day::parse("2024-07-01").unwrap();
    let parsed = parse(text, &CATALOG, today);
    assert_eq!(parsed, parse(text, &CATALOG, today));
    check_limits(&parsed);
    check_reported_texts(&parsed, text);
});

fn check_limits(parsed: &ParsedQuery) {
    assert!(parsed.text.chars().count() <= 2 * MAX_QUERY_CHARS);
    assert!(parsed.phrases.len() <= MAX_QUERY_TERMS);
    assert!(parsed.excluded.len() <= MAX_QUERY_TERMS);
    assert!(parsed.ignored.len() <= MAX_IGNORED);
    if let Some(filter) = &parsed.filter {
        let (leaves, depth) = size(filter);
        assert!(leaves <= MAX_CONDITIONS, "{leaves} conditions");
        assert!(depth <= MAX_FILTER_DEPTH, "{depth} levels");
    }
}

/// The number of conditions in a filter, and its depth. Checks that its dates and numbers are valid.
fn size(filter: &Filter) -> (usize, usize) {
    let both = |parts: &[Filter]| {
        let sizes = parts.iter().map(size);
        sizes.fold((0, 0), |(sum, most), (leaves, depth)| {
            (sum + leaves, most.max(depth))
        })
    };
    let (leaves, depth) = match filter {
        Filter::All(parts) | Filter::Any(parts) => both(parts),
        Filter::Not(part) => size(part),
        Filter::Field { test, .. } => {
            if let FieldTest::Date { from, to } = test {
                assert!(from.iter().chain(to).all(|day| Day::parse(day).is_some()));
            }
            if let FieldTest::Number { from, to } = test {
                assert!(from.iter().chain(to).all(|number| !number.is_nan()));
            }
            (1, 0)
        }
    };
    (leaves, depth + 1)
}

/// Checks that applied and ignored conditions quote the query.
fn check_reported_texts(parsed: &ParsedQuery, text: &str) {
    for phrase in parsed.phrases.iter().chain(&parsed.excluded) {
        assert!(text.contains(phrase.as_str()), "{phrase:?}");
    }
    for applied in &parsed.applied {
        assert!(text.contains(&applied.written), "{applied:?}");
        assert!(!applied.meaning.is_empty());
    }
    for ignored in &parsed.ignored {
        // An item of a list is reported with its field name, which is elsewhere in the query, so words are compared.
        let words = ignored.written.split(|c: char| !c.is_alphanumeric());
        assert!(
            words.into_iter().all(|word| text.contains(word)),
            "{ignored:?}"
        );
        assert!(ignored.written.len() <= 2 * text.len() + 2);
        assert!(!ignored.reason.is_empty());
    }
    // The text that is left for ranking consists of words of the query.
    for word in parsed.text.split_whitespace() {
        assert!(text.contains(word), "{word:?}");
    }
}
