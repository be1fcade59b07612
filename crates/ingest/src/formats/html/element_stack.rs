//! Stack of open HTML elements with constant-time scope queries.
//!
//! Start and end tags close other elements by the rules of HTML. Indexes to the innermost element of each
//! name, scope boundary and block answer every question without a search, so that a million nested elements
//! take linear time.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::element::{HtmlElementKind, PageRegion};

/// The deepest nesting of elements. Pages that never close a tag nest very deeply without meaning to, so the limit is
/// far above any sensible page; it only bounds the memory of the stack, because every operation on it takes constant
/// time.
pub(super) const MAX_DEPTH: usize = 1 << 20;

/// An element that is open. Positions are counted from 1, and 0 stands for none. `same` is the position of
/// the next outer element of the same name; `boundary` and `block` are the positions of the innermost scope
/// boundary and block, this element included.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenElement {
    name: u64,
    pub kind: HtmlElementKind,
    pub hidden: bool,
    /// The region in which the element stands.
    pub outer: PageRegion,
    same: u32,
    boundary: u32,
    block: u32,
}

/// The open elements, and for each element name the position of the innermost one, counted from 1.
#[derive(Debug, Default)]
pub(super) struct ElementStack {
    open: Vec<OpenElement>,
    last: HashMap<u64, u32>,
}

impl ElementStack {
    /// Pushes an element; false if too many are open.
    pub(super) fn push(
        &mut self,
        name: &str,
        kind: HtmlElementKind,
        hidden: bool,
        outer: PageRegion,
    ) -> bool {
        let position = self.open.len() + 1;
        let Some(position) = u32::try_from(position)
            .ok()
            .filter(|_| position <= MAX_DEPTH)
        else {
            return false;
        };
        let name = name_hash(name);
        let parent = self.open.last();
        let innermost =
            |is: bool, parent: Option<u32>| if is { position } else { parent.unwrap_or(0) };
        let boundary = innermost(kind.is_scope_boundary(), parent.map(|open| open.boundary));
        let block = innermost(!kind.is_inline(), parent.map(|open| open.block));
        let same = self.last.insert(name, position).unwrap_or(0);
        self.open.push(OpenElement {
            name,
            kind,
            hidden,
            outer,
            same,
            boundary,
            block,
        });
        true
    }

    /// Pops the innermost element and restores the index of its name.
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

    /// The depth of the stack after the end tag of `name`. An end tag that matches nothing in scope is
    /// ignored.
    pub(super) fn after_end_of(&self, name: &str, kind: HtmlElementKind) -> usize {
        let position = self.position(name);
        let (boundary, block) = self
            .open
            .last()
            .map_or((0, 0), |top| (top.boundary, top.block));
        // The end tag of a table closes its cells; that of a row or cell acts only within the same table.
        let is_in_scope = match kind {
            HtmlElementKind::Table | HtmlElementKind::Foreign | HtmlElementKind::Isolated => true,
            HtmlElementKind::Row | HtmlElementKind::Cell => position > self.position("table"),
            _ => position > boundary,
        };
        // In `<b><p></b>` the end tag does not close the paragraph.
        let may_close_block = !kind.is_inline() || position > block;
        if position > 0 && is_in_scope && may_close_block {
            position as usize - 1
        } else {
            self.depth()
        }
    }

    /// The depth of the stack before `name` is pushed: a start tag closes elements whose end tag is optional,
    /// such as `li` or `p`.
    pub(super) fn before_start_of(&self, name: &str, kind: HtmlElementKind) -> usize {
        let implied_end = match name {
            "li" => self.position_in_scope("li", &["ul", "ol", "menu", "dir"]),
            "dt" | "dd" => self
                .position_in_scope("dt", &["dl"])
                .max(self.position_in_scope("dd", &["dl"])),
            "td" | "th" => self
                .position_in_scope("td", &["table"])
                .max(self.position_in_scope("th", &["table"])),
            "tr" => self.position_in_scope("tr", &["table"]),
            "tbody" | "thead" | "tfoot" => ["tbody", "thead", "tfoot", "tr", "td", "th"]
                .iter()
                .map(|inner| self.position_in_scope(inner, &["table"]))
                .filter(|position| *position > 0)
                .min()
                .unwrap_or(0),
            _ => 0,
        };
        let boundary = self.open.last().map_or(0, |top| top.boundary);
        let paragraph = self.position("p");
        let is_inline = kind.is_inline()
            || matches!(kind, HtmlElementKind::Foreign | HtmlElementKind::Isolated);
        let ends_paragraph = !is_inline && paragraph > boundary;
        let first = match (implied_end, if ends_paragraph { paragraph } else { 0 }) {
            (0, 0) => return self.depth(),
            (0, only) | (only, 0) => only,
            (one, other) => one.min(other),
        };
        first as usize - 1
    }

    /// The position of the innermost `name`, or 0 if one of `boundaries` is open inside it.
    fn position_in_scope(&self, name: &str, boundaries: &[&str]) -> u32 {
        let position = self.position(name);
        let inside = boundaries
            .iter()
            .any(|boundary| self.position(boundary) > position);
        if inside { 0 } else { position }
    }

    fn position(&self, name: &str) -> u32 {
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
