//! Validation of a Parquet file before the parquet crate reads it: the depth of the schema, the unpacked
//! size of the pages and the claimed size of dictionaries. All three are claims in the file, and the crate
//! trusts them.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaData;

use super::damaged;
use super::thrift::{STRUCT, ThriftCompactReader};
use crate::error::IngestError;
use crate::limits::Limits;

/// The deepest nesting of groups in a schema.
const MOST_LEVELS: usize = 32;

/// Flat cost of a page besides its content, so that the number of empty pages is bounded too.
const PAGE_BYTES: u64 = 64;

/// Bounds the schema's depth and size by reading only the footer. The parquet crate recurses once per
/// schema level and would overflow its stack.
pub(super) fn check_schema(bytes: &[u8], limits: &Limits) -> Result<(), IngestError> {
    let footer = footer(bytes).ok_or_else(|| damaged("footer"))?;
    let depth_and_count = schema(footer).ok_or_else(|| damaged("footer"))?;
    let (depth, count) = depth_and_count;
    if depth > MOST_LEVELS {
        return Err(IngestError::TooNested { limit: MOST_LEVELS });
    }
    // Groups are schema elements too; four elements per allowed column leave enough room for real schemas.
    let limit = limits.max_columns;
    if count > (limit as u64).saturating_mul(4).saturating_add(1) {
        return Err(IngestError::TooManyColumns { limit });
    }
    Ok(())
}

fn footer(bytes: &[u8]) -> Option<&[u8]> {
    let (rest, tail) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
    let (length, mark) = tail.split_at_checked(4)?;
    let length = u32::from_le_bytes(length.try_into().ok()?);
    let start = rest.len().checked_sub(usize::try_from(length).ok()?)?;
    (mark == b"PAR1").then(|| rest.get(start..))?
}

/// Depth of the schema and number of its elements.
fn schema(footer: &[u8]) -> Option<(usize, u64)> {
    const SCHEMA: i64 = 2;
    let mut compact = ThriftCompactReader::new(footer);
    let mut before = 0;
    while let Some((number, kind)) = compact.field(before)? {
        before = number;
        if number != SCHEMA {
            compact.skip(kind)?;
            continue;
        }
        let (count, kind) = compact.list()?;
        if kind != STRUCT {
            return None;
        }
        // The number of children that each open group still lacks.
        let mut open: Vec<i64> = Vec::new();
        let mut deepest = 0;
        for _ in 0..count {
            let children = children(&mut compact)?;
            while open.last() == Some(&0) {
                open.pop();
            }
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            if children > 0 {
                open.push(children);
            }
            deepest = deepest.max(open.len());
            if deepest > MOST_LEVELS {
                break;
            }
        }
        return Some((deepest, count));
    }
    None
}

/// The number of children of one schema element.
fn children(compact: &mut ThriftCompactReader<'_>) -> Option<i64> {
    const CHILDREN: i64 = 5;
    let (mut before, mut children) = (0, 0);
    while let Some((number, kind)) = compact.field(before)? {
        before = number;
        if number == CHILDREN {
            children = compact.number()?;
        } else {
            compact.skip(kind)?;
        }
    }
    Some(children.max(0))
}

/// Decompression bomb check: adds up what all pages unpack to. For codecs where the crate ignores the
/// announced size, the page is unpacked here first and its bytes counted.
pub(super) fn check_pages(
    bytes: &[u8],
    metadata: &ParquetMetaData,
    limits: &Limits,
) -> Result<(), IngestError> {
    let limit = limits.max_unpacked_bytes;
    let mut left = limit;
    let mut rows = 0_u64;
    for group in metadata.row_groups() {
        // Row groups after the last record within the limit are never unpacked.
        if rows > limits.max_records as u64 {
            break;
        }
        rows = rows.saturating_add(u64::try_from(group.num_rows()).unwrap_or(0));
        for column in group.columns() {
            let (start, length) = column.byte_range();
            let chunk = usize::try_from(start).ok().and_then(|start| {
                let rest = bytes.get(start..)?;
                rest.get(..usize::try_from(length).ok()?)
            });
            let chunk = chunk.ok_or_else(|| damaged("footer"))?;
            let chunk = ParquetColumnChunk {
                pages: chunk,
                codec: column.compression(),
                repeats: column.column_descr().max_rep_level() > 0,
            };
            left = chunk
                .unpacked(left)
                .ok_or_else(|| damaged("page header"))?
                .ok_or(IngestError::TooMuchInside { limit })?;
        }
    }
    Ok(())
}

/// The pages of one column in one row group.
pub(super) struct ParquetColumnChunk<'a> {
    pub pages: &'a [u8],
    pub codec: Compression,
    /// Whether a row can hold many values of this column. Only then does the number of values count, which
    /// a page can claim by the thousand million in a few bytes.
    pub repeats: bool,
}

/// What one list value takes in memory while its row is assembled.
const VALUE_BYTES: u64 = 32;

impl ParquetColumnChunk<'_> {
    /// What remains of the budget `left` after these pages. The inner `None` means that the budget is
    /// exceeded, the outer one that the pages cannot be read.
    pub(super) fn unpacked(&self, mut left: u64) -> Option<Option<u64>> {
        let mut rest = self.pages;
        while !rest.is_empty() {
            let mut compact = ThriftCompactReader::new(rest);
            let page = ParquetPageHeader::read(&mut compact)?;
            let from = rest.len() - compact.remaining();
            let content = rest.get(from..from.checked_add(page.compressed)?)?;
            // A dictionary cannot hold more values than it has bits.
            if page.dictionary_values > page.unpacked.saturating_mul(8) {
                return None;
            }
            let bytes = page.unpacked.max(unpacked(content, self.codec, left));
            let values = if self.repeats { page.values } else { 0 };
            let cost = bytes
                .saturating_add(values.saturating_mul(VALUE_BYTES))
                .saturating_add(PAGE_BYTES);
            let Some(after) = left.checked_sub(cost) else {
                return Some(None);
            };
            left = after;
            rest = rest.get(from + page.compressed..)?;
        }
        Some(Some(left))
    }
}

/// Counts the bytes that a page unpacks to, up to one more than `left`. Returns 0 for codecs where the
/// crate itself enforces the announced size.
fn unpacked(content: &[u8], codec: Compression, left: u64) -> u64 {
    let count = |reader: &mut dyn Read| {
        let mut counted = reader.take(left.saturating_add(1));
        // A truncated page counts with the bytes that came out of it.
        let _ = std::io::copy(&mut counted, &mut std::io::sink());
        left.saturating_add(1) - counted.limit()
    };
    match codec {
        Compression::GZIP(_) => count(&mut MultiGzDecoder::new(content)),
        Compression::BROTLI(_) => {
            count(&mut brotli_decompressor::Decompressor::new(content, 4_096))
        }
        _ => 0,
    }
}

struct ParquetPageHeader {
    unpacked: u64,
    compressed: usize,
    /// The number of values that a data page claims, and that a dictionary page claims.
    values: u64,
    dictionary_values: u64,
}

impl ParquetPageHeader {
    fn read(compact: &mut ThriftCompactReader<'_>) -> Option<Self> {
        const UNPACKED: i64 = 2;
        const COMPRESSED: i64 = 3;
        const DATA: i64 = 5;
        const DICTIONARY: i64 = 7;
        const DATA_2: i64 = 8;
        let mut page = Self {
            unpacked: 0,
            compressed: 0,
            values: 0,
            dictionary_values: 0,
        };
        let mut before = 0;
        while let Some((number, kind)) = compact.field(before)? {
            before = number;
            match number {
                UNPACKED => page.unpacked = compact.number()?.try_into().ok()?,
                COMPRESSED => page.compressed = compact.number()?.try_into().ok()?,
                DATA | DATA_2 if kind == STRUCT => page.values = first_number(compact)?,
                DICTIONARY if kind == STRUCT => page.dictionary_values = first_number(compact)?,
                _ => compact.skip(kind)?,
            }
        }
        Some(page)
    }
}

/// Field 1 of a struct, an integer; the other fields are skipped.
fn first_number(compact: &mut ThriftCompactReader<'_>) -> Option<u64> {
    let (mut before, mut found) = (0, 0);
    while let Some((number, kind)) = compact.field(before)? {
        before = number;
        if number == 1 {
            found = compact.number()?.try_into().ok()?;
        } else {
            compact.skip(kind)?;
        }
    }
    Some(found)
}
