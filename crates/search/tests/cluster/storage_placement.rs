//! Storage placement: what nodes hold in memory follows the settings, also for an existing index.

use docent_search::{
    ClusterEngine, ClusterSettings, Engine as _, Query, RankingMethod, ReaderIdentity,
};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::meanings::{embed_all, topics};
use crate::server::{get, wait_until};
use crate::shelf::{find, put};
use crate::{EmptyIndex, SharedServers, runtime};

pub(crate) fn trial(servers: &SharedServers) -> Trial {
    let servers = servers.clone();
    Trial::test(
        "storage_placement::what_is_in_memory_follows_the_settings",
        move || {
            let fresh = EmptyIndex::named("keeping", servers.get(), Some(topics()));
            runtime().block_on(follow(fresh));
            Ok(())
        },
    )
}

/// Whether vectors, sparse vectors, the terms index, documents and passages are on disk only, and whether
/// vectors are quantized.
#[derive(Debug, PartialEq)]
struct PlacementReport {
    vectors: bool,
    words: bool,
    terms: bool,
    documents: [bool; 2],
    quantized: bool,
}

impl PlacementReport {
    fn all(on_disk: bool) -> Self {
        Self {
            vectors: on_disk,
            words: on_disk,
            terms: on_disk,
            documents: [on_disk; 2],
            quantized: on_disk,
        }
    }

    /// The placement that a node reports.
    fn of(settings: &ClusterSettings, at: usize) -> Self {
        let address = &settings.addresses[at];
        let described = |alias: &str| {
            let name = format!("{}-{alias}", settings.collection);
            get(address, &format!("/collections/{name}"))["result"].take()
        };
        let (documents, passages) = (described("documents"), described("passages"));
        let on = |known: &Value, at: &str| known.pointer(at) == Some(&json!(true));
        let payload = |known: &Value| on(known, "/config/params/on_disk_payload");
        Self {
            vectors: on(&passages, "/config/params/vectors/on_disk"),
            words: on(
                &documents,
                "/config/params/sparse_vectors/words/index/on_disk",
            ),
            terms: on(&documents, "/payload_schema/terms/params/on_disk"),
            documents: [payload(&documents), payload(&passages)],
            quantized: passages["config"]["quantization_config"].is_object(),
        }
    }
}

async fn follow(mut fresh: EmptyIndex) {
    let ships = (0..50).map(|n| put(&format!("d{n}"), "T", &format!("Ship {n}.")));
    fresh.engine().apply(ships.collect()).await.unwrap();
    embed_all(fresh.engine()).await;
    let found = find(fresh.engine(), "ship 7").await;
    let usual = fresh.settings.clone();
    wait_until(|| PlacementReport::of(&usual, 0) == PlacementReport::all(true));
    let memory = ClusterSettings {
        quantized: false,
        words_on_disk: false,
        documents_on_disk: false,
        ..usual.clone()
    };
    for (settings, on_disk) in [(memory, false), (usual, true)] {
        // The next process that writes applies the change.
        fresh.engine = None;
        let engine = ClusterEngine::open(settings.clone(), Some(topics())).unwrap();
        engine
            .apply(vec![put("late", "T", "A home.")])
            .await
            .unwrap();
        embed_all(&engine).await;
        for node in 0..settings.addresses.len() {
            wait_until(|| PlacementReport::of(&settings, node) == PlacementReport::all(on_disk));
        }
        assert_eq!(find(&engine, "ship 7").await, found);
        let query =
            Query::new("boat", 100, ReaderIdentity::everyone()).method(RankingMethod::Semantic);
        let near = engine.search(query).await.unwrap().hits;
        assert_eq!(
            near.iter().filter(|hit| hit.id.as_str() != "late").count(),
            50
        );
        fresh.engine = Some(engine);
    }
}
