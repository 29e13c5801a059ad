//! Which synchronisation of a launch is superfluous: what the launch has told is told again without
//! it, and judged again.
//!
//! Owns when that is so. Synchronisation is superfluous in a run if the same accesses, told without
//! it, race no more than with it: no pair of instructions that did not, none more surely or more
//! often, and none for which the machine code says too little. Each is tried by itself: of two
//! barriers in a row each may be superfluous, and both together not. Values are not looked at: what
//! is left out may steer threads in another run.

mod tape;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::detector::{Detector, Inexact, Reading};
use crate::events::{Kind, SyncKind};
use crate::grade::Grade;
use crate::records::{Race, Remedy};

pub use tape::Synchronisation;
pub(crate) use tape::Tape;

/// Whether synchronisation is superfluous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// Without it nothing is unordered in this run.
    Superfluous,
    /// It was not tried: threads of one barrier come to it in several places, or it would take too
    /// long.
    Unknown,
    /// Something is unordered without it.
    Needed,
}

/// The instructions and kinds of two accesses, and whether they are to shared memory.
type PairKey = ([(u32, Kind); 2], bool);

/// What a telling has found.
#[derive(PartialEq, Eq)]
struct Verdict {
    races: FxHashMap<PairKey, (Grade, u64)>,
    inexact: Inexact,
}

impl Verdict {
    fn of(detector: &Detector) -> Verdict {
        let of = |race: Race| {
            let key = (race.sides.map(|side| (side.site, side.kind)), race.shared.is_some());
            (race.remedy != Remedy::FirstWrite).then_some((key, (race.grade, race.count)))
        };
        Verdict { races: detector.races().into_iter().filter_map(of).collect(), inexact: detector.inexact() }
    }

    /// Whether it has nothing that another one has not.
    fn is_within(&self, other: &Verdict) -> bool {
        let known = |(key, (grade, count)): (_, &(Grade, u64))| {
            other.races.get(key).is_some_and(|(its, times)| grade <= its && count <= times)
        };
        self.inexact == other.inexact && self.races.iter().all(known)
    }
}

/// Trials of one launch.
pub struct Trials<'d> {
    tape: &'d Tape,
    reading: Reading,
    with_all: Verdict,
    /// Barriers that are one with others.
    divided: Vec<u32>,
    /// Events that may still be told.
    left: usize,
}

impl Detector {
    /// The synchronisation of a launch that is over, and trials without parts of it, which tell so
    /// many events at most. `None` if not all was kept ([`Detector::recording`]).
    pub fn trials(&self, most: usize) -> Option<(Vec<Synchronisation>, Trials<'_>)> {
        let tape = self.tape.as_ref()?;
        let all = tape.synchronisations()?;
        let reading = self.state().reading;
        let with_all = told(tape, reading, &FxHashSet::default())?;
        let left = most.saturating_sub(tape.len());
        let divided = all.iter().filter(|one| one.kind == SyncKind::Divided).map(|one| one.site).collect();
        Some((all, Trials { tape, reading, with_all, divided, left }))
    }
}

/// The verdict without some instructions.
fn told(tape: &Tape, reading: Reading, left_out: &FxHashSet<u32>) -> Option<Verdict> {
    let detector = Detector::new(reading);
    detector.grid(None, tape.blocks(), 0);
    tape.tell_without(left_out, &detector).then(|| Verdict::of(&detector))
}

impl Trials<'_> {
    /// Whether these instructions together are superfluous.
    pub fn without(&mut self, sites: &[u32]) -> Answer {
        if self.left < self.tape.len() || self.divided.iter().any(|site| sites.contains(site)) {
            return Answer::Unknown;
        }
        self.left -= self.tape.len();
        let sites: FxHashSet<u32> = sites.iter().copied().collect();
        match told(self.tape, self.reading, &sites) {
            None => Answer::Unknown,
            Some(verdict) if verdict.is_within(&self.with_all) => Answer::Superfluous,
            Some(_) => Answer::Needed,
        }
    }
}
