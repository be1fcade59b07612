//! How much of one archive may still be unpacked, at all levels inside it together.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use crate::error::IngestError;
use crate::limits::Limits;

/// What every archive may unpack to, however small it is.
const FREE_BYTES: u64 = 1024 * 1024;

pub(super) fn damaged() -> IngestError {
    IngestError::Damaged {
        what: "it is no whole archive".into(),
    }
}

pub(super) struct UnpackBudget {
    members: usize,
    max_members: usize,
    bytes: Rc<UnpackedBytes>,
    max_bytes: u64,
}

struct UnpackedBytes {
    left: Cell<u64>,
    over: Cell<bool>,
}

impl UnpackBudget {
    pub(super) fn new(limits: &Limits, size: u64) -> Self {
        let most = size.saturating_mul(limits.max_expansion).max(FREE_BYTES);
        let most = most.min(limits.max_unpacked_bytes);
        Self {
            members: 0,
            max_members: limits.max_members,
            bytes: Rc::new(UnpackedBytes {
                left: Cell::new(most),
                over: Cell::new(false),
            }),
            max_bytes: most,
        }
    }

    /// Counts one more file, folder or link.
    pub(super) fn count_member(&mut self) -> Result<(), IngestError> {
        self.members += 1;
        if self.members > self.max_members {
            let limit = self.max_members as u64;
            return Err(IngestError::TooMuchInside { limit });
        }
        Ok(())
    }

    /// A reader whose bytes are counted.
    pub(super) fn metered<R: Read>(&self, inner: R) -> MeteredReader<R> {
        MeteredReader {
            inner,
            bytes: self.bytes.clone(),
        }
    }

    /// Why reading failed.
    pub(super) fn classify_read_error(&self, error: &io::Error) -> IngestError {
        if self.bytes.over.get() {
            let limit = self.max_bytes;
            IngestError::TooMuchInside { limit }
        } else if error.kind() == io::ErrorKind::OutOfMemory {
            IngestError::out_of_memory()
        } else {
            damaged()
        }
    }

    /// True when nothing more of the archive may be read.
    pub(super) fn is_exhausted(&self) -> bool {
        self.bytes.over.get() || self.members > self.max_members
    }
}

pub(super) struct MeteredReader<R> {
    inner: R,
    bytes: Rc<UnpackedBytes>,
}

impl<R: Read> Read for MeteredReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes.left.get();
        // One byte more than is left is asked for: whether it comes tells the end from too much.
        let most = usize::try_from(left.saturating_add(1)).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let count = self
            .inner
            .read(buffer.get_mut(..most).unwrap_or_default())?;
        match left.checked_sub(count as u64) {
            Some(left) => {
                self.bytes.left.set(left);
                Ok(count)
            }
            None => {
                self.bytes.over.set(true);
                Err(io::Error::other("the archive unpacks to too much"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(max_unpacked_bytes: u64) -> UnpackBudget {
        let limits = Limits {
            max_unpacked_bytes,
            max_members: 2,
            ..Limits::default()
        };
        UnpackBudget::new(&limits, 1_000_000)
    }

    #[test]
    fn bytes_end_at_their_bound_over_all_readers() {
        let budget = budget(10);
        let mut out = Vec::new();
        let mut read = |bytes: &[u8]| budget.metered(bytes).read_to_end(&mut out);
        assert!(read(b"123456").is_ok());
        assert!(read(b"1234").is_ok());
        assert!(!budget.is_exhausted());
        assert!(read(b"").is_ok());
        let over = read(b"1").unwrap_err();
        assert!(budget.is_exhausted());
        assert_eq!(
            budget.classify_read_error(&over),
            IngestError::TooMuchInside { limit: 10 }
        );
    }

    #[test]
    fn members_end_at_their_bound() {
        let mut budget = budget(10);
        assert_eq!(
            (budget.count_member(), budget.count_member()),
            (Ok(()), Ok(()))
        );
        assert!(!budget.is_exhausted());
        assert_eq!(
            budget.count_member(),
            Err(IngestError::TooMuchInside { limit: 2 })
        );
        assert!(budget.is_exhausted());
    }

    #[test]
    fn a_reader_without_memory_says_nothing_of_the_archive() {
        let why = |kind| budget(10).classify_read_error(&io::Error::from(kind));
        assert_eq!(why(io::ErrorKind::InvalidData), damaged());
        assert_eq!(
            why(io::ErrorKind::OutOfMemory),
            IngestError::out_of_memory()
        );
    }

    #[test]
    fn small_archives_may_unpack_to_a_megabyte_and_large_ones_to_a_multiple() {
        let most = |size| UnpackBudget::new(&Limits::default(), size).max_bytes;
        assert_eq!(most(1), FREE_BYTES);
        assert_eq!(most(100_000), 10_000_000);
        assert_eq!(most(u64::MAX), Limits::default().max_unpacked_bytes);
    }
}
