//! Operands by their names: a type for each row of the table of operations, with a function for
//! each operand of the row. The interpreter and native code read instructions through them, so a
//! name that the row does not have does not compile.
//!
//! A type borrows an instruction, and its functions read the fields that the row names: nothing is
//! decoded. Reading an instruction of another row, or an operand whose condition does not hold, is
//! a mistake that debug builds find.
//!
//! ```
//! # use sim_exec::program::{Inst, Pred, Slot};
//! # use sim_exec::operations::operands;
//! fn read(inst: &Inst) -> (Slot, Pred) {
//!     let i = operands::Select::of(inst);
//!     (i.a(), i.which())
//! }
//! ```
//!
//! `Select` has no carry, and its predicate is no row:
//!
//! ```compile_fail,E0599
//! # use sim_exec::program::{Inst, Pred};
//! # use sim_exec::operations::operands;
//! fn read(inst: &Inst) -> Pred {
//!     operands::Select::of(inst).carry()
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use sim_exec::program::{Inst, Slot};
//! # use sim_exec::operations::operands;
//! fn read(inst: &Inst) -> Slot {
//!     operands::Select::of(inst).which()
//! }
//! ```

use crate::operations::table::for_each_operation;
use crate::operations::values::{BARRIER_POPC, COMBINE_NONE, EXTENDED, OUTWARD};
use crate::program::{ArgumentHome, Inst, Operation, Pred, Program, ResultUse, Slot};

/// The predicate of `exec_sass::integer::packed`.
#[inline(always)]
pub(crate) fn unpacked(bits: u64) -> Pred {
    let number = bits as u32 & 0x7fff;
    let number = if number == 0x7fff { Pred::ALWAYS.0 } else { number };
    Pred(number | (bits as u32 >> 15 & 1) << 31)
}

#[inline(always)]
pub(super) fn list(first: u32, count: u32) -> (usize, usize) {
    (first as usize, count as usize)
}

pub(super) fn call_arguments<'p>(program: &'p Program, i: &Inst) -> Option<&'p [ArgumentHome]> {
    Some(&program.calls.get(i.x as usize)?.arguments)
}

pub(super) fn call_returns<'p>(program: &'p Program, i: &Inst) -> Option<&'p [ArgumentHome]> {
    Some(&program.calls.get(i.x as usize)?.returns)
}

pub(super) fn own_returns<'p>(program: &'p Program, i: &Inst) -> Option<&'p [ArgumentHome]> {
    Some(&program.functions.get(i.y as usize)?.returns)
}

/// An instruction of an operation, without operands.
pub(crate) fn blank(op: Operation) -> Inst {
    Inst {
        op,
        run: op.run(),
        guard: Pred::ALWAYS,
        d: Slot::NONE,
        a: Slot::NONE,
        b: Slot::NONE,
        c: Slot::NONE,
        x: 0,
        y: 0,
        z: 0,
        place: 0,
    }
}

impl Inst {
    /// The row with the lanes that are to meet, of BSYNC.
    pub(crate) fn meeting(&self) -> Option<Slot> {
        matches!(self.op, Operation::Meet).then(|| Meet::of(self).members())
    }
}

/// The number that is at a place.
macro_rules! number {
    ($i:expr, A) => {
        $i.a.0
    };
    ($i:expr, B) => {
        $i.b.0
    };
    ($i:expr, C) => {
        $i.c.0
    };
    ($i:expr, D) => {
        $i.d.0
    };
    ($i:expr, X) => {
        $i.x as u32
    };
    ($i:expr, Y) => {
        $i.y
    };
    ($i:expr, Z) => {
        $i.z
    };
    ($i:expr, Of($number:expr)) => {
        apply($i, $number)
    };
    ($i:expr, Packed($bits:expr)) => {
        unpacked(apply($i, $bits)).0
    };
}

/// The function of an operand, by its role and its place.
macro_rules! operand {
    ($name:ident, Any, [], []) => {};
    ($name:ident, Long, [X], []) => {
        #[inline(always)]
        pub fn $name(self) -> u64 {
            self.0.x
        }
    };
    ($name:ident, $role:ident, [List($list:expr)], [$($condition:expr)?]) => {
        /// In the program's list of slots.
        #[inline(always)]
        pub fn $name(self, program: &Program) -> &[Slot] {
            $(debug_assert!(apply(self.0, $condition), "{:?} has no {}", self.0.op, stringify!($name));)?
            let (first, count) = apply(self.0, $list);
            &program.slots[first..][..count]
        }
    };
    ($name:ident, $role:ident, [Homes($homes:expr)], []) => {
        /// None where nobody knows.
        #[inline(always)]
        pub fn $name(self, program: &Program) -> Option<&[ArgumentHome]> {
            $homes(program, self.0)
        }
    };
    ($name:ident, $role:ident, [Span($span:expr)], []) => {
        #[inline(always)]
        pub fn $name(self) -> impl ExactSizeIterator<Item = role!($role)> {
            let (first, count) = apply(self.0, $span);
            (0..count).map(move |at| role!($role, first + at))
        }
    };
    ($name:ident, $role:ident, [$($place:tt)+], [$($condition:expr)?]) => {
        #[inline(always)]
        pub fn $name(self) -> role!($role) {
            $(debug_assert!(apply(self.0, $condition), "{:?} has no {}", self.0.op, stringify!($name));)?
            role!($role, number!(self.0, $($place)+))
        }
    };
}

/// The type of a role's operands, and an operand of it.
macro_rules! role {
    (Word $(, $number:expr)?) => { word!($($number)?) };
    (Read $(, $number:expr)?) => { register!(Slot $(, $number)?) };
    (Write $(, $number:expr)?) => { register!(Slot $(, $number)?) };
    (Test $(, $number:expr)?) => { register!(Pred $(, $number)?) };
    (Set $(, $number:expr)?) => { register!(Pred $(, $number)?) };
}

macro_rules! word {
    () => {
        u32
    };
    ($number:expr) => {
        $number
    };
}

macro_rules! register {
    ($ty:ident) => {
        $ty
    };
    ($ty:ident, $number:expr) => {
        $ty($number)
    };
}

/// These let a closure know the type of its parameter.
#[inline(always)]
fn apply_to<I, T>(i: I, f: impl FnOnce(I) -> T) -> T {
    f(i)
}

#[inline(always)]
fn apply<T>(i: &Inst, f: impl FnOnce(&Inst) -> T) -> T {
    f(i)
}

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident $(($($p:ident: $ty:ty),+))? = $run:expr, $kind:expr,
        [$($operand:ident: $role:ident $(($($place:tt)+))? $(if $condition:expr)?),*],
        $keys:tt;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name<'i>(
            #[allow(dead_code, reason = "operations without operands")]
            &'i Inst
        );

        impl<'i> $name<'i> {
            /// The operands of an instruction, which is of this row.
            #[inline(always)]
            pub fn of(inst: &'i Inst) -> $name<'i> {
                debug_assert!(
                    matches!(inst.op, Operation::$name { .. }), "{:?} is no {}", inst.op, stringify!($name)
                );
                $name(inst)
            }

            $(operand! { $operand, $role, [$($($place)+)?], [$($condition)?] })*
        }
    )*};
}
for_each_operation!(types);

impl<'i> Lane<'i> {
    /// The rows that its function has: one to three.
    pub fn sources(self) -> impl ExactSizeIterator<Item = Slot> + Clone {
        [self.0.a, self.0.b, self.0.c].into_iter().take(usize::from(self.0.arity()))
    }
}

/// Where the lanes of a warp access memory, as every access says it.
#[derive(Clone, Copy)]
pub struct Location {
    /// The row with the addresses.
    pub row: Slot,
    /// What is added to them.
    pub offset: u64,
    pub space: u32,
    /// What the access is towards other kernels: see `exec::load_store`.
    pub(crate) strength: u32,
}

macro_rules! locations {
    ($($name:ident: $strength:expr;)*) => {$(
        impl $name<'_> {
            #[inline(always)]
            pub fn location(self) -> Location {
                let strength = apply_to(self, $strength);
                Location { row: self.address(), offset: self.offset(), space: self.space(), strength }
            }
        }
    )*};
}
locations! {
    Load: |i| i.strength();
    Store: |i| i.strength();
    Atomic: |i| i.scope();
    AtomicVector: |_| 0;
    Wide: |_| 0;
    MbarrierOperate: |_| 0;
    MbarrierTest: |_| 0;
}
