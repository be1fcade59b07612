//! Signals into a stop: the first one asks the server to finish, the second ends it at once.

use tokio_util::sync::CancellationToken;

use crate::output;
use crate::problem::Problem;

/// What shells call the status of a process that an interrupt ended.
const INTERRUPTED: i32 = 130;

/// Cancels `stop` at the first SIGINT or SIGTERM. Must be called inside the runtime.
pub(super) fn watch(stop: CancellationToken) -> Result<(), Problem> {
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        signals.next().await;
        output::say("stopping; requests in flight are answered first");
        stop.cancel();
        signals.next().await;
        std::process::exit(INTERRUPTED);
    });
    Ok(())
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Result<Self, Problem> {
        use tokio::signal::unix::{SignalKind, signal};
        let on = |kind| {
            signal(kind).map_err(|error| Problem::failed("cannot watch for signals").because(error))
        };
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Result<Self, Problem> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
