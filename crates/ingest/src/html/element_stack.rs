//! Start and end tags into the elements that are open. Every question about them is answered without
//! looking through them, so a million elements inside each other cost no more than a million beside.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::element::{HtmlElementKind, PageRegion};

/// The most elements inside each other. A page that never closes a tag may have very many; beyond this
/// it is no page any more.
pub(super) const MAX_DEPTH: usize = 1 << 20;

/// An element that is open.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenElement {
    name: u64,
    pub kind: HtmlElementKind,
    pub hidden: bool,
    /// The zone around it.
    pub outer: PageRegion,
    /// The place of the next element outside that has the same name, counted from 1.
    same: u32,
    /// The places of the innermost wall and of the innermost block, this one included.
    wall: u32,
    block: u32,
}

#[derive(Debug, Default)]
pub(super) struct ElementStack {
    open: Vec<OpenElement>,
    /// The place of the innermost element of each name that is open, counted from 1.
    last: HashMap<u64, u32>,
}

impl ElementStack {
    /// Opens an element; false when too many are open.
    pub(super) fn push(
        &mut self,
        name: &str,
        kind: HtmlElementKind,
        hidden: bool,
        outer: PageRegion,
    ) -> bool {
        let place = self.open.len() + 1;
        let Some(place) = u32::try_from(place).ok().filter(|_| place <= MAX_DEPTH) else {
            return false;
        };
        let name = name_hash(name);
        let above = self.open.last();
        let either = |is: bool, above: Option<u32>| if is { place } else { above.unwrap_or(0) };
        let wall = either(kind.is_scope_boundary(), above.map(|open| open.wall));
        let block = either(!kind.is_inline(), above.map(|open| open.block));
        let same = self.last.insert(name, place).unwrap_or(0);
        self.open.push(OpenElement {
            name,
            kind,
            hidden,
            outer,
            same,
            wall,
            block,
        });
        true
    }

    /// Closes the innermost element.
    pub(super) fn pop(&mut self) -> Option<OpenElement> {
        let open = self.open.pop()?;
        if open.same == 0 {
            self.last.remove(&open.name);
        } else {
            self.last.insert(open.name, open.same);
        }
        Some(open)
    }

    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// How many elements stay open when the end tag of `name` has been read.
    pub(super) fn after_end_of(&self, name: &str, kind: HtmlElementKind) -> usize {
        let place = self.place(name);
        let (wall, block) = self.open.last().map_or((0, 0), |top| (top.wall, top.block));
        // The end of a table takes down its cells, the end of a cell only what is in the same table.
        let is_reached = match kind {
            HtmlElementKind::Table | HtmlElementKind::Foreign | HtmlElementKind::Isolated => true,
            HtmlElementKind::Row | HtmlElementKind::Cell => place > self.place("table"),
            _ => place > wall,
        };
        // `<b><p></b>` ends no paragraph.
        let is_free = !kind.is_inline() || place > block;
        if place > 0 && is_reached && is_free {
            place as usize - 1
        } else {
            self.depth()
        }
    }

    /// How many elements stay open when `name` begins, which ends some that their author left open.
    pub(super) fn before_start_of(&self, name: &str, kind: HtmlElementKind) -> usize {
        let ended = match name {
            "li" => self.place_in_scope("li", &["ul", "ol", "menu", "dir"]),
            "dt" | "dd" => self
                .place_in_scope("dt", &["dl"])
                .max(self.place_in_scope("dd", &["dl"])),
            "td" | "th" => self
                .place_in_scope("td", &["table"])
                .max(self.place_in_scope("th", &["table"])),
            "tr" => self.place_in_scope("tr", &["table"]),
            "tbody" | "thead" | "tfoot" => ["tbody", "thead", "tfoot", "tr", "td", "th"]
                .iter()
                .map(|inner| self.place_in_scope(inner, &["table"]))
                .filter(|place| *place > 0)
                .min()
                .unwrap_or(0),
            _ => 0,
        };
        let wall = self.open.last().map_or(0, |top| top.wall);
        let paragraph = self.place("p");
        let is_inline = kind.is_inline()
            || matches!(kind, HtmlElementKind::Foreign | HtmlElementKind::Isolated);
        let ends_paragraph = !is_inline && paragraph > wall;
        let first = match (ended, if ends_paragraph { paragraph } else { 0 }) {
            (0, 0) => return self.depth(),
            (0, only) | (only, 0) => only,
            (one, other) => one.min(other),
        };
        first as usize - 1
    }

    /// The place of the innermost `name`, unless one of `walls` is open inside it.
    fn place_in_scope(&self, name: &str, walls: &[&str]) -> u32 {
        let place = self.place(name);
        let inside = walls.iter().any(|wall| self.place(wall) > place);
        if inside { 0 } else { place }
    }

    fn place(&self, name: &str) -> u32 {
        self.last.get(&name_hash(name)).copied().unwrap_or(0)
    }
}

fn name_hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> ElementStack {
        let mut stack = ElementStack::default();
        for name in names {
            assert!(stack.push(
                name,
                HtmlElementKind::from_name(name),
                false,
                PageRegion::Body
            ));
        }
        stack
    }

    fn check_end(names: &[&str], end: &str, left: usize) {
        let stack = of(names);
        assert_eq!(
            stack.after_end_of(end, HtmlElementKind::from_name(end)),
            left,
            "{names:?} {end}"
        );
    }

    fn check_start(names: &[&str], start: &str, left: usize) {
        let stack = of(names);
        assert_eq!(
            stack.before_start_of(start, HtmlElementKind::from_name(start)),
            left,
            "{names:?} {start}"
        );
    }

    #[test]
    fn end_tags_close_what_they_name() {
        check_end(&["div", "p", "b"], "p", 1);
        check_end(&["div", "p", "b"], "div", 0);
        check_end(&["div", "div"], "div", 1);
        check_end(&["div"], "section", 1);
        check_end(&["b", "p"], "b", 2);
        check_end(&["div", "table", "tr", "td"], "div", 4);
        check_end(&["div", "table", "tr", "td"], "table", 1);
        check_end(&["table", "tr", "td"], "tr", 1);
        check_end(&["table", "tr", "td", "table"], "tr", 4);
        check_end(&["table", "tr", "td", "table"], "td", 4);
    }

    #[test]
    fn start_tags_close_what_was_left_open() {
        check_start(&["p", "b"], "p", 0);
        check_start(&["p", "b"], "i", 2);
        check_start(&["ul", "li", "p"], "li", 1);
        check_start(&["ul", "li", "ul"], "li", 3);
        check_start(&["dl", "dt"], "dd", 1);
        check_start(&["table", "tr", "td", "p"], "td", 2);
        check_start(&["table", "tr", "td"], "tr", 1);
        check_start(&["table", "tr", "td", "table"], "tr", 4);
        check_start(&["table", "tbody", "tr", "td"], "tbody", 1);
        check_start(&["p", "table", "tr", "td"], "p", 4);
    }

    #[test]
    fn popping_restores_the_one_outside() {
        let mut stack = of(&["div", "p", "div"]);
        stack.pop();
        assert_eq!(stack.after_end_of("div", HtmlElementKind::Block), 0);
        stack.pop();
        stack.pop();
        assert!(stack.pop().is_none() && stack.last.is_empty());
    }

    #[test]
    fn the_depth_is_bounded() {
        let mut stack = ElementStack::default();
        for _ in 0..MAX_DEPTH {
            assert!(stack.push("div", HtmlElementKind::Block, false, PageRegion::Body));
        }
        assert!(!stack.push("div", HtmlElementKind::Block, false, PageRegion::Body));
        assert_eq!(stack.depth(), MAX_DEPTH);
    }
}
