//! A kernel whose code was read: its summary, evaluated for launches.
//!
//! Owns the way from the accesses of a summary to effects, as detection names them.

use crate::exact::scopes;
use crate::launches::effects::{
    Effect, EffectBase, EffectExtent, HeldLock, Launch, MapInMemory, PointerTable, VariableTable,
};
use crate::launches::kernel_code::KernelCode;
use crate::launches::map_copies::MapLayout;
use crate::launches::param_layout::ParamLayout;
use crate::launches::param_mask::ParamUse;
use crate::memory::tensor_maps;
use crate::memory::{AccessKind, TensorMaps};
use device_code::tensor_map;
use kernels::{CodeImage, Extent, KernelAccess, LaunchArgs, Summary};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use trace::{LaunchShape, ParamSlot};

/// A kernel that was read.
pub(super) struct KnownKernel {
    summary: Arc<Summary>,
    /// Compute capability (major * 10 + minor) of the device.
    arch: u32,
    code: Arc<CodeImage>,
    layout: ParamLayout,
    /// [`CodeImage::is_launch_invariant`], computed on first use.
    fixed: OnceLock<bool>,
}

impl KernelCode for KnownKernel {
    fn evaluate(&self, l: &Launch<'_>, effects: &mut Vec<Effect>) {
        self.evaluate_noting_use(l, &TensorMaps::default(), effects, &mut ParamUse::default());
    }

    fn evaluate_noting_use(&self, l: &Launch<'_>, maps: &TensorMaps, effects: &mut Vec<Effect>, usage: &mut ParamUse) {
        let Some(params) = self.layout.for_code(l.params) else { return self.evaluate_code(l, maps, effects, usage) };
        let (first, mut used) = (effects.len(), ParamUse::default());
        self.evaluate_code(&Launch { params: &params, ..*l }, maps, effects, &mut used);
        effects[first..].iter_mut().for_each(|effect| self.layout.name(effect));
        usage.also(&used, |bytes| self.layout.in_trace(bytes));
    }

    fn waits(&self) -> Vec<u32> {
        self.summary.waits().to_vec()
    }
    fn triggers_at(&self) -> Vec<u32> {
        self.summary.triggers_at().to_vec()
    }
    fn triggers_last(&self) -> bool {
        self.summary.triggers_last()
    }

    fn recorded_as(&mut self, params: &[ParamSlot]) {
        self.layout = ParamLayout::new(self.summary.params(), params);
    }

    fn is_ptx(&self) -> Option<bool> {
        Some(self.code.is_ptx())
    }

    fn indirect(&self) -> bool {
        self.summary.indirect().any()
    }

    fn indirect_in(&self, effects: &[Effect]) -> bool {
        // Of a sum of a parameter word and a number out of memory, the word is the pointer if it
        // can be one. Device memory began above 4 GiB on every driver seen.
        let pointer = |e: &Effect| matches!(e.base, EffectBase::Maybe(_, value) if value > u64::from(u32::MAX));
        let stands_for = |e: &Effect| effects.iter().any(|o| (o.at, o.kind) == (e.at, e.kind) && pointer(o));
        let lost = |e: &Effect| match e.base {
            EffectBase::Unknown => self.indirect() || !stands_for(e),
            EffectBase::SomeHandle(_) => self.indirect(),
            _ => false,
        };
        effects.iter().any(lost)
    }

    fn indirect_gap(&self) -> Option<kernels::Gap> {
        self.summary.indirect().why
    }

    fn loss(&self, kind: AccessKind, param: Option<u32>, at: u32) -> Option<kernels::Loss> {
        let kind = match kind {
            AccessKind::Read => kernels::AccessKind::Read,
            AccessKind::Write => kernels::AccessKind::Write,
            AccessKind::Atomic => kernels::AccessKind::Atomic,
            AccessKind::AtomicRead => kernels::AccessKind::AtomicRead,
            AccessKind::AtomicWrite => kernels::AccessKind::AtomicWrite,
        };
        let word = param.and_then(|offset| u16::try_from(self.layout.in_code(offset)).ok());
        catch_unwind(AssertUnwindSafe(|| self.summary.loss(kind, word, at))).ok()?
    }

    fn identity(&self) -> Option<u64> {
        let fixed = self.fixed.get_or_init(|| {
            catch_unwind(AssertUnwindSafe(|| self.code.is_launch_invariant(self.summary.name()))).unwrap_or(false)
        });
        fixed.then(|| self.code.hash())
    }

    fn dependency(&self) -> kernels::Dependency {
        self.summary.dependency()
    }

    fn triggering(&self, l: &Launch<'_>) -> kernels::Triggering {
        if l.shape.flags & trace::launch_flags::PARAMS_UNKNOWN != 0 {
            return kernels::Triggering::Some;
        }
        let moved = self.layout.for_code(l.params);
        let l = Launch { shape: l.shape, params: moved.as_deref().unwrap_or(l.params) };
        let asked = || self.summary.triggering(&launch_args(&l));
        catch_unwind(AssertUnwindSafe(asked)).unwrap_or(kernels::Triggering::Some)
    }

    fn signals(&self) -> bool {
        self.summary.has_system_fence()
    }

    fn signals_by(&self) -> Option<Vec<AccessKind>> {
        match self.summary.system_fences() {
            kernels::SystemFences::None => Some(Vec::new()),
            kernels::SystemFences::Releases(kinds) => Some(kinds.iter().map(|kind| kind_of(*kind)).collect()),
            kernels::SystemFences::Free => None,
        }
    }

    fn flag_loads(&self) -> &[kernels::FlagLoad] {
        self.summary.flag_loads()
    }

    fn unfenced_copies(&self) -> &[kernels::UnfencedCopy] {
        self.summary.unfenced_copies()
    }

    fn may_wait_besides(&self, known: &[u32]) -> bool {
        use kernels::AccessKind::{Atomic, AtomicRead};
        let mut waits = self.summary.instructions().filter(|(kind, ..)| matches!(kind, Atomic | AtomicRead));
        waits.any(|(_, at, _)| !known.contains(&at) && !self.summary.is_mute(at)) || self.summary.indirect().any()
    }

    fn loads_from_host(&self, bytes: u64) -> bool {
        self.summary.has_system_loads() && (bytes <= 8 || self.summary.acquires())
    }

    fn stores_for_host(&self, kind: AccessKind) -> bool {
        let (writes, updates) = self.summary.system_stores();
        match kind {
            AccessKind::AtomicWrite => writes,
            AccessKind::Atomic => updates,
            _ => false,
        }
    }

    fn stores_within_device(&self) -> bool {
        self.summary.stores_within_device()
    }

    fn listens(&self) -> bool {
        let loads = self.summary.instructions().any(|(kind, ..)| kind == kernels::AccessKind::AtomicRead);
        loads || self.summary.indirect().any()
    }

    fn copies_in_part(&self) -> bool {
        self.summary.has_partial_copies()
    }

    fn relocated(&self) -> u64 {
        self.summary.relocated()
    }

    fn keep(&self) {
        self.summary.keep();
    }
}

/// A kind of access, as detection names it.
fn kind_of(kind: kernels::AccessKind) -> AccessKind {
    match kind {
        kernels::AccessKind::Read => AccessKind::Read,
        kernels::AccessKind::Write => AccessKind::Write,
        kernels::AccessKind::Atomic => AccessKind::Atomic,
        kernels::AccessKind::AtomicRead => AccessKind::AtomicRead,
        kernels::AccessKind::AtomicWrite => AccessKind::AtomicWrite,
    }
}

/// A launch, as the analysis of kernels gets it.
fn launch_args<'a>(l: &Launch<'a>) -> LaunchArgs<'a> {
    let LaunchShape { grid, block, cluster, shared, .. } = l.shape;
    LaunchArgs { grid, block, cluster, shared, params: l.params }
}

impl KnownKernel {
    pub(super) fn new(summary: Arc<Summary>, arch: u32, code: Arc<CodeImage>) -> Self {
        Self { summary, arch, code, layout: ParamLayout::default(), fixed: OnceLock::new() }
    }

    /// Evaluates a launch whose parameters lie where the code has them.
    fn evaluate_code(&self, l: &Launch<'_>, maps: &TensorMaps, effects: &mut Vec<Effect>, usage: &mut ParamUse) {
        let args = launch_args(l);
        let mut accesses = Vec::new();
        let evaluated = AssertUnwindSafe(|| self.summary.evaluate_with_inputs(&args, &mut accesses, usage.bytes()));
        if catch_unwind(evaluated).is_err() {
            accesses.clear();
            usage.use_everything();
            // The evaluation panicked, so nothing is known of this launch.
            effects.push(Effect::failed());
        }
        let first = effects.len();
        for access in &accesses {
            self.translate(access, l.params, maps, effects);
            let (at, bytes) = match access.base {
                kernels::Base::Word { offset, .. }
                | kernels::Base::Handle { offset, .. }
                | kernels::Base::Table { offset, .. } => (usize::from(offset), 8),
                kernels::Base::TensorMap { offset } => {
                    let from = usize::from(offset);
                    let asked = maps.has_beginning(l.params.get(from..).unwrap_or_default());
                    (from, if asked { tensor_maps::WHOLE } else { tensor_map::SIZE })
                }
                // Any word may be a handle.
                kernels::Base::Unknown if is_descriptor(&access.extent) => (0, l.params.len()),
                kernels::Base::Unknown
                | kernels::Base::Global(_)
                | kernels::Base::VariableTable { .. }
                | kernels::Base::Absolute { .. } => (0, 0),
            };
            usage.on(at..at + bytes);
        }
        self.mark_narrow(&args, l.params, maps, first, effects);
    }

    /// Marks the atomic stores that the host takes for plain ones, in a kernel that has others.
    /// These rest on the same words of the parameters.
    fn mark_narrow(&self, args: &LaunchArgs<'_>, params: &[u8], maps: &TensorMaps, first: usize, to: &mut Vec<Effect>) {
        let mut accesses = Vec::new();
        let asked = AssertUnwindSafe(|| self.summary.evaluate_stores_for_host(args, &mut accesses));
        if catch_unwind(asked).unwrap_or(false) {
            let (mut wide, mut own) = (Vec::new(), to.split_off(first));
            accesses.iter().for_each(|access| self.translate(access, params, maps, &mut wide));
            scopes::mark_predicted(&wide, &mut own);
            to.append(&mut own);
        }
    }

    /// A word of a lock.
    fn word(&self, (base, extent): &(kernels::Base, Extent)) -> (EffectBase, EffectExtent) {
        let (base, origin) = match *base {
            kernels::Base::Word { offset, value } => (EffectBase::Param(u32::from(offset), value), value),
            kernels::Base::Absolute { value } => (EffectBase::Absolute(value), value),
            kernels::Base::Global(symbol) => (EffectBase::Global(self.summary.symbol(symbol).into()), 0),
            _ => (EffectBase::Unknown, 0),
        };
        (base, EffectExtent::of(extent, origin))
    }

    fn translate(&self, a: &KernelAccess, params: &[u8], maps: &TensorMaps, effects: &mut Vec<Effect>) {
        let (kind, layout) = (kind_of(a.kind), MapLayout::of(self.arch));
        if let Some(tiles) = a.tiles.as_deref().filter(|_| !matches!(a.base, kernels::Base::TensorMap { .. })) {
            // A map in memory: its content is asked for where memory is known.
            let base = match a.base {
                kernels::Base::Word { offset, value } => EffectBase::Param(u32::from(offset), value),
                kernels::Base::Global(symbol) => EffectBase::Global(self.summary.symbol(symbol).into()),
                _ => EffectBase::Object,
            };
            let base = match base {
                base @ (EffectBase::Param(..) | EffectBase::Global(_)) if !a.several => {
                    EffectBase::MapInMemory(Box::new(MapInMemory {
                        base,
                        at: tiles.at,
                        tiles: tiles.clone(),
                        arch: self.arch,
                    }))
                }
                _ => EffectBase::Object,
            };
            let why = Some(kernels::Reason::Descriptor);
            let of_map = Effect::new(base, kind, EffectExtent::Unknown);
            return effects.push(Effect { at: a.at, early: a.early, why, ..of_map });
        }
        let (base, origin) = match a.base {
            kernels::Base::Word { offset, value } if a.several => (EffectBase::Maybe(u32::from(offset), value), value),
            kernels::Base::Word { offset, value } => (EffectBase::Param(u32::from(offset), value), value),
            kernels::Base::Absolute { value } => (EffectBase::Absolute(value), value),
            kernels::Base::Global(symbol) => (EffectBase::Global(self.summary.symbol(symbol).into()), 0),
            kernels::Base::Handle { offset, value, .. } => (EffectBase::Handle(u32::from(offset), value), 0),
            kernels::Base::Unknown if is_descriptor(&a.extent) => {
                // Machine code splits a handle into halves, so the analysis does not name its word.
                // The handle is still among the parameters, because objects are passed by value.
                let words = params.chunks_exact(8).enumerate();
                let word =
                    |(i, w): (usize, &[u8])| (i as u32 * 8, u64::from_le_bytes(w.try_into().unwrap_or_default()));
                (EffectBase::SomeHandle(words.map(word).collect()), 0)
            }
            kernels::Base::Unknown => (EffectBase::Unknown, 0),
            kernels::Base::Table { offset, value, lo, stride, count } => {
                let first = value.wrapping_add_signed(lo);
                (EffectBase::PointerTable(PointerTable { param: u32::from(offset), value, first, stride, count }), 0)
            }
            kernels::Base::VariableTable { symbol, lo, stride, count } => {
                let (name, first) = (self.summary.symbol(symbol).into(), lo.cast_unsigned());
                (EffectBase::VariableTable(VariableTable { name, first, stride, count }), 0)
            }
            kernels::Base::TensorMap { offset } => {
                // The map holds the address of its tensor among other fields. The word that points
                // into an allocation is the address.
                let from = usize::from(offset);
                let words = params.get(from..from.saturating_add(tensor_map::SIZE)).unwrap_or_default();
                let base = |address| EffectBase::Tensor(u32::from(offset), address);
                let of_map = Effect::new(EffectBase::Object, kind, EffectExtent::Unknown);
                let of_map = Effect { at: a.at, early: a.early, why: Some(kernels::Reason::Descriptor), ..of_map };
                let known = layout.read(params.get(from..).unwrap_or_default(), maps);
                let copied = |known| layout.effects(&known, (&of_map, a.kind), a.tiles.as_deref()?, base);
                if let Some(copied) = known.and_then(copied) {
                    return effects.extend(copied);
                }
                for (i, word) in words.chunks_exact(8).enumerate() {
                    let value = u64::from_le_bytes(word.try_into().unwrap_or_default());
                    let base = EffectBase::Tensor(u32::from(offset) + i as u32 * 8, value);
                    let effect = Effect::new(base, kind, EffectExtent::Unknown);
                    let why = Some(kernels::Reason::Descriptor);
                    effects.push(Effect { at: a.at, early: a.early, why, ..effect });
                }
                return;
            }
        };
        let bytes = EffectExtent::of(&a.extent, origin);
        let why = if let Extent::Unknown { reason } = a.extent { Some(reason) } else { None };
        let constant = matches!(a.base, kernels::Base::Global(symbol) if self.summary.is_constant(symbol));
        let of = |lock: &kernels::Lock| HeldLock(lock.words.iter().map(|word| self.word(word)).collect(), lock.role);
        let (lock, if_fenced) = (a.lock.as_ref().map(of), a.if_fenced.as_ref().map(of));
        let &KernelAccess { at, by_map, voted, looked_up, selection, early, .. } = a;
        effects.push(Effect {
            at,
            why,
            by_map,
            constant,
            voted,
            looked_up,
            lock,
            if_fenced,
            selection,
            early,
            ..Effect::new(base, kind, bytes)
        });
    }
}

/// Whether an access goes through an unknown descriptor.
fn is_descriptor(extent: &Extent) -> bool {
    matches!(extent, Extent::Unknown { reason: kernels::Reason::Descriptor })
}
