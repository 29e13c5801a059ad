//! A kernel prepared for evaluation, and the evaluation of one launch from start to end.
//!
//! Owns [`Analysis`], which is what a [`crate::Summary`] keeps of the code: the value graph, the
//! control flow, and where each address comes from. For a launch it asks [`Eval`] for the bytes of
//! each access, has `access_groups` join them, and `resolution` put the launch's numbers into the
//! bases. It does not know how a value is found (`eval`) or kept (`memo`).

use crate::effects::{Extent, Gap, KernelAccess, LaunchArgs, Param, Tiles};
use crate::ir::cfg::Cfg;
use crate::ir::{AccessKind, KernelIr, Reason, Term};
use crate::ranges::access_groups::{AccessGroup, AccessGroups};
use crate::ranges::by_thread::Plan;
use crate::ranges::claims;
use crate::ranges::domain::byte_set::ByteSet;
use crate::ranges::domain::condition::Cond;
use crate::ranges::domain::int::Int;
use crate::ranges::eval::Eval;
use crate::ranges::eval::conditions::Branch;
use crate::ranges::eval::state::budget::Budget;
use crate::ranges::extent::address::access_bytes;
use crate::ranges::extent::made_maps::made_tensor;
use crate::ranges::extent::reached::{EvaluatedAccesses, ReachedBytes, SymbolicBase};
use crate::ranges::extent::tiles::tiles;
use crate::ranges::graph::build::build;
use crate::ranges::graph::node::{Graph, NodeId, Target};
use crate::ranges::graph::provenance::{Provenance, is_looked_up, origins, voted};
use crate::ranges::handovers;
use crate::ranges::locks::{self, Fenced};
use crate::ranges::memo::ahead::Ahead;
use crate::ranges::memo::evaluation_cache::EvaluationCache;
use crate::ranges::memo::replay::{self, Way};
use crate::ranges::per_block;
use crate::ranges::selections::{Selectors, selectors};
use crate::ranges::ways;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::OnceLock;

/// Offsets of parameters from here on are negative, because the constant bank begins before the
/// parameters.
const BEFORE: u16 = 0x8000;

/// A kernel prepared for evaluation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Analysis {
    pub(super) graph: Graph,
    pub(super) cfg: Cfg,
    /// The conditional branch at the end of each block.
    pub(super) branches: Vec<Option<Branch>>,
    /// Where the address of each access comes from.
    pub(super) origins: Vec<Provenance>,
    /// The locks that each access is made under, and the words by which it is handed over: see
    /// `locks` and `handovers`.
    pub(super) locks: Vec<locks::Held>,
    /// The same if a launch executes all fences that these need. Empty: they are the same.
    pub(super) if_fenced: Vec<locks::Held>,
    /// The branches that a launch takes if it is asked for locks: their conditions and outcomes.
    pub(super) asked: Vec<(NodeId, bool)>,
    /// See `selections`.
    pub(super) selectors: Selectors,
    /// See [`per_block::block_axis`].
    pub(super) looked_up_by: Option<u8>,
    #[serde(skip)]
    cache: EvaluationCache,
    #[serde(skip)]
    ahead: Ahead,
    #[serde(skip)]
    plan: OnceLock<Plan>,
    #[serde(skip)]
    address_words: OnceLock<Vec<u16>>,
}

/// Prepares a kernel.
pub(crate) fn analyse(f: &KernelIr, cfg: Cfg) -> Analysis {
    let graph = build(f, &cfg);
    let voted = voted(&graph);
    let origins = graph.accesses.iter().map(|a| {
        let voted = matches!(a.target, Target::Address(n) | Target::Bulk(n, _) if voted[n.0 as usize]);
        let looked_up = matches!(a.target, Target::Address(n) if is_looked_up(&graph, n));
        Provenance { voted, looked_up, ..origins(&graph, &f.params, &a.target) }
    });
    let origins: Vec<Provenance> = origins.collect();
    let branches = f
        .blocks
        .iter()
        .zip(&graph.conds)
        .map(|(b, c)| match (&b.term, c) {
            (Term::Branch { taken, fall, .. }, Some(cond)) => Some(Branch { cond: *cond, taken: *taken, fall: *fall }),
            _ => None,
        })
        .collect::<Vec<_>>();
    let looked_up_by = per_block::block_axis(&graph);
    let live = cfg.without(&ways::never_taken(&graph, &branches));
    let (mut locks, mut asked) = locks::held(&graph, &live, &branches, &origins, Fenced::Surely);
    claims::mark(&graph, &live, &branches, &origins, &mut locks);
    let selectors = selectors(&graph, &cfg, &branches);
    handovers::mark(&graph, &live, &branches, Fenced::Surely, &mut locks);
    let mut if_fenced = Vec::new();
    if graph.syncs.iter().any(|s| s.sync.acquires() || s.sync.releases()) {
        let (mut all, ask) = locks::held(&graph, &live, &branches, &origins, Fenced::IfMeasured);
        handovers::mark(&graph, &live, &branches, Fenced::IfMeasured, &mut all);
        if all.iter().zip(&locks).any(|(all, surely)| surely.is_empty() && !all.is_empty()) {
            (if_fenced, asked) = (all, if asked.is_empty() { ask } else { asked });
        }
    }
    let (cache, ahead, plan, address_words) = Default::default();
    Analysis {
        graph,
        cfg,
        branches,
        origins,
        locks,
        if_fenced,
        asked,
        selectors,
        looked_up_by,
        cache,
        ahead,
        plan,
        address_words,
    }
}

impl Analysis {
    /// The evaluations that are kept between launches.
    pub(crate) fn cache(&self) -> &EvaluationCache {
        &self.cache
    }

    /// See [`Analysis::cache`].
    pub(crate) fn cache_mut(&mut self) -> &mut EvaluationCache {
        &mut self.cache
    }

    /// What matters when threads are followed.
    pub(super) fn plan(&self) -> &Plan {
        self.plan.get_or_init(|| Plan::new(&self.graph, &self.cfg))
    }

    /// The offsets of the parameter words that addresses derive from, ascending.
    pub(super) fn address_words(&self) -> &[u16] {
        self.address_words.get_or_init(|| {
            let mut words: Vec<u16> = self.origins.iter().flat_map(|from| from.words.iter().copied()).collect();
            words.sort_unstable();
            words.dedup();
            words
        })
    }

    /// The accesses that are made before the thread has waited for the grids it depends on.
    pub(crate) fn early(&self) -> impl Iterator<Item = (AccessKind, u32)> {
        self.graph.accesses.iter().filter(|access| access.early.is()).map(|access| (access.kind, access.at))
    }

    pub(crate) fn access_count(&self) -> usize {
        self.origins.iter().filter(|from| !from.made).count()
    }

    pub(crate) fn origins(&self) -> impl Iterator<Item = (AccessKind, u32, &Provenance)> {
        self.graph.accesses.iter().zip(&self.origins).map(|(a, o)| (a.kind, a.at, o))
    }

    /// For each access: why its extent is not bounded in any of a few made-up launches (`None`: it
    /// is bounded in one of them). An access that is dead in all of them counts as bounded when
    /// its address contains nothing unknown.
    pub(crate) fn trial(&self, params: &[Param]) -> Vec<Option<Gap>> {
        let size = params.iter().map(|p| usize::from(p.offset) + usize::from(p.size)).max().unwrap_or(0);
        let mut pointers: Vec<u16> = self.origins.iter().flat_map(|o| o.words.iter().copied()).collect();
        pointers.sort_unstable();
        pointers.dedup();
        // Outer: does it happen? Inner: why it is not bounded.
        let mut best: Vec<Option<Option<Reason>>> = vec![None; self.graph.accesses.len()];
        for scalar in [96u32, 1000, 4] {
            let mut bytes: Vec<u8> = Vec::with_capacity(size + 8);
            while bytes.len() < size {
                bytes.extend(scalar.to_le_bytes());
            }
            // Words of 64 bits are small numbers too. In structs either width may be meant: the
            // least number stands in every 32 bits.
            let wide =
                |p: &&Param| p.offset.is_multiple_of(8) && (p.size == 8 || p.size.is_multiple_of(8) && scalar != 4);
            for p in params.iter().filter(wide) {
                for at in (usize::from(p.offset)..).step_by(8).take(usize::from(p.size) / 8) {
                    bytes[at..at + 8].copy_from_slice(&u64::from(scalar).to_le_bytes());
                }
            }
            for p in &pointers {
                let at = usize::from(*p);
                if at + 8 <= bytes.len() {
                    bytes[at..at + 8].copy_from_slice(&(0x7f00_0000_0000 + ((at as u64) << 32)).to_le_bytes());
                }
            }
            bytes.truncate(size);
            let launch = LaunchArgs::new([6, 3, 2], [128, 1, 1], &bytes);
            for (k, r) in self.per_access(&launch).into_iter().enumerate() {
                if r.is_empty() {
                    continue;
                }
                let why = r.iter().find_map(|x| match x.extent {
                    // The map says what tensor it is.
                    ByteSet::Unknown { .. } if x.tiles.is_some() && x.base != SymbolicBase::Unknown => None,
                    ByteSet::Unknown { reason } => Some(reason),
                    ByteSet::Bounded { .. } => None,
                });
                best[k] = match best[k] {
                    None => Some(why),
                    Some(before) => Some(before.and(why)),
                };
            }
        }
        let found = best.into_iter().zip(&self.origins).zip(&self.graph.accesses);
        found.map(|((b, o), a)| b.unwrap_or(o.unknown).map(|reason| Gap { reason, at: a.at })).collect()
    }

    pub(super) fn eval<'a>(&'a self, launch: &LaunchArgs<'a>) -> Eval<'a> {
        Eval::new(&self.graph, &self.cfg, &self.branches, *launch)
    }

    /// Adds the bases that an access may have when its address is not known in full.
    fn named(&self, k: usize, r: &mut Vec<ReachedBytes>) {
        let o = &self.origins[k];
        // Reading a parameter through its own address touches nothing that others share.
        r.retain(|x| !matches!(x.base, SymbolicBase::ParamAddress(_)));
        // Whatever base an unknown address may have had is still named.
        let lost = r.iter().any(|x| x.base == SymbolicBase::Unknown && !x.several);
        if lost {
            let reason = r
                .iter()
                .find_map(|x| match x.extent {
                    ByteSet::Unknown { reason } if x.base == SymbolicBase::Unknown => Some(reason),
                    _ => None,
                })
                .unwrap_or(Reason::Loaded);
            let have: Vec<SymbolicBase> = r.iter().map(|x| x.base).collect();
            for w in o.words.iter().filter(|w| !have.contains(&SymbolicBase::Word(**w))) {
                r.push(ReachedBytes::new(SymbolicBase::Word(*w), true, ByteSet::Unknown { reason }));
            }
            if !o.words.is_empty() {
                r.iter_mut().for_each(|x| x.several = true);
            }
        }
    }

    pub(super) fn reach(&self, eval: &mut Eval<'_>, k: usize) -> Vec<ReachedBytes> {
        let acc = &self.graph.accesses[k];
        let o = &self.origins[k];
        let mut r = Vec::new();
        match acc.target {
            Target::Address(_) | Target::Bulk(..) => {
                access_bytes(eval, acc, &mut r);
                self.named(k, &mut r);
            }
            Target::Made(ref made) => r = made_tensor(eval, acc, made),
            Target::TensorMap(..) | Target::Handle(..) | Target::Passed(_) | Target::Unknown(_) => {
                if !eval.reachable(acc.block) || acc.guard.is_some_and(|g| eval.ev_pred(g) == Cond::False) {
                    return r;
                }
                let reason = match acc.target {
                    Target::Unknown(r) => r,
                    Target::Passed(_) => Reason::Passed,
                    _ => Reason::Descriptor,
                };
                let extent = ByteSet::Unknown { reason };
                if let Target::TensorMap(map, coordinates) = &acc.target
                    && let Some(found) = tiles(eval, acc, *map, coordinates)
                {
                    return found;
                }
                if acc.is_tiled() {
                    // What the threads say of it may be more.
                    let tiles = Some(Box::new(Tiles { at: 0, axes: Vec::new(), exact: false }));
                    return vec![ReachedBytes { tiles, ..ReachedBytes::new(SymbolicBase::Unknown, false, extent) }];
                }
                // What is passed may be a number.
                let passed = matches!(acc.target, Target::Passed(_));
                let several = passed || o.words.len() + o.param_addresses.len() + o.symbols.len() > 1;
                let mut put = |base| r.push(ReachedBytes::new(base, several, extent.clone()));
                o.words.iter().for_each(|w| {
                    put(match acc.target {
                        Target::Handle(_, surface) => SymbolicBase::Handle(*w, surface),
                        _ => SymbolicBase::Word(*w),
                    });
                });
                let own = o.param_addresses.iter().filter(|w| **w < BEFORE);
                own.for_each(|w| put(SymbolicBase::ParamAddress(*w)));
                o.symbols.iter().for_each(|s| put(SymbolicBase::Symbol(*s)));
                // What else a call touches is an access of its own.
                if r.is_empty() && !passed {
                    r.push(ReachedBytes::new(SymbolicBase::Unknown, false, extent));
                }
            }
        }
        r
    }

    fn per_access(&self, launch: &LaunchArgs<'_>) -> Vec<Vec<ReachedBytes>> {
        let mut eval = self.eval(launch);
        (0..self.graph.accesses.len()).map(|k| self.reach(&mut eval, k)).collect()
    }

    /// The bytes that a launch reaches, evaluated now.
    pub(super) fn compute(&self, launch: &LaunchArgs<'_>) -> EvaluatedAccesses<ByteSet> {
        self.compute_in(Way::Plain, launch)
    }

    /// The same in this way.
    fn compute_in(&self, way: Way, launch: &LaunchArgs<'_>) -> EvaluatedAccesses<ByteSet> {
        let is_brief = way == Way::Brief;
        if !is_brief && let Some(found) = self.compute_by_block(launch) {
            return found;
        }
        let (mut eval, mut sets) = (self.eval(launch), AccessGroups::default());
        if is_brief {
            eval.atoms.budget = Budget::brief();
        }
        self.collect(&mut eval, &mut sets);
        AccessGroup::finish(sets)
    }

    /// Adds the bytes that an evaluation reaches to the groups.
    pub(super) fn collect(&self, eval: &mut Eval<'_>, sets: &mut AccessGroups) {
        for (k, acc) in self.graph.accesses.iter().enumerate() {
            self.reach(eval, k).into_iter().for_each(|r| sets.put(acc, r));
        }
    }

    /// Appends the accesses of a launch, and to `inputs` the parameter bytes that decided about
    /// them (values of bases excepted).
    pub(crate) fn evaluate(
        &self,
        launch: &LaunchArgs<'_>,
        out: &mut Vec<KernelAccess>,
        inputs: &mut Vec<Range<usize>>,
    ) {
        let ahead = self.ahead.take(launch);
        let by_thread = |found: &_| self.by_thread(launch, found);
        let kept = self.cache.get_or_evaluate(
            launch,
            self.address_words(),
            || self.by_block(launch).is_none(),
            |way| match &ahead {
                Some(ahead) => ahead.evaluated(way, || self.compute_in(way, launch)),
                None => replay::record(way, || self.compute_in(way, launch)),
            },
            |found| match &ahead {
                Some(ahead) => ahead.refined(found, by_thread),
                None => by_thread(found),
            },
        );
        if let Some(ahead) = &ahead {
            ahead.take_locks([&kept.locks, &kept.if_fenced]);
        }
        inputs.extend(kept.bytes());
        inputs.extend(self.resolve_all(&kept.result, (&kept.locks, &kept.if_fenced), launch, out));
    }

    /// Evaluates a launch whose turn has not come, if its turn will need that: see
    /// [`crate::ranges::memo::ahead`].
    pub(crate) fn evaluate_ahead(&self, launch: &LaunchArgs<'_>) {
        let own = self.ahead.own();
        let is_known = own.has(launch);
        if self.cache.has(launch) {
            if !is_known {
                own.keep_as(&self.cache);
            }
            return;
        }
        let Some(found) = (!is_known).then(|| self.ahead.open(launch)).flatten() else { return };
        let kept = own.get_or_evaluate(
            launch,
            self.address_words(),
            || self.by_block(launch).is_none(),
            |way| found.evaluated(way, || self.compute_in(way, launch)),
            |result| found.refined(result, |result| self.by_thread(launch, result)),
        );
        if self.ahead.is_closed(launch, &found) {
            return;
        }
        let places = [&kept.locks, &kept.if_fenced];
        let known = places.map(|locks| locks.get().is_some());
        self.resolve_all(&kept.result, (&kept.locks, &kept.if_fenced), launch, &mut Vec::new());
        // Those that were known are of another launch.
        let [locks, if_fenced] = places.map(|locks| locks.get().cloned());
        found.hand_over_locks([locks.filter(|_| !known[0]), if_fenced.filter(|_| !known[1])]);
    }

    pub(crate) fn evaluate_uncached(&self, launch: &LaunchArgs<'_>, out: &mut Vec<KernelAccess>) {
        let found = self.compute_finished(launch);
        let found = self.by_thread(launch, &found).map_or(found, |refined| refined.0);
        self.resolve_all(&found, (&OnceLock::new(), &OnceLock::new()), launch, out);
    }

    pub(crate) fn evaluate_by_forms(&self, launch: &LaunchArgs<'_>, out: &mut Vec<KernelAccess>) {
        let found = self.compute_finished(launch);
        self.resolve_all(&found, (&OnceLock::new(), &OnceLock::new()), launch, out);
    }

    pub(crate) fn evaluate_briefly(&self, launch: &LaunchArgs<'_>, out: &mut Vec<KernelAccess>) {
        let found = replay::record(Way::Brief, || self.compute_in(Way::Brief, launch)).result;
        self.resolve_all(&found, (&OnceLock::new(), &OnceLock::new()), launch, out);
    }

    /// Appends what some of the instructions may reach, as accesses of their own.
    pub(crate) fn evaluate_some(
        &self,
        launch: &LaunchArgs<'_>,
        which: impl Fn(AccessKind, u32) -> bool,
        out: &mut Vec<KernelAccess>,
    ) {
        let (mut eval, mut sets) = (self.eval(launch), AccessGroups::default());
        for (k, acc) in self.graph.accesses.iter().enumerate().filter(|(_, acc)| which(acc.kind, acc.at)) {
            self.reach(&mut eval, k).into_iter().for_each(|r| sets.put(acc, r));
        }
        for (kind, r, at) in AccessGroup::finish(sets) {
            out.extend(self.resolve(kind, &r.finished(Int::now), at, launch));
        }
    }

    fn compute_finished(&self, launch: &LaunchArgs<'_>) -> EvaluatedAccesses<Extent> {
        self.compute(launch).iter().map(|(kind, r, at)| (*kind, r.finished(Int::now), *at)).collect()
    }
}
