//! What the system tells about this process.

/// Facts about the process, as far as the system tells them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ProcessStats {
    pub memory_bytes: Option<u64>,
    pub cpu_seconds: Option<f64>,
    pub open_files: Option<u64>,
}

#[cfg(target_os = "linux")]
impl ProcessStats {
    /// Looks at `/proc`, which costs some microseconds.
    pub(super) fn now() -> Self {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).ok();
        let files = std::fs::read_dir("/proc/self/fd").ok();
        Self {
            memory_bytes: read("status").as_deref().and_then(resident),
            cpu_seconds: read("stat").as_deref().and_then(processor),
            // The folder itself is open while it is looked at.
            open_files: files.map(|files| (files.count() as u64).saturating_sub(1)),
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl ProcessStats {
    /// Nothing is asked of other systems.
    pub(super) fn now() -> Self {
        Self::default()
    }
}

/// `VmRSS:   12345 kB`, in bytes.
#[cfg(any(target_os = "linux", test))]
fn resident(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// User and system time, in seconds. A program's name may hold blanks and brackets, so counting begins
/// behind the last one.
#[cfg(any(target_os = "linux", test))]
fn processor(stat: &str) -> Option<f64> {
    /// Linux tells times to programs in hundredths of a second, whatever it uses inside.
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
    fn what_linux_says_is_read() {
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
