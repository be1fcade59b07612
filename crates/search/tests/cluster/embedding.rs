//! How documents get their vectors in a cluster: in few requests, once each, and again when vectors are lost.

use docent_search::{
    ClusterEngine, ClusterSettings, DocId, DocumentChange, EmbeddingProgress, Engine, Query,
    RankingMethod, ReaderIdentity, SearchError,
};
use libtest_mimic::Trial;
use serde_json::json;

use crate::meanings::topics;
use crate::server::{get, remove_points, wait_until};
use crate::shelf::put;
use crate::{EmptyIndex, SharedServers, runtime};

/// More documents than one page has, so that the requests for each page hardly count.
const MANY: usize = 1_100;

/// Twice what it takes: vectors are written 256 at a time, and two pages are scanned.
const REQUESTS: u64 = 50;

type EmbeddingCase = fn(&EmptyIndex);

pub(crate) fn trials(servers: &SharedServers) -> Vec<Trial> {
    let cases: [(&'static str, EmbeddingCase); 5] = [
        ("many_documents_take_few_requests", few_requests),
        ("all_passages_of_a_long_document", long),
        ("vectors_that_were_lost_are_made_again", made_again),
        ("documents_that_were_lost_are_an_error", lost),
        (
            "graphs_are_deferred_until_all_vectors_are_there",
            graphs_wait,
        ),
    ];
    cases
        .into_iter()
        .map(|(name, case)| {
            let servers = servers.clone();
            Trial::test(format!("embedding::{name}"), move || {
                case(&EmptyIndex::shared(servers.get(), Some(topics())));
                Ok(())
            })
        })
        .collect()
}

fn embed_pending(engine: &ClusterEngine, most: usize) -> Result<EmbeddingProgress, SearchError> {
    runtime().block_on(engine.embed_pending(most))
}

fn apply(engine: &ClusterEngine, changes: Vec<DocumentChange>) {
    runtime().block_on(engine.apply(changes)).unwrap();
}

fn near(engine: &ClusterEngine, text: &str) -> usize {
    let query = Query::new(text, 100, ReaderIdentity::everyone()).method(RankingMethod::Semantic);
    let found = runtime().block_on(engine.search(query)).unwrap();
    let is_near = |near: Option<f32>| near.is_some_and(|near| near > 0.9);
    let hits = found.hits.iter();
    hits.filter(|hit| is_near(hit.why.semantic)).count()
}

fn few_requests(fresh: &EmptyIndex) {
    let engine = fresh.engine();
    let ships = (0..MANY).map(|n| put(&format!("d{n}"), "T", &format!("Ship {n}.")));
    apply(engine, ships.collect());
    let before = engine.traffic().unwrap().requests();
    while embed_pending(engine, usize::MAX).unwrap().left > 0 {}
    let taken = engine.traffic().unwrap().requests() - before;
    assert!(taken <= REQUESTS, "{taken}");
    assert_eq!(near(engine, "boat"), 100);
    // One more document is found without scanning all the others.
    apply(engine, vec![put("one", "T", "A home.")]);
    let before = engine.traffic().unwrap().requests();
    let progress = embed_pending(engine, usize::MAX).unwrap();
    let all = MANY as u64 + 1;
    assert_eq!((progress.done, progress.left), (all, 0));
    let taken = engine.traffic().unwrap().requests() - before;
    assert!(taken <= 12, "{taken}");
    assert_eq!(near(engine, "house"), 1);
}

fn long(fresh: &EmptyIndex) {
    let engine = fresh.engine();
    let text: Vec<String> = (0..600)
        .map(|n| format!("# Part {n}\n\n{}\n", "A levy. ".repeat(30)))
        .collect();
    let changes = vec![
        put("long", "T", &text.join("\n")),
        put("empty", "T", " "),
        put("short", "T", "A ship."),
    ];
    apply(engine, changes);
    let progress = embed_pending(engine, usize::MAX).unwrap();
    assert_eq!((progress.done, progress.left), (3, 0));
    let count = |id: &str| {
        let vectors = engine.vectors(DocId::parse(id).unwrap());
        runtime().block_on(vectors).unwrap().len()
    };
    assert!(count("long") > 256, "{}", count("long"));
    assert_eq!((count("empty"), count("short")), (0, 1));
}

fn made_again(fresh: &EmptyIndex) {
    let engine = fresh.engine();
    let ships = (0..3).map(|n| put(&format!("d{n}"), "T", &format!("Ship {n}.")));
    apply(engine, ships.collect());
    assert_eq!(embed_pending(engine, 9).unwrap().left, 0);
    assert_eq!(near(engine, "boat"), 3);
    remove_points(&fresh.settings, &fresh.collection("passages"), &json!({}));
    assert_eq!(near(engine, "boat"), 0);
    while embed_pending(engine, 9).unwrap().left > 0 {}
    assert_eq!(near(engine, "boat"), 3);
}

fn lost(fresh: &EmptyIndex) {
    let engine = fresh.engine();
    let ships = (0..3).map(|n| put(&format!("d{n}"), "T", &format!("Ship {n}.")));
    apply(engine, ships.collect());
    let one = json!({"must": [{"key": "id", "match": {"value": "d1"}}]});
    remove_points(&fresh.settings, &fresh.collection("documents"), &one);
    let mut progress = embed_pending(engine, 9);
    // The first pass computes the vectors of the others.
    for _ in 0..3 {
        if progress.as_ref().is_ok_and(|progress| progress.left > 0) {
            progress = embed_pending(engine, 9);
        }
    }
    let error = progress.unwrap_err();
    assert!(error.to_string().contains("has fewer documents"), "{error}");
    assert_eq!(near(engine, "boat"), 2);
}

/// The indexing threshold in kilobytes that a node reports for the passages.
fn indexing_threshold(fresh: &EmptyIndex, address: &str) -> Option<u64> {
    let names = get(address, "/collections");
    let names = names["result"]["collections"].as_array().unwrap().iter();
    let start = fresh.collection("passages");
    let mut names = names.filter_map(|one| one["name"].as_str());
    let name = names.find(|name| name.starts_with(&start))?;
    let known = get(address, &format!("/collections/{name}"));
    known["result"]["config"]["optimizer_config"]["indexing_threshold"].as_u64()
}

/// Waits until every node reports this indexing threshold, at the latest when the change has reached it.
fn wait_for_threshold(fresh: &EmptyIndex, kilobytes: u64) {
    for address in &fresh.settings.addresses {
        wait_until(|| indexing_threshold(fresh, address) == Some(kilobytes));
    }
}

fn graphs_wait(fresh: &EmptyIndex) {
    const MANY: usize = 20;
    let settings = ClusterSettings {
        large_index_documents: MANY as u64,
        ..fresh.settings.clone()
    };
    let open = || ClusterEngine::open(settings.clone(), Some(topics())).unwrap();
    let words = |engine: &ClusterEngine| {
        let query = Query::new("ship", 100, ReaderIdentity::everyone());
        runtime().block_on(engine.search(query)).unwrap().hits.len()
    };
    let engine = open();
    let ships = (1..MANY).map(|n| put(&format!("d{n}"), "T", &format!("Ship {n}.")));
    apply(&engine, ships.collect());
    // One document less than a large index has.
    embed_pending(&engine, 5).unwrap();
    wait_for_threshold(fresh, 10_000);
    assert_eq!(near(&engine, "boat"), 5);
    apply(&engine, vec![put("d0", "T", "Ship 0.")]);
    embed_pending(&engine, 5).unwrap();
    wait_for_threshold(fresh, 0);
    assert_eq!((near(&engine, "boat"), words(&engine)), (0, MANY));
    drop(engine);
    // A new process continues.
    let engine = open();
    assert_eq!((near(&engine, "boat"), words(&engine)), (0, MANY));
    while embed_pending(&engine, 5).unwrap().left > 0 {
        wait_for_threshold(fresh, 0);
    }
    wait_for_threshold(fresh, 10_000);
    assert_eq!(near(&engine, "boat"), MANY);
    // Graphs are not deferred for later changes.
    apply(&engine, vec![put("d20", "T", "Ship 20.")]);
    assert_eq!(near(&engine, "boat"), MANY);
    while embed_pending(&engine, 5).unwrap().left > 0 {}
    wait_for_threshold(fresh, 10_000);
    assert_eq!(near(&engine, "boat"), MANY + 1);
}
