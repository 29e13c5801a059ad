//! Memory that a library or another process uses for the program: its pages stay accessible.
//!
//! Owns the list. A rank of MPI may read another one's memory by a system call, which answers
//! `EFAULT` where the CPU's access was taken away (`crate::host`), and then the message fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::arch::page_size;

struct Lent {
    id: u32,
    start: u64,
    end: u64,
}

static LENT: Mutex<Vec<Lent>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn with(run: impl FnOnce(&mut Vec<Lent>)) {
    let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
    run(&mut lent);
    COUNT.store(lent.len(), Ordering::Release);
}

/// These bytes are lent, under a number of the borrower's.
pub fn lend(id: u32, start: u64, end: u64) {
    let (start, end) = (start & !(page_size() - 1), end.saturating_add(page_size() - 1) & !(page_size() - 1));
    with(|lent| lent.push(Lent { id, start, end }));
}

/// What was lent under this number is back.
pub fn take_back(id: u32) {
    with(|lent| lent.retain(|l| l.id != id));
}

/// Whether a page of these bytes is lent. Not for signal handlers.
pub fn is_lent(start: u64, end: u64) -> bool {
    COUNT.load(Ordering::Acquire) > 0
        && LENT.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|l| l.start < end && start < l.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_lent_until_they_are_back() {
        const AT: u64 = 0x7700_0000_0000;
        lend(u32::MAX, AT + 10, AT + 20);
        lend(u32::MAX, AT + 2 * page_size(), AT + 3 * page_size());
        assert!(
            is_lent(AT, AT + 1)
                && is_lent(AT + page_size() - 1, AT + page_size())
                && !is_lent(AT + page_size(), AT + 2 * page_size())
        );
        assert!(is_lent(AT + page_size(), AT + 2 * page_size() + 1));
        take_back(u32::MAX);
        assert!(!is_lent(AT, AT + 4 * page_size()));
    }
}
