//! The simulated GPU measures by itself: what the analysis owes it for that.
//!
//! Owns, for one process: which classes of launches need no measuring ([`super::settle`]), which
//! kernels findings rest on ([`super::confirm`]), so that they are measured before others, and how
//! often a prediction that claims to be exact is compared with what was measured. That comparison
//! is the guard of all the launches that are left to such predictions.

use super::compare::{Comparison, PredictionVerdict};
use super::confirm::Confirm;
use super::settle::Settle;
use crate::memory::AccessKind;
use rustc_hash::FxHashMap;
use trace::ring::back_channel::LaunchClass;

/// Measured launches of a class that are all compared. Of later ones each [`EVERY`]th is.
const FIRST: u32 = 2;

/// See [`FIRST`].
const EVERY: u32 = 8;

/// Wrong predictions that are told, at most.
const TOLD: usize = 10;

/// What one process's launches need.
#[derive(Default)]
pub struct SimMeasuring {
    /// Classes that need no measuring.
    pub settle: Settle,
    /// Kernels that findings rest on.
    pub asks: Confirm,
    /// Measured launches of each class that the code decides.
    compared: FxHashMap<LaunchClass, u32>,
}

impl SimMeasuring {
    /// Whether a measured launch of this class, which the code decides, is to be compared with its
    /// prediction.
    pub fn compares(&mut self, class: LaunchClass) -> bool {
        let seen = self.compared.entry(class).or_default();
        *seen = seen.saturating_add(1);
        *seen <= FIRST || seen.is_multiple_of(EVERY)
    }
}

/// What is wrong with a prediction that claimed to be exact; `None`: nothing is.
pub fn mistake(kernel: impl FnOnce() -> String, c: &Comparison) -> Option<String> {
    let verb = |kind: AccessKind| match kind {
        AccessKind::Read => "reads",
        AccessKind::Write => "writes",
        AccessKind::Atomic => "updates",
        AccessKind::AtomicRead => "loads atomically",
        AccessKind::AtomicWrite => "stores atomically",
    };
    let (kind, set, than) = match c.verdict {
        PredictionVerdict::Unsound => c.missing.first().map(|(kind, set)| (*kind, set, "more"))?,
        PredictionVerdict::Overclaimed => c.claimed.first().map(|(_, kind, set)| (*kind, set, "less"))?,
        _ => return None,
    };
    let (from, to) = set.spans().first().copied()?;
    let (bytes, last) = (set.len(), to - 1);
    let pieces = match set.spans().len() {
        1 => format!("{from:#x} to {last:#x}"),
        pieces => format!("in {pieces} pieces, the first {from:#x} to {last:#x}"),
    };
    let kernel = kernel();
    Some(format!("kernel {kernel} {} {bytes} bytes {than} than predicted ({pieces})", verb(kind)))
}

/// Adds a line, unless there are enough or it is there.
pub fn tell(lines: &mut Vec<String>, line: String) {
    if lines.len() < TOLD && !lines.contains(&line) {
        lines.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::byte_set::ByteSet;

    #[test]
    fn the_first_launches_of_a_class_are_compared_and_then_one_in_so_many() {
        let class = |n| LaunchClass::of(trace::KernelId(n), [1; 3], [32, 1, 1]);
        let mut measuring = SimMeasuring::default();
        let compared = (1..=24).filter(|_| measuring.compares(class(1))).count();
        assert_eq!(compared as u32, FIRST + 24 / EVERY);
        assert!(measuring.compares(class(2)));
    }

    #[test]
    fn a_wrong_prediction_names_the_kernel_and_the_bytes() {
        let set = ByteSet::of(vec![(16, 32), (64, 68)]);
        let mut c = Comparison {
            verdict: PredictionVerdict::Unsound,
            missing: vec![(AccessKind::Write, set.clone())],
            claimed: Vec::new(),
            touched: 20,
            predicted: 0,
        };
        let line = mistake(|| "k".to_string(), &c).expect("a mistake");
        assert_eq!(line, "kernel k writes 20 bytes more than predicted (in 2 pieces, the first 0x10 to 0x1f)");
        c.verdict = PredictionVerdict::Tight;
        assert_eq!(mistake(|| "k".to_string(), &c), None);
        (c.verdict, c.missing, c.claimed) =
            (PredictionVerdict::Overclaimed, Vec::new(), vec![(0, AccessKind::Read, set)]);
        assert!(
            mistake(|| "k".to_string(), &c)
                .expect("a mistake")
                .starts_with("kernel k reads 20 bytes less than predicted")
        );
    }
}
