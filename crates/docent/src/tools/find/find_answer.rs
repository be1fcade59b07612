//! The answer of `find`: search results, total count, facets and pagination as JSON.

use docent_search::{FacetCounts, MAX_OFFSET, SearchHit, SearchResults, TextAnchors};
use serde_json::{Map, Value, json};

use super::find_query::FindQuery;
use crate::knowledge_base::KnowledgeBase;
use crate::tools::document_parts;
use crate::tools::result_members::{self, BuiltInMember, FieldCharLimits};

/// Names of the members of the answer beside the result list.
pub(super) const TOTAL: &str = "total_count";
pub(super) const QUERY: &str = "query";
pub(super) const NEXT: &str = "next_offset";
pub(super) const FACETS: &str = "facets";
pub(super) const NOTE: &str = "note";

/// Character limits for the document fields in a result; a hundred results have to fit into an answer.
const FIELD_LIMITS: FieldCharLimits = FieldCharLimits {
    value: 300,
    all: 1_000,
};

/// The names of the built-in members of a result.
const BUILT_IN: [&str; 10] = [
    "chunk_id",
    "document_id",
    "excerpt",
    "relevance_score",
    "chunk_index",
    "anchor",
    "title",
    "url",
    "date",
    "word_count",
];

/// The built-in members with their schemas, and whether each one is required.
pub(super) fn built_in_members() -> Vec<BuiltInMember> {
    let kind = |name: &str| match name {
        "relevance_score" => json!({"type": "number", "minimum": 0, "maximum": 1}),
        "chunk_index" | "word_count" => json!({"type": "integer", "minimum": 0}),
        // A document may have its own field `date` with a value of another type.
        "date" => json!({"type": ["string", "number", "boolean", "array"]}),
        "excerpt" => json!({"type": "string", "maxLength": docent_search::MAX_EXCERPT_CHARS}),
        _ => json!({"type": "string"}),
    };
    let sometimes = ["anchor", "date"];
    BUILT_IN
        .map(|name| BuiltInMember {
            name,
            schema: kind(name),
            is_required: !sometimes.contains(&name),
        })
        .to_vec()
}

/// Builds the answer to a query.
pub(super) fn answer(
    knowledge: &KnowledgeBase,
    question: &FindQuery,
    found: &SearchResults,
    has_offset: bool,
) -> Map<String, Value> {
    let results: Vec<_> = found
        .hits
        .iter()
        .map(|hit| result(knowledge, hit))
        .collect();
    let shown = question.offset + results.len();
    // The total counts lexical matches, but semantic hits need not contain a query word, so more results can be
    // shown than were counted.
    let least = if results.is_empty() { 0 } else { shown };
    let total = found.total.unwrap_or(0).max(least as u64);
    let is_full = results.len() == question.limit && (shown as u64) < total;
    let mut answer = Map::new();
    answer.insert(knowledge.find.list.clone(), Value::Array(results));
    answer.insert(TOTAL.to_owned(), json!(total));
    answer.insert(QUERY.to_owned(), json!(question.query));
    if is_full && has_offset && shown <= MAX_OFFSET {
        answer.insert(NEXT.to_owned(), json!(shown));
    }
    if !question.facets.is_empty() {
        let facets = found.facets.iter().zip(&question.facets);
        let facets = facets.map(|(facet, (name, _))| facet_json(facet, name));
        answer.insert(FACETS.to_owned(), facets.collect());
    }
    answer
}

fn facet_json(facet: &FacetCounts, name: &str) -> Value {
    let values = facet.values.iter();
    let values = values.map(|(value, count)| json!({"value": value, "count": count}));
    json!({"field": name, "values": values.collect::<Vec<_>>(), "more": facet.more})
}

fn result(knowledge: &KnowledgeBase, hit: &SearchHit) -> Value {
    let id = hit.id.as_str();
    let best = hit.excerpts.first();
    let index = best.map_or(0, |best| best.index);
    let own = |name: &str| match name {
        "chunk_id" => json!(document_parts::passage_id(id, index)),
        "document_id" => json!(id),
        "excerpt" => json!(best.map_or(&hit.snippet, |best| &best.text)),
        "relevance_score" => json!(rounded(hit.score)),
        "chunk_index" => json!(index),
        "anchor" => {
            let text = &hit.document.text;
            let at = best.map(|best| best.range.start);
            json!(at.and_then(|at| TextAnchors::until(text, at).at(at).map(str::to_owned)))
        }
        "title" if hit.title.is_empty() => json!(id),
        "title" => json!(hit.title),
        "url" => json!(knowledge.address(&hit.document)),
        "date" => result_members::date(&hit.document),
        "word_count" => json!(result_members::words(&hit.document.text)),
        _ => Value::Null,
    };
    let named = &knowledge.find.result;
    result_members::members(&hit.document, named, &BUILT_IN, FIELD_LIMITS, own).into()
}

/// Clamps a score to 0..1 and rounds it to four decimal places.
fn rounded(score: f32) -> f64 {
    let score = f64::from(score).clamp(0.0, 1.0);
    (score * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_short_and_within_their_bounds() {
        for (score, expected) in [(0.9, 0.9), (0.123_456, 0.1235), (1.5, 1.0), (-1.0, 0.0)] {
            assert_eq!(rounded(score), expected);
        }
    }

    #[test]
    fn every_built_in_member_has_a_schema() {
        assert_eq!(built_in_members().len(), BUILT_IN.len());
    }
}
