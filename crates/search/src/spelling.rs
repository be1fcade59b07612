//! Spelling correction and prefix completion: replaces a query word that no document contains by likely ones. The
//! last word typed is completed as a prefix; other words are corrected within an edit distance of one or two.

use std::collections::BTreeMap;

use crate::analysis::QueryTerm;
use crate::edit_distance::edit_distance;

/// The most terms of the dictionary that a word is compared with: those with the same first letter, in the order of the
/// dictionary. It bounds the time of a correction on an index with millions of terms, at the price of the terms that
/// come last.
pub(crate) const MAX_COMPARED: usize = 200_000;

/// The most completions of a prefix, and the most corrections of a typo. All of them are searched in place of the word.
/// There may be more completions, because each contains what was typed; a correction changes it.
const MAX_COMPLETIONS: usize = 4;
const MAX_CORRECTIONS: usize = 2;

/// The most words of a question that are corrected. A question with more unknown words is in a language that the
/// documents are not in, or no question.
const MAX_CORRECTED: usize = 4;

/// The shortest prefix that is completed, in characters; shorter ones match too much.
const MIN_PREFIX_CHARS: usize = 3;

/// The shortest words that may have one edit and two edits, in characters. Nearly every edit of a short word makes
/// another word: `fern`, `tern` and `fera` are one letter apart. The longer a word is, the fewer neighbours it has by
/// chance.
const ONE_EDIT_CHARS: usize = 4;
const TWO_EDITS_CHARS: usize = 8;

/// The term dictionary of an index, as spelling correction sees it.
pub(crate) trait SpellingDictionary {
    /// The error of reading the dictionary.
    type Error;

    /// Whether a document contains the term.
    fn contains_term(&self, term: &str) -> Result<bool, Self::Error>;

    /// The terms that begin with a character, at most [`MAX_COMPARED`], each with its document frequency. Corrections
    /// keep the first letter: it is rarely the wrong one, and in a sorted dictionary it limits the search to one range.
    fn terms_starting_with(&self, first: char) -> Result<BTreeMap<String, u64>, Self::Error>;

    /// Like [`Self::terms_starting_with`] the first character of `word`, but an engine may leave out terms that are
    /// too far from `word` where that is cheaper.
    fn similar_terms(&self, word: &str) -> Result<BTreeMap<String, u64>, Self::Error> {
        match word.chars().next() {
            Some(first) => self.terms_starting_with(first),
            None => Ok(BTreeMap::new()),
        }
    }
}

/// Replaces each term that no document contains by its completions or corrections. A term without any stays.
pub(crate) fn correct<D: SpellingDictionary>(
    terms: &mut Vec<QueryTerm>,
    dictionary: &D,
) -> Result<(), D::Error> {
    let last = terms.len().saturating_sub(1);
    let mut corrected = Vec::with_capacity(terms.len());
    let mut left = MAX_CORRECTED;
    for (at, term) in terms.drain(..).enumerate() {
        // Parts, compounds and n-grams have other terms beside them.
        let may_be_wrong = left > 0 && term.is_word() && may_be_misspelled(term.text(), at == last);
        let is_known = !may_be_wrong || contains_any(dictionary, &term.forms)?;
        let replacements = if is_known {
            Vec::new()
        } else {
            left -= 1;
            suggestions(
                term.text(),
                at == last,
                &dictionary.similar_terms(term.text())?,
            )
        };
        if replacements.is_empty() {
            corrected.push(term);
            continue;
        }
        corrected.extend(replacements.into_iter().map(|text| term.replaced(text)));
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

/// The edits that a word may have. A number with another digit is another number.
fn max_edits(word: &str) -> usize {
    if word.contains(|c: char| c.is_numeric()) {
        0
    } else {
        max_edits_for(word.chars().count())
    }
}

/// The edits that a word of so many characters may have.
pub(crate) fn max_edits_for(chars: usize) -> usize {
    match chars {
        ..ONE_EDIT_CHARS => 0,
        ONE_EDIT_CHARS..TWO_EDITS_CHARS => 1,
        _ => 2,
    }
}

/// Whether `term` is within the allowed edit distance of `word`.
pub(crate) fn is_within_edits(word: &str, term: &str) -> bool {
    let letters: Vec<char> = word.chars().collect();
    edit_distance(&letters, term, max_edits(word)).is_some()
}

fn is_prefix(word: &str, is_last: bool) -> bool {
    is_last && word.chars().count() >= MIN_PREFIX_CHARS
}

/// Whether a word is long enough for any correction.
fn may_be_misspelled(word: &str, is_last: bool) -> bool {
    is_prefix(word, is_last) || max_edits(word) > 0
}

fn suggestions(word: &str, is_last: bool, known: &BTreeMap<String, u64>) -> Vec<String> {
    if is_prefix(word, is_last) {
        let completions = known.iter().filter(|(term, _)| term.starts_with(word));
        let completions = most_frequent(
            completions.map(|(term, count)| (0, term, *count)),
            MAX_COMPLETIONS,
        );
        if !completions.is_empty() {
            return completions;
        }
    }
    let edits = max_edits(word);
    if edits == 0 {
        return Vec::new();
    }
    let word: Vec<char> = word.chars().collect();
    let near = known.iter().filter_map(|(term, count)| {
        edit_distance(&word, term, edits).map(|edits| (edits, term, *count))
    });
    most_frequent(near, MAX_CORRECTIONS)
}

/// The closest terms, the most frequent first. Only those at the smallest distance count: a frequent term two edits
/// away would otherwise push out the rare one that differs by a single letter.
fn most_frequent<'t>(
    terms: impl Iterator<Item = (usize, &'t String, u64)>,
    limit: usize,
) -> Vec<String> {
    let mut terms: Vec<_> = terms.collect();
    terms.sort_by(|left, right| {
        let counts = right.2.cmp(&left.2);
        left.0
            .cmp(&right.0)
            .then(counts)
            .then_with(|| left.1.cmp(right.1))
    });
    let nearest = terms.first().map_or(0, |(edits, _, _)| *edits);
    terms.retain(|(edits, _, _)| *edits == nearest);
    let first = terms.into_iter().take(limit);
    first.map(|(_, term, _)| term.clone()).collect()
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
    fn typos_are_corrected_and_prefixes_completed() {
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

    /// An empty dictionary that counts the scans.
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
    fn few_words_of_a_question_are_corrected() {
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
}
