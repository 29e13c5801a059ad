//! De-duplication: races become findings, one for each pair of call sites, with a count.
//!
//! Owns the de-duplication by ids, which runs for every race. It keeps everything that a report
//! needs of the first occurrence, because allocations and streams may have ended by the time it is
//! printed. Does not resolve ids to names and lines: that is `report::elaborate`.

use crate::confidence::Confidence;
use crate::history::{Around, History};
use crate::memory::{Allocation, Allocations, SeenRegions};
use crate::race::{Hazard, Race};
use crate::state::streams::{Links, Streams};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use trace::{KernelId, StackId};

/// Maximum number of findings kept for one process. More are only counted.
pub(crate) const MAX_FINDINGS: usize = 1 << 14;

/// The key of a finding: call sites, kernels, hazard, allocation site.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    previous: (StackId, KernelId, u32),
    access: (StackId, KernelId, u32),
    hazard: Hazard,
    allocation: StackId,
    latent: bool,
    freed_early: bool,
}

/// The first occurrence of a finding, and how many there were.
#[derive(Clone, Debug)]
pub struct RawFinding {
    /// The race itself.
    pub race: Race,
    /// The allocation at the later op.
    pub allocation: Option<Allocation>,
    /// The allocation at the earlier op.
    pub previous_allocation: Option<Allocation>,
    /// The events that link the streams.
    pub links: Links,
    /// The ops submitted around it.
    pub around: Around,
    /// Occurrences.
    pub count: u64,
    /// The regions of the later op in all occurrences, each once, in their order.
    pub regions: SeenRegions,
    /// How often the same pair was measured later and shared no byte.
    pub(crate) refuted: u64,
}

/// The state of a finding after confirmation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FindingState {
    /// It stands.
    Stands,
    /// Measured bytes refute it.
    Withdrawn,
    /// Another finding of the same places and memory was measured, with another hazard. That one
    /// counts.
    Replaced,
}

impl Key {
    fn of(race: &Race, memory: &Allocations) -> Self {
        let side = |s: &crate::memory::Site| (s.stack, s.kernel, s.node);
        Self {
            previous: side(&race.previous.site),
            access: side(&race.access.site),
            hazard: race.hazard,
            allocation: memory.info(race.access.allocation).map_or(StackId::NONE, |a| a.stack),
            latent: race.latent,
            freed_early: race.freed_early,
        }
    }

    /// The key without the hazard.
    fn pair(self) -> Self {
        Self { hazard: Hazard::WriteAfterWrite, ..self }
    }
}

/// All findings of one process.
#[derive(Default)]
pub struct Findings {
    index: FxHashMap<Key, usize>,
    /// Findings by their keys without the hazard.
    pairs: FxHashMap<Key, SmallVec<[usize; 2]>>,
    list: Vec<RawFinding>,
    dropped: u64,
    /// What is new or has become more certain since it was asked for; `None`: nobody asks.
    fresh: Option<Vec<usize>>,
}

impl Findings {
    /// Counts a race.
    pub fn add(&mut self, race: &Race, memory: &Allocations, streams: &Streams, recent: &History) {
        let key = Key::of(race, memory);
        if let Some(&at) = self.index.get(&key) {
            let raw = &mut self.list[at];
            raw.count += 1;
            raw.regions.add(race.access.site.region);
            if raw.race.confidence < race.confidence {
                raw.race = race.clone();
                raw.around = recent.around(race);
                self.fresh.iter_mut().for_each(|fresh| fresh.push(at));
            }
            return;
        }
        if self.list.len() >= MAX_FINDINGS {
            self.dropped += 1;
            return;
        }
        self.fresh.iter_mut().for_each(|fresh| fresh.push(self.list.len()));
        self.keep(key, race, memory, streams, recent);
    }

    /// The findings that are new, or more certain, since the last call.
    pub fn take_fresh(&mut self) -> Vec<RawFinding> {
        let fresh = self.fresh.replace(Vec::new()).unwrap_or_else(|| (0..self.list.len()).collect());
        fresh.into_iter().map(|at| self.list[at].clone()).collect()
    }

    /// Keeps the first race of a key.
    fn keep(&mut self, key: Key, race: &Race, memory: &Allocations, streams: &Streams, recent: &History) {
        let allocation = memory.info(race.access.allocation).copied();
        self.index.insert(key, self.list.len());
        self.pairs.entry(key.pair()).or_default().push(self.list.len());
        self.list.push(RawFinding {
            race: race.clone(),
            allocation,
            previous_allocation: memory.info(race.previous.allocation).copied(),
            links: streams.links(race.previous.site.stream, race.access.site.stream, race.access.site.thread),
            around: recent.around(race),
            count: 1,
            regions: SeenRegions::of(race.access.site.region),
            refuted: 0,
        });
    }

    /// Notes that the pair of a supposed race was measured and shared no byte. False: there is no
    /// finding of that pair.
    pub fn refute(&mut self, supposed: &Race, memory: &Allocations) -> bool {
        let pair = self.pairs.get(&Key::of(supposed, memory).pair()).map_or(&[][..], SmallVec::as_slice);
        for &at in pair {
            self.list[at].refuted += 1;
        }
        !pair.is_empty()
    }

    /// Keeps a refuted race of which there is no finding, since its kernels were measured from the
    /// start: so it is told as withdrawn. Leaves half of the room to what may stand.
    pub fn withdraw(&mut self, supposed: &Race, memory: &Allocations, streams: &Streams, recent: &History) {
        if self.list.len() < MAX_FINDINGS / 2 {
            self.keep(Key::of(supposed, memory), supposed, memory, streams, recent);
            self.list.iter_mut().next_back().iter_mut().for_each(|raw| raw.refuted = 1);
        }
    }

    /// Whether a finding of such a race was kept so far.
    pub fn judged_so_far(&self, which: impl Fn(&Race) -> bool) -> bool {
        self.list.iter().any(|raw| which(&raw.race))
    }

    /// All findings with their states.
    pub fn judged(&self) -> impl Iterator<Item = (&RawFinding, FindingState)> {
        let proven = |raw: &RawFinding| {
            let sides = [raw.race.previous.site, raw.race.access.site];
            raw.race.confidence == Confidence::Certain && sides.iter().any(|s| s.measured)
        };
        let mut standing = vec![FindingState::Stands; self.list.len()];
        for places in self.pairs.values() {
            let replaced = places.iter().any(|&at| proven(&self.list[at]));
            for &at in places.iter().filter(|&&at| self.list[at].race.confidence < Confidence::Certain) {
                standing[at] = match self.list[at].refuted {
                    _ if replaced => FindingState::Replaced,
                    0 => FindingState::Stands,
                    _ => FindingState::Withdrawn,
                };
            }
        }
        self.list.iter().zip(standing)
    }

    /// Occurrences of findings that were not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
