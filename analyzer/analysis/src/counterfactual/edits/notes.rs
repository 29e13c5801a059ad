//! What is noted while an order is tried: where the ops of some call sites stand, and which races
//! there were.
//!
//! Owns the notes and their bounds. Draws no conclusions: that is
//! [`crate::counterfactual::causes`].

use rustc_hash::{FxHashMap, FxHashSet};
use trace::{Epoch, EventId, LaunchShape, Op, StreamId};

use detect::race::Race;
use detect::state::op_site::{OpClass, OpSite};

/// Occurrences kept of one pair of sites.
const KEPT: u32 = 48;
/// Occurrences kept in all, beside the first of each pair.
const MOST: usize = 1 << 14;
/// Records of the program's own events that are kept.
const RECORDS: usize = 1 << 18;

/// The threads of a launch: in all, and in a block.
pub type Threads = (u64, u64);

/// The notes of one pass.
#[derive(Default)]
pub struct TrialNotes {
    sites: FxHashSet<OpSite>,
    /// The ops of each site: their numbers in the order of submission, and their streams.
    pub ops: FxHashMap<OpSite, Vec<(u64, StreamId)>>,
    /// The number of each such op.
    pub numbers: FxHashMap<Epoch, u64>,
    /// Grids of the launches among them.
    pub threads: FxHashMap<Epoch, Threads>,
    /// The program's own records of events: number, site, stream, event.
    pub records: Vec<(u64, OpSite, StreamId, EventId)>,
    /// Races, some of each pair of sites.
    pub races: Vec<Race>,
    /// Whether a stream waits for a value, which a later op may write.
    pub waits_for_values: bool,
    seen: FxHashMap<(OpSite, OpSite, bool), u32>,
    number: u64,
}

impl TrialNotes {
    /// Notes the ops of these sites.
    pub fn of(sites: FxHashSet<OpSite>) -> Self {
        Self { sites, ..Self::default() }
    }

    /// Notes an op that has been applied.
    pub(crate) fn op(&mut self, op: &Op<'_>, at: Option<(OpSite, StreamId)>, epoch: Epoch) {
        self.number += 1;
        self.waits_for_values |= matches!(op, Op::WaitValue { .. });
        let Some((site, stream)) = at else { return };
        if let (OpClass::Record, Op::EventRecord { event, .. }) = (site.class, *op)
            && self.records.len() < RECORDS
        {
            self.records.push((self.number, site, stream, event));
        }
        if !self.sites.contains(&site) {
            return;
        }
        self.ops.entry(site).or_default().push((self.number, stream));
        self.numbers.insert(epoch, self.number);
        if let Op::Launch { shape: LaunchShape { grid, block, .. }, .. } = *op {
            let all = |n: [u32; 3]| n.iter().map(|n| u64::from(*n)).product::<u64>();
            self.threads.insert(epoch, (all(grid).saturating_mul(all(block)), all(block)));
        }
    }

    /// Notes a race.
    pub(crate) fn race(&mut self, race: &Race) {
        let (previous, access) = (&race.previous, &race.access);
        let pair = (OpSite::of_node(previous), OpSite::of_node(access), race.freed_early);
        let seen = self.seen.entry(pair).or_default();
        *seen += 1;
        if *seen == 1 || *seen <= KEPT && self.races.len() < MOST {
            self.races.push(race.clone());
        }
    }
}
