//! The shapes of Qdrant's responses, as far as they are read.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A page of points, with the offset of the next page.
#[derive(Deserialize)]
pub(super) struct PointsPage {
    pub points: Vec<ScoredPoint>,
    #[serde(default)]
    pub next_page_offset: Option<Value>,
}

impl PointsPage {
    /// The offset of the next page. A page without points, or one that leads to itself, is the last:
    /// otherwise a faulty node could make us loop forever.
    pub(super) fn next(&self, offset: &Value) -> Option<Value> {
        let next = self
            .next_page_offset
            .clone()
            .filter(|next| !next.is_null())?;
        (!self.points.is_empty() && next != *offset).then_some(next)
    }
}

/// A point, with its score when it was searched for.
#[derive(Deserialize)]
pub(super) struct ScoredPoint {
    pub id: Value,
    #[serde(default, deserialize_with = "finite")]
    pub score: f32,
    #[serde(default)]
    pub payload: Value,
}

/// Reads a score that can be compared and added; an infinite one counts as 0.
fn finite<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    // Read as f64, because whether 1e39 is an f32 depends on how serde_json was built.
    let score = f64::deserialize(deserializer)? as f32;
    Ok(Some(score)
        .filter(|score| score.is_finite())
        .unwrap_or_default())
}

impl ScoredPoint {
    /// The point's id, which is always one that this program has assigned.
    pub(super) fn name(&self) -> String {
        self.id.as_str().unwrap_or_default().to_owned()
    }

    /// A string of the payload; empty when it is absent.
    pub(super) fn text(&self, key: &str) -> &str {
        self.payload
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// A number of the payload; 0 when it is absent.
    pub(super) fn number(&self, key: &str) -> u64 {
        self.payload
            .get(key)
            .and_then(Value::as_u64)
            .unwrap_or_default()
    }
}

#[derive(Deserialize)]
pub(super) struct GroupsResult {
    pub groups: Vec<PointGroup>,
}

#[derive(Deserialize)]
pub(super) struct PointGroup {
    pub id: Value,
    pub hits: Vec<ScoredPoint>,
    /// The point of another collection that the group is named after, if it was asked for.
    #[serde(default)]
    pub lookup: Option<ScoredPoint>,
}

#[derive(Deserialize)]
pub(super) struct CountResult {
    pub count: u64,
}

#[derive(Deserialize)]
pub(super) struct FacetHits {
    pub hits: Vec<FacetHit>,
}

#[derive(Deserialize)]
pub(super) struct FacetHit {
    pub value: Value,
    pub count: u64,
}

/// The results of a batch of queries, in their order.
pub(super) type QueryBatchResult = Vec<PointsPage>;

#[derive(Deserialize)]
pub(super) struct CollectionList {
    pub collections: Vec<CollectionDescription>,
}

#[derive(Deserialize)]
pub(super) struct CollectionDescription {
    pub name: String,
}

#[derive(Deserialize)]
pub(super) struct AliasList {
    pub aliases: Vec<AliasDescription>,
}

#[derive(Deserialize)]
pub(super) struct AliasDescription {
    pub alias_name: String,
    pub collection_name: String,
}
