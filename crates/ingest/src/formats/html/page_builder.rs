//! Page builder: turns the tags and texts of a page into Markdown text and metadata in a single pass, without
//! a DOM.
//!
//! The text of every region is laid out as it comes. At the end the region that holds the main content is
//! chosen.

use crate::error::IngestError;
use crate::layout::{TextLayout, clean_pages};

use super::confluence::ConfluenceMetadata;
use super::element::{HtmlElementKind, PageRegion, is_hidden, is_void};
use super::element_stack::{ElementStack, MAX_DEPTH};
use super::emitter::HtmlTag;
use super::head::HtmlHead;
use super::properties::PropertyTable;
use crate::reader_field::ReaderKeys;

/// The main text of a page and its metadata.
pub(crate) struct ParsedPage {
    pub head: HtmlHead,
    pub text: String,
}

/// The state of the builder. `hidden` and `foreign` count the open elements that hide their content and those
/// with foreign content; `lists` holds the next number of each open list, `None` for bulleted ones. `marks`
/// records where the text of each region begins.
pub(super) struct HtmlPageBuilder {
    /// Whether the page is XML, where any element can be self-closing.
    xml: bool,
    stack: ElementStack,
    layout: TextLayout,
    head: HtmlHead,
    confluence: ConfluenceMetadata,
    properties: PropertyTable,
    region: PageRegion,
    marks: Vec<(usize, PageRegion)>,
    hidden: usize,
    foreign: usize,
    lists: Vec<Option<u64>>,
    in_title: bool,
    in_first_heading: bool,
    /// Whether the next text is superscript.
    is_raised: bool,
    too_deep: bool,
}

impl HtmlPageBuilder {
    pub(super) fn new(xml: bool, readers: ReaderKeys) -> Self {
        Self {
            xml,
            stack: ElementStack::default(),
            layout: TextLayout::default(),
            head: HtmlHead::with_reader_keys(readers),
            confluence: ConfluenceMetadata::default(),
            properties: PropertyTable::default(),
            region: PageRegion::Body,
            marks: vec![(0, PageRegion::Body)],
            hidden: 0,
            foreign: 0,
            lists: Vec::new(),
            in_title: false,
            in_first_heading: false,
            is_raised: false,
            too_deep: false,
        }
    }

    pub(super) fn is_over_limit(&self) -> bool {
        self.too_deep
    }

    pub(super) fn wants_text(&self) -> bool {
        self.hidden == 0
    }

    pub(super) fn is_xml(&self) -> bool {
        self.xml || self.foreign > 0
    }

    pub(super) fn text(&mut self, text: &str) {
        if self.in_title {
            self.head.add_title(text);
        } else {
            if self.in_first_heading {
                self.head.add_heading(text);
            }
            self.confluence.text(text);
            self.properties.text(text);
            // A footnote mark must not merge with the word before it.
            if std::mem::take(&mut self.is_raised) && text.starts_with(|c: char| c.is_ascii_digit())
            {
                self.layout.write("^");
            }
            self.layout.write(text);
        }
    }

    pub(super) fn open(&mut self, tag: &HtmlTag) {
        let name = tag.name.as_str();
        if is_void(name) {
            return self.void(tag);
        }
        let kind = HtmlElementKind::from_name(name);
        // Inside foreign content only its own end tag matters.
        if self.foreign == 0 {
            self.pop_to(self.stack.before_start_of(name, kind));
        }
        if name == "html" {
            self.head
                .set_language(tag.get("lang").or(tag.get("xml:lang")));
        }
        self.head.read_time(tag);
        if tag.closed && self.is_xml() {
            if self.wants_text() && !kind.is_inline() {
                self.layout.end_line();
            }
            return;
        }
        let hidden = is_hidden(tag);
        let outer = self.region;
        if !self.stack.push(name, kind, hidden, outer) {
            self.too_deep = true;
            return;
        }
        self.hidden += usize::from(hidden);
        self.foreign += usize::from(kind == HtmlElementKind::Foreign);
        if self.wants_text() {
            let depth = self.stack.depth();
            self.confluence.open(tag, depth);
            self.properties.open(tag, depth, self.head.readers());
            self.enter_region(outer.inside(tag));
            self.begin(tag, kind);
        } else if kind == HtmlElementKind::List {
            self.lists.push(None);
        }
    }

    pub(super) fn close(&mut self, name: &str) {
        if name == "br" {
            return self.layout.line_break();
        }
        self.pop_to(
            self.stack
                .after_end_of(name, HtmlElementKind::from_name(name)),
        );
    }

    /// Returns the main text and the metadata, once the whole page was read.
    pub(super) fn finish(mut self) -> Result<ParsedPage, IngestError> {
        if self.too_deep {
            return Err(IngestError::TooMuchInside {
                limit: MAX_DEPTH as u64,
            });
        }
        self.pop_to(0);
        let end = self.layout.len();
        let raw = self.layout.into_raw();
        let starts = self.marks.iter().skip(1).map(|(start, _)| *start);
        let ends = starts.chain([raw.len().max(end)]);
        let parts = self.marks.iter().zip(ends);
        let parts: Vec<_> = parts
            .filter_map(|((start, region), end)| {
                Some((*region, raw.get(*start..end)?.trim_matches('\n')))
            })
            .filter(|(_, text)| !text.trim().is_empty())
            .collect();
        let text = clean_pages(&choose_region(&parts));
        self.head.set_confluence(self.confluence);
        for (name, value) in self.properties.take() {
            self.head.name_readers(&name, Some(value));
        }
        Ok(ParsedPage {
            head: self.head,
            text,
        })
    }

    fn void(&mut self, tag: &HtmlTag) {
        match tag.name.as_str() {
            "meta" => self.head.read_meta(tag),
            "link" => self.head.read_link(tag),
            "br" if self.wants_text() => {
                if self.in_first_heading {
                    self.head.add_heading(" ");
                }
                self.layout.line_break();
            }
            "hr" if self.wants_text() => {
                self.pop_to(self.stack.before_start_of("hr", HtmlElementKind::Block));
                self.layout.end_block();
            }
            _ => {}
        }
    }

    /// Starts an element that is visible.
    fn begin(&mut self, tag: &HtmlTag, kind: HtmlElementKind) {
        match kind {
            HtmlElementKind::Inline | HtmlElementKind::Foreign | HtmlElementKind::Isolated => {
                self.is_raised |= tag.name == "sup";
            }
            HtmlElementKind::InlineQuote => self.layout.write("“"),
            HtmlElementKind::Block | HtmlElementKind::Table => self.layout.end_block(),
            HtmlElementKind::Line => self.layout.end_line(),
            HtmlElementKind::Heading(level) => {
                self.in_first_heading = level == 1 && self.head.claim_heading();
                self.layout.heading(level);
            }
            HtmlElementKind::List => {
                let start = || tag.get("start").and_then(|start| start.trim().parse().ok());
                let first = (tag.name == "ol").then(|| start().unwrap_or(1));
                self.lists.push(first);
                self.layout.begin_list();
            }
            HtmlElementKind::Item => {
                let number = self.lists.last_mut().and_then(Option::as_mut);
                let this = number.as_ref().map(|number| **number);
                if let Some(number) = number {
                    *number = number.saturating_add(1);
                }
                self.layout.item(this);
            }
            HtmlElementKind::Code => self.layout.begin_code(),
            HtmlElementKind::Quote => self.layout.begin_quote(),
            HtmlElementKind::Row => self.layout.begin_row(),
            HtmlElementKind::Cell => self.layout.begin_cell(),
            HtmlElementKind::Title => self.in_title = self.head.claim_title(),
        }
    }

    fn pop_to(&mut self, depth: usize) {
        while self.stack.depth() > depth {
            let depth = self.stack.depth();
            self.confluence.close(depth);
            self.properties.close(depth, self.head.readers());
            let Some(open) = self.stack.pop() else { return };
            if open.kind == HtmlElementKind::List {
                self.lists.pop();
            }
            if self.wants_text() {
                self.end(open.kind);
                self.enter_region(open.outer);
            }
            self.hidden -= usize::from(open.hidden);
            self.foreign -= usize::from(open.kind == HtmlElementKind::Foreign);
        }
    }

    fn end(&mut self, kind: HtmlElementKind) {
        match kind {
            HtmlElementKind::Inline | HtmlElementKind::Foreign | HtmlElementKind::Isolated => {}
            HtmlElementKind::InlineQuote => self.layout.write("”"),
            HtmlElementKind::Block | HtmlElementKind::Table | HtmlElementKind::Item => {
                self.layout.end_block();
            }
            HtmlElementKind::Line => self.layout.end_line(),
            HtmlElementKind::Heading(_) => {
                self.in_first_heading = false;
                self.layout.end_heading();
            }
            HtmlElementKind::List => self.layout.end_list(),
            HtmlElementKind::Code => self.layout.end_code(),
            HtmlElementKind::Quote => self.layout.end_quote(),
            HtmlElementKind::Row => self.layout.end_row(),
            HtmlElementKind::Cell => self.layout.end_cell(),
            HtmlElementKind::Title => self.in_title = false,
        }
    }

    fn enter_region(&mut self, region: PageRegion) {
        if region == self.region {
            return;
        }
        self.layout.end_code();
        self.layout.end_block();
        // The offset recorded below must not move any more.
        self.layout.keep_rows_unjoined();
        self.region = region;
        let at = self.layout.len();
        // A region without text is dropped at once.
        self.marks.pop_if(|(start, _)| *start == at);
        self.marks.push((at, region));
    }
}

/// Chooses the main content: the region that the author marked as such, else everything that is not
/// boilerplate, else everything.
fn choose_region(parts: &[(PageRegion, &str)]) -> String {
    let size = |is_wanted: fn(PageRegion) -> bool| -> usize {
        let parts = parts.iter().filter(|(region, _)| is_wanted(*region));
        parts.map(|(_, text)| text.len()).sum()
    };
    let article_bytes = size(|region| region == PageRegion::Article);
    let content_bytes = size(|region| region != PageRegion::Boilerplate);
    let is_wanted: fn(PageRegion) -> bool = if size(|region| region == PageRegion::Main) > 0 {
        |region| region == PageRegion::Main
    } else if article_bytes > 0 && article_bytes * 2 >= content_bytes {
        // Small articles beside a long text are comments or teasers; then the text itself is the document.
        |region| region == PageRegion::Article
    } else if content_bytes > 0 {
        |region| region != PageRegion::Boilerplate
    } else {
        |_| true
    };
    let parts = parts.iter().filter(|(region, _)| is_wanted(*region));
    let texts: Vec<_> = parts.map(|(_, text)| *text).collect();
    texts.join("\n\n")
}
