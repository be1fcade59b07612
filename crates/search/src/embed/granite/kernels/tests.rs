//! Tests every SIMD instruction set of this CPU against the same arithmetic in scalar f64.

use super::lanes::WIDTH;
use super::*;

/// Pseudo-random numbers from −1 to 1, the same for each seed.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

#[track_caller]
fn assert_close(found: f32, expected: f64, tolerance: f64) {
    let off = (f64::from(found) - expected).abs();
    assert!(off <= tolerance, "{found} is not {expected}");
}

/// A kernel that applies one of the functions of [`SimdLanes`]: GELU, or two to the power.
struct ActivationKernel<'a> {
    numbers: &'a mut [f32],
    gelu: bool,
}

impl SimdKernel for ActivationKernel<'_> {
    #[inline(always)]
    unsafe fn run<V: SimdLanes>(self) {
        for chunk in self.numbers.chunks_exact_mut(WIDTH) {
            let at = chunk.as_mut_ptr();
            // SAFETY: the chunk is a whole vector.
            unsafe {
                let x = V::load(at);
                let y = if self.gelu { x.gelu() } else { x.exp2() };
                y.store(at);
            }
        }
    }
}

#[test]
fn powers_of_two_are_right() {
    for instructions in InstructionSet::available() {
        let inputs: Vec<f32> = (0..4096).map(|at| at as f32 * -0.031).collect();
        let mut found = inputs.clone();
        instructions.run(ActivationKernel {
            numbers: &mut found,
            gelu: false,
        });
        for (x, y) in inputs.iter().zip(&found) {
            let expected = f64::from(*x).max(-126.0).exp2();
            assert_close(*y, expected, 3e-7 * expected);
        }
    }
}

#[test]
fn the_activation_function_is_right() {
    // A few values of Φ from a statistical table.
    let table = [
        (0.0, 0.5),
        (0.5, 0.691_462_5),
        (1.0, 0.841_344_7),
        (2.0, 0.977_249_9),
        (3.0, 0.998_650_1),
    ];
    for instructions in InstructionSet::available() {
        for (x, chance) in table {
            let mut found = [x as f32; 16];
            found[8..].fill(-x as f32);
            instructions.run(ActivationKernel {
                numbers: &mut found,
                gelu: true,
            });
            assert_close(found[0], x * chance, 1e-4);
            assert_close(found[8], -x * (1.0 - chance), 1e-4);
        }
        let mut found = [40.0; 16];
        found[8..].fill(-40.0);
        instructions.run(ActivationKernel {
            numbers: &mut found,
            gelu: true,
        });
        assert_close(found[0], 40.0, 2e-3);
        assert_close(found[8], 0.0, 2e-3);
    }
}

#[test]
fn rows_come_back_from_bytes_within_half_a_step() {
    for instructions in InstructionSet::available() {
        let mut rows = numbers(3 * 48, 5);
        rows[48..96].fill(0.25);
        let mut into = QuantizedRows::default();
        instructions.run(QuantizeKernel {
            rows: &rows,
            width: 48,
            into: &mut into,
        });
        assert_eq!(
            (into.bytes.len(), into.lows.len(), into.steps.len()),
            (144, 3, 3)
        );
        for (at, number) in rows.iter().enumerate() {
            let (low, step) = (into.lows[at / 48], into.steps[at / 48]);
            let back = low + step * f32::from(into.bytes[at]);
            assert_close(back, f64::from(*number), f64::from(step) * 0.501);
        }
    }
}

#[test]
fn norms_are_right() {
    let norm = LayerNorm {
        weights: numbers(32, 1),
        bias: numbers(32, 2),
    };
    for instructions in InstructionSet::available() {
        let mut rows = numbers(64, 3);
        rows[32..].fill(7.0);
        let given = rows.clone();
        instructions.run(LayerNormKernel {
            norm: &norm,
            rows: &mut rows,
        });
        for (row, given) in rows.chunks(32).zip(given.chunks(32)) {
            let mean = given.iter().map(|&x| f64::from(x)).sum::<f64>() / 32.0;
            let square = |&x: &f32| (f64::from(x) - mean).powi(2);
            let variance = given.iter().map(square).sum::<f64>() / 32.0;
            for at in 0..32 {
                let off = (f64::from(given[at]) - mean) / (variance + 1e-12).sqrt();
                let expected = off * f64::from(norm.weights[at]) + f64::from(norm.bias[at]);
                assert_close(row[at], expected, 1e-5);
            }
        }
    }
}

/// A matrix whose weights reach the limit at which two neighbouring products still fit 16 bits.
fn matrix(depth: usize, columns: usize) -> QuantizedMatrix {
    let panels = (0..depth * columns).map(|at| match at % 7 {
        0 | 1 => 64,
        2 | 3 => -64_i8,
        _ => ((at * 37) % 129) as i8 / 2,
    });
    let bytes: Vec<u8> = panels.map(i8::cast_unsigned).collect();
    QuantizedMatrix {
        depth,
        panels: bytes.leak(),
        scales: vec![0.5; columns],
        sums: numbers(columns, 8),
        bias: numbers(columns, 9),
    }
}

/// Reads one weight of a column out of the panel layout.
fn weight(matrix: &QuantizedMatrix, depth: usize, column: usize) -> f64 {
    let panel = column / PANEL * PANEL * matrix.depth;
    let at = panel + depth / 4 * 4 * PANEL + column % PANEL * 4 + depth % 4;
    f64::from(matrix.panels[at].cast_signed())
}

fn input(rows: usize, depth: usize) -> QuantizedRows {
    QuantizedRows {
        bytes: (0..rows * depth)
            .map(|at| {
                if at % 3 == 0 {
                    255
                } else {
                    (at * 31 % 256) as u8
                }
            })
            .collect(),
        lows: numbers(rows, 10),
        steps: numbers(rows, 11),
    }
}

#[test]
fn products_of_bytes_are_exact() {
    let matrix = matrix(32, 2 * PANEL);
    for instructions in InstructionSet::available() {
        for rows in 1..=13 {
            let input = input(rows, 32);
            let mut out = vec![0.0; rows * 2 * PANEL];
            instructions.run(LinearKernel {
                input: &input,
                matrix: &matrix,
                panels: 0..2,
                out: (&mut out, OutputLayout::Rows),
                finish: GemmEpilogue::Store,
            });
            for (at, found) in out.into_iter().enumerate() {
                let (row, column) = (at / (2 * PANEL), at % (2 * PANEL));
                let product =
                    |d: usize| f64::from(input.bytes[row * 32 + d]) * weight(&matrix, d, column);
                let sum: f64 = (0..32).map(product).sum();
                let shift = input.lows[row] * matrix.sums[column] + matrix.bias[column];
                let expected = sum * f64::from(input.steps[row]) * 0.5 + f64::from(shift);
                assert_close(found, expected, 1e-6 * (1.0 + expected.abs()));
            }
        }
    }
}

#[test]
fn products_are_stored_added_or_activated_in_either_order() {
    let (matrix, input) = (matrix(4, 2 * PANEL), input(3, 4));
    for instructions in InstructionSet::available() {
        let multiply = |panels, out: &mut [f32], order, finish| {
            let (input, matrix) = (&input, &matrix);
            let out = (out, order);
            instructions.run(LinearKernel {
                input,
                matrix,
                panels,
                out,
                finish,
            });
        };
        let mut plain = vec![0.0; 3 * PANEL];
        multiply(1..2, &mut plain, OutputLayout::Rows, GemmEpilogue::Store);
        let mut both = vec![0.0; 6 * PANEL];
        multiply(0..2, &mut both, OutputLayout::Panels, GemmEpilogue::Store);
        assert_eq!(both[3 * PANEL..], plain[..]);
        let mut added = vec![1.5; 3 * PANEL];
        multiply(1..2, &mut added, OutputLayout::Rows, GemmEpilogue::Add);
        let mut activated = vec![0.0; 3 * PANEL];
        multiply(1..2, &mut activated, OutputLayout::Rows, GemmEpilogue::Gelu);
        instructions.run(ActivationKernel {
            numbers: &mut plain.clone(),
            gelu: true,
        });
        let mut expected = plain.clone();
        instructions.run(ActivationKernel {
            numbers: &mut expected,
            gelu: true,
        });
        assert_eq!(activated, expected);
        for (added, plain) in added.into_iter().zip(plain) {
            assert_close(added, f64::from(plain) + 1.5, 1e-3);
        }
    }
}

#[test]
fn attention_is_right_for_every_length() {
    const HEADS: usize = 2;
    for instructions in InstructionSet::available() {
        let mut scratch = Vec::new();
        for count in [1, 2, 7, 15, 16, 17, 33, 64, 65, 130] {
            // Two rows of another text lie before and after it.
            let rows = count + 4;
            let queries = numbers(rows * HEADS * 32, 20);
            let others = numbers(rows * HEADS * 64, 21);
            let heads = |panels| AttentionHeads { panels, rows };
            let mut out = vec![0.0; count * HEADS * 32];
            instructions.run(AttentionKernel {
                queries: (heads(&queries), 2..count + 2),
                others: (heads(&others), 2..count + 2),
                out: &mut out,
                scratch: &mut scratch,
            });
            for row in [0, count / 2, count - 1] {
                for head in 0..HEADS {
                    let query = &queries[(row + 2) * 64 + head * 32..][..32];
                    let expected = attend(query, &others, rows, head, count);
                    for (d, expected) in expected.into_iter().enumerate() {
                        assert_close(out[row * 64 + head * 32 + d], expected, 1e-5);
                    }
                }
            }
        }
    }
}

fn attend(query: &[f32], others: &[f32], rows: usize, head: usize, count: usize) -> Vec<f64> {
    let key = |row: usize| &others[(row + 2) * 64 + head * 32..][..32];
    let value = |row: usize| &others[(rows + row + 2) * 64 + head * 32..][..32];
    let dot = |row: usize| {
        query
            .iter()
            .zip(key(row))
            .map(|(a, b)| f64::from(a * b))
            .sum::<f64>()
    };
    let powers: Vec<f64> = (0..count).map(|row| dot(row).exp2()).collect();
    let sum: f64 = powers.iter().sum();
    let mixed = |d: usize| {
        (0..count)
            .map(|row| powers[row] * f64::from(value(row)[d]))
            .sum::<f64>()
    };
    (0..32).map(|d| mixed(d) / sum).collect()
}
