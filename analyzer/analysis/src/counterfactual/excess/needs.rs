//! What must stay ordered: pairs of steps, and what the host must have seen finish.
//!
//! Owns the list of needs and how it is made from one pass over the recorded order. Needs of the
//! host are suppositions: its loads and stores are mostly not recorded.

use crate::counterfactual::edits::need::{Need, Why};
use crate::counterfactual::edits::steps::{NONE, Steps, marks};
use crate::counterfactual::excess::trial::{OrderTrial, is_ready};
use order::Engine;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use trace::{Epoch, TimelineId};

/// Timelines that launches with unknown bytes are compared with.
const TIMELINES: usize = 256;

/// All needs that the recorded order meets.
#[derive(Debug, Default)]
pub(crate) struct OrderNeeds {
    /// Of steps, by the second step.
    pub(crate) steps: Vec<Need>,
    /// Of nodes within one launch.
    pub(crate) nodes: Vec<Need>,
}

/// All needs that the recorded order meets. Second: pairs that it does not order.
pub(crate) fn find(steps: &Steps, trial: &OrderTrial<'_>) -> (OrderNeeds, u64) {
    let (of_steps, unordered) = of_steps(steps, trial);
    let (nodes, unordered_nodes) = steps.graphs.needs(steps.unknown_kernels());
    (OrderNeeds { steps: of_steps, nodes }, unordered + unordered_nodes)
}

fn of_steps(steps: &Steps, trial: &OrderTrial<'_>) -> (Vec<Need>, u64) {
    let mut found = Finder::default();
    let mut unordered = 0;
    let mut pairs = steps.pairs.iter().peekable();
    let mut reuses = steps.reuses.iter().enumerate().peekable();
    trial.run(&|_| false, &mut |index, engine, epochs| {
        while let Some(pair) = pairs.next_if(|pair| pair.then == index) {
            if engine.start_clock().covers(epochs[pair.first as usize]) {
                found.needs.push(Need { first: pair.first, then: pair.then, why: Why::Race(pair.hazard) });
            } else {
                unordered += 1;
            }
        }
        found.step(steps, index, engine, epochs);
        // Last, because looking at a stream moves it on.
        while let Some((at, reuse)) = reuses.next_if(|(_, reuse)| reuse.then == index) {
            let is_kept = reuse.place != NONE || is_ready(engine, reuse.stream, epochs[reuse.first as usize]);
            if is_kept {
                found.needs.push(Need { first: reuse.first, then: index, why: Why::Reused(at as u32) });
            } else {
                unordered += 1;
            }
        }
    });
    (found.needs, unordered)
}

#[derive(Default)]
struct Finder {
    needs: Vec<Need>,
    /// By timeline: work, and work whose bytes are not all known.
    work: FxHashMap<u32, Vec<(u64, u32)>>,
    unknown: FxHashMap<u32, Vec<(u64, u32)>>,
    /// Up to which time of one timeline another one has been compared.
    compared: FxHashMap<(u32, u32, bool), u64>,
    /// By timeline: what the host has not seen finish.
    pending: FxHashMap<u32, VecDeque<(u64, u32)>>,
    changes: u64,
}

impl Finder {
    fn step(&mut self, steps: &Steps, index: u32, engine: &Engine, epochs: &[Epoch]) {
        let step = &steps.steps[index as usize];
        let epoch = epochs[index as usize];
        if step.marks & marks::WORK != 0 && epoch.timeline != TimelineId::HOST {
            self.compare(index, step.marks & marks::UNKNOWN != 0, engine, epoch);
        }
        if step.marks & (marks::TO_HOST | marks::REFILLED) != 0 {
            self.pending.entry(epoch.timeline.0).or_default().push_back((epoch.time, index));
        }
        if engine.host_changes() != self.changes {
            self.changes = engine.host_changes();
            self.seen(steps, index, engine);
        }
    }

    /// The host has seen something finish.
    fn seen(&mut self, steps: &Steps, index: u32, engine: &Engine) {
        for (timeline, pending) in &mut self.pending {
            let (mut read, mut refilled) = (NONE, NONE);
            while let Some((_, step)) = pending
                .pop_front_if(|(time, _)| engine.host_covers(Epoch { timeline: TimelineId(*timeline), time: *time }))
            {
                if steps.steps[step as usize].marks & marks::TO_HOST != 0 {
                    read = step;
                }
                if steps.refills.get(&step).is_some_and(|again| *again > index) {
                    refilled = step;
                }
            }
            for (first, why) in [(read, Why::HostReads), (refilled, Why::HostWrites)] {
                if first != NONE {
                    self.needs.push(Need { first, then: index, why });
                }
            }
        }
    }

    /// Work whose bytes are not known is compared with the next and the last work of each other
    /// timeline that it is ordered with.
    fn compare(&mut self, index: u32, is_unknown: bool, engine: &Engine, epoch: Epoch) {
        let clock = engine.start_clock();
        let own = epoch.timeline.0;
        let mut compare = |others: &FxHashMap<u32, Vec<(u64, u32)>>, why: Why| {
            for (&other, times) in others.iter().filter(|(other, _)| **other != own).take(TIMELINES) {
                let known = clock.time_of(TimelineId(other));
                let last = times[..times.partition_point(|(time, _)| *time <= known)].last();
                let Some(&(time, first)) = last else { continue };
                let compared = self.compared.entry((own, other, why == Why::Unknown)).or_default();
                if *compared < time {
                    *compared = time;
                    self.needs.push(Need { first, then: index, why });
                }
            }
        };
        if is_unknown {
            compare(&self.work, Why::UnknownThen);
        }
        compare(&self.unknown, Why::Unknown);
        self.work.entry(own).or_default().push((epoch.time, index));
        if is_unknown {
            self.unknown.entry(own).or_default().push((epoch.time, index));
        }
    }
}
