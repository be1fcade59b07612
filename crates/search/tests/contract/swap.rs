//! A change of the embedding model: the new vectors are computed beside the old ones, which answer until the
//! new are complete.

use std::path::Path;
use std::sync::Arc;

use docent_search::{
    EmbeddedEngine, Embedder, EmbeddingProgress, Engine, PartState, Query, RankingMethod,
    ReaderIdentity, SearchError,
};

use crate::meanings::topics;
use crate::shelf::{fill, ids, put};

/// A model to which all texts mean the same.
struct ConstantEmbedder;

impl Embedder for ConstantEmbedder {
    fn fingerprint(&self) -> &str {
        "dull/1"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, SearchError> {
        Ok(texts.iter().map(|_| vec![1.0, 0.0]).collect())
    }

    fn query(&self, _text: &str) -> Result<Vec<f32>, SearchError> {
        Ok(vec![1.0, 0.0])
    }
}

async fn filled(dir: &Path) {
    let engine = EmbeddedEngine::open_with(dir, topics()).unwrap();
    fill(&engine, &["A ferry.", "A house.", "A levy."]).await;
    while engine.embed_pending(2).await.unwrap().left > 0 {}
}

/// The first semantic hit for a boat, and its similarity.
async fn boat(engine: &dyn Engine) -> Option<(String, f32)> {
    let query = Query::new("boat", 1, ReaderIdentity::everyone()).method(RankingMethod::Semantic);
    let found = engine.search(query).await.unwrap();
    let name = ids(&found).first().map(|name| (*name).to_owned())?;
    Some((name, found.hits[0].why.semantic?))
}

fn folders(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("vectors")).unwrap().count()
}

#[tokio::test]
async fn the_former_model_answers_until_the_new_one_can() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let engine = EmbeddedEngine::open_with_previous(dir.path(), Arc::new(ConstantEmbedder), || {
        vec![topics()]
    })
    .unwrap();
    let left = |done, left| PartState::Building(EmbeddingProgress { done, left });
    assert_eq!(engine.status().await.unwrap().vectors, left(0, 3));
    let (name, near) = boat(&engine).await.unwrap();
    assert!(name == "d0" && near > 0.98, "{name} {near}");

    // A document that changes meanwhile has no vector of either model, and the old model still covers more.
    engine.apply(vec![put("d1", "T", "A ship.")]).await.unwrap();
    assert_eq!(boat(&engine).await.unwrap().0, "d0");
    engine.embed_pending(1).await.unwrap();
    assert_eq!(boat(&engine).await.unwrap().0, "d0");
    assert_eq!(folders(dir.path()), 2);

    while engine.embed_pending(1).await.unwrap().left > 0 {}
    assert_eq!(engine.status().await.unwrap().vectors, PartState::Ready);
    // In the new model all documents are equally near.
    let (name, near) = boat(&engine).await.unwrap();
    assert!(name == "d0" && near > 0.999, "{name} {near}");
    assert_eq!(folders(dir.path()), 1);
}

#[tokio::test]
async fn without_the_former_model_words_answer() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let engine = EmbeddedEngine::open_with(dir.path(), Arc::new(ConstantEmbedder)).unwrap();
    assert_eq!(boat(&engine).await, None);
    let query = Query::new("levy", 10, ReaderIdentity::everyone());
    let found = engine.search(query).await.unwrap();
    assert_eq!(ids(&found), ["d2"]);
}

#[tokio::test]
async fn going_back_before_the_new_one_is_whole_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let engine = EmbeddedEngine::open_with_previous(dir.path(), Arc::new(ConstantEmbedder), || {
        vec![topics()]
    })
    .unwrap();
    engine.embed_pending(1).await.unwrap();
    drop(engine);
    let engine = EmbeddedEngine::open_with(dir.path(), topics()).unwrap();
    assert_eq!(engine.status().await.unwrap().vectors, PartState::Ready);
    assert_eq!(boat(&engine).await.unwrap().0, "d0");
}
