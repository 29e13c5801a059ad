//! The values of nodes for many threads at once.
//!
//! Owns which threads they are, and how long a value holds that was found for them. A value is a
//! number, a number that counts from a pointer, or unknown (`lane_value`). What it is, is in
//! `lane_arithmetic`.

use super::lane_classes::{LANES, Mask, NO_LANES, add, lanes};
use super::lane_value::{LaneValue, Recipe, Tag, Tags, UNKNOWN};
use super::plan::{Plan, Reach};
use super::rounds::Round;
use crate::effects::LaunchArgs;
use crate::ir::Special;
use crate::ranges::domain::tape::{LaunchInput, input};
use crate::ranges::extent::reached::SymbolicBase;
use crate::ranges::graph::node::{Graph, Kind, NodeId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Operations that a value is made of, one behind the other.
const MAX_DEPTH: u32 = 400;
/// What it costs to see that a value still holds, measured in numbers.
const VISIT: usize = 24;

/// The threads that are calculated now, and the values found for them.
pub(super) struct ThreadLanes<'a> {
    pub(crate) g: &'a Graph,
    pub(crate) plan: &'a Plan,
    pub(crate) launch: &'a LaunchArgs<'a>,
    /// How many lanes are in use, and the thread of each.
    pub(crate) len: usize,
    pub(super) round: Round,
    /// These lanes.
    in_use: Mask,
    /// Those that are at the block which is looked at.
    pub(crate) here: Mask,
    /// Of each lane: thread and block indices.
    pub(crate) tid: [[u32; LANES]; 3],
    pub(crate) ctaid: [[u32; LANES]; 3],
    pub(crate) values: Vec<Option<LaneValue>>,
    /// From what they were made, where that is of use.
    pub(crate) recipes: Vec<Option<Box<Recipe>>>,
    /// Of nodes that were not made.
    pub(crate) missing: LaneValue,
    /// When each was last seen to hold, when it was last made, and when it last became another.
    checked: Vec<u32>,
    seen: Vec<u32>,
    made: Vec<u32>,
    /// When threads changed, when joins did that are passed once at most, and when any did.
    threads_at: u32,
    once_at: u32,
    joins_at: u32,
    /// When thread indices changed, and block indices: of each axis.
    indices_at: [[u32; 3]; 2],
    clock: u32,
    /// What values count from, and the value of each.
    pub(crate) bases: Vec<(SymbolicBase, u64)>,
    /// The tag of each of them.
    pub(crate) tags: FxHashMap<SymbolicBase, Tag>,
    /// Numbers calculated, of each group of lanes, and what looking for them cost in the same
    /// measure.
    pub(crate) spent: usize,
}

impl<'a> ThreadLanes<'a> {
    /// For rounds of so many threads at most.
    pub(crate) fn new(g: &'a Graph, plan: &'a Plan, launch: &'a LaunchArgs<'a>, threads: u64) -> ThreadLanes<'a> {
        // The grid decides which threads there are.
        for d in 0..3 {
            input(LaunchInput::Grid(d), launch).pin();
        }
        ThreadLanes {
            g,
            plan,
            launch,
            len: threads.min(LANES as u64) as usize,
            round: Round::NONE,
            in_use: NO_LANES,
            here: NO_LANES,
            tid: [[0; LANES]; 3],
            ctaid: [[0; LANES]; 3],
            values: vec![None; g.nodes.len()],
            recipes: g.nodes.iter().map(|_| None).collect(),
            missing: LaneValue::unknown(),
            checked: vec![0; g.nodes.len()],
            seen: vec![0; g.nodes.len()],
            made: vec![0; g.nodes.len()],
            threads_at: 1,
            once_at: 1,
            joins_at: 1,
            indices_at: [[1; 3]; 2],
            clock: 1,
            bases: Vec::new(),
            tags: FxHashMap::default(),
            spent: 0,
        }
    }

    /// Goes on to the threads of a round; the lanes that are in use then.
    pub(super) fn start(&mut self, round: Round) -> Mask {
        self.round = round;
        self.in_use = NO_LANES;
        (0..round.count).for_each(|lane| add(&mut self.in_use, lane));
        let block = self.launch.block.map(u64::from);
        let grid = self.launch.grid.map(u64::from);
        self.clock += 1;
        for lane in 0..round.count {
            let (b, t) = round.thread(lane);
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
        (self.threads_at, self.once_at, self.joins_at) = (self.clock, self.clock, self.clock);
        self.in_use
    }

    /// Gives a join its values for some lanes.
    pub(crate) fn assign(&mut self, join: NodeId, mask: &Mask, new: &LaneValue) {
        let v = self.values[join.0 as usize].get_or_insert_with(LaneValue::unknown);
        let differs = if *mask != self.in_use {
            v.take(mask, new)
        } else if v.is_same(new) {
            false
        } else {
            v.clone_from(new);
            true
        };
        self.changed(join, differs);
    }

    /// Gives a join the values of a node that was made, for some lanes.
    pub(crate) fn assign_from(&mut self, join: NodeId, mask: &Mask, from: NodeId) {
        if let Some(value) = self.values[from.0 as usize].take() {
            self.assign(join, mask, &value);
            self.values[from.0 as usize] = Some(value);
        } else {
            self.forget(join, mask);
        }
    }

    /// Makes a join unknown for some lanes.
    pub(crate) fn forget(&mut self, join: NodeId, mask: &Mask) {
        let v = self.values[join.0 as usize].get_or_insert_with(LaneValue::unknown);
        let mut differs = false;
        if *mask == self.in_use {
            differs = !matches!(v.tags, Tags::All(UNKNOWN));
            v.tags = Tags::All(UNKNOWN);
        }
        for lane in lanes(mask) {
            if v.tags.at(lane) != UNKNOWN {
                v.tags.each()[lane] = UNKNOWN;
                differs = true;
            }
        }
        self.changed(join, differs);
    }

    /// Makes all of a join unknown.
    pub(crate) fn forget_all(&mut self, join: NodeId) {
        if let Some(v) = &mut self.values[join.0 as usize] {
            let differs = !matches!(v.tags, Tags::All(UNKNOWN));
            v.tags = Tags::All(UNKNOWN);
            self.changed(join, differs);
        }
    }

    /// Notes that a join has other values from now on. (Several may change at once.)
    fn changed(&mut self, join: NodeId, differs: bool) {
        if differs {
            let at = self.clock + 1;
            self.made[join.0 as usize] = at;
            self.joins_at = at;
            if self.plan.reach[join.0 as usize] <= Reach::Once {
                self.once_at = at;
            }
        }
    }

    /// What rests on joins is looked at again, after some were changed.
    pub(crate) fn joined(&mut self) {
        self.clock += 1;
    }

    /// The value of a node.
    pub(crate) fn get(&mut self, n: NodeId) -> &LaneValue {
        self.calculate(n, 0);
        self.known(n)
    }

    fn known(&mut self, n: NodeId) -> &LaneValue {
        self.values[n.0 as usize].get_or_insert_with(LaneValue::unknown)
    }

    /// Makes the value of a node, if what it is made of is another than it was; when that was.
    fn calculate(&mut self, n: NodeId, depth: u32) -> u32 {
        let k = n.0 as usize;
        let since = match self.plan.reach[k] {
            Reach::Launch => 1,
            Reach::Thread => self.threads_at,
            Reach::Once => self.once_at,
            Reach::Join => self.joins_at,
        };
        let g = self.g;
        let kind = &g.node(n).kind;
        let is_given = match kind {
            Kind::Phi(_) | Kind::LoopPhi(..) => true,
            Kind::Opaque(_) => g.decisions.contains_key(&n) || g.map_loads.contains(&n),
            _ => false,
        };
        if self.checked[k] >= since || is_given {
            return self.made[k];
        }
        self.checked[k] = self.clock;
        self.spent += VISIT;
        let is_deep = depth >= MAX_DEPTH;
        let mut newest = match kind {
            _ if is_deep => self.clock,
            Kind::Special(s) => self.index_changed(*s),
            // Which lanes are a warp changes with the threads.
            Kind::OtherLane(..) => self.threads_at,
            _ => 1,
        };
        if !is_deep {
            for o in self.needed(n, depth) {
                newest = newest.max(self.calculate(o, depth + 1));
                self.known(o);
            }
        }
        if newest > self.seen[k] {
            self.seen[k] = self.clock;
            let old = self.values[k].take();
            let mut out = self.missing.clone();
            if !is_deep {
                self.operation(n, &mut out);
            }
            self.spent += match out.tags {
                Tags::All(_) if out.is_new => out.groups(),
                Tags::All(_) => 1,
                Tags::Each(_) => self.len,
            };
            // An unchanged result changes nothing else.
            self.values[k] = old.filter(|old| old.is_same(&out));
            if self.values[k].is_none() {
                self.made[k] = self.clock;
                self.values[k] = Some(out);
            }
        }
        self.made[k]
    }

    /// The operands that a value is made of. Of a choice that all lanes make alike these are the
    /// condition and what is chosen: predicated code has many such.
    fn needed(&mut self, n: NodeId, depth: u32) -> SmallVec<[NodeId; 4]> {
        let g = self.g;
        if let Kind::Sel(p, x, y) = g.node(n).kind {
            self.calculate(p, depth + 1);
            if let Some(holds) = self.known(p).decided() {
                return SmallVec::from_slice(&[p, if holds { x } else { y }]);
            }
        }
        g.operands(n)
    }

    /// When what the hardware says last changed.
    fn index_changed(&self, s: Special) -> u32 {
        let axis = |d: u8| usize::from(d.min(2));
        match s {
            Special::Tid(d) => self.indices_at[0][axis(d)],
            Special::Ctaid(d) | Special::ClusterId(d) | Special::ClusterCtaid(d) => self.indices_at[1][axis(d)],
            Special::ClusterRank => self.indices_at[1].into_iter().max().unwrap_or(1),
            Special::Lane => self.indices_at[0].into_iter().max().unwrap_or(1),
            _ => 1,
        }
    }
}
