//! Words are worth what they are worth in documents of the length there are, not of the first ones.

use docent_search::{Engine, MemoryEngine, Query, RankingMethod, ReaderIdentity};
use libtest_mimic::Trial;

use crate::shelf::put;
use crate::{EmptyIndex, SharedServers, runtime};

/// How far a score may be from that of an engine that counts everything anew.
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

/// What the words of the first hit are worth.
pub(crate) async fn worth(engine: &dyn Engine, text: &str) -> f32 {
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
    let off = |there: f32, here: f32| (there / here - 1.0).abs();
    let (there, here) = (
        worth(cluster, "harbour").await,
        worth(&memory, "harbour").await,
    );
    assert!(
        off(there, here) > 0.2,
        "made for short documents: {there} and {here}"
    );
    cluster.mark_complete().await.unwrap();
    for word in ["harbour", "ferry"] {
        let (there, here) = (worth(cluster, word).await, worth(&memory, word).await);
        assert!(off(there, here) < OFF, "{word}: {there} and {here}");
    }
    assert_eq!(weighing(fresh), 1);
    // About the same: they stay as they are.
    cluster
        .apply(vec![put("l200", "T", &filler)])
        .await
        .unwrap();
    cluster.mark_complete().await.unwrap();
    assert_eq!(weighing(fresh), 1);
}

/// How often the weights were made anew, as the head says it.
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
