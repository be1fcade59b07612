//! HTML rendering of layout blocks. All text is escaped, and URLs appear only in the `href` of a link.

use std::fmt::Write as _;

use docent_mcp::escape_html;

use crate::layout::{LayoutBlock, ListItem, TextSpan};

/// Appends the HTML of one passage. Headings move one level down, below the title of the document.
pub(super) fn write(blocks: &[LayoutBlock], html: &mut String) {
    for block in blocks {
        // Writing to a String cannot fail.
        let _ = match block {
            LayoutBlock::Heading { level, spans } => {
                // The title of the document is the only first-level heading.
                let level = (level + 1).min(6);
                writeln!(html, "<h{level}>{}</h{level}>", inline_html(spans))
            }
            LayoutBlock::Paragraph { spans } => writeln!(html, "<p>{}</p>", inline_html(spans)),
            LayoutBlock::Quote { spans } => {
                writeln!(html, "<blockquote>{}</blockquote>", inline_html(spans))
            }
            LayoutBlock::Code { spans } => {
                writeln!(html, "<pre tabindex=\"0\">{}</pre>", inline_html(spans))
            }
            LayoutBlock::List { ordered, items } => {
                let tag = if *ordered { "ol" } else { "ul" };
                let items: String = items.iter().map(item).collect();
                writeln!(html, "<{tag}>{items}</{tag}>")
            }
            LayoutBlock::Table { rows } => writeln!(html, "{}", table(rows)),
        };
    }
}

fn item(item: &ListItem) -> String {
    let value = item.number().map(|number| format!(" value=\"{number}\""));
    let inset = match item.depth() {
        0 => String::new(),
        depth => format!(" class=\"in-{depth}\""),
    };
    let words = inline_html(item.spans());
    format!("<li{}{inset}>{words}</li>", value.unwrap_or_default())
}

fn table(rows: &[Vec<Vec<TextSpan>>]) -> String {
    let row = |(at, cells): (usize, &Vec<Vec<TextSpan>>)| {
        let tag = if at == 0 { "th" } else { "td" };
        let cells = cells.iter();
        let cells: String = cells
            .map(|cell| format!("<{tag} dir=\"auto\">{}</{tag}>", inline_html(cell)))
            .collect();
        format!("<tr>{cells}</tr>")
    };
    let rows: String = rows.iter().enumerate().map(row).collect();
    format!("<div class=\"table\" tabindex=\"0\"><table>{rows}</table></div>")
}

fn inline_html(spans: &[TextSpan]) -> String {
    spans.iter().map(span).collect()
}

fn span(span: &TextSpan) -> String {
    let mut html = escape_html(span.text());
    for (is_on, tag) in [
        (span.mark, "mark"),
        (span.code, "code"),
        (span.em, "em"),
        (span.strong, "strong"),
    ] {
        if is_on {
            html = format!("<{tag}>{html}</{tag}>");
        }
    }
    match &span.href {
        Some(href) => format!(
            "<a href=\"{}\" rel=\"noopener noreferrer nofollow\">{html}</a>",
            escape_html(href)
        ),
        None => html,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::MarkdownLayout;

    #[test]
    fn blocks_become_elements_and_text_stays_text() {
        for (text, expected) in [
            ("# A *b*\ntext", "<h2>A <em>b</em></h2><p>text</p>"),
            (
                "- a\n  - b\n\n3. c",
                "<ul><li>a</li><li class=\"in-1\">b</li></ul><ol><li value=\"3\">c</li></ol>",
            ),
            ("> <b>", "<blockquote>&lt;b&gt;</blockquote>"),
            ("```\na < b\n```", "<pre tabindex=\"0\">a &lt; b</pre>"),
            (
                "| a |\n|--|\n| <i> |",
                "<div class=\"table\" tabindex=\"0\"><table><tr><th dir=\"auto\">a</th></tr><tr><td dir=\"auto\">&lt;i&gt;</td></tr></table></div>",
            ),
            (
                "[a](https://x.example/?a=1&b='2')",
                "<p><a href=\"https://x.example/?a=1&amp;b=&#39;2&#39;\" rel=\"noopener noreferrer nofollow\">a</a></p>",
            ),
            ("[a](javascript:x)", "<p>[a](javascript:x)</p>"),
        ] {
            let mut html = String::new();
            write(&MarkdownLayout::default().blocks(text, &[]), &mut html);
            assert_eq!(html.replace('\n', ""), expected, "{text}");
        }
    }
}
