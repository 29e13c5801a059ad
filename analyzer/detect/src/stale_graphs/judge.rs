//! What a node of a launched graph does with memory that has ended, and how sure that is.
//!
//! Owns the rule. It asks two questions: does the node surely touch bytes of that memory, and is
//! the memory gone for the program?
//!
//! | bytes of the node | confidence |
//! |---|---|
//! | arguments of a copy or a fill; exact ranges of a kernel | certain |
//! | an upper bound, or only the pointer | likely |
//! | of a kernel without readable code | possible |
//! | known, and none of them in that memory | none |
//!
//! A parameter that a kernel is given and never uses as an address is no finding.
//!
//! The second question lowers this. Memory of another graph that is there again is memory of that
//! graph, as CUDA promises its address for the graph's life, and a mapping that is there again was
//! put there on purpose: neither is a finding. Memory that was only unregistered is still the
//! host's: a copy goes on reading and writing it. Memory of the same bounds that was allocated at
//! the same place in the program is possible only, since a loop may rely on it, and likely from
//! elsewhere. A block of a pool is possible while nobody else has its bytes, and likely when
//! somebody has: the pool's owner may know better.

use super::{NodePlace, Suspect};
use crate::confidence::{Confidence, Weakness};
use crate::launches::effects::{Effect, EffectBase, EffectExtent, Evaluated, Knowledge};
use crate::memory::allocations::Home;
use crate::memory::{AccessKind, Allocation, Allocations, Cause, Dim, Extent, Precision};
use trace::{MemoryKind, Op, Region};

/// What a node does with memory that has ended.
#[derive(Clone, Debug)]
pub struct Touched {
    /// What made it.
    pub cause: Cause,
    /// Whether it reads or writes.
    pub kind: AccessKind,
    /// Which bytes, by the addresses of that memory.
    pub extent: Extent,
    /// The kernel's instruction.
    pub at: u32,
    /// Nothing is known of the kernel.
    pub guessed: bool,
}

/// What lies now where a suspect's memory was: the innermost living allocation, other than what the
/// memory was carved out of.
pub fn now_at(suspect: &Suspect, memory: &Allocations) -> Option<Allocation> {
    let place = memory.locate(suspect.address.wrapping_add(suspect.shift))?;
    let Home::Root(root) = place.home else { return None };
    let root = memory.root(root)?;
    let is_block = suspect.ended.memory.kind == Some(MemoryKind::Block);
    if is_block && place.allocation == root.id { None } else { memory.info(place.allocation).copied() }
}

/// What a call made a node: a copy, a fill, a value.
pub fn of_call(op: &Op<'_>, suspect: &Suspect) -> Option<Touched> {
    let (cause, kind, extent) = match (op, suspect.place) {
        (Op::Copy { dst, .. } | Op::AttributedCopy { dst, .. }, NodePlace::Target) => {
            (Cause::Copy, AccessKind::Write, bytes_of(dst))
        }
        (Op::Copy { src, .. } | Op::AttributedCopy { src, .. }, NodePlace::Source) => {
            (Cause::Copy, AccessKind::Read, bytes_of(src))
        }
        (Op::Set { dst, .. }, NodePlace::Target) => (Cause::Set, AccessKind::Write, bytes_of(dst)),
        (Op::WriteValue { address, width, .. }, NodePlace::Value) => {
            (Cause::Value, AccessKind::AtomicWrite, Extent::exact(*address, address.saturating_add(u64::from(*width))))
        }
        (Op::WaitValue { address, width, .. }, NodePlace::Value) => {
            (Cause::Value, AccessKind::AtomicRead, Extent::exact(*address, address.saturating_add(u64::from(*width))))
        }
        _ => return None,
    };
    within(extent, suspect).map(|extent| Touched { cause, kind, extent, at: 0, guessed: false })
}

fn bytes_of(region: &Region) -> Extent {
    let dims = [
        Dim { stride: region.pitch, count: u64::from(region.height) },
        Dim { stride: region.slice_pitch, count: u64::from(region.depth) },
    ];
    Extent::pattern(region.start, region.width, &dims, region.start, Precision::Exact)
}

/// The part of these bytes that lies in the memory that has ended.
fn within(extent: Extent, suspect: &Suspect) -> Option<Extent> {
    let memory = &suspect.ended.memory;
    let extent = extent.moved(suspect.shift).clip(memory.ptr, memory.end());
    (!extent.is_empty() && extent.touches(memory.ptr, memory.end())).then_some(extent)
}

/// What a kernel does through a parameter: the surest of its accesses, a write before a read.
pub fn of_kernel(known: &Evaluated, suspect: &Suspect) -> Option<Touched> {
    let NodePlace::Param(param) = suspect.place else { return None };
    if known.knowledge == Knowledge::Unknown {
        let at = suspect.address.wrapping_add(suspect.shift);
        let extent = Extent::unknown(at, at, at.saturating_add(1));
        return Some(Touched { cause: Cause::Kernel, kind: AccessKind::Read, extent, at: 0, guessed: true });
    }
    let of_param = known.effects.iter().filter(|effect| match effect.base {
        EffectBase::Param(offset, _) | EffectBase::Maybe(offset, _) | EffectBase::Tensor(offset, _) => offset == param,
        _ => false,
    });
    let touched = of_param.filter_map(|effect| {
        let extent = within(extent_of(effect, suspect.address), suspect)?;
        Some(Touched { cause: Cause::Kernel, kind: effect.kind, extent, at: effect.at, guessed: effect.guessed() })
    });
    touched.max_by_key(|t| (!t.guessed, sure(t.extent.precision), t.kind.writes()))
}

fn extent_of(effect: &Effect, address: u64) -> Extent {
    match &effect.bytes {
        EffectExtent::Bounded { lo, width, dims, exact: true, .. } => {
            Extent::pattern(*lo, *width, dims, *lo, Precision::Exact)
        }
        EffectExtent::Bounded { lo, hi, .. } | EffectExtent::Among { lo, hi } => Extent::bound(*lo, *hi, *lo),
        EffectExtent::Pieces { origin, pieces, exact } => {
            let precision = if *exact { Precision::Exact } else { Precision::Bound };
            Extent::irregular(*origin, pieces.clone(), precision)
        }
        EffectExtent::Unknown | EffectExtent::Scattered => Extent::unknown(address, address, address.saturating_add(1)),
    }
}

fn sure(precision: Precision) -> Confidence {
    match precision {
        Precision::Exact => Confidence::Certain,
        Precision::Bound | Precision::Unknown => Confidence::Likely,
    }
}

/// How sure a finding is, and why it is no more than possible; `None`: it is none. `now`: what
/// [`now_at`] answers.
pub fn grade(
    touched: &Touched,
    suspect: &Suspect,
    now: Option<&Allocation>,
    is_conditional: bool,
) -> Option<(Confidence, Option<Weakness>)> {
    let was = &suspect.ended.memory;
    let lasting = [MemoryKind::GraphNode, MemoryKind::Mapped];
    let is_back = |now: &Allocation| now.kind == was.kind && lasting.into_iter().any(|kind| was.kind == Some(kind));
    if now.is_some_and(is_back) {
        return None;
    }
    if was.kind == Some(MemoryKind::RegisteredHost) && touched.cause != Cause::Kernel {
        return None;
    }
    let is_block = was.kind == Some(MemoryKind::Block);
    let (most, weakness) = match now {
        _ if touched.guessed => (Confidence::Possible, Some(Weakness::Guess)),
        _ if is_conditional => (Confidence::Possible, Some(Weakness::Condition)),
        None if is_block => (Confidence::Possible, Some(Weakness::NotHandedOut)),
        Some(now) if (now.ptr, now.size) == (was.ptr, was.size) => match now.stack == was.stack {
            true => (Confidence::Possible, Some(Weakness::SameBounds)),
            false => (Confidence::Likely, None),
        },
        Some(_) if is_block => (Confidence::Likely, None),
        _ => (Confidence::Certain, None),
    };
    Some((sure(touched.extent.precision).min(most), weakness))
}
