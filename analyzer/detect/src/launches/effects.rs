//! The effects of a kernel launch: which bytes it reads and writes, and how precisely they are
//! known.
//!
//! Owns the data. An effect counts from an [`EffectBase`] and covers an [`EffectExtent`] of
//! absolute addresses. [`crate::accesses`] finds the allocation behind them.
//! [`super::image_reader`] makes effects from code.

use crate::launches::coalesce::unite;
use crate::launches::kernel_code::KernelCode;
use crate::memory::{AccessKind, Dim, Extent, Pieces, Precision};
use crate::state::names::KernelDef;
use kernels::{Early, Gap, LockRole, Reason, Selection, Tiles};
use std::sync::Arc;
use trace::LaunchShape;

/// The parts of a kernel launch that its accesses depend on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launch<'a> {
    /// Grid, block, cluster, shared memory. Its flags change nothing in what the kernel touches.
    pub shape: LaunchShape,
    /// The parameter buffer.
    pub params: &'a [u8],
}

/// The base address of an access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EffectBase {
    /// An 8-byte word of the parameters: its byte offset and its value.
    Param(u32, u64),
    /// The same, for an address computed from several words. If this one points into no allocation,
    /// it is a scalar.
    Maybe(u32, u64),
    /// A `__device__` variable.
    Global(Arc<str>),
    /// A texture or surface object: byte offset of its handle among the parameters, and the handle.
    Handle(u32, u64),
    /// A texture, surface or tensor that is not known.
    Object,
    /// A texture or surface object whose handle is one of these parameter words (byte offset,
    /// value).
    SomeHandle(Box<[(u32, u64)]>),
    /// A word of a tensor map in the parameters: byte offset and value. One of the map's words is
    /// the tensor's address.
    Tensor(u32, u64),
    /// The tensor of a map that lies in memory: see [`MapInMemory`].
    MapInMemory(Box<MapInMemory>),
    /// A fixed address.
    Absolute(u64),
    /// The addresses that a table holds: see [`PointerTable`]. Bytes count from each of them.
    PointerTable(PointerTable),
    /// The same of a table in a `__device__` or `__constant__` variable.
    VariableTable(VariableTable),
    /// An address that is loaded from memory, or of unknown origin.
    Unknown,
}

/// Words of a pointer table in device memory. The kernel uses all of them as addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PointerTable {
    /// The 8-byte word of the parameters that points to the table: its byte offset.
    pub param: u32,
    /// Its value.
    pub value: u64,
    /// Address of the first word used.
    pub first: u64,
    /// Bytes from one word to the next.
    pub stride: u64,
    /// Number of words.
    pub count: u64,
}

/// Words of a pointer table in a variable. The kernel uses all of them as addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VariableTable {
    /// The variable.
    pub name: Arc<str>,
    /// Where the first word used lies in it.
    pub first: u64,
    /// Bytes from one word to the next.
    pub stride: u64,
    /// Number of words.
    pub count: u64,
}

/// A tensor map in global or constant memory, and what a kernel copies by it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapInMemory {
    /// What its place counts from: a word of the parameters, or a variable.
    pub base: EffectBase,
    /// How far behind that it lies.
    pub at: i64,
    /// The tiles.
    pub tiles: Tiles,
    /// Compute capability (major * 10 + minor) of the device.
    pub arch: u32,
}

/// Which bytes, as absolute addresses (offsets for [`EffectBase::Global`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EffectExtent {
    /// Between `lo` and `hi` (exclusive): runs of `width` bytes along `dims` from `lo`.
    Bounded {
        /// Lowest byte.
        lo: u64,
        /// One past the highest byte.
        hi: u64,
        /// Bytes of one run.
        width: u64,
        /// Repetitions of the run.
        dims: Vec<Dim>,
        /// Whether exactly these bytes are touched. Otherwise they are an upper bound.
        exact: bool,
    },
    /// Irregular pieces (measured).
    Pieces {
        /// Where their places count from.
        origin: u64,
        /// The pieces.
        pieces: Pieces,
        /// Whether all of their bytes are touched. Otherwise they are an upper bound.
        exact: bool,
    },
    /// Some bytes of an interval, selected by data (measured, but in too many pieces to keep
    /// apart).
    Among {
        /// Lowest byte.
        lo: u64,
        /// One past the highest byte.
        hi: u64,
    },
    /// Only the base is known.
    Unknown,
    /// Only the base is known, because the rest is data: the kernel loads an index, or computes it
    /// from what other threads or atomic updates answer.
    Scattered,
}

impl EffectExtent {
    /// An extent of a kernel, which counts from an address.
    pub(crate) fn of(extent: &kernels::Extent, origin: u64) -> Self {
        match extent {
            kernels::Extent::Unknown { reason } if reason.is_data() => Self::Scattered,
            kernels::Extent::Unknown { .. } => Self::Unknown,
            kernels::Extent::Bounded { lo, hi, dims, width, exact } => Self::Bounded {
                lo: origin.wrapping_add_signed(*lo),
                hi: origin.wrapping_add_signed(*hi),
                width: u64::from(*width),
                dims: dims.to_vec(),
                exact: *exact,
            },
        }
    }

    /// Joins runs without gaps into one, once, so that replays of the launch need not.
    fn join(&mut self) {
        if let Self::Bounded { lo, width, dims, exact: true, .. } = self {
            let joined = Extent::pattern(*lo, *width, dims, *lo, Precision::Exact);
            if joined.is_dense() && joined.precision == Precision::Exact && !joined.is_empty() {
                (*width, *dims) = (joined.bytes(), Vec::new());
            }
        }
    }
}

impl Effect {
    /// Its first byte, if it is known.
    pub(crate) fn first(&self) -> Option<u64> {
        match (&self.bytes, &self.base) {
            (_, EffectBase::Global(_)) => None,
            (EffectExtent::Bounded { lo, .. } | EffectExtent::Among { lo, .. }, _) => Some(*lo),
            (_, EffectBase::Param(_, value)) => Some(*value),
            _ => None,
        }
    }
}

/// A lock that a thread holds, before the addresses of variables are known: base and bytes of each
/// word that may be it, and how they order the access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HeldLock(pub Vec<(EffectBase, EffectExtent)>, pub LockRole);

/// One access of a launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// The base address.
    pub base: EffectBase,
    /// Read, write or atomic.
    pub kind: AccessKind,
    /// The bytes.
    pub(crate) bytes: EffectExtent,
    /// The memory instruction: byte offset in the kernel's code section, or line of PTX.
    pub at: u32,
    /// Why the bytes are not known.
    pub(crate) why: Option<Reason>,
    /// Copied by a tensor map that the kernel makes itself.
    pub(crate) by_map: bool,
    /// A read of a `__constant__` variable by its own instructions.
    pub(crate) constant: bool,
    /// The bytes are a bound, and what other threads answered picks those that are touched.
    pub(crate) voted: bool,
    /// The bytes are a bound, and loaded values alone select those that are touched: it is the
    /// range of their types.
    pub(crate) looked_up: bool,
    /// The lock that the thread holds meanwhile.
    pub(crate) lock: Option<HeldLock>,
    /// Without that: the lock that it holds if the launch executes the fences which this needs.
    pub(crate) if_fenced: Option<HeldLock>,
    /// The words in memory that decide which threads make it.
    pub(crate) selection: Option<Selection>,
    /// Whether it is made by threads that have not waited for the grids that the kernel depends on,
    /// though the kernel waits for them.
    pub early: Early,
    /// Measured, and by nothing that its launch did may the host know that it is over.
    pub(crate) untold: bool,
    /// An atomic store of a scope without the host, by a kernel that has others.
    pub(crate) narrow: bool,
}

impl Effect {
    /// An effect without a known instruction.
    pub fn new(base: EffectBase, kind: AccessKind, bytes: EffectExtent) -> Self {
        let (constant, voted, looked_up, early, untold) = (false, false, false, Early::No, false);
        let (by_map, narrow) = (false, false);
        let (at, why, lock, if_fenced, selection) = (0, None, None, None, None);
        Self {
            base,
            kind,
            bytes,
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
            untold,
            narrow,
        }
    }

    /// In the place of all effects of a launch: its evaluation failed, and nothing is known of it.
    pub fn failed() -> Self {
        let unknown = Self::new(EffectBase::Unknown, AccessKind::Write, EffectExtent::Unknown);
        Self { why: Some(Reason::Failed), ..unknown }
    }

    /// Whether nothing says that the kernel reads there, nor that it writes: a call that is not
    /// followed is given the pointer.
    pub(crate) fn guessed(&self) -> bool {
        self.why == Some(Reason::Passed)
    }

    /// Whether the address comes out of memory, and so does the allocation.
    pub(crate) fn is_unplaced(&self) -> bool {
        matches!(self.base, EffectBase::Unknown | EffectBase::SomeHandle(_))
    }

    /// The first byte that it may touch and the end, where they are known as addresses.
    pub fn bounds(&self) -> Option<(u64, u64)> {
        match (&self.bytes, &self.base) {
            (_, EffectBase::Global(_)) => None,
            (EffectExtent::Bounded { lo, hi, .. } | EffectExtent::Among { lo, hi }, _) => Some((*lo, *hi)),
            _ => None,
        }
    }

    /// The addresses of the units of so many bytes that it touches, if they are known one by one
    /// and not too many.
    pub fn units(&self, size: u64, most: usize) -> Option<Vec<u64>> {
        let EffectExtent::Bounded { lo, width, dims, exact: true, .. } = &self.bytes else { return None };
        let count = dims.iter().fold(width / size, |count, dim| count.saturating_mul(dim.count));
        if matches!(self.base, EffectBase::Global(_)) || width % size != 0 || count > most as u64 {
            return None;
        }
        let mut starts = vec![*lo];
        for Dim { stride, count } in dims {
            starts = starts.iter().flat_map(|at| (0..*count).map(move |k| at + k * stride)).collect();
        }
        Some(starts.into_iter().flat_map(|at| (0..width / size).map(move |k| at + k * size)).collect())
    }

    /// Whether the two may touch a common byte, as far as their code tells: by their bytes where
    /// both are bounded, else where both start from one pointer.
    pub(crate) fn may_touch(&self, other: &Self) -> bool {
        match (self.bounds(), other.bounds()) {
            (Some((lo, hi)), Some((from, to))) => lo < to && from < hi,
            _ => self.base == other.base,
        }
    }

    /// Whether the addresses are those that a table holds.
    pub(crate) fn is_through_table(&self) -> bool {
        matches!(self.base, EffectBase::PointerTable(_) | EffectBase::VariableTable(_))
    }

    /// Whether this effect leaves the launch without complete ranges. A call that is not followed
    /// does, whatever it is given.
    fn open(&self) -> bool {
        if self.base == EffectBase::Unknown {
            return self.why == Some(Reason::Call);
        }
        matches!(self.bytes, EffectExtent::Unknown | EffectExtent::Scattered)
            && !self.is_through_table()
            && !matches!(self.base, EffectBase::Handle(..) | EffectBase::SomeHandle(_))
    }
}

/// How well the accesses of a launch are known. The variants are the columns of the coverage line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Knowledge {
    /// Every extent is exact or bounded.
    Exact,
    /// Reads and writes are known, but some extents are not.
    KindsOnly,
    /// Nothing is known: see [`crate::accesses::Work::pointers`].
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
    pub(crate) indirect: bool,
    /// Whether every extent is exact, none only an upper bound.
    pub exact: bool,
    /// Where the first unknown extent is.
    pub(crate) gap: Option<Gap>,
    /// Where the first address is loaded from memory.
    pub(crate) indirect_gap: Option<Gap>,
}

/// The properties of an evaluated launch that coverage counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Outline {
    /// See [`Evaluated`].
    pub knowledge: Knowledge,
    /// See [`Evaluated`].
    pub indirect: bool,
    /// See [`Evaluated`].
    pub(crate) exact: bool,
    /// See [`Evaluated`].
    pub gap: Option<Gap>,
    /// See [`Evaluated`].
    pub(crate) indirect_gap: Option<Gap>,
}

impl Evaluated {
    /// The properties that coverage counts, of a launch whose maps in memory are all known.
    pub fn outline_with_maps(&self) -> Outline {
        let is_map = |e: &Effect| matches!(e.base, EffectBase::MapInMemory(_));
        if !self.effects.iter().any(is_map) || self.effects.iter().any(|e| e.open() && !is_map(e)) {
            return self.outline();
        }
        Outline { knowledge: Knowledge::Exact, gap: None, exact: false, ..self.outline() }
    }

    /// The properties that coverage counts.
    pub fn outline(&self) -> Outline {
        let Self { knowledge, indirect, exact, gap, indirect_gap, .. } = *self;
        Outline { knowledge, indirect, exact, gap, indirect_gap }
    }

    /// The effects of a launch without readable code, or whose evaluation failed: unknown.
    pub(crate) fn nothing() -> Self {
        let (effects, knowledge) = (Vec::new(), Knowledge::Unknown);
        Self { effects, knowledge, indirect: false, exact: false, gap: None, indirect_gap: None }
    }

    /// The evaluation that consists of these effects.
    pub(crate) fn of(mut effects: Vec<Effect>, code: &dyn KernelCode) -> Self {
        if effects.iter().any(|e| e.why == Some(Reason::Failed)) {
            return Self::nothing();
        }
        // What it launches is part of the launch, and its accesses are not predicted.
        if let Some(launches) = effects.iter().find(|e| e.why == Some(Reason::Launches)) {
            let gap = Some(Gap { reason: Reason::Launches, at: launches.at });
            return Self { gap, ..Self::nothing() };
        }
        effects.iter_mut().for_each(|e| e.bytes.join());
        unite(&mut effects);
        let gap = effects.iter().find(|e| e.open()).map(|e| Gap { reason: e.why.unwrap_or(Reason::Failed), at: e.at });
        let knowledge = if gap.is_some() { Knowledge::KindsOnly } else { Knowledge::Exact };
        let exact = gap.is_none()
            && effects
                .iter()
                .all(|e| !matches!(e.bytes, EffectExtent::Bounded { exact: false, .. } | EffectExtent::Among { .. }));
        let indirect = code.indirect_in(&effects);
        let lost = effects.iter().find(|e| indirect && e.base == EffectBase::Unknown);
        let here = lost.and_then(|e| Some(Gap { reason: e.why?, at: e.at }));
        Self { effects, knowledge, indirect, exact, gap, indirect_gap: code.indirect_gap().or(here) }
    }
}

/// Every 8-byte word of a parameter buffer that could be a pointer: its byte offset and its
/// value. With a layout only words inside parameters of at least 8 bytes count.
pub fn candidate_pointers<'a>(
    params: &'a [u8],
    def: Option<&'a KernelDef>,
) -> impl Iterator<Item = (u32, u64)> + Clone + 'a {
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
