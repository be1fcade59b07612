//! Tests of the query language: what each query is parsed to.

mod bombs;
mod properties;
mod sentences;

use super::{ParsedQuery, parse};
use crate::calendar::Day;
use crate::catalog::{Catalog, CatalogBuilder};

fn today() -> Day {
    Day::new(2024, 8, 15).unwrap()
}

/// A catalog of parliamentary speeches with a field of every kind.
fn catalog() -> Catalog {
    let mut builder = CatalogBuilder::new();
    builder.documents(400);
    for party in [
        "Labor",
        "Greens",
        "Meadow Alliance",
        "Civic Union",
        "Union, Old",
    ] {
        builder.text("party", party, 80);
    }
    for speaker in [
        "Ondra Vellacott",
        "Ilke Sandersby",
        "Ruane Hollisk",
        "Jo Hollisk",
    ] {
        builder.text("speaker", speaker, 100);
    }
    for state in ["The Sound", "Highfell"] {
        builder.text("state", state, 200);
    }
    builder.list("topic_tags", 400);
    for tag in ["budget", "ferries", "tarn-orr"] {
        builder.item("topic_tags", tag, 100);
    }
    builder.list("keywords", 400);
    for n in 0..60 {
        builder.item("keywords", &format!("k{n}"), 1);
    }
    for n in 0..400 {
        builder.text("reference", &format!("Debates, p. {n}"), 1);
    }
    builder.text("session", "47-1", 300);
    builder.number("session", (46.0, 47.0), 100);
    let day = |year, month, day| Day::new(year, month, day).unwrap();
    builder.date("date", (day(2022, 1, 1), day(2024, 8, 1)), 400);
    builder.date("received", (day(2022, 1, 1), day(2024, 8, 1)), 300);
    builder.number("words", (300.0, 1_500.0), 400);
    builder.flag("open", true, 100);
    builder.flag("open", false, 300);
    builder.build()
}

/// The parts of a parsed query, one a line, so that a failing test shows them all.
fn shown(parsed: &ParsedQuery) -> String {
    let mut lines = vec![format!("text: {}", parsed.text)];
    lines.extend(parsed.phrases.iter().map(|one| format!("phrase: {one}")));
    lines.extend(parsed.excluded.iter().map(|one| format!("without: {one}")));
    lines.extend(parsed.filter.iter().map(|one| format!("filter: {one}")));
    for ignored in &parsed.ignored {
        let meant = ignored.meant.as_ref();
        let meant = meant.map_or_else(String::new, |meant| format!(" -> {meant}"));
        lines.push(format!("ignored: {}{meant}", ignored.written));
    }
    lines.join("\n")
}

/// Checks the text and, after a line break, everything else that was parsed.
fn check(query: &str, expected: &str) {
    let parsed = parse(query, &catalog(), today());
    let expected = format!("text: {expected}");
    assert_eq!(shown(&parsed), expected.trim_end(), "{query}");
}

#[test]
fn fields_are_filters() {
    check("housing party:Labor", "housing\nfilter: party is Labor");
    check("housing PARTY:labor", "housing\nfilter: party is Labor");
    check("party:Labor housing", "housing\nfilter: party is Labor");
    check("a party:Labor. b", "a b\nfilter: party is Labor");
    check("party:Labor,Greens", "\nfilter: party is Labor or Greens");
    check(
        "party:(Labor OR Greens) a",
        "a\nfilter: party is Labor or Greens",
    );
    check(
        "party:(Meadow Alliance or \"Union, Old\", greens)",
        "\nfilter: party is Meadow Alliance or Union, Old or Greens",
    );
    check(
        "speaker:\"ilke sandersby\" a",
        "a\nfilter: speaker is Ilke Sandersby",
    );
    check(
        "speaker:“Ilke Sandersby” a",
        "a\nfilter: speaker is Ilke Sandersby",
    );
    check("topic-tags:Budget", "\nfilter: topic_tags is budget");
    check("topictags:\"tarn orr\"", "\nfilter: topic_tags is tarn-orr");
    check("open:yes", "\nfilter: open is true");
    check("open=false", "\nfilter: open is false");
    check("party=Labor", "\nfilter: party is Labor");
    check("party：Labor", "\nfilter: party is Labor");
    check("\u{202E}party:Labor\u{202C}", "\nfilter: party is Labor");
    check("party:Labor, housing", "housing\nfilter: party is Labor");
}

#[test]
fn known_values_need_no_quotes() {
    check(
        "party:Meadow Alliance water",
        "water\nfilter: party is Meadow Alliance",
    );
    check(
        "party:Meadow  alliance? water",
        "water\nfilter: party is Meadow Alliance",
    );
    check(
        "party:Labor,Civic Union,Greens x",
        "x\nfilter: party is Labor or Civic Union or Greens",
    );
    check("(party:Civic Union) x", "x\nfilter: party is Civic Union");
    check(
        "speaker:Vellacott x",
        "x\nfilter: speaker is Ondra Vellacott",
    );
    check("speaker:hollisk x", "hollisk x\nignored: speaker:hollisk");
    check(
        "party:Meadow water",
        "water\nfilter: party is Meadow Alliance",
    );
    check("party: Labor water", "water\nfilter: party is Labor");
    check(
        "party: Civic Union water",
        "water\nfilter: party is Civic Union",
    );
    check(
        "party: \"Civic Union\" water",
        "water\nfilter: party is Civic Union",
    );
    check("words: 500 water", "water\nfilter: words is 500");
    check(
        "state: the sound of water",
        "of water\nfilter: state is The Sound",
    );
    check("state: the river", "state: the river");
    check("party: who is it", "party: who is it");
    check("date: today we met", "date: today we met");
    check("reference: see page 4", "reference: see page 4");
    check("party:", "party:");
    check("party:,", "party:,");
    check("party::Labor", "party::Labor");
}

#[test]
fn values_that_no_document_has_are_reported() {
    check(
        "housing party:Labour",
        "housing Labour\nignored: party:Labour -> party:Labor",
    );
    check("party:Purple", "Purple\nignored: party:Purple");
    check(
        "party:\"Meadow Aliance\"",
        "Meadow Aliance\nignored: party:\"Meadow Aliance\" -> party:\"Meadow Alliance\"",
    );
    check(
        "party:Labor,Grens",
        "Grens\nfilter: party is Labor\nignored: party:Grens -> party:Greens",
    );
    check("a -party:Labour", "a\nignored: party:Labour -> party:Labor");
    check(
        "a -(party:Labour)",
        "a\nignored: party:Labour -> party:Labor",
    );
    check("party:\"\" a", "a\nignored: party:\"\"");
    check("keywords:nothing", "\nfilter: keywords is nothing");
    check(
        "reference:\"Debates, p. 3\"",
        "\nfilter: reference is Debates, p. 3",
    );
    check("reference:xyz.", "\nfilter: reference is xyz");
    check("session:47", "\nfilter: session is 47 or session is 47");
    check(
        "session:46..47",
        "\nfilter: session is 46..47 or session at least 46 and at most 47",
    );
    check("session:abc", "\nfilter: session is abc");
    check("words:many", "many\nignored: words:many");
    check("date:soon", "soon\nignored: date:soon");
    check("open:maybe", "maybe\nignored: open:maybe");
    let parsed = parse("party:Labour words:x date:x open:x", &catalog(), today());
    let reasons: Vec<_> = parsed
        .ignored
        .iter()
        .map(|one| one.reason.as_str())
        .collect();
    assert_eq!(
        reasons,
        [
            "no `party` is `Labour`, only `Civic Union`, `Greens`, `Labor`, `Meadow Alliance`, `Union, Old`",
            "`x` is not a number such as `500`, `>500` or `100..200`",
            "`x` is not a date such as `2024-06-30`, `2024-06` or `30d`",
            "`x` is neither `true` nor `false`",
        ]
    );
}

#[test]
fn names_that_no_field_has_are_text() {
    check("foo:bar", "foo:bar");
    check(
        "parti:Labor a",
        "parti Labor a\nignored: parti:Labor -> party:Labor",
    );
    check(
        "tag:budget a",
        "tag budget a\nignored: tag:budget -> topic_tags:budget",
    );
    check(
        "a -tag:budget",
        "a\nignored: tag:budget -> topic_tags:budget",
    );
    check("a -foo:bar", "a\nignored: foo:bar");
    check("why not foo:bar", "why not foo:bar");
    check(
        "data:2024 a",
        "data 2024 a\nignored: data:2024 -> date:2024",
    );
    check("data:image/png a", "data:image/png a");
    check("foo:\"b c\" d", "foo b c d\nignored: foo:\"b c\"");
    check("foo:>5", "foo >5\nignored: foo:>5");
    check("foo:1..5", "foo 1..5\nignored: foo:1..5");
    check("foo:\"b c d", "foo:\"b c d");
    check("foo<5 party<3", "foo<5 party<3");
    check("foo:(a b)", "foo:(a b)");
    let parsed = parse("parti:\"Civic Union\"", &catalog(), today());
    assert_eq!(
        parsed.ignored[0].meant.as_deref(),
        Some("party:\"Civic Union\"")
    );
    assert_eq!(parsed.ignored[0].reason, "no field is named `parti`");
}

#[test]
fn dates_and_numbers_have_ranges() {
    let from_to = |from: &str, to: &str| format!("\nfilter: date from {from} to {to}");
    check(
        "date:2024-06..2024-09",
        &from_to("2024-06-01", "2024-09-30"),
    );
    check("date:2024", &from_to("2024-01-01", "2024-12-31"));
    check("year:2024", &from_to("2024-01-01", "2024-12-31"));
    check("year:2022..2023", &from_to("2022-01-01", "2023-12-31"));
    check("date:30d", &from_to("2024-07-16", "2024-08-15"));
    check("date:today.", "\nfilter: date is 2024-08-15");
    check("date:2024..", "\nfilter: date from 2024-01-01");
    check("date:..2023", "\nfilter: date up to 2023-12-31");
    check("date:>=2024-05", "\nfilter: date from 2024-05-01");
    check("date>=2024-05 a", "a\nfilter: date from 2024-05-01");
    check("since:30d", "\nfilter: date from 2024-07-16");
    check("since:2024", "\nfilter: date from 2024-01-01");
    check("after:2024", "\nfilter: date from 2025-01-01");
    check("before:2024", "\nfilter: date up to 2023-12-31");
    check("until:2024", "\nfilter: date up to 2024-12-31");
    check("a since:lunch", "a lunch\nignored: since:lunch");
    check(
        "received:2023-q1",
        "\nfilter: received from 2023-01-01 to 2023-03-31",
    );
    check("words:>500", "\nfilter: words more than 500");
    check("words>500 a", "a\nfilter: words more than 500");
    check(
        "words:100..200",
        "\nfilter: words at least 100 and at most 200",
    );
    check("words:<=3", "\nfilter: words at most 3");
    check("words:5,7", "\nfilter: words is 5 or words is 7");
    check(
        "words:0..99999999999999999999",
        "\nfilter: words at least 0 and at most 1e20",
    );
    check(
        "since:99999999999999999999d a",
        "99999999999999999999d a\nignored: since:99999999999999999999d",
    );
}

#[test]
fn words_about_dates_are_fields_where_fields_are_so_named() {
    let mut builder = CatalogBuilder::new();
    builder.documents(4);
    for name in ["re", "http", "before"] {
        builder.text(name, "x", 4);
    }
    let catalog = builder.build();
    let cases = [
        ("before:x", "text: \nfilter: before is x"),
        ("re:x", "text: \nfilter: re is x"),
        ("re: x", "text: \nfilter: re is x"),
        ("re: y", "text: re: y"),
        ("http:x", "text: \nfilter: http is x"),
        ("http://x", "text: //x\nignored: http://x"),
        ("since:2024", "text: since 2024\nignored: since:2024"),
        ("since:lunch", "text: since:lunch"),
    ];
    for (query, expected) in cases {
        assert_eq!(shown(&parse(query, &catalog, today())), expected, "{query}");
    }
}

#[test]
fn the_date_is_the_field_that_holds_days() {
    let mut builder = CatalogBuilder::new();
    builder.documents(4);
    let day = Day::new(2024, 1, 1).unwrap();
    builder.date("published", (day, day), 4);
    builder.date("reviewed", (day, day), 2);
    let catalog = builder.build();
    for query in ["date:2024-01-01", "year:2024-01-01"] {
        let parsed = parse(query, &catalog, today());
        assert_eq!(shown(&parsed), "text: \nfilter: published is 2024-01-01");
    }
}

#[test]
fn phrases_and_exclusions() {
    check(
        "a \"exact phrase\" b",
        "a exact phrase b\nphrase: exact phrase",
    );
    check(
        "a “exact phrase” b",
        "a exact phrase b\nphrase: exact phrase",
    );
    check("a -b", "a\nwithout: b");
    check("a -\"b c\" d", "a d\nwithout: b c");
    check("a -(b c) d", "a d\nwithout: b\nwithout: c");
    check("a -(b -c) d", "a c d\nwithout: b");
    check("housing NOT rent", "housing\nwithout: rent");
    check("housing AND NOT rent", "housing\nwithout: rent");
    check("housing NOT \"high rent\"", "housing\nwithout: high rent");
    check(
        "housing NOT (rent lease)",
        "housing\nwithout: rent\nwithout: lease",
    );
    check("why not (rent)", "why rent");
    check("-b", "b");
    check("-b -\"c d\"", "b c d");
    check("party:Labor -b", "\nwithout: b\nfilter: party is Labor");
    check("\"a b\" OR \"c d\" \"e f\" g", "a b c d e f g\nphrase: e f");
    check("(\"a b\" x) OR \"c d\"", "a b x c d");
    check("\"\" a \"...\"", "a ...");
}

#[test]
fn conditions_are_joined() {
    let labor_or_greens = "filter: party is Labor or Greens";
    check(
        "(party:Labor OR party:Greens) housing",
        &format!("housing\n{labor_or_greens}"),
    );
    check(
        "party:Labor OR party:Greens",
        &format!("\n{labor_or_greens}"),
    );
    check(
        "party:Labor or party:Greens",
        &format!("\n{labor_or_greens}"),
    );
    check(
        "party:Labor | party:Greens a",
        &format!("a\n{labor_or_greens}"),
    );
    check(
        "PARTY:LABOR OR PARTY:GREENS",
        &format!("\n{labor_or_greens}"),
    );
    check(
        "party:Labor and open:yes",
        "\nfilter: party is Labor and open is true",
    );
    check("-party:Labor a", "a\nfilter: party is not Labor");
    check("NOT party:Labor", "\nfilter: party is not Labor");
    check("not party:Labor a", "a\nfilter: party is not Labor");
    check(
        "-(party:Labor OR party:Greens) a",
        "a\nfilter: not (party is Labor or Greens)",
    );
    check("NOT (NOT party:Labor)", "\nfilter: party is Labor");
    check(
        "open:yes party:Labor OR party:Greens words:5",
        "\nfilter: open is true and (party is Labor or Greens) and words is 5",
    );
    check(
        "open:yes AND party:Labor OR open:no AND party:Greens",
        "\nfilter: (open is true and party is Labor) or (open is false and party is Greens)",
    );
    check(
        "(party:Labor housing) OR (party:Greens rent)",
        &format!("housing rent\n{labor_or_greens}"),
    );
    check(
        "party:Labor OR party:Purple party:Greens",
        "Purple\nfilter: party is Labor and party is Greens\nignored: party:Purple",
    );
    check(
        "party:Purple OR party:Greens",
        "Purple\nfilter: party is Greens\nignored: party:Purple",
    );
    check(
        "party:Labor OR housing",
        "housing\nfilter: party is Labor\nignored: OR",
    );
    check(
        "party:Labor or housing",
        "or housing\nfilter: party is Labor",
    );
    check("(party:Labor", "\nfilter: party is Labor");
    check("party:Labor) a", "a\nfilter: party is Labor");
}

#[test]
fn applied_conditions_are_described_in_order() {
    let query = "housing (party:Labor OR -open:yes) -\"b c\" date:2024 \"d e\" NOT f";
    let parsed = parse(query, &catalog(), today());
    let applied: Vec<_> = parsed
        .applied
        .iter()
        .map(|one| (one.written.as_str(), one.meaning.as_str()))
        .collect();
    assert_eq!(
        applied,
        [
            (
                "(party:Labor OR -open:yes)",
                "party is Labor or open is not true"
            ),
            ("-\"b c\"", "without `b c`"),
            ("date:2024", "date from 2024-01-01 to 2024-12-31"),
            ("\"d e\"", "with `d e`"),
            ("NOT f", "without `f`"),
        ]
    );
}
