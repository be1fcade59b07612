//! Text into HTML that shows it and does nothing else. There is no other way from a text to the
//! page than [`Html::text`].

use std::fmt;

/// Markup that is safe to put into the page.
#[derive(Clone, Debug, Default)]
pub(super) struct SafeHtml(String);

impl SafeHtml {
    /// A text as it is: every mark of HTML escaped, and what would hide or turn text made visible.
    pub(super) fn text(text: &str) -> Self {
        let mut html = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '&' => html.push_str("&amp;"),
                '<' => html.push_str("&lt;"),
                '>' => html.push_str("&gt;"),
                '"' => html.push_str("&quot;"),
                '\'' => html.push_str("&#39;"),
                '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => html.push('\u{FFFD}'),
                c if c.is_control() => html.push(' '),
                c => html.push(c),
            }
        }
        Self(html)
    }

    /// Adds markup of our own, which only the program's text can be.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds more HTML.
    pub(super) fn add(&mut self, html: &Self) -> &mut Self {
        self.0.push_str(&html.0);
        self
    }

    /// Adds a number, as attributes of drawings need them.
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
    fn no_mark_of_html_passes() {
        let html = SafeHtml::text("<a href=\"x\" title='y'>&\u{1b}\u{202E}ü").to_string();
        assert_eq!(
            html,
            "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp; \u{FFFD}ü"
        );
    }
}
