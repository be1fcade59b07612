//! The contract of spelling correction: query terms that no document contains.

use docent_search::Engine;

use crate::shelf::{fill, find, find_all};

pub(crate) async fn slips_are_forgiven_and_beginnings_completed(engine: &dyn Engine) {
    fill(
        engine,
        &[
            "The parliament sat.",
            "The ferries sailed.",
            "A fern grows.",
        ],
    )
    .await;
    assert_eq!(find(engine, "parlaiment").await, ["d0"]);
    assert_eq!(find(engine, "parlia").await, ["d0"]);
    assert_eq!(find_all(engine, "fer").await, ["d1", "d2"]);
    assert!(find(engine, "zeppelin").await.is_empty());
    // A term that exists is never corrected to another.
    assert_eq!(find(engine, "fern").await, ["d2"]);
}
