//! Bounds how often a page draws form XObjects. A form may draw other forms, so a few nested lines can ask
//! for exponentially much work.

use std::collections::HashMap;

use hayro_interpret::hayro_syntax::object::{Dict, Name, ObjectIdentifier, Stream};
use hayro_interpret::hayro_syntax::page::Page;
use memchr::memmem;

use crate::error::IngestError;

/// The most form draws of one page, each repetition counted.
pub(super) const MAX_DRAWN: u64 = 1_000_000;

/// How deep nested forms are followed; the interpreter stops at the same depth. Counting further than it draws would
/// reject pages that are harmless, and counting less far would let through pages that take for ever.
const MAX_DEPTH: usize = 50;

/// The most distinct forms counted in one content stream.
const MAX_NAMES: usize = 10_000;

/// The most bytes of a form's name.
const MAX_NAME_BYTES: usize = 128;

/// Counts draws transitively. The memo table holds the count of each form already seen, so that shared
/// forms are counted once.
#[derive(Default)]
pub(super) struct FormDrawCounter {
    memo: HashMap<ObjectIdentifier, u64>,
}

impl FormDrawCounter {
    /// Rejects a page that draws more than [`MAX_DRAWN`] forms.
    pub(super) fn check(&mut self, page: &Page<'_>) -> Result<(), IngestError> {
        let names = &page.resources().x_objects;
        if names.is_empty() {
            return Ok(());
        }
        let content = page.page_stream().unwrap_or_default();
        if self.count_draws(content, names, MAX_DEPTH) > MAX_DRAWN {
            return Err(IngestError::TooMuchInside { limit: MAX_DRAWN });
        }
        Ok(())
    }

    /// How many forms `content` draws, nested ones included. It recurses once per level, bounded by
    /// `depth`.
    fn count_draws(&mut self, content: &[u8], names: &Dict<'_>, depth: usize) -> u64 {
        let mut calls: HashMap<&[u8], u64> = HashMap::new();
        for at in memmem::find_iter(content, b"Do") {
            if let Some(name) = name_before(content, at)
                && (calls.len() < MAX_NAMES || calls.contains_key(name))
            {
                *calls.entry(name).or_default() += 1;
            }
        }
        let mut drawn: u64 = 0;
        for (name, count) in calls {
            let form = Name::new(name).and_then(|name| names.get::<Stream<'_>>(&*name));
            let cost = form.map_or(0, |form| self.cost(&form, names, depth));
            drawn = drawn.saturating_add(count.saturating_mul(cost.saturating_add(1)));
        }
        drawn
    }

    fn cost(&mut self, form: &Stream<'_>, outer: &Dict<'_>, depth: usize) -> u64 {
        let kind = form.dict().get::<Name<'_>>(b"Subtype");
        if kind.is_none_or(|kind| kind.as_str() != "Form") {
            return 0;
        }
        let id = form.obj_id();
        if let Some(known) = self.memo.get(&id) {
            return *known;
        }
        // Assume the worst until the count is known, because a form that draws itself, directly or through
        // others, never ends.
        self.memo.insert(id, u64::MAX);
        let Some(depth) = depth.checked_sub(1) else {
            return 0;
        };
        let resources = form.dict().get::<Dict<'_>>(b"Resources");
        let names = resources.and_then(|resources| resources.get::<Dict<'_>>(b"XObject"));
        let content = form.decoded_data().unwrap_or_default();
        let cost = self.count_draws(&content, names.as_ref().unwrap_or(outer), depth);
        self.memo.insert(id, cost);
        cost
    }
}

/// The name operand before the `Do` operator at `at`, without its slash.
fn name_before(content: &[u8], at: usize) -> Option<&[u8]> {
    let before = content.get(..at)?.trim_ascii_end();
    let near = before.get(before.len().saturating_sub(MAX_NAME_BYTES)..)?;
    let slash = memchr::memrchr(b'/', near)?;
    let name = near.get(slash + 1..)?;
    let is_name = |byte: &u8| !byte.is_ascii_whitespace() && !b"()<>[]{}%".contains(byte);
    name.iter().all(is_name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_by_name() {
        let content = b"q /A1 Do Q /B  Do (Do) Tj /C gs Do";
        let at = |from: usize| from + memmem::find(&content[from..], b"Do").unwrap();
        let first = at(0);
        assert_eq!(name_before(content, first), Some(b"A1".as_slice()));
        let second = at(first + 2);
        assert_eq!(name_before(content, second), Some(b"B".as_slice()));
        assert_eq!(name_before(content, at(second + 2)), None);
        assert_eq!(name_before(b"Do", 0), None);
    }
}
