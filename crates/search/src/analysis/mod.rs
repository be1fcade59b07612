//! Text into the terms it is found by. Every engine and every snippet cuts words here, so a word
//! that one of them finds is a word that all of them find.

mod fold;
mod query;
mod stop;

use std::ops::Range;

use frostem::{Algorithm, Stemmer};

pub(crate) use fold::{Script, joins_the_previous, script};
pub(crate) use query::{QueryTerm, query_terms};

/// Characters of a word that count. What is longer is no word a person types, and one monstrous
/// word must not become a monstrous term.
const MAX_TERM_CHARS: usize = 64;

/// Characters of unspaced script that are taken apart at a time, which bounds the memory needed.
const MAX_RUN_CHARS: usize = 256;

/// What English writes after an apostrophe without making a new word of it.
const CONTRACTIONS: [&str; 7] = ["s", "t", "d", "m", "ll", "re", "ve"];

/// Which terms a run of unspaced script gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Each character and each pair of neighbours, so that one character alone is found too.
    Index,
    /// Pairs of neighbours, or the character when it stands alone.
    Query,
}

/// One term and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Term<'a> {
    /// The term: folded and, if English, stemmed.
    pub text: &'a str,
    /// The word before it was stemmed.
    pub word: &'a str,
    /// The bytes of the text it stands for.
    pub span: Range<usize>,
    /// How many words stand before it.
    pub position: usize,
}

/// The terms of a text, one after the other, without a list of them.
pub(crate) struct Terms<'t> {
    text: &'t str,
    purpose: Purpose,
    stemmer: Stemmer,
    /// The byte at which the next run is looked for.
    at: usize,
    /// The position of the next word.
    position: usize,
    /// Characters of unspaced script that still have to be given out, and the next of them.
    run: Vec<(char, Range<usize>)>,
    next: usize,
    /// Whether the pair that begins at `next` is due, its single character having been given.
    pair_is_due: bool,
    word: String,
    term: String,
}

impl<'t> Terms<'t> {
    pub(crate) fn new(text: &'t str, purpose: Purpose) -> Self {
        Self {
            text,
            purpose,
            stemmer: Stemmer::new(Algorithm::English),
            at: 0,
            position: 0,
            run: Vec::new(),
            next: 0,
            pair_is_due: false,
            word: String::new(),
            term: String::new(),
        }
    }

    /// The next term, or nothing at the end of the text.
    pub(crate) fn advance(&mut self) -> Option<Term<'_>> {
        loop {
            if let Some((span, position)) = self.next_gram() {
                return Some(self.term(span, position));
            }
            let (script, span) = self.next_run()?;
            match script {
                Script::Spaced if self.take_word(span.clone()) => {
                    let position = self.position;
                    self.position += 1;
                    return Some(self.term(span, position));
                }
                Script::Spaced => {}
                Script::Unspaced => self.take_run(span),
            }
        }
    }

    fn term(&self, span: Range<usize>, position: usize) -> Term<'_> {
        Term {
            text: &self.term,
            word: &self.word,
            span,
            position,
        }
    }

    /// Finds the next stretch of one script and moves behind it.
    fn next_run(&mut self) -> Option<(Script, Range<usize>)> {
        let base = self.at;
        let mut begun: Option<(Script, usize)> = None;
        let mut chars = 0;
        let mut previous = 0;
        for (offset, c) in self.text.get(base..)?.char_indices() {
            let here = script(c);
            if let Some((kind, start)) = begun {
                let goes_on = here == Some(kind) || joins_the_previous(c);
                let is_full = kind == Script::Unspaced && chars >= MAX_RUN_CHARS;
                if !goes_on || is_full {
                    // A full run hands its last character on, so that no pair is torn apart.
                    self.at = base + if goes_on { previous } else { offset };
                    return Some((kind, base + start..base + offset));
                }
            } else {
                begun = here.map(|kind| (kind, offset));
            }
            chars += usize::from(begun.is_some());
            previous = offset;
        }
        self.at = self.text.len();
        begun.map(|(kind, start)| (kind, base + start..self.text.len()))
    }

    /// Makes a term of a spaced word. Says no when nothing of it is left to be found by.
    fn take_word(&mut self, span: Range<usize>) -> bool {
        self.skip_contraction();
        self.word.clear();
        fold::fold(
            self.text.get(span).unwrap_or_default(),
            MAX_TERM_CHARS,
            &mut self.word,
        );
        self.term.clear();
        if self.word.is_ascii() {
            self.term.push_str(&self.stemmer.stem(&self.word));
        } else {
            self.term.push_str(&self.word);
        }
        !self.term.is_empty()
    }

    /// Moves behind the `'s` of `minister's` and its kind, which would be noise as words.
    fn skip_contraction(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some(tail) = rest.strip_prefix(['\'', '’']) else {
            return;
        };
        let end = tail
            .find(|c| script(c).is_none() && !joins_the_previous(c))
            .unwrap_or(tail.len());
        let suffix = tail.get(..end).unwrap_or_default();
        if CONTRACTIONS
            .iter()
            .any(|known| suffix.eq_ignore_ascii_case(known))
        {
            self.at += rest.len() - tail.len() + end;
        }
    }

    /// Takes a run of unspaced script apart into its characters.
    fn take_run(&mut self, span: Range<usize>) {
        let source = self.text.get(span.clone()).unwrap_or_default();
        self.word.clear();
        fold::fold(source, MAX_RUN_CHARS, &mut self.word);
        self.run.clear();
        self.next = 0;
        self.pair_is_due = false;
        if self.word == source {
            let places = source.char_indices().map(|(offset, c)| {
                let start = span.start + offset;
                (c, start..start + c.len_utf8())
            });
            self.run.extend(places);
        } else {
            // Folding moved the characters, so each of them stands for the whole run.
            self.run
                .extend(self.word.chars().map(|c| (c, span.clone())));
        }
    }

    /// The next term out of the run that was taken apart.
    fn next_gram(&mut self) -> Option<(Range<usize>, usize)> {
        loop {
            let (first, span) = self.run.get(self.next)?.clone();
            let second = self.run.get(self.next + 1).cloned();
            let single_is_wanted =
                self.purpose == Purpose::Index || (self.next == 0 && second.is_none());
            if !self.pair_is_due && single_is_wanted {
                self.pair_is_due = true;
                self.set_gram([Some(first), None]);
                return Some((span, self.position));
            }
            self.pair_is_due = false;
            self.next += 1;
            self.position += 1;
            if let Some((second, end)) = second {
                self.set_gram([Some(first), Some(second)]);
                return Some((span.start..end.end, self.position - 1));
            }
        }
    }

    fn set_gram(&mut self, chars: [Option<char>; 2]) {
        self.term.clear();
        self.term.extend(chars.into_iter().flatten());
        self.word.clone_from(&self.term);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, usize)]) {
        let mut terms = Terms::new(text, Purpose::Index);
        let mut found = Vec::new();
        while let Some(term) = terms.advance() {
            found.push((term.text.to_owned(), term.position));
        }
        let found: Vec<_> = found
            .iter()
            .map(|(term, at)| (term.as_str(), *at))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn words_are_folded_and_stemmed() {
        check(
            "The Ferries, re-timetabled!",
            &[("the", 0), ("ferri", 1), ("re", 2), ("timet", 3)],
        );
        check("", &[]);
        check(" \u{0} -- \u{301} * (((", &[]);
    }

    #[test]
    fn what_follows_an_apostrophe_is_a_word_unless_english_drops_it() {
        check(
            "the minister's, l'eau, don’t O'Brien'",
            &[
                ("the", 0),
                ("minist", 1),
                ("l", 2),
                ("eau", 3),
                ("don", 4),
                ("o", 5),
                ("brien", 6),
            ],
        );
    }

    #[test]
    fn unspaced_script_gives_characters_and_pairs() {
        check(
            "A東京x",
            &[("a", 0), ("東", 1), ("東京", 1), ("京", 2), ("x", 3)],
        );
    }

    #[test]
    fn spans_name_the_bytes_of_the_text() {
        let text = "Łódź, 東京 ends.";
        let mut terms = Terms::new(text, Purpose::Query);
        let mut words = Vec::new();
        while let Some(term) = terms.advance() {
            words.push(&text[term.span]);
        }
        assert_eq!(words, ["Łódź", "東京", "ends"]);
    }

    #[test]
    fn a_long_run_is_taken_in_parts_without_losing_a_pair() {
        let run: String = (0..MAX_RUN_CHARS as u32 * 2 + 9)
            .filter_map(|n| char::from_u32(0x4E00 + n))
            .collect();
        let chars: Vec<char> = run.chars().collect();
        let mut terms = Terms::new(&run, Purpose::Query);
        let mut pairs = Vec::new();
        while let Some(term) = terms.advance() {
            pairs.push(term.text.to_owned());
        }
        let expected: Vec<String> = chars.windows(2).map(|pair| pair.iter().collect()).collect();
        assert_eq!(pairs, expected);
    }

    #[test]
    fn one_monstrous_word_is_one_short_term() {
        let text = "x".repeat(100_000);
        let mut terms = Terms::new(&text, Purpose::Index);
        assert_eq!(
            terms.advance().map(|term| term.text.len()),
            Some(MAX_TERM_CHARS)
        );
        assert_eq!(terms.advance(), None);
    }
}
