//! The machine: room on the disk, how much it lets a program watch, and the walls it has for parsers.

use std::path::Path;

use docent_ingest::{
    Confinement, LANDLOCK_VERSION, Limits, ParserPool, SandboxConfig, SandboxLayerStatus,
};

use super::DoctorFinding;
use crate::corpus::PARSER;

/// With less room than this, an index that grows may fill the disk.
const LITTLE: u64 = 1024 * 1024 * 1024;
/// With less than this, it will not be written at all.
const NONE: u64 = 64 * 1024 * 1024;
const MIB: u64 = 1024 * 1024;

/// The room on the disk of the index.
pub(crate) fn disk(dir: &Path) -> Option<DoctorFinding> {
    let place = dir.ancestors().find(|place| place.exists())?;
    room(place).map(|free| disk_finding(free, place))
}

#[cfg(unix)]
fn room(place: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(place).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(not(unix))]
fn room(_place: &Path) -> Option<u64> {
    None
}

fn disk_finding(free: u64, place: &Path) -> DoctorFinding {
    let says = format!("{} MiB are free at `{}`", free / MIB, place.display());
    let hint = "make room, or move the index to another disk with `--index`";
    match free {
        free if free < NONE => DoctorFinding::wrong("disk", says, hint),
        free if free < LITTLE => DoctorFinding::warning("disk", says, hint),
        _ => DoctorFinding::good("disk", says),
    }
}

/// Whether every folder can be watched.
pub(crate) fn watches(folders: usize) -> Option<DoctorFinding> {
    let most = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok()?;
    Some(watches_finding(folders as u64, most.trim().parse().ok()?))
}

/// The limit counts for all programs of the user, and an editor takes its share.
fn watches_finding(folders: u64, most: u64) -> DoctorFinding {
    let says = format!("{folders} folders to watch, of {most} that this user may");
    if folders.saturating_mul(2) <= most {
        return DoctorFinding::good("watching", says);
    }
    let wanted = folders.saturating_mul(4).next_power_of_two();
    DoctorFinding::warning(
        "watching",
        says,
        format!(
            "`sudo sysctl fs.inotify.max_user_watches={wanted}`; until then the folder may only be looked at now and then"
        ),
    )
}

/// The walls that parsers of foreign formats stand behind, as a child found them that was started to see.
pub(crate) fn sandbox(limits: &Limits) -> DoctorFinding {
    let walls = SandboxConfig::of_this_program(PARSER)
        .and_then(ParserPool::new)
        .and_then(|workers| workers.probe_confinement(limits));
    match walls {
        Ok(walls) => sandbox_finding(walls, limits.require_sandbox),
        Err(error) => DoctorFinding::wrong(
            "sandbox",
            format!("no process for parsing can be started: {error}"),
            "PDF, Office and other foreign formats are not read; may docent start itself again?",
        ),
    }
}

fn sandbox_finding(walls: Confinement, is_required: bool) -> DoctorFinding {
    if walls.is_complete() {
        let note = match walls.landlock {
            SandboxLayerStatus::Partial(version) => format!(
                " (version {version} of Landlock; seccomp closes what version {LANDLOCK_VERSION} adds)"
            ),
            SandboxLayerStatus::Enforced | SandboxLayerStatus::Missing(_) => String::new(),
        };
        return DoctorFinding::good(
            "sandbox",
            format!("parsers stand behind resource limits, Landlock and seccomp{note}"),
        );
    }
    let stands = |(name, wall)| match wall {
        SandboxLayerStatus::Enforced => format!("{name} enforced"),
        SandboxLayerStatus::Partial(_) => format!("{name} incomplete: {}", cause(name, wall)),
        SandboxLayerStatus::Missing(_) => format!("{name} missing: {}", cause(name, wall)),
    };
    let says = walls.layers().map(stands).join("; ");
    if is_required {
        return DoctorFinding::wrong(
            "sandbox",
            format!("{says}; `ingest.require_sandbox` leaves foreign formats out"),
            "mend it, or set `ingest.require_sandbox = false` where you trust every file",
        );
    }
    DoctorFinding::warning(
        "sandbox",
        says,
        "mend it, or set `ingest.require_sandbox = true`: do not serve files of strangers without every wall",
    )
}

/// Errors of the system by which a wall is missing.
const EPERM: u16 = 1;
const ENOSYS: u16 = 38;
const EOPNOTSUPP: u16 = 95;

/// Why a wall does not stand.
fn cause(name: &str, wall: SandboxLayerStatus) -> String {
    match (name, wall) {
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
        (_, SandboxLayerStatus::Missing(0)) => "the system does not say why".to_owned(),
        (_, SandboxLayerStatus::Missing(errno)) => format!("the system answers with error {errno}"),
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
                state(NONE - 1),
                state(NONE),
                state(LITTLE - 1),
                state(LITTLE)
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
        let check = |walls: Confinement, words: &str| {
            let finding = sandbox_finding(walls, false);
            assert_eq!(finding.state, FindingStatus::Warning);
            assert!(finding.says.contains(words), "{finding:?}");
            let finding = sandbox_finding(walls, true);
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
        // An older Landlock is enough behind whole filters, and said; without them it is one more gap.
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
            "resource limits missing: the system does not say",
        );
    }
}
