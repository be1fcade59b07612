//! Adversarial queries: each is answered like any other, and within the same limits.

use super::{catalog, today};
use crate::filter::{MAX_CONDITIONS, MAX_FILTER_DEPTH};
use crate::grammar::{MAX_IGNORED, MAX_QUERY_DEPTH, ParsedQuery, parse, parse_counting_steps};
use crate::query::{MAX_QUERY_CHARS, MAX_QUERY_TERMS};

/// The most scanner steps: every character is visited a few times, and values of several words a few times more.
const MAX_STEPS: usize = 32 * MAX_QUERY_CHARS;

/// Parses a query and checks the outcome against every limit.
pub(super) fn bounded(query: &str) -> ParsedQuery {
    let (parsed, steps) = parse_counting_steps(query, &catalog(), today());
    let shown: String = query.chars().take(60).collect();
    assert!(steps <= MAX_STEPS, "{steps} steps for {shown:?}");
    assert!(parsed.text.chars().count() <= MAX_QUERY_CHARS, "{shown:?}");
    assert!(parsed.phrases.len() <= MAX_QUERY_TERMS, "{shown:?}");
    assert!(parsed.excluded.len() <= MAX_QUERY_TERMS, "{shown:?}");
    assert!(parsed.ignored.len() <= MAX_IGNORED, "{shown:?}");
    assert!(
        parsed.applied.len() <= MAX_CONDITIONS + 2 * MAX_QUERY_TERMS,
        "{shown:?}"
    );
    let reported = parsed
        .applied
        .iter()
        .map(|one| one.written.len() + one.meaning.len());
    assert!(reported.sum::<usize>() <= 40 * MAX_QUERY_CHARS, "{shown:?}");
    let reported = parsed
        .ignored
        .iter()
        .map(|one| one.written.len() + one.reason.len());
    assert!(reported.sum::<usize>() <= 40 * MAX_QUERY_CHARS, "{shown:?}");
    if let Some(filter) = &parsed.filter {
        filter.check().unwrap();
    }
    parsed
}

#[rustfmt::skip]
const SHORT: [&str; 95] = [
    "", " ", "\0", "a\0b", "party:\0Labor", "\u{7}\u{1b}[31m", "\u{FFFD}\u{FFFD}", "\u{FEFF}",
    "\u{202E}yrref", "party:\u{202E}Labor", "\u{2067}party:Labor\u{2069}", "\\uD800\\uDC00",
    "party:\\uD83D", "👨\u{200D}👩\u{200D}👧 party:👨\u{200D}👩\u{200D}👧", "\u{200D}",
    "\u{E0041}\u{E0042}", "a\u{301}\u{301}\u{301}:b", ":", "::", ":::a:::", "a:", ":a", "-", "--",
    "-:", "-(", "-)", "-\"", "\"", "\"\"", "\"\"\"", "“", "”“", "(", ")", ")(", "()", "(()", "())",
    "-()", "-(-(-a))", "NOT", "NOT NOT NOT", "AND OR NOT", "OR OR OR", "NOT (OR)", "party:(",
    "party:()", "party:)", "party:\"", "party:\"\"", "party:,,,", "party:-Labor",
    "party:party:party:Labor", "party:>", "party:..", "words:..", "words:>", "words:>=<=5",
    "words:1..2..3", "words:0..99999999999999999999", "words:1e308..1e309", "words:-0",
    "words:nan", "words:inf", "words:--5", "date:..", "date:*..*", "date:9999..", "date:>9999",
    "date:<0000", "date:0000-00-00", "date:2024-02-30", "since:99999999999999999999d",
    "since:999999y", "since:-5d", "since:٣d", "year:99999", "open:", "open:(", "a\u{0}:\u{0}b",
    "title:/(a+)+$/", "*:*", "_:_", "-_:_", "party:*", "'; DROP TABLE documents; --",
    "<script>alert(1)</script>", "%00%ff", "\u{10FFFF}:x", "\r\n\r\nparty:Labor\r\n",
    "party:Labor\u{2028}party:Greens", "ﷺ:ﷺ", "İ:İ", "ß:ß",
];

/// Fragments that are each repeated far beyond the length limit.
#[rustfmt::skip]
const REPEATED: [&str; 64] = [
    "(", ")", "()", "-(", "(-", "\"", "“", "„", "«", "\" ", "“ ", ":", "a:", "a:b ", ",", "-",
    "- ", "-a ", "NOT ", "NOT(", "OR ", "a OR ", "AND ", "party:", "party:Labor ", "party:Labor,",
    "-party:Labor ", "party:Labor OR ", "party:Labour ", "parti:Labor ", "party:(",
    "party:(Labor ", "party:\"", "party:Meadow ", "party:Civic Union,", "words:1..", "words:5,",
    "date:30d,", "\"a\" ", "-\"a\" ", "(party:Labor ", "-(party:Labor OR ",
    "NOT (party:Labor AND (open:yes OR ", "x", "é", "東", "\u{301}", "\u{FDFA}", "\u{10FFFF}",
    "\u{200D}", "\u{202E}", "\0", "\u{FDFA}:\u{FDFA} ", "session:47 ", "reference:\u{FDFA} ",
    "reference:\u{FDFA},", "a:\"b\" ", "|", "| ", "&& ", "𝐚:𝐛 ", "a=", "words>", "words>5 ",
];

fn long() -> Vec<String> {
    let repeated = REPEATED.iter();
    let mut bombs: Vec<String> = repeated
        .map(|part| part.repeat(100_000 / part.len()))
        .collect();
    let deep = |n| format!("(words:{n} OR NOT (open:yes AND ");
    bombs.push((0..20).map(deep).collect());
    bombs.push(format!("{}party:Labor{}", "(".repeat(500), ")".repeat(500)));
    bombs.push(format!("{}party:Labor", "-(".repeat(500)));
    bombs.push(format!("words:{}", "9".repeat(1_000)));
    bombs.push(format!("words:0.{}1", "0".repeat(1_000)));
    bombs.push(format!("date:{}", "9".repeat(1_000)));
    bombs.push(format!("since:{}d", "9".repeat(1_000)));
    bombs.push(format!("{}:x", "n".repeat(1_000)));
    bombs.push(format!("party:{}", "v".repeat(1_000)));
    bombs.push(format!("x{}", " \t\u{A0}".repeat(10_000)));
    bombs
}

#[test]
fn every_bomb_is_answered() {
    for bomb in SHORT {
        bounded(bomb);
    }
    for bomb in long() {
        bounded(&bomb);
        let head: String = bomb.chars().take(MAX_QUERY_CHARS).collect();
        bounded(&head);
        bounded(&format!("{head}!"));
        bounded(&head[head.chars().next().map_or(0, char::len_utf8)..]);
    }
}

#[test]
fn characters_beyond_the_length_limit_are_ignored() {
    let padding = "é".repeat(MAX_QUERY_CHARS - 12);
    let fits = bounded(&format!("{padding} party:Labor"));
    assert!(fits.filter.is_some() && fits.ignored.is_empty());
    let does_not = bounded(&format!("{padding}  party:Labor"));
    assert_eq!((does_not.filter, does_not.text), (None, padding));
    assert_eq!(does_not.ignored[0].written, "party:Labor");
    assert_eq!(
        does_not.ignored[0].reason,
        "a query has at most 1024 characters"
    );
    let one_word = bounded(&"x".repeat(MAX_QUERY_CHARS + 1));
    assert_eq!(one_word.text.len(), MAX_QUERY_CHARS);
    let blanks = bounded(&format!("a{}", " ".repeat(MAX_QUERY_CHARS)));
    assert_eq!((blanks.text.as_str(), blanks.ignored.len()), ("a", 0));
}

#[test]
fn conditions_have_a_bound() {
    let numbers = |count: usize| {
        (0..count)
            .map(|n| format!("words:{n} "))
            .collect::<String>()
    };
    let list = |count: usize| {
        let values: Vec<_> = (0..count).map(|n| n.to_string()).collect();
        format!("words:{}", values.join(","))
    };
    for query in [numbers(MAX_CONDITIONS), list(MAX_CONDITIONS)] {
        assert!(bounded(&query).ignored.is_empty());
    }
    for query in [numbers(MAX_CONDITIONS + 1), list(MAX_CONDITIONS + 1)] {
        let parsed = bounded(&query);
        assert_eq!(parsed.ignored.len(), 1);
        assert_eq!(parsed.ignored[0].written, "words:64");
        assert_eq!(
            parsed.ignored[0].reason,
            "a query has at most 64 conditions"
        );
    }
}

#[test]
fn reports_of_ignored_conditions_have_a_bound() {
    assert_eq!(
        bounded(&"party:x ".repeat(MAX_IGNORED)).ignored.len(),
        MAX_IGNORED
    );
    assert_eq!(
        bounded(&"party:x ".repeat(MAX_IGNORED + 1)).ignored.len(),
        MAX_IGNORED
    );
}

#[test]
fn phrases_and_exclusions_have_a_bound() {
    for (part, more) in [("\"a\" ", 0), ("-a ", 1)] {
        let query = |count: usize| format!("x {}", part.repeat(count));
        let count = |parsed: &ParsedQuery| [parsed.phrases.len(), parsed.excluded.len()][more];
        assert_eq!(count(&bounded(&query(MAX_QUERY_TERMS))), MAX_QUERY_TERMS);
        assert_eq!(
            count(&bounded(&query(MAX_QUERY_TERMS + 1))),
            MAX_QUERY_TERMS
        );
    }
}

#[test]
fn parentheses_have_a_bound() {
    let nested = |depth: usize| {
        let query = format!(
            "{}party:Labor{} open:yes",
            "(".repeat(depth),
            ")".repeat(depth)
        );
        bounded(&query).filter.unwrap().to_string()
    };
    for depth in [1, MAX_QUERY_DEPTH, MAX_QUERY_DEPTH + 1, 200] {
        assert_eq!(nested(depth), "party is Labor and open is true");
    }
    // At the limit a group still works; inside it parentheses group nothing.
    let negated = |depth: usize| {
        let query = format!(
            "{}-(words:1 words:2){}",
            "(".repeat(depth),
            ")".repeat(depth)
        );
        bounded(&query).filter.unwrap().to_string()
    };
    assert_eq!(
        negated(MAX_QUERY_DEPTH - 1),
        "not (words is 1 and words is 2)"
    );
    assert_eq!(negated(MAX_QUERY_DEPTH), "not (words is 1) and words is 2");
}

#[test]
fn a_filter_that_would_be_too_deep_is_reported() {
    let deep = |levels: usize| {
        let open: String = (0..levels).map(|n| format!("-(words:{n} ")).collect();
        parse(&(open + &")".repeat(levels)), &catalog(), today())
    };
    let fits = deep(14);
    assert!(fits.filter.is_some() && fits.ignored.is_empty());
    let does_not = deep(20);
    assert_eq!(
        does_not.ignored[0].reason,
        format!("a filter has at most {MAX_FILTER_DEPTH} levels")
    );
    does_not.filter.unwrap().check().unwrap();
}
