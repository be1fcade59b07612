//! The number of requests an answer takes, held down because every request is a round trip.

use docent_search::{
    AllowedReaders, ClusterEngine, ClusterSettings, ClusterTraffic, DocId, DocumentValue, Engine,
    FieldTest, Filter, MemoryEngine, Principal, Query, ReaderIdentity,
};
use libtest_mimic::Trial;

use crate::meanings::{embed_all, topics};
use crate::shelf::{document, put, put_facts};
use crate::weighing::lexical_score;
use crate::{EmptyIndex, SharedServers, runtime, statistics};

/// More than each half of a search returns, so that each has to score what the other found.
const DOCUMENTS: usize = 240;

/// An ordinary answer: both halves at once, and then one request that scores what only one half found and reads the
/// documents.
const REQUESTS: u64 = 3;
const ROUNDS: u64 = 2;

pub(crate) fn trials(servers: &SharedServers) -> Vec<Trial> {
    let (first, second, third) = (servers.clone(), servers.clone(), servers.clone());
    let fourth = servers.clone();
    vec![
        Trial::test("traffic::an_ordinary_answer_takes_two_rounds", move || {
            let fresh = EmptyIndex::shared(fourth.get(), Some(topics()));
            runtime().block_on(two_rounds(&fresh));
            Ok(())
        }),
        Trial::test("traffic::an_answer_takes_few_requests", move || {
            let fresh = EmptyIndex::shared(first.get(), Some(topics()));
            runtime().block_on(few_requests(&fresh));
            Ok(())
        }),
        Trial::test("traffic::calls_are_counted_by_kind", move || {
            let fresh = EmptyIndex::shared(second.get(), None);
            runtime().block_on(by_kind(&fresh));
            Ok(())
        }),
        Trial::test("traffic::frequent_words_are_counted_by_nodes", move || {
            let fresh = EmptyIndex::shared(third.get(), None);
            runtime().block_on(frequent_words(&fresh));
            Ok(())
        }),
    ]
}

/// Fills the index with documents of which half contain the words of the query.
async fn fill(engine: &ClusterEngine) {
    let texts = [
        "A ferry sails to the island.",
        "The ship of the harbour.",
        "A levy.",
        "A home.",
    ];
    let changes = (0..DOCUMENTS).map(|n| {
        // Each has another length, so that no two scores are equal.
        let rest = "Nothing of note. ".repeat(n);
        let text = format!("{} {rest}", texts[n % texts.len()]);
        let kind = DocumentValue::Text(format!("kind {}", n % 3));
        put_facts(&format!("d{n}"), &text, "", &[("kind", kind)])
    });
    engine.apply(changes.collect()).await.unwrap();
    embed_all(engine).await;
}

fn calls(traffic: &ClusterTraffic, kind: &str) -> u64 {
    let found = traffic.calls.iter().find(|one| one.call == kind);
    found.unwrap().answered
}

/// How many requests something took, without those for the index head, which is read again after a while.
async fn taken<T>(engine: &ClusterEngine, work: impl Future<Output = T>) -> u64 {
    let count = || {
        let traffic = engine.traffic().unwrap();
        let calls = traffic.calls.iter().filter(|one| one.call != "state");
        calls.map(|one| one.answered).sum::<u64>()
    };
    let before = count();
    work.await;
    count() - before
}

/// Words and meaning, no phrase: with a filter and without, from an empty cache, again, and for the next page.
async fn two_rounds(fresh: &EmptyIndex) {
    fill(fresh.engine()).await;
    let engine = ClusterEngine::open_read_only(fresh.settings.clone(), Some(topics())).unwrap();
    let kind = || Filter::Field {
        name: "kind".to_owned(),
        test: FieldTest::Is("kind 1".to_owned()),
    };
    let ask = |text: &str| Query::new(text, 10, ReaderIdentity::everyone());
    let queries = [
        ask("ferry to an island"),
        ask("ferry to an island"),
        ask("ship in a harbour"),
        ask("levy on a home").filter(kind()),
        ask("harbour of the island").filter(kind()),
        ask("ferry to an island").offset(10),
    ];
    for query in queries {
        let (mut requests, mut rounds) = (u64::MAX, u64::MAX);
        // Both halves begin at once, but on a busy machine one may be over before the other begins.
        for _ in 0..5 {
            let before = engine.traffic().unwrap().rounds;
            let found = async { engine.search(query.clone()).await.unwrap() };
            let took = taken(&engine, async {
                assert_eq!(found.await.hits.len(), 10, "{query:?}");
            });
            requests = requests.min(took.await);
            rounds = rounds.min(engine.traffic().unwrap().rounds - before);
            if requests <= REQUESTS && rounds <= ROUNDS {
                break;
            }
        }
        assert!(requests <= REQUESTS, "{requests} requests: {query:?}");
        assert!(rounds <= ROUNDS, "{rounds} rounds: {query:?}");
    }
}

async fn few_requests(fresh: &EmptyIndex) {
    fill(fresh.engine()).await;
    // An engine with empty caches, and without a writer's requests among its own.
    let engine = ClusterEngine::open_read_only(fresh.settings.clone(), Some(topics())).unwrap();
    let shared = &engine;
    let search = move |text: &'static str, facets: &'static [&'static str]| {
        let facets = facets.iter().map(|name| (*name).to_owned()).collect();
        let query = Query::new(text, 10, ReaderIdentity::everyone()).facets(facets);
        async move {
            let found = shared.search(query).await.unwrap();
            assert_eq!(found.hits.len(), 10);
        }
    };
    let first = taken(&engine, search("ferry to an island", &[])).await;
    assert!(first <= REQUESTS, "{first}");
    // Nodes may still optimise their segments, and then return other documents among ties.
    let mut again = u64::MAX;
    for _ in 0..5 {
        again = again.min(taken(&engine, search("ferry to an island", &[])).await);
    }
    assert!(again <= REQUESTS, "{again}");
    // The words are new, most documents are cached.
    let other = taken(&engine, search("ship in a harbour", &[])).await;
    assert!(other <= REQUESTS, "{other}");
    let slip = taken(&engine, search("harbuor", &[])).await;
    assert!(slip <= REQUESTS + 3, "{slip}");
    let fetched = engine.fetch(DocId::parse("d7").unwrap(), ReaderIdentity::everyone());
    let fetched = taken(&engine, async { assert!(fetched.await.unwrap().is_some()) }).await;
    assert!(fetched <= 1, "{fetched}");
    assert_eq!(calls(&engine.traffic().unwrap(), "facets"), 0);
    assert_eq!(calls(&engine.traffic().unwrap(), "count"), 0);
    search("ferry", &["kind"]).await;
    assert_eq!(calls(&engine.traffic().unwrap(), "facets"), 1);

    // A reader who may not see everything costs two more requests: for the languages, and for the words that the
    // reader sees.
    let mut secret = document("secret", "T", "A ferry for some.");
    secret.readers = AllowedReaders::Only([Principal::parse("group:crew").unwrap()].into());
    let changes = vec![docent_search::DocumentChange::Put(secret)];
    fresh.engine().apply(changes).await.unwrap();
    embed_all(fresh.engine()).await;
    let engine = ClusterEngine::open_read_only(fresh.settings.clone(), Some(topics())).unwrap();
    let query = Query::new("ferry to an island", 10, ReaderIdentity::everyone());
    let restricted = taken(&engine, async { drop(engine.search(query).await.unwrap()) }).await;
    assert!(restricted <= REQUESTS + 2, "{restricted}");
}

async fn by_kind(fresh: &EmptyIndex) {
    let engine = fresh.engine();
    engine.apply(vec![put("a", "T", "A ferry.")]).await.unwrap();
    let query = Query::new("ferry", 10, ReaderIdentity::everyone()).count_total();
    engine.search(query).await.unwrap();
    let traffic = engine.traffic().unwrap();
    for kind in ["search", "count", "fetch", "write", "state", "collections"] {
        assert!(calls(&traffic, kind) > 0, "{kind}: {traffic:?}");
    }
    let search = &traffic.calls[0];
    assert_eq!(search.took.iter().sum::<u64>(), search.count());
    assert!(!search.spent.is_zero() && search.failed == 0);
    assert_eq!(traffic.nodes.len(), 3);
    for node in &traffic.nodes {
        assert!(
            node.requests > 0 && node.failures == 0 && !node.is_circuit_open,
            "{node:?}"
        );
    }
}

/// How many documents with a term are sampled before its frequency is counted.
const LOOKED_FOR: usize = 512;

/// Without word statistics, the frequency of a common term in a large index is counted by the nodes, and the sample,
/// for which they would read from disk, is left out.
async fn frequent_words(fresh: &EmptyIndex) {
    let memory = MemoryEngine::new();
    let changes: Vec<_> = (0..LOOKED_FOR * 2)
        .map(|n| {
            let ferry = if n <= LOOKED_FOR { "ferry" } else { "ship" };
            let quay = if n < LOOKED_FOR { "quay" } else { "harbour" };
            put(&format!("d{n}"), "T", &format!("A {ferry} at the {quay}."))
        })
        .collect();
    for engine in [fresh.engine() as &dyn Engine, &memory] {
        engine.apply(changes.clone()).await.unwrap();
    }
    let all = changes.len() as u64;
    statistics::remove_statistics(fresh);
    // At the limit of a large index, and one document below it.
    for (many, counts) in [(all, 2), (all + 1, 0)] {
        let settings = ClusterSettings {
            large_index_documents: many,
            ..fresh.settings.clone()
        };
        let engine = ClusterEngine::open_read_only(settings, None).unwrap();
        for (word, is_exact) in [("ferry", counts > 0), ("quay", false)] {
            let before = calls(&engine.traffic().unwrap(), "count");
            let (actual, expected) = (
                lexical_score(&engine, word).await,
                lexical_score(&memory, word).await,
            );
            let off = (actual / expected - 1.0).abs();
            assert!(
                off < if is_exact { 0.0001 } else { 0.2 },
                "{word}: {actual} and {expected}"
            );
            let counted = calls(&engine.traffic().unwrap(), "count") - before;
            assert_eq!(counted, counts, "{word} as a word of texts and of titles");
        }
    }
}
