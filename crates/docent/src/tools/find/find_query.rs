//! What a model sent to `find` into a question, or into an error from which it can learn what is
//! allowed.

use docent_mcp::Failure;
use docent_search::{
    Catalog, CatalogField, Day, FieldTest, Filter, MAX_FACETS, MAX_LIMIT, MAX_OFFSET, SortOrder,
};
use serde_json::{Map, Value};

use super::parameters::{
    FACETS, FilterParameter, FindParameters, LIMIT, OFFSET, ParameterKind, QUERY, SORT,
};
use super::schema::{ORDERS, options};
use crate::settings::shorten;

/// How many results there are unless somebody says.
pub(super) const DEFAULT_LIMIT: usize = 10;

/// The most values of one parameter that are taken together.
const MAX_VALUES: usize = 16;

/// The most characters of a value that an error repeats.
const MAX_SHOWN: usize = 80;

/// The most characters of the values that an error names: all of them, for all but very long ones.
const MAX_NAMED_CHARS: usize = 2_000;

/// What `find` was asked.
#[derive(Debug)]
pub(super) struct FindQuery {
    pub query: String,
    pub limit: usize,
    pub offset: usize,
    pub sort: SortOrder,
    /// What to count: what it is called, and the field.
    pub facets: Vec<(String, String)>,
    pub filters: Vec<Filter>,
}

/// Reads what was sent. `null` is what hosts send for a parameter that they leave out.
pub(super) fn read(
    given: &Map<String, Value>,
    parameters: &FindParameters,
    catalog: &Catalog,
) -> Result<FindQuery, Failure> {
    let known: Vec<_> = parameters.names().collect();
    if let Some(name) = given.keys().find(|name| !known.contains(&name.as_str())) {
        let message = format!("there is no parameter `{}`", shorten(name, MAX_SHOWN));
        return Err(Failure::caller(message).hint(format!("known are {}", quoted(&known))));
    }
    let get = |name: &str| given.get(name).filter(|value| !value.is_null());
    let Some(query) = get(QUERY) else {
        return Err(Failure::caller("`query` is missing")
            .hint("pass the words to search for as `query`; an empty text lists everything"));
    };
    let query = query
        .as_str()
        .ok_or_else(|| wrong(QUERY, "is not a text", query).hint("pass one text"))?;
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

/// Says what is wrong with a value.
fn wrong(name: &str, what: &str, value: &Value) -> Failure {
    let shown = match value {
        Value::String(text) => text.clone(),
        // What is no text is shown as JSON, of which a little is enough.
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
    // To JSON `10.0` is a whole number too.
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
        wrong(
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
        _ => {
            Err(wrong(SORT, "is not an order", value)
                .hint(format!("allowed are {}", quoted(&ORDERS))))
        }
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
    for asked in several {
        let known = parameters
            .facets
            .iter()
            .find(|(name, field)| name == asked || field == asked);
        let known = known.ok_or_else(|| {
            wrong(FACETS, "has no such field", &Value::from(asked)).hint(allowed())
        })?;
        if !facets.contains(known) {
            facets.push(known.clone());
        }
    }
    Ok(facets)
}

/// One text or several.
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
    found.ok_or_else(|| wrong(name, "is not a text", value))
}

fn filters<'v>(
    parameters: &FindParameters,
    catalog: &Catalog,
    get: impl Fn(&str) -> Option<&'v Value>,
) -> Result<Vec<Filter>, Failure> {
    let mut filters = Vec::new();
    let mut bounds: Option<(&FilterParameter, LowerBound)> = None;
    for parameter in &parameters.filters {
        // No value at all of several is what hosts send when nobody chose one.
        let is_empty = |value: &&Value| value.as_array().is_some_and(Vec::is_empty);
        let Some(value) = get(&parameter.name).filter(|value| !is_empty(value)) else {
            continue;
        };
        let name = &parameter.name;
        let field = catalog.field(&parameter.field);
        let test = match &parameter.takes {
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
                wrong(name, "is neither true nor false", value)
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

/// The lower end of a range.
enum LowerBound {
    Number(f64),
    Day(String),
}

/// Refuses a range whose ends are the wrong way round: nothing would ever be found, and nobody
/// would know why.
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
    let is_turned = match (edge, test) {
        (LowerBound::Number(from), FieldTest::Number { to: Some(to), .. }) => from > *to,
        (LowerBound::Day(from), FieldTest::Date { to: Some(to), .. }) => from > *to,
        _ => false,
    };
    if is_turned {
        let message = format!("`{}` is greater than `{}`", first.name, parameter.name);
        return Err(Failure::caller(message).hint("exchange the two"));
    }
    Ok(())
}

fn number(name: &str, value: &Value) -> Result<f64, Failure> {
    let number = value.as_f64().filter(|number| number.is_finite());
    number.ok_or_else(|| wrong(name, "is not a number", value).hint("pass a number without quotes"))
}

/// A day, in the form in which days are compared.
fn day(name: &str, value: &Value) -> Result<String, Failure> {
    let day = value.as_str().and_then(Day::parse);
    day.map(|day| day.to_string()).ok_or_else(|| {
        wrong(name, "is not a day", value).hint("write it as YYYY-MM-DD, such as `2024-05-28`")
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
            let meant = field.and_then(|field| field.nearest(written));
            let meant = meant.map(|meant| format!("did you mean `{meant}`? "));
            return Err(
                wrong(name, "has no such value", &Value::from(written)).hint(format!(
                    "{}{}",
                    meant.unwrap_or_default(),
                    allowed()
                )),
            );
        };
        values.push(known.to_owned());
    }
    Ok(any(parameter, values.into_iter()))
}

/// Any of these values.
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
