//! The walls around a child process. It builds them itself before it reads the first byte, and nothing in it
//! can take them down again.
//!
//! On Linux: limits on memory, processor time, files and stack (and a fresh start within them), Landlock, which
//! takes away every file and the network, and two seccomp filters, which leave little more than memory and two
//! pipes. Old kernels and some containers lack one or the other: then the others hold, and [`Confinement`] says
//! which. Elsewhere only the parent's deadline holds.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod syscalls;

#[cfg(target_os = "linux")]
pub(super) use self::linux::{bound, bound_time, redirect_stdio_to_null, shut_in};

/// The most memory of a child, in bytes of address space.
pub const MAX_MEMORY_BYTES: u64 = 512 * 1024 * 1024;

/// How one wall around a child stands, as the child found it after it had built it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxLayerStatus {
    /// All of it.
    Enforced,
    /// Some of it: so many of the limits or filters, or the version of Landlock that the kernel has.
    Partial(u16),
    /// None of it, with the number of the system's error; 0 where there is none.
    Missing(u16),
}

impl SandboxLayerStatus {
    fn number(self) -> u64 {
        let (state, value) = match self {
            Self::Enforced => (0, 0),
            Self::Partial(value) => (1, value),
            Self::Missing(errno) => (2, errno),
        };
        state << 16 | u64::from(value)
    }

    fn from_number(number: u64) -> Option<Self> {
        let value = u16::try_from(number & 0xFFFF).ok()?;
        match (number >> 16, value) {
            (0, 0) => Some(Self::Enforced),
            (1, value) => Some(Self::Partial(value)),
            (2, errno) => Some(Self::Missing(errno)),
            _ => None,
        }
    }
}

impl Default for SandboxLayerStatus {
    /// Nothing stands until somebody built it.
    fn default() -> Self {
        Self::Missing(0)
    }
}

/// Which walls a child stands behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Memory, processor time, stack, open and written files are limited.
    pub limits: SandboxLayerStatus,
    /// No file can be opened and no address reached, by Landlock.
    pub landlock: SandboxLayerStatus,
    /// Few system calls are left, by seccomp.
    pub seccomp: SandboxLayerStatus,
}

/// The version of Landlock that has everything a child gives up; Linux 6.12 brought it.
pub const LANDLOCK_VERSION: u16 = 6;

impl Confinement {
    /// True when nothing stands open: every wall is enforced, or what it lacks is closed by another one.
    pub fn is_complete(self) -> bool {
        self.open_layers().is_empty()
    }

    /// The walls with their names.
    pub fn layers(self) -> [(&'static str, SandboxLayerStatus); 3] {
        [
            ("resource limits", self.limits),
            ("Landlock", self.landlock),
            ("seccomp", self.seccomp),
        ]
    }

    /// The walls that leave something open, with their names.
    fn open_layers(self) -> Vec<(&'static str, SandboxLayerStatus)> {
        let closed = [
            self.limits == SandboxLayerStatus::Enforced,
            self.is_landlock_enough(),
            self.seccomp == SandboxLayerStatus::Enforced,
        ];
        let walls = self.layers().into_iter().zip(closed);
        walls
            .filter_map(|(wall, closed)| (!closed).then_some(wall))
            .collect()
    }

    /// Every version of Landlock keeps a process from opening, making and removing files. What later versions
    /// added (truncating, TCP, devices, abstract sockets, signals) begins with system calls that our seccomp
    /// filters leave to nobody, so that an older Landlock behind whole filters leaves nothing open. Demanding
    /// the newest would shut out most servers of today and keep no parser from anything.
    fn is_landlock_enough(self) -> bool {
        match self.landlock {
            SandboxLayerStatus::Enforced => true,
            SandboxLayerStatus::Partial(version) => {
                version >= 1 && self.seccomp == SandboxLayerStatus::Enforced
            }
            SandboxLayerStatus::Missing(_) => false,
        }
    }

    /// What stands open, for people: `Landlock missing, seccomp incomplete`.
    pub(crate) fn gaps(self) -> String {
        let gap = |(name, wall)| match wall {
            SandboxLayerStatus::Missing(_) => format!("{name} missing"),
            SandboxLayerStatus::Partial(_) | SandboxLayerStatus::Enforced => {
                format!("{name} incomplete")
            }
        };
        let gaps: Vec<_> = self.open_layers().into_iter().map(gap).collect();
        gaps.join(", ")
    }

    pub(super) fn to_numbers(self) -> [u64; 3] {
        self.layers().map(|(_, wall)| wall.number())
    }

    /// Nothing where a number says what no child says.
    pub(super) fn from_numbers([limits, landlock, seccomp]: [u64; 3]) -> Option<Self> {
        Some(Self {
            limits: SandboxLayerStatus::from_number(limits)?,
            landlock: SandboxLayerStatus::from_number(landlock)?,
            seccomp: SandboxLayerStatus::from_number(seccomp)?,
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    pub(in super::super) fn bound() -> bool {
        false
    }

    pub(in super::super) fn bound_time(_seconds: u64) {}

    pub(in super::super) fn shut_in<I, O>(_pipes: (&I, &O), _fresh: bool) -> super::Confinement {
        super::Confinement::default()
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use self::elsewhere::{bound, bound_time, shut_in};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_others_are_refused() {
        let walls = [
            SandboxLayerStatus::Enforced,
            SandboxLayerStatus::Partial(0),
            SandboxLayerStatus::Partial(5),
            SandboxLayerStatus::Missing(0),
            SandboxLayerStatus::Missing(u16::MAX),
        ];
        for wall in walls {
            assert_eq!(SandboxLayerStatus::from_number(wall.number()), Some(wall));
            let confinement = Confinement {
                limits: SandboxLayerStatus::Enforced,
                landlock: wall,
                seccomp: SandboxLayerStatus::Enforced,
            };
            let numbers = confinement.to_numbers();
            assert_eq!(Confinement::from_numbers(numbers), Some(confinement));
        }
        for wrong in [1, 0xFFFF, 3 << 16, u64::MAX] {
            assert_eq!(SandboxLayerStatus::from_number(wrong), None);
            assert_eq!(Confinement::from_numbers([0, 0, wrong]), None);
        }
    }

    #[test]
    fn nothing_stands_unless_it_was_built() {
        let none = Confinement::default();
        assert!(!none.is_complete());
        assert_eq!(
            none.gaps(),
            "resource limits missing, Landlock missing, seccomp missing"
        );
    }

    #[test]
    fn an_older_landlock_is_enough_behind_whole_filters_alone() {
        let old = Confinement {
            limits: SandboxLayerStatus::Enforced,
            landlock: SandboxLayerStatus::Partial(1),
            seccomp: SandboxLayerStatus::Enforced,
        };
        assert!(old.is_complete());
        assert_eq!(old.gaps(), "");
        let landlock = |landlock| Confinement { landlock, ..old };
        assert!(landlock(SandboxLayerStatus::Enforced).is_complete());
        for open in [
            SandboxLayerStatus::Partial(0),
            SandboxLayerStatus::Missing(0),
            SandboxLayerStatus::Missing(38),
        ] {
            assert!(!landlock(open).is_complete(), "{open:?}");
        }
        for open in [
            SandboxLayerStatus::Partial(1),
            SandboxLayerStatus::Missing(1),
        ] {
            let seccomp = Confinement {
                seccomp: open,
                ..old
            };
            assert!(!seccomp.is_complete(), "{open:?}");
            assert!(seccomp.gaps().starts_with("Landlock incomplete, seccomp "));
            let limits = Confinement {
                limits: open,
                ..old
            };
            assert!(!limits.is_complete(), "{open:?}");
        }
    }
}
