//! Bibliographic records from reference managers (Zotero, CSL JSON, BibTeX), normalized to one shape: authors
//! in name order, a date or year, a URL that resolves, tags, and a text that begins with a citation.

use serde_json::{Map, Value as Raw};

use crate::clean::clean_line;
use crate::dates;
use crate::dates::written_date::parse_written_date;
use crate::fields::metadata::take;

/// The most authors, editors or tags of one work.
const MAX_NAMES: usize = 256;

/// The item types of the Citation Style Language, by which CSL JSON is recognized.
#[rustfmt::skip]
const CSL_TYPES: &[&str] = &[
    "article", "article-journal", "article-magazine", "article-newspaper", "bill", "book", "broadcast", "chapter",
    "classic", "collection", "dataset", "document", "entry", "entry-dictionary", "entry-encyclopedia", "event", "figure",
    "graphic", "hearing", "interview", "legal_case", "legislation", "manuscript", "map", "motion_picture",
    "musical_score", "pamphlet", "paper-conference", "patent", "performance", "periodical", "personal_communication",
    "post", "post-weblog", "regulation", "report", "review", "review-book", "software", "song", "speech", "standard",
    "thesis", "treaty", "webpage",
];

/// The fields of a work, from whichever format they come, before they become a record.
#[derive(Debug, Default)]
pub(crate) struct BibliographicRecord {
    pub id: Option<Raw>,
    pub kind: Option<String>,
    pub title: Option<String>,
    pub authors: Vec<String>,
    pub editors: Vec<String>,
    /// The date as written: `2021-03-04`, `March 2021`, `2021`.
    pub date: Option<String>,
    pub publication: Option<String>,
    pub summary: Option<String>,
    pub doi: Option<String>,
    pub url: Option<String>,
    pub tags: Vec<String>,
    pub attachments: Vec<String>,
    pub rest: Vec<(String, Raw)>,
}

/// Normalizes a record that describes a work (CSL JSON or a Zotero table row); any other is returned as it
/// is.
pub(crate) fn normalize_reference(mut keys: Map<String, Raw>) -> Map<String, Raw> {
    if is_csl(&keys) {
        from_csl(&mut keys).into_keys()
    } else if keys.contains_key("Item Type")
        && keys.contains_key("Title")
        && keys.contains_key("Key")
    {
        from_zotero(&mut keys).into_keys()
    } else {
        keys
    }
}

fn is_csl(keys: &Map<String, Raw>) -> bool {
    let is_type = |kind: &Raw| kind.as_str().is_some_and(|kind| CSL_TYPES.contains(&kind));
    let is_name = |name: &Raw| {
        ["family", "literal"]
            .iter()
            .any(|part| name.get(part).is_some())
    };
    let named = |list: &Raw| list.get(0).is_some_and(is_name);
    let dated = |issued: &Raw| issued.get("date-parts").or(issued.get("raw")).is_some();
    keys.get("type").is_some_and(is_type)
        && (["author", "editor"]
            .iter()
            .any(|role| keys.get(*role).is_some_and(named))
            || keys.get("issued").is_some_and(dated))
}

fn from_csl(keys: &mut Map<String, Raw>) -> BibliographicRecord {
    let names = |list: Option<Raw>| -> Vec<String> {
        let Some(Raw::Array(list)) = list else {
            return Vec::new();
        };
        list.iter().take(MAX_NAMES).filter_map(csl_name).collect()
    };
    let mut work = BibliographicRecord {
        id: keys.shift_remove("id"),
        authors: names(keys.shift_remove("author")),
        editors: names(keys.shift_remove("editor")),
        date: keys.shift_remove("issued").as_ref().and_then(csl_day),
        ..BibliographicRecord::default()
    };
    let mut word = |name: &str| take(keys, &[name], text);
    work.kind = word("type");
    work.title = word("title");
    work.publication = word("container-title");
    work.summary = word("abstract");
    work.doi = word("DOI");
    work.url = word("URL");
    work.tags = word("keyword").map_or_else(Vec::new, |words| split_list(&words, &[',', ';']));
    if let Some(day) = keys.shift_remove("accessed").as_ref().and_then(csl_day) {
        keys.insert("accessed".to_owned(), day.into());
    }
    work.rest = std::mem::take(keys).into_iter().collect();
    work
}

fn csl_name(name: &Raw) -> Option<String> {
    let part = |key: &str| name.get(key).and_then(Raw::as_str).map(clean_line);
    let whole = part("literal").or_else(|| {
        let parts = ["given", "non-dropping-particle", "family", "suffix"];
        let parts: Vec<_> = parts.iter().filter_map(|key| part(key)).collect();
        Some(parts.join(" "))
    })?;
    (!whole.is_empty()).then_some(whole)
}

/// Parses a CSL date, `{"date-parts": [[2021, 3, 4]]}`, in which month and day are optional.
fn csl_day(date: &Raw) -> Option<String> {
    if let Some(raw) = date.get("raw").or(date.get("literal")) {
        return text(raw);
    }
    let parts = date.get("date-parts")?.get(0)?.as_array()?;
    let number = |part: &Raw| {
        let number = part.as_u64();
        number.or_else(|| part.as_str()?.trim().parse().ok())
    };
    let numbers: Vec<u64> = parts.iter().take(3).map_while(number).collect();
    match numbers.as_slice() {
        [year, month, day] => Some(format!("{year:04}-{month:02}-{day:02}")),
        [year, month] => Some(format!("{year:04}-{month:02}")),
        [year] => Some(format!("{year:04}")),
        _ => None,
    }
}

/// Maps the columns of a CSV file exported by Zotero.
fn from_zotero(keys: &mut Map<String, Raw>) -> BibliographicRecord {
    let mut list = |name: &str| match keys.shift_remove(name) {
        Some(Raw::Array(list)) => list.iter().filter_map(text).collect(),
        Some(value) => text(&value).map_or_else(Vec::new, |words| split_list(&words, &[';'])),
        None => Vec::new(),
    };
    let reorder = |names: Vec<String>| names.iter().map(|name| given_name_first(name)).collect();
    let (authors, editors) = (reorder(list("Author")), reorder(list("Editor")));
    let mut tags: Vec<String> = list("Manual Tags");
    for tag in list("Automatic Tags") {
        super::obsidian::push_unique(&mut tags, &tag, MAX_NAMES);
    }
    let files = list("File Attachments");
    let mut word = |name: &str| take(keys, &[name], text);
    let year = word("Publication Year");
    let mut work = BibliographicRecord {
        id: word("Key").map(Raw::String),
        kind: word("Item Type"),
        title: word("Title"),
        date: word("Date").or(year),
        publication: word("Publication Title"),
        summary: word("Abstract Note"),
        doi: word("DOI"),
        url: word("Url"),
        authors,
        editors,
        tags,
        attachments: files.iter().map(|file| file_name(file)).collect(),
        rest: Vec::new(),
    };
    work.rest = std::mem::take(keys).into_iter().collect();
    work
}

/// The file name of a path from any operating system.
pub(crate) fn file_name(path: &str) -> String {
    clean_line(path.rsplit(['/', '\\', ':']).next().unwrap_or_default())
}

/// Reorders a name with a comma: `Reis, Ana` becomes `Ana Reis`.
pub(crate) fn given_name_first(name: &str) -> String {
    match name.split_once(',') {
        Some((family, given)) if !given.contains(',') => {
            clean_line(&format!("{} {}", given.trim(), family.trim()))
        }
        _ => clean_line(name),
    }
}

pub(crate) fn split_list(words: &str, marks: &[char]) -> Vec<String> {
    let words = words.split(marks).map(clean_line);
    words
        .filter(|word| !word.is_empty())
        .take(MAX_NAMES)
        .collect()
}

fn text(value: &Raw) -> Option<String> {
    let text = match value {
        Raw::String(text) => text.trim().to_owned(),
        Raw::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

impl BibliographicRecord {
    /// Converts the work to a record with `title`, `text`, `url` and `date`; the rest become fields.
    pub(crate) fn into_keys(self) -> Map<String, Raw> {
        let mut keys = Map::new();
        let day = self.date.as_deref().and_then(day);
        let year = self.date.as_deref().and_then(year);
        keys.insert("text".to_owned(), self.citation_text(year).into());
        let url = self.url.filter(|url| url.starts_with("http"));
        let url = url.or_else(|| self.doi.as_deref().and_then(doi_url));
        let mut set = |name: &str, value: Option<Raw>| {
            if let Some(value) = value {
                keys.insert(name.to_owned(), value);
            }
        };
        let list = |names: Vec<String>| (!names.is_empty()).then(|| Raw::from(names));
        set("id", self.id);
        set("title", self.title.map(Raw::String));
        set("url", url.map(Raw::String));
        set("date", day.map(Raw::String));
        set("author", list(self.authors));
        set("editor", list(self.editors));
        set("year", year.map(Raw::from));
        set("type", self.kind.map(Raw::String));
        set("publication", self.publication.map(Raw::String));
        set("doi", self.doi.map(Raw::String));
        set("tags", list(self.tags));
        set("attachments", list(self.attachments));
        for (name, value) in self.rest {
            keys.entry(name).or_insert(value);
        }
        keys
    }

    /// Renders a citation such as `Ana Reis, Tom Harrow (2021). Title. Journal.`, followed by the abstract.
    fn citation_text(&self, year: Option<u64>) -> String {
        let names = if self.authors.is_empty() {
            &self.editors
        } else {
            &self.authors
        };
        let mut line = names.join(", ");
        if let Some(year) = year {
            let gap = if line.is_empty() { "" } else { " " };
            line = format!("{line}{gap}({year})");
        }
        for part in [&self.title, &self.publication].into_iter().flatten() {
            let gap = if line.is_empty() { "" } else { ". " };
            line = format!("{line}{gap}{}", clean_line(part));
        }
        let summary = self.summary.as_deref().unwrap_or_default();
        format!("{line}\n\n{summary}").trim().to_owned()
    }
}

/// Parses a full date. Zotero writes `2021-03-04 March 4, 2021`, and `2021-00-00 2021` if only the year is
/// known.
fn day(date: &str) -> Option<String> {
    let first = date.split_whitespace().next().unwrap_or_default();
    dates::iso_date(first)
        .map(str::to_owned)
        .or_else(|| parse_written_date(date))
}

fn year(date: &str) -> Option<u64> {
    let parts = date.split(|c: char| !c.is_ascii_digit());
    let mut years = parts.filter(|part| part.len() == 4);
    years.next()?.parse().ok()
}

/// The resolver URL of a DOI.
fn doi_url(doi: &str) -> Option<String> {
    let doi = doi.trim().trim_start_matches("doi:").trim();
    let is_valid = doi.starts_with("10.") && !doi.contains(char::is_whitespace);
    is_valid.then(|| format!("https://doi.org/{doi}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(record: Raw, expect: &Raw) {
        let Raw::Object(keys) = record else {
            panic!("not an object")
        };
        assert_eq!(&Raw::Object(normalize_reference(keys)), expect);
    }

    #[test]
    fn csl_is_read() {
        check(
            json!({"id": "reis2021", "type": "article-journal", "title": "Tides", "container-title": "Harbour Studies",
                   "author": [{"family": "Reis", "given": "Ana"}, {"literal": "Tide Office"}],
                   "issued": {"date-parts": [[2021, 3, 4]]}, "DOI": "10.5555/tide.7", "abstract": "It rises.",
                   "keyword": "tides, harbour", "volume": "7"}),
            &json!({"id": "reis2021", "title": "Tides", "url": "https://doi.org/10.5555/tide.7", "date": "2021-03-04",
                   "text": "Ana Reis, Tide Office (2021). Tides. Harbour Studies\n\nIt rises.",
                   "author": ["Ana Reis", "Tide Office"], "year": 2021, "type": "article-journal",
                   "publication": "Harbour Studies", "doi": "10.5555/tide.7", "tags": ["tides", "harbour"], "volume": "7"}),
        );
    }

    #[test]
    fn zotero_tables_are_read() {
        check(
            json!({"Key": "7XK2P9QD", "Item Type": "book", "Title": "Slate", "Author": "Reis, Ana; Harrow, Tom",
                   "Publication Year": 2019, "Date": "2019", "Url": "https://slate.example/b", "DOI": "",
                   "Manual Tags": "slate; stone", "Automatic Tags": "Stone; roofs",
                   "File Attachments": "C:\\Zotero\\storage\\AB\\Reis - Slate.pdf"}),
            &json!({"id": "7XK2P9QD", "title": "Slate", "url": "https://slate.example/b", "year": 2019, "type": "book",
                   "text": "Ana Reis, Tom Harrow (2019). Slate", "author": ["Ana Reis", "Tom Harrow"],
                   "tags": ["slate", "stone", "roofs"], "attachments": ["Reis - Slate.pdf"], "DOI": ""}),
        );
    }

    #[test]
    fn other_records_stay_as_they_are() {
        for record in [
            json!({"type": "book", "title": "A row", "author": "Reis"}),
            json!({"type": "Feature", "author": [{"family": "Reis"}]}),
            json!({"type": "report", "issued": "2021-03-04", "author": ["Reis"]}),
            json!({"Item Type": "pump", "Key": "1"}),
        ] {
            check(record.clone(), &record);
        }
    }

    #[test]
    fn days_and_years_are_told_apart() {
        for (date, day_of, year_of) in [
            ("2021-03-04", Some("2021-03-04"), Some(2021)),
            ("2021-03-04 March 4, 2021", Some("2021-03-04"), Some(2021)),
            ("2021-00-00 2021", None, Some(2021)),
            ("4 March 2021", Some("2021-03-04"), Some(2021)),
            ("March 2021", None, Some(2021)),
            ("n.d.", None, None),
            ("", None, None),
        ] {
            assert_eq!(
                (day(date).as_deref(), year(date)),
                (day_of, year_of),
                "{date}"
            );
        }
    }

    #[test]
    fn only_a_doi_has_a_resolver() {
        assert_eq!(
            doi_url(" doi:10.1/x").as_deref(),
            Some("https://doi.org/10.1/x")
        );
        assert_eq!(doi_url("11.1/x"), None);
        assert_eq!(doi_url("10.1/x y"), None);
    }

    #[test]
    fn names_end_at_their_bound() {
        let names = |count: usize| split_list(&"a;".repeat(count), &[';']).len();
        assert_eq!(
            (names(MAX_NAMES), names(MAX_NAMES + 1)),
            (MAX_NAMES, MAX_NAMES)
        );
        assert_eq!(given_name_first("Reis, Ana"), "Ana Reis");
        assert_eq!(given_name_first("Reis, Ana, Jr"), "Reis, Ana, Jr");
        assert_eq!(given_name_first("Tide Office"), "Tide Office");
    }
}
