//! The values of nodes for many threads at once.
//!
//! Owns which threads they are, and how long a value holds that was found for them. A value is a
//! number, a number that counts from a pointer, or unknown. What it is, is in `lane_arithmetic`.

use super::plan::{Plan, Reach};
use crate::effects::LaunchArgs;
use crate::ir::Special;
use crate::ranges::domain::tape::{LaunchInput, input};
use crate::ranges::extent::reached::SymbolicBase;
use crate::ranges::graph::node::{Graph, Kind, NodeId};

/// Threads that are calculated together.
pub(super) const LANES: usize = 256;

/// What a value counts from: nothing, or the base of this number, counted from one.
pub(super) type Tag = u8;
pub(super) const NUMBER: Tag = 0;
pub(super) const UNKNOWN: Tag = Tag::MAX;

/// Operations that a value is made of, one behind the other.
const MAX_DEPTH: u32 = 400;
/// What it costs to see that a value still holds, measured in values of one lane.
const VISIT: usize = 8;

/// The tags of a value.
#[derive(Clone, Debug)]
pub(super) enum Tags {
    All(Tag),
    Each(Box<[Tag; LANES]>),
}

impl Tags {
    pub fn at(&self, lane: usize) -> Tag {
        match self {
            Tags::All(t) => *t,
            Tags::Each(t) => t[lane],
        }
    }

    /// Tags that were found for each of the lanes in use.
    pub fn found(each: Box<[Tag; LANES]>, len: usize) -> Tags {
        if each[..len].iter().all(|t| *t == each[0]) { Tags::All(each[0]) } else { Tags::Each(each) }
    }

    /// Notes in `any` the lanes in which this is no number.
    pub fn note_others(&self, any: &mut [Tag; LANES]) {
        match self {
            Tags::All(NUMBER) => {}
            Tags::All(t) => any.iter_mut().for_each(|any| *any |= *t),
            Tags::Each(t) => any.iter_mut().zip(t.iter()).for_each(|(any, t)| *any |= *t),
        }
    }

    /// The tags of each lane, to be changed.
    pub fn each(&mut self) -> &mut [Tag; LANES] {
        if let Tags::All(t) = *self {
            *self = Tags::Each(Box::new([t; LANES]));
        }
        match self {
            Tags::Each(t) => t,
            Tags::All(_) => unreachable!("made above"),
        }
    }
}

/// The value of a node for each lane. (Truth values are 0 and 1. Values that count from a base are
/// addresses nevertheless.)
#[derive(Clone, Debug)]
pub(super) struct LaneValue {
    pub bits: Vec<u64>,
    pub tags: Tags,
}

impl LaneValue {
    pub fn unknown(lanes: usize) -> LaneValue {
        LaneValue { bits: vec![0; lanes], tags: Tags::All(UNKNOWN) }
    }

    pub fn all(&mut self, bits: u64, tag: Tag) {
        self.bits.fill(bits);
        self.tags = Tags::All(tag);
    }
}

/// The threads that are calculated now, and the values found for them.
pub(super) struct ThreadLanes<'a> {
    pub g: &'a Graph,
    pub plan: &'a Plan,
    pub launch: &'a LaunchArgs<'a>,
    /// How many lanes are in use, and the number of the first one's thread.
    pub len: usize,
    pub first: u64,
    /// Of each lane: thread and block indices.
    pub tid: [[u32; LANES]; 3],
    pub ctaid: [[u32; LANES]; 3],
    pub values: Vec<Option<Box<LaneValue>>>,
    /// When each was last seen to hold, and when it was last made anew.
    checked: Vec<u32>,
    made: Vec<u32>,
    /// When threads changed, and when joins did.
    threads_at: u32,
    joins_at: u32,
    /// When thread indices changed, and block indices: of each axis.
    indices_at: [[u32; 3]; 2],
    clock: u32,
    /// What values count from, and the value of each.
    pub bases: Vec<(SymbolicBase, u64)>,
    /// Values calculated, of each lane, and what looking for them cost in the same measure.
    pub spent: usize,
}

impl<'a> ThreadLanes<'a> {
    /// For so many threads in all.
    pub fn new(g: &'a Graph, plan: &'a Plan, launch: &'a LaunchArgs<'a>, threads: u64) -> ThreadLanes<'a> {
        // The grid decides which threads there are.
        for d in 0..3 {
            input(LaunchInput::Grid(d), launch).pin();
        }
        ThreadLanes {
            g,
            plan,
            launch,
            len: threads.min(LANES as u64) as usize,
            first: 0,
            tid: [[0; LANES]; 3],
            ctaid: [[0; LANES]; 3],
            values: vec![None; g.nodes.len()],
            checked: vec![0; g.nodes.len()],
            made: vec![0; g.nodes.len()],
            threads_at: 1,
            joins_at: 1,
            indices_at: [[1; 3]; 2],
            clock: 1,
            bases: Vec::new(),
            spent: 0,
        }
    }

    /// Goes on to the threads from number `first` on, of which there are `count`.
    pub fn start(&mut self, first: u64, count: usize) {
        self.first = first;
        let block = self.launch.block.map(u64::from);
        let grid = self.launch.grid.map(u64::from);
        let per_block = block.iter().product::<u64>();
        self.clock += 1;
        for lane in 0..count {
            let n = first + lane as u64;
            let (b, t) = (n / per_block, n % per_block);
            let split = |n: u64, by: [u64; 3]| [n % by[0], n / by[0] % by[1], n / by[0] / by[1]];
            for (kind, (now, at)) in [split(t, block), split(b, grid)].into_iter().zip(&mut self.indices_at).enumerate()
            {
                let indices = if kind == 0 { &mut self.tid } else { &mut self.ctaid };
                for d in 0..3 {
                    if std::mem::replace(&mut indices[d][lane], now[d] as u32) != now[d] as u32 {
                        at[d] = self.clock;
                    }
                }
            }
        }
        self.threads_at = self.clock;
        self.joins_at = self.clock;
    }

    /// Gives a join its values for some lanes.
    pub fn assign(&mut self, join: NodeId, lanes: impl Iterator<Item = usize>, new: &LaneValue) {
        let v = self.values[join.0 as usize].get_or_insert_with(|| Box::new(LaneValue::unknown(self.len)));
        let mut differs = false;
        for lane in lanes {
            differs |= std::mem::replace(&mut v.bits[lane], new.bits[lane]) != new.bits[lane];
            let tag = new.tags.at(lane);
            if v.tags.at(lane) != tag {
                v.tags.each()[lane] = tag;
                differs = true;
            }
        }
        self.changed(join, differs);
    }

    /// Gives a join the values of a node that was made, for some lanes.
    pub fn assign_from(&mut self, join: NodeId, lanes: impl Iterator<Item = usize>, from: NodeId) {
        if let Some(value) = self.values[from.0 as usize].take() {
            self.assign(join, lanes, &value);
            self.values[from.0 as usize] = Some(value);
        } else {
            self.forget(join, lanes);
        }
    }

    /// Makes a join unknown for some lanes.
    pub fn forget(&mut self, join: NodeId, lanes: impl Iterator<Item = usize>) {
        let v = self.values[join.0 as usize].get_or_insert_with(|| Box::new(LaneValue::unknown(self.len)));
        let mut differs = false;
        for lane in lanes {
            if v.tags.at(lane) != UNKNOWN {
                v.tags.each()[lane] = UNKNOWN;
                differs = true;
            }
        }
        self.changed(join, differs);
    }

    /// Makes all of a join unknown.
    pub fn forget_all(&mut self, join: NodeId) {
        if let Some(v) = &mut self.values[join.0 as usize] {
            let differs = !matches!(v.tags, Tags::All(UNKNOWN));
            v.tags = Tags::All(UNKNOWN);
            self.changed(join, differs);
        }
    }

    /// Notes that a join has other values from now on. (Several may change at once.)
    fn changed(&mut self, join: NodeId, differs: bool) {
        if differs {
            self.made[join.0 as usize] = self.clock + 1;
        }
    }

    /// What rests on joins is looked at again, after some were changed.
    pub fn joined(&mut self) {
        self.clock += 1;
        self.joins_at = self.clock;
    }

    /// The value of a node.
    pub fn get(&mut self, n: NodeId) -> &LaneValue {
        self.calculate(n, 0);
        self.known(n)
    }

    fn known(&mut self, n: NodeId) -> &LaneValue {
        self.values[n.0 as usize].get_or_insert_with(|| Box::new(LaneValue::unknown(self.len)))
    }

    /// Makes the value of a node, if what it is made of is another than it was; when that was.
    fn calculate(&mut self, n: NodeId, depth: u32) -> u32 {
        let k = n.0 as usize;
        let since = match self.plan.reach[k] {
            Reach::Launch => 1,
            Reach::Thread => self.threads_at,
            Reach::Once | Reach::Join => self.joins_at,
        };
        let g = self.g;
        let kind = &g.node(n).kind;
        if self.checked[k] >= since || matches!(kind, Kind::Phi(_) | Kind::LoopPhi(..)) {
            return self.made[k];
        }
        self.checked[k] = self.clock;
        self.spent += VISIT;
        let is_deep = depth >= MAX_DEPTH;
        let mut newest = match kind {
            _ if is_deep => self.clock,
            Kind::Special(s) => self.index_changed(*s),
            // Which lanes are a warp changes with the threads.
            Kind::OtherLane(_) => self.threads_at,
            _ => 1,
        };
        if !is_deep {
            for o in g.operands(n) {
                newest = newest.max(self.calculate(o, depth + 1));
                self.known(o);
            }
        }
        if newest > self.made[k] {
            self.made[k] = self.clock;
            self.spent += self.len;
            let mut out = self.values[k].take().unwrap_or_else(|| Box::new(LaneValue::unknown(self.len)));
            if is_deep {
                out.tags = Tags::All(UNKNOWN);
            } else {
                self.operation(n, &mut out);
            }
            self.values[k] = Some(out);
        }
        self.made[k]
    }

    /// When what the hardware says last changed.
    fn index_changed(&self, s: Special) -> u32 {
        let axis = |d: u8| usize::from(d.min(2));
        match s {
            Special::Tid(d) => self.indices_at[0][axis(d)],
            Special::Ctaid(d) | Special::ClusterId(d) => self.indices_at[1][axis(d)],
            Special::Lane => self.indices_at[0].into_iter().max().unwrap_or(1),
            _ => 1,
        }
    }
}
