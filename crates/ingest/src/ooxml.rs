//! Open Packaging Conventions for Word, PowerPoint and Excel files: finds the main part, follows the
//! relationships between parts, and reads the document properties.

use serde_json::{Map, Value as Raw};

use crate::error::IngestError;
use crate::package::{PackageParts, resolve};
use crate::reader_field::{self, ReaderKeys};
use crate::written_date::parse_written_date;
use crate::xml::{XmlEvent, XmlReader};

/// The most relationships of one part that are kept.
const MAX_RELATIONS: usize = 10_000;

/// The most bytes kept of one property.
const MAX_PROPERTY_BYTES: usize = 64 * 1024;

/// The main part of the package, which holds the document itself.
pub(crate) struct OoxmlMainPart {
    pub path: String,
    /// The kind of document: `wordprocessingml`, `presentationml` or `spreadsheetml`; empty where it is
    /// unknown.
    pub kind: String,
    /// The relationships of the package as a whole.
    pub relations: Vec<OoxmlRelationship>,
}

/// A relationship: one part that another part, or the package, refers to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OoxmlRelationship {
    pub id: String,
    /// The last segment of the relationship type's URI, such as `slide`.
    pub kind: String,
    /// The name of the target part, resolved against the part that refers to it.
    pub path: String,
}

pub(crate) fn main_part(parts: &mut PackageParts<'_>) -> Result<OoxmlMainPart, IngestError> {
    let relations = relationships(parts, "")?;
    let path = relations
        .iter()
        .find(|relation| relation.kind == "officeDocument")
        .map(|relation| relation.path.clone())
        .unwrap_or_default();
    let types = parts.required_text("[Content_Types].xml")?;
    let mut xml = XmlReader::new(&types);
    let mut kind = String::new();
    while let Some(piece) = xml.next()? {
        let XmlEvent::Open(tag) = piece else { continue };
        let name = tag.get("PartName").unwrap_or_default();
        if tag.name == "Override" && name.trim_start_matches('/').eq_ignore_ascii_case(&path) {
            kind = tag.get("ContentType").unwrap_or_default();
        }
    }
    // A plain file has `application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml`;
    // a file with macros has `application/vnd.ms-word.document.macroEnabled.main+xml`.
    let known = [
        ("wordprocessingml", "wordprocessingml"),
        ("presentationml", "presentationml"),
        ("spreadsheetml", "spreadsheetml"),
        ("ms-word", "wordprocessingml"),
        ("ms-powerpoint", "presentationml"),
        ("ms-excel", "spreadsheetml"),
    ];
    let found = known.iter().find(|(part, _)| kind.contains(part));
    let kind = found
        .map(|(_, kind)| (*kind).to_owned())
        .unwrap_or_default();
    Ok(OoxmlMainPart {
        path,
        kind,
        relations,
    })
}

/// The relationships of the part at `path`; the empty path stands for the package. External targets are
/// left out.
pub(crate) fn relationships(
    parts: &mut PackageParts<'_>,
    path: &str,
) -> Result<Vec<OoxmlRelationship>, IngestError> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let list = resolve("", &format!("{folder}/_rels/{name}.rels"));
    let Some(text) = parts.text(&list)? else {
        return Ok(Vec::new());
    };
    let mut xml = XmlReader::new(&text);
    let mut relations = Vec::new();
    while let Some(piece) = xml.next()? {
        let XmlEvent::Open(tag) = piece else { continue };
        let outside = tag.get("TargetMode").is_some_and(|mode| mode == "External");
        if tag.name != "Relationship" || outside || relations.len() >= MAX_RELATIONS {
            continue;
        }
        let kind = tag.get("Type").unwrap_or_default();
        relations.push(OoxmlRelationship {
            id: tag.get("Id").unwrap_or_default(),
            kind: kind.rsplit('/').next().unwrap_or_default().to_owned(),
            path: resolve(path, &tag.get("Target").unwrap_or_default()),
        });
    }
    Ok(relations)
}

/// The core document properties, as keys for [`extract_metadata`](crate::metadata::extract_metadata),
/// together with the custom properties that name readers.
pub(crate) fn properties(
    parts: &mut PackageParts<'_>,
    main: &OoxmlMainPart,
    readers: &ReaderKeys,
) -> Result<Map<String, Raw>, IngestError> {
    let mut named = custom_reader_properties(parts, main, readers)?;
    let core = named_parts(main, "core-properties").next();
    let core = core.unwrap_or("docProps/core.xml");
    let text = parts.text(core)?.unwrap_or_default();
    let mut xml = XmlReader::new(&text);
    let mut found = Map::new();
    while let Some(piece) = xml.next()? {
        let XmlEvent::Open(tag) = piece else { continue };
        let key = match tag.name.as_str() {
            "title" => "title",
            "created" => "date",
            "modified" => "modified",
            "creator" => "author",
            "subject" => "subject",
            "description" => "description",
            "keywords" => "keywords",
            "category" => "category",
            "language" => "language",
            _ => continue,
        };
        let words = xml.text_content(MAX_PROPERTY_BYTES)?;
        if !words.trim().is_empty() {
            found.entry(key).or_insert(Raw::String(words));
        } else if readers.covers_key(key) {
            named.push((key.to_owned(), words));
        }
    }
    let mut keys = ordered_properties(found);
    for (name, words) in named {
        reader_field::insert_keeping_duplicates(&mut keys, &name, Raw::String(words));
    }
    Ok(keys)
}

/// Custom properties that hold the reader field. No other custom properties are read.
fn custom_reader_properties(
    parts: &mut PackageParts<'_>,
    main: &OoxmlMainPart,
    readers: &ReaderKeys,
) -> Result<Vec<(String, String)>, IngestError> {
    let mut named = Vec::new();
    if !readers.is_configured() {
        return Ok(named);
    }
    if main.relations.len() >= MAX_RELATIONS {
        return Err(unread("too many relations"));
    }
    let mut texts = Vec::new();
    for path in named_parts(main, "custom-properties") {
        // A package may refer to a part twice, but each part is unpacked only once.
        match parts.text(path)? {
            Some(text) => texts.push(text),
            None if texts.is_empty() => return Err(unread("the custom properties are missing")),
            None => {}
        }
    }
    // Some programs write this part without a relationship to it.
    texts.extend(parts.text("docProps/custom.xml")?);
    for text in &texts {
        let mut xml = XmlReader::new(text);
        while let Some(piece) = xml.next()? {
            let XmlEvent::Open(tag) = piece else { continue };
            let name = tag.get("name").unwrap_or_default();
            // A repeated reader field is malformed, so two of them are enough to see that.
            if tag.name == "property" && readers.covers_key(&name) && named.len() < 2 {
                named.push((name, whole_words(&mut xml)?));
            }
        }
    }
    Ok(named)
}

/// The full text of a property that names readers. It fails instead of truncating, since a cut list could
/// let in other readers.
pub(crate) fn whole_words(xml: &mut XmlReader<'_>) -> Result<String, IngestError> {
    let words = xml.text_content(MAX_PROPERTY_BYTES)?;
    if words.len() >= MAX_PROPERTY_BYTES {
        return Err(unread("a property is too long"));
    }
    Ok(words)
}

fn unread(what: &'static str) -> IngestError {
    IngestError::Damaged { what: what.into() }
}

/// The targets of all package relationships of one kind, wherever they are.
fn named_parts<'m>(main: &'m OoxmlMainPart, kind: &'m str) -> impl Iterator<Item = &'m str> {
    // The two editions of the standard write `custom-properties` and `customProperties`.
    let plain = |kind: &str| kind.replace('-', "").to_ascii_lowercase();
    let all = main.relations.iter();
    let named = all.filter(move |relation| plain(&relation.kind) == plain(kind));
    named.map(|relation| relation.path.as_str())
}

/// Properties in the fixed order that all office formats share, with dates normalized and keywords split
/// into a list.
pub(crate) fn ordered_properties(mut found: Map<String, Raw>) -> Map<String, Raw> {
    let order = [
        "title",
        "date",
        "modified",
        "author",
        "subject",
        "description",
        "keywords",
        "category",
        "publisher",
        "identifier",
        "language",
    ];
    let mut keys = Map::new();
    for key in order {
        let value = match (key, found.remove(key)) {
            ("date" | "modified", Some(Raw::String(text))) => {
                parse_written_date(&text).map(Raw::String)
            }
            ("keywords", Some(Raw::String(text))) => {
                let words = text.split([',', ';']).map(str::trim);
                let words = words.filter(|word| !word.is_empty());
                Some(words.map(|word| Raw::String(word.to_owned())).collect())
            }
            (_, value) => value,
        };
        if let Some(value) = value {
            keys.insert(key.to_owned(), value);
        }
    }
    keys
}
