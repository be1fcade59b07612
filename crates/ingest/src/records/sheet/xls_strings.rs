//! String formats of old Excel workbooks: short, long and legacy strings, and the shared string table,
//! which spans several records and may change its character width at every record boundary.

use encoding_rs::Encoding;

use super::cfb::{u16_at, u32_at};
use super::xls::BiffRecordReader;

/// The most strings in one table; a hostile file can hold one in every three bytes.
const MOST_STRINGS: usize = 4_000_000;

/// A string with a one-byte length.
pub(super) fn short_string(data: &[u8]) -> Option<String> {
    let (length, wide) = (usize::from(*data.first()?), data.get(1)? & 1 != 0);
    Some(decode(data.get(2..)?, length, wide))
}

/// A string with a two-byte length.
pub(super) fn long_string(data: &[u8]) -> Option<String> {
    let length = usize::from(u16_at(data, 0)?);
    if length == 0 {
        return Some(String::new());
    }
    let wide = data.get(2)? & 1 != 0;
    Some(decode(data.get(3..)?, length, wide))
}

/// A string from before Unicode, with its length in `size` bytes.
pub(super) fn legacy_string(
    data: &[u8],
    size: usize,
    encoding: &'static Encoding,
) -> Option<String> {
    let length = match size {
        1 => usize::from(*data.first()?),
        _ => usize::from(u16_at(data, 0)?),
    };
    let bytes = data.get(size..)?;
    let bytes = bytes.get(..length).unwrap_or(bytes);
    Some(encoding.decode_without_bom_handling(bytes).0.into_owned())
}

/// Decodes `length` characters, or as many as there are.
fn decode(data: &[u8], length: usize, wide: bool) -> String {
    if wide {
        let units = data.chunks_exact(2).take(length);
        let units: Vec<u16> = units.filter_map(|two| u16_at(two, 0)).collect();
        String::from_utf16_lossy(&units)
    } else {
        data.iter()
            .take(length)
            .map(|byte| char::from(*byte))
            .collect()
    }
}

/// Reads the shared string table from its first record and the records that continue it.
pub(super) fn shared_strings<'a>(
    first: &'a [u8],
    records: &mut BiffRecordReader<'a>,
) -> Vec<String> {
    const CONTINUE: u16 = 0x003C;
    let mut parts = vec![first.get(8..).unwrap_or_default()];
    while records.peek() == Some(CONTINUE) {
        let Some(record) = records.next() else { break };
        parts.push(record.data);
    }
    let mut table = SharedStringTable {
        parts: parts.into_iter(),
        rest: &[],
    };
    let mut strings = Vec::new();
    while strings.len() < MOST_STRINGS {
        let Some(text) = table.string() else { break };
        strings.push(text);
    }
    strings
}

struct SharedStringTable<'a> {
    parts: std::vec::IntoIter<&'a [u8]>,
    rest: &'a [u8],
}

impl SharedStringTable<'_> {
    /// Advances to the next record when the current one is used up.
    fn fill(&mut self) -> Option<()> {
        while self.rest.is_empty() {
            self.rest = self.parts.next()?;
        }
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        self.fill()?;
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn number(&mut self, bytes: usize) -> Option<u32> {
        let mut four = [0; 4];
        for slot in four.iter_mut().take(bytes) {
            *slot = self.byte()?;
        }
        u32_at(&four, 0)
    }

    fn skip(&mut self, mut bytes: usize) -> Option<()> {
        while bytes > 0 {
            self.fill()?;
            let now = bytes.min(self.rest.len());
            self.rest = self.rest.get(now..)?;
            bytes -= now;
        }
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        let length = usize::try_from(self.number(2)?).ok()?;
        let flags = self.byte()?;
        let runs = if flags & 8 != 0 { self.number(2)? } else { 0 };
        let extra = if flags & 4 != 0 { self.number(4)? } else { 0 };
        let text = self.characters(length, flags & 1 != 0)?;
        self.skip(usize::try_from(runs).ok()? * 4)?;
        self.skip(usize::try_from(extra).ok()?)?;
        Some(text)
    }

    /// Reads the characters of one string. They may continue in the next record, which states its own
    /// width.
    fn characters(&mut self, mut length: usize, mut wide: bool) -> Option<String> {
        let mut text = String::new();
        while length > 0 {
            if self.rest.is_empty() {
                wide = self.byte()? & 1 != 0;
            }
            let width = if wide { 2 } else { 1 };
            let now = length.min(self.rest.len() / width);
            if now == 0 {
                return None;
            }
            text.push_str(&decode(self.rest, now, wide));
            self.rest = self.rest.get(now * width..)?;
            length -= now;
        }
        Some(text)
    }
}
