//! Word statistics: those that the writer keeps are the ones that counting everything anew gives, after any change.

use std::time::Duration;

use docent_search::{ClusterEngine, DocumentChange, Engine, MemoryEngine};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::server::remove_points;
use crate::shelf::{put, remove};
use crate::weighing::lexical_score;
use crate::writing::force_takeover;
use crate::{EmptyIndex, SharedServers, runtime};

/// The words of the documents. Every document has as many words, so that mean lengths stay as they are.
const WORDS: [&str; 5] = ["ferry", "harbour", "island", "quay", "tram"];

/// Up to how much two scores differ that are computed in another order.
const OFF: f32 = 0.0001;

type StatisticsCase = fn(&EmptyIndex);

pub(crate) fn trials(servers: &SharedServers) -> Vec<Trial> {
    let cases: [(&'static str, StatisticsCase); 5] = [
        ("follow_every_change", |fresh| {
            runtime().block_on(follow_every_change(fresh));
        }),
        ("of_an_older_index_are_counted_by_its_writer", |fresh| {
            runtime().block_on(counted_by_the_writer(fresh));
        }),
        ("that_were_counted_survive_takeovers", |fresh| {
            runtime().block_on(survive_takeovers(fresh));
        }),
        ("that_are_lost_are_counted_again", |fresh| {
            runtime().block_on(counted_again(fresh));
        }),
        ("of_many_commits_become_one", |fresh| {
            runtime().block_on(become_one(fresh));
        }),
    ];
    let cases = cases.into_iter().map(|(name, case)| {
        let servers = servers.clone();
        Trial::test(format!("statistics::{name}"), move || {
            case(&EmptyIndex::shared(servers.get(), None));
            Ok(())
        })
    });
    cases.collect()
}

/// A document with two of the words.
fn pair(id: &str, first: usize, second: usize) -> DocumentChange {
    put(
        id,
        "T",
        &format!("A {} and a {}.", WORDS[first], WORDS[second]),
    )
}

fn reader(fresh: &EmptyIndex) -> ClusterEngine {
    ClusterEngine::open_read_only(fresh.settings.clone(), None).unwrap()
}

/// Calls that look up words or count them.
fn lookups(engine: &ClusterEngine) -> u64 {
    let calls = engine.traffic().unwrap().calls;
    let kinds = calls
        .iter()
        .filter(|one| matches!(one.call, "search" | "count"));
    kinds.map(|one| one.answered).sum()
}

/// All words are as frequent as in the other engine, and no node is asked how frequent they are: a query is a single
/// search. A word that occurs nowhere is looked up to correct its spelling, so it is left out.
async fn assert_as_in(memory: &MemoryEngine, engine: &ClusterEngine, words: &[&str]) {
    for word in words {
        let before = lookups(engine);
        let actual = lexical_score(engine, word).await;
        assert_eq!(lookups(engine) - before, 1, "{word}");
        let expected = lexical_score(memory, word).await;
        assert!(
            (actual / expected - 1.0).abs() < OFF,
            "{word}: {actual} and {expected}"
        );
    }
}

async fn apply_to_both(
    memory: &MemoryEngine,
    engine: &ClusterEngine,
    changes: Vec<DocumentChange>,
) {
    memory.apply(changes.clone()).await.unwrap();
    engine.apply(changes).await.unwrap();
}

/// Longer than a cached head is used.
async fn until_seen() {
    tokio::time::sleep(Duration::from_millis(350)).await;
}

async fn follow_every_change(fresh: &EmptyIndex) {
    let (memory, writer, follower) = (MemoryEngine::new(), fresh.engine(), reader(fresh));
    let added = (0..20).map(|n| pair(&format!("d{n}"), n % 4, (n + 1) % 4));
    apply_to_both(&memory, writer, added.collect()).await;
    until_seen().await;
    assert_as_in(&memory, &follower, &WORDS[..4]).await;
    // Replaced: some by documents with other words, one by itself. And one twice in a batch.
    let replaced = (0..6).map(|n| pair(&format!("d{n}"), 3, 4));
    let twice = [pair("d19", 0, 1), pair("d19", 1, 2)];
    apply_to_both(&memory, writer, replaced.chain(twice).collect()).await;
    until_seen().await;
    assert_as_in(&memory, &follower, &WORDS).await;
    // Deleted, one that never was there among them.
    let removed = (0..4).map(|n| remove(&format!("d{n}")));
    let removed = removed.chain([remove("never")]).collect();
    apply_to_both(&memory, writer, removed).await;
    until_seen().await;
    assert_as_in(&memory, &follower, &WORDS).await;
    // An aborted generation: a writer that was declared dead writes until its commit is refused.
    let second = ClusterEngine::open(fresh.settings.clone(), None).unwrap();
    force_takeover(fresh, &second).await;
    let late = (0..9)
        .map(|n| pair(&format!("late{n}"), 0, 4))
        .chain([remove("d9")]);
    assert!(writer.apply(late.collect()).await.is_err());
    until_seen().await;
    assert_as_in(&memory, &follower, &WORDS).await;
    apply_to_both(&memory, &second, vec![pair("d30", 0, 4), remove("d10")]).await;
    until_seen().await;
    assert_as_in(&memory, &follower, &WORDS).await;
    // A replica that has seen none of this reads the same.
    assert_as_in(&memory, &reader(fresh), &WORDS).await;
}

/// Removes the word statistics from the collection of terms.
pub(crate) fn remove_statistics(fresh: &EmptyIndex) {
    let statistics = json!({"must_not": [{"is_empty": {"key": "counted"}}]});
    remove_points(&fresh.settings, &fresh.collection("terms"), &statistics);
}

/// Makes the index what a program without statistics has left: none of them are there, and the head names none.
fn make_older(fresh: &EmptyIndex) {
    remove_statistics(fresh);
    let (address, head) = (&fresh.settings.addresses[0], fresh.collection("head"));
    let url = format!("{address}/collections/{head}/points/payload/delete?wait=true");
    let request = ureq::post(url).header("content-type", "application/json");
    let body = json!({"keys": ["counted"], "filter": {}}).to_string();
    request.send(body).unwrap();
}

async fn counted_by_the_writer(fresh: &EmptyIndex) {
    let (memory, writer) = (MemoryEngine::new(), fresh.engine());
    let added = (0..20).map(|n| pair(&format!("d{n}"), n % 4, (n + 1) % 4));
    apply_to_both(&memory, writer, added.collect()).await;
    make_older(fresh);
    let follower = reader(fresh);
    for word in &WORDS[..4] {
        let before = lookups(&follower);
        let actual = lexical_score(&follower, word).await;
        assert_eq!(lookups(&follower) - before, 2, "nodes count {word}");
        let expected = lexical_score(&memory, word).await;
        assert!((actual / expected - 1.0).abs() < OFF, "{word}");
    }
    // Commits go on without statistics, and the end of a scan makes them.
    apply_to_both(&memory, writer, vec![pair("d20", 0, 1), remove("d3")]).await;
    assert_eq!(counted(fresh), None);
    writer.mark_complete().await.unwrap();
    assert!(counted(fresh).is_some());
    until_seen().await;
    assert_as_in(&memory, &follower, &WORDS[..4]).await;
    apply_to_both(&memory, writer, vec![pair("d21", 2, 4), remove("d4")]).await;
    until_seen().await;
    assert_as_in(&memory, &follower, &WORDS).await;
}

/// A process that takes over aborts the generation that may have begun, and then counts in it. The next takeover removes
/// what began in aborted generations, but not what was counted.
async fn survive_takeovers(fresh: &EmptyIndex) {
    let (memory, writer) = (MemoryEngine::new(), fresh.engine());
    let added = (0..20).map(|n| pair(&format!("d{n}"), n % 4, (n + 1) % 4));
    apply_to_both(&memory, writer, added.collect()).await;
    make_older(fresh);
    for _ in 0..3 {
        let next = ClusterEngine::open(fresh.settings.clone(), None).unwrap();
        force_takeover(fresh, &next).await;
        next.mark_complete().await.unwrap();
        until_seen().await;
        assert_as_in(&memory, &reader(fresh), &WORDS[..4]).await;
    }
}

/// A link that cannot be found, as after a restored backup, costs the statistics until the end of the next scan.
async fn counted_again(fresh: &EmptyIndex) {
    let (memory, writer) = (MemoryEngine::new(), fresh.engine());
    let added = (0..20).map(|n| pair(&format!("d{n}"), n % 4, (n + 1) % 4));
    apply_to_both(&memory, writer, added.collect()).await;
    remove_statistics(fresh);
    assert!(counted(fresh).is_some());
    let next = ClusterEngine::open(fresh.settings.clone(), None).unwrap();
    force_takeover(fresh, &next).await;
    next.mark_complete().await.unwrap();
    until_seen().await;
    assert_as_in(&memory, &reader(fresh), &WORDS[..4]).await;
}

/// What the head says about statistics.
fn counted(fresh: &EmptyIndex) -> Option<Value> {
    let (address, head) = (&fresh.settings.addresses[0], fresh.collection("head"));
    let url = format!("{address}/collections/{head}/points/scroll");
    let request = ureq::post(url).header("content-type", "application/json");
    let mut answer = request.send("{\"with_payload\":true}").unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    answer.pointer("/result/points/0/payload/counted").cloned()
}

/// The number of points that hold statistics.
fn statistics_points(fresh: &EmptyIndex) -> u64 {
    let (address, terms) = (&fresh.settings.addresses[0], fresh.collection("terms"));
    let url = format!("{address}/collections/{terms}/points/count");
    let request = ureq::post(url).header("content-type", "application/json");
    let body = json!({"exact": true, "filter": {"must_not": [{"is_empty": {"key": "counted"}}]}});
    let mut answer = request.send(body.to_string()).unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    answer
        .pointer("/result/count")
        .and_then(Value::as_u64)
        .unwrap()
}

/// More commits than a chain may have.
const COMMITS: usize = 70;

async fn become_one(fresh: &EmptyIndex) {
    let (memory, writer, follower) = (MemoryEngine::new(), fresh.engine(), reader(fresh));
    for n in 0..COMMITS {
        let change = pair(&format!("d{}", n % 30), n % 5, (n + n / 30 + 1) % 5);
        apply_to_both(&memory, writer, vec![change]).await;
    }
    assert_eq!(statistics_points(fresh), COMMITS as u64);
    writer.mark_complete().await.unwrap();
    // The base, and the last link, which it stands for.
    assert_eq!(statistics_points(fresh), 2);
    until_seen().await;
    for engine in [&follower, &reader(fresh)] {
        assert_as_in(&memory, engine, &WORDS).await;
    }
    apply_to_both(&memory, writer, vec![pair("d1", 2, 3), remove("d2")]).await;
    until_seen().await;
    assert_as_in(&memory, &follower, &WORDS).await;
}
