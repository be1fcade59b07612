//! How much memory a JSON text takes once it is parsed, told from the text alone.
//!
//! A parsed value takes up to sixty times the room of its text: the seven bytes of `{"a":0}` become a table with room
//! for three members, about 450 bytes. So the room is reckoned first, and a text that has none is never parsed.

use std::mem::size_of;

use serde_json::Value;

/// The most memory that the JSON of one answer may take. A list of a thousand tools with their schemas takes about 20 MiB.
pub(crate) const MAX_PARSED: usize = 32 * 1024 * 1024;

/// The depth at which the parser gives up.
const MAX_DEPTH: usize = 128;
/// What an allocation takes beside its content, and what the smallest one takes.
const ALLOCATION: usize = 16;
/// A member of an object as `serde_json` keeps it in order: its hash, its name and its value.
const MEMBER: usize = size_of::<u64>() + size_of::<String>() + size_of::<Value>();
/// A slot of the table that finds members by their names: an index and a control byte.
const SLOT: usize = size_of::<usize>() + 1;

/// An open array or object.
struct OpenContainer {
    is_object: bool,
    /// How many items it has room for, and how many it has.
    room: usize,
    items: usize,
}

impl OpenContainer {
    /// What one more item adds: nothing, or what the container grows by.
    fn push(&mut self) -> usize {
        self.items += 1;
        if self.items <= self.room {
            return 0;
        }
        let before = self.bytes();
        self.room = match (self.is_object, self.room) {
            (false, 0) => 4,
            (true, 0) => 3,
            // Tables have 4, 8, 16 … slots and are full at seven eighths of them.
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

/// The memory that a text takes at most once it is parsed, in bytes. Of broken JSON, what a parser builds before it
/// stops is among it.
pub(super) fn memory(text: &[u8]) -> usize {
    let mut total = size_of::<Value>();
    let mut open: Vec<OpenContainer> = Vec::new();
    // Whether a value or a member begins at the next byte that is no blank.
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

/// How many bytes there are up to the quote that ends a string.
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
