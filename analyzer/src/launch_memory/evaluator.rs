//! From a launch to its effects, with everything that was evaluated before kept at hand.
//!
//! Owns the code of one process: a [`KernelCode`] for each kernel, read at its first launch, the
//! launches that were evaluated ([`LaunchCache`]), and the count of those that came again. Does not
//! know how code is read, nor whose memory the bytes are.

use crate::launch_memory::launch_cache::{CachedLaunch, LaunchCache};
use crate::launch_memory::launch_key::LaunchKey;
use crate::launch_memory::replay::ReplayLog;
use crate::launches::effects::{Evaluated, Launch, Outline};
use crate::launches::kernel_code::{CodeReader, KernelCode};
use crate::launches::param_mask::{Masks, ParamUse};
use crate::state::names::KernelDef;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use trace::{KernelId, Op};

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

/// All code of one process.
pub struct LaunchEvaluator {
    reader: Box<dyn CodeReader>,
    kernels: FxHashMap<KernelId, Result<Box<dyn KernelCode>, Arc<str>>>,
    masks: Masks,
    cached: LaunchCache,
    nothing: Arc<Evaluated>,
    tallies: FxHashMap<Tally, u32>,
    /// How often the launches of each were repeated, since they were last asked for.
    counts: Vec<u64>,
    /// Repeated launches altogether.
    repeats: u64,
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
        if let Some(cached) = self.cached(key, l) {
            return Arc::clone(&cached.result);
        }
        let code = self.kernel(key.kernel(), def, arch);
        let (mut effects, mut rests) = (Vec::new(), ParamUse::default());
        let Ok(code) = code else { return Arc::clone(&self.nothing) };
        code.evaluate_noting_use(l, &mut effects, &mut rests);
        let result = Arc::new(Evaluated::of(effects, &**code));
        let mask = self.masks.grow(key.kernel(), &rests, l.params.len());
        key.hash = LaunchKey::mixed(&key.words, l.params, Some(&mask));
        let (words, params) = (key.words, l.params.into());
        self.cached.put(key.hash, CachedLaunch { words, params, mask, replay: None, result: Arc::clone(&result) });
        result
    }

    /// The hash of a launch that will come; asks for where it is remembered.
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

    /// What a launch left behind that was evaluated before.
    #[inline(always)]
    pub fn replay_log(&mut self, key: &LaunchKey, l: &Launch<'_>) -> Option<&mut ReplayLog> {
        self.cached(key, l)?.replay.as_mut()
    }

    /// Launches that were repeated, and not looked up anew.
    pub fn repeats(&self) -> u64 {
        self.repeats
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
        self.repeats += 1;
    }

    /// How often launches have come again since this was asked last.
    pub fn counted(&mut self) -> Vec<(Tally, u64)> {
        let counts = &mut self.counts;
        self.tallies.iter().map(|(tally, number)| (*tally, std::mem::take(&mut counts[*number as usize]))).collect()
    }

    /// Keeps what a launch leaves behind that was evaluated just now.
    pub fn store_replay(&mut self, key: &LaunchKey, l: &Launch<'_>, replay: Option<ReplayLog>) {
        if let Some(cached) = self.cached(key, l) {
            cached.replay = replay;
        }
    }
}
