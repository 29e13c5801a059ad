//! The fields of an instruction, and places in them as the table of operations writes them.
//!
//! Only the modules of this folder see the fields. The table says what each field means for each
//! operation; `operands` reads an operand by its name, and `build` writes it, at the same place:
//!
//! - `A` to `D` are slots or predicates, `X` has 64 bits, `Y` and `Z` have 32. As a number, `X` is
//!   its lower half. `Z[4..32]` are bits of a field.
//! - `Packed(X[0..16])` is a predicate in 16 bits.
//! - `Span(Z, 7)` are the seven rows or predicates from the one in `Z` on.
//! - `List(Z[6..12] after Z[0..6])` is a part of the program's list of slots. `Y` is where the
//!   lists of the instruction begin there. `Z[6..12]` is how many slots it has, `Z[0..6]` how many
//!   the list in front of it has.
//! - `Homes(function)` are the parameters or results of a function. `Fixed(0)` is the same row in
//!   every instruction. `Also(D)` is what another operand of the row is, too.

use crate::operations::values::{Pred, Slot};

/// The fields. What they mean is the table's to say.
#[derive(Clone, Copy)]
pub(crate) struct Fields {
    pub(super) d: Slot,
    pub(super) a: Slot,
    pub(super) b: Slot,
    pub(super) c: Slot,
    pub(super) x: u64,
    pub(super) y: u32,
    pub(super) z: u32,
}

impl Fields {
    /// Those of an instruction without operands.
    pub(super) const NONE: Fields =
        Fields { d: Slot::NONE, a: Slot::NONE, b: Slot::NONE, c: Slot::NONE, x: 0, y: 0, z: 0 };
}

/// A predicate in 16 bits: bit 15 negates.
pub(super) fn packed(pred: Pred) -> u32 {
    pred.0 & 0x7fff | pred.0 >> 31 << 15
}

/// The predicate of [`packed`].
#[inline(always)]
pub(super) fn unpacked(bits: u32) -> Pred {
    let number = bits & 0x7fff;
    let number = if number == 0x7fff { Pred::ALWAYS.0 } else { number };
    Pred(number | (bits >> 15 & 1) << 31)
}

/// Ones in so many low bits.
pub(super) const fn ones(width: u32) -> u32 {
    u32::MAX >> (32 - width)
}

/// A number that fits into so many bits.
pub(super) fn fitting(number: u32, width: u32) -> u32 {
    debug_assert!(number <= ones(width), "{number} has more than {width} bits");
    number
}

/// The number that is at a place of an instruction.
macro_rules! number {
    ($i:expr, A) => {
        $i.fields.a.0
    };
    ($i:expr, B) => {
        $i.fields.b.0
    };
    ($i:expr, C) => {
        $i.fields.c.0
    };
    ($i:expr, D) => {
        $i.fields.d.0
    };
    ($i:expr, X) => {
        $i.fields.x as u32
    };
    ($i:expr, Y) => {
        $i.fields.y
    };
    ($i:expr, Z) => {
        $i.fields.z
    };
    ($i:expr, X[$from:literal .. $to:literal]) => {
        ($i.fields.x >> $from) as u32 & const { $crate::operations::encoding::ones($to - $from) }
    };
    ($i:expr, Z[$from:literal .. $to:literal]) => {
        $i.fields.z >> $from & const { $crate::operations::encoding::ones($to - $from) }
    };
    ($i:expr, Packed($($place:tt)+)) => {
        $crate::operations::encoding::unpacked(number!($i, $($place)+)).0
    };
    ($i:expr, Fixed($number:literal)) => {
        $number
    };
    ($i:expr, $number:literal) => {
        $number
    };
}

/// Where a list begins in the program's slots, and how many it has.
macro_rules! list {
    ($i:expr, $count:tt $([$($bits:tt)*])? $(after $($before:tt $([$($before_bits:tt)*])?),+)?) => {
        (
            ($i.fields.y $($(+ (number!($i, $before $([$($before_bits)*])?)))+)?) as usize,
            (number!($i, $count $([$($bits)*])?)) as usize,
        )
    };
}

/// Puts a number at a place of an instruction that has none there.
macro_rules! put {
    ($i:expr, A, $number:expr) => {
        $i.fields.a = Slot($number)
    };
    ($i:expr, B, $number:expr) => {
        $i.fields.b = Slot($number)
    };
    ($i:expr, C, $number:expr) => {
        $i.fields.c = Slot($number)
    };
    ($i:expr, D, $number:expr) => {
        $i.fields.d = Slot($number)
    };
    ($i:expr, X, $number:expr) => {
        $i.fields.x |= u64::from($number)
    };
    ($i:expr, Y, $number:expr) => {
        $i.fields.y |= $number
    };
    ($i:expr, Z, $number:expr) => {
        $i.fields.z |= $number
    };
    ($i:expr, X[$from:literal .. $to:literal], $number:expr) => {
        $i.fields.x |= u64::from($crate::operations::encoding::fitting($number, $to - $from)) << $from
    };
    ($i:expr, Z[$from:literal .. $to:literal], $number:expr) => {
        $i.fields.z |= $crate::operations::encoding::fitting($number, $to - $from) << $from
    };
    ($i:expr, Packed($($place:tt)+), $number:expr) => {
        put!($i, $($place)+, $crate::operations::encoding::packed(Pred($number)))
    };
    ($i:expr, $known:literal, $number:expr) => {
        debug_assert_eq!($number, $known)
    };
}

/// The type of a role's operands, and an operand of it.
macro_rules! role {
    (Word) => { u32 };
    (Word, $number:expr) => { $number };
    (Read $(, $number:expr)?) => { Slot $(($number))? };
    (Write $(, $number:expr)?) => { Slot $(($number))? };
    (Test $(, $number:expr)?) => { Pred $(($number))? };
    (Set $(, $number:expr)?) => { Pred $(($number))? };
}

pub(super) use {list, number, put, role};
