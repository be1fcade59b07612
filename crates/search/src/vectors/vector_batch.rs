//! A batch of embedded documents: checks the vectors of the model, rotates and quantizes them into rows for a segment.

use std::collections::BTreeMap;
use std::ops::Range;

use super::quantization;
use super::random_rotation::RandomRotation;
use super::segment_writer::RowSource;
use super::vector_segment::{RowReader, VectorRow};
use super::{MAX_BATCH_DOCUMENTS, MAX_BATCH_ROWS, MAX_PASSAGES};
use crate::error::SearchError;

/// The tolerance for the length of a unit vector. Models round their vectors, some to eight bits.
const LENGTH_SLACK: f32 = 0.05;

/// A document with the vectors of its passages.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddedDocument {
    /// Identifies the document and its content: changed content gets another key.
    pub key: u128,
    /// The passages in their order, at most [`MAX_PASSAGES`]. A document without text has none.
    pub passages: Vec<EmbeddedPassage>,
}

/// A passage of a document's text and its vector.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddedPassage {
    /// The offset in the text at which the passage begins, in bytes.
    pub start: u32,
    /// The offset at which the passage ends, exclusive.
    pub end: u32,
    /// The vector as the model computed it, normalized to length one.
    pub vector: Vec<f32>,
}

/// Quantized rows in memory. `documents` maps keys to rows, sorted because a segment is; of two documents with the same
/// key the later one wins.
pub(super) struct VectorBatch {
    stride: usize,
    codes: Vec<i8>,
    scales: Vec<f32>,
    places: Vec<[u32; 2]>,
    documents: BTreeMap<u128, Range<usize>>,
}

impl VectorBatch {
    pub(super) fn new(
        documents: &[EmbeddedDocument],
        dims: usize,
        rotation: &RandomRotation,
    ) -> Result<Self, SearchError> {
        check(documents)?;
        let mut batch = Self {
            stride: dims.next_multiple_of(super::segment_layout::ALIGN),
            codes: Vec::new(),
            scales: Vec::new(),
            places: Vec::new(),
            documents: BTreeMap::new(),
        };
        for document in documents {
            let start = batch.scales.len();
            for passage in &document.passages {
                let mut rotated = checked_unit_vector(&passage.vector, dims)?;
                rotation.rotate(&mut rotated);
                batch.push(&rotated, [passage.start, passage.end]);
            }
            let range = start..batch.scales.len();
            batch.documents.insert(document.key, range);
        }
        Ok(batch)
    }

    fn push(&mut self, rotated: &[f32], place: [u32; 2]) {
        let start = self.codes.len();
        self.codes.resize(start + self.stride, 0);
        let codes = self.codes.get_mut(start..).unwrap_or_default();
        self.scales
            .push(quantization::quantize_int8(rotated, codes));
        self.places.push(place);
    }

    /// The documents to be written, sorted by key.
    pub(super) fn sources(&self) -> Vec<RowSource<'_>> {
        let source = |(key, range): (&u128, &Range<usize>)| RowSource {
            key: *key,
            rows: self,
            range: range.clone(),
        };
        self.documents.iter().map(source).collect()
    }
}

impl RowReader for VectorBatch {
    fn row(&self, at: usize) -> Option<VectorRow<'_>> {
        let start = at * self.stride;
        Some(VectorRow {
            codes: self.codes.get(start..start + self.stride)?,
            scale: *self.scales.get(at)?,
            place: *self.places.get(at)?,
        })
    }
}

fn check(documents: &[EmbeddedDocument]) -> Result<(), SearchError> {
    let passages = |document: &EmbeddedDocument| document.passages.len();
    let sizes = [
        (
            "the number of documents in a batch",
            documents.len(),
            MAX_BATCH_DOCUMENTS,
        ),
        (
            "the number of passages of a document",
            documents.iter().map(passages).max().unwrap_or(0),
            MAX_PASSAGES,
        ),
        (
            "the number of vectors in a batch",
            documents.iter().map(passages).sum(),
            MAX_BATCH_ROWS,
        ),
    ];
    for (what, size, limit) in sizes {
        if size > limit {
            return Err(SearchError::TooLarge {
                what: what.to_owned(),
                size,
                limit,
            });
        }
    }
    let is_inverted = |passage: &EmbeddedPassage| passage.start > passage.end;
    if documents
        .iter()
        .any(|one| one.passages.iter().any(is_inverted))
    {
        return Err(SearchError::engine("a passage ends before it begins"));
    }
    Ok(())
}

/// Checks that a vector has the right dimensions and length one, and copies it.
pub(super) fn checked_unit_vector(vector: &[f32], dims: usize) -> Result<Vec<f32>, SearchError> {
    if vector.len() != dims {
        let found = vector.len();
        let reason = format!("a vector has {found} dimensions, the model has {dims}");
        return Err(SearchError::engine(reason));
    }
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    // A NaN makes the length NaN, for which the comparison is false.
    if (length - 1.0).abs() <= LENGTH_SLACK {
        Ok(vector.to_vec())
    } else {
        Err(SearchError::engine(format!(
            "a vector is not normalized, its length is {length}"
        )))
    }
}
