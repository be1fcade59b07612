//! Stemming: reduces a word to the term that the index holds, with the Snowball stemmer of its language.

use frostem::Stemmer;

use super::MAX_TERM_CHARS;
use super::fold::{fold, lower};
use super::language::{Alphabet, Language};
use super::stem_cache::StemCache;

/// Stems the words of a text in one language, with a fallback to English. `lowered` holds the last word in lower
/// case with its accents when it was stemmed by the text's own language; [`Self::unaccented_stem`] needs it.
pub(super) struct TermStemmer<'m> {
    language: Language,
    stemmer: Stemmer,
    english: Stemmer,
    /// Whether words in plain Latin letters are stemmed as English.
    is_english: bool,
    lowered: String,
    cache: Option<&'m mut StemCache>,
}

impl<'m> TermStemmer<'m> {
    pub(super) fn new(language: Language) -> Self {
        Self {
            language,
            stemmer: Stemmer::new(language.algorithm()),
            english: Stemmer::new(Language::English.algorithm()),
            is_english: language == Language::English || !language.uses_alphabet(Alphabet::Latin),
            lowered: String::new(),
            cache: None,
        }
    }

    pub(super) fn use_cache(&mut self, cache: &'m mut StemCache) {
        self.cache = Some(cache);
    }

    /// Writes the stem of a word to `term`. `written` is the word as it stands in the text, `word` its folded form.
    ///
    /// English endings have no accents, so its words are folded before stemming. In other languages accents tell
    /// endings apart, so only the stem is folded. Words in Latin letters within a text in another alphabet are
    /// mostly English.
    pub(super) fn stem(&mut self, written: &str, word: &str, term: &mut String) {
        term.clear();
        self.lowered.clear();
        let (language, input) = if self.is_english && word.is_ascii() {
            (Language::English, word)
        } else if self.stems_alphabet_of(word) {
            let is_turkish = self.language == Language::Turkish;
            lower(written, is_turkish, MAX_TERM_CHARS, &mut self.lowered);
            (self.language, self.lowered.as_str())
        } else {
            term.push_str(word);
            return;
        };
        if let Some(known) = self.cache.as_ref().and_then(|it| it.get(language, input)) {
            term.push_str(known);
            return;
        }
        if language == Language::English {
            term.push_str(&self.english.stem(input));
        } else {
            fold(&self.stemmer.stem(input), MAX_TERM_CHARS, term);
        }
        if term.is_empty() {
            term.push_str(word);
        }
        if let Some(cache) = &mut self.cache {
            cache.put(language, input, term);
        }
    }

    /// Replaces the `term` of the last word by the stem that the word would have without its accents; returns
    /// whether the two differ. Readers often leave accents out, and a stemmer knows some endings only by theirs:
    /// without this variant `mangee` would not find `mangée`.
    pub(super) fn unaccented_stem(&self, word: &str, term: &mut String) -> bool {
        if self.lowered.is_empty() || self.lowered == word || !word.is_ascii() {
            return false;
        }
        let unaccented = self.stemmer.stem(word);
        if unaccented.is_empty() || unaccented == term.as_str() {
            return false;
        }
        term.clear();
        term.push_str(&unaccented);
        true
    }

    fn stems_alphabet_of(&self, word: &str) -> bool {
        let alphabet = word.chars().next().and_then(Alphabet::of);
        self.language != Language::English
            && alphabet.is_some_and(|alphabet| self.language.uses_alphabet(alphabet))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fold::fold;
    use super::*;

    fn stem(language: Language, written: &str) -> String {
        let (mut word, mut term) = (String::new(), String::new());
        fold(written, MAX_TERM_CHARS, &mut word);
        TermStemmer::new(language).stem(written, &word, &mut term);
        term
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for (language, forms) in [
            (Language::English, ["ferry", "Ferries"]),
            (Language::German, ["Haus", "Häuser"]),
            (Language::French, ["mangée", "MANGER"]),
            (Language::Spanish, ["canción", "canciones"]),
            (Language::Russian, ["бюджет", "Бюджета"]),
            (Language::Turkish, ["kitap", "KİTAPLAR"]),
            (Language::Greek, ["νόμος", "ΝΌΜΟΙ"]),
            (Language::Arabic, ["كتاب", "الكتاب"]),
            (Language::Finnish, ["talo", "talossa"]),
            (Language::Serbian, ["zakon", "закон"]),
            (Language::Ukrainian, ["закон", "закони"]),
        ] {
            let [one, other] = forms.map(|form| stem(language, form));
            assert_eq!(one, other, "{forms:?}");
            assert!(!one.is_empty());
        }
    }

    #[test]
    fn words_of_another_alphabet_are_left_alone_or_read_as_english() {
        assert_eq!(stem(Language::Russian, "ferries"), "ferri");
        assert_eq!(stem(Language::English, "бюджета"), "бюджета");
        assert_eq!(stem(Language::French, "бюджета"), "бюджета");
    }

    #[test]
    fn a_word_typed_without_its_accents_is_found() {
        for (language, written, typed) in [
            (Language::French, "abandonnée", "abandonnee"),
            (Language::Turkish, "adaletbakanlığı", "adaletbakanligi"),
            (Language::Hungarian, "adatbázisról", "adatbazisrol"),
        ] {
            let mut stems = TermStemmer::new(language);
            let mut term = String::new();
            stems.stem(written, typed, &mut term);
            assert!(stems.unaccented_stem(typed, &mut term), "{written}");
            assert_eq!(term, stem(language, typed), "{written}");
        }
        let mut stems = TermStemmer::new(Language::English);
        let mut term = String::new();
        stems.stem("café", "cafe", &mut term);
        assert!(!stems.unaccented_stem("cafe", &mut term));
    }
}
