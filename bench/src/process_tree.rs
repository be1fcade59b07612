//! Memory and processor time of a server's process and its worker processes, read from `/proc`.

use std::fs;

use serde::Serialize;

/// The number of entries of the process table that are read: above the usual `pid_max` of a small machine.
const MAX_PROCESSES: usize = 65_536;

/// The unit of times in `/proc/PID/stat`. Linux reports 100 ticks a second to all programs, whatever rate its timer
/// has.
const TICKS_PER_SECOND: u64 = 100;

/// Memory and processor time of a process tree at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResourceUsage {
    /// Resident memory in KiB, including worker processes.
    pub rss_kib: u64,
    /// Processor time since the start in milliseconds, including worker processes.
    pub cpu_ms: u64,
}

/// The ids of a process and its descendants at one moment.
#[derive(Clone, Debug)]
pub struct ProcessTree(Vec<u32>);

impl ProcessTree {
    /// Finds the descendants of `pid`.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let parents = parents();
        let mut members = vec![pid];
        // Process ids wrap around, so a child can have a lower id than its parent and one pass may miss it. The
        // servers of this benchmark have at most two levels.
        for _ in 0..3 {
            for (child, parent) in &parents {
                if members.contains(parent) && !members.contains(child) {
                    members.push(*child);
                }
            }
        }
        Self(members)
    }

    /// The current sum over all processes of the tree. A process that has ended counts as zero.
    #[must_use]
    pub fn usage(&self) -> ResourceUsage {
        let members = self.0.iter().filter_map(|pid| usage_of_one(*pid));
        members.fold(ResourceUsage::default(), |total, one| ResourceUsage {
            rss_kib: total.rss_kib.saturating_add(one.rss_kib),
            cpu_ms: total.cpu_ms.saturating_add(one.cpu_ms),
        })
    }
}

/// All process ids, each with that of its parent.
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

fn usage_of_one(pid: u32) -> Option<ResourceUsage> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(ResourceUsage {
        rss_kib: rss_kib(&status).unwrap_or(0),
        cpu_ms: cpu_ms(&stat)?,
    })
}

/// The fields after the program's name, which may itself contain spaces and parentheses.
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
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
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
    fn a_running_process_has_memory_and_an_ended_one_has_none() {
        assert!(ProcessTree::of(std::process::id()).usage().rss_kib > 0);
        assert_eq!(ProcessTree::of(u32::MAX).usage(), ResourceUsage::default());
    }
}
