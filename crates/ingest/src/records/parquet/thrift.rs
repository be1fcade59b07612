//! Minimal reader of the Thrift compact protocol, enough to check the claims in a Parquet file before the
//! parquet crate trusts them. It keeps numbers only and skips everything else.

/// A cursor over bytes in the Thrift compact protocol.
pub(super) struct ThriftCompactReader<'a> {
    rest: &'a [u8],
}

/// The deepest nesting of structs and lists that is skipped; deeper data is an error.
const MOST_LEVELS: u8 = 32;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
pub(super) const STRUCT: u8 = 12;

impl<'a> ThriftCompactReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes have not been read yet.
    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A signed integer: a zigzag-encoded varint.
    pub(super) fn number(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// The header of a struct's next field: its id and type, given the id of the field before, because ids
    /// are delta-encoded. The inner `None` marks the end of the struct.
    pub(super) fn field(&mut self, before: i64) -> Option<Option<(i64, u8)>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        let (step, kind) = (i64::from(byte >> 4), byte & 0x0F);
        let number = if step == 0 {
            self.number()?
        } else {
            before.checked_add(step)?
        };
        Some(Some((number, kind)))
    }

    /// A list header: the length and the type of its elements.
    pub(super) fn list(&mut self) -> Option<(u64, u8)> {
        let byte = self.byte()?;
        let size = match byte >> 4 {
            15 => self.varint()?,
            size => u64::from(size),
        };
        Some((size, byte & 0x0F))
    }

    pub(super) fn skip(&mut self, kind: u8) -> Option<()> {
        self.skip_within(kind, MOST_LEVELS)
    }

    /// Recurses once per level, bounded by `levels`.
    fn skip_within(&mut self, kind: u8, levels: u8) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        match kind {
            TRUE | FALSE => {}
            BYTE => drop(self.byte()?),
            DOUBLE => self.skip_bytes(8)?,
            BINARY => {
                let length = self.varint()?;
                self.skip_bytes(length)?;
            }
            LIST | SET => {
                let (size, kind) = self.list()?;
                for _ in 0..size {
                    self.skip_element(kind, levels)?;
                }
            }
            MAP => {
                let size = self.varint()?;
                let kinds = if size == 0 { 0 } else { self.byte()? };
                for _ in 0..size {
                    self.skip_element(kinds >> 4, levels)?;
                    self.skip_element(kinds & 0x0F, levels)?;
                }
            }
            STRUCT => {
                let mut before = 0;
                while let Some((number, kind)) = self.field(before)? {
                    self.skip_within(kind, levels)?;
                    before = number;
                }
            }
            _ => drop(self.varint()?),
        }
        Some(())
    }

    /// A boolean takes a byte of its own inside a list, so a list's claimed length is always backed by
    /// bytes.
    fn skip_element(&mut self, kind: u8, levels: u8) -> Option<()> {
        match kind {
            TRUE | FALSE => self.byte().map(drop),
            other => self.skip_within(other, levels),
        }
    }

    fn skip_bytes(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        Some(())
    }
}
