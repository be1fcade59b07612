//! Page metadata: the title, the `meta` and `link` elements, and other statements of a page about itself, as
//! keys and values.

use serde_json::{Map, Value as Raw};

use crate::clean::clean_line;
use crate::dates::written_date::parse_written_date;
use crate::reader_field::{self, ReaderKeys};

use super::confluence::ConfluenceMetadata;
use super::emitter::HtmlTag;

/// The attributes by which a `meta` element names its property.
pub(super) const NAMING: [&str; 4] = ["name", "property", "itemprop", "http-equiv"];

/// The most values of one property, such as authors.
const MAX_VALUES: usize = 64;

/// The most bytes of a title or heading, before it is cleaned and truncated. Cleaning can shorten a text a lot, as with
/// a title full of blanks and line feeds, so it is collected beyond the final length.
const MAX_TITLE_BYTES: usize = 16 * 1024;

/// The metadata keys, and the property names from which each is read, best source first.
const NAMES: &[(&str, &[&str])] = &[
    (
        "date",
        &[
            "article:published_time",
            "datepublished",
            "citation_publication_date",
            "citation_date",
            "dcterms.issued",
            "dc.date.issued",
            "dcterms.date",
            "dc.date",
            "parsely-pub-date",
            "publish-date",
            "publication_date",
            "pubdate",
            "sailthru.date",
            "date",
            "dcterms.created",
            "dc.date.created",
            "datecreated",
        ],
    ),
    (
        "modified",
        &[
            "article:modified_time",
            "og:updated_time",
            "datemodified",
            "dcterms.modified",
            "dc.date.modified",
            "last-modified",
            "revised",
        ],
    ),
    (
        "author",
        &[
            "author",
            "article:author",
            "citation_author",
            "dcterms.creator",
            "dc.creator",
            "parsely-author",
        ],
    ),
    (
        "description",
        &[
            "description",
            "og:description",
            "dcterms.description",
            "dc.description",
            "twitter:description",
        ],
    ),
    (
        "keywords",
        &[
            "keywords",
            "article:tag",
            "news_keywords",
            "citation_keywords",
        ],
    ),
    ("section", &["article:section", "parsely-section"]),
    ("site", &["og:site_name", "application-name"]),
    ("type", &["og:type", "dcterms.type", "dc.type"]),
    (
        "og:title",
        &["og:title", "dcterms.title", "dc.title", "twitter:title"],
    ),
    ("og:url", &["og:url"]),
    (
        "language",
        &[
            "content-language",
            "og:locale",
            "dcterms.language",
            "dc.language",
        ],
    ),
];

/// The metadata collected while a page is parsed. A value is stored with its key and with the rank of its
/// name in [`NAMES`]. At most two access control fields are kept, because two already make the field
/// ambiguous.
#[derive(Debug, Default)]
pub(crate) struct HtmlHead {
    title: String,
    has_title: bool,
    heading: String,
    has_heading: bool,
    canonical: Option<String>,
    language: Option<String>,
    confluence: ConfluenceMetadata,
    readers: ReaderKeys,
    named_readers: Vec<(String, Option<String>)>,
    metas_with_readers: usize,
    values: Vec<(&'static str, usize, String)>,
}

impl HtmlHead {
    /// Creates an empty head; `readers` are the names of the access control field.
    pub(super) fn with_reader_keys(readers: ReaderKeys) -> Self {
        Self {
            readers,
            ..Self::default()
        }
    }

    pub(super) fn claim_title(&mut self) -> bool {
        !std::mem::replace(&mut self.has_title, true)
    }

    pub(super) fn claim_heading(&mut self) -> bool {
        !std::mem::replace(&mut self.has_heading, true)
    }

    pub(super) fn add_title(&mut self, text: &str) {
        add(&mut self.title, text);
    }

    pub(super) fn add_heading(&mut self, text: &str) {
        add(&mut self.heading, text);
    }

    pub(super) fn set_confluence(&mut self, confluence: ConfluenceMetadata) {
        self.confluence = confluence;
    }

    pub(super) fn set_language(&mut self, language: Option<&str>) {
        if self.language.is_none() {
            self.language = language
                .map(clean_line)
                .filter(|language| !language.is_empty());
        }
    }

    pub(super) fn read_meta(&mut self, tag: &HtmlTag) {
        let mut names = NAMING
            .iter()
            .filter_map(|attribute| tag.get(attribute))
            .filter(|name| !name.trim().is_empty());
        let name = names.clone().next();
        // The field counts in whichever naming attribute it stands, also beside another name.
        if let Some(name) = names.find(|name| self.readers.covers_key(name)) {
            self.metas_with_readers += 1;
            let content = tag.get("content").map(str::to_owned);
            return self.name_readers(name, content);
        }
        if let (Some(name), Some(content)) = (name, tag.get("content")) {
            self.add_value(name, content);
        }
    }

    /// Records an access control field that was found on the page.
    pub(super) fn name_readers(&mut self, name: &str, value: Option<String>) {
        if self.named_readers.len() < 2 {
            self.named_readers.push((name.to_owned(), value));
        }
    }

    pub(super) fn readers(&self) -> &ReaderKeys {
        &self.readers
    }

    /// The number of `meta` elements with an access control field.
    pub(super) fn metas_with_readers(&self) -> usize {
        self.metas_with_readers
    }

    pub(super) fn read_link(&mut self, tag: &HtmlTag) {
        let is_canonical = |rel: &str| {
            rel.split_ascii_whitespace()
                .any(|word| word.eq_ignore_ascii_case("canonical"))
        };
        if self.canonical.is_none() && tag.get("rel").is_some_and(is_canonical) {
            self.canonical = tag.get("href").map(str::to_owned);
        }
    }

    /// Reads a date from a microdata element such as `<time itemprop="datePublished" datetime="…">`.
    pub(super) fn read_time(&mut self, tag: &HtmlTag) {
        if tag.name == "time"
            && let (Some(name), Some(timestamp)) = (tag.get("itemprop"), tag.get("datetime"))
        {
            self.add_value(name, timestamp);
        }
    }

    /// Returns the collected metadata as keys and values, `title` and `url` among them.
    pub(crate) fn into_keys(mut self) -> Map<String, Raw> {
        let mut keys = Map::new();
        let og_title = self.take_values("og:title");
        let titles = [self.title.as_str(), self.heading.as_str()];
        let title = titles
            .into_iter()
            .map(clean_line)
            .find(|title| !title.is_empty());
        let mut set = |key: &str, value: Option<Raw>| {
            if let Some(value) = value {
                keys.insert(key.to_owned(), value);
            }
        };
        set(
            "title",
            title
                .map(Raw::String)
                .or(og_title.into_iter().next().map(Raw::String)),
        );
        let og_url = self.take_values("og:url").into_iter().next();
        set("url", self.canonical.take().or(og_url).map(Raw::String));
        for key in ["date", "modified"] {
            let days = self.take_values(key);
            let day = days.iter().find_map(|text| parse_written_date(text));
            set(key, day.map(Raw::String));
        }
        let mut authors = self.take_values("author");
        authors.retain(|author| !author.contains("://"));
        set("author", one_or_list(authors));
        set(
            "description",
            self.take_values("description")
                .into_iter()
                .next()
                .map(Raw::String),
        );
        let words = self.take_values("keywords");
        let words = words
            .iter()
            .flat_map(|words| words.split([',', ';']))
            .map(clean_line);
        let words: Vec<_> = words
            .filter(|word| !word.is_empty())
            .map(Raw::String)
            .collect();
        set("keywords", (!words.is_empty()).then_some(Raw::Array(words)));
        let language = self
            .language
            .take()
            .or(self.take_values("language").into_iter().next());
        set("language", language.map(Raw::String));
        for key in ["section", "site"] {
            set(
                key,
                self.take_values(key).into_iter().next().map(Raw::String),
            );
        }
        let kind = self.take_values("type").into_iter().next();
        set(
            "type",
            kind.filter(|kind| kind != "website").map(Raw::String),
        );
        self.confluence.add_to(&mut keys);
        for (name, content) in self.named_readers {
            reader_field::insert_keeping_duplicates(
                &mut keys,
                &name,
                content.map_or(Raw::Null, Raw::String),
            );
        }
        keys
    }

    fn add_value(&mut self, name: &str, content: &str) {
        let name = name.trim().to_ascii_lowercase();
        let content = clean_line(content);
        let found = NAMES.iter().find_map(|(key, names)| {
            let rank = names.iter().position(|known| *known == name)?;
            Some((*key, rank))
        });
        let Some((key, rank)) = found.filter(|_| !content.is_empty()) else {
            return;
        };
        let of_this_key = self
            .values
            .iter()
            .filter(|(known, ..)| *known == key)
            .count();
        if of_this_key < MAX_VALUES {
            self.values.push((key, rank, content));
        }
    }

    /// The values of a key under its best-ranked name, without duplicates.
    fn take_values(&mut self, key: &str) -> Vec<String> {
        let own = self.values.iter().filter(|(known, ..)| *known == key);
        // A date may be in a notation that cannot be parsed, so lower-ranked names are tried as well.
        let best = own.clone().map(|(_, rank, _)| *rank).min();
        let keeps_all_ranks = matches!(key, "date" | "modified");
        let mut values: Vec<_> = own
            .filter(|(_, rank, _)| keeps_all_ranks || Some(*rank) == best)
            .collect();
        values.sort_by_key(|(_, rank, _)| *rank);
        let mut found: Vec<String> = Vec::new();
        for (_, _, value) in values {
            if !found.contains(value) {
                found.push(value.clone());
            }
        }
        found
    }
}

fn add(to: &mut String, text: &str) {
    if to.len() < MAX_TITLE_BYTES {
        let room = MAX_TITLE_BYTES - to.len();
        to.extend(text.chars().take(room));
    }
}

fn one_or_list(mut values: Vec<String>) -> Option<Raw> {
    match values.len() {
        0 => None,
        1 => values.pop().map(Raw::String),
        _ => Some(Raw::Array(values.into_iter().map(Raw::String).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(metas: &[(&str, &str)]) -> String {
        let mut head = HtmlHead::default();
        for (name, content) in metas {
            head.read_meta(&HtmlTag::of(
                "meta",
                &[("name", name), ("content", content)],
            ));
        }
        Raw::Object(head.into_keys()).to_string()
    }

    #[test]
    fn the_best_name_of_a_key_is_believed() {
        assert_eq!(
            keys(&[
                ("dc.creator", "B"),
                ("Author", " A\u{200B} "),
                ("date", "2020-01-01"),
                ("article:published_time", "2024-03-12T10:00:00+02:00"),
                ("og:description", "two"),
                ("description", "one"),
                ("keywords", "ferry, boat;  , port"),
                ("og:type", "website"),
                ("unknown", "x"),
            ]),
            r#"{"date":"2024-03-12","author":"A","description":"one","keywords":["ferry","boat","port"]}"#
        );
    }

    #[test]
    fn a_day_nobody_can_read_gives_way() {
        assert_eq!(
            keys(&[
                ("article:published_time", "yesterday"),
                ("date", "12 March 2024")
            ]),
            r#"{"date":"2024-03-12"}"#
        );
    }

    #[test]
    fn authors_are_people_and_each_is_named_once() {
        assert_eq!(
            keys(&[
                ("author", "A"),
                ("author", "B"),
                ("author", "A"),
                ("author", "https://a.example/b")
            ]),
            r#"{"author":["A","B"]}"#
        );
    }

    #[test]
    fn values_of_one_kind_end_at_their_bound() {
        let count = |given: usize| {
            let names: Vec<_> = (0..given).map(|n| format!("A{n}")).collect();
            let mut head = HtmlHead::default();
            for name in &names {
                head.read_meta(&HtmlTag::of(
                    "meta",
                    &[("name", "author"), ("content", name)],
                ));
            }
            head.into_keys()["author"].as_array().map(Vec::len)
        };
        assert_eq!(count(MAX_VALUES), Some(MAX_VALUES));
        assert_eq!(count(MAX_VALUES + 1), Some(MAX_VALUES));
    }

    #[test]
    fn a_title_ends_at_its_bound() {
        let mut head = HtmlHead::default();
        head.add_title(&"x".repeat(MAX_TITLE_BYTES - 1));
        head.add_title("yyy");
        assert_eq!(head.title.len(), MAX_TITLE_BYTES);
    }
}
