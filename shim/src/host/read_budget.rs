//! How much of the host's memory is read for checksums.
//!
//! Owns the budget of a run, in time. Which bytes are read is decided in [`super::checksum`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// How much time checksums may take, of the time that the run has taken so far. Sources are read in
/// full, or as a sample, or not at all: short programs are seen in full, and long ones do not
/// notice. Reading costs what it was measured to cost. A source that is not read is counted.
pub struct ReadBudget {
    began: Instant,
    spent: AtomicU64,
    uncompared: AtomicU64,
}

impl Default for ReadBudget {
    fn default() -> Self {
        Self { began: Instant::now(), spent: AtomicU64::new(0), uncompared: AtomicU64::new(0) }
    }
}

/// How much of a source is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// So many bytes at most; 0: all.
    Most(u64),
    /// No byte: the budget is spent.
    Nothing,
}

impl ReadBudget {
    /// Nanoseconds that are there from the beginning.
    const START: u64 = 8_000_000;
    /// Of so many nanoseconds of the run one may be spent on large sources in full, which leaves
    /// room for samples of the others.
    const SHARE_IN_FULL: u64 = 250;
    /// Of so many nanoseconds of the run one may be spent.
    const SHARE: u64 = 100;
    /// Most bytes read of write-combined memory, which comes at some 100 MB/s.
    const WRITE_COMBINED: u64 = 2048;
    /// Nanoseconds a line of a sample takes, which is in no cache.
    const LINE: u64 = 15;
    /// What is read counts for no more than so many times what it should take: the thread may have
    /// been held up meanwhile.
    const HELD_UP: u64 = 8;

    /// How much to read of so many bytes, which are read twice.
    pub fn most(&self, bytes: u64, write_combined: bool, sample: u64) -> Reading {
        let elapsed = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.most_after(elapsed, bytes, write_combined, sample)
    }

    /// The same, `elapsed` nanoseconds after the beginning.
    fn most_after(&self, elapsed: u64, bytes: u64, write_combined: bool, sample: u64) -> Reading {
        let spent = self.spent.load(Ordering::Relaxed);
        let fits = |cost: u64, share: u64| {
            spent.saturating_add(cost.saturating_mul(2)) <= Self::START.saturating_add(elapsed / share)
        };
        let (most, share) = match bytes {
            _ if write_combined => (Self::WRITE_COMBINED.min(sample), Self::SHARE),
            _ if bytes <= sample => (0, Self::SHARE),
            _ => (0, Self::SHARE_IN_FULL),
        };
        let smaller = (sample / 4).max(1);
        if fits(Self::cost(bytes, most, write_combined), share) {
            Reading::Most(most)
        } else if most == 0 && bytes > smaller && fits(Self::cost(bytes, smaller, false), Self::SHARE) {
            Reading::Most(smaller)
        } else {
            Reading::Nothing
        }
    }

    /// Nanoseconds that reading so many of these bytes (0: all) should take.
    fn cost(bytes: u64, most: u64, write_combined: bool) -> u64 {
        match most {
            _ if write_combined => bytes.min(most).saturating_mul(10),
            // 8 bytes a nanosecond.
            0 => bytes / 8,
            most => most / 64 * Self::LINE,
        }
    }

    /// Bytes were read, as `most` says, in so many nanoseconds.
    pub fn spend(&self, nanoseconds: u64, bytes: u64, most: u64) {
        let least = 500;
        let usual = Self::cost(bytes, most, false).max(least);
        self.spent.fetch_add(nanoseconds.min(usual.saturating_mul(Self::HELD_UP)), Ordering::Relaxed);
    }

    /// A source is not read.
    pub fn count_uncompared(&self) {
        self.uncompared.fetch_add(1, Ordering::Relaxed);
    }

    /// How many were not.
    pub fn uncompared(&self) -> u64 {
        self.uncompared.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: u64 = 64 << 10;
    const SECOND: u64 = 1_000_000_000;

    /// Steps of `every` nanoseconds, each with `copies` sources of so many bytes, for ten seconds,
    /// on a machine that takes `slow` times what reading should take. What was read and what was
    /// not, and what it took of the run.
    fn run(every: u64, copies: u64, bytes: u64, slow: u64) -> (u64, u64, f64) {
        let budget = ReadBudget::default();
        let (mut now, mut read, mut spent) = (0, 0, 0);
        while now < 10 * SECOND {
            for _ in 0..copies {
                match budget.most_after(now, bytes, false, SAMPLE) {
                    Reading::Nothing => budget.count_uncompared(),
                    Reading::Most(most) => {
                        read += 1;
                        for _ in 0..2 {
                            let took = ReadBudget::cost(bytes, most, false).max(100) * slow;
                            budget.spend(took, bytes, most);
                            spent += took;
                        }
                    }
                }
            }
            now += every;
        }
        (read, budget.uncompared(), spent as f64 / now as f64)
    }

    #[test]
    fn comparing_takes_a_hundredth_of_the_run_whatever_it_uploads() {
        for every in [100_000, 1_500_000, 40_000_000] {
            for (copies, bytes) in
                [(1, 4 << 10), (200, 64), (32, 1 << 20), (1, 32 << 20), (8, 256 << 10), (40, 64 << 10)]
            {
                for slow in [1, 3, 7] {
                    let (read, not, share) = run(every, copies, bytes, slow);
                    let what = format!("{copies} of {bytes} bytes every {every} ns, {slow} times slower");
                    // What is there from the beginning, and one source too many.
                    assert!(share < 0.01 + 0.002, "{what}: {share}");
                    assert_eq!(read + not, (10 * SECOND).div_ceil(every) * copies, "{what}");
                    assert!(read > 100.min(read + not), "{what}: {read} were read");
                }
            }
        }
    }

    #[test]
    fn what_a_short_program_uploads_is_read_in_full() {
        let budget = ReadBudget::default();
        for bytes in [1, 4096, SAMPLE, 1 << 20, 16 << 20] {
            assert_eq!(budget.most_after(0, bytes, false, SAMPLE), Reading::Most(0));
        }
        assert_eq!(budget.most_after(0, 1 << 20, true, SAMPLE), Reading::Most(2048));
        // A thread that is held up while it reads does not use the budget up.
        for _ in 0..500 {
            assert_eq!(budget.most_after(0, 4096, false, SAMPLE), Reading::Most(0));
            budget.spend(SECOND, 4096, 0);
        }
        assert_eq!(budget.uncompared(), 0);
    }

    #[test]
    fn large_sources_leave_room_for_samples() {
        let budget = ReadBudget::default();
        budget.spend(6_500_000, 8 << 20, 0);
        assert_eq!(budget.most_after(0, 8 << 20, false, SAMPLE), Reading::Most(SAMPLE / 4), "no longer in full");
        budget.spend(2_000_000, 8 << 20, 0);
        assert_eq!(budget.most_after(0, 8 << 20, false, SAMPLE), Reading::Nothing);
        assert_eq!(budget.most_after(0, 64, false, SAMPLE), Reading::Nothing);
        assert_eq!(budget.most_after(SECOND / 10, 8 << 20, false, SAMPLE), Reading::Most(SAMPLE / 4));
        assert_eq!(budget.most_after(SECOND, 8 << 20, false, SAMPLE), Reading::Most(0));
    }
}
