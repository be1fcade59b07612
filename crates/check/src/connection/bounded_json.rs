//! Upper bound for the memory that a JSON text takes once it is parsed, estimated from the text alone.
//!
//! A parsed value takes up to sixty times the size of its text: the seven bytes of `{"a":0}` become a hash table with a
//! capacity of three, about 450 bytes. So the memory is estimated first, and a text over the limit is never parsed.

use std::mem::size_of;

use serde_json::Value;

/// The most memory that the JSON of one response may take. A list of a thousand tools with schemas takes about 20 MiB.
pub(crate) const MAX_PARSED: usize = 32 * 1024 * 1024;

/// The nesting depth at which `serde_json` gives up.
const MAX_DEPTH: usize = 128;
/// The overhead of an allocation, and the size of the smallest one.
const ALLOCATION: usize = 16;
/// A member of an object as `serde_json` keeps it in order: its hash, its name and its value.
const MEMBER: usize = size_of::<u64>() + size_of::<String>() + size_of::<Value>();
/// A slot of the hash table over the member names: an index and a control byte.
const SLOT: usize = size_of::<usize>() + 1;

/// An array or object that is not closed yet, with its allocated capacity and its number of items.
struct OpenContainer {
    is_object: bool,
    room: usize,
    items: usize,
}

impl OpenContainer {
    /// Adds an item and returns the bytes by which the container grows: zero while there is capacity left.
    fn push(&mut self) -> usize {
        self.items += 1;
        if self.items <= self.room {
            return 0;
        }
        let before = self.bytes();
        self.room = match (self.is_object, self.room) {
            (false, 0) => 4,
            (true, 0) => 3,
            // Hash tables have 4, 8, 16 … slots and a load factor of seven eighths.
            (true, 3) => 7,
            (_, room) => room * 2,
        };
        self.bytes() - before
    }

    fn bytes(&self) -> usize {
        match (self.is_object, self.room) {
            (_, 0) => 0,
            (false, room) => room * size_of::<Value>() + ALLOCATION,
            (true, room) => {
                let slots = (room + 1).next_power_of_two();
                room * MEMBER + slots * SLOT + 3 * ALLOCATION
            }
        }
    }
}

/// The most memory that a text takes once it is parsed, in bytes. For malformed JSON, this includes what the parser
/// builds before it stops.
pub(super) fn memory(text: &[u8]) -> usize {
    let mut total = size_of::<Value>();
    let mut open: Vec<OpenContainer> = Vec::new();
    // Whether a value or a member begins at the next byte that is not white space.
    let mut begins = true;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        if byte.is_ascii_whitespace() {
            continue;
        }
        if begins
            && !matches!(byte, b']' | b'}')
            && let Some(container) = open.last_mut()
        {
            total = total.saturating_add(container.push());
        }
        begins = false;
        match byte {
            b'"' => {
                let length = string_length(text.get(at..).unwrap_or_default());
                at += length + 1;
                total = total.saturating_add(length.next_multiple_of(ALLOCATION) + ALLOCATION);
            }
            b'[' | b'{' => {
                if open.len() == MAX_DEPTH {
                    break;
                }
                open.push(OpenContainer {
                    is_object: *byte == b'{',
                    room: 0,
                    items: 0,
                });
                begins = true;
            }
            b']' | b'}' => drop(open.pop()),
            b',' => begins = true,
            _ => {}
        }
    }
    total
}

/// The number of bytes up to the quote that ends a string, or to the end of the text.
fn string_length(text: &[u8]) -> usize {
    let mut is_escaped = false;
    let ends = |byte: &u8| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    };
    text.iter().position(ends).unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
