//! How far the server is, for `/readyz` and for answers given before everything is ready.

use std::sync::{Mutex, PoisonError};

use docent_mcp::http::ReadinessReport;
use docent_search::{EngineStatus, PartState};
use serde_json::{Value, json};

/// What is known about the index at this moment.
#[derive(Debug)]
pub(crate) struct Readiness(Mutex<ReadinessState>);

#[derive(Debug)]
struct ReadinessState {
    status: EngineStatus,
    ready: bool,
    /// Whether the folder has been looked at to the end since the start.
    looked: bool,
    sync: SyncState,
}

/// How the folder and the index stand to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyncState {
    /// Files are being compared and indexed.
    Running {
        /// Files looked at.
        done: usize,
        /// Files there are.
        total: usize,
    },
    /// The index shows the folder as it was at the last look.
    Done,
    /// The last look failed; what was indexed before is served.
    Failed,
    /// Another process keeps the index; this one only reads it.
    ReadOnly,
}

impl Readiness {
    /// A server that has just opened its index. One that was filled before can answer at once.
    pub(crate) fn new(status: EngineStatus, sync: SyncState) -> Self {
        let ready = status.generation.0 > 0 || sync == SyncState::ReadOnly;
        Self(Mutex::new(ReadinessState {
            status,
            ready,
            looked: sync == SyncState::ReadOnly,
            sync,
        }))
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut ReadinessState) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes what the engine says about itself.
    pub(crate) fn set_status(&self, status: EngineStatus) {
        self.with_state(|inner| inner.status = status);
    }

    /// Notes how far the folder is. A first look that failed leaves the server not ready.
    pub(crate) fn set_sync(&self, sync: SyncState) {
        self.with_state(|inner| {
            // What another process keeps in step is as good as what this one does.
            let is_kept = matches!(sync, SyncState::Done | SyncState::ReadOnly);
            inner.ready |= is_kept;
            inner.looked |= is_kept;
            inner.sync = sync;
        });
    }

    /// What an answer given now may lack; nothing when it lacks nothing.
    pub(crate) fn unready(&self) -> Option<Value> {
        self.with_state(|inner| {
            let mut parts = serde_json::Map::new();
            if !inner.looked || inner.sync == SyncState::Failed {
                parts.insert("sync".to_owned(), inner.sync.to_json());
            }
            if let PartState::Building(settled) = inner.status.vectors {
                let (done, of) = (settled.done, settled.done + settled.left);
                parts.insert("vectors".to_owned(), json!({"documents": done, "of": of}));
            }
            (!parts.is_empty()).then_some(Value::Object(parts))
        })
    }

    /// Whether the folder is being read for the first time, so that what is there may not be found yet.
    pub(crate) fn is_first_sync(&self) -> bool {
        self.with_state(|inner| !inner.looked && matches!(inner.sync, SyncState::Running { .. }))
    }

    /// What is counted of the index.
    pub(crate) fn numbers(&self) -> IndexCounts {
        self.with_state(|inner| inner.numbers())
    }

    /// The answer for `/readyz`.
    pub(crate) fn response(&self) -> ReadinessReport {
        self.with_state(|inner| ReadinessReport {
            ready: inner.is_ready(),
            parts: inner.parts(),
        })
    }
}

/// What is counted of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexCounts {
    /// Whether the server can answer.
    pub(crate) ready: bool,
    /// Documents that can be found by their words.
    pub(crate) documents: u64,
    /// Those of them that can be found by their meaning.
    pub(crate) with_vectors: u64,
    /// Batches of changes so far.
    pub(crate) generation: u64,
}

impl ReadinessState {
    /// Whether it can answer. While an index is made in the place of an older one it cannot: whoever has
    /// the older one answers.
    fn is_ready(&self) -> bool {
        self.ready && !matches!(self.status.lexical, PartState::Building(_))
    }

    fn numbers(&self) -> IndexCounts {
        IndexCounts {
            ready: self.is_ready(),
            documents: self.status.documents,
            with_vectors: self.with_vectors(self.status.vectors),
            generation: self.status.generation.0,
        }
    }

    fn parts(&self) -> Value {
        let EngineStatus {
            documents,
            generation,
            lexical,
            vectors,
        } = &self.status;
        json!({
            "documents": documents,
            "generation": generation.0,
            "lexical": {"state": self.part(*lexical), "documents": documents},
            "vectors": self.vectors(*vectors),
            "sync": self.sync.to_json(),
        })
    }

    fn vectors(&self, state: PartState) -> Value {
        json!({"state": self.part(state), "documents": self.with_vectors(state)})
    }

    fn with_vectors(&self, state: PartState) -> u64 {
        match state {
            PartState::Absent => 0,
            PartState::Ready => self.status.documents,
            PartState::Building(settled) => settled.done,
        }
    }

    fn part(&self, state: PartState) -> &'static str {
        match state {
            PartState::Ready if self.ready => "ready",
            PartState::Ready | PartState::Building(_) => "building",
            PartState::Absent => "absent",
        }
    }
}

impl SyncState {
    fn to_json(&self) -> Value {
        match self {
            Self::Running { done, total } => {
                json!({"state": "running", "files": {"done": done, "total": total}})
            }
            Self::Done => json!({"state": "done"}),
            Self::Failed => json!({"state": "failed"}),
            Self::ReadOnly => json!({"state": "read-only"}),
        }
    }
}

#[cfg(test)]
mod tests {
    use docent_search::Generation;

    use super::*;

    fn status(documents: u64, generation: u64) -> EngineStatus {
        let generation = Generation(generation);
        EngineStatus {
            documents,
            generation,
            lexical: PartState::Ready,
            vectors: PartState::Absent,
        }
    }

    #[test]
    fn a_new_index_is_ready_after_its_first_sync() {
        let standing = Readiness::new(status(0, 0), SyncState::Running { done: 0, total: 0 });
        let first = standing.response();
        assert!(!first.ready);
        assert_eq!(first.parts["lexical"]["state"], "building");
        standing.set_sync(SyncState::Failed);
        assert!(!standing.response().ready);
        standing.set_status(status(64, 1));
        standing.set_sync(SyncState::Done);
        let last = standing.response();
        assert!(last.ready);
        assert_eq!(
            last.parts,
            json!({
                "documents": 64,
                "generation": 1,
                "lexical": {"state": "ready", "documents": 64},
                "vectors": {"state": "absent", "documents": 0},
                "sync": {"state": "done"},
            })
        );
    }

    #[test]
    fn an_answer_tells_what_it_lacks_until_it_lacks_nothing() {
        let standing = Readiness::new(status(0, 0), SyncState::Running { done: 3, total: 9 });
        let building = docent_search::EmbeddingProgress { done: 2, left: 62 };
        standing.set_status(EngineStatus {
            vectors: PartState::Building(building),
            ..status(64, 1)
        });
        let files = json!({"done": 3, "total": 9});
        assert!(standing.is_first_sync());
        assert_eq!(
            standing.unready(),
            Some(json!({
                "sync": {"state": "running", "files": files},
                "vectors": {"documents": 2, "of": 64},
            }))
        );
        standing.set_status(status(64, 1));
        standing.set_sync(SyncState::Done);
        assert_eq!(standing.unready(), None);
        // Later looks are short and show what was there before.
        standing.set_sync(SyncState::Running { done: 0, total: 9 });
        assert_eq!(standing.unready(), None);
        assert!(!standing.is_first_sync());
        standing.set_sync(SyncState::Failed);
        assert_eq!(
            standing.unready(),
            Some(json!({"sync": {"state": "failed"}}))
        );
    }

    #[test]
    fn a_filled_index_is_ready_at_once_and_stays_so() {
        let standing = Readiness::new(status(64, 3), SyncState::Running { done: 0, total: 0 });
        assert!(standing.response().ready);
        standing.set_sync(SyncState::Failed);
        assert!(standing.response().ready);
    }
}
