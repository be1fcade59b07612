//! Writes Excel workbooks of the format of 1997 for tests: one sheet of text cells in a compound file.

use serde_json::Value as Raw;

use super::formats::text;

const SECTOR_BYTES: usize = 512;
const END_OF_CHAIN: u32 = 0xFFFF_FFFE;
const FREE: u32 = 0xFFFF_FFFF;

/// Writes a workbook whose only row has this value in the column `allowed`, or no such column.
pub(super) fn xls(raw: Option<&Raw>) -> Vec<u8> {
    let value = text(raw);
    let mut cells = vec![(0, 0, "pier"), (0, 1, "text"), (1, 0, "x"), (1, 1, "words")];
    if let Some(value) = &value {
        cells.extend([(0, 2, "allowed"), (1, 2, value)]);
    }
    compound_file(&workbook_stream(&cells))
}

fn record(kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap();
    [&kind.to_le_bytes(), &length.to_le_bytes(), data].concat()
}

/// A Unicode string after its length and the flag for two bytes a character.
fn wide(length: &[u8], text: &str) -> Vec<u8> {
    let units = text.encode_utf16().flat_map(u16::to_le_bytes);
    length.iter().copied().chain([1]).chain(units).collect()
}

fn workbook_stream(cells: &[(u16, u16, &str)]) -> Vec<u8> {
    let begin = |kind: u16| {
        let words = [0x0600, kind, 0, 0, 0, 0, 0, 0];
        record(0x0809, &words.map(u16::to_le_bytes).concat())
    };
    let end = record(0x000A, &[]);
    let name = wide(&[1], "S");
    let globals = |start: u32| {
        let sheet = [&start.to_le_bytes()[..], &[0, 0], &name].concat();
        [begin(0x0005), record(0x0085, &sheet), end.clone()].concat()
    };
    let mut stream = globals(u32::try_from(globals(0).len()).unwrap());
    stream.extend(begin(0x0010));
    for (row, column, text) in cells {
        let length = u16::try_from(text.encode_utf16().count()).unwrap();
        let position = [*row, *column, 0].map(u16::to_le_bytes).concat();
        let label = [position, wide(&length.to_le_bytes(), text)].concat();
        stream.extend(record(0x0204, &label));
    }
    stream.extend(end);
    stream
}

/// Puts the stream into a compound file: a header, the allocation table, the directory, then the stream.
fn compound_file(stream: &[u8]) -> Vec<u8> {
    let sectors = u32::try_from(stream.len().div_ceil(SECTOR_BYTES)).unwrap();
    let mut table = vec![0xFFFF_FFFD, END_OF_CHAIN];
    table.extend((3..sectors + 2).chain([END_OF_CHAIN]));
    let mut out = vec![0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];
    out.resize(24, 0);
    let versions: [u16; 5] = [0x3E, 3, 0xFFFE, 9, 6];
    out.extend(versions.map(u16::to_le_bytes).concat());
    out.resize(44, 0);
    // No stream is small enough for mini sectors: their limit is 0.
    let tables = [1, 1, 0, 0, END_OF_CHAIN, 0, END_OF_CHAIN, 0, 0];
    out.extend(tables.map(u32::to_le_bytes).concat());
    let mut write_words = |words: &[u32]| {
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        out.extend(words);
        let free = FREE.to_le_bytes().into_iter().cycle();
        let missing = (SECTOR_BYTES - out.len() % SECTOR_BYTES) % SECTOR_BYTES;
        out.extend(free.take(missing));
    };
    write_words(&[]);
    write_words(&table);
    let length = u32::try_from(stream.len()).unwrap();
    out.extend(directory_entry("Root Entry", 5, END_OF_CHAIN, 0));
    out.extend(directory_entry("Workbook", 2, 2, length));
    out.extend([0; 256]);
    out.extend(stream);
    out.resize(out.len().next_multiple_of(SECTOR_BYTES), 0);
    out
}

fn directory_entry(name: &str, kind: u8, start: u32, length: u32) -> Vec<u8> {
    let mut out: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let name_bytes = u16::try_from(out.len() + 2).unwrap();
    out.resize(64, 0);
    out.extend(name_bytes.to_le_bytes());
    out.extend([kind, 1]);
    let child = if kind == 5 { 1 } else { FREE };
    out.extend([FREE, FREE, child].map(u32::to_le_bytes).concat());
    out.resize(116, 0);
    out.extend([start, length, 0].map(u32::to_le_bytes).concat());
    out
}
