//! Checks of the machine: free disk space, the inotify watch limit, and the sandbox layers for parsers.

use std::path::Path;

use docent_ingest::{
    Confinement, LANDLOCK_VERSION, Limits, ParserPool, SandboxConfig, SandboxLayerStatus,
};

use super::DoctorFinding;
use crate::corpus::PARSER;

/// Free space below which a growing index may fill the disk: a warning.
const WARN_BYTES: u64 = 1024 * 1024 * 1024;
/// Free space below which the index is not written at all: an error.
const MIN_BYTES: u64 = 64 * 1024 * 1024;
const MIB: u64 = 1024 * 1024;

/// Checks the free space on the disk of the index; `None` where the system does not report it.
pub(crate) fn disk(dir: &Path) -> Option<DoctorFinding> {
    let path = dir.ancestors().find(|path| path.exists())?;
    free_space(path).map(|free| disk_finding(free, path))
}

#[cfg(unix)]
fn free_space(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(not(unix))]
fn free_space(_place: &Path) -> Option<u64> {
    None
}

fn disk_finding(free: u64, path: &Path) -> DoctorFinding {
    let says = format!("{} MiB are free at `{}`", free / MIB, path.display());
    let hint = "make room, or move the index to another disk with `--index`";
    match free {
        free if free < MIN_BYTES => DoctorFinding::wrong("disk", says, hint),
        free if free < WARN_BYTES => DoctorFinding::warning("disk", says, hint),
        _ => DoctorFinding::good("disk", says),
    }
}

/// Checks the number of folders against the inotify watch limit; `None` outside Linux.
pub(crate) fn watches(folders: usize) -> Option<DoctorFinding> {
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok()?;
    Some(watches_finding(folders as u64, limit.trim().parse().ok()?))
}

/// The limit applies to all programs of the user, such as editors, so half of it is the most that docent should need.
fn watches_finding(folders: u64, limit: u64) -> DoctorFinding {
    let says = format!("{folders} folders to watch; the limit of this user is {limit}");
    if folders.saturating_mul(2) <= limit {
        return DoctorFinding::good("watching", says);
    }
    let wanted = folders.saturating_mul(4).next_power_of_two();
    DoctorFinding::warning(
        "watching",
        says,
        format!(
            "`sudo sysctl fs.inotify.max_user_watches={wanted}`; until then, docent may have to poll the folder"
        ),
    )
}

/// Checks the sandbox of parser processes. It starts one and asks which layers are enforced, since containers and old
/// kernels can lack each of them.
pub(crate) fn sandbox(limits: &Limits) -> DoctorFinding {
    let layers = SandboxConfig::of_this_program(PARSER)
        .and_then(ParserPool::new)
        .and_then(|workers| workers.probe_confinement(limits));
    match layers {
        Ok(layers) => sandbox_finding(layers, limits.require_sandbox),
        Err(error) => DoctorFinding::wrong(
            "sandbox",
            format!("cannot start a parser process: {error}"),
            "PDF, Office and other third-party formats are not read; allow docent to start its own executable",
        ),
    }
}

fn sandbox_finding(layers: Confinement, is_required: bool) -> DoctorFinding {
    if layers.is_complete() {
        let note = match layers.landlock {
            SandboxLayerStatus::Partial(version) => format!(
                " (version {version} of Landlock; seccomp closes what version {LANDLOCK_VERSION} adds)"
            ),
            SandboxLayerStatus::Enforced | SandboxLayerStatus::Missing(_) => String::new(),
        };
        return DoctorFinding::good(
            "sandbox",
            format!("resource limits, Landlock and seccomp are enforced for parsers{note}"),
        );
    }
    let describe = |(name, status)| match status {
        SandboxLayerStatus::Enforced => format!("{name} enforced"),
        SandboxLayerStatus::Partial(_) => format!("{name} incomplete: {}", cause(name, status)),
        SandboxLayerStatus::Missing(_) => format!("{name} missing: {}", cause(name, status)),
    };
    let says = layers.layers().map(describe).join("; ");
    if is_required {
        return DoctorFinding::wrong(
            "sandbox",
            format!("{says}; `ingest.require_sandbox` skips third-party formats"),
            "fix it, or set `ingest.require_sandbox = false` if you trust every file",
        );
    }
    DoctorFinding::warning(
        "sandbox",
        says,
        "fix it, or set `ingest.require_sandbox = true`: do not serve untrusted files without every layer",
    )
}

/// Values of `errno` that explain a missing layer; numbers, because the parser process reports them as such.
const EPERM: u16 = 1;
const ENOSYS: u16 = 38;
const EOPNOTSUPP: u16 = 95;

/// Explains why a sandbox layer is missing or incomplete.
fn cause(name: &str, status: SandboxLayerStatus) -> String {
    match (name, status) {
        _ if !cfg!(target_os = "linux") => "only Linux has it".to_owned(),
        (_, SandboxLayerStatus::Missing(EPERM)) => {
            "the container forbids its system calls".to_owned()
        }
        (_, SandboxLayerStatus::Missing(ENOSYS)) => {
            "this kernel is older than it, or the container forbids its system calls".to_owned()
        }
        (_, SandboxLayerStatus::Missing(EOPNOTSUPP)) => {
            "turned off in this kernel, name it in the boot parameter `lsm=`".to_owned()
        }
        (_, SandboxLayerStatus::Missing(0)) => "the cause is unknown".to_owned(),
        (_, SandboxLayerStatus::Missing(errno)) => {
            format!("the system call failed with error {errno}")
        }
        ("Landlock", SandboxLayerStatus::Partial(version)) => format!(
            "this kernel has version {version} of it, Linux 6.12 brought version {LANDLOCK_VERSION}"
        ),
        (_, SandboxLayerStatus::Partial(held)) => format!("only {held} of its parts could be set"),
        (_, SandboxLayerStatus::Enforced) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::FindingStatus;
    use super::*;

    #[test]
    fn room_and_watches_have_their_bounds() {
        let state = |free| disk_finding(free, Path::new("/")).state;
        assert_eq!(
            [
                state(MIN_BYTES - 1),
                state(MIN_BYTES),
                state(WARN_BYTES - 1),
                state(WARN_BYTES)
            ],
            [
                FindingStatus::Wrong,
                FindingStatus::Warning,
                FindingStatus::Warning,
                FindingStatus::Good
            ]
        );
        assert_eq!(watches_finding(4_096, 8_192).state, FindingStatus::Good);
        let few = watches_finding(4_097, 8_192);
        assert_eq!(few.state, FindingStatus::Warning);
        assert!(few.hint.unwrap().contains("max_user_watches=32768"));
        assert!(disk(Path::new("/nonexistent/index")).is_some() || cfg!(not(unix)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_wall_that_is_missing_is_named_with_its_cause() {
        let all = Confinement {
            limits: SandboxLayerStatus::Enforced,
            landlock: SandboxLayerStatus::Enforced,
            seccomp: SandboxLayerStatus::Enforced,
        };
        for is_required in [false, true] {
            assert_eq!(sandbox_finding(all, is_required).state, FindingStatus::Good);
        }
        let check = |layers: Confinement, words: &str| {
            let finding = sandbox_finding(layers, false);
            assert_eq!(finding.state, FindingStatus::Warning);
            assert!(finding.says.contains(words), "{finding:?}");
            let finding = sandbox_finding(layers, true);
            assert_eq!(finding.state, FindingStatus::Wrong);
            assert!(finding.says.contains(words), "{finding:?}");
        };
        let landlock = |landlock| Confinement { landlock, ..all };
        check(
            landlock(SandboxLayerStatus::Missing(ENOSYS)),
            "Landlock missing: this kernel is older",
        );
        check(
            landlock(SandboxLayerStatus::Missing(EOPNOTSUPP)),
            "Landlock missing: turned off",
        );
        let seccomp = SandboxLayerStatus::Missing(EPERM);
        check(
            Confinement { seccomp, ..all },
            "seccomp missing: the container forbids",
        );
        // An older Landlock is enough if seccomp is complete, and the finding mentions it; otherwise it is another gap.
        let old = landlock(SandboxLayerStatus::Partial(4));
        for is_required in [false, true] {
            let finding = sandbox_finding(old, is_required);
            assert_eq!(finding.state, FindingStatus::Good);
            assert!(finding.says.contains("version 4"), "{finding:?}");
        }
        check(
            Confinement { seccomp, ..old },
            "Landlock incomplete: this kernel has version 4",
        );
        let limits = SandboxLayerStatus::Partial(5);
        check(
            Confinement { limits, ..all },
            "resource limits incomplete: only 5",
        );
        check(
            Confinement::default(),
            "resource limits missing: the cause is unknown",
        );
    }
}
