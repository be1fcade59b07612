//! How often the nodes are asked for one answer: held, because every request is a round trip.

use docent_search::{
    AllowedReaders, ClusterEngine, ClusterSettings, ClusterTraffic, DocId, DocumentValue, Engine,
    MemoryEngine, Principal, Query, ReaderIdentity,
};
use libtest_mimic::Trial;

use crate::meanings::{settle, topics};
use crate::shelf::{document, put, put_facts};
use crate::weighing::worth;
use crate::{EmptyIndex, SharedServers, runtime};

/// More than both halves of a search bring, so that each has to be asked about what the other found.
const DOCUMENTS: usize = 240;

/// The words, both halves, what each half says about the other's documents, and the documents.
const FIRST: u64 = 7;

/// Words and documents are known by then.
const AGAIN: u64 = 5;

pub(crate) fn trials(servers: &SharedServers) -> Vec<Trial> {
    let (first, second, third) = (servers.clone(), servers.clone(), servers.clone());
    vec![
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

/// Half of them have the words of the question, all are about something.
async fn fill(engine: &ClusterEngine) {
    let texts = [
        "A ferry sails to the island.",
        "The ship of the harbour.",
        "A levy.",
        "A home.",
    ];
    let changes = (0..DOCUMENTS).map(|n| {
        // Each of another length, so that no two are worth the same.
        let rest = "Nothing of note. ".repeat(n);
        let text = format!("{} {rest}", texts[n % texts.len()]);
        let kind = DocumentValue::Text(format!("kind {}", n % 3));
        put_facts(&format!("d{n}"), &text, "", &[("kind", kind)])
    });
    engine.apply(changes.collect()).await.unwrap();
    settle(engine).await;
}

fn calls(traffic: &ClusterTraffic, kind: &str) -> u64 {
    let found = traffic.calls.iter().find(|one| one.call == kind);
    found.unwrap().answered
}

/// How many requests something took, apart from those for the state, which is asked for again after a while.
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

async fn few_requests(fresh: &EmptyIndex) {
    fill(fresh.engine()).await;
    // One that has nothing in memory, and no writer's requests among its own.
    let engine = ClusterEngine::open_read_only(fresh.settings.clone(), Some(topics())).unwrap();
    let asked = &engine;
    let search = move |text: &'static str, facets: &'static [&'static str]| {
        let facets = facets.iter().map(|name| (*name).to_owned()).collect();
        let query = Query::new(text, 10, ReaderIdentity::everyone()).facets(facets);
        async move {
            let found = asked.search(query).await.unwrap();
            assert_eq!(found.hits.len(), 10);
        }
    };
    let first = taken(&engine, search("ferry to an island", &[])).await;
    assert!(first <= FIRST, "{first}");
    // The nodes may still put their segments in order, and then find others among equals.
    let mut again = u64::MAX;
    for _ in 0..5 {
        again = again.min(taken(&engine, search("ferry to an island", &[])).await);
    }
    assert!(again <= AGAIN, "{again}");
    // The words are new, most documents are not.
    let other = taken(&engine, search("ship in a harbour", &[])).await;
    assert!(other <= FIRST, "{other}");
    let slip = taken(&engine, search("harbuor", &[])).await;
    assert!(slip <= FIRST + 3, "{slip}");
    let fetched = engine.fetch(DocId::parse("d7").unwrap(), ReaderIdentity::everyone());
    let fetched = taken(&engine, async { assert!(fetched.await.unwrap().is_some()) }).await;
    assert!(fetched <= 1, "{fetched}");
    assert_eq!(calls(&engine.traffic().unwrap(), "facets"), 0);
    assert_eq!(calls(&engine.traffic().unwrap(), "count"), 0);
    search("ferry", &["kind"]).await;
    assert_eq!(calls(&engine.traffic().unwrap(), "facets"), 1);

    // Who may not read everything costs no more than a look at the languages.
    let mut secret = document("secret", "T", "A ferry for some.");
    secret.readers = AllowedReaders::Only([Principal::parse("group:crew").unwrap()].into());
    let changes = vec![docent_search::DocumentChange::Put(secret)];
    fresh.engine().apply(changes).await.unwrap();
    settle(fresh.engine()).await;
    let engine = ClusterEngine::open_read_only(fresh.settings.clone(), Some(topics())).unwrap();
    let query = Query::new("ferry to an island", 10, ReaderIdentity::everyone());
    let narrowed = taken(&engine, async { drop(engine.search(query).await.unwrap()) }).await;
    assert!(narrowed <= FIRST + 1, "{narrowed}");
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

/// What nodes look for one by one, and one more.
const LOOKED_FOR: usize = 512;

/// In a large index a word of many documents is counted by nodes, and looking for the first of these, which they
/// have to read from their disks, is left out.
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
    // At its bound, and with one document more than there are.
    for (many, counts) in [(all, 2), (all + 1, 0)] {
        let settings = ClusterSettings {
            many,
            ..fresh.settings.clone()
        };
        let engine = ClusterEngine::open_read_only(settings, None).unwrap();
        for (word, is_exact) in [("ferry", counts > 0), ("quay", false)] {
            let before = calls(&engine.traffic().unwrap(), "count");
            let (there, here) = (worth(&engine, word).await, worth(&memory, word).await);
            let off = (there / here - 1.0).abs();
            assert!(
                off < if is_exact { 0.0001 } else { 0.2 },
                "{word}: {there} and {here}"
            );
            let counted = calls(&engine.traffic().unwrap(), "count") - before;
            assert_eq!(counted, counts, "{word} as a word of texts and of titles");
        }
    }
}
