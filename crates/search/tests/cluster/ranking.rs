//! Ranking on a cluster is as good as on one machine: the same documents and queries, compared by nDCG.

use std::path::Path;
use std::sync::Arc;

use docent_search::{
    AllowedReaders, DocId, Document, DocumentChange, EmbeddedEngine, Embedder, Engine, Query,
    RankingMethod, ReaderIdentity, StaticEmbedder,
};
use libtest_mimic::Trial;

use crate::{EmptyIndex, SharedServers, runtime};

/// A query is made for every so manieth document.
const EVERY: usize = 3;

/// How much lower the cluster's gain may be.
const LOSS: f64 = 0.01;

pub(crate) fn trial(servers: &SharedServers) -> Trial {
    let servers = servers.clone();
    Trial::test("ranking::as_good_as_on_this_machine", move || {
        let model: Arc<dyn Embedder> = Arc::new(StaticEmbedder::new().unwrap());
        let fresh = EmptyIndex::named("ranking", servers.get(), Some(model.clone()));
        let dir = tempfile::tempdir().unwrap();
        let embedded = EmbeddedEngine::open_with(dir.path(), model).unwrap();
        runtime().block_on(compare(&embedded, fresh.engine()));
        Ok(())
    })
}

/// The speeches of the parliament example.
fn speeches() -> Vec<Document> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/parliament/speeches");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let speech = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Document {
            id: DocId::parse(&name).unwrap(),
            title: String::new(),
            text,
            url: None,
            date: None,
            fields: Vec::new(),
            source: name.clone(),
            hash: name,
            readers: AllowedReaders::Everyone,
        }
    };
    files.iter().map(speech).collect()
}

/// A query made of words from the middle of a text, not all of which are adjacent.
fn question(text: &str) -> String {
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|word| word.len() > 4)
        .collect();
    let from = words.len() / 2;
    words
        .iter()
        .skip(from)
        .step_by(3)
        .take(5)
        .copied()
        .collect::<Vec<_>>()
        .join(" ")
}

async fn compare(embedded: &dyn Engine, cluster: &dyn Engine) {
    let documents = speeches();
    assert!(documents.len() >= 20);
    for engine in [embedded, cluster] {
        let changes = documents.iter().cloned().map(DocumentChange::Put).collect();
        engine.apply(changes).await.unwrap();
        while engine.embed_pending(64).await.unwrap().left > 0 {}
    }
    for method in [RankingMethod::Lexical, RankingMethod::Hybrid] {
        let (mut embedded_gain, mut cluster_gain) = (0.0, 0.0);
        for document in documents.iter().step_by(EVERY) {
            let query_text = question(&document.text);
            embedded_gain += gain(embedded, &query_text, document, method).await;
            cluster_gain += gain(cluster, &query_text, document, method).await;
        }
        assert!(embedded_gain > 0.0);
        assert!(
            cluster_gain >= embedded_gain * (1.0 - LOSS),
            "{method:?}: {cluster_gain} against {embedded_gain}"
        );
    }
}

/// The discounted cumulative gain of the one relevant document, which equals its nDCG.
async fn gain(
    engine: &dyn Engine,
    query_text: &str,
    wanted: &Document,
    method: RankingMethod,
) -> f64 {
    let query = Query::new(query_text, 10, ReaderIdentity::everyone()).method(method);
    let found = engine.search(query).await.unwrap();
    let place = found.hits.iter().position(|hit| hit.id == wanted.id);
    place.map_or(0.0, |place| 1.0 / (place as f64 + 2.0).log2())
}
