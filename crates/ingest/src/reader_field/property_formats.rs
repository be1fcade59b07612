//! Property tests for formats whose reader field is a property of the file: mail, books, PDF, office files and
//! Notion pages. Whatever such a property holds, it is a list of readers or closes the document.

use proptest::prelude::*;
use serde_json::json;

use super::formats::{any_text, is_well_formed, parse_with_field};
use super::property_files::{
    LISTS, NOTION, TEXTS, book, core, custom, custom_property, docx, elements, mail, ods, odt,
    open_document, pdf, pdf_with, pptx, user_defined, xlsx,
};
use super::*;

/// The reader field of the only document of a file: the names, `!code` for a fault, or `-` if it is absent.
fn readers(field: &str, path: &str, bytes: &[u8]) -> String {
    let shown = String::from_utf8_lossy(bytes);
    let parsed = parse_with_field(field, path, bytes);
    let parsed = parsed.unwrap_or_else(|reason| panic!("{path}: {reason}: {shown}"));
    assert!(parsed.skipped.is_empty(), "{path}: {:?}", parsed.skipped);
    let [document] = parsed.documents.as_slice() else {
        panic!("{path}: {} documents: {shown}", parsed.documents.len())
    };
    let hidden = |(name, _): &(String, DocumentValue)| comparable_name(name) == field;
    assert!(!document.fields.iter().any(hidden), "{path}: {field}");
    match &document.readers {
        ReaderField::Absent => "-".to_owned(),
        ReaderField::Malformed(fault) => format!("!{}", fault.code()),
        ReaderField::Present(DocumentValue::List(names)) => names.join("|"),
        ReaderField::Present(value) => value.to_string(),
    }
}

pub(super) fn check(field: &str, path: &str, bytes: &[u8], expect: &str) {
    let shown = String::from_utf8_lossy(bytes);
    assert_eq!(
        readers(field, path, bytes),
        expect,
        "{path} {field}: {shown}"
    );
}

#[test]
fn properties_are_told_from_their_absence() {
    for (field, path, write) in TEXTS {
        check(field, path, &write("hr"), "hr");
        check(field, path, &write(""), "!empty");
        check(field, path, &write(" ,; "), "!empty");
        let long = format!("hr,{}", "x".repeat(MAX_PRINCIPAL_BYTES + 1));
        check(field, path, &write(&long), "!too-long");
        // A value that is cut at a limit would end in the name of another reader.
        for at in [32 * 1024, 64 * 1024, MAX_READER_TEXT_BYTES] {
            for open in at - 1..=at + 1 {
                let text = format!("x;{}everyone-else", " ".repeat(open - 10));
                let found = readers(field, path, &write(&text));
                let is_cut = found.ends_with("everyone") || found == "-";
                assert!(!is_cut, "{path} {field} {open}");
            }
        }
    }
    for (path, bytes) in [
        ("a.eml", mail("Subject: S\n")),
        ("a.epub", book("<dc:title>T</dc:title>")),
        ("a.pdf", pdf_with("/Title(T)")),
        ("a.pdf", pdf("null", "")),
        ("a.pptx", pptx(core("<dc:title>T</dc:title>"))),
        ("a.docx", docx(core("<dc:title>T</dc:title>"))),
        ("a.xlsx", xlsx(core("<dc:title>T</dc:title>"))),
        ("a.odt", odt("<dc:title>T</dc:title>")),
        ("a.ods", ods("<dc:title>T</dc:title>")),
        (NOTION, b"# Plan\n\nStatus: x\n\nwords\n".to_vec()),
    ] {
        for field in ["allowed", "author", "keywords", "category"] {
            check(field, path, &bytes, "-");
        }
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table is as long as its cases")]
fn a_header_of_mail_is_there_even_if_it_is_empty() {
    let to = |value: &str| mail(&format!("Subject: S\nTo:{value}\nCc: b@isle.example\n"));
    for (value, expect) in [
        (" a@isle.example", "a@isle.example"),
        (
            " Ada <a@isle.example>, \"B, C\" <b@isle.example>",
            "a@isle.example|b@isle.example",
        ),
        (
            " Crew: a@isle.example, Bo <b@isle.example>;",
            "a@isle.example|b@isle.example",
        ),
        ("", "!empty"),
        (" \t", "!empty"),
        (" ,", "!empty"),
        (" undisclosed-recipients:;", "!empty"),
        (" a@isle.example, undisclosed-recipients:;", "!empty"),
        (" everyone", "!no-name"),
        (" a@isle.example, everyone", "!no-name"),
        (" everyone <>", "!no-name"),
        (" everyone (a@isle.example)", "!no-name"),
        (" <signed-in>", "!no-name"),
        (" <group:hr@isle.example>", "!no-name"),
        (" a@isle.example b@isle.example", "!no-name"),
        (" <a@isle.example, b@isle.example>", "!no-name"),
        (" a@", "!no-name"),
        (" =?utf-8?q?a=40isle.example?=", "!no-name"),
    ] {
        check("to", "a.eml", &to(value), expect);
    }
    check("cc", "a.eml", &to(" x"), "b@isle.example");
    check("from", "a.eml", &to(" x"), "-");
    let two = "From: a@isle.example, Bo <b@isle.example>\n";
    check("from", "a.eml", &mail(two), "a@isle.example|b@isle.example");
    let twice = "To: a@isle.example\nSubject: S\nTO : b@isle.example\n";
    check("to", "a.eml", &mail(twice), "!repeated");
    check(
        "to",
        "a.eml",
        &mail("Subject: S\nTo:\nTo: a@isle.example\n"),
        "!repeated",
    );
    check(
        "subject",
        "a.eml",
        &mail("Subject: hr\nSubject: everyone\n"),
        "!repeated",
    );
    check("date", "a.eml", &mail("Subject: S\nDate: soon\n"), "!null");
    check(
        "allowed",
        "a.eml",
        &mail("Subject: S\nAllowed: hr\n"),
        "!misplaced",
    );
    check(
        "bcc",
        "a.eml",
        &mail("Subject: S\nBcc: a@isle.example\n"),
        "!misplaced",
    );
    let many: Vec<_> = (0..=MAX_READERS)
        .map(|n| format!("a{n}@isle.example"))
        .collect();
    check(
        "to",
        "a.eml",
        &to(&format!(" {}", many.join(",\n "))),
        "!too-many",
    );
    // A message may end within its headers.
    check(
        "to",
        "a.eml",
        b"Message-ID: <1@x>\nSubject: S\nTo:",
        "!empty",
    );
    check(
        "to",
        "a.eml",
        b"Message-ID: <1@x>\nSubject: S\nTo:\n",
        "!empty",
    );
    let nameless = "Subject: S\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Disposition: attachment\n\nx\n--b--\n";
    check("attachments", "a.eml", &mail(nameless), "!empty");
    check("attachments", "a.eml", &mail("Subject: S\n"), "-");
    let mailbox = format!(
        "From a@isle.example Tue Mar 12 10:30:00 2024\n{}",
        String::from_utf8(to("")).unwrap()
    );
    check("to", "a.mbox", mailbox.as_bytes(), "!empty");
}

#[test]
fn a_repeated_property_closes_the_document() {
    for (name, field) in [
        ("dc:creator", "author"),
        ("cp:keywords", "keywords"),
        ("dc:subject", "subject"),
        ("dc:title", "title"),
    ] {
        let twice = format!("<{name}>everyone</{name}><{name}>hr</{name}>");
        check(field, "a.docx", &docx(core(&twice)), "!repeated");
        check(field, "a.pptx", &pptx(core(&twice)), "!repeated");
        check(field, "a.xlsx", &xlsx(core(&twice)), "!repeated");
    }
    for (name, field) in [
        ("meta:initial-creator", "author"),
        ("dc:creator", "author"),
        ("dc:subject", "subject"),
    ] {
        let twice = format!("<{name}>everyone</{name}><{name}>hr</{name}>");
        check(field, "a.odt", &odt(&twice), "!repeated");
        check(field, "a.ods", &ods(&twice), "!repeated");
    }
    let both = "<dc:creator>everyone</dc:creator><meta:initial-creator>hr</meta:initial-creator>";
    check("author", "a.odt", &odt(both), "hr");
    let empty = "<dc:creator>everyone</dc:creator><meta:initial-creator/>";
    check("author", "a.odt", &odt(empty), "!empty");
    for name in [
        "title",
        "publisher",
        "description",
        "identifier",
        "language",
    ] {
        let twice = format!("<dc:{name}>everyone</dc:{name}><dc:{name}>hr</dc:{name}>");
        check(name, "a.epub", &book(&twice), "!repeated");
    }
    let info = "/Author(everyone)/Author(hr)";
    check("author", "a.pdf", &pdf_with(info), "!repeated");
    let twice = custom_property("everyone") + &custom_property("hr");
    check("allowed", "a.pptx", &pptx(custom(&twice)), "!repeated");
    check(
        "allowed",
        "a.ods",
        &ods(&(user_defined("everyone") + &user_defined("hr"))),
        "!repeated",
    );
    let named = "<meta:user-defined meta:name=\"keywords\">hr</meta:user-defined><meta:keyword>everyone</meta:keyword>";
    check("keywords", "a.odt", &odt(named), "!repeated");
}

#[test]
fn formats_that_repeat_a_property_list_its_values() {
    let texts = |count: usize| (0..count).map(|n| format!("g{n}")).collect::<Vec<_>>();
    for (field, path, write) in LISTS {
        check(
            field,
            path,
            &write(&texts(MAX_READERS)),
            &texts(MAX_READERS).join("|"),
        );
        check(field, path, &write(&texts(MAX_READERS + 1)), "!too-many");
        check(
            field,
            path,
            &write(&["hr".to_owned(), String::new()]),
            "!empty",
        );
        let cut = format!("everyone{}x", " ".repeat(MAX_READER_TEXT_BYTES));
        check(field, path, &write(&["hr".to_owned(), cut]), "!too-long");
    }
    let keywords = |texts: &[String]| odt(&elements("meta:keyword", texts));
    check(
        "keywords",
        "a.odt",
        &keywords(&["hr, board".to_owned(), "it".to_owned()]),
        "hr|board|it",
    );
    check(
        "keywords",
        "a.odt",
        &keywords(&["hr".to_owned(), String::new()]),
        "!empty",
    );
    check(
        "keywords",
        "a.odt",
        &keywords(&texts(MAX_READERS + 1)),
        "!too-many",
    );
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table is as long as its cases")]
fn properties_of_another_kind_close_the_document() {
    for value in ["5", "null", "[(hr)]", "/hr", "<</X(hr)>>", "99 0 R"] {
        let info = format!("/Title(T)/Author {value}");
        check("author", "a.pdf", &pdf_with(&info), "!not-text");
    }
    check("author", "a.pdf", &pdf_with("/Author()"), "!empty");
    check("author", "a.pdf", &pdf_with("/Author(Anonymous)"), "!empty");
    check(
        "title",
        "a.pdf",
        &pdf_with("/Title(Microsoft Word - everyone)"),
        "Microsoft Word - everyone",
    );
    check(
        "date",
        "a.pdf",
        &pdf_with("/CreationDate(soon)"),
        "!not-text",
    );
    check("allowed", "a.pdf", &pdf_with("/Allowed(hr)"), "!misplaced");
    check(
        "allowed",
        "a.pdf",
        &pdf_with("/Title(T)/Information(allowed)"),
        "-",
    );
    // The dictionary is lost, and with it what it says.
    check("author", "a.pdf", &pdf("5", "/Info 6 0 R"), "!front-matter");
    check(
        "author",
        "a.pdf",
        &pdf("null", "/Info 99 0 R"),
        "!front-matter",
    );
    let whole = pdf_with("/Author(hr)");
    let end = whole
        .windows(7)
        .position(|bytes| bytes == b"trailer")
        .unwrap();
    check(
        "author",
        "a.pdf",
        whole.get(..end).unwrap(),
        "!front-matter",
    );
    let vector = "<property name=\"allowed\"><vt:vector><vt:lpwstr>every</vt:lpwstr><vt:lpwstr>one</vt:lpwstr></vt:vector></property>";
    check("allowed", "a.docx", &docx(custom(vector)), "!not-text");
    for value in ["<vt:i4>7</vt:i4>", "<vt:bool>true</vt:bool>", "<vt:empty/>"] {
        let property = format!("<property name=\"allowed\">{value}</property>");
        check("allowed", "a.docx", &docx(custom(&property)), "!not-text");
    }
    let number =
        "<meta:user-defined meta:name=\"allowed\" meta:value-type=\"float\">7</meta:user-defined>";
    check("allowed", "a.odt", &odt(number), "!not-text");
    let typed = "<meta:user-defined meta:name=\"allowed\" meta:value-type=\"string\">hr</meta:user-defined>";
    check("allowed", "a.odt", &odt(typed), "hr");
    check(
        "date",
        "a.docx",
        &docx(core("<dcterms:created>soon</dcterms:created>")),
        "soon",
    );
    // Properties that become no field.
    check(
        "version",
        "a.docx",
        &docx(core("<cp:version>hr</cp:version>")),
        "!misplaced",
    );
    check(
        "generator",
        "a.odt",
        &odt("<meta:generator>hr</meta:generator>"),
        "!misplaced",
    );
    check(
        "rights",
        "a.epub",
        &book("<dc:rights>hr</dc:rights>"),
        "!misplaced",
    );
    check(
        "allowed",
        "a.epub",
        &book("<meta name=\"allowed\" content=\"hr\"/>"),
        "!misplaced",
    );
    check(
        "allowed",
        "a.epub",
        &book("<meta property=\"x:allowed\">hr</meta>"),
        "!misplaced",
    );
    check(
        "role",
        "a.epub",
        &book("<meta refines=\"#a\" property=\"role\">aut</meta>"),
        "-",
    );
    check("item", "a.epub", &book(""), "-");
}

#[test]
fn a_title_from_the_text_is_no_property() {
    let slide = "PowerPoint Presentation";
    let bytes = pptx(core(&format!("<dc:title>{slide}</dc:title>")));
    check("title", "a.pptx", &bytes, slide);
    let heading = "<text:h text:outline-level=\"1\">everyone</text:h>";
    check("title", "a.odt", &open_document("text", heading, ""), "-");
}

#[test]
fn damaged_properties_close_the_document() {
    let meta = "<meta:user-defined meta:name=\"allowed\">hr</meta:user-defined>";
    for bytes in [odt(meta), ods(meta)] {
        let path = if bytes == odt(meta) { "a.odt" } else { "a.ods" };
        check("allowed", path, &bytes, "hr");
        check(
            "allowed",
            path,
            &corrupt(&bytes, "meta.xml"),
            "!front-matter",
        );
    }
    let bytes = pptx(custom(&custom_property("hr")));
    check(
        "allowed",
        "a.pptx",
        &corrupt(&bytes, "docProps/custom.xml"),
        "!front-matter",
    );
}

/// A package in which the first packed bytes of a part are no data that can be unpacked.
fn corrupt(bytes: &[u8], part: &str) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let name = part.as_bytes();
    let at = bytes.windows(name.len()).position(|window| window == name);
    let start = at.unwrap() + name.len();
    // Deflate has no block of the third type.
    bytes.get_mut(start..start + 4).unwrap().fill(0xFF);
    bytes
}

/// The recipients that a list of addresses names, each with or without a name.
fn recipients() -> impl Strategy<Value = Vec<(String, bool)>> {
    let name = prop_oneof!["[a-z]{1,3}@[a-z]{1,3}", "[a-z@:;<>\" ]{0,6}"];
    prop::collection::vec((name, any::<bool>()), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_text_of_a_property_is_a_list_of_readers_or_nobody(text in "[ a-zA-Z,;@:]{0,9}") {
        let expect = is_well_formed(&json!(text));
        for (field, path, write) in TEXTS {
            let found = readers(field, path, &write(&text));
            prop_assert_ne!(&found, "-", "{} {}", path, field);
            prop_assert_eq!(!found.starts_with('!'), expect, "{} {}: {}", path, field, found);
        }
    }

    #[test]
    fn any_values_of_a_property_are_a_list_of_readers_or_nobody(texts in prop::collection::vec(any_text(), 0..4)) {
        let value = match texts.as_slice() {
            [] => None,
            [one] => Some(json!(one)),
            _ => Some(json!(texts)),
        };
        for (field, path, write) in LISTS {
            let found = readers(field, path, &write(&texts));
            let is_list = !found.starts_with('!') && found != "-";
            prop_assert_eq!(found == "-", value.is_none(), "{} {}: {}", path, field, found);
            prop_assert_eq!(is_list, value.as_ref().is_some_and(is_well_formed), "{} {}: {}", path, field, found);
        }
    }

    #[test]
    fn any_recipients_are_addresses_or_nobody(people in recipients()) {
        let written: Vec<_> = people
            .iter()
            .map(|(address, is_named)| if *is_named { format!("Ada <{address}>") } else { address.clone() })
            .collect();
        let found = readers("to", "a.eml", &mail(&format!("Subject: S\nTo: {}\n", written.join(", "))));
        prop_assert_ne!(&found, "-");
        let is_plain = |name: &str| name.len() >= 3 && name.matches('@').count() == 1 && !name.contains([',', ';', ':', '<', '>', '"', ' ']);
        prop_assert!(found.starts_with('!') || found.split('|').all(is_plain), "{}", found);
        if !people.is_empty() && people.iter().all(|(address, _)| {
            address.split_once('@').is_some_and(|(user, host)| {
                let is_word = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase());
                is_word(user) && is_word(host)
            })
        }) {
            let addresses: Vec<_> = people.iter().map(|(address, _)| address.as_str()).collect();
            prop_assert_eq!(found, addresses.join("|"));
        }
    }
}
