//! Filters on an engine find what testing every document finds, for generated filters and documents.

use docent_search::{
    Document, DocumentChange, DocumentValue, EmbeddedEngine, Engine, FieldTest, Filter,
    MemoryEngine, Query, ReaderIdentity,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::shelf::{document, ids};

/// Few names and few values, so that filters and documents meet.
const NAMES: [&str; 4] = ["party", "year", "open", "date"];
const WORDS: [&str; 6] = ["Meadow", "meadow", "Harbour Party", "Ä", "a", ""];
const DAYS: [&str; 5] = [
    "2023-12-31",
    "2024-01-01",
    "2024-02-29",
    "2024-02-30",
    "soon",
];
const NUMBERS: [f64; 7] = [-1.5, 0.0, -0.0, 1.0, 1e300, f64::INFINITY, f64::NAN];

fn value() -> impl Strategy<Value = DocumentValue> {
    let word = || select(WORDS.to_vec()).prop_map(str::to_owned);
    prop_oneof![
        word().prop_map(DocumentValue::Text),
        vec(word(), 0..3).prop_map(DocumentValue::List),
        select(NUMBERS.to_vec()).prop_map(DocumentValue::Number),
        any::<bool>().prop_map(DocumentValue::Bool),
        select(DAYS.to_vec()).prop_map(|day| DocumentValue::Date(day.to_owned())),
    ]
}

fn documents() -> impl Strategy<Value = Vec<Document>> {
    let fields = vec((select(NAMES.to_vec()), value()), 0..4);
    let day = prop::option::of(select(DAYS.to_vec()));
    vec((fields, day), 1..12).prop_map(|all| {
        let numbered = (0..).zip(all);
        let made = numbered.map(
            |(n, (fields, day)): (usize, (Vec<(&str, DocumentValue)>, _))| Document {
                fields: fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect(),
                date: day.map(str::to_owned),
                ..document(&format!("d{n}"), "Untitled", "A ferry.")
            },
        );
        made.collect()
    })
}

fn test() -> impl Strategy<Value = FieldTest> {
    let day = || prop::option::of(select(DAYS.to_vec()).prop_map(str::to_owned));
    let number = || prop::option::of(select(NUMBERS.to_vec()));
    prop_oneof![
        select(WORDS.to_vec()).prop_map(|word| FieldTest::Is(word.to_owned())),
        (number(), number()).prop_map(|(from, to)| FieldTest::Number { from, to }),
        (day(), day()).prop_map(|(from, to)| FieldTest::Date { from, to }),
        any::<bool>().prop_map(FieldTest::Bool),
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    let field = (select(NAMES.to_vec()), test()).prop_map(|(name, test)| Filter::Field {
        name: name.to_owned(),
        test,
    });
    field.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Filter::All),
            vec(inner.clone(), 0..3).prop_map(Filter::Any),
            inner.prop_map(|part| Filter::Not(Box::new(part))),
        ]
    })
}

async fn check(documents: &[Document], filters: &[Filter]) {
    let dir = tempfile::tempdir().unwrap();
    let (memory, embedded) = (
        MemoryEngine::new(),
        EmbeddedEngine::open(dir.path()).unwrap(),
    );
    let changes: Vec<_> = documents.iter().cloned().map(DocumentChange::Put).collect();
    for engine in [&memory as &dyn Engine, &embedded] {
        engine.apply(changes.clone()).await.unwrap();
        for filter in filters {
            let fitting = documents.iter().filter(|document| filter.matches(document));
            let expected: Vec<_> = fitting.map(|document| document.id.as_str()).collect();
            let query = Query::new("ferry", 100, ReaderIdentity::everyone()).filter(filter.clone());
            let found = engine.search(query.count_total()).await.unwrap();
            let mut names = ids(&found);
            names.sort_by_key(|name| name[1..].parse::<usize>().unwrap());
            assert_eq!(names, expected, "{filter:?} in {documents:?}");
            assert_eq!(found.total, Some(expected.len() as u64));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    #[test]
    fn filters_find_what_asking_each_document_finds(
        documents in documents(),
        filters in vec(filter(), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check(&documents, &filters));
    }
}
