//! Failover: nodes that are killed and come back, under load.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use docent_search::{ClusterEngine, ClusterSettings, Engine, Query, ReaderIdentity, SearchError};
use libtest_mimic::Trial;

use crate::meanings::topics;
use crate::runtime;
use crate::server::TestServers;
use crate::shelf::put;

/// How long an answer may take at most, whichever nodes are down.
const PROMPT: Duration = Duration::from_secs(2);

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("failing::nodes_die_and_come_back", || {
        nodes_die_and_come_back();
        Ok(())
    })]
}

/// Three engines that the cluster takes for three processes.
fn replicas(servers: &TestServers, timeout: Duration) -> Vec<ClusterEngine> {
    let settings = ClusterSettings {
        collection: "failing".to_owned(),
        timeout,
        ..ClusterSettings::new(servers.addresses())
    };
    let open = || ClusterEngine::open(settings.clone(), Some(topics())).unwrap();
    (0..3).map(|_| open()).collect()
}

fn nodes_die_and_come_back() {
    let servers = TestServers::start(3);
    // Whether there is an answer must not depend on how busy this machine is; how soon an error comes is
    // tested apart.
    let engines = replicas(&servers, Duration::from_secs(20));
    let runtime = runtime();
    let first: Vec<_> = (0..50)
        .map(|n| put(&format!("d{n}"), "T", "A ferry."))
        .collect();
    runtime.block_on(engines[0].apply(first)).unwrap();
    runtime.block_on(async { while engines[0].embed_pending(64).await.unwrap().left > 0 {} });
    let leader = servers.leader();
    // The leader of Qdrant's own consensus first. Which node orders the changes of a shard is another
    // question, so each of them has its turn.
    for victim in (0..3).map(|step| (leader + step) % 3) {
        runtime.block_on(one_dies(&servers, &engines, victim));
    }
    let usual = ClusterSettings::new(servers.addresses()).timeout;
    runtime.block_on(two_of_three_die(
        &servers,
        &replicas(&servers, usual),
        leader,
    ));
}

/// Queries until stopped; counts answers, and fails at the first wrong one.
async fn ask(engine: ClusterEngine, stop: Arc<AtomicBool>, answers: Arc<AtomicU64>) {
    while !stop.load(Ordering::Relaxed) {
        let query = Query::new("ferry", 100, ReaderIdentity::everyone()).count_total();
        let found = engine.search(query).await.unwrap_or_else(|error| {
            panic!(
                "{error}: {:?}",
                std::error::Error::source(&error).map(ToString::to_string)
            )
        });
        assert!(
            found.hits.len() >= 50 && found.total >= Some(50),
            "{:?}",
            found.total
        );
        answers.fetch_add(1, Ordering::Relaxed);
        // The nodes need some of the same few cores to elect a leader.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn one_dies(servers: &TestServers, engines: &[ClusterEngine], victim: usize) {
    let (stop, answers) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let readers: Vec<_> = engines
        .iter()
        .map(|engine| tokio::spawn(ask(engine.clone(), stop.clone(), answers.clone())))
        .collect();
    let mut acknowledged = BTreeSet::new();
    let mut killed = None;
    let start = Instant::now();
    let (mut number, mut refusal) = (0, None);
    // Writes until some batches were accepted without the victim, however long the others need to agree.
    while killed.is_none_or(|(_, before)| acknowledged.len() < before + 5) {
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "nothing is written without node {victim}: {} before and after it died {killed:?}, {refusal:?}",
            acknowledged.len()
        );
        let name = format!("w{victim}-{number}");
        let put = vec![put(&name, "T", "Another ferry.")];
        match engines[0].apply(put).await {
            Ok(_) => drop(acknowledged.insert(name)),
            Err(error) => {
                assert!(
                    matches!(
                        error,
                        SearchError::Cluster { .. } | SearchError::Locked { .. }
                    ),
                    "{error:?}"
                );
                refusal = Some((start.elapsed(), error));
            }
        }
        number += 1;
        if killed.is_none() && acknowledged.len() >= 5 {
            tokio::task::block_in_place(|| servers.kill(victim));
            killed = Some((Instant::now(), acknowledged.len()));
        }
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    assert!(answers.load(Ordering::Relaxed) > 10);
    tokio::task::block_in_place(|| {
        servers.revive(victim);
        servers.wait_for_replicas();
    });
    let held = engines[1].inventory().await.unwrap();
    let held: BTreeSet<_> = held.iter().map(|one| one.id.to_string()).collect();
    assert!(
        acknowledged.is_subset(&held),
        "lost: {:?}",
        acknowledged.difference(&held)
    );
}

async fn two_of_three_die(servers: &TestServers, engines: &[ClusterEngine], leader: usize) {
    // Waits until the restarted node has all its replicas again.
    wait_until_answering(engines, true).await;
    let others: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    tokio::task::block_in_place(|| others.iter().for_each(|at| servers.kill(*at)));
    for engine in engines {
        for _ in 0..4 {
            let start = Instant::now();
            let query = Query::new("ferry", 10, ReaderIdentity::everyone());
            let outcome = engine.search(query).await;
            assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
            let Err(error @ SearchError::Cluster { .. }) = outcome else {
                panic!("{outcome:?}");
            };
            assert!(error.to_string().contains("cluster"), "{error}");
        }
    }
    tokio::task::block_in_place(|| others.iter().for_each(|at| servers.revive(*at)));
    wait_until_answering(engines, true).await;
}

/// Waits until every engine answers, three times in a row.
async fn wait_until_answering(engines: &[ClusterEngine], answers: bool) {
    let start = Instant::now();
    let mut row = 0;
    while row < 3 {
        assert!(
            start.elapsed() < Duration::from_secs(90),
            "it does not come back"
        );
        let mut all = true;
        for engine in engines {
            let query = Query::new("ferry", 100, ReaderIdentity::everyone());
            all &= engine
                .search(query)
                .await
                .is_ok_and(|found| found.hits.len() >= 50);
        }
        row = if all == answers { row + 1 } else { 0 };
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
