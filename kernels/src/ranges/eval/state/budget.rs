//! What one evaluation may cost.
//!
//! Owns [`Budget`], in bounds and steps of their search, and counts what a thread has spent in all
//! its evaluations.

use std::cell::Cell;

/// The budget of one evaluation. Beyond it everything that is left is unknown.
const MAX_TOTAL: u32 = 150_000;
/// What each access may still spend after that, so that complicated conditions do not cost the
/// range of a simple address.
const RESERVE: u32 = 4_000;
/// All reserves of one evaluation.
const MAX_RESERVE: u32 = 80_000;
/// The same of a brief evaluation.
const BRIEF_TOTAL: u32 = 2_000;
const BRIEF_RESERVE: u32 = 400;
const MAX_BRIEF_RESERVE: u32 = 8_000;

thread_local! {
    static SPENT: Cell<u64> = const { Cell::new(0) };
}

/// What the calling thread has spent in evaluations since it asked last.
pub(crate) fn take_spent() -> u64 {
    SPENT.take()
}

/// What an evaluation has spent, and may spend.
pub(crate) struct Budget {
    /// Elimination steps of the current bound.
    pub(super) steps: Cell<u32>,
    /// Bounds and steps of the evaluation so far.
    total: Cell<u32>,
    /// What delinearization has spent of its own budget.
    pub(crate) delinearization: u32,
    /// `total` beyond which everything is unknown.
    limit: u32,
    /// The same without reserves.
    first: u32,
    /// The reserve of an access.
    reserve: u32,
    /// `total` beyond which there are no reserves.
    last: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Budget::new(MAX_TOTAL, RESERVE, MAX_RESERVE)
    }
}

impl Budget {
    fn new(first: u32, reserve: u32, reserves: u32) -> Self {
        let (steps, total) = (Cell::new(0), Cell::new(0));
        Budget { steps, total, delinearization: 0, limit: first, first, reserve, last: first + reserves }
    }

    /// The budget of a brief evaluation: a bound that costs little.
    pub(crate) fn brief() -> Self {
        Budget::new(BRIEF_TOTAL, BRIEF_RESERVE, MAX_BRIEF_RESERVE)
    }

    /// What the evaluation has spent so far.
    pub(crate) fn total(&self) -> u32 {
        self.total.get()
    }

    /// Goes back to an earlier total; returns what was spent since then.
    pub(crate) fn take_back(&self, total: u32) -> u32 {
        self.total.replace(total).saturating_sub(total)
    }

    /// Counts the steps of the current bound, and `more`; the next bound starts at zero. (Each
    /// evaluation comes here often: a safepoint.)
    #[inline]
    pub(super) fn end_search(&self, more: u32) {
        crate::safepoint();
        let spent = self.steps.replace(0) + more;
        self.total.set(self.total.get().saturating_add(spent));
        SPENT.set(SPENT.get() + u64::from(spent));
    }

    /// Has the whole evaluation used up its budget?
    #[inline]
    pub(crate) fn exhausted(&self) -> bool {
        self.total.get() > self.limit
    }

    /// Is half of the budget used up?
    pub(crate) fn half_spent(&self) -> bool {
        self.total.get() > self.first / 2
    }

    /// Grants an access its reserve when the budget is used up. Was there one to grant?
    pub(crate) fn grant_reserve(&mut self) -> bool {
        let granted = self.exhausted() && self.total.get() < self.last;
        if granted {
            self.limit = self.total.get() + self.reserve;
        }
        granted
    }

    /// Ends the reserve of the access before.
    pub(crate) fn end_reserve(&mut self) {
        self.limit = self.first;
    }
}
