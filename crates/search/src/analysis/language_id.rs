//! Language identification for embedding models: is a text in a language that an English model knows?
//!
//! An English model gives text in other languages a vector too, and its cosines are noise that outweighs the
//! lexical score: on XQuAD the mean nDCG@10 of German, Russian, Chinese, Thai and Arabic was .716 with such vectors
//! and .952 with words alone. So foreign text gets no vector. Source code, tables and lists of names resemble any
//! language and are left to the model.
//!
//! Each distinct word of a text is evidence, and evidence in log-odds adds up. So eight words of a title decide as
//! well as a page does, and a text in two languages is in the one that has more words. The weights are the rounded
//! log-odds of the kinds of words in short descriptions of Debian packages, English against twelve other languages.
//! `bench/ranking/README.md` has the measurements.

use docent_unicode::truncate_bytes;
use rustc_hash::FxHashSet;

use super::english_vocabulary;
use super::fold::{ScriptSpacing, extends_previous, fold, script};
use super::language::{Alphabet, Language};
use super::stop_words::StopWord;

/// How much of a text is examined, in bytes from its beginning.
const MAX_SCANNED_BYTES: usize = 4 * 1024;

/// The weight of one character of an unspaced script, in letters of an alphabet.
const LETTERS_IN_A_CHARACTER: usize = 3;

/// The score from which a text is foreign. Of 5,183 titles of papers, nearly all in English, three reach it, and one of
/// these is in German. Of titles of eight words in German and Spanish, 95 % and 99.6 % reach it.
const FOREIGN_SCORE: i32 = 4;

/// The score from which a text is foreign that has unknown words, but no stop word and no accent of another
/// language: a list of English jargon has unknown words too. From 8 to 12, none of the English texts changes.
const UNKNOWN_SCORE: i32 = 8;

/// The score of a text that is mostly in another script; no number of English names in it makes up for that.
const OTHER_SCRIPT_SCORE: i32 = 100_000;

/// The score up to which a passage is in English.
const ENGLISH_SCORE: i32 = -2;

/// Capitalized words of this many letters are no names but compounds, as in German. Of the capitalized words that the
/// English vocabulary lacks, two in five are as long in German short descriptions and one in thirty in English ones.
const MIN_COMPOUND_CHARS: usize = 12;

/// The verdict about a text. `Unclear` means too short, or names; the text around it decides then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LanguageId {
    English,
    Foreign,
    Unclear,
}

impl LanguageId {
    /// Classifies a passage or a whole document.
    pub(crate) fn of_passage(text: &str) -> Self {
        LanguageEvidence::of(text).verdict()
    }

    /// Classifies a question. In doubt the documents that contain its words decide, so `Unclear` is the common
    /// answer for a few words. Names and technical terms are no doubt in English, but may be so in a German question.
    pub(crate) fn of_question(text: &str) -> Self {
        let evidence = LanguageEvidence::of(text);
        match evidence.verdict() {
            Self::English if evidence.english_stop_words == 0 => Self::Unclear,
            verdict => verdict,
        }
    }
}

/// What the distinct words of some texts say about their language: the sum of their weights, positive for any
/// language but English, how many of them are stop words of English alone, and how many no English text would have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LanguageEvidence {
    score: i32,
    english_stop_words: u32,
    foreign_words: u32,
}

impl LanguageEvidence {
    /// The evidence of the beginning of a text.
    pub(crate) fn of(text: &str) -> Self {
        let text = truncate_bytes(text, MAX_SCANNED_BYTES);
        let mut evidence = Self::default();
        if is_in_another_script(text) {
            evidence.add(WordClass::OtherScript, OTHER_SCRIPT_SCORE);
        }
        let mut seen = FxHashSet::default();
        let mut folded = String::new();
        // A word that comes again and again is a name, or an identifier in source code.
        for word in words(text).filter(|word| seen.insert(*word)) {
            let class = WordClass::of(word, &mut folded);
            evidence.add(class, class.weight());
        }
        evidence
    }

    fn add(&mut self, class: WordClass, weight: i32) {
        self.score = self.score.saturating_add(weight);
        self.english_stop_words += u32::from(class == WordClass::EnglishStopWord);
        self.foreign_words += u32::from(class.is_foreign());
    }

    /// The sum of the weights, positive where another language is likelier than English.
    pub(crate) fn score(self) -> i32 {
        self.score
    }

    /// The evidence of two texts together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            score: self.score.saturating_add(other.score),
            english_stop_words: self.english_stop_words + other.english_stop_words,
            foreign_words: self.foreign_words + other.foreign_words,
        }
    }

    /// The language that the evidence suffices for.
    pub(crate) fn verdict(self) -> LanguageId {
        let enough = if self.foreign_words > 0 {
            FOREIGN_SCORE
        } else {
            UNKNOWN_SCORE
        };
        if self.score >= enough {
            LanguageId::Foreign
        } else if self.score <= ENGLISH_SCORE {
            LanguageId::English
        } else {
            LanguageId::Unclear
        }
    }
}

/// What a word says about the language of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordClass {
    /// A stop word of English and of no other language.
    EnglishStopWord,
    /// A word of the English vocabulary.
    English,
    /// A stop word of English and of other languages, a number, an abbreviation, an identifier, or a name. Short
    /// German nouns look like names.
    Neutral,
    /// A small word or a capitalized compound that is not in the English vocabulary.
    Unknown,
    /// A stop word of other languages.
    ForeignStopWord,
    /// A small word with letters that English does not have.
    Accented,
    /// A word in another alphabet or script.
    OtherScript,
}

impl WordClass {
    /// Classifies a word; `folded` is a buffer for its folded form.
    fn of(word: &str, folded: &mut String) -> Self {
        let mut chars = word.chars();
        let Some(first) = chars.next() else {
            return Self::Neutral;
        };
        if word.chars().any(char::is_numeric) {
            return Self::Neutral;
        }
        // `κB` and `µm` are neither.
        if !is_latin(first) {
            let is_mixed = word.chars().any(is_latin);
            return if is_mixed {
                Self::Neutral
            } else {
                Self::OtherScript
            };
        }
        folded.clear();
        fold(word, word.len(), folded);
        if let Some(stop_word) = StopWord::find(folded) {
            // Vietnamese `thế` folds to `the`.
            let is_english = word.is_ascii() && stop_word.is_in(Language::English);
            let mut languages = stop_word.languages();
            let is_foreign =
                languages.any(|one| one != Language::English && one.uses_alphabet(Alphabet::Latin));
            match (is_english, is_foreign) {
                (true, true) => return Self::Neutral,
                (true, false) => return Self::EnglishStopWord,
                (false, true) => return Self::ForeignStopWord,
                (false, false) => {}
            }
        }
        if word.is_ascii() && english_vocabulary::is_english(word) {
            return Self::English;
        }
        if chars.any(char::is_uppercase) {
            Self::Neutral
        } else if first.is_uppercase() {
            match word.chars().nth(MIN_COMPOUND_CHARS - 1) {
                Some(_) => Self::Unknown,
                None => Self::Neutral,
            }
        } else if word.is_ascii() {
            Self::Unknown
        } else {
            Self::Accented
        }
    }

    const fn weight(self) -> i32 {
        match self {
            Self::EnglishStopWord => -4,
            Self::English => -1,
            Self::Neutral => 0,
            Self::Unknown => 2,
            Self::ForeignStopWord | Self::Accented | Self::OtherScript => 3,
        }
    }

    /// Whether hardly any English text has such a word.
    const fn is_foreign(self) -> bool {
        matches!(
            self,
            Self::ForeignStopWord | Self::Accented | Self::OtherScript
        )
    }
}

/// The words of a text. A single letter is as often a name or a variable as it is a word.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && !extends_previous(c));
    parts.filter(|word| word.chars().nth(1).is_some())
}

/// Whether most letters of a text are of a script that English does not use. A character of an unspaced script
/// counts as the letters that it replaces.
fn is_in_another_script(text: &str) -> bool {
    let (mut latin, mut other) = (0, 0);
    for c in text.chars().filter(|c| c.is_alphabetic()) {
        if is_latin(c) {
            latin += 1;
        } else if script(c) == Some(ScriptSpacing::Unspaced) {
            other += LETTERS_IN_A_CHARACTER;
        } else {
            other += 1;
        }
    }
    other > latin
}

fn is_latin(c: char) -> bool {
    c.is_ascii_alphabetic()
        || Alphabet::of(c) == Some(Alphabet::Latin)
        || matches!(u32::from(c), 0x250..=0x2AF | 0xFB00..=0xFB06)
}

#[cfg(test)]
mod tests {
    use super::*;
    use LanguageId::{English, Foreign, Unclear};

    #[test]
    fn prose_in_another_language_is_foreign() {
        for text in [
            "Die Fähre zur Insel kam diese Woche wieder zu spät, und niemand wusste, warum.",
            "Le bac traverse le détroit chaque matin et revient avant que la nuit ne tombe sur les îles.",
            "Phà qua eo biển mỗi buổi sáng và trở về trước khi đêm xuống trên các hòn đảo.",
            "Feribot her sabah boğazı geçer ve adalara gece çökmeden önce geri döner.",
            "Паром на остров на этой неделе снова опоздал.",
            "تأخرت العبارة إلى الجزيرة مرة أخرى هذا الأسبوع.",
            "渡轮每天早上穿过海峡，在夜幕降临岛屿之前返回。",
            "フェリーは毎朝海峡を渡り、夜が来る前に島に戻ります。",
            "여객선은 매일 아침 해협을 건너 밤이 되기 전에 섬으로 돌아온다.",
            "เรือข้ามฟากข้ามช่องแคบทุกเช้าและกลับก่อนค่ำ",
            "ফেরি প্রতিদিন সকালে প্রণালী পার হয় এবং রাত নামার আগে ফিরে আসে।",
            "ბორანი ყოველ დილით კვეთს სრუტეს და ღამემდე ბრუნდება.",
            // Folded, these have `the`, `to`, `do`, `an` and `a`.
            "Có nhiều lớp độ phức tạp được nghi ngờ là khác nhau, thế nhưng tổ chức của chúng vẫn chưa được chứng minh.",
            // More capitals than small letters, and many digits.
            "Die Harvard Business School und viele Sportanlagen der Universität, darunter das Harvard Stadium, \
             liegen auf einem Campus in Allston gegenüber dem Charles River.",
            "Der Schwarze Tod kam 1466, 1500, 1555 und 1596 nach Paris; er war fast jedes Jahr zwischen 1500 und 1850 \
             an einem Ort der Küste, und 1720 starben dort 40.000 Menschen.",
            // `in` is the most frequent word of Slovene too.
            "Trajekt vsako jutro prečka ožino in se vrne, preden se na otoke spusti noč, in vsi na obali čakajo \
             nanj ter mu mahajo in kličejo v pozdrav.",
            // Languages for which there are no stop words.
            "Kivuko huvuka mlango wa bahari kila asubuhi na kurudi kabla ya usiku kuingia katika visiwa.",
            "Ferjan siglir yfir sundið á hverjum morgni og kemur aftur áður en nóttin skellur á eyjunum.",
            // English names in another script.
            "使用 Kubernetes Ingress Controller 部署 service mesh 的方法",
            // Decomposed, an accent is a character of its own.
            "die alten Fa\u{308}hren und Bru\u{308}cken",
        ] {
            assert_eq!(LanguageId::of_passage(text), Foreign, "{text}");
        }
    }

    #[test]
    fn what_may_be_english_is_left_to_the_model() {
        for (expected, text) in [
            (
                English,
                "The ferry crosses the sound each morning and comes back before the night.",
            ),
            (
                English,
                "We report that TGF-β1 induces apoptosis in CD4+ T cells of naïve mice.",
            ),
            (
                English,
                "fn main() { let mut x = vec![1, 2, 3]; x.push(4); assert_eq!(x.len(), 4); }",
            ),
            (
                Unclear,
                "Aurel Whitmarron, Ines Caldervale, Otto Brandwein, Léa Montclair, Kaj Østergren",
            ),
            (Unclear, "Radioiodine treatment, non-toxic goitre"),
            (Unclear, "zardaverine, rolipram, quinzapride"),
            (Unclear, "Konfigurationsdateien"),
            (Unclear, "Ellin 12 14.5 98 | Tarn 7 8.25 61"),
            (Unclear, "ferry"),
            (Unclear, ""),
        ] {
            assert_eq!(LanguageId::of_passage(text), expected, "{text}");
        }
    }

    #[test]
    fn a_word_that_comes_again_and_again_counts_once() {
        let code = "cio_close(cio); if cio_open(cio) { cio_close(cio) } else { cio_close(cio) }";
        assert_eq!(
            LanguageId::of_passage(&code.repeat(40)),
            LanguageId::of_passage(code)
        );
        assert_ne!(LanguageId::of_passage(&code.repeat(40)), Foreign);
    }

    #[test]
    fn a_question_is_foreign_only_where_it_shows() {
        for (expected, text) in [
            (English, "who is the minister"),
            (English, "what was the price of die casting in 1950"),
            (English, "who runs the café in São Tomé"),
            (English, "ADAR1 binds to Dicer to cleave it"),
            (Foreign, "wie hoch ist der Preis"),
            (Foreign, "où est la mairie"),
            (Foreign, "цена воды"),
            (Foreign, "水价"),
            (Foreign, "سعر الماء"),
            (Foreign, "Nhà hát Mùa hè đã hoạt động được bao lâu?"),
            (
                Foreign,
                "Apollo 1'in ekibi testlerini Kennedy Uzay Merkezi'nde nerede yaptı?",
            ),
            // `in` is a word of German too.
            (Unclear, "Preis in Berlin"),
            (Unclear, "Wasser Preis"),
            (Unclear, "Manning Quarterback"),
            (Unclear, "python go to next page"),
            (Unclear, "Xorg X Server Basis-Server"),
            (Unclear, "Schrödinger equation"),
            (Unclear, "get_current_branch"),
            (Unclear, "2024"),
        ] {
            assert_eq!(LanguageId::of_question(text), expected, "{text}");
        }
    }

    /// The titles and the questions of two words of `tests/data/short_texts.txt`, by language.
    fn short_texts() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
        let text = include_str!("../../tests/data/short_texts.txt");
        let mut languages: Vec<(&str, Vec<_>)> = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[') {
                languages.push((name.trim_end_matches(']'), Vec::new()));
            } else if let Some((title, question)) = line.split_once(" | ") {
                languages.last_mut().unwrap().1.push((title, question));
            }
        }
        assert_eq!(languages.len(), 13);
        assert!(languages.iter().all(|(_, lines)| lines.len() == 20));
        languages
    }

    fn count(texts: impl Iterator<Item = LanguageId>, wanted: LanguageId) -> usize {
        texts.filter(|found| *found == wanted).count()
    }

    #[test]
    fn no_short_text_is_taken_for_the_other_side() {
        for (language, lines) in short_texts() {
            let wrong = if language == "English" {
                Foreign
            } else {
                English
            };
            let titles = lines.iter().map(|(title, _)| LanguageId::of_passage(title));
            let questions = lines
                .iter()
                .map(|(_, question)| LanguageId::of_question(question));
            assert_eq!(count(titles, wrong), 0, "titles in {language}");
            assert_eq!(count(questions, wrong), 0, "questions in {language}");
        }
    }

    #[test]
    fn most_titles_show_their_language() {
        let mut found = 0;
        for (language, lines) in short_texts() {
            let right = if language == "English" {
                English
            } else {
                Foreign
            };
            let titles = lines.iter().map(|(title, _)| LanguageId::of_passage(title));
            let shown = count(titles, right);
            // German nouns look like names, and Finnish has few short words.
            assert!(shown >= 6, "{language}: {shown} of 20");
            found += shown;
        }
        assert!(found >= 220, "{found} of 260");
    }

    #[test]
    fn any_five_titles_together_show_their_language() {
        for (language, lines) in short_texts() {
            let right = if language == "English" {
                English
            } else {
                Foreign
            };
            for five in lines.windows(5) {
                let evidence = five.iter().map(|(title, _)| LanguageEvidence::of(title));
                let evidence = evidence.reduce(LanguageEvidence::and).unwrap();
                assert_eq!(evidence.verdict(), right, "{language}: {five:?}");
            }
        }
    }
}
