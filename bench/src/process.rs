//! Turns a process id into the memory and processor time of that process and of its workers.

use std::fs;

use serde::Serialize;

/// Entries of the process table that are looked at. Above the usual `pid_max` of a small machine.
const MAX_PROCESSES: usize = 65_536;

/// Ticks a second in `/proc/PID/stat`: fixed at 100 for every Linux program, whatever the kernel uses.
const TICKS_PER_SECOND: u64 = 100;

/// What a server holds and has used up to one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Resident memory in KiB, workers included.
    pub rss_kib: u64,
    /// Processor time since the start in milliseconds, workers included.
    pub cpu_ms: u64,
}

/// A server's process and the worker processes below it, as they were at one moment.
#[derive(Clone, Debug)]
pub struct Family(Vec<u32>);

impl Family {
    /// Looks up the descendants of `pid`.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let parents = parents();
        let mut members = vec![pid];
        // A worker's id may be lower than its parent's after the counter wrapped, so one pass in order
        // is not enough; servers here are at most two levels deep.
        for _ in 0..3 {
            for (child, parent) in &parents {
                if members.contains(parent) && !members.contains(child) {
                    members.push(*child);
                }
            }
        }
        Self(members)
    }

    /// What all members hold and have used as of now; a process that has ended counts as nothing.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let members = self.0.iter().filter_map(|pid| usage_of_one(*pid));
        members.fold(Usage::default(), |total, one| Usage {
            rss_kib: total.rss_kib.saturating_add(one.rss_kib),
            cpu_ms: total.cpu_ms.saturating_add(one.cpu_ms),
        })
    }
}

/// Every process with its parent.
fn parents() -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .take(MAX_PROCESSES);
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parent(&stat)?))
        })
        .collect()
}

fn usage_of_one(pid: u32) -> Option<Usage> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(Usage {
        rss_kib: rss_kib(&status).unwrap_or(0),
        cpu_ms: cpu_ms(&stat)?,
    })
}

/// The fields after the program's name, which itself may hold spaces and brackets.
fn fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_ascii_whitespace()
}

fn parent(stat: &str) -> Option<u32> {
    fields(stat).nth(1)?.parse().ok()
}

fn cpu_ms(stat: &str) -> Option<u64> {
    let mut times = fields(stat).skip(11);
    let user: u64 = times.next()?.parse().ok()?;
    let system: u64 = times.next()?.parse().ok()?;
    Some(
        user.saturating_add(system)
            .saturating_mul(1000 / TICKS_PER_SECOND),
    )
}

fn rss_kib(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "42 (a ) b) S 7 42 42 0 -1 4194560 9 0 0 0 250 30 0 0 20 0 1 0 99 0 0";

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        assert_eq!(parent(STAT), Some(7));
        assert_eq!(cpu_ms(STAT), Some(2800));
    }

    #[test]
    fn resident_memory_is_read_in_kib() {
        assert_eq!(
            rss_kib("Name:\tx\nVmRSS:\t   11264 kB\nThreads:\t1\n"),
            Some(11_264)
        );
        assert_eq!(rss_kib("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_has_memory_and_an_ended_one_has_none() {
        assert!(Family::of(std::process::id()).usage().rss_kib > 0);
        assert_eq!(Family::of(u32::MAX).usage(), Usage::default());
    }
}
