//! Token emitter: turns the tokens of the HTML tokenizer into calls on an [`HtmlPageBuilder`].
//!
//! Only text, tags and the attributes that matter are kept, so that an embedded image of twenty megabytes in
//! an attribute costs no memory.

use html5gum::{Emitter, Error, State};

use super::page_builder::HtmlPageBuilder;

/// The most bytes of an element or attribute name that are kept; no relevant name is longer.
const MAX_NAME_BYTES: usize = 64;

/// The most bytes of an attribute value that are kept.
const MAX_VALUE_BYTES: usize = 64 * 1024;

/// The attributes that decide visibility or that carry metadata.
const KEPT: &[&str] = &[
    "aria-hidden",
    "charset",
    "class",
    "content",
    "datetime",
    "hidden",
    "href",
    "http-equiv",
    "id",
    "itemprop",
    "lang",
    "name",
    "open",
    "property",
    "rel",
    "role",
    "start",
    "style",
    "xml:lang",
];

/// A start tag with those of its attributes that matter.
#[derive(Debug, Default)]
pub(super) struct HtmlTag {
    pub name: String,
    /// Whether the tag was self-closing (`/>`).
    pub closed: bool,
    attributes: Vec<(&'static str, String)>,
}

impl HtmlTag {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Creates a tag for tests.
    #[cfg(test)]
    pub(super) fn of(name: &str, attributes: &[(&'static str, &str)]) -> Self {
        Self {
            name: name.to_owned(),
            closed: false,
            attributes: attributes
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
        }
    }
}

/// The token that is currently being read. `kept` is the attribute under which the current value is stored,
/// once its name is known to matter.
pub(super) struct HtmlEmitter<'p> {
    page: &'p mut HtmlPageBuilder,
    text: Vec<u8>,
    name: Vec<u8>,
    is_end: bool,
    tag: HtmlTag,
    last_start: Vec<u8>,
    attribute: Vec<u8>,
    value: Vec<u8>,
    has_attribute: bool,
    kept: Option<&'static str>,
}

impl<'p> HtmlEmitter<'p> {
    pub(super) fn new(page: &'p mut HtmlPageBuilder) -> Self {
        Self {
            page,
            text: Vec::new(),
            name: Vec::new(),
            is_end: false,
            tag: HtmlTag::default(),
            last_start: Vec::new(),
            attribute: Vec::new(),
            value: Vec::new(),
            has_attribute: false,
            kept: None,
        }
    }

    fn flush_text(&mut self) {
        if !self.text.is_empty() {
            self.page.text(&String::from_utf8_lossy(&self.text));
            self.text.clear();
        }
    }

    fn begin_tag(&mut self, is_end: bool) {
        self.name.clear();
        self.is_end = is_end;
        self.tag = HtmlTag::default();
        self.attribute.clear();
        self.value.clear();
        self.has_attribute = false;
    }

    /// Stores the attribute that was just read on the tag; the first of a name wins, as in browsers.
    fn keep_attribute(&mut self) {
        if !std::mem::take(&mut self.has_attribute) {
            return;
        }
        let name = self.kept.take().or_else(|| kept(&self.attribute));
        if let Some(name) = name.filter(|name| self.tag.get(name).is_none()) {
            let value = String::from_utf8_lossy(&self.value).into_owned();
            self.tag.attributes.push((name, value));
        }
        self.attribute.clear();
        self.value.clear();
    }
}

fn kept(name: &[u8]) -> Option<&'static str> {
    let matches_name = |known: &&&str| known.as_bytes() == name;
    KEPT.iter().find(matches_name).copied()
}

fn push(bytes: &mut Vec<u8>, more: &[u8], limit: usize) {
    let room = limit.saturating_sub(bytes.len()).min(more.len());
    bytes.extend_from_slice(more.get(..room).unwrap_or_default());
}

/// The tokenizer state for elements whose content is raw text.
fn state_after(name: &[u8]) -> Option<State> {
    match name {
        b"textarea" | b"title" => Some(State::RcData),
        b"plaintext" => Some(State::PlainText),
        b"script" => Some(State::ScriptData),
        b"style" | b"iframe" | b"xmp" | b"noembed" | b"noframes" | b"noscript" => {
            Some(State::RawText)
        }
        _ => None,
    }
}

impl Emitter for HtmlEmitter<'_> {
    /// A token means only that the page exceeded its limit and tokenizing should stop.
    type Token = ();

    fn pop_token(&mut self) -> Option<()> {
        self.page.is_over_limit().then_some(())
    }

    fn emit_string(&mut self, text: &[u8]) {
        if self.page.wants_text() {
            self.text.extend_from_slice(text);
        }
    }

    fn init_start_tag(&mut self) {
        self.begin_tag(false);
    }

    fn init_end_tag(&mut self) {
        self.begin_tag(true);
    }

    fn push_tag_name(&mut self, name: &[u8]) {
        push(&mut self.name, name, MAX_NAME_BYTES);
    }

    fn set_self_closing(&mut self) {
        self.tag.closed = true;
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        self.keep_attribute();
        self.flush_text();
        let name = String::from_utf8_lossy(&self.name).into_owned();
        if self.is_end {
            self.page.close(&name);
            return None;
        }
        self.tag.name = name;
        let tag = std::mem::take(&mut self.tag);
        // Self-closing tags count only in XML and in foreign content (SVG, MathML).
        let empty = tag.closed && self.page.is_xml();
        self.page.open(&tag);
        self.last_start.clone_from(&self.name);
        if empty { None } else { state_after(&self.name) }
    }

    fn init_attribute(&mut self) {
        self.keep_attribute();
        self.has_attribute = true;
        self.kept = None;
    }

    fn push_attribute_name(&mut self, name: &[u8]) {
        push(&mut self.attribute, name, MAX_NAME_BYTES);
    }

    fn push_attribute_value(&mut self, value: &[u8]) {
        self.kept = self.kept.or_else(|| kept(&self.attribute));
        if self.kept.is_some() {
            push(&mut self.value, value, MAX_VALUE_BYTES);
        }
    }

    fn emit_eof(&mut self) {
        self.flush_text();
    }

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.is_end && !self.last_start.is_empty() && self.last_start == self.name
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.page.is_xml()
    }

    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn set_last_start_tag(&mut self, name: Option<&[u8]>) {
        self.last_start = name.unwrap_or_default().to_vec();
    }

    // Comments and doctypes are ignored.
    fn emit_error(&mut self, _: Error) {}
    fn init_comment(&mut self) {}
    fn emit_current_comment(&mut self) {}
    fn push_comment(&mut self, _: &[u8]) {}
    fn init_doctype(&mut self) {}
    fn emit_current_doctype(&mut self) {}
    fn set_force_quirks(&mut self) {}
    fn push_doctype_name(&mut self, _: &[u8]) {}
    fn set_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn set_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_system_identifier(&mut self, _: &[u8]) {}
}
