//! Threads on their way through a kernel.
//!
//! Owns which block a thread goes to, what joins hold then, and which accesses it makes. Threads
//! that part meet again because the block that comes first in the order of the code goes first.

use super::lane_classes::{Mask, NO_LANES, lanes};
use super::lane_value::{LaneValue, NUMBER, Tag, Tags, UNKNOWN};
use super::lanes::ThreadLanes;
use super::made_maps::{MadeMaps, MapPlace};
use super::rounds::Rounds;
use super::runs::Runs;
use super::tile_set::TileSet;
use super::unknown_branches::Region;
use crate::effects::LaunchArgs;
use crate::ir::BlockId;
use crate::ranges::analysis::Analysis;
use crate::ranges::eval::conditions::Branch;
use crate::ranges::extent::reached::SymbolicBase;
use crate::ranges::graph::node::{Graph, Kind, MapStepNode, NodeId, Target, WarpDecision};
use crate::ranges::map_words;
use crate::ranges::program_slice::{ProgramSlice, only_arm};
use device_code::tensor_map::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::rc::Rc;

/// Numbers that one launch may cost, counted for each class of lanes.
const MAX_VALUES: usize = 3_000_000;
/// The same for a launch of which some bytes are not known at all otherwise.
const MAX_VALUES_UNBOUNDED: usize = 20_000_000;
/// How much more a launch may cost that copies by tensor maps: a warp of a persistent kernel goes
/// through the loops of several tiles, and a product of matrices is launched seldom.
const TILED: [usize; 2] = [6, 3];
/// How much cheaper than the first threads all of them may be, in halves: a launch that would be
/// too expensive even so is given up early.
const CHEAPER: u64 = 3;
/// Blocks of code that threads go through for nothing but the values there, and what each further
/// one costs, measured in numbers: a persistent kernel goes through its loops once for each tile.
const FREE_STEPS: u32 = 20_000;
const STEP: usize = 16;

/// What the threads of a launch touch.
#[derive(Default)]
pub(super) struct Touched {
    /// By access and base: bytes that are touched whatever the data are, and bytes that may be.
    pub(crate) surely: FxHashMap<(usize, SymbolicBase), Runs>,
    pub(crate) perhaps: FxHashMap<(usize, SymbolicBase), Runs>,
    /// By access, and where the map is: the tiles of copies by tensor map.
    pub(crate) tiles: FxHashMap<(usize, MapPlace), TileSet>,
    /// Copies by a map, some of whose tiles are not known: they lie anywhere in the tensor.
    pub(crate) anywhere: FxHashSet<(usize, MapPlace)>,
    /// The tensors of maps that are made: what their addresses count from, and the value of that.
    pub(crate) tensors: Vec<(SymbolicBase, u64, Tensor)>,
    /// What the addresses of these maps count from.
    pub(crate) places: Vec<SymbolicBase>,
    /// Accesses of which not all addresses are known.
    pub(crate) lost: FxHashSet<usize>,
}

/// The bytes that an access touched the last time, behind what its addresses counted from.
struct Addressed {
    bits: Rc<Vec<u64>>,
    moved: u64,
    tag: Tag,
    mask: Mask,
    runs: Runs,
}

/// Threads of a launch on their way.
pub(super) struct Walk<'a> {
    pub(super) lanes: ThreadLanes<'a>,
    pub(super) analysis: &'a Analysis,
    /// Maps that are made, the steps that make them, by block, and the blocks before such steps.
    pub(super) maps: MadeMaps,
    pub(super) map_steps: Vec<Vec<usize>>,
    before_maps: Vec<bool>,
    /// The accesses to be followed, and the joins that matter, by block.
    pub(super) accesses: Vec<Vec<usize>>,
    pub(super) joins: Vec<Vec<NodeId>>,
    /// By block: the branch there matters.
    pub(super) decides: Vec<bool>,
    pub(super) regions: FxHashMap<BlockId, Rc<Region>>,
    /// ThreadLanes by the block that they are at, by its place in the order of the code.
    waiting: std::collections::BTreeMap<u32, Mask>,
    touched: Touched,
    /// By access, and whether it is one that may happen only.
    last: FxHashMap<(usize, bool), Addressed>,
    steps: u32,
    rounds: Rounds,
    /// Values that it may cost.
    budget: usize,
}

impl<'a> Walk<'a> {
    /// `followed`: the accesses that matter; `unbounded`: of some nothing is known.
    pub(crate) fn new(
        analysis: &'a Analysis,
        launch: &'a LaunchArgs<'a>,
        (blocks, per_block): (u64, u64),
        followed: &[usize],
        unbounded: bool,
    ) -> Walk<'a> {
        let (g, cfg) = (&analysis.graph, &analysis.cfg);
        let mut accesses = vec![Vec::new(); cfg.succs.len()];
        let mut roots: Vec<NodeId> = Vec::new();
        for k in followed {
            let a = &g.accesses[*k];
            accesses[a.block.0 as usize].push(*k);
            roots.extend(a.guard);
            roots.extend(a.guard.and_then(|guard| g.decisions.get(&guard)?.asks()));
            match &a.target {
                Target::Address(n) => roots.push(*n),
                Target::TensorMap(n, coordinates) => roots.extend(std::iter::once(n).chain(coordinates)),
                _ => {}
            }
        }
        // (Blocks of a cluster may store into each other's memory.)
        let follows_maps = launch.cluster.iter().all(|n| *n <= 1) && followed.iter().any(|k| g.accesses[*k].is_tiled());
        let mut map_steps = vec![Vec::new(); cfg.succs.len()];
        for (k, step) in g.map_words.iter().enumerate().filter(|_| follows_maps) {
            map_steps[step.block.0 as usize].push(k);
            roots.extend(step.nodes());
            roots.extend(step.guard.and_then(|guard| g.decisions.get(&guard)?.asks()));
        }
        let puts = g.map_words.iter().filter(|s| matches!(s.step, MapStepNode::Word { .. })).map(|s| s.block);
        let mut before_maps = map_words::before(cfg, puts.clone());
        puts.for_each(|b| before_maps[b.0 as usize] = true);
        let at_work = (0..cfg.succs.len())
            .filter(|b| !accesses[*b].is_empty() || !map_steps[*b].is_empty())
            .map(|b| BlockId(b as u32));
        let ProgramSlice { joins, decides } =
            ProgramSlice::new((g, cfg, &analysis.plan().deciders), at_work, roots.into_iter());
        // Kernels that copy by maps share the work out among warp groups. (Threads that make maps
        // come before those that use them.)
        let copies = followed.iter().any(|k| g.accesses[*k].is_tiled());
        let rounds = Rounds::new(blocks, per_block, copies && g.map_words.is_empty());
        Walk {
            maps: MadeMaps::default(),
            map_steps,
            before_maps,
            lanes: ThreadLanes::new(g, analysis.plan(), launch, rounds.alike()),
            rounds,
            budget: match (unbounded, copies) {
                (false, false) => MAX_VALUES,
                (true, false) => MAX_VALUES_UNBOUNDED,
                (false, true) => MAX_VALUES * TILED[0],
                (true, true) => MAX_VALUES_UNBOUNDED * TILED[1],
            },
            analysis,
            accesses,
            joins,
            decides,
            regions: FxHashMap::default(),
            waiting: std::collections::BTreeMap::new(),
            touched: Touched::default(),
            last: FxHashMap::default(),
            steps: 0,
        }
    }

    /// Leads all threads through; `None`: that costs too much.
    pub(crate) fn run(mut self) -> Option<Touched> {
        let g = &self.analysis.graph;
        let mut before = 0;
        for round in self.rounds.rounds() {
            if round.done == round.count as u64 {
                before = self.lanes.spent as u64;
            }
            let all = self.lanes.start(round);
            for joins in &self.joins {
                joins.iter().for_each(|j| self.lanes.forget_all(*j));
            }
            g.map_loads.iter().for_each(|n| self.lanes.forget_all(*n));
            self.lanes.joined();
            self.waiting.clear();
            self.waiting.insert(0, all);
            while let Some((order, mask)) = self.waiting.pop_first() {
                self.steps += 1;
                self.lanes.spent += if self.steps > FREE_STEPS { STEP } else { 0 };
                if self.lanes.spent > self.budget {
                    return None;
                }
                self.block(self.analysis.cfg.rpo[order as usize], &mask);
            }
            // Those like them that follow are not that much cheaper.
            let each = (self.lanes.spent as u64 - before) / round.done;
            if before.saturating_add(each.saturating_mul(round.alike)).saturating_mul(2) > CHEAPER * self.budget as u64
            {
                return None;
            }
        }
        self.tell_made_maps();
        Some(self.touched)
    }

    /// What is known of the maps that were made.
    fn tell_made_maps(&mut self) {
        if self.maps.is_lost {
            let by_map = self.touched.tiles.keys().chain(&self.touched.anywhere);
            let by_made = by_map.filter(|key| matches!(key.1, MapPlace::Made(_)));
            self.touched.lost.extend(by_made.map(|key| key.0));
        }
        let base = |tag: Tag| match tag {
            NUMBER => (SymbolicBase::Absolute, 0),
            _ => self.lanes.bases[usize::from(tag) - 1],
        };
        let whole = |(tag, tensor): &(Tag, Tensor)| (base(*tag).0, base(*tag).1, *tensor);
        self.touched.tensors = self.maps.tensors.iter().map(whole).collect();
        self.touched.places = self.maps.places().map(|tag| base(tag).0).collect();
    }

    /// ThreadLanes at a block: its accesses, and where they go.
    fn block(&mut self, b: BlockId, mask: &Mask) {
        self.lanes.here = *mask;
        self.decide(b, mask);
        self.make_maps(b, mask);
        for at in 0..self.accesses[b.0 as usize].len() {
            let k = self.accesses[b.0 as usize][at];
            self.access(k, mask, false);
        }
        let analysis = self.analysis;
        let succs = &analysis.cfg.succs[b.0 as usize];
        match (analysis.branches[b.0 as usize], &succs[..]) {
            (branch, _) if !self.decides[b.0 as usize] && parts(branch, succs) => self.pass(b, mask),
            (Some(branch), _) if branch.taken != branch.fall => {
                let [taken, fall, unknown] = self.lanes.get(branch.cond).decides(mask);
                // What joins hold is asked before any of them changes.
                self.go(b, branch.taken, &taken);
                self.go(b, branch.fall, &fall);
                self.skip(b, &unknown);
            }
            (_, []) => {}
            (Some(branch), _) => self.go(b, branch.taken, mask),
            (None, [next]) => self.go(b, Some(*next), mask),
            (None, _) => self.skip(b, mask),
        }
    }

    /// What the warps at a block decide, in the order in which it is asked.
    fn decide(&mut self, b: BlockId, mask: &Mask) {
        let decisions = &self.analysis.graph.decisions;
        let mut made: Vec<(NodeId, WarpDecision)> =
            self.joins[b.0 as usize].iter().filter_map(|n| Some((*n, *decisions.get(n)?))).collect();
        // (A node is made after those it is made of.)
        made.sort_unstable_by_key(|m| m.0);
        for (n, decision) in made {
            let value = self.lanes.decided(decision, mask, self.analysis.cfg.in_irreducible[b.0 as usize]);
            self.lanes.assign(n, mask, &value);
            self.lanes.joined();
        }
    }

    /// ThreadLanes go from one block to another.
    fn go(&mut self, from: BlockId, to: Option<BlockId>, mask: &Mask) {
        let Some(to) = to.filter(|_| *mask != NO_LANES) else { return };
        let (g, joins) = (self.lanes.g, &self.joins[to.0 as usize]);
        let arms: Vec<(NodeId, Option<NodeId>)> = joins.iter().map(|j| (*j, arm(g, *j, from))).collect();
        // All are asked before any changes. What is no join itself does not change with them.
        let mut kept: Vec<(NodeId, LaneValue)> = Vec::new();
        for n in arms.iter().filter_map(|a| a.1) {
            let value = self.lanes.get(n);
            if joins.contains(&n) {
                kept.push((n, value.clone()));
            }
        }
        for (join, from) in &arms {
            match from.map(|n| (n, kept.iter().find(|k| k.0 == n))) {
                Some((_, Some((_, value)))) => self.lanes.assign(*join, mask, value),
                Some((n, None)) => self.lanes.assign_from(*join, mask, n),
                None => self.lanes.forget(*join, mask),
            }
        }
        if !arms.is_empty() {
            self.lanes.joined();
        }
        self.wait(to, mask);
    }

    /// Threads whose way from a block does not matter go on where all ways meet.
    fn pass(&mut self, from: BlockId, mask: &Mask) {
        let Some(end) = self.analysis.cfg.ipdom[from.0 as usize] else { return };
        let joins = &self.joins[end.0 as usize];
        let brought: Vec<(NodeId, Option<LaneValue>)> = joins
            .iter()
            .map(|join| (*join, only_arm(self.lanes.g, *join).map(|n| self.lanes.get(n).clone())))
            .collect();
        for (join, value) in &brought {
            match value {
                Some(value) => self.lanes.assign(*join, mask, value),
                None => self.lanes.forget(*join, mask),
            }
        }
        if !brought.is_empty() {
            self.lanes.joined();
        }
        self.wait(end, mask);
    }

    pub(super) fn wait(&mut self, at: BlockId, mask: &Mask) {
        let waiting = self.waiting.entry(self.analysis.cfg.order[at.0 as usize]).or_insert(NO_LANES);
        waiting.iter_mut().zip(mask).for_each(|(w, m)| *w |= m);
    }

    /// ThreadLanes make an access, or may make it.
    pub(super) fn access(&mut self, k: usize, mask: &Mask, perhaps: bool) {
        if self.touched.lost.contains(&k) {
            return;
        }
        let analysis = self.analysis;
        let a = &analysis.graph.accesses[k];
        let (mut surely, mut maybe) = (*mask, NO_LANES);
        // What is copied once for a warp is copied for a thread that said so: its registers are
        // those that the copy has.
        let guard = a.guard.map(|guard| match analysis.graph.decisions.get(&guard) {
            Some(WarpDecision::Votes { all: false, p }) if a.is_tiled() => *p,
            _ => guard,
        });
        if let Some(guard) = guard {
            [surely, _, maybe] = self.lanes.get(guard).decides(mask);
        }
        if perhaps {
            maybe.iter_mut().zip(surely).for_each(|(m, s)| *m |= s);
            surely = NO_LANES;
        }
        let target = match &a.target {
            Target::Address(target) => *target,
            Target::TensorMap(map, coordinates) if !coordinates.is_empty() => {
                for (mask, perhaps) in [(surely, false), (maybe, true)] {
                    if self.tiles(k, *map, coordinates, &mask, perhaps).is_none() {
                        self.touched.lost.insert(k);
                    }
                }
                return;
            }
            _ => {
                self.touched.lost.insert(k);
                return;
            }
        };
        let width = i64::from(a.bytes);
        self.lanes.get(target);
        for (mask, perhaps) in [(surely, false), (maybe, true)] {
            if mask == NO_LANES {
                continue;
            }
            let Some(all) = self.addressed((k, perhaps), target, &mask, width) else {
                self.touched.lost.insert(k);
                return;
            };
            let into = if perhaps { &mut self.touched.perhaps } else { &mut self.touched.surely };
            for (tag, runs) in all {
                let base = match tag {
                    NUMBER => SymbolicBase::Absolute,
                    _ => self.lanes.bases[usize::from(tag) - 1].0,
                };
                into.entry((k, base)).or_default().append(&runs);
            }
        }
    }

    /// The tiles that lanes copy; `None`: where the map lies is not known, or they are too many.
    fn tiles(&mut self, k: usize, map: NodeId, at: &[NodeId], mask: &Mask, perhaps: bool) -> Option<()> {
        if *mask == NO_LANES {
            return Some(());
        }
        self.lanes.get(map);
        for n in at {
            self.lanes.get(*n);
        }
        let is_before_maps = self.before_maps[self.analysis.graph.accesses[k].block.0 as usize];
        let mut last = None;
        for lane in lanes(mask) {
            let value = self.lanes.operand(map);
            let (tag, number) = (value.tags.at(lane), value.at(lane));
            let place = match self.lanes.bases.get(usize::from(tag).wrapping_sub(1)) {
                Some((SymbolicBase::ParamAddress(first), from)) => {
                    let behind = u16::try_from(number.wrapping_sub(*from) % (1 << 16)).ok()?;
                    let offset = first.wrapping_add(behind);
                    if usize::from(offset) >= self.lanes.launch.params.len() {
                        return None;
                    }
                    MapPlace::Param(offset)
                }
                Some((SymbolicBase::Word(_) | SymbolicBase::Symbol(_), _)) if !is_before_maps => {
                    MapPlace::Made(self.maps.tensor((tag, number))?)
                }
                _ => return None,
            };
            let mut tile = [0; 5];
            let mut is_known = true;
            for (to, n) in tile.iter_mut().zip(at) {
                let value = self.lanes.operand(*n);
                is_known &= value.tags.at(lane) == NUMBER;
                *to = value.at(lane) as u32 as i32;
            }
            self.lanes.spent += at.len();
            if !is_known {
                self.touched.anywhere.insert((k, place));
                continue;
            }
            if last.replace((place, tile)) != Some((place, tile)) {
                self.touched.tiles.entry((k, place)).or_default().put(tile, perhaps)?;
            }
        }
        Some(())
    }

    /// The bytes that lanes touch, and what they count from; `None` when an address is not known.
    fn addressed(
        &mut self,
        access: (usize, bool),
        target: NodeId,
        mask: &Mask,
        width: i64,
    ) -> Option<SmallVec<[(Tag, Runs); 1]>> {
        let value = self.lanes.operand(target);
        let origin = match value.tags {
            Tags::All(NUMBER | UNKNOWN) | Tags::Each(_) => None,
            Tags::All(tag) => value.origin().map(|(bits, moved)| (bits.clone(), moved, tag)),
        };
        // Addresses that have only moved since the last time touch what has moved as far.
        if let Some((bits, moved, tag)) = &origin
            && let Some(last) = self.last.get(&access)
            && Rc::ptr_eq(&last.bits, bits)
            && (last.mask, last.tag) == (*mask, *tag)
            && let Some(runs) = last.runs.moved(moved.wrapping_sub(last.moved) as i64)
        {
            self.lanes.spent += runs.len();
            return Some(SmallVec::from_iter([(*tag, runs)]));
        }
        let mut all: SmallVec<[(Tag, Runs); 1]> = SmallVec::new();
        let mut count = 0;
        for lane in lanes(mask) {
            count += 1;
            let (tag, number) = (value.tags.at(lane), value.at(lane));
            let at = match tag {
                UNKNOWN => return None,
                // The address itself, which the inputs tell that were noted for it.
                NUMBER => i64::try_from(number).ok()?,
                _ => number.wrapping_sub(self.lanes.bases[usize::from(tag) - 1].1) as i64,
            };
            match all.last_mut() {
                Some((t, runs)) if *t == tag => runs.put(at, width),
                _ => {
                    let mut runs = Runs::default();
                    runs.put(at, width);
                    all.push((tag, runs));
                }
            }
        }
        self.lanes.spent += count;
        if let (Some((bits, moved, tag)), [(_, runs)]) = (origin, &mut all[..]) {
            *runs = std::mem::take(runs).joined();
            self.last.insert(access, Addressed { bits, moved, tag, mask: *mask, runs: runs.clone() });
        }
        Some(all)
    }
}

/// Do threads at the end of a block part?
fn parts(branch: Option<Branch>, succs: &[BlockId]) -> bool {
    branch.map_or(succs.len() > 1, |branch| branch.taken != branch.fall)
}

/// The value that a join has when it is reached from a block.
pub(super) fn arm(g: &Graph, join: NodeId, from: BlockId) -> Option<NodeId> {
    let of = |arms: &[(BlockId, NodeId)]| arms.iter().find(|a| a.0 == from).map(|a| a.1);
    match &g.node(join).kind {
        Kind::Phi(arms) => of(arms),
        Kind::LoopPhi(outer, back) => of(outer).or_else(|| of(back)),
        _ => None,
    }
}
