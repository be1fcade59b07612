//! SIMD kernels of the transformer: int8 matrix multiplication, attention, layer norm and quantization.
//!
//! A kernel ([`LinearKernel`], [`AttentionKernel`], …) is written once, over [`SimdLanes`]: sixteen numbers in whatever
//! registers the CPU has. [`InstructionSet::run`] selects the implementation at run time.
#![allow(
    unsafe_code,
    reason = "calls functions for CPU features that are detected at run time"
)]

mod attention;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod lanes;
mod linear;
mod portable;
mod row_kernels;

pub(super) use attention::{AttentionHeads, AttentionKernel};
pub(super) use linear::{GemmEpilogue, LinearKernel, OutputLayout, PANEL, QuantizedMatrix};
pub(super) use row_kernels::{LayerNorm, LayerNormKernel, QuantizeKernel, QuantizedRows};

use lanes::SimdLanes;

/// A computation that is generic over the width of the SIMD registers.
pub(super) trait SimdKernel {
    /// Runs the kernel with the lanes of one instruction set.
    ///
    /// # Safety
    /// The CPU must support the instructions of `V`.
    unsafe fn run<V: SimdLanes>(self);
}

/// A SIMD instruction set that kernels can run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstructionSet {
    /// Plain Rust, compiled for the baseline of the target.
    Portable,
    /// Registers of 256 bits. Products of bytes are added in pairs (`vpmaddubsw`).
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Registers of 512 bits. Products of bytes are added in fours (VNNI, `vpdpbusd`).
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl InstructionSet {
    /// The instruction sets that this CPU supports, the fastest first.
    pub(super) fn available() -> Vec<Self> {
        let mut available = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if avx512::available() {
                available.push(Self::Avx512);
            }
            if avx2::available() {
                available.push(Self::Avx2);
            }
        }
        available.push(Self::Portable);
        available
    }

    /// The name of the instruction set, as users write it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
        }
    }

    /// Runs a kernel with this instruction set, or with the portable one if the CPU does not support it.
    pub(super) fn run(self, kernel: impl SimdKernel) {
        match self {
            // SAFETY: the features were just detected; std caches the detection, so it is cheap.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 if avx512::available() => unsafe { avx512::run(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 if avx2::available() => unsafe { avx2::run(kernel) },
            // SAFETY: the portable lanes need no CPU features.
            _ => unsafe { kernel.run::<portable::PortableLanes>() },
        }
    }
}

#[cfg(test)]
mod tests;
