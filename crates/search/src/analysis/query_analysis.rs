//! Query analysis: the terms that a question is searched by, stemmed for every language of the corpus.
//!
//! A few words do not identify their language, and need not: each word is looked up in every form that a language
//! of the corpus would have indexed it in. These forms are scored as one term, whose document frequency is that of
//! all of them together.

use super::language::Language;
use super::stemmer::TermStemmer;
use super::stop_words::StopWord;
use super::{AnalysisMode, AnalyzedTerm, TermKind, TermStream};

/// The weight of a compound as one word, and of each of its parts. Measured on SciFact (nDCG@10): weights of 1 and
/// 1 give .703, .5 and 1 give .707, .5 and .7 give .712.
const COMPOUND_WEIGHT: f32 = 0.5;
const PART_WEIGHT: f32 = 0.7;

/// The weight of a dictionary word of three or more characters of unspaced script, and of each bigram below it.
/// Measured with the questions of XQuAD in Chinese and Thai and of JSQuAD: words of weight 1 or bigrams of weight
/// .5 lose up to .013 nDCG@10, and without the bigrams some documents are not found at all.
const LONG_SEGMENT_WEIGHT: f32 = 0.5;
const NGRAM_WEIGHT: f32 = 0.3;

/// One term of a query with its forms in the languages of the corpus. `readings` holds, for each language in the
/// order of the corpus, the index of its form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueryTerm {
    /// The indexed forms, one for all languages that agree. Never empty; the form of the most frequent language of
    /// the corpus comes first.
    pub forms: Vec<String>,
    readings: Vec<usize>,
    /// The word as it was typed, folded but not stemmed.
    pub word: String,
    /// The word position in the question; stop words count.
    pub position: usize,
    /// How it was derived from the question.
    pub kind: TermKind,
    /// The weight relative to a plain word.
    pub weight: f32,
}

impl QueryTerm {
    /// The form of the most frequent language.
    pub(crate) fn text(&self) -> &str {
        self.forms.first().map_or("", String::as_str)
    }

    /// A copy of the term that is looked up in a single other form, as spelling correction needs it.
    pub(crate) fn replaced(&self, form: String) -> Self {
        Self {
            forms: vec![form],
            readings: Vec::new(),
            ..self.clone()
        }
    }

    /// Whether it is a word of its own: no compound, no bigram and no variant of another term.
    pub(crate) fn is_word(&self) -> bool {
        matches!(self.kind, TermKind::Word | TermKind::Segment)
    }

    fn variant(&self, language: usize) -> &str {
        let form = self.readings.get(language).copied().unwrap_or(0);
        self.forms.get(form).map_or("", String::as_str)
    }
}

/// The distinct sequences of forms that the languages of the corpus have for these terms, each as long as `terms`.
/// There is at least one. Phrase queries look for each sequence, because all words of a document have one language.
pub(crate) fn language_variants<'q>(terms: &[&'q QueryTerm]) -> Vec<Vec<&'q str>> {
    let languages = terms.iter().map(|term| term.readings.len()).max();
    let mut different: Vec<Vec<&str>> = Vec::new();
    for language in 0..languages.unwrap_or(0).max(1) {
        let reading: Vec<&str> = terms.iter().map(|term| term.variant(language)).collect();
        if !different.contains(&reading) {
            different.push(reading);
        }
    }
    different
}

/// Analyzes a question for a corpus in these languages into at most `limit` terms, in the order of the question.
/// Stop words are dropped unless there is nothing else: "to be or not to be" is a question too.
pub(crate) fn query_terms(text: &str, limit: usize, languages: &[Language]) -> Vec<QueryTerm> {
    let mut reader = QueryTermReader::new(text, languages);
    let (mut content_words, mut stop_words, mut ngrams) = (Vec::new(), Vec::new(), Vec::new());
    let mut terms = TermStream::new(text, AnalysisMode::Query, Language::English);
    while let Some(term) = terms.advance() {
        let list = if term.kind == TermKind::NGram {
            &mut ngrams
        } else if reader.is_stop_word(&term) {
            &mut stop_words
        } else {
            &mut content_words
        };
        if list.len() < limit {
            list.push(reader.read(&term));
        }
    }
    let mut chosen = if content_words.is_empty() {
        stop_words
    } else {
        content_words
    };
    // N-grams fill only the room that words leave.
    ngrams.truncate(limit - chosen.len());
    chosen.append(&mut ngrams);
    chosen.sort_by_key(|term| term.position);
    chosen
}

/// Analyzes a phrase into at most `limit` terms at consecutive positions. Stop words stay, because they are part of
/// the phrase.
pub(crate) fn phrase_terms(text: &str, limit: usize, languages: &[Language]) -> Vec<QueryTerm> {
    let mut reader = QueryTermReader::new(text, languages);
    let mut found = Vec::new();
    let mut terms = TermStream::new(text, AnalysisMode::Query, Language::English);
    while let Some(term) = terms.advance() {
        // The parts of a compound are consecutive terms, as the bigrams of a longer segment are. The joined forms
        // are left out, because a document may write them apart.
        let is_long = term.kind == TermKind::Segment && term.text.chars().nth(2).is_some();
        if term.kind != TermKind::Compound && !is_long && found.len() < limit {
            found.push(reader.read(&term));
        }
    }
    found
}

/// Builds the query terms of one question: one stemmer for each language of the corpus, and the language whose stop
/// words are dropped. `compound_end` is where the last compound ends, so that its parts get their lower weight.
struct QueryTermReader<'q> {
    text: &'q str,
    /// Whether a word in capitals is a name because others are in lower case: "WHO guidelines" does not ask who.
    capitals_mean_something: bool,
    language: Language,
    stems: Vec<TermStemmer<'q>>,
    compound_end: usize,
    form: String,
}

impl<'q> QueryTermReader<'q> {
    fn new(text: &'q str, languages: &[Language]) -> Self {
        let languages = if languages.is_empty() {
            &[Language::English]
        } else {
            languages
        };
        Self {
            text,
            capitals_mean_something: text.chars().any(char::is_lowercase),
            language: query_language(text, languages),
            stems: languages.iter().copied().map(TermStemmer::new).collect(),
            compound_end: 0,
            form: String::new(),
        }
    }

    fn is_stop_word(&self, term: &AnalyzedTerm<'_>) -> bool {
        let Some(stop_word) = StopWord::find(term.word) else {
            return false;
        };
        if term.kind == TermKind::Segment {
            return stop_word.is_unspaced();
        }
        let is_name = self.capitals_mean_something && is_in_capitals(self.written(term));
        stop_word.is_in(self.language) && !is_name
    }

    fn read(&mut self, term: &AnalyzedTerm<'_>) -> QueryTerm {
        if term.kind == TermKind::Compound {
            self.compound_end = self.compound_end.max(term.span.end);
        }
        let (forms, readings) = match term.kind {
            TermKind::Word | TermKind::Compound => self.forms(term),
            _ => (vec![term.text.to_owned()], Vec::new()),
        };
        QueryTerm {
            forms,
            readings,
            word: term.word.to_owned(),
            position: term.position,
            kind: term.kind,
            weight: self.weight(term),
        }
    }

    /// The distinct forms of a word, and for each language the index of its form.
    fn forms(&mut self, term: &AnalyzedTerm<'_>) -> (Vec<String>, Vec<usize>) {
        let written = match term.kind {
            TermKind::Compound => term.word,
            _ => self.written(term),
        };
        let (mut forms, mut unaccented) = (Vec::new(), Vec::new());
        let mut readings = Vec::with_capacity(self.stems.len());
        for stems in &mut self.stems {
            stems.stem(written, term.word, &mut self.form);
            readings.push(index_of_form(&self.form, &mut forms));
            if stems.unaccented_stem(term.word, &mut self.form) {
                index_of_form(&self.form, &mut unaccented);
            }
        }
        for form in unaccented {
            index_of_form(&form, &mut forms);
        }
        (forms, readings)
    }

    fn weight(&self, term: &AnalyzedTerm<'_>) -> f32 {
        match term.kind {
            TermKind::Compound => COMPOUND_WEIGHT,
            TermKind::NGram => NGRAM_WEIGHT,
            TermKind::Segment if term.word.chars().nth(2).is_some() => LONG_SEGMENT_WEIGHT,
            TermKind::Word if term.span.start < self.compound_end => PART_WEIGHT,
            _ => 1.0,
        }
    }

    fn written(&self, term: &AnalyzedTerm<'_>) -> &'q str {
        self.text.get(term.span.clone()).unwrap_or_default()
    }
}

/// The index of a form in a list; a missing form is appended.
fn index_of_form(form: &str, forms: &mut Vec<String>) -> usize {
    let known = forms.iter().position(|known| known == form);
    known.unwrap_or_else(|| {
        forms.push(form.to_owned());
        forms.len() - 1
    })
}

/// The language of a question: the one with the most stop words in it. A word may be a stop word of one language
/// and a content word of another: "die" is one in German, but not in "how did he die". Readers of any corpus may
/// ask in English.
fn query_language(text: &str, languages: &[Language]) -> Language {
    if languages
        .iter()
        .all(|language| *language == Language::English)
    {
        return Language::English;
    }
    let mut counts = [0_u32; Language::ALL.len()];
    let mut terms = TermStream::new(text, AnalysisMode::Query, Language::English);
    while let Some(term) = terms.advance() {
        let found = StopWord::find(term.word).filter(|_| term.kind == TermKind::Word);
        for language in found.into_iter().flat_map(StopWord::languages) {
            if let Some(count) = counts.get_mut(language as usize) {
                *count += 1;
            }
        }
    }
    let count = |language: Language| counts.get(language as usize).copied().unwrap_or(0);
    let mut best = languages.first().copied().unwrap_or_default();
    for candidate in languages.iter().copied().chain([Language::English]) {
        if count(candidate) > count(best) {
            best = candidate;
        }
    }
    best
}

fn is_in_capitals(word: &str) -> bool {
    word.len() > 1 && word.bytes().all(|b| b.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: [Language; 1] = [Language::English];

    fn check(text: &str, expected: &[(&str, usize)]) {
        let terms = query_terms(text, 64, &ENGLISH);
        let found: Vec<_> = terms
            .iter()
            .map(|term| (term.text(), term.position))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn stop_words_are_dropped_when_there_are_other_words() {
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
    fn a_compound_is_searched_as_one_word_and_by_its_parts() {
        check("readFile", &[("readfil", 0), ("read", 0), ("file", 1)]);
        check("read_file", &[("readfil", 0), ("read", 0), ("file", 1)]);
        let terms = query_terms("open read-file now", 64, &ENGLISH);
        let weights: Vec<f32> = terms.iter().map(|term| term.weight).collect();
        assert_eq!(weights, [1.0, COMPOUND_WEIGHT, PART_WEIGHT, PART_WEIGHT]);
    }

    #[test]
    fn unspaced_script_is_searched_by_words_and_bigrams() {
        let terms = query_terms("東京都の予算", 64, &ENGLISH);
        let of_kind = |kind| -> Vec<&str> {
            let same = terms.iter().filter(|term| term.kind == kind);
            same.map(QueryTerm::text).collect()
        };
        assert_eq!(of_kind(TermKind::Segment), ["東京", "都", "予算"]);
        assert_eq!(of_kind(TermKind::NGram), ["京都", "都の", "の予"]);
        check("都", &[("都", 0)]);
        check("2024年 budget", &[("2024", 0), ("年", 1), ("budget", 2)]);
    }

    #[test]
    fn a_korean_word_is_searched_by_bigrams() {
        check("예산안을", &[("예산", 0), ("산안", 1), ("안을", 2)]);
    }

    #[test]
    fn each_language_of_the_corpus_has_its_form() {
        let languages = [Language::English, Language::French, Language::German];
        let terms = query_terms("organisation universities", 64, &languages);
        let forms: Vec<_> = terms.iter().map(|term| term.forms.clone()).collect();
        assert_eq!(
            forms,
            [["organis", "organisation"], ["universiti", "universit"]]
        );
        let terms: Vec<&QueryTerm> = terms.iter().collect();
        assert_eq!(
            language_variants(&terms),
            [
                ["organis", "universiti"],
                ["organis", "universit"],
                ["organisation", "universiti"],
            ]
        );
        assert_eq!(
            language_variants(&terms[..1]),
            [["organis"], ["organisation"]]
        );
    }

    #[test]
    fn a_word_with_accents_also_asks_for_texts_without() {
        let terms = query_terms("abandonnée", 64, &[Language::French]);
        let forms: Vec<_> = terms.iter().map(|term| term.forms.clone()).collect();
        assert_eq!(forms, [["abandon", "abandonne"]]);
    }

    #[test]
    fn stop_words_are_those_of_the_language_that_has_most_of_them() {
        let languages = [Language::German, Language::English];
        let texts = |text| -> Vec<String> {
            let terms = query_terms(text, 64, &languages);
            terms.iter().map(|term| term.word.clone()).collect()
        };
        assert_eq!(texts("how did the king die"), ["king", "die"]);
        assert_eq!(texts("was ist die Strafe"), ["strafe"]);
        assert_eq!(texts("die Strafe"), ["strafe"]);
        let german_only = query_terms("what is the budget", 64, &[Language::German]);
        assert_eq!(german_only.len(), 1);
    }

    #[test]
    fn phrases_keep_all_words_and_their_positions() {
        let phrase = |text| -> Vec<(String, usize)> {
            let terms = phrase_terms(text, 4, &ENGLISH);
            let terms = terms
                .iter()
                .map(|term| (term.text().to_owned(), term.position));
            terms.collect()
        };
        let expected = |terms: &[(&str, usize)]| -> Vec<(String, usize)> {
            terms
                .iter()
                .map(|(text, at)| ((*text).to_owned(), *at))
                .collect()
        };
        assert_eq!(phrase("to be"), expected(&[("to", 0), ("be", 1)]));
        assert_eq!(phrase("read_file"), expected(&[("read", 0), ("file", 1)]));
        assert_eq!(phrase("アジア"), expected(&[("アジ", 0), ("ジア", 1)]));
        assert_eq!(phrase("a b c d").len(), 4);
        assert_eq!(phrase("a b c d e").len(), 4);
    }

    #[test]
    fn no_more_terms_than_asked_for() {
        for text in ["a b c", "one two three", "東京都の予算について", "a_b c_d"] {
            assert_eq!(query_terms(text, 2, &ENGLISH).len(), 2, "{text}");
            assert!(query_terms(text, 0, &ENGLISH).is_empty(), "{text}");
        }
    }
}
