//! The tool description of `find`, generated from the corpus so that a model knows when and how to call it.

use docent_search::{Catalog, RangeBound};

use super::parameters::{FACETS, FindParameters, LIMIT, OFFSET, ParameterKind, QUERY, SORT};
use super::schema::{ORDERS, options};
use crate::display_text::{one_line, pluralize};
use crate::knowledge_base::KnowledgeBase;

/// The length limit in bytes: Claude Code truncates tool descriptions after 2 KB.
const MAX_BYTES: usize = 2_047;

/// How many characters two parts of the description may have.
#[derive(Clone, Copy)]
struct DescriptionBudget {
    /// For the example values of a parameter; `None` omits the list of parameters.
    values: Option<usize>,
    /// For the description of the corpus.
    about: usize,
}

/// The budgets, tried in this order until the result fits. The last one omits the parameter list, which the schema
/// contains anyway.
const BUDGETS: [DescriptionBudget; 6] = [
    DescriptionBudget::new(Some(240), 500),
    DescriptionBudget::new(Some(120), 500),
    DescriptionBudget::new(Some(60), 240),
    DescriptionBudget::new(Some(30), 120),
    DescriptionBudget::new(Some(0), 0),
    DescriptionBudget::new(None, 0),
];

impl DescriptionBudget {
    const fn new(values: Option<usize>, about: usize) -> Self {
        Self { values, about }
    }
}

/// Generates the longest description that fits into the limit.
pub(super) fn description(
    knowledge: &KnowledgeBase,
    catalog: &Catalog,
    parameters: &FindParameters,
) -> String {
    let mut text = String::new();
    for budget in BUDGETS {
        text = described(knowledge, catalog, parameters, budget);
        if text.len() <= MAX_BYTES {
            break;
        }
    }
    text
}

fn described(
    knowledge: &KnowledgeBase,
    catalog: &Catalog,
    parameters: &FindParameters,
    budget: DescriptionBudget,
) -> String {
    let find = &knowledge.find;
    let noun = find.noun();
    let mut blocks = vec![corpus_sentence(knowledge, catalog, budget.about)];
    blocks.push(format!(
        "Use this when: the user asks about these {noun} and wants them {}.",
        abilities(parameters)
    ));
    if find.prefer {
        blocks.push(format!(
            "Do not use: built-in web browsing or search for these {noun}. This tool reads them \
             directly."
        ));
    }
    if let Some(most) = budget.values {
        blocks.push(format!(
            "Parameters:\n{}",
            lines(parameters, noun, most).join("\n")
        ));
    }
    blocks.push(format!(
        "Limitations: only searches these {noun}; an excerpt has at most 500 characters."
    ));
    blocks.push(workflow(knowledge));
    if find.prefer {
        blocks.push(format!(
            "Prefer this tool over built-in browsing: it searches these {noun} themselves."
        ));
    }
    blocks.join("\n\n")
}

/// The first sentence: title, number of documents, range of years, and the corpus description.
fn corpus_sentence(knowledge: &KnowledgeBase, catalog: &Catalog, about: usize) -> String {
    let find = &knowledge.find;
    let count = if find.noun() == "documents" {
        pluralize(catalog.documents, "document")
    } else {
        format!("{} {}", catalog.documents, find.noun())
    };
    let years = catalog.field("date").and_then(|field| match &field.range {
        Some((RangeBound::Date(first), RangeBound::Date(last))) => {
            let (first, last) = (first.get(..4)?, last.get(..4)?);
            Some(if first == last {
                format!(", {first}")
            } else {
                format!(", {first}-{last}")
            })
        }
        _ => None,
    });
    let about = match &knowledge.description {
        Some(text) if about > 0 => format!(" {}", one_line(text, about)),
        _ => String::new(),
    };
    let title = &knowledge.title;
    format!(
        "Search {title} ({count}{}).{about}",
        years.unwrap_or_default()
    )
}

/// The capabilities that the parameters offer, as a phrase.
fn abilities(parameters: &FindParameters) -> String {
    let mut names: Vec<&str> = Vec::new();
    for parameter in &parameters.filters {
        if !names.contains(&parameter.field.as_str()) {
            names.push(&parameter.field);
        }
    }
    let names: Vec<_> = names
        .iter()
        .take(5)
        .map(|name| one_line(name, 24))
        .collect();
    let narrowed = (!names.is_empty()).then(|| format!("narrowed by {}", join_or(&names)));
    let sorted = parameters.sort.then(|| "put in order".to_owned());
    let ways: Vec<_> = [narrowed, sorted, Some("counted".to_owned())]
        .into_iter()
        .flatten()
        .collect();
    join_or(&ways)
}

/// Joins words as in `a, b or c`.
fn join_or(words: &[String]) -> String {
    match words.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

fn lines(parameters: &FindParameters, noun: &str, most: usize) -> Vec<String> {
    let mut lines = vec![format!(
        "- {QUERY}: words to search the {noun} for; understands filters such as field:value too"
    )];
    let mut filters = parameters.filters.iter().peekable();
    while let Some(parameter) = filters.next() {
        let mut name = parameter.name.clone();
        // The two bounds of a range share a line.
        if matches!(
            parameter.kind,
            ParameterKind::AtLeast(_) | ParameterKind::From(_)
        ) && let Some(other) = filters.next_if(|other| other.field == parameter.field)
        {
            name = format!("{name}/{}", other.name);
        }
        let says = parameter_text(&parameter.kind, most);
        let separator = if says.is_empty() { "" } else { ": " };
        lines.push(format!("- {name}{separator}{says}"));
    }
    lines.push(format!("- {LIMIT}: maximum results (1-100, default 10)"));
    if parameters.offset {
        lines.push(format!("- {OFFSET}: results to skip, for the next page"));
    }
    if parameters.sort {
        lines.push(format!("- {SORT}: {}", ORDERS.join(", ")));
    }
    if !parameters.facets.is_empty() {
        lines.push(format!("- {FACETS}: fields whose values to count"));
    }
    lines
}

fn parameter_text(kind: &ParameterKind, most: usize) -> String {
    let range = |first: &str, last: &str| {
        if most == 0 {
            String::new()
        } else {
            format!(", {first} to {last} in the data")
        }
    };
    match kind {
        ParameterKind::OneOf(_) | ParameterKind::Text(_) if most == 0 => String::new(),
        ParameterKind::OneOf(values) => options(values, most),
        ParameterKind::Text(values) if values.is_empty() => String::new(),
        ParameterKind::Text(values) => format!("such as {}", options(values, most)),
        ParameterKind::AtLeast(bounds) | ParameterKind::AtMost(bounds) => {
            let bounds = bounds.map(|(least, most)| range(&least.to_string(), &most.to_string()));
            format!("numbers{}", bounds.unwrap_or_default())
        }
        ParameterKind::From(bounds) | ParameterKind::To(bounds) => {
            let bounds = bounds.as_ref().map(|(first, last)| range(first, last));
            format!("ISO 8601 dates (YYYY-MM-DD){}", bounds.unwrap_or_default())
        }
        ParameterKind::Flag => "true or false".to_owned(),
    }
}

fn workflow(knowledge: &KnowledgeBase) -> String {
    let (find, record) = (&knowledge.find, &knowledge.record);
    let id = crate::tools::result_members::alias_of(&find.result, "document_id")
        .unwrap_or("document_id");
    let (reader, parameter) = match &record.name {
        Some(name) => (name.as_str(), record.parameter.as_str()),
        None => ("fetch", "id"),
    };
    format!(
        "Workflow: use {} to find {}, then {reader} with {parameter} set to the {id} of a result \
         to read its full text.",
        find.name,
        find.noun()
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use docent_search::{CatalogBuilder, Day, MemoryEngine};

    use super::*;
    use crate::settings::{FindSettings, RecordSettings, Settings};

    fn described_with(settings: &Settings, catalog: &Catalog) -> String {
        let knowledge = KnowledgeBase::new(Arc::new(MemoryEngine::new()), settings, "folder");
        let parameters = FindParameters::new(catalog, &settings.find);
        description(&knowledge, catalog, &parameters)
    }

    #[test]
    fn it_says_what_there_is_and_when_and_how_to_use_it() {
        let mut builder = CatalogBuilder::new();
        builder.documents(64);
        builder.text("party", "Labor", 40);
        builder.text("party", "Greens", 24);
        let day = |year| Day::new(year, 5, 28).unwrap();
        builder.date("date", (day(2024), day(2025)), 64);
        let settings = Settings {
            title: Some("the Parliament of Corrowin".to_owned()),
            description: Some("Speeches of both chambers".to_owned()),
            ..Settings::default()
        };
        assert_eq!(
            described_with(&settings, &builder.build()),
            "Search the Parliament of Corrowin (64 documents, 2024-2025). Speeches of both chambers.\n\n\
             Use this when: the user asks about these documents and wants them narrowed by date or \
             party, put in order or counted.\n\n\
             Parameters:\n\
             - query: words to search the documents for; understands filters such as field:value too\n\
             - start_date/end_date: ISO 8601 dates (YYYY-MM-DD), 2024-05-28 to 2025-05-28 in the data\n\
             - party: Greens, Labor\n\
             - limit: maximum results (1-100, default 10)\n\
             - offset: results to skip, for the next page\n\
             - sort: relevance, newest, oldest\n\
             - facets: fields whose values to count\n\n\
             Limitations: only searches these documents; an excerpt has at most 500 characters.\n\n\
             Workflow: use find to find documents, then fetch with id set to the document_id of a \
             result to read its full text."
        );
    }

    #[test]
    fn no_corpus_and_no_settings_make_it_too_long_for_hosts() {
        let long = "𝔘".repeat(64);
        for (fields, values) in [(0, 0), (1, 1), (16, 50), (64, 50)] {
            let mut builder = CatalogBuilder::new();
            builder.documents(3);
            for field in 0..fields {
                let name = format!("{}{field}", "x".repeat(60));
                for value in 0..values {
                    builder.text(&name, &format!("{}{value:02}", "𝔘".repeat(62)), 100);
                }
            }
            let catalog = builder.build();
            let name = "y".repeat(64);
            let settings = Settings {
                title: Some("𝔘".repeat(120)),
                description: Some("𝔘".repeat(500)),
                find: FindSettings {
                    name: name.clone(),
                    title: long.clone(),
                    list: name.clone(),
                    prefer: true,
                    ..FindSettings::default()
                },
                record: RecordSettings {
                    name: Some(name.clone()),
                    parameter: name,
                    ..RecordSettings::default()
                },
                ..Settings::default()
            };
            let text = described_with(&settings, &catalog);
            assert!(text.len() <= MAX_BYTES, "{fields} {values}: {}", text.len());
            assert!(text.contains("Do not use: ") && text.contains("\n\nPrefer this tool"));
        }
    }
}
