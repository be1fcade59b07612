//! Supervisor thread that starts child processes and kills overdue ones. The death signal of a child is
//! tied to the thread that started it, so one thread that lives as long as the pool has to start all of
//! them.

use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::SandboxConfig;

/// Handle to a child process for everyone who may have to kill it.
#[derive(Debug)]
pub(super) struct WorkerProcess {
    child: Mutex<Child>,
    overdue: AtomicBool,
}

impl WorkerProcess {
    pub(super) fn new(child: Child) -> Self {
        Self {
            child: Mutex::new(child),
            overdue: AtomicBool::new(false),
        }
    }

    /// Kills the process. One that has exited already is left alone, even if its process id is in use
    /// again.
    pub(super) fn kill(&self) {
        // It fails only if the process is gone.
        let _ = self.child().kill();
    }

    /// The exit status, if the process has exited.
    pub(super) fn exit_status(&self) -> io::Result<Option<ExitStatus>> {
        self.child().try_wait()
    }

    /// Waits until the process has exited. It polls, so that the lock is free for the supervisor to kill
    /// the process.
    pub(super) fn wait(&self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.exit_status()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether it was killed because it missed its deadline.
    pub(super) fn was_overdue(&self) -> bool {
        self.overdue.load(Ordering::SeqCst)
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

/// Sends commands to the supervisor thread, which ends when the last handle is dropped.
#[derive(Debug)]
pub(super) struct ProcessSupervisor(Sender<SupervisorCommand>);

impl ProcessSupervisor {
    pub(super) fn start() -> io::Result<Self> {
        let (commands, receiver) = channel();
        std::thread::Builder::new()
            .name("docent-parsers".to_owned())
            .spawn(move || run_supervisor(&receiver))?;
        Ok(Self(commands))
    }

    /// Starts a child process with pipes for stdin, stdout and stderr.
    pub(super) fn spawn(&self, sandbox: &SandboxConfig) -> io::Result<Child> {
        let gone = || io::Error::other("the supervisor thread is gone");
        let (reply, child) = sync_channel(1);
        let sent = self
            .0
            .send(SupervisorCommand::Start(sandbox.clone(), reply));
        sent.map_err(|_| gone())?;
        child.recv().map_err(|_| gone())?
    }

    /// Sets a deadline: the process is killed unless it is released in time.
    pub(super) fn watch(&self, process: &Arc<WorkerProcess>, time: Duration) {
        let deadline = Instant::now() + time;
        // The process was started by the supervisor, so the thread is running.
        let _ = self
            .0
            .send(SupervisorCommand::Watch(process.clone(), deadline));
    }

    pub(super) fn release(&self, process: &Arc<WorkerProcess>) {
        let _ = self.0.send(SupervisorCommand::Release(process.clone()));
    }
}

fn run_supervisor(commands: &Receiver<SupervisorCommand>) {
    let mut watched: Vec<(Arc<WorkerProcess>, Instant)> = Vec::new();
    loop {
        let next = watched.iter().map(|(_, deadline)| *deadline).min();
        let received = match next {
            Some(deadline) => {
                commands.recv_timeout(deadline.saturating_duration_since(Instant::now()))
            }
            None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(SupervisorCommand::Start(sandbox, reply)) => {
                // If sending fails nobody waits any more, and the child sees the end of its stdin.
                let _ = reply.send(spawn(&sandbox));
            }
            Ok(SupervisorCommand::Watch(process, deadline)) => watched.push((process, deadline)),
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
    watched.retain(|(process, deadline)| {
        let overdue = *deadline <= now;
        if overdue {
            process.overdue.store(true, Ordering::SeqCst);
            process.kill();
        }
        !overdue
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
        // The environment may hold keys and tokens, which parsers must not see. A process group of its own
        // keeps terminal signals such as Ctrl-C away from the child: the parent handles them and ends its
        // children itself.
        command.env_clear().current_dir("/").process_group(0);
    }
    command.spawn()
}
