//! What a summary answers: the accesses of one launch, and the effects of a kernel on each
//! parameter word.
//!
//! Owns the vocabulary of extents that other crates see. A [`KernelAccess`] has a [`Base`] (what
//! its addresses count from), and an [`Extent`] (which bytes, relative to that base). A [`Gap`]
//! says where and why an extent is not known. Data only; `ranges` makes it.

use crate::ir::{self, Cmp};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

pub use crate::grid_dependence::{Dependency, Early, Triggering, Triggers};
pub use crate::ir::{AccessKind, Reason};

/// One kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Param {
    /// Bytes from the start of the parameters.
    pub offset: u16,
    /// Bytes.
    pub size: u16,
}

/// Arguments of one launch, as the driver gets them.
#[derive(Clone, Copy, Debug)]
pub struct LaunchArgs<'a> {
    /// Blocks per axis.
    pub grid: [u32; 3],
    /// Threads per block and axis.
    pub block: [u32; 3],
    /// Blocks per cluster and axis (ones or zeros: as the code says, or no cluster).
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Raw parameter bytes, laid out at the offsets of [`Param`].
    pub params: &'a [u8],
}

impl<'a> LaunchArgs<'a> {
    /// A launch without clusters and dynamic shared memory.
    #[must_use]
    pub fn new(grid: [u32; 3], block: [u32; 3], params: &'a [u8]) -> Self {
        LaunchArgs { grid, block, cluster: [1; 3], shared: 0, params }
    }
}

/// How well a parameter word's accesses are known, whatever the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WordExtent {
    /// A byte interval follows from the launch.
    Affine,
    /// It does not (some access depends on loaded data, or is too complicated).
    Unknown,
}

/// What a kernel does through one pointer-sized word of its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordEffect {
    /// Byte offset of the 8-byte word in the parameters.
    pub offset: u16,
    /// Some access reads.
    pub reads: bool,
    /// Some access writes.
    pub writes: bool,
    /// Some access is atomic.
    pub atomic: bool,
    /// Extent of all of them.
    pub extent: WordExtent,
    /// Why the extent is unknown: the first access that gave up, in the order of the code.
    pub why: Option<Gap>,
}

/// Where and why the range analysis did not find an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gap {
    /// The first thing that was not understood.
    pub reason: Reason,
    /// The memory instruction: its byte offset in the kernel's code section, or its line of PTX.
    pub at: u32,
}

/// The role that a value plays where it keeps an access from being exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LossRole {
    /// It is part of the address.
    Address,
    /// It decides whether a thread makes the access at all.
    Condition,
    /// It decides how often a loop around the access runs.
    Iterations,
}

/// What keeps an access from being exact, as far as the code tells it whatever the launch: the
/// first value on the way to the access that the analysis does not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Loss {
    /// What the value is used for.
    pub role: LossRole,
    /// What it is.
    pub reason: Reason,
    /// The instruction that makes the value, as in [`Gap::at`]; 0 when that is not known.
    pub at: u32,
    /// The parameter it comes from (byte offset): for a loaded value the pointer that it is loaded
    /// through, for a number of iterations the number.
    pub param: Option<u16>,
}

/// Accesses through addresses that come from no parameter word: loaded from memory, or unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndirectEffect {
    /// Some read.
    pub reads: bool,
    /// Some write.
    pub writes: bool,
    /// Some atomic.
    pub atomic: bool,
    /// Where the first of them is, and where its address comes from.
    pub why: Option<Gap>,
}

impl IndirectEffect {
    /// Is there any?
    #[must_use]
    pub fn any(&self) -> bool {
        self.reads || self.writes || self.atomic
    }

    pub(crate) fn add(&mut self, kind: ir::AccessKind, why: Gap) {
        self.why.get_or_insert(why);
        match kind {
            _ if kind.is_atomic() => self.atomic = true,
            _ if kind.writes() => self.writes = true,
            _ => self.reads = true,
        }
    }
}

/// What the addresses of an access count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// The 64-bit parameter word at this offset; `value` is what it holds in this launch.
    Word {
        /// Byte offset in the parameters.
        offset: u16,
        /// Its value: the address that extents are relative to.
        value: u64,
    },
    /// A `__device__` (or `__constant__`) variable; see [`crate::Summary::symbol`].
    Global(SymbolRef),
    /// Texture or surface handle in the parameter word at this offset.
    Handle {
        /// Byte offset in the parameters.
        offset: u16,
        /// Its value.
        value: u64,
        /// A surface (else a texture).
        surface: bool,
    },
    /// Tensor map (128 bytes by value) at this parameter offset.
    TensorMap {
        /// Byte offset in the parameters.
        offset: u16,
    },
    /// A known address that comes from no parameter word used as a 64-bit pointer.
    Absolute {
        /// The lowest address.
        value: u64,
    },
    /// Each of the addresses that a table in global memory holds: `count` 8-byte words, the first
    /// one `lo` bytes behind the parameter word `value`, the others `stride` bytes apart. All of
    /// them are used. The extent counts from each of the addresses.
    Table {
        /// Byte offset in the parameters.
        offset: u16,
        /// What the parameter word holds.
        value: u64,
        /// First word of the table that is used, relative to `value`.
        lo: i64,
        /// Bytes from one word to the next.
        stride: u64,
        /// Number of words.
        count: u64,
    },
    /// The same of a table in a variable: the first word is `lo` bytes behind its start.
    VariableTable {
        /// The variable; see [`crate::Summary::symbol`].
        symbol: SymbolRef,
        /// First word of the table that is used.
        lo: i64,
        /// Bytes from one word to the next.
        stride: u64,
        /// Number of words.
        count: u64,
    },
    /// An address that was loaded from memory, or is of unknown origin.
    Unknown,
}

/// Index of a symbol name in its summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SymbolRef(pub u32);

/// One access of a launch, over all its threads.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelAccess {
    /// What offsets count from.
    pub base: Base,
    /// Direction.
    pub kind: AccessKind,
    /// The address derives from several words, and there is one entry for each. Words whose value
    /// lies outside of live allocations are scalars: drop their entries. When no word points into
    /// an allocation, an entry with [`Base::Unknown`] remains, if the address may have come out of
    /// memory.
    pub several: bool,
    /// Bytes touched.
    pub extent: Extent,
    /// Of a copy by tensor map: its tiles. The map lies where the base says ([`Base::TensorMap`]:
    /// among the parameters), and the extent is unknown.
    pub tiles: Option<Box<Tiles>>,
    /// The extent holds tiles of a tensor, copied by a map that the kernel makes itself.
    pub by_map: bool,
    /// The extent is a bound, and which bytes within it are touched rests on what other threads
    /// answered (a ballot, a match).
    pub voted: bool,
    /// The extent is a bound: the range of the types of the loaded values that alone select the
    /// bytes.
    pub looked_up: bool,
    /// The lock that the thread holds during all accesses of this kind through this base.
    pub lock: Option<Lock>,
    /// Without that: the lock that it holds if the launch executes the fences which this needs, and
    /// which it may leave out.
    pub if_fenced: Option<Lock>,
    /// The words in memory that decide which threads make the accesses of this kind through this
    /// base.
    pub selection: Option<Selection>,
    /// Whether it is made by threads that have not waited for the grids that the kernel depends on,
    /// of a kernel that waits for them. (In one that never waits, no access is marked.)
    pub early: Early,
    /// The first memory instruction that makes it: its byte offset in the kernel's code section, or
    /// its line of PTX.
    pub at: u32,
}

/// The tiles that a copy by tensor map takes, by their coordinates. What of the tensor they are is
/// in the map: see [`Extent::of_tiles`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tiles<E = Extent> {
    /// How far behind the base the map lies.
    pub at: i64,
    /// The coordinates along each axis, the innermost first, as an extent of elements; empty: they
    /// are not known.
    pub axes: Vec<E>,
    /// There is a tile at each combination of the coordinates, and no other. Otherwise they are an
    /// upper bound.
    pub exact: bool,
}

/// A lock of a launch, or several of them: where the atomic words lie that may be it, at most.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    /// Base and bytes of each word, at least one.
    pub words: SmallVec<[(Base, Extent); 1]>,
    /// How the access is ordered by them.
    pub role: LockRole,
}

/// An access that is made only where a word in memory has certain values: which word belongs to
/// which bytes, and for which values of the word, taken as a number with a sign.
/// (`ranges/selections.rs` argues what follows from two of them.)
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Selection {
    /// A hash of how the addresses of the bytes follow from those of the words, and of the words'
    /// size.
    relation: u64,
    lo: i32,
    hi: i32,
    /// All values but those from `lo` to `hi`.
    outside: bool,
}

impl Selection {
    /// The numbers between two ends that compare so with a value. The ends are those of all numbers
    /// of some bits, with or without a sign. `None`: no number or each one does, or they are in two
    /// pieces.
    pub(crate) fn of(relation: u64, cmp: Cmp, value: i64, (least, most): (i64, i64)) -> Option<Self> {
        let (lo, hi) = match cmp {
            Cmp::Eq | Cmp::Ne => (value, value),
            Cmp::Lt => (least, value.saturating_sub(1)),
            Cmp::Le => (least, value),
            Cmp::Gt => (value.saturating_add(1), most),
            Cmp::Ge => (value, most),
        };
        let (lo, hi) = (lo.max(least), hi.min(most));
        if lo > hi || (lo, hi) == (least, most) {
            return None;
        }
        // The upper half of the numbers without a sign are the negative ones of those with a sign.
        let count = most - least + 1;
        let (lo, hi, inverted) = match least {
            0 if hi < count / 2 => (lo, hi, false),
            0 if lo >= count / 2 => (lo - count, hi - count, false),
            0 if lo == 0 => (hi + 1 - count, -1, true),
            0 if hi == most => (0, lo - 1, true),
            0 => return None,
            _ => (lo, hi, false),
        };
        let least = if least == 0 { -(count / 2) } else { least };
        let most = least + count - 1;
        let (lo, hi, outside) = match (lo, hi, inverted != (cmp == Cmp::Ne)) {
            (lo, hi, true) if lo == least => (hi + 1, most, false),
            (lo, hi, true) if hi == most => (least, lo - 1, false),
            all => all,
        };
        let (lo, hi) = (i32::try_from(lo).ok()?, i32::try_from(hi).ok()?);
        Some(Self { relation, lo, hi, outside })
    }

    /// Whether no byte is touched under both, as long as the words do not change.
    #[must_use]
    pub fn excludes(self, other: Self) -> bool {
        let within = |inner: Self, outer: Self| outer.lo <= inner.lo && inner.hi <= outer.hi;
        self.relation == other.relation
            && match (self.outside, other.outside) {
                (false, false) => self.hi < other.lo || other.hi < self.lo,
                (false, true) => within(self, other),
                (true, false) => within(other, self),
                (true, true) => false,
            }
    }
}

/// How an access is ordered by the words of a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockRole {
    /// It lies between the taking of the lock and its giving back.
    #[default]
    Section,
    /// An atomic store to the words follows it, which may tell others that it was made.
    Gives,
    /// An atomic load of the words decides that it is made.
    Awaits,
    /// Both, each with some of the words.
    Passes,
    /// A thread makes it only if it was the one that found the words as nobody had claimed them:
    /// see `ranges/claims.rs`.
    Claims,
}

impl LockRole {
    /// What is true of two accesses that are ordered so and so; `None`: nothing.
    #[must_use]
    pub fn common(self, other: Self) -> Option<Self> {
        match (self, other) {
            (one, other) if one == other => Some(one),
            (Self::Passes, one @ (Self::Gives | Self::Awaits)) | (one @ (Self::Gives | Self::Awaits), Self::Passes) => {
                Some(one)
            }
            _ => None,
        }
    }

    /// Whether an access that is ordered so may be over when the other one is made.
    #[must_use]
    pub fn may_precede(self, other: Self) -> bool {
        matches!(self, Self::Gives | Self::Passes) && matches!(other, Self::Awaits | Self::Passes)
    }
}

/// One dimension of an [`Extent`]: `count` addresses, `stride` bytes apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Dim {
    /// Bytes between neighbours.
    pub stride: u64,
    /// How many, at least 1.
    pub count: u64,
}

/// The bytes of an access, relative to the value of its [`Base`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Extent {
    /// All bytes touched are within this set: `{ lo + sum(stride_i * j_i) + b | 0 <= j_i < count_i,
    /// 0 <= b < width }`.
    Bounded {
        /// Lowest byte.
        lo: i64,
        /// One past the highest byte.
        hi: i64,
        /// Progressions, by ascending stride; none: one element.
        dims: SmallVec<[Dim; 3]>,
        /// Bytes of an element.
        width: u32,
        /// Every byte of the set is touched (else the set is an upper bound).
        exact: bool,
    },
    /// Any bytes.
    Unknown {
        /// Why.
        reason: Reason,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPARISONS: [Cmp; 6] = [Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge, Cmp::Eq, Cmp::Ne];

    /// Whether a comparison selects a byte, read with or without a sign.
    fn selects(cmp: Cmp, value: i64, signed: bool, byte: u8) -> bool {
        let number = if signed { i64::from(byte.cast_signed()) } else { i64::from(byte) };
        match cmp {
            Cmp::Lt => number < value,
            Cmp::Le => number <= value,
            Cmp::Gt => number > value,
            Cmp::Ge => number >= value,
            Cmp::Eq => number == value,
            Cmp::Ne => number != value,
        }
    }

    #[test]
    fn selections_that_exclude_each_other_have_no_value_in_common() {
        let mut all = Vec::new();
        for signed in [true, false] {
            let ends = if signed { (-128, 127) } else { (0, 255) };
            for cmp in COMPARISONS {
                for value in [-129, -128, -127, -1, 0, 1, 2, 126, 127, 128, 129, 254, 255, 256] {
                    let chosen: Vec<u8> = (0..=255).filter(|byte| selects(cmp, value, signed, *byte)).collect();
                    all.extend(Selection::of(7, cmp, value, ends).map(|s| (s, chosen)));
                }
            }
        }
        let mut excluding = 0;
        for (one, chosen) in &all {
            for (other, others) in &all {
                let apart = chosen.iter().all(|byte| !others.contains(byte));
                assert!(!one.excludes(*other) || apart, "{one:?} {other:?}");
                assert_eq!(one.excludes(*other), other.excludes(*one));
                excluding += u32::from(one.excludes(*other));
                let elsewhere = Selection { relation: 8, ..*other };
                assert!(!one.excludes(elsewhere));
            }
        }
        assert!(excluding > 1000, "{excluding}");
        let of = |cmp, value, ends| Selection::of(7, cmp, value, ends).expect("a selection");
        let (word, bytes) = ((i64::from(i32::MIN), i64::from(i32::MAX)), (0, 255));
        for value in [-5, 0, 9] {
            for (one, other) in [(Cmp::Eq, Cmp::Ne), (Cmp::Lt, Cmp::Ge), (Cmp::Gt, Cmp::Le)] {
                assert!(of(one, value, word).excludes(of(other, value, word)));
            }
        }
        assert!(of(Cmp::Lt, 200, bytes).excludes(of(Cmp::Ge, 200, bytes)));
        assert!(of(Cmp::Eq, 200, bytes).excludes(of(Cmp::Gt, 0, (-128, 127))));
    }
}
