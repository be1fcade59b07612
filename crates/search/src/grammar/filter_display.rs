//! Formats a filter as a sentence that a person or a model can check.

use std::fmt;

use crate::filter::{FieldTest, Filter, MAX_FILTER_DEPTH};

/// Formats the filter, such as `party is Labor or Greens`.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, 1, f)
    }
}

/// Recurses once per level; [`MAX_FILTER_DEPTH`] bounds the recursion.
fn write(filter: &Filter, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if depth > MAX_FILTER_DEPTH {
        return f.write_str("…");
    }
    match filter {
        Filter::All(parts) if parts.is_empty() => f.write_str("anything"),
        Filter::Any(parts) if parts.is_empty() => f.write_str("nothing"),
        Filter::All(parts) => join(parts, " and ", depth, f),
        Filter::Any(parts) => match one_of(parts) {
            Some((name, values)) => write!(f, "{name} is {}", values.join(" or ")),
            None => join(parts, " or ", depth, f),
        },
        Filter::Not(part) => match &**part {
            Filter::Field {
                name,
                test: FieldTest::Is(value),
            } => write!(f, "{name} is not {value}"),
            Filter::Field {
                name,
                test: FieldTest::Bool(flag),
            } => write!(f, "{name} is not {flag}"),
            part => {
                f.write_str("not (")?;
                write(part, depth + 1, f)?;
                f.write_str(")")
            }
        },
        Filter::Field { name, test } => write!(f, "{name} {}", FieldTestDisplay(test)),
    }
}

fn join(parts: &[Filter], word: &str, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (n, part) in parts.iter().enumerate() {
        if n > 0 {
            f.write_str(word)?;
        }
        let is_group = matches!(part, Filter::All(inner) | Filter::Any(inner) if inner.len() > 1);
        f.write_str(if is_group { "(" } else { "" })?;
        write(part, depth + 1, f)?;
        f.write_str(if is_group { ")" } else { "" })?;
    }
    Ok(())
}

/// The field and its values, when all parts test the same field for a value; they are shortened to `a is x or y`.
fn one_of(parts: &[Filter]) -> Option<(&str, Vec<&str>)> {
    let value = |part| match part {
        &Filter::Field {
            ref name,
            test: FieldTest::Is(ref value),
        } => Some((name.as_str(), value.as_str())),
        _ => None,
    };
    let (name, _) = parts.first().and_then(value)?;
    let values: Option<Vec<&str>> = parts
        .iter()
        .map(|part| {
            value(part)
                .filter(|(own, _)| *own == name)
                .map(|(_, value)| value)
        })
        .collect();
    values.map(|values| (name, values))
}

struct FieldTestDisplay<'t>(&'t FieldTest);

impl fmt::Display for FieldTestDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            FieldTest::Is(value) => write!(f, "is {value}"),
            FieldTest::Bool(flag) => write!(f, "is {flag}"),
            FieldTest::Number { from, to } => numbers(*from, *to, f),
            FieldTest::Date { from, to } => match (from, to) {
                (Some(from), Some(to)) if from == to => write!(f, "is {from}"),
                (Some(from), Some(to)) => write!(f, "from {from} to {to}"),
                (Some(from), None) => write!(f, "from {from}"),
                (None, Some(to)) => write!(f, "up to {to}"),
                (None, None) => f.write_str("is a day"),
            },
        }
    }
}

fn numbers(from: Option<f64>, to: Option<f64>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let least = from.map(|from| match neighbour(from, from.next_down()) {
        Some(outside) => format!("more than {}", short(outside)),
        None => format!("at least {}", short(from)),
    });
    let most = to.map(|to| match neighbour(to, to.next_up()) {
        Some(outside) => format!("less than {}", short(outside)),
        None => format!("at most {}", short(to)),
    });
    match (from, to, least, most) {
        (Some(from), Some(to), _, _) if from == to => write!(f, "is {}", short(from)),
        (_, _, Some(least), Some(most)) => write!(f, "{least} and {most}"),
        (_, _, Some(bound), None) | (_, _, None, Some(bound)) => f.write_str(&bound),
        (_, _, None, None) => f.write_str("is a number"),
    }
}

/// Recovers the number that was written when a strict bound was made by one floating-point step: `>500` is stored
/// as the next number above 500. A number one step off a short one is much longer in decimal than the short one.
fn neighbour(bound: f64, outside: f64) -> Option<f64> {
    let length = |number: f64| format!("{number:e}").len();
    (outside == 0.0 || length(outside) + 4 < length(bound)).then_some(outside)
}

/// Formats a number; very small and large ones get an exponent instead of hundreds of zeros.
fn short(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if (1e-6..1e15).contains(&size) {
        number.to_string()
    } else {
        format!("{number:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(name: &str, value: &str) -> Filter {
        Filter::Field {
            name: name.to_owned(),
            test: FieldTest::Is(value.to_owned()),
        }
    }

    fn number(from: Option<f64>, to: Option<f64>) -> Filter {
        Filter::Field {
            name: "words".to_owned(),
            test: FieldTest::Number { from, to },
        }
    }

    fn date(from: Option<&str>, to: Option<&str>) -> Filter {
        let end = |day: Option<&str>| day.map(str::to_owned);
        Filter::Field {
            name: "date".to_owned(),
            test: FieldTest::Date {
                from: end(from),
                to: end(to),
            },
        }
    }

    #[test]
    fn conditions_read_as_words() {
        let either = Filter::Any(vec![is("party", "Labor"), is("party", "Greens")]);
        let mixed = Filter::Any(vec![is("party", "Labor"), is("state", "The Sound")]);
        let flag = Filter::Field {
            name: "open".to_owned(),
            test: FieldTest::Bool(true),
        };
        let not = |filter: &Filter| Filter::Not(Box::new(filter.clone()));
        let cases = [
            (is("party", "Labor"), "party is Labor"),
            (not(&is("party", "Labor")), "party is not Labor"),
            (either.clone(), "party is Labor or Greens"),
            (not(&either), "not (party is Labor or Greens)"),
            (mixed.clone(), "party is Labor or state is The Sound"),
            (
                Filter::All(vec![flag.clone(), mixed]),
                "open is true and (party is Labor or state is The Sound)",
            ),
            (not(&flag), "open is not true"),
            (number(Some(5.0), Some(5.0)), "words is 5"),
            (
                number(Some(1.5), Some(5.0)),
                "words at least 1.5 and at most 5",
            ),
            (number(Some(500_f64.next_up()), None), "words more than 500"),
            (number(None, Some(0_f64.next_down())), "words less than 0"),
            (number(None, Some(0.1)), "words at most 0.1"),
            (number(Some(-0.0), Some(0.0)), "words is 0"),
            (
                number(Some(f64::MAX), None),
                "words at least 1.7976931348623157e308",
            ),
            (number(None, None), "words is a number"),
            (date(Some("2024-06-01"), None), "date from 2024-06-01"),
            (date(None, Some("2024-06-01")), "date up to 2024-06-01"),
            (
                date(Some("2024-06-01"), Some("2024-06-01")),
                "date is 2024-06-01",
            ),
            (
                date(Some("2024-06-01"), Some("2024-09-30")),
                "date from 2024-06-01 to 2024-09-30",
            ),
            (date(None, None), "date is a day"),
            (Filter::All(Vec::new()), "anything"),
            (Filter::Any(Vec::new()), "nothing"),
        ];
        for (filter, expected) in cases {
            assert_eq!(filter.to_string(), expected);
        }
    }

    #[test]
    fn levels_that_are_too_deep_are_elided() {
        let deep = |levels: usize| {
            (1..levels).fold(date(None, None), |inner, _| {
                Filter::Not(Box::new(Filter::Any(vec![inner])))
            })
        };
        assert!(!deep(16).to_string().contains('…'));
        assert!(deep(17).to_string().contains('…'));
    }
}
