//! The names of HTML elements into what they do to the text: begin a paragraph, a list, a cell; or hide it.

use super::confluence;
use super::emitter::HtmlTag;

/// What an element does to the words inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HtmlElementKind {
    /// Nothing.
    Inline,
    /// Puts them between quotation marks.
    InlineQuote,
    /// Stands on lines of its own.
    Block,
    /// A line of its own without an empty one around it.
    Line,
    Heading(u8),
    List,
    Item,
    Code,
    Quote,
    Table,
    Row,
    Cell,
    /// The document's title.
    Title,
    /// Not HTML: a drawing or a formula.
    Foreign,
    /// A page of its own inside the page, such as a template.
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

    /// Whether it stands on a line with other words.
    pub(super) fn is_inline(self) -> bool {
        matches!(self, Self::Inline | Self::InlineQuote)
    }

    /// Whether the end of an element inside it leaves those around it alone.
    pub(super) fn is_scope_boundary(self) -> bool {
        matches!(
            self,
            Self::Table | Self::Cell | Self::Foreign | Self::Isolated
        )
    }
}

/// Elements that have no content and no end tag.
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

/// Whether a reader of the page does not see what is inside, or it is no text of the document.
pub(super) fn is_hidden(tag: &HtmlTag) -> bool {
    let no_text = matches!(
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
    no_text
        || (tag.name == "dialog" && tag.get("open").is_none())
        || tag.get("hidden").is_some()
        || tag.get("aria-hidden").is_some_and(aria)
        || tag.get("style").is_some_and(style_hides)
}

/// Whether an inline style takes an element out of sight.
fn style_hides(style: &str) -> bool {
    let style = without_comments(style).to_ascii_lowercase();
    style.split(';').any(|declaration| {
        let Some((property, value)) = declaration.split_once(':') else {
            return false;
        };
        let value = value.split('!').next().unwrap_or_default().trim();
        let zero = || {
            let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
            digits.parse() == Ok(0.0_f64)
        };
        match property.trim() {
            "display" => value == "none",
            "visibility" => value == "hidden" || value == "collapse",
            "content-visibility" => value == "hidden",
            "opacity" | "font-size" => zero(),
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

/// Which part of the page an element's text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageRegion {
    /// What surrounds the document: menus, banners, notes at the side.
    Boilerplate,
    /// The page as such.
    Body,
    Article,
    Main,
}

impl PageRegion {
    /// The zone inside a tag that stands in this one.
    pub(super) fn inside(self, tag: &HtmlTag) -> Self {
        if confluence::is_content(tag) {
            return Self::Main;
        }
        let role = tag.get("role").map(|role| role.trim().to_ascii_lowercase());
        match (role.as_deref().unwrap_or_default(), tag.name.as_str()) {
            ("main", _) | (_, "main") => Self::Main,
            ("navigation" | "search", _) | (_, "nav" | "search") => Self::Boilerplate,
            // Footnotes, in books.
            (role, "aside") if role.starts_with("doc-") => self,
            // A document has a head, a foot and notes of its own.
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
    fn what_cannot_be_seen_is_hidden() {
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
