//! A question into the terms worth looking for.
//!
//! A few words do not tell their language, and need not: each word is looked for as every language
//! of the corpus would have written it into the index. Those forms are one word in several dresses,
//! and together they are as rare or as frequent as that word.

use super::language::Language;
use super::stemmer::TermStemmer;
use super::stop_words::StopWord;
use super::{AnalysisMode, AnalyzedTerm, TermKind, TermStream};

/// What a compound as one word is worth beside its parts, and what each part is worth. Measured on
/// SciFact (nDCG@10): 1 and 1 give .703, .5 and 1 give .707, .5 and .7 give .712.
const COMPOUND_WEIGHT: f32 = 0.5;
const PART_WEIGHT: f32 = 0.7;

/// What a word of three or more characters of unspaced script is worth beside the pairs that lie
/// under it, and what each of those pairs is worth. Measured with the questions of XQuAD in Chinese
/// and Thai and of JSQuAD: words of full worth or pairs of half their worth lose up to .013 nDCG@10,
/// and without the pairs some documents are not found at all.
const LONG_SEGMENT_WEIGHT: f32 = 0.5;
const NGRAM_WEIGHT: f32 = 0.3;

/// One term of a query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueryTerm {
    /// What it stands in the index as: one form for all languages of the corpus that agree. Never
    /// empty; the form of the language of most documents comes first.
    pub forms: Vec<String>,
    /// Which of the forms each language of the corpus has.
    readings: Vec<usize>,
    /// The word as it was typed, folded but not stemmed.
    pub word: String,
    /// How many words stand before it in the question, those without meaning included.
    pub position: usize,
    /// What it is to the words around it.
    pub kind: TermKind,
    /// What it is worth next to a plain word.
    pub weight: f32,
}

impl QueryTerm {
    /// The first of its forms.
    pub(crate) fn text(&self) -> &str {
        self.forms.first().map_or("", String::as_str)
    }

    /// The same term with another form in place of its own.
    pub(crate) fn replaced(&self, form: String) -> Self {
        Self {
            forms: vec![form],
            readings: Vec::new(),
            ..self.clone()
        }
    }

    /// Whether it is a word of its own and not a part or a whole of another term.
    pub(crate) fn is_word(&self) -> bool {
        matches!(self.kind, TermKind::Word | TermKind::Segment)
    }

    fn variant(&self, place: usize) -> &str {
        let form = self.readings.get(place).copied().unwrap_or(0);
        self.forms.get(form).map_or("", String::as_str)
    }
}

/// The different ways in which the languages of the corpus have these terms, each a list as long as
/// the terms. There is at least one.
pub(crate) fn language_variants<'q>(terms: &[&'q QueryTerm]) -> Vec<Vec<&'q str>> {
    let languages = terms.iter().map(|term| term.readings.len()).max();
    let mut different: Vec<Vec<&str>> = Vec::new();
    for place in 0..languages.unwrap_or(0).max(1) {
        let reading: Vec<&str> = terms.iter().map(|term| term.variant(place)).collect();
        if !different.contains(&reading) {
            different.push(reading);
        }
    }
    different
}

/// At most `most` terms of a question, in its order, for a corpus in these languages. Words that say
/// nothing are left out, unless there are no others: "to be or not to be" is a question too.
pub(crate) fn query_terms(text: &str, most: usize, languages: &[Language]) -> Vec<QueryTerm> {
    let mut reader = QueryTermReader::new(text, languages);
    let (mut telling, mut silent, mut net) = (Vec::new(), Vec::new(), Vec::new());
    let mut terms = TermStream::new(text, AnalysisMode::Query, Language::English);
    while let Some(term) = terms.advance() {
        let list = if term.kind == TermKind::NGram {
            &mut net
        } else if reader.is_stop_word(&term) {
            &mut silent
        } else {
            &mut telling
        };
        if list.len() < most {
            list.push(reader.read(&term));
        }
    }
    let mut asked = if telling.is_empty() { silent } else { telling };
    // The net is only asked for where words leave room.
    net.truncate(most - asked.len());
    asked.append(&mut net);
    asked.sort_by_key(|term| term.position);
    asked
}

/// At most `most` terms of words that have to stand side by side, all of them telling.
pub(crate) fn phrase_terms(text: &str, most: usize, languages: &[Language]) -> Vec<QueryTerm> {
    let mut reader = QueryTermReader::new(text, languages);
    let mut asked = Vec::new();
    let mut terms = TermStream::new(text, AnalysisMode::Query, Language::English);
    while let Some(term) = terms.advance() {
        // The parts of a compound stand side by side, as the pairs of a longer word do; what is one
        // word here need not be one there.
        let is_long = term.kind == TermKind::Segment && term.text.chars().nth(2).is_some();
        if term.kind != TermKind::Compound && !is_long && asked.len() < most {
            asked.push(reader.read(&term));
        }
    }
    asked
}

/// Reads the words of one question.
struct QueryTermReader<'q> {
    text: &'q str,
    /// A word in capitals among others is a name: "WHO guidelines" does not ask who.
    capitals_mean_something: bool,
    /// The language whose silent words are left out.
    language: Language,
    stems: Vec<TermStemmer<'q>>,
    /// Where the last compound ends.
    whole_end: usize,
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
            whole_end: 0,
            form: String::new(),
        }
    }

    fn is_stop_word(&self, term: &AnalyzedTerm<'_>) -> bool {
        let Some(silent) = StopWord::find(term.word) else {
            return false;
        };
        if term.kind == TermKind::Segment {
            return silent.is_unspaced();
        }
        let is_name = self.capitals_mean_something && is_in_capitals(self.written(term));
        silent.is_in(self.language) && !is_name
    }

    fn read(&mut self, term: &AnalyzedTerm<'_>) -> QueryTerm {
        if term.kind == TermKind::Compound {
            self.whole_end = self.whole_end.max(term.span.end);
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

    /// The different forms of a word, and which of them each language has.
    fn forms(&mut self, term: &AnalyzedTerm<'_>) -> (Vec<String>, Vec<usize>) {
        let written = match term.kind {
            TermKind::Compound => term.word,
            _ => self.written(term),
        };
        let (mut forms, mut plain) = (Vec::new(), Vec::new());
        let mut readings = Vec::with_capacity(self.stems.len());
        for stems in &mut self.stems {
            stems.stem(written, term.word, &mut self.form);
            readings.push(index_of_form(&self.form, &mut forms));
            if stems.unaccented_stem(term.word, &mut self.form) {
                index_of_form(&self.form, &mut plain);
            }
        }
        for form in plain {
            index_of_form(&form, &mut forms);
        }
        (forms, readings)
    }

    fn weight(&self, term: &AnalyzedTerm<'_>) -> f32 {
        match term.kind {
            TermKind::Compound => COMPOUND_WEIGHT,
            TermKind::NGram => NGRAM_WEIGHT,
            TermKind::Segment if term.word.chars().nth(2).is_some() => LONG_SEGMENT_WEIGHT,
            TermKind::Word if term.span.start < self.whole_end => PART_WEIGHT,
            _ => 1.0,
        }
    }

    fn written(&self, term: &AnalyzedTerm<'_>) -> &'q str {
        self.text.get(term.span.clone()).unwrap_or_default()
    }
}

/// Where a form stands in a list, in which it is put when it is missing.
fn index_of_form(form: &str, forms: &mut Vec<String>) -> usize {
    let known = forms.iter().position(|known| known == form);
    known.unwrap_or_else(|| {
        forms.push(form.to_owned());
        forms.len() - 1
    })
}

/// The language whose silent words a question has most of. One word may say nothing in one language
/// and everything in another: "die" does in German, but not in "how did he die". Readers of any
/// corpus may ask in English.
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
    fn a_compound_is_asked_for_as_one_word_and_in_its_parts() {
        check("readFile", &[("readfil", 0), ("read", 0), ("file", 1)]);
        check("read_file", &[("readfil", 0), ("read", 0), ("file", 1)]);
        let terms = query_terms("open read-file now", 64, &ENGLISH);
        let weights: Vec<f32> = terms.iter().map(|term| term.weight).collect();
        assert_eq!(weights, [1.0, COMPOUND_WEIGHT, PART_WEIGHT, PART_WEIGHT]);
    }

    #[test]
    fn unspaced_script_is_asked_for_in_words_above_a_net_of_pairs() {
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
    fn a_korean_word_is_asked_for_in_pairs() {
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
    fn silent_words_are_those_of_the_language_that_has_most_of_them() {
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
    fn words_side_by_side_are_all_asked_for_where_they_stand() {
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
