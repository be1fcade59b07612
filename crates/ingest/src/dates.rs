//! Date parsing: dates in the notations people use, normalized to ISO 8601 (`YYYY-MM-DD`).
//!
//! A date that can be read in two ways, such as `03/04/2024`, is rejected rather than guessed.

pub(crate) mod written_date;

use crate::clean::clean_line;

/// The order in which a column writes year, month and day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DateOrder {
    /// ISO order, `2024-03-12`, also with slashes or dots.
    YearFirst,
    /// Day before month, as in Europe: `12.03.2024`, `12/03/2024`.
    DayFirst,
    /// Month before day, as in the United States: `03/12/2024`.
    MonthFirst,
    /// The month as a word, in either order: `12 Mar 2024`, `March 12, 2024`.
    Named,
}

/// A calendar date, and the time of day if one was written that is not midnight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DateAndTime {
    pub day: String,
    pub time: Option<String>,
}

impl DateOrder {
    /// Infers the only order in which every cell of a column is a valid date. `03/04/2024` is valid in two
    /// orders, so some cell has to rule one out. Dots are only ever used with the day first.
    pub(crate) fn infer_order(cells: &[&str]) -> Option<Self> {
        let all = |order| {
            cells
                .iter()
                .all(|cell| parse_in_order(cell, order).is_some())
        };
        if all(Self::YearFirst) {
            return Some(Self::YearFirst);
        }
        match (all(Self::DayFirst), all(Self::MonthFirst)) {
            (true, true) if cells.iter().all(|cell| cell.contains('.')) => Some(Self::DayFirst),
            (true, true) => None,
            (true, false) => Some(Self::DayFirst),
            (false, true) => Some(Self::MonthFirst),
            (false, false) => all(Self::Named).then_some(Self::Named),
        }
    }
}

/// Parses a cell as a date in the given order, with the time that may follow it.
pub(crate) fn parse_in_order(cell: &str, order: DateOrder) -> Option<DateAndTime> {
    /// No date with a time is longer than this.
    const MAX_BYTES: usize = 48;
    if cell.len() > MAX_BYTES || !cell.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (date, time) = match cell.find(':') {
        // The hour is the number before the first colon.
        Some(colon) => {
            let before = cell.get(..colon)?;
            let at = before.rfind(['T', 't', ' '])?;
            (cell.get(..at)?, cell.get(at + 1..))
        }
        None => (cell, None),
    };
    let day = match order {
        DateOrder::Named => parse_month_name_date(date.trim().trim_end_matches(','))?,
        _ => parse_numeric_date(date.trim(), order)?,
    };
    match time {
        None => Some(DateAndTime { day, time: None }),
        Some(time) => Some(DateAndTime {
            day,
            time: parse_time_of_day(time)?,
        }),
    }
}

/// Parses a time of day: `None` if it is not one, `Some(None)` for midnight, otherwise the time as it was
/// written.
fn parse_time_of_day(time: &str) -> Option<Option<String>> {
    let mut parts = time.splitn(3, ':');
    let two_digits = |part: Option<&str>| -> Option<u32> { part?.get(..2).or(part)?.parse().ok() };
    let (hour, minute) = (two_digits(parts.next())?, two_digits(parts.next())?);
    let is_time_char = |c: char| c.is_ascii_digit() || ":.+- ZzAaPpMm".contains(c);
    if hour > 24 || minute > 59 || !time.chars().all(is_time_char) {
        return None;
    }
    let is_zero_char = |c: char| "0:. Zz".contains(c);
    let midnight = time
        .split('+')
        .next()
        .is_some_and(|time| time.chars().all(is_zero_char));
    Some((!midnight).then(|| clean_line(time)))
}

fn parse_numeric_date(date: &str, order: DateOrder) -> Option<String> {
    let mark = date.chars().find(|c| "-/.".contains(*c))?;
    let parts: Vec<&str> = date.split(mark).collect();
    let [a, b, c] = parts.as_slice() else {
        return None;
    };
    let (year, month, day) = match order {
        DateOrder::YearFirst => (a, b, c),
        DateOrder::DayFirst => (c, b, a),
        DateOrder::MonthFirst => (c, a, b),
        DateOrder::Named => return None,
    };
    format_iso_date(year, number(month)?, day)
}

/// The English month names in lower case.
pub(crate) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Parses a date with a month name, day first or month first, year last.
fn parse_month_name_date(date: &str) -> Option<String> {
    let parts: Vec<&str> = date
        .split([' ', '-', ',', '.'])
        .filter(|part| !part.is_empty())
        .collect();
    let [a, b, year] = parts.as_slice() else {
        return None;
    };
    let (word, day) = if a.starts_with(|c: char| c.is_ascii_digit()) {
        (b, a)
    } else {
        (a, b)
    };
    let word = word.to_lowercase();
    let is =
        |name: &&str| word == **name || (name.starts_with(&word) && (3..=4).contains(&word.len()));
    let month = (1..).zip(MONTHS).find(|(_, name)| is(name))?.0;
    format_iso_date(year, month, day)
}

fn format_iso_date(year: &str, month: u32, day: &str) -> Option<String> {
    let (has_full_year, has_short_day) = (year.len() == 4, (1..=2).contains(&day.len()));
    let (year, day) = (number(year)?, number(day)?);
    (has_full_year && has_short_day && is_calendar_date(year, month, day))
        .then(|| format!("{year:04}-{month:02}-{day:02}"))
}

fn number(digits: &str) -> Option<u32> {
    let all = digits.bytes().all(|byte| byte.is_ascii_digit());
    if all { digits.parse().ok() } else { None }
}

/// Converts days since the Unix epoch to an ISO date, with the civil-from-days algorithm.
pub(crate) fn date_from_epoch_days(days: i64) -> Option<String> {
    // The Gregorian calendar repeats every 400 years, which are this many days.
    const CYCLE: i64 = 146_097;
    // Counting from 1 March of the year 0 puts the leap day at the end of a year.
    let since = days.checked_add(719_468)?;
    let (cycle, day) = (since.div_euclid(CYCLE), since.rem_euclid(CYCLE));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = cycle * 400 + year + i64::from(month <= 2);
    (1..=9_999)
        .contains(&year)
        .then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// Converts milliseconds since the Unix epoch to a date and a time in seconds.
pub(crate) fn from_epoch_millis(millis: i64) -> Option<DateAndTime> {
    const DAY: i64 = 86_400_000;
    let day = date_from_epoch_days(millis.div_euclid(DAY))?;
    let seconds = millis.rem_euclid(DAY) / 1_000;
    let time = (seconds > 0).then(|| {
        format!(
            "{:02}:{:02}:{:02}",
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60
        )
    });
    Some(DateAndTime { day, time })
}

/// Returns the text itself if it is a valid ISO date such as `2024-02-29`.
pub(crate) fn iso_date(text: &str) -> Option<&str> {
    let (found, rest) = split_leading_date(text)?;
    rest.is_empty().then_some(found)
}

/// The date part of an ISO date or timestamp such as `2024-03-12T10:30:00+02:00`. It is the local date as
/// written, with no conversion to UTC.
pub(crate) fn date_part(text: &str) -> Option<&str> {
    let (found, rest) = split_leading_date(text.trim())?;
    let Some(time) = rest.strip_prefix(['T', 't', ' ']) else {
        return rest.is_empty().then_some(found);
    };
    let mut clock = time
        .splitn(3, ':')
        .map(|part| part.get(..2).and_then(|two| two.parse::<u8>().ok()));
    let plausible = clock.next().flatten().is_some_and(|hour| hour < 25)
        && clock.next().flatten().is_some_and(|minute| minute < 60);
    plausible.then_some(found)
}

/// Parses a date in any supported notation and returns it as `YYYY-MM-DD`. An ambiguous date such as
/// `03/04/2024`, which means another day elsewhere, yields `None`.
pub fn parse_date(text: &str) -> Option<String> {
    let cell = clean_line(text);
    let plain = || date_part(&cell).map(str::to_owned);
    let written = || Some(parse_in_order(&cell, DateOrder::infer_order(&[&cell])?)?.day);
    plain().or_else(written)
}

/// Splits a name that begins with an ISO date into the date and the rest.
pub(crate) fn leading_date(text: &str) -> Option<(&str, &str)> {
    split_leading_date(text).filter(|(_, rest)| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn split_leading_date(text: &str) -> Option<(&str, &str)> {
    let (found, rest) = text.split_at_checked(10)?;
    let (year, month, day) = (found.get(..4)?, found.get(5..7)?, found.get(8..)?);
    if found.get(4..5)? != "-" || found.get(7..8)? != "-" {
        return None;
    }
    is_calendar_date(number(year)?, number(month)?, number(day)?).then_some((found, rest))
}

fn is_calendar_date(year: u32, month: u32, day: u32) -> bool {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=last).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_days_that_exist_are_days() {
        for text in ["2024-02-29", "2000-02-29", "0001-01-01", "2024-12-31"] {
            assert_eq!(iso_date(text), Some(text));
        }
        for text in [
            "2023-02-29",
            "1900-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-04-31",
            "2024-4-1",
            "24-04-01",
            "2024/04/01",
            "2024-04-01x",
            "+024-04-01",
            "2024-04-0١",
            "",
            "20240401",
        ] {
            assert_eq!(iso_date(text), None, "{text}");
        }
    }

    #[test]
    fn moments_have_the_day_they_were_written_with() {
        for text in [
            "2024-03-12",
            "2024-03-12T10:30:00Z",
            "2024-03-12 10:30",
            "2024-03-12T23:59:59.5-11:00",
            " 2024-03-12 ",
        ] {
            assert_eq!(date_part(text), Some("2024-03-12"), "{text}");
        }
        for text in [
            "2024-03-12Z",
            "2024-03-12T",
            "2024-03-12Tnoon",
            "2024-03-12T10",
            "2024-03-12 to 2024-03-14",
            "2024-03-12T99:00",
        ] {
            assert_eq!(date_part(text), None, "{text}");
        }
    }

    fn check(cells: &[&str], expect: Option<&[&str]>) {
        let found = DateOrder::infer_order(cells).map(|order| {
            let show = |cell: &&str| {
                let moment = parse_in_order(cell, order).unwrap();
                [Some(moment.day), moment.time]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            cells.iter().map(show).collect::<Vec<_>>()
        });
        let expect = expect.map(|days| days.iter().map(|day| (*day).to_owned()).collect());
        assert_eq!(found, expect, "{cells:?}");
    }

    #[test]
    fn days_are_read_in_the_order_of_their_column() {
        check(
            &["2024-03-12", "2024/3/1"],
            Some(&["2024-03-12", "2024-03-01"]),
        );
        check(
            &["03.04.2024", "1.12.1999 08:15"],
            Some(&["2024-04-03", "1999-12-01 08:15"]),
        );
        check(
            &["03/04/2024", "13/04/2024"],
            Some(&["2024-04-03", "2024-04-13"]),
        );
        check(
            &["3/4/2024 5:04 PM", "4/13/2024 12:00:00"],
            Some(&["2024-03-04 5:04 PM", "2024-04-13 12:00:00"]),
        );
        check(
            &["12 Mar 2024", "March 3, 2024", "1-sept-2023"],
            Some(&["2024-03-12", "2024-03-03", "2023-09-01"]),
        );
        check(
            &["2024-03-12T10:30:00.5+02:00"],
            Some(&["2024-03-12 10:30:00.5+02:00"]),
        );
        check(
            &["2024-03-12T00:00:00Z", "2024-03-12 00:00"],
            Some(&["2024-03-12"; 2]),
        );
    }

    #[test]
    fn ambiguous_and_invalid_dates_are_not_read() {
        for cells in [
            &["03/04/2024", "04/05/2024"][..],
            &["13/04/2024", "04/13/2024"],
            &["12.03.24"],
            &["2023-02-29"],
            &["2024-03-12 to 2024-03-14"],
            &["12 Ma 2024"],
            &["May"],
            &["1.2.3"],
            &["2024-03-12Tnoon:00"],
            &["2024-03-12 25:00"],
            &["10:30"],
            &["1-2"],
            &["-/."],
        ] {
            check(cells, None);
        }
    }

    #[test]
    fn days_are_counted_from_1970() {
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (19_794, "2024-03-12"),
            (-25_509, "1900-02-28"),
            (-25_508, "1900-03-01"),
            (2_932_896, "9999-12-31"),
            (-719_162, "0001-01-01"),
        ] {
            assert_eq!(date_from_epoch_days(days).as_deref(), Some(text), "{days}");
        }
        for days in [2_932_897, -719_163, i64::MAX, i64::MIN] {
            assert_eq!(date_from_epoch_days(days), None, "{days}");
        }
        let moment = from_epoch_millis(1_710_239_405_999).unwrap();
        assert_eq!(
            (moment.day.as_str(), moment.time.as_deref()),
            ("2024-03-12", Some("10:30:05"))
        );
        assert_eq!(from_epoch_millis(-1).unwrap().day, "1969-12-31");
    }

    #[test]
    fn names_may_start_with_a_day() {
        assert_eq!(
            leading_date("2024-03-12-rail"),
            Some(("2024-03-12", "-rail"))
        );
        assert_eq!(leading_date("2024-03-123"), None);
    }
}
