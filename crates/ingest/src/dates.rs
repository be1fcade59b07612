//! Text into days of the calendar, written `YYYY-MM-DD`.

/// The text itself when it is a day that exists, such as `2024-02-29`.
pub(crate) fn day(text: &str) -> Option<&str> {
    let (found, rest) = leading(text)?;
    rest.is_empty().then_some(found)
}

/// The day of a day or of a moment such as `2024-03-12T10:30:00+02:00`, as it was written there.
pub(crate) fn day_of_moment(text: &str) -> Option<&str> {
    let (found, rest) = leading(text.trim())?;
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

/// A day at the start of a name, and what follows it.
pub(crate) fn leading_day(text: &str) -> Option<(&str, &str)> {
    leading(text).filter(|(_, rest)| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn leading(text: &str) -> Option<(&str, &str)> {
    let (found, rest) = text.split_at_checked(10)?;
    let (year, month, day) = (found.get(..4)?, found.get(5..7)?, found.get(8..)?);
    if found.get(4..5)? != "-" || found.get(7..8)? != "-" {
        return None;
    }
    let number = |digits: &str| {
        let all = digits.bytes().all(|byte| byte.is_ascii_digit());
        if all {
            digits.parse::<u32>().ok()
        } else {
            None
        }
    };
    exists(number(year)?, number(month)?, number(day)?).then_some((found, rest))
}

fn exists(year: u32, month: u32, day: u32) -> bool {
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
            assert_eq!(day(text), Some(text));
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
            assert_eq!(day(text), None, "{text}");
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
            assert_eq!(day_of_moment(text), Some("2024-03-12"), "{text}");
        }
        for text in [
            "2024-03-12Z",
            "2024-03-12T",
            "2024-03-12Tnoon",
            "2024-03-12T10",
            "2024-03-12 to 2024-03-14",
            "2024-03-12T99:00",
        ] {
            assert_eq!(day_of_moment(text), None, "{text}");
        }
    }

    #[test]
    fn names_may_start_with_a_day() {
        assert_eq!(
            leading_day("2024-03-12-rail"),
            Some(("2024-03-12", "-rail"))
        );
        assert_eq!(leading_day("2024-03-123"), None);
    }
}
