//! High-precision language detection: the language code that is shown to people.
//!
//! Stemming needs an answer for every text. This code is a statement about the document, so in doubt there is none.

use whatlang::Lang;

use super::language::{Alphabet, Language};
use super::language_detection::{StopWordVotes, sample};

/// The fewest words for which the trigram guess is trusted without a stop word. It matters for languages that have no
/// list of stop words here; for them, only the length of the text distinguishes a sentence from a name.
const MIN_WORDS: u32 = 10;

/// The ISO 639-1 code of the language of a document, such as `en`; `None` in doubt.
pub(crate) fn confident_language_code(title: &str, text: &str) -> Option<&'static str> {
    let votes = StopWordVotes::of(title, text);
    let guessed = whatlang::detect(&sample(title, text));
    let guessed = guessed
        .filter(whatlang::Info::is_reliable)
        .map(|guessed| guessed.lang());
    let Some(alphabet) = votes.alphabet() else {
        return guessed.and_then(code);
    };
    let is_long = votes.words_in(alphabet) >= MIN_WORDS;
    // Source code resembles any language but has no stop words of it.
    let is_supported = |lang: &Lang| match stemmed_language(*lang) {
        Some(language) => votes.has_stop_words_of(language, alphabet),
        None => is_long,
    };
    let by_stop_words = || {
        votes
            .certain_language(alphabet)
            .or_else(|| votes.likely_language(alphabet))
    };
    let by_alphabet = || (alphabet == Alphabet::Greek && is_long).then_some("el");
    guessed
        .filter(is_supported)
        .and_then(code)
        .or_else(|| by_stop_words().map(Language::code))
        .or_else(by_alphabet)
}

/// The stemmed language with the same code, if there is one.
fn stemmed_language(lang: Lang) -> Option<Language> {
    let code = code(lang)?;
    Language::ALL.into_iter().find(|one| one.code() == code)
}

fn code(lang: Lang) -> Option<&'static str> {
    let known = CODES.iter().find(|(known, _)| *known == lang);
    known.map(|(_, code)| *code)
}

/// The languages that the trigram detector knows, with their ISO 639-1 codes.
const CODES: [(Lang, &str); 69] = [
    (Lang::Afr, "af"),
    (Lang::Aka, "ak"),
    (Lang::Amh, "am"),
    (Lang::Ara, "ar"),
    (Lang::Aze, "az"),
    (Lang::Bel, "be"),
    (Lang::Ben, "bn"),
    (Lang::Bul, "bg"),
    (Lang::Cat, "ca"),
    (Lang::Ces, "cs"),
    (Lang::Cmn, "zh"),
    (Lang::Dan, "da"),
    (Lang::Deu, "de"),
    (Lang::Ell, "el"),
    (Lang::Eng, "en"),
    (Lang::Epo, "eo"),
    (Lang::Est, "et"),
    (Lang::Fin, "fi"),
    (Lang::Fra, "fr"),
    (Lang::Guj, "gu"),
    (Lang::Heb, "he"),
    (Lang::Hin, "hi"),
    (Lang::Hrv, "hr"),
    (Lang::Hun, "hu"),
    (Lang::Hye, "hy"),
    (Lang::Ind, "id"),
    (Lang::Ita, "it"),
    (Lang::Jav, "jv"),
    (Lang::Jpn, "ja"),
    (Lang::Kan, "kn"),
    (Lang::Kat, "ka"),
    (Lang::Khm, "km"),
    (Lang::Kor, "ko"),
    (Lang::Lat, "la"),
    (Lang::Lav, "lv"),
    (Lang::Lit, "lt"),
    (Lang::Mal, "ml"),
    (Lang::Mar, "mr"),
    (Lang::Mkd, "mk"),
    (Lang::Mya, "my"),
    (Lang::Nep, "ne"),
    (Lang::Nld, "nl"),
    (Lang::Nob, "no"),
    (Lang::Ori, "or"),
    (Lang::Pan, "pa"),
    (Lang::Pes, "fa"),
    (Lang::Pol, "pl"),
    (Lang::Por, "pt"),
    (Lang::Ron, "ro"),
    (Lang::Rus, "ru"),
    (Lang::Sin, "si"),
    (Lang::Slk, "sk"),
    (Lang::Slv, "sl"),
    (Lang::Sna, "sn"),
    (Lang::Spa, "es"),
    (Lang::Srp, "sr"),
    (Lang::Swe, "sv"),
    (Lang::Tam, "ta"),
    (Lang::Tel, "te"),
    (Lang::Tgl, "tl"),
    (Lang::Tha, "th"),
    (Lang::Tuk, "tk"),
    (Lang::Tur, "tr"),
    (Lang::Ukr, "uk"),
    (Lang::Urd, "ur"),
    (Lang::Uzb, "uz"),
    (Lang::Vie, "vi"),
    (Lang::Yid, "yi"),
    (Lang::Zul, "zu"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_told_where_it_is_plain() {
        for (text, expect) in [
            (
                "The ferry crosses the sound each morning and comes back before the night falls on the islands.",
                Some("en"),
            ),
            (
                "Die Fähre überquert jeden Morgen den Sund und kommt zurück, bevor es auf den Inseln Nacht wird.",
                Some("de"),
            ),
            (
                "Le bac traverse le détroit chaque matin et revient avant que la nuit ne tombe sur les îles.",
                Some("fr"),
            ),
            ("渡轮每天早上穿过海峡，在夜幕降临岛屿之前返回。", Some("zh")),
            (
                "フェリーは毎朝海峡を渡り、夜が来る前に島に戻ります。",
                Some("ja"),
            ),
            (
                "여객선은 매일 아침 해협을 건너 밤이 되기 전에 섬으로 돌아온다.",
                Some("ko"),
            ),
            (
                "Паром пересекает пролив каждое утро и возвращается до того, как на острова опустится ночь.",
                Some("ru"),
            ),
            (
                "fn main() { let mut x = vec![1, 2, 3]; x.push(4); assert_eq!(x.len(), 4); }",
                None,
            ),
            ("7 12 19.5", None),
            ("", None),
        ] {
            assert_eq!(confident_language_code("", text), expect, "{text}");
        }
    }

    #[test]
    fn codes_are_different() {
        for (index, (lang, code)) in CODES.iter().enumerate() {
            let others = CODES.iter().skip(index + 1);
            assert!(others.clone().all(|(other, _)| other != lang), "{code}");
            assert!(others.clone().all(|(_, other)| other != code), "{code}");
        }
    }
}
