//! Quantized matrix multiplication (int8 GEMM), by far the largest part of the model's work.
//!
//! A tile of a few rows and up to 64 columns is accumulated in registers over the whole depth. The panel of weights
//! that it reads stays in the L1 cache for the next rows.
#![allow(unsafe_code, reason = "SIMD instructions and raw loads")]

use std::ops::Range;

use super::SimdKernel;
use super::lanes::{SimdLanes, WIDTH};
use super::row_kernels::QuantizedRows;

/// How many columns of weights are stored together.
pub(in super::super) const PANEL: usize = 64;

/// The weights of a linear layer, quantized to int8. They are stored in panels of [`PANEL`] columns, within a panel in
/// groups of four bytes of depth for each column, which is what one SIMD dot product takes. Each column has a scale,
/// the scaled sum of its weights, which corrects for the zero point of the activations, and a bias.
pub(in super::super) struct QuantizedMatrix {
    pub(in super::super) depth: usize,
    pub(in super::super) panels: &'static [u8],
    pub(in super::super) scales: Vec<f32>,
    pub(in super::super) sums: Vec<f32>,
    pub(in super::super) bias: Vec<f32>,
}

/// What is done with the products before they are written: nothing, the GELU activation, or the addition of what is in
/// the output already (the residual connection).
#[derive(Clone, Copy)]
pub(in super::super) enum GemmEpilogue {
    Store,
    Gelu,
    Add,
}

/// The layout of the output: row-major, or panel by panel with all rows of a panel together, as attention reads it.
#[derive(Clone, Copy)]
pub(in super::super) enum OutputLayout {
    Rows,
    Panels,
}

/// Multiplies all rows of the input by some panels of a matrix.
pub(in super::super) struct LinearKernel<'a> {
    pub(in super::super) input: &'a QuantizedRows,
    pub(in super::super) matrix: &'a QuantizedMatrix,
    pub(in super::super) panels: Range<usize>,
    pub(in super::super) out: (&'a mut [f32], OutputLayout),
    pub(in super::super) finish: GemmEpilogue,
}

impl SimdKernel for LinearKernel<'_> {
    #[inline(always)]
    unsafe fn run<V: SimdLanes>(self) {
        let rows = self.input.steps.len();
        let Range { start, end } = self.panels;
        let QuantizedMatrix { depth, panels, .. } = self.matrix;
        let columns = end * PANEL;
        assert!(panels.len() >= columns * depth && depth.is_multiple_of(4) && start <= end);
        assert!(self.matrix.scales.len() >= columns && self.matrix.sums.len() >= columns);
        assert!(self.matrix.bias.len() >= columns && self.input.lows.len() == rows);
        assert!(self.input.bytes.len() == rows * depth);
        let (out, layout) = self.out;
        assert!(out.len() >= rows * (end - start) * PANEL);
        let (row_stride, panel_stride) = match layout {
            OutputLayout::Rows => ((end - start) * PANEL, PANEL),
            OutputLayout::Panels => (PANEL, rows * PANEL),
        };
        for panel in start..end {
            let mut row = 0;
            while row < rows {
                let tile = GemmTile {
                    input: self.input,
                    matrix: self.matrix,
                    panel,
                    row,
                    // SAFETY: the last row of the last panel ends where `out` ends.
                    out: unsafe {
                        out.as_mut_ptr()
                            .add((panel - start) * panel_stride + row * row_stride)
                    },
                    row_stride,
                    finish: self.finish,
                };
                let count = V::ROWS.min(rows - row);
                // SAFETY: `count` rows are left, and the lengths of everything were checked above.
                unsafe {
                    match count {
                        1 => tile.run::<V, 1>(),
                        2 => tile.run::<V, 2>(),
                        3 => tile.run::<V, 3>(),
                        4 => tile.run::<V, 4>(),
                        5 => tile.run::<V, 5>(),
                        _ => tile.run::<V, 6>(),
                    }
                }
                row += count;
            }
        }
    }
}

/// One tile of the output: up to six rows of one panel, starting at `row`.
struct GemmTile<'a> {
    input: &'a QuantizedRows,
    matrix: &'a QuantizedMatrix,
    panel: usize,
    row: usize,
    out: *mut f32,
    row_stride: usize,
    finish: GemmEpilogue,
}

impl GemmTile<'_> {
    /// Computes all columns of the panel for `R` rows.
    #[inline(always)]
    unsafe fn run<V: SimdLanes, const R: usize>(&self) {
        // SAFETY: the panel is a whole number of such parts; the caller checked the lengths.
        unsafe {
            if V::VECTORS == 4 {
                self.part::<V, R, 4>(0);
            } else {
                for column in (0..PANEL).step_by(WIDTH) {
                    self.part::<V, R, 1>(column);
                }
            }
        }
    }

    /// Computes `C` vectors of columns for `R` rows, from one column of the panel on.
    #[inline(always)]
    unsafe fn part<V: SimdLanes, const R: usize, const C: usize>(&self, column: usize) {
        let depth = self.matrix.depth;
        // SAFETY: the caller checked that the matrix has this panel and the input these rows.
        unsafe {
            let mut weights = self
                .matrix
                .panels
                .as_ptr()
                .add(self.panel * PANEL * depth + 4 * column);
            let bytes = self.input.bytes.as_ptr().add(self.row * depth);
            // One pointer a row, because the index arithmetic in the loop would be checked for overflow.
            let mut rows = [bytes; R];
            for (r, row) in rows.iter_mut().enumerate() {
                *row = bytes.add(r * depth);
            }
            let mut sums = [[V::zero(); C]; R];
            for _ in 0..depth / 4 {
                let mut columns = [V::zero(); C];
                for (c, columns) in columns.iter_mut().enumerate() {
                    *columns = V::load_bytes(weights.add(4 * c * WIDTH));
                }
                for (sums, row) in sums.iter_mut().zip(&mut rows) {
                    let bytes = V::splat_bytes(*row);
                    for (sum, columns) in sums.iter_mut().zip(columns) {
                        *sum = V::dot(*sum, bytes, columns);
                    }
                    *row = row.add(4);
                }
                weights = weights.add(4 * PANEL);
            }
            for (r, sums) in sums.into_iter().enumerate() {
                for (c, sums) in sums.into_iter().enumerate() {
                    self.finish::<V>(r, column + c * WIDTH, sums);
                }
            }
        }
    }

    /// Dequantizes the integer sums of one row and a vector of columns, and applies the epilogue.
    #[inline(always)]
    unsafe fn finish<V: SimdLanes>(&self, row: usize, column: usize, sums: V::IntLanes) {
        let from = self.panel * PANEL + column;
        // SAFETY: the caller checked that there are as many scales, sums, biases, steps and lows.
        unsafe {
            let low = V::splat(*self.input.lows.get_unchecked(self.row + row));
            let step = V::splat(*self.input.steps.get_unchecked(self.row + row));
            let shift = V::load(self.matrix.bias.as_ptr().add(from));
            let shift = low.mul_add(V::load(self.matrix.sums.as_ptr().add(from)), shift);
            let scale = step.mul(V::load(self.matrix.scales.as_ptr().add(from)));
            let value = V::float(sums).mul_add(scale, shift);
            let to = self.out.add(row * self.row_stride + column);
            match self.finish {
                GemmEpilogue::Store => value.store(to),
                GemmEpilogue::Gelu => value.gelu().store(to),
                GemmEpilogue::Add => value.add(V::load(to)).store(to),
            }
        }
    }
}
