//! What every engine does with words that no document has.

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
    // A word that is there is never taken for another.
    assert_eq!(find(engine, "fern").await, ["d2"]);
}
