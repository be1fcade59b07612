//! Language identification for embedding models: is a text in a language that an English model knows?
//!
//! An English model gives text in other languages a vector too, and its cosines are noise that outweighs the
//! lexical score: on XQuAD the mean nDCG@10 of German, Russian, Chinese, Thai and Arabic was .716 with such vectors
//! and .952 with words alone. So foreign text gets no vector. Source code, tables and lists of names resemble any
//! language and are left to the model; only prose or another script can be ruled foreign.

use docent_unicode::truncate_bytes;

use super::fold::{ScriptSpacing, script};
use super::language::{Alphabet, Language};
use super::language_detection::StopWordVotes;

/// How much of a text is examined, in bytes from its beginning.
const MAX_SCANNED_BYTES: usize = 4 * 1024;

/// The weight of one character of an unspaced script, in letters of an alphabet. A Chinese or Japanese word has about
/// two characters where an English one has five or more letters. Unweighted, a few product names in Latin letters would
/// outnumber the sentence around them.
const LETTERS_IN_A_CHARACTER: usize = 3;

/// The fewest words of prose for which the trigram statistics are trusted. Fewer words are `Unclear`, which leaves them
/// to the model: a passage that is wrongly called foreign gets no vector and is found by its words alone.
const MIN_GUESSED_WORDS: u32 = 8;

/// The fewest words of prose that count as foreign when there is no English stop word among them, even though their
/// language is unknown. In English prose one word in three or four is a stop word, so this many words without any are
/// not English.
const MIN_PROSE_WORDS: u32 = 25;

/// The verdict about a text. `Unclear` means too short, or no prose; callers then leave the text to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LanguageId {
    English,
    Foreign,
    Unclear,
}

impl LanguageId {
    /// Classifies a passage or a whole document. The tests go from the certain to the doubtful: letters of other
    /// scripts, stop words where they are dense, accents, and last the trigrams of prose. Whatever looks like code or a
    /// table is left to the model before the tests that such text would deceive.
    pub(crate) fn of_passage(text: &str) -> Self {
        let text = beginning(text);
        let letters = LetterCounts::of(text);
        if letters.are_foreign() {
            return Self::Foreign;
        }
        let votes = StopWordVotes::of("", text);
        let count = StopWordCount::of(&votes);
        if count.english * 8 >= count.words && count.english > count.other && count.english > 1 {
            return Self::English;
        }
        // Source code has words of any language.
        if letters.are_source_text() {
            return Self::Unclear;
        }
        let lacks_english = count.english * 16 < count.words;
        if lacks_english && count.words >= MIN_GUESSED_WORDS && letters.have_many_accents() {
            return Self::Foreign;
        }
        let is_outweighed = count.other * 6 >= count.words && count.other * 3 > count.english * 4;
        if is_outweighed && count.other_different >= 4 && count.other >= count.english * 3 {
            return Self::Foreign;
        }
        // Tables and lists of names resemble any language.
        if !letters.are_prose() {
            return Self::Unclear;
        }
        if is_outweighed && count.other_different >= 3 {
            return Self::Foreign;
        }
        if count.words < MIN_GUESSED_WORDS {
            return Self::Unclear;
        }
        match guess(text) {
            Some(true) => Self::English,
            Some(false) => Self::Foreign,
            _ if lacks_english && count.words >= MIN_PROSE_WORDS => Self::Foreign,
            _ => Self::Unclear,
        }
    }

    /// Classifies a question. A few words seldom identify a language, so the thresholds differ from those for
    /// passages, and `Unclear` is the common answer; the documents that contain the words decide then.
    pub(crate) fn of_question(text: &str) -> Self {
        let text = beginning(text);
        let letters = LetterCounts::of(text);
        if letters.are_foreign() {
            return Self::Foreign;
        }
        let count = StopWordCount::of(&StopWordVotes::of("", text));
        let has_accents = letters.accented > 0;
        if count.english > count.other
            || (count.english > 0 && count.english == count.other && !has_accents)
        {
            return Self::English;
        }
        let has_no_english = count.english == 0;
        // `go to next page` has two stop words of Polish and one of English.
        let outweighs_english = count.other >= 3 && count.other >= count.english + 2;
        if (has_no_english && count.other_different >= 2)
            || (has_no_english && count.other > 0 && has_accents)
            || outweighs_english
        {
            return Self::Foreign;
        }
        let is_sentence = count.words >= 4 && has_no_english;
        if is_sentence && has_accents && (letters.have_many_accents() || guess(text) == Some(false))
        {
            return Self::Foreign;
        }
        Self::Unclear
    }
}

/// Whether prose is English, by its trigram statistics; `None` when they are not reliable.
fn guess(text: &str) -> Option<bool> {
    let found = whatlang::detect(text).filter(whatlang::Info::is_reliable)?;
    Some(found.lang() == whatlang::Lang::Eng)
}

fn beginning(text: &str) -> &str {
    truncate_bytes(text, MAX_SCANNED_BYTES)
}

/// Counts of the stop words of English and of the best other language in Latin letters; `other_different` counts
/// distinct ones.
struct StopWordCount {
    words: u32,
    english: u32,
    other: u32,
    other_different: u32,
}

impl StopWordCount {
    fn of(votes: &StopWordVotes) -> Self {
        let others = Language::ALL.into_iter();
        let others =
            others.filter(|one| *one != Language::English && one.uses_alphabet(Alphabet::Latin));
        let (other, other_different) = others
            .map(|one| votes.stop_words_in(one))
            .max()
            .unwrap_or_default();
        Self {
            words: votes.words_in(Alphabet::Latin),
            english: votes.stop_words_in(Language::English).0,
            other,
            other_different,
        }
    }
}

/// Character statistics of a text. `accented` counts Latin letters that English does not have. `other` counts
/// letters of other scripts, with a character of an unspaced script weighted as the Latin letters it replaces.
/// `symbols` are brackets, operators and the like. `small` and `capital` count words by the case of their first
/// letter.
#[derive(Default)]
struct LetterCounts {
    latin: usize,
    accented: usize,
    other: usize,
    digits: usize,
    symbols: usize,
    small: usize,
    capital: usize,
}

impl LetterCounts {
    fn of(text: &str) -> Self {
        let mut letters = Self::default();
        let mut in_word = false;
        for c in text.chars() {
            let was_in_word = std::mem::replace(&mut in_word, c.is_alphanumeric());
            if c.is_ascii_alphabetic() || (c.is_alphabetic() && is_latin(c)) {
                letters.latin += 1;
                letters.accented += usize::from(!c.is_ascii());
                letters.small += usize::from(!was_in_word && c.is_lowercase());
                letters.capital += usize::from(!was_in_word && c.is_uppercase());
            } else if c.is_numeric() {
                letters.digits += 1;
            } else if script(c) == Some(ScriptSpacing::Unspaced) {
                letters.other += LETTERS_IN_A_CHARACTER;
            } else if c.is_alphabetic() {
                letters.other += 1;
            } else {
                letters.symbols += usize::from("{}[]()<>=_;|\\/#*$@^~`\"+%&".contains(c));
            }
        }
        letters
    }

    /// Whether most of a text is in a script that English does not use.
    fn are_foreign(&self) -> bool {
        self.other > self.latin
    }

    fn are_source_text(&self) -> bool {
        self.symbols * 12 > self.latin
    }

    fn are_prose(&self) -> bool {
        self.symbols * 25 <= self.latin
            && self.digits * 8 <= self.latin
            && self.small > self.capital
    }

    /// Whether one letter in twenty-five has an accent. In English, names and loanwords make that one in some
    /// hundreds.
    fn have_many_accents(&self) -> bool {
        self.accented * 25 >= self.latin
    }
}

fn is_latin(c: char) -> bool {
    Alphabet::of(c) == Some(Alphabet::Latin)
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
            // Languages for which there are neither stop words nor statistics.
            "Kivuko huvuka mlango wa bahari kila asubuhi na kurudi kabla ya usiku kuingia katika visiwa, na watu \
             wote wa kijiji husubiri pwani mpaka kifike salama, kisha hurudi nyumbani kwao wakiwa na furaha.",
            "Ferjan siglir yfir sundið á hverjum morgni og kemur aftur áður en nóttin skellur á eyjunum, en í \
             þessari viku hefur hún verið of sein þrisvar sinnum vegna þoku sem lá yfir öllum firðinum.",
        ] {
            assert_eq!(LanguageId::of_passage(text), Foreign, "{text}");
        }
    }

    #[test]
    fn english_and_source_text_are_left_to_the_model() {
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
                Unclear,
                "fn main() { let mut x = vec![1, 2, 3]; x.push(4); assert_eq!(x.len(), 4); }",
            ),
            (
                Unclear,
                "def os_path(les, des): return les.des(os, que) + [por, para, como]",
            ),
            (
                Unclear,
                "Aurel Whitmarron, Ines Caldervale, Otto Brandwein, Léa Montclair, Kaj Østergren",
            ),
            (Unclear, "Ellin 12 14.5 98 | Tarn 7 8.25 61"),
            (Unclear, "ferry"),
            (Unclear, ""),
        ] {
            assert_eq!(LanguageId::of_passage(text), expected, "{text}");
        }
    }

    #[test]
    fn a_question_is_foreign_only_where_it_shows() {
        for (expected, text) in [
            (English, "who is the minister"),
            (English, "what was the price of die casting in 1950"),
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
            (English, "who runs the café in São Tomé"),
            (Unclear, "python os path"),
            (Unclear, "python go to next page"),
            (English, "ADAR1 binds to Dicer to cleave it"),
            (Unclear, "Wasser Preis"),
            (Unclear, "Schrödinger equation"),
            (Unclear, "get_current_branch"),
            (Unclear, "2024"),
        ] {
            assert_eq!(LanguageId::of_question(text), expected, "{text}");
        }
    }
}
