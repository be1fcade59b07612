//! Tests for the parts of an Office file that have properties: core, extended and custom ones, wherever they
//! are. Where one of them may have had the reader field, nobody may read the document.

use super::formats::{OFFICE, types, zipped};
use super::property_files::{core, docx, extended, pptx, xlsx};
use super::property_formats::check;

#[test]
fn extended_properties_of_office_files_close_the_document() {
    type OfficeSample = fn((&'static str, String)) -> Vec<u8>;
    let formats: [(&str, OfficeSample); 3] = [("a.docx", docx), ("a.pptx", pptx), ("a.xlsx", xlsx)];
    for (path, write) in formats {
        for (field, property, expect) in [
            ("company", "<Company>hr</Company>", "!misplaced"),
            ("company", "<Company/>", "!misplaced"),
            ("Manager", "<Manager>hr</Manager>", "!misplaced"),
            ("access.manager", "<Manager>hr</Manager>", "-"),
            ("company", "<Manager>hr</Manager>", "-"),
            ("properties", "<Company>hr</Company>", "-"),
            ("allowed", "<Company>allowed</Company>", "-"),
            ("company", "<Company>hr", "!front-matter"),
        ] {
            check(field, path, &write(extended(property)), expect);
        }
        check("company", path, &write(core("")), "-");
    }
}

/// A document whose properties are in parts with names of their own.
fn related_docx(parts: &[(&str, &str)], relations: &[(&str, &str)]) -> Vec<u8> {
    let relations = [("officeDocument", "word/document.xml")]
        .iter()
        .chain(relations);
    let relations: String = relations
        .map(|(kind, target)| {
            format!("<Relationship Id=\"r\" Type=\"{OFFICE}/{kind}\" Target=\"{target}\"/>")
        })
        .collect();
    let relations = format!("<Relationships>{relations}</Relationships>");
    let (types_path, types) = types("word/document.xml", "wordprocessingml.document");
    let text = "<document><body><p><r><t>words</t></r></p></body></document>";
    let mut all = vec![
        (types_path, types.as_str()),
        ("_rels/.rels", relations.as_str()),
        ("word/document.xml", text),
    ];
    all.extend(parts);
    zipped(&all)
}

#[test]
fn properties_are_found_by_their_relationship() {
    let app = ("x/y.xml", "<Properties><Company>hr</Company></Properties>");
    for kind in ["extended-properties", "extendedProperties"] {
        let bytes = related_docx(&[app], &[(kind, "x/y.xml")]);
        check("company", "a.docx", &bytes, "!misplaced");
        let twice = related_docx(&[app], &[(kind, "x/y.xml"), (kind, "X/Y.xml")]);
        check("company", "a.docx", &twice, "!misplaced");
    }
    let author = |name: &str| format!("<p><creator>{name}</creator></p>");
    let (hr, board) = (author("hr"), author("board"));
    let kind = "core-properties";
    let one = related_docx(&[("c.xml", &hr)], &[(kind, "c.xml")]);
    check("author", "a.docx", &one, "hr");
    let parts = [("c.xml", hr.as_str()), ("docProps/core.xml", &board)];
    let unrelated = related_docx(&parts, &[(kind, "c.xml")]);
    check("author", "a.docx", &unrelated, "!repeated");
    let parts = [("c.xml", hr.as_str()), ("d.xml", &board)];
    let both = related_docx(&parts, &[(kind, "c.xml"), (kind, "d.xml")]);
    check("author", "a.docx", &both, "!repeated");
}

#[test]
fn missing_properties_close_the_document() {
    let present = ("there.xml", "<p/>");
    for kind in [
        "core-properties",
        "extended-properties",
        "custom-properties",
    ] {
        let missing = related_docx(&[], &[(kind, "gone.xml")]);
        check("allowed", "a.docx", &missing, "!front-matter");
        let second = related_docx(&[present], &[(kind, "there.xml"), (kind, "gone.xml")]);
        check("allowed", "a.docx", &second, "!front-matter");
        let there = related_docx(&[present], &[(kind, "there.xml")]);
        check("allowed", "a.docx", &there, "-");
    }
}
