//! HTML escaping: the one function through which text from outside reaches a page.

/// Escapes a text for HTML content and for quoted attribute values, to prevent XSS.
///
/// Both kinds of quotes are escaped, so the result is safe in either. NUL becomes U+FFFD, as HTML parsers would read it.
///
/// ```
/// let name = docent_mcp::escape_html("<b>Fares & \"Piers\"</b>");
/// assert_eq!(name, "&lt;b&gt;Fares &amp; &quot;Piers&quot;&lt;/b&gt;");
/// ```
pub fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\0' => escaped.push('\u{FFFD}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_quotes_and_nul_are_escaped() {
        assert_eq!(
            escape_html("<a href=\"x\" title='y'>&amp;\0ü"),
            "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;amp;\u{FFFD}ü"
        );
        assert_eq!(escape_html(""), "");
    }
}
