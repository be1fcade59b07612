//! Splitting of long texts into parts that fit into an answer, and the ids of parts and passages.
//!
//! The second part of `doc` has the id `doc#p2`. A document id may contain any characters, including these, so two
//! rules keep every id unambiguous. First, an existing document id always wins. Second, the number of `#` identifies
//! the document: when its id ends in h of them, the part id has (2h + 1) · 2^c, where c is 0 unless a document already
//! has that id, then 1, and so on. Every number is such a product in exactly one way, so the id can be parsed.

use std::iter;
use std::ops::Range;

use docent_search::MAX_ID_BYTES;

/// The most digits of a part number; ten million characters have at most ten thousand parts.
const MAX_DIGITS: usize = 6;

/// Splits a text into parts of at most `max_chars` characters that concatenate to the original. A part ends after the
/// last paragraph in its second half, or else after the last line, or else after the last word.
pub fn split(text: &str, max_chars: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    loop {
        let rest = text.get(start..).unwrap_or_default();
        // A text never has more characters than bytes, so short ones need no counting.
        let length = (rest.len() > max_chars)
            .then(|| rest.char_indices().nth(max_chars.max(1)))
            .flatten()
            .map(|(end, _)| boundary(rest, end));
        let Some(length) = length else {
            parts.push(start..text.len());
            return parts;
        };
        parts.push(start..start + length);
        start += length;
    }
}

/// The best split position in the second half of the first `end` bytes.
fn boundary(text: &str, end: usize) -> usize {
    let middle = (0..=end / 2)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0);
    let half = text.get(middle..end).unwrap_or_default();
    let after = |mark: &str| half.rfind(mark).map(|at| middle + at + mark.len());
    let word = || {
        let (at, space) = half.char_indices().rev().find(|(_, c)| c.is_whitespace())?;
        Some(middle + at + space.len_utf8())
    };
    after("\n\n")
        .or_else(|| after("\n"))
        .or_else(word)
        .unwrap_or(end)
}

/// The candidate ids of part `number` of a document, in the order to try them. The last one is longer than any
/// document id may be, so one of them is always free.
pub fn part_ids(id: &str, number: usize) -> impl Iterator<Item = String> {
    let root = id.trim_end_matches('#').to_owned();
    let marks = 2 * (id.len() - root.len()) + 1;
    let mut next = Some(marks);
    iter::from_fn(move || {
        let marks = next?;
        let name = format!("{root}{}p{number}", "#".repeat(marks));
        next = (name.len() <= MAX_ID_BYTES).then_some(marks * 2);
        Some(name)
    })
}

/// Parses the id of a part into document id and part number.
pub fn parse_part_id(name: &str) -> Option<(String, usize)> {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (head, number) = name.split_at_checked(name.len() - digits)?;
    if number.is_empty() || number.len() > MAX_DIGITS || number.starts_with('0') {
        return None;
    }
    let number = number.parse().ok().filter(|&number| number >= 2)?;
    let head = head.strip_suffix('p')?;
    let root = head.trim_end_matches('#');
    let marks = head.len() - root.len();
    if marks == 0 {
        return None;
    }
    let odd = marks >> marks.trailing_zeros();
    Some((format!("{root}{}", "#".repeat(odd / 2)), number))
}

/// The id of a passage in the results of `find`; the fourth passage is `doc#c3`. `fetch` resolves it to the part of
/// the document that contains the passage.
pub fn passage_id(id: &str, index: usize) -> String {
    format!("{id}#c{index}")
}

/// Parses the id of a passage into document id and passage index.
pub fn parse_passage_id(name: &str) -> Option<(&str, usize)> {
    let (id, digits) = name.rsplit_once("#c")?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = digits == "0" || !digits.starts_with('0');
    if !is_number || !is_plain || digits.len() > MAX_DIGITS {
        return None;
    }
    Some((id, digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str, max: usize) -> Vec<&str> {
        split(text, max)
            .into_iter()
            .map(|range| &text[range])
            .collect()
    }

    #[test]
    fn parts_end_where_a_reader_would_stop() {
        assert_eq!(texts("", 5), [""]);
        assert_eq!(texts("12345", 5), ["12345"]);
        assert_eq!(texts("123456", 5), ["12345", "6"]);
        assert_eq!(texts("a b\n\nc d", 6), ["a b\n\n", "c d"]);
        assert_eq!(texts("a b c\nd e", 7), ["a b c\n", "d e"]);
        assert_eq!(texts("aaaa bbbb", 7), ["aaaa ", "bbbb"]);
        assert_eq!(texts("a bbbbbbbb", 7), ["a bbbbb", "bbb"]);
        assert_eq!(texts("ééééé", 2), ["éé", "éé", "é"]);
    }

    #[test]
    fn names_are_read_back() {
        let first = |id: &str| part_ids(id, 2).next().unwrap();
        assert_eq!(first("doc"), "doc#p2");
        assert_eq!(part_ids("doc", 2).nth(1).unwrap(), "doc##p2");
        assert_eq!(first("doc#"), "doc###p2");
        assert_eq!(first("doc#p2"), "doc#p2#p2");
        assert!(part_ids("doc", 2).last().unwrap().len() > MAX_ID_BYTES);
        for name in [
            "doc",
            "docp2",
            "doc#p1",
            "doc#p0",
            "doc#p02",
            "doc#p",
            "doc#p1234567",
            "#",
            "",
        ] {
            assert_eq!(parse_part_id(name), None, "{name}");
        }
        assert_eq!(
            parse_part_id("doc#p123456"),
            Some(("doc".to_owned(), 123_456))
        );
    }

    #[test]
    fn names_of_passages_are_read_back() {
        for (id, index) in [("doc", 0), ("doc#", 3), ("doc#c1", 999_999)] {
            assert_eq!(parse_passage_id(&passage_id(id, index)), Some((id, index)));
        }
        for name in [
            "doc",
            "doc#c",
            "doc#c01",
            "doc#c-1",
            "doc#c1234567",
            "doc#p2",
            "",
        ] {
            assert_eq!(parse_passage_id(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn parts_together_are_the_text(text in "[a é\\n\u{1F600}]{0,400}", max in 1_usize..50) {
            let parts = texts(&text, max);
            prop_assert_eq!(parts.concat(), text.as_str());
            prop_assert!(parts.iter().all(|part| part.chars().count() <= max));
            prop_assert!(parts.len() == 1 || parts.iter().all(|part| !part.is_empty()));
        }

        #[test]
        fn every_name_means_one_document(id in "[a#p2]{1,12}", number in 2_usize..999_999) {
            for name in part_ids(&id, number) {
                prop_assert_eq!(parse_part_id(&name), Some((id.clone(), number)), "{}", name);
            }
        }
    }
}
