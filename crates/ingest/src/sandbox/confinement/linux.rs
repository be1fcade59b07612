//! The walls as Linux has them.

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

use super::{Confinement, MAX_MEMORY_BYTES, SandboxLayerStatus, syscalls};

/// Files that may be open at once: three standard ones, two pipes and what a start needs in passing.
const MAX_OPEN_FILES: u64 = 32;

/// Bytes of the stack, so that how deep a parser may go does not depend on who started us.
const MAX_STACK_BYTES: u64 = 8 * 1024 * 1024;

/// Seconds of the processor until the first file brings its own bound.
const START_SECONDS: u64 = 60;

/// How many limits there are, that on time included.
const LIMITS: u16 = 6;

/// Sets the limits and starts the program once more, within them: an allocator may have set aside more than the
/// limit when the program began, and memory that it has already is not limited any more. True when this
/// process has been within them from its start.
pub(in super::super) fn bound() -> bool {
    let before = is_memory_limited();
    let (_, bounded) = lower_rlimits();
    // What was read before counts only where limits can be set at all: a filter that forbids the call
    // forbids looking too.
    if bounded.is_ok() && !before {
        let again = std::env::args_os().skip(1);
        // It returns only when it failed. Then the limits hold for all memory to come, at least.
        let _ = Command::new("/proc/self/exe").args(again).exec();
    }
    bounded.is_ok() && before
}

fn is_memory_limited() -> bool {
    let most = getrlimit(Resource::As).maximum;
    most.is_some_and(|most| most <= MAX_MEMORY_BYTES)
}

/// Lowers every limit but that on time. Gives how many hold, and whether that on memory does.
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

/// Lowers a limit and looks at what came of it. Lowering is always allowed, unless a filter of whoever started
/// us forbids the call.
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

/// Whether every limit holds, now that they have been set.
fn rlimit_status(fresh: bool) -> SandboxLayerStatus {
    let (held, memory) = lower_rlimits();
    let held = held + u16::from(bound_time(START_SECONDS).is_ok());
    match memory {
        Err(errno) => SandboxLayerStatus::Missing(number(errno.raw_os_error())),
        Ok(()) if held == LIMITS && fresh => SandboxLayerStatus::Enforced,
        Ok(()) => SandboxLayerStatus::Partial(held),
    }
}

fn number(errno: i32) -> u16 {
    u16::try_from(errno).unwrap_or_default()
}

/// Points stdin and stdout at nothing.
pub(in super::super) fn redirect_stdio_to_null() {
    if let Ok(nothing) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&nothing);
        let _ = dup2_stdout(&nothing);
    }
}

/// Builds the walls that limits do not make, with a door for two pipes, and says which stand. `fresh` is what
/// [`bound`] said.
pub(in super::super) fn shut_in((input, output): (&File, &File), fresh: bool) -> Confinement {
    // The parent ends its children, and a parent that is gone ends their input; this is for one that dies
    // while a child is busy. It is the thread that started us whose death counts.
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

/// What Landlock says about itself. A kernel that is older than what is asked for keeps some of it.
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

/// The number of the system's error below an error.
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

/// Takes away every right to files, addresses, other processes' signals and abstract sockets that this kernel
/// knows of, and gives none back.
fn apply_landlock() -> Result<RestrictionStatus, RulesetError> {
    let newest = ABI::V6;
    Ruleset::default()
        .handle_access(AccessFs::from_all(newest))?
        .handle_access(AccessNet::from_all(newest))?
        .scope(Scope::from_all(newest))?
        .create()?
        .restrict_self()
}

/// Gives the file that comes now so many seconds of the processor. The limit counts from the start of the
/// process, so that it moves on with each file.
pub(in super::super) fn bound_time(seconds: u64) -> Result<(), Errno> {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or(0);
    let limit = Rlimit {
        // The second that has begun does not count.
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
