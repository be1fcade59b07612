//! Validation of the arguments of `show_results`, with errors from which a model can correct its call.

use std::collections::BTreeMap;

use docent_mcp::Failure;
use docent_search::{
    Catalog, CatalogField, Day, FieldKind, FieldTest, Filter, MAX_OFFSET, ParsedQuery, SortOrder,
    grammar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::display_text::shorten;
use crate::tools::date_buckets::DATE;

/// Maximum number of ids in one call.
pub(super) const MAX_IDS: usize = 20;

/// Maximum number of filters in one call, and of values of each.
const MAX_FILTERS: usize = 8;
const MAX_VALUES: usize = 16;

/// Maximum number of characters of an invalid value that an error quotes.
const MAX_SHOWN: usize = 80;

/// Input of `show_results`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowResultsInput {
    query: Option<String>,
    ids: Option<Vec<String>>,
    filters: Option<BTreeMap<String, Vec<String>>>,
    from: Option<String>,
    to: Option<String>,
    sort: Option<String>,
    offset: Option<usize>,
}

/// The validated arguments, returned to the widget so that it can repeat the call with other filters.
#[derive(Debug, Default, Clone, Serialize)]
pub(super) struct EchoedQuery {
    pub(super) query: String,
    pub(super) ids: Vec<String>,
    filters: BTreeMap<String, Vec<String>>,
    from: String,
    to: String,
    sort: &'static str,
    pub(super) offset: usize,
}

/// A validated query with all of its filters.
#[derive(Debug)]
pub(super) struct ResultsQuery {
    pub(super) asked: EchoedQuery,
    pub(super) sort: SortOrder,
    /// The query as typed, for the search note.
    pub(super) typed: ParsedQuery,
    /// The query with the filters of all arguments.
    pub(super) parsed: ParsedQuery,
    /// All filters except the date range.
    conditions: Vec<Filter>,
}

impl ResultsQuery {
    /// Whether a date range was selected.
    pub(super) fn has_day_bounds(&self) -> bool {
        !self.asked.from.is_empty() || !self.asked.to.is_empty()
    }

    /// The same query with another date range, or with none.
    pub(super) fn within(&self, from: Option<&str>, to: Option<&str>) -> ParsedQuery {
        let mut all = self.conditions.clone();
        if from.is_some() || to.is_some() {
            all.push(Filter::Field {
                name: DATE.to_owned(),
                test: FieldTest::Date {
                    from: from.map(str::to_owned),
                    to: to.map(str::to_owned),
                },
            });
        }
        ParsedQuery {
            filter: narrowed(&self.typed, all),
            text: words(&self.typed),
            ..self.typed.clone()
        }
    }
}

/// Combines the filters (AND). Without words and filters, the query lists all documents.
fn narrowed(typed: &ParsedQuery, mut all: Vec<Filter>) -> Option<Filter> {
    let is_blank = words(typed).is_empty() && typed.phrases.is_empty() && typed.excluded.is_empty();
    match all.len() {
        0 if !is_blank => None,
        1 => all.pop(),
        _ => Some(Filter::All(all)),
    }
}

fn words(typed: &ParsedQuery) -> String {
    Some(typed.text.trim())
        .filter(|text| *text != "*")
        .unwrap_or_default()
        .to_owned()
}

/// Parses and validates the arguments.
pub(super) fn read(
    input: ShowResultsInput,
    catalog: &Catalog,
    today: Day,
) -> Result<ResultsQuery, Failure> {
    let query = input.query.unwrap_or_default();
    let ids = input.ids.unwrap_or_default();
    if ids.len() > MAX_IDS {
        let message = format!("`ids` has more than {MAX_IDS} values");
        return Err(Failure::caller(message).hint(format!("show at most {MAX_IDS} at a time")));
    }
    let offset = input.offset.unwrap_or(0);
    if offset > MAX_OFFSET {
        let message = format!("`offset` is greater than {MAX_OFFSET}: `{offset}`");
        return Err(Failure::caller(message).hint("narrow the search down instead"));
    }
    let (sort, order) = sort(input.sort.as_deref())?;
    let DayBounds { from, to } = days(input.from.as_deref(), input.to.as_deref())?;
    let given = input.filters.unwrap_or_default();
    let ChosenFilters {
        chosen,
        mut conditions,
    } = filters(given, catalog)?;
    let typed = grammar::parse(&query, catalog, today);
    conditions.extend(typed.filter.clone());
    let mut question = ResultsQuery {
        asked: EchoedQuery {
            query,
            ids,
            filters: chosen,
            from: from.clone().unwrap_or_default(),
            to: to.clone().unwrap_or_default(),
            sort: order,
            offset,
        },
        sort,
        parsed: typed.clone(),
        typed,
        conditions,
    };
    question.parsed = question.within(from.as_deref(), to.as_deref());
    let checked = question
        .parsed
        .filter
        .as_ref()
        .map_or(Ok(()), Filter::check);
    checked.map_err(|error| Failure::caller(error.to_string()).hint("simplify the filter"))?;
    Ok(question)
}

fn sort(given: Option<&str>) -> Result<(SortOrder, &'static str), Failure> {
    match given {
        None | Some("relevance") => Ok((SortOrder::Relevance, "relevance")),
        Some("newest") => Ok((SortOrder::Newest, "newest")),
        Some("oldest") => Ok((SortOrder::Oldest, "oldest")),
        Some(other) => Err(invalid("sort", "is not an order", other)
            .hint("allowed are `relevance`, `newest`, `oldest`")),
    }
}

/// The first and the last day of a date range, each where one is given.
struct DayBounds {
    from: Option<String>,
    to: Option<String>,
}

fn days(from: Option<&str>, to: Option<&str>) -> Result<DayBounds, Failure> {
    let read = |name: &str, given: Option<&str>| match given.filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => Day::parse(text).map(Some).ok_or_else(|| {
            invalid(name, "is not a day", text).hint("write it as YYYY-MM-DD, such as `2024-05-28`")
        }),
    };
    let (from, to) = (read("from", from)?, read("to", to)?);
    if from > to && to.is_some() {
        return Err(Failure::caller("`from` is later than `to`").hint("swap the two dates"));
    }
    Ok(DayBounds {
        from: from.map(|day| day.to_string()),
        to: to.map(|day| day.to_string()),
    })
}

/// The values that were chosen for each field, under the names of the catalog, and the filters that they make.
struct ChosenFilters {
    chosen: BTreeMap<String, Vec<String>>,
    conditions: Vec<Filter>,
}

fn filters(
    given: BTreeMap<String, Vec<String>>,
    catalog: &Catalog,
) -> Result<ChosenFilters, Failure> {
    if given.len() > MAX_FILTERS {
        let message = format!("`filters` has more than {MAX_FILTERS} fields");
        return Err(Failure::caller(message).hint("use fewer filters"));
    }
    let mut chosen = BTreeMap::new();
    let mut conditions = Vec::new();
    for (name, values) in given {
        let field = catalog
            .field(&name)
            .ok_or_else(|| unknown(catalog, &name))?;
        if values.len() > MAX_VALUES {
            let message = format!("`filters.{}` has more than {MAX_VALUES} values", field.name);
            return Err(Failure::caller(message).hint("choose fewer"));
        }
        if values.is_empty() {
            continue;
        }
        let tests: Result<Vec<_>, _> = values.iter().map(|value| test(field, value)).collect();
        let any = tests?.into_iter().map(|test| Filter::Field {
            name: field.name.clone(),
            test,
        });
        conditions.push(Filter::Any(any.collect()));
        chosen.insert(field.name.clone(), values);
    }
    Ok(ChosenFilters { chosen, conditions })
}

fn test(field: &CatalogField, value: &str) -> Result<FieldTest, Failure> {
    let not = |what: &str| {
        let name = format!("filters.{}", field.name);
        invalid(&name, what, value).hint("call `list_fields` for the values of each field")
    };
    match field.kind {
        FieldKind::Keyword | FieldKind::Text | FieldKind::List => Ok(FieldTest::Is(
            field.value(value).unwrap_or(value).to_owned(),
        )),
        FieldKind::Bool => value
            .parse()
            .map(FieldTest::Bool)
            .map_err(|_| not("is neither true nor false")),
        FieldKind::Number => match value.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(FieldTest::Number {
                from: Some(number),
                to: Some(number),
            }),
            _ => Err(not("is not a number")),
        },
        FieldKind::Date => {
            let day = Day::parse(value).ok_or_else(|| not("is not a day"))?;
            Ok(FieldTest::Date {
                from: Some(day.to_string()),
                to: Some(day.to_string()),
            })
        }
    }
}

fn invalid(name: &str, what: &str, value: &str) -> Failure {
    Failure::caller(format!("`{name}` {what}: `{}`", shorten(value, MAX_SHOWN)))
}

fn unknown(catalog: &Catalog, name: &str) -> Failure {
    let suggestion = catalog.nearest(name);
    let suggestion = suggestion.map(|field| format!("did you mean `{}`? ", field.name));
    Failure::caller(format!("there is no field `{}`", shorten(name, MAX_SHOWN))).hint(format!(
        "{}call `list_fields` for all fields",
        suggestion.unwrap_or_default()
    ))
}

/// The input schema, written by hand so that it contains only what a model needs.
pub(super) fn schema() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    json!({
        "type": "object",
        "properties": {
            "query": text("Search words; may contain filters such as field:value. If empty, all documents are listed."),
            "ids": {"type": "array", "items": {"type": "string"}, "maxItems": MAX_IDS,
                "description": "Show exactly these documents, by ids from search."},
            "filters": {"type": "object", "maxProperties": MAX_FILTERS,
                "additionalProperties": {"type": "array", "items": {"type": "string"}, "maxItems": MAX_VALUES},
                "description": "Values by field, such as {\"party\": [\"Harbour\"]}; a document matches a field if it has any of its values."},
            "from": text("First day of the date range, YYYY-MM-DD."),
            "to": text("Last day of the date range, YYYY-MM-DD."),
            "sort": {"type": "string", "enum": ["relevance", "newest", "oldest"], "description": "Sort order; the default is relevance, best first."},
            "offset": {"type": "integer", "minimum": 0, "maximum": MAX_OFFSET,
                "description": "Number of results to skip, for the next page."}
        },
        "additionalProperties": false
    })
}

#[cfg(test)]
mod tests {
    use docent_search::CatalogBuilder;

    use super::*;

    fn ask(input: Value) -> Result<ResultsQuery, Failure> {
        let mut builder = CatalogBuilder::new();
        builder.documents(40);
        builder.text("party", "Harbour", 30);
        builder.text("party", "Greenway", 10);
        builder.number("words", (3.0, 90.0), 40);
        let today = Day::new(2025, 1, 1).unwrap();
        read(
            serde_json::from_value(input).unwrap(),
            &builder.build(),
            today,
        )
    }

    #[test]
    fn selected_filters_come_back_under_the_name_of_their_field() {
        let question = ask(json!({"query": "ferry", "filters": {"Party": ["harbour"]},
            "from": "2024-01-01", "to": "2024-02-01"}))
        .unwrap();
        let asked = json!(question.asked);
        assert_eq!(asked["filters"], json!({"party": ["harbour"]}));
        assert_eq!(asked["from"], "2024-01-01");
        assert_eq!(question.parsed.text, "ferry");
        assert!(matches!(question.parsed.filter, Some(Filter::All(all)) if all.len() == 2));
        let all = ask(json!({"query": "*"})).unwrap();
        assert!(matches!(all.parsed.filter, Some(Filter::All(none)) if none.is_empty()));
        assert!(
            ask(json!({"query": "ferry", "sort": null}))
                .unwrap()
                .parsed
                .filter
                .is_none()
        );
    }

    #[test]
    fn mistakes_say_what_to_do() {
        for (input, message) in [
            (
                json!({"filters": {"partei": ["x"]}}),
                "there is no field `partei`",
            ),
            (
                json!({"filters": {"words": ["many"]}}),
                "`filters.words` is not a number: `many`",
            ),
            (json!({"from": "May"}), "`from` is not a day: `May`"),
            (
                json!({"from": "2024-02-01", "to": "2024-01-01"}),
                "`from` is later than `to`",
            ),
            (json!({"sort": "best"}), "`sort` is not an order: `best`"),
        ] {
            let message_text = ask(input).unwrap_err().to_string();
            assert!(message_text.starts_with(message), "{message_text}");
        }
    }

    #[test]
    fn every_list_has_its_end() {
        let ids = |count: usize| ask(json!({"ids": vec!["a"; count]})).is_ok();
        assert!(ids(MAX_IDS) && !ids(MAX_IDS + 1));
        let values = |count: usize| ask(json!({"filters": {"party": vec!["a"; count]}})).is_ok();
        assert!(values(MAX_VALUES) && !values(MAX_VALUES + 1));
        let offset = |offset: usize| ask(json!({"offset": offset})).is_ok();
        assert!(offset(MAX_OFFSET) && !offset(MAX_OFFSET + 1));
        let fields = |count: usize| {
            let fields: BTreeMap<String, [&str; 0]> =
                (0..count).map(|n| (format!("f{n}"), [])).collect();
            ask(json!({"filters": fields})).unwrap_err().to_string()
        };
        assert!(fields(MAX_FILTERS).starts_with("there is no field"));
        assert!(fields(MAX_FILTERS + 1).starts_with("`filters` has more"));
    }
}
