//! BM25 weights follow the mean length of all documents, not that of the first ones.

use docent_search::{Engine, MemoryEngine, Query, RankingMethod, ReaderIdentity};
use libtest_mimic::Trial;

use crate::shelf::put;
use crate::{EmptyIndex, SharedServers, runtime};

/// The tolerated difference to the score of an engine that computes everything anew.
const OFF: f32 = 0.02;

pub(crate) fn trial(servers: &SharedServers) -> Trial {
    let servers = servers.clone();
    Trial::test(
        "weighing::weights_follow_the_length_of_documents",
        move || {
            let fresh = EmptyIndex::shared(servers.get(), None);
            runtime().block_on(follow(&fresh));
            Ok(())
        },
    )
}

/// The lexical score of the first hit.
pub(crate) async fn lexical_score(engine: &dyn Engine, text: &str) -> f32 {
    let query = Query::new(text, 1, ReaderIdentity::everyone()).method(RankingMethod::Lexical);
    let found = engine.search(query).await.unwrap();
    found.hits[0].why.lexical
}

async fn follow(fresh: &EmptyIndex) {
    let cluster = fresh.engine();
    let memory = MemoryEngine::new();
    let short: Vec<_> = (0..20)
        .map(|n| put(&format!("s{n}"), "T", &format!("A ferry, number {n}.")))
        .collect();
    let filler = "Nothing of note was said in the chamber on that day. ".repeat(20);
    let long: Vec<_> = (0..100)
        .map(|n| {
            put(
                &format!("l{n}"),
                "T",
                &format!("{filler} A harbour, number {n}."),
            )
        })
        .collect();
    for changes in [short, long] {
        for engine in [cluster as &dyn Engine, &memory] {
            engine.apply(changes.clone()).await.unwrap();
        }
    }
    let off = |actual: f32, expected: f32| (actual / expected - 1.0).abs();
    let (actual, expected) = (
        lexical_score(cluster, "harbour").await,
        lexical_score(&memory, "harbour").await,
    );
    assert!(
        off(actual, expected) > 0.2,
        "made for short documents: {actual} and {expected}"
    );
    cluster.mark_complete().await.unwrap();
    for word in ["harbour", "ferry"] {
        let (actual, expected) = (
            lexical_score(cluster, word).await,
            lexical_score(&memory, word).await,
        );
        assert!(
            off(actual, expected) < OFF,
            "{word}: {actual} and {expected}"
        );
    }
    assert_eq!(weighing(fresh), 1);
    // The mean has hardly changed, so the weights stay.
    cluster
        .apply(vec![put("l200", "T", &filler)])
        .await
        .unwrap();
    cluster.mark_complete().await.unwrap();
    assert_eq!(weighing(fresh), 1);
}

/// How often the weights were recomputed, according to the head.
fn weighing(fresh: &EmptyIndex) -> u64 {
    let (address, head) = (&fresh.settings.addresses[0], fresh.collection("head"));
    let url = format!("{address}/collections/{head}/points/scroll");
    let request = ureq::post(url).header("content-type", "application/json");
    let mut answer = request.send("{\"with_payload\":true}").unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = answer.pointer("/result/points/0/payload/weighing");
    number.and_then(serde_json::Value::as_u64).unwrap()
}
