//! Builds the field catalog from documents or from columns of an index, in bounded memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Catalog, CatalogField, FieldKind, RangeBound};
use crate::calendar::Day;
use crate::document::{Document, DocumentValue};
use crate::filter::fold_value;

/// The most fields a catalog lists. Models have to read them all, and hardly any data has more useful ones.
pub const MAX_CATALOG_FIELDS: usize = 64;

/// The most values a catalog lists for one field, which is also the most a keyword field can have. A model reads all of
/// them before it chooses one; a field with more values is text, because it is no closed set to choose from.
pub const MAX_KEYWORDS: usize = 50;

/// The longest value that a catalog lists, and the longest name of a field, in characters. What is longer is a sentence
/// rather than a label, and nobody types it into a filter.
pub const MAX_KEYWORD_CHARS: usize = 64;

/// The most distinct values of one field that are counted while a catalog is built. A column of ids has as many values
/// as there are documents; after this many it is certain to be text, and counting on would only cost memory.
pub const MAX_TRACKED: usize = 10_000;

/// The most distinct values of all fields that are counted: 40 MB in the worst case.
const MAX_TRACKED_IN_ALL: usize = 65_536;

/// The most fields that are counted before the most frequent ones are chosen. Records whose keys are data, such as one
/// key for each day, bring new fields without end. Sixteen times as many as are listed leave room for rare fields that
/// happen to come first.
const MAX_COUNTED_FIELDS: usize = 1_024;

/// A field with this few distinct values is a keyword even when they do not recur, because in a handful of
/// documents nothing recurs.
const FEW_VALUES: usize = 10;

/// The longest folded value that is counted, in bytes. Folding can lengthen a value several times.
const MAX_TRACKED_BYTES: usize = 256;

/// Builds a [`Catalog`], document by document or column by column. `tracked` counts the distinct values of all
/// fields against their limit.
#[derive(Debug, Default)]
pub struct CatalogBuilder {
    documents: u64,
    fields: BTreeMap<String, FieldStats>,
    tracked: usize,
    more: bool,
}

/// Statistics of one field: the number of documents by the kind of the value (`flags` counts false and true), the
/// distinct values by their folded form with one spelling and a count, and whether values were left out (`more`).
#[derive(Debug, Default)]
struct FieldStats {
    texts: u64,
    lists: u64,
    numbers: u64,
    dates: u64,
    flags: (u64, u64),
    values: HashMap<String, (String, u64)>,
    more: bool,
    number_range: Option<(f64, f64)>,
    date_range: Option<(Day, Day)>,
}

impl CatalogBuilder {
    /// An empty builder, which builds an empty catalog.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one document with all its fields.
    pub fn document(&mut self, document: &Document) {
        self.documents(1);
        let mut names = HashSet::new();
        for (name, value) in &document.fields {
            if names.insert(name.as_str()) {
                self.value(name, value);
            }
        }
        let own_date = document.date.as_deref().and_then(Day::parse);
        if let Some(day) = own_date.filter(|_| !names.contains("date")) {
            self.date("date", (day, day), 1);
        }
    }

    fn value(&mut self, name: &str, value: &DocumentValue) {
        match value {
            DocumentValue::Text(text) => self.text(name, text, 1),
            DocumentValue::Number(number) => self.number(name, (*number, *number), 1),
            DocumentValue::Bool(flag) => self.flag(name, *flag, 1),
            DocumentValue::Date(day) => match Day::parse(day) {
                Some(day) => self.date(name, (day, day), 1),
                None => self.add(name, |field| grow(&mut field.dates, 1)),
            },
            DocumentValue::List(items) => {
                self.list(name, 1);
                let mut counted = HashSet::new();
                for item in items {
                    if counted.len() >= MAX_TRACKED {
                        self.add(name, |field| field.more = true);
                        break;
                    }
                    if counted.insert(fold_value(item)) {
                        self.item(name, item, 1);
                    }
                }
            }
        }
    }

    /// Adds to the number of documents. Callers that add columns call it once.
    pub fn documents(&mut self, count: u64) {
        self.documents = self.documents.saturating_add(count);
    }

    /// Adds `count` documents that have this text in a field.
    pub fn text(&mut self, name: &str, value: &str, count: u64) {
        self.add(name, |field| grow(&mut field.texts, count));
        self.track(name, value, count);
    }

    /// Adds `count` documents that have a list in a field. Its items are added by [`CatalogBuilder::item`].
    pub fn list(&mut self, name: &str, count: u64) {
        self.add(name, |field| grow(&mut field.lists, count));
    }

    /// Adds `count` documents that have this item in the list of a field.
    pub fn item(&mut self, name: &str, value: &str, count: u64) {
        self.track(name, value, count);
    }

    /// Adds `count` documents that have a number in a field, with the smallest and the largest of them.
    pub fn number(&mut self, name: &str, range: (f64, f64), count: u64) {
        self.add(name, |field| {
            grow(&mut field.numbers, count);
            for number in [range.0, range.1].into_iter().filter(|n| n.is_finite()) {
                let (least, most) = field.number_range.unwrap_or((number, number));
                field.number_range = Some((least.min(number), most.max(number)));
            }
        });
    }

    /// Adds `count` documents that have a day in a field, with the first and the last of them.
    pub fn date(&mut self, name: &str, range: (Day, Day), count: u64) {
        self.add(name, |field| {
            grow(&mut field.dates, count);
            for day in [range.0, range.1] {
                let (first, last) = field.date_range.unwrap_or((day, day));
                field.date_range = Some((first.min(day), last.max(day)));
            }
        });
    }

    /// Adds `count` documents that have this flag in a field.
    pub fn flag(&mut self, name: &str, value: bool, count: u64) {
        self.add(name, |field| {
            let (no, yes) = &mut field.flags;
            grow(if value { yes } else { no }, count);
        });
    }

    /// Builds the catalog of everything that was added.
    pub fn build(self) -> Catalog {
        let mut fields: Vec<CatalogField> = self
            .fields
            .into_iter()
            .map(|(name, counted)| counted.field(name))
            .collect();
        // The map yields them by name, and a stable sort keeps that order among equals.
        fields.sort_by_key(|field| Reverse(field.documents));
        let more = self.more || fields.len() > MAX_CATALOG_FIELDS;
        fields.truncate(MAX_CATALOG_FIELDS);
        Catalog {
            documents: self.documents,
            fields,
            more,
        }
    }

    /// Updates the statistics of a field, unless there are too many fields or nobody could type the name.
    fn add(&mut self, name: &str, change: impl FnOnce(&mut FieldStats)) {
        if let Some(field) = self.fields.get_mut(name) {
            return change(field);
        }
        let is_too_long = name.chars().nth(MAX_KEYWORD_CHARS).is_some();
        if self.fields.len() >= MAX_COUNTED_FIELDS || is_too_long || name.is_empty() {
            self.more = true;
            return;
        }
        change(self.fields.entry(name.to_owned()).or_default());
    }

    /// Counts a distinct value, if the limits allow.
    fn track(&mut self, name: &str, value: &str, count: u64) {
        let mut room = MAX_TRACKED_IN_ALL.saturating_sub(self.tracked);
        let before = room;
        self.add(name, |field| field.track(value, count, &mut room));
        self.tracked += before - room;
    }
}

fn grow(count: &mut u64, by: u64) {
    *count = count.saturating_add(by);
}

impl FieldStats {
    fn track(&mut self, value: &str, count: u64, room: &mut usize) {
        let shown = value.trim();
        let key = fold_value(shown);
        if shown.chars().nth(MAX_KEYWORD_CHARS).is_some() || key.len() > MAX_TRACKED_BYTES {
            self.more = true;
        } else if let Some((written, documents)) = self.values.get_mut(&key) {
            grow(documents, count);
            // Keep the spelling that sorts first, so that the order of the documents does not matter.
            if shown < written.as_str() {
                shown.clone_into(written);
            }
        } else if self.values.len() >= MAX_TRACKED || *room == 0 {
            self.more = true;
        } else if !key.is_empty() {
            self.values.insert(key, (shown.to_owned(), count));
            *room -= 1;
        }
    }

    /// The kind of filter that fits every value of the field. Values of several kinds make it text: a range of numbers
    /// or days would seem to cover the whole field, while it leaves out every document whose value is of another kind.
    fn kind(&self) -> FieldKind {
        let words = self.texts.saturating_add(self.lists);
        let flags = self.flags.0.saturating_add(self.flags.1);
        let kinds = [words, self.numbers, self.dates, flags];
        let is_mixed = kinds.iter().filter(|count| **count > 0).count() > 1;
        if self.lists > 0 && !is_mixed {
            FieldKind::List
        } else if words > 0 || is_mixed {
            self.text_kind(is_mixed)
        } else if self.numbers > 0 {
            FieldKind::Number
        } else if self.dates > 0 {
            FieldKind::Date
        } else {
            FieldKind::Bool
        }
    }

    /// Keyword or text: a keyword has few values, all of them short, that recur across documents.
    fn text_kind(&self, is_mixed: bool) -> FieldKind {
        let distinct = self.values.len();
        let recur = self.texts >= 2 * distinct as u64 || distinct <= FEW_VALUES;
        if !is_mixed && !self.more && distinct <= MAX_KEYWORDS && recur {
            FieldKind::Keyword
        } else {
            FieldKind::Text
        }
    }

    fn range(&self, kind: FieldKind) -> Option<(RangeBound, RangeBound)> {
        let date = |(first, last): (Day, Day)| {
            (
                RangeBound::Date(first.to_string()),
                RangeBound::Date(last.to_string()),
            )
        };
        let number = |(least, most)| (RangeBound::Number(least), RangeBound::Number(most));
        match kind {
            FieldKind::Bool => None,
            FieldKind::Date => self.date_range.map(date),
            _ => self.number_range.map(number).or(self.date_range.map(date)),
        }
    }

    fn field(mut self, name: String) -> CatalogField {
        let kind = self.kind();
        let range = self.range(kind);
        let (no, yes) = self.flags;
        let kinds = [self.texts, self.lists, self.numbers, self.dates, no, yes];
        let documents = kinds.into_iter().fold(0, u64::saturating_add);
        if kind == FieldKind::Bool {
            let flags = [("false", no), ("true", yes)];
            let counted_flags = flags.into_iter().filter(|(_, count)| *count > 0);
            self.values = counted_flags
                .map(|(flag, count)| (flag.to_owned(), (flag.to_owned(), count)))
                .collect();
        }
        let is_text = kind == FieldKind::Text;
        let counted = self.values.len();
        let has_others = range.is_some() || no > 0 || yes > 0;
        let mut more = self.more || (is_text && has_others);
        let mut values: Vec<(String, u64)> = self.values.into_values().collect();
        // A value of free text describes the field only when it recurs.
        values.retain(|(_, count)| !is_text || *count > 1);
        values.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        values.truncate(MAX_KEYWORDS);
        more |= values.len() < counted;
        CatalogField {
            name,
            kind,
            documents,
            values,
            more,
            range,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::DocId;
    use crate::reader_identity::AllowedReaders;

    fn document(id: usize, date: Option<&str>, fields: Vec<(&str, DocumentValue)>) -> Document {
        Document {
            id: DocId::parse(&format!("d{id}")).unwrap(),
            title: String::new(),
            text: String::new(),
            url: None,
            date: date.map(str::to_owned),
            fields: fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            source: String::new(),
            hash: String::new(),
            readers: AllowedReaders::Everyone,
        }
    }

    fn text(text: impl Into<String>) -> DocumentValue {
        DocumentValue::Text(text.into())
    }

    fn of(documents: &[Document]) -> Catalog {
        let mut builder = CatalogBuilder::new();
        documents.iter().for_each(|one| builder.document(one));
        builder.build()
    }

    /// The catalog field of one document for each value.
    fn field_of(values: Vec<DocumentValue>) -> CatalogField {
        let documents = values.into_iter().enumerate();
        let documents: Vec<_> = documents
            .map(|(n, value)| document(n, None, vec![("f", value)]))
            .collect();
        let mut fields = of(&documents).fields;
        assert_eq!(fields.len(), 1);
        fields.remove(0)
    }

    #[test]
    fn kinds_follow_from_values() {
        let list = || DocumentValue::List(vec!["a".to_owned()]);
        let day = || DocumentValue::Date("2024-01-01".to_owned());
        let cases = [
            (vec![text("a"), text("b"), text("a")], FieldKind::Keyword),
            (
                (0..=10).map(|n| text(n.to_string())).collect(),
                FieldKind::Text,
            ),
            (vec![text("x".repeat(65))], FieldKind::Text),
            (vec![text("x".repeat(64))], FieldKind::Keyword),
            (vec![list()], FieldKind::List),
            (vec![list(), text("b")], FieldKind::List),
            (vec![DocumentValue::Number(1.0)], FieldKind::Number),
            (vec![day()], FieldKind::Date),
            (vec![DocumentValue::Bool(true)], FieldKind::Bool),
            (vec![DocumentValue::Number(1.0), text("a")], FieldKind::Text),
            (vec![DocumentValue::Number(1.0), day()], FieldKind::Text),
            (vec![list(), DocumentValue::Bool(true)], FieldKind::Text),
        ];
        for (values, kind) in cases {
            let shown = format!("{values:?}");
            assert_eq!(field_of(values).kind, kind, "{shown}");
        }
    }

    #[test]
    fn the_speeches_of_a_parliament_have_keywords() {
        let speeches: Vec<_> = (0..64)
            .map(|n| {
                let tags = vec![format!("tag{}", n % 7), format!("tag{}", n % 5)];
                let fields = vec![
                    ("speaker", text(format!("Member {}", n % 16))),
                    ("party", text(format!("Party {}", n % 5))),
                    ("chamber", text(["House of Assembly", "Senate"][n % 2])),
                    ("reference", text(format!("Debates, p. {n}"))),
                    ("topic_tags", DocumentValue::List(tags)),
                ];
                document(n, Some("2024-03-12"), fields)
            })
            .collect();
        let catalog = of(&speeches);
        let kinds: Vec<_> = catalog
            .fields
            .iter()
            .map(|field| {
                (
                    field.name.as_str(),
                    field.kind,
                    field.values.len(),
                    field.more,
                )
            })
            .collect();
        assert_eq!(
            kinds,
            [
                ("chamber", FieldKind::Keyword, 2, false),
                ("date", FieldKind::Date, 0, false),
                ("party", FieldKind::Keyword, 5, false),
                ("reference", FieldKind::Text, 0, true),
                ("speaker", FieldKind::Keyword, 16, false),
                ("topic_tags", FieldKind::List, 7, false),
            ]
        );
    }

    #[test]
    fn values_are_counted_once_a_document_however_they_are_written() {
        let list =
            |items: &[&str]| DocumentValue::List(items.iter().map(|&item| item.into()).collect());
        let field = field_of(vec![
            list(&["budget", "Budget", " BUDGET"]),
            list(&["Bùdget", "ferries", ""]),
        ]);
        let values: Vec<_> = field.values.iter().map(|(v, n)| (v.as_str(), *n)).collect();
        assert_eq!(values, [("Bùdget", 2), ("ferries", 1)]);
        assert_eq!((field.documents, field.more), (2, false));
    }

    #[test]
    fn ranges_are_of_what_was_seen() {
        let numbers = [3.0, -1.0, f64::NAN, f64::INFINITY].map(DocumentValue::Number);
        let field = field_of(numbers.into());
        assert_eq!(
            field.range,
            Some((RangeBound::Number(-1.0), RangeBound::Number(3.0)))
        );
        assert_eq!((field.documents, field.values.len()), (4, 0));
        let days =
            ["2024-05-01", "2023-05-01", "soon"].map(|day| DocumentValue::Date(day.to_owned()));
        let bound = |day: &str| RangeBound::Date(day.to_owned());
        let field = field_of(days.into());
        assert_eq!(
            field.range,
            Some((bound("2023-05-01"), bound("2024-05-01")))
        );
        let mixed = field_of(vec![DocumentValue::Number(5.0), text("a"), text("a")]);
        assert_eq!(
            mixed.range,
            Some((RangeBound::Number(5.0), RangeBound::Number(5.0)))
        );
        assert_eq!(
            (mixed.values, mixed.more),
            (vec![("a".to_owned(), 2)], true)
        );
    }

    #[test]
    fn a_field_named_date_replaces_the_own_date() {
        let plain = document(0, Some("2024-01-01"), vec![]);
        let named = document(1, Some("2024-01-01"), vec![("date", text("June"))]);
        let catalog = of(std::slice::from_ref(&plain));
        assert_eq!(catalog.fields[0].kind, FieldKind::Date);
        assert_eq!(
            of(std::slice::from_ref(&named)).fields[0].kind,
            FieldKind::Keyword
        );
        let both = of(&[plain, named]);
        assert_eq!(
            (both.fields[0].kind, both.fields[0].documents),
            (FieldKind::Text, 2)
        );
    }

    #[test]
    fn columns_make_the_same_catalog_as_documents() {
        let documents: Vec<_> = (0..30_u8)
            .map(|n| {
                let fields = vec![
                    ("party", text(["Labor", "Greens"][usize::from(n % 2)])),
                    ("words", DocumentValue::Number(f64::from(n))),
                    ("open", DocumentValue::Bool(n < 10)),
                    (
                        "tags",
                        DocumentValue::List(vec!["a".to_owned(), "b".to_owned()]),
                    ),
                ];
                document(n.into(), Some("2024-01-01"), fields)
            })
            .collect();
        let mut builder = CatalogBuilder::new();
        builder.documents(30);
        builder.text("party", "Labor", 15);
        builder.text("party", "Greens", 15);
        builder.number("words", (0.0, 29.0), 30);
        builder.flag("open", true, 10);
        builder.flag("open", false, 20);
        builder.list("tags", 30);
        builder.item("tags", "a", 30);
        builder.item("tags", "b", 30);
        let day = Day::new(2024, 1, 1).unwrap();
        builder.date("date", (day, day), 30);
        assert_eq!(builder.build(), of(&documents));
    }

    #[test]
    fn the_list_of_fields_has_a_bound() {
        let catalog = |count: usize| {
            let mut builder = CatalogBuilder::new();
            (0..count).for_each(|n| builder.text(&format!("f{n:05}"), "x", 1));
            builder.text("common", "x", 9);
            builder.build()
        };
        let full = catalog(MAX_CATALOG_FIELDS - 1);
        assert_eq!((full.fields.len(), full.more), (MAX_CATALOG_FIELDS, false));
        let over = catalog(MAX_CATALOG_FIELDS);
        assert_eq!((over.fields.len(), over.more), (MAX_CATALOG_FIELDS, true));
        assert_eq!(over.fields[0].name, "common");
        let flooded = catalog(MAX_COUNTED_FIELDS);
        assert!(flooded.fields.iter().all(|field| field.name != "common"));
        let mut builder = CatalogBuilder::new();
        builder.text(&"n".repeat(MAX_KEYWORD_CHARS), "x", 1);
        assert!(!builder.build().more);
        let mut builder = CatalogBuilder::new();
        builder.text(&"n".repeat(MAX_KEYWORD_CHARS + 1), "x", 1);
        builder.text("", "x", 1);
        let catalog = builder.build();
        assert_eq!((catalog.fields.len(), catalog.more), (0, true));
    }

    #[test]
    fn the_list_of_values_has_a_bound() {
        let field = |count: usize, times: u64| {
            let mut builder = CatalogBuilder::new();
            (0..count).for_each(|n| builder.text("f", &format!("v{n}"), times));
            builder.build().fields.remove(0)
        };
        let full = field(MAX_KEYWORDS, 2);
        assert_eq!(
            (full.kind, full.values.len(), full.more),
            (FieldKind::Keyword, MAX_KEYWORDS, false)
        );
        let over = field(MAX_KEYWORDS + 1, 2);
        assert_eq!(
            (over.kind, over.values.len(), over.more),
            (FieldKind::Text, MAX_KEYWORDS, true)
        );
        assert_eq!(field(MAX_KEYWORDS, 1).kind, FieldKind::Text);
        let flooded = field(MAX_TRACKED + 1, 2);
        assert_eq!(
            (flooded.documents, flooded.more),
            (2 * MAX_TRACKED as u64 + 2, true)
        );
    }

    #[test]
    fn tracked_values_have_a_bound() {
        let mut builder = CatalogBuilder::new();
        for field in 0..8 {
            for n in 0..=MAX_TRACKED {
                builder.text(&format!("f{field}"), &format!("v{n}"), 1);
            }
        }
        let counted = |name: &str| builder.fields[name].values.len();
        assert_eq!(counted("f0"), MAX_TRACKED);
        assert_eq!(counted("f6"), MAX_TRACKED_IN_ALL - 6 * MAX_TRACKED);
        assert_eq!((counted("f7"), builder.tracked), (0, MAX_TRACKED_IN_ALL));
        let long = "\u{FDFA}".repeat(60);
        let mut builder = CatalogBuilder::new();
        builder.text("f", &long, 1);
        assert_eq!(builder.tracked, 0);
    }

    #[test]
    fn a_list_beyond_the_limit_is_counted_in_part() {
        let items = |count: usize| DocumentValue::List((0..count).map(|n| n.to_string()).collect());
        let mut builder = CatalogBuilder::new();
        builder.document(&document(0, None, vec![("f", items(MAX_TRACKED))]));
        assert!(!builder.fields["f"].more);
        builder.document(&document(1, None, vec![("f", items(MAX_TRACKED + 1))]));
        assert!(builder.fields["f"].more);
    }

    #[test]
    fn counts_do_not_overflow() {
        let mut builder = CatalogBuilder::new();
        for _ in 0..2 {
            builder.documents(u64::MAX);
            builder.text("f", "x", u64::MAX);
            builder.flag("f", true, u64::MAX);
        }
        assert_eq!(builder.build().fields[0].documents, u64::MAX);
    }

    mod properties {
        use proptest::collection::vec;
        use proptest::prelude::*;

        use super::*;
        use crate::filter::{FieldTest, Filter};

        fn value() -> impl Strategy<Value = DocumentValue> {
            let word = || prop::sample::select(vec!["a", "B", "b", "Ä", "x y", "x  Y", "", "c"]);
            prop_oneof![
                4 => word().prop_map(text),
                1 => any::<String>().prop_map(text),
                2 => vec(word().prop_map(str::to_owned), 0..4).prop_map(DocumentValue::List),
                1 => any::<f64>().prop_map(DocumentValue::Number),
                1 => any::<bool>().prop_map(DocumentValue::Bool),
                1 => prop::sample::select(vec!["2024-01-01", "1999-12-31", "x"])
                    .prop_map(|day| DocumentValue::Date(day.to_owned())),
            ]
        }

        proptest! {
            #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..Default::default() })]

            #[test]
            fn every_count_is_what_the_filters_find(
                rows in vec(vec((prop::sample::select(vec!["f", "g", "date"]), value()), 0..4), 0..30),
            ) {
                let documents: Vec<_> = rows
                    .into_iter()
                    .enumerate()
                    .map(|(n, mut fields)| {
                        fields.sort_by_key(|(name, _)| *name);
                        fields.dedup_by_key(|(name, _)| *name);
                        document(n, Some("2024-05-05").filter(|_| n % 2 == 0), fields)
                    })
                    .collect();
                let catalog = of(&documents);
                prop_assert_eq!(catalog.documents, documents.len() as u64);
                for field in &catalog.fields {
                    let count = |test: FieldTest| {
                        let filter = Filter::Field { name: field.name.clone(), test };
                        documents.iter().filter(|one| filter.matches(one)).count() as u64
                    };
                    prop_assert!(field.documents <= catalog.documents);
                    prop_assert!(field.values.len() <= MAX_KEYWORDS);
                    for (value, documents) in &field.values {
                        let test = match field.kind {
                            FieldKind::Bool => FieldTest::Bool(value == "true"),
                            _ => FieldTest::Is(value.clone()),
                        };
                        prop_assert_eq!(count(test), *documents, "{} {}", field.name, value);
                        prop_assert_eq!(field.value(value), Some(value.as_str()));
                    }
                    if let Some((RangeBound::Number(from), RangeBound::Number(to))) = field.range {
                        let inside = count(FieldTest::Number { from: Some(from), to: Some(to) });
                        let finite = count(FieldTest::Number { from: Some(f64::MIN), to: Some(f64::MAX) });
                        prop_assert_eq!(inside, finite);
                    }
                    if let Some((RangeBound::Date(from), RangeBound::Date(to))) = field.range.clone() {
                        let inside = count(FieldTest::Date { from: Some(from), to: Some(to) });
                        prop_assert_eq!(inside, count(FieldTest::Date { from: None, to: None }));
                    }
                    prop_assert_eq!(catalog.field(&field.name), Some(field));
                }
            }

            #[test]
            fn the_order_of_documents_does_not_matter(values in vec(value(), 0..20)) {
                let mut documents: Vec<_> = values
                    .into_iter()
                    .enumerate()
                    .map(|(n, value)| document(n, None, vec![("f", value)]))
                    .collect();
                let catalog = of(&documents);
                documents.reverse();
                prop_assert_eq!(of(&documents), catalog);
            }
        }
    }
}
