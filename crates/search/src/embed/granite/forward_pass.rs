//! Tokens of several texts into one vector each: the model's layers, one after the other.
//!
//! The texts lie end to end, so that the matrices see many rows at once and no padding.

use std::ops::Range;

use super::kernels::{
    AttentionHeads, AttentionKernel, GemmEpilogue, InstructionSet, LayerNorm, LayerNormKernel,
    LinearKernel, OutputLayout, PANEL, QuantizeKernel, QuantizedMatrix, QuantizedRows,
};
use super::weights::{EncoderLayer, GraniteWeights, HIDDEN, WIDE};

/// The panels of the first matrix of a layer that make the queries; those behind make keys and
/// values.
const QUERIES: usize = HIDDEN / PANEL;

/// A pass through the model; keeps its memory from one batch to the next.
pub(super) struct ForwardPass<'a> {
    weights: &'a GraniteWeights,
    instructions: InstructionSet,
    quantised: QuantizedRows,
    heads: Vec<f32>,
    own_heads: Vec<f32>,
    attended: Vec<f32>,
    wide: Vec<f32>,
    scratch: Vec<f32>,
}

impl<'a> ForwardPass<'a> {
    pub(super) fn new(weights: &'a GraniteWeights, instructions: InstructionSet) -> Self {
        Self {
            weights,
            instructions,
            quantised: QuantizedRows::default(),
            heads: Vec::new(),
            own_heads: Vec::new(),
            attended: Vec::new(),
            wide: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The vector of each text, of length one.
    pub(super) fn run(&mut self, texts: &[Vec<u16>]) -> Vec<Vec<f32>> {
        let weights = self.weights;
        let (mut rows, texts) = embed(weights, texts);
        self.normalise(&weights.norm, &mut rows);
        let Some((last, layers)) = weights.layers.split_last() else {
            return Vec::new();
        };
        for layer in layers {
            self.attend(layer, &rows, &texts);
            self.transform(layer, &mut rows);
        }
        let mut firsts = self.attend_first(last, &rows, &texts);
        self.transform(last, &mut firsts);
        firsts.chunks_exact(HIDDEN).map(to_unit).collect()
    }

    /// Every token looks at every token of its text.
    fn attend(&mut self, layer: &EncoderLayer, rows: &[f32], texts: &[Range<usize>]) {
        let count = rows.len() / HIDDEN;
        self.quantise(rows, HIDDEN);
        self.heads.resize(3 * rows.len(), 0.0);
        self.attended.resize(rows.len(), 0.0);
        self.instructions.run(LinearKernel {
            input: &self.quantised,
            matrix: &layer.qkv,
            panels: 0..3 * QUERIES,
            out: (&mut self.heads, OutputLayout::Panels),
            finish: GemmEpilogue::Store,
        });
        let (queries, others) = self.heads.split_at(rows.len());
        let heads = |panels| AttentionHeads {
            panels,
            rows: count,
        };
        let mut out = self.attended.as_mut_slice();
        for text in texts {
            let Some((own, behind)) = out.split_at_mut_checked(text.len() * HIDDEN) else {
                return;
            };
            self.instructions.run(AttentionKernel {
                queries: (heads(queries), text.clone()),
                others: (heads(others), text.clone()),
                out: own,
                scratch: &mut self.scratch,
            });
            out = behind;
        }
    }

    /// The first token of each text looks at every token of it; gives the rows of those tokens.
    /// Behind the last layer nothing reads the others, so nothing of theirs is computed.
    fn attend_first(
        &mut self,
        layer: &EncoderLayer,
        rows: &[f32],
        texts: &[Range<usize>],
    ) -> Vec<f32> {
        let count = rows.len() / HIDDEN;
        self.quantise(rows, HIDDEN);
        self.heads.resize(2 * rows.len(), 0.0);
        self.instructions.run(LinearKernel {
            input: &self.quantised,
            matrix: &layer.qkv,
            panels: QUERIES..3 * QUERIES,
            out: (&mut self.heads, OutputLayout::Panels),
            finish: GemmEpilogue::Store,
        });
        let firsts: Vec<f32> = texts
            .iter()
            .filter_map(|text| rows.chunks_exact(HIDDEN).nth(text.start))
            .flatten()
            .copied()
            .collect();
        self.quantise(&firsts, HIDDEN);
        self.own_heads.resize(firsts.len(), 0.0);
        self.attended.resize(firsts.len(), 0.0);
        self.instructions.run(LinearKernel {
            input: &self.quantised,
            matrix: &layer.qkv,
            panels: 0..QUERIES,
            out: (&mut self.own_heads, OutputLayout::Panels),
            finish: GemmEpilogue::Store,
        });
        let queries = AttentionHeads {
            panels: &self.own_heads,
            rows: texts.len(),
        };
        let others = AttentionHeads {
            panels: &self.heads,
            rows: count,
        };
        let outs = self.attended.chunks_exact_mut(HIDDEN);
        for (at, (text, out)) in texts.iter().zip(outs).enumerate() {
            self.instructions.run(AttentionKernel {
                queries: (queries, at..at + 1),
                others: (others, text.clone()),
                out,
                scratch: &mut self.scratch,
            });
        }
        firsts
    }

    /// Everything of a layer behind its attention, row by row.
    fn transform(&mut self, layer: &EncoderLayer, rows: &mut [f32]) {
        let attended = std::mem::take(&mut self.attended);
        self.quantise(&attended, HIDDEN);
        self.attended = attended;
        self.multiply(&layer.attended, rows, GemmEpilogue::Add);
        self.normalise(&layer.attended_norm, rows);

        self.quantise(rows, HIDDEN);
        let mut wide = std::mem::take(&mut self.wide);
        wide.resize(rows.len() / HIDDEN * WIDE, 0.0);
        self.multiply(&layer.widen, &mut wide, GemmEpilogue::Gelu);
        self.quantise(&wide, WIDE);
        self.wide = wide;
        self.multiply(&layer.narrow, rows, GemmEpilogue::Add);
        self.normalise(&layer.norm, rows);
    }

    fn quantise(&mut self, rows: &[f32], width: usize) {
        self.instructions.run(QuantizeKernel {
            rows,
            width,
            into: &mut self.quantised,
        });
    }

    fn multiply(&self, matrix: &QuantizedMatrix, out: &mut [f32], finish: GemmEpilogue) {
        self.instructions.run(LinearKernel {
            input: &self.quantised,
            matrix,
            panels: 0..matrix.bias.len() / PANEL,
            out: (out, OutputLayout::Rows),
            finish,
        });
    }

    fn normalise(&self, norm: &LayerNorm, rows: &mut [f32]) {
        self.instructions.run(LayerNormKernel { norm, rows });
    }
}

/// The rows of all tokens before the first layer, and which of them belong to each text.
fn embed(weights: &GraniteWeights, texts: &[Vec<u16>]) -> (Vec<f32>, Vec<Range<usize>>) {
    let count: usize = texts.iter().map(Vec::len).sum();
    let mut rows = vec![0.0; count * HIDDEN];
    let mut free = rows.chunks_exact_mut(HIDDEN);
    let mut ranges = Vec::with_capacity(texts.len());
    let mut start = 0;
    for text in texts {
        for (place, (&token, row)) in text.iter().zip(&mut free).enumerate() {
            // A token or place outside the tables would stay a row of zeros; there is none.
            let _ = weights.words.write(token, place, row);
        }
        ranges.push(start..start + text.len());
        start += text.len();
    }
    (rows, ranges)
}

/// A vector of length one that points the same way.
fn to_unit(row: &[f32]) -> Vec<f32> {
    let length = row.iter().map(|number| number * number).sum::<f32>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    row.iter().map(|number| number * scale).collect()
}
