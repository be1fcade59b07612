//! Text analysis: tokenizer, normalizer and stemmer. Both engines, the highlighter and the snippets use this one
//! analysis chain, so a term that one of them finds is a term that all of them find.

mod compound;
mod confident_language;
mod english_vocabulary;
mod fold;
mod language;
mod language_detection;
mod language_id;
#[cfg(test)]
mod properties;
mod query_analysis;
mod stem_cache;
mod stemmer;
mod stop_word_lists;
mod stop_words;
mod unspaced_segmenter;
mod word_filter;

use std::ops::Range;

pub(crate) use confident_language::confident_language_code;
pub(crate) use fold::{ScriptSpacing, extends_previous, fold, script};
pub(crate) use language::Language;
pub(crate) use language_detection::detect;
pub(crate) use language_id::{LanguageEvidence, LanguageId};
pub(crate) use query_analysis::{QueryTerm, language_variants, phrase_terms, query_terms};
pub(crate) use stem_cache::StemCache;
pub(crate) use stop_words::is_stop_word;

use stemmer::TermStemmer;
use unspaced_segmenter::{CharGram, UnspacedSegmenter};

/// The longest term, in characters; the rest of a longer word is ignored. Nobody types a longer word, and a
/// megabyte without a space must not become a term of a megabyte.
const MAX_TERM_CHARS: usize = 64;

/// The longest run of a script without spaces that is segmented at a time, in characters. This bounds the memory of
/// the dictionary segmenter; longer runs are cut with one character of overlap.
const MAX_RUN_CHARS: usize = 256;

/// The most characters such a run folds to: compatibility decomposition turns a few characters, such as a vowel of
/// Thai, into two or more.
const MAX_FOLDED_CHARS: usize = 4 * MAX_RUN_CHARS;

/// English contractions and the possessive, without their apostrophe. They are dropped and produce no terms.
const CONTRACTIONS: [&str; 7] = ["s", "t", "d", "m", "ll", "re", "ve"];

/// Whether the text is a document or a query. A document gives every term that a query may ask for: each word also
/// without its accents, and all n-grams of unspaced scripts. A query gives only the terms worth looking for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnalysisMode {
    Index,
    Query,
}

/// How a term was derived from the text, which decides its weight in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TermKind {
    /// A word between spaces, or one part of a compound.
    Word,
    /// A variant of the preceding word at the same position, stemmed as if it had been typed without its accents.
    Unaccented,
    /// A compound such as `read_file`, joined to one word; its parts follow as words.
    Compound,
    /// A word that the dictionary found in an unspaced script.
    Segment,
    /// One or two neighbouring characters of an unspaced script, whether the dictionary knows them as a word or
    /// not.
    NGram,
}

/// One term (token) of a text with its byte span and its word position.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AnalyzedTerm<'a> {
    /// The index term: folded and stemmed.
    pub text: &'a str,
    /// The folded word, before stemming.
    pub word: &'a str,
    /// The byte range of the source text that the term was read from.
    pub span: Range<usize>,
    /// The word position, which phrase queries compare.
    pub position: usize,
    /// How it was derived from the text.
    pub kind: TermKind,
}

/// Streaming tokenizer: yields the terms of a text one by one, without allocating a list of them. It scans from
/// `at` run by run of one script. Inside a compound it rewinds to `compound_end` (the end of the joined words whose
/// parts follow) and `word_end` (the end of the camel-case word whose parts follow). `pending_unaccented` is the
/// span of the last word when its variant without accents has still to be yielded.
pub(crate) struct TermStream<'t> {
    text: &'t str,
    mode: AnalysisMode,
    stems: TermStemmer<'t>,
    at: usize,
    position: usize,
    compound_end: usize,
    word_end: usize,
    grams: UnspacedSegmenter,
    pending_unaccented: Option<Range<usize>>,
    word: String,
    term: String,
}

impl<'t> TermStream<'t> {
    pub(crate) fn new(text: &'t str, mode: AnalysisMode, language: Language) -> Self {
        Self {
            text,
            mode,
            stems: TermStemmer::new(language),
            at: 0,
            position: 0,
            compound_end: 0,
            word_end: 0,
            grams: UnspacedSegmenter::default(),
            pending_unaccented: None,
            word: String::new(),
            term: String::new(),
        }
    }

    /// The same stream with a stem cache: a word that the cache holds is not stemmed again.
    pub(crate) fn with_stem_cache(mut self, cache: &'t mut StemCache) -> Self {
        self.stems.use_cache(cache);
        self
    }

    /// The next term; `None` at the end of the text.
    pub(crate) fn advance(&mut self) -> Option<AnalyzedTerm<'_>> {
        if let Some(span) = self.pending_unaccented.take()
            && self.stems.unaccented_stem(&self.word, &mut self.term)
        {
            return Some(self.term(span, self.position - 1, TermKind::Unaccented));
        }
        loop {
            if self.grams.has_run() {
                if let Some(gram) = self.grams.next() {
                    return Some(self.gram(gram));
                }
                self.position += self.grams.finish();
            }
            let (script, span) = self.next_run()?;
            if script == ScriptSpacing::Unspaced {
                self.take_run(span);
            } else if let Some(span) = self.begin_compound(&span) {
                if self.take_compound(span.clone()) {
                    return Some(self.term(span, self.position, TermKind::Compound));
                }
            } else if self.take_word(span.clone()) {
                self.position += 1;
                return Some(self.term(span, self.position - 1, TermKind::Word));
            }
        }
    }

    fn term(&self, span: Range<usize>, position: usize, kind: TermKind) -> AnalyzedTerm<'_> {
        AnalyzedTerm {
            text: &self.term,
            word: &self.word,
            span,
            position,
            kind,
        }
    }

    /// Finds the next run of one script and moves behind it. Inside a camel-case word the run is its next part.
    fn next_run(&mut self) -> Option<(ScriptSpacing, Range<usize>)> {
        let rest = self.text.get(self.at..)?;
        let (offset, script) = first_letter(rest)?;
        let tail = rest.get(offset..)?;
        let start = self.at + offset;
        let (length, next) = match script {
            ScriptSpacing::Unspaced => run_length(tail),
            ScriptSpacing::Spaced => {
                let mut length = word_length(tail);
                if start < self.word_end {
                    let word = tail.get(..length).unwrap_or_default();
                    length = compound::first_part(word).unwrap_or(length);
                }
                (length, length)
            }
        };
        self.at = start + next;
        Some((script, start..start + length))
    }

    /// The span of the compound that begins with this word, if one does: first the words that are joined by
    /// punctuation, then each of them that capitals split. The scan position is set back, so the parts come next.
    fn begin_compound(&mut self, first: &Range<usize>) -> Option<Range<usize>> {
        let end = if first.start >= self.compound_end
            && let Some(end) = compound::end(self.text, first)
        {
            self.compound_end = end;
            end
        } else if first.start >= self.word_end
            && compound::first_part(self.text.get(first.clone())?).is_some()
        {
            self.word_end = first.end;
            first.end
        } else {
            return None;
        };
        self.at = first.start;
        Some(first.start..end)
    }

    /// Makes one term of a compound. Returns false when it is too long for a name, or a number.
    fn take_compound(&mut self, span: Range<usize>) -> bool {
        let source = self.text.get(span).unwrap_or_default();
        self.word.clear();
        if !compound::join(source, &mut self.word) {
            return false;
        }
        self.stems.stem(&self.word, &self.word, &mut self.term);
        true
    }

    /// Folds and stems a word between spaces. Returns false when folding leaves nothing of it.
    fn take_word(&mut self, span: Range<usize>) -> bool {
        self.skip_contraction();
        let written = self.text.get(span.clone()).unwrap_or_default();
        self.word.clear();
        fold(written, MAX_TERM_CHARS, &mut self.word);
        if self.word.is_empty() {
            return false;
        }
        self.stems.stem(written, &self.word, &mut self.term);
        if self.mode == AnalysisMode::Index && !written.is_ascii() {
            self.pending_unaccented = Some(span);
        }
        true
    }

    /// Skips an English contraction such as the `'s` of `minister's`, which would be noise as a term.
    fn skip_contraction(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some(tail) = rest.strip_prefix(['\'', '’']) else {
            return;
        };
        let end = tail
            .find(|c| script(c).is_none() && !extends_previous(c))
            .unwrap_or(tail.len());
        let suffix = tail.get(..end).unwrap_or_default();
        if CONTRACTIONS
            .iter()
            .any(|known| suffix.eq_ignore_ascii_case(known))
        {
            self.at += rest.len() - tail.len() + end;
        }
    }

    /// Hands a run of an unspaced script to the segmenter.
    fn take_run(&mut self, span: Range<usize>) {
        let source = self.text.get(span.clone()).unwrap_or_default();
        self.word.clear();
        fold(source, MAX_FOLDED_CHARS, &mut self.word);
        self.grams.load(source, span.start, &self.word, self.mode);
    }

    /// Makes a term of one n-gram or dictionary word of the current run.
    fn gram(&mut self, gram: CharGram) -> AnalyzedTerm<'_> {
        self.term.clear();
        self.term.extend(self.grams.chars(gram));
        self.word.clone_from(&self.term);
        let position = self.position + gram.from;
        self.term(self.grams.span(gram), position, gram.kind)
    }
}

/// The byte offset and the script of the first letter or digit of a text.
fn first_letter(text: &str) -> Option<(usize, ScriptSpacing)> {
    // Fast path: nearly always the first letter is ASCII, with only ASCII before it.
    let mut bytes = text.bytes();
    let start = bytes.position(|b| b.is_ascii_alphanumeric() || !b.is_ascii())?;
    let rest = text.get(start..)?;
    if rest.starts_with(|c: char| c.is_ascii()) {
        return Some((start, ScriptSpacing::Spaced));
    }
    let mut letters = rest.char_indices();
    letters.find_map(|(at, c)| script(c).map(|script| (start + at, script)))
}

/// The length in bytes of the space-separated word at the beginning of a text.
fn word_length(text: &str) -> usize {
    // Fast path: most words are ASCII letters up to an ASCII separator.
    let ascii_end = text.bytes().position(|b| !b.is_ascii_alphanumeric());
    match ascii_end.and_then(|end| text.as_bytes().get(end)) {
        Some(next) if next.is_ascii() => ascii_end.unwrap_or_default(),
        None => text.len(),
        Some(_) => text
            .find(|c| script(c) != Some(ScriptSpacing::Spaced) && !extends_previous(c))
            .unwrap_or(text.len()),
    }
}

/// The length in bytes of the run of unspaced script at the beginning of a text, and the offset of the next run. A
/// run that was cut at the limit overlaps the next one by a character, so that no bigram is lost.
fn run_length(text: &str) -> (usize, usize) {
    let mut previous = 0;
    for (chars, (at, c)) in text.char_indices().enumerate() {
        if script(c) != Some(ScriptSpacing::Unspaced) && !extends_previous(c) {
            return (at, at);
        }
        if chars >= MAX_RUN_CHARS {
            return (at, previous);
        }
        previous = at;
    }
    (text.len(), text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_in(language: Language, text: &str, expected: &[(&str, usize)]) {
        let mut terms = TermStream::new(text, AnalysisMode::Index, language);
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

    fn check(text: &str, expected: &[(&str, usize)]) {
        check_in(Language::English, text, expected);
    }

    #[test]
    fn words_are_folded_and_stemmed() {
        check(
            "The Ferries, timetabled!",
            &[("the", 0), ("ferri", 1), ("timet", 2)],
        );
        check("", &[]);
        check(" \u{0} -- \u{301} * (((", &[]);
    }

    #[test]
    fn a_word_with_accents_is_also_found_without_them() {
        check_in(
            Language::French,
            "abandonnée ici",
            &[("abandon", 0), ("abandonne", 0), ("ici", 1)],
        );
        check("abandonnée", &[("abandonne", 0)]);
    }

    #[test]
    fn a_compound_is_one_word_and_its_parts() {
        for text in ["read_File now", "readFile now", "read-file now"] {
            check(
                text,
                &[("readfil", 0), ("read", 0), ("file", 1), ("now", 2)],
            );
        }
        check(
            "std::HTTPServer2",
            &[
                ("stdhttpserver2", 0),
                ("std", 0),
                ("httpserver2", 1),
                ("http", 1),
                ("server2", 2),
            ],
        );
        check("1.5-2", &[("1", 0), ("5", 1), ("2", 2)]);
        let path = "a/".repeat(MAX_TERM_CHARS);
        let parts: Vec<_> = (0..MAX_TERM_CHARS).map(|at| ("a", at)).collect();
        check(&path, &parts);
    }

    #[test]
    fn the_part_after_an_apostrophe_is_a_word_unless_english_drops_it() {
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
    fn unspaced_script_gives_characters_and_pairs_and_long_words() {
        check(
            "A東京x",
            &[("a", 0), ("東", 1), ("東京", 1), ("京", 2), ("x", 3)],
        );
        check(
            "アジア",
            &[
                ("ア", 0),
                ("アジ", 0),
                ("アジア", 0),
                ("ジ", 1),
                ("ジア", 1),
                ("ア", 2),
            ],
        );
    }

    #[test]
    fn spans_name_the_bytes_of_the_text() {
        let text = "Łódź, 東京 read_file ends.";
        let mut terms = TermStream::new(text, AnalysisMode::Query, Language::English);
        let mut words = Vec::new();
        while let Some(term) = terms.advance() {
            words.push(&text[term.span]);
        }
        assert_eq!(words, ["Łódź", "東京", "read_file", "read", "file", "ends"]);
    }

    #[test]
    fn a_long_run_is_split_without_losing_a_bigram() {
        // A vowel of Thai that folds to two characters must not push other characters out.
        let thai = "กำ".repeat(MAX_RUN_CHARS);
        let han: String = (0..MAX_RUN_CHARS as u32 * 2 + 9)
            .filter_map(|n| char::from_u32(0x4E00 + n))
            .collect();
        for run in [thai, han] {
            let mut folded = String::new();
            fold(&run, usize::MAX, &mut folded);
            let chars: Vec<char> = folded.chars().collect();
            let mut terms = TermStream::new(&run, AnalysisMode::Index, Language::English);
            let mut pairs = Vec::new();
            while let Some(term) = terms.advance() {
                if term.text.chars().count() == 2 {
                    pairs.push(term.text.to_owned());
                }
            }
            let expected = chars.windows(2).map(|pair| pair.iter().collect::<String>());
            for pair in expected {
                assert!(pairs.contains(&pair), "{pair}");
            }
        }
    }

    #[test]
    fn one_monstrous_word_is_one_short_term() {
        for (text, terms) in [
            ("x".repeat(100_000), 1),
            ("aB".repeat(50_000), 1),
            ("é".repeat(100_000), 1),
        ] {
            let mut found = TermStream::new(&text, AnalysisMode::Index, Language::English);
            let mut count = 0;
            while let Some(term) = found.advance() {
                assert_eq!(term.text.chars().count(), MAX_TERM_CHARS);
                count += 1;
            }
            assert_eq!(count, terms);
        }
    }
}
