//! How much of the host's memory is read for checksums.
//!
//! Owns the budget of a run, in time. Which bytes are read is decided in [`super::checksum`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// How much time checksums may take: large sources are read in full as long as all of it takes less
/// than one part in 250 of the run, so that short programs are seen in full and long ones do not
/// notice.
pub struct ReadBudget {
    began: Instant,
    spent: AtomicU64,
}

impl Default for ReadBudget {
    fn default() -> Self {
        Self { began: Instant::now(), spent: AtomicU64::new(0) }
    }
}

impl ReadBudget {
    /// Nanoseconds that are there from the beginning.
    const START: u64 = 8_000_000;
    /// Of so many nanoseconds of the run one may be spent.
    const SHARE: u64 = 250;
    /// Most bytes read of write-combined memory, which comes at some 100 MB/s.
    const WRITE_COMBINED: u64 = 2048;

    /// How many bytes to read of so many; 0: all.
    pub fn most(&self, bytes: u64, write_combined: bool, sample: u64) -> u64 {
        if write_combined {
            return Self::WRITE_COMBINED.min(sample);
        }
        if bytes <= sample {
            return 0;
        }
        let elapsed = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Twice, at 8 bytes a nanosecond.
        let cost = bytes.saturating_mul(2) / 8;
        let allowed = Self::START.saturating_add(elapsed / Self::SHARE);
        if self.spent.load(Ordering::Relaxed).saturating_add(cost) <= allowed { 0 } else { (sample / 4).max(1) }
    }

    /// Time was spent, from `since` to now.
    pub fn spend(&self, since: Instant) {
        let spent = u64::try_from(since.elapsed().as_nanos()).unwrap_or(0);
        self.spent.fetch_add(spent, Ordering::Relaxed);
    }
}
