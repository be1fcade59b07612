//! Turns latencies and counts into the JSON object of one cell of the table.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One cell: one server, one operation, one number of connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The server's name in the table.
    pub server: String,
    /// `tools_list`, `search` or `fetch`.
    pub operation: String,
    /// How many connections asked at once.
    pub connections: usize,
    /// The `Accept` header sent.
    pub accept: String,
    /// The `Content-Type` of the answers.
    pub content_type: String,
    /// Measured time in seconds, warm-up not counted.
    pub seconds: f64,
    /// Good answers that arrived within the measured time.
    pub requests: u64,
    /// Bad status, missing marker, broken connection or no answer in time, warm-up included.
    pub errors: u64,
    /// What the first error was.
    pub first_error: Option<String>,
    /// Good answers a second.
    pub rps: f64,
    /// Median latency in microseconds.
    pub p50_us: u64,
    /// 99th percentile of latency in microseconds.
    pub p99_us: u64,
    /// Longest latency in microseconds.
    pub max_us: u64,
    /// Bytes of the first answer's body.
    pub answer_bytes: usize,
    /// Highest resident memory of the server seen while measuring, in KiB.
    pub rss_peak_kib: u64,
    /// Processor time of the server per good answer, in microseconds.
    pub server_cpu_us_per_request: f64,
    /// Processor time of the server over measured time; 1.0 is one core kept busy.
    pub server_cores: f64,
}

/// Fills `requests`, `rps` and the percentiles from the latencies of good answers, in microseconds.
pub fn fill_latencies(cell: &mut Cell, mut latencies: Vec<u32>, measured: Duration) {
    latencies.sort_unstable();
    cell.seconds = measured.as_secs_f64();
    cell.requests = latencies.len() as u64;
    cell.rps = if measured.is_zero() {
        0.0
    } else {
        latencies.len() as f64 / cell.seconds
    };
    cell.p50_us = percentile(&latencies, 50);
    cell.p99_us = percentile(&latencies, 99);
    cell.max_us = latencies.last().copied().map_or(0, u64::from);
}

/// The nearest-rank percentile of sorted values: the smallest that at least `percent` of all do not exceed.
fn percentile(sorted: &[u32], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).copied().map_or(0, u64::from)
}

/// The median; for an even count the lower of the middle two. Zero when there is none.
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
        let mut cell = Cell::default();
        fill_latencies(&mut cell, (1..=200).rev().collect(), Duration::from_secs(2));
        assert_eq!(
            (cell.requests, cell.p50_us, cell.p99_us, cell.max_us),
            (200, 100, 198, 200)
        );
        assert!((cell.rps - 100.0).abs() < f64::EPSILON);
    }

    #[test]
    fn no_answers_are_zeros() {
        let mut cell = Cell::default();
        fill_latencies(&mut cell, Vec::new(), Duration::ZERO);
        assert_eq!(
            (cell.requests, cell.p50_us, cell.p99_us, cell.max_us),
            (0, 0, 0, 0)
        );
    }

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).abs() < f64::EPSILON);
    }
}
