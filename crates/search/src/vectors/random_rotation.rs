//! A vector into the same vector seen from a random angle.
//!
//! Models put much of what they say into few of their numbers. Turned at random, every number
//! carries about as much as any other, and eight bits or one bit for each of them lose little.
//! Lengths and the angles between vectors stay as they were.

/// Where the signs of the turn come from. Part of the format: with another one, vectors on disk
/// would be misread.
const SEED: u64 = 0x646f_6365_6e74_0001;

/// How often signs are drawn and numbers mixed. Two rounds already touch every number; two more
/// make the result look alike whatever went in.
const ROUNDS: usize = 4;

/// One turn for all vectors of a number of dimensions.
pub(super) struct RandomRotation {
    /// Plus or minus one for each number in each round.
    signs: Vec<Vec<f32>>,
    /// How many numbers one round mixes: the largest power of two that fits.
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

    /// Turns `vector` in place. It has as many numbers as the rotation was made for.
    pub(super) fn rotate(&self, vector: &mut [f32]) {
        for (round, signs) in self.signs.iter().enumerate() {
            for (number, sign) in vector.iter_mut().zip(signs) {
                *number *= sign;
            }
            // The front and the back by turns, which overlap unless they are the same.
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
    /// Turns `vector` back as it was before.
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

/// The Walsh-Hadamard transform, scaled so that lengths stay. The length is a power of two.
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

/// The next of a row of numbers that look random (splitmix64).
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
    fn what_is_turned_can_be_turned_back() {
        for dims in [1, 2, 3, 64, 100, 256, 384, 768] {
            let rotation = RandomRotation::new(dims);
            let vector: Vec<f32> = (0..dims).map(|i| (i as f32 * 0.37).sin()).collect();
            let mut turned = vector.clone();
            rotation.rotate(&mut turned);
            rotation.rotate_back(&mut turned);
            let is_same = turned
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
        // Another sum means that vectors written before are misread: count the format up.
        assert_eq!(sum, 3_932_590_397, "{vector:?}");
    }
}
