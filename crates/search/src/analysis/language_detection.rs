//! Language detection: chooses the stemmer for a document by its beginning.
//!
//! Detection has two stages. The first counts the stop words of each language, which is fast and reliable for
//! prose. Only when that is inconclusive does the second compare trigram statistics; it costs more, but a single
//! sentence is enough for it.

use docent_unicode::truncate_bytes;
use whatlang::Lang;

use super::fold::{ScriptSpacing, fold};
use super::language::{Alphabet, Language};
use super::stop_words::{MAX_STOP_WORDS, StopWord};
use super::{first_letter, run_length, word_length};

/// How much of a text is scanned for stop words, in bytes. Prose is certain long before, so only texts that are no
/// prose reach the limit: lists, tables and code, which it keeps from being read to their end for an answer that would
/// not change.
const MAX_COUNTED_BYTES: usize = 4 * 1024;

/// How much of a document is compared by trigrams, in bytes. It is less than for stop words, because this comparison
/// costs more for each byte, and a single sentence is enough for it.
const MAX_COMPARED_BYTES: usize = 1024;

/// The interval in words at which counting checks whether the language is already certain. The check compares the
/// counts of all languages, so after every word it would cost more than the counting itself.
const WORDS_PER_CHECK: u32 = 24;

/// The ratio of characters of unspaced script to spaced words above which a text is in no language of those words. A
/// word of such a script has about two characters, so from here on the spaced words are the smaller part: the names and
/// abbreviations in a Chinese or Japanese text.
const UNSPACED_FOR_A_WORD: u32 = 3;

/// The number of unspaced characters after which counting may stop early. A title or a name at the start can be in
/// another script than the text after it, so some sentences have to agree first.
const MIN_UNSPACED: u32 = 120;

/// The stop words, and the distinct stop words, that make a language certain. Both are required: a single word that
/// comes again and again is an identifier in source code, however often it does.
const MIN_CLEAR: u32 = 6;
const MIN_CLEAR_DIFFERENT: u32 = 4;

/// The distinct stop words that make a language likely.
const MIN_LIKELY_DIFFERENT: u32 = 3;

/// A language is likely when one word in this many is a stop word. Prose has one in every three or four.
const CLEAR_SHARE: u32 = 5;

/// The trigram guess is trusted when one word in this many is a stop word of that language. Source code, tables and
/// lists of names resemble any language but have none.
const BELIEVED_SHARE: u32 = 12;

/// Up to this many words a single distinct stop word supports a guess. In a longer text one word that comes again
/// and again is an identifier in source code.
const MAX_WORDS_OF_A_LINE: u32 = 10;

/// The least confidence of the trigram guess, from 0 to 1.
const MIN_CONFIDENCE: f64 = 0.3;

/// Detects the language of a document by the beginning of its title and its text.
///
/// In doubt the answer is the most common language of the alphabet: a few words, a list or source code in Latin letters
/// count as English. Trigrams are compared only if the stop words support another language at all, because they find a
/// language in source code and in lists too.
pub(crate) fn detect(title: &str, text: &str) -> Language {
    let votes = StopWordVotes::of(title, text);
    let Some(alphabet) = votes.alphabet() else {
        return Language::default();
    };
    if let Some(language) = votes.certain_language(alphabet) {
        return language;
    }
    let usual = default_language(alphabet);
    let mut others = Language::ALL.into_iter().filter(|other| *other != usual);
    if !others.any(|other| votes.has_stop_words_of(other, alphabet)) {
        return usual;
    }
    match guess_by_trigrams(title, text) {
        TrigramGuess::Supported(found) if votes.has_stop_words_of(found, alphabet) => found,
        TrigramGuess::Unsupported => usual,
        _ => votes.likely_language(alphabet).unwrap_or(usual),
    }
}

/// The result of comparing trigram statistics. `Unsupported` is a language without a stemmer; `Unclear` means that
/// several languages fit.
enum TrigramGuess {
    Supported(Language),
    Unsupported,
    Unclear,
}

/// Counts of stop words by language: the votes of the first stage. `words` counts the words of each alphabet,
/// `stop_words` the occurrences and the distinct stop words of each language, `seen` is a bit set of the stop words
/// met so far, and `unspaced` counts characters of unspaced scripts.
pub(super) struct StopWordVotes {
    words: [u32; Alphabet::COUNT],
    stop_words: [(u32, u32); Language::ALL.len()],
    seen: [u64; MAX_STOP_WORDS / 64],
    unspaced: u32,
    folded: String,
}

impl StopWordVotes {
    /// Counts the stop words at the beginning of a title and a text.
    pub(super) fn of(title: &str, text: &str) -> Self {
        let mut votes = Self::new();
        if !votes.count(title) {
            votes.count(text);
        }
        votes
    }

    fn new() -> Self {
        Self {
            words: [0; Alphabet::COUNT],
            stop_words: [(0, 0); Language::ALL.len()],
            seen: [0; MAX_STOP_WORDS / 64],
            unspaced: 0,
            folded: String::new(),
        }
    }

    /// Counts the stop words at the beginning of a text. Returns true when the language was certain before the end.
    fn count(&mut self, text: &str) -> bool {
        let text = truncate_bytes(text, MAX_COUNTED_BYTES);
        let mut rest = text;
        let mut words = 0;
        while let Some((start, script)) = first_letter(rest) {
            let tail = rest.get(start..).unwrap_or_default();
            let length = match script {
                ScriptSpacing::Spaced => word_length(tail),
                ScriptSpacing::Unspaced => run_length(tail).0,
            };
            let (word, after) = tail.split_at_checked(length).unwrap_or_default();
            rest = after;
            if script == ScriptSpacing::Unspaced {
                self.unspaced += word.chars().map(|_| 1).sum::<u32>();
                if self.unspaced > MIN_UNSPACED && self.alphabet().is_none() {
                    return true;
                }
                continue;
            }
            let before = text.len() - rest.len() - word.len();
            let is_suffix = text
                .get(..before)
                .is_some_and(|text| text.ends_with(['\'', '’']));
            self.add(word, word.is_ascii() && !is_suffix);
            words += 1;
            if words % WORDS_PER_CHECK == 0
                && self
                    .alphabet()
                    .and_then(|known| self.certain_language(known))
                    .is_some()
            {
                return true;
            }
        }
        false
    }

    /// Counts one word. Stop words are looked up without their accents. `can_be_english` is false for a word that
    /// only folds to an English one: Vietnamese `thế` folds to `the`, and Turkish `Luther'in` ends in `in`.
    fn add(&mut self, word: &str, can_be_english: bool) {
        let Some(alphabet) = word.chars().next().and_then(Alphabet::of) else {
            return;
        };
        if let Some(words) = self.words.get_mut(alphabet as usize) {
            *words += 1;
        }
        // A single Latin letter is as often a name as it is a word.
        if word.len() < 2 {
            return;
        }
        self.folded.clear();
        fold(word, word.len(), &mut self.folded);
        let Some(stop_word) = StopWord::find(&self.folded) else {
            return;
        };
        let mut is_new = 0;
        if let Some(seen) = self.seen.get_mut(stop_word.number / 64) {
            let bit = 1 << (stop_word.number % 64);
            is_new = u32::from(*seen & bit == 0);
            *seen |= bit;
        }
        for language in stop_word.languages() {
            if language == Language::English && !can_be_english {
                continue;
            }
            if let Some((all, different)) = self.stop_words.get_mut(language as usize) {
                *all += 1;
                *different += is_new;
            }
        }
    }

    /// The alphabet of most words; `None` when the text is in a script without spaces.
    pub(super) fn alphabet(&self) -> Option<Alphabet> {
        if self.unspaced > self.words.iter().sum::<u32>() * UNSPACED_FOR_A_WORD {
            return None;
        }
        let languages = Language::ALL.into_iter().rev();
        let alphabets = languages.map(Language::alphabet);
        alphabets.max_by_key(|alphabet| self.words_in(*alphabet))
    }

    /// The language with clearly more stop words than any other; `None` when a rival has over three quarters as many.
    /// Related languages share many stop words, so a close second means that counting cannot tell the two apart.
    /// Trigrams decide then.
    pub(super) fn certain_language(&self, alphabet: Alphabet) -> Option<Language> {
        let best = self.likely_language(alphabet)?;
        let (total, different) = self.stop_words_in(best);
        // Related languages share many words: Danish and Norwegian, Czech and Polish.
        let near = self.readers(alphabet);
        let near = near.filter(|rival| self.stop_words_in(*rival).0 * 4 > total * 3);
        let is_prose = total >= MIN_CLEAR && different >= MIN_CLEAR_DIFFERENT;
        (is_prose && near.count() == 1).then_some(best)
    }

    /// The language with the most stop words, if they are as dense as in prose. It is a weaker statement than
    /// [`Self::certain_language`], and used where trigrams found nothing either: some stemmer has to be chosen, and
    /// that of a related language does less harm than none.
    pub(super) fn likely_language(&self, alphabet: Alphabet) -> Option<Language> {
        let readers = self.readers(alphabet);
        let best = readers.max_by_key(|language| self.stop_words_in(*language))?;
        let (total, different) = self.stop_words_in(best);
        let is_prose = total * CLEAR_SHARE >= self.words_in(alphabet);
        (is_prose && different >= MIN_LIKELY_DIFFERENT).then_some(best)
    }

    fn readers(&self, alphabet: Alphabet) -> impl Iterator<Item = Language> {
        let languages = Language::ALL.into_iter();
        languages.filter(move |language| language.uses_alphabet(alphabet))
    }

    /// Whether a text has enough stop words of a language to support a guess at it.
    pub(super) fn has_stop_words_of(&self, language: Language, alphabet: Alphabet) -> bool {
        if !language.uses_alphabet(alphabet) {
            return false;
        }
        let (total, different) = self.stop_words_in(language);
        let words = self.words_in(alphabet);
        let is_line = words <= MAX_WORDS_OF_A_LINE;
        alphabet != Alphabet::Latin
            || (different >= if is_line { 1 } else { 2 }
                && total >= self.stop_words_in(Language::English).0
                && total * BELIEVED_SHARE >= words)
    }

    pub(super) fn words_in(&self, alphabet: Alphabet) -> u32 {
        self.words.get(alphabet as usize).copied().unwrap_or(0)
    }

    /// The stop words of a language: their occurrences, and how many of them are distinct.
    pub(super) fn stop_words_in(&self, language: Language) -> (u32, u32) {
        self.stop_words
            .get(language as usize)
            .copied()
            .unwrap_or((0, 0))
    }
}

/// The most common language of an alphabet. Hebrew has no stemmer, and the one of English leaves its words
/// unchanged.
fn default_language(alphabet: Alphabet) -> Language {
    match alphabet {
        Alphabet::Arabic => Language::Arabic,
        Alphabet::Armenian => Language::Armenian,
        Alphabet::Cyrillic => Language::Russian,
        Alphabet::Devanagari => Language::Hindi,
        Alphabet::Greek => Language::Greek,
        Alphabet::Hebrew | Alphabet::Latin => Language::English,
        Alphabet::Tamil => Language::Tamil,
    }
}

/// Guesses the language by trigram statistics.
fn guess_by_trigrams(title: &str, text: &str) -> TrigramGuess {
    let found = whatlang::detect(&sample(title, text));
    let Some(found) = found.filter(|found| found.confidence() >= MIN_CONFIDENCE) else {
        return TrigramGuess::Unclear;
    };
    TrigramGuess::Supported(match found.lang() {
        Lang::Ara => Language::Arabic,
        Lang::Cat => Language::Catalan,
        Lang::Ces | Lang::Slk => Language::Czech,
        Lang::Dan => Language::Danish,
        Lang::Nld | Lang::Afr => Language::Dutch,
        Lang::Epo => Language::Esperanto,
        Lang::Est => Language::Estonian,
        Lang::Fin => Language::Finnish,
        Lang::Fra => Language::French,
        Lang::Deu => Language::German,
        Lang::Hin => Language::Hindi,
        Lang::Hun => Language::Hungarian,
        Lang::Ind => Language::Indonesian,
        Lang::Ita => Language::Italian,
        Lang::Lit => Language::Lithuanian,
        Lang::Nep => Language::Nepali,
        Lang::Nob => Language::Norwegian,
        Lang::Pes => Language::Persian,
        Lang::Pol => Language::Polish,
        Lang::Por => Language::Portuguese,
        Lang::Ron => Language::Romanian,
        Lang::Rus => Language::Russian,
        // The Serbian stemmer is made for Croatian too.
        Lang::Srp | Lang::Hrv => Language::Serbian,
        Lang::Spa => Language::Spanish,
        Lang::Swe => Language::Swedish,
        Lang::Tur => Language::Turkish,
        Lang::Ukr => Language::Ukrainian,
        Lang::Yid => Language::Yiddish,
        Lang::Eng => Language::English,
        _ => return TrigramGuess::Unsupported,
    })
}

/// The beginning of a document that is compared by trigrams.
pub(super) fn sample(title: &str, text: &str) -> String {
    let mut sample = String::with_capacity(MAX_COMPARED_BYTES);
    for part in [title, "\n", text] {
        sample.push_str(truncate_bytes(part, MAX_COMPARED_BYTES - sample.len()));
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_tells_its_language() {
        for (expected, text) in [
            (
                Language::English,
                "The ferry to the island was late again this week.",
            ),
            (
                Language::German,
                "Die Fähre zur Insel kam diese Woche wieder zu spät.",
            ),
            (
                Language::French,
                "Le ferry pour l'île était encore en retard cette semaine.",
            ),
            (
                Language::Spanish,
                "El ferry a la isla llegó tarde otra vez esta semana.",
            ),
            (
                Language::Portuguese,
                "A balsa para a ilha atrasou-se outra vez esta semana.",
            ),
            (
                Language::Italian,
                "Il traghetto per l'isola era di nuovo in ritardo questa settimana.",
            ),
            (
                Language::Dutch,
                "De veerboot naar het eiland was deze week weer te laat.",
            ),
            (
                Language::Swedish,
                "Färjan till ön var sen igen den här veckan, och alla fick vänta.",
            ),
            (
                Language::Finnish,
                "Lautta saarelle oli taas myöhässä tällä viikolla, mutta se ei haitannut.",
            ),
            (
                Language::Polish,
                "Prom na wyspę znowu się spóźnił w tym tygodniu.",
            ),
            (
                Language::Czech,
                "Trajekt na ostrov měl tento týden zase zpoždění, protože byla mlha.",
            ),
            (
                Language::Turkish,
                "Adaya giden feribot bu hafta yine geç kaldı ve herkes bekledi.",
            ),
            (
                Language::Russian,
                "Паром на остров на этой неделе снова опоздал.",
            ),
            (
                Language::Ukrainian,
                "Пором на острів цього тижня знову запізнився, і всі чекали.",
            ),
            (
                Language::Greek,
                "Το φέρι για το νησί άργησε πάλι αυτή την εβδομάδα.",
            ),
            (
                Language::Arabic,
                "تأخرت العبارة إلى الجزيرة مرة أخرى هذا الأسبوع.",
            ),
            (Language::Hindi, "द्वीप की नौका इस सप्ताह फिर देर से आई।"),
        ] {
            assert_eq!(detect("", text), expected, "{text}");
            assert_eq!(detect(text, ""), expected, "{text}");
        }
    }

    #[test]
    fn an_inconclusive_text_has_the_default_language_of_its_alphabet() {
        for (expected, text) in [
            (Language::English, ""),
            (Language::English, "ferry"),
            (Language::English, "1 2 3 ???"),
            (
                Language::English,
                "for vec in self.os.path(os, vec): os.close(vec)",
            ),
            (
                Language::English,
                "東京都の予算について説明した le la les des",
            ),
            (Language::English, "תקציב"),
            (Language::Russian, "Бюджет"),
            (Language::Greek, "προϋπολογισμός"),
        ] {
            assert_eq!(detect("", text), expected, "{text}");
        }
    }

    #[test]
    fn only_the_beginning_is_scanned() {
        let names = "Aurel Whitmarron ".repeat(MAX_COUNTED_BYTES / 17 + 1);
        let german = "Die Fähre zur Insel war nicht pünktlich und das ist schade. ".repeat(99);
        assert_eq!(detect("", &format!("{names}{german}")), Language::English);
        assert_eq!(detect("", &german), Language::German);
    }
}
