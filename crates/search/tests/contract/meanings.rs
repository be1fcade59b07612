//! The contract of semantic search, with a model whose vectors can be computed by hand.

use std::sync::Arc;

use docent_search::{
    CosineScale, Embedder, EmbeddingProgress, Engine, MAX_OFFSET, ModelLanguages, PartState, Query,
    RankingMethod, ReaderIdentity, SearchError,
};

use crate::shelf::{fill, ids, put, remove};

/// An embedder that knows three topics by their words, and that a boat is a ferry.
pub(crate) struct Topics;

const TOPICS: [&[&str]; 3] = [
    &["ferry", "boat", "ship"],
    &["house", "home"],
    &["tax", "levy"],
];

impl Topics {
    fn vector(text: &str) -> Vec<f32> {
        let text = text.to_lowercase();
        let count = |words: &[&str]| {
            let found: usize = words.iter().map(|word| text.matches(word).count()).sum();
            found as f32
        };
        let mut vector: Vec<f32> = TOPICS.iter().map(|words| count(words)).collect();
        // A text without any topic still needs a direction.
        vector.push(0.1);
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.iter().map(|x| x / length).collect()
    }
}

impl Embedder for Topics {
    fn fingerprint(&self) -> &str {
        "topics/1"
    }

    fn dimensions(&self) -> usize {
        TOPICS.len() + 1
    }

    fn scale(&self) -> CosineScale {
        CosineScale::GRANITE
    }

    fn languages(&self) -> ModelLanguages {
        ModelLanguages::English
    }

    fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, SearchError> {
        Ok(texts.iter().map(|text| Self::vector(text)).collect())
    }

    fn query(&self, text: &str) -> Result<Vec<f32>, SearchError> {
        Ok(Self::vector(text))
    }
}

pub(crate) fn topics() -> Arc<dyn Embedder> {
    Arc::new(Topics)
}

pub(crate) async fn embed_all(engine: &dyn Engine) {
    while engine.embed_pending(2).await.unwrap().left > 0 {}
}

async fn found(engine: &dyn Engine, text: &str, method: RankingMethod) -> Vec<String> {
    let query = Query::new(text, 10, ReaderIdentity::everyone()).method(method);
    let found = engine.search(query).await.unwrap();
    ids(&found).into_iter().map(str::to_owned).collect()
}

pub(crate) async fn words_count_in_what_only_meaning_finds_however_many_there_are(
    engine: &dyn Engine,
) {
    // Of very many words only the rare ones retrieve documents; the one in the ferry's text is in most
    // documents.
    let rare: Vec<String> = (0..30).map(|n| format!("rare{n} common")).collect();
    let mut texts: Vec<&str> = rare.iter().map(String::as_str).collect();
    texts.push("The boat is common.");
    fill(engine, &texts).await;
    embed_all(engine).await;
    let question = format!("ferry {}", rare.join(" "));
    let query = Query::new(&question, 50, ReaderIdentity::everyone());
    let found = engine.search(query).await.unwrap();
    let boat = found
        .hits
        .iter()
        .find(|hit| hit.id.as_str() == "d30")
        .unwrap();
    assert!(
        boat.why.semantic.is_some_and(|near| near > 0.9),
        "{:?}",
        boat.why
    );
    assert!(boat.why.lexical > 0.0, "{:?}", boat.why);
}

pub(crate) async fn vectors_follow_the_words(engine: &dyn Engine) {
    assert_eq!(engine.status().await.unwrap().vectors, PartState::Ready);
    fill(engine, &["A ferry.", "A house.", "A levy."]).await;
    let left = |done, left| PartState::Building(EmbeddingProgress { done, left });
    assert_eq!(engine.status().await.unwrap().vectors, left(0, 3));
    assert_eq!(found(engine, "ferry", RankingMethod::Hybrid).await, ["d0"]);
    assert_eq!(
        engine.embed_pending(2).await.unwrap(),
        EmbeddingProgress { done: 2, left: 1 }
    );
    assert_eq!(
        engine.embed_pending(2).await.unwrap(),
        EmbeddingProgress { done: 3, left: 0 }
    );
    assert_eq!(engine.status().await.unwrap().vectors, PartState::Ready);
    engine
        .apply(vec![put("d1", "T", "A home."), remove("d2")])
        .await
        .unwrap();
    assert_eq!(engine.status().await.unwrap().vectors, left(1, 1));
    embed_all(engine).await;
    assert_eq!(engine.status().await.unwrap().vectors, PartState::Ready);
}

pub(crate) async fn a_far_page_is_empty_and_no_failure(engine: &dyn Engine) {
    fill(engine, &["A ferry.", "A boat.", "A levy."]).await;
    embed_all(engine).await;
    for offset in [2, 499, 501, MAX_OFFSET] {
        let query = Query::new("boat", 100, ReaderIdentity::everyone()).offset(offset);
        assert!(
            engine.search(query).await.unwrap().hits.is_empty(),
            "{offset}"
        );
    }
}

pub(crate) async fn meanings_find_what_words_do_not(engine: &dyn Engine) {
    fill(
        engine,
        &["A ferry sails.", "A house stands.", "A levy is due."],
    )
    .await;
    embed_all(engine).await;
    assert!(
        found(engine, "boat", RankingMethod::Lexical)
            .await
            .is_empty()
    );
    for method in [
        RankingMethod::Hybrid,
        RankingMethod::Semantic,
        RankingMethod::Fixed(0.5),
    ] {
        assert_eq!(found(engine, "boat", method).await[0], "d0", "{method:?}");
    }
    assert_eq!(found(engine, "levy", RankingMethod::Lexical).await, ["d2"]);
}

pub(crate) async fn both_halves_together_come_first(engine: &dyn Engine) {
    fill(
        engine,
        &[
            "The boat of the house of the levy.",
            "A boat, a boat!",
            "A ship and a ferry.",
            "Rain.",
        ],
    )
    .await;
    embed_all(engine).await;
    let order = found(engine, "boat", RankingMethod::Hybrid).await;
    assert_eq!(order[0], "d1");
    // Rain is too dissimilar to be shown.
    assert_eq!(order.len(), 3);
}

pub(crate) async fn deleted_documents_are_not_found_by_vector_search(engine: &dyn Engine) {
    fill(engine, &["A ferry.", "A ship.", "A house."]).await;
    embed_all(engine).await;
    engine
        .apply(vec![remove("d0"), put("d1", "T", "A levy.")])
        .await
        .unwrap();
    embed_all(engine).await;
    assert_eq!(
        found(engine, "boat", RankingMethod::Semantic).await[0],
        "d1"
    );
    let all = found(engine, "boat", RankingMethod::Semantic).await;
    assert!(!all.contains(&"d0".to_owned()));
    let why = engine
        .search(Query::new("boat", 10, ReaderIdentity::everyone()))
        .await
        .unwrap();
    assert!(why.hits.iter().all(|hit| hit.why.semantic.unwrap() < 0.9));
}

pub(crate) async fn a_hit_shows_the_passage_that_is_near(engine: &dyn Engine) {
    let filler = "Nothing of note was said in the chamber on that day. ".repeat(20);
    let text =
        format!("# One\n\n{filler}\n\n# Two\n\nA ship sank. {filler}\n\n# Three\n\n{filler}");
    fill(engine, &[&text, "A levy."]).await;
    embed_all(engine).await;
    let query = Query::new("boat", 1, ReaderIdentity::everyone()).excerpts();
    let hit = engine.search(query).await.unwrap().hits.remove(0);
    assert_eq!(hit.id.as_str(), "d0");
    assert_eq!(hit.excerpts[0].path, "Two");
    assert!(
        hit.snippet.starts_with("…# Two A ship sank."),
        "{}",
        hit.snippet
    );
}

pub(crate) async fn a_document_without_words_needs_no_vectors(engine: &dyn Engine) {
    fill(engine, &[" ", "A ferry."]).await;
    let progress = engine.embed_pending(9).await.unwrap();
    assert_eq!(progress, EmbeddingProgress { done: 2, left: 0 });
    assert_eq!(engine.status().await.unwrap().vectors, PartState::Ready);
    assert_eq!(found(engine, "boat", RankingMethod::Semantic).await, ["d1"]);
}

/// German prose that an English model would take to be about taxes.
const GERMAN: &str = "Die Steuer auf das Haus ist in diesem Jahr nicht mehr so hoch, weil die tax und noch \
    einmal die tax bei uns von der Stadt und nicht von dem Land kommt, und das ist auch gut so.";
const RUSSIAN: &str = "Налог на дом в этом году уже не такой высокий, потому что tax платит город.";
const ENGLISH: &str = "The tax on this house is paid by the town and not by those who live in it.";

pub(crate) async fn a_document_in_a_language_the_model_does_not_know_is_found_by_words_alone(
    engine: &dyn Engine,
) {
    fill(engine, &[GERMAN, RUSSIAN, ENGLISH]).await;
    embed_all(engine).await;
    // No document has the word, and only the English one has its meaning.
    assert_eq!(
        found(engine, "the levy", RankingMethod::Hybrid).await,
        ["d2"]
    );
    // All documents have this word. Those that only lexical search supports are found too.
    let all = found(engine, "who pays the tax", RankingMethod::Hybrid).await;
    assert_eq!(all.len(), 3, "{all:?}");
    assert_eq!(all.first().map(String::as_str), Some("d2"));
}

pub(crate) async fn a_question_in_a_language_the_model_does_not_know_is_answered_by_words_alone(
    engine: &dyn Engine,
) {
    let other = "The levy on boats is small.";
    fill(engine, &[GERMAN, RUSSIAN, ENGLISH, other]).await;
    embed_all(engine).await;
    for question in ["wie hoch ist die tax", "налог tax", "Stadt Steuer"] {
        let words = found(engine, question, RankingMethod::Lexical).await;
        assert!(!words.contains(&"d3".to_owned()), "{words:?}");
        assert_eq!(
            found(engine, question, RankingMethod::Hybrid).await,
            words,
            "{question}"
        );
    }
}

pub(crate) async fn each_passage_of_a_mixed_document_counts_in_its_own_language(
    engine: &dyn Engine,
) {
    let padding =
        "und das ist auch gut so, denn die Stadt hat nicht mehr viel Geld für die Schulen. ";
    let german = format!("# Steuern\n\n{GERMAN} {}", padding.repeat(2));
    let english = "# Summary\n\nThe boat leaves in the morning and it is back in the harbour before the night.";
    fill(engine, &[&format!("{german}\n\n{english}"), &german]).await;
    embed_all(engine).await;
    assert_eq!(
        found(engine, "the ferry", RankingMethod::Hybrid).await,
        ["d0"]
    );
    let levy = found(engine, "the levy", RankingMethod::Hybrid).await;
    assert!(levy.is_empty(), "{levy:?}");
}
