//! Documents with their rows into a segment file that lasts.
//!
//! The parts are written one after the other from front to back, so that even the largest merge
//! needs little memory: the rows are read again for each part.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use super::mapped_file::bytes_of;
use super::quantization::RabitqCodes;
use super::segment_layout::{ALIGN, GROUP, SegmentHeader, SegmentLayout};
use super::vector_segment::{RowReader, VectorRow};

/// A document to be written, and where its rows are.
#[derive(Clone)]
pub(super) struct RowSource<'r> {
    pub key: u128,
    pub rows: &'r dyn RowReader,
    pub range: Range<usize>,
}

/// What became of a draft.
pub(super) struct WrittenSegment {
    pub rows: usize,
    pub bytes: u64,
    pub sum: u32,
}

/// Writes `documents`, whose keys ascend, to a new file at `path` and returns once it lasts.
pub(super) fn write(
    path: &Path,
    (dims, model): (usize, u64),
    documents: &[RowSource<'_>],
) -> io::Result<WrittenSegment> {
    let over = || io::Error::new(io::ErrorKind::InvalidInput, "a segment over its limits");
    let rows: usize = documents.iter().map(|document| document.range.len()).sum();
    let header = SegmentHeader {
        dims: u32::try_from(dims).map_err(|_| over())?,
        documents: u32::try_from(documents.len()).map_err(|_| over())?,
        rows: u32::try_from(rows).map_err(|_| over())?,
        model,
    };
    let layout = SegmentLayout::new(&header).ok_or_else(over)?;
    let mut sheet = ChecksummedFile::create(path)?;
    sheet.put(&header.to_bytes())?;
    parts(&mut sheet, documents, &layout)?;
    sheet.finish(rows)
}

/// All parts, in the order of the layout.
fn parts(
    sheet: &mut ChecksummedFile,
    documents: &[RowSource<'_>],
    layout: &SegmentLayout,
) -> io::Result<()> {
    for document in documents {
        sheet.put(bytes_of(&[document.key]))?;
    }
    sheet.align()?;
    let mut end = 0_u32;
    for document in documents {
        end += u32::try_from(document.range.len()).unwrap_or(u32::MAX);
        sheet.put(bytes_of(&[end]))?;
    }
    sheet.align()?;
    each_row(documents, |row| sheet.put(bytes_of(&row.place)))?;
    sheet.align()?;
    each_row(documents, |row| sheet.put(bytes_of(&[row.scale])))?;
    sheet.align()?;
    let mean = mean(documents, layout)?;
    sheet.put(bytes_of(&mean))?;
    sheet.align()?;
    each_row(documents, |row| sheet.put(bytes_of(row.codes)))?;
    sheet.align()?;
    groups(sheet, documents, &mean)?;
    sheet.align()
}

fn each_row<'r>(
    documents: &[RowSource<'r>],
    mut act: impl FnMut(VectorRow<'r>) -> io::Result<()>,
) -> io::Result<()> {
    for document in documents {
        for at in document.range.clone() {
            let gone = || io::Error::new(io::ErrorKind::InvalidInput, "a row that is not there");
            act(document.rows.row(at).ok_or_else(gone)?)?;
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

fn groups(
    sheet: &mut ChecksummedFile,
    documents: &[RowSource<'_>],
    mean: &[f32],
) -> io::Result<()> {
    let mut bits = RabitqCodes::new(mean.len());
    let mut filled = 0;
    each_row(documents, |row| {
        bits.set(filled, (row.codes, row.scale), mean);
        filled += 1;
        if filled == GROUP {
            sheet.put_group(&mut bits)?;
            filled = 0;
        }
        Ok(())
    })?;
    if filled > 0 {
        sheet.put_group(&mut bits)?;
    }
    Ok(())
}

/// A file being written, and the sum of what is in it so far.
struct ChecksummedFile {
    file: BufWriter<File>,
    sum: crc32fast::Hasher,
    written: usize,
}

impl ChecksummedFile {
    /// Never writes over a file: whatever is there may be mapped.
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

    /// Zeros up to the beginning of the next part.
    fn align(&mut self) -> io::Result<()> {
        let rest = self.written.next_multiple_of(ALIGN) - self.written;
        self.put([0; ALIGN].get(..rest).unwrap_or_default())
    }

    /// The sum, then everything to the disk itself.
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
