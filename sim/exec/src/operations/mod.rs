//! Answers from the table of operations: which function executes an instruction, how native code
//! does, and which operands it has. Owns no knowledge of single operations: that is in `table`.

pub(crate) mod build;
pub(crate) mod builtins;
pub(crate) mod encoding;
pub mod operands;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod values;

use std::fmt;

use crate::block::BARRIER_POPC;
use crate::compile::bits::with_carry;
use crate::compile::convert;
use crate::compile::load_store::{update_function, update_vector_function};
use crate::exec::atomic;
use crate::exec::bulk::mbarrier;
use crate::exec::matrix::group_product;
use crate::exec::matrix::narrow::multiply_narrow;
use crate::exec::matrix::sparse::multiply_sparse;
use crate::exec::per_lane::COMBINE_NONE;
use crate::exec::tensor::changes;
use crate::exec::{bulk, call, cluster_memory, control, fragment, load_store, matrix, tensor, texture, warp_sync};
use crate::exec_sass::predicates::EXTENDED;
use crate::exec_sass::{convergence, floats, halves, integer, jumps, memory, predicates};
use crate::float::float16::{Brain, Half};
use crate::grid_dependence::instructions as grid_dependence;
use crate::operations::encoding::{list, number};
use crate::operations::operands::{call_arguments, call_returns, own_returns};
use crate::operations::table::for_each_operation;
use crate::operations::values::OUTWARD;
use crate::program::{
    ArgumentHome, AtomKind, Inst, InstFn, Kind, LaneTy, Operation, Pred, Program, ResultUse, Slot, Update,
};
#[cfg(test)]
use crate::program::{LaneOp, WideAccess};

/// What native code of whole warps does with an instruction that stops other native code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whole {
    /// It ends in front of it.
    Stops,
    /// It ends in front of it, but the interpreter mostly comes to the next instruction behind it.
    Interpreted,
    /// The interpreter executes it, in one call for the warp, and native code goes on.
    Call,
    /// Nothing is left to do when all lanes are there.
    Nothing,
    Fence,
    /// All lanes: row `d`.
    Everybody,
    Shuffle,
    Vote,
}

/// Where control goes behind an instruction that stops native code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// To the next one.
    Next,
    /// Its lanes have ended.
    End,
    /// Nobody knows where.
    Elsewhere,
    /// To an entry of table `y`, or to the next one.
    Table,
    /// To instruction `x`, or to the next one.
    Jump,
}

/// What an operand is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Rows.
    Read,
    Write,
    /// Predicates.
    Test,
    Set,
    /// Numbers of 32 and 64 bits: no register.
    Word,
    Long,
    /// Every register is read, as far as is known.
    Any,
}

type FindHomes = for<'p> fn(&'p Program, &Inst) -> Option<&'p [ArgumentHome]>;

/// Where an instruction has an operand.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Nowhere,
    Number(fn(&Inst) -> u32),
    /// So many from one on.
    Span(fn(&Inst) -> (u32, u32)),
    /// So many of the program's slots, from one on.
    List(fn(&Inst) -> (usize, usize)),
    /// Parameters or results of a function; None: nobody knows.
    Homes(FindHomes),
}

/// A place of the table.
macro_rules! place {
    (Also($($place:tt)+)) => {
        place!($($place)+)
    };
    (Span($first:tt, $count:tt)) => {
        Place::Span(|i| (number!(i, $first), number!(i, $count)))
    };
    (List($($list:tt)+)) => {
        Place::List(|i| list!(i, $($list)+))
    };
    (Homes($homes:ident)) => {
        Place::Homes($homes)
    };
    (Fixed($number:literal)) => {
        Place::Number(|_| $number)
    };
    ($($place:tt)+) => {
        Place::Number(|i| number!(i, $($place)+))
    };
}

/// An operand of an operation.
#[derive(Clone, Copy)]
pub struct Operand {
    pub(crate) name: &'static str,
    pub role: Role,
    place: Place,
    condition: Option<fn(&Inst) -> bool>,
}

impl Operand {
    const fn new(name: &'static str, role: Role) -> Operand {
        Operand { name, role, place: Place::Nowhere, condition: None }
    }

    const fn at(self, place: Place) -> Operand {
        Operand { place, ..self }
    }

    const fn when(self, condition: fn(&Inst) -> bool) -> Operand {
        Operand { condition: Some(condition), ..self }
    }

    /// The rows or predicates of an instruction that it is; None where that is unknown.
    pub fn registers(&self, program: &Program, i: &Inst) -> Option<Vec<u32>> {
        if self.condition.is_some_and(|holds| !holds(i)) {
            return Some(Vec::new());
        }
        if matches!(self.role, Role::Word | Role::Long) {
            return Some(Vec::new());
        }
        Some(match self.place {
            Place::Nowhere => return None,
            Place::Number(number) => vec![number(i)],
            Place::Span(span) => {
                let (first, count) = span(i);
                (first..first + count).collect()
            }
            Place::List(list) => {
                let (first, count) = list(i);
                program.slots.get(first..first + count).unwrap_or(&[]).iter().map(|slot| slot.0).collect()
            }
            Place::Homes(homes) => homes(program, i)?
                .iter()
                .filter_map(|home| match home {
                    ArgumentHome::Row(slot) => Some(slot.0),
                    ArgumentHome::Local(..) => None,
                })
                .collect(),
        })
    }
}

/// The instance of a function for the cells of memory of a type.
macro_rules! of_cell {
    ($ty:expr, $($function:ident)::+) => {
        match $ty {
            LaneTy::U8 => $($function)::+::<u8>(),
            LaneTy::U16 => $($function)::+::<u16>(),
            LaneTy::U32 | LaneTy::F32 => $($function)::+::<u32>(),
            LaneTy::U64 | LaneTy::I64 | LaneTy::F64 => $($function)::+::<u64>(),
            LaneTy::I8 => $($function)::+::<i8>(),
            LaneTy::I16 => $($function)::+::<i16>(),
            LaneTy::I32 => $($function)::+::<i32>(),
        }
    };
}

/// What the table's keys say of an operation.
#[derive(Clone, Copy)]
struct Traits {
    whole: Whole,
    then: Then,
    narrow: fn(&Inst) -> bool,
    pure: bool,
}

const DEFAULT: Traits = Traits { whole: Whole::Stops, then: Then::Next, narrow: |_| false, pure: false };

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident $(($($p:ident: $ty:ty),+))? = $run:expr, $kind:expr,
        [$($operand:ident: $role:ident $(($($place:tt)+))? $(if $condition:expr)?),*],
        {$($key:ident: $value:expr),*};)*) => {
        impl Operation {
            /// The function that executes it for a warp.
            pub fn run(self) -> InstFn {
                match self {
                    $(Operation::$name $(($($p),+))? => $run,)*
                }
            }

            /// How native code executes it, for single lanes and for packs.
            pub fn kind(self) -> Kind {
                #[allow(unused_variables, reason = "most kinds do not depend on parameters")]
                match self {
                    $(Operation::$name $(($($p),+))? => $kind,)*
                }
            }

            /// Its operands.
            pub fn operands(self) -> &'static [Operand] {
                match self {
                    $(Operation::$name { .. } => {
                        const OPERANDS: &[Operand] = &[
                            $(
                                Operand::new(stringify!($operand), Role::$role)
                                    $(.at(place!($($place)+)))?
                                    $(.when($condition))?
                            ),*
                        ];
                        OPERANDS
                    })*
                }
            }

            fn traits(self) -> Traits {
                #[allow(clippy::needless_update, reason = "a row may name every key")]
                match self {
                    $(Operation::$name { .. } => Traits { $($key: $value,)* ..DEFAULT },)*
                }
            }

            /// Its name in the table.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Operation::$name { .. } => stringify!($name),)*
                }
            }

            /// Each row's operations, with every value of its parameters.
            #[cfg(test)]
            fn rows() -> Vec<Vec<Operation>> {
                vec![$({
                    let row = vec![()];
                    $($(let row = tests::times::<_, $ty>(&row);)+)?
                    row.into_iter().map(|tests::parameters!($($($p),+)?)| Operation::$name $(($($p),+))?).collect()
                }),*]
            }
        }
    };
}
for_each_operation!(answers);

impl Operation {
    /// What native code of whole warps does with it where it stops other native code.
    pub fn whole(self) -> Whole {
        self.traits().whole
    }

    /// Where control goes behind it, if it is no branch.
    pub fn then(self) -> Then {
        self.traits().then
    }

    /// Whether its result depends on its operands alone.
    pub fn is_pure(self) -> bool {
        self.traits().pure
    }
}

impl Inst {
    /// Whether the rows that it writes have 32 bits at most, as far as the table says.
    pub fn is_narrow(&self) -> bool {
        (self.op.traits().narrow)(self)
    }

    /// As listings have it: `@p1 Select a=r3 b=c1 which=!p2 d=r4`.
    pub(crate) fn listed<'p>(&'p self, program: &'p Program) -> impl fmt::Display {
        Listed(program, self)
    }

    /// How many operands its function of one lane's values has.
    fn arity(&self) -> u8 {
        if let Operation::Lane(op) = self.op { op.operands } else { 0 }
    }

    /// What becomes of the result of its function of one lane's values.
    fn outcome(&self) -> ResultUse {
        if let Operation::Lane(op) = self.op { op.outcome } else { ResultUse::Value }
    }
}

/// An instruction of a program, for people.
struct Listed<'p>(&'p Program, &'p Inst);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listed(program, inst) = *self;
        let pred = |f: &mut fmt::Formatter<'_>, number: u32| match Pred(number) {
            Pred::ALWAYS => write!(f, "true"),
            Pred::NEVER => write!(f, "false"),
            Pred(number) if number & Pred::NEGATED != 0 => write!(f, "!p{}", number & !Pred::NEGATED),
            Pred(number) => write!(f, "p{number}"),
        };
        if inst.guard != Pred::ALWAYS {
            write!(f, "@")?;
            pred(f, inst.guard.0)?;
            write!(f, " ")?;
        }
        write!(f, "{}", inst.op.name())?;
        for operand in inst.op.operands() {
            for register in operand.registers(program, inst).unwrap_or_default() {
                write!(f, " {}=", operand.name)?;
                match operand.role {
                    Role::Test | Role::Set => pred(f, register)?,
                    _ if register == Slot::NONE.0 => write!(f, "none")?,
                    _ if register & Slot::CONSTANT != 0 => write!(f, "c{}", register & !Slot::CONSTANT)?,
                    _ => write!(f, "r{register}")?,
                }
            }
        }
        Ok(())
    }
}

impl LaneTy {
    /// Its bytes.
    pub(crate) fn size(self) -> u32 {
        match self {
            LaneTy::U8 | LaneTy::I8 => 1,
            LaneTy::U16 | LaneTy::I16 => 2,
            LaneTy::U32 | LaneTy::I32 | LaneTy::F32 => 4,
            LaneTy::U64 | LaneTy::I64 | LaneTy::F64 => 8,
        }
    }

    /// Whether loads of it from memory extend the sign. Those of 64 bits have nothing to extend.
    pub(crate) fn is_signed(self) -> bool {
        matches!(self, LaneTy::I8 | LaneTy::I16 | LaneTy::I32)
    }
}

impl Update {
    /// How native code executes it.
    fn kind(self) -> Kind {
        use crate::program::UpdateOp;
        use device_code::ptx::Type;
        let is_float = matches!(self.ty, Type::F32 | Type::F64);
        let is_whole = matches!(self.ty, Type::U32 | Type::S32 | Type::U64 | Type::S64 | Type::B32 | Type::B64);
        let signed = matches!(self.ty, Type::S32 | Type::S64);
        let unsigned = matches!(self.ty, Type::U32 | Type::U64);
        let size = self.ty.size();
        let words = size == 4 || size == 8;
        let kind = match self.op {
            UpdateOp::And if words => AtomKind::And,
            UpdateOp::Or if words => AtomKind::Or,
            UpdateOp::Xor if words => AtomKind::Xor,
            UpdateOp::Exchange if words => AtomKind::Exchange,
            UpdateOp::Compare if words => AtomKind::Compare,
            UpdateOp::Add if is_whole => AtomKind::Add,
            UpdateOp::Add if is_float && size == 4 => AtomKind::AddSingle,
            UpdateOp::Add if is_float => AtomKind::AddDouble,
            UpdateOp::Min if signed || unsigned => AtomKind::Min { signed },
            UpdateOp::Max if signed || unsigned => AtomKind::Max { signed },
            _ => return Kind::Stop,
        };
        Kind::Atom { kind, size }
    }
}
