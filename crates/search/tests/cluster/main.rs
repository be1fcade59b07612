//! The contract suite on a real Qdrant cluster of three nodes, and the tests that only a cluster engine has
//! to pass.
//!
//! The property tests with hundreds of generated corpora (`filtered.rs`, `alone.rs`, `properties.rs`) run on
//! the other engines only: here each corpus would be an index of its own, which takes the cluster a second to
//! agree on.
//!
//! `conformance/qdrant/setup` installs the server. Without it the suite is skipped with a message; `./test`
//! sets `TEST_QDRANT`, so that it cannot be missing there.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    unreachable_pub,
    dead_code,
    reason = "a test fails by panicking, in its helpers too; the cases are shared with another binary"
)]

#[macro_use]
#[path = "../contract/list.rs"]
mod list;

#[path = "../contract/bombs.rs"]
mod bombs;
#[path = "../contract/cases.rs"]
mod cases;
mod embedding;
#[path = "../contract/facts.rs"]
mod facts;
mod failing;
#[path = "../contract/generations.rs"]
mod generations;
#[path = "../contract/languages.rs"]
mod languages;
mod locked;
#[path = "../contract/meanings.rs"]
mod meanings;
mod ranking;
#[path = "../contract/readers.rs"]
mod readers;
mod server;
#[path = "../contract/shelf.rs"]
mod shelf;
#[path = "../contract/spelling.rs"]
mod spelling;
mod statistics;
mod storage_placement;
mod swapping;
mod traffic;
mod weighing;
mod writing;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use docent_search::{ClusterEngine, ClusterSettings, Embedder};
use libtest_mimic::{Arguments, Trial};

use self::server::TestServers;

/// A cluster of test servers that is started when the first test needs it.
#[derive(Clone)]
struct SharedServers(Arc<OnceLock<TestServers>>, usize);

impl SharedServers {
    fn new(count: usize) -> Self {
        Self(Arc::default(), count)
    }

    fn get(&self) -> &TestServers {
        self.0.get_or_init(|| TestServers::start(self.1))
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// An index without any documents.
///
/// Creating collections needs the agreement of all nodes and takes seconds, so tests share them, one after
/// the other, and each empties them first.
struct EmptyIndex {
    engine: Option<ClusterEngine>,
    settings: ClusterSettings,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl EmptyIndex {
    /// The index that most tests share.
    fn shared(servers: &TestServers, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self::named("shared", servers, embedder)
    }

    fn named(name: &str, servers: &TestServers, embedder: Option<Arc<dyn Embedder>>) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = servers.settings(name);
        server::empty(&settings);
        let engine = ClusterEngine::open(settings.clone(), embedder).unwrap();
        Self {
            engine: Some(engine),
            settings,
            _alone: alone,
        }
    }

    fn engine(&self) -> &ClusterEngine {
        self.engine.as_ref().unwrap()
    }

    /// The name of one of the index's collections.
    fn collection(&self, kind: &str) -> String {
        let settings = &self.settings;
        format!("{}-{kind}-{}", settings.collection, settings.format)
    }
}

macro_rules! contract {
    ($trials:ident, $servers:ident: $($module:ident :: $case:ident),+ $(,)?) => {
        $(let servers = $servers.clone();
        $trials.push(Trial::test(concat!("contract::", stringify!($case)), move || {
            let fresh = EmptyIndex::shared(servers.get(), None);
            runtime().block_on($module::$case(fresh.engine()));
            Ok(())
        }));)+
    };
}

macro_rules! with_a_model {
    ($trials:ident, $servers:ident: $($module:ident :: $case:ident),+ $(,)?) => {
        $(let servers = $servers.clone();
        $trials.push(Trial::test(concat!("with_a_model::", stringify!($case)), move || {
            let fresh = EmptyIndex::shared(servers.get(), Some(meanings::topics()));
            runtime().block_on($module::$case(fresh.engine()));
            Ok(())
        }));)+
    };
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if server::program().is_none() {
        eprintln!("skipped: there is no Qdrant to test against; run conformance/qdrant/setup");
        return ExitCode::SUCCESS;
    }
    let servers = SharedServers::new(3);
    let mut trials = Vec::new();
    every_case![contract trials, servers:];
    every_case_with_a_model![with_a_model trials, servers:];
    trials.extend(writing::trials(&servers));
    trials.extend(embedding::trials(&servers));
    trials.extend(traffic::trials(&servers));
    trials.extend(statistics::trials(&servers));
    trials.extend(swapping::trials(&servers));
    trials.push(weighing::trial(&servers));
    trials.push(storage_placement::trial(&servers));
    trials.extend(locked::trials());
    trials.push(ranking::trial(&servers));
    trials.extend(failing::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}
