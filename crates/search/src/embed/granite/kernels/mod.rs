//! The arithmetic of the model, once, for several sets of vector instructions.
//!
//! A piece of work ([`Linear`], [`Attention`], …) is written over [`Lanes`], sixteen numbers in
//! whatever registers the processor has; [`Instructions::run`] picks those when the program runs.
#![allow(
    unsafe_code,
    reason = "calling code made for instructions that not every processor has"
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

/// Work that any vector width can do.
pub(super) trait SimdKernel {
    /// Does it.
    ///
    /// # Safety
    /// The processor must have the instructions of `V`.
    unsafe fn run<V: SimdLanes>(self);
}

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstructionSet {
    /// What every processor of the family has.
    Portable,
    /// 256 bits, with products of bytes added in pairs.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512 bits, with products of bytes added in fours.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl InstructionSet {
    /// All that this processor has, the fastest first.
    pub(super) fn available() -> Vec<Self> {
        let mut found = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if avx512::available() {
                found.push(Self::Avx512);
            }
            if avx2::available() {
                found.push(Self::Avx2);
            }
        }
        found.push(Self::Portable);
        found
    }

    /// How a person names them.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
        }
    }

    /// Does a piece of work with these instructions, or with the portable ones where the processor
    /// does not have them.
    pub(super) fn run(self, work: impl SimdKernel) {
        match self {
            // SAFETY: the processor was just asked; the answer is remembered, so asking is cheap.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 if avx512::available() => unsafe { avx512::run(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 if avx2::available() => unsafe { avx2::run(work) },
            // SAFETY: the portable lanes need no special instructions.
            _ => unsafe { work.run::<portable::PortableLanes>() },
        }
    }
}

#[cfg(test)]
mod tests;
