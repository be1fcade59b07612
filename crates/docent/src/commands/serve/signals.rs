//! Signal handling: the first SIGINT or SIGTERM starts a graceful shutdown, the second exits immediately.

use tokio_util::sync::CancellationToken;

use crate::cli_error::CliError;
use crate::output;

/// Exit status of a process that SIGINT ended, by shell convention: 128 + 2.
const INTERRUPTED: i32 = 130;

/// Cancels `stop` at the first signal and exits the process at the second. Must be called inside the Tokio runtime.
pub(in crate::commands) fn watch(stop: CancellationToken) -> Result<(), CliError> {
    let mut signals = OsSignals::new()?;
    tokio::spawn(async move {
        wait_for_shutdown(&mut signals, &stop).await;
        std::process::exit(INTERRUPTED);
    });
    Ok(())
}

/// Handles the first signal and returns at the second, when the process must exit.
async fn wait_for_shutdown(signals: &mut impl SignalSource, stop: &CancellationToken) {
    signals.next().await;
    output::say("stopping; requests in flight are answered first");
    stop.cancel();
    signals.next().await;
}

/// Source of signals: the operating system, or a channel in tests.
trait SignalSource: Send {
    /// Waits for the next signal.
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
        let listen = |kind| {
            signal(kind)
                .map_err(|error| CliError::failed("cannot watch for signals").because(error))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
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
struct OsSignals;

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
        let task = tokio::spawn(async move {
            wait_for_shutdown(&mut signals, &token).await;
        });
        assert!(!stop.is_cancelled());
        send.send(()).await.unwrap();
        stop.cancelled().await;
        assert!(!task.is_finished());
        send.send(()).await.unwrap();
        task.await.unwrap();
    }
}
