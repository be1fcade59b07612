//! A question into the terms worth looking for.

use super::stop::is_stop_word;
use super::{Purpose, Terms};

/// One term of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueryTerm {
    /// The term, as it stands in the index.
    pub text: String,
    /// How many words stand before it in the question, those without meaning included.
    pub position: usize,
}

/// At most `most` terms of a question, in its order. Words that say nothing are left out, unless
/// there are no others: "to be or not to be" is a question too.
pub(crate) fn query_terms(text: &str, most: usize) -> Vec<QueryTerm> {
    // A word in capitals among others is a name: "WHO guidelines" does not ask who.
    let capitals_mean_something = text.chars().any(char::is_lowercase);
    let mut telling = Vec::new();
    let mut silent = Vec::new();
    let mut terms = Terms::new(text, Purpose::Query);
    while let Some(term) = terms.advance() {
        let written = text.get(term.span.clone()).unwrap_or_default();
        let is_name = capitals_mean_something && is_in_capitals(written);
        let list = if is_stop_word(term.word) && !is_name {
            &mut silent
        } else {
            &mut telling
        };
        if list.len() < most {
            list.push(QueryTerm {
                text: term.text.to_owned(),
                position: term.position,
            });
        }
    }
    if telling.is_empty() { silent } else { telling }
}

fn is_in_capitals(word: &str) -> bool {
    word.len() > 1 && word.bytes().all(|b| b.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, usize)]) {
        let terms = query_terms(text, 64);
        let found: Vec<_> = terms
            .iter()
            .map(|term| (term.text.as_str(), term.position))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn words_that_say_nothing_are_left_out_when_others_say_something() {
        check(
            "What did the minister say about ferries?",
            &[("minist", 3), ("ferri", 6)],
        );
        check(
            "to be or not to be",
            &[
                ("to", 0),
                ("be", 1),
                ("or", 2),
                ("not", 3),
                ("to", 4),
                ("be", 5),
            ],
        );
    }

    #[test]
    fn a_word_in_capitals_is_a_name() {
        check("WHO guidelines", &[("who", 0), ("guidelin", 1)]);
        check("WHO GUIDELINES", &[("guidelin", 1)]);
        check("A guideline", &[("guidelin", 1)]);
    }

    #[test]
    fn unspaced_script_is_asked_for_in_pairs() {
        check("東京都", &[("東京", 0), ("京都", 1)]);
        check("都", &[("都", 0)]);
        check("2024年 budget", &[("2024", 0), ("年", 1), ("budget", 2)]);
    }

    #[test]
    fn no_more_terms_than_asked_for() {
        assert_eq!(query_terms("a b c", 2).len(), 2);
        assert_eq!(query_terms("one two three", 2).len(), 2);
    }
}
