//! The machine: room on the disk, how much it lets a program watch, and the walls it has for parsers.

use std::path::Path;

use docent_ingest::{Confinement, Limits, Sandbox, Workers};

use super::Finding;
use crate::corpus::PARSER;

/// With less room than this, an index that grows may fill the disk.
const LITTLE: u64 = 1024 * 1024 * 1024;
/// With less than this, it will not be written at all.
const NONE: u64 = 64 * 1024 * 1024;
const MIB: u64 = 1024 * 1024;

/// The room on the disk of the index.
pub(crate) fn disk(dir: &Path) -> Option<Finding> {
    let place = dir.ancestors().find(|place| place.exists())?;
    room(place).map(|free| judged_room(free, place))
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

fn judged_room(free: u64, place: &Path) -> Finding {
    let says = format!("{} MiB are free at `{}`", free / MIB, place.display());
    let hint = "make room, or move the index to another disk with `--index`";
    match free {
        free if free < NONE => Finding::wrong("disk", says, hint),
        free if free < LITTLE => Finding::warning("disk", says, hint),
        _ => Finding::good("disk", says),
    }
}

/// Whether every folder can be watched.
pub(crate) fn watches(folders: usize) -> Option<Finding> {
    let most = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok()?;
    Some(judged_watches(folders as u64, most.trim().parse().ok()?))
}

/// The limit counts for all programs of the user, and an editor takes its share.
fn judged_watches(folders: u64, most: u64) -> Finding {
    let says = format!("{folders} folders to watch, of {most} that this user may");
    if folders.saturating_mul(2) <= most {
        return Finding::good("watching", says);
    }
    let wanted = folders.saturating_mul(4).next_power_of_two();
    Finding::warning(
        "watching",
        says,
        format!(
            "`sudo sysctl fs.inotify.max_user_watches={wanted}`; until then the folder may only be looked at now and then"
        ),
    )
}

/// The walls that parsers of foreign formats stand behind.
pub(crate) fn sandbox(limits: &Limits) -> Finding {
    let walls = Sandbox::of_this_program(PARSER)
        .and_then(Workers::new)
        .and_then(|workers| workers.try_walls(limits));
    match walls {
        Ok(walls) => judged_walls(walls),
        Err(error) => Finding::wrong(
            "sandbox",
            format!("no process for parsing can be started: {error}"),
            "PDF, Office and other foreign formats are not read; may docent start itself again?",
        ),
    }
}

fn judged_walls(walls: Confinement) -> Finding {
    if walls.is_complete() {
        return Finding::good(
            "sandbox",
            "parsers stand behind limits, Landlock and seccomp",
        );
    }
    if !cfg!(target_os = "linux") {
        return Finding::warning(
            "sandbox",
            "parsers run in processes of their own, without further walls",
            "on Linux there are more",
        );
    }
    let missing: Vec<_> = [
        (walls.limits, "limits"),
        (walls.landlock, "Landlock"),
        (walls.seccomp, "seccomp"),
    ]
    .into_iter()
    .filter_map(|(stands, name)| (!stands).then_some(name))
    .collect();
    Finding::warning(
        "sandbox",
        format!("parsers lack {}", missing.join(" and ")),
        "use a kernel from 5.13 on with it turned on, and a container that allows it; do not serve files of strangers without",
    )
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn room_and_watches_have_their_bounds() {
        let state = |free| judged_room(free, Path::new("/")).state;
        assert_eq!(
            [
                state(NONE - 1),
                state(NONE),
                state(LITTLE - 1),
                state(LITTLE)
            ],
            [State::Wrong, State::Warning, State::Warning, State::Good]
        );
        assert_eq!(judged_watches(4_096, 8_192).state, State::Good);
        let few = judged_watches(4_097, 8_192);
        assert_eq!(few.state, State::Warning);
        assert!(few.hint.unwrap().contains("max_user_watches=32768"));
        assert!(disk(Path::new("/nonexistent/index")).is_some() || cfg!(not(unix)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_wall_that_is_missing_is_named() {
        let all = Confinement {
            limits: true,
            landlock: true,
            seccomp: true,
        };
        assert_eq!(judged_walls(all).state, State::Good);
        let finding = judged_walls(Confinement {
            landlock: false,
            ..all
        });
        assert_eq!(
            (finding.state, finding.says.as_str()),
            (State::Warning, "parsers lack Landlock")
        );
    }
}
