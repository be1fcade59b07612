//! A word that no document has into the words that were probably meant: those it is the beginning
//! of, when it was the last one typed, or those a slip or two away.

use std::collections::BTreeMap;

use crate::analysis::QueryTerm;

/// The most terms a word is compared with. A word that is rare even among its neighbours is not
/// worth more time.
pub(crate) const MAX_COMPARED: usize = 200_000;

/// The most words that one beginning, and that one slip, stands for.
const MAX_ENDINGS: usize = 4;
const MAX_SLIPS: usize = 2;

/// The most words of a question that are looked up. One with more unknown words is in a language that
/// the documents are not in, or no question.
const MAX_CORRECTED: usize = 4;

/// Shorter beginnings stand for too much.
const MIN_BEGINNING_CHARS: usize = 3;

/// From this many characters on a word may have one slip, and from this many on two.
const ONE_SLIP_CHARS: usize = 4;
const TWO_SLIPS_CHARS: usize = 8;

/// The words of an index.
pub(crate) trait SpellingDictionary {
    /// What keeps them from being read.
    type Error;

    /// Whether a document has this one.
    fn contains_term(&self, term: &str) -> Result<bool, Self::Error>;

    /// The terms that begin with this character, at most [`MAX_COMPARED`], each with the number of
    /// documents that have it.
    fn terms_starting_with(&self, first: char) -> Result<BTreeMap<String, u64>, Self::Error>;

    /// The same, without terms that cannot have been meant by `word`, where leaving them out is cheaper.
    fn similar_terms(&self, word: &str) -> Result<BTreeMap<String, u64>, Self::Error> {
        match word.chars().next() {
            Some(first) => self.terms_starting_with(first),
            None => Ok(BTreeMap::new()),
        }
    }
}

/// Replaces each term that no document has by what was probably meant. One for which nothing is
/// near stays.
pub(crate) fn correct<D: SpellingDictionary>(
    terms: &mut Vec<QueryTerm>,
    dictionary: &D,
) -> Result<(), D::Error> {
    let last = terms.len().saturating_sub(1);
    let mut corrected = Vec::with_capacity(terms.len());
    let mut left = MAX_CORRECTED;
    for (at, term) in terms.drain(..).enumerate() {
        // What is no word of its own has words or a net beside it.
        let may_be_wrong = left > 0 && term.is_word() && may_be_misspelled(term.text(), at == last);
        let is_known = !may_be_wrong || contains_any(dictionary, &term.forms)?;
        let meant = if is_known {
            Vec::new()
        } else {
            left -= 1;
            suggestions(
                term.text(),
                at == last,
                &dictionary.similar_terms(term.text())?,
            )
        };
        if meant.is_empty() {
            corrected.push(term);
            continue;
        }
        corrected.extend(meant.into_iter().map(|text| term.replaced(text)));
    }
    *terms = corrected;
    Ok(())
}

fn contains_any<D: SpellingDictionary>(dictionary: &D, forms: &[String]) -> Result<bool, D::Error> {
    for form in forms {
        if dictionary.contains_term(form)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How many slips a word may have. One digit off is another number.
fn max_edits(word: &str) -> usize {
    if word.contains(|c: char| c.is_numeric()) {
        0
    } else {
        max_edits_for(word.chars().count())
    }
}

/// How many slips a word of so many characters may have.
pub(crate) fn max_edits_for(chars: usize) -> usize {
    match chars {
        ..ONE_SLIP_CHARS => 0,
        ONE_SLIP_CHARS..TWO_SLIPS_CHARS => 1,
        _ => 2,
    }
}

/// Whether a slip or two may have made `word` of `term`.
pub(crate) fn is_within_edits(word: &str, term: &str) -> bool {
    let letters = |text: &str| text.chars().collect::<Vec<_>>();
    edit_distance(&letters(word), &letters(term), max_edits(word)).is_some()
}

fn is_beginning(word: &str, is_last: bool) -> bool {
    is_last && word.chars().count() >= MIN_BEGINNING_CHARS
}

/// Whether another word can have been meant at all.
fn may_be_misspelled(word: &str, is_last: bool) -> bool {
    is_beginning(word, is_last) || max_edits(word) > 0
}

fn suggestions(word: &str, is_last: bool, known: &BTreeMap<String, u64>) -> Vec<String> {
    if is_beginning(word, is_last) {
        let endings = known.iter().filter(|(term, _)| term.starts_with(word));
        let endings = most_frequent(endings.map(|(term, count)| (0, term, *count)), MAX_ENDINGS);
        if !endings.is_empty() {
            return endings;
        }
    }
    let slips = max_edits(word);
    if slips == 0 {
        return Vec::new();
    }
    let word: Vec<char> = word.chars().collect();
    let near = known.iter().filter_map(|(term, count)| {
        let other: Vec<char> = term.chars().collect();
        edit_distance(&word, &other, slips).map(|slips| (slips, term, *count))
    });
    most_frequent(near, MAX_SLIPS)
}

/// The first of the nearest, those that most documents have first.
fn most_frequent<'t>(
    terms: impl Iterator<Item = (usize, &'t String, u64)>,
    most: usize,
) -> Vec<String> {
    let mut terms: Vec<_> = terms.collect();
    terms.sort_by(|left, right| {
        let counts = right.2.cmp(&left.2);
        left.0
            .cmp(&right.0)
            .then(counts)
            .then_with(|| left.1.cmp(right.1))
    });
    let nearest = terms.first().map_or(0, |(slips, _, _)| *slips);
    terms.retain(|(slips, _, _)| *slips == nearest);
    let first = terms.into_iter().take(most);
    first.map(|(_, term, _)| term.clone()).collect()
}

/// How many letters have to be put in, left out, replaced or swapped with their neighbour; nothing
/// when that is more than `most`.
fn edit_distance(left: &[char], right: &[char], most: usize) -> Option<usize> {
    if left.len().abs_diff(right.len()) > most {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, letter) in left.iter().enumerate() {
        let mut next = vec![at + 1];
        for (to, other) in right.iter().enumerate() {
            let cell = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
            let swapped = at > 0
                && to > 0
                && left.get(at - 1) == Some(other)
                && right.get(to - 1) == Some(letter);
            let mut least = (cell(&row, to) + usize::from(letter != other))
                .min(cell(&row, to + 1) + 1)
                .min(cell(&next, to) + 1);
            if swapped {
                least = least.min(cell(&before, to - 1) + 1);
            }
            next.push(least);
        }
        if next.iter().min().is_none_or(|least| *least > most) {
            return None;
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().filter(|slips| *slips <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> BTreeMap<String, u64> {
        let terms = [
            ("parliament", 60),
            ("parliamentari", 5),
            ("parlour", 2),
            ("ferri", 40),
            ("ferric", 1),
            ("fern", 3),
            ("1974", 9),
        ];
        terms.map(|(term, count)| (term.to_owned(), count)).into()
    }

    #[test]
    fn a_slip_is_forgiven_and_a_beginning_completed() {
        for (word, is_last, expected) in [
            ("parlaiment", false, &["parliament"][..]),
            ("parlament", false, &["parliament"]),
            ("parlia", true, &["parliament", "parliamentari"]),
            ("parlia", false, &[]),
            ("fer", true, &["ferri", "fern", "ferric"]),
            ("fe", true, &[]),
            ("ferr", false, &["ferri", "fern"]),
            ("ferrie", false, &["ferri", "ferric"]),
            ("1975", true, &[]),
            ("zeppelin", true, &[]),
        ] {
            assert_eq!(suggestions(word, is_last, &known()), expected, "{word}");
        }
    }

    /// Knows nothing, and counts how often it is looked through.
    #[derive(Default)]
    struct CountingDictionary(std::cell::Cell<usize>);

    impl SpellingDictionary for CountingDictionary {
        type Error = std::convert::Infallible;

        fn contains_term(&self, _: &str) -> Result<bool, Self::Error> {
            Ok(false)
        }

        fn terms_starting_with(&self, _: char) -> Result<BTreeMap<String, u64>, Self::Error> {
            self.0.set(self.0.get() + 1);
            Ok(BTreeMap::new())
        }
    }

    #[test]
    fn few_words_of_a_question_are_looked_up() {
        for (text, expected) in [
            ("fern", 1),
            ("fern tarn bern", 3),
            ("fern tarn bern carn", MAX_CORRECTED),
            ("fern tarn bern carn darn", MAX_CORRECTED),
            ("1975 abc fern9 fe", 0),
            ("1975", 1),
        ] {
            let mut terms =
                crate::analysis::query_terms(text, 64, &[crate::analysis::Language::English]);
            let dictionary = CountingDictionary::default();
            let Ok(()) = correct(&mut terms, &dictionary);
            assert_eq!(dictionary.0.get(), expected, "{text}");
        }
    }

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
                edit_distance(&letters(left), &letters(right), 2),
                expected,
                "{left} {right}"
            );
        }
    }
}
