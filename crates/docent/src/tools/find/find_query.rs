//! Validation of the arguments of `find`. Every error names the permitted values, so that a model can correct its call.

use docent_mcp::Failure;
use docent_search::{
    Catalog, CatalogField, Day, FieldTest, Filter, MAX_FACETS, MAX_LIMIT, MAX_OFFSET, SortOrder,
};
use serde_json::{Map, Value};

use super::parameters::{
    FACETS, FilterParameter, FindParameters, LIMIT, OFFSET, ParameterKind, QUERY, SORT,
};
use super::schema::{ORDERS, options};

use crate::display_text::shorten;

/// The page size when `limit` is not given.
pub(super) const DEFAULT_LIMIT: usize = 10;

/// The most values of one parameter, combined with OR.
const MAX_VALUES: usize = 16;

/// The most characters of an invalid value that an error quotes.
const MAX_SHOWN: usize = 80;

/// The most characters of permitted values in an error; enough to list all of them in nearly every corpus.
const MAX_NAMED_CHARS: usize = 2_000;

/// The validated arguments of a `find` call.
#[derive(Debug)]
pub(super) struct FindQuery {
    pub query: String,
    pub limit: usize,
    pub offset: usize,
    pub sort: SortOrder,
    /// The facets to count: parameter name and field of each.
    pub facets: Vec<(String, String)>,
    pub filters: Vec<Filter>,
}

/// Parses and validates the arguments. Hosts send `null` for a parameter that they omit.
pub(super) fn read(
    arguments: &Map<String, Value>,
    parameters: &FindParameters,
    catalog: &Catalog,
) -> Result<FindQuery, Failure> {
    let known: Vec<_> = parameters.names().collect();
    if let Some(name) = arguments
        .keys()
        .find(|name| !known.contains(&name.as_str()))
    {
        let message = format!("there is no parameter `{}`", shorten(name, MAX_SHOWN));
        return Err(Failure::caller(message).hint(format!("known are {}", quoted(&known))));
    }
    let get = |name: &str| arguments.get(name).filter(|value| !value.is_null());
    let Some(query) = get(QUERY) else {
        return Err(Failure::caller("`query` is missing")
            .hint("pass the words to search for as `query`; an empty text lists everything"));
    };
    let query = query
        .as_str()
        .ok_or_else(|| invalid(QUERY, "is not a text", query).hint("pass one text"))?;
    let size =
        |name, bounds, default| get(name).map_or(Ok(default), |value| integer(name, value, bounds));
    Ok(FindQuery {
        query: query.to_owned(),
        limit: size(LIMIT, 1..=MAX_LIMIT, DEFAULT_LIMIT)?,
        offset: size(OFFSET, 0..=MAX_OFFSET, 0)?,
        sort: get(SORT).map_or(Ok(SortOrder::default()), sort)?,
        facets: get(FACETS).map_or(Ok(Vec::new()), |value| facets(value, parameters))?,
        filters: filters(parameters, catalog, get)?,
    })
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// An error that quotes the invalid value.
fn invalid(name: &str, what: &str, value: &Value) -> Failure {
    let shown = match value {
        Value::String(text) => text.clone(),
        // Other values are quoted as shortened JSON.
        other => other.to_string(),
    };
    let shown = shorten(&shown, MAX_SHOWN);
    Failure::caller(format!("`{name}` {what}: `{shown}`"))
}

fn integer(
    name: &str,
    value: &Value,
    bounds: std::ops::RangeInclusive<usize>,
) -> Result<usize, Failure> {
    let (least, most) = (*bounds.start(), *bounds.end());
    // In JSON, `10.0` is an integer too.
    let integer = value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and within bounds that are far below 2^53"
        )]
        (number.fract() == 0.0 && (0.0..=1e9).contains(&number)).then_some(number as u64)
    });
    let size = integer.and_then(|number| usize::try_from(number).ok());
    size.filter(|size| bounds.contains(size)).ok_or_else(|| {
        invalid(
            name,
            &format!("is not a whole number from {least} to {most}"),
            value,
        )
        .hint(format!(
            "pass a number from {least} to {most}, or leave it out"
        ))
    })
}

fn sort(value: &Value) -> Result<SortOrder, Failure> {
    match value.as_str() {
        Some("relevance") => Ok(SortOrder::Relevance),
        Some("newest") => Ok(SortOrder::Newest),
        Some("oldest") => Ok(SortOrder::Oldest),
        _ => Err(invalid(SORT, "is not an order", value)
            .hint(format!("allowed are {}", quoted(&ORDERS)))),
    }
}

fn facets(value: &Value, parameters: &FindParameters) -> Result<Vec<(String, String)>, Failure> {
    let names: Vec<_> = parameters
        .facets
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let allowed = || format!("allowed are {}", quoted(&names));
    let several = texts(FACETS, value, MAX_FACETS).map_err(|failure| failure.hint(allowed()))?;
    let mut facets: Vec<(String, String)> = Vec::new();
    for requested in several {
        let known = parameters
            .facets
            .iter()
            .find(|(name, field)| name == requested || field == requested);
        let known = known.ok_or_else(|| {
            invalid(FACETS, "has no such field", &Value::from(requested)).hint(allowed())
        })?;
        if !facets.contains(known) {
            facets.push(known.clone());
        }
    }
    Ok(facets)
}

/// Accepts one string or a list of strings.
fn texts<'v>(name: &str, value: &'v Value, most: usize) -> Result<Vec<&'v str>, Failure> {
    let found: Option<Vec<_>> = match value {
        Value::String(text) => Some(vec![text.as_str()]),
        Value::Array(items) if items.len() > most => {
            return Err(Failure::caller(format!(
                "`{name}` has more than {most} values"
            )));
        }
        Value::Array(items) => items.iter().map(Value::as_str).collect(),
        _ => None,
    };
    found.ok_or_else(|| invalid(name, "is not a text", value))
}

fn filters<'v>(
    parameters: &FindParameters,
    catalog: &Catalog,
    get: impl Fn(&str) -> Option<&'v Value>,
) -> Result<Vec<Filter>, Failure> {
    let mut filters = Vec::new();
    let mut bounds: Option<(&FilterParameter, LowerBound)> = None;
    for parameter in &parameters.filters {
        // Hosts send an empty list for a filter that nobody chose.
        let is_empty = |value: &&Value| value.as_array().is_some_and(Vec::is_empty);
        let Some(value) = get(&parameter.name).filter(|value| !is_empty(value)) else {
            continue;
        };
        let name = &parameter.name;
        let field = catalog.field(&parameter.field);
        let test = match &parameter.kind {
            ParameterKind::OneOf(all) => {
                filters.push(one_of(parameter, field, all, value)?);
                continue;
            }
            ParameterKind::Text(_) => {
                let several = texts(name, value, MAX_VALUES)?;
                filters.push(any(parameter, several.into_iter().map(str::to_owned)));
                continue;
            }
            ParameterKind::Flag => FieldTest::Bool(value.as_bool().ok_or_else(|| {
                invalid(name, "is neither true nor false", value)
                    .hint("allowed are `true` and `false`")
            })?),
            ParameterKind::AtLeast(_) => number(name, value).map(|from| FieldTest::Number {
                from: Some(from),
                to: None,
            })?,
            ParameterKind::AtMost(_) => number(name, value).map(|to| FieldTest::Number {
                from: None,
                to: Some(to),
            })?,
            ParameterKind::From(_) => day(name, value).map(|from| FieldTest::Date {
                from: Some(from),
                to: None,
            })?,
            ParameterKind::To(_) => day(name, value).map(|to| FieldTest::Date {
                from: None,
                to: Some(to),
            })?,
        };
        check_order(&mut bounds, parameter, &test)?;
        filters.push(Filter::Field {
            name: parameter.field.clone(),
            test,
        });
    }
    Ok(filters)
}

/// The lower bound of a range, kept until its upper bound is read.
enum LowerBound {
    Number(f64),
    Day(String),
}

/// Refuses an inverted range, which would silently match nothing.
fn check_order<'p>(
    lower: &mut Option<(&'p FilterParameter, LowerBound)>,
    parameter: &'p FilterParameter,
    test: &FieldTest,
) -> Result<(), Failure> {
    let edge = match test {
        FieldTest::Number {
            from: Some(from), ..
        } => Some(LowerBound::Number(*from)),
        FieldTest::Date {
            from: Some(from), ..
        } => Some(LowerBound::Day(from.clone())),
        _ => None,
    };
    if let Some(edge) = edge {
        *lower = Some((parameter, edge));
        return Ok(());
    }
    let Some((first, edge)) = lower
        .take()
        .filter(|(first, _)| first.field == parameter.field)
    else {
        return Ok(());
    };
    let is_inverted = match (edge, test) {
        (LowerBound::Number(from), FieldTest::Number { to: Some(to), .. }) => from > *to,
        (LowerBound::Day(from), FieldTest::Date { to: Some(to), .. }) => from > *to,
        _ => false,
    };
    if is_inverted {
        let message = format!("`{}` is greater than `{}`", first.name, parameter.name);
        return Err(Failure::caller(message).hint("swap the two values"));
    }
    Ok(())
}

fn number(name: &str, value: &Value) -> Result<f64, Failure> {
    let number = value.as_f64().filter(|number| number.is_finite());
    number
        .ok_or_else(|| invalid(name, "is not a number", value).hint("pass a number without quotes"))
}

/// Parses a day into the ISO form in which days are compared.
fn day(name: &str, value: &Value) -> Result<String, Failure> {
    let day = value.as_str().and_then(Day::parse);
    day.map(|day| day.to_string()).ok_or_else(|| {
        invalid(name, "is not a day", value).hint("write it as YYYY-MM-DD, such as `2024-05-28`")
    })
}

fn one_of(
    parameter: &FilterParameter,
    field: Option<&CatalogField>,
    all: &[String],
    value: &Value,
) -> Result<Filter, Failure> {
    let allowed = || {
        let all: Vec<_> = all.iter().map(|value| format!("`{value}`")).collect();
        format!("allowed are {}", options(&all, MAX_NAMED_CHARS))
    };
    let name = &parameter.name;
    let several = texts(name, value, MAX_VALUES).map_err(|failure| failure.hint(allowed()))?;
    let mut values = Vec::new();
    for written in several {
        let Some(known) = field.and_then(|field| field.value(written)) else {
            let suggestion = field.and_then(|field| field.nearest(written));
            let suggestion = suggestion.map(|suggestion| format!("did you mean `{suggestion}`? "));
            return Err(
                invalid(name, "has no such value", &Value::from(written)).hint(format!(
                    "{}{}",
                    suggestion.unwrap_or_default(),
                    allowed()
                )),
            );
        };
        values.push(known.to_owned());
    }
    Ok(any(parameter, values.into_iter()))
}

/// A filter that matches any of these values (OR).
fn any(parameter: &FilterParameter, values: impl Iterator<Item = String>) -> Filter {
    let is = |value| Filter::Field {
        name: parameter.field.clone(),
        test: FieldTest::Is(value),
    };
    let mut parts: Vec<_> = values.map(is).collect();
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            Filter::Any(parts)
        }
    }
}
