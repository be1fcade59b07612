//! Callers that drop their futures at once: the work they started is bounded, and callers that stay are
//! answered.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::available_parallelism;

use docent_search::{EmbeddedEngine, Embedder, Engine, Query, ReaderIdentity, SearchError};
use futures::FutureExt as _;

use crate::meanings::{Topics, embed_all};
use crate::shelf::fill;

const CALLERS: usize = 300;

/// A model that blocks query embeddings until it is opened.
#[derive(Default)]
struct SlowQuestions {
    at_work: AtomicUsize,
    most_at_work: AtomicUsize,
    is_open: Mutex<bool>,
    opened: Condvar,
    /// Whether any query was embedded at all.
    was_queried: AtomicBool,
}

impl SlowQuestions {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

impl Embedder for SlowQuestions {
    fn fingerprint(&self) -> &str {
        Topics.fingerprint()
    }

    fn dimensions(&self) -> usize {
        Topics.dimensions()
    }

    fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, SearchError> {
        Topics.passages(texts)
    }

    fn query(&self, text: &str) -> Result<Vec<f32>, SearchError> {
        self.was_queried.store(true, Ordering::SeqCst);
        let at_work = self.at_work.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_work.fetch_max(at_work, Ordering::SeqCst);
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
        drop(is_open);
        self.at_work.fetch_sub(1, Ordering::SeqCst);
        Topics.query(text)
    }
}

fn question(text: &str) -> Query {
    Query::new(text, 10, ReaderIdentity::owner())
}

#[tokio::test]
async fn searches_whose_callers_left_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let model = Arc::new(SlowQuestions::default());
    let engine = EmbeddedEngine::open_with(dir.path(), model.clone()).unwrap();
    fill(&engine, &["The ferry leaves at nine."]).await;
    embed_all(&engine).await;

    for caller in 0..CALLERS {
        let abandoned = engine.search(question(&format!("ferry {caller}")));
        assert!(abandoned.now_or_never().is_none());
    }
    let mut stayed = engine.search(question("a boat that is late"));
    assert!(stayed.as_mut().now_or_never().is_none());
    // The thread pool is a queue: once this task is through, so are all that were queued before it.
    tokio::task::spawn_blocking(|| ()).await.unwrap();
    while !model.was_queried.load(Ordering::SeqCst) {
        assert!(stayed.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    model.open();
    assert_eq!(stayed.await.unwrap().hits.len(), 1);
    let processors = available_parallelism().map_or(1, usize::from);
    let most = model.most_at_work.load(Ordering::SeqCst);
    assert!(most <= (2 * processors).max(4), "{most} searches at once");
}
