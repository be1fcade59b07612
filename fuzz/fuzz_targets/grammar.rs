//! What somebody typed into words and conditions. Nothing is refused, everything is bounded, and whatever is told
//! about the query stands in it.

#![no_main]
#![allow(
    dead_code,
    unused_imports,
    reason = "only some of the included modules is called here"
)]

#[path = "../../crates/search/src/analysis/mod.rs"]
mod analysis;
#[path = "../../crates/search/src/calendar.rs"]
mod calendar;
#[path = "../../crates/search/src/catalog/mod.rs"]
mod catalog;
#[path = "../../crates/search/src/document.rs"]
mod document;
#[path = "../../crates/search/src/error.rs"]
mod error;
#[path = "../../crates/search/src/filter.rs"]
mod filter;
#[path = "../../crates/search/src/grammar/mod.rs"]
mod grammar;
#[path = "../../crates/search/src/reader.rs"]
mod reader;

/// The bounds of a query, whose own module would bring the ranking with it.
mod query {
    pub const MAX_QUERY_CHARS: usize = 1_024;
    pub const MAX_QUERY_TERMS: usize = 64;
}

use std::sync::LazyLock;

use calendar::Day;
use catalog::{Catalog, CatalogBuilder};
use filter::{Filter, MAX_CONDITIONS, MAX_FILTER_DEPTH, Test};
use grammar::{MAX_IGNORED, Parsed, parse};
use libfuzzer_sys::fuzz_target;
use query::{MAX_QUERY_CHARS, MAX_QUERY_TERMS};

/// Fields of every kind, with values that look like words of the grammar.
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
    bounded(&parsed);
    stands_in(&parsed, text);
});

fn bounded(parsed: &Parsed) {
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

/// How many conditions a filter has, and how deep. Every day and number in it is one.
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
            if let Test::Date { from, to } = test {
                assert!(from.iter().chain(to).all(|day| Day::parse(day).is_some()));
            }
            if let Test::Number { from, to } = test {
                assert!(from.iter().chain(to).all(|number| !number.is_nan()));
            }
            (1, 0)
        }
    };
    (leaves, depth + 1)
}

/// Whatever is said to be written in the query is.
fn stands_in(parsed: &Parsed, text: &str) {
    for phrase in parsed.phrases.iter().chain(&parsed.excluded) {
        assert!(text.contains(phrase.as_str()), "{phrase:?}");
    }
    for applied in &parsed.applied {
        assert!(text.contains(&applied.written), "{applied:?}");
        assert!(!applied.meaning.is_empty());
    }
    for ignored in &parsed.ignored {
        // A value of a list is told with the name of its field before it, so word by word.
        let words = ignored.written.split(|c: char| !c.is_alphanumeric());
        assert!(
            words.into_iter().all(|word| text.contains(word)),
            "{ignored:?}"
        );
        assert!(ignored.written.len() <= 2 * text.len() + 2);
        assert!(!ignored.reason.is_empty());
    }
    // Words to rank by are words of the query.
    for word in parsed.text.split_whitespace() {
        assert!(text.contains(word), "{word:?}");
    }
}
