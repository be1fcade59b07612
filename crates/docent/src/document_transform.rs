//! Documents as their files gave them into documents as the owner wants them: fields renamed, typed, hidden
//! and added by the rules of `[fields]`, and read by whom `[permissions]` lets.
//!
//! What was wanted, and by which rules texts are cleaned, is part of each document's hash, so that documents are made
//! again when it changes.

mod path_pattern;
pub(crate) mod value_cast;

use std::fmt::Write as _;

use docent_ingest::{
    CLEANING_VERSION, IngestError, IngestOptions, Limits, ParsedDocument, ReaderFault, ReaderField,
    ReaderFieldName, comparable_name, is_or_is_nested_in,
};
use docent_search::{
    AllowedReaders, Document, DocumentValue, FieldKind, MAX_FIELDS, MAX_URL_BYTES,
};
use sha2::{Digest as _, Sha256};

pub use self::path_pattern::Pattern;
use crate::knowledge_base::one_line;
use crate::links;
use crate::permissions::PermissionRules;
use crate::settings::shorten;

/// What stands between the hash of a document's content and that of what was wanted of it.
const MARK: char = '-';

/// What stands between the hash and why nobody may read the document, where its own field is the reason. A
/// hash with it is that of no file, so that such a file is read, and told of, at every look.
const FAULT: char = '!';

/// How many hexadecimal digits of the second hash are kept: two of 2^64 wishes are never alike.
const DIGITS: usize = 16;

/// The most characters of a value that a warning repeats.
const MAX_SHOWN: usize = 60;

/// The most characters of a title; as many as a file's own may have.
const MAX_TITLE_CHARS: usize = 512;

/// The parts of a document that are no fields and have names all the same.
pub(crate) const TITLE: &str = "title";
pub(crate) const URL: &str = "url";
pub(crate) const DATE: &str = "date";

/// What is wanted of one field. The first that gives a value counts: `from`, the field itself, `path`,
/// `value`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The name it shall have.
    pub name: String,
    /// What it is called in the files; the first of these that a document has.
    pub from: Vec<String>,
    /// Where it stands in the path of the file.
    pub path: Option<Pattern>,
    /// What it is where nothing else tells.
    pub value: Option<DocumentValue>,
    /// What kind of value it holds; without one, whatever the data looks like.
    pub kind: Option<FieldKind>,
    /// Whether it is left out.
    pub hide: bool,
    /// The folder to whose files the rule applies; without one, to all.
    pub under: Option<String>,
}

impl Rule {
    /// A rule that wants nothing yet.
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
        let Some(folder) = &self.under else {
            return true;
        };
        let rest = source.strip_prefix(folder.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '#']))
    }

    /// Whether a field is one that the rule hides: itself, and what is nested in it.
    fn hides(&self, name: &str) -> bool {
        let rest = name.strip_prefix(self.name.as_str());
        self.hide && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// Everything that decides what becomes of a file.
#[derive(Debug)]
pub struct DocumentTransform {
    /// Bounds on files and documents.
    pub limits: Limits,
    /// What is asked of single formats.
    pub options: IngestOptions,
    rules: Vec<Rule>,
    permissions: PermissionRules,
    /// Each rule as it goes into a hash.
    rule_texts: Vec<String>,
    /// The bounds as they do, unless they are the usual ones.
    bounds: Option<String>,
}

impl DocumentTransform {
    /// A shape by these settings.
    #[must_use]
    pub fn new(limits: &Limits, options: &IngestOptions, rules: &[Rule]) -> Self {
        Self {
            limits: limits.clone(),
            options: options.clone(),
            rules: rules.to_vec(),
            permissions: PermissionRules::default(),
            rule_texts: rules.iter().map(|rule| format!("{rule:?}\n")).collect(),
            bounds: limits_hash_input(limits),
        }
    }

    /// The same, with documents that not everyone may read.
    #[must_use]
    pub fn with_permissions(mut self, permissions: PermissionRules) -> Self {
        self.options.readers = reader_names(&permissions, &self.rules);
        self.permissions = permissions;
        self
    }

    /// The hash of a document whose content has this one.
    pub(crate) fn hash(&self, source: &str, content: &str) -> String {
        let rules = self.rules.iter().zip(&self.rule_texts);
        let told = rules
            .filter(|(rule, _)| rule.covers(source))
            .map(|(_, told)| told);
        let readers = self.permissions.hash_input(source);
        let told = told.chain(&self.bounds).chain(&readers);
        let mut wanted: String = told.map(String::as_str).collect();
        // Texts that were cleaned by other rules are other texts.
        let _ = write!(wanted, "text {CLEANING_VERSION}");
        let digest = Sha256::digest(wanted.as_bytes());
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let digits = digits.get(..DIGITS).unwrap_or_default();
        format!("{content}{MARK}{digits}")
    }

    /// Gives a document its shape, and says what could not be done.
    pub(crate) fn apply(&self, parsed: ParsedDocument) -> (Document, Vec<IngestError>) {
        let ParsedDocument {
            mut document,
            readers,
        } = parsed;
        let warnings = self.transform(&mut document, readers);
        (document, warnings)
    }

    fn transform(&self, document: &mut Document, said: ReaderField) -> Vec<IngestError> {
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
        // Before the rules, one of which may hide it.
        let mut own = names_readers.and_then(|name| field(document, name));
        // Every rule sees the document as it was, so that their order does not matter.
        let made: Vec<ComputedField> = rules
            .iter()
            .filter(|rule| !rule.hide)
            .filter_map(|rule| compute_field(rule, document, &mut warnings))
            .collect();
        replace_fields(document, made, &rules, &mut warnings);
        if let Some(name) = names_readers {
            own = own.or_else(|| field(document, name));
            let said = match (said, own) {
                (ReaderField::Absent, Some((_, value))) => ReaderField::Present(value),
                (said, _) => said,
            };
            warnings.extend(self.apply_readers(document, name, said, &rules));
        }
        if is_list {
            document.text = list_of_fields(document);
        }
        warnings
    }
}

impl DocumentTransform {
    /// Decides who may read a document by what it says about its readers, and says what is wrong with that.
    fn apply_readers(
        &self,
        document: &mut Document,
        name: &str,
        said: ReaderField,
        rules: &[&Rule],
    ) -> Vec<IngestError> {
        let is_field = |own: &str| is_or_is_nested_in(own, name);
        document.fields.retain(|(own, _)| !is_field(own));
        let named = match said {
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
            Ok(((readers, told), value)) => {
                document.readers = readers;
                if self.permissions.show_field && document.fields.len() < MAX_FIELDS {
                    document.fields.push((name.to_owned(), value));
                }
                told
            }
            Err(fault) => {
                document.readers = AllowedReaders::Only(std::collections::BTreeSet::new());
                document.hash = format!("{}{FAULT}{}", document.hash, fault.code());
                let name = name.to_owned();
                vec![IngestError::UnusableReaders { name, fault }]
            }
        }
    }

    /// Whether a document that is held was made by these rules, so far as its hash tells.
    pub(crate) fn is_current(&self, source: &str, hash: &str) -> bool {
        let hash = hash.split_once(FAULT).map_or(hash, |(hash, _)| hash);
        let content = hash.split_once(MARK).map_or(hash, |(content, _)| content);
        self.hash(source, content) == hash
    }

    /// Whether some document is not for everyone.
    pub(crate) fn has_restrictions(&self) -> bool {
        !self.permissions.are_open()
    }
}

/// Under which names files say who may read their documents: that of the field, and those that a rule takes
/// it from.
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

/// Why nobody may read the document with this hash, where its own field is the reason.
pub(crate) fn reader_fault_of(hash: &str) -> Option<ReaderFault> {
    let (_, code) = hash.split_once(FAULT)?;
    ReaderFault::from_code(code)
}

/// The hash of a document's content, whatever else was wanted of it.
pub(crate) fn content_hash(document: &Document) -> &str {
    let hash = document.hash.split([MARK, FAULT]).next();
    hash.unwrap_or_default()
}

/// The bounds that decide what a document holds. The others decide whether there is one.
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

/// What a rule made of a document.
struct ComputedField<'r> {
    name: &'r str,
    /// Nothing for a value that is not of its type.
    value: Option<DocumentValue>,
    /// The field that it was, if it was one.
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

fn is_address(value: &DocumentValue) -> bool {
    let text = value.to_string();
    text.len() <= MAX_URL_BYTES && links::is_web_url(&text)
}

/// The value of a field, or of a part of the document that has such a name, and which field it is.
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

/// Puts what was made into the document, in the place of what it was made from.
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
        let goes = |name: &str| is_hidden(name) || made.iter().any(|one| one.name == name);
        slot.take_if(|(name, _)| goes(name));
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

/// Whether the text is nothing but the fields, as it is for records without a text of their own. What is
/// hidden must not stand there either.
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
