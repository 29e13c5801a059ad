//! Programmatic dependent launch: launches that begin before those in front of them have ended
//! (PTX ISA, `griddepcontrol`).
//!
//! Owns what the blocks of a launch do about it: they are held at the trigger until all of them
//! have triggered or ended, so that what a dependent launch does early comes before what this one
//! does late; and threads that wait are asked again until the driver lets them pass. Which launch
//! overlaps which, and on what thread it runs, is the driver's ([`Overlap`]).

pub(crate) mod instructions;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long blocks are held while no other one triggers: it may wait for one of those held.
const HOLD: Duration = Duration::from_millis(200);

/// What the driver knows of a launch that others overlap, or that overlaps others.
pub trait Overlap: Sync {
    /// Whether launches come behind that may begin when this one has triggered.
    fn has_dependents(&self) -> bool;
    /// All blocks have triggered or ended. Returns when the dependents have done what they can.
    fn opens(&self);
    /// Whether the launches that this one depends on have ended.
    fn may_pass(&self) -> bool;
    /// All threads that are left wait for those launches.
    fn rests(&self);
    /// Returns when those launches have ended.
    fn sleep(&self);
}

/// How far a launch is on its way to letting its dependents begin.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Somebody waits for it.
    wanted: bool,
    /// Blocks that have neither triggered nor ended.
    left: AtomicU64,
    /// Blocks that have triggered are held.
    holds: AtomicBool,
    since: Instant,
    /// When a block triggered last, in nanoseconds since then.
    last: AtomicU64,
}

impl Opening {
    /// Of a launch of so many blocks. `all_fit`: all of them run at the same time.
    pub(crate) fn new(overlap: Option<&dyn Overlap>, blocks: u64, all_fit: bool) -> Self {
        let wanted = overlap.is_some_and(Overlap::has_dependents);
        Opening {
            wanted,
            left: AtomicU64::new(blocks),
            holds: AtomicBool::new(wanted && all_fit),
            since: Instant::now(),
            last: AtomicU64::new(0),
        }
    }

    /// Whether somebody waits for the triggers.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Whether a block that has triggered is held.
    pub(crate) fn holds(&self) -> bool {
        if !self.holds.load(Ordering::Acquire) {
            return false;
        }
        let last = Duration::from_nanos(self.last.load(Ordering::Relaxed));
        if self.since.elapsed() < last + HOLD {
            return true;
        }
        self.holds.store(false, Ordering::Release);
        false
    }

    /// One more block has triggered, or ended without.
    pub(crate) fn block_opens(&self, overlap: Option<&dyn Overlap>) {
        self.last.store(self.since.elapsed().as_nanos() as u64, Ordering::Relaxed);
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            if let Some(overlap) = overlap {
                overlap.opens();
            }
            self.holds.store(false, Ordering::Release);
        }
    }
}
