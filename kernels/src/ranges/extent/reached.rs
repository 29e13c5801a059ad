//! Reached.

use super::delinearization::Walk;
use crate::effects::Extent;
use crate::ir::{AccessKind, BlockId};
use crate::ranges::domain::byte_set::Span;
use crate::ranges::domain::constraints::Facts;
use crate::ranges::domain::int::Int;
use serde::{Deserialize, Serialize};

/// How an access is made.
#[derive(Clone, Copy)]
pub(crate) struct Made<'a> {
    /// What holds then.
    pub cons: &'a Facts,
    /// Bytes.
    pub width: Int,
    pub block: BlockId,
    /// Nothing else decides whether and where it happens.
    pub complete: bool,
}

/// A base candidate of an access, and the bytes relative to its value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Reached<E = Span> {
    pub base: RawBase,
    pub several: bool,
    pub extent: E,
    /// What says more of it.
    pub walk: Option<Box<Walk>>,
}

impl<E> Reached<E> {
    pub fn new(base: RawBase, several: bool, extent: E) -> Reached<E> {
        Reached { base, several, extent, walk: None }
    }
}

impl<N: Copy> Reached<Span<N>> {
    /// As others see it, with these values.
    pub fn finished(&self, value: impl Fn(N) -> i128) -> Reached<Extent> {
        Reached::new(self.base, self.several, self.extent.finished(value))
    }
}

/// A base before parameter values are put in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum RawBase {
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
pub(crate) type Found<E> = Vec<(AccessKind, Reached<E>, u32)>;
