//! An HTML builder that is safe by type: text reaches the page only through the escaper, [`SafeHtml::text`].

use std::fmt;

use docent_mcp::escape_html;

/// Markup that is safe to include: our own literals, and escaped text.
#[derive(Clone, Debug, Default)]
pub(super) struct SafeHtml(String);

impl SafeHtml {
    /// Escapes text for HTML. Control characters become spaces, and bidirectional overrides, which could hide or
    /// reorder text, become visible replacement characters.
    pub(super) fn text(text: &str) -> Self {
        let visible = text.chars().map(|c| match c {
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => '\u{FFFD}',
            c if c.is_control() => ' ',
            c => c,
        });
        Self(escape_html(&visible.collect::<String>()))
    }

    /// Appends literal markup; `&'static str` guarantees that it is part of the program.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Appends markup that was built safely before.
    pub(super) fn add(&mut self, html: &Self) -> &mut Self {
        self.0.push_str(&html.0);
        self
    }

    /// Appends a number with one decimal place, for SVG attributes.
    pub(super) fn number(&mut self, number: f64) -> &mut Self {
        self.0.push_str(&format!("{number:.1}"));
        self
    }
}

impl fmt::Display for SafeHtml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        let html = SafeHtml::text("<a href=\"x\" title='y'>&\u{1b}\u{202E}ü").to_string();
        assert_eq!(
            html,
            "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp; \u{FFFD}ü"
        );
    }
}
