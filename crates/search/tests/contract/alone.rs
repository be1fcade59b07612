//! Isolation of readers: whatever the corpus, an engine answers a reader as if it held only the documents
//! that this reader may see.

use std::path::Path;

use docent_search::{
    AllowedReaders, Document, DocumentChange, DocumentValue, EmbeddedEngine, Engine, MemoryEngine,
    Principal, Query, ReaderIdentity, SortOrder,
};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;

use crate::properties::text;
use crate::shelf::{document, ids};

const GROUPS: [&str; 4] = ["group:a", "group:b", "email:c@isle.example", "sub:d"];

fn principals() -> impl Strategy<Value = Vec<Principal>> {
    let groups = btree_set(select(GROUPS.to_vec()), 0..3);
    groups.prop_map(|groups| {
        let groups = groups.into_iter();
        groups.map(|one| Principal::parse(one).unwrap()).collect()
    })
}

fn readers() -> impl Strategy<Value = AllowedReaders> {
    prop_oneof![
        1 => Just(AllowedReaders::Everyone),
        2 => principals().prop_map(|named| AllowedReaders::Only(named.into_iter().collect())),
    ]
}

fn documents() -> impl Strategy<Value = Vec<Document>> {
    let field = (select(vec!["party", "year", "tags"]), text());
    let german = prop::bool::weighted(0.2);
    let day = prop::option::of(select(vec!["2024-01-01", "2024-02-02"]));
    let parts = (text(), text(), vec(field, 0..3), day, readers(), german);
    vec(parts, 1..10).prop_map(|all| {
        let made = (0..)
            .zip(all)
            .map(|(n, (title, body, fields, day, readers, german))| {
                let foreign = "Die Organisation der Fähren ist nicht die des Hafens. ";
                let start = if german { foreign } else { "" };
                let mut fields: Vec<_> = fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), DocumentValue::Text(value)))
                    .collect();
                fields.dedup_by(|(left, _), (right, _)| left == right);
                Document {
                    fields,
                    date: day.map(str::to_owned),
                    readers,
                    ..document(&format!("d{n:02}"), &title, &format!("{start}{body}"))
                }
            });
        made.collect()
    })
}

/// Everything that an engine reveals to a reader. Hits are compared as a set, since term rarity is computed
/// over all documents, and with it the order.
async fn observed(engine: &dyn Engine, text: &str, reader: &ReaderIdentity) -> String {
    let facets = ["party", "year", "tags"].map(str::to_owned).to_vec();
    let query = || Query::new(text, 100, reader.clone());
    let found = engine
        .search(query().count_total().facets(facets))
        .await
        .unwrap();
    let mut hits: Vec<_> = found
        .hits
        .iter()
        .map(|hit| (hit.id.to_string(), hit.title.clone(), hit.snippet.clone()))
        .collect();
    hits.sort();
    let newest = engine
        .search(query().sort(SortOrder::Newest))
        .await
        .unwrap();
    let newest = ids(&newest);
    let catalog = engine.catalog(reader.clone()).await.unwrap();
    format!(
        "{hits:?} {:?} {:?} {newest:?} {catalog:?}",
        found.total, found.facets
    )
}

fn engines(dir: &Path) -> [Box<dyn Engine>; 2] {
    let inner = tempfile::tempdir_in(dir).unwrap().keep();
    [
        Box::new(MemoryEngine::new()),
        Box::new(EmbeddedEngine::open(&inner).unwrap()),
    ]
}

async fn check(documents: &[Document], queries: &[String], readers: &[ReaderIdentity]) {
    let dir = tempfile::tempdir().unwrap();
    let all = engines(dir.path());
    for all in &all {
        // Applied in two generations, so that documents that were restricted before no longer are.
        let turned = documents.iter().cloned().map(|mut one| {
            one.readers = match one.readers {
                AllowedReaders::Everyone => AllowedReaders::Only([].into()),
                AllowedReaders::Only(_) => AllowedReaders::Everyone,
            };
            DocumentChange::Put(one)
        });
        all.apply(turned.collect()).await.unwrap();
        let puts = documents.iter().cloned().map(DocumentChange::Put);
        all.apply(puts.collect()).await.unwrap();
    }
    for reader in readers {
        let seen = documents.iter().filter(|one| reader.can_see(one));
        let puts: Vec<_> = seen.cloned().map(DocumentChange::Put).collect();
        for (all, alone) in all.iter().zip(engines(dir.path())) {
            alone.apply(puts.clone()).await.unwrap();
            for query in queries {
                let with = observed(all.as_ref(), query, reader).await;
                let without = observed(alone.as_ref(), query, &ReaderIdentity::owner()).await;
                assert_eq!(with, without, "{query:?} for {reader:?} in {documents:?}");
            }
            for document in documents {
                let fetched = all.fetch(document.id.clone(), reader.clone());
                let expected = Some(document).filter(|one| reader.can_see(one));
                assert_eq!(fetched.await.unwrap().as_deref(), expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    #[test]
    fn results_are_those_of_an_index_with_only_visible_documents(
        documents in documents(),
        queries in vec(text(), 1..6),
        held in principals(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let readers = [ReaderIdentity::everyone(), ReaderIdentity::holder(held), ReaderIdentity::owner()];
        runtime.block_on(check(&documents, &queries, &readers));
    }
}
