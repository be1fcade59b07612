//! Score fusion for hybrid search: combines the BM25 score and the embedding cosine of a candidate to one score.
//!
//! Both are evidence, and evidence in log-odds adds up. BM25 is a sum of log-odds by construction, and a trained cosine
//! turns out to be one times a constant. So the score of a candidate is a logistic regression over the two:
//!
//! ```text
//! log-odds = BM25_WEIGHT × (1 + SHORT_QUERY_BOOST / words³) × bm25  +  slope × cosine  −  offset
//! score    = 1 / (1 + e^−log-odds)
//! ```
//!
//! Scores are not normalized to the best of their list, and that is what adapts the balance to the question. Where the
//! words of a question hardly occur, BM25 stays small by itself; where they all occur, it is large. Min-max normalization
//! discards this and makes a poor best match count as much as a perfect one.
//!
//! Measured as nDCG@10 over twelve judged collections (abstracts, news, questions and answers, code), which range from
//! "lexical search alone is best" to "vector search alone is best": lexical .504, vectors .591, reciprocal rank fusion
//! .583, fixed weights .3 .5 .7 of min-max normalized scores .556 .590 .615, this .622. Constants chosen on eleven
//! collections and used on the twelfth give .620 against .605 for a fixed weight chosen the same way. Weights learnt from
//! signals of the query (coverage, gaps, overlap, peaks) gained .003 where they were learnt and lost .003 elsewhere, so
//! there are none.

mod imputation;

use std::cmp::Ordering;

use self::imputation::{CosineTrend, imputed_cosine};
use crate::analysis::{LanguageId, ScriptSpacing, script};
use crate::hit::ScoreExplanation;

/// What a point of BM25 adds to the log-odds. The same value fitted three embedders of very different quality. Over
/// the twelve collections .05 is best in the mean, .04 is .001 below it, and half or twice as much cost .007 or
/// .008. Of the two the smaller was taken, so that neither half alone is better anywhere: through the real server
/// SciFact has .750 (lexical .703, vectors .716) and CoSQA .642 (.392, .633).
const BM25_WEIGHT: f32 = 0.04;

/// How much more words count in a short question, which gives an embedding model little context: 17 times for a
/// single word such as an identifier, 3 times for two, and nearly as usual from six words on. Look-ups of
/// identifiers: .681 without it, .932 with it (lexical alone: .928); questions of two words: .460 and .471; longer
/// ones are as before. From 8 to 32 all results are within .004.
const SHORT_QUERY_BOOST: f32 = 16.0;

/// The calibration of BM25 where there are no vectors, fitted to the same judgements.
const LEXICAL_ONLY: CosineScale = CosineScale {
    slope: 0.07,
    offset: 2.4,
};

/// The score floor: a candidate without any query word and with a lower score is dropped. Of such candidates one in
/// thirty was judged relevant, and a small corpus that has no better ones is better served by a short answer.
const SCORE_FLOOR: f32 = 0.05;

/// The most candidates that diversification compares with each other, which bounds its quadratic cost.
pub(crate) const MAX_MMR_CANDIDATES: usize = 200;

/// Calibration of the cosines of one embedding model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CosineScale {
    /// What a cosine of 1 adds to the log-odds: the better the embedder, the steeper.
    pub slope: f32,
    /// What is subtracted, so that log-odds of 0 are an even chance of being judged relevant.
    pub offset: f32,
}

impl CosineScale {
    /// The calibration of granite-embedding-30m-english. With slopes from 6 to 17 the mean of the twelve
    /// collections stays within .004. Questions that a collection has no answer for stay near a cosine of .60, its
    /// own are near .82.
    pub const GRANITE: Self = Self {
        slope: 10.0,
        offset: 9.3,
    };
}

/// How the lexical and the vector score are combined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FusionMethod {
    /// Calibrated log-odds, which adapt to the question.
    Adaptive,
    /// Min-max normalized scores with this fixed weight for vectors, as a baseline for comparisons.
    Fixed(f32),
}

/// What fusion knows about the question as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FusionSignals {
    /// The number of words, as [`count_words`] counts them.
    pub words: usize,
    /// The calibration of the cosines.
    pub scale: CosineScale,
    pub method: FusionMethod,
    /// The language of the question, never unclear; foreign questions have no cosines at all.
    pub language: LanguageId,
}

/// A candidate with its two scores, and after [`fuse`] with its fused score.
#[derive(Clone, Debug)]
pub(crate) struct FusionCandidate<T> {
    pub item: T,
    /// BM25, if it is known; 0 means that no query word occurs.
    pub lexical: Option<f32>,
    /// The cosine of its best passage, if it has a vector.
    pub semantic: Option<f32>,
    /// Whether it has no vector because the model does not know its language.
    pub is_foreign: bool,
    pub parts: ScoreParts,
}

impl<T> FusionCandidate<T> {
    pub(crate) fn new(item: T, lexical: Option<f32>, semantic: Option<f32>) -> Self {
        Self {
            item,
            lexical: lexical
                .filter(|raw| raw.is_finite())
                .map(|raw| raw.max(0.0)),
            semantic: semantic
                .filter(|cosine| cosine.is_finite())
                .map(|cosine| cosine.clamp(-1.0, 1.0)),
            is_foreign: false,
            parts: ScoreParts::default(),
        }
    }

    /// Marks the candidate as written in a language that the model does not know.
    pub(crate) fn foreign(self, is_foreign: bool) -> Self {
        Self { is_foreign, ..self }
    }
}

impl<T> FusionCandidate<T> {
    /// A candidate of an unranked list, with a score of 1.
    pub(crate) fn listed(item: T) -> Self {
        let mut candidate = Self::new(item, None, None);
        candidate.parts.score = 1.0;
        candidate
    }

    /// Whether it passes the score floor; a candidate with a query word always does.
    pub(crate) fn passes_floor(&self) -> bool {
        self.lexical.is_none_or(|raw| raw > 0.0) || self.parts.score >= SCORE_FLOOR
    }

    /// Explains the score; `pairs` is what phrase matches contributed to BM25.
    pub(crate) fn explanation(&self, pairs: f32) -> ScoreExplanation {
        ScoreExplanation {
            lexical: self.lexical.unwrap_or(0.0),
            pairs,
            semantic: self.semantic,
            odds: (self.parts.lexical, self.parts.semantic),
        }
    }
}

/// The fused score of a candidate and its two parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ScoreParts {
    /// What BM25 adds to the log-odds.
    pub lexical: f32,
    /// What the cosine adds to the log-odds, minus the offset.
    pub semantic: f32,
    /// The score: above 0, at most 1, and comparable across questions as far as possible. Of hits with .2, .4 and
    /// .6 about .2, .4 and .5 were judged relevant.
    pub score: f32,
}

impl ScoreParts {
    fn odds(&self) -> f32 {
        self.lexical + self.semantic
    }
}

/// Counts the words of a question. Everything between spaces counts as one, since an identifier is one; two
/// characters of an unspaced script count as one too.
pub(crate) fn count_words(text: &str) -> usize {
    let count = |part: &str| {
        let unspaced = part
            .chars()
            .filter(|c| script(*c) == Some(ScriptSpacing::Unspaced));
        unspaced.count().div_ceil(2).max(1)
    };
    text.split_whitespace().map(count).sum::<usize>().max(1)
}

/// Computes the score of every candidate.
pub(crate) fn fuse<T>(signals: &FusionSignals, candidates: &mut [FusionCandidate<T>]) {
    match signals.method {
        FusionMethod::Adaptive => {
            if signals.language == LanguageId::Foreign {
                for candidate in &mut *candidates {
                    candidate.is_foreign = true;
                }
            }
            fuse_log_odds(signals, candidates);
        }
        FusionMethod::Fixed(share) => fuse_min_max(share, candidates),
    }
}

/// How many candidates to keep for a query that shows `depth` hits: diversification chooses among more than are shown.
pub(crate) fn candidates_to_keep(depth: usize, diversity: f32) -> usize {
    if diversity > 0.0 {
        MAX_MMR_CANDIDATES.max(depth)
    } else {
        depth
    }
}

/// Keeps the best `keep` candidates, sorted best first; `tie` orders equal ones.
pub(crate) fn keep_best<T>(
    candidates: &mut Vec<FusionCandidate<T>>,
    keep: usize,
    tie: impl Fn(&T, &T) -> Ordering,
) {
    // By log-odds, because scores close to 1 are no longer distinguishable.
    let better = |left: &FusionCandidate<T>, right: &FusionCandidate<T>| {
        let by_odds = right.parts.odds().total_cmp(&left.parts.odds());
        by_odds.then_with(|| tie(&left.item, &right.item))
    };
    if keep < candidates.len() {
        candidates.select_nth_unstable_by(keep, better);
        candidates.truncate(keep);
    }
    candidates.sort_unstable_by(better);
}

fn fuse_log_odds<T>(signals: &FusionSignals, candidates: &mut [FusionCandidate<T>]) {
    let words = signals.words.max(1) as f32;
    let boost = 1.0 + SHORT_QUERY_BOOST / (words * words * words);
    let imputed = imputed_cosine(candidates);
    let trend = CosineTrend::of(candidates);
    for candidate in candidates {
        let bm25 = candidate.lexical.unwrap_or(0.0);
        let raw = bm25 * boost;
        let expected = if candidate.is_foreign {
            trend.map(|trend| trend.expected(bm25))
        } else {
            imputed
        };
        let (lexical, semantic) = match expected {
            // A candidate with neither a query word nor a vector has no evidence at all.
            _ if candidate.is_foreign && raw <= 0.0 => (0.0, f32::MIN),
            None => (raw * LEXICAL_ONLY.slope, -LEXICAL_ONLY.offset),
            Some(expected) => {
                let cosine = candidate.semantic.unwrap_or(expected);
                (
                    raw * BM25_WEIGHT,
                    signals.scale.slope * cosine - signals.scale.offset,
                )
            }
        };
        candidate.parts = ScoreParts {
            lexical,
            semantic,
            score: logistic(lexical + semantic),
        };
    }
}

/// The logistic function. Never 0, because that would mean that nothing was found.
fn logistic(odds: f32) -> f32 {
    (1.0 / (1.0 + (-odds).exp())).max(f32::MIN_POSITIVE)
}

fn fuse_min_max<T>(share: f32, candidates: &mut [FusionCandidate<T>]) {
    let share = if share.is_finite() {
        share.clamp(0.0, 1.0)
    } else {
        0.5
    };
    let lexical = MinMaxRange::of(candidates.iter().map(|c| c.lexical.unwrap_or(0.0)));
    let semantic = MinMaxRange::of(candidates.iter().filter_map(|c| c.semantic));
    for candidate in candidates {
        let lexical = (1.0 - share) * lexical.normalize(candidate.lexical.unwrap_or(0.0));
        let semantic = share * candidate.semantic.map_or(0.0, |s| semantic.normalize(s));
        candidate.parts = ScoreParts {
            lexical,
            semantic,
            score: (lexical + semantic).clamp(f32::MIN_POSITIVE, 1.0),
        };
    }
}

/// The range of some scores, for min-max normalization.
struct MinMaxRange(f32, f32);

impl MinMaxRange {
    fn of(values: impl Iterator<Item = f32>) -> Self {
        values.fold(Self(f32::INFINITY, f32::NEG_INFINITY), |span, value| {
            Self(span.0.min(value), span.1.max(value))
        })
    }

    /// The position of a value in the range, from 0 to 1; 1 if the range is empty.
    fn normalize(&self, value: f32) -> f32 {
        let width = self.1 - self.0;
        if width > f32::EPSILON {
            (value - self.0) / width
        } else {
            1.0
        }
    }
}

/// Maximal marginal relevance (MMR): diversifies the first `keep` candidates, which come best first. Each next one
/// maximizes `(1 − amount) × score − amount × similarity to the nearest already taken`.
///
/// Off by default, since it costs relevance: an amount of .1 costs .003 of nDCG@10, .3 costs .016 and .5 costs
/// .048.
pub(crate) fn maximal_marginal_relevance<T>(
    candidates: &mut [FusionCandidate<T>],
    amount: f32,
    keep: usize,
    similarity: impl Fn(&T, &T) -> f32,
) {
    let amount = if amount.is_finite() {
        amount.clamp(0.0, 1.0)
    } else {
        0.0
    };
    let end = candidates.len().min(MAX_MMR_CANDIDATES);
    let Some(pool) = candidates.get_mut(..end) else {
        return;
    };
    if amount <= 0.0 {
        return;
    }
    let mut nearest = vec![-1.0_f32; pool.len()];
    for taken in 1..keep.min(pool.len()) {
        let (before, rest) = pool.split_at_mut(taken);
        let (Some(last), Some(near)) = (before.last(), nearest.get_mut(taken..)) else {
            return;
        };
        let mut best = (0, f32::NEG_INFINITY);
        for (at, (candidate, near)) in rest.iter().zip(near.iter_mut()).enumerate() {
            *near = near.max(similarity(&last.item, &candidate.item));
            let gain = (1.0 - amount) * candidate.parts.score - amount * *near;
            if gain > best.1 {
                best = (at, gain);
            }
        }
        // Rotated to the front of the rest, which keeps the order of those it overtakes.
        if let (Some(rest), Some(near)) = (rest.get_mut(..=best.0), near.get_mut(..=best.0)) {
            rest.rotate_right(1);
            near.rotate_right(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type GivenScores = (&'static str, Option<f32>, Option<f32>);

    fn signals(words: usize) -> FusionSignals {
        FusionSignals {
            words,
            scale: CosineScale::GRANITE,
            method: FusionMethod::Adaptive,
            language: LanguageId::English,
        }
    }

    fn fused(signals: &FusionSignals, given: &[GivenScores]) -> Vec<FusionCandidate<&'static str>> {
        let mut candidates: Vec<_> = given
            .iter()
            .map(|(item, lexical, semantic)| FusionCandidate::new(*item, *lexical, *semantic))
            .collect();
        fuse(signals, &mut candidates);
        keep_best(&mut candidates, usize::MAX, Ord::cmp);
        for candidate in &candidates {
            let score = candidate.parts.score;
            assert!(score > 0.0 && score <= 1.0, "{candidate:?}");
        }
        candidates
    }

    fn check(signals: &FusionSignals, given: &[GivenScores], expected: &[&str]) {
        let order: Vec<_> = fused(signals, given).iter().map(|c| c.item).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn evidence_adds_up() {
        let given = [
            ("neither", Some(4.0), Some(0.60)),
            ("words", Some(20.0), Some(0.62)),
            ("meaning", Some(2.0), Some(0.80)),
            ("both", Some(18.0), Some(0.79)),
        ];
        check(
            &signals(9),
            &given,
            &["both", "meaning", "words", "neither"],
        );
        let best = fused(&signals(9), &given).remove(0).parts;
        assert!(
            (best.lexical - BM25_WEIGHT * 18.0 * (1.0 + SHORT_QUERY_BOOST / 729.0)).abs() < 1e-5
        );
        assert!((best.semantic - (7.9 - 9.3)).abs() < 1e-5);
        assert!((best.score - 0.34).abs() < 0.02, "{best:?}");
    }

    #[test]
    fn a_poor_best_match_of_words_does_not_outweigh_a_good_meaning() {
        // Min-max normalized, 5 points would count as much as 50 do.
        let poor = [
            ("words", Some(5.0), Some(0.70)),
            ("meaning", None, Some(0.80)),
        ];
        let good = [
            ("words", Some(50.0), Some(0.70)),
            ("meaning", None, Some(0.80)),
        ];
        check(&signals(8), &poor, &["meaning", "words"]);
        check(&signals(8), &good, &["words", "meaning"]);
    }

    #[test]
    fn a_lone_identifier_is_found_by_its_letters() {
        let given = [
            ("like it", Some(0.0), Some(0.82)),
            ("has it", Some(15.0), Some(0.66)),
        ];
        check(&signals(1), &given, &["has it", "like it"]);
        check(&signals(7), &given, &["like it", "has it"]);
        check(&signals(0), &given, &["has it", "like it"]);
    }

    #[cfg(feature = "table")]
    #[test]
    fn a_weak_embedder_leaves_more_to_the_words() {
        let given = [
            ("meaning", Some(2.0), Some(0.80)),
            ("words", Some(20.0), Some(0.62)),
        ];
        check(&signals(9), &given, &["meaning", "words"]);
        let embedder = crate::embed::StaticEmbedder::new().unwrap();
        let weak = FusionSignals {
            scale: crate::embedder::Embedder::scale(&embedder),
            ..signals(9)
        };
        check(&weak, &given, &["words", "meaning"]);
    }

    #[test]
    fn either_half_alone_ranks_as_it_did() {
        let words = [("b", Some(3.0), None), ("a", Some(9.0), None)];
        check(&signals(4), &words, &["a", "b"]);
        let meanings = [("b", None, Some(0.7)), ("a", None, Some(0.8))];
        check(&signals(4), &meanings, &["a", "b"]);
        check(&signals(4), &[("only", None, None)], &["only"]);
        check(&signals(4), &[], &[]);
    }

    #[test]
    fn a_document_without_a_vector_stands_with_the_nearer_ones() {
        let mut candidates: Vec<_> = (0..100u8)
            .map(|n| FusionCandidate::new(n, Some(5.0), Some(f32::from(n) / 100.0)))
            .collect();
        candidates.push(FusionCandidate::new(200, Some(5.0), None));
        fuse(&signals(9), &mut candidates);
        keep_best(&mut candidates, usize::MAX, Ord::cmp);
        let place = candidates.iter().position(|c| c.item == 200);
        // The cosines fall from .99, so the sixth of them is .94, and equals keep their order.
        assert_eq!(place, Some(6));
    }

    #[test]
    fn equals_keep_their_order_and_no_number_upsets_it() {
        let equal = [
            ("a", Some(1.0), Some(0.5)),
            ("b", Some(1.0), Some(0.5)),
            ("c", Some(1.0), Some(0.5)),
        ];
        check(&signals(3), &equal, &["a", "b", "c"]);
        let odd = [
            ("nan", Some(f32::NAN), Some(f32::NAN)),
            ("huge", Some(f32::MAX), Some(9.0)),
            ("negative", Some(-7.0), Some(-9.0)),
            ("endless", Some(f32::INFINITY), Some(f32::NEG_INFINITY)),
            ("plain", Some(3.0), Some(0.7)),
        ];
        for method in [
            FusionMethod::Adaptive,
            FusionMethod::Fixed(0.5),
            FusionMethod::Fixed(f32::NAN),
        ] {
            let found = fused(
                &FusionSignals {
                    method,
                    ..signals(3)
                },
                &odd,
            );
            assert_eq!(found.first().map(|c| c.item), Some("huge"), "{method:?}");
            assert_eq!(found.len(), odd.len());
        }
    }

    #[test]
    fn very_good_candidates_stay_in_order_though_their_scores_meet() {
        let given = [
            ("good", Some(2_000.0), Some(0.9)),
            ("better", Some(3_000.0), Some(0.9)),
        ];
        check(&signals(5), &given, &["better", "good"]);
        let scores: Vec<_> = fused(&signals(5), &given)
            .iter()
            .map(|c| c.parts.score)
            .collect();
        assert_eq!(scores, [1.0, 1.0]);
    }

    #[test]
    fn a_fixed_weight_normalizes_both_lists() {
        let given = [
            ("words", Some(5.0), Some(0.70)),
            ("meaning", Some(0.0), Some(0.80)),
        ];
        for (share, first) in [
            (0.0, "words"),
            (0.3, "words"),
            (0.7, "meaning"),
            (9.0, "meaning"),
        ] {
            let fixed = FusionSignals {
                method: FusionMethod::Fixed(share),
                ..signals(8)
            };
            let found = fused(&fixed, &given);
            assert_eq!(found.first().map(|c| c.item), Some(first), "{share}");
        }
    }

    #[test]
    fn the_best_are_those_that_sorting_all_puts_first() {
        let make = || {
            let numbers = (0..40u8).map(|n| {
                // Few different scores, so that many are equal.
                FusionCandidate::new(n, Some(f32::from(n % 5)), Some(0.7))
            });
            let mut candidates: Vec<_> = numbers.collect();
            fuse(&signals(9), &mut candidates);
            candidates
        };
        let items = |keep| {
            let mut candidates = make();
            keep_best(&mut candidates, keep, Ord::cmp);
            candidates.iter().map(|c| c.item).collect::<Vec<_>>()
        };
        let all = items(usize::MAX);
        for keep in [0, 1, 7, 39, 40, 41] {
            assert_eq!(items(keep), all[..keep.min(40)], "{keep}");
        }
    }

    #[test]
    fn candidates_below_the_floor_are_dropped() {
        let given = [
            ("near", Some(0.0), Some(0.70)),
            ("far, with a word", Some(0.1), Some(0.50)),
            ("far", Some(0.0), Some(0.60)),
            ("words not known", None, Some(0.60)),
        ];
        let found = fused(&signals(9), &given);
        let shown = found.iter().filter(|one| one.passes_floor());
        let shown: Vec<_> = shown.map(|one| one.item).collect();
        assert_eq!(shown, ["near", "words not known", "far, with a word"]);
    }

    #[test]
    fn words_are_separated_by_spaces() {
        for (text, count) in [
            ("", 1),
            ("  ", 1),
            ("get_current_branch", 1),
            ("TDP-43-induced", 1),
            ("who is the minister", 4),
            ("東京都の予算", 3),
            ("2024年 budget", 2),
        ] {
            assert_eq!(count_words(text), count, "{text}");
        }
    }

    #[test]
    fn diversification_skips_what_is_similar_to_the_first() {
        let given = [
            ("a1", Some(20.0), Some(0.80)),
            ("a2", Some(20.0), Some(0.795)),
            ("b1", Some(20.0), Some(0.79)),
            ("b2", Some(20.0), Some(0.78)),
        ];
        let similarity = |left: &&str, right: &&str| f32::from(u8::from(left[..1] == right[..1]));
        for (amount, expected) in [
            (0.0, ["a1", "a2", "b1", "b2"]),
            (0.3, ["a1", "b1", "a2", "b2"]),
            (f32::NAN, ["a1", "a2", "b1", "b2"]),
        ] {
            let mut candidates = fused(&signals(9), &given);
            maximal_marginal_relevance(&mut candidates, amount, 10, similarity);
            let order: Vec<_> = candidates.iter().map(|c| c.item).collect();
            assert_eq!(order, expected, "{amount}");
        }
        maximal_marginal_relevance(&mut [] as &mut [FusionCandidate<&str>], 0.5, 10, similarity);
    }

    #[test]
    fn no_more_candidates_are_diversified_than_the_limit() {
        let make = |count: usize| {
            let mut candidates: Vec<_> = (0..count)
                .map(|n| FusionCandidate::new(n, Some(1.0), Some(0.5)))
                .collect();
            fuse(&signals(9), &mut candidates);
            keep_best(&mut candidates, usize::MAX, Ord::cmp);
            // The last one alone is unlike the first.
            let similarity = |left: &usize, right: &usize| {
                f32::from(u8::from((*left == count - 1) == (*right == count - 1)))
            };
            maximal_marginal_relevance(&mut candidates, 0.5, 2, similarity);
            candidates.get(1).map(|c| c.item)
        };
        assert_eq!(make(MAX_MMR_CANDIDATES), Some(MAX_MMR_CANDIDATES - 1));
        assert_eq!(make(MAX_MMR_CANDIDATES + 1), Some(1));
    }
}
