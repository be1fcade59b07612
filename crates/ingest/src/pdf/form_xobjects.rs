//! The drawings that a page repeats against a bound on how often they are drawn. A drawing may repeat
//! others, so that a few lines can ask for more work than there is time in the world.

use std::collections::HashMap;

use hayro_interpret::hayro_syntax::object::{Dict, Name, ObjectIdentifier, Stream};
use hayro_interpret::hayro_syntax::page::Page;
use memchr::memmem;

use crate::error::IngestError;

/// The most drawings of one page, counted as often as they are drawn.
pub(super) const MAX_DRAWN: u64 = 1_000_000;

/// How many drawings inside each other are followed; the interpreter stops there too.
const MAX_DEPTH: usize = 50;

/// The most different drawings that one drawing names.
const MAX_NAMES: usize = 10_000;

/// The most bytes of a name that is looked for.
const MAX_NAME_BYTES: usize = 128;

/// How often each drawing draws others, with those that they draw.
#[derive(Default)]
pub(super) struct FormDrawCounter {
    known: HashMap<ObjectIdentifier, u64>,
}

impl FormDrawCounter {
    /// Refuses a page that draws too much.
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

    /// How many drawings `content` draws. Calls itself once per level, and the levels are bounded.
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
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        // One that draws itself, at once or through others, would never end.
        self.known.insert(id, u64::MAX);
        let Some(depth) = depth.checked_sub(1) else {
            return 0;
        };
        let resources = form.dict().get::<Dict<'_>>(b"Resources");
        let names = resources.and_then(|resources| resources.get::<Dict<'_>>(b"XObject"));
        let content = form.decoded_data().unwrap_or_default();
        let cost = self.count_draws(&content, names.as_ref().unwrap_or(outer), depth);
        self.known.insert(id, cost);
        cost
    }
}

/// The name before a call at `at`, without its slash.
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
