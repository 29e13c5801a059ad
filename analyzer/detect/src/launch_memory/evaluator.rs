//! From a launch to its effects, with every layer of memory in between.
//!
//! Owns the kernels of one process ([`KernelCode`], read at the first launch), their parameter
//! masks, the [`LaunchCache`], and the tallies of repeated launches. Does not know how code is read
//! ([`crate::launches::image_reader`]), nor which allocation the bytes belong to
//! ([`crate::accesses`]).

use crate::coverage::Unplaced;
use crate::exact::fences::MeasuredOrder;
use crate::exact::measured::kind;
use crate::exact::scopes;
use crate::launch_memory::launch_cache::{CachedLaunch, LaunchCache};
use crate::launch_memory::launch_key::LaunchKey;
use crate::launch_memory::replay::ReplayLog;
use crate::launches::dependence::Dependence;
use crate::launches::effects::{Effect, EffectBase, Evaluated, Knowledge, Launch, Outline};
use crate::launches::kernel_code::{CodeReader, KernelCode};
use crate::launches::param_mask::{Masks, ParamUse};
use crate::memory::{AccessKind, Allocations, TensorMaps};
use crate::state::names::KernelDef;
use kernels::{FlagLoad, LoadScope, Reason, UnfencedCopy};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use trace::{ExactRun, KernelId, Op};

/// What repeated launches count as. Launches with equal tallies share one counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tally {
    /// The kernel.
    pub kernel: KernelId,
    /// How well their accesses are known.
    pub known: Outline,
    /// Accesses of each launch at addresses in no allocation.
    pub unplaced: Unplaced,
    /// Whether an address was computed from several words that point into allocations.
    pub several: bool,
}

/// All code of one process.
pub struct LaunchEvaluator {
    reader: Box<dyn CodeReader>,
    kernels: FxHashMap<KernelId, Result<Box<dyn KernelCode>, Arc<str>>>,
    masks: Masks,
    cached: LaunchCache,
    nothing: Arc<Evaluated>,
    tallies: FxHashMap<Tally, u32>,
    /// Repetitions of each tally since the last [`LaunchEvaluator::counted`].
    counts: Vec<u64>,
    /// All repeated launches.
    repeats: u64,
    /// The kernels that are taken not to wait for the grids they depend on.
    without_wait: FxHashSet<KernelId>,
}

impl LaunchEvaluator {
    /// Reads code with `reader`.
    pub fn new(reader: Box<dyn CodeReader>) -> Self {
        Self {
            reader,
            kernels: FxHashMap::default(),
            masks: Masks::default(),
            cached: LaunchCache::default(),
            nothing: Arc::new(Evaluated::nothing()),
            tallies: FxHashMap::default(),
            counts: Vec::new(),
            repeats: 0,
            without_wait: FxHashSet::default(),
        }
    }

    /// What a kernel does about programmatic dependent launch. A kernel without readable code is
    /// taken to wait, which is what the launch attribute is for, and to trigger.
    pub fn dependence(&mut self, id: KernelId, def: Option<&KernelDef>, arch: Option<u32>) -> Dependence {
        let known = self.kernel(id, def, arch).as_ref().map_or(Dependence::UNKNOWN, |code| code.dependency().into());
        self.supposed(id, known)
    }

    /// From now on these kernels count as if they did not wait for the grids they depend on.
    pub fn suppose_without_wait(&mut self, kernels: FxHashSet<KernelId>) {
        self.without_wait = kernels;
    }

    fn supposed(&self, id: KernelId, known: Dependence) -> Dependence {
        if self.without_wait.contains(&id) { known.without_wait() } else { known }
    }

    /// Whether the launch decides whether a kernel lets dependent ones begin.
    pub fn triggers_by_launch(&mut self, id: KernelId, def: Option<&KernelDef>, arch: Option<u32>) -> bool {
        self.kernel(id, def, arch).as_ref().is_ok_and(|code| code.dependency().triggers_by_launch)
    }

    /// The same of one launch, which may decide whether the kernel triggers.
    pub fn dependence_in(
        &mut self,
        (id, def, arch): (KernelId, Option<&KernelDef>, Option<u32>),
        launch: &Launch<'_>,
    ) -> Dependence {
        let Ok(code) = self.kernel(id, def, arch).as_ref() else { return Dependence::UNKNOWN };
        let dependency = code.dependency();
        let known = Dependence::from(dependency);
        let known = if dependency.triggers_by_launch { known.of_launch(code.triggering(launch)) } else { known };
        self.supposed(id, known)
    }

    /// Whether a kernel may communicate with kernels of other processes while it runs. A kernel
    /// without readable code may.
    pub fn signals(&mut self, id: KernelId, def: Option<&KernelDef>, arch: Option<u32>) -> bool {
        self.kernel(id, def, arch).as_ref().map_or(true, |code| code.signals())
    }

    /// The loads of a launch by which it polls flags in memory that other processes have too, and
    /// that are too weak for that: too narrow, or without an acquire behind them.
    pub fn weak_flags(
        &mut self,
        (id, def, arch): (KernelId, Option<&KernelDef>, Option<u32>),
        launch: &Evaluated,
        memory: &Allocations,
    ) -> Vec<FlagLoad> {
        let Ok(code) = self.kernel(id, def, arch).as_ref() else { return Vec::new() };
        let is_shared = |e: &Effect| e.first().is_some_and(|address| memory.is_shared(address));
        let is_weak = |flag: &&FlagLoad| flag.scope != LoadScope::System || flag.data.is_some();
        let of = |flag: &&FlagLoad| launch.effects.iter().any(|e| e.at == flag.at && !e.kind.writes() && is_shared(e));
        code.flag_loads().iter().filter(is_weak).filter(of).copied().collect()
    }

    /// The loads of a launch by which it waits for a flag that it does not write itself, with an
    /// acquire behind them: what comes after is ordered behind whatever set the flag.
    pub fn polls(
        &mut self,
        (id, def, arch): (KernelId, Option<&KernelDef>, Option<u32>),
        launch: &Evaluated,
    ) -> Vec<u32> {
        let Ok(code) = self.kernel(id, def, arch).as_ref() else { return Vec::new() };
        let acquires = |flag: &&FlagLoad| flag.scope >= LoadScope::Device && flag.data.is_none();
        let is_made = |flag: &&FlagLoad| {
            let load = launch.effects.iter().find(|e| e.at == flag.at && !e.kind.writes());
            load.is_some_and(|load| !launch.effects.iter().any(|e| e.kind.writes() && e.may_touch(load)))
        };
        code.flag_loads().iter().filter(acquires).filter(is_made).map(|flag| flag.at).collect()
    }

    /// Whether a launch may wait for kernels of other processes otherwise than by the loads that
    /// [`LaunchEvaluator::polls`] tells of. A kernel without readable code may. One that has no
    /// fence of system scope has no order with other devices, and one that loads nothing atomically
    /// waits for nothing.
    pub fn waits_unseen(
        &mut self,
        (id, def, arch): (KernelId, Option<&KernelDef>, Option<u32>),
        memory: &Allocations,
        launch: &Evaluated,
    ) -> bool {
        let Ok(code) = self.kernel(id, def, arch).as_ref() else { return true };
        if !code.signals() {
            return false;
        }
        // What polls memory of the process itself may be told by another kernel that polls.
        let private = |flag: &FlagLoad| {
            let load = launch.effects.iter().find(|e| e.at == flag.at && !e.kind.writes());
            load.is_some_and(|e| e.first().is_none_or(|address| !memory.is_shared(address)))
        };
        let flags = code.flag_loads();
        let known: Vec<u32> = flags.iter().filter(|flag| !private(flag)).map(|flag| flag.at).collect();
        code.may_wait_besides(&known)
    }

    /// Whether a launch that accesses this communicates with nobody though its kernel may: it makes
    /// no access of those that the kernel does it by.
    pub fn is_mute(
        &mut self,
        (id, def, arch): (KernelId, Option<&KernelDef>, Option<u32>),
        launch: &Evaluated,
    ) -> bool {
        let Some(kinds) = self.signals_by((id, def, arch)) else { return false };
        // A call that is not followed may do it in other ways.
        let followed = |e: &Effect| !matches!(e.why, Some(Reason::Call | Reason::Launches | Reason::Instruction));
        let is_mute = |e: &Effect| {
            let null = matches!(e.base, EffectBase::Param(_, 0));
            followed(e) && (null || !kinds.contains(&e.kind))
        };
        launch.knowledge != Knowledge::Unknown && launch.effects.iter().all(is_mute)
    }

    /// The same of a launch whose bytes were measured. Only a simulated GPU (`told`) tells atomic
    /// loads and stores from others, and what the launch ordered.
    pub fn was_mute(
        &mut self,
        kernel: (KernelId, Option<&KernelDef>, Option<u32>),
        runs: &[ExactRun],
        told: bool,
        order: Option<&MeasuredOrder>,
    ) -> bool {
        let (id, def, arch) = kernel;
        if order.is_some_and(|order| order.tells_nobody(runs)) {
            return self.signals(id, def, arch);
        }
        let Some(kinds) = self.signals_by(kernel) else { return false };
        (told || kinds == [AccessKind::Atomic]) && !runs.iter().any(|run| kinds.contains(&kind(run)))
    }

    /// The kinds of atomic accesses by which a kernel communicates. `None`: it may do so in other
    /// ways, or never does.
    fn signals_by(&mut self, (id, def, arch): (KernelId, Option<&KernelDef>, Option<u32>)) -> Option<Vec<AccessKind>> {
        let code = self.kernel(id, def, arch).as_ref().ok()?;
        if code.signals() { code.signals_by() } else { None }
    }

    /// See [`KernelCode::loads_from_host`]. A kernel without readable code may.
    pub fn loads_from_host(
        &mut self,
        (id, def, arch): (KernelId, Option<&KernelDef>, Option<u32>),
        bytes: u64,
    ) -> bool {
        self.kernel(id, def, arch).as_ref().map_or(true, |code| code.loads_from_host(bytes))
    }

    /// See [`KernelCode::stores_for_host`]. A kernel without readable code may.
    pub fn stores_for_host(
        &mut self,
        (id, def, arch): (KernelId, Option<&KernelDef>, Option<u32>),
        kind: AccessKind,
    ) -> bool {
        self.kernel(id, def, arch).as_ref().map_or(true, |code| code.stores_for_host(kind))
    }

    /// Whether no atomic store of this launch has a scope beyond its device: all its code is known,
    /// and none does.
    pub fn stores_within_device(
        &mut self,
        (id, def, arch): (KernelId, Option<&KernelDef>, Option<u32>),
        known: &Evaluated,
    ) -> bool {
        scopes::knows_stores(known) && self.kernel(id, def, arch).as_ref().is_ok_and(|code| code.stores_within_device())
    }

    /// See [`KernelCode::listens`]. A kernel without readable code may.
    pub fn listens(&mut self, id: KernelId, def: Option<&KernelDef>, arch: Option<u32>) -> bool {
        self.kernel(id, def, arch).as_ref().map_or(true, |code| code.listens())
    }

    /// Whether asynchronous copies of a kernel may read less than their size. Those of a kernel
    /// without readable code may.
    pub fn copies_in_part(&mut self, id: KernelId, def: Option<&KernelDef>, arch: Option<u32>) -> bool {
        self.kernel(id, def, arch).as_ref().map_or(true, |code| code.copies_in_part())
    }

    /// See [`KernelCode::identity`].
    pub fn identity(&mut self, id: KernelId, def: Option<&KernelDef>, arch: Option<u32>) -> Option<u64> {
        self.kernel(id, def, arch).as_ref().ok()?.identity()
    }

    fn kernel(
        &mut self,
        id: KernelId,
        def: Option<&KernelDef>,
        arch: Option<u32>,
    ) -> &Result<Box<dyn KernelCode>, Arc<str>> {
        let reader = &mut self.reader;
        self.kernels.entry(id).or_insert_with(|| match (def, arch) {
            (None, _) => Err("the kernel was never defined".into()),
            (Some(def), _) if def.image.is_none() => Err("the code image is not known".into()),
            (_, None) => Err("the device is not known".into()),
            (Some(def), Some(arch)) => {
                let placed = |mut code: Box<dyn KernelCode>| {
                    code.recorded_as(&def.params);
                    code
                };
                reader.read(def.image, &def.name, arch).map(placed).map_err(Into::into)
            }
        })
    }

    /// Forgets where accesses went, so that launches are looked up in another state of memory.
    pub fn forget_places(&mut self) {
        self.cached.each(|cached| cached.replay = None);
    }

    /// See [`CodeReader::replaced`].
    pub fn replaced(&self) -> Vec<String> {
        self.reader.replaced()
    }

    /// Takes the definition of an image.
    pub fn image(&mut self, op: &Op<'_>) {
        self.reader.image(op);
    }

    /// The same, of a definition that is a part of these bytes.
    pub fn image_within(&mut self, op: &Op<'_>, whole: &Arc<Vec<u8>>) {
        self.reader.image_within(op, whole);
    }

    /// See [`KernelCode::is_ptx`]; `None` too for a kernel whose code was not read.
    pub fn is_ptx(&self, kernel: KernelId) -> Option<bool> {
        self.kernels.get(&kernel)?.as_ref().ok()?.is_ptx()
    }

    /// See [`KernelCode::waits`].
    pub fn waits(&self, kernel: KernelId) -> Vec<u32> {
        self.kernels.get(&kernel).and_then(|code| code.as_ref().ok()).map_or_else(Vec::new, |code| code.waits())
    }

    /// See [`KernelCode::unfenced_copies`].
    pub fn unfenced_copies(&self, kernel: KernelId) -> &[UnfencedCopy] {
        self.kernels.get(&kernel).and_then(|code| code.as_ref().ok()).map_or(&[], |code| code.unfenced_copies())
    }

    /// See [`KernelCode::triggers_at`].
    pub fn triggers_at(&self, kernel: KernelId) -> Vec<u32> {
        self.kernels.get(&kernel).and_then(|code| code.as_ref().ok()).map_or_else(Vec::new, |code| code.triggers_at())
    }

    /// See [`KernelCode::triggers_last`].
    pub fn triggers_last(&self, kernel: KernelId) -> bool {
        self.kernels.get(&kernel).and_then(|code| code.as_ref().ok()).is_some_and(|code| code.triggers_last())
    }

    /// File and line of a kernel's memory instruction, when its code has a line table.
    pub fn line(&mut self, def: &KernelDef, arch: u32, at: u32) -> Option<(String, u32)> {
        self.reader.line(def.image, &def.name, arch, at).filter(|_| at != 0)
    }

    /// See [`CodeReader::outer_line`].
    pub fn outer_line(&mut self, def: &KernelDef, arch: u32, at: u32) -> Option<(String, u32)> {
        self.reader.outer_line(def.image, &def.name, arch, at)
    }

    /// See [`KernelCode::loss`].
    pub fn loss(&self, kernel: KernelId, kind: AccessKind, param: Option<u32>, at: u32) -> Option<kernels::Loss> {
        self.kernels.get(&kernel)?.as_ref().ok()?.loss(kind, param, at)
    }

    /// How many launches have the bytes of others that differ in pointers only.
    pub fn relocated(&self) -> u64 {
        self.kernels.values().flatten().map(|code| code.relocated()).sum()
    }

    /// Writes the evaluations of this run to the cache on disk.
    pub fn keep(&self) {
        self.kernels.values().flatten().for_each(|code| code.keep());
    }

    /// Why the code of a kernel could not be read.
    pub fn reason(&self, kernel: KernelId) -> Option<&str> {
        self.kernels.get(&kernel).and_then(|k| k.as_ref().err()).map(|r| &**r)
    }

    /// The key of a launch.
    #[inline(always)]
    pub fn key(&self, kernel: KernelId, l: &Launch<'_>) -> LaunchKey {
        let words = LaunchKey::shape(kernel, l);
        LaunchKey { hash: LaunchKey::mixed(&words, l.params, self.masks.get(kernel)), words }
    }

    /// The accesses of a launch. The key changes when this evaluation is the first to depend on
    /// some parameter bytes.
    pub fn evaluate(
        &mut self,
        key: &mut LaunchKey,
        def: Option<&KernelDef>,
        arch: Option<u32>,
        l: &Launch<'_>,
        maps: &TensorMaps,
    ) -> Arc<Evaluated> {
        if let Some(cached) = self.cached(key, l) {
            return Arc::clone(&cached.result);
        }
        let code = self.kernel(key.kernel(), def, arch);
        let (mut effects, mut usage) = (Vec::new(), ParamUse::default());
        let Ok(code) = code else { return Arc::clone(&self.nothing) };
        code.evaluate_noting_use(l, maps, &mut effects, &mut usage);
        let result = Arc::new(Evaluated::of(effects, &**code));
        let mask = self.masks.grow(key.kernel(), &usage, l.params.len());
        key.hash = LaunchKey::mixed(&key.words, l.params, Some(&mask));
        let (words, params) = (key.words, l.params.into());
        self.cached.put(key.hash, CachedLaunch { words, params, mask, replay: None, result: Arc::clone(&result) });
        result
    }

    /// The hash of a launch that is fed later. Prefetches its cache entry.
    #[inline(always)]
    pub fn prefetch(&self, kernel: KernelId, l: &Launch<'_>) -> u64 {
        let hash = self.key(kernel, l).hash;
        self.cached.fetch(hash);
        hash
    }

    #[inline(always)]
    fn cached(&mut self, key: &LaunchKey, l: &Launch<'_>) -> Option<&mut CachedLaunch> {
        match self.cached.get_mut(key.hash) {
            Some(cached) if cached.is(key, l.params) => Some(cached),
            _ => None,
        }
    }

    /// The replay log of a launch that was evaluated before.
    #[inline(always)]
    pub fn replay_log(&mut self, key: &LaunchKey, l: &Launch<'_>) -> Option<&mut ReplayLog> {
        self.cached(key, l)?.replay.as_mut()
    }

    /// Launches that were replayed and not looked up again.
    pub fn repeats(&self) -> u64 {
        self.repeats
    }

    /// The number of a tally.
    pub fn tally(&mut self, tally: Tally) -> u32 {
        *self.tallies.entry(tally).or_insert_with(|| {
            self.counts.push(0);
            self.counts.len() as u32 - 1
        })
    }

    /// Counts a repeated launch.
    #[inline]
    pub fn count(&mut self, tally: u32) {
        self.counts[tally as usize] += 1;
        self.repeats += 1;
    }

    /// The repetitions of each tally since the last call.
    pub fn counted(&mut self) -> Vec<(Tally, u64)> {
        let counts = &mut self.counts;
        self.tallies.iter().map(|(tally, number)| (*tally, std::mem::take(&mut counts[*number as usize]))).collect()
    }

    /// Stores the replay log of a launch that was just evaluated.
    pub fn store_replay(&mut self, key: &LaunchKey, l: &Launch<'_>, replay: Option<ReplayLog>) {
        if let Some(cached) = self.cached(key, l) {
            cached.replay = replay;
        }
    }
}
