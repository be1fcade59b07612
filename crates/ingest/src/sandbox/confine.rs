//! The walls around a child process. It builds them itself before it reads the first byte, and nothing in it
//! can take them down again.
//!
//! On Linux: limits on memory, processor time, files and stack (and a fresh start within them), Landlock, which
//! takes away every file and the network, and two seccomp filters, which leave little more than memory and two
//! pipes. Old kernels and some containers lack one or the other: then the others hold, and [`Confinement`] says
//! which. Elsewhere only the parent's deadline holds.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(super) use self::linux::{bound, bound_time, shut_in, silence};

/// The most memory of a child, in bytes of address space.
pub const MAX_MEMORY_BYTES: u64 = 512 * 1024 * 1024;

/// Which walls a child stands behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Memory, processor time and open files are limited.
    pub limits: bool,
    /// No file can be opened and no address reached, by Landlock.
    pub landlock: bool,
    /// Few system calls are left, by seccomp.
    pub seccomp: bool,
}

impl Confinement {
    /// True when every wall of this system stands.
    pub fn is_complete(self) -> bool {
        self.limits && self.landlock && self.seccomp
    }

    pub(super) fn bits(self) -> u64 {
        u64::from(self.limits) | u64::from(self.landlock) << 1 | u64::from(self.seccomp) << 2
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        Self {
            limits: bits & 1 != 0,
            landlock: bits & 2 != 0,
            seccomp: bits & 4 != 0,
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    pub(in super::super) fn bound() {}

    pub(in super::super) fn bound_time(_seconds: u64) {}

    pub(in super::super) fn shut_in<I, O>(_input: &I, _output: &O) -> super::Confinement {
        super::Confinement::default()
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use self::elsewhere::{bound, bound_time, shut_in};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back() {
        for bits in 0..8 {
            assert_eq!(Confinement::from_bits(bits).bits(), bits);
        }
        assert!(Confinement::from_bits(7).is_complete());
        assert!(!Confinement::from_bits(5).is_complete());
    }
}
