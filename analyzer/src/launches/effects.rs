//! From a launch to the bytes it touches.
//!
//! Owns: code images (read when a kernel of theirs is first launched), one summary a kernel, and
//! what is assumed when nothing is known. The analysis of code itself is the crate `kernels`,
//! behind [`KernelCode`]; which launches are remembered is the matter of `seen`.

use crate::launch_memory::launch_cache::{CachedLaunch, LaunchCache};
use crate::launch_memory::launch_key::LaunchKey;
use crate::launch_memory::replay::ReplayLog;
use crate::launches::coalesce::unite;
use crate::launches::param_mask::{Masks, ParamUse};
use crate::memory::{AccessKind, Dim, Extent, Precision};
use crate::state::names::KernelDef;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use trace::{ImageId, KernelId, Op};

/// A kernel launch, as far as its accesses depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launch<'a> {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads a block.
    pub block: [u32; 3],
    /// Blocks a cluster; zeros when there are none.
    pub cluster: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub shared: u32,
    /// The parameter buffer.
    pub params: &'a [u8],
}

/// What an access starts from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EffectBase {
    /// An 8-byte word of the parameters: its byte offset and its value.
    Param(u32, u64),
    /// The same, but the address is made of several words: if this one points into no allocation,
    /// it is a scalar.
    Maybe(u32, u64),
    /// A `__device__` variable.
    Global(Arc<str>),
    /// A texture or surface object: byte offset of its handle among the parameters, and the handle.
    Handle(u32, u64),
    /// Some texture, surface or tensor that is not known.
    Object,
    /// A texture or surface object that one of these words of the parameters holds (byte offset,
    /// value).
    SomeHandle(Box<[(u32, u64)]>),
    /// A word of a tensor map among the parameters, one of which is the tensor's address: byte
    /// offset and value.
    Tensor(u32, u64),
    /// A fixed address.
    Absolute(u64),
    /// The addresses that a table holds: see [`PointerTable`]. Bytes count from each of them.
    PointerTable(PointerTable),
    /// An address that comes out of memory, or nobody knows where from.
    Unknown,
}

/// Words of a table of pointers in device memory, all of which a kernel uses as addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PointerTable {
    /// The 8-byte word of the parameters that points to the table: its byte offset.
    pub param: u32,
    /// Its value.
    pub value: u64,
    /// Address of the first word used.
    pub first: u64,
    /// Bytes from one to the next.
    pub stride: u64,
    /// How many.
    pub count: u64,
}

/// Which bytes, as absolute addresses (offsets for [`EffectBase::Global`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EffectExtent {
    /// Between `lo` and `hi` (exclusive): runs of `width` bytes along `dims` from `lo`.
    Known {
        /// Lowest byte.
        lo: u64,
        /// One past the highest byte.
        hi: u64,
        /// Bytes of one run.
        width: u64,
        /// Repetitions of the run.
        dims: Vec<Dim>,
        /// Whether exactly these bytes are touched; otherwise no others are.
        exact: bool,
    },
    /// Some bytes of an interval, picked by data (measured, but too many pieces to keep apart).
    Among {
        /// Lowest byte.
        lo: u64,
        /// One past the highest byte.
        hi: u64,
    },
    /// Only the base is known.
    Unknown,
    /// Only the base is known, because the rest is data: an index that the kernel loads.
    Scattered,
}

impl EffectExtent {
    /// Makes one run of runs that join up, so that it need not be done anew for every launch.
    fn join(&mut self) {
        if let Self::Known { lo, width, dims, exact: true, .. } = self {
            let joined = Extent::pattern(*lo, *width, dims, *lo, Precision::Exact);
            if joined.is_dense() && joined.precision == Precision::Exact && !joined.is_empty() {
                (*width, *dims) = (joined.bytes(), Vec::new());
            }
        }
    }
}

/// One access of a launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// What it starts from.
    pub base: EffectBase,
    /// Read, write or atomic.
    pub kind: AccessKind,
    /// Which bytes.
    pub bytes: EffectExtent,
    /// The memory instruction: byte offset in the kernel's code section, or line of PTX.
    pub at: u32,
    /// Why the bytes are not known; empty when they are.
    pub why: &'static str,
    /// A read of a `__constant__` variable by its own instructions.
    pub constant: bool,
}

impl Effect {
    /// An effect of no known instruction.
    pub fn new(base: EffectBase, kind: AccessKind, bytes: EffectExtent) -> Self {
        Self { base, kind, bytes, at: 0, why: "", constant: false }
    }

    /// Whether it is missing from the ranges of its launch.
    fn open(&self) -> bool {
        matches!(self.bytes, EffectExtent::Unknown | EffectExtent::Scattered)
            && !matches!(
                self.base,
                EffectBase::Unknown | EffectBase::PointerTable(_) | EffectBase::Handle(..) | EffectBase::SomeHandle(_)
            )
    }
}

/// Where the analysis of a kernel gave up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Gap {
    /// The first thing that was not understood.
    pub reason: &'static str,
    /// The memory instruction: byte offset in the kernel's code section, or line of PTX.
    pub at: u32,
}

/// What is known of a kernel.
pub trait KernelCode: Send {
    /// Appends the accesses of one launch.
    fn evaluate(&self, launch: &Launch<'_>, effects: &mut Vec<Effect>);
    /// The same, and the bytes of its parameters that the accesses rest on: launches of the same
    /// shape that agree in those have the same.
    fn evaluate_noting_use(&self, launch: &Launch<'_>, effects: &mut Vec<Effect>, rests: &mut ParamUse) {
        self.evaluate(launch, effects);
        rests.use_everything();
    }
    /// Whether some addresses come out of memory, so that the accesses behind them are not among
    /// the effects.
    fn indirect(&self) -> bool;
    /// The same for one launch, by its effects; those through tables of pointers do not count, for
    /// they may be followed.
    fn indirect_in(&self, effects: &[Effect]) -> bool {
        let _ = effects;
        self.indirect()
    }
    /// Where the first of those is.
    fn indirect_gap(&self) -> Option<Gap> {
        None
    }
    /// A hash of its code, if that shows that all launches that agree in shape and parameters touch
    /// the same bytes.
    fn identity(&self) -> Option<u64> {
        None
    }
    /// Whether the kernel waits for the grids it depends on (`griddepcontrol.wait`) before it does
    /// anything.
    fn waits(&self) -> bool;
    /// Whether the kernel may talk to kernels of other processes while it runs.
    fn signals(&self) -> bool {
        false
    }
    /// Whether asynchronous copies of the kernel may read less than their size.
    fn copies_in_part(&self) -> bool {
        false
    }
    /// Keeps for later runs what launches were evaluated to.
    fn keep(&self) {}
}

/// Makes [`KernelCode`] out of code images.
pub trait CodeReader: Send {
    /// The kernel of this name in an image, for a compute capability (major * 10 + minor). An error
    /// is a short reason.
    fn read(&mut self, image: ImageId, kernel: &str, arch: u32) -> Result<Box<dyn KernelCode>, String>;
    /// Takes the definition of an image.
    fn image(&mut self, op: &Op<'_>);
    /// File and line of a kernel's instruction (see [`Effect::at`]), when its code has a line
    /// table. Slow: for reports only.
    fn line(&mut self, image: ImageId, kernel: &str, arch: u32, at: u32) -> Option<(String, u32)> {
        let _ = (image, kernel, arch, at);
        None
    }
}

/// How well a launch is known; the variants are the columns of the coverage line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Knowledge {
    /// Every extent is exact or bounded.
    Exact,
    /// Reads and writes are told apart, some extents are unknown.
    KindsOnly,
    /// Nothing: see [`LaunchEvaluator::pointers`].
    Unknown,
}

/// The accesses of one launch.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// The accesses; empty when `knowledge` is [`Knowledge::Unknown`].
    pub effects: Vec<Effect>,
    /// How well the launch is known.
    pub knowledge: Knowledge,
    /// Whether accesses through loaded addresses are missing.
    pub indirect: bool,
    /// Whether every extent is exact, none only an upper bound.
    pub exact: bool,
    /// Where the first unknown extent is.
    pub gap: Option<Gap>,
    /// Where the first address that comes out of memory is.
    pub indirect_gap: Option<Gap>,
}

/// What is counted of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Outline {
    /// See [`Evaluated`].
    pub knowledge: Knowledge,
    /// See [`Evaluated`].
    pub indirect: bool,
    /// See [`Evaluated`].
    pub exact: bool,
    /// See [`Evaluated`].
    pub gap: Option<Gap>,
    /// See [`Evaluated`].
    pub indirect_gap: Option<Gap>,
}

/// What is counted of launches that come again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tally {
    /// The kernel.
    pub kernel: KernelId,
    /// What is known of them.
    pub known: Outline,
    /// Accesses of each at addresses in no allocation.
    pub unknown_memory: u64,
    /// Whether some address was made of several words that point into allocations.
    pub several: bool,
}

impl Evaluated {
    /// What is counted of it.
    pub fn outline(&self) -> Outline {
        let Self { knowledge, indirect, exact, gap, indirect_gap, .. } = *self;
        Outline { knowledge, indirect, exact, gap, indirect_gap }
    }

    fn nothing() -> Self {
        let (effects, knowledge) = (Vec::new(), Knowledge::Unknown);
        Self { effects, knowledge, indirect: false, exact: false, gap: None, indirect_gap: None }
    }

    fn of(mut effects: Vec<Effect>, code: &dyn KernelCode) -> Self {
        effects.iter_mut().for_each(|e| e.bytes.join());
        unite(&mut effects);
        let gap = effects.iter().find(|e| e.open()).map(|e| Gap { reason: e.why, at: e.at });
        let knowledge = if gap.is_some() { Knowledge::KindsOnly } else { Knowledge::Exact };
        let exact = gap.is_none()
            && effects
                .iter()
                .all(|e| !matches!(e.bytes, EffectExtent::Known { exact: false, .. } | EffectExtent::Among { .. }));
        let indirect = code.indirect_in(&effects);
        Self { effects, knowledge, indirect, exact, gap, indirect_gap: code.indirect_gap() }
    }
}

/// All code of one process.
pub struct LaunchEvaluator {
    reader: Box<dyn CodeReader>,
    kernels: FxHashMap<KernelId, Result<Box<dyn KernelCode>, Arc<str>>>,
    masks: Masks,
    seen: LaunchCache,
    nothing: Arc<Evaluated>,
    tallies: FxHashMap<Tally, u32>,
    /// How often the launches of each have come again.
    counts: Vec<u64>,
}

impl LaunchEvaluator {
    /// Reads code with `reader`.
    pub fn new(reader: Box<dyn CodeReader>) -> Self {
        Self {
            reader,
            kernels: FxHashMap::default(),
            masks: Masks::default(),
            seen: LaunchCache::default(),
            nothing: Arc::new(Evaluated::nothing()),
            tallies: FxHashMap::default(),
            counts: Vec::new(),
        }
    }

    /// Whether a kernel waits for the grids it depends on. Kernels that nothing is known of are
    /// taken to do so: it is what the launch attribute is for.
    pub fn waits(&mut self, id: KernelId, def: Option<&KernelDef>, arch: Option<u32>) -> bool {
        self.kernel(id, def, arch).as_ref().map_or(true, |code| code.waits())
    }

    /// Whether a kernel may talk to kernels of other processes while it runs. One that nothing is
    /// known of may.
    pub fn signals(&mut self, id: KernelId, def: Option<&KernelDef>, arch: Option<u32>) -> bool {
        self.kernel(id, def, arch).as_ref().map_or(true, |code| code.signals())
    }

    /// Whether asynchronous copies of a kernel may read less than their size. Those of one that
    /// nothing is known of may.
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
            (Some(def), Some(arch)) => reader.read(def.image, &def.name, arch).map_err(Into::into),
        })
    }

    /// Takes the definition of an image.
    pub fn image(&mut self, op: &Op<'_>) {
        self.reader.image(op);
    }

    /// File and line of a kernel's memory instruction, when its code has a line table.
    pub fn line(&mut self, def: &KernelDef, arch: u32, at: u32) -> Option<(String, u32)> {
        self.reader.line(def.image, &def.name, arch, at).filter(|_| at != 0)
    }

    /// Keeps for later runs what launches were evaluated to.
    pub fn keep(&self) {
        self.kernels.values().flatten().for_each(|code| code.keep());
    }

    /// Why a kernel is not known.
    pub fn reason(&self, kernel: KernelId) -> Option<&str> {
        self.kernels.get(&kernel).and_then(|k| k.as_ref().err()).map(|r| &**r)
    }

    /// The key of a launch.
    #[inline(always)]
    pub fn key(&self, kernel: KernelId, l: &Launch<'_>) -> LaunchKey {
        let words = LaunchKey::shape(kernel, l);
        LaunchKey { hash: LaunchKey::mixed(&words, l.params, self.masks.get(kernel)), words }
    }

    /// The accesses of a launch. Its key is another one when it is the first to rest on some bytes.
    pub fn evaluate(
        &mut self,
        key: &mut LaunchKey,
        def: Option<&KernelDef>,
        arch: Option<u32>,
        l: &Launch<'_>,
    ) -> Arc<Evaluated> {
        if let Some(seen) = self.seen(key, l) {
            return Arc::clone(&seen.result);
        }
        let code = self.kernel(key.kernel(), def, arch);
        let (mut effects, mut rests) = (Vec::new(), ParamUse::default());
        let Ok(code) = code else { return Arc::clone(&self.nothing) };
        code.evaluate_noting_use(l, &mut effects, &mut rests);
        let result = Arc::new(Evaluated::of(effects, &**code));
        let mask = self.masks.grow(key.kernel(), &rests, l.params.len());
        key.hash = LaunchKey::mixed(&key.words, l.params, Some(&mask));
        let (words, params) = (key.words, l.params.into());
        self.seen.put(key.hash, CachedLaunch { words, params, mask, trail: None, result: Arc::clone(&result) });
        result
    }

    /// The hash of a launch that will come; asks for where it is remembered.
    #[inline(always)]
    pub fn foresee(&self, kernel: KernelId, l: &Launch<'_>) -> u64 {
        let hash = self.key(kernel, l).hash;
        self.seen.fetch(hash);
        hash
    }

    #[inline(always)]
    fn seen(&mut self, key: &LaunchKey, l: &Launch<'_>) -> Option<&mut CachedLaunch> {
        match self.seen.get_mut(key.hash) {
            Some(seen) if seen.is(key, l.params) => Some(seen),
            _ => None,
        }
    }

    /// What a launch left behind that was evaluated before.
    #[inline(always)]
    pub fn again(&mut self, key: &LaunchKey, l: &Launch<'_>) -> Option<&mut ReplayLog> {
        self.seen(key, l)?.trail.as_mut()
    }

    /// Number of a tally.
    pub fn tally(&mut self, tally: Tally) -> u32 {
        *self.tallies.entry(tally).or_insert_with(|| {
            self.counts.push(0);
            self.counts.len() as u32 - 1
        })
    }

    /// A launch has come again.
    #[inline]
    pub fn count(&mut self, tally: u32) {
        self.counts[tally as usize] += 1;
    }

    /// How often launches have come again since this was asked last.
    pub fn counted(&mut self) -> Vec<(Tally, u64)> {
        let counts = &mut self.counts;
        self.tallies.iter().map(|(tally, number)| (*tally, std::mem::take(&mut counts[*number as usize]))).collect()
    }

    /// Keeps what a launch leaves behind that was evaluated just now.
    pub fn leave(&mut self, key: &LaunchKey, l: &Launch<'_>, trail: Option<ReplayLog>) {
        if let Some(seen) = self.seen(key, l) {
            seen.trail = trail;
        }
    }

    /// Every 8-byte word of a parameter buffer that could be a pointer: its byte offset and its
    /// value. With a layout only words inside parameters of at least 8 bytes count.
    pub fn pointers<'a>(params: &'a [u8], def: Option<&'a KernelDef>) -> impl Iterator<Item = (u32, u64)> + Clone + 'a {
        let layout = def.map_or(&[][..], |d| &d.params);
        let fits = move |at: u32| {
            layout.is_empty()
                || layout.iter().any(|s| at >= s.offset && at.saturating_add(8) <= s.offset.saturating_add(s.size))
        };
        params.chunks_exact(8).enumerate().filter_map(move |(i, word)| {
            let at = i as u32 * 8;
            let value = u64::from_le_bytes(word.try_into().unwrap_or_default());
            (value != 0 && fits(at)).then_some((at, value))
        })
    }
}
