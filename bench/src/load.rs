//! Turns a question and a number of connections into a cell: a closed loop, bounded in time and count.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use memchr::memmem::Finder;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use crate::connection::{Answer, Connection};
use crate::process::Family;
use crate::question::{Accept, Question};
use crate::summary::{Cell, fill_latencies};
use crate::target::Target;

/// The most connections that may ask at once.
pub const MAX_CONNECTIONS: usize = 1024;
/// The longest measurement.
pub const MAX_MEASURED: Duration = Duration::from_secs(120);
/// The most latencies kept, over all connections: 64 MiB of them.
const MAX_LATENCIES: usize = 16 * 1024 * 1024;
/// Errors after which one connection gives up: a broken server must not be hammered.
const MAX_ERRORS_PER_CONNECTION: u64 = 20;
/// How often the server's memory is read. Reading it takes far less than a millisecond.
const SAMPLE_EVERY: Duration = Duration::from_millis(200);

/// What to ask, of whom, for how long.
#[derive(Clone, Debug)]
pub struct Load {
    /// The endpoint.
    pub target: Target,
    /// The kinds of answer to accept.
    pub accept: Accept,
    /// The request and the marker of its answer.
    pub question: Question,
    /// How many connections ask at once.
    pub connections: usize,
    /// How long answers are not counted.
    pub warm_up: Duration,
    /// How long answers are counted.
    pub measured: Duration,
    /// The server's process, when its memory is to be read.
    pub pid: Option<u32>,
}

#[derive(Clone, Copy)]
struct Window {
    opens: Instant,
    closes: Instant,
}

#[derive(Default)]
struct Tally {
    latencies: Vec<u32>,
    errors: u64,
    first_error: Option<String>,
    content_type: String,
    answer_bytes: usize,
}

/// Runs the load and says how the server did. Only the fields that the load knows are filled.
///
/// # Errors
/// When the load is out of bounds, or no connection can be opened at all.
pub async fn run(load: &Load) -> anyhow::Result<Cell> {
    check(load)?;
    let mut connections = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        connections.push(Connection::open(&load.target, load.accept).await?);
    }
    let opens = Instant::now() + load.warm_up;
    let window = Window {
        opens,
        closes: opens + load.measured,
    };
    let watch = tokio::spawn(watch(load.pid, window));
    let mut awake = JoinSet::new();
    for _ in 0..Handle::current().metrics().num_workers() {
        awake.spawn(stay_awake());
    }
    let mut askers = JoinSet::new();
    for connection in connections {
        askers.spawn(ask_until_closed(load.clone(), connection, window));
    }
    let total = askers
        .join_all()
        .await
        .into_iter()
        .fold(Tally::default(), merge);
    drop(awake);
    let (spent, rss_peak_kib) = watch.await?;
    let mut cell = Cell {
        connections: load.connections,
        accept: load.accept.header().to_owned(),
        content_type: total.content_type,
        errors: total.errors,
        first_error: total.first_error,
        answer_bytes: total.answer_bytes,
        rss_peak_kib,
        ..Cell::default()
    };
    fill_latencies(&mut cell, total.latencies, load.measured);
    cell.server_cpu_us_per_request = spent.as_micros() as f64 / (cell.requests.max(1)) as f64;
    cell.server_cores = spent.as_secs_f64() / load.measured.as_secs_f64();
    Ok(cell)
}

fn check(load: &Load) -> anyhow::Result<()> {
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

/// Keeps the load generator from falling asleep between two answers. Waking a process on another core takes a
/// server, which does it while it sends, longer than sending; on a network that is not the server's work.
async fn stay_awake() {
    loop {
        tokio::task::yield_now().await;
    }
}

async fn ask_until_closed(load: Load, connection: Connection, window: Window) -> Tally {
    let finder = Finder::new(load.question.marker.as_bytes());
    let room = MAX_LATENCIES / load.connections;
    let mut tally = Tally::default();
    let mut open = Some(connection);
    while tally.latencies.len() < room && tally.errors < MAX_ERRORS_PER_CONNECTION {
        let started = Instant::now();
        if started >= window.closes {
            break;
        }
        match ask(&load, &finder, &mut open).await {
            Ok(answer) => tally.good(&answer, started, window),
            Err(error) => {
                // Whatever went wrong may have left bytes on the wire, so the next request
                // begins on a new connection.
                open = None;
                tally.errors += 1;
                tally
                    .first_error
                    .get_or_insert_with(|| format!("{error:#}"));
            }
        }
    }
    tally
}

async fn ask(
    load: &Load,
    marker: &Finder<'_>,
    open: &mut Option<Connection>,
) -> anyhow::Result<Answer> {
    let connection = match open {
        Some(connection) => connection,
        None => open.insert(Connection::open(&load.target, load.accept).await?),
    };
    let answer = connection.ask(&load.question.body).await?;
    if answer.status != 200 {
        bail!("status {}", answer.status);
    }
    if marker.find(&answer.body).is_none() {
        bail!("the answer lacks `{}`", load.question.marker);
    }
    Ok(answer)
}

impl Tally {
    fn good(&mut self, answer: &Answer, started: Instant, window: Window) {
        if self.answer_bytes == 0 {
            self.answer_bytes = answer.body.len();
            self.content_type.clone_from(&answer.content_type);
        }
        let ended = Instant::now();
        if ended >= window.opens && ended < window.closes {
            let micros = ended.duration_since(started).as_micros();
            self.latencies
                .push(u32::try_from(micros).unwrap_or(u32::MAX));
        }
    }
}

fn merge(mut all: Tally, one: Tally) -> Tally {
    all.latencies.extend(one.latencies);
    all.errors += one.errors;
    all.first_error = all.first_error.or(one.first_error);
    if all.answer_bytes == 0 {
        all.answer_bytes = one.answer_bytes;
        all.content_type = one.content_type;
    }
    all
}

/// The processor time the server spent within the window, and the most memory it was seen to hold.
async fn watch(pid: Option<u32>, window: Window) -> (Duration, u64) {
    let Some(pid) = pid else {
        return (Duration::ZERO, 0);
    };
    sleep_until(window.opens.into()).await;
    let server = Family::of(pid);
    let before = server.usage();
    let mut peak = before.rss_kib;
    while Instant::now() < window.closes {
        sleep_until((Instant::now() + SAMPLE_EVERY).min(window.closes).into()).await;
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

    /// A server that answers `status` and `body` to everything.
    async fn server(status: u16, body: &'static str) -> Target {
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

    fn load(target: Target) -> Load {
        let question = Question {
            body: Bytes::from("{}"),
            marker: "hansard-7".into(),
        };
        let (warm_up, measured) = (Duration::ZERO, Duration::from_millis(200));
        Load {
            target,
            accept: Accept::Json,
            question,
            connections: 3,
            warm_up,
            measured,
            pid: None,
        }
    }

    #[tokio::test]
    async fn good_answers_are_counted_and_none_is_an_error() {
        let cell = run(&load(server(200, "id: hansard-7").await))
            .await
            .unwrap();
        assert!(cell.requests > 0);
        assert_eq!((cell.errors, cell.answer_bytes), (0, 13));
        assert_eq!(cell.content_type, "text/x");
    }

    #[tokio::test]
    async fn a_wrong_status_or_a_missing_marker_is_an_error_and_the_loop_gives_up() {
        for (status, body, says) in [
            (503, "hansard-7", "status 503"),
            (200, "hansard-8", "lacks `hansard-7`"),
        ] {
            let cell = run(&load(server(status, body).await)).await.unwrap();
            assert_eq!(
                (cell.requests, cell.errors),
                (0, 3 * MAX_ERRORS_PER_CONNECTION)
            );
            assert!(cell.first_error.unwrap().contains(says));
        }
    }

    #[tokio::test]
    async fn loads_out_of_bounds_are_refused() {
        let target = server(200, "hansard-7").await;
        let with = |connections, seconds| Load {
            connections,
            measured: Duration::from_secs(seconds),
            ..load(target.clone())
        };
        assert!(check(&with(MAX_CONNECTIONS, 120)).is_ok());
        for (connections, seconds) in [(0, 1), (MAX_CONNECTIONS + 1, 1), (1, 0), (1, 121)] {
            assert!(
                run(&with(connections, seconds)).await.is_err(),
                "{connections} {seconds}"
            );
        }
    }
}
