//! Template of docent.toml from the survey of a folder. Explanations start with `# `, settings with a bare `#`, so that
//! removing one character enables a setting.

use docent_search::{CatalogField, FieldKind, RangeBound};

use super::survey::FolderSurvey;
use crate::display_text::{one_line, pluralize};
use crate::document_transform::value_cast;
use crate::links::UrlTemplate;

/// Maximum size of the template: three quarters of the 64 KiB that a settings file may have.
const MAX_BYTES: usize = 48 * 1024;

/// Number of example values per field, and the maximum length of each.
const VALUES: usize = 3;
const MAX_VALUE_CHARS: usize = 40;

/// Maximum number of top-level folders that are suggested as a field. More are probably not categories.
const MAX_FOLDERS: usize = 30;

/// Reserved names, which are not fields even if a file has columns of these names.
const NO_FIELDS: [&str; 4] = ["id", "text", "title", "url"];

/// Renders the template; `name` is the default title.
pub(super) fn write(survey: &FolderSurvey, name: &str) -> String {
    let mut page = head(survey, name);
    page.push_str(&addresses(survey));
    page.push_str(
        "\n# Fields of the documents, for filters and facet counts: docs/fields.md\n\
         # A field can be renamed (`from = \"old name\"`), given a type, hidden (`hide = true`) or added.\n",
    );
    for part in suggested_fields(survey) {
        page.push_str(&part);
    }
    let fields = &survey.catalog.fields;
    let fields = fields
        .iter()
        .filter(|field| !NO_FIELDS.contains(&field.name.as_str()));
    for (number, field) in fields.clone().enumerate() {
        let part = entry(field, survey);
        if page.len() + part.len() > MAX_BYTES {
            let more = fields.clone().count() - number;
            page.push_str(&format!("\n# … and {}.\n", pluralize(more as u64, "field")));
            break;
        }
        page.push_str(&part);
    }
    page
}

fn head(survey: &FolderSurvey, name: &str) -> String {
    let kinds: Vec<_> = survey
        .kinds
        .iter()
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    let mut page = format!(
        "# Settings of this folder for docent, written by `docent init`. All settings: docs/settings.md\n\
         # Everything is commented out; to enable a setting, remove the `#` before it.\n#\n\
         # Read {} of {}: {}.\n",
        survey.looked_at,
        pluralize(survey.files as u64, "file"),
        if kinds.is_empty() {
            "nothing".to_owned()
        } else {
            kinds.join(", ")
        },
    );
    if survey.unread > 0 {
        page.push_str(&format!(
            "# {} of them contain no document; `docent index` shows why.\n",
            survey.unread
        ));
    }
    page.push_str(&format!(
        "\n# Title of the documents, and what they are about in one sentence.\n\
         #title = {}\n#description = \"…\"\n",
        quoted(name)
    ));
    page
}

fn addresses(survey: &FolderSurvey) -> String {
    let mut page = "\n#[documents]\n".to_owned();
    let known = survey.addresses.len() as u64;
    let template = infer_template(&survey.addresses);
    if known > 0 {
        let all = survey.catalog.documents;
        page.push_str(&format!(
            "# {known} of {all} documents have a URL of their own.\n"
        ));
    }
    if template.is_none() {
        page.push_str("# URL template for documents that have no URL of their own.\n");
    }
    let template = template.unwrap_or_else(|| "https://docs.example.org/{+id}".to_owned());
    page.push_str(&format!("#url = {}\n", quoted(&template)));
    page
}

/// Infers the URL template that produces at least half of the documents' URLs from their ids.
fn infer_template(addresses: &[(String, String)]) -> Option<String> {
    let (id, url) = addresses
        .iter()
        .find(|(id, url)| url.contains(id.as_str()))?;
    let placeholder = if id.contains('/') { "{+id}" } else { "{id}" };
    let text = url.replacen(id.as_str(), placeholder, 1);
    UrlTemplate::parse(&text)?;
    let (before, after) = text.split_once(placeholder)?;
    let fits = |(id, url): &&(String, String)| *url == format!("{before}{id}{after}");
    (addresses.iter().filter(fits).count() * 2 >= addresses.len()).then_some(text)
}

/// Suggests a field from the top-level folders: `year` if all of them look like years, else `folder`.
fn suggested_fields(survey: &FolderSurvey) -> Vec<String> {
    let names: Vec<_> = survey
        .folders
        .keys()
        .take(VALUES)
        .map(|name| shown(name))
        .collect();
    let is_year = |name: &String| {
        name.len() == 4 && name.starts_with(['1', '2']) && name.parse::<u16>().is_ok()
    };
    let (name, kind) = if survey.folders.keys().all(is_year) {
        ("year", "number")
    } else {
        ("folder", "keyword")
    };
    let are_categories = (2..=MAX_FOLDERS).contains(&survey.folders.len());
    let is_free = survey.catalog.fields.iter().all(|field| field.name != name);
    if !are_categories || !is_free {
        return Vec::new();
    }
    vec![format!(
        "\n# The documents lie in {}, such as {}.\n#[fields.{name}]\n#path = \"{{{name}}}/\"\n#type = \"{kind}\"\n",
        pluralize(survey.folders.len() as u64, "folder"),
        names.join(", "),
    )]
}

fn entry(field: &CatalogField, survey: &FolderSurvey) -> String {
    let name = &field.name;
    let kind = value_cast::name(field.kind);
    let values = values(field, survey.examples.get(name));
    let values = if values.is_empty() {
        String::new()
    } else {
        format!(": {values}")
    };
    let mut part = format!(
        "\n# {kind}, in {} of {}{values}\n#[fields.{}]\n",
        field.documents,
        pluralize(survey.catalog.documents, "document"),
        key(name),
    );
    // The type of `date` is fixed, so its source is shown instead.
    part.push_str(&if name == "date" {
        "#from = \"date\"\n".to_owned()
    } else {
        format!("#type = \"{kind}\"\n")
    });
    part
}

/// Example values of a field, or its range.
fn values(field: &CatalogField, example: Option<&String>) -> String {
    let bound = |bound: &RangeBound| match bound {
        RangeBound::Number(number) => number.to_string(),
        RangeBound::Date(day) => day.clone(),
    };
    if let (FieldKind::Number | FieldKind::Date, Some((from, to))) = (field.kind, &field.range) {
        return format!("{} to {}", bound(from), bound(to));
    }
    // The catalog drops the values of fields in which nearly every value is distinct.
    if field.values.is_empty() {
        return example.map_or_else(String::new, |value| format!("{}, …", shown(value)));
    }
    let values: Vec<_> = field
        .values
        .iter()
        .take(VALUES)
        .map(|(value, _)| shown(value))
        .collect();
    let more = if field.values.len() > VALUES || field.more {
        ", …"
    } else {
        ""
    };
    format!("{}{more}", values.join(", "))
}

fn shown(value: &str) -> String {
    quoted(&one_line(value, MAX_VALUE_CHARS))
}

/// Formats a text as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Formats a name as a key in a TOML table header, quoted if necessary.
fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use docent_search::CatalogBuilder;

    use super::*;

    fn survey(fields: usize) -> FolderSurvey {
        let mut catalog = CatalogBuilder::new();
        catalog.documents(fields as u64);
        for n in 0..fields {
            catalog.text(
                &format!("{n} \"ü\" a.b {}", "ü".repeat(48)),
                "it's \"so\"\nhere",
                1,
            );
        }
        FolderSurvey {
            files: fields,
            looked_at: fields,
            unread: 0,
            kinds: BTreeMap::from([("markdown".to_owned(), fields)]),
            catalog: catalog.build(),
            examples: BTreeMap::new(),
            addresses: Vec::new(),
            folders: BTreeMap::from([("2023".to_owned(), 1), ("2024".to_owned(), 1)]),
        }
    }

    /// Uncomments every setting of the template.
    fn switched_on(page: &str) -> String {
        let line = |line: &str| match line.strip_prefix('#') {
            Some(rest) if rest.starts_with(|c: char| c == '[' || c.is_ascii_lowercase()) => {
                format!("{rest}\n")
            }
            _ => format!("{line}\n"),
        };
        page.lines().map(line).collect()
    }

    #[test]
    fn the_file_changes_nothing_and_is_right_when_it_is_switched_on() {
        let page = write(&survey(9), "It's a \"folder\"");
        assert_eq!(page.parse::<toml::Table>().unwrap(), toml::Table::new());
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(crate::settings::FILE), switched_on(&page)).unwrap();
        let resolved = crate::settings::resolve(crate::settings::SettingSources {
            folder: Some(dir.path()),
            ..crate::settings::SettingSources::default()
        });
        let settings = resolved
            .unwrap_or_else(|problem| panic!("{problem:?}\n{page}"))
            .settings;
        assert_eq!(settings.title.as_deref(), Some("It's a \"folder\""));
        assert_eq!(settings.fields.len(), 10);
        assert!(settings.documents_url.is_some());
    }

    #[test]
    fn the_file_ends_at_its_bound() {
        let of = |fields: usize| {
            let mut catalog = CatalogBuilder::new();
            let long = "\u{1D518}".repeat(60);
            for n in 0..fields {
                let name = format!("{n} {long}");
                (0..4).for_each(|value| catalog.text(&name, &format!("{value}{long}"), 1));
            }
            let catalog = catalog.build();
            write(
                &FolderSurvey {
                    catalog,
                    ..survey(0)
                },
                "x",
            )
        };
        let full = of(docent_search::MAX_CATALOG_FIELDS);
        assert!(
            (MAX_BYTES - 1_000..MAX_BYTES + 100).contains(&full.len()),
            "{}",
            full.len()
        );
        assert!(full.contains("\n# … and "));
        assert!(!of(9).contains("… and "));
    }

    #[test]
    fn addresses_are_understood() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            let pairs: Vec<_> = pairs
                .map(|(id, url)| ((*id).to_owned(), (*url).to_owned()))
                .collect();
            infer_template(&pairs)
        };
        let site = |id: &str| format!("https://a.example/x/{id}?y");
        assert_eq!(
            of(&[("r1", &site("r1")), ("r2", &site("r2"))]),
            Some(site("{id}"))
        );
        assert_eq!(of(&[("a/b", &site("a/b"))]), Some(site("{+id}")));
        assert_eq!(
            of(&[
                ("r1", &site("r1")),
                ("r2", "https://b"),
                ("r3", "https://c")
            ]),
            None
        );
        assert_eq!(
            of(&[("a", "https://a.example/")]).filter(|text| text.contains("://{id}")),
            None
        );
        assert_eq!(of(&[]), None);
    }
}
