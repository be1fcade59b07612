//! What the collections of an index are called, which indexes they have, and how points are named.
//!
//! | collection | a point is | its id |
//! |---|---|---|
//! | `<name>-head-<format>` | the state of the index | always the same |
//! | `<name>-documents-<format>` | one version of a document | its id and generation |
//! | `<name>-terms-<format>` | one word of the documents | the word |
//! | `<name>-passages-<model>` | one passage of a document's version | the version and its place |
//!
//! The first three keys below are on every version of a document and on its passages: a change never
//! touches what a reader sees, but adds versions and gives the old ones an end. All of it counts from
//! the moment at which the head names the new generation.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::nodes::{Ask, Deadline, Nodes, told};
use super::settings::ClusterSettings;
use crate::error::Error;

/// The format of everything but passages; another one is built beside the old, which the programs that know
/// it go on reading.
pub(super) const FORMAT: u32 = 1;

/// The generation in which a version came, and that in which it went.
pub(super) const FROM: &str = "from";
pub(super) const UNTIL: &str = "until";
/// Who may read it.
pub(super) const WHO: &str = "who";
/// The document's id.
pub(super) const ID: &str = "id";
/// The terms that it holds, as numbers.
pub(super) const TERMS: &str = "terms";
/// Its day as the number `YYYYMMDD`.
pub(super) const DAY: &str = "day";
/// The code of its language.
pub(super) const LANGUAGE: &str = "language";
/// The models that have made its vectors.
pub(super) const MODELS: &str = "models";
/// How many terms its body and its title have.
pub(super) const LENGTHS: &str = "lengths";
/// The document itself.
pub(super) const STORED: &str = "stored";
/// The version of a document that a passage belongs to.
pub(super) const DOCUMENT: &str = "document";
/// The sparse vector of a document.
pub(super) const WORDS: &str = "words";
/// A word of the documents, its beginnings, its pairs of letters, and how many letters it has.
pub(super) const TERM: &str = "term";
pub(super) const BEGINNINGS: &str = "beginnings";
pub(super) const PAIRS: &str = "pairs";
pub(super) const LETTERS: &str = "letters";

/// The names of the collections of one index.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub head: String,
    pub documents: String,
    pub terms: String,
    /// Nothing without a model.
    pub passages: Option<String>,
    /// The short name of the model.
    pub model: String,
}

impl Names {
    pub(super) fn new(base: &str, fingerprint: Option<&str>) -> Self {
        let model = fingerprint.map(|text| number_of(text.as_bytes()));
        let model = model.map(|number| format!("{number:016x}"));
        Self {
            head: format!("{base}-head-{FORMAT}"),
            documents: format!("{base}-documents-{FORMAT}"),
            terms: format!("{base}-terms-{FORMAT}"),
            passages: model
                .as_ref()
                .map(|model| format!("{base}-passages-{model}")),
            model: model.unwrap_or_default(),
        }
    }
}

/// A name for a point that no other parts give.
pub(super) fn point_id(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let bytes = hash.finalize();
    let hex: String = bytes
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default();
    let (a, b, c, d, e) = (
        part(0..8),
        part(8..12),
        part(12..16),
        part(16..20),
        part(20..32),
    );
    format!("{a}-{b}-{c}-{d}-{e}")
}

/// FNV-1a: what it gives lies in collections, so it stays as it is for as long as the format does.
pub(super) fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// The part of a field's keys that stands for its name, which may hold anything.
pub(super) fn field_key(mark: char, name: &str) -> String {
    format!("{mark}.{:016x}", number_of(name.as_bytes()))
}

/// The values of a field as they are counted, its texts as they are compared, its numbers and its days.
pub(super) const VALUES: char = 'v';
pub(super) const TEXTS: char = 't';
pub(super) const NUMBERS: char = 'n';
pub(super) const DAYS: char = 'd';

/// Makes the collection of the head, unless it is there.
pub(super) fn make_head(
    nodes: &Nodes,
    names: &Names,
    settings: &ClusterSettings,
) -> Result<(), Error> {
    let replicas = settings.replicas.max(3);
    let made = json!({"vectors": {}, "shard_number": 1, "replication_factor": replicas});
    let indexes = indexed(&[("epoch", "integer"), ("generation", "integer")]);
    collection(nodes, &names.head, &made, &indexes, settings)
}

/// Makes what is not there yet, the indexes of these fields included. What is there stays as it is.
pub(super) fn make(
    nodes: &Nodes,
    names: &Names,
    settings: &ClusterSettings,
    dimensions: Option<usize>,
    fields: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let shards = settings
        .shards
        .unwrap_or_else(|| u32::try_from(nodes.len()).unwrap_or(1))
        .max(1);
    let replicas = settings.replicas.max(1);
    let documents = json!({
        "vectors": {},
        "sparse_vectors": {WORDS: {"index": {"on_disk": true}}},
        "shard_number": shards, "replication_factor": replicas, "on_disk_payload": true,
    });
    let of_fields = fields.iter().flat_map(|(name, kinds)| {
        let kinds = kinds.chars();
        kinds.map(move |kind| (field_key(kind, name), field_index(kind)))
    });
    let of_fields: Vec<_> = of_fields.collect();
    let mut indexes = indexed(&DOCUMENT_INDEXES);
    indexes.extend(of_fields.iter().cloned());
    collection(nodes, &names.documents, &documents, &indexes, settings)?;
    let terms = json!({
        "vectors": {}, "shard_number": 1, "replication_factor": replicas, "on_disk_payload": true,
    });
    collection(
        nodes,
        &names.terms,
        &terms,
        &indexed(&TERM_INDEXES),
        settings,
    )?;
    let (Some(passages), Some(dimensions)) = (&names.passages, dimensions) else {
        return Ok(());
    };
    let quantization = settings
        .quantized
        .then(|| json!({"scalar": {"type": "int8", "always_ram": true}}));
    let made = json!({
        "vectors": {"size": dimensions, "distance": "Dot", "on_disk": settings.quantized},
        "quantization_config": quantization,
        "shard_number": shards, "replication_factor": replicas, "on_disk_payload": true,
    });
    let mut indexes = indexed(&PASSAGE_INDEXES);
    indexes.extend(of_fields);
    collection(nodes, passages, &made, &indexes, settings)
}

/// The keys that have an index in each collection, with its kind.
const DOCUMENT_INDEXES: [(&str, &str); 8] = [
    (FROM, "integer"),
    (UNTIL, "integer"),
    (WHO, "keyword"),
    (ID, "keyword"),
    (DAY, "integer"),
    (MODELS, "keyword"),
    (TERMS, "lookup"),
    (LANGUAGE, "keyword"),
];
const PASSAGE_INDEXES: [(&str, &str); 4] = [
    (FROM, "integer"),
    (UNTIL, "integer"),
    (WHO, "keyword"),
    (DOCUMENT, "keyword"),
];
const TERM_INDEXES: [(&str, &str); 3] = [
    (BEGINNINGS, "keyword"),
    (PAIRS, "keyword"),
    (LETTERS, "integer"),
];

/// The kind of index that the values of a field need.
pub(super) fn field_index(kind: char) -> &'static str {
    match kind {
        NUMBERS => "float",
        DAYS => "integer",
        _ => "keyword",
    }
}

/// A key and the kind of its index.
type Indexed = (String, &'static str);

fn indexed(keys: &[(&str, &'static str)]) -> Vec<Indexed> {
    let keys = keys.iter();
    keys.map(|(key, kind)| ((*key).to_owned(), *kind)).collect()
}

/// Makes a collection, unless it is there, and those of its indexes that are not: whoever made it may have
/// been interrupted.
fn collection(
    nodes: &Nodes,
    name: &str,
    made: &Value,
    indexes: &[Indexed],
    settings: &ClusterSettings,
) -> Result<(), Error> {
    let deadline = Deadline::within(settings.write_timeout);
    let path = format!("/collections/{name}");
    let there = nodes.reply(&Ask::get("look for a collection", path), deadline)?;
    let known: Value = match there.status {
        200 => serde_json::from_slice(&there.body).unwrap_or_default(),
        _ => {
            make_collection(nodes, name, made, deadline)?;
            Value::Null
        }
    };
    let present = known.pointer("/result/payload_schema");
    for (key, kind) in indexes {
        if present.is_none_or(|present| present.get(key).is_none()) {
            // Nobody waits for them: they are made in this order, before anything that is written later.
            index(nodes, name, (key, kind), false, deadline)?;
        }
    }
    Ok(())
}

fn make_collection(
    nodes: &Nodes,
    name: &str,
    made: &Value,
    deadline: Deadline,
) -> Result<(), Error> {
    let path = format!("/collections/{name}?timeout=30");
    let ask = Ask::put("make a collection", path, made.to_string());
    let reply = nodes.reply(&ask, deadline)?;
    // Somebody else may have made it just now.
    let is_there =
        reply.status == 200 || reply.status == 409 || told(&reply.body).contains("already exists");
    if is_there {
        return Ok(());
    }
    Err(Error::Cluster {
        what: format!(
            "the cluster refuses to make the collection `{name}` with status {}",
            reply.status
        ),
        hint: "check the cluster's API key and `engine.shards` and `engine.replicas`",
        source: Some(told(&reply.body).into()),
    })
}

/// Makes the index of a key. Making one that is there changes nothing.
pub(super) fn index(
    nodes: &Nodes,
    collection: &str,
    (key, kind): (&str, &str),
    is_waited_for: bool,
    deadline: Deadline,
) -> Result<(), Error> {
    let schema = match kind {
        "lookup" => json!({"type": "integer", "lookup": true, "range": false, "on_disk": true}),
        kind => json!({"type": kind}),
    };
    let body = json!({"field_name": key, "field_schema": schema}).to_string();
    let ask = Ask::put(
        "make an index",
        format!("/collections/{collection}/index?wait={is_waited_for}"),
        body,
    );
    nodes.ask::<Value>(&ask, deadline).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_points_do_not_run_into_each_other() {
        let id = point_id(&["a", "bc"]);
        assert_eq!(id.len(), 36);
        assert_ne!(id, point_id(&["ab", "c"]));
        assert_eq!(id, point_id(&["a", "bc"]));
    }

    /// What lies in collections is found again by the next version.
    #[test]
    fn numbers_of_terms_stay_what_they_are() {
        assert_eq!(number_of(b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(number_of(b"ferri"), 0x8932_14DF_F4DC_DC2B);
        assert_eq!(
            field_key(NUMBERS, "a.b"),
            format!("n.{:016x}", number_of(b"a.b"))
        );
    }
}
