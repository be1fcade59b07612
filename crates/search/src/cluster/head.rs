//! The state of an index: which generation counts, who writes, and what is known about all documents.
//!
//! There is one point with it. It changes only under the condition that it is still what the writer
//! read, which the cluster checks where the point lies, so of two writers one succeeds and the other
//! finds out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::layout::{FORMAT, Names, point_id};
use super::nodes::{Ask, Deadline, Nodes};
use super::wire::Point;
use crate::analysis::Language;
use crate::error::Error;

/// The most generations that are remembered as never finished. Older ones have been swept.
pub(super) const MAX_VOID: usize = 16;

/// The state of an index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    pub format: u32,
    /// How often the writer changed. One with a smaller number changes nothing any more.
    pub epoch: u64,
    /// Who writes; empty when nobody does.
    pub holder: String,
    /// Counts up while the writer lives.
    pub beat: u64,
    /// The last generation that counts.
    pub generation: u64,
    /// Generations up to that one which were begun and never finished.
    pub void: Vec<u64>,
    pub documents: u64,
    /// How many of them are not for everyone.
    pub restricted: u64,
    /// How many terms all bodies and all titles have.
    pub lengths: [u64; 2],
    /// The mean lengths that the weights of terms were worked out with.
    pub means: [f32; 2],
    /// How many documents are in which language.
    pub languages: BTreeMap<String, u64>,
    /// The names of the fields, each with the marks of the kinds it has indexes for.
    pub fields: BTreeMap<String, String>,
}

impl Head {
    /// The languages of the documents, those of most documents first.
    pub(super) fn languages(&self) -> Vec<Language> {
        let known = |code: &str| Language::ALL.into_iter().find(|one| one.code() == code);
        let counts = self.languages.iter();
        Language::ranked(counts.filter_map(|(code, count)| Some((known(code)?, *count))))
    }

    fn id() -> String {
        point_id(&["head"])
    }

    /// Reads the state; nothing when there is no index. Any node may answer: an older state is one that
    /// counted a moment ago, and to ask for a majority would wait for a node that has just died.
    pub(super) fn read(
        nodes: &Nodes,
        names: &Names,
        deadline: Deadline,
    ) -> Result<Option<Self>, Error> {
        let path = format!("/collections/{}/points", names.head);
        let body = json!({"ids": [Self::id()], "with_payload": true}).to_string();
        let ask = Ask::post("read the state of the index", path, body);
        let reply = nodes.reply(&ask, deadline)?;
        if reply.status == 404 {
            return Ok(None);
        }
        let unreadable =
            |source: Option<Box<dyn std::error::Error + Send + Sync>>| Error::Cluster {
                what: format!("the state of the index in `{}` cannot be read", names.head),
                hint: "check the cluster's API key, and that no other program uses this collection",
                source,
            };
        if reply.status != 200 {
            return Err(unreadable(Some(super::nodes::told(&reply.body).into())));
        }
        let answer: Value =
            serde_json::from_slice(&reply.body).map_err(|e| unreadable(Some(e.into())))?;
        let points = answer.get("result").cloned().unwrap_or_default();
        let points: Vec<Point> =
            serde_json::from_value(points).map_err(|e| unreadable(Some(e.into())))?;
        let Some(point) = points.into_iter().next() else {
            return Ok(None);
        };
        let head: Self =
            serde_json::from_value(point.payload).map_err(|e| unreadable(Some(e.into())))?;
        if head.format != FORMAT {
            return Err(Error::Format {
                path: names.head.clone().into(),
                found: head.format.to_string(),
                expected: FORMAT,
            });
        }
        Ok(Some(head))
    }

    /// Writes the state of an empty index, unless there is one.
    pub(super) fn begin(nodes: &Nodes, names: &Names, deadline: Deadline) -> Result<(), Error> {
        let head = Self {
            format: FORMAT,
            ..Self::default()
        };
        let never = json!({"must": [{"key": "epoch", "range": {"lt": 0}}]});
        let body = json!({
            "points": [{"id": Self::id(), "vector": {}, "payload": head}],
            "update_filter": never,
        });
        let path = format!(
            "/collections/{}/points?wait=true&ordering=strong",
            names.head
        );
        let ask = Ask::put("begin an index", path, body.to_string());
        nodes.ask::<Value>(&ask, deadline).map(drop)
    }

    /// Puts `next` in place of this one; says no when somebody else was faster.
    pub(super) fn replace(
        &self,
        next: &Self,
        nodes: &Nodes,
        names: &Names,
        deadline: Deadline,
    ) -> Result<bool, Error> {
        let body = json!({
            "payload": next,
            "filter": {"must": [
                {"has_id": [Self::id()]},
                {"key": "epoch", "match": {"value": self.epoch}},
                {"key": "generation", "match": {"value": self.generation}},
            ]},
        });
        let path = format!(
            "/collections/{}/points/payload?wait=true&ordering=strong",
            names.head
        );
        let ask = Ask::post("commit", path, body.to_string());
        let written = nodes.ask::<Value>(&ask, deadline);
        // Whatever was said about the writing, what stands there now is the truth.
        let now = Self::read(nodes, names, deadline)?;
        let is_done = now.is_some_and(|now| {
            now.epoch == next.epoch
                && now.generation == next.generation
                && now.holder == next.holder
        });
        match written {
            Err(error) if !is_done => Err(error),
            _ => Ok(is_done),
        }
    }

    /// Shows that the writer lives; says no when it is another one by now.
    pub(super) fn beat(
        &self,
        nodes: &Nodes,
        names: &Names,
        deadline: Deadline,
    ) -> Result<bool, Error> {
        let Some(now) = Self::read(nodes, names, deadline)? else {
            return Ok(false);
        };
        if now.epoch != self.epoch || now.holder != self.holder {
            return Ok(false);
        }
        let body = json!({
            "payload": {"beat": now.beat + 1},
            "filter": {"must": [
                {"has_id": [Self::id()]},
                {"key": "epoch", "match": {"value": self.epoch}},
            ]},
        });
        let path = format!(
            "/collections/{}/points/payload?wait=true&ordering=strong",
            names.head
        );
        let ask = Ask::post("show life", path, body.to_string());
        nodes.ask::<Value>(&ask, deadline).map(|_| true)
    }

    /// Lets go of being the writer.
    pub(super) fn release(
        &self,
        nodes: &Nodes,
        names: &Names,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let body = json!({
            "payload": {"holder": ""},
            "filter": {"must": [
                {"has_id": [Self::id()]},
                {"key": "epoch", "match": {"value": self.epoch}},
                {"key": "holder", "match": {"value": self.holder}},
            ]},
        });
        let path = format!(
            "/collections/{}/points/payload?wait=true&ordering=strong",
            names.head
        );
        let ask = Ask::post("let go", path, body.to_string());
        nodes.ask::<Value>(&ask, deadline).map(drop)
    }
}
