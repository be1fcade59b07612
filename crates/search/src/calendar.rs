//! Calendar dates: parsing, arithmetic and comparable day numbers, for the proleptic Gregorian years 0 to 9999.

use std::fmt;

/// The day number of 1970-01-01 when 0000-01-01 is day 0.
const EPOCH: i64 = 719_528;

/// The last year that four digits can write.
const LAST_YEAR: u16 = 9_999;

/// A calendar day, from 0000-01-01 to 9999-12-31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day {
    year: u16,
    month: u8,
    day: u8,
}

impl Day {
    /// The day with this year, month and day, if it exists.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        let exists = year <= LAST_YEAR && (1..=days_of_month(year, month)).contains(&day);
        exists.then_some(Self { year, month, day })
    }

    /// Parses `YYYY-MM-DD` and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let is_strict = text.len() == 10 && text.get(4..5)? == "-" && text.get(7..8)? == "-";
        let (year, month, day) = (text.get(..4)?, text.get(5..7)?, text.get(8..)?);
        let year = u16::try_from(digits(year)?).ok()?;
        let month = u8::try_from(digits(month)?).ok()?;
        let day = u8::try_from(digits(day)?).ok()?;
        Self::new(year, month, day).filter(|_| is_strict)
    }

    /// The number of days since 1970-01-01; negative before.
    pub fn number(self) -> i64 {
        let months: i64 = (1..self.month)
            .map(|month| i64::from(days_of_month(self.year, month)))
            .sum();
        days_before_year(i64::from(self.year)) + months + i64::from(self.day) - 1 - EPOCH
    }

    /// The day with the number 0: 1970-01-01.
    pub const EPOCH: Self = Self {
        year: 1970,
        month: 1,
        day: 1,
    };

    /// The day with a number as [`Day::number`] returns it.
    pub fn from_number(number: i64) -> Option<Self> {
        let days = number.checked_add(EPOCH)?;
        if !(0..days_before_year(i64::from(LAST_YEAR) + 1)).contains(&days) {
            return None;
        }
        // 400 years have 146,097 days. The estimate is off by one year at most.
        let mut year = days * 400 / 146_097;
        while days_before_year(year) > days {
            year -= 1;
        }
        while days_before_year(year + 1) <= days {
            year += 1;
        }
        let mut left = days - days_before_year(year);
        let year = u16::try_from(year).ok()?;
        let mut month = 1;
        while left >= i64::from(days_of_month(year, month)) && month < 12 {
            left -= i64::from(days_of_month(year, month));
            month += 1;
        }
        Self::new(year, month, u8::try_from(left + 1).ok()?)
    }

    /// The day this many days later (or earlier, when negative).
    pub fn plus_days(self, days: i64) -> Option<Self> {
        Self::from_number(self.number().checked_add(days)?)
    }

    /// The same day this many months later or earlier, or the last day of a month that is too short.
    pub fn plus_months(self, months: i64) -> Option<Self> {
        let now = i64::from(self.year) * 12 + i64::from(self.month) - 1;
        let then = now.checked_add(months)?;
        let year = u16::try_from(then.div_euclid(12)).ok()?;
        let month = u8::try_from(then.rem_euclid(12) + 1).ok()?;
        Self::new(year, month, self.day.min(days_of_month(year, month)))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

fn is_leap(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_month(year: u16, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// The number of days before a year; year 0 is a leap year.
fn days_before_year(year: i64) -> i64 {
    let last = year - 1;
    365 * year + last.div_euclid(4) - last.div_euclid(100) + last.div_euclid(400) + 1
}

/// Parses one to six ASCII digits and nothing else.
fn digits(text: &str) -> Option<u32> {
    let is_plain = (1..=6).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

/// The period that a written date stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatePeriod {
    /// The first day of the period.
    pub first: Day,
    /// The last day of the period.
    pub last: Day,
    /// Whether it was written relative to today, such as `30d`.
    pub is_ago: bool,
}

impl DatePeriod {
    /// Parses `2024`, `2024-06`, `2024-Q2`, `2024-06-30`, `today`, `yesterday`, `30d`, `6w`, `3m` or `1y`. Slashes,
    /// single digits and full timestamps are accepted too.
    pub(crate) fn parse(written: &str, today: Day) -> Option<Self> {
        let written = written.trim().to_ascii_lowercase();
        match written.as_str() {
            "today" => Some(Self::of(today, today)),
            "yesterday" => {
                let day = today.plus_days(-1)?;
                Some(Self::of(day, day))
            }
            _ => Self::absolute(&written).or_else(|| Self::ago(&written, today)),
        }
    }

    /// The bound that the period gives as the end of a range: its last day, or the first one of a relative period.
    pub(crate) fn end(&self) -> Day {
        if self.is_ago { self.first } else { self.last }
    }

    fn of(first: Day, last: Day) -> Self {
        Self {
            first,
            last,
            is_ago: false,
        }
    }

    fn absolute(written: &str) -> Option<Self> {
        let mut parts = written.splitn(3, ['-', '/']);
        let year = parts.next().filter(|year| year.len() == 4)?;
        let year = u16::try_from(digits(year)?).ok()?;
        let Some(month) = parts.next() else {
            return Some(Self::of(Day::new(year, 1, 1)?, Day::new(year, 12, 31)?));
        };
        let day = parts.next();
        if let Some(quarter) = month.strip_prefix('q') {
            let quarter = digits(quarter).filter(|quarter| (1..=4).contains(quarter))?;
            let first = u8::try_from(quarter * 3 - 2).ok()?;
            return day.is_none().then_some(Self::months(year, first, 3)?);
        }
        let month = u8::try_from(digits(month).filter(|_| month.len() <= 2)?).ok()?;
        let Some(day) = day else {
            return Self::months(year, month, 1);
        };
        let day = day.split(['t', ' ']).next()?;
        let day = u8::try_from(digits(day).filter(|_| day.len() <= 2)?).ok()?;
        let day = Day::new(year, month, day)?;
        Some(Self::of(day, day))
    }

    fn months(year: u16, month: u8, count: u8) -> Option<Self> {
        let last = month.checked_add(count - 1)?;
        let end = Day::new(year, last, days_of_month(year, last).max(1))?;
        Some(Self::of(Day::new(year, month, 1)?, end))
    }

    fn ago(written: &str, today: Day) -> Option<Self> {
        let unit = written.find(|c: char| !c.is_ascii_digit())?;
        let (count, unit) = written.split_at_checked(unit)?;
        let count = i64::from(digits(count)?);
        let first = match unit {
            "d" | "day" | "days" => today.plus_days(-count),
            "w" | "week" | "weeks" => today.plus_days(-7 * count),
            "m" | "month" | "months" => today.plus_months(-count),
            "y" | "year" | "years" => today.plus_months(-12 * count),
            _ => None,
        }?;
        Some(Self {
            first,
            last: today,
            is_ago: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        Day::parse(text).unwrap()
    }

    #[test]
    fn every_day_has_its_own_number() {
        assert_eq!(day("1970-01-01").number(), 0);
        assert_eq!(day("2000-03-01").number(), 11_017);
        assert_eq!(day("1969-12-31").number(), -1);
        let first = day("0000-01-01").number();
        let last = day("9999-12-31").number();
        let mut before = None;
        for number in first..=last {
            let day = Day::from_number(number).unwrap();
            assert_eq!(day.number(), number);
            assert!(before < Some(day));
            before = Some(day);
        }
        for outside in [first - 1, last + 1, i64::MIN, i64::MAX] {
            assert_eq!(Day::from_number(outside), None);
        }
    }

    #[test]
    fn only_days_that_exist_are_parsed() {
        for text in ["2024-02-29", "2000-02-29", "0000-01-01", "9999-12-31"] {
            assert_eq!(day(text).to_string(), text);
        }
        for text in [
            "2023-02-29",
            "1900-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-04-31",
            "2024-4-1",
            "",
            "2024/04/01",
            "2024-04-01x",
            "+024-04-01",
            "2024-04-0١",
            "2024-04-1",
            "20240401",
            "２024-1-1",
            "2024-04-00",
        ] {
            assert_eq!(Day::parse(text), None, "{text}");
        }
    }

    #[test]
    fn months_and_days_are_added_by_the_calendar() {
        let cases = [
            ("2024-01-31", 1, Some("2024-02-29")),
            ("2024-03-31", -1, Some("2024-02-29")),
            ("2023-12-05", 1, Some("2024-01-05")),
            ("2024-02-29", 12, Some("2025-02-28")),
            ("0000-01-01", -1, None),
            ("9999-12-01", 1, None),
            ("2024-01-01", i64::MAX, None),
            ("2024-01-01", i64::MIN, None),
        ];
        for (from, months, expected) in cases {
            assert_eq!(
                day(from).plus_months(months),
                expected.map(day),
                "{from} {months}"
            );
        }
        assert_eq!(day("2024-02-28").plus_days(2), Some(day("2024-03-01")));
        assert_eq!(day("9999-12-31").plus_days(1), None);
        assert_eq!(day("2024-02-28").plus_days(i64::MAX), None);
    }

    #[test]
    fn written_dates_are_periods() {
        let today = day("2024-08-15");
        let cases = [
            ("2024", "2024-01-01", "2024-12-31"),
            ("2024-06", "2024-06-01", "2024-06-30"),
            ("2024-02", "2024-02-01", "2024-02-29"),
            ("2024-6", "2024-06-01", "2024-06-30"),
            ("2024/06/07", "2024-06-07", "2024-06-07"),
            ("2024-06-07T10:00:00Z", "2024-06-07", "2024-06-07"),
            ("2024-Q3", "2024-07-01", "2024-09-30"),
            ("2024-q4", "2024-10-01", "2024-12-31"),
            ("today", "2024-08-15", "2024-08-15"),
            ("Yesterday", "2024-08-14", "2024-08-14"),
            ("30d", "2024-07-16", "2024-08-15"),
            ("6w", "2024-07-04", "2024-08-15"),
            ("3m", "2024-05-15", "2024-08-15"),
            ("1y", "2023-08-15", "2024-08-15"),
            ("0d", "2024-08-15", "2024-08-15"),
            ("30days", "2024-07-16", "2024-08-15"),
        ];
        for (written, first, last) in cases {
            let period =
                DatePeriod::parse(written, today).map(|period| (period.first, period.last));
            assert_eq!(period, Some((day(first), day(last))), "{written}");
        }
    }

    #[test]
    fn invalid_periods_are_not_parsed() {
        for written in [
            "",
            "-",
            "24",
            "02024",
            "2024-",
            "2024-13",
            "2024-02-30",
            "2024-06-07-08",
            "2024-Q5",
            "2024-Q0",
            "2024-Q1-1",
            "d",
            "30",
            "30x",
            "-30d",
            "99999999999999999999d",
            "999999y",
            "soon",
            "2024-006",
            "2024-06-007",
            "२०२४",
        ] {
            assert_eq!(
                DatePeriod::parse(written, day("2024-08-15")),
                None,
                "{written}"
            );
        }
    }
}
