//! Collections made, changed, listed and removed; what nodes keep in memory of them, and what only on their disks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::layout::{
    BEGINNINGS, CollectionNames, DAY, DAYS, DOCUMENT, FIRST, FROM, ID, LANGUAGE, LETTERS, NUMBERS,
    PAIRS, TERMS, UNTIL, WEIGHED, WHO, WORDS, field_key,
};
use super::model::ClusterModel;
use super::node::error_message;
use super::node_pool::NodePool;
use super::qdrant_response::CollectionList;
use super::request::{ClusterRequest, RequestDeadline};
use super::settings::ClusterSettings;
use super::traffic::RequestKind;
use crate::error::SearchError;

/// A collection as it should be.
struct CollectionSpec<'a> {
    name: &'a str,
    /// What it is made with.
    create_body: Value,
    indexes: Vec<PayloadIndexSpec>,
    kept: Vec<StoragePlacement>,
}

/// Something that can come into memory, or leave it, while its collection answers.
struct StoragePlacement {
    /// Where a node's description of the collection tells it.
    at: &'static str,
    wanted: bool,
    /// What has it changed.
    change: Value,
}

impl StoragePlacement {
    fn differs(&self, known: &Value) -> bool {
        let is_so = match known.pointer(self.at) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(on)) => *on,
            Some(_) => true,
        };
        is_so != self.wanted
    }

    fn payload(on_disk: bool) -> Self {
        Self {
            at: "/result/config/params/on_disk_payload",
            wanted: on_disk,
            change: json!({"params": {"on_disk_payload": on_disk}}),
        }
    }
}

/// Makes the collection of the head, unless it is there.
pub(super) fn ensure_head(
    nodes: &NodePool,
    names: &CollectionNames,
    settings: &ClusterSettings,
) -> Result<(), SearchError> {
    let replicas = settings.replicas.max(3);
    let head = CollectionSpec {
        name: &names.head,
        // What one node alone has written does not count.
        create_body: json!({
            "vectors": {}, "shard_number": 1, "replication_factor": replicas, "write_consistency_factor": 2,
        }),
        indexes: typed_indexes(&[("epoch", "integer"), ("generation", "integer")]).collect(),
        kept: Vec::new(),
    };
    head.ensure(nodes, settings)
}

/// Makes what is not there yet, the indexes of these fields included. What is there stays as it is, but for
/// what of it lies in memory.
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
            .chain([(TERMS.to_owned(), terms)])
            .chain(field_indexes(fields))
            .collect(),
        kept: vec![
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
        kept: vec![StoragePlacement::payload(settings.words_on_disk)],
    };
    terms.ensure(nodes, settings)
}

/// Into how many parts a collection is cut, and on how many nodes each lies.
fn shards_and_replicas(nodes: &NodePool, settings: &ClusterSettings) -> (u32, u32) {
    let shards = settings
        .shards
        .unwrap_or_else(|| u32::try_from(nodes.len()).unwrap_or(1));
    (shards.max(1), settings.replicas.max(1))
}

/// The indexes of these fields.
fn field_indexes(fields: &BTreeMap<String, String>) -> impl Iterator<Item = PayloadIndexSpec> {
    fields.iter().flat_map(|(name, kinds)| {
        let kinds = kinds.chars();
        kinds.map(move |kind| (field_key(kind, name), field_index(kind)))
    })
}

/// Makes the collection of a model's passages, unless it is there; of one that is there it is changed what lies
/// in memory.
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
        kept: vec![
            StoragePlacement::payload(settings.documents_on_disk),
            StoragePlacement {
                at: "/result/config/params/vectors/on_disk",
                wanted: on_disk,
                // The vectors without a name.
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

/// The keys that have an index in each collection, with its kind.
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
const TERM_INDEXES: [(&str, &str); 3] = [
    (BEGINNINGS, "keyword"),
    (PAIRS, "keyword"),
    (LETTERS, "integer"),
];

/// What an index is for.
#[derive(Clone, Copy)]
pub(super) enum PayloadIndex {
    /// Whatever nodes make of a type.
    Typed(&'static str),
    /// Numbers that are looked for one by one.
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

    /// Whether it has to be made, where this is known of the key.
    fn is_missing(self, known: Option<&Value>) -> bool {
        let lies_on_disk = |known: &Value| known.pointer("/params/on_disk") == Some(&json!(true));
        known.is_none_or(|known| match self {
            Self::Typed(_) => false,
            Self::Lookup { on_disk } => lies_on_disk(known) != on_disk,
        })
    }
}

/// The kind of index that the values of a field need.
pub(super) fn field_index(kind: char) -> PayloadIndex {
    PayloadIndex::Typed(match kind {
        NUMBERS => "float",
        DAYS => "integer",
        _ => "keyword",
    })
}

/// A key and its index.
type PayloadIndexSpec = (String, PayloadIndex);

fn typed_indexes(keys: &[(&str, &'static str)]) -> impl Iterator<Item = PayloadIndexSpec> {
    let keys = keys.iter();
    keys.map(|(key, kind)| ((*key).to_owned(), PayloadIndex::Typed(kind)))
}

impl CollectionSpec<'_> {
    /// Makes it, unless it is there, and those of its indexes that are not: whoever made it may have been
    /// interrupted. What lies in another place than it should is moved by the nodes while they answer.
    fn ensure(&self, nodes: &NodePool, settings: &ClusterSettings) -> Result<(), SearchError> {
        let deadline = RequestDeadline::within(settings.write_timeout);
        let path = format!("/collections/{}", self.name);
        let ask = ClusterRequest::get(
            RequestKind::Collections,
            "look for a collection",
            path.clone(),
        );
        let there = nodes.reply(&ask, deadline)?;
        let known: Value = if there.status != 200 {
            create_collection(nodes, self.name, &self.create_body, deadline)?;
            Value::Null
        } else {
            serde_json::from_slice(&there.body).unwrap_or_default()
        };
        let kept = self.kept.iter().filter(|_| !known.is_null());
        for kept in kept.filter(|kept| kept.differs(&known)) {
            let (path, body) = (format!("{path}?timeout=30"), kept.change.to_string());
            let ask =
                ClusterRequest::patch(RequestKind::Collections, "change a collection", path, body);
            nodes.request::<Value>(&ask, deadline)?;
            tracing::info!(collection = self.name, change = %kept.change, "a collection is changed");
        }
        let present = known.pointer("/result/payload_schema");
        for (key, kind) in &self.indexes {
            if kind.is_missing(present.and_then(|present| present.get(key))) {
                // Nobody waits for them: they are made in this order, before anything that is written later.
                create_index(nodes, self.name, (key, *kind), false, deadline)?;
            }
        }
        Ok(())
    }
}

/// Removes a collection. One that is not there is as good as removed.
pub(super) fn remove(
    nodes: &NodePool,
    name: &str,
    deadline: RequestDeadline,
) -> Result<(), SearchError> {
    let path = format!("/collections/{name}?timeout=30");
    let ask = ClusterRequest::delete(RequestKind::Collections, "remove a collection", path);
    match nodes.reply(&ask, deadline)? {
        reply if reply.status == 200 || reply.status == 404 => Ok(()),
        reply => Err(SearchError::Cluster {
            what: format!("the collection `{name}` cannot be removed"),
            hint: "remove it with the cluster's own tools; nothing reads it any more",
            source: Some(error_message(&reply.body).into()),
        }),
    }
}

/// The names of all collections of the cluster.
pub(super) fn list_all(
    nodes: &NodePool,
    deadline: RequestDeadline,
) -> Result<Vec<String>, SearchError> {
    let path = "/collections".to_owned();
    let ask = ClusterRequest::get(RequestKind::Collections, "list collections", path);
    let found: CollectionList = nodes.request(&ask, deadline)?;
    Ok(found.collections.into_iter().map(|one| one.name).collect())
}

fn create_collection(
    nodes: &NodePool,
    name: &str,
    made: &Value,
    deadline: RequestDeadline,
) -> Result<(), SearchError> {
    let path = format!("/collections/{name}?timeout=30");
    let ask = ClusterRequest::put(
        RequestKind::Collections,
        "make a collection",
        path,
        made.to_string(),
    );
    let reply = nodes.reply(&ask, deadline)?;
    // Somebody else may have made it just now.
    let is_there = reply.status == 200
        || reply.status == 409
        || error_message(&reply.body).contains("already exists");
    if is_there {
        return Ok(());
    }
    Err(SearchError::Cluster {
        what: format!(
            "the cluster refuses to make the collection `{name}` with status {}",
            reply.status
        ),
        hint: "check the cluster's API key and `engine.shards` and `engine.replicas`",
        source: Some(error_message(&reply.body).into()),
    })
}

/// Makes the index of a key. Making one that is there changes nothing, unless it is another one.
pub(super) fn create_index(
    nodes: &NodePool,
    collection: &str,
    (key, kind): (&str, PayloadIndex),
    is_waited_for: bool,
    deadline: RequestDeadline,
) -> Result<(), SearchError> {
    let body = json!({"field_name": key, "field_schema": kind.schema()}).to_string();
    let ask = ClusterRequest::put(
        RequestKind::Collections,
        "make an index",
        format!("/collections/{collection}/index?wait={is_waited_for}"),
        body,
    );
    nodes.request::<Value>(&ask, deadline).map(drop)
}
