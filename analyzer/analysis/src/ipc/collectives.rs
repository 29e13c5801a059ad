//! Collectives of communicators (NCCL) whose members are in several processes: whether all enqueue
//! those of two communicators in the same order.
//!
//! Owns what a process leaves of them at its end, and the hints of two processes. What it means to
//! disagree is said in [`detect::state::communicators`].

use rustc_hash::{FxHashMap, FxHashSet};
use trace::{StackId, StreamId};

use super::exchange::{Exchange, PeerProcess};
use detect::state::communicators::{Communicators, Disagreement, Enqueued, Place, disagreements};
use report::elaborate::Elaborator;
use report::fault::members_disagree;
use report::model::Outcome;
use symbols::frame::Frame;

/// Call sites that are described of one process.
const MOST_SITES: usize = 4096;

type Site = (StackId, StreamId);

/// What one process has enqueued.
#[derive(Default)]
pub(crate) struct Collectives {
    places: Vec<Place>,
    lost: Vec<u64>,
    /// The name of the stream, and the stack.
    sites: FxHashMap<Site, (String, Vec<Frame>)>,
}

fn site(of: &Enqueued) -> Site {
    (of.stack, of.stream)
}

impl Collectives {
    /// What a process leaves at its end.
    pub(super) fn of(enqueued: &Communicators, elaborator: &mut Elaborator<'_>) -> Self {
        let (places, mut sites) = (enqueued.places(), FxHashMap::default());
        for of in places.iter().flatten() {
            if sites.len() < MOST_SITES {
                sites
                    .entry(site(of))
                    .or_insert_with(|| (elaborator.stream_name(of.stream), elaborator.stacks.resolve(of.stack)));
            }
        }
        Self { places, lost: enqueued.lost().collect(), sites }
    }

    fn without(&self, lost: &FxHashSet<u64>) -> Vec<Place> {
        let known = |place: &Place| place.iter().filter(|of| !lost.contains(&of.communicator)).copied().collect();
        self.places.iter().map(known).collect()
    }
}

impl Exchange {
    /// Adds a hint for each two communicators about which two processes disagree.
    pub(super) fn compare_collectives(&self, outcomes: &mut [Outcome]) {
        let ended: Vec<(u32, &PeerProcess)> =
            (0..).zip(&self.peers).filter_map(|(member, peer)| Some((member, peer.process.as_ref()?))).collect();
        let lost = ended.iter().flat_map(|(_, process)| process.collectives.lost.iter().copied()).collect();
        let places: Vec<Vec<Place>> = ended.iter().map(|(_, process)| process.collectives.without(&lost)).collect();
        let mut known = FxHashSet::default();
        for (at, (member, process)) in ended.iter().enumerate() {
            let Some(outcome) = outcomes.iter_mut().find(|outcome| outcome.member == Some(*member)) else { continue };
            for (other, theirs) in places[..at].iter().enumerate() {
                for disagreement in pairs(&places[at], theirs).flat_map(|(a, b)| disagreements(a, b, &mut known)) {
                    let Disagreement { here: calls, count } = disagreement;
                    let [first, second] = calls.map(|call| process.collectives.sites.get(&site(&call)));
                    if let (Some(first), Some(second)) = (first, second) {
                        let other = &ended[other].1.name;
                        outcome.hints.push(members_disagree([first, second], (process.pid, other), count));
                    }
                }
            }
        }
    }
}

/// Each device of one process with each of another one.
fn pairs<'a>(here: &'a [Place], there: &'a [Place]) -> impl Iterator<Item = (&'a Place, &'a Place)> {
    here.iter().flat_map(|here| there.iter().map(move |there| (here, there)))
}
