//! Unit tests of the HTML parser: small pages with their expected text, and large pages that probe its
//! limits.

use super::*;

fn text(page: &str) -> String {
    read(page.as_bytes(), ReaderKeys::default()).unwrap().text
}

fn check(page: &str, expect: &str) {
    assert_eq!(text(page), expect, "{page}");
}

#[test]
fn pages_are_known_by_how_they_begin() {
    for page in [
        "<!DOCTYPE html>",
        "\u{FEFF} \n<!-- saved -->\n<html lang=en>",
        "<?xml version='1.0'?><!DOCTYPE html PUBLIC 'x'>",
        "<HTML>",
        "<head><title>",
        "<body bgcolor=white>",
    ] {
        assert!(has_html_signature(page.as_bytes()), "{page}");
    }
    let wide: Vec<u8> = "\u{FEFF}<html>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert!(has_html_signature(&wide));
    for page in [
        "<div>",
        "# <html>",
        "<htmlx>",
        "<!-- <html>",
        "<?xml ?><rss>",
        "<header>",
        "",
    ] {
        assert!(!has_html_signature(page.as_bytes()), "{page}");
    }
}

#[test]
fn blocks_become_lines() {
    check(
        "<body><h1>Ferry  <em>times</em></h1><p>One &amp; two&nbsp;three<br>four<div>five</div>six",
        "# Ferry times\n\nOne & two three\nfour\n\nfive\n\nsix",
    );
    check(
        "<ul><li>a<ul><li>b</ul><li><p>c</p></ul>",
        "- a\n  - b\n- c",
    );
    check("<ol start=3><li>a<li>b</ol>", "3. a\n4. b");
    check(
        "<dl><dt>Hull<dd>Steel<dt>Mast<dd>Pine</dl>",
        "Hull\nSteel\nMast\nPine",
    );
    check("<pre>\n# a\n  b</pre>", "```\n# a\n  b\n```");
    check(
        "<blockquote><p>Go.</blockquote><q>No</q>.",
        "> Go.\n\n“No”.",
    );
    check(
        "deep<sup><a>1</a></sup>, H<sub>2</sub>O, the 1<sup>st</sup>",
        "deep^1, H2O, the 1st",
    );
    check("<a href=/x>the <b>words</b></a> stay", "the words stay");
}

#[test]
fn tables_become_rows() {
    check(
        "<table><caption>Fares</caption><thead><tr><th>From<th>To</thead><tr><td>Orrin</td><td><p>Tarn</p></td></table>after",
        "Fares\n\nFrom | To\nOrrin | Tarn\n\nafter",
    );
    check(
        "<table><tr><td><h2>Side</h2><p>a</p><p>b</p><td>c</table>",
        "## Side\n\na\n\nb\n\nc",
    );
}

#[test]
fn hidden_elements_are_left_out() {
    check("a<!-- b --><p hidden>c<p>d", "a\n\nd");
    check("<section><div style='display: none'>x</section>y", "y");
    check("<div aria-hidden=true><div>x</div>y</div>z", "z");
    check("<input hidden>a<br hidden>b", "a\nb");
    check(
        "<script>var x='<p>';</script><style>p{}</style><noscript><p>n</p></noscript>a",
        "a",
    );
    check("<svg><title>t</title><script/><text>x</text></svg>a", "a");
    check("<span hidden><p>x</p></span>a", "a");
    check(
        "<template><p>x</template>a<select><option>b</select><button>c</button>",
        "a",
    );
}

#[test]
fn the_document_is_found_on_the_page() {
    let around = "<nav>Menu</nav><header>Banner</header>";
    check(
        &format!("{around}<main><header><h1>T</h1></header><nav>in</nav>a</main><footer>F"),
        "# T\n\na",
    );
    check(
        &format!("{around}<article>a long article</article><p>b"),
        "a long article",
    );
    check(
        &format!("{around}<article>c</article><p>a longer text"),
        "c\n\na longer text",
    );
    check(
        &format!("{around}<p>a</p><aside>b</aside><div role=contentinfo>c"),
        "a",
    );
    check(around, "Menu\n\nBanner");
    check("<main></main><p>a", "a");
    check("<table><tr><td><nav>n</nav><td>a<td>b</table>", "a\nb");
}

#[test]
fn xml_may_close_any_element_at_once() {
    check(
        "<?xml version='1.0'?><html><head><title/><script src='x'/></head><body><p>a</p></body></html>",
        "a",
    );
    check(
        "<?xml version='1.0'?><html><p>a <![CDATA[<b>]]></p></html>",
        "a <b>",
    );
}

#[test]
fn broken_nesting_loses_nothing() {
    check("<b><p>a</b>b</p>c", "ab\n\nc");
    check(
        "<main><table><tr><td></main></div>a</table>b</main>c",
        "a\n\nb",
    );
    check("</p></div>a", "a");
    check("<p>a<table><tr><td>b</table>", "a\n\nb");
    check("a < b && c <d", "a < b && c");
}

#[test]
fn depth_is_bounded() {
    let deep = |depth: usize| {
        read("<i>".repeat(depth).as_bytes(), ReaderKeys::default()).map(|read| read.text)
    };
    assert_eq!(deep(element_stack::MAX_DEPTH), Ok(String::new()));
    let limit = element_stack::MAX_DEPTH;
    assert_eq!(
        deep(limit + 1),
        Err(IngestError::TooMuchInside {
            limit: limit as u64
        })
    );
}

/// Complexity guard: each of these pages takes minutes if a step costs as much as the depth or length so far.
#[test]
fn large_pages_are_read_in_one_pass() {
    let many = 100_000;
    let nested = format!("{}x{}", "<div>".repeat(many), "</div>".repeat(many));
    assert_eq!(text(&nested), "x");
    let lists = "<ul><li>a".repeat(many);
    assert_eq!(text(&lists).lines().count(), many);
    let tables = "<table><tr><td>a".repeat(many);
    assert_eq!(text(&tables).matches('a').count(), many);
    let unclosed = "<p>a<b>".repeat(many);
    assert_eq!(text(&unclosed).matches('a').count(), many);
    let stray = format!("<div><table><td>{}x", "</div>".repeat(many));
    assert_eq!(text(&stray), "x");
    let attributes = format!("<p {}>x", "a=b ".repeat(many));
    assert_eq!(text(&attributes), "x");
    let picture = format!(
        "<img src='data:image/png;base64,{}'>x",
        "A".repeat(20_000_000)
    );
    assert_eq!(text(&picture), "x");
    let line = format!("<p>{}", "word ".repeat(many));
    assert_eq!(text(&line).len(), "word ".len() * many - 1);
    let quotes = "<blockquote><pre>a</pre>".repeat(many);
    assert_eq!(text(&quotes).matches("```").count(), 2 * many);
    let zones = "<nav>a</nav>b".repeat(many);
    assert_eq!(text(&zones).matches('b').count(), many);
}
