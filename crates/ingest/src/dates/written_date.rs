//! Date parser for the usual spellings of a day, normalized to `YYYY-MM-DD`: `2024/03/12`, `20240312`,
//! `12 March 2024`, `Mar 12, 2024`, `Tue, 12 Mar 2024 10:00:00 GMT`. Dates with an ambiguous order
//! of month and day, such as `03/12/2024`, are not converted.

use crate::dates::{self, MONTHS};

/// The longest text that is tried as a date, in bytes.
const MAX_BYTES: usize = 64;

/// Parses a short text that names exactly one day.
pub(crate) fn parse_written_date(text: &str) -> Option<String> {
    let text = text.trim();
    if text.len() > MAX_BYTES {
        return None;
    }
    if let Some(day) = dates::date_part(text) {
        return Some(day.to_owned());
    }
    parse_digits(text).or_else(|| parse_month_words(text))
}

/// Parses year, month and day in digits, in this order.
fn parse_digits(text: &str) -> Option<String> {
    let first = text.split(['T', 't', ' ']).next()?;
    let numeric = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<_> = first.trim_end_matches('Z').split(['-', '/', '.']).collect();
    match parts.as_slice() {
        [year, month, day] if year.len() == 4 && parts.iter().all(|part| numeric(part)) => {
            iso_date_from_parts(year, month.parse().ok()?, day)
        }
        [whole] if numeric(whole) && (whole.len() == 8 || whole.len() == 14) => {
            iso_date_from_parts(
                whole.get(..4)?,
                whole.get(4..6)?.parse().ok()?,
                whole.get(6..8)?,
            )
        }
        _ => None,
    }
}

/// Parses a date with a month's name, with the day before or after it.
fn parse_month_words(text: &str) -> Option<String> {
    let parts = text.split(|c: char| c.is_whitespace() || c == ',' || c == '-');
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).take(8).collect();
    let at = parts.iter().position(|part| month(part).is_some())?;
    let month = month(parts.get(at)?)?;
    let before = at.checked_sub(1).and_then(|at| parts.get(at));
    let (after, next) = (parts.get(at + 1)?, parts.get(at + 2));
    match (before.and_then(|part| day_number(part)), year(after)) {
        (Some(day), Some(year)) => iso_date_from_parts(year, month, day),
        _ => iso_date_from_parts(year(next?)?, month, day_number(after)?),
    }
}

fn month(word: &str) -> Option<u32> {
    let word = word.trim_end_matches('.').to_lowercase();
    let short = if word == "sept" { "sep" } else { word.as_str() };
    let at = MONTHS
        .iter()
        .position(|name| *name == word || name.get(..3) == Some(short))?;
    u32::try_from(at + 1).ok()
}

fn year(part: &str) -> Option<&str> {
    (part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_digit())).then_some(part)
}

fn day_number(part: &str) -> Option<&str> {
    let digits = ["st", "nd", "rd", "th", "."]
        .iter()
        .find_map(|ending| part.strip_suffix(ending))
        .unwrap_or(part);
    let short = (1..=2).contains(&digits.len());
    (short && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

fn iso_date_from_parts(year: &str, month: u32, day: &str) -> Option<String> {
    let day: u32 = day.parse().ok()?;
    let text = format!("{year}-{month:02}-{day:02}");
    dates::iso_date(&text).is_some().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_spellings_are_days() {
        for text in [
            "2024-03-12",
            "2024-03-12T10:00:00Z",
            "2024/03/12",
            "2024/3/12 10:00",
            "2024.03.12",
            "20240312",
            "20240312100000",
            "20240312T100000Z",
            "12 March 2024",
            "12th march 2024",
            "12. Mar. 2024",
            "March 12, 2024",
            "Mar 12th 2024",
            "Tue, 12 Mar 2024 10:00:00 GMT",
            "12-Mar-2024",
            " 2024-3-12 ",
        ] {
            assert_eq!(
                parse_written_date(text).as_deref(),
                Some("2024-03-12"),
                "{text}"
            );
        }
        assert_eq!(
            parse_written_date("5 Sept 2023").as_deref(),
            Some("2023-09-05")
        );
    }

    #[test]
    fn ambiguous_and_invalid_dates_are_not_parsed() {
        for text in [
            "03/12/2024",
            "12.03.2024",
            "March 2024",
            "2024",
            "2024-13-01",
            "20241301",
            "31 April 2024",
            "marching 12 2024",
            "yesterday",
            "",
        ] {
            assert_eq!(parse_written_date(text), None, "{text}");
        }
    }

    #[test]
    fn a_long_text_is_no_day() {
        let padded = |spaces: usize| format!("12 March{}2024", " ".repeat(spaces));
        assert!(parse_written_date(&padded(MAX_BYTES - 12)).is_some());
        assert!(parse_written_date(&padded(MAX_BYTES - 11)).is_none());
    }
}
