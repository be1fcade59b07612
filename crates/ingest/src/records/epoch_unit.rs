//! Moments that programs store as counts from the beginning of 1970: seconds, or milli-, micro- or nanoseconds.

use crate::dates::{DateAndTime, from_epoch_millis};

/// The unit of a column of such counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EpochUnit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

/// The seconds at the beginning of 1990 and of 2100. A column with a count outside is more likely to hold something
/// else. The ranges of the four units do not overlap.
const PLAUSIBLE_SECONDS: std::ops::Range<i64> = 631_152_000..4_102_444_800;

/// Words in the name of a column that say that it holds moments. Without one, numbers of ten digits are numbers.
const TIME_WORDS: &[&str] = &[
    "at",
    "created",
    "date",
    "datetime",
    "modified",
    "time",
    "timestamp",
    "updated",
];

/// Words in the name of a column that say that it holds something else: a person, an identifier or a duration.
const OTHER_WORDS: &[&str] = &[
    "by", "duration", "elapsed", "id", "ids", "ms", "ns", "us", "user",
];

impl EpochUnit {
    const ALL: [Self; 4] = [Self::Seconds, Self::Millis, Self::Micros, Self::Nanos];

    /// The unit in which all cells of a column are moments of our time; `None` if its name does not speak of time.
    pub(super) fn infer_unit(name: &str, cells: &[&str]) -> Option<Self> {
        let has_any = |of: &[&str]| words(name).any(|word| of.contains(&word.as_str()));
        let speaks_of_time = || has_any(TIME_WORDS) && !has_any(OTHER_WORDS);
        if cells.is_empty() || !speaks_of_time() {
            return None;
        }
        let fits = |unit: &Self| cells.iter().all(|cell| unit.parse(cell).is_some());
        Self::ALL.into_iter().find(fits)
    }

    /// Parses one cell; `None` for anything but digits, and for a moment that is not plausible.
    pub(super) fn parse(self, cell: &str) -> Option<DateAndTime> {
        if !cell.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let count: i64 = cell.parse().ok()?;
        let per_second = self.per_second();
        if !PLAUSIBLE_SECONDS.contains(&(count / per_second)) {
            return None;
        }
        from_epoch_millis(count / per_second * 1_000)
    }

    fn per_second(self) -> i64 {
        match self {
            Self::Seconds => 1,
            Self::Millis => 1_000,
            Self::Micros => 1_000_000,
            Self::Nanos => 1_000_000_000,
        }
    }
}

/// The words of a name such as `created_at`, `Created At` or `createdAt`, in lower case.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::with_capacity(name.len());
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && was_lower {
            spaced.push(' ');
        }
        was_lower = c.is_lowercase();
        spaced.extend(c.to_lowercase());
    }
    let words: Vec<_> = spaced
        .split(|c: char| !c.is_alphanumeric())
        .map(str::to_owned)
        .collect();
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_told_by_its_size() {
        let moment = |name: &str, cell: &str| {
            let unit = EpochUnit::infer_unit(name, &[cell])?;
            unit.parse(cell)
        };
        for cell in [
            "1710239405",
            "1710239405999",
            "1710239405999999",
            "1710239405999999999",
        ] {
            let found = moment("time", cell).unwrap();
            let time = found.time.as_deref();
            assert_eq!((found.day.as_str(), time), ("2024-03-12", Some("10:30:05")));
        }
        for cell in [
            "",
            "-1710239405",
            "17102394050",
            "20240312",
            "1.7e9",
            "1710239405 ",
        ] {
            assert_eq!(moment("time", cell), None, "{cell}");
        }
    }

    #[test]
    fn moments_end_at_their_bounds() {
        let day = |cell: &str| EpochUnit::Seconds.parse(cell).map(|moment| moment.day);
        assert_eq!(day("631151999"), None);
        assert_eq!(day("631152000").as_deref(), Some("1990-01-01"));
        assert_eq!(day("4102444799").as_deref(), Some("2099-12-31"));
        assert_eq!(day("4102444800"), None);
        assert_eq!(day("99999999999999999999"), None);
    }

    #[test]
    fn only_names_that_speak_of_time_count() {
        let is_time = |name: &str| EpochUnit::infer_unit(name, &["1710239405"]).is_some();
        for name in [
            "time",
            "Created At",
            "createdAt",
            "updated_at",
            "unix-timestamp",
            "DATE",
        ] {
            assert!(is_time(name), "{name}");
        }
        for name in [
            "",
            "votes",
            "sentiment",
            "update",
            "rate",
            "id",
            "validated",
            "created_by",
            "updatedById",
            "time_ns",
        ] {
            assert!(!is_time(name), "{name}");
        }
    }

    #[test]
    fn one_other_cell_makes_numbers_of_them_all() {
        let infer = |cells: &[&str]| EpochUnit::infer_unit("time", cells);
        assert_eq!(
            infer(&["1710239405", "1710239406"]),
            Some(EpochUnit::Seconds)
        );
        assert_eq!(infer(&["1710239405", "12"]), None);
        assert_eq!(infer(&["1710239405", "1710239405999"]), None);
        assert_eq!(infer(&[]), None);
    }
}
