//! Qdrant filters: reader access, liveness and metadata conditions, as the cluster checks them where the
//! points lie.

use serde_json::{Value, json};

use super::head::IndexHead;
use super::layout::{DAYS, FROM, NUMBERS, TERMS, TEXTS, UNTIL, VALUES, WHO, field_key, fnv1a};
use crate::analysis::{QueryTerm, language_variants};
use crate::calendar::Day;
use crate::document::Document;
use crate::filter::{FieldTest, Filter, fold_value};
use crate::reader_identity::{AllowedReaders, Principal, ReaderIdentity};

/// A conjunction of conditions, some of them negated, that a point has to meet.
#[derive(Clone, Debug, Default)]
pub(super) struct QdrantFilter {
    must: Vec<Value>,
    must_not: Vec<Value>,
}

impl QdrantFilter {
    /// What a reader may see of the head's generation.
    pub(super) fn visible(head: &IndexHead, reader: &ReaderIdentity) -> Self {
        Self::live(head).visible_to(reader)
    }

    /// The live versions of the head's generation: begun in a committed generation, and not ended.
    pub(super) fn live(head: &IndexHead) -> Self {
        let mut live =
            Self::not_ended(head).and(json!({"key": FROM, "range": {"lte": head.generation}}));
        if !head.aborted_generations.is_empty() {
            live = live.and(json!({"key": FROM, "match": {"except": head.aborted_generations}}));
        }
        live
    }

    /// The passages that a reader may see in the head's generation.
    pub(super) fn visible_passages(head: &IndexHead, reader: &ReaderIdentity) -> Self {
        Self::not_ended(head).visible_to(reader)
    }

    /// What has not ended. For passages this condition is enough, because they are made of committed versions
    /// only. A payload index on when they began would also have nodes build extra HNSW graphs for each of its
    /// ranges.
    pub(super) fn not_ended(head: &IndexHead) -> Self {
        Self::default().not(ended(head, head.generation))
    }

    fn visible_to(self, reader: &ReaderIdentity) -> Self {
        match principals_of(reader) {
            Some(marks) => self.and(json!({"key": WHO, "match": {"any": marks}})),
            None => self,
        }
    }

    #[must_use]
    pub(super) fn and(mut self, condition: Value) -> Self {
        self.must.push(condition);
        self
    }

    #[must_use]
    pub(super) fn not(mut self, condition: Value) -> Self {
        self.must_not.push(condition);
        self
    }

    pub(super) fn json(&self) -> Value {
        json!({"must": self.must, "must_not": self.must_not})
    }
}

/// What was ended by a generation or by one before it. Ends that aborted generations gave do not count.
pub(super) fn ended(head: &IndexHead, generation: u64) -> Value {
    let mut ended = vec![json!({"key": UNTIL, "range": {"lte": generation}})];
    if !head.aborted_generations.is_empty() {
        ended.push(json!({"key": UNTIL, "match": {"except": head.aborted_generations}}));
    }
    json!({"must": ended})
}

/// The mark for everyone, and the marks of an unrestricted document.
const EVERYONE: &str = "*";
pub(super) const OPEN_TO_ALL: [&str; 1] = [EVERYONE];

/// The marks of which a document must have one for this reader; `None` for a reader who sees everything.
fn principals_of(reader: &ReaderIdentity) -> Option<Vec<String>> {
    let held = reader.principals()?.iter().map(principal_mark);
    Some(std::iter::once(EVERYONE.to_owned()).chain(held).collect())
}

/// The marks of the readers of a document, as its points carry them.
pub(super) fn reader_marks(document: &Document) -> Vec<String> {
    match &document.readers {
        AllowedReaders::Everyone => OPEN_TO_ALL.map(str::to_owned).to_vec(),
        AllowedReaders::Only(named) => named.iter().map(principal_mark).collect(),
    }
}

/// The mark of a principal. The prefix keeps a principal named `*` from being taken for everyone.
fn principal_mark(principal: &Principal) -> String {
    format!("p{principal}")
}

/// The Qdrant condition of a metadata filter. The recursion is as deep as the filter, which its grammar
/// limits to a few levels.
pub(super) fn filter(filter: &Filter) -> Value {
    match filter {
        Filter::All(parts) if parts.is_empty() => json!({"must_not": [match_nothing()]}),
        Filter::Any(parts) if parts.is_empty() => match_nothing(),
        Filter::All(parts) => json!({"must": parts.iter().map(self::filter).collect::<Vec<_>>()}),
        Filter::Any(parts) => json!({"should": parts.iter().map(self::filter).collect::<Vec<_>>()}),
        Filter::Not(part) => json!({"must_not": [self::filter(part)]}),
        Filter::Field { name, test } => field(&crate::facet_terms::sanitize(name), test),
    }
}

/// A condition that no point meets.
pub(super) fn match_nothing() -> Value {
    json!({"has_id": []})
}

fn field(name: &str, test: &FieldTest) -> Value {
    match test {
        FieldTest::Is(text) => {
            json!({"key": field_key(TEXTS, name), "match": {"value": fold_value(text)}})
        }
        FieldTest::Number { from, to } if [from, to].into_iter().flatten().any(|x| x.is_nan()) => {
            match_nothing()
        }
        FieldTest::Number { from, to } => {
            let from = from.map_or(f64::MIN, finite);
            let to = to.map_or(f64::MAX, finite);
            json!({"key": field_key(NUMBERS, name), "range": {"gte": from, "lte": to}})
        }
        FieldTest::Date { from, to } => {
            let bound = |bound: &Option<String>, open: i64| match bound {
                Some(day) => Day::parse(day)
                    .and_then(|day| crate::stored_document::day_number(&day.to_string())),
                None => Some(open),
            };
            match (bound(from, 0), bound(to, i64::from(u32::MAX))) {
                (Some(from), Some(to)) => {
                    json!({"key": field_key(DAYS, name), "range": {"gte": from, "lte": to}})
                }
                _ => match_nothing(),
            }
        }
        FieldTest::Bool(flag) => {
            json!({"key": field_key(VALUES, name), "match": {"value": format!("b{}", u8::from(*flag))}})
        }
    }
}

/// The nearest number that JSON can represent: it has no infinity.
pub(super) fn finite(number: f64) -> f64 {
    number.clamp(f64::MIN, f64::MAX)
}

/// The id of a body term, its dimension in the sparse vector.
pub(super) fn body_term_id(term: &str) -> u32 {
    fold_to_u32(fnv1a(term.as_bytes()))
}

/// The id of a title term, a dimension of its own, because a match in the title has another weight.
pub(super) fn title_term_id(term: &str) -> u32 {
    let mut bytes = vec![0];
    bytes.extend_from_slice(term.as_bytes());
    fold_to_u32(fnv1a(&bytes))
}

/// Folds a hash to the 32 bits that the cluster has for the dimensions of a sparse vector. Among a million
/// terms about a hundred pairs collide; such a pair counts as one word.
fn fold_to_u32(number: u64) -> u32 {
    ((number >> 32) ^ number) as u32
}

/// Matches documents that contain one of these terms.
pub(super) fn any_term(forms: &[&str]) -> Value {
    let numbers: Vec<_> = forms.iter().map(|form| body_term_id(form)).collect();
    json!({"key": TERMS, "match": {"any": numbers}})
}

/// Matches documents that contain a term.
pub(super) fn with_term(number: u32) -> Value {
    json!({"key": TERMS, "match": {"value": number}})
}

/// Matches documents that contain all terms of a phrase, as one of the languages stems them. Whether these
/// are adjacent is checked by the caller.
pub(super) fn all_terms(phrase: &[QueryTerm]) -> Value {
    let terms: Vec<&QueryTerm> = phrase.iter().collect();
    let variants: Vec<Value> = language_variants(&terms)
        .iter()
        .map(|reading| {
            let each = reading.iter().map(|form| with_term(body_term_id(form)));
            json!({"must": each.collect::<Vec<_>>()})
        })
        .collect();
    json!({"should": variants})
}
