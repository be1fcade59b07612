//! What the files of Word, PowerPoint and Excel have in common: where the document is, which parts belong
//! together, and what the file says about itself.

use serde_json::{Map, Value as Raw};

use crate::error::IngestError;
use crate::package::{PackageParts, resolve};
use crate::reader_field::{self, ReaderKeys};
use crate::written_date::parse_written_date;
use crate::xml::{XmlEvent, XmlReader};

/// The most relations of one part that are kept.
const MAX_RELATIONS: usize = 10_000;

/// The most bytes kept of one property.
const MAX_PROPERTY_BYTES: usize = 64 * 1024;

/// The part that holds the document.
pub(crate) struct OoxmlMainPart {
    pub path: String,
    /// `wordprocessingml`, `presentationml` or `spreadsheetml`.
    pub kind: String,
    /// The parts that the package names besides it.
    pub relations: Vec<OoxmlRelationship>,
}

/// One part that another one uses.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OoxmlRelationship {
    pub id: String,
    /// The last word of its type, such as `slide`.
    pub kind: String,
    /// The name of the part.
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
    // `application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml`; files with
    // macros have `application/vnd.ms-word.document.macroEnabled.main+xml`.
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

/// The parts that the part called `path` uses; the empty name stands for the package.
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

/// What the file says about itself, as keys for [`facts`](crate::fields::facts).
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
    let mut said = Map::new();
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
            said.entry(key).or_insert(Raw::String(words));
        } else if readers.covers_key(key) {
            named.push((key.to_owned(), words));
        }
    }
    let mut keys = ordered_properties(said);
    for (name, words) in named {
        reader_field::insert_keeping_duplicates(&mut keys, &name, Raw::String(words));
    }
    Ok(keys)
}

/// The properties of the author's own making that say who may read the file; no others are read.
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
        // A package may name a part twice, and a part is unpacked once.
        match parts.text(path)? {
            Some(text) => texts.push(text),
            None if texts.is_empty() => return Err(unread("the custom properties are missing")),
            None => {}
        }
    }
    // Some programs write it and do not name it.
    texts.extend(parts.text("docProps/custom.xml")?);
    for text in &texts {
        let mut xml = XmlReader::new(text);
        while let Some(piece) = xml.next()? {
            let XmlEvent::Open(tag) = piece else { continue };
            let name = tag.get("name").unwrap_or_default();
            // Two are as bad as many.
            if tag.name == "property" && readers.covers_key(&name) && named.len() < 2 {
                named.push((name, whole_words(&mut xml)?));
            }
        }
    }
    Ok(named)
}

/// The words of a property that names readers: one that is cut could name others.
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

/// The parts of one kind that the package names, wherever they are.
fn named_parts<'m>(main: &'m OoxmlMainPart, kind: &'m str) -> impl Iterator<Item = &'m str> {
    // The two editions of the standard write `custom-properties` and `customProperties`.
    let plain = |kind: &str| kind.replace('-', "").to_ascii_lowercase();
    let all = main.relations.iter();
    let named = all.filter(move |relation| plain(&relation.kind) == plain(kind));
    named.map(|relation| relation.path.as_str())
}

/// The properties in the order in which every office format shows them, days and lists made what they are.
pub(crate) fn ordered_properties(mut said: Map<String, Raw>) -> Map<String, Raw> {
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
        let value = match (key, said.remove(key)) {
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
