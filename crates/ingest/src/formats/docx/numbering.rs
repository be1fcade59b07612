//! List numbering of Word documents: computes the number of each list item. Bulleted items have none.

use std::collections::HashMap;

use crate::error::IngestError;
use crate::xml::{XmlEvent, XmlReader};

use super::val_attribute;

/// The most lists of a document and levels of a list. Items beyond them are bulleted. Word itself has nine levels; the
/// number of lists is bounded because every list keeps the counters of its levels until the end of the document.
const MAX_LISTS: usize = 10_000;
const MAX_LEVELS: usize = 9;

/// Parses a list level, counted from 0. Deeper levels are clamped to one, so that callers which count from it
/// stay within bounds.
pub(super) fn parse_level(written: &str) -> usize {
    written.parse().unwrap_or(0).min(MAX_LEVELS)
}

/// The lists of a document. A list refers to an abstract definition, which fixes for each level the number of
/// the first item; the counters continue from there.
#[derive(Debug, Default)]
pub(super) struct DocxNumbering {
    lists: HashMap<String, String>,
    levels: HashMap<String, [Option<u64>; MAX_LEVELS]>,
    counters: HashMap<String, [Option<u64>; MAX_LEVELS]>,
}

impl DocxNumbering {
    pub(super) fn read(text: &str) -> Result<Self, IngestError> {
        let mut xml = XmlReader::new(text);
        let mut numbering = Self::default();
        let (mut definition, mut list, mut level) = (String::new(), String::new(), 0);
        let mut start = 1;
        while let Some(piece) = xml.next()? {
            let XmlEvent::Open(tag) = piece else { continue };
            match tag.name.as_str() {
                "abstractNum" => definition = tag.get("abstractNumId").unwrap_or_default(),
                "lvl" => {
                    level = self::parse_level(&tag.get("ilvl").unwrap_or_default());
                    start = 1;
                }
                "start" => start = val_attribute(&tag).parse().unwrap_or(1),
                "numFmt" => {
                    let numbered = !matches!(val_attribute(&tag).as_str(), "bullet" | "none");
                    numbering.define_level(&definition, level, numbered.then_some(start));
                }
                "num" => list = tag.get("numId").unwrap_or_default(),
                "abstractNumId" if numbering.lists.len() < MAX_LISTS => {
                    numbering
                        .lists
                        .insert(std::mem::take(&mut list), val_attribute(&tag));
                }
                // Overrides of a single list are rare and change only numbers, so they are skipped.
                "lvlOverride" => xml.skip()?,
                _ => {}
            }
        }
        Ok(numbering)
    }

    fn define_level(&mut self, definition: &str, level: usize, first: Option<u64>) {
        if self.levels.len() >= MAX_LISTS && !self.levels.contains_key(definition) {
            return;
        }
        let levels = self.levels.entry(definition.to_owned()).or_default();
        if let Some(slot) = levels.get_mut(level) {
            *slot = first;
        }
    }

    /// Returns the number of the next item of a list and restarts the deeper levels.
    pub(super) fn next(&mut self, list: &str, level: usize) -> Option<u64> {
        let definition = self.lists.get(list)?;
        let first = self.levels.get(definition)?.get(level).copied().flatten();
        let counters = self.counters.entry(definition.clone()).or_default();
        for deeper in counters.iter_mut().skip(level + 1) {
            *deeper = None;
        }
        let counter = counters.get_mut(level)?;
        let next = counter.map_or(first, |last| Some(last.saturating_add(1)));
        *counter = next;
        first.and(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_counted_by_list_and_level() {
        let mut numbering = DocxNumbering::read(
            "<n><abstractNum abstractNumId='7'><lvl ilvl='0'><start val='3'/><numFmt val='decimal'/></lvl>\
             <lvl ilvl='1'><numFmt val='lowerLetter'/></lvl><lvl ilvl='2'><numFmt val='bullet'/></lvl>\
             </abstractNum><num numId='1'><abstractNumId val='7'/>\
             <lvlOverride><startOverride val='9'/></lvlOverride></num></n>",
        )
        .unwrap();
        let mut next = |level| numbering.next("1", level);
        let found = [
            next(0),
            next(1),
            next(1),
            next(2),
            next(0),
            next(1),
            next(8),
            next(9),
        ];
        assert_eq!(
            found,
            [
                Some(3),
                Some(1),
                Some(2),
                None,
                Some(4),
                Some(1),
                None,
                None
            ]
        );
        assert_eq!(numbering.next("unknown", 0), None);
    }

    #[test]
    fn lists_end_at_their_bound() {
        let last = |count: usize| {
            let list = |n| format!("<num numId='{n}'><abstractNumId val='0'/></num>");
            let lists: String = (0..count).map(list).collect();
            let levels = "<abstractNum abstractNumId='0'><lvl ilvl='0'><numFmt val='decimal'/></lvl></abstractNum>";
            let mut numbering = DocxNumbering::read(&format!("<n>{levels}{lists}</n>")).unwrap();
            numbering.next(&format!("{}", count - 1), 0)
        };
        assert_eq!(last(MAX_LISTS), Some(1));
        assert_eq!(last(MAX_LISTS + 1), None);
    }
}
