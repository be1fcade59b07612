//! Apple Notes export: reads the creation dates of notes from `Notes Details.csv`, since the notes themselves
//! are plain text without a date.

use std::collections::BTreeMap;

use crate::clean::clean_line;
use crate::dates::{DateOrder, parse_in_order};

/// The most bytes of the list that are read; a row has about a hundred.
pub(crate) const MAX_LIST_BYTES: u64 = 4 * 1024 * 1024;

/// The most rows of the list that are read.
const MAX_NOTES: usize = 50_000;

/// Maps the name of each note to its creation date. Two notes of the same name get no date, and no note gets
/// one where the dates are ambiguous: some accounts write the month first, and the file does not say which
/// do.
pub(crate) fn creation_dates(list: &str) -> BTreeMap<String, String> {
    let mut rows = list.lines().map(split_csv_line);
    let head = rows.next().unwrap_or_default();
    let column = |name: &str| head.iter().position(|cell| cell.eq_ignore_ascii_case(name));
    let (Some(title), Some(created)) = (column("Title"), column("Created On")) else {
        return BTreeMap::new();
    };
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    for row in rows.take(MAX_NOTES) {
        let (Some(name), Some(day)) = (row.get(title), row.get(created)) else {
            continue;
        };
        let known = found.contains_key(name) || day.is_empty();
        found.insert(name.clone(), (!known).then(|| day.clone()));
    }
    let written: Vec<&str> = found.values().flatten().map(String::as_str).collect();
    let Some(order) = DateOrder::infer_order(&written) else {
        return BTreeMap::new();
    };
    let known = found.into_iter().filter_map(|(name, day)| {
        let day = parse_in_order(day.as_deref()?, order)?.day;
        Some((name, day))
    });
    known.collect()
}

/// Splits a row into cells; commas inside quotes do not separate.
fn split_csv_line(line: &str) -> Vec<String> {
    /// More columns than Apple writes.
    const MAX_CELLS: usize = 16;
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted && cells.len() < MAX_CELLS => {
                cells.push(clean_line(&std::mem::take(&mut cell)));
            }
            c => cell.push(c),
        }
    }
    cells.push(clean_line(&cell));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Title, Created On, Modified On, Pinned\n";

    fn check(rows: &str, expect: &[(&str, &str)]) {
        let found = creation_dates(&format!("{HEAD}{rows}"));
        let found: Vec<_> = found
            .iter()
            .map(|(n, d)| (n.as_str(), d.as_str()))
            .collect();
        assert_eq!(found, expect, "{rows}");
    }

    #[test]
    fn notes_have_the_day_they_were_written() {
        check(
            "Ferry,01-14-2026 08:00:00,01-15-2026 08:00:00,No\n\"Salt, and bread\",02-03-2026 19:00:00,,No\n",
            &[("Ferry", "2026-01-14"), ("Salt, and bread", "2026-02-03")],
        );
        check(
            "Ferry,14-01-2026 08:00:00,,No\n",
            &[("Ferry", "2026-01-14")],
        );
    }

    #[test]
    fn a_note_with_an_ambiguous_title_or_date_has_no_date() {
        check("Ferry,02-03-2026 08:00:00,,No\n", &[]);
        check(
            "A,01-14-2026 08:00:00,,\nA,01-15-2026 08:00:00,,\nB,01-16-2026 08:00:00,,\n",
            &[("B", "2026-01-16")],
        );
        check("Ferry\nSalt,,,\n", &[]);
        let other = "Created On,Title\n01-14-2026 08:00:00,Ferry\n";
        assert_eq!(creation_dates(other).len(), 1);
        assert!(creation_dates("Name,Day\nFerry,01-14-2026\n").is_empty());
        assert!(creation_dates("").is_empty());
    }

    #[test]
    fn a_list_ends_at_its_bound() {
        let rows: String = (0..=MAX_NOTES)
            .map(|n| format!("N{n},01-14-2026 08:00:00,,\n"))
            .collect();
        assert_eq!(creation_dates(&format!("{HEAD}{rows}")).len(), MAX_NOTES);
    }
}
