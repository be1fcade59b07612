//! Query generation: drafts keywords, a phrase or a question from one document, as a person would who remembers it
//! only in part.

use std::collections::{BTreeSet, HashMap};

use super::term_frequencies::{SampleFrequencies, sentences, words};
use crate::eval::splitmix::SplitMix64;

/// The fewest words of a text. A shorter one could be the answer to anything.
const MIN_WORDS: usize = 30;

/// The fewest informative words of a text; with fewer, three different queries are not possible.
const MIN_INFORMATIVE: usize = 8;

/// The random choice is among this many of the most informative sentences.
const BEST_SENTENCES: usize = 3;

/// Nouns before a number that is a label and not a count, as in `section 3`.
const NUMBERED: [&str; 12] = [
    "article", "chapter", "clause", "figure", "line", "no", "number", "page", "part", "schedule",
    "section", "table",
];

/// The three kinds of drafted queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DraftKind {
    /// Some words of the title and some of the text.
    Keywords,
    /// A sentence reduced to what a reader remembers of it.
    Phrase,
    /// A question in English, or in other languages the keywords with a question mark.
    Question,
}

impl DraftKind {
    /// All kinds, in the order in which drafts alternate.
    pub(crate) const ALL: [Self; 3] = [Self::Keywords, Self::Phrase, Self::Question];

    /// The name of the kind in the query file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keywords => "keywords",
            Self::Phrase => "phrase",
            Self::Question => "question",
        }
    }
}

/// A document prepared for drafting: title words, ranked sentences and term counts.
pub(crate) struct DraftSource<'f> {
    frequencies: &'f SampleFrequencies,
    title: Vec<String>,
    /// Sentences with at least four informative words, the most informative first.
    sentences: Vec<Vec<String>>,
    /// Term counts of the informative words.
    counts: HashMap<String, usize>,
}

impl<'f> DraftSource<'f> {
    /// Prepares a document; `None` when its text is too short or says too little.
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
        let mut source = Self {
            frequencies,
            title: words(title),
            sentences: Vec::new(),
            counts,
        };
        let enough = all.iter().map(Vec::len).sum::<usize>() >= MIN_WORDS;
        let mut ranked: Vec<_> = all
            .into_iter()
            .filter(|sentence| source.informative_words(sentence).len() >= 4)
            .collect();
        ranked.sort_by(|a, b| {
            source
                .sentence_score(b)
                .total_cmp(&source.sentence_score(a))
        });
        source.sentences = ranked;
        let many = source.counts.len() >= MIN_INFORMATIVE && !source.sentences.is_empty();
        (enough && many).then_some(source)
    }

    /// Drafts a query of this kind; `None` when it would break a rule: at least two informative words, and never the
    /// whole title.
    pub(crate) fn query(&self, kind: DraftKind, rng: &mut SplitMix64) -> Option<String> {
        let sentence = self.sentence(rng)?;
        let text = match kind {
            DraftKind::Keywords => self.keywords(sentence),
            DraftKind::Phrase => self.phrase(sentence, rng),
            DraftKind::Question => self.question(sentence, rng),
        };
        let query_words = words(&text);
        let informative = query_words
            .iter()
            .filter(|word| self.frequencies.is_informative(word))
            .count();
        (informative >= 2 && !self.copies_title(&query_words)).then_some(text)
    }

    fn sentence(&self, rng: &mut SplitMix64) -> Option<&Vec<String>> {
        self.sentences
            .get(rng.below(self.sentences.len().min(BEST_SENTENCES)))
    }

    /// The informative words of a sentence in order, without repetitions; singular and plural count as the same word.
    fn informative_words<'a>(&self, sentence: &'a [String]) -> Vec<&'a str> {
        let mut seen = BTreeSet::new();
        let words = sentence.iter().map(String::as_str);
        words
            .filter(|word| self.frequencies.is_informative(word) && seen.insert(singular(word)))
            .collect()
    }

    /// TF-IDF weight of a word. A word that occurs once in this document and in no other gets half the weight: nobody
    /// remembers it, and it would make the query too easy.
    fn weight(&self, word: &str) -> f64 {
        let count = self.counts.get(word).copied().unwrap_or(1).max(1);
        let weight = self.frequencies.idf(word) * (1.0 + (count as f64).ln());
        let by_chance = count == 1 && self.frequencies.is_unique(word);
        if by_chance { weight / 2.0 } else { weight }
    }

    /// The score of a sentence: the sum of its six highest weights.
    fn sentence_score(&self, sentence: &[String]) -> f64 {
        let best = self.top_words(&self.informative_words(sentence), 6);
        best.iter().map(|word| self.weight(word)).sum()
    }

    /// The words with the highest weights, in their original order.
    fn top_words<'a>(&self, words: &[&'a str], most: usize) -> Vec<&'a str> {
        let mut ranked: Vec<(usize, &'a str)> = words.iter().copied().enumerate().collect();
        ranked.sort_by(|a, b| self.weight(b.1).total_cmp(&self.weight(a.1)));
        ranked.truncate(most);
        ranked.sort_by_key(|(place, _)| *place);
        ranked.into_iter().map(|(_, word)| word).collect()
    }

    /// Keywords: up to two words of the title but never all of it, and words of the text that the title lacks.
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

    /// A remembered phrase: the two best of its five best words, and each of the other three with probability 1/2.
    fn phrase(&self, sentence: &[String], rng: &mut SplitMix64) -> String {
        let remembered = self.top_words(&self.informative_words(sentence), 5);
        let certain = self.top_words(&remembered, 2);
        let kept: Vec<_> = remembered
            .into_iter()
            .filter(|word| certain.contains(word) || rng.below(2) > 0)
            .collect();
        kept.join(" ")
    }

    fn question(&self, sentence: &[String], rng: &mut SplitMix64) -> String {
        let informative = self.informative_words(sentence);
        if !self.frequencies.are_english() {
            return self.top_words(&informative, 3).join(" ") + "?";
        }
        if let Some(counted) = self.counted_noun(sentence) {
            let about: Vec<_> = informative
                .into_iter()
                .filter(|word| *word != counted)
                .collect();
            let about = self.top_words(&about, 2).join(" ");
            return format!("how many {counted} for {about}?");
        }
        let about = self.top_words(&informative, 3);
        let (last, others) = about.split_last().unwrap_or((&"", &[]));
        let about = format!("{} and {last}", others.join(" "));
        let form = [
            "what is said about",
            "what happened with",
            "what do we know about",
        ];
        let form = form.get(rng.below(form.len())).unwrap_or(&"what about");
        format!("{form} {about}?")
    }

    /// The counted noun of a sentence: the plural after its first number, unless the number is a label as in
    /// `section 3`.
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

    /// Whether the query contains the title verbatim.
    fn copies_title(&self, query: &[String]) -> bool {
        let length = self.title.len();
        length > 0
            && query
                .windows(length)
                .any(|window| window == self.title.as_slice())
    }
}

/// A crude singular, good enough to recognise two forms of one word.
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

    /// A title of one word must not occur in the query at all, because that would be the whole title.
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
        // Long enough, but without informative words.
        assert!(DraftSource::new("", &"the words of speech ".repeat(20), &frequencies).is_none());
        assert!(DraftSource::new("", "", &frequencies).is_none());
    }
}
