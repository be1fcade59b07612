//! HTML elements: how each affects the extracted text (block, list, table cell, hidden), and which region of
//! the page it opens.

use super::confluence;
use super::emitter::HtmlTag;

/// How an element affects the text inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HtmlElementKind {
    /// Has no effect on the text.
    Inline,
    /// Encloses the text in quotation marks.
    InlineQuote,
    /// A block with empty lines around it.
    Block,
    /// A line of its own, without empty lines around it.
    Line,
    Heading(u8),
    List,
    Item,
    Code,
    Quote,
    Table,
    Row,
    Cell,
    /// The `title` element in the head.
    Title,
    /// Foreign content: SVG or MathML.
    Foreign,
    /// An isolated subtree, such as a template, whose tags do not affect the elements around it.
    Isolated,
}

impl HtmlElementKind {
    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "q" => Self::InlineQuote,
            "h1" => Self::Heading(1),
            "h2" => Self::Heading(2),
            "h3" => Self::Heading(3),
            "h4" => Self::Heading(4),
            "h5" => Self::Heading(5),
            "h6" => Self::Heading(6),
            "ul" | "ol" | "menu" | "dir" => Self::List,
            "li" => Self::Item,
            "pre" | "listing" | "xmp" | "plaintext" => Self::Code,
            "blockquote" => Self::Quote,
            "table" => Self::Table,
            "tr" => Self::Row,
            "td" | "th" => Self::Cell,
            "title" => Self::Title,
            "svg" | "math" => Self::Foreign,
            "template" | "object" | "button" | "select" | "applet" | "canvas" | "audio"
            | "video" => Self::Isolated,
            "dt" | "dd" | "summary" | "tbody" | "tfoot" | "thead" => Self::Line,
            "address" | "article" | "aside" | "body" | "caption" | "center" | "details"
            | "dialog" | "div" | "dl" | "fieldset" | "figcaption" | "figure" | "footer"
            | "form" | "head" | "header" | "hgroup" | "html" | "legend" | "main" | "nav" | "p"
            | "search" | "section" => Self::Block,
            _ => Self::Inline,
        }
    }

    /// Whether it flows within a line of text.
    pub(super) fn is_inline(self) -> bool {
        matches!(self, Self::Inline | Self::InlineQuote)
    }

    /// Whether it is a scope boundary: end tags inside it do not close elements outside.
    pub(super) fn is_scope_boundary(self) -> bool {
        matches!(
            self,
            Self::Table | Self::Cell | Self::Foreign | Self::Isolated
        )
    }
}

/// Whether an element is void, with neither content nor an end tag.
pub(super) fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "basefont"
            | "bgsound"
            | "br"
            | "col"
            | "command"
            | "embed"
            | "frame"
            | "hr"
            | "img"
            | "input"
            | "keygen"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Whether the content of an element is invisible in a browser, or is not text of the document. Invisible
/// text must not reach the index, because it can carry instructions for a model that no person would see.
pub(super) fn is_hidden(tag: &HtmlTag) -> bool {
    let is_not_text = matches!(
        tag.name.as_str(),
        "script"
            | "style"
            | "template"
            | "noscript"
            | "iframe"
            | "noembed"
            | "noframes"
            | "object"
            | "svg"
            | "canvas"
            | "audio"
            | "video"
            | "map"
            | "select"
            | "datalist"
            | "button"
            | "textarea"
            | "rt"
            | "rp"
            | "annotation"
            | "annotation-xml"
            | "applet"
    );
    let aria = |value: &str| value.trim().eq_ignore_ascii_case("true");
    is_not_text
        || (tag.name == "dialog" && tag.get("open").is_none())
        || tag.get("hidden").is_some()
        || tag.get("aria-hidden").is_some_and(aria)
        || tag.get("style").is_some_and(style_hides)
}

/// Whether an inline style makes an element invisible.
fn style_hides(style: &str) -> bool {
    let style = without_comments(style).to_ascii_lowercase();
    style.split(';').any(|declaration| {
        let Some((property, value)) = declaration.split_once(':') else {
            return false;
        };
        let value = value.split('!').next().unwrap_or_default().trim();
        let is_zero = || {
            let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
            digits.parse() == Ok(0.0_f64)
        };
        match property.trim() {
            "display" => value == "none",
            "visibility" => value == "hidden" || value == "collapse",
            "content-visibility" => value == "hidden",
            "opacity" | "font-size" => is_zero(),
            _ => false,
        }
    })
}

fn without_comments(style: &str) -> String {
    let mut out = String::with_capacity(style.len());
    let mut rest = style;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

/// The region of the page to which the text of an element belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageRegion {
    /// Content around the document: menus, banners, sidebars.
    Boilerplate,
    /// Content of the page outside any marked region.
    Body,
    Article,
    Main,
}

impl PageRegion {
    /// The region inside an element that itself stands in this region.
    pub(super) fn inside(self, tag: &HtmlTag) -> Self {
        if confluence::is_content(tag) {
            return Self::Main;
        }
        let role = tag.get("role").map(|role| role.trim().to_ascii_lowercase());
        match (role.as_deref().unwrap_or_default(), tag.name.as_str()) {
            ("main", _) | (_, "main") => Self::Main,
            ("navigation" | "search", _) | (_, "nav" | "search") => Self::Boilerplate,
            // EPUB marks footnotes as `aside` with a `doc-` role.
            (role, "aside") if role.starts_with("doc-") => self,
            // Inside the main content, headers, footers and asides belong to the document.
            ("banner" | "contentinfo" | "complementary", _)
            | (_, "header" | "footer" | "aside")
                if self == Self::Body =>
            {
                Self::Boilerplate
            }
            (_, "article") if self == Self::Body => Self::Article,
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_elements_are_hidden() {
        for style in [
            "display:none",
            " DISPLAY : none !important; color: red",
            "color:red;visibility: hidden",
            "dis/* x */play:/**/none",
            "opacity:0",
            "opacity: .0 ",
            "font-size:0px",
            "font-size: 0.00em",
        ] {
            assert!(is_hidden(&HtmlTag::of("p", &[("style", style)])), "{style}");
        }
        for style in [
            "display:block",
            "opacity:0.5",
            "font-size:10px",
            "background:url(display:none)",
            "/* display:none",
            "display",
            "",
        ] {
            assert!(
                !is_hidden(&HtmlTag::of("p", &[("style", style)])),
                "{style}"
            );
        }
        assert!(is_hidden(&HtmlTag::of("p", &[("hidden", "")])));
        assert!(is_hidden(&HtmlTag::of("p", &[("aria-hidden", "true")])));
        assert!(!is_hidden(&HtmlTag::of("p", &[("aria-hidden", "false")])));
        assert!(is_hidden(&HtmlTag::of("dialog", &[])));
        assert!(!is_hidden(&HtmlTag::of("dialog", &[("open", "")])));
    }

    #[test]
    fn a_header_belongs_to_what_it_stands_in() {
        let header = HtmlTag::of("header", &[]);
        assert_eq!(PageRegion::Body.inside(&header), PageRegion::Boilerplate);
        assert_eq!(PageRegion::Article.inside(&header), PageRegion::Article);
        assert_eq!(
            PageRegion::Main.inside(&HtmlTag::of("nav", &[])),
            PageRegion::Boilerplate
        );
        assert_eq!(
            PageRegion::Boilerplate.inside(&HtmlTag::of("article", &[])),
            PageRegion::Boilerplate
        );
        assert_eq!(
            PageRegion::Body.inside(&HtmlTag::of("div", &[("role", "Main")])),
            PageRegion::Main
        );
    }
}
