//! Unit tests of the Word parser: small documents and the text they are rendered to.

use super::*;

fn check(body: &str, expect: &str) {
    let mut found = DocxBody {
        styles: DocxStyles::read("<s><style styleId='H'><name val='heading 1'/></style><style styleId='V'><rPr><vanish/></rPr></style></s>").unwrap(),
        max_bytes: 1_000,
        ..DocxBody::default()
    };
    found.read(&format!("<body>{body}</body>"), "").unwrap();
    assert_eq!(found.layout.finish(), expect, "{body}");
}

#[test]
fn paragraphs_and_what_is_in_them() {
    check(
        "<p><pPr><pStyle val='H'/></pPr><r><t>Fares</t></r></p><p><r><t xml:space='preserve'>One </t></r><r><tab/><t>two</t><br/><t>three</t></r></p>",
        "# Fares\n\nOne two\nthree",
    );
    check(
        "<p><r><t>well</t><noBreakHyphen/><t>known</t></r></p><p/>",
        "well-known",
    );
}

#[test]
fn hidden_text_is_left_out() {
    check(
        "<p><r><rPr><vanish/></rPr><t>x</t></r><r><t>a</t></r></p>",
        "a",
    );
    check("<p><r><rPr><vanish val='0'/></rPr><t>a</t></r></p>", "a");
    check(
        "<p><r><rPr><rStyle val='V'/></rPr><t>x</t></r><r><t>a</t></r></p>",
        "a",
    );
    check(
        "<p><del><r><t>x</t></r></del><ins><r><t>a</t></r></ins></p>",
        "a",
    );
    check("<p><r><instrText>PAGE</instrText><t>a</t></r></p>", "a");
    check(
        "<p><pPr><pStyle val='TOC1'/></pPr><r><t>x</t></r></p><p><r><t>a</t></r></p>",
        "a",
    );
    check(
        "<p><AlternateContent><Choice><r><t>a</t></r></Choice><Fallback><r><t>a</t></r></Fallback></AlternateContent></p>",
        "a",
    );
    check(
        "<p><pPr><pPrChange><pPr><pStyle val='H'/></pPr></pPrChange></pPr><r><t>a</t></r></p>",
        "a",
    );
}

#[test]
fn tables_and_lists() {
    check(
        "<tbl><tr><tc><p><r><t>a</t></r></p></tc><tc><p/></tc><tc><p><r><t>b</t></r></p></tc></tr></tbl><p><r><t>c</t></r></p>",
        "a |  | b\n\nc",
    );
    check(
        "<p><pPr><numPr><ilvl val='0'/><numId val='9'/></numPr></pPr><r><t>a</t></r></p><p><pPr><numPr><ilvl val='1'/><numId val='9'/></numPr></pPr><r><t>b</t></r></p><p><r><t>c</t></r></p>",
        "- a\n  - b\n\nc",
    );
}

#[test]
fn text_ends_at_its_bound() {
    let long = |count: usize| {
        let mut body = DocxBody {
            max_bytes: 40,
            ..DocxBody::default()
        };
        let text = format!("<p><t>{}</t></p>", "x".repeat(count));
        body.read(&text, "")
    };
    assert_eq!(long(40), Ok(()));
    assert_eq!(long(41), Err(IngestError::TextTooLong { limit: 10 }));
}
