//! The result of one measurement, its percentiles, and the median over several of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The result of one cell of the table: one server, one operation, one number of connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkResult {
    /// The server's name in the table.
    pub server: String,
    /// `tools_list`, `search` or `fetch`.
    pub operation: String,
    /// The number of concurrent connections.
    pub connections: usize,
    /// The `Accept` header of the requests.
    pub accept: String,
    /// The `Content-Type` of the responses.
    pub content_type: String,
    /// Measured time in seconds, without the warm-up.
    pub seconds: f64,
    /// Correct responses that arrived within the measured time.
    pub requests: u64,
    /// Requests that failed, including those of the warm-up: wrong status, missing marker, broken connection or
    /// timeout.
    pub errors: u64,
    /// The message of the first error.
    pub first_error: Option<String>,
    /// Correct responses per second.
    pub rps: f64,
    /// Median latency in microseconds.
    pub p50_us: u64,
    /// 99th percentile of latency in microseconds.
    pub p99_us: u64,
    /// Longest latency in microseconds.
    pub max_us: u64,
    /// The length of the first response body.
    pub answer_bytes: usize,
    /// Peak resident memory of the server during the measurement, in KiB.
    pub rss_peak_kib: u64,
    /// Processor time of the server per correct response, in microseconds.
    pub server_cpu_us_per_request: f64,
    /// Processor time of the server divided by the measured time; 1.0 means that one core was busy.
    pub server_cores: f64,
}

/// Sets `requests`, `rps` and the percentiles from the latencies of correct responses, in microseconds.
pub fn fill_latencies(result: &mut BenchmarkResult, mut latencies: Vec<u32>, measured: Duration) {
    latencies.sort_unstable();
    result.seconds = measured.as_secs_f64();
    result.requests = latencies.len() as u64;
    result.rps = if measured.is_zero() {
        0.0
    } else {
        latencies.len() as f64 / result.seconds
    };
    result.p50_us = percentile(&latencies, 50);
    result.p99_us = percentile(&latencies, 99);
    result.max_us = latencies.last().copied().map_or(0, u64::from);
}

/// The nearest-rank percentile of sorted values: the smallest value that at least `percent` of all values do not
/// exceed.
fn percentile(sorted: &[u32], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).copied().map_or(0, u64::from)
}

/// The median; for an even count, the lower of the two in the middle. Zero for an empty list.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values
        .get(values.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let mut result = BenchmarkResult::default();
        fill_latencies(
            &mut result,
            (1..=200).rev().collect(),
            Duration::from_secs(2),
        );
        assert_eq!(
            (result.requests, result.p50_us, result.p99_us, result.max_us),
            (200, 100, 198, 200)
        );
        assert!((result.rps - 100.0).abs() < f64::EPSILON);
    }

    #[test]
    fn without_responses_all_figures_are_zero() {
        let mut result = BenchmarkResult::default();
        fill_latencies(&mut result, Vec::new(), Duration::ZERO);
        assert_eq!(
            (result.requests, result.p50_us, result.p99_us, result.max_us),
            (0, 0, 0, 0)
        );
    }

    #[test]
    fn the_median_is_the_value_in_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).abs() < f64::EPSILON);
    }
}
