//! Metadata filters: the tests on fields that a document has to pass.

use crate::analysis;
use crate::calendar::Day;
use crate::document::{Document, DocumentValue};
use crate::error::SearchError;

/// The most conditions of one filter. Every condition costs an engine a set of documents that has to be intersected
/// with the others. Filters that models and widgets write have a handful; more than this is a mistake or an attack.
pub const MAX_CONDITIONS: usize = 64;

/// The deepest nesting of a filter. Engines translate a filter recursively, and their stack is limited.
pub const MAX_FILTER_DEPTH: usize = 32;

/// How many characters of a folded text are compared. Nobody types a longer value into a filter, and an engine can
/// index this much of every text.
const MAX_VALUE_CHARS: usize = 256;

/// A boolean expression over the fields of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// Conjunction; without parts it matches every document.
    All(Vec<Filter>),
    /// Disjunction; without parts it matches no document.
    Any(Vec<Filter>),
    /// Negation of the inner filter.
    Not(Box<Filter>),
    /// A test on a field. A document without the field does not match.
    Field {
        /// The name of the field. `date` is the document's own date, unless the document has a field of that name.
        name: String,
        /// The test that the value has to pass.
        test: FieldTest,
    },
}

/// A test on a value. A value of another type never passes: the text `2024` is not a number.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldTest {
    /// A text, or an item of a list, that equals this one. Case, accents, the amount of white space and everything
    /// beyond 256 characters are ignored.
    Is(String),
    /// A number within inclusive bounds.
    Number {
        /// The lower bound, if there is one.
        from: Option<f64>,
        /// The upper bound, if there is one.
        to: Option<f64>,
    },
    /// A date within inclusive bounds, as `YYYY-MM-DD`. A bound that is not a date matches nothing.
    Date {
        /// The first date, if there is one.
        from: Option<String>,
        /// The last date, if there is one.
        to: Option<String>,
    },
    /// A flag with this value.
    Bool(bool),
}

impl Filter {
    /// Whether a document matches. This is the reference that every engine has to agree with. It walks the filter
    /// with an explicit stack, so that its depth cannot overflow the call stack.
    pub fn matches(&self, document: &Document) -> bool {
        // The groups that are not decided yet, outermost first, with the remaining parts of each.
        let mut open: Vec<(&Filter, std::slice::Iter<'_, Filter>)> = Vec::new();
        let mut next = self;
        loop {
            let mut result = match next {
                Self::All(parts) | Self::Any(parts) => {
                    open.push((next, parts.iter()));
                    None
                }
                Self::Not(part) => {
                    open.push((next, [].iter()));
                    next = part;
                    continue;
                }
                Self::Field { name, test } => Some(test.passes_in(document, name)),
            };
            next = loop {
                let Some((group, rest)) = open.last_mut() else {
                    return result.unwrap_or_default();
                };
                let outcome = match (&**group, result) {
                    (Self::Not(_), result) => result.map(|result| !result),
                    (Self::All(_), Some(false)) => Some(false),
                    (Self::Any(_), Some(true)) => Some(true),
                    (group, _) => match rest.next() {
                        Some(part) => break part,
                        None => Some(matches!(group, Self::All(_))),
                    },
                };
                open.pop();
                result = outcome;
            };
        }
    }

    /// Rejects a filter with more than [`MAX_CONDITIONS`] conditions or [`MAX_FILTER_DEPTH`] levels. A group
    /// without parts counts as a condition.
    ///
    /// Check a filter of untrusted origin before anything else: cloning, comparing and dropping it recurse once for
    /// each level. [`crate::grammar::parse`] never exceeds the limits.
    pub fn check(&self) -> Result<(), SearchError> {
        let mut conditions = 0;
        let mut open = vec![(self, 1)];
        while let Some((filter, depth)) = open.pop() {
            check_limit("levels of the filter", depth, MAX_FILTER_DEPTH)?;
            match filter {
                Self::All(parts) | Self::Any(parts) if !parts.is_empty() => {
                    let least = conditions + parts.len();
                    check_limit("conditions of the filter", least, MAX_CONDITIONS)?;
                    open.extend(parts.iter().map(|part| (part, depth + 1)));
                }
                Self::Not(part) => open.push((part, depth + 1)),
                Self::All(_) | Self::Any(_) | Self::Field { .. } => {
                    conditions += 1;
                    check_limit("conditions of the filter", conditions, MAX_CONDITIONS)?;
                }
            }
        }
        Ok(())
    }
}

fn check_limit(what: &str, size: usize, limit: usize) -> Result<(), SearchError> {
    if size <= limit {
        return Ok(());
    }
    Err(SearchError::TooLarge {
        what: format!("the number of {what}"),
        size,
        limit,
    })
}

impl FieldTest {
    fn passes_in(&self, document: &Document, name: &str) -> bool {
        let mut named = document.fields.iter().filter(|(own, _)| own == name);
        let is_own_date = name == "date" && named.clone().next().is_none();
        if is_own_date {
            return document
                .date
                .as_ref()
                .is_some_and(|day| self.contains_day(day));
        }
        named.any(|(_, value)| self.passes(value))
    }

    fn passes(&self, value: &DocumentValue) -> bool {
        match (self, value) {
            (Self::Is(wanted), DocumentValue::Text(text)) => fold_value(text) == fold_value(wanted),
            (Self::Is(wanted), DocumentValue::List(items)) => {
                let wanted = fold_value(wanted);
                items.iter().any(|item| fold_value(item) == wanted)
            }
            (Self::Number { from, to }, DocumentValue::Number(number)) => {
                from.is_none_or(|from| from <= *number)
                    && to.is_none_or(|to| *number <= to)
                    && !number.is_nan()
            }
            (Self::Date { .. }, DocumentValue::Date(day)) => self.contains_day(day),
            (Self::Bool(wanted), DocumentValue::Bool(flag)) => wanted == flag,
            _ => false,
        }
    }

    /// Whether a date lies within the bounds of the test.
    fn contains_day(&self, day: &str) -> bool {
        let Self::Date { from, to } = self else {
            return false;
        };
        let Some(day) = Day::parse(day) else {
            return false;
        };
        let within = |bound: &Option<String>, compare: fn(Day, Day) -> bool| match bound {
            Some(bound) => Day::parse(bound).is_some_and(|bound| compare(day, bound)),
            None => true,
        };
        within(from, |day, from| from <= day) && within(to, |day, to| day <= to)
    }
}

/// The normalized form in which texts are compared: lower case, without accents, single spaces, cut at
/// [`MAX_VALUE_CHARS`].
pub(crate) fn fold_value(text: &str) -> String {
    // Folding can turn one character into several and several into one; four times the limit is enough for every
    // text people write.
    let text = text.trim_start();
    let end = text
        .char_indices()
        .nth(4 * MAX_VALUE_CHARS)
        .map_or(text.len(), |(end, _)| end);
    let mut letters = String::new();
    let head = text.get(..end).unwrap_or_default();
    analysis::fold(head, 4 * MAX_VALUE_CHARS, &mut letters);
    let mut out = String::with_capacity(letters.len());
    let mut left = MAX_VALUE_CHARS;
    for word in letters.split_whitespace() {
        if !out.is_empty() && left > 0 {
            out.push(' ');
            left -= 1;
        }
        out.extend(word.chars().take(left));
        left = left.saturating_sub(word.chars().count());
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::DocId;
    use crate::reader_identity::AllowedReaders;

    fn document(date: Option<&str>, fields: &[(&str, DocumentValue)]) -> Document {
        let fields = fields.iter();
        Document {
            id: DocId::parse("a").unwrap(),
            title: String::new(),
            text: String::new(),
            url: None,
            date: date.map(str::to_owned),
            fields: fields
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            source: String::new(),
            hash: String::new(),
            readers: AllowedReaders::Everyone,
        }
    }

    fn sample() -> Document {
        let list =
            |items: &[&str]| DocumentValue::List(items.iter().map(|&item| item.into()).collect());
        document(
            Some("2024-06-15"),
            &[
                ("party", DocumentValue::Text("Civic  Labóur".to_owned())),
                ("tags", list(&["Budget", "tarn-orr"])),
                ("words", DocumentValue::Number(500.0)),
                ("open", DocumentValue::Bool(true)),
                ("received", DocumentValue::Date("2024-02-29".to_owned())),
                ("year", DocumentValue::Text("2024".to_owned())),
                ("odd", DocumentValue::Number(f64::NAN)),
                ("never", DocumentValue::Date("2024-02-30".to_owned())),
                ("empty", list(&[])),
            ],
        )
    }

    fn field(name: &str, test: FieldTest) -> Filter {
        Filter::Field {
            name: name.to_owned(),
            test,
        }
    }

    fn is(name: &str, value: &str) -> Filter {
        field(name, FieldTest::Is(value.to_owned()))
    }

    fn number(name: &str, from: Option<f64>, to: Option<f64>) -> Filter {
        field(name, FieldTest::Number { from, to })
    }

    fn date(name: &str, from: Option<&str>, to: Option<&str>) -> Filter {
        let bound = |bound: Option<&str>| bound.map(str::to_owned);
        field(
            name,
            FieldTest::Date {
                from: bound(from),
                to: bound(to),
            },
        )
    }

    fn not(filter: Filter) -> Filter {
        Filter::Not(Box::new(filter))
    }

    fn check(filter: &Filter, expected: bool) {
        assert_eq!(filter.matches(&sample()), expected, "{filter:?}");
    }

    #[test]
    fn texts_and_items_are_compared_as_people_read_them() {
        for (name, value, expected) in [
            ("party", "civic labour", true),
            ("party", " CIVIC\tLABOUR ", true),
            ("party", "civic", false),
            ("Party", "civic labour", false),
            ("tags", "budget", true),
            ("tags", "tarn orr", false),
            ("empty", "", false),
            ("words", "500", false),
            ("open", "true", false),
            ("received", "2024-02-29", false),
            ("date", "2024-06-15", false),
            ("nothing", "", false),
        ] {
            check(&is(name, value), expected);
        }
    }

    #[test]
    fn numbers_and_flags_are_compared() {
        for (name, from, to, expected) in [
            ("words", Some(500.0), Some(500.0), true),
            ("words", Some(500.5), None, false),
            ("words", None, Some(499.5), false),
            ("words", None, None, true),
            ("words", Some(f64::NAN), None, false),
            ("words", Some(f64::NEG_INFINITY), Some(f64::INFINITY), true),
            ("odd", None, None, false),
            ("year", Some(2024.0), Some(2024.0), false),
        ] {
            check(&number(name, from, to), expected);
        }
        check(&field("open", FieldTest::Bool(true)), true);
        check(&field("open", FieldTest::Bool(false)), false);
        check(&field("party", FieldTest::Bool(true)), false);
    }

    #[test]
    fn days_are_compared() {
        for (name, from, to, expected) in [
            ("date", Some("2024-06-15"), Some("2024-06-15"), true),
            ("date", Some("2024-06-16"), None, false),
            ("date", None, Some("2024-06-14"), false),
            ("date", None, None, true),
            ("date", Some("2024-06"), None, false),
            ("date", None, Some("soon"), false),
            ("received", Some("2024-02-29"), Some("2024-03-01"), true),
            ("never", None, None, false),
            ("year", None, None, false),
        ] {
            check(&date(name, from, to), expected);
        }
        let own = document(None, &[]);
        assert!(!date("date", None, None).matches(&own));
        let fields = [("date", DocumentValue::Text("June".to_owned()))];
        let hidden = document(Some("2024-06-15"), &fields);
        assert!(!date("date", None, None).matches(&hidden));
        assert!(is("date", "june").matches(&hidden));
    }

    #[test]
    fn groups_are_decided_by_their_parts() {
        let yes = || field("open", FieldTest::Bool(true));
        let no = || field("open", FieldTest::Bool(false));
        for (filter, expected) in [
            (Filter::All(vec![]), true),
            (Filter::Any(vec![]), false),
            (Filter::All(vec![yes(), yes()]), true),
            (Filter::All(vec![yes(), no()]), false),
            (Filter::Any(vec![no(), yes()]), true),
            (Filter::Any(vec![no(), no()]), false),
            (not(yes()), false),
            (not(not(yes())), true),
            (not(is("nothing", "x")), true),
            (not(Filter::All(vec![])), false),
            (
                Filter::All(vec![
                    Filter::Any(vec![no(), not(no())]),
                    not(Filter::All(vec![no()])),
                ]),
                true,
            ),
        ] {
            check(&filter, expected);
        }
    }

    #[test]
    fn filters_have_bounds() {
        let wide = |count: usize| Filter::Any(vec![is("a", "b"); count]);
        let deep = |levels: usize| (1..levels).fold(is("a", "b"), |inner, _| not(inner));
        let empty = |count: usize| Filter::All(vec![Filter::All(vec![]); count]);
        for (limit, make) in [
            (MAX_CONDITIONS, &wide as &dyn Fn(usize) -> Filter),
            (MAX_CONDITIONS, &empty),
            (MAX_FILTER_DEPTH, &deep),
        ] {
            assert!(make(limit).check().is_ok());
            assert!(matches!(
                make(limit + 1).check(),
                Err(SearchError::TooLarge { .. })
            ));
        }
        let several = Filter::All(vec![wide(32), wide(33)]);
        assert!(several.check().is_err());
    }

    #[test]
    fn a_deep_filter_does_not_overflow_the_stack() {
        let mut deep =
            (0..20_001).fold(field("open", FieldTest::Bool(true)), |inner, _| not(inner));
        check(&deep, false);
        assert!(deep.check().is_err());
        // Dropped level by level; only what passed `check` is safe to drop as it is.
        while let Filter::Not(inner) = deep {
            deep = *inner;
        }
    }

    #[test]
    fn a_folded_text_is_bounded() {
        for text in ["x", "é", "\u{FDFA}", "x ", "\u{301}", "東"] {
            let text = text.repeat(100_000);
            assert!(fold_value(&text).chars().count() <= MAX_VALUE_CHARS);
        }
        let long = "x".repeat(MAX_VALUE_CHARS);
        assert_eq!(fold_value(&long), long);
        assert_eq!(fold_value(&format!("{long}x")), long);
        assert_eq!(fold_value(&format!("   {long}")), long);
    }

    mod properties {
        use proptest::collection::vec;
        use proptest::prelude::*;

        use super::*;

        const NAMES: [&str; 4] = ["a", "b", "date", "c"];
        const TEXTS: [&str; 5] = ["x", "X", "y z", "Ÿ  z", ""];
        const DAYS: [&str; 4] = ["2024-01-31", "2024-02-01", "2024-12-31", "soon"];

        fn value() -> impl Strategy<Value = DocumentValue> {
            let text = || prop::sample::select(&TEXTS[..]).prop_map(str::to_owned);
            prop_oneof![
                text().prop_map(DocumentValue::Text),
                vec(text(), 0..3).prop_map(DocumentValue::List),
                (-2_i8..3).prop_map(|n| DocumentValue::Number(n.into())),
                any::<bool>().prop_map(DocumentValue::Bool),
                prop::sample::select(&DAYS[..]).prop_map(|day| DocumentValue::Date(day.to_owned())),
            ]
        }

        fn test() -> impl Strategy<Value = FieldTest> {
            let day = || prop::option::of(prop::sample::select(&DAYS[..]).prop_map(str::to_owned));
            let number = || prop::option::of((-2_i8..3).prop_map(f64::from));
            prop_oneof![
                prop::sample::select(&TEXTS[..]).prop_map(|text| FieldTest::Is(text.to_owned())),
                (number(), number()).prop_map(|(from, to)| FieldTest::Number { from, to }),
                (day(), day()).prop_map(|(from, to)| FieldTest::Date { from, to }),
                any::<bool>().prop_map(FieldTest::Bool),
            ]
        }

        fn filter() -> impl Strategy<Value = Filter> {
            let name = prop::sample::select(&NAMES[..]);
            let leaf = (name, test()).prop_map(|(name, test)| field(name, test));
            leaf.prop_recursive(5, 40, 4, |inner| {
                prop_oneof![
                    vec(inner.clone(), 0..4).prop_map(Filter::All),
                    vec(inner.clone(), 0..4).prop_map(Filter::Any),
                    inner.prop_map(not),
                ]
            })
        }

        /// An independent reference implementation: recursive, and with hand-written equivalence classes of the
        /// values.
        fn brute(filter: &Filter, document: &Document) -> bool {
            match filter {
                Filter::All(parts) => !parts.iter().any(|part| !brute(part, document)),
                Filter::Any(parts) => parts.iter().filter(|part| brute(part, document)).count() > 0,
                Filter::Not(part) => !brute(part, document),
                Filter::Field { name, test } => {
                    let mut values: Vec<DocumentValue> = Vec::new();
                    for (own, value) in &document.fields {
                        if own == name {
                            values.push(value.clone());
                        }
                    }
                    if name == "date" && values.is_empty() {
                        values.extend(document.date.clone().map(DocumentValue::Date));
                    }
                    values.iter().any(|value| passes(test, value))
                }
            }
        }

        fn passes(test: &FieldTest, value: &DocumentValue) -> bool {
            let class = |text: &str| match text {
                "x" | "X" => 1,
                "y z" | "Ÿ  z" => 2,
                _ => 3,
            };
            let rank = |day: &str| DAYS[..3].iter().position(|known| *known == day);
            match (test, value) {
                (FieldTest::Is(a), DocumentValue::Text(b)) => class(a) == class(b),
                (FieldTest::Is(a), DocumentValue::List(b)) => {
                    b.iter().any(|b| class(a) == class(b))
                }
                (FieldTest::Number { from, to }, DocumentValue::Number(n)) => {
                    (from.unwrap_or(-99.0)..=to.unwrap_or(99.0)).contains(n)
                }
                (FieldTest::Date { from, to }, DocumentValue::Date(day)) => {
                    let end = |end: &Option<String>, open| end.as_deref().map_or(Some(open), rank);
                    match (rank(day), end(from, 0), end(to, 9)) {
                        (Some(day), Some(from), Some(to)) => from <= day && day <= to,
                        _ => false,
                    }
                }
                (FieldTest::Bool(a), DocumentValue::Bool(b)) => a == b,
                _ => false,
            }
        }

        proptest! {
            #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

            #[test]
            fn matching_agrees_with_the_reference(
                filter in filter(),
                date in prop::option::of(prop::sample::select(&DAYS[..])),
                fields in vec((prop::sample::select(&NAMES[..]), value()), 0..5),
            ) {
                let document = document(date, &fields);
                prop_assert_eq!(filter.matches(&document), brute(&filter, &document));
            }

            #[test]
            fn folding_twice_changes_nothing(text in any::<String>()) {
                let once = fold_value(&text);
                prop_assert_eq!(fold_value(&once), once);
            }
        }
    }
}
