//! Creates, changes, lists and removes Qdrant collections, with the payload indexes they need and the choice
//! of what nodes hold in memory and what only on disk.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::layout::{
    BEGINNINGS, COUNTED, CollectionNames, DAY, DAYS, DOCUMENT, FIRST, FROM, ID, LANGUAGE, LETTERS,
    NUMBERS, PAIRS, TERMS, UNTIL, WEIGHED, WHO, WORDS, field_key,
};
use super::model::ClusterModel;
use super::node::error_message;
use super::node_pool::NodePool;
use super::qdrant_response::CollectionList;
use super::request::{ClusterRequest, RequestDeadline};
use super::settings::ClusterSettings;
use super::traffic::RequestKind;
use crate::error::SearchError;

/// The state that a collection should have.
struct CollectionSpec<'a> {
    name: &'a str,
    /// The body of the request that creates it.
    create_body: Value,
    indexes: Vec<PayloadIndexSpec>,
    placements: Vec<StoragePlacement>,
}

/// A part of a collection that nodes can move between memory and disk while the collection answers: the JSON
/// pointer to it in a node's description, whether it should be set, and the change that makes it so.
struct StoragePlacement {
    at: &'static str,
    wanted: bool,
    change: Value,
}

impl StoragePlacement {
    fn differs(&self, known: &Value) -> bool {
        let is_set = match known.pointer(self.at) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(on)) => *on,
            Some(_) => true,
        };
        is_set != self.wanted
    }

    fn payload(on_disk: bool) -> Self {
        Self {
            at: "/result/config/params/on_disk_payload",
            wanted: on_disk,
            change: json!({"params": {"on_disk_payload": on_disk}}),
        }
    }
}

/// Creates the head's collection unless it exists, always with at least three replicas, which a quorum of two
/// needs.
pub(super) fn ensure_head(
    nodes: &NodePool,
    names: &CollectionNames,
    settings: &ClusterSettings,
) -> Result<(), SearchError> {
    let replicas = settings.replicas.max(3);
    let head = CollectionSpec {
        name: &names.head,
        // A write to one node alone does not count: two must confirm it.
        create_body: json!({
            "vectors": {}, "shard_number": 1, "replication_factor": replicas, "write_consistency_factor": 2,
        }),
        indexes: typed_indexes(&[("epoch", "integer"), ("generation", "integer")]).collect(),
        placements: Vec::new(),
    };
    head.ensure(nodes, settings)
}

/// Creates the collections and indexes that do not exist yet, those of these fields included. An existing
/// collection is left as it is, except for what of it is held in memory.
pub(super) fn ensure_collections(
    nodes: &NodePool,
    names: &CollectionNames,
    settings: &ClusterSettings,
    fields: &BTreeMap<String, String>,
) -> Result<(), SearchError> {
    let (shards, replicas) = shards_and_replicas(nodes, settings);
    let sparse = json!({WORDS: {"index": {"on_disk": settings.words_on_disk}}});
    let terms = PayloadIndex::Lookup {
        on_disk: settings.words_on_disk,
    };
    let documents = CollectionSpec {
        name: &names.documents,
        create_body: json!({
            "vectors": {}, "sparse_vectors": sparse, "shard_number": shards,
            "replication_factor": replicas, "on_disk_payload": settings.documents_on_disk,
        }),
        indexes: typed_indexes(&DOCUMENT_INDEXES)
            .chain([PayloadIndexSpec {
                key: TERMS.to_owned(),
                index: terms,
            }])
            .chain(field_indexes(fields))
            .collect(),
        placements: vec![
            StoragePlacement::payload(settings.documents_on_disk),
            StoragePlacement {
                at: "/result/config/params/sparse_vectors/words/index/on_disk",
                wanted: settings.words_on_disk,
                change: json!({"sparse_vectors": sparse}),
            },
        ],
    };
    documents.ensure(nodes, settings)?;
    let terms = CollectionSpec {
        name: &names.terms,
        create_body: json!({
            "vectors": {}, "shard_number": 1, "replication_factor": replicas,
            "on_disk_payload": settings.words_on_disk,
        }),
        indexes: typed_indexes(&TERM_INDEXES).collect(),
        placements: vec![StoragePlacement::payload(settings.words_on_disk)],
    };
    terms.ensure(nodes, settings)
}

/// The number of shards of a collection, and the number of replicas of each shard.
fn shards_and_replicas(nodes: &NodePool, settings: &ClusterSettings) -> (u32, u32) {
    let shards = settings
        .shards
        .unwrap_or_else(|| u32::try_from(nodes.len()).unwrap_or(1));
    (shards.max(1), settings.replicas.max(1))
}

/// The payload indexes of these metadata fields.
fn field_indexes(fields: &BTreeMap<String, String>) -> impl Iterator<Item = PayloadIndexSpec> {
    fields.iter().flat_map(|(name, kinds)| {
        let kinds = kinds.chars();
        kinds.map(move |kind| PayloadIndexSpec::of_field(kind, name))
    })
}

/// Creates the collection of a model's passages unless it exists; of an existing one, only what is held in
/// memory is changed.
pub(super) fn ensure_passages(
    nodes: &NodePool,
    settings: &ClusterSettings,
    model: &ClusterModel,
    fields: &BTreeMap<String, String>,
) -> Result<(), SearchError> {
    let (shards, replicas) = shards_and_replicas(nodes, settings);
    let on_disk = settings.are_vectors_on_disk();
    let quantization = settings
        .quantized
        .then(|| json!({"scalar": {"type": "int8", "always_ram": true}}));
    let none = json!("Disabled");
    let passages = CollectionSpec {
        name: &model.passages,
        create_body: json!({
            "vectors": {
                "size": model.embedder.dimensions(), "distance": "Dot", "on_disk": on_disk,
            },
            "quantization_config": quantization,
            "shard_number": shards, "replication_factor": replicas,
            "on_disk_payload": settings.documents_on_disk,
        }),
        indexes: typed_indexes(&PASSAGE_INDEXES)
            .chain(field_indexes(fields))
            .collect(),
        placements: vec![
            StoragePlacement::payload(settings.documents_on_disk),
            StoragePlacement {
                at: "/result/config/params/vectors/on_disk",
                wanted: on_disk,
                // The empty name stands for the unnamed vectors.
                change: json!({"vectors": {"": {"on_disk": on_disk}}}),
            },
            StoragePlacement {
                at: "/result/config/quantization_config",
                wanted: settings.quantized,
                change: json!({"quantization_config": quantization.as_ref().unwrap_or(&none)}),
            },
        ],
    };
    passages.ensure(nodes, settings)
}

/// The payload keys that are indexed in each collection, with the type of the index.
const DOCUMENT_INDEXES: [(&str, &str); 7] = [
    (WEIGHED, "integer"),
    (FROM, "integer"),
    (UNTIL, "integer"),
    (WHO, "keyword"),
    (ID, "keyword"),
    (DAY, "integer"),
    (LANGUAGE, "keyword"),
];
const PASSAGE_INDEXES: [(&str, &str); 4] = [
    (UNTIL, "integer"),
    (WHO, "keyword"),
    (DOCUMENT, "keyword"),
    (FIRST, "bool"),
];
const TERM_INDEXES: [(&str, &str); 4] = [
    (COUNTED, "integer"),
    (BEGINNINGS, "keyword"),
    (PAIRS, "keyword"),
    (LETTERS, "integer"),
];

/// The kind of a payload index.
#[derive(Clone, Copy)]
pub(super) enum PayloadIndex {
    /// The default index that nodes build for a type.
    Typed(&'static str),
    /// A set of integers that are only looked up one by one, which needs no range index.
    Lookup { on_disk: bool },
}

impl PayloadIndex {
    fn schema(self) -> Value {
        match self {
            Self::Typed(kind) => json!({"type": kind}),
            Self::Lookup { on_disk } => {
                json!({"type": "integer", "lookup": true, "range": false, "on_disk": on_disk})
            }
        }
    }

    /// Whether the index has to be built, given what a node knows of the key.
    fn is_missing(self, known: Option<&Value>) -> bool {
        let lies_on_disk = |known: &Value| known.pointer("/params/on_disk") == Some(&json!(true));
        known.is_none_or(|known| match self {
            Self::Typed(_) => false,
            Self::Lookup { on_disk } => lies_on_disk(known) != on_disk,
        })
    }
}

/// A payload key together with its index.
pub(super) struct PayloadIndexSpec {
    key: String,
    index: PayloadIndex,
}

impl PayloadIndexSpec {
    /// The index of a metadata field, for its values of one kind.
    pub(super) fn of_field(kind: char, name: &str) -> Self {
        let index = PayloadIndex::Typed(match kind {
            NUMBERS => "float",
            DAYS => "integer",
            _ => "keyword",
        });
        Self {
            key: field_key(kind, name),
            index,
        }
    }
}

fn typed_indexes(keys: &[(&str, &'static str)]) -> impl Iterator<Item = PayloadIndexSpec> {
    let keys = keys.iter();
    keys.map(|(key, kind)| PayloadIndexSpec {
        key: (*key).to_owned(),
        index: PayloadIndex::Typed(kind),
    })
}

impl CollectionSpec<'_> {
    /// Creates the collection unless it exists, and the indexes it lacks: an earlier process may have been
    /// interrupted. What is stored in the wrong place is moved by the nodes while they answer.
    fn ensure(&self, nodes: &NodePool, settings: &ClusterSettings) -> Result<(), SearchError> {
        let deadline = RequestDeadline::within(settings.write_timeout);
        let path = format!("/collections/{}", self.name);
        let request = ClusterRequest::get(
            RequestKind::Collections,
            "describe a collection",
            path.clone(),
        );
        let there = nodes.reply(&request, deadline)?;
        let known: Value = if there.status != 200 {
            create_collection(nodes, self.name, &self.create_body, deadline)?;
            Value::Null
        } else {
            serde_json::from_slice(&there.body).unwrap_or_default()
        };
        let placements = self.placements.iter().filter(|_| !known.is_null());
        for placement in placements.filter(|one| one.differs(&known)) {
            let (path, body) = (format!("{path}?timeout=30"), placement.change.to_string());
            let request =
                ClusterRequest::patch(RequestKind::Collections, "change a collection", path, body);
            nodes.request::<Value>(&request, deadline)?;
            tracing::info!(collection = self.name, change = %placement.change, "changed the storage of a collection");
        }
        let present = known.pointer("/result/payload_schema");
        for spec in &self.indexes {
            let known = present.and_then(|present| present.get(&spec.key));
            if spec.index.is_missing(known) {
                // Not waited for: nodes build indexes in this order, before anything that is written later.
                create_index(nodes, self.name, spec, false, deadline)?;
            }
        }
        Ok(())
    }
}

/// Removes a collection. Idempotent: one that does not exist counts as removed.
pub(super) fn remove(
    nodes: &NodePool,
    name: &str,
    deadline: RequestDeadline,
) -> Result<(), SearchError> {
    let path = format!("/collections/{name}?timeout=30");
    let request = ClusterRequest::delete(RequestKind::Collections, "remove a collection", path);
    match nodes.reply(&request, deadline)? {
        reply if reply.status == 200 || reply.status == 404 => Ok(()),
        reply => Err(SearchError::Cluster {
            what: format!("the collection `{name}` cannot be removed"),
            hint: "remove it with the cluster's own tools; nothing reads it any more",
            source: Some(error_message(&reply.body).into()),
        }),
    }
}

/// The names of all collections in the cluster, other indexes' included.
pub(super) fn list_all(
    nodes: &NodePool,
    deadline: RequestDeadline,
) -> Result<Vec<String>, SearchError> {
    let path = "/collections".to_owned();
    let request = ClusterRequest::get(RequestKind::Collections, "list collections", path);
    let found: CollectionList = nodes.request(&request, deadline)?;
    Ok(found.collections.into_iter().map(|one| one.name).collect())
}

fn create_collection(
    nodes: &NodePool,
    name: &str,
    body: &Value,
    deadline: RequestDeadline,
) -> Result<(), SearchError> {
    let path = format!("/collections/{name}?timeout=30");
    let request = ClusterRequest::put(
        RequestKind::Collections,
        "create a collection",
        path,
        body.to_string(),
    );
    let reply = nodes.reply(&request, deadline)?;
    // Another process may have created it just now.
    let is_there = reply.status == 200
        || reply.status == 409
        || error_message(&reply.body).contains("already exists");
    if is_there {
        return Ok(());
    }
    Err(SearchError::Cluster {
        what: format!(
            "the cluster refuses to create the collection `{name}` with status {}",
            reply.status
        ),
        hint: "check the cluster's API key and `engine.shards` and `engine.replicas`",
        source: Some(error_message(&reply.body).into()),
    })
}

/// Builds the payload index of a key. Idempotent, unless the existing index is of another kind.
pub(super) fn create_index(
    nodes: &NodePool,
    collection: &str,
    spec: &PayloadIndexSpec,
    is_waited_for: bool,
    deadline: RequestDeadline,
) -> Result<(), SearchError> {
    let body = json!({"field_name": spec.key, "field_schema": spec.index.schema()}).to_string();
    let request = ClusterRequest::put(
        RequestKind::Collections,
        "create an index",
        format!("/collections/{collection}/index?wait={is_waited_for}"),
        body,
    );
    nodes.request::<Value>(&request, deadline).map(drop)
}
