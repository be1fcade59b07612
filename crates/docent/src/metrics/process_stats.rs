//! Process statistics from `/proc` for the metrics: resident memory, CPU time and open files.

/// A snapshot of the statistics of this process; values that the system does not offer are `None`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ProcessStats {
    pub memory_bytes: Option<u64>,
    pub cpu_seconds: Option<f64>,
    pub open_files: Option<u64>,
}

#[cfg(target_os = "linux")]
impl ProcessStats {
    /// Reads `/proc/self`, which takes some microseconds, so nothing is cached.
    pub(super) fn now() -> Self {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).ok();
        let files = std::fs::read_dir("/proc/self/fd").ok();
        Self {
            memory_bytes: read("status").as_deref().and_then(resident),
            cpu_seconds: read("stat").as_deref().and_then(processor),
            // Listing the folder opens one more descriptor, which does not count.
            open_files: files.map(|files| (files.count() as u64).saturating_sub(1)),
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl ProcessStats {
    /// Other systems have no `/proc`; every value is absent.
    pub(super) fn now() -> Self {
        Self::default()
    }
}

/// Resident memory in bytes, from the line `VmRSS:   12345 kB`.
#[cfg(any(target_os = "linux", test))]
fn resident(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// CPU time of user and system together, in seconds. The program's name may contain blanks and parentheses, so
/// the fields are counted from the last closing parenthesis.
#[cfg(any(target_os = "linux", test))]
fn processor(stat: &str) -> Option<f64> {
    /// `USER_HZ`: Linux reports times to programs in hundredths of a second, whatever the kernel uses inside.
    const TICKS: f64 = 100.0;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    let (user, system) = (next()?, next()?);
    Some((user + system) as f64 / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_parsed() {
        assert_eq!(resident("Name:\tx\nVmRSS:\t  2048 kB\n"), Some(2_097_152));
        assert_eq!(resident("VmRSS: many"), None);
        let stat = "1 (a ) b) S 1 1 1 0 -1 4194560 1 2 3 4 150 50 0 0 20 0";
        assert_eq!(processor(stat), Some(2.0));
        assert_eq!(processor("1 (a"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory_and_files() {
        let now = ProcessStats::now();
        assert!(now.memory_bytes.unwrap() > 1_000_000);
        assert!(now.open_files.unwrap() >= 3 && now.cpu_seconds.is_some());
    }
}
