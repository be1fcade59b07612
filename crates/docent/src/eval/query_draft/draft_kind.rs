//! A document into a query that a person might type who remembers it only in part.

use std::collections::{BTreeSet, HashMap};

use super::term_frequencies::{SampleFrequencies, sentences, words};
use crate::eval::splitmix::SplitMix64;

/// Texts with fewer words than this could be the answer to anything.
const MIN_WORDS: usize = 30;

/// Texts with fewer telling words than this cannot be asked for in three ways.
const MIN_TELLING: usize = 8;

/// How many of the most telling sentences are chosen among.
const BEST_SENTENCES: usize = 3;

/// What has a number without being counted by it.
const NUMBERED: [&str; 12] = [
    "article", "chapter", "clause", "figure", "line", "no", "number", "page", "part", "schedule",
    "section", "table",
];

/// The three ways to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DraftKind {
    /// Some words of the title and of the text.
    Keywords,
    /// What is left of a sentence in memory.
    Phrase,
    /// A question.
    Question,
}

impl DraftKind {
    /// All of them, in turn.
    pub(crate) const ALL: [Self; 3] = [Self::Keywords, Self::Phrase, Self::Question];

    /// Its name in the file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keywords => "keywords",
            Self::Phrase => "phrase",
            Self::Question => "question",
        }
    }
}

/// A document, taken apart for drafting.
pub(crate) struct DraftSource<'f> {
    frequencies: &'f SampleFrequencies,
    title: Vec<String>,
    /// Sentences with at least four telling words, the most telling first.
    sentences: Vec<Vec<String>>,
    /// How often each telling word stands in the text.
    counts: HashMap<String, usize>,
}

impl<'f> DraftSource<'f> {
    /// The document, if there is enough text to ask for it.
    pub(crate) fn new(title: &str, text: &str, frequencies: &'f SampleFrequencies) -> Option<Self> {
        let all = sentences(text);
        let mut counts: HashMap<String, usize> = HashMap::new();
        for word in all
            .iter()
            .flatten()
            .filter(|word| frequencies.is_informative(word))
        {
            *counts.entry(word.clone()).or_default() += 1;
        }
        let mut draftable = Self {
            frequencies,
            title: words(title),
            sentences: Vec::new(),
            counts,
        };
        let enough = all.iter().map(Vec::len).sum::<usize>() >= MIN_WORDS;
        let mut telling: Vec<_> = all
            .into_iter()
            .filter(|sentence| draftable.informative_words(sentence).len() >= 4)
            .collect();
        telling.sort_by(|a, b| {
            draftable
                .sentence_score(b)
                .total_cmp(&draftable.sentence_score(a))
        });
        draftable.sentences = telling;
        let many = draftable.counts.len() >= MIN_TELLING && !draftable.sentences.is_empty();
        (enough && many).then_some(draftable)
    }

    /// A query of this kind, unless the document gives none that keeps the rules: at least two
    /// telling words, and never the whole title.
    pub(crate) fn query(&self, kind: DraftKind, chance: &mut SplitMix64) -> Option<String> {
        let sentence = self.sentence(chance)?;
        let text = match kind {
            DraftKind::Keywords => self.keywords(sentence),
            DraftKind::Phrase => self.phrase(sentence, chance),
            DraftKind::Question => self.question(sentence, chance),
        };
        let asked = words(&text);
        let telling = asked
            .iter()
            .filter(|word| self.frequencies.is_informative(word))
            .count();
        (telling >= 2 && !self.copies_title(&asked)).then_some(text)
    }

    fn sentence(&self, chance: &mut SplitMix64) -> Option<&Vec<String>> {
        self.sentences
            .get(chance.below(self.sentences.len().min(BEST_SENTENCES)))
    }

    /// The telling words of a sentence in their order, each once, be it one or many.
    fn informative_words<'a>(&self, sentence: &'a [String]) -> Vec<&'a str> {
        let mut seen = BTreeSet::new();
        let words = sentence.iter().map(String::as_str);
        words
            .filter(|word| self.frequencies.is_informative(word) && seen.insert(singular(word)))
            .collect()
    }

    /// How much a word says: rare in the corpus, and meant here. What stands here once and
    /// nowhere else is what nobody remembers, and would make the query too easy.
    fn weight(&self, word: &str) -> f64 {
        let count = self.counts.get(word).copied().unwrap_or(1).max(1);
        let weight = self.frequencies.idf(word) * (1.0 + (count as f64).ln());
        let by_chance = count == 1 && self.frequencies.is_unique(word);
        if by_chance { weight / 2.0 } else { weight }
    }

    /// What the six best words of a sentence say.
    fn sentence_score(&self, sentence: &[String]) -> f64 {
        let best = self.top_words(&self.informative_words(sentence), 6);
        best.iter().map(|word| self.weight(word)).sum()
    }

    /// The words that say most, in the order they stood in.
    fn top_words<'a>(&self, words: &[&'a str], most: usize) -> Vec<&'a str> {
        let mut ranked: Vec<(usize, &'a str)> = words.iter().copied().enumerate().collect();
        ranked.sort_by(|a, b| self.weight(b.1).total_cmp(&self.weight(a.1)));
        ranked.truncate(most);
        ranked.sort_by_key(|(place, _)| *place);
        ranked.into_iter().map(|(_, word)| word).collect()
    }

    /// Some of the title, never all of it, and what the title does not say.
    fn keywords(&self, sentence: &[String]) -> String {
        let title = self.informative_words(&self.title);
        let of_title = self.top_words(&title, title.len().saturating_sub(1).min(2));
        let elsewhere: Vec<_> = self
            .informative_words(sentence)
            .into_iter()
            .filter(|word| !title.iter().any(|other| singular(other) == singular(word)))
            .collect();
        let of_text = self.top_words(&elsewhere, 3 - of_title.len().min(2));
        [of_title, of_text].concat().join(" ")
    }

    /// A sentence as it is remembered: its best words, and half of the others.
    fn phrase(&self, sentence: &[String], chance: &mut SplitMix64) -> String {
        let near = self.top_words(&self.informative_words(sentence), 5);
        let sure = self.top_words(&near, 2);
        let kept: Vec<_> = near
            .into_iter()
            .filter(|word| sure.contains(word) || chance.below(2) > 0)
            .collect();
        kept.join(" ")
    }

    fn question(&self, sentence: &[String], chance: &mut SplitMix64) -> String {
        let telling = self.informative_words(sentence);
        if !self.frequencies.are_english() {
            return self.top_words(&telling, 3).join(" ") + "?";
        }
        if let Some(counted) = self.counted_noun(sentence) {
            let about: Vec<_> = telling
                .into_iter()
                .filter(|word| *word != counted)
                .collect();
            let about = self.top_words(&about, 2).join(" ");
            return format!("how many {counted} for {about}?");
        }
        let about = self.top_words(&telling, 3);
        let (last, others) = about.split_last().unwrap_or((&"", &[]));
        let about = format!("{} and {last}", others.join(" "));
        let form = [
            "what is said about",
            "what happened with",
            "what do we know about",
        ];
        let form = form.get(chance.below(form.len())).unwrap_or(&"what about");
        format!("{form} {about}?")
    }

    /// What is counted in a sentence: the plural after its first number, unless the number is
    /// the name of a section or a page.
    fn counted_noun<'a>(&self, sentence: &'a [String]) -> Option<&'a str> {
        let is_number = |word: &String| word.starts_with(|c: char| c.is_ascii_digit());
        let is_plural = |word: &String| {
            word.len() > 3 && word.ends_with('s') && word.chars().all(char::is_alphabetic)
        };
        let counts = |three: &[String]| match three {
            [before, number, word] => {
                is_number(number) && is_plural(word) && !NUMBERED.contains(&before.as_str())
            }
            _ => false,
        };
        let found = sentence.windows(3).find(|three| counts(three))?;
        found.last().map(String::as_str)
    }

    /// True when the words of the title stand in the query one after the other.
    fn copies_title(&self, asked: &[String]) -> bool {
        let length = self.title.len();
        length > 0
            && asked
                .windows(length)
                .any(|window| window == self.title.as_slice())
    }
}

/// A word without the ending that makes it many, near enough to tell that two are the same.
fn singular(word: &str) -> &str {
    word.trim_end_matches('s')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLE: &str = "The harbour dredging contract";
    const TEXT: &str = "The harbour board signed the dredging contract on Monday. It pays 340 crowns \
        for every barge of silt, and the silt must be carried beyond the outer lighthouse before the \
        oyster season. Fishermen asked what the barges would do to the spawning beds of the herring.";

    fn corpus() -> SampleFrequencies {
        let mut frequencies = SampleFrequencies::default();
        frequencies.add(TITLE, TEXT);
        for n in 0..9 {
            frequencies.add("The other", &format!("the words of speech {n} and to it"));
        }
        frequencies
    }

    #[test]
    fn every_kind_asks_in_its_own_way() {
        let frequencies = corpus();
        let document = DraftSource::new(TITLE, TEXT, &frequencies).unwrap();
        for seed in 0..50 {
            for kind in DraftKind::ALL {
                let draw = || document.query(kind, &mut SplitMix64::new(seed));
                let query = draw().unwrap_or_default();
                assert_eq!(
                    draw().unwrap_or_default(),
                    query,
                    "the same seed asks the same"
                );
                let asked = words(&query);
                assert!((2..=10).contains(&asked.len()), "{kind:?}: {query}");
                assert!(!query.contains("harbour dredging contract"), "{query}");
                assert_eq!(query.ends_with('?'), kind == DraftKind::Question, "{query}");
                let from = words(&format!("{TITLE} {TEXT}"));
                let own = asked.iter().filter(|word| from.contains(word)).count();
                assert!(own >= 2, "{query}");
            }
        }
    }

    #[test]
    fn numbers_make_questions_of_how_many() {
        let frequencies = corpus();
        let document = DraftSource::new(TITLE, TEXT, &frequencies).unwrap();
        let asked = (0..20)
            .filter_map(|seed| document.query(DraftKind::Question, &mut SplitMix64::new(seed)));
        let all: Vec<_> = asked.collect();
        assert!(
            all.iter()
                .any(|query| query.starts_with("how many crowns for ")),
            "{all:?}"
        );
        assert!(
            all.iter().any(|query| query.starts_with("what ")),
            "{all:?}"
        );
    }

    /// A title of one word is never part of the query, or the query would hold it whole.
    #[test]
    fn the_whole_title_is_never_copied() {
        let mut frequencies = SampleFrequencies::default();
        frequencies.add("Silt", TEXT);
        frequencies.add("Other", "words and more words");
        let document = DraftSource::new("Silt", TEXT, &frequencies).unwrap();
        for seed in 0..50 {
            for kind in DraftKind::ALL {
                let query = document
                    .query(kind, &mut SplitMix64::new(seed))
                    .unwrap_or_default();
                assert!(!words(&query).contains(&"silt".to_owned()), "{query}");
            }
        }
    }

    #[test]
    fn too_little_text_gives_no_query() {
        let frequencies = corpus();
        let unknown = |count: usize| {
            let word = |n: usize| {
                format!(
                    "w{}",
                    "abcdefghij"
                        .repeat(2)
                        .chars()
                        .skip(n % 10)
                        .take(8)
                        .collect::<String>()
                )
            };
            (0..count).map(word).collect::<Vec<_>>().join(" ")
        };
        assert!(DraftSource::new("", &unknown(MIN_WORDS), &frequencies).is_some());
        assert!(DraftSource::new("", &unknown(MIN_WORDS - 1), &frequencies).is_none());
        // Long enough, but it says nothing.
        assert!(DraftSource::new("", &"the words of speech ".repeat(20), &frequencies).is_none());
        assert!(DraftSource::new("", "", &frequencies).is_none());
    }
}
