//! A Bloom filter of words, which the build script fills and the program reads: it knows every word that was
//! added, and takes one in some hundreds of the others for one of them.

/// The size of the filter: eleven bits for each of the 45,615 words of the vocabulary.
pub(super) const FILTER_BYTES: usize = 64 * 1024;

/// How many bits stand for a word. With these sizes four to nine make little difference.
const HASHES: u64 = 6;

/// The bits that stand for an ASCII word in any case: the byte of the filter, and the mask of the bit in it.
pub(super) fn bits_of(word: &str) -> impl Iterator<Item = (usize, u8)> {
    // FNV-1a, then the finalizer of SplitMix64, because the upper bits of FNV vary too little for short words.
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for byte in word.bytes() {
        hash = (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01B3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    let (first, step) = (hash & 0xFFFF_FFFF, (hash >> 32) | 1);
    (0..HASHES).map(move |n| {
        let bit = (first + n * step) % (8 * FILTER_BYTES as u64);
        ((bit / 8) as usize, 1 << (bit % 8))
    })
}
