//! What a candidate's words say and what its meaning says, into one score.
//!
//! Both are evidence, and evidence in log-odds adds up. BM25 is a sum of such odds by its making,
//! and a trained cosine turns out to be one times a constant, so a candidate is worth
//!
//! ```text
//! odds  = POINT × (1 + SHORT / words³) × bm25  +  slope × cosine  −  offset
//! score = 1 / (1 + e^−odds)
//! ```
//!
//! Nothing is stretched to the best of its list, and that is what adapts the balance to the
//! question. Where the words of a question hardly occur, BM25 stays small by itself; where they
//! all occur, it is large. Stretching throws this away and makes a poor best match count as much
//! as a perfect one.
//!
//! Measured as nDCG@10 over twelve judged collections (abstracts, news, questions and answers,
//! code), which range from "words alone are best" to "meanings alone are best": words .504,
//! meanings .591, reciprocal ranks .583, fixed weights .3 .5 .7 of stretched scores .556 .590
//! .615, this .622. Constants chosen on eleven collections and used on the twelfth give .620
//! against .605 for a fixed weight chosen the same way. Weights learnt from signals of the query
//! (coverage, gaps, overlap, peaks) gained .003 where they were learnt and lost .003 elsewhere, so
//! there are none.

use std::cmp::Ordering;

use crate::analysis::{LanguageId, ScriptSpacing, script};
use crate::hit::ScoreExplanation;

/// What a point of BM25 adds to the odds. The same value fitted three embedders of very different
/// quality. Over the twelve collections .05 is best in the mean, .04 is .001 below it, and half or
/// twice as much cost .007 or .008. Of the two the smaller was taken, so that no half alone is better
/// anywhere: through the real server SciFact has .750 (words .703, meanings .716) and CoSQA .642
/// (.392, .633).
const BM25_WEIGHT: f32 = 0.04;

/// How much more words count in a short question, which gives a model of meaning little to go on:
/// 17 times for a single word such as an identifier, 3 times for two, as usual from six words on.
/// Look-ups of identifiers: .681 without it, .932 with it (words alone: .928); questions of two
/// words: .460 and .471; longer ones are as before. From 8 to 32 all is within .004.
const SHORT_QUERY_BOOST: f32 = 16.0;

/// The odds of words alone, where there are no vectors: fitted to the same judgements.
const LEXICAL_ONLY: CosineScale = CosineScale {
    slope: 0.07,
    offset: 2.4,
};

/// Of twenty candidates with a vector, one is as near as a candidate without one is taken to be.
/// While vectors are still being made this keeps new documents findable: with 10, 50 and 90 % of
/// the vectors missing it gives .605, .544 and .506, the middle candidate .592, .485 and .430, and
/// words alone .504.
const IMPUTED_QUANTILE: usize = 20;

/// What has none of the words and less of a chance than this is not shown. Of such candidates one
/// in thirty was judged relevant, and the small corpus that has no better ones is better served by
/// a short answer.
const SCORE_FLOOR: f32 = 0.05;

/// Of this many documents that have the words of a question best, four in five must be in languages that the model
/// does not know before the question is taken to be in one.
const LANGUAGE_VOTE_HITS: usize = 10;

/// The most candidates that are looked at for variety.
const MAX_MMR_CANDIDATES: usize = 200;

/// What the cosines of one embedder are worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CosineScale {
    /// What a cosine of one adds to the odds: the better the embedder, the steeper.
    pub slope: f32,
    /// What is taken off, so that odds of 0 are an even chance of being judged relevant.
    pub offset: f32,
}

impl CosineScale {
    /// granite-embedding-30m-english. From 6 to 17 the mean of the twelve collections stays within
    /// .004. Questions that a collection has nothing for stay near a cosine of .60, its own are
    /// near .82.
    pub const GRANITE: Self = Self {
        slope: 10.0,
        offset: 9.3,
    };

    /// Tables of word vectors, which know less: measured with one of 256 dimensions, which so
    /// reaches .713 on SciFact and is above both halves on all twelve collections.
    pub const STATIC: Self = Self {
        slope: 1.7,
        offset: 2.7,
    };
}

/// How the two kinds of evidence are weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FusionMethod {
    /// By what they are worth for this question.
    Adaptive,
    /// Both stretched to between 0 and 1, and this share for meanings: to compare with.
    Fixed(f32),
}

/// What is known about the question and not about a single candidate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FusionSignals {
    /// How many words the question has, as [`words`] counts them.
    pub words: usize,
    /// What the cosines are worth.
    pub scale: CosineScale,
    pub weighing: FusionMethod,
    /// What is known of its language; foreign ones have no cosines at all.
    pub language: LanguageId,
}

/// One candidate, and after [`weigh`] what became of it.
#[derive(Clone, Debug)]
pub(crate) struct FusionCandidate<T> {
    pub item: T,
    /// BM25, if it is known; 0 says that no word occurs.
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

    /// The same, told whether the model does not know its language.
    pub(crate) fn foreign(self, is_foreign: bool) -> Self {
        Self { is_foreign, ..self }
    }
}

impl<T> FusionCandidate<T> {
    /// One that was not weighed, but stands in a list of what was asked for.
    pub(crate) fn listed(item: T) -> Self {
        let mut candidate = Self::new(item, None, None);
        candidate.parts.score = 1.0;
        candidate
    }

    /// Whether it is more than a stranger that happens to be the nearest there is.
    pub(crate) fn passes_floor(&self) -> bool {
        self.lexical.is_none_or(|raw| raw > 0.0) || self.parts.score >= SCORE_FLOOR
    }

    /// What its score is made of; `pairs` is what words side by side add to its words.
    pub(crate) fn explanation(&self, pairs: f32) -> ScoreExplanation {
        ScoreExplanation {
            lexical: self.lexical.unwrap_or(0.0),
            pairs,
            semantic: self.semantic,
            odds: (self.parts.lexical, self.parts.semantic),
        }
    }
}

/// Why a candidate stands where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ScoreParts {
    /// What its words add to the odds.
    pub lexical: f32,
    /// What its meaning adds to the odds, less what every candidate has to bring.
    pub semantic: f32,
    /// How well it fits: above 0, at most 1, and comparable between questions as far as that can
    /// be had. Of hits with .2, .4 and .6 about .2, .4 and .5 were judged relevant.
    pub score: f32,
}

impl ScoreParts {
    fn odds(&self) -> f32 {
        self.lexical + self.semantic
    }
}

/// How many words a question has. What is not parted by spaces counts as one, since an identifier
/// is one; two characters of a script without spaces count as one too.
pub(crate) fn count_words(text: &str) -> usize {
    let count = |part: &str| {
        let unspaced = part
            .chars()
            .filter(|c| script(*c) == Some(ScriptSpacing::Unspaced));
        unspaced.count().div_ceil(2).max(1)
    };
    text.split_whitespace().map(count).sum::<usize>().max(1)
}

/// Gives every candidate its parts.
pub(crate) fn fuse<T>(signals: &FusionSignals, candidates: &mut [FusionCandidate<T>]) {
    match signals.weighing {
        FusionMethod::Adaptive => {
            if signals.language == LanguageId::Unclear && are_foreign(candidates) {
                for candidate in &mut *candidates {
                    candidate.is_foreign = true;
                }
            }
            fuse_log_odds(signals, candidates);
        }
        FusionMethod::Fixed(share) => fuse_min_max(share, candidates),
    }
}

/// Leaves the best `keep` candidates, the best first; `tie` says which of two equals that is.
pub(crate) fn keep_best<T>(
    candidates: &mut Vec<FusionCandidate<T>>,
    keep: usize,
    tie: impl Fn(&T, &T) -> Ordering,
) {
    // By the odds, because scores close to 1 can no longer be told apart.
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
    let short = 1.0 + SHORT_QUERY_BOOST / (words * words * words);
    let typical = imputed_cosine(candidates);
    for candidate in candidates {
        let raw = candidate.lexical.unwrap_or(0.0) * short;
        let (lexical, semantic) = match typical.filter(|_| !candidate.is_foreign) {
            // Nothing speaks for one that has neither a word nor a vector.
            None if candidate.is_foreign && raw <= 0.0 => (0.0, f32::MIN),
            None => (raw * LEXICAL_ONLY.slope, -LEXICAL_ONLY.offset),
            Some(typical) => {
                let cosine = candidate.semantic.unwrap_or(typical);
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

/// Whether the documents that have the words of a question are in languages that the model does not know: then
/// the question is too.
fn are_foreign<T>(candidates: &[FusionCandidate<T>]) -> bool {
    if candidates.iter().all(|one| !one.is_foreign) {
        return false;
    }
    let words = |one: &&FusionCandidate<T>| one.lexical.unwrap_or(0.0);
    let mut worded: Vec<_> = candidates.iter().filter(|one| words(one) > 0.0).collect();
    if worded.len() > LANGUAGE_VOTE_HITS {
        worded.select_nth_unstable_by(LANGUAGE_VOTE_HITS, |left, right| {
            words(right).total_cmp(&words(left))
        });
        worded.truncate(LANGUAGE_VOTE_HITS);
    }
    let foreign = worded.iter().filter(|one| one.is_foreign).count();
    foreign * 5 >= worded.len() * 4 && foreign > 0
}

/// The cosine that a candidate without a vector is taken to have while vectors are still made; nothing if no
/// candidate has one.
fn imputed_cosine<T>(candidates: &[FusionCandidate<T>]) -> Option<f32> {
    let known = || candidates.iter().filter(|one| !one.is_foreign);
    if known().all(|c| c.semantic.is_some()) {
        // Nobody asks for it then, and any will do.
        return known().next()?.semantic;
    }
    let mut known: Vec<f32> = known().filter_map(|c| c.semantic).collect();
    let at = known.len() / IMPUTED_QUANTILE;
    if known.is_empty() {
        return None;
    }
    let (_, typical, _) = known.select_nth_unstable_by(at, |left, right| right.total_cmp(left));
    Some(*typical)
}

/// Odds into a chance. Never 0, because that would say that it was not found at all.
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

/// The least and the greatest of some values.
struct MinMaxRange(f32, f32);

impl MinMaxRange {
    fn of(values: impl Iterator<Item = f32>) -> Self {
        values.fold(Self(f32::INFINITY, f32::NEG_INFINITY), |span, value| {
            Self(span.0.min(value), span.1.max(value))
        })
    }

    /// Where a value stands between the two; at the end if they are the same.
    fn normalize(&self, value: f32) -> f32 {
        let width = self.1 - self.0;
        if width > f32::EPSILON {
            (value - self.0) / width
        } else {
            1.0
        }
    }
}

/// Puts variety into the first `keep` candidates, which come best first: each next one is the one
/// with the most of `(1 − amount) × score − amount × likeness to the nearest already taken`.
///
/// Off by default, since it costs: an amount of .1 costs .003 of nDCG@10, .3 costs .016 and .5
/// costs .048.
pub(crate) fn maximal_marginal_relevance<T>(
    candidates: &mut [FusionCandidate<T>],
    amount: f32,
    keep: usize,
    likeness: impl Fn(&T, &T) -> f32,
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
            *near = near.max(likeness(&last.item, &candidate.item));
            let worth = (1.0 - amount) * candidate.parts.score - amount * *near;
            if worth > best.1 {
                best = (at, worth);
            }
        }
        // Moved to the front of the rest, which keeps the order of those that are passed over.
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
            weighing: FusionMethod::Adaptive,
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
        // Stretched to the best of its list, 5 points would count as much as 50 do.
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

    #[test]
    fn a_weak_embedder_leaves_more_to_the_words() {
        let given = [
            ("meaning", Some(2.0), Some(0.80)),
            ("words", Some(20.0), Some(0.62)),
        ];
        check(&signals(9), &given, &["meaning", "words"]);
        let weak = FusionSignals {
            scale: CosineScale::STATIC,
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
        for weighing in [
            FusionMethod::Adaptive,
            FusionMethod::Fixed(0.5),
            FusionMethod::Fixed(f32::NAN),
        ] {
            let found = fused(
                &FusionSignals {
                    weighing,
                    ..signals(3)
                },
                &odd,
            );
            assert_eq!(found.first().map(|c| c.item), Some("huge"), "{weighing:?}");
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
    fn a_fixed_weight_stretches_both_lists() {
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
                weighing: FusionMethod::Fixed(share),
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
    fn strangers_are_not_shown() {
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
    fn words_are_what_spaces_part() {
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
    fn variety_passes_over_what_is_like_the_first() {
        let given = [
            ("a1", Some(20.0), Some(0.80)),
            ("a2", Some(20.0), Some(0.795)),
            ("b1", Some(20.0), Some(0.79)),
            ("b2", Some(20.0), Some(0.78)),
        ];
        let likeness = |left: &&str, right: &&str| f32::from(u8::from(left[..1] == right[..1]));
        for (amount, expected) in [
            (0.0, ["a1", "a2", "b1", "b2"]),
            (0.3, ["a1", "b1", "a2", "b2"]),
            (f32::NAN, ["a1", "a2", "b1", "b2"]),
        ] {
            let mut candidates = fused(&signals(9), &given);
            maximal_marginal_relevance(&mut candidates, amount, 10, likeness);
            let order: Vec<_> = candidates.iter().map(|c| c.item).collect();
            assert_eq!(order, expected, "{amount}");
        }
        maximal_marginal_relevance(&mut [] as &mut [FusionCandidate<&str>], 0.5, 10, likeness);
    }

    #[test]
    fn no_more_candidates_are_varied_than_the_limit() {
        let make = |count: usize| {
            let mut candidates: Vec<_> = (0..count)
                .map(|n| FusionCandidate::new(n, Some(1.0), Some(0.5)))
                .collect();
            fuse(&signals(9), &mut candidates);
            keep_best(&mut candidates, usize::MAX, Ord::cmp);
            // The last one alone is unlike the first.
            let likeness = |left: &usize, right: &usize| {
                f32::from(u8::from((*left == count - 1) == (*right == count - 1)))
            };
            maximal_marginal_relevance(&mut candidates, 0.5, 2, likeness);
            candidates.get(1).map(|c| c.item)
        };
        assert_eq!(make(MAX_MMR_CANDIDATES), Some(MAX_MMR_CANDIDATES - 1));
        assert_eq!(make(MAX_MMR_CANDIDATES + 1), Some(1));
    }
}
