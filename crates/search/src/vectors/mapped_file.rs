//! A file into memory that is read in place.

#![allow(
    unsafe_code,
    reason = "a file is mapped, and its bytes are seen as the plain numbers they are"
)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

/// A whole file, mapped to be read.
pub(super) struct MappedFile(Mmap);

/// A number for which every pattern of bits is a value.
///
/// # Safety
///
/// The type has no padding, no forbidden bit patterns and nothing to drop.
pub(super) unsafe trait PodNumber: Copy {}

// SAFETY: integers and floats have neither padding nor forbidden patterns.
unsafe impl PodNumber for i8 {}
// SAFETY: as above.
unsafe impl PodNumber for u32 {}
// SAFETY: as above.
unsafe impl PodNumber for u64 {}
// SAFETY: as above.
unsafe impl PodNumber for u128 {}
// SAFETY: as above; a pattern that is no number is still a value of the type.
unsafe impl PodNumber for f32 {}

impl MappedFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        // SAFETY: a segment is written once, under a name of its own, and from then on never
        // changed or cut: it is only ever unlinked, which leaves the mapping whole. The folder is
        // the index's own. Whoever else writes into its files in place breaks this, as they would
        // break the lexical index, which is mapped in the same way.
        unsafe { Mmap::map(&file) }.map(Self)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The numbers in a range of bytes. Empty when the range is not in the file or its ends do not
    /// fall between two numbers.
    #[inline]
    pub(super) fn numbers<T: PodNumber>(&self, range: &Range<usize>) -> &[T] {
        let bytes = self.0.get(range.clone()).unwrap_or_default();
        // SAFETY: `T` is plain, so whatever the bytes are, they are values of it; `align_to` sees
        // to alignment and length.
        let (before, numbers, after) = unsafe { bytes.align_to::<T>() };
        if before.is_empty() && after.is_empty() {
            numbers
        } else {
            &[]
        }
    }
}

/// Plain numbers as the bytes they are in memory.
pub(super) fn bytes_of<T: PodNumber>(numbers: &[T]) -> &[u8] {
    // SAFETY: `T` is plain, so each of its bytes is initialised; the length is that of the slice.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_crooked_ranges_are_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("numbers");
        let numbers = [1_u32, 2, u32::MAX];
        std::fs::write(&path, bytes_of(&numbers)).unwrap();
        let map = MappedFile::open(&path).unwrap();
        assert_eq!(map.bytes().len(), 12);
        assert_eq!(map.numbers::<u32>(&(0..12)), numbers);
        assert_eq!(map.numbers::<u32>(&(4..8)), [2]);
        for range in [1..5, 0..6, 8..16, 20..24] {
            assert!(map.numbers::<u32>(&range).is_empty(), "{range:?}");
        }
    }
}
