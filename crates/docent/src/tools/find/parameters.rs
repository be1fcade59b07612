//! The filter parameters of `find`, generated from the fields of the corpus: name, field and type of each.

use std::collections::BTreeSet;

use docent_search::{Catalog, CatalogField, FieldKind, RangeBound};

use crate::settings::{FindSettings, NameAlias};

/// The most filter parameters. A model reads all of them before it can use one.
pub(super) const MAX_PARAMETERS: usize = 16;

/// The length limit of the name stem of a field. Hosts accept names of up to 64 characters, and prefixes and suffixes
/// need room.
const MAX_STEM_CHARS: usize = 48;

/// How many example values are shown for a field with too many values to list.
const EXAMPLES: usize = 3;

/// The parameter with the words to search for, the only required one.
pub(super) const QUERY: &str = "query";
/// The parameter with the page size.
pub(super) const LIMIT: &str = "limit";
/// The parameter with the number of results to skip.
pub(super) const OFFSET: &str = "offset";
/// The parameter with the sort order.
pub(super) const SORT: &str = "sort";
/// The parameter with the fields to count as facets.
pub(super) const FACETS: &str = "facets";

/// The parameters of `find` beside `query` and `limit`, which always exist.
#[derive(Debug, Default)]
pub(super) struct FindParameters {
    /// The filter parameters, in the order in which hosts show them.
    pub(super) filters: Vec<FilterParameter>,
    /// Whether the `offset` parameter exists.
    pub(super) offset: bool,
    /// Whether the `sort` parameter exists.
    pub(super) sort: bool,
    /// The fields that can be counted as facets: parameter name and field of each.
    pub(super) facets: Vec<(String, String)>,
}

/// A filter parameter on a field.
#[derive(Debug, PartialEq)]
pub(super) struct FilterParameter {
    /// The name that hosts and models use.
    pub(super) name: String,
    /// The document field that it filters.
    pub(super) field: String,
    /// The type of its value.
    pub(super) kind: ParameterKind,
}

/// The value type of a parameter, with the values or the range that occur in the corpus.
#[derive(Debug, PartialEq)]
pub(super) enum ParameterKind {
    /// An enumeration; these are all values of the field.
    OneOf(Vec<String>),
    /// Free text; the values are examples.
    Text(Vec<String>),
    /// A lower bound for numbers, with the range of the data.
    AtLeast(Option<(f64, f64)>),
    /// An upper bound for numbers, with the range of the data.
    AtMost(Option<(f64, f64)>),
    /// A lower bound for dates, with the range of the data.
    From(Option<(String, String)>),
    /// An upper bound for dates, with the range of the data.
    To(Option<(String, String)>),
    /// A boolean filter, true or false.
    Flag,
}

impl FindParameters {
    /// Generates the parameters for the current fields of the corpus.
    pub(super) fn new(catalog: &Catalog, find: &FindSettings) -> Self {
        let is_enabled = |name: &str| {
            let mut named = find.parameters.iter();
            find.parameters.is_empty() || named.any(|one| one.name == name && one.source == name)
        };
        let mut all = Self {
            offset: is_enabled(OFFSET),
            sort: is_enabled(SORT),
            ..Self::default()
        };
        let mut used_names: BTreeSet<String> = [QUERY, LIMIT, OFFSET, SORT, FACETS]
            .map(str::to_owned)
            .into();
        for (stem, field) in selected_fields(catalog, &find.parameters) {
            let kinds = parameter_kinds(field, find.parameters.is_empty());
            if kinds.is_empty() || all.filters.len() + kinds.len() > MAX_PARAMETERS {
                continue;
            }
            let (stem, names) = free_names(&stem, field, &kinds, &used_names);
            used_names.extend(names.iter().cloned());
            let one = names
                .into_iter()
                .zip(kinds)
                .map(|(name, kind)| FilterParameter {
                    name,
                    field: field.name.clone(),
                    kind,
                });
            all.filters.extend(one);
            if is_enabled(FACETS)
                && matches!(
                    field.kind,
                    FieldKind::Keyword | FieldKind::List | FieldKind::Bool
                )
            {
                all.facets.push((stem, field.name.clone()));
            }
        }
        all
    }

    /// The names of all parameters, in the order in which hosts show them.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let filters = self.filters.iter().map(|one| one.name.as_str());
        let others = [
            (true, LIMIT),
            (self.offset, OFFSET),
            (self.sort, SORT),
            (!self.facets.is_empty(), FACETS),
        ];
        let others = others.into_iter().filter(|(is_there, _)| *is_there);
        std::iter::once(QUERY)
            .chain(filters)
            .chain(others.map(|(_, name)| name))
    }
}

/// The fields that become parameters, each with its name stem: those that the settings name, in that order, or all
/// fields.
fn selected_fields<'c>(
    catalog: &'c Catalog,
    named: &[NameAlias],
) -> Vec<(String, &'c CatalogField)> {
    if named.is_empty() {
        let all = catalog.fields.iter();
        return all.map(|field| (stem(&field.name), field)).collect();
    }
    let is_built_in = |one: &NameAlias| {
        let built_in = [QUERY, LIMIT, OFFSET, SORT, FACETS];
        one.name == one.source && built_in.contains(&one.name.as_str())
    };
    let fields = named.iter().filter(|one| !is_built_in(one));
    let found = fields.filter_map(|one| Some((stem(&one.name), catalog.field(&one.source)?)));
    let mut seen = BTreeSet::new();
    found
        .filter(|(_, field)| seen.insert(field.name.as_str()))
        .collect()
}

/// The parameter types of a field. A text field without recurring values is useless as a filter, so it gets none
/// unless the settings name it.
fn parameter_kinds(field: &CatalogField, only_useful: bool) -> Vec<ParameterKind> {
    let values = || field.values.iter().map(|(value, _)| value.clone());
    let examples = || values().take(EXAMPLES).collect::<Vec<_>>();
    match field.kind {
        FieldKind::Keyword | FieldKind::List if field.is_enumerated() => {
            // Sorted by value, because an order by count would change the schema with every document.
            let mut all: Vec<_> = values().collect();
            all.sort();
            if all.is_empty() {
                Vec::new()
            } else {
                vec![ParameterKind::OneOf(all)]
            }
        }
        FieldKind::Text if only_useful && field.values.is_empty() => Vec::new(),
        FieldKind::Keyword | FieldKind::List | FieldKind::Text => {
            vec![ParameterKind::Text(examples())]
        }
        FieldKind::Number => {
            let range = match &field.range {
                Some((RangeBound::Number(least), RangeBound::Number(most))) => {
                    Some((*least, *most))
                }
                _ => None,
            };
            vec![ParameterKind::AtLeast(range), ParameterKind::AtMost(range)]
        }
        FieldKind::Date => {
            let range = match &field.range {
                Some((RangeBound::Date(first), RangeBound::Date(last))) => {
                    Some((first.clone(), last.clone()))
                }
                _ => None,
            };
            vec![ParameterKind::From(range.clone()), ParameterKind::To(range)]
        }
        FieldKind::Bool => vec![ParameterKind::Flag],
    }
}

/// Normalizes a field name to ASCII letters, digits and `_`, starting with a letter.
fn stem(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let plain: String = name.chars().map(plain).collect();
    let words: Vec<_> = plain.split('_').filter(|word| !word.is_empty()).collect();
    let joined = words.join("_");
    let joined = if joined.starts_with(|c: char| c.is_ascii_alphabetic()) {
        joined
    } else if joined.is_empty() {
        "field".to_owned()
    } else {
        format!("field_{joined}")
    };
    // The name is ASCII here, so bytes are characters.
    let end = joined.len().min(MAX_STEM_CHARS);
    joined.get(..end).unwrap_or_default().to_owned()
}

/// Unique parameter names for a field, derived from its stem; a number is appended when a name is already in use.
fn free_names(
    stem: &str,
    field: &CatalogField,
    kinds: &[ParameterKind],
    used_names: &BTreeSet<String>,
) -> (String, Vec<String>) {
    let named = |stem: &str| -> Vec<String> {
        let name = |one: &ParameterKind| match one {
            ParameterKind::OneOf(_) | ParameterKind::Text(_) | ParameterKind::Flag => {
                stem.to_owned()
            }
            ParameterKind::AtLeast(_) => format!("min_{stem}"),
            ParameterKind::AtMost(_) => format!("max_{stem}"),
            ParameterKind::From(_) if stem == "date" && field.name == "date" => {
                "start_date".to_owned()
            }
            ParameterKind::To(_) if stem == "date" && field.name == "date" => "end_date".to_owned(),
            ParameterKind::From(_) => format!("{stem}_from"),
            ParameterKind::To(_) => format!("{stem}_to"),
        };
        kinds.iter().map(name).collect()
    };
    let mut stem = stem.to_owned();
    let mut names = named(&stem);
    let start = stem.clone();
    // Finitely many names are in use, so the loop ends.
    for number in 2.. {
        if !names.iter().any(|name| used_names.contains(name)) {
            break;
        }
        stem = format!("{start}_{number}");
        names = named(&stem);
    }
    (stem, names)
}

#[cfg(test)]
mod tests {
    use docent_search::{CatalogBuilder, Day};

    use super::*;

    fn day(day: u8) -> Day {
        Day::new(2024, 3, day).unwrap()
    }

    fn catalog() -> Catalog {
        let mut builder = CatalogBuilder::new();
        builder.documents(40);
        builder.text("party", "Labor", 30);
        builder.text("party", "Greens", 10);
        builder.date("date", (day(1), day(9)), 39);
        builder.number("words", (3.0, 90.0), 38);
        builder.flag("open", true, 37);
        builder.date("received on", (day(2), day(3)), 36);
        for tag in 0..60 {
            builder.item("tags", &format!("tag {tag}"), 60 - tag);
        }
        builder.list("tags", 35);
        for page in 0..34 {
            builder.text("reference", &format!("p. {page}"), 1);
        }
        builder.text("limit", "a", 33);
        builder.build()
    }

    fn find(parameters: &[(&str, &str)]) -> FindSettings {
        FindSettings {
            parameters: parameters
                .iter()
                .map(|(name, source)| NameAlias {
                    name: (*name).to_owned(),
                    source: (*source).to_owned(),
                })
                .collect(),
            ..FindSettings::default()
        }
    }

    #[test]
    fn every_useful_field_has_its_parameters() {
        let all = FindParameters::new(&catalog(), &FindSettings::default());
        assert_eq!(
            all.names().collect::<Vec<_>>(),
            [
                "query",
                "party",
                "start_date",
                "end_date",
                "min_words",
                "max_words",
                "open",
                "received_on_from",
                "received_on_to",
                "tags",
                "limit_2",
                "limit",
                "offset",
                "sort",
                "facets"
            ]
        );
        assert_eq!(
            all.filters[0].kind,
            ParameterKind::OneOf(vec!["Greens".to_owned(), "Labor".to_owned()])
        );
        let tags = all.filters.iter().find(|one| one.name == "tags").unwrap();
        let examples = ["tag 0", "tag 1", "tag 2"].map(str::to_owned).to_vec();
        assert_eq!(tags.kind, ParameterKind::Text(examples));
        let facets: Vec<_> = all.facets.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(facets, ["party", "open", "tags", "limit_2"]);
    }

    #[test]
    fn settings_choose_and_name() {
        let names = |parameters: &[(&str, &str)]| {
            let all = FindParameters::new(&catalog(), &find(parameters));
            all.names().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            names(&[("party", "party"), ("date", "date")]),
            ["query", "party", "start_date", "end_date", "limit"]
        );
        assert_eq!(
            names(&[
                ("side", "Party"),
                ("day", "date"),
                ("page", "reference"),
                ("gone", "gone"),
                ("sort", "sort"),
                ("facets", "facets")
            ]),
            [
                "query", "side", "day_from", "day_to", "page", "limit", "sort", "facets"
            ]
        );
        assert_eq!(names(&[("offset", "offset")]), ["query", "limit", "offset"]);
    }

    #[test]
    fn odd_names_become_plain_ones() {
        let long = "x".repeat(90);
        for (name, expected) in [
            ("topic tags", "topic_tags"),
            ("2nd-reading", "field_2nd_reading"),
            ("  a.b ", "a_b"),
            ("日本", "field"),
            ("größe", "gr_e"),
            (&long, &"x".repeat(48)),
        ] {
            assert_eq!(stem(name), expected);
        }
        let mut builder = CatalogBuilder::new();
        builder.documents(10);
        for name in ["日本", "中国", "a b", "a-b"] {
            builder.text(name, "v", 10);
        }
        for name in ["a_b", "x", "min_x"] {
            builder.number(name, (1.0, 2.0), 10);
        }
        let all = FindParameters::new(&builder.build(), &FindSettings::default());
        let names: BTreeSet<_> = all.names().collect();
        assert_eq!(names.len(), all.names().count());
        assert!(names.is_superset(&["field", "field_2", "a_b", "a_b_2", "min_a_b"].into()));
    }

    #[test]
    fn the_number_of_parameters_is_bounded() {
        let count = |fields: usize| {
            let mut builder = CatalogBuilder::new();
            builder.documents(10);
            for n in 0..fields {
                builder.flag(&format!("f{n:02}"), true, 10);
            }
            FindParameters::new(&builder.build(), &FindSettings::default())
                .filters
                .len()
        };
        assert_eq!(count(MAX_PARAMETERS), MAX_PARAMETERS);
        assert_eq!(count(MAX_PARAMETERS + 1), MAX_PARAMETERS);
    }
}
