//! Natural sentences that must not be mistaken for the query language.

use super::{catalog, today};
use crate::calendar::Day;
use crate::grammar::{ParsedQuery, parse};

/// Checks that the sentence is parsed to text and nothing else.
fn check(sentence: &str) {
    let parsed = parse(sentence, &catalog(), today());
    let expected = ParsedQuery {
        text: sentence.to_owned(),
        ..ParsedQuery::default()
    };
    assert_eq!(parsed, expected);
}

#[test]
fn a_sentence_is_text() {
    for sentence in [
        "What did the minister say about ferries?",
        "re: your mail",
        "Re:your mail",
        "ratio 3:1",
        "http://x.y/z",
        "see https://example.org/a?b=c&d=(e)",
        "Genesis 1:3",
        "time 12:30",
        "12:30:45.5",
        "-5 degrees",
        "between -5 and -.5",
        "well-known state-of-the-art",
        "C++ and C#",
        "std::vec",
        "std::vec<a, b>::new()",
        "what is X? e.g.: Y",
        "do NOT enter",
        "You must NOT smoke",
        "NOT guilty",
        "TO BE OR NOT TO BE",
        "LABOR OR GREENS",
        "to be or not to be",
        "not a word, or two, and more",
        "12\" vinyl and a 7\" single",
        "5'10\" tall",
        "an unbalanced \"quote",
        "an unbalanced “quote",
        "foo() bar(baz)",
        "a smile :) and :-( too",
        "rm --force",
        "a - b – c — d",
        "C:\\Users\\me",
        "mail bob@example.org",
        "a/b a\\b a|b",
        "50% of $5.00, or €3",
        "if x<5 && y>3",
        "Title: a subtitle",
        "Q: why? A: because",
        "section 2.1: scope",
        "key=value",
        "{\"query\": 1}",
        "<b>bold</b>",
        "a:b:c",
        "日本語：質問",
        "«unbalanced",
        "don't 'quote' me",
        "data:image/png;base64",
        "OR",
        "or",
        "AND OR",
        "the party's over",
        "party-time",
    ] {
        check(sentence);
    }
}

#[test]
fn parentheses_around_words_are_no_part_of_them() {
    let cases = [
        ("(see above)", "see above"),
        ("as said (see above) before", "as said see above before"),
        ("(a) first, (b) second", "a first, b second"),
        ("((((deep))))", "deep"),
        ("(open", "open"),
        ("close)", "close)"),
        ("a ) b", "a ) b"),
        ("call (foo())", "call foo()"),
        ("()", ""),
        ("f(x) = (", "f(x) ="),
        ("housing OR rent", "housing rent"),
        ("(housing OR rent) AND ferries", "housing rent ferries"),
        ("housing OR", "housing OR"),
        ("a (OR) b", "a OR b"),
        ("a NOT", "a NOT"),
        ("a NOT NOT", "a NOT NOT"),
    ];
    for (sentence, expected) in cases {
        let parsed = parse(sentence, &catalog(), today());
        assert_eq!(parsed.text, expected, "{sentence}");
        assert_eq!(
            (parsed.filter, parsed.excluded.len()),
            (None, 0),
            "{sentence}"
        );
        assert_eq!(parsed.ignored, [], "{sentence}");
    }
}

#[test]
fn without_a_catalog_there_are_no_filters() {
    let today = Day::new(2024, 8, 15).unwrap();
    let parsed = parse("party:Labor housing", &Default::default(), today);
    assert_eq!(parsed.text, "party:Labor housing");
    assert_eq!((parsed.filter, parsed.ignored.len()), (None, 0));
}
