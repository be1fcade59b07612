//! Readiness of the index: the state behind `/readyz`, and the notice in answers that are given before everything is
//! indexed.

use std::sync::{Mutex, PoisonError};

use docent_mcp::http::ReadinessReport;
use docent_search::{EngineStatus, PartState};
use serde_json::{Value, json};

/// Current readiness of the index, shared by the sync, the tools and the `/readyz` endpoint.
#[derive(Debug)]
pub(crate) struct Readiness(Mutex<ReadinessState>);

/// `ready` says whether the server may answer at all, and never becomes false again. `scanned` says whether the folder
/// has been scanned completely since the start, so that answers are complete.
#[derive(Debug)]
struct ReadinessState {
    status: EngineStatus,
    ready: bool,
    scanned: bool,
    sync: SyncState,
}

/// State of the sync between the folder and the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyncState {
    /// A sync is running and has processed `done` of `total` files.
    Running { done: usize, total: usize },
    /// The index matches the folder as of the last scan.
    Done,
    /// The last sync failed; the previous state of the index is served.
    Failed,
    /// Another process writes the index; this one only reads it.
    ReadOnly,
}

impl Readiness {
    /// Creates the state of a server that has just opened its index. An index that already has content is ready at
    /// once.
    pub(crate) fn new(status: EngineStatus, sync: SyncState) -> Self {
        let ready = status.generation.0 > 0 || sync == SyncState::ReadOnly;
        Self(Mutex::new(ReadinessState {
            status,
            ready,
            scanned: sync == SyncState::ReadOnly,
            sync,
        }))
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut ReadinessState) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records the status that the engine reports.
    pub(crate) fn set_status(&self, status: EngineStatus) {
        self.with_state(|state| state.status = status);
    }

    /// Records the progress of the sync. If the very first sync of a new index fails, the server stays not ready.
    pub(crate) fn set_sync(&self, sync: SyncState) {
        self.with_state(|state| {
            // A read-only server relies on the writer process, so its index counts as synced.
            let is_synced = matches!(sync, SyncState::Done | SyncState::ReadOnly);
            state.ready |= is_synced;
            state.scanned |= is_synced;
            state.sync = sync;
        });
    }

    /// The notice for answers that may be incomplete: sync progress and missing vectors. `None` once everything is
    /// indexed.
    pub(crate) fn unready(&self) -> Option<Value> {
        self.with_state(|state| {
            let mut parts = serde_json::Map::new();
            if !state.scanned || state.sync == SyncState::Failed {
                parts.insert("sync".to_owned(), state.sync.to_json());
            }
            if let PartState::Building(embedding) = state.status.vectors {
                let (done, of) = (embedding.done, embedding.done + embedding.left);
                parts.insert("vectors".to_owned(), json!({"documents": done, "of": of}));
            }
            (!parts.is_empty()).then_some(Value::Object(parts))
        })
    }

    /// Whether the first scan of the folder is still running, so that existing documents may not be found yet.
    pub(crate) fn is_first_sync(&self) -> bool {
        self.with_state(|state| !state.scanned && matches!(state.sync, SyncState::Running { .. }))
    }

    /// The numbers that the metrics endpoint exports as gauges.
    pub(crate) fn numbers(&self) -> IndexCounts {
        self.with_state(|state| state.numbers())
    }

    /// The response body of the `/readyz` endpoint, and whether it is a 200.
    pub(crate) fn response(&self) -> ReadinessReport {
        self.with_state(|state| ReadinessReport {
            ready: state.is_ready(),
            parts: state.parts(),
        })
    }
}

/// Index gauges for the metrics endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexCounts {
    /// Whether the server is ready to answer.
    pub(crate) ready: bool,
    /// Documents in the keyword index.
    pub(crate) documents: u64,
    /// Documents that also have vectors.
    pub(crate) with_vectors: u64,
    /// Generation of the index, which each batch of changes increments.
    pub(crate) generation: u64,
}

impl ReadinessState {
    /// Whether the server is ready. It is not while it builds a replacement for an index of an older version: until
    /// then the servers that still have the old index should get the traffic.
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
            PartState::Building(embedding) => embedding.done,
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
        let readiness = Readiness::new(status(0, 0), SyncState::Running { done: 0, total: 0 });
        let first = readiness.response();
        assert!(!first.ready);
        assert_eq!(first.parts["lexical"]["state"], "building");
        readiness.set_sync(SyncState::Failed);
        assert!(!readiness.response().ready);
        readiness.set_status(status(64, 1));
        readiness.set_sync(SyncState::Done);
        let last = readiness.response();
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
        let readiness = Readiness::new(status(0, 0), SyncState::Running { done: 3, total: 9 });
        let building = docent_search::EmbeddingProgress { done: 2, left: 62 };
        readiness.set_status(EngineStatus {
            vectors: PartState::Building(building),
            ..status(64, 1)
        });
        let files = json!({"done": 3, "total": 9});
        assert!(readiness.is_first_sync());
        assert_eq!(
            readiness.unready(),
            Some(json!({
                "sync": {"state": "running", "files": files},
                "vectors": {"documents": 2, "of": 64},
            }))
        );
        readiness.set_status(status(64, 1));
        readiness.set_sync(SyncState::Done);
        assert_eq!(readiness.unready(), None);
        // Later scans are short, and the index already has the previous state.
        readiness.set_sync(SyncState::Running { done: 0, total: 9 });
        assert_eq!(readiness.unready(), None);
        assert!(!readiness.is_first_sync());
        readiness.set_sync(SyncState::Failed);
        assert_eq!(
            readiness.unready(),
            Some(json!({"sync": {"state": "failed"}}))
        );
    }

    #[test]
    fn a_filled_index_is_ready_at_once_and_stays_so() {
        let readiness = Readiness::new(status(64, 3), SyncState::Running { done: 0, total: 0 });
        assert!(readiness.response().ready);
        readiness.set_sync(SyncState::Failed);
        assert!(readiness.response().ready);
    }
}
