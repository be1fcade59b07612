//! Edit distance, for spelling correction and for names that are written almost right.

/// The Damerau-Levenshtein distance (insertions, deletions, substitutions and transpositions of adjacent characters) of
/// two words, if it is at most `limit`. It stops early when a whole row exceeds the limit: a word is compared with
/// thousands of terms, and nearly all of them are far away.
pub(crate) fn edit_distance(left: &[char], right: &str, limit: usize) -> Option<usize> {
    let right: Vec<char> = right.chars().take(left.len() + limit + 1).collect();
    if left.len().abs_diff(right.len()) > limit {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, own) in left.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let at = |line: &[usize], column: usize| line.get(column).copied().unwrap_or(limit + 1);
            let mut cost = at(&last, column) + usize::from(own != other);
            cost = cost
                .min(at(&last, column + 1) + 1)
                .min(at(&line, column) + 1);
            let is_swapped = row > 0
                && column > 0
                && left.get(row - 1) == Some(other)
                && right.get(column - 1) == Some(own);
            if is_swapped {
                cost = cost.min(at(&before_last, column - 1) + 1);
            }
            line.push(cost);
        }
        if line.iter().all(|cost| *cost > limit) {
            return None;
        }
        before_last = std::mem::replace(&mut last, line);
    }
    last.last().copied().filter(|distance| *distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_counted_up_to_their_bound() {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        for (left, right, expected) in [
            ("", "", Some(0)),
            ("abc", "abc", Some(0)),
            ("abc", "acb", Some(1)),
            ("abc", "abcd", Some(1)),
            ("abc", "xbc", Some(1)),
            ("abcd", "badc", Some(2)),
            ("abc", "xyz", None),
            ("a", "abcd", None),
        ] {
            assert_eq!(
                edit_distance(&letters(left), right, 2),
                expected,
                "{left} {right}"
            );
        }
    }

    #[test]
    fn distance_counts_letters() {
        let of = |left: &str, right: &str, limit| {
            edit_distance(&left.chars().collect::<Vec<_>>(), right, limit)
        };
        assert_eq!(of("labour", "labor", 2), Some(1));
        assert_eq!(of("ab", "ba", 2), Some(1));
        assert_eq!(of("kitten", "sitting", 3), Some(3));
        assert_eq!(of("kitten", "sitting", 2), None);
        assert_eq!(of("a", &"a".repeat(1_000_000), 2), None);
    }
}
