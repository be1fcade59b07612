//! Settings of the tools besides `search` and `fetch`: their names, parameters and result shapes.

use super::setting_value::{InvalidSetting, SettingValue};

/// Maximum length of a parameter name. Names are letters, digits and `_`, starting with a letter, which every host
/// accepts.
const MAX_NAME_CHARS: usize = 64;

/// Maximum length of a tool's title in characters.
const MAX_TITLE_CHARS: usize = 64;

/// Names of the built-in tools, which the tools named by settings cannot have.
const RESERVED_TOOL_NAMES: [&str; 5] = [
    "search",
    "fetch",
    "list_fields",
    "show_results",
    "show_document",
];

/// The other members of a `find` result, which the list of results cannot be named like.
const RESERVED_MEMBERS: [&str; 5] = ["total_count", "query", "next_offset", "facets", "note"];

/// Settings of `find`, the search tool with typed parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindSettings {
    /// Whether the tool is offered.
    pub enabled: bool,
    /// Name of the tool.
    pub name: String,
    /// Title of the tool for people.
    pub title: String,
    /// Parameters besides `query` and `limit`; if empty, they are derived from the fields, one or two each.
    pub parameters: Vec<NameAlias>,
    /// Name of the list of results, which also serves as the plural noun for documents.
    pub list: String,
    /// Members of each result; if empty, all.
    pub result: Vec<NameAlias>,
    /// Whether descriptions tell the model to prefer these tools to its built-in ones.
    pub prefer: bool,
}

impl Default for FindSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            name: "find".to_owned(),
            title: "Find documents".to_owned(),
            parameters: Vec::new(),
            list: "results".to_owned(),
            result: Vec::new(),
            prefer: false,
        }
    }
}

impl FindSettings {
    /// Plural noun for the documents in tool descriptions.
    #[must_use]
    pub fn noun(&self) -> &str {
        if self.list == "results" {
            "documents"
        } else {
            &self.list
        }
    }
}

/// Settings of the tool that reads a whole record: a document with all its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSettings {
    /// Name of the tool; without one it is not offered.
    pub name: Option<String>,
    /// Title of the tool for people.
    pub title: String,
    /// Name of the id parameter.
    pub parameter: String,
    /// Members of the result; if empty, all.
    pub result: Vec<NameAlias>,
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self {
            name: None,
            title: "Read a record".to_owned(),
            parameter: "id".to_owned(),
            result: Vec::new(),
        }
    }
}

/// Settings of the widgets that hosts render in the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WidgetSettings {
    /// Whether the widget tools are offered. Clients without widget support read their text.
    pub enabled: bool,
    /// Origin under which ChatGPT runs the widgets; its app directory requires one.
    pub domain: Option<String>,
}

impl Default for WidgetSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            domain: None,
        }
    }
}

/// Parses the https origin for widgets.
pub(super) fn domain(given: &SettingValue) -> Result<String, InvalidSetting> {
    let url = given.web_address()?;
    if url.scheme() == "https" && url.path() == "/" {
        return Ok(url.origin().ascii_serialization());
    }
    Err(given.invalid(
        "is not an https origin",
        "example: `https://docs.example.org`",
    ))
}

/// An alias: the name in the tool's schema, and the field or member that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameAlias {
    /// Name in the schema.
    pub name: String,
    /// The field or member behind it.
    pub source: String,
}

/// Parses the name of a tool, which must not collide with a built-in tool.
pub(super) fn tool(given: &SettingValue) -> Result<String, InvalidSetting> {
    let name = given.line(MAX_NAME_CHARS).ok();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let fits =
        |name: &String| name.chars().all(plain) && !RESERVED_TOOL_NAMES.contains(&name.as_str());
    name.filter(fits).ok_or_else(|| {
        given.invalid(
            "is not an available tool name",
            "use 1 to 64 letters, digits, `_` or `-`, and no name that another tool has, such as `search`",
        )
    })
}

/// Parses the title of a tool.
pub(super) fn title(given: &SettingValue) -> Result<String, InvalidSetting> {
    given.line(MAX_TITLE_CHARS)
}

/// Parses the name of a parameter or of a member of a result.
pub(super) fn name(given: &SettingValue) -> Result<String, InvalidSetting> {
    let name = given.line(MAX_NAME_CHARS).ok();
    name.filter(|name| is_name(name)).ok_or_else(|| {
        given.invalid(
            "is not a name",
            "use 1 to 64 letters, digits or `_`, a letter first",
        )
    })
}

/// Parses the name of the list of results, which must differ from the other members of the answer.
pub(super) fn list(given: &SettingValue) -> Result<String, InvalidSetting> {
    let is_free = |name: &String| !RESERVED_MEMBERS.contains(&name.as_str());
    name(given).ok().filter(is_free).ok_or_else(|| {
        given.invalid(
            "is not a name for a list of results",
            "use 1 to 64 letters, digits or `_`, a letter first, such as `speeches`",
        )
    })
}

/// Parses a list of aliases, each as `name` or `name=source`.
pub(super) fn names(given: &SettingValue) -> Result<Vec<NameAlias>, InvalidSetting> {
    let mut names: Vec<NameAlias> = Vec::new();
    for item in given.list()? {
        let (name, source) = item.split_once('=').unwrap_or((&item, &item));
        let (name, source) = (name.trim().to_owned(), source.trim().to_owned());
        let is_double = names.iter().any(|known| known.name == name);
        if !is_name(&name) || source.is_empty() || is_double {
            let what = "is not a list of different names";
            let hint =
                "write `name` or `name=field`; a name has letters, digits and `_`, a letter first";
            return Err(given.invalid(what, hint));
        }
        names.push(NameAlias { name, source });
    }
    Ok(names)
}

/// Parses the members of a record. The members with which long records are paged are reserved.
pub(super) fn record(given: &SettingValue) -> Result<Vec<NameAlias>, InvalidSetting> {
    let names = names(given)?;
    let is_taken = |one: &NameAlias| ["part", "truncated", "next"].contains(&one.name.as_str());
    if names.iter().any(is_taken) {
        let hint =
            "`part`, `truncated` and `next` are reserved for long documents; use other names";
        return Err(given.invalid("uses a reserved name", hint));
    }
    Ok(names)
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= MAX_NAME_CHARS
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(plain)
}

/// Parses a token of another service: visible ASCII characters without spaces.
pub(super) fn token(given: &SettingValue) -> Result<String, InvalidSetting> {
    let text = given.line(500)?;
    if text.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(text);
    }
    Err(given.invalid("is not a token", "paste it as it was shown, without spaces"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use docent_mcp::{DualFormat, TextForm};
    use docent_search::MemoryEngine;

    use super::*;
    use crate::knowledge_base::KnowledgeBase;
    use crate::settings::Settings;

    fn text(text: &str) -> SettingValue {
        SettingValue::Text(text.to_owned())
    }

    #[test]
    fn tools_have_names_that_are_free() {
        let longest = "x".repeat(64);
        for good in ["find", "search_hansard_speeches", "a-b", &longest] {
            assert_eq!(tool(&text(good)).unwrap(), good);
        }
        let too_long = "x".repeat(65);
        for bad in [
            "",
            "search",
            "fetch",
            "list_fields",
            "show_results",
            "show_document",
            "a b",
            "a.b",
            "ü",
            &too_long,
        ] {
            assert!(tool(&text(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn reserved_names_are_those_of_the_tools_that_settings_do_not_name() {
        let mut settings = Settings::default();
        settings.find.enabled = false;
        let engine = Arc::new(MemoryEngine::new());
        let knowledge = Arc::new(KnowledgeBase::new(engine, &settings, "folder"));
        let app = crate::app::builder(&knowledge, DualFormat::Auto, TextForm::Json);
        let offered: BTreeSet<String> = app.tool_names().into_iter().collect();
        let reserved = BTreeSet::from(RESERVED_TOOL_NAMES.map(str::to_owned));
        assert_eq!(offered, reserved);
    }

    #[test]
    fn the_list_has_a_name_of_its_own() {
        assert_eq!(list(&text("speeches")).unwrap(), "speeches");
        for bad in ["query", "total_count", "a b", ""] {
            assert!(list(&text(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_stand_for_themselves_or_for_others() {
        let named = |text: &str| names(&SettingValue::Text(text.to_owned()));
        let found = named("party, speech_id = document_id,words=field.word count").unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.name.as_str(), one.source.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("party", "party"),
                ("speech_id", "document_id"),
                ("words", "field.word count")
            ]
        );
        for bad in [
            "a,a",
            "a=b,a=c",
            "1a",
            "a b",
            "=b",
            "a=",
            "party-name",
            "日本",
        ] {
            assert!(named(bad).is_err(), "{bad}");
        }
        assert!(record(&text("id,text")).is_ok());
        assert!(record(&text("id,next=sequel")).is_err());
        let longest = "x".repeat(64);
        assert!(named(&longest).is_ok() && name(&text(&longest)).is_ok());
        let too_long = "x".repeat(65);
        assert!(named(&too_long).is_err() && name(&text(&too_long)).is_err());
    }
}
