//! Confinement of a parser process. The child sets it up itself before it reads the first byte, and nothing
//! in it can undo it.
//!
//! On Linux there are three layers: resource limits on memory, CPU time, files and stack (with a re-exec
//! within them), Landlock, which takes away all files and the network, and two seccomp filters, which leave
//! little more than memory and two pipes. Old kernels and some containers lack a layer; then the other ones
//! apply, and [`Confinement`] says which. On other systems only the parent's deadline applies.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod syscalls;

#[cfg(target_os = "linux")]
pub(super) use self::linux::{confine, limit_cpu_time, limit_resources, redirect_stdio_to_null};

/// The status of one sandbox layer, as the child found it after setting it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxLayerStatus {
    /// The layer is enforced completely.
    Enforced,
    /// Part of the layer is enforced: the number of limits or filters, or the Landlock version of the
    /// kernel.
    Partial(u16),
    /// The layer is missing, with the `errno` of the failure, or 0 without one.
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
    /// A layer counts as missing until a child has reported it.
    fn default() -> Self {
        Self::Missing(0)
    }
}

/// The status of all sandbox layers of a child.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Resource limits (rlimits) on memory, CPU time, stack, and open and written files.
    pub limits: SandboxLayerStatus,
    /// Landlock: no file can be opened and no address reached.
    pub landlock: SandboxLayerStatus,
    /// Seccomp: only an allowlist of system calls is left.
    pub seccomp: SandboxLayerStatus,
}

/// The Landlock version with every restriction that a child asks for; it came with Linux 6.12.
pub const LANDLOCK_VERSION: u16 = 6;

impl Confinement {
    /// Whether nothing is left open: every layer is enforced, or another layer covers what it lacks.
    pub fn is_complete(self) -> bool {
        self.open_layers().is_empty()
    }

    /// All layers with their names.
    pub fn layers(self) -> [(&'static str, SandboxLayerStatus); 3] {
        [
            ("resource limits", self.limits),
            ("Landlock", self.landlock),
            ("seccomp", self.seccomp),
        ]
    }

    /// The layers that leave something open, with their names.
    fn open_layers(self) -> Vec<(&'static str, SandboxLayerStatus)> {
        let closed = [
            self.limits == SandboxLayerStatus::Enforced,
            self.is_landlock_enough(),
            self.seccomp == SandboxLayerStatus::Enforced,
        ];
        let layers = self.layers().into_iter().zip(closed);
        layers
            .filter_map(|(layer, closed)| (!closed).then_some(layer))
            .collect()
    }

    /// Whether Landlock suffices. Every version keeps a process from opening, creating and removing files.
    /// What later versions added (truncation, TCP, devices, abstract sockets, signals) begins with system
    /// calls that our seccomp filters deny anyway, so an older Landlock behind complete filters leaves
    /// nothing open. Requiring the newest version would exclude most of today's servers without restricting
    /// a parser any further.
    fn is_landlock_enough(self) -> bool {
        match self.landlock {
            SandboxLayerStatus::Enforced => true,
            SandboxLayerStatus::Partial(version) => {
                version >= 1 && self.seccomp == SandboxLayerStatus::Enforced
            }
            SandboxLayerStatus::Missing(_) => false,
        }
    }

    /// The gaps as text for people: `Landlock missing, seccomp incomplete`.
    pub(crate) fn gaps(self) -> String {
        let gap = |(name, layer)| match layer {
            SandboxLayerStatus::Missing(_) => format!("{name} missing"),
            SandboxLayerStatus::Partial(_) | SandboxLayerStatus::Enforced => {
                format!("{name} incomplete")
            }
        };
        let gaps: Vec<_> = self.open_layers().into_iter().map(gap).collect();
        gaps.join(", ")
    }

    pub(super) fn to_numbers(self) -> [u64; 3] {
        self.layers().map(|(_, layer)| layer.number())
    }

    /// Decodes what a child sent; `None` for numbers that no child sends.
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
    pub(in super::super) fn limit_resources() -> bool {
        false
    }

    pub(in super::super) fn limit_cpu_time(_seconds: u64) {}

    pub(in super::super) fn confine<I, O>(
        _input: &I,
        _output: &O,
        _fresh: bool,
    ) -> super::Confinement {
        super::Confinement::default()
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use self::elsewhere::{confine, limit_cpu_time, limit_resources};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_others_are_refused() {
        let layers = [
            SandboxLayerStatus::Enforced,
            SandboxLayerStatus::Partial(0),
            SandboxLayerStatus::Partial(5),
            SandboxLayerStatus::Missing(0),
            SandboxLayerStatus::Missing(u16::MAX),
        ];
        for layer in layers {
            assert_eq!(SandboxLayerStatus::from_number(layer.number()), Some(layer));
            let confinement = Confinement {
                limits: SandboxLayerStatus::Enforced,
                landlock: layer,
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
