//! Signals into a stop: the first one asks the server to finish, the second ends it at once.

use tokio_util::sync::CancellationToken;

use crate::cli_error::CliError;
use crate::output;

/// What shells call the status of a process that an interrupt ended.
const INTERRUPTED: i32 = 130;

/// Cancels `stop` at the first SIGINT or SIGTERM and ends the process at the second. Must be called
/// inside the runtime.
pub(in crate::commands) fn watch(stop: CancellationToken) -> Result<(), CliError> {
    let mut signals = OsSignals::new()?;
    tokio::spawn(async move {
        wait_for_shutdown(&mut signals, &stop).await;
        std::process::exit(INTERRUPTED);
    });
    Ok(())
}

/// Returns when it is time to end at once.
async fn wait_for_shutdown(signals: &mut impl SignalSource, stop: &CancellationToken) {
    signals.next().await;
    output::say("stopping; requests in flight are answered first");
    stop.cancel();
    signals.next().await;
}

/// Where signals come from: the system, or a test.
trait SignalSource: Send {
    /// Waits for the next one.
    fn next(&mut self) -> impl Future<Output = ()> + Send;
}

#[cfg(unix)]
struct OsSignals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl OsSignals {
    fn new() -> Result<Self, CliError> {
        use tokio::signal::unix::{SignalKind, signal};
        let on = |kind| {
            signal(kind)
                .map_err(|error| CliError::failed("cannot watch for signals").because(error))
        };
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
        })
    }
}

#[cfg(unix)]
impl SignalSource for OsSignals {
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
impl OsSignals {
    fn new() -> Result<Self, CliError> {
        Ok(Self)
    }
}

#[cfg(not(unix))]
impl SignalSource for OsSignals {
    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    impl SignalSource for mpsc::Receiver<()> {
        async fn next(&mut self) {
            assert!(self.recv().await.is_some());
        }
    }

    #[tokio::test]
    async fn the_first_signal_stops_and_the_second_ends() {
        let (send, mut signals) = mpsc::channel::<()>(1);
        let stop = CancellationToken::new();
        let token = stop.clone();
        let obeying = tokio::spawn(async move {
            wait_for_shutdown(&mut signals, &token).await;
        });
        assert!(!stop.is_cancelled());
        send.send(()).await.unwrap();
        stop.cancelled().await;
        assert!(!obeying.is_finished());
        send.send(()).await.unwrap();
        obeying.await.unwrap();
    }
}
