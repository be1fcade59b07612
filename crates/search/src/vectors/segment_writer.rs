//! Writer of segment files.
//!
//! The sections of a segment are written one after the other, and the rows are read again for each of them. So even the
//! largest merge needs little memory.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use super::mapped_file::bytes_of;
use super::quantization::RabitqCodes;
use super::segment_layout::{ALIGN, GROUP, SegmentHeader, SegmentLayout};
use super::vector_segment::{RowReader, VectorRow};

/// A document to be written: its key, and where its rows can be read.
#[derive(Clone)]
pub(super) struct RowSource<'r> {
    pub key: u128,
    pub rows: &'r dyn RowReader,
    pub range: Range<usize>,
}

/// The size and the checksum of a finished segment file.
pub(super) struct WrittenSegment {
    pub rows: usize,
    pub bytes: u64,
    pub sum: u32,
}

/// Writes `documents`, whose keys ascend, to a new file at `path`, and returns once it is synced to disk.
pub(super) fn write(
    path: &Path,
    dims: usize,
    model: u64,
    documents: &[RowSource<'_>],
) -> io::Result<WrittenSegment> {
    let over = || io::Error::new(io::ErrorKind::InvalidInput, "a segment exceeds its limits");
    let rows: usize = documents.iter().map(|document| document.range.len()).sum();
    let header = SegmentHeader {
        dims: u32::try_from(dims).map_err(|_| over())?,
        documents: u32::try_from(documents.len()).map_err(|_| over())?,
        rows: u32::try_from(rows).map_err(|_| over())?,
        model,
    };
    let layout = SegmentLayout::new(&header).ok_or_else(over)?;
    let mut file = ChecksummedFile::create(path)?;
    file.put(&header.to_bytes())?;
    sections(&mut file, documents, &layout)?;
    file.finish(rows)
}

/// Writes all sections in the order of the layout.
fn sections(
    file: &mut ChecksummedFile,
    documents: &[RowSource<'_>],
    layout: &SegmentLayout,
) -> io::Result<()> {
    for document in documents {
        file.put(bytes_of(&[document.key]))?;
    }
    file.align()?;
    let mut end = 0_u32;
    for document in documents {
        end += u32::try_from(document.range.len()).unwrap_or(u32::MAX);
        file.put(bytes_of(&[end]))?;
    }
    file.align()?;
    each_row(documents, |row| file.put(bytes_of(&row.place)))?;
    file.align()?;
    each_row(documents, |row| file.put(bytes_of(&[row.scale])))?;
    file.align()?;
    let mean = mean(documents, layout)?;
    file.put(bytes_of(&mean))?;
    file.align()?;
    each_row(documents, |row| file.put(bytes_of(row.codes)))?;
    file.align()?;
    groups(file, documents, &mean)?;
    file.align()
}

fn each_row<'r>(
    documents: &[RowSource<'r>],
    mut act: impl FnMut(VectorRow<'r>) -> io::Result<()>,
) -> io::Result<()> {
    for document in documents {
        for at in document.range.clone() {
            let missing = || io::Error::new(io::ErrorKind::InvalidInput, "a row is out of range");
            act(document.rows.row(at).ok_or_else(missing)?)?;
        }
    }
    Ok(())
}

fn mean(documents: &[RowSource<'_>], layout: &SegmentLayout) -> io::Result<Vec<f32>> {
    let mut sums = vec![0.0_f64; layout.stride];
    each_row(documents, |row| {
        for (sum, code) in sums.iter_mut().zip(row.codes) {
            *sum += f64::from(f32::from(*code) * row.scale);
        }
        Ok(())
    })?;
    let count = layout.rows.max(1) as f64;
    Ok(sums.iter().map(|sum| (sum / count) as f32).collect())
}

fn groups(file: &mut ChecksummedFile, documents: &[RowSource<'_>], mean: &[f32]) -> io::Result<()> {
    let mut bits = RabitqCodes::new(mean.len());
    let mut filled = 0;
    each_row(documents, |row| {
        bits.set(filled, row.codes, row.scale, mean);
        filled += 1;
        if filled == GROUP {
            file.put_group(&mut bits)?;
            filled = 0;
        }
        Ok(())
    })?;
    if filled > 0 {
        file.put_group(&mut bits)?;
    }
    Ok(())
}

/// A file being written, with the CRC-32 checksum and the length of what it holds so far.
struct ChecksummedFile {
    file: BufWriter<File>,
    sum: crc32fast::Hasher,
    written: usize,
}

impl ChecksummedFile {
    /// Creates a file, and never overwrites one: an existing file may be memory-mapped.
    fn create(path: &Path) -> io::Result<Self> {
        let file = File::create_new(path)?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 18, file),
            sum: crc32fast::Hasher::new(),
            written: 0,
        })
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.written += bytes.len();
        self.file.write_all(bytes)
    }

    fn put_group(&mut self, bits: &mut RabitqCodes) -> io::Result<()> {
        self.put(bytes_of(&bits.words))?;
        self.put(bytes_of(&bits.factors))?;
        self.put(bytes_of(&bits.offsets))?;
        bits.clear();
        Ok(())
    }

    /// Pads with zeros up to the next section.
    fn align(&mut self) -> io::Result<()> {
        let rest = self.written.next_multiple_of(ALIGN) - self.written;
        self.put([0; ALIGN].get(..rest).unwrap_or_default())
    }

    /// Appends the checksum and syncs the file to disk (fsync).
    fn finish(mut self, rows: usize) -> io::Result<WrittenSegment> {
        let sum = self.sum.clone().finalize();
        self.put(&sum.to_ne_bytes())?;
        let file = self.file.into_inner()?;
        file.sync_all()?;
        Ok(WrittenSegment {
            rows,
            bytes: self.written as u64,
            sum,
        })
    }
}
