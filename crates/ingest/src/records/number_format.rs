//! Number parsing for table cells, in the notation that a column uses.

use serde_json::Number;

/// The decimal and grouping notation of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberFormat {
    /// `1234.5`: a decimal point and no grouping marks.
    Plain,
    /// `1,234.5`: commas group thousands, the point is decimal.
    CommaGroups,
    /// `1.234,5`: points group thousands, the comma is decimal.
    CommaDecimal,
}

impl NumberFormat {
    /// Infers the notation in which every cell is a number. A lone `1,234` could mean two different
    /// numbers, so at least one cell must settle what the comma means.
    pub(crate) fn infer_format(cells: &[&str]) -> Option<Self> {
        let all = |style| cells.iter().all(|cell| parse_number(cell, style).is_some());
        let proven = |proof: fn(&str) -> bool| cells.iter().any(|cell| proof(cell));
        if all(Self::Plain) {
            Some(Self::Plain)
        } else if proven(proves_groups) && all(Self::CommaGroups) {
            Some(Self::CommaGroups)
        } else if proven(proves_decimal) && all(Self::CommaDecimal) {
            Some(Self::CommaDecimal)
        } else {
            None
        }
    }
}

fn proves_groups(cell: &str) -> bool {
    let commas = cell.matches(',').count();
    commas > 1
        || (commas == 1
            && cell
                .split_once(',')
                .is_some_and(|(_, rest)| rest.contains('.')))
}

fn proves_decimal(cell: &str) -> bool {
    let Some((whole, part)) = cell.split_once(',') else {
        return cell.matches('.').count() > 1;
    };
    whole.contains('.') || part.len() != 3 || whole.trim_start_matches('-') == "0"
}

/// Parses one cell as a number. Cells that start with a zero or a plus are codes or phone numbers, and
/// cells with more digits than an `f64` keeps exactly are identifiers, so both stay text.
pub(crate) fn parse_number(cell: &str, style: NumberFormat) -> Option<Number> {
    /// A float keeps this many decimal digits exactly. A cell with more, such as the number of an account or a card,
    /// would come out with other last digits if it were read as a number, so it stays a text.
    const MOST_DIGITS: usize = 15;
    let plain = match style {
        NumberFormat::Plain => cell.to_owned(),
        NumberFormat::CommaGroups => ungrouped(cell, ',', '.')?,
        NumberFormat::CommaDecimal => ungrouped(cell, '.', ',')?,
    };
    let unsigned = plain.strip_prefix('-').unwrap_or(&plain);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, part) = match mantissa.split_once('.') {
        Some((whole, part)) => (whole, Some(part)),
        None => (mantissa, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let good = digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && part.is_none_or(digits)
        && exponent.is_none_or(|text| digits(text.strip_prefix(['-', '+']).unwrap_or(text)))
        && whole.len() <= MOST_DIGITS;
    if !good {
        return None;
    }
    match plain.parse::<i64>() {
        Ok(number) if exponent.is_none() => Some(number.into()),
        _ => Number::from_f64(plain.parse().ok()?),
    }
}

/// Removes the grouping marks and turns the decimal mark into a point.
fn ungrouped(cell: &str, group: char, decimal: char) -> Option<String> {
    let (whole, part) = match cell.split_once(decimal) {
        Some((whole, part)) => (whole, Some(part)),
        None => (cell, None),
    };
    let mut groups = whole.split(group);
    let first = groups.next()?;
    let mut plain = first.to_owned();
    let mut grouped = false;
    for three in groups {
        if three.len() != 3 {
            return None;
        }
        grouped = true;
        plain.push_str(three);
    }
    if grouped && !(1..=3).contains(&first.trim_start_matches('-').len()) {
        return None;
    }
    if let Some(part) = part {
        plain.push('.');
        plain.push_str(part);
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cells: &[&str], expect: Option<&[f64]>) {
        let found = NumberFormat::infer_format(cells).map(|style| {
            let number = |cell: &&str| parse_number(cell, style).and_then(|number| number.as_f64());
            cells
                .iter()
                .map(number)
                .map(Option::unwrap)
                .collect::<Vec<_>>()
        });
        assert_eq!(found.as_deref(), expect, "{cells:?}");
    }

    #[test]
    fn every_way_of_writing_is_read() {
        check(
            &["0", "-1", "2.50", "1e3", "0.5", "-0.25"],
            Some(&[0.0, -1.0, 2.5, 1000.0, 0.5, -0.25]),
        );
        check(
            &["1,234,567", "1,234", "12"],
            Some(&[1_234_567.0, 1234.0, 12.0]),
        );
        check(&["1,234.5", "999"], Some(&[1234.5, 999.0]));
        check(&["1.234,5", "1.234", "0,25"], Some(&[1234.5, 1234.0, 0.25]));
        check(&["12,5", "3"], Some(&[12.5, 3.0]));
    }

    #[test]
    fn ambiguous_and_invalid_numbers_are_not_read() {
        for cells in [
            &["1,234", "5,678"][..],
            &["1,234.5", "12,5"],
            &["1,23,4"],
            &["1234,567,890"],
            &["007"],
            &["00"],
            &["+1"],
            &["1."],
            &[".5"],
            &["-"],
            &["1e"],
            &["١"],
            &["1 000"],
            &["1234567890123456"],
            &["inf"],
            &["1e999"],
        ] {
            check(cells, None);
        }
        check(&["123456789012345"], Some(&[123_456_789_012_345.0]));
    }
}
