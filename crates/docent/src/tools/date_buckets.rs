//! Date histogram buckets: divides the date range of the corpus into days, months, quarters or years for facet counts.

use docent_search::{Catalog, Day, RangeBound};

/// The most buckets of a histogram; each one costs a count in the index.
pub(super) const MAX_BARS: usize = 24;

/// The field with the document dates.
pub(super) const DATE: &str = "date";

/// Adjacent buckets that cover the date range without gaps.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DateBuckets {
    /// The precision for labels: `day`, `month` or `year`.
    pub(super) unit: &'static str,
    /// The first and the last day of each bucket.
    pub(super) bars: Vec<(Day, Day)>,
}

/// The buckets for the date range of the corpus; `None` when there would be fewer than two.
pub(super) fn date_buckets(catalog: &Catalog) -> Option<DateBuckets> {
    let field = catalog.fields.iter().find(|field| field.name == DATE)?;
    let Some((RangeBound::Date(first), RangeBound::Date(last))) = &field.range else {
        return None;
    };
    bucketize(Day::parse(first)?, Day::parse(last)?)
}

fn bucketize(first: Day, last: Day) -> Option<DateBuckets> {
    let days = usize::try_from(last.number() - first.number()).ok()? + 1;
    let (unit, bars) = if days <= MAX_BARS {
        ("day", bucket_ranges(first, last, |day| day.plus_days(1)))
    } else {
        let (year, month) = parts(first)?;
        let (last_year, last_month) = parts(last)?;
        let months =
            12 * usize::from(last_year - year) + usize::from(last_month) - usize::from(month) + 1;
        let years = usize::from(last_year - year) + 1;
        match months {
            ..=MAX_BARS => ("month", by_months(Day::new(year, month, 1)?, last, 1)),
            // Calendar quarters, from January on.
            _ if years * 4 <= MAX_BARS => ("month", by_months(Day::new(year, 1, 1)?, last, 3)),
            _ => {
                let step = years.div_ceil(MAX_BARS);
                let months = i64::try_from(step * 12).ok()?;
                ("year", by_months(Day::new(year, 1, 1)?, last, months))
            }
        }
    };
    (bars.len() > 1).then_some(DateBuckets { unit, bars })
}

fn by_months(first: Day, last: Day, months: i64) -> Vec<(Day, Day)> {
    bucket_ranges(first, last, |day| day.plus_months(months))
}

fn bucket_ranges(first: Day, last: Day, next: impl Fn(Day) -> Option<Day>) -> Vec<(Day, Day)> {
    let mut bars = Vec::new();
    let mut from = first;
    while from <= last && bars.len() < MAX_BARS {
        let after = next(from).filter(|after| *after > from);
        // The calendar ends with the year 9999, and so does the last bucket.
        let to = after.and_then(|after| after.plus_days(-1)).unwrap_or(last);
        bars.push((from, to.max(from)));
        let Some(after) = after else { break };
        from = after;
    }
    bars
}

/// Splits a day into year and month.
fn parts(day: Day) -> Option<(u16, u8)> {
    let text = day.to_string();
    Some((text.get(..4)?.parse().ok()?, text.get(5..7)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucketized(first: &str, last: &str) -> Option<(&'static str, usize, String, String)> {
        let buckets = bucketize(Day::parse(first).unwrap(), Day::parse(last).unwrap())?;
        for pair in buckets.bars.windows(2) {
            assert_eq!(pair[0].1.plus_days(1), Some(pair[1].0), "no day between");
        }
        let (from, _) = buckets.bars.first().unwrap();
        let (_, to) = buckets.bars.last().unwrap();
        assert!(buckets.bars.len() <= MAX_BARS);
        assert!(*from <= Day::parse(first).unwrap() && *to >= Day::parse(last).unwrap());
        Some((
            buckets.unit,
            buckets.bars.len(),
            from.to_string(),
            to.to_string(),
        ))
    }

    #[test]
    fn every_day_is_in_exactly_one_bucket() {
        let row =
            |unit, bars, from: &str, to: &str| Some((unit, bars, from.to_owned(), to.to_owned()));
        assert_eq!(bucketized("2024-05-28", "2024-05-28"), None);
        assert_eq!(
            bucketized("2024-02-20", "2024-03-14"),
            row("day", 24, "2024-02-20", "2024-03-14")
        );
        assert_eq!(
            bucketized("2024-02-20", "2024-03-15"),
            row("month", 2, "2024-02-01", "2024-03-31")
        );
        assert_eq!(
            bucketized("2023-01-14", "2024-12-30"),
            row("month", 24, "2023-01-01", "2024-12-31")
        );
        assert_eq!(
            bucketized("2023-02-14", "2025-11-02"),
            row("month", 12, "2023-01-01", "2025-12-31")
        );
        assert_eq!(
            bucketized("1990-02-14", "2025-11-02"),
            row("year", 18, "1990-01-01", "2025-12-31")
        );
        assert_eq!(bucketized("0000-01-01", "9999-12-31").unwrap().1, 24);
    }
}
