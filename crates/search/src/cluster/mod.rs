//! The engine for more than one machine: an index on a Qdrant cluster, searched by any number of
//! processes and changed by one of them at a time.

mod batch_write;
mod breaker;
mod caches;
mod collections;
mod deferred_indexing;
mod format_migration;
mod garbage_collection;
mod head;
mod hybrid_search;
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
mod tls_roots;
mod traffic;
mod unembedded_scan;
mod vector_search;
mod view;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
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
use crate::query::Query;
use crate::reader_identity::ReaderIdentity;

pub use self::settings::{ClusterSettings, MAX_ADDRESSES, MAX_COLLECTION_CHARS};
pub use self::traffic::{CALL_BUCKETS, CallTraffic, ClusterTraffic, NodeTraffic};

/// How old the state of the index may be that an answer comes from. What another process has changed is
/// seen after this long at the latest.
const MAX_HEAD_AGE: Duration = Duration::from_millis(300);

/// For how many times as long as an answer all documents may be counted.
const COUNT_TIMEOUT_FACTOR: u32 = 10;

/// An index on a cluster.
///
/// Cloning is cheap and gives another handle of the same index.
#[derive(Clone)]
pub struct ClusterEngine(Arc<ClusterInner>);

struct ClusterInner {
    settings: ClusterSettings,
    nodes: NodePool,
    names: CollectionNames,
    models: ClusterModels,
    caches: ClusterCaches,
    pools: EnginePools,
    /// The state of the index, and when it was read.
    head: RwLock<Option<(Arc<IndexHead>, Instant)>>,
    /// Held by who changes something.
    lease: Mutex<WriterLease>,
    /// Who this process is among the writers there may be, and the epoch in which it writes.
    writer_id: String,
    leader_epoch: Mutex<Option<u64>>,
    /// Held by who makes vectors: how far that is, by the names of models.
    embedding_scans: Mutex<BTreeMap<String, UnembeddedScan>>,
    is_read_only: bool,
}

impl ClusterEngine {
    /// Opens the index to be searched and changed; what is not there yet is made.
    ///
    /// Any number of processes can have an index open this way. The first that changes something becomes
    /// the writer; the changes of the others are refused with [`Error::Locked`] for as long as it lives.
    pub fn open(
        settings: ClusterSettings,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<Self, SearchError> {
        Self::open_with_previous(settings, embedder, Vec::new)
    }

    /// The same, where one of the models that `former` makes may have been in use before, or may be from now
    /// on: whichever model the index answers with, questions are asked with it.
    pub fn open_with_previous(
        settings: ClusterSettings,
        embedder: Option<Arc<dyn Embedder>>,
        former: impl Fn() -> Vec<Arc<dyn Embedder>> + Send + Sync + 'static,
    ) -> Result<Self, SearchError> {
        let cluster = Self::with(settings, embedder, Box::new(former), false)?;
        let inner = &cluster.0;
        let (nodes, names) = (&inner.nodes, &inner.names);
        // Within the time of an answer: a cluster that is away, or refuses, is said soon.
        let there = IndexHead::read(nodes, names, inner.read_deadline())?;
        collections::ensure_head(nodes, names, &inner.settings)?;
        let deadline = inner.write_deadline();
        let head = match there {
            None => IndexHead::read(nodes, names, deadline)?,
            there => there,
        };
        let fields = head.as_ref().map(|head| head.fields.clone());
        collections::ensure_collections(
            nodes,
            names,
            &inner.settings,
            &fields.unwrap_or_default(),
        )?;
        // Last, so that whoever finds a head finds the rest too.
        if head.is_none() {
            let awaited = inner.documents_to_migrate(deadline)?;
            IndexHead::create(nodes, names, awaited, deadline)?;
        }
        Ok(cluster)
    }

    /// Opens the index to be searched. Where there is none, this is refused with [`Error::Missing`].
    pub fn open_read_only(
        settings: ClusterSettings,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<Self, SearchError> {
        Self::open_read_only_with_previous(settings, embedder, Vec::new)
    }

    /// The same, with the models that the index may answer with besides this one.
    pub fn open_read_only_with_previous(
        settings: ClusterSettings,
        embedder: Option<Arc<dyn Embedder>>,
        former: impl Fn() -> Vec<Arc<dyn Embedder>> + Send + Sync + 'static,
    ) -> Result<Self, SearchError> {
        let cluster = Self::with(settings, embedder, Box::new(former), true)?;
        cluster.0.head(cluster.0.read_deadline())?;
        Ok(cluster)
    }

    fn with(
        settings: ClusterSettings,
        embedder: Option<Arc<dyn Embedder>>,
        former: PreviousModelFactory,
        is_read_only: bool,
    ) -> Result<Self, SearchError> {
        settings.check()?;
        let names = CollectionNames::new(&settings.collection, settings.format);
        Ok(Self(Arc::new(ClusterInner {
            nodes: NodePool::new(&settings)?,
            models: ClusterModels::new(&names, embedder, former),
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

    /// Answers a caller. The work waits for the network, so it never runs in place.
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
            let found = span.in_scope(|| inner.view(query.reader().clone())?.search(&query))?;
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
    /// How long an answer may take.
    fn read_deadline(&self) -> RequestDeadline {
        RequestDeadline::within(self.settings.timeout)
    }

    /// How long it may take to count something about all documents: longer than an answer, because no answer needs
    /// it, and because nodes that put a large index in order are slow meanwhile.
    fn count_deadline(&self) -> RequestDeadline {
        RequestDeadline::within(self.settings.timeout * COUNT_TIMEOUT_FACTOR)
    }

    /// How long a change may take.
    fn write_deadline(&self) -> RequestDeadline {
        RequestDeadline::within(self.settings.write_timeout)
    }

    /// The state of the index, not older than [`FRESH`].
    fn head(&self, deadline: RequestDeadline) -> Result<Arc<IndexHead>, SearchError> {
        let kept = self
            .head
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some((head, read)) = kept
            && read.elapsed() < MAX_HEAD_AGE
        {
            return Ok(head);
        }
        let asked = Instant::now();
        let Some(head) = IndexHead::read(&self.nodes, &self.names, deadline)? else {
            return Err(SearchError::Missing {
                path: self.names.head.clone().into(),
            });
        };
        Ok(self.publish_head(head, asked))
    }

    /// Shows a state to everybody who asks from now on, unless a newer one is shown.
    fn publish_head(&self, head: IndexHead, asked: Instant) -> Arc<IndexHead> {
        let mut shown = self.head.write().unwrap_or_else(PoisonError::into_inner);
        match &*shown {
            Some((newer, _)) if newer.generation > head.generation => newer.clone(),
            _ => {
                let head = Arc::new(head);
                *shown = Some((head.clone(), asked));
                head
            }
        }
    }

    /// The generation that counts now, as a reader sees it.
    fn view(&self, reader: ReaderIdentity) -> Result<ClusterView<'_>, SearchError> {
        let deadline = self.read_deadline();
        let head = self.head(deadline)?;
        Ok(ClusterView::new(self, head, reader, deadline))
    }

    /// The same, to count something about all documents. That nobody answers is found out as soon as ever.
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
