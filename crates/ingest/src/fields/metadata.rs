//! Metadata extraction: turns the keys and raw values of one document into its title, text, URL, date and
//! typed fields. Front matter and records both go through here.

use docent_search::DocumentValue;
use serde_json::{Map, Number, Value as Raw};

use crate::clean::{clean, clean_line, truncate_chars};
use crate::dates;
use crate::error::IngestError;
use crate::fields::field_overflow::{FieldOverflow, TextRules};
use crate::limits::Limits;
use crate::parser::ParserInput;
use crate::reader_field::{ReaderFault, ReaderField, ReaderKeys};

/// The end of the name of a value that a later one of the same key replaced. It is invisible to the comparison of
/// names, so a repeated reader field stays recognizable as such.
pub(crate) const REPEATED: char = '\0';

/// The key of a value that a later value of the same key replaced; `None` for any other name.
pub(crate) fn unrepeated_name(name: &str) -> Option<&str> {
    let key = name.trim_end_matches(REPEATED);
    (key.len() < name.len()).then_some(key)
}

/// Which keys of a format mean what. The first key with a usable value wins, and the other ones stay
/// ordinary fields.
pub(crate) struct KeyMapping {
    pub title: &'static [&'static str],
    pub text: &'static [&'static str],
    pub url: &'static [&'static str],
}

/// The metadata of one document after extraction.
#[derive(Debug, Default)]
pub(crate) struct ExtractedMetadata {
    pub title: Option<String>,
    pub text: Option<String>,
    pub url: Option<String>,
    pub date: Option<String>,
    pub fields: Vec<(String, DocumentValue)>,
    /// What the fields do not hold.
    pub overflow: FieldOverflow,
    /// The reader field of the document. It is kept apart from `fields`, so the limits on fields cannot cut
    /// off a permission.
    pub readers: ReaderField,
    pub warnings: Vec<IngestError>,
}

/// Extracts metadata from the keys of one document. The field that names its readers is taken out first.
pub(crate) fn extract_metadata(
    mut map: Map<String, Raw>,
    keys: &KeyMapping,
    input: &ParserInput<'_>,
) -> ExtractedMetadata {
    let readers = ReaderKeys::for_input(input).take(&mut map);
    ExtractedMetadata {
        readers,
        ..extract_metadata_without_readers(map, keys, input.limits)
    }
}

/// Extracts metadata where the reader field has been taken out already.
pub(crate) fn extract_metadata_without_readers(
    mut map: Map<String, Raw>,
    keys: &KeyMapping,
    limits: &Limits,
) -> ExtractedMetadata {
    let mut metadata = ExtractedMetadata {
        title: take(&mut map, keys.title, as_title),
        text: take(&mut map, keys.text, as_text),
        url: take(&mut map, keys.url, |raw| as_url(raw, limits)),
        date: take(&mut map, &["date"], as_day),
        ..ExtractedMetadata::default()
    };
    metadata.truncate_title(limits);
    for (name, raw) in map {
        let is_repeated = unrepeated_name(&name).is_some();
        let mut path = clean_line(&name);
        metadata.add(
            &mut path,
            raw,
            FieldPlace {
                depth: 0,
                is_repeated,
            },
            limits,
        );
    }
    metadata
}

/// The text of a document, and the error if the end of it is lost because it is too long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CompleteText {
    pub text: String,
    pub lost: Option<IngestError>,
}

/// Where a value stands in its record.
#[derive(Debug, Clone, Copy)]
struct FieldPlace {
    /// How many maps are around it.
    depth: usize,
    /// Whether its key, or that of a map around it, is written again later.
    is_repeated: bool,
}

/// Removes the first key with a usable value from the map and returns that value. Keys are compared without
/// case.
pub(crate) fn take<T>(
    map: &mut Map<String, Raw>,
    names: &[&str],
    usable: impl Fn(&Raw) -> Option<T>,
) -> Option<T> {
    let (key, value) = find(map, names, usable)?;
    // `shift_remove` keeps the order of the fields; a plain `remove` would move the last field into the
    // gap.
    map.shift_remove(&key);
    Some(value)
}

/// Finds the first key with a usable value, and returns both.
pub(crate) fn find<T>(
    map: &Map<String, Raw>,
    names: &[&str],
    usable: impl Fn(&Raw) -> Option<T>,
) -> Option<(String, T)> {
    names.iter().find_map(|name| {
        let fits = |(key, raw): (&String, &Raw)| {
            key.eq_ignore_ascii_case(name)
                .then(|| usable(raw))
                .flatten()
                .map(|value| (key.clone(), value))
        };
        map.iter().find_map(fits)
    })
}

impl ExtractedMetadata {
    /// Whether the keys yielded neither metadata nor fields.
    pub(crate) fn is_empty(&self) -> bool {
        let texts = [&self.title, &self.text, &self.url, &self.date];
        texts.iter().all(|text| text.is_none())
            && self.fields.is_empty()
            && self.overflow.is_empty()
    }

    /// Fails closed: marks the reader field as malformed, so that nobody may read the document, where a
    /// reader field is configured and its place could not be parsed.
    pub(crate) fn mark_readers_malformed(&mut self, readers: &ReaderKeys) {
        if readers.is_configured() {
            self.readers = ReaderField::Malformed(ReaderFault::FrontMatter);
        }
    }

    /// The text of the document: the one that it has, or else a list of its fields, with what the fields do not
    /// hold.
    pub(crate) fn complete_text(
        &self,
        own: Option<String>,
        input: &ParserInput<'_>,
    ) -> Result<CompleteText, IngestError> {
        let limit = input.limits.max_text_chars;
        let rules = TextRules {
            max_chars: limit,
            is_hidden: &|name| input.options.hides(input.path, name),
        };
        let found = match own {
            Some(text) => self.overflow.complete(text, &rules),
            None => self.overflow.list(&self.fields, &rules),
        };
        let found = found.ok_or(IngestError::TextTooLong { limit })?;
        Ok(CompleteText {
            text: found.text,
            lost: found.is_cut.then_some(IngestError::TextTooLong { limit }),
        })
    }

    fn truncate_title(&mut self, limits: &Limits) {
        let limit = limits.max_title_chars;
        let Some(mut title) = self.title.take() else {
            return;
        };
        let whole = title.clone();
        if truncate_chars(&mut title, limit) {
            self.warn_cut("title", limit, limits);
            self.overflow
                .push("title", whole, None, limits.max_text_chars);
        }
        self.title = Some(title);
    }

    /// Adds a value as a field, flattening nested maps into dotted names. It recurses once per level; the
    /// parsers bound the levels. `path` is the name of the value, and the same again on return.
    fn add(&mut self, path: &mut String, raw: Raw, place: FieldPlace, limits: &Limits) {
        let Raw::Object(map) = raw else {
            if let Some(value) = whole_value(raw) {
                self.add_value(path, value, place, limits);
            }
            return;
        };
        let length = path.len();
        for (key, raw) in map {
            path.push('.');
            path.push_str(&clean_line(&key));
            let place = FieldPlace {
                depth: place.depth + 1,
                is_repeated: place.is_repeated || unrepeated_name(&key).is_some(),
            };
            self.add(path, raw, place, limits);
            path.truncate(length);
        }
    }

    fn add_value(&mut self, name: &str, value: DocumentValue, place: FieldPlace, limits: &Limits) {
        if let Some(reason) = self.refuse_field(name, place, limits) {
            self.warn(reason);
            let limit = limits.max_text_chars;
            return self.overflow.push(name, value.to_string(), None, limit);
        }
        let value = match truncated(&value, limits) {
            None => value,
            Some((short, limit)) => {
                self.warn_cut(name, limit, limits);
                let (field, limit) = (Some(self.fields.len()), limits.max_text_chars);
                self.overflow.push(name, value.to_string(), field, limit);
                short
            }
        };
        self.fields.push((name.to_owned(), value));
    }

    /// The reason why a value cannot become a field.
    fn refuse_field(&self, name: &str, place: FieldPlace, limits: &Limits) -> Option<IngestError> {
        let is_bad = name.is_empty()
            || name.chars().nth(limits.max_name_chars).is_some()
            || place.depth > limits.max_field_depth
            || self.fields.iter().any(|(taken, _)| taken == name);
        let limit = limits.max_fields;
        if place.is_repeated {
            let mut name = name.to_owned();
            truncate_chars(&mut name, limits.max_name_chars);
            Some(IngestError::RepeatedKey { name })
        } else if self.fields.len() >= limit {
            Some(IngestError::TooManyFields { limit })
        } else {
            is_bad.then_some(IngestError::BadField)
        }
    }

    fn warn_cut(&mut self, name: &str, limit: usize, limits: &Limits) {
        let mut name = name.to_owned();
        truncate_chars(&mut name, limits.max_name_chars);
        self.warn(IngestError::Cut { name, limit });
    }

    /// Records a warning once, and at most eight of them, because one record may have a great many bad
    /// keys.
    fn warn(&mut self, reason: IngestError) {
        const MOST: usize = 8;
        if self.warnings.len() < MOST && !self.warnings.contains(&reason) {
            self.warnings.push(reason);
        }
    }
}

/// Converts a raw value to a typed one; `None` for null and blank values, and for maps.
fn whole_value(raw: Raw) -> Option<DocumentValue> {
    match raw {
        Raw::Null | Raw::Object(_) => None,
        Raw::Bool(flag) => Some(DocumentValue::Bool(flag)),
        Raw::Number(number) => Some(as_number(&number)),
        Raw::String(text) => {
            let text = clean(&text).trim().to_owned();
            match dates::iso_date(&text) {
                _ if text.is_empty() => None,
                Some(_) => Some(DocumentValue::Date(text)),
                None => Some(DocumentValue::Text(text)),
            }
        }
        Raw::Array(values) => {
            let list = values.into_iter().map(as_list_value);
            let list: Vec<_> = list.filter(|text| !text.is_empty()).collect();
            (!list.is_empty()).then_some(DocumentValue::List(list))
        }
    }
}

/// The part of a value that fits into a field, and the limit that it exceeds; `None` if all of it fits.
fn truncated(value: &DocumentValue, limits: &Limits) -> Option<(DocumentValue, usize)> {
    let (chars, values) = (limits.max_value_chars, limits.max_list_values);
    let is_long = |text: &String| text.chars().nth(chars).is_some();
    let short = |text: &String| -> String { text.chars().take(chars).collect() };
    match value {
        DocumentValue::Text(text) if is_long(text) => {
            Some((DocumentValue::Text(short(text)), chars))
        }
        DocumentValue::List(list) if list.len() > values || list.iter().any(is_long) => {
            let limit = if list.len() > values { values } else { chars };
            let list = list.iter().take(values).map(short);
            Some((DocumentValue::List(list.collect()), limit))
        }
        _ => None,
    }
}

fn as_title(raw: &Raw) -> Option<String> {
    let title = match raw {
        Raw::String(text) => clean_line(text),
        Raw::Number(number) => number.to_string(),
        _ => String::new(),
    };
    (!title.is_empty()).then_some(title)
}

fn as_text(raw: &Raw) -> Option<String> {
    raw.as_str()
        .map(clean)
        .filter(|text| !text.trim().is_empty())
}

fn as_day(raw: &Raw) -> Option<String> {
    raw.as_str().and_then(dates::date_part).map(str::to_owned)
}

/// Accepts an absolute `http` or `https` URL. A URL with a user name is rejected because it can pose as
/// another site.
fn as_url(raw: &Raw, limits: &Limits) -> Option<String> {
    let url = raw.as_str()?.trim();
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let forbidden = |c: char| c.is_whitespace() || c.is_control() || "\"<>\\`{}|^".contains(c);
    let good = (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
        && host.starts_with(|c: char| c.is_alphanumeric() || c == '[')
        && !host.contains('@')
        && !url.contains(forbidden)
        && clean(url) == url
        && url.chars().nth(limits.max_url_chars).is_none();
    good.then(|| url.to_owned())
}

/// Keeps integers above 2^53 as text: they are identifiers rather than measures, and an `f64` would change
/// their last digits.
fn as_number(number: &Number) -> DocumentValue {
    const EXACT: u64 = 1 << 53;
    let whole = number.as_i64().map(i64::unsigned_abs).or(number.as_u64());
    match number.as_f64() {
        Some(value) if value.is_finite() && whole.is_none_or(|whole| whole <= EXACT) => {
            DocumentValue::Number(value)
        }
        _ => DocumentValue::Text(number.to_string()),
    }
}

fn as_list_value(raw: Raw) -> String {
    match raw {
        Raw::Null => String::new(),
        Raw::String(text) => clean_line(&text),
        other => clean_line(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KEYS: KeyMapping = KeyMapping {
        title: &["title", "name"],
        text: &["text"],
        url: &["url", "link"],
    };

    fn of(raw: Raw, limits: &Limits) -> ExtractedMetadata {
        let Raw::Object(map) = raw else {
            panic!("not an object")
        };
        extract_metadata_without_readers(map, &KEYS, limits)
    }

    fn check_fields(raw: Raw, expect: &[(&str, DocumentValue)]) {
        let found = of(raw, &Limits::default());
        let expect: Vec<_> = expect
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        assert_eq!(found.fields, expect);
        assert_eq!(found.warnings, []);
    }

    fn text(text: &str) -> DocumentValue {
        DocumentValue::Text(text.to_owned())
    }

    #[test]
    fn values_are_typed_and_keep_their_order() {
        check_fields(
            json!({"z": 1, "a": 1.5, "flag": false, "day": "2024-03-12", "moment": "2024-03-12T10:00:00Z",
                   "none": null, "blank": " ", "tags": ["a", 2, null, {"x": 1}], "empty": [], "m": "a\r\nb"}),
            &[
                ("z", DocumentValue::Number(1.0)),
                ("a", DocumentValue::Number(1.5)),
                ("flag", DocumentValue::Bool(false)),
                ("day", DocumentValue::Date("2024-03-12".into())),
                ("moment", text("2024-03-12T10:00:00Z")),
                (
                    "tags",
                    DocumentValue::List(vec!["a".into(), "2".into(), "{\"x\":1}".into()]),
                ),
                ("m", text("a\nb")),
            ],
        );
    }

    #[test]
    fn numbers_too_large_to_be_exact_stay_text() {
        check_fields(
            json!({"a": 9_007_199_254_740_992_u64, "b": 9_007_199_254_740_993_u64, "c": -9_007_199_254_740_993_i64}),
            &[
                ("a", DocumentValue::Number(9_007_199_254_740_992.0)),
                ("b", text("9007199254740993")),
                ("c", text("-9007199254740993")),
            ],
        );
    }

    #[test]
    fn nested_maps_get_dotted_names() {
        check_fields(
            json!({"a": {"b": {"c": 1}, "d": "x"}}),
            &[("a.b.c", DocumentValue::Number(1.0)), ("a.d", text("x"))],
        );
    }

    #[test]
    fn the_first_fitting_key_is_taken_and_the_others_stay() {
        let found = of(
            json!({"name": "Second", "Title": " First\n title ", "date": "2024-03-12 09:00", "link": "https://corrowin.example/a", "url": "/a"}),
            &Limits::default(),
        );
        assert_eq!(found.title.as_deref(), Some("First title"));
        assert_eq!(found.date.as_deref(), Some("2024-03-12"));
        assert_eq!(found.url.as_deref(), Some("https://corrowin.example/a"));
        assert_eq!(
            found.fields,
            [
                ("name".to_owned(), text("Second")),
                ("url".to_owned(), text("/a"))
            ]
        );
    }

    #[test]
    fn only_plain_web_addresses_are_addresses() {
        let limits = Limits {
            max_url_chars: 40,
            ..Limits::default()
        };
        let is_url = |url: &str| as_url(&json!(url), &limits).is_some();
        let exact = format!("https://a.example/{}", "x".repeat(22));
        for url in [
            "http://a.example",
            "HTTPS://a.example/b?c#d",
            "https://[::1]:8080/",
            exact.as_str(),
        ] {
            assert!(is_url(url), "{url}");
        }
        let over = format!("{exact}x");
        for url in [
            "ftp://a.example",
            "javascript://a",
            "//a.example",
            "/a",
            "https://",
            "https:///a",
            "https://u@a.example",
            "https://a.example/ b",
            "https://a.example/\"",
            "https://a.example/\u{202E}x",
            "",
            over.as_str(),
        ] {
            assert!(!is_url(url), "{url}");
        }
        assert!(as_url(&json!(7), &limits).is_none());
    }

    #[test]
    fn every_bound_holds_and_is_reported() {
        let limits = Limits {
            max_fields: 2,
            max_field_depth: 1,
            max_name_chars: 4,
            max_value_chars: 3,
            max_list_values: 2,
            max_title_chars: 5,
            ..Limits::default()
        };
        let check = |raw: Raw, kept: &[&str], codes: &[&str]| {
            let found = of(raw, &limits);
            let values: Vec<_> = found
                .fields
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            assert_eq!(values, kept);
            assert_eq!(
                found
                    .warnings
                    .iter()
                    .map(IngestError::code)
                    .collect::<Vec<_>>(),
                codes
            );
        };
        check(json!({"a": 1, "b": 2}), &["a=1", "b=2"], &[]);
        check(
            json!({"a": 1, "b": 2, "c": 3, "d": 4}),
            &["a=1", "b=2"],
            &["too-many-fields"],
        );
        check(json!({"a": {"b": 1}}), &["a.b=1"], &[]);
        check(json!({"a": {"b": {"c": 1}}}), &[], &["bad-field"]);
        check(
            json!({"abcd": 1, "abcde": 2, "": 3}),
            &["abcd=1"],
            &["bad-field"],
        );
        check(json!({"a": {"b": 1}, "a.b": 2}), &["a.b=1"], &["bad-field"]);
        check(json!({"a": "üüü"}), &["a=üüü"], &[]);
        check(json!({"a": "üüüü"}), &["a=üüü"], &["cut"]);
        check(json!({"a": ["x", "yyyy"]}), &["a=x, yyy"], &["cut"]);
        check(json!({"a": ["x", "y"]}), &["a=x, y"], &[]);
        check(json!({"a": ["x", "y", "z"]}), &["a=x, y"], &["cut"]);
        assert_eq!(of(json!({"title": "12345"}), &limits).warnings, []);
        let long = of(json!({"title": "123456"}), &limits);
        assert_eq!(
            (long.title.as_deref(), long.warnings.len()),
            (Some("12345"), 1)
        );
    }

    #[test]
    fn names_of_repeated_keys_are_recognized() {
        assert_eq!(unrepeated_name("a\0\0"), Some("a"));
        assert_eq!(unrepeated_name("a"), None);
    }

    #[test]
    fn warnings_of_one_document_are_few() {
        let limits = Limits {
            max_value_chars: 1,
            ..Limits::default()
        };
        let map: Map<_, _> = (0..60).map(|n| (format!("f{n}"), json!("xx"))).collect();
        assert_eq!(
            extract_metadata_without_readers(map, &KEYS, &limits)
                .warnings
                .len(),
            8
        );
    }
}
