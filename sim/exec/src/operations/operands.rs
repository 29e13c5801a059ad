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

use crate::operations::encoding::{list, number, role};
use crate::operations::table::for_each_operation;
use crate::operations::values::{BARRIER_POPC, COMBINE_NONE, EXTENDED, OUTWARD};
use crate::program::{ArgumentHome, Inst, Operation, Pred, Program, ResultUse, Slot};

pub(super) fn call_arguments<'p>(program: &'p Program, i: &Inst) -> Option<&'p [ArgumentHome]> {
    Some(&program.calls.get(i.fields.x as usize)?.arguments)
}

pub(super) fn call_returns<'p>(program: &'p Program, i: &Inst) -> Option<&'p [ArgumentHome]> {
    Some(&program.calls.get(i.fields.x as usize)?.returns)
}

pub(super) fn own_returns<'p>(program: &'p Program, i: &Inst) -> Option<&'p [ArgumentHome]> {
    Some(&program.functions.get(i.fields.y as usize)?.returns)
}

impl Inst {
    /// The row with the lanes that are to meet, of BSYNC.
    pub(crate) fn meeting(&self) -> Option<Slot> {
        matches!(self.op, Operation::Meet).then(|| Meet::of(self).members())
    }

    /// What the lanes at a barrier of the block learn, and the row or predicate that holds it.
    pub(crate) fn barrier_result(&self) -> (u32, Slot) {
        let barrier = Barrier::of(self);
        (barrier.what(), self.fields.d)
    }

    /// Of a branch: leads it to an instruction.
    pub(crate) fn lead_to(&mut self, target: u32) {
        debug_assert!(matches!(self.op, Operation::Branch | Operation::BranchIfApart), "{:?} leads nowhere", self.op);
        self.fields.x = u64::from(target);
    }
}

/// The function of an operand, by its role and its place.
macro_rules! operand {
    ($name:ident, Any, [], []) => {};
    ($name:ident, Long, [X], []) => {
        #[inline(always)]
        pub fn $name(self) -> u64 {
            self.0.fields.x
        }
    };
    ($name:ident, $role:ident, [Also($($place:tt)+)], $condition:tt) => {
        operand! { $name, $role, [$($place)+], $condition }
    };
    ($name:ident, $role:ident, [List($($list:tt)+)], [$($condition:expr)?]) => {
        /// In the program's list of slots.
        #[inline(always)]
        pub fn $name(self, program: &Program) -> &[Slot] {
            $(debug_assert!(apply(self.0, $condition), "{:?} has no {}", self.0.op, stringify!($name));)?
            let (first, count) = list!(self.0, $($list)+);
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
    ($name:ident, $role:ident, [Span($first:tt, $count:tt)], []) => {
        #[inline(always)]
        pub fn $name(self) -> impl ExactSizeIterator<Item = role!($role)> {
            let (first, count) = (number!(self.0, $first), number!(self.0, $count));
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

/// These let a closure know the type of its parameter.
#[inline(always)]
fn apply_to<I, T>(i: I, f: impl FnOnce(I) -> T) -> T {
    f(i)
}

#[inline(always)]
pub(super) fn apply<T>(i: &Inst, f: impl FnOnce(&Inst) -> T) -> T {
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
        [self.0.fields.a, self.0.fields.b, self.0.fields.c].into_iter().take(usize::from(self.0.arity()))
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
    /// What the access is towards other threads: see `exec::told::strength`. Of barrier objects
    /// their instructions say it.
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
    Atomic: |i| i.strength();
    AtomicVector: |i| i.strength();
    Wide: |i| i.strength();
    MbarrierOperate: |_| 0;
    MbarrierTest: |_| 0;
    TensorMapReplace: |_| 0;
}
