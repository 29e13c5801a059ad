//! One order: the steps again, with some synchronisation sites left out.
//!
//! Owns the pass. Knows no rule of order: those are in the crate `order`.

use crate::counterfactual::edits::need::{Need, Why};
use crate::counterfactual::edits::steps::{NONE, Step, Steps, marks};
use crate::counterfactual::edits::sync::unblocked;
use crate::counterfactual::excess::needs::OrderNeeds;
use order::{Engine, Opens, Options, Overlap};
use trace::{Epoch, Op, StreamId, TimelineId};

/// What orders are tried over.
pub(crate) struct OrderTrial<'a> {
    /// The trace.
    pub(crate) steps: &'a Steps,
    /// How the engine works.
    pub(crate) options: Options,
    /// Ordinals and compute capabilities of the devices.
    pub(crate) devices: &'a [(u32, u32)],
}

/// Whether work that a stream gets now would start after this.
pub(crate) fn is_ready(engine: &mut Engine, stream: StreamId, epoch: Epoch) -> bool {
    engine.prepare_stream(stream);
    engine.stream_clock(stream).covers(epoch)
}

/// What is called after each step: its number, the engine, and the epochs of all steps so far.
pub(crate) type Each<'f> = dyn FnMut(u32, &mut Engine, &[Epoch]) + 'f;

impl OrderTrial<'_> {
    /// Applies all steps, without the synchronisation of those sites for which `out` holds.
    pub(crate) fn run(&self, out: &dyn Fn(u32) -> bool, each: &mut Each<'_>) {
        // Steps are launches, not the nodes of graphs.
        let mut options = self.options;
        options.whole_graphs = true;
        let mut engine = Engine::with_options(options);
        self.devices.iter().for_each(|(ordinal, arch)| engine.define_device(*ordinal, *arch));
        let mut epochs: Vec<Epoch> = Vec::with_capacity(self.steps.steps.len());
        for (index, step) in self.steps.steps.iter().enumerate() {
            let is_out = step.site != NONE && out(step.site);
            let epoch = self.apply(&mut engine, step, is_out, &epochs);
            epochs.push(epoch);
            each(index as u32, &mut engine, &epochs);
        }
    }

    fn apply(&self, engine: &mut Engine, step: &Step, is_out: bool, epochs: &[Epoch]) -> Epoch {
        if step.marks & marks::LAUNCH != 0 {
            if step.marks & marks::OVERLAPS == 0 {
                return engine.apply_plain_launch(step.stream, step.kernel, step.thread);
            }
            let before = match step.marks & (marks::AFTER_WAIT | marks::AFTER_END) {
                marks::AFTER_WAIT => Opens::AfterWait,
                marks::AFTER_END => Opens::Never,
                _ => Opens::AtOnce,
            };
            let overlap = Overlap { before, waits: false };
            return engine.apply_overlapping_launch(step.stream, step.kernel, step.thread, overlap);
        }
        let Some(record) = self.steps.record(step) else { return engine.host_epoch() };
        let op = match (record.op, is_out) {
            (op, true) => match unblocked(&op) {
                Some(op) => op,
                None if step.stream.is_none() => return engine.host_epoch(),
                // It takes no time of its stream: it stands for what was there before.
                None => {
                    let timeline = engine.timeline(step.stream).unwrap_or(TimelineId::HOST);
                    return Epoch { timeline, time: engine.stream_time(step.stream) };
                }
            },
            (Op::StreamIdle { stream, .. }, false) if step.upto != NONE => {
                Op::StreamIdle { stream, upto: epochs[step.upto as usize].time }
            }
            (op, false) => op,
        };
        engine.apply(&op, step.thread)
    }

    /// The needs that are not met without these sites.
    pub(crate) fn violated(&self, needs: &OrderNeeds, out: &dyn Fn(u32) -> bool) -> Vec<Need> {
        let mut violated = self.steps.graphs.violated(&needs.nodes, out);
        // Without it, the order of steps is as it was.
        if (0..self.steps.places.len() as u32).any(|place| self.steps.is_of_steps(place) && out(place)) {
            self.violated_steps(&needs.steps, out, &mut violated);
        }
        violated
    }

    fn violated_steps(&self, needs: &[Need], out: &dyn Fn(u32) -> bool, violated: &mut Vec<Need>) {
        let mut next = 0;
        self.run(out, &mut |index, engine, epochs| {
            while let Some(need) = needs.get(next).filter(|need| need.then == index) {
                let epoch = epochs[need.first as usize];
                let met = match need.why {
                    Why::Reused(at) => {
                        let reuse = &self.steps.reuses[at as usize];
                        (reuse.place != NONE && !out(reuse.place)) || is_ready(engine, reuse.stream, epoch)
                    }
                    Why::HostReads | Why::HostWrites => engine.host_covers(epoch),
                    _ => engine.start_clock().covers(epoch),
                };
                if !met {
                    violated.push(*need);
                }
                next += 1;
            }
        });
    }
}
