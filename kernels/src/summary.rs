//! The summary of one kernel: what it does through its parameter words, and its accesses in a given
//! launch.
//!
//! Owns the answers and their form on disk. `ranges` finds them. Does not know containers or
//! encodings.

use crate::effects::{
    AccessKind, Dependency, Extent, Gap, IndirectEffect, KernelAccess, LaunchArgs, Loss, Param, Reason, SymbolRef,
    Triggering, Triggers, WordEffect, WordExtent,
};
use crate::ir::cfg::Cfg;
use crate::ir::grid_wait::triggers;
use crate::ir::{
    FlagLoad, KernelIr, Sync, SystemFences, SystemLoads, SystemStores, UnfencedCopy, flag_loads, grid_wait,
    jump_threading,
};
use crate::ranges::{self, Analysis};
use crate::summary_cache::ResultsEntry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

/// The bytes of an extent that are surely touched, if they lie without gaps.
fn surely(extent: &Extent) -> Option<(i64, i64)> {
    let &Extent::Bounded { lo, hi, width, ref dims, exact: true, .. } = extent else { return None };
    let dense = dims
        .iter()
        .try_fold(u64::from(width), |bytes, d| (d.stride <= bytes).then(|| d.stride * (d.count - 1) + bytes));
    (dims.is_empty() || dense == u64::try_from(hi - lo).ok()).then_some((lo, hi))
}

/// One kernel, summarised.
#[derive(Debug, Serialize, Deserialize)]
pub struct Summary {
    name: String,
    params: Vec<Param>,
    symbols: Vec<String>,
    constants: Vec<SymbolRef>,
    dependency: Dependency,
    waits: Vec<u32>,
    triggers_at: Vec<u32>,
    triggers_last: bool,
    /// Of a kernel of which the launch decides which blocks trigger: see [`triggers`].
    triggers: Option<Box<Analysis>>,
    system_fences: SystemFences,
    system_loads: SystemLoads,
    system_stores: SystemStores,
    flag_loads: Vec<FlagLoad>,
    unfenced: Vec<UnfencedCopy>,
    partial_copies: bool,
    cluster: Option<[u32; 3]>,
    analysis: Analysis,
    #[serde(skip)]
    words: OnceLock<(Vec<WordEffect>, IndirectEffect)>,
    #[serde(skip)]
    keeper: Option<ResultsEntry>,
}

impl Summary {
    /// Summarises a lowered kernel.
    #[must_use]
    pub fn new(f: &KernelIr) -> Summary {
        let cfg = Cfg::new(f);
        let flag_loads = flag_loads::find(f, &cfg);
        let threaded = jump_threading::thread(f, &cfg);
        let (f, cfg) = match &threaded {
            Some(f) => (f, Cfg::new(f)),
            None => (f, cfg),
        };
        let triggering = triggers::blocks(f, &cfg);
        let (dependence, parted) = grid_wait::part(f);
        let [waits, triggers_at] = [Sync::GridWait, Sync::GridTrigger].map(|sync| grid_wait::places(f, sync));
        let triggers_last = triggers::are_last(f, &cfg);
        let (f, cfg) = match &parted {
            Some(f) => (f, Cfg::new(f)),
            None => (f, cfg),
        };
        let analysis = ranges::analyse(f, cfg);
        let (triggers, by_launch) = match triggering {
            triggers::Blocks::None => (Triggers::Never, None),
            triggers::Blocks::All => (dependence.triggers, None),
            triggers::Blocks::Some(f) => {
                let cfg = Cfg::new(&f);
                (dependence.triggers, Some(Box::new(ranges::analyse(&f, cfg))))
            }
        };
        let dependency = Dependency {
            waits: dependence.waits,
            accesses_early: analysis.early().next().is_some(),
            triggers,
            triggers_by_launch: by_launch.is_some(),
        };
        Summary {
            name: f.name.clone(),
            params: f.params.iter().map(|p| Param { offset: p.0, size: p.1 }).collect(),
            symbols: f.symbols.clone(),
            constants: f.constants.iter().map(|s| SymbolRef(s.0)).collect(),
            dependency,
            waits,
            triggers_at,
            triggers_last,
            triggers: by_launch,
            system_fences: f.system_fences.clone(),
            system_loads: f.system_loads,
            system_stores: f.system_stores.clone(),
            flag_loads,
            unfenced: f.unfenced.clone(),
            partial_copies: f.partial_copies,
            cluster: f.cluster,
            analysis,
            words: OnceLock::new(),
            keeper: None,
        }
    }

    /// Takes the results of earlier launches from disk, and remembers where to write later ones:
    /// see [`Summary::keep`].
    pub(crate) fn kept_by(mut self, keeper: ResultsEntry) -> Summary {
        if let Some(results) = keeper.load() {
            self.analysis.cache_mut().unpack(&results);
        }
        self.keeper = Some(keeper);
        self
    }

    /// Writes down what launches were evaluated to, if it came from a [`crate::Cache`] or went
    /// there and there is anything new. A process that launches the kernel alike will find it.
    pub fn keep(&self) {
        if let Some(keeper) = &self.keeper
            && let Some(results) = self.analysis.cache().pack()
        {
            keeper.store(&results);
        }
    }

    /// What is kept on disk. `None` when it can not be written down.
    pub(crate) fn packed(&self) -> Option<Vec<u8>> {
        // What it says of its words is found by evaluating made-up launches, which costs as much as
        // preparing.
        let words = self.words.get_or_init(|| self.find_words());
        postcard::to_allocvec(&(self, words)).ok()
    }

    /// What [`Summary::packed`] gave.
    pub(crate) fn unpacked(bytes: &[u8]) -> Option<Summary> {
        let ((summary, words), rest) =
            postcard::take_from_bytes::<(Summary, (Vec<WordEffect>, IndirectEffect))>(bytes).ok()?;
        rest.is_empty().then(|| Summary { words: OnceLock::from(words), ..summary })
    }

    /// How many launches got the bytes of others that differ from them in pointers only, as an
    /// upper bound: see `ranges/memo/relocated.rs`.
    #[must_use]
    pub fn relocated(&self) -> u64 {
        self.analysis.cache().relocated()
    }

    /// Mangled name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parameter layout as the code states it.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Name of a global variable that an access goes to.
    #[must_use]
    pub fn symbol(&self, s: SymbolRef) -> &str {
        self.symbols.get(s.0 as usize).map_or("", String::as_str)
    }

    /// Whether this is a `__constant__` variable of machine code, which instructions read from the
    /// constant bank.
    #[must_use]
    pub fn is_constant(&self, s: SymbolRef) -> bool {
        self.constants.contains(&s)
    }

    /// Effects per parameter word, ascending by offset: every pointer-sized word that some access
    /// derives from.
    #[must_use]
    pub fn words(&self) -> &[WordEffect] {
        &self.words.get_or_init(|| self.find_words()).0
    }

    /// Effects through addresses that come from no parameter word and no symbol.
    #[must_use]
    pub fn indirect(&self) -> IndirectEffect {
        self.words.get_or_init(|| self.find_words()).1
    }

    /// What the kernel does about programmatic dependent launch.
    #[must_use]
    pub fn dependency(&self) -> Dependency {
        self.dependency
    }

    /// Which blocks of a launch let dependent grids begin before they end.
    #[must_use]
    pub fn triggering(&self, launch: &LaunchArgs<'_>) -> Triggering {
        let Some(analysis) = &self.triggers else {
            return if self.dependency.triggers == Triggers::Never { Triggering::None } else { Triggering::All };
        };
        let mut bytes = Vec::new();
        analysis.evaluate(&self.in_clusters(launch), &mut bytes, &mut Vec::new());
        let blocks = launch.grid.iter().map(|n| i64::from(*n)).product::<i64>();
        let mut upto = 0;
        // Each of these says which blocks surely do; together they say it of all from the first on.
        let mut exact: Vec<(i64, i64)> = bytes.iter().filter_map(|access| surely(&access.extent)).collect();
        exact.sort_unstable();
        for (lo, hi) in exact.into_iter().filter(|(lo, hi)| lo < hi) {
            if lo <= upto {
                upto = upto.max(hi);
            }
        }
        match bytes.is_empty() {
            true => Triggering::None,
            false if upto >= blocks => Triggering::All,
            false => Triggering::Some,
        }
    }

    /// Its waits for the grids it depends on: byte offsets in its code section, or lines of PTX.
    #[must_use]
    pub fn waits(&self) -> &[u32] {
        &self.waits
    }

    /// Its triggers for dependent grids, counted likewise.
    #[must_use]
    pub fn triggers_at(&self) -> &[u32] {
        &self.triggers_at
    }

    /// Whether its blocks surely do no more once one of their threads has triggered.
    #[must_use]
    pub fn triggers_last(&self) -> bool {
        self.triggers_last
    }

    /// Whether it contains a fence of system scope, without which it can not hand data to the host
    /// or to kernels of other devices and processes while it runs (PTX ISA, memory consistency
    /// model).
    #[must_use]
    pub fn has_system_fence(&self) -> bool {
        self.system_fences != SystemFences::None
    }

    /// How those fences go with its atomic accesses.
    #[must_use]
    pub fn system_fences(&self) -> &SystemFences {
        &self.system_fences
    }

    /// Whether it loads atomically, with the scope of the system, what the host or other devices
    /// may store while it runs.
    #[must_use]
    pub fn has_system_loads(&self) -> bool {
        self.system_loads.some
    }

    /// Whether such a load may acquire what came before the store.
    #[must_use]
    pub fn acquires(&self) -> bool {
        self.system_loads.acquires
    }

    /// Whether it stores atomically, with the scope of the system, what the host or other devices
    /// may load while it runs; and whether it updates such words.
    #[must_use]
    pub fn system_stores(&self) -> (bool, bool) {
        (self.system_stores.writes, self.system_stores.updates)
    }

    /// Whether an atomic store or update by this instruction has too narrow a scope for the host
    /// and other devices, in a kernel that has others which reach these. `false` where a fence may
    /// make a message of it all the same.
    #[must_use]
    pub fn is_narrow_store(&self, at: u32) -> bool {
        self.system_stores.is_narrow(at)
    }

    /// Whether none of its atomic stores and updates has a scope beyond its device. `false` where a
    /// fence may make a message of one all the same.
    #[must_use]
    pub fn stores_within_device(&self) -> bool {
        self.system_stores.is_none()
    }

    /// The loads by which it polls flags.
    #[must_use]
    pub fn flag_loads(&self) -> &[FlagLoad] {
        &self.flag_loads
    }

    /// The bulk operations that read shared memory behind stores of its threads, without a fence
    /// between the proxies in between. Machine code only.
    #[must_use]
    pub fn unfenced_copies(&self) -> &[UnfencedCopy] {
        &self.unfenced
    }

    /// Blocks a cluster and axis, where the code fixes them. A launch of such a kernel need not say
    /// so (CUDA C++ Programming Guide, "Thread Block Clusters").
    #[must_use]
    pub fn cluster(&self) -> Option<[u32; 3]> {
        self.cluster
    }

    /// A launch with its clusters. Where the code fixes them, it need not name them (CUDA C++
    /// Programming Guide, "Thread Block Clusters").
    fn in_clusters<'a>(&self, launch: &LaunchArgs<'a>) -> LaunchArgs<'a> {
        let is_named = launch.cluster.iter().any(|n| *n > 1);
        let cluster = if is_named { launch.cluster } else { self.cluster.unwrap_or([1; 3]) };
        LaunchArgs { cluster, ..*launch }
    }

    /// Whether it contains asynchronous copies (`cp.async`) that may read less than their size and
    /// fill up with zeros.
    #[must_use]
    pub fn has_partial_copies(&self) -> bool {
        self.partial_copies
    }

    /// Number of memory instructions that may touch global memory.
    #[must_use]
    pub fn access_count(&self) -> usize {
        self.analysis.access_count()
    }

    #[cfg(test)]
    pub(crate) fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// Appends the accesses of one launch. Never fails: what is not known is marked as unknown in
    /// the extent or the base.
    pub fn evaluate(&self, launch: &LaunchArgs<'_>, out: &mut Vec<KernelAccess>) {
        self.evaluate_with_inputs(launch, out, &mut Vec::new());
    }

    /// The same, and appends to `inputs` which bytes of the parameters decide about the accesses,
    /// apart from the values of their bases. A launch of the same shape that agrees with this one
    /// in those bytes, and in what the bases hold, has the same accesses.
    pub fn evaluate_with_inputs(
        &self,
        launch: &LaunchArgs<'_>,
        out: &mut Vec<KernelAccess>,
        inputs: &mut Vec<Range<usize>>,
    ) {
        self.analysis.evaluate(&self.in_clusters(launch), out, inputs);
    }

    /// Finds out about a launch that [`Summary::evaluate`] will be asked about, on another thread.
    /// What that answers does not depend on this.
    pub fn evaluate_ahead(&self, launch: &LaunchArgs<'_>) {
        self.analysis.evaluate_ahead(&self.in_clusters(launch));
    }

    /// Appends what those of its atomic stores and updates may reach that have the scope of the
    /// system, of a kernel that has others. Of any other kernel it appends nothing, and answers
    /// `false`.
    pub fn evaluate_stores_for_host(&self, launch: &LaunchArgs<'_>, out: &mut Vec<KernelAccess>) -> bool {
        let stores = |kind: AccessKind| kind.is_atomic() && kind.writes();
        let mut all = self.analysis.origins().filter(|(kind, ..)| stores(*kind));
        let has_others = all.any(|(_, at, _)| self.is_narrow_store(at));
        if has_others {
            let reaches_host = |kind: AccessKind, at| stores(kind) && !self.is_narrow_store(at);
            self.analysis.evaluate_some(&self.in_clusters(launch), reaches_host, out);
        }
        has_others
    }

    /// The same without any results of earlier launches. Slow; tests compare
    /// [`Summary::evaluate`] with it.
    pub fn evaluate_uncached(&self, launch: &LaunchArgs<'_>, out: &mut Vec<KernelAccess>) {
        self.analysis.evaluate_uncached(&self.in_clusters(launch), out);
    }

    /// The same from forms alone: small launches are not followed thread by thread besides. For
    /// tests, in which most launches are small.
    pub fn evaluate_by_forms(&self, launch: &LaunchArgs<'_>, out: &mut Vec<KernelAccess>) {
        self.analysis.evaluate_by_forms(&self.in_clusters(launch), out);
    }

    /// The same by a brief evaluation, which new launches get from a kernel that has cost too much.
    /// For tests.
    pub fn evaluate_briefly(&self, launch: &LaunchArgs<'_>, out: &mut Vec<KernelAccess>) {
        self.analysis.evaluate_briefly(&self.in_clusters(launch), out);
    }

    /// Whether an instruction of [`Self::instructions`] is an update that answers nothing.
    pub fn is_mute(&self, at: u32) -> bool {
        self.system_stores.is_mute(at)
    }

    /// Every instruction that may touch global memory: what it does, where it is (see [`Gap::at`]),
    /// and the parameter words that its address derives from, ascending; none when the address
    /// comes from elsewhere.
    pub fn instructions(&self) -> impl Iterator<Item = (AccessKind, u32, Vec<u16>)> {
        let own = self.analysis.origins().filter(|(_, _, o)| !o.made);
        own.map(|(kind, at, o)| (kind, at, o.words.iter().copied().collect()))
    }

    /// Those of them that threads come to which have not waited for the grids that the kernel
    /// depends on: see [`KernelAccess::early`].
    pub fn early_instructions(&self) -> impl Iterator<Item = (AccessKind, u32)> {
        self.analysis.early()
    }

    /// What keeps accesses of this kind through this parameter word (any, when it is `None`) from
    /// being exact: first those of the instruction `at`, then the others in the order of the code.
    /// `None` when the code shows nothing.
    #[must_use]
    pub fn loss(&self, kind: AccessKind, word: Option<u16>, at: u32) -> Option<Loss> {
        self.analysis.loss(kind, word, at)
    }

    fn find_words(&self) -> (Vec<WordEffect>, IndirectEffect) {
        let mut words: BTreeMap<u16, WordEffect> = BTreeMap::new();
        let mut indirect = IndirectEffect::default();
        let gaps = self.analysis.trial(&self.params);
        for (gap, (kind, at, o)) in gaps.into_iter().zip(self.analysis.origins()) {
            // Which of the maps that the kernel makes a copy is made by shows in a launch.
            if o.made {
                continue;
            }
            for w in &o.words {
                let e = words.entry(*w).or_insert(WordEffect {
                    offset: *w,
                    reads: false,
                    writes: false,
                    atomic: false,
                    extent: WordExtent::Affine,
                    why: None,
                });
                match kind {
                    _ if kind.is_atomic() => e.atomic = true,
                    _ if kind.writes() => e.writes = true,
                    _ => e.reads = true,
                }
                if gap.is_some() {
                    e.extent = WordExtent::Unknown;
                    e.why = e.why.or(gap);
                }
            }
            if !o.has_base() && !o.window {
                indirect.add(kind, gap.unwrap_or(Gap { reason: o.unknown.unwrap_or(Reason::Loaded), at }));
            }
        }
        (words.into_values().collect(), indirect)
    }
}
