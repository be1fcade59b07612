//! Ranking metrics (nDCG, recall, reciprocal rank, diversity) as trec_eval and BEIR compute them.
//!
//! `gains` are the grades of the results in rank order, 0 for results that are not relevant. `judged` are the grades
//! of all relevant documents of the query, in any order.

use std::collections::HashSet;

/// Two texts are near-duplicates from this Jaccard similarity of their words on.
const NEAR_DUPLICATE: f64 = 0.8;

/// Normalized discounted cumulative gain (nDCG@k) against the ideal ranking. The gain is linear in the grade, as in
/// trec_eval, and discounted by the logarithm of rank plus one.
pub(crate) fn ndcg(gains: &[u32], judged: &[u32], k: usize) -> f64 {
    let mut best: Vec<u32> = judged.to_vec();
    best.sort_unstable_by(|a, b| b.cmp(a));
    ratio(discounted(gains, k), discounted(&best, k))
}

fn discounted(gains: &[u32], k: usize) -> f64 {
    let at = |(rank, gain): (u32, &u32)| f64::from(*gain) / f64::from(rank + 1).log2();
    (1..).zip(gains.iter().take(k)).map(at).sum()
}

/// Recall@k: the fraction of the relevant documents among the first `k` results.
pub(crate) fn recall(gains: &[u32], judged: &[u32], k: usize) -> f64 {
    let relevant = |grades: &[u32]| grades.iter().filter(|grade| **grade > 0).count() as f64;
    let seen = gains.get(..k).unwrap_or(gains);
    ratio(relevant(seen), relevant(judged))
}

/// Reciprocal rank of the first relevant result, 0 when it is not among the first `k`.
pub(crate) fn reciprocal_rank(gains: &[u32], k: usize) -> f64 {
    first_relevant(gains)
        .filter(|rank| *rank <= k)
        .map_or(0.0, |rank| 1.0 / rank as f64)
}

/// The rank of the first relevant result, starting at 1.
pub(crate) fn first_relevant(gains: &[u32]) -> Option<usize> {
    gains
        .iter()
        .position(|gain| *gain > 0)
        .map(|before| before + 1)
}

/// The fraction of results that are not near-duplicates of an earlier one; `None` without results.
pub(crate) fn diversity(results: &[HashSet<String>]) -> Option<f64> {
    let repeats = |(place, words): &(usize, &HashSet<String>)| {
        let mut earlier = results.iter().take(*place);
        earlier.any(|other| jaccard(words, other) >= NEAR_DUPLICATE)
    };
    let repeated = results.iter().enumerate().filter(repeats).count();
    let total = results.len() as f64;
    (!results.is_empty()).then(|| (total - repeated as f64) / total)
}

/// Jaccard similarity: shared words as a fraction of all words.
fn jaccard(a: &HashSet<String>, b: &HashSet<String>) -> f64 {
    let shared = a.intersection(b).count();
    let all = a.len() + b.len() - shared;
    // Two texts without words are indistinguishable, so they count as equal.
    if all == 0 {
        1.0
    } else {
        shared as f64 / all as f64
    }
}

/// The arithmetic mean, 0 without values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    ratio(values.iter().sum(), values.len() as f64)
}

/// Margin of error of the mean: half the width of the 95 % confidence interval by the normal approximation; `None`
/// for fewer than two values.
pub(crate) fn confidence_margin(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| 1.96 * (squares / (count - 1.0) / count).sqrt())
}

/// Percentile of sorted values by the nearest-rank method, which always returns a measured value.
pub(crate) fn percentile(ascending: &[f64], percent: usize) -> Option<f64> {
    let rank = (ascending.len() * percent).div_ceil(100).max(1);
    ascending.get(rank - 1).copied()
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }

    /// Every expected value was computed by hand from log2(2) = 1, log2(3) = 1.5849625, log2(4) = 2,
    /// log2(5) = 2.3219281, log2(6) = 2.5849625 and log2(7) = 2.8073549.
    #[test]
    fn ndcg_equals_values_computed_by_hand() {
        let cases: [(&[u32], &[u32], usize, f64); 10] = [
            // The ideal ranking.
            (&[1, 1, 0], &[1, 1], 10, 1.0),
            // One relevant document, second: 1 / 1.5849625.
            (&[0, 1], &[1], 10, 0.630_929_75),
            // One relevant document, third: 1 / 2.
            (&[0, 0, 1], &[1], 10, 0.5),
            // Grades 3 2 3 0 1 2 of 3 3 2 2 1: (3 + 1.2618595 + 1.5 + 0.3868528 + 0.7124144)
            // / (3 + 1.8927893 + 1 + 0.8613531 + 0.3868528).
            (&[3, 2, 3, 0, 1, 2], &[3, 2, 3, 1, 2], 6, 0.960_808_19),
            // Equal grades in any order are ideal.
            (&[2, 2, 1, 1], &[1, 2, 1, 2], 10, 1.0),
            // The same grades reversed: (1 + 0.6309298 + 1 + 0.8613531)
            // / (2 + 1.2618595 + 0.5 + 0.4306766).
            (&[1, 1, 2, 2], &[1, 2, 1, 2], 10, 0.832_976_23),
            // Fewer results than k, one of two relevant ones found: 1 / 1.6309298.
            (&[1], &[1, 1], 10, 0.613_147_19),
            // Results after rank k do not count.
            (&[0, 0, 1], &[1], 2, 0.0),
            // Nothing is relevant.
            (&[0, 0], &[], 10, 0.0),
            // Nothing was found.
            (&[], &[1], 10, 0.0),
        ];
        for (gains, judged, k, expected) in cases {
            near(ndcg(gains, judged, k), expected);
        }
        // The ideal ranking is cut at k too, so more than k relevant documents cost nothing.
        near(ndcg(&[1, 1], &[1; 50], 2), 1.0);
    }

    #[test]
    fn recall_counts_relevant_documents_and_not_their_grades() {
        near(recall(&[3, 0, 1], &[3, 1, 1, 1], 10), 0.5);
        near(recall(&[3, 0, 1], &[3, 1, 1, 1], 2), 0.25);
        near(recall(&[0], &[], 10), 0.0);
        near(recall(&[], &[1], 10), 0.0);
    }

    #[test]
    fn the_first_relevant_result_decides_the_reciprocal_rank() {
        near(reciprocal_rank(&[0, 0, 0, 1, 3], 10), 0.25);
        near(reciprocal_rank(&[0, 0, 0, 1], 3), 0.0);
        near(reciprocal_rank(&[], 10), 0.0);
        assert_eq!(first_relevant(&[0, 2]), Some(2));
        assert_eq!(first_relevant(&[0]), None);
    }

    fn set(words: &str) -> HashSet<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn near_duplicates_reduce_diversity() {
        let of =
            |texts: &[&str]| diversity(&texts.iter().map(|text| set(text)).collect::<Vec<_>>());
        assert_eq!(of(&[]), None);
        near(of(&["a b c", "d e f"]).unwrap(), 1.0);
        near(of(&["a b c", "c b a", "a b c", "x"]).unwrap(), 0.5);
        // Four shared words of five are a near-duplicate, three of five are not.
        near(of(&["a b c d", "a b c d e"]).unwrap(), 0.5);
        near(of(&["a b c d", "a b c e"]).unwrap(), 1.0);
        near(of(&["", ""]).unwrap(), 0.5);
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        for (percent, expected) in [
            (0, 1.0),
            (50, 5.0),
            (51, 6.0),
            (90, 9.0),
            (99, 10.0),
            (100, 10.0),
        ] {
            assert_eq!(percentile(&ten, percent), Some(expected), "{percent}");
        }
        assert_eq!(percentile(&[7.0], 50), Some(7.0));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn means_have_margins() {
        near(mean(&[1.0, 2.0, 6.0]), 3.0);
        near(mean(&[]), 0.0);
        // Deviations -1 and 1: the variance is 2, the error of the mean 1.
        near(confidence_margin(&[1.0, 3.0]).unwrap(), 1.96);
        assert_eq!(confidence_margin(&[1.0]), None);
    }
}
