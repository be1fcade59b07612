//! The one thread that starts children and kills those that are late. Children are told to die with the
//! thread that started them, so that it must be one that lives as long as the pool.

use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::SandboxConfig;

/// A child process, for whoever may have to end it.
#[derive(Debug)]
pub(super) struct WorkerProcess {
    child: Mutex<Child>,
    late: AtomicBool,
}

impl WorkerProcess {
    pub(super) fn new(child: Child) -> Self {
        Self {
            child: Mutex::new(child),
            late: AtomicBool::new(false),
        }
    }

    /// Ends it by force. One that has ended already is left alone, even when its number is used again.
    pub(super) fn kill(&self) {
        // It fails only for a process that is gone.
        let _ = self.child().kill();
    }

    /// How it ended, if it did.
    pub(super) fn exit_status(&self) -> io::Result<Option<ExitStatus>> {
        self.child().try_wait()
    }

    /// Waits until it has ended. The lock is free in between, so that the keeper can kill it.
    pub(super) fn wait(&self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.exit_status()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// True when it was killed because its time was over.
    pub(super) fn was_overdue(&self) -> bool {
        self.late.load(Ordering::SeqCst)
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum SupervisorCommand {
    Start(SandboxConfig, SyncSender<io::Result<Child>>),
    Watch(Arc<WorkerProcess>, Instant),
    Release(Arc<WorkerProcess>),
}

/// Gives orders to the thread, which ends when the last handle is gone.
#[derive(Debug)]
pub(super) struct ProcessSupervisor(Sender<SupervisorCommand>);

impl ProcessSupervisor {
    pub(super) fn start() -> io::Result<Self> {
        let (orders, received) = channel();
        std::thread::Builder::new()
            .name("docent-parsers".to_owned())
            .spawn(move || run_supervisor(&received))?;
        Ok(Self(orders))
    }

    /// Starts a child with pipes at all its ends.
    pub(super) fn spawn(&self, sandbox: &SandboxConfig) -> io::Result<Child> {
        let gone = || io::Error::other("the keeper is gone");
        let (reply, child) = sync_channel(1);
        let sent = self
            .0
            .send(SupervisorCommand::Start(sandbox.clone(), reply));
        sent.map_err(|_| gone())?;
        child.recv().map_err(|_| gone())?
    }

    /// Kills a process that is not released within a time.
    pub(super) fn watch(&self, process: &Arc<WorkerProcess>, time: Duration) {
        let until = Instant::now() + time;
        // Without a keeper nothing could be started, so that somebody is there.
        let _ = self
            .0
            .send(SupervisorCommand::Watch(process.clone(), until));
    }

    pub(super) fn release(&self, process: &Arc<WorkerProcess>) {
        let _ = self.0.send(SupervisorCommand::Release(process.clone()));
    }
}

fn run_supervisor(orders: &Receiver<SupervisorCommand>) {
    let mut watched: Vec<(Arc<WorkerProcess>, Instant)> = Vec::new();
    loop {
        let next = watched.iter().map(|(_, until)| *until).min();
        let order = match next {
            Some(until) => orders.recv_timeout(until.saturating_duration_since(Instant::now())),
            None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match order {
            Ok(SupervisorCommand::Start(sandbox, reply)) => {
                // Nobody waits any more when this fails, and the child sees the end of its stdin.
                let _ = reply.send(spawn(&sandbox));
            }
            Ok(SupervisorCommand::Watch(process, until)) => watched.push((process, until)),
            Ok(SupervisorCommand::Release(process)) => {
                watched.retain(|(other, _)| !Arc::ptr_eq(other, &process));
            }
            Err(RecvTimeoutError::Timeout) => kill_overdue(&mut watched),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn kill_overdue(watched: &mut Vec<(Arc<WorkerProcess>, Instant)>) {
    let now = Instant::now();
    watched.retain(|(process, until)| {
        let late = *until <= now;
        if late {
            process.late.store(true, Ordering::SeqCst);
            process.kill();
        }
        !late
    });
}

fn spawn(sandbox: &SandboxConfig) -> io::Result<Child> {
    let mut command = Command::new(&sandbox.program);
    command
        .args(&sandbox.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        // What the environment holds, keys and tokens among it, is none of a parser's business. A group of its
        // own keeps the keys of a terminal away: they are for the parent, which ends its children itself.
        command.env_clear().current_dir("/").process_group(0);
    }
    command.spawn()
}
