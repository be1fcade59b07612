//! Field rules and permissions applied to documents, one feature per test.

use docent_search::{AllowedReaders, DocId};

use super::*;

fn text(text: &str) -> DocumentValue {
    DocumentValue::Text(text.to_owned())
}

fn document(fields: &[(&str, DocumentValue)]) -> Document {
    let fields = fields.iter();
    Document {
        id: DocId::parse("a").unwrap(),
        title: "Title".to_owned(),
        text: "Words.".to_owned(),
        url: None,
        date: Some("2024-03-12".to_owned()),
        fields: fields
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        source: "minutes/2024/a.md".to_owned(),
        hash: "00".to_owned(),
        readers: AllowedReaders::Everyone,
    }
}

fn applied(rules: &[Rule], document: &mut Document) -> Vec<IngestError> {
    let (limits, options) = (Limits::default(), IngestOptions::default());
    DocumentTransform::new(&limits, &options, rules).transform(document, ReaderField::Absent)
}

fn check(rules: &[Rule], fields: &[(&str, DocumentValue)], expect: &[&str], codes: &[&str]) {
    let mut document = document(fields);
    let warnings = applied(rules, &mut document);
    let found: Vec<_> = document
        .fields
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(found, expect);
    let found: Vec<_> = warnings.iter().map(IngestError::code).collect();
    assert_eq!(found, codes);
}

fn from(name: &str, from: &[&str]) -> Rule {
    Rule {
        from: from.iter().map(|name| (*name).to_owned()).collect(),
        ..Rule::of(name)
    }
}

#[test]
fn fields_are_renamed_in_their_place() {
    let fields = [("Author Name", text("Ilke")), ("z", text("1"))];
    let rules = [from("author", &["writer", "author name"])];
    check(&rules, &fields, &["author=Ilke", "z=1"], &[]);
    // Rules can swap names, because each rule sees the original fields.
    let rules = [from("z", &["Author Name"]), from("Author Name", &["z"])];
    check(&rules, &fields, &["z=Ilke", "Author Name=1"], &[]);
    // The source of a rule wins over an existing field with the target name.
    check(&[from("z", &["Author Name"])], &fields, &["z=Ilke"], &[]);
    check(
        &[from("z", &["none"])],
        &fields,
        &["Author Name=Ilke", "z=1"],
        &[],
    );
}

#[test]
fn values_of_the_wrong_type_are_skipped_with_a_warning() {
    let rule = Rule {
        kind: Some(FieldKind::Number),
        ..Rule::of("year")
    };
    let year = |value: DocumentValue| [("year", value), ("z", text("1"))];
    let rules = std::slice::from_ref(&rule);
    check(rules, &year(text("2024")), &["year=2024", "z=1"], &[]);
    check(rules, &year(text("spring")), &["z=1"], &["wrong-type"]);
    let mut shown = document(&[("year", text(&"é".repeat(61)))]);
    let warning = applied(rules, &mut shown)[0].to_string();
    let shortened = format!(
        "the value of `year` is left out because it is no number: `{}…`",
        "é".repeat(60)
    );
    assert_eq!(warning, shortened);
}

#[test]
fn paths_and_constants_fill_in_what_is_missing() {
    let rule = Rule {
        path: Some(Pattern::parse("minutes/{year}/", "year").unwrap()),
        value: Some(DocumentValue::Number(1.0)),
        kind: Some(FieldKind::Number),
        ..Rule::of("year")
    };
    let rules = std::slice::from_ref(&rule);
    check(rules, &[], &["year=2024"], &[]);
    check(
        rules,
        &[("year", DocumentValue::Number(3.0))],
        &["year=3"],
        &[],
    );
    let elsewhere = Rule {
        path: Some(Pattern::parse("letters/{year}/", "year").unwrap()),
        ..rule
    };
    check(&[elsewhere], &[], &["year=1"], &[]);
}

#[test]
fn hidden_fields_are_gone_from_the_text_too() {
    let hide = |name: &str| Rule {
        hide: true,
        ..Rule::of(name)
    };
    let fields = [
        ("note", text("x")),
        ("note.by", text("y")),
        ("noted", text("z")),
    ];
    check(&[hide("note")], &fields, &["noted=z"], &[]);
    let mut record = document(&fields);
    record.text = "note: x\nnote.by: y\nnoted: z\n".to_owned();
    applied(&[hide("note"), from("kept", &["noted"])], &mut record);
    assert_eq!(record.text, "kept: z\n");
    let mut dated = document(&[("date", text("then"))]);
    applied(&[hide("date")], &mut dated);
    assert_eq!((dated.date, dated.fields.len()), (None, 0));
}

#[test]
fn title_address_and_day_can_come_from_fields() {
    let rules = [
        from("title", &["Headline"]),
        from("date", &["Published"]),
        from("url", &["Page"]),
    ];
    let mut found = document(&[
        ("Headline", text("Rail")),
        ("Published", text("1 April 2023")),
        ("Page", text("https://a.example/")),
    ]);
    assert_eq!(applied(&rules, &mut found), []);
    assert_eq!(found.title, "Rail");
    assert_eq!(found.date.as_deref(), Some("2023-04-01"));
    assert_eq!(found.url.as_deref(), Some("https://a.example/"));
    assert_eq!(found.fields, []);
    let mut bad = document(&[("Page", text("javascript:x"))]);
    assert_eq!(applied(&rules, &mut bad)[0].code(), "wrong-type");
    assert_eq!(bad.url, None);
    let long = |bytes: usize| text(&format!("https://a.example/{}", "x".repeat(bytes - 18)));
    assert!(is_address(&long(MAX_URL_BYTES)) && !is_address(&long(MAX_URL_BYTES + 1)));
    let mut kept = document(&[]);
    assert_eq!(applied(&rules, &mut kept), []);
    assert_eq!(
        (kept.title.as_str(), kept.date.as_deref()),
        ("Title", Some("2024-03-12"))
    );
}

#[test]
fn fields_end_at_their_bound() {
    let rule = Rule {
        value: Some(text("x")),
        ..Rule::of("more")
    };
    let many = |count: usize| {
        let mut full = document(&[]);
        full.fields = (0..count).map(|n| (n.to_string(), text("x"))).collect();
        let warnings = applied(std::slice::from_ref(&rule), &mut full);
        (full.fields.len(), warnings.len())
    };
    assert_eq!(many(MAX_FIELDS - 1), (MAX_FIELDS, 0));
    assert_eq!(many(MAX_FIELDS), (MAX_FIELDS, 1));
}

#[test]
fn the_hash_covers_rules_and_limits() {
    let (limits, options) = (Limits::default(), IngestOptions::default());
    let under = |folder: &str| Rule {
        under: Some(folder.to_owned()),
        value: Some(text("x")),
        ..Rule::of("y")
    };
    let hash = |limits: &Limits, rules: &[Rule], path: &str| {
        DocumentTransform::new(limits, &options, rules).hash(path, "00")
    };
    // Without rules, the hash still covers the version of the text cleaning.
    let plain = hash(&limits, &[], "a/b.md");
    let rules = [under("a")];
    let ruled = hash(&limits, &rules, "a/b.md");
    for hash in [&plain, &ruled] {
        assert!(
            hash.starts_with("00-") && hash.len() == 2 + 1 + DIGITS,
            "{hash}"
        );
    }
    assert_ne!(plain, ruled);
    assert_eq!(hash(&limits, &rules, "ab/b.md"), plain);
    // A rule of permissions ignores case in paths, so the rule that names its field must too.
    assert_eq!(hash(&limits, &rules, "A/b.md"), ruled);
    assert_ne!(hash(&limits, &[from("z", &["y"])], "a/b.md"), ruled);
    let lists = Limits {
        max_files: 1,
        ..Limits::default()
    };
    assert_eq!(hash(&lists, &[], "a/b.md"), plain);
    let fields = Limits {
        max_fields: 1,
        ..Limits::default()
    };
    assert_ne!(hash(&fields, &[], "a/b.md"), plain);
    let mut shaped = document(&[]);
    shaped.source = "a".to_owned();
    applied(&rules, &mut shaped);
    assert_eq!((content_hash(&shaped), shaped.fields.len()), ("00", 1));
}

fn permitted(toml: &str, document: &mut Document) -> Vec<IngestError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("docent.toml"), toml).unwrap();
    let sources = crate::settings::SettingSources {
        folder: Some(folder.path()),
        ..Default::default()
    };
    let settings = crate::settings::resolve(sources).unwrap().settings;
    settings
        .document_transform()
        .transform(document, ReaderField::Absent)
}

#[test]
fn a_field_names_the_readers_and_is_not_shown() {
    let only = |name: &str| {
        let named = docent_search::Principal::parse(name).unwrap();
        AllowedReaders::Only([named].into())
    };
    let rules = "[permissions]\ndefault = \"nobody\"\nfield = \"allowed\"\n";
    for (more, name) in [
        ("", "allowed"),
        ("", "Allowed"),
        ("", "ａｌｌｏｗｅｄ"),
        ("", "\"allowed\""),
        ("[fields.allowed]\nfrom = \"acl\"\n", "acl"),
        ("[fields.allowed]\nhide = true\n", "allowed"),
    ] {
        let mut document = document(&[]);
        document.fields = vec![
            (name.to_owned(), DocumentValue::Text("hr".to_owned())),
            ("year".to_owned(), DocumentValue::Number(2024.0)),
        ];
        document.text = format!("{name}: hr\nyear: 2024\n");
        let before = document.hash.clone();
        assert!(permitted(&format!("{rules}{more}"), &mut document).is_empty());
        assert_eq!(document.readers, only("group:hr"), "{name}");
        assert_eq!(document.fields.len(), 1);
        assert_eq!(document.text, "year: 2024\n");
        assert_ne!(document.hash, before);
    }
    let mut without = document(&[]);
    permitted(rules, &mut without);
    assert_eq!(without.readers, AllowedReaders::Only([].into()));
    let mut shown = document(&[]);
    shown.fields = vec![(
        "allowed".to_owned(),
        DocumentValue::List(vec!["everyone".to_owned()]),
    )];
    permitted(&format!("{rules}show_field = true\n"), &mut shown);
    assert_eq!(
        (shown.readers, shown.fields.len()),
        (AllowedReaders::Everyone, 1)
    );
    let mut open = document(&[]);
    let before = open.hash.clone();
    permitted("", &mut open);
    let as_ever = DocumentTransform::new(&Limits::default(), &IngestOptions::default(), &[])
        .hash(&open.source, &before);
    assert_eq!(
        (open.readers, open.hash),
        (AllowedReaders::Everyone, as_ever)
    );
}

#[test]
fn readers_that_a_rule_computes_are_not_cut_off_with_other_fields() {
    let only = |names: &[&str]| {
        let named = names.iter();
        let named = named.map(|name| docent_search::Principal::parse(name).unwrap());
        AllowedReaders::Only(named.collect())
    };
    let rules = "[permissions]\ndefault = \"everyone\"\nfield = \"allowed\"\n";
    let hr = only(&["group:hr"]);
    let group = only(&["group:minutes"]);
    let nobody = only(&[]);
    for (more, expect) in [
        ("[fields.allowed]\nvalue = \"hr\"\n", &hr),
        ("[fields.Allowed]\nvalue = \"hr\"\n", &hr),
        ("[fields.allowed]\npath = \"{allowed}/\"\n", &group),
        // The rules make something of it that is no list of readers.
        (
            "[fields.allowed]\nfrom = \"title\"\ntype = \"number\"\n",
            &nobody,
        ),
        ("[fields.\"allowed.groups\"]\nvalue = \"hr\"\n", &nobody),
    ] {
        for count in [0, 1, MAX_FIELDS - 1, MAX_FIELDS] {
            let mut document = document(&[]);
            document.fields = (0..count)
                .map(|n| (format!("f{n}"), DocumentValue::Number(1.0)))
                .collect();
            permitted(&format!("{rules}{more}"), &mut document);
            assert_eq!(&document.readers, expect, "{more} {count}");
            assert_eq!(document.fields.len(), count, "{more} {count}");
        }
    }
    let nested = "[permissions]\ndefault = \"everyone\"\nfield = \"access.groups\"\n";
    let mut inner = document(&[]);
    permitted(
        &format!("{nested}[fields.access]\nvalue = \"hr\"\n"),
        &mut inner,
    );
    assert_eq!(inner.readers, nobody);
}

#[test]
fn a_title_that_may_have_been_truncated_names_nobody() {
    let rules = "[permissions]\ndefault = \"everyone\"\nfield = \"title\"\n";
    let readers = |title: String| {
        let mut titled = document(&[]);
        titled.title = title;
        permitted(rules, &mut titled);
        titled.readers
    };
    let open = |chars: usize| format!("{}everyone", "x,".repeat((chars - 8) / 2));
    assert_eq!(readers(open(510)), AllowedReaders::Everyone);
    assert_eq!(readers(open(512)), AllowedReaders::Only([].into()));
}
