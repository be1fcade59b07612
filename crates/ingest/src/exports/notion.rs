//! Notion export: the name, properties and URL of a page that was exported as Markdown.
//!
//! Such a file is called `Winter timetable 1f0c….md`, with the 32-digit page id after the title. It begins
//! with the title as a heading, followed by one line for each property.

use serde_json::{Map, Value as Raw};

use crate::clean::clean_line;
use crate::dates::written_date::parse_written_date;
use crate::fields::list_syntax::ListSyntax;
use crate::reader_field::ReaderKeys;

/// The number of hexadecimal digits of a page id. Notion appends it to the name of every exported file. Exactly so many
/// digits are removed from a title, so that an ordinary name that ends in a number keeps it.
const ID_CHARS: usize = 32;

/// The most lines that are read as properties, and the most characters of a property name.
const MAX_PROPERTIES: usize = 64;
const MAX_NAME_CHARS: usize = 64;

/// Splits a file stem into title and page id. The export of a whole database ends in `_all`.
pub(crate) fn name_and_id(stem: &str) -> Option<(&str, &str)> {
    let stem = stem.strip_suffix("_all").unwrap_or(stem);
    let (name, id) = stem.rsplit_once(' ')?;
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_id = id.len() == ID_CHARS && id.bytes().all(is_hex);
    (is_id && !name.trim().is_empty()).then_some((name.trim(), id))
}

/// The URL of the original page, if file name and heading confirm that the file is an export.
pub(crate) fn page_url(stem: &str, heading: &str) -> Option<String> {
    let (name, id) = name_and_id(stem)?;
    // Notion truncates long titles and drops characters that file names cannot contain.
    let matches_heading = match letters(name) {
        none if none.is_empty() => heading.trim().starts_with(name),
        name => letters(heading).starts_with(&name),
    };
    matches_heading.then(|| format!("https://www.notion.so/{id}"))
}

/// The letters and digits of a title, by which titles are compared. File names lack other characters.
pub(crate) fn letters(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Parses the properties of a page: the `Name: value` lines after its heading, if no other line is among
/// them.
pub(crate) fn properties(body: &str) -> Map<String, Raw> {
    let mut lines = body.lines().skip_while(|line| line.trim().is_empty());
    let mut found = Map::new();
    if !lines.next().is_some_and(|line| line.starts_with("# ")) {
        return found;
    }
    let block = lines
        .skip_while(|line| line.trim().is_empty())
        .take_while(|line| !line.trim().is_empty());
    for (number, line) in block.enumerate() {
        let Some((name, value)) = property(line).filter(|_| number < MAX_PROPERTIES) else {
            return Map::new();
        };
        found.entry(name).or_insert(value);
    }
    found
}

/// The access control lines that were found at the top of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReaderLines {
    /// The access control properties with their values.
    pub named: Vec<(String, String)>,
    /// Whether another line above the first subheading may be meant as one.
    pub is_doubtful: bool,
}

/// Finds the lines below the heading that say who may read the page. A property is a line `Allowed: hr` in
/// the first block. A similar line in a list, in bold or after that block may be a property that follows a
/// multi-line value, or a sentence. The two cannot be told apart, so the page fails closed.
pub(crate) fn reader_lines(body: &str, readers: &ReaderKeys) -> ReaderLines {
    let mut found = ReaderLines::default();
    let mut lines = body.lines().map(str::trim).peekable();
    let is_blank = |line: &&str| line.is_empty();
    while lines.next_if(is_blank).is_some() {}
    let is_heading = |line: &&str| line.starts_with('#');
    lines.next_if(is_heading);
    while lines.next_if(is_blank).is_some() {}
    let mut is_block = true;
    for line in lines.take_while(|line| !is_heading(line)) {
        is_block &= !line.is_empty();
        let named = line
            .split_once(':')
            .filter(|(name, _)| readers.covers_key(name));
        match named {
            Some((name, value)) if is_block => {
                let value = value.trim().to_owned();
                found.named.push((clean_line(name), value));
            }
            Some(_) => found.is_doubtful = true,
            None => found.is_doubtful |= readers.begin(line),
        }
    }
    found
}

fn property(line: &str) -> Option<(String, Raw)> {
    let (name, value) = line
        .split_once(": ")
        .or(line.strip_suffix(':').zip(Some("")))?;
    let is_name_char = |c: char| c.is_alphanumeric() || " -_/&?#()'".contains(c);
    let is_name = name.starts_with(char::is_alphanumeric)
        && name.chars().all(is_name_char)
        && name.chars().nth(MAX_NAME_CHARS).is_none();
    is_name.then(|| (clean_line(name), parse_property_value(name, value.trim())))
}

/// Parses a property value by the way Notion formats dates, lists, checkboxes and numbers.
fn parse_property_value(name: &str, value: &str) -> Raw {
    if let Some(day) = parse_written_date(value) {
        return Raw::String(day);
    }
    if let Some(list) =
        ListSyntax::infer_syntax(name, &[value]).and_then(|lists| lists.parse_list(value))
    {
        return list;
    }
    match value {
        "Yes" => true.into(),
        "No" => false.into(),
        _ => match serde_json::from_str(value) {
            Ok(Raw::Number(number)) => Raw::Number(number),
            _ => Raw::String(value.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ID: &str = "1f0c9e2b7d5a4c3e8b6f0a1d2c3b4e5f";

    #[test]
    fn names_lose_their_id() {
        let stem = |name: &str| format!("{name} {ID}");
        assert_eq!(name_and_id(&stem("Winter plan")), Some(("Winter plan", ID)));
        let all = format!("{}_all", stem("Tasks"));
        assert_eq!(name_and_id(&all), Some(("Tasks", ID)));
        for stem in [
            ID,
            "Winter plan",
            "Winter plan 1f0c",
            &stem(" "),
            &stem("Plan").to_uppercase(),
            &format!("Plan-{ID}"),
        ] {
            assert_eq!(name_and_id(stem), None, "{stem}");
        }
    }

    #[test]
    fn a_page_is_known_by_name_and_heading() {
        let address = |heading: &str| page_url(&format!("Ferry Who pays {ID}"), heading);
        let found = format!("https://www.notion.so/{ID}");
        assert_eq!(address("Ferry: Who pays?"), Some(found.clone()));
        assert_eq!(address("Ferry: Who pays for winter?"), Some(found));
        assert_eq!(address("Something else"), None);
        assert_eq!(address(""), None);
    }

    #[test]
    fn properties_are_typed() {
        let body = "# Ferry\n\nStatus: In progress\nDue: January 14, 2026 3:00 PM\nTags: ferry, winter\nCost: 1200\nDone: No\nURL: https://ferry.example/a\nEmpty:\n\nText: no property\n";
        assert_eq!(
            Raw::Object(properties(body)),
            json!({"Status": "In progress", "Due": "2026-01-14", "Tags": ["ferry", "winter"], "Cost": 1200,
                   "Done": false, "URL": "https://ferry.example/a", "Empty": ""})
        );
    }

    #[test]
    fn prose_is_no_property() {
        for body in [
            "",
            "No heading\n\nStatus: Done\n",
            "# Ferry\n\nA sentence. And: another\n",
            "# Ferry\n\nStatus: Done\nand a line of prose\n",
            "# Ferry\n\n- Status: Done\n",
        ] {
            assert_eq!(properties(body).len(), 0, "{body}");
        }
    }

    #[test]
    fn properties_end_at_their_bounds() {
        let lines = |count: usize| -> String {
            let lines = (0..count).map(|n| format!("P{n}: {n}\n"));
            format!("# Ferry\n\n{}", lines.collect::<String>())
        };
        assert_eq!(properties(&lines(MAX_PROPERTIES)).len(), MAX_PROPERTIES);
        assert_eq!(properties(&lines(MAX_PROPERTIES + 1)).len(), 0);
        let named = |chars: usize| format!("# Ferry\n\n{}: x\n", "n".repeat(chars));
        assert_eq!(properties(&named(MAX_NAME_CHARS)).len(), 1);
        assert_eq!(properties(&named(MAX_NAME_CHARS + 1)).len(), 0);
    }
}
