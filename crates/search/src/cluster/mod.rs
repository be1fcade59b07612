//! The search engine for more than one machine: an index on a Qdrant cluster, searched by any number of
//! processes and written by one of them at a time, the leader that holds the writer lease.

mod batch_write;
mod breaker;
mod caches;
mod collections;
mod cross_scoring;
mod deferred_indexing;
mod format_migration;
mod garbage_collection;
mod head;
mod index_view;
mod layout;
mod lease;
mod lexical_search;
mod listing;
mod model;
mod model_swap;
mod node;
mod node_pool;
mod parallel;
mod pending_embeddings;
mod point;
mod qdrant_filter;
mod qdrant_response;
mod request;
mod reweighting;
mod settings;
mod statistics_update;
mod tls_roots;
mod traffic;
mod unembedded_scan;
mod vector_search;
mod view;
mod word_statistics;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};

use self::caches::ClusterCaches;
use self::head::IndexHead;
use self::layout::CollectionNames;
use self::lease::WriterLease;
use self::model::{ClusterModels, PreviousModelFactory};
use self::node_pool::NodePool;
use self::request::RequestDeadline;
use self::unembedded_scan::UnembeddedScan;
use self::view::ClusterView;
use crate::blocking::{EnginePools, Lane};
use crate::catalog::Catalog;
use crate::document::{DocId, Document};
use crate::embedder::Embedder;
use crate::engine::{
    self, DocumentChange, EmbeddingProgress, Engine, EngineStatus, Generation, InventoryEntry,
    InventoryEntryRef, PassageVector, SPAN_TARGET,
};
use crate::error::SearchError;
use crate::hit::SearchResults;
use crate::pipeline;
use crate::query::Query;
use crate::reader_identity::ReaderIdentity;

pub use self::settings::{ClusterSettings, MAX_ADDRESSES, MAX_COLLECTION_CHARS};
pub use self::traffic::{CALL_BUCKETS, CallTraffic, ClusterTraffic, NodeTraffic};

/// How old the cached index head may be that an answer is computed from. A commit of another process is
/// visible after this long at the latest.
const MAX_HEAD_AGE: Duration = Duration::from_millis(300);

/// How many times longer than an answer a count over all documents may take.
const COUNT_TIMEOUT_FACTOR: u32 = 10;

/// An index on a Qdrant cluster.
///
/// Cloning is cheap and gives another handle of the same index.
#[derive(Clone)]
pub struct ClusterEngine(Arc<ClusterInner>);

/// The parts of an open index. `this` is for threads that outlive an answer. `head` is cached together with the time of its read. `lease` is locked by
/// whoever changes something, `embedding_scans` (by the names of models) by whoever computes vectors.
/// `leader_epoch` is set while this process, known to others by its `writer_id`, holds the writer lease.
struct ClusterInner {
    this: Weak<ClusterInner>,
    settings: ClusterSettings,
    nodes: NodePool,
    names: CollectionNames,
    models: ClusterModels,
    caches: ClusterCaches,
    pools: EnginePools,
    head: RwLock<Option<(Arc<IndexHead>, Instant)>>,
    lease: Mutex<WriterLease>,
    writer_id: String,
    leader_epoch: Mutex<Option<u64>>,
    embedding_scans: Mutex<BTreeMap<String, UnembeddedScan>>,
    is_read_only: bool,
}

impl ClusterEngine {
    /// Opens the index for searching and writing, and creates what does not exist yet.
    ///
    /// Any number of processes can have an index open this way. The first that changes something acquires the
    /// writer lease; changes by the others are refused with [`SearchError::Locked`] for as long as its
    /// heartbeat goes on.
    pub fn open(
        settings: ClusterSettings,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<Self, SearchError> {
        Self::open_with_previous(settings, embedder, Vec::new)
    }

    /// Like [`open`](Self::open), with a factory for embedding models that the index may have used before, or
    /// may use from now on: queries are embedded with whichever model the index answers with.
    pub fn open_with_previous(
        settings: ClusterSettings,
        embedder: Option<Arc<dyn Embedder>>,
        previous: impl Fn() -> Vec<Arc<dyn Embedder>> + Send + Sync + 'static,
    ) -> Result<Self, SearchError> {
        let cluster = Self::with(settings, embedder, Box::new(previous), false)?;
        let inner = &cluster.0;
        let (nodes, names) = (&inner.nodes, &inner.names);
        // Within the deadline of an answer, so that a cluster that is down or rejects the key is reported
        // soon.
        let existing = IndexHead::read(nodes, names, inner.read_deadline())?;
        collections::ensure_head(nodes, names, &inner.settings)?;
        let deadline = inner.write_deadline();
        let head = match existing {
            None => IndexHead::read(nodes, names, deadline)?,
            existing => existing,
        };
        let fields = head.as_ref().map(|head| head.fields.clone());
        collections::ensure_collections(
            nodes,
            names,
            &inner.settings,
            &fields.unwrap_or_default(),
        )?;
        // The head is created last, so that whoever finds a head finds the collections too.
        if head.is_none() {
            let documents_to_migrate = inner.documents_to_migrate(deadline)?;
            IndexHead::create(nodes, names, documents_to_migrate, deadline)?;
        }
        Ok(cluster)
    }

    /// Opens the index for searching only. Where there is none, this fails with [`SearchError::Missing`].
    pub fn open_read_only(
        settings: ClusterSettings,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<Self, SearchError> {
        Self::open_read_only_with_previous(settings, embedder, Vec::new)
    }

    /// Like [`open_read_only`](Self::open_read_only), with a factory for the previous embedding models.
    pub fn open_read_only_with_previous(
        settings: ClusterSettings,
        embedder: Option<Arc<dyn Embedder>>,
        previous: impl Fn() -> Vec<Arc<dyn Embedder>> + Send + Sync + 'static,
    ) -> Result<Self, SearchError> {
        let cluster = Self::with(settings, embedder, Box::new(previous), true)?;
        cluster.0.head(cluster.0.read_deadline())?;
        Ok(cluster)
    }

    fn with(
        settings: ClusterSettings,
        embedder: Option<Arc<dyn Embedder>>,
        previous: PreviousModelFactory,
        is_read_only: bool,
    ) -> Result<Self, SearchError> {
        settings.check()?;
        let names = CollectionNames::new(&settings.collection, settings.format);
        let nodes = NodePool::new(&settings)?;
        Ok(Self(Arc::new_cyclic(|this| ClusterInner {
            this: this.clone(),
            nodes,
            models: ClusterModels::new(&names, embedder, previous),
            names,
            settings,
            caches: ClusterCaches::default(),
            pools: EnginePools::for_network(),
            head: RwLock::new(None),
            lease: Mutex::default(),
            writer_id: lease::writer_id(),
            leader_epoch: Mutex::default(),
            embedding_scans: Mutex::default(),
            is_read_only,
        })))
    }

    /// Runs the work of an answer on the engine's thread pool. It waits for the network, so it never runs in
    /// place.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<ClusterInner>) -> Result<T, SearchError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, SearchError>> {
        self.run_in(Lane::Answer, work)
    }

    fn run_in<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce(&Arc<ClusterInner>) -> Result<T, SearchError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, SearchError>> {
        let inner = self.0.clone();
        self.0.pools.run(lane, move || work(&inner)).boxed()
    }
}

impl Engine for ClusterEngine {
    fn search(&self, query: Query) -> BoxFuture<'_, Result<SearchResults, SearchError>> {
        self.run(move |inner| {
            let span =
                tracing::info_span!(target: SPAN_TARGET, "search", hits = tracing::field::Empty);
            let found =
                span.in_scope(|| pipeline::search(&inner.view(query.reader().clone())?, &query))?;
            span.record("hits", found.hits.len());
            Ok(found)
        })
    }

    fn catalog(&self, reader: ReaderIdentity) -> BoxFuture<'_, Result<Arc<Catalog>, SearchError>> {
        self.run(move |inner| inner.counting_view(reader)?.catalog())
    }

    fn embed_pending(&self, most: usize) -> BoxFuture<'_, Result<EmbeddingProgress, SearchError>> {
        self.run_in(Lane::Maintenance, move |inner| inner.embed_pending(most))
    }

    fn fetch(
        &self,
        id: DocId,
        reader: ReaderIdentity,
    ) -> BoxFuture<'_, Result<Option<Arc<Document>>, SearchError>> {
        self.run(move |inner| {
            let _span = tracing::info_span!(target: SPAN_TARGET, "fetch").entered();
            inner.view(reader)?.fetch(&id)
        })
    }

    fn apply(
        &self,
        changes: Vec<DocumentChange>,
    ) -> BoxFuture<'_, Result<Generation, SearchError>> {
        self.run_in(Lane::Maintenance, move |inner| inner.apply(changes))
    }

    fn inventory(&self) -> BoxFuture<'_, Result<Vec<InventoryEntry>, SearchError>> {
        self.run_in(Lane::Maintenance, |inner| {
            let mut held = engine::collect_inventory(|each| inner.visit_inventory(each))?;
            held.sort_by(|left, right| left.id.cmp(&right.id));
            Ok(held)
        })
    }

    fn vectors(&self, id: DocId) -> BoxFuture<'_, Result<Vec<PassageVector>, SearchError>> {
        self.run(move |inner| inner.view(ReaderIdentity::owner())?.vectors(&id))
    }

    fn mark_complete(&self) -> BoxFuture<'_, Result<(), SearchError>> {
        self.run_in(Lane::Maintenance, |inner| inner.mark_complete())
    }

    fn visit_inventory<'a>(
        &'a self,
        each: &'a mut (dyn FnMut(InventoryEntryRef<'_>) + Send),
    ) -> BoxFuture<'a, Result<(), SearchError>> {
        futures::future::ready(self.0.visit_inventory(each)).boxed()
    }

    fn acquire_leadership(&self) -> BoxFuture<'_, Result<bool, SearchError>> {
        self.run_in(Lane::Maintenance, ClusterInner::acquire_leadership)
    }

    fn status(&self) -> BoxFuture<'_, Result<EngineStatus, SearchError>> {
        self.run(|inner| inner.status())
    }

    fn traffic(&self) -> Option<ClusterTraffic> {
        Some(self.0.nodes.traffic())
    }
}

impl ClusterInner {
    /// The deadline of an answer.
    fn read_deadline(&self) -> RequestDeadline {
        RequestDeadline::within(self.settings.timeout)
    }

    /// The deadline for counting over all documents. It is longer than that of an answer, because no search
    /// needs such a count, and because nodes that optimise a large index are slow meanwhile.
    fn count_deadline(&self) -> RequestDeadline {
        RequestDeadline::within(self.settings.timeout * COUNT_TIMEOUT_FACTOR)
    }

    /// The deadline of a change.
    fn write_deadline(&self) -> RequestDeadline {
        RequestDeadline::within(self.settings.write_timeout)
    }

    /// The index head, cached for [`MAX_HEAD_AGE`].
    fn head(&self, deadline: RequestDeadline) -> Result<Arc<IndexHead>, SearchError> {
        let cached = self
            .head
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some((head, read)) = cached
            && read.elapsed() < MAX_HEAD_AGE
        {
            return Ok(head);
        }
        let read_at = Instant::now();
        let Some(head) = IndexHead::read(&self.nodes, &self.names, deadline)? else {
            return Err(SearchError::Missing {
                path: self.names.head.clone().into(),
            });
        };
        Ok(self.publish_head(head, read_at))
    }

    /// Caches a head for all answers from now on, unless the cached one has a newer generation.
    fn publish_head(&self, head: IndexHead, read_at: Instant) -> Arc<IndexHead> {
        let mut published = self.head.write().unwrap_or_else(PoisonError::into_inner);
        match &*published {
            Some((newer, _)) if newer.generation > head.generation => newer.clone(),
            _ => {
                let head = Arc::new(head);
                *published = Some((head.clone(), read_at));
                head
            }
        }
    }

    /// A snapshot of the current generation, as a reader sees it.
    fn view(&self, reader: ReaderIdentity) -> Result<ClusterView<'_>, SearchError> {
        let deadline = self.read_deadline();
        let head = self.head(deadline)?;
        Ok(ClusterView::new(self, head, reader, deadline))
    }

    /// The same snapshot with the longer deadline of [`count_deadline`](Self::count_deadline). The head is
    /// still read within the deadline of an answer, so a cluster that is down is reported as soon as ever.
    fn counting_view(&self, reader: ReaderIdentity) -> Result<ClusterView<'_>, SearchError> {
        let view = self.view(reader)?;
        Ok(ClusterView {
            deadline: self.count_deadline(),
            ..view
        })
    }
}

#[cfg(test)]
mod tests;
