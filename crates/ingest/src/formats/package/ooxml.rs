//! Open Packaging Conventions for Word, PowerPoint and Excel files: finds the main part, follows the
//! relationships between parts, and reads the document properties.

use std::collections::HashSet;

use serde_json::{Map, Value as Raw};

use crate::error::IngestError;
use crate::fields::document_properties::DocumentProperties;
use crate::formats::package::package_parts::{PackageParts, resolve};
use crate::reader_field::{ReaderFault, ReaderKeys};
use crate::xml::{XmlEvent, XmlReader};

/// The most relationships of one part that are kept.
const MAX_RELATIONS: usize = 10_000;

/// The main part of the package, which holds the document itself.
#[derive(Default)]
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

/// The core document properties, as keys for [`extract_metadata`](crate::fields::metadata::extract_metadata),
/// together with the custom and extended properties that name readers.
pub(crate) fn properties(
    parts: &mut PackageParts<'_>,
    main: &OoxmlMainPart,
    readers: &ReaderKeys,
) -> Result<Map<String, Raw>, IngestError> {
    let mut properties = DocumentProperties::new(readers);
    if readers.is_configured() {
        add_custom_reader_properties(parts, main, readers, &mut properties)?;
        pass_over_extended_properties(parts, main, &mut properties)?;
    }
    for text in core_parts(parts, main, readers)? {
        add_core_properties(&text, &mut properties)?;
    }
    Ok(properties.into_keys())
}

/// The texts of the core properties: the first part that the package relates to or, where the reader field
/// may be in any of them, all of them.
fn core_parts(
    parts: &mut PackageParts<'_>,
    main: &OoxmlMainPart,
    readers: &ReaderKeys,
) -> Result<Vec<String>, IngestError> {
    const USUAL: &str = "docProps/core.xml";
    if readers.is_configured() {
        return property_parts(parts, main, "core-properties", USUAL);
    }
    let core = named_parts(main, "core-properties").next();
    Ok(parts.text(core.unwrap_or(USUAL))?.into_iter().collect())
}

fn add_core_properties(
    text: &str,
    properties: &mut DocumentProperties<'_>,
) -> Result<(), IngestError> {
    let mut xml = XmlReader::new(text);
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
            name => {
                properties.pass_over(name);
                continue;
            }
        };
        let words = properties.text_of(key, &mut xml)?;
        properties.add(key, words);
    }
    Ok(())
}

/// Looks for the reader field among the extended properties, such as the company and the manager. They
/// become no fields, so the field closes the document.
fn pass_over_extended_properties(
    parts: &mut PackageParts<'_>,
    main: &OoxmlMainPart,
    properties: &mut DocumentProperties<'_>,
) -> Result<(), IngestError> {
    for text in property_parts(parts, main, "extended-properties", "docProps/app.xml")? {
        let mut xml = XmlReader::new(&text);
        let mut is_root = true;
        while let Some(piece) = xml.next()? {
            if let XmlEvent::Open(tag) = piece
                && !std::mem::take(&mut is_root)
            {
                properties.pass_over(&tag.name);
                xml.skip()?;
            }
        }
    }
    Ok(())
}

/// The texts of all parts with properties of one kind. Some programs write such a part at its usual path
/// without a relationship to it.
///
/// # Errors
/// A part that the package relates to is missing, so that nobody knows whether it had the reader field.
fn property_parts(
    parts: &mut PackageParts<'_>,
    main: &OoxmlMainPart,
    kind: &str,
    usual: &str,
) -> Result<Vec<String>, IngestError> {
    if main.relations.len() >= MAX_RELATIONS {
        return Err(unread("too many relations"));
    }
    let (mut texts, mut seen) = (Vec::new(), HashSet::new());
    for path in named_parts(main, kind) {
        // A package may refer to a part twice, but each part is unpacked only once.
        if seen.insert(path.to_ascii_lowercase()) {
            let text = parts.text(path)?;
            texts.push(text.ok_or_else(|| unread("a part with properties is missing"))?);
        }
    }
    texts.extend(parts.text(usual)?);
    Ok(texts)
}

/// Adds the custom properties that hold the reader field. No other custom properties are read.
fn add_custom_reader_properties(
    parts: &mut PackageParts<'_>,
    main: &OoxmlMainPart,
    readers: &ReaderKeys,
    properties: &mut DocumentProperties<'_>,
) -> Result<(), IngestError> {
    for text in property_parts(parts, main, "custom-properties", "docProps/custom.xml")? {
        let mut xml = XmlReader::new(&text);
        while let Some(piece) = xml.next()? {
            let XmlEvent::Open(tag) = piece else { continue };
            let name = tag.get("name").unwrap_or_default();
            if tag.name == "property" && readers.covers_key(&name) {
                match custom_text(&mut xml, properties.max_bytes(&name))? {
                    Some(words) => properties.add(&name, words),
                    None => properties.add_fault(&name, ReaderFault::NotText),
                }
            }
        }
    }
    Ok(())
}

/// The text of the custom property that was opened last; `None` if its value has another type. The texts of
/// a vector must not be joined, because `every` and `one` would become `everyone`.
fn custom_text(xml: &mut XmlReader<'_>, limit: usize) -> Result<Option<String>, IngestError> {
    let mut words = String::new();
    let (mut depth, mut values, mut is_text) = (1_usize, 0_usize, true);
    while depth > 0 {
        match xml.next()? {
            Some(XmlEvent::Open(tag)) => {
                depth += 1;
                values += 1;
                is_text &= matches!(tag.name.as_str(), "lpwstr" | "lpstr" | "bstr");
            }
            Some(XmlEvent::Close(_)) => depth -= 1,
            Some(XmlEvent::Text(text)) => {
                let room = limit.saturating_sub(words.len());
                words.extend(text.chars().take(room));
            }
            None => break,
        }
    }
    Ok((is_text && values <= 1).then_some(words))
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
