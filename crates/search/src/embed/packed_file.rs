//! Files that are packed inside the program into their bytes, block by block as they are needed. `build.rs` packs them:
//! it takes an eighth off them, and opening a block costs a ten-thousandth of a second.

use std::ops::Range;
use std::sync::OnceLock;

/// Where bytes start that are read in long stretches: on a cache line, so that no load straddles two.
const LINE: usize = 64;

/// A packed file.
pub(super) struct PackedFile {
    length: usize,
    /// How many bytes each block has, but for the last.
    block: usize,
    blocks: Vec<PackedBlock>,
}

struct PackedBlock {
    packed: &'static [u8],
    length: usize,
    open: OnceLock<Option<Box<[u8]>>>,
}

impl PackedFile {
    /// A file that `build.rs` wrote; nothing if it is another.
    pub(super) fn new(file: &'static [u8]) -> Option<Self> {
        let (length, file) = file.split_first_chunk()?;
        let (block, mut file) = file.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let block = usize::try_from(u64::from_le_bytes(*block)).ok()?;
        if block == 0 {
            return None;
        }
        let count = length.div_ceil(block);
        // Each block has its length here, so that no more room is made than the file has.
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

    /// How many bytes the file has.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Copies the bytes from a place on; what was opened for it stays open.
    pub(super) fn read(&self, mut at: usize, mut into: &mut [u8]) -> Option<()> {
        while !into.is_empty() {
            let block = self.blocks.get(at / self.block)?.open()?;
            // The last block is shorter: behind its end there is nothing, and never will be.
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

    /// A stretch in one piece, for as long as the program runs.
    pub(super) fn leak_range(&self, wanted: Range<usize>) -> Option<&'static [u8]> {
        let length = wanted.end.checked_sub(wanted.start)?;
        if wanted.end > self.length {
            return None;
        }
        let mut all = vec![0; length + LINE];
        let skipped = all.as_ptr().align_offset(LINE).min(LINE);
        let mut into = all.get_mut(skipped..skipped + length)?;
        let mut at = wanted.start;
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
        let wrote = zstd::bulk::decompress_to_buffer(self.packed, into).ok()?;
        (wrote == self.length).then_some(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// As `build.rs` writes it, with blocks of any length.
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
        // A block that does not hold what it should is noticed when it is opened.
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
