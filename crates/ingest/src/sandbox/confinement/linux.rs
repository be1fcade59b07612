//! The sandbox layers on Linux: resource limits, Landlock and seccomp.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, LandlockStatus, RestrictionStatus, Ruleset,
    RulesetAttr as _, RulesetError, RulesetStatus, Scope,
};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use rustix::time::{ClockId, clock_gettime};

use super::{Confinement, SandboxLayerStatus, syscalls};
use crate::limits::MAX_MEMORY_BYTES;

/// Open file descriptors: three standard ones, two pipes, and what starting the program needs temporarily.
const MAX_OPEN_FILES: u64 = 32;

/// Stack size, so that the recursion depth of parsers does not depend on who started the server.
const MAX_STACK_BYTES: u64 = 8 * 1024 * 1024;

/// Seconds of CPU time until the first file sets its own limit. Starting takes far less; the limit is for a child that
/// hangs before it has read anything, which the deadline of a file would not end.
const START_SECONDS: u64 = 60;

/// The number of resource limits, the one on CPU time included.
const LIMITS: u16 = 6;

/// Sets the resource limits and re-executes the program within them, because memory that an allocator
/// reserved before the limit was set is not subject to it. Returns whether this process has been limited
/// from its start.
pub(in super::super) fn limit_resources() -> bool {
    let before = is_memory_limited();
    let (_, bounded) = lower_rlimits();
    // The limits read above count only if limits can be set at all: a seccomp filter that forbids the call
    // makes the reading unreliable too.
    if bounded.is_ok() && !before {
        let again = std::env::args_os().skip(1);
        // `exec` returns only on failure. Then the limits at least apply to all later memory.
        let _ = Command::new("/proc/self/exe").args(again).exec();
    }
    bounded.is_ok() && before
}

fn is_memory_limited() -> bool {
    let most = getrlimit(Resource::As).maximum;
    most.is_some_and(|most| most <= MAX_MEMORY_BYTES)
}

/// Lowers every limit except the one on CPU time. Returns how many apply, and whether the one on memory
/// does.
fn lower_rlimits() -> (u16, Result<(), Errno>) {
    let others = [
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, MAX_OPEN_FILES),
        (Resource::Stack, MAX_STACK_BYTES),
    ];
    let held = others.map(|(resource, limit)| lower_rlimit(resource, limit).is_ok());
    let memory = lower_rlimit(Resource::As, MAX_MEMORY_BYTES);
    let held = held.into_iter().chain([memory.is_ok()]);
    (held.map(u16::from).sum(), memory)
}

/// Lowers a limit and verifies the result. Lowering is always permitted, unless a seccomp filter of the
/// parent process forbids the call.
fn lower_rlimit(resource: Resource, limit: u64) -> Result<(), Errno> {
    let before = getrlimit(resource).maximum;
    let limit = before.map_or(limit, |before| before.min(limit));
    let wanted = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    setrlimit(resource, wanted)?;
    if getrlimit(resource) == wanted {
        Ok(())
    } else {
        Err(Errno::PERM)
    }
}

/// The status of the resource limits after they have been set.
fn rlimit_status(fresh: bool) -> SandboxLayerStatus {
    let (held, memory) = lower_rlimits();
    let held = held + u16::from(limit_cpu_time(START_SECONDS).is_ok());
    match memory {
        Err(errno) => SandboxLayerStatus::Missing(number(errno.raw_os_error())),
        Ok(()) if held == LIMITS && fresh => SandboxLayerStatus::Enforced,
        Ok(()) => SandboxLayerStatus::Partial(held),
    }
}

fn number(errno: i32) -> u16 {
    u16::try_from(errno).unwrap_or_default()
}

/// Redirects stdin and stdout to `/dev/null`.
pub(in super::super) fn redirect_stdio_to_null() {
    if let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&null);
        let _ = dup2_stdout(&null);
    }
}

/// Sets up Landlock and seccomp, with two pipes left open, and returns the status of all layers. `fresh` is
/// the result of [`limit_resources`].
pub(in super::super) fn confine(input: &File, output: &File, fresh: bool) -> Confinement {
    // The parent normally kills its children, and their input ends when it exits. The death signal covers a
    // parent that dies while a child is busy; it is tied to the parent's thread that started the child.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    Confinement {
        limits: rlimit_status(fresh),
        landlock: match apply_landlock() {
            Ok(status) => landlock_status(status.ruleset, status.landlock),
            Err(error) => SandboxLayerStatus::Missing(errno_of(&error)),
        },
        seccomp: match syscalls::restrict_syscalls(input.as_raw_fd(), output.as_raw_fd()) {
            (syscalls::FILTERS, _) => SandboxLayerStatus::Enforced,
            (0, error) => SandboxLayerStatus::Missing(error.map_or(0, |error| errno_of(&error))),
            (some, _) => SandboxLayerStatus::Partial(some),
        },
    }
}

/// The status that Landlock reports. A kernel older than the requested version enforces part of it.
fn landlock_status(ruleset: RulesetStatus, kernel: LandlockStatus) -> SandboxLayerStatus {
    match (ruleset, kernel) {
        (RulesetStatus::FullyEnforced, _) => SandboxLayerStatus::Enforced,
        (RulesetStatus::PartiallyEnforced, LandlockStatus::Available { effective_abi, .. }) => {
            SandboxLayerStatus::Partial(number(effective_abi as i32))
        }
        (RulesetStatus::PartiallyEnforced, _) => SandboxLayerStatus::Partial(0),
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => {
            SandboxLayerStatus::Missing(number(libc::EOPNOTSUPP))
        }
        (RulesetStatus::NotEnforced, LandlockStatus::NotImplemented) => {
            SandboxLayerStatus::Missing(number(libc::ENOSYS))
        }
        (RulesetStatus::NotEnforced, LandlockStatus::Available { .. }) => {
            SandboxLayerStatus::Missing(0)
        }
    }
}

/// The `errno` at the root of an error's source chain, or 0.
fn errno_of(error: &(dyn std::error::Error + 'static)) -> u16 {
    let mut below = Some(error);
    while let Some(error) = below {
        let system = error.downcast_ref::<std::io::Error>();
        if let Some(errno) = system.and_then(std::io::Error::raw_os_error) {
            return number(errno);
        }
        below = error.source();
    }
    0
}

/// Drops all rights that this kernel's Landlock knows of, to files, network addresses, signals to other
/// processes and abstract sockets, and allows no exceptions.
fn apply_landlock() -> Result<RestrictionStatus, RulesetError> {
    let newest = ABI::V6;
    Ruleset::default()
        .handle_access(AccessFs::from_all(newest))?
        .handle_access(AccessNet::from_all(newest))?
        .scope(Scope::from_all(newest))?
        .create()?
        .restrict_self()
}

/// Allows the next file this many seconds of CPU time. The limit counts from the start of the process, so
/// it is moved forward for each file.
pub(in super::super) fn limit_cpu_time(seconds: u64) -> Result<(), Errno> {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or(0);
    let limit = Rlimit {
        // One extra second for the one that has already begun.
        current: Some(used.saturating_add(seconds).saturating_add(1)),
        maximum: getrlimit(Resource::Cpu).maximum,
    };
    setrlimit(Resource::Cpu, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_is_told_from_one_without_landlock() {
        use super::super::LANDLOCK_VERSION;
        use RulesetStatus::{FullyEnforced, NotEnforced, PartiallyEnforced};
        let of = |effective_abi| LandlockStatus::Available {
            effective_abi,
            kernel_abi: None,
        };
        assert_eq!(
            landlock_status(FullyEnforced, of(ABI::V6)),
            SandboxLayerStatus::Enforced
        );
        assert_eq!(
            landlock_status(PartiallyEnforced, of(ABI::V4)),
            SandboxLayerStatus::Partial(4)
        );
        assert_eq!(
            landlock_status(NotEnforced, LandlockStatus::NotImplemented),
            SandboxLayerStatus::Missing(38)
        );
        assert_eq!(
            landlock_status(NotEnforced, LandlockStatus::NotEnabled),
            SandboxLayerStatus::Missing(95)
        );
        assert_eq!(number(ABI::V6 as i32), LANDLOCK_VERSION);
    }
}
