//! Concurrency of writers and readers: each answer is computed from one generation.

use docent_search::{Engine, Query, ReaderIdentity};

use crate::shelf::{hits, put};

fn alone() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

pub(crate) async fn an_answer_shows_one_generation(engine: &dyn Engine) {
    let changes = |generation: u64| {
        let text = format!("ferry v{generation}");
        (0..5).map(|n| put(&format!("d{n}"), "T", &text)).collect()
    };
    engine.apply(changes(1)).await.unwrap();
    // Each engine has a runtime of its own, because an engine may leave its work to the runtime it finds.
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for generation in 2..=15 {
                alone().block_on(engine.apply(changes(generation))).unwrap();
            }
        });
        let reader = scope.spawn(move || {
            let runtime = alone();
            while !writer.is_finished() {
                let query = Query::new("ferry", 10, ReaderIdentity::everyone());
                let found = runtime.block_on(engine.search(query)).unwrap().hits;
                assert_eq!(found.len(), 5);
                let first = &found[0].snippet;
                assert!(found.iter().all(|hit| hit.snippet == *first), "{found:?}");
            }
        });
        reader.join().unwrap();
    });
    assert_eq!(hits(engine, "ferry", 1).await[0].snippet, "ferry v15");
}
