//! Fuzzy lookup of field names and values: exact, normalized, by word and by edit distance.

use std::cell::OnceCell;

use super::builder::MAX_CATALOG_FIELDS;
use super::{Catalog, CatalogField};
use crate::analysis::is_stop_word;
use crate::edit_distance::edit_distance;
use crate::filter::fold_value;

/// The longest word that is compared by edit distance, in characters. The comparison takes time in the square of the
/// length, and no name or value that a person mistypes is longer: a catalog lists none.
const MAX_COMPARED_CHARS: usize = 64;

/// An index of the field names. The normalized `keys` are built on the first lookup without an exact match, because
/// most queries name no field at all.
pub(crate) struct FieldNameIndex<'c> {
    catalog: &'c Catalog,
    keys: OnceCell<Vec<(String, &'c CatalogField)>>,
}

impl<'c> FieldNameIndex<'c> {
    pub(crate) fn of(catalog: &'c Catalog) -> Self {
        Self {
            catalog,
            keys: OnceCell::new(),
        }
    }

    fn fields(&self) -> impl Iterator<Item = &'c CatalogField> + use<'c> {
        self.catalog.fields.iter().take(MAX_CATALOG_FIELDS)
    }

    fn keys(&self) -> &[(String, &'c CatalogField)] {
        let keyed = |field: &'c CatalogField| (key(&field.name), field);
        self.keys.get_or_init(|| self.fields().map(keyed).collect())
    }

    /// The field of this name: an exact match first, then one that is equal after normalization.
    pub(crate) fn find(&self, name: &str) -> Option<&'c CatalogField> {
        if let Some(same) = self.fields().find(|field| field.name == name) {
            return Some(same);
        }
        let wanted = key(name);
        let by_key = || self.keys().iter().find(|(key, _)| *key == wanted);
        let by_key = if wanted.is_empty() { None } else { by_key() };
        by_key.map(|(_, field)| *field)
    }

    /// The one field within edit distance of the name, or with the name as one of its words, plural or not.
    pub(crate) fn nearest(&self, name: &str) -> Option<&'c CatalogField> {
        let wanted = key(name);
        let close = closest(
            &wanted,
            self.keys()
                .iter()
                .map(|(key, field)| (key.as_str(), *field)),
        );
        close.or_else(|| {
            let singular = wanted.strip_suffix('s').unwrap_or(&wanted);
            let has_word = |(_, field): &&(String, &'c CatalogField)| {
                let name = fold_value(&field.name);
                let mut words = name.split(is_separator);
                words.any(|word| word.strip_suffix('s').unwrap_or(word) == singular)
            };
            let mut matches = self.keys().iter().filter(has_word);
            let (_, field) = matches.next().filter(|_| singular.len() > 1)?;
            matches.next().is_none().then_some(*field)
        })
    }
}

/// An index of the listed values of one field by their folded form.
pub(crate) struct FieldValueIndex<'c> {
    values: Vec<(String, &'c str)>,
}

impl<'c> FieldValueIndex<'c> {
    pub(crate) fn of(field: &'c CatalogField) -> Self {
        let values = field.values.iter();
        Self {
            values: values
                .map(|(value, _)| (fold_value(value), value.as_str()))
                .collect(),
        }
    }

    /// The value that was written. Hyphens, underscores and spaces are equal when there is no closer match.
    pub(crate) fn find(&self, written: &str) -> Option<&'c str> {
        let wanted = fold_value(written);
        if let Some((_, value)) = self.values.iter().find(|(value, _)| *value == wanted) {
            return Some(value);
        }
        let wanted = without_separators(&wanted);
        let fits = |(value, _): &&(String, &str)| without_separators(value) == wanted;
        let mut matches = self.values.iter().filter(fits);
        let (_, value) = matches.next().filter(|_| !wanted.is_empty())?;
        matches.next().is_none().then_some(*value)
    }

    /// Whether some value continues after what was written, so that more words may belong to it.
    pub(crate) fn has_longer_value(&self, written: &str) -> bool {
        let prefix = fold_value(written);
        let goes_on = |rest: &str| rest.starts_with(' ');
        let mut values = self.values.iter();
        values.any(|(value, _)| value.strip_prefix(prefix.as_str()).is_some_and(goes_on))
    }

    /// The one value that contains all written words, such as a full name by its surname.
    pub(crate) fn with_words(&self, written: &str) -> Option<&'c str> {
        let wanted = fold_value(written);
        let has = |value: &str, word: &str| value.split(is_separator).any(|own| own == word);
        let fits = |(value, _): &&(String, &str)| {
            wanted
                .split(is_separator)
                .all(|word| word.is_empty() || has(value, word))
        };
        let mut matches = self.values.iter().filter(fits);
        // Stop words alone do not select: `the` does not stand for `The Sound`.
        let is_content_word =
            |word: &str| word.contains(char::is_alphanumeric) && !is_stop_word(word);
        let has_content_word = wanted.split(is_separator).any(is_content_word);
        let (_, value) = matches.next().filter(|_| has_content_word)?;
        matches.next().is_none().then_some(*value)
    }

    /// The one value within edit distance, or else the one with all written words.
    pub(crate) fn nearest(&self, written: &str) -> Option<&'c str> {
        let values = self.values.iter();
        closest(
            &fold_value(written),
            values.map(|(key, value)| (key.as_str(), *value)),
        )
        .or_else(|| self.with_words(written))
    }
}

/// The normalized name: folded, without spaces, underscores and hyphens.
fn key(name: &str) -> String {
    without_separators(&fold_value(name))
}

fn without_separators(text: &str) -> String {
    text.chars().filter(|c| !is_separator(*c)).collect()
}

fn is_separator(c: char) -> bool {
    c == ' ' || c == '_' || c == '-'
}

/// The candidate with the smallest edit distance to `wanted`, within a limit that depends on its length; `None` when
/// two are equally close. A wrong guess would answer with other documents than those that were meant and look right, so
/// in doubt the caller reports that there is no such name.
fn closest<'k, T>(wanted: &str, candidates: impl Iterator<Item = (&'k str, T)>) -> Option<T> {
    let wanted: Vec<char> = wanted.chars().take(MAX_COMPARED_CHARS + 1).collect();
    // Too many short words are one letter apart.
    let limit = match wanted.len() {
        0..=3 => return None,
        4..=5 => 1,
        6..=MAX_COMPARED_CHARS => 2,
        _ => return None,
    };
    let mut best: Option<(usize, Option<T>)> = None;
    for (candidate, item) in candidates {
        let Some(distance) = edit_distance(&wanted, candidate, limit) else {
            continue;
        };
        best = match best {
            Some((least, _)) if least < distance => best,
            Some((least, _)) if least == distance => Some((least, None)),
            _ => Some((distance, Some(item))),
        };
    }
    best.and_then(|(_, item)| item)
}

#[cfg(test)]
mod tests {
    use super::super::FieldKind;
    use super::*;

    fn field(name: &str, values: &[&str]) -> CatalogField {
        CatalogField {
            name: name.to_owned(),
            kind: FieldKind::Keyword,
            documents: 1,
            values: values
                .iter()
                .map(|value| ((*value).to_owned(), 1))
                .collect(),
            more: false,
            range: None,
        }
    }

    fn catalog(names: &[&str]) -> Catalog {
        Catalog {
            documents: 1,
            fields: names.iter().map(|name| field(name, &[])).collect(),
            more: false,
        }
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        let catalog = catalog(&["topic_tags", "Party", "party", "Größe"]);
        let cases = [
            ("topic_tags", Some("topic_tags")),
            ("Topic-Tags", Some("topic_tags")),
            ("topictags", Some("topic_tags")),
            ("party", Some("party")),
            ("Party", Some("Party")),
            ("PARTY", Some("Party")),
            ("grosse", Some("Größe")),
            ("tags", None),
            ("", None),
            ("-_-", None),
        ];
        for (name, expected) in cases {
            let found = catalog.field(name).map(|field| field.name.as_str());
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn close_names_are_suggested() {
        let catalog = catalog(&["topic_tags", "party", "speaker", "state", "stage", "re"]);
        let cases = [
            ("praty", Some("party")),
            ("partys", Some("party")),
            ("partie", Some("party")),
            ("speakr", Some("speaker")),
            ("tag", Some("topic_tags")),
            ("topics", Some("topic_tags")),
            ("stave", None),
            ("http", None),
            ("s", None),
            ("ref", None),
            ("", None),
        ];
        for (name, expected) in cases {
            let found = catalog.nearest(name).map(|field| field.name.as_str());
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn values_are_found_and_suggested() {
        let party = field(
            "party",
            &["Labor", "Greens", "Meadow Alliance", "far-right", "A B"],
        );
        let cases = [
            ("labor", Some("Labor"), Some("Labor")),
            (
                "  MEADOW   alliance",
                Some("Meadow Alliance"),
                Some("Meadow Alliance"),
            ),
            (
                "meadow-alliance",
                Some("Meadow Alliance"),
                Some("Meadow Alliance"),
            ),
            ("far right", Some("far-right"), Some("far-right")),
            ("Labour", None, Some("Labor")),
            ("Grenes", None, Some("Greens")),
            ("alliance", None, Some("Meadow Alliance")),
            ("Purple", None, None),
            ("", None, None),
            ("--", None, None),
        ];
        for (written, value, nearest) in cases {
            assert_eq!(party.value(written), value, "{written}");
            if value.is_none() {
                assert_eq!(party.nearest(written), nearest, "{written}");
            }
        }
    }

    #[test]
    fn equally_close_values_are_not_suggested() {
        assert_eq!(field("f", &["bound", "sound"]).nearest("round"), None);
        assert_eq!(field("f", &["New York", "New Delhi"]).nearest("new"), None);
    }

    #[test]
    fn a_word_that_is_too_long_has_no_suggestion() {
        let long = "x".repeat(MAX_COMPARED_CHARS);
        let longer = "x".repeat(MAX_COMPARED_CHARS + 1);
        let field = field("f", &[&long]);
        assert_eq!(
            field.nearest(&format!("{}y", &long[1..])),
            Some(long.as_str())
        );
        assert_eq!(field.nearest(&longer), None);
    }
}
