//! Instructions from their operands by name: a struct for each row of the table of operations, with
//! a field for each operand of the row. What compiles kernels makes instructions of them alone, so
//! an operand that a row does not have, one that is left out, and a row for a predicate do not
//! compile.
//!
//! An operand with a condition is an `Option`: it is given where the condition holds and nowhere
//! else, which debug builds check. What follows from other operands is not given: how many slots a
//! list has, and operands at a place that another one names.

use crate::operations::encoding::{Fields, list, number, put, role};
#[cfg(test)]
use crate::operations::operands;
use crate::operations::operands::apply;
use crate::operations::table::for_each_operation;
use crate::operations::values::{BARRIER_POPC, COMBINE_NONE, EXTENDED, LaneTy, OUTWARD, WideAccess};
#[cfg(test)]
use crate::program::Program;
use crate::program::{Inst, LaneOp, Operation, Pred, ResultUse, Slot, Update};

/// What becomes an instruction.
pub(crate) trait Build {
    /// The instruction. Its lists go to the end of the program's slots.
    fn build(self, slots: &mut Vec<Slot>) -> Inst;
}

impl Build for Inst {
    fn build(self, _: &mut Vec<Slot>) -> Inst {
        self
    }
}

/// What an instruction can be taken apart into.
#[cfg(test)]
pub(super) trait Taken: Build + std::fmt::Debug {
    /// The operands that would make this instruction, which is of the row.
    fn taken(inst: &Inst, program: &Program) -> Self;
}

/// An instruction of an operation, without operands.
pub(super) fn blank(op: Operation) -> Inst {
    Inst { op, run: op.run(), guard: Pred::ALWAYS, fields: Fields::NONE, place: 0 }
}

/// The type of what is given for an operand.
macro_rules! given {
    (Long [X] []) => { u64 };
    ($role:ident [List($($list:tt)+)] []) => { Vec<Slot> };
    ($role:ident [List($($list:tt)+)] [$condition:expr]) => { Option<Vec<Slot>> };
    ($role:ident $place:tt []) => { role!($role) };
    ($role:ident $place:tt [$condition:expr]) => { Option<role!($role)> };
}

/// The number of an operand.
macro_rules! raw {
    (Word, $value:expr) => {
        $value
    };
    ($role:ident, $value:expr) => {
        $value.0
    };
}

/// Puts an operand into an instruction; of a list, how many there are.
macro_rules! put_operand {
    ($i:ident, $value:expr, Long [X] []) => {
        $i.fields.x = $value
    };
    ($i:ident, $value:expr, $role:ident [List($count:tt $([$($bits:tt)*])? $(after $($before:tt)+)?)] []) => {
        put!($i, $count $([$($bits)*])?, $value.len() as u32)
    };
    ($i:ident, $value:expr, $role:ident [Span($first:tt, $count:tt)] []) => {
        put!($i, $first, raw!($role, $value))
    };
    ($i:ident, $value:expr, $role:ident [$($place:tt)+] []) => {
        put!($i, $($place)+, raw!($role, $value))
    };
    ($i:ident, $value:expr, $role:ident $place:tt [$condition:expr]) => {
        if let Some(value) = &$value {
            put_operand!($i, value, $role $place []);
        }
    };
}

/// Checks that an operand is given where its condition holds, and nowhere else.
macro_rules! check_operand {
    ($i:ident, $value:expr, $operand:ident []) => {};
    ($i:ident, $value:expr, $operand:ident [$condition:expr]) => {
        debug_assert_eq!($value.is_some(), apply(&$i, $condition), "{:?}: {}", $i.op, stringify!($operand))
    };
}

/// Puts a list where the instruction will look for it.
macro_rules! put_list {
    ($i:ident, $slots:ident, $first:ident, $value:expr, [List($($list:tt)+)] []) => {
        let given = &$value;
        $i.fields.y = $first;
        let (from, count) = list!($i, $($list)+);
        debug_assert_eq!(count, given.len(), "{:?}: two lists share their length", $i.op);
        if $slots.len() < from + count {
            $slots.resize(from + count, Slot::NONE);
        }
        $slots[from..][..given.len()].copy_from_slice(given);
    };
    ($i:ident, $slots:ident, $first:ident, $value:expr, [List($($list:tt)+)] [$condition:expr]) => {
        if let Some(given) = &$value {
            put_list!($i, $slots, $first, given, [List($($list)+)] []);
        }
    };
    ($i:ident, $slots:ident, $first:ident, $value:expr, $place:tt $condition:tt) => {};
}

/// The operation of a row.
macro_rules! operation {
    ($name:ident $this:tt []) => {
        Operation::$name
    };
    ($name:ident $this:tt [$($p:ident)+]) => {
        Operation::$name($($this.$p),+)
    };
}

/// What an operand of an instruction is, as it would be given.
#[cfg(test)]
macro_rules! take {
    ($i:ident, $program:ident, $name:ident, $operand:ident $role:ident [List $list:tt] []) => {
        operands::$name::of($i).$operand($program).to_vec()
    };
    ($i:ident, $program:ident, $name:ident, $operand:ident $role:ident [Span $span:tt] []) => {
        operands::$name::of($i).$operand().next().expect("at least one")
    };
    ($i:ident, $program:ident, $name:ident, $operand:ident $role:ident $place:tt []) => {
        operands::$name::of($i).$operand()
    };
    ($i:ident, $program:ident, $name:ident, $operand:ident $role:ident $place:tt [$condition:expr]) => {
        apply($i, $condition).then(|| take!($i, $program, $name, $operand $role $place []))
    };
}

/// The operation of a row, and its parameters.
#[cfg(test)]
macro_rules! parameters_of {
    ($i:ident $name:ident []) => {
        debug_assert!(matches!($i.op, Operation::$name))
    };
    ($i:ident $name:ident [$($p:ident)+]) => {
        let Operation::$name($($p),+) = $i.op else { panic!("{:?} is no {}", $i.op, stringify!($name)) };
    };
}

/// What a row's struct becomes: without lists it needs no program.
macro_rules! conversions {
    (plain $name:ident) => {
        impl From<$name> for Inst {
            fn from(given: $name) -> Inst {
                given.make(&mut Vec::new())
            }
        }

        impl Build for $name {
            fn build(self, _: &mut Vec<Slot>) -> Inst {
                self.into()
            }
        }
    };
    (listed $name:ident) => {
        impl Build for $name {
            fn build(self, slots: &mut Vec<Slot>) -> Inst {
                self.make(slots)
            }
        }
    };
}

/// The struct of a row. It takes one operand after the other, and leaves out those that follow from
/// others.
macro_rules! builder {
    ($row:tt $kind:ident $given:tt [$operand:ident Any [] []] $($rest:tt)*) => {
        builder! { $row $kind $given $($rest)* }
    };
    ($row:tt $kind:ident $given:tt [$operand:ident $role:ident [Also $place:tt] $condition:tt] $($rest:tt)*) => {
        builder! { $row $kind $given $($rest)* }
    };
    ($row:tt $kind:ident $given:tt [$operand:ident $role:ident [Fixed $place:tt] $condition:tt] $($rest:tt)*) => {
        builder! { $row $kind $given $($rest)* }
    };
    ($row:tt $kind:ident $given:tt [$operand:ident $role:ident [Homes $place:tt] $condition:tt] $($rest:tt)*) => {
        builder! { $row $kind $given $($rest)* }
    };
    ($row:tt $kind:ident [$($given:tt)*] [$operand:ident $role:ident [List $list:tt] $condition:tt] $($rest:tt)*) => {
        builder! { $row listed [$($given)* [$operand $role [List $list] $condition]] $($rest)* }
    };
    ($row:tt $kind:ident [$($given:tt)*] [$operand:ident $role:ident $place:tt $condition:tt] $($rest:tt)*) => {
        builder! { $row $kind [$($given)* [$operand $role $place $condition]] $($rest)* }
    };
    ([$(#[$doc:meta])* $name:ident $($p:ident: $ty:ty),*] $kind:ident
        [$([$operand:ident $role:ident $place:tt $condition:tt])*]) => {
        $(#[$doc])*
        #[cfg_attr(test, derive(Debug))]
        pub(crate) struct $name {
            $(pub(crate) $p: $ty,)*
            $(pub(crate) $operand: given!($role $place $condition),)*
        }

        impl $name {
            #[allow(clippy::ptr_arg, unused_mut, unused_variables, reason = "rows without operands, or without lists")]
            fn make(self, slots: &mut Vec<Slot>) -> Inst {
                let mut inst = blank(operation!($name self [$($p)*]));
                $(put_operand!(inst, self.$operand, $role $place $condition);)*
                $(check_operand!(inst, self.$operand, $operand $condition);)*
                let first = slots.len() as u32;
                $(put_list! { inst, slots, first, self.$operand, $place $condition })*
                inst
            }
        }

        conversions! { $kind $name }

        #[cfg(test)]
        impl Taken for $name {
            #[allow(unused_variables, reason = "rows without lists")]
            fn taken(inst: &Inst, program: &Program) -> $name {
                parameters_of!(inst $name [$($p)*]);
                $name {
                    $($p,)*
                    $($operand: take!(inst, program, $name, $operand $role $place $condition),)*
                }
            }
        }
    };
}

macro_rules! builders {
    ($($(#[$doc:meta])* $name:ident $(($($p:ident: $ty:ty),+))? = $run:expr, $kind:expr,
        [$($operand:ident: $role:ident $(($($place:tt)+))? $(if $condition:expr)?),*],
        $keys:tt;)*) => {$(
        builder! {
            [$(#[$doc])* $name $($($p: $ty),+)?] plain []
            $([$operand $role [$($($place)+)?] [$($condition)?]])*
        }
    )*};
}
for_each_operation!(builders);

/// A function of one lane's values with its sources. Where its result goes is not said yet.
#[derive(Clone, Copy)]
pub(crate) struct Applied {
    op: LaneOp,
    sources: [Slot; 3],
    constant: u64,
    combined: Option<Pred>,
    combine: u32,
}

impl Applied {
    /// A function of these rows, the first of which it takes.
    pub(crate) fn new<const ROWS: usize>(op: LaneOp, rows: [Slot; ROWS]) -> Applied {
        debug_assert!(ROWS >= usize::from(op.operands), "a function of {} rows", op.operands);
        let mut sources = [Slot::NONE; 3];
        sources[..ROWS].copy_from_slice(&rows);
        Applied { op, sources, constant: 0, combined: None, combine: COMBINE_NONE }
    }

    /// With the constant that the function takes beside rows, or that a choice has.
    pub(crate) fn with(self, constant: u64) -> Applied {
        Applied { constant, ..self }
    }

    /// With a predicate that its outcome is combined with, as `combine` says.
    pub(crate) fn combined(self, combine: u32, with: Pred) -> Applied {
        Applied { combine, combined: (combine != COMBINE_NONE).then_some(with), ..self }
    }

    /// Puts its value, or what it chooses, into a row.
    pub(crate) fn to(self, d: Slot) -> Inst {
        Lane { d: Some(d), ..self.lane() }.into()
    }

    /// Puts its outcome into a predicate, and the opposite into another.
    pub(crate) fn test(self, p: Pred, q: Pred) -> Inst {
        Lane { p: Some(p), q: Some(q), ..self.lane() }.into()
    }

    fn lane(self) -> Lane {
        let [a, b, c] = self.sources;
        Lane {
            op: self.op,
            a,
            b: (self.op.operands > 1).then_some(b),
            c: (self.op.operands > 2).then_some(c),
            combined: self.combined,
            d: None,
            p: None,
            q: None,
            constant: self.constant,
            combine: self.combine,
        }
    }
}

/// The values of an access to memory: one in a row that the instruction names, more in a list.
pub(crate) struct Elements {
    pub(crate) one: Option<Slot>,
    pub(crate) all: Option<Vec<Slot>>,
    pub(crate) count: u32,
}

impl Elements {
    pub(crate) fn new(rows: Vec<Slot>) -> Elements {
        let count = rows.len() as u32;
        match rows[..] {
            [one] => Elements { one: Some(one), all: None, count },
            _ => Elements { one: None, all: Some(rows), count },
        }
    }
}
