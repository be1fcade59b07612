//! The contract suite that every engine passes, and the tests of the embedded engine alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

#[macro_use]
mod list;

mod alone;
mod bombs;
mod cases;
mod departed;
mod disk;
mod facts;
mod filtered;
mod generations;
mod languages;
mod meanings;
mod properties;
mod readers;
mod shelf;
mod spelling;
mod swap;

/// Runs each case on a fresh engine of every kind.
macro_rules! contract {
    ($($module:ident :: $case:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $case() {
                crate::$module::$case(&docent_search::MemoryEngine::new()).await;
            })+
        }

        mod embedded {
            $(#[tokio::test]
            async fn $case() {
                let dir = tempfile::tempdir().unwrap();
                crate::$module::$case(&docent_search::EmbeddedEngine::open(dir.path()).unwrap()).await;
            })+
        }
    };
}

every_case![contract];

/// The same for engines with an embedding model.
macro_rules! with_a_model {
    ($($module:ident :: $case:ident),+ $(,)?) => {
        mod memory_with_a_model {
            $(#[tokio::test]
            async fn $case() {
                let model = crate::meanings::topics();
                crate::$module::$case(&docent_search::MemoryEngine::with_embedder(model)).await;
            })+
        }

        mod embedded_with_a_model {
            $(#[tokio::test]
            async fn $case() {
                let dir = tempfile::tempdir().unwrap();
                let model = crate::meanings::topics();
                let engine = docent_search::EmbeddedEngine::open_with(dir.path(), model).unwrap();
                crate::$module::$case(&engine).await;
            })+
        }
    };
}

every_case_with_a_model![with_a_model];
