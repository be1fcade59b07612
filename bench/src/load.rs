//! The load generator: a closed loop over a number of connections, each of which sends its next request as soon as it
//! has the response to the last one.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use memchr::memmem::Finder;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use crate::benchmark_request::{AcceptHeader, BenchmarkRequest};
use crate::http_connection::{HttpConnection, HttpResponse};
use crate::loopback_target::LoopbackTarget;
use crate::process_tree::ProcessTree;
use crate::summary::{BenchmarkResult, fill_latencies};

/// The largest number of concurrent connections.
pub const MAX_CONNECTIONS: usize = 1024;
/// The longest warm-up, and the longest measurement.
pub const MAX_MEASURED: Duration = Duration::from_secs(120);
/// The number of latencies that all connections together record, which take 64 MiB.
const MAX_LATENCIES: usize = 16 * 1024 * 1024;
/// A connection stops after this many errors, so that a broken server does not get an endless load.
const MAX_ERRORS_PER_CONNECTION: u64 = 20;
/// How often the server's memory is sampled. A sample takes far less than a millisecond.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// One measurement: the server, the request, the concurrency and the duration.
#[derive(Clone, Debug)]
pub struct LoadSettings {
    /// The endpoint.
    pub target: LoopbackTarget,
    /// The media types to accept.
    pub accept: AcceptHeader,
    /// The request, and the marker of its response.
    pub request: BenchmarkRequest,
    /// The number of concurrent connections.
    pub connections: usize,
    /// Time at the start during which responses are not counted.
    pub warm_up: Duration,
    /// Time after the warm-up during which responses are counted.
    pub measured: Duration,
    /// The server's process id, if its memory and processor time are measured.
    pub pid: Option<u32>,
}

/// The time span in which responses are counted.
#[derive(Clone, Copy)]
struct MeasurementWindow {
    start: Instant,
    end: Instant,
}

/// The responses and errors of one connection.
#[derive(Default)]
struct ConnectionStats {
    /// In microseconds, within the measurement window.
    latencies: Vec<u32>,
    errors: u64,
    first_error: Option<String>,
    content_type: String,
    answer_bytes: usize,
}

/// Measures the server. The fields `server` and `operation` of the result stay empty; the caller fills them.
///
/// # Errors
/// When a setting is out of range, or a connection cannot be opened at the start.
pub async fn run(load: &LoadSettings) -> anyhow::Result<BenchmarkResult> {
    validate(load)?;
    let mut connections = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        connections.push(HttpConnection::open(&load.target, load.accept).await?);
    }
    let start = Instant::now() + load.warm_up;
    let window = MeasurementWindow {
        start,
        end: start + load.measured,
    };
    let usage = tokio::spawn(measure_usage(load.pid, window));
    let mut busy_tasks = JoinSet::new();
    for _ in 0..Handle::current().metrics().num_workers() {
        busy_tasks.spawn(keep_polling());
    }
    let mut clients = JoinSet::new();
    for connection in connections {
        clients.spawn(send_requests(load.clone(), connection, window));
    }
    let total = clients
        .join_all()
        .await
        .into_iter()
        .fold(ConnectionStats::default(), merge);
    drop(busy_tasks);
    let (cpu_time, rss_peak_kib) = usage.await?;
    let mut result = BenchmarkResult {
        connections: load.connections,
        accept: load.accept.header().to_owned(),
        content_type: total.content_type,
        errors: total.errors,
        first_error: total.first_error,
        answer_bytes: total.answer_bytes,
        rss_peak_kib,
        ..BenchmarkResult::default()
    };
    fill_latencies(&mut result, total.latencies, load.measured);
    result.server_cpu_us_per_request =
        cpu_time.as_micros() as f64 / (result.requests.max(1)) as f64;
    result.server_cores = cpu_time.as_secs_f64() / load.measured.as_secs_f64();
    Ok(result)
}

fn validate(load: &LoadSettings) -> anyhow::Result<()> {
    ensure!(
        (1..=MAX_CONNECTIONS).contains(&load.connections),
        "`{}` connections are not between 1 and {MAX_CONNECTIONS}",
        load.connections
    );
    ensure!(
        load.measured > Duration::ZERO && load.measured.max(load.warm_up) <= MAX_MEASURED,
        "`{:?}` after a warm-up of `{:?}` is not within {MAX_MEASURED:?}",
        load.measured,
        load.warm_up
    );
    Ok(())
}

/// Keeps a worker thread busy, so that the load generator never sleeps between two responses. On loopback, a server
/// that sends to a sleeping process has to wake it on another core, and that takes longer than sending. A server with
/// remote clients does not do that work.
async fn keep_polling() {
    loop {
        tokio::task::yield_now().await;
    }
}

async fn send_requests(
    load: LoadSettings,
    connection: HttpConnection,
    window: MeasurementWindow,
) -> ConnectionStats {
    let finder = Finder::new(load.request.marker.as_bytes());
    let max_latencies = MAX_LATENCIES / load.connections;
    let mut stats = ConnectionStats::default();
    let mut open = Some(connection);
    while stats.latencies.len() < max_latencies && stats.errors < MAX_ERRORS_PER_CONNECTION {
        let started = Instant::now();
        if started >= window.end {
            break;
        }
        match send_request(&load, &finder, &mut open).await {
            Ok(response) => stats.record(&response, started, window),
            Err(error) => {
                // The failed request may have left unread bytes on the connection, so the next one uses a new
                // connection.
                open = None;
                stats.errors += 1;
                stats
                    .first_error
                    .get_or_insert_with(|| format!("{error:#}"));
            }
        }
    }
    stats
}

async fn send_request(
    load: &LoadSettings,
    marker: &Finder<'_>,
    open: &mut Option<HttpConnection>,
) -> anyhow::Result<HttpResponse> {
    let connection = match open {
        Some(connection) => connection,
        None => open.insert(HttpConnection::open(&load.target, load.accept).await?),
    };
    let response = connection.post(&load.request.body).await?;
    if response.status != 200 {
        bail!("status {}", response.status);
    }
    if marker.find(&response.body).is_none() {
        bail!("the response lacks `{}`", load.request.marker);
    }
    Ok(response)
}

impl ConnectionStats {
    fn record(&mut self, response: &HttpResponse, started: Instant, window: MeasurementWindow) {
        if self.answer_bytes == 0 {
            self.answer_bytes = response.body.len();
            self.content_type.clone_from(&response.content_type);
        }
        let ended = Instant::now();
        if ended >= window.start && ended < window.end {
            let micros = ended.duration_since(started).as_micros();
            self.latencies
                .push(u32::try_from(micros).unwrap_or(u32::MAX));
        }
    }
}

fn merge(mut all: ConnectionStats, one: ConnectionStats) -> ConnectionStats {
    all.latencies.extend(one.latencies);
    all.errors += one.errors;
    all.first_error = all.first_error.or(one.first_error);
    if all.answer_bytes == 0 {
        all.answer_bytes = one.answer_bytes;
        all.content_type = one.content_type;
    }
    all
}

/// Measures the server's processor time within the window and its peak memory in KiB.
async fn measure_usage(pid: Option<u32>, window: MeasurementWindow) -> (Duration, u64) {
    let Some(pid) = pid else {
        return (Duration::ZERO, 0);
    };
    sleep_until(window.start.into()).await;
    let server = ProcessTree::of(pid);
    let before = server.usage();
    let mut peak = before.rss_kib;
    while Instant::now() < window.end {
        sleep_until((Instant::now() + SAMPLE_INTERVAL).min(window.end).into()).await;
        peak = peak.max(server.usage().rss_kib);
    }
    let spent = server.usage().cpu_ms.saturating_sub(before.cpu_ms);
    (Duration::from_millis(spent), peak)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http_body_util::Full;
    use hyper::{Response, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use std::convert::Infallible;
    use tokio::net::TcpListener;

    /// Starts a server that responds to every request with `status` and `body`.
    async fn server(status: u16, body: &'static str) -> LoopbackTarget {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = service_fn(move |_| async move {
                    let answer = Response::builder()
                        .status(status)
                        .header("content-type", "text/x");
                    Ok::<_, Infallible>(answer.body(Full::new(Bytes::from(body))).unwrap())
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
            }
        });
        format!("http://{address}/mcp").parse().unwrap()
    }

    fn load(target: LoopbackTarget) -> LoadSettings {
        let request = BenchmarkRequest {
            body: Bytes::from("{}"),
            marker: "hansard-7".into(),
        };
        let (warm_up, measured) = (Duration::ZERO, Duration::from_millis(200));
        LoadSettings {
            target,
            accept: AcceptHeader::Json,
            request,
            connections: 3,
            warm_up,
            measured,
            pid: None,
        }
    }

    #[tokio::test]
    async fn correct_responses_are_counted_and_none_is_an_error() {
        let result = run(&load(server(200, "id: hansard-7").await))
            .await
            .unwrap();
        assert!(result.requests > 0);
        assert_eq!((result.errors, result.answer_bytes), (0, 13));
        assert_eq!(result.content_type, "text/x");
    }

    #[tokio::test]
    async fn a_wrong_status_or_a_missing_marker_is_an_error_and_the_connection_stops() {
        for (status, body, expected) in [
            (503, "hansard-7", "status 503"),
            (200, "hansard-8", "lacks `hansard-7`"),
        ] {
            let result = run(&load(server(status, body).await)).await.unwrap();
            assert_eq!(
                (result.requests, result.errors),
                (0, 3 * MAX_ERRORS_PER_CONNECTION)
            );
            assert!(result.first_error.unwrap().contains(expected));
        }
    }

    #[tokio::test]
    async fn settings_out_of_range_are_rejected() {
        let target = server(200, "hansard-7").await;
        let with = |connections, seconds| LoadSettings {
            connections,
            measured: Duration::from_secs(seconds),
            ..load(target.clone())
        };
        assert!(validate(&with(MAX_CONNECTIONS, 120)).is_ok());
        for (connections, seconds) in [(0, 1), (MAX_CONNECTIONS + 1, 1), (1, 0), (1, 121)] {
            assert!(
                run(&with(connections, seconds)).await.is_err(),
                "{connections} {seconds}"
            );
        }
    }
}
