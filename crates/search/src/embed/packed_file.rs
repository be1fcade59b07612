//! Reader of compressed files that are built into the program.
//!
//! `build.rs` compresses each file in independent zstd blocks, so that one block can be decompressed without the
//! others. Compression saves an eighth of the size, and decompressing a block takes a ten-thousandth of a second.

use std::ops::Range;
use std::sync::OnceLock;

/// The alignment of long ranges in bytes: a cache line, so that no SIMD load straddles two of them.
const LINE: usize = 64;

/// A file in compressed blocks, each of which is decompressed on first use and then kept. Every block but the last
/// holds `block` bytes, so the block of a byte is found by division.
pub(super) struct PackedFile {
    length: usize,
    block: usize,
    blocks: Vec<PackedBlock>,
}

/// One compressed block. `open` holds its bytes once it was decompressed, or `None` if it turned out to be corrupt.
struct PackedBlock {
    packed: &'static [u8],
    length: usize,
    open: OnceLock<Option<Box<[u8]>>>,
}

impl PackedFile {
    /// Parses the header that `build.rs` wrote; `None` if the file has another layout.
    pub(super) fn new(file: &'static [u8]) -> Option<Self> {
        let (length, file) = file.split_first_chunk()?;
        let (block, mut file) = file.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let block = usize::try_from(u64::from_le_bytes(*block)).ok()?;
        if block == 0 {
            return None;
        }
        let count = length.div_ceil(block);
        // The lengths are taken from the file before anything is allocated, so a wrong header cannot ask for more
        // blocks than the file has room for.
        let lengths = file.split_off(..count.checked_mul(4)?)?;
        let mut blocks = Vec::with_capacity(count);
        for (at, packed) in lengths.as_chunks().0.iter().enumerate() {
            blocks.push(PackedBlock {
                packed: file.split_off(..u32::from_le_bytes(*packed) as usize)?,
                length: (length - at * block).min(block),
                open: OnceLock::new(),
            });
        }
        file.is_empty().then_some(Self {
            length,
            block,
            blocks,
        })
    }

    /// The length of the decompressed file in bytes.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Copies the bytes from offset `at` on. Blocks that are decompressed for it stay in memory.
    pub(super) fn read(&self, mut at: usize, mut into: &mut [u8]) -> Option<()> {
        while !into.is_empty() {
            let block = self.blocks.get(at / self.block)?.open()?;
            // Past the end of the last block there is nothing: without this check the loop would not end.
            let found = block
                .get(at % self.block..)
                .filter(|found| !found.is_empty())?;
            let count = found.len().min(into.len());
            let (now, later) = into.split_at_mut_checked(count)?;
            now.copy_from_slice(found.get(..count)?);
            into = later;
            at += count;
        }
        Some(())
    }

    /// Decompresses a range into one contiguous, cache-line-aligned buffer that lives as long as the program. Blocks
    /// that lie wholly within the range are decompressed straight into the buffer and not kept a second time.
    pub(super) fn leak_range(&self, range: Range<usize>) -> Option<&'static [u8]> {
        let length = range.end.checked_sub(range.start)?;
        if range.end > self.length {
            return None;
        }
        let mut all = vec![0; length + LINE];
        let skipped = all.as_ptr().align_offset(LINE).min(LINE);
        let mut into = all.get_mut(skipped..skipped + length)?;
        let mut at = range.start;
        while !into.is_empty() {
            let block = self.blocks.get(at / self.block)?;
            let before = at % self.block;
            let count = (block.length - before).min(into.len());
            let (now, later) = into.split_at_mut_checked(count)?;
            if count == block.length {
                block.unpack(now)?;
            } else {
                now.copy_from_slice(block.open()?.get(before..before + count)?);
            }
            into = later;
            at += count;
        }
        all.leak().get(skipped..skipped + length)
    }
}

impl PackedBlock {
    fn open(&self) -> Option<&[u8]> {
        let open = self.open.get_or_init(|| {
            let mut bytes = vec![0; self.length].into_boxed_slice();
            self.unpack(&mut bytes).map(|()| bytes)
        });
        open.as_deref()
    }

    fn unpack(&self, into: &mut [u8]) -> Option<()> {
        let written = zstd::bulk::decompress_to_buffer(self.packed, into).ok()?;
        (written == self.length).then_some(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Compresses bytes as `build.rs` does, with blocks of any length.
    pub(in super::super) fn pack(bytes: &[u8], length: usize) -> &'static [u8] {
        let mut head = Vec::from((bytes.len() as u64).to_le_bytes());
        head.extend((length as u64).to_le_bytes());
        let mut body = Vec::new();
        for block in bytes.chunks(length) {
            let block = zstd::bulk::compress(block, 1).unwrap();
            head.extend((block.len() as u32).to_le_bytes());
            body.extend(block);
        }
        [head, body].concat().leak()
    }

    #[test]
    fn every_stretch_is_what_was_packed() {
        let bytes: Vec<u8> = (0..35).collect();
        let file = PackedFile::new(pack(&bytes, 10)).unwrap();
        assert_eq!(file.len(), 35);
        for start in 0..=35 {
            for end in start..=35 {
                let mut into = vec![0; end - start];
                file.read(start, &mut into).unwrap();
                assert_eq!(into, bytes[start..end]);
                let stretch = file.leak_range(start..end).unwrap();
                assert_eq!(stretch, &bytes[start..end]);
                assert!(stretch.is_empty() || stretch.as_ptr().align_offset(LINE) == 0);
            }
        }
        assert!(file.leak_range(0..36).is_none());
        assert!(file.leak_range(36..36).is_none());
        assert!(file.read(35, &mut [0]).is_none());
        assert_eq!(PackedFile::new(pack(&[], 10)).unwrap().len(), 0);
    }

    #[test]
    fn a_file_that_is_not_whole_is_refused() {
        let bytes: Vec<u8> = (0..35).collect();
        let whole = pack(&bytes, 10);
        for end in 0..whole.len() {
            let cut: &'static [u8] = whole[..end].to_vec().leak();
            assert!(PackedFile::new(cut).is_none(), "{end}");
        }
        assert!(PackedFile::new([whole, &[0]].concat().leak()).is_none());
        // A corrupt block is noticed when it is decompressed.
        let mut changed = whole.to_vec();
        let last = changed.len() - 1;
        changed.truncate(last - 8);
        changed.extend([0; 9]);
        let file = PackedFile::new(changed.leak()).unwrap();
        assert!(file.leak_range(30..35).is_none());
        assert!(file.read(30, &mut [0; 5]).is_none());
        assert!(file.read(0, &mut [0; 30]).is_some());
    }
}
