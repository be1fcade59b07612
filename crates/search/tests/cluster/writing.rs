//! What several writers, a writer that dies, and readers see meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use docent_search::{ClusterEngine, Engine, Generation, Query, ReaderIdentity, SearchError};
use libtest_mimic::Trial;
use serde_json::json;

use crate::shelf::{find, put, remove};
use crate::{EmptyIndex, SharedServers, runtime};

type WriteCase = fn(&EmptyIndex);

pub(crate) fn trials(servers: &SharedServers) -> Vec<Trial> {
    let cases: [(&'static str, WriteCase); 6] = [
        (
            "an_answer_shows_one_generation_on_every_replica",
            one_generation,
        ),
        ("one_of_several_writes", one_writer),
        ("commits_meet_heartbeats", concurrent_heartbeats),
        ("a_writer_that_ends_releases_its_lease", released),
        ("a_writer_that_was_declared_dead_changes_nothing", fenced),
        ("what_is_gone_is_removed", garbage_collected),
    ];
    cases
        .into_iter()
        .map(|(name, case)| {
            let servers = servers.clone();
            Trial::test(format!("writing::{name}"), move || {
                let mut fresh = EmptyIndex::shared(servers.get(), None);
                fresh.settings.garbage_collection_grace = Duration::from_secs(2);
                fresh.engine = Some(another(&fresh));
                case(&fresh);
                Ok(())
            })
        })
        .collect()
}

/// An engine that the cluster takes for another process with the same index.
fn another(fresh: &EmptyIndex) -> ClusterEngine {
    ClusterEngine::open(fresh.settings.clone(), None).unwrap()
}

fn batch(generation: u64) -> Vec<docent_search::DocumentChange> {
    let text = format!("ferry v{generation}");
    (0..5).map(|n| put(&format!("d{n}"), "T", &text)).collect()
}

fn one_generation(fresh: &EmptyIndex) {
    let runtime = runtime();
    let reader = another(fresh);
    runtime.block_on(async {
        fresh.engine().apply(batch(1)).await.unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = [fresh.engine().clone(), reader]
            .into_iter()
            .map(|engine| {
                let done = done.clone();
                tokio::spawn(async move {
                    let mut answers = 0;
                    while !done.load(Ordering::Relaxed) {
                        let query = Query::new("ferry", 10, ReaderIdentity::everyone());
                        let found = engine.search(query).await.unwrap().hits;
                        assert_eq!(found.len(), 5);
                        let first = &found[0].snippet;
                        assert!(found.iter().all(|hit| hit.snippet == *first), "{found:?}");
                        answers += 1;
                    }
                    answers
                })
            })
            .collect();
        for generation in 2..=15 {
            fresh.engine().apply(batch(generation)).await.unwrap();
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.await.unwrap() > 0);
        }
    });
}

/// A heartbeat is written to the same point as a commit. While it is, nodes differ about that point.
fn concurrent_heartbeats(fresh: &EmptyIndex) {
    let done = AtomicBool::new(false);
    let nodes = &fresh.settings.addresses;
    let head = fresh.collection("head");
    std::thread::scope(|scope| {
        for (at, node) in nodes.iter().enumerate() {
            let url = format!("{node}/collections/{head}/points/payload");
            let done = &done;
            scope.spawn(move || {
                let mut beat = at;
                while !done.load(Ordering::Relaxed) {
                    beat += nodes.len();
                    let body = json!({"payload": {"beat": beat}, "filter": {}}).to_string();
                    let request = ureq::post(&url).header("content-type", "application/json");
                    request.send(body).unwrap();
                }
            });
        }
        let runtime = runtime();
        let applied = (0..100).map(|n| runtime.block_on(fresh.engine().apply(batch(n))));
        let failed: Vec<SearchError> = applied.filter_map(Result::err).collect();
        done.store(true, Ordering::Relaxed);
        assert!(failed.is_empty(), "{failed:?}");
    });
}

fn one_writer(fresh: &EmptyIndex) {
    let second = another(fresh);
    runtime().block_on(async {
        let first = fresh.engine();
        assert!(first.acquire_leadership().await.unwrap());
        first.apply(batch(1)).await.unwrap();
        assert!(!second.acquire_leadership().await.unwrap());
        let refused = second.apply(batch(2)).await;
        assert!(
            matches!(refused, Err(SearchError::Locked { .. })),
            "{refused:?}"
        );
        assert_eq!(find(&second, "ferry").await.len(), 5);
    });
}

/// A writer that ends regularly releases its lease, so the next one need not wait for it to expire, which
/// takes ten seconds.
fn released(fresh: &EmptyIndex) {
    let runtime = runtime();
    let first = another(fresh);
    assert!(runtime.block_on(first.acquire_leadership()).unwrap());
    assert!(
        !runtime
            .block_on(fresh.engine().acquire_leadership())
            .unwrap()
    );
    drop(first);
    let leads = || {
        runtime
            .block_on(fresh.engine().acquire_leadership())
            .unwrap()
    };
    // Its last heartbeat may still be on its way.
    let taken = (0..50).any(|_| {
        leads() || {
            std::thread::sleep(Duration::from_millis(100));
            false
        }
    });
    assert!(taken);
}

fn fenced(fresh: &EmptyIndex) {
    let second = another(fresh);
    runtime().block_on(async {
        fresh.engine().apply(batch(1)).await.unwrap();
        force_takeover(fresh, &second).await;
        // The first writer finds out at its next change, and nothing of that is visible (fencing).
        let outcome = fresh
            .engine()
            .apply(vec![put("late", "T", "tram"), remove("d0")])
            .await;
        assert!(
            matches!(outcome, Err(SearchError::Locked { .. })),
            "{outcome:?}"
        );
        assert_eq!(find(&second, "ferry").await.len(), 5);
        assert!(find(&second, "tram").await.is_empty());
        let generation = second.apply(batch(3)).await.unwrap();
        assert!(generation > Generation(2), "{generation}");
    });
}

/// Makes the second process the writer although the first is alive, as a network partition would.
pub(crate) async fn force_takeover(fresh: &EmptyIndex, second: &ClusterEngine) {
    let address = &fresh.settings.addresses[0];
    let head = fresh.collection("head");
    let body = json!({"payload": {"holder": ""}, "filter": {}}).to_string();
    let url = format!("{address}/collections/{head}/points/payload?wait=true");
    ureq::post(url)
        .header("content-type", "application/json")
        .send(body)
        .unwrap();
    assert!(second.acquire_leadership().await.unwrap());
}

fn garbage_collected(fresh: &EmptyIndex) {
    runtime().block_on(async {
        for generation in 1..=3 {
            fresh.engine().apply(batch(generation)).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        fresh.engine().mark_complete().await.unwrap();
    });
    let address = &fresh.settings.addresses[0];
    let documents = fresh.collection("documents");
    let url = format!("{address}/collections/{documents}/points/count");
    let body = ureq::post(url)
        .header("content-type", "application/json")
        .send("{\"exact\":true}");
    let text = body.unwrap().body_mut().read_to_string().unwrap();
    let counted: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(counted.pointer("/result/count"), Some(&json!(5)));
}
