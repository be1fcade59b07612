//! The walls as Linux has them.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetError, RulesetStatus,
    Scope,
};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use rustix::time::{ClockId, clock_gettime};

use super::{Confinement, MAX_MEMORY_BYTES, calls};

/// Files that may be open at once: three standard ones, two pipes and what a start needs in passing.
const MAX_OPEN_FILES: u64 = 32;

/// Bytes of the stack, so that how deep a parser may go does not depend on who started us.
const MAX_STACK_BYTES: u64 = 8 * 1024 * 1024;

/// Sets the limits and starts the program once more, within them: an allocator may have set aside more than the
/// limit when the program began, and memory that it has already is not limited any more.
pub(in super::super) fn bound() {
    let before = is_bound();
    lower(Resource::Core, 0);
    lower(Resource::Fsize, 0);
    lower(Resource::Nofile, MAX_OPEN_FILES);
    lower(Resource::Stack, MAX_STACK_BYTES);
    lower(Resource::As, MAX_MEMORY_BYTES);
    if !before && is_bound() {
        let again = std::env::args_os().skip(1);
        // It returns only when it failed. Then the limits hold for all memory to come, at least.
        let _ = Command::new("/proc/self/exe").args(again).exec();
    }
}

fn is_bound() -> bool {
    let most = getrlimit(Resource::As).maximum;
    most.is_some_and(|most| most <= MAX_MEMORY_BYTES)
}

fn lower(resource: Resource, limit: u64) {
    let before = getrlimit(resource).maximum;
    let limit = Some(before.map_or(limit, |before| before.min(limit)));
    let limit = Rlimit {
        current: limit,
        maximum: limit,
    };
    // Lowering is always allowed; what came of it is looked at where it matters.
    let _ = setrlimit(resource, limit);
}

/// Points stdin and stdout at nothing.
pub(in super::super) fn silence() {
    if let Ok(nothing) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdin(&nothing);
        let _ = dup2_stdout(&nothing);
    }
}

/// Builds the walls that limits do not make, with a door for two pipes.
pub(in super::super) fn shut_in(input: &File, output: &File) -> Confinement {
    // The parent ends its children, and a parent that is gone ends their input; this is for one that dies
    // while a child is busy. It is the thread that started us whose death counts.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    Confinement {
        limits: is_bound(),
        landlock: no_files().is_ok_and(|status| status != RulesetStatus::NotEnforced),
        seccomp: calls::few(input.as_raw_fd(), output.as_raw_fd()).is_ok(),
    }
}

/// Takes away every right to files, addresses, other processes' signals and abstract sockets that this kernel
/// knows of, and gives none back.
fn no_files() -> Result<RulesetStatus, RulesetError> {
    let newest = ABI::V6;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(newest))?
        .handle_access(AccessNet::from_all(newest))?
        .scope(Scope::from_all(newest))?
        .create()?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// Gives the file that comes now so many seconds of the processor. The limit counts from the start of the
/// process, so that it moves on with each file.
pub(in super::super) fn bound_time(seconds: u64) {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or(0);
    let limit = Rlimit {
        // The second that has begun does not count.
        current: Some(used.saturating_add(seconds).saturating_add(1)),
        maximum: getrlimit(Resource::Cpu).maximum,
    };
    let _ = setrlimit(Resource::Cpu, limit);
}
