//! Random rotation of vectors before quantization: a randomized Walsh–Hadamard transform.
//!
//! Models concentrate much of their information in few dimensions. After a random rotation every dimension carries
//! about as much as any other, so quantization to eight bits or to one bit loses little. A rotation is orthogonal:
//! lengths and the angles between vectors stay the same.

/// The seed of the random signs. It is part of the file format: with another one, vectors on disk would be misread.
const SEED: u64 = 0x646f_6365_6e74_0001;

/// How many rounds of sign flips and transforms a rotation has. Two rounds already mix every dimension; two more make
/// the result evenly spread whatever the input.
const ROUNDS: usize = 4;

/// The random rotation for vectors of one number of dimensions, the same for all models.
pub(super) struct RandomRotation {
    /// Random signs, plus or minus one, for each round and dimension.
    signs: Vec<Vec<f32>>,
    /// How many dimensions one round transforms: the largest power of two that fits.
    mixed: usize,
    dims: usize,
}

impl RandomRotation {
    pub(super) fn new(dims: usize) -> Self {
        let mut state = SEED ^ dims as u64;
        let mut sign = || {
            if splitmix64(&mut state) & 1 == 0 {
                1.0
            } else {
                -1.0
            }
        };
        let signs = (0..ROUNDS)
            .map(|_| (0..dims).map(|_| sign()).collect())
            .collect();
        let mixed = if dims == 0 { 0 } else { 1 << dims.ilog2() };
        Self { signs, mixed, dims }
    }

    /// Rotates `vector` in place. It must have the dimensions of the rotation.
    pub(super) fn rotate(&self, vector: &mut [f32]) {
        for (round, signs) in self.signs.iter().enumerate() {
            for (number, sign) in vector.iter_mut().zip(signs) {
                *number *= sign;
            }
            // Rounds alternate between the front and the back of the vector, which overlap unless they are the same.
            let from = if round % 2 == 0 {
                0
            } else {
                self.dims - self.mixed
            };
            if let Some(part) = vector.get_mut(from..from + self.mixed) {
                walsh_hadamard(part);
            }
        }
    }
}

impl RandomRotation {
    /// Applies the inverse rotation to `vector` in place.
    pub(super) fn rotate_back(&self, vector: &mut [f32]) {
        for (round, signs) in self.signs.iter().enumerate().rev() {
            let from = if round % 2 == 0 {
                0
            } else {
                self.dims - self.mixed
            };
            if let Some(part) = vector.get_mut(from..from + self.mixed) {
                walsh_hadamard(part);
            }
            for (number, sign) in vector.iter_mut().zip(signs) {
                *number *= sign;
            }
        }
    }
}

/// The fast Walsh–Hadamard transform, scaled to be orthogonal. The length must be a power of two.
fn walsh_hadamard(part: &mut [f32]) {
    let mut half = 1;
    while half < part.len() {
        for pair in part.chunks_exact_mut(half * 2) {
            let (left, right) = pair.split_at_mut(half);
            for (a, b) in left.iter_mut().zip(right) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
    let scale = 1.0 / (part.len() as f32).sqrt();
    for number in part {
        *number *= scale;
    }
}

/// The next number of the splitmix64 pseudo-random generator.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(left: &[f32], right: &[f32]) -> f32 {
        left.iter().zip(right).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn a_rotation_can_be_reversed() {
        for dims in [1, 2, 3, 64, 100, 256, 384, 768] {
            let rotation = RandomRotation::new(dims);
            let vector: Vec<f32> = (0..dims).map(|i| (i as f32 * 0.37).sin()).collect();
            let mut rotated = vector.clone();
            rotation.rotate(&mut rotated);
            rotation.rotate_back(&mut rotated);
            let is_same = rotated
                .iter()
                .zip(&vector)
                .all(|(a, b)| (a - b).abs() < 1e-4);
            assert!(is_same, "{dims}");
        }
    }

    #[test]
    fn lengths_and_angles_stay() {
        for dims in [1, 2, 3, 64, 100, 256, 384, 768, 4096] {
            let rotation = RandomRotation::new(dims);
            let mut left: Vec<f32> = (0..dims).map(|i| (i as f32 * 0.37).sin()).collect();
            let mut right: Vec<f32> = (0..dims).map(|i| (i as f32 * 0.11).cos()).collect();
            let before = [dot(&left, &left), dot(&left, &right), dot(&right, &right)];
            rotation.rotate(&mut left);
            rotation.rotate(&mut right);
            let after = [dot(&left, &left), dot(&left, &right), dot(&right, &right)];
            for (before, after) in before.iter().zip(after) {
                assert!((before - after).abs() < 1e-3 * dims as f32, "{dims}");
            }
        }
    }

    #[test]
    fn one_loud_number_is_spread_over_all() {
        for dims in [256, 384, 1000] {
            for loud in [0, dims / 2, dims - 1] {
                let mut vector = vec![0.0; dims];
                vector[loud] = 1.0;
                RandomRotation::new(dims).rotate(&mut vector);
                let largest = vector.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
                assert!(largest < 0.3, "{dims} {loud}: {largest}");
            }
        }
    }

    #[test]
    fn the_turn_never_changes() {
        let mut vector = vec![0.0; 6];
        vector[0] = 1.0;
        RandomRotation::new(6).rotate(&mut vector);
        let bits = vector.iter().flat_map(|x| x.to_le_bytes());
        let sum = crc32fast::hash(&bits.collect::<Vec<_>>());
        // A different checksum means that vectors written before would be misread: raise the format version.
        assert_eq!(sum, 3_932_590_397, "{vector:?}");
    }
}
