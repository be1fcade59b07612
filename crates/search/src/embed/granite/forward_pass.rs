//! The forward pass of the transformer encoder: from the tokens of several texts to one unit vector each.
//!
//! The texts of a batch are concatenated, so that each matrix multiplication sees many rows at once and no padding.
//! Activations are quantized to int8 before every multiplication.

use std::ops::Range;

use super::kernels::{
    AttentionHeads, AttentionKernel, GemmEpilogue, InstructionSet, LayerNorm, LayerNormKernel,
    LinearKernel, OutputLayout, PANEL, QuantizeKernel, QuantizedMatrix, QuantizedRows,
};
use super::weights::{EncoderLayer, GraniteWeights, HIDDEN, WIDE};

/// How many panels of the `qkv` matrix compute the queries. Those after them compute keys and values.
const QUERIES: usize = HIDDEN / PANEL;

/// A forward pass, and its buffers, which are reused from one batch to the next.
pub(super) struct ForwardPass<'a> {
    weights: &'a GraniteWeights,
    instructions: InstructionSet,
    quantized: QuantizedRows,
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
            quantized: QuantizedRows::default(),
            heads: Vec::new(),
            own_heads: Vec::new(),
            attended: Vec::new(),
            wide: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Embeds a batch of tokenized texts: one vector each, normalized to length one. The model pools by the first token
    /// (CLS pooling), so the last layer computes only that one.
    pub(super) fn run(&mut self, texts: &[Vec<u16>]) -> Vec<Vec<f32>> {
        let weights = self.weights;
        let (mut rows, texts) = embed(weights, texts);
        self.normalize(&weights.norm, &mut rows);
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

    /// Self-attention of a layer: every token attends to every token of its own text.
    fn attend(&mut self, layer: &EncoderLayer, rows: &[f32], texts: &[Range<usize>]) {
        let count = rows.len() / HIDDEN;
        self.quantize(rows, HIDDEN);
        self.heads.resize(3 * rows.len(), 0.0);
        self.attended.resize(rows.len(), 0.0);
        self.instructions.run(LinearKernel {
            input: &self.quantized,
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
            let Some((own, rest)) = out.split_at_mut_checked(text.len() * HIDDEN) else {
                return;
            };
            self.instructions.run(AttentionKernel {
                queries: (heads(queries), text.clone()),
                others: (heads(others), text.clone()),
                out: own,
                scratch: &mut self.scratch,
            });
            out = rest;
        }
    }

    /// Self-attention of the last layer, for the first token of each text only; returns the rows of these tokens.
    /// Pooling reads no other, so queries of the others are not computed.
    fn attend_first(
        &mut self,
        layer: &EncoderLayer,
        rows: &[f32],
        texts: &[Range<usize>],
    ) -> Vec<f32> {
        let count = rows.len() / HIDDEN;
        self.quantize(rows, HIDDEN);
        self.heads.resize(2 * rows.len(), 0.0);
        self.instructions.run(LinearKernel {
            input: &self.quantized,
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
        self.quantize(&firsts, HIDDEN);
        self.own_heads.resize(firsts.len(), 0.0);
        self.attended.resize(firsts.len(), 0.0);
        self.instructions.run(LinearKernel {
            input: &self.quantized,
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

    /// The rest of a layer after its attention: output projection, then the feed-forward network with GELU, each with
    /// its residual connection and layer norm.
    fn transform(&mut self, layer: &EncoderLayer, rows: &mut [f32]) {
        let attended = std::mem::take(&mut self.attended);
        self.quantize(&attended, HIDDEN);
        self.attended = attended;
        self.multiply(&layer.attended, rows, GemmEpilogue::Add);
        self.normalize(&layer.attended_norm, rows);

        self.quantize(rows, HIDDEN);
        let mut wide = std::mem::take(&mut self.wide);
        wide.resize(rows.len() / HIDDEN * WIDE, 0.0);
        self.multiply(&layer.widen, &mut wide, GemmEpilogue::Gelu);
        self.quantize(&wide, WIDE);
        self.wide = wide;
        self.multiply(&layer.narrow, rows, GemmEpilogue::Add);
        self.normalize(&layer.norm, rows);
    }

    fn quantize(&mut self, rows: &[f32], width: usize) {
        self.instructions.run(QuantizeKernel {
            rows,
            width,
            into: &mut self.quantized,
        });
    }

    fn multiply(&self, matrix: &QuantizedMatrix, out: &mut [f32], finish: GemmEpilogue) {
        self.instructions.run(LinearKernel {
            input: &self.quantized,
            matrix,
            panels: 0..matrix.bias.len() / PANEL,
            out: (out, OutputLayout::Rows),
            finish,
        });
    }

    fn normalize(&self, norm: &LayerNorm, rows: &mut [f32]) {
        self.instructions.run(LayerNormKernel { norm, rows });
    }
}

/// Looks up the embeddings of all tokens. Returns them as rows, with the range of rows of each text.
fn embed(weights: &GraniteWeights, texts: &[Vec<u16>]) -> (Vec<f32>, Vec<Range<usize>>) {
    let count: usize = texts.iter().map(Vec::len).sum();
    let mut rows = vec![0.0; count * HIDDEN];
    let mut free = rows.chunks_exact_mut(HIDDEN);
    let mut ranges = Vec::with_capacity(texts.len());
    let mut start = 0;
    for text in texts {
        for (position, (&token, row)) in text.iter().zip(&mut free).enumerate() {
            // A token or position outside the tables would leave a row of zeros; the tokenizer gives none.
            let _ = weights.words.write(token, position, row);
        }
        ranges.push(start..start + text.len());
        start += text.len();
    }
    (rows, ranges)
}

/// Normalizes a vector to length one; one of zeros stays as it is.
fn to_unit(row: &[f32]) -> Vec<f32> {
    let length = row.iter().map(|number| number * number).sum::<f32>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    row.iter().map(|number| number * scale).collect()
}
