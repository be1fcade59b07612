//! The transform stage of indexing: applies the `[fields]` rules to parsed documents, which rename, convert, hide and
//! add fields, and determines their readers by `[permissions]`.
//!
//! The hash of a document covers the rules that apply to it and the version of the text cleaning, so that a change of
//! either reindexes the document.

mod path_pattern;
pub(crate) mod value_cast;

use std::fmt::Write as _;

use docent_ingest::{
    CLEANING_VERSION, IngestError, IngestOptions, Limits, ParsedDocument, ReaderFault, ReaderField,
    ReaderFieldName, comparable_name, is_or_is_nested_in, is_under,
};
use docent_search::{
    AllowedReaders, Document, DocumentValue, FieldKind, MAX_FIELDS, MAX_URL_BYTES,
};
use sha2::{Digest as _, Sha256};

pub use self::path_pattern::Pattern;
use crate::display_text::{one_line, shorten};
use crate::links;
use crate::permissions::PermissionRules;

/// Separates the content hash of a document from the hash of the rules that were applied to it.
const MARK: char = '-';

/// Separates the hash from the error code of a malformed reader field, on account of which nobody may read the
/// document. No file ever has such a hash, so every sync reads the file again and repeats the warning.
const FAULT: char = '!';

/// The hexadecimal digits that are kept of the rules hash. 64 bits are enough, because only the few versions of one set
/// of rules must not collide.
const DIGITS: usize = 16;

/// The length limit of a value in a warning, in characters.
const MAX_SHOWN: usize = 60;

/// The length limit of a title in characters, the same as for titles from files.
const MAX_TITLE_CHARS: usize = 512;

/// Reserved names: these parts of a document are not fields, but rules address them like fields.
pub(crate) const TITLE: &str = "title";
pub(crate) const URL: &str = "url";
pub(crate) const DATE: &str = "date";

/// A rule for one field. The first source that gives a value wins: `from`, the field itself, `path`, `value`.
///
/// Its `Debug` output is part of the document hash, so renaming a field or the type reindexes every document.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The name of the resulting field.
    pub name: String,
    /// The names of the field in the files; the first that a document has is used.
    pub from: Vec<String>,
    /// A pattern that extracts the value from the path of the file.
    pub path: Option<Pattern>,
    /// The default value, if no other source has one.
    pub value: Option<DocumentValue>,
    /// The type to convert the value to; without one, the value keeps its own type.
    pub kind: Option<FieldKind>,
    /// Whether the field is removed from documents.
    pub hide: bool,
    /// The folder to which the rule is limited; without one, it applies to all files.
    pub under: Option<String>,
}

impl Rule {
    /// An empty rule for this field, which changes nothing.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            from: Vec::new(),
            path: None,
            value: None,
            kind: None,
            hide: false,
            under: None,
        }
    }

    fn covers(&self, source: &str) -> bool {
        is_under(source, self.under.as_deref())
    }

    /// Whether the rule hides a field: its own, and those nested in it.
    fn hides(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.name.as_str());
        self.hide && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// The configuration of the transform: limits, format options, field rules and permissions.
#[derive(Debug)]
pub struct DocumentTransform {
    /// Size limits of files and documents.
    pub limits: Limits,
    /// Options of the parsers, by format.
    pub options: IngestOptions,
    rules: Vec<Rule>,
    permissions: PermissionRules,
    /// The `Debug` text of each rule, as it goes into document hashes.
    rule_texts: Vec<String>,
    /// The limits as they go into document hashes; `None` for the default limits.
    limits_text: Option<String>,
}

impl DocumentTransform {
    /// Creates the transform for these settings, with permissions that let everyone read everything.
    #[must_use]
    pub fn new(limits: &Limits, options: &IngestOptions, rules: &[Rule]) -> Self {
        Self {
            limits: limits.clone(),
            options: options.clone(),
            rules: rules.to_vec(),
            permissions: PermissionRules::default(),
            rule_texts: rules.iter().map(|rule| format!("{rule:?}\n")).collect(),
            limits_text: limits_hash_input(limits),
        }
    }

    /// Sets the permissions, and has the parsers report the reader field that they name.
    #[must_use]
    pub fn with_permissions(mut self, permissions: PermissionRules) -> Self {
        self.options.readers = reader_names(&permissions, &self.rules);
        self.permissions = permissions;
        self
    }

    /// The hash of a document: its content hash, followed by a hash of the rules that apply to its source. The input
    /// must stay the same byte for byte, or every document is reindexed.
    pub(crate) fn hash(&self, source: &str, content: &str) -> String {
        let rules = self.rules.iter().zip(&self.rule_texts);
        let texts = rules
            .filter(|(rule, _)| rule.covers(source))
            .map(|(_, text)| text);
        let readers = self.permissions.hash_input(source);
        let texts = texts.chain(&self.limits_text).chain(&readers);
        let mut input: String = texts.map(String::as_str).collect();
        // Another version of the cleaning gives another text.
        let _ = write!(input, "text {CLEANING_VERSION}");
        let digest = Sha256::digest(input.as_bytes());
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let digits = digits.get(..DIGITS).unwrap_or_default();
        format!("{content}{MARK}{digits}")
    }

    /// Transforms a parsed document, and returns warnings about rules that could not be applied.
    pub(crate) fn apply(&self, parsed: ParsedDocument) -> (Document, Vec<IngestError>) {
        let ParsedDocument {
            mut document,
            readers,
        } = parsed;
        let warnings = self.transform(&mut document, readers);
        (document, warnings)
    }

    fn transform(&self, document: &mut Document, parsed: ReaderField) -> Vec<IngestError> {
        let mut warnings = Vec::new();
        let covers = |rule: &&Rule| rule.covers(&document.source);
        let rules: Vec<&Rule> = self.rules.iter().filter(covers).collect();
        document.hash = self.hash(&document.source, &document.hash);
        document.readers = self.permissions.readers_of_file(&document.source);
        let names_readers = self.permissions.field.as_deref();
        if rules.is_empty() && names_readers.is_none() {
            return warnings;
        }
        let is_list = is_list_of_fields(document);
        // Read before the rules apply, because a rule may hide the field.
        let own = names_readers.and_then(|name| field(document, name));
        let title = document.title.clone();
        // Every rule reads the original document, so the order of the rules does not matter.
        let mut made: Vec<ComputedField> = rules
            .iter()
            .filter(|rule| !rule.hide)
            .filter_map(|rule| compute_field(rule, document, &mut warnings))
            .collect();
        // Taken out before the fields are truncated to their limit, because the reader field does not count against it.
        let computed = names_readers.map(|name| take_computed_readers(&mut made, name));
        replace_fields(document, made, &rules, &mut warnings);
        if let Some(name) = names_readers {
            let field = match (parsed, own) {
                (ReaderField::Absent, Some((_, value))) => ReaderField::Present(value),
                (ReaderField::Absent, None) => computed.unwrap_or_default(),
                (parsed, _) => parsed,
            };
            let field = self.reject_truncated_title(field, &title);
            warnings.extend(self.apply_readers(document, name, field, &rules));
        }
        if is_list {
            document.text = list_of_fields(document);
        }
        warnings
    }
}

impl DocumentTransform {
    /// Rejects a title as reader field if it fills its limit: it may have been truncated, and the rest of its last name
    /// could be the name of somebody else.
    fn reject_truncated_title(&self, field: ReaderField, title: &str) -> ReaderField {
        let limit = self.limits.max_title_chars.min(MAX_TITLE_CHARS);
        match field {
            ReaderField::Present(DocumentValue::Text(text))
                if text == title && text.chars().count() >= limit =>
            {
                ReaderField::Malformed(ReaderFault::TooLong)
            }
            field => field,
        }
    }

    /// Sets the readers of a document by its reader field, and returns warnings about it. A malformed field fails
    /// closed: nobody may read the document.
    fn apply_readers(
        &self,
        document: &mut Document,
        name: &str,
        field: ReaderField,
        rules: &[&Rule],
    ) -> Vec<IngestError> {
        let is_field = |own: &str| is_or_is_nested_in(own, name);
        document.fields.retain(|(own, _)| !is_field(own));
        let named = match field {
            ReaderField::Absent => return Vec::new(),
            ReaderField::Malformed(fault) => Err(fault),
            ReaderField::Present(value) => {
                let rule = rules.iter().find(|rule| is_field(&rule.name));
                let value = match rule.and_then(|rule| rule.kind) {
                    Some(kind) => value_cast::cast(kind, &value).ok_or(ReaderFault::NotText),
                    None => Ok(value),
                };
                value.and_then(|value| Ok((self.permissions.readers_of_value(&value)?, value)))
            }
        };
        match named {
            Ok(((readers, warnings), value)) => {
                document.readers = readers;
                if self.permissions.show_field && document.fields.len() < MAX_FIELDS {
                    document.fields.push((name.to_owned(), value));
                }
                warnings
            }
            Err(fault) => {
                document.readers = AllowedReaders::Only(std::collections::BTreeSet::new());
                document.hash = format!("{}{FAULT}{}", document.hash, fault.code());
                let name = name.to_owned();
                vec![IngestError::UnusableReaders { name, fault }]
            }
        }
    }

    /// Whether an indexed document was made under the current rules, according to its hash.
    pub(crate) fn is_current(&self, source: &str, hash: &str) -> bool {
        let hash = hash.split_once(FAULT).map_or(hash, |(hash, _)| hash);
        let content = hash.split_once(MARK).map_or(hash, |(content, _)| content);
        self.hash(source, content) == hash
    }

    /// Whether the permissions restrict any document, so that access checks are necessary.
    pub(crate) fn has_restrictions(&self) -> bool {
        !self.permissions.are_open()
    }
}

/// The names under which files may write the reader field: its own name, and the names from which a rule takes it. The
/// parsers report malformed values under these names, which are otherwise dropped.
fn reader_names(permissions: &PermissionRules, rules: &[Rule]) -> Vec<ReaderFieldName> {
    let Some(field) = &permissions.field else {
        return Vec::new();
    };
    let own = ReaderFieldName {
        name: field.clone(),
        under: None,
    };
    let rules = rules
        .iter()
        .filter(|rule| is_or_is_nested_in(&rule.name, field));
    let from = rules.flat_map(|rule| {
        rule.from.iter().map(|name| ReaderFieldName {
            name: name.clone(),
            under: rule.under.clone(),
        })
    });
    std::iter::once(own).chain(from).collect()
}

/// The fault of the reader field on account of which nobody may read the document, stored in its hash.
pub(crate) fn reader_fault_of(hash: &str) -> Option<ReaderFault> {
    let (_, code) = hash.split_once(FAULT)?;
    ReaderFault::from_code(code)
}

/// The content part of a document's hash, which does not depend on rules.
pub(crate) fn content_hash(document: &Document) -> &str {
    let hash = document.hash.split([MARK, FAULT]).next();
    hash.unwrap_or_default()
}

/// The limits that influence the content of a document, for its hash; `None` if all are defaults. The limits that are
/// reset here only decide whether there is a document at all.
fn limits_hash_input(limits: &Limits) -> Option<String> {
    let usual = Limits::default();
    let own = Limits {
        max_files: usual.max_files,
        max_depth: usual.max_depth,
        max_path_bytes: usual.max_path_bytes,
        max_reported: usual.max_reported,
        max_documents: usual.max_documents,
        max_parse_seconds: usual.max_parse_seconds,
        max_records: usual.max_records,
        max_stream_bytes: usual.max_stream_bytes,
        require_sandbox: usual.require_sandbox,
        ..limits.clone()
    };
    (own != usual).then(|| format!("{own:?}"))
}

/// The result of a rule for one document: a value, and the field that it replaces.
struct ComputedField<'r> {
    name: &'r str,
    /// `None` if the value could not be converted.
    value: Option<DocumentValue>,
    /// The position of the source field, if there was one.
    slot: Option<usize>,
}

fn compute_field<'r>(
    rule: &'r Rule,
    document: &Document,
    warnings: &mut Vec<IngestError>,
) -> Option<ComputedField<'r>> {
    let kind = match rule.name.as_str() {
        DATE => Some(FieldKind::Date),
        TITLE | URL => Some(FieldKind::Text),
        _ => rule.kind,
    };
    let names = rule.from.iter().chain([&rule.name]);
    let own = names.into_iter().find_map(|name| field(document, name));
    let (slot, value) = match own {
        Some((slot, value)) => (slot, value),
        None => {
            let kind = kind.unwrap_or(FieldKind::Text);
            let part = rule.path.as_ref();
            let part = part.and_then(|path| path.value(&document.source, kind));
            (None, part.or_else(|| rule.value.clone())?)
        }
    };
    let typed = match (rule.name.as_str(), kind) {
        (TITLE, _) => Some(DocumentValue::Text(one_line(
            &value.to_string(),
            MAX_TITLE_CHARS,
        ))),
        (URL, _) => Some(DocumentValue::Text(value.to_string())).filter(is_address),
        (_, Some(kind)) => value_cast::cast(kind, &value),
        (_, None) => Some(value.clone()),
    };
    if typed.is_none() {
        let kind = kind.filter(|_| rule.name != URL);
        warnings.push(IngestError::WrongType {
            name: rule.name.clone(),
            kind: kind.map_or("web address", value_cast::name).to_owned(),
            value: shorten(&value.to_string(), MAX_SHOWN),
        });
    }
    Some(ComputedField {
        name: &rule.name,
        value: typed,
        slot,
    })
}

/// Takes the reader field out of the computed fields. As in a file, a field nested in it makes it a map, and a value in
/// place of the map that should contain it makes it null; both are malformed.
fn take_computed_readers(made: &mut [ComputedField<'_>], name: &str) -> ReaderField {
    let mut result = ReaderField::Absent;
    for one in made {
        let found = if comparable_name(one.name) == comparable_name(name) {
            match one.value.clone() {
                Some(value) => ReaderField::Present(value),
                None => ReaderField::Malformed(ReaderFault::NotText),
            }
        } else if is_or_is_nested_in(one.name, name) {
            ReaderField::Malformed(ReaderFault::Map)
        } else if is_or_is_nested_in(name, one.name) {
            ReaderField::Malformed(ReaderFault::Null)
        } else {
            continue;
        };
        // A title, URL or date that also names readers stays part of the document.
        if ![TITLE, URL, DATE].contains(&one.name) {
            one.value = None;
        }
        if result == ReaderField::Absent || matches!(found, ReaderField::Malformed(_)) {
            result = found;
        }
    }
    result
}

fn is_address(value: &DocumentValue) -> bool {
    let text = value.to_string();
    text.len() <= MAX_URL_BYTES && links::is_web_url(&text)
}

/// Looks up a field, or the part of the document with a reserved name, and returns the position of the field and its
/// value. An exact match of the name wins over one that ignores case.
fn field(document: &Document, name: &str) -> Option<(Option<usize>, DocumentValue)> {
    let same = |(own, _): &(String, DocumentValue)| own == name;
    let name_alike = comparable_name(name);
    let alike = |(own, _): &(String, DocumentValue)| comparable_name(own) == name_alike;
    let fields = &document.fields;
    let slot = fields.iter().position(same);
    if let Some(slot) = slot.or_else(|| fields.iter().position(alike)) {
        let value = fields.get(slot).map(|(_, value)| value.clone())?;
        return Some((Some(slot), value));
    }
    let part = match name {
        TITLE => Some(document.title.clone()).filter(|title| !title.is_empty()),
        URL => document.url.clone(),
        DATE => return Some((None, DocumentValue::Date(document.date.clone()?))),
        _ => None,
    };
    Some((None, DocumentValue::Text(part?)))
}

/// Writes the computed fields into the document, each in place of its source field, and removes hidden fields.
fn replace_fields(
    document: &mut Document,
    made: Vec<ComputedField<'_>>,
    rules: &[&Rule],
    warnings: &mut Vec<IngestError>,
) {
    let is_hidden = |name: &str| rules.iter().any(|rule| rule.hides(name));
    let mut slots: Vec<Option<(String, DocumentValue)>> = std::mem::take(&mut document.fields)
        .into_iter()
        .map(Some)
        .collect();
    for slot in &mut slots {
        let is_replaced = |name: &str| is_hidden(name) || made.iter().any(|one| one.name == name);
        slot.take_if(|(name, _)| is_replaced(name));
    }
    for taken in made.iter().filter_map(|one| one.slot) {
        if let Some(slot) = slots.get_mut(taken) {
            *slot = None;
        }
    }
    document.date.take_if(|_| is_hidden(DATE));
    document.url.take_if(|_| is_hidden(URL));
    for ComputedField { name, value, slot } in made {
        match (name, value) {
            (TITLE, value) => document.title = value.map_or_else(String::new, |v| v.to_string()),
            (URL, value) => document.url = value.map(|value| value.to_string()),
            (DATE, value) => document.date = value.map(|value| value.to_string()),
            (_, None) => {}
            (name, Some(value)) => {
                let field = Some((name.to_owned(), value));
                match slot.and_then(|slot| slots.get_mut(slot)) {
                    Some(free) if free.is_none() => *free = field,
                    _ => slots.push(field),
                }
            }
        }
    }
    document.fields = slots.into_iter().flatten().collect();
    if document.fields.len() > MAX_FIELDS {
        document.fields.truncate(MAX_FIELDS);
        warnings.push(IngestError::TooManyFields { limit: MAX_FIELDS });
    }
}

/// Whether the text is just the list of fields, as for records without a text of their own. Such a text is generated
/// again after the rules, because hidden fields must not remain in it.
fn is_list_of_fields(document: &Document) -> bool {
    !document.fields.is_empty() && document.text == list_of_fields(document)
}

fn list_of_fields(document: &Document) -> String {
    let fields = document.fields.iter();
    fields
        .map(|(name, value)| format!("{name}: {value}\n"))
        .collect()
}

#[cfg(test)]
mod tests;
