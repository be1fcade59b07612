//! Properties of every query over every small corpus, checked with generated ones.

use std::collections::BTreeSet;

use docent_search::{DocumentChange, EmbeddedEngine, Engine, MAX_SNIPPET_CHARS, MemoryEngine};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::shelf::{hits, put, remove};

/// Frequent words, so that queries and documents meet, among arbitrary strings.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => prop::sample::select(vec![
            "ferry", "Ferries", "tram", "the", "of", "don't", "minister's", "café", "cafe\u{301}",
            "Straße", "東京都", "京都", "都", "ประเทศ", "한국", "İ", "\u{FDFA}", "x1", "-", "\n", "'s",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "[\u{0}-\u{2FF}]{0,6}",
        1 => "[\u{3040}-\u{30FF}\u{4E00}-\u{4E20}\u{FF66}-\u{FF9F}]{0,5}",
    ];
    (vec(word, 0..8), prop::sample::select(vec![" ", "", ", "]))
        .prop_map(|(words, between)| words.join(between))
}

fn corpus() -> impl Strategy<Value = Vec<(String, String)>> {
    vec((text(), text()), 0..8)
}

async fn ids(engine: &dyn Engine, query: &str, limit: usize) -> Vec<String> {
    let found = hits(engine, query, limit).await;
    assert!(found.len() <= limit.clamp(1, 50));
    assert!(found.iter().all(|hit| hit.score > 0.0 && hit.score <= 1.0));
    assert!(
        found
            .iter()
            .all(|hit| hit.snippet.chars().count() <= MAX_SNIPPET_CHARS)
    );
    assert!(found.is_sorted_by(|left, right| {
        left.score > right.score || (left.score == right.score && left.id < right.id)
    }));
    found.iter().map(|hit| hit.id.to_string()).collect()
}

async fn check(documents: Vec<(String, String)>, queries: Vec<String>, removed: usize) {
    let memory = MemoryEngine::new();
    let dir = tempfile::tempdir().unwrap();
    let embedded = EmbeddedEngine::open(dir.path()).unwrap();
    let mut changes: Vec<DocumentChange> = (0..)
        .zip(&documents)
        .map(|(n, (title, text))| put(&format!("d{n}"), title, text))
        .collect();
    changes.push(remove(&format!("d{removed}")));
    for engine in [&memory as &dyn Engine, &embedded] {
        engine.apply(changes.clone()).await.unwrap();
    }
    for query in queries {
        let reference: BTreeSet<_> = ids(&memory, &query, 50).await.into_iter().collect();
        let found: BTreeSet<_> = ids(&embedded, &query, 50).await.into_iter().collect();
        assert_eq!(found, reference, "{query:?} in {documents:?}");
        assert!(
            found
                .iter()
                .all(|id| id[1..].parse::<usize>().unwrap() < documents.len())
        );
        assert!(!found.contains(&format!("d{removed}")));
        assert_eq!(ids(&embedded, &query, 2).await.len(), found.len().min(2));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    #[test]
    fn engines_agree_on_what_matches(
        documents in corpus(),
        queries in vec(text(), 1..12),
        removed in 0_usize..8,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check(documents, queries, removed));
    }
}
