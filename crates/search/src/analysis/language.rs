//! The languages that are stemmed, with their code, alphabet and Snowball algorithm.

use std::cmp::Reverse;

use frostem::Algorithm;

/// The alphabet a word is written in. A stemmer reads one alphabet and leaves words in others unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    Arabic,
    Armenian,
    Cyrillic,
    Devanagari,
    Greek,
    Hebrew,
    Latin,
    Tamil,
}

impl Alphabet {
    /// The number of alphabets, for arrays that are indexed by them.
    pub(super) const COUNT: usize = 8;

    /// The alphabet of a letter; `None` for a letter that no stemmer reads.
    pub(super) fn of(c: char) -> Option<Self> {
        Some(match u32::from(c) {
            0x41..=0x5A | 0x61..=0x7A | 0xC0..=0x24F | 0x1E00..=0x1EFF => Self::Latin,
            0x370..=0x3FF | 0x1F00..=0x1FFF => Self::Greek,
            0x400..=0x52F => Self::Cyrillic,
            0x531..=0x587 => Self::Armenian,
            0x590..=0x5FF | 0xFB1D..=0xFB4F => Self::Hebrew,
            0x600..=0x6FF | 0x750..=0x77F | 0xFB50..=0xFDFF | 0xFE70..=0xFEFC => Self::Arabic,
            0x900..=0x97F => Self::Devanagari,
            0xB80..=0xBFF => Self::Tamil,
            _ => return None,
        })
    }
}

/// A language whose words are stemmed.
///
/// Text in any other language is stemmed as English. That stemmer leaves foreign words nearly unchanged, and
/// queries for such words are treated the same way, so both sides agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Language {
    #[default]
    English,
    Arabic,
    Armenian,
    Catalan,
    Czech,
    Danish,
    Dutch,
    Esperanto,
    Estonian,
    Finnish,
    French,
    German,
    Greek,
    Hindi,
    Hungarian,
    Indonesian,
    Italian,
    Lithuanian,
    Nepali,
    Norwegian,
    Persian,
    Polish,
    Portuguese,
    Romanian,
    Russian,
    Serbian,
    Spanish,
    Swedish,
    Tamil,
    Turkish,
    Ukrainian,
    Yiddish,
}

impl Language {
    /// All languages, in the order of their declaration.
    pub(crate) const ALL: [Self; 32] = [
        Self::English,
        Self::Arabic,
        Self::Armenian,
        Self::Catalan,
        Self::Czech,
        Self::Danish,
        Self::Dutch,
        Self::Esperanto,
        Self::Estonian,
        Self::Finnish,
        Self::French,
        Self::German,
        Self::Greek,
        Self::Hindi,
        Self::Hungarian,
        Self::Indonesian,
        Self::Italian,
        Self::Lithuanian,
        Self::Nepali,
        Self::Norwegian,
        Self::Persian,
        Self::Polish,
        Self::Portuguese,
        Self::Romanian,
        Self::Russian,
        Self::Serbian,
        Self::Spanish,
        Self::Swedish,
        Self::Tamil,
        Self::Turkish,
        Self::Ukrainian,
        Self::Yiddish,
    ];

    /// Merges language counts and sorts the languages that occur, most frequent first.
    pub(crate) fn by_document_count(counts: impl IntoIterator<Item = (Self, u64)>) -> Vec<Self> {
        let mut documents = [0_u64; Self::ALL.len()];
        for (language, count) in counts {
            if let Some(sum) = documents.get_mut(language as usize) {
                *sum += count;
            }
        }
        let counted = documents.into_iter().zip(Self::ALL);
        let mut present: Vec<_> = counted.filter(|(count, _)| *count > 0).collect();
        present.sort_by_key(|(count, _)| Reverse(*count));
        present.into_iter().map(|(_, language)| language).collect()
    }

    /// The ISO 639-1 code of the language.
    pub(crate) fn code(self) -> &'static str {
        self.properties().0
    }

    pub(super) fn alphabet(self) -> Alphabet {
        self.properties().1
    }

    /// Whether the stemmer of this language reads an alphabet. Serbian is written in two of them.
    pub(super) fn uses_alphabet(self, alphabet: Alphabet) -> bool {
        alphabet == self.alphabet() || (self == Self::Serbian && alphabet == Alphabet::Latin)
    }

    pub(super) fn algorithm(self) -> Algorithm {
        self.properties().2
    }

    fn properties(self) -> (&'static str, Alphabet, Algorithm) {
        match self {
            Self::English => ("en", Alphabet::Latin, Algorithm::English),
            Self::Arabic => ("ar", Alphabet::Arabic, Algorithm::Arabic),
            Self::Armenian => ("hy", Alphabet::Armenian, Algorithm::Armenian),
            Self::Catalan => ("ca", Alphabet::Latin, Algorithm::Catalan),
            Self::Czech => ("cs", Alphabet::Latin, Algorithm::Czech),
            Self::Danish => ("da", Alphabet::Latin, Algorithm::Danish),
            Self::Dutch => ("nl", Alphabet::Latin, Algorithm::Dutch),
            Self::Esperanto => ("eo", Alphabet::Latin, Algorithm::Esperanto),
            Self::Estonian => ("et", Alphabet::Latin, Algorithm::Estonian),
            Self::Finnish => ("fi", Alphabet::Latin, Algorithm::Finnish),
            Self::French => ("fr", Alphabet::Latin, Algorithm::French),
            Self::German => ("de", Alphabet::Latin, Algorithm::German),
            Self::Greek => ("el", Alphabet::Greek, Algorithm::Greek),
            Self::Hindi => ("hi", Alphabet::Devanagari, Algorithm::Hindi),
            Self::Hungarian => ("hu", Alphabet::Latin, Algorithm::Hungarian),
            Self::Indonesian => ("id", Alphabet::Latin, Algorithm::Indonesian),
            Self::Italian => ("it", Alphabet::Latin, Algorithm::Italian),
            Self::Lithuanian => ("lt", Alphabet::Latin, Algorithm::Lithuanian),
            Self::Nepali => ("ne", Alphabet::Devanagari, Algorithm::Nepali),
            Self::Norwegian => ("no", Alphabet::Latin, Algorithm::Norwegian),
            Self::Persian => ("fa", Alphabet::Arabic, Algorithm::Persian),
            Self::Polish => ("pl", Alphabet::Latin, Algorithm::Polish),
            Self::Portuguese => ("pt", Alphabet::Latin, Algorithm::Portuguese),
            Self::Romanian => ("ro", Alphabet::Latin, Algorithm::Romanian),
            Self::Russian => ("ru", Alphabet::Cyrillic, Algorithm::Russian),
            Self::Serbian => ("sr", Alphabet::Cyrillic, Algorithm::Serbian),
            Self::Spanish => ("es", Alphabet::Latin, Algorithm::Spanish),
            Self::Swedish => ("sv", Alphabet::Latin, Algorithm::Swedish),
            Self::Tamil => ("ta", Alphabet::Tamil, Algorithm::Tamil),
            Self::Turkish => ("tr", Alphabet::Latin, Algorithm::Turkish),
            Self::Ukrainian => ("uk", Alphabet::Cyrillic, Algorithm::Ukrainian),
            Self::Yiddish => ("yi", Alphabet::Hebrew, Algorithm::Yiddish),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_its_index_and_its_code() {
        for (index, language) in Language::ALL.into_iter().enumerate() {
            assert_eq!(language as usize, index);
            let same = Language::ALL
                .into_iter()
                .filter(|it| it.code() == language.code());
            assert_eq!(same.count(), 1);
        }
    }

    #[test]
    fn the_language_of_most_documents_comes_first() {
        let counts = [
            (Language::French, 2),
            (Language::Dutch, 4),
            (Language::French, 3),
            (Language::Greek, 0),
        ];
        assert_eq!(
            Language::by_document_count(counts),
            [Language::French, Language::Dutch]
        );
        assert_eq!(Language::by_document_count([]), []);
    }
}
