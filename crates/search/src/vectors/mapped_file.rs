//! Memory-mapped files, read in place as slices of numbers.

#![allow(
    unsafe_code,
    reason = "memory-maps files and reinterprets their bytes as plain numbers"
)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

/// A whole file, memory-mapped read-only.
pub(super) struct MappedFile(Mmap);

/// A plain number type (POD) for which every bit pattern is a valid value.
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
// SAFETY: as above; NaN patterns are values of the type too.
unsafe impl PodNumber for f32 {}

impl MappedFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        // SAFETY: a segment is written once, under a name of its own, and never modified or truncated afterwards. It is
        // only ever unlinked, which leaves the mapping intact. The folder belongs to the index. A foreign process that
        // writes to its files in place would break this, as it would break the lexical index, which is mapped alike.
        unsafe { Mmap::map(&file) }.map(Self)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The numbers in a range of bytes. Empty if the range is not within the file, or if its ends are not aligned to
    /// the number type.
    #[inline]
    pub(super) fn numbers<T: PodNumber>(&self, range: &Range<usize>) -> &[T] {
        let bytes = self.0.get(range.clone()).unwrap_or_default();
        // SAFETY: every bit pattern is a valid `T`; `align_to` takes care of alignment and length.
        let (before, numbers, after) = unsafe { bytes.align_to::<T>() };
        if before.is_empty() && after.is_empty() {
            numbers
        } else {
            &[]
        }
    }
}

/// The bytes of plain numbers as they are in memory, in native byte order.
pub(super) fn bytes_of<T: PodNumber>(numbers: &[T]) -> &[u8] {
    // SAFETY: `T` has no padding, so all of its bytes are initialised; the length is that of the slice.
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
