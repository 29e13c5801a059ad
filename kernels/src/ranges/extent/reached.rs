//! What an access reaches: a base, and the bytes relative to its value.
//!
//! Owns the types that pass between the files of this folder, `analysis` and `memo`. No rules.

use super::delinearization::Delinearized;
use crate::effects::{Early, Extent, Tiles};
use crate::ir::{AccessKind, BlockId};
use crate::ranges::domain::byte_set::ByteSet;
use crate::ranges::domain::constraints::ConstraintSet;
use crate::ranges::domain::int::Int;
use crate::ranges::graph::provenance::Provenance;
use serde::{Deserialize, Serialize};

/// Under which conditions an access is made, and how wide it is.
#[derive(Clone, Copy)]
pub(crate) struct AccessContext<'a> {
    /// The constraints that hold when it is made.
    pub(crate) cons: &'a ConstraintSet,
    /// Bytes per thread.
    pub(crate) width: Int,
    /// The block of the access.
    pub(crate) block: BlockId,
    /// Nothing but `cons` decides whether and where it happens.
    pub(crate) complete: bool,
}

/// One base that an access may have, and the bytes relative to its value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct ReachedBytes<E = ByteSet> {
    pub(crate) base: SymbolicBase,
    /// See [`crate::KernelAccess::several`].
    pub(crate) several: bool,
    /// See [`crate::KernelAccess::early`].
    pub(crate) early: Early,
    pub(crate) extent: E,
    /// The same bytes, more precisely. With final extents there are none.
    #[serde(skip)]
    pub(crate) delinearized: Option<Box<Delinearized>>,
    /// See [`crate::KernelAccess::tiles`].
    pub(crate) tiles: Option<Box<Tiles<E>>>,
    /// See [`crate::KernelAccess::by_map`].
    pub(crate) by_map: bool,
}

impl<E> ReachedBytes<E> {
    pub(crate) fn new(base: SymbolicBase, several: bool, extent: E) -> ReachedBytes<E> {
        ReachedBytes { base, several, early: Early::No, extent, delinearized: None, tiles: None, by_map: false }
    }

    /// The same, before or behind the wait.
    pub(crate) fn made(self, early: Early) -> ReachedBytes<E> {
        ReachedBytes { early, ..self }
    }

    /// The same with other extents. (More precise bytes are left out.)
    pub(crate) fn map<M>(&self, f: &mut impl FnMut(&E) -> M) -> ReachedBytes<M> {
        let tiles = self
            .tiles
            .as_deref()
            .map(|t| Box::new(Tiles { at: t.at, axes: t.axes.iter().map(&mut *f).collect(), exact: t.exact }));
        let by_map = self.by_map;
        ReachedBytes { tiles, by_map, ..ReachedBytes::new(self.base, self.several, f(&self.extent)).made(self.early) }
    }
}

impl<N: Copy> ReachedBytes<ByteSet<N>> {
    /// With final numbers, as other modules see it.
    pub(crate) fn finished(&self, value: impl Fn(N) -> i128) -> ReachedBytes<Extent> {
        self.map(&mut |extent| extent.finished(&value))
    }
}

/// A [`crate::Base`] before the values of parameters are put in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum SymbolicBase {
    /// The parameter word at this offset.
    Word(u16),
    /// The variable of this symbol.
    Symbol(u32),
    /// The address of the parameter at this offset.
    ParamAddress(u16),
    /// Texture (false) or surface handle.
    Handle(u16, bool),
    /// None: the extent holds addresses.
    Absolute,
    /// The addresses that a table holds: `count` 8-byte words from `lo` on behind its root,
    /// `stride` bytes apart.
    Table {
        root: TableRoot,
        lo: i64,
        stride: u64,
        count: u64,
    },
    /// A pointer out of memory, surely: no parameter is the base.
    Loaded,
    Unknown,
}

impl SymbolicBase {
    /// Whether an address from these sources may have this base.
    pub(crate) fn may_come_from(self, from: &Provenance) -> bool {
        match self {
            SymbolicBase::Absolute => false,
            SymbolicBase::Word(w) => from.words.contains(&w) || from.unknown.is_some(),
            SymbolicBase::Symbol(s) => from.symbols.contains(&s) || from.unknown.is_some(),
            _ => true,
        }
    }
}

/// What the words of a table of pointers count from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum TableRoot {
    /// The parameter word at this offset.
    Word(u16),
    /// The variable of this symbol.
    Symbol(u32),
}

/// What an evaluation finds: for each access its direction, the bytes behind a base, and the first
/// instruction.
pub(crate) type EvaluatedAccesses<E> = Vec<(AccessKind, ReachedBytes<E>, u32)>;
