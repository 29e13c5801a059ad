//! What an access reaches: a base, and the bytes relative to its value.
//!
//! Owns the types that pass between the files of this folder, `analysis` and `memo`. No rules.

use super::delinearization::Delinearized;
use crate::effects::Extent;
use crate::ir::{AccessKind, BlockId};
use crate::ranges::domain::byte_set::ByteSet;
use crate::ranges::domain::constraints::ConstraintSet;
use crate::ranges::domain::int::Int;
use serde::{Deserialize, Serialize};

/// How an access is made.
#[derive(Clone, Copy)]
pub(crate) struct AccessContext<'a> {
    /// What holds then.
    pub cons: &'a ConstraintSet,
    /// Bytes.
    pub width: Int,
    pub block: BlockId,
    /// Nothing else decides whether and where it happens.
    pub complete: bool,
}

/// A base candidate of an access, and the bytes relative to its value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ReachedBytes<E = ByteSet> {
    pub base: SymbolicBase,
    pub several: bool,
    pub extent: E,
    /// What says more of it.
    pub walk: Option<Box<Delinearized>>,
}

impl<E> ReachedBytes<E> {
    pub fn new(base: SymbolicBase, several: bool, extent: E) -> ReachedBytes<E> {
        ReachedBytes { base, several, extent, walk: None }
    }
}

impl<N: Copy> ReachedBytes<ByteSet<N>> {
    /// As others see it, with these values.
    pub fn finished(&self, value: impl Fn(N) -> i128) -> ReachedBytes<Extent> {
        ReachedBytes::new(self.base, self.several, self.extent.finished(value))
    }
}

/// A base before parameter values are put in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum SymbolicBase {
    Word(u16),
    Symbol(u32),
    ParamAddress(u16),
    /// Texture (false) or surface handle.
    Handle(u16, bool),
    Absolute,
    /// The addresses that a table holds: `count` 8-byte words from `lo` on behind a parameter word,
    /// `stride` bytes apart.
    Table {
        word: u16,
        lo: i64,
        stride: u64,
        count: u64,
    },
    Unknown,
}

/// What an evaluation finds: directions, bytes behind bases, and the first instruction.
pub(crate) type EvaluatedAccesses<E> = Vec<(AccessKind, ReachedBytes<E>, u32)>;
