//! The same documents and questions on this machine and on the cluster: the right documents come as high.

use std::path::Path;
use std::sync::Arc;

use docent_search::{
    AllowedReaders, DocId, Document, DocumentChange, EmbeddedEngine, Embedder, Engine, Query,
    RankingMethod, ReaderIdentity, StaticEmbedder,
};
use libtest_mimic::Trial;

use crate::{EmptyIndex, SharedServers, runtime};

/// Every so manieth document is asked for.
const EVERY: usize = 3;

/// How much worse the cluster may be.
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

/// The speeches of the example.
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

/// Some words out of the middle of a text, not all of which stand side by side.
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
        let (mut here, mut there) = (0.0, 0.0);
        for document in documents.iter().step_by(EVERY) {
            let asked = question(&document.text);
            here += gain(embedded, &asked, document, method).await;
            there += gain(cluster, &asked, document, method).await;
        }
        assert!(here > 0.0);
        assert!(
            there >= here * (1.0 - LOSS),
            "{method:?}: {there} against {here}"
        );
    }
}

/// The discounted gain of the one document that was asked for, which is nDCG where there is one.
async fn gain(engine: &dyn Engine, asked: &str, wanted: &Document, method: RankingMethod) -> f64 {
    let query = Query::new(asked, 10, ReaderIdentity::everyone()).method(method);
    let found = engine.search(query).await.unwrap();
    let place = found.hits.iter().position(|hit| hit.id == wanted.id);
    place.map_or(0.0, |place| 1.0 / (place as f64 + 2.0).log2())
}
