//! The intermediate representation to which both front ends (SASS and PTX) lower: one function per
//! kernel, calls already inlined, variables still mutable. (SSA is built lazily by `ranges/graph`.)
//!
//! Owns the data types (`op`, `operand`, `pure`, `reason`), the control-flow facts ([`cfg`]), and
//! two transformations, `jump_threading` and `grid_wait`. Does not know encodings, nor the value of
//! anything.
//!
//! # For a front end
//!
//! * A [`Var`] has a class: 32 bit, 64 bit or predicate. PTX uses 64-bit variables for `.b64`
//!   registers. SASS has only 32-bit ones and names a 64-bit source as [`Src::Pair`]. For a 16-bit
//!   PTX register use a 32-bit variable that holds the zero- or sign-extended value; when unsure,
//!   define it with [`Op::Unknown`].
//! * The result width of an instruction is the class of its destination. Every arithmetic operation
//!   is modulo 2^width.
//! * An instruction whose meaning is not modelled must still name **all** variables that it
//!   defines: `Op::Unknown(reason)` with `dsts`. An instruction that may define anything is
//!   [`Op::ClobberAll`]. An instruction that may touch global memory in a way that is not modelled
//!   is [`Op::Mem`] with `addr: Addr::Unknown`. Forgetting one of these is unsound; nothing else
//!   is.
//! * A guarded instruction (`@p`) sets [`Inst::guard`]. When the guard is false, the destinations
//!   keep their old values.
//! * Block 0 is the entry and has no predecessor. A branch condition is a [`SrcOperand`] that is a
//!   predicate.
//! * Parameters are byte offsets from the start of the parameter area ([`Src::Param`]), whatever
//!   the address of the bank is.

use crate::effects::Early;
use serde::{Deserialize, Serialize};
pub(crate) mod cfg;
pub(crate) mod flag_loads;
pub(crate) mod grid_wait;
pub(crate) mod jump_table;
pub(crate) mod jump_threading;
mod op;
mod operand;
pub(crate) mod proxy_paths;
mod pure;
mod reason;
mod shared_arrays;
pub(crate) mod system_fences;

pub(crate) use flag_loads::LoadScopes;
pub use flag_loads::{FlagLoad, LoadScope};
pub use op::{AccessKind, Addr, Combine, Inst, Mem, Op, ProxyStep, Sync, Window};
pub(crate) use op::{Cmp, MapStep, MemSpace};
pub use operand::Special;
pub(crate) use operand::{Prefix, Src, SrcOperand};
pub use proxy_paths::UnfencedCopy;
pub(crate) use pure::Pure;
pub use pure::Rounding;
pub use reason::Reason;
pub use system_fences::SystemFences;
pub(crate) use system_fences::{SystemLoads, SystemStores};

/// What the functions that a pointer may lead to do to memory. A pointer leads to a function of its
/// image or module; that of another one would have to be handed over in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Callees {
    /// Anything.
    #[default]
    Unknown,
    /// No updates by atomics.
    NoUpdates,
    /// Nothing: they compute.
    NoAccesses,
}

/// A mutable variable of a [`KernelIr`] (index into [`KernelIr::vars`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Var(pub u32);

impl Var {
    /// Placeholder in a destination list: this part of the result is discarded.
    pub(crate) const NONE: Var = Var(u32::MAX);
}

/// A basic block (index into [`KernelIr::blocks`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct BlockId(pub u32);

/// Name of a `__device__`/`__constant__` variable (index into [`KernelIr::symbols`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct SymbolId(pub u32);

/// What a variable can hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Class {
    /// 32-bit integer or float bits.
    W32,
    /// 64-bit integer or float bits.
    W64,
    /// One bit.
    Pred,
}

/// One kernel.
#[derive(Clone, Debug, Default)]
pub struct KernelIr {
    /// Mangled name.
    pub(crate) name: String,
    /// Class of every variable.
    pub(crate) vars: Vec<Class>,
    /// Blocks; entry first.
    pub blocks: Vec<Block>,
    /// Names of global symbols that operands mention.
    pub(crate) symbols: Vec<String>,
    /// Those of `symbols` that are `__constant__` variables.
    pub(crate) constants: Vec<SymbolId>,
    /// Where they lie in machine code.
    pub(crate) constant_bank: Option<ConstantBank>,
    /// Parameter layout found in the code: (offset, size) in bytes.
    pub(crate) params: Vec<(u16, u16)>,
    /// Blocks a cluster, where the code fixes them (`__cluster_dims__`): a launch need not say so.
    pub(crate) cluster: Option<[u32; 3]>,
    /// The first blocks, in which threads have not waited for the grids that their kernel depends
    /// on, and how sure that is; in those behind they have. (Rows of the launch's blocks are taken
    /// to be whole warps.) Empty: no thread waits, or it is not told.
    pub(crate) before_wait: Vec<Early>,
    /// With a fence of system scope it may talk to the host or to kernels of other devices and
    /// processes while it runs.
    pub(crate) system_fences: SystemFences,
    /// Its atomic loads of system scope.
    pub(crate) system_loads: SystemLoads,
    /// Its atomic stores and updates of that scope.
    pub(crate) system_stores: SystemStores,
    /// The scopes of its loads.
    pub(crate) load_scopes: LoadScopes,
    /// Its bulk operations that no fence separates from stores.
    pub(crate) unfenced: Vec<UnfencedCopy>,
    /// An asynchronous copy may read less than its size and fill up with zeros.
    pub(crate) partial_copies: bool,
}

impl KernelIr {
    /// A fresh variable.
    pub(crate) fn var(&mut self, class: Class) -> Var {
        self.vars.push(class);
        Var(self.vars.len() as u32 - 1)
    }

    /// The id of a symbol name, added when new.
    pub(crate) fn symbol(&mut self, name: &str) -> SymbolId {
        if let Some(i) = self.symbols.iter().position(|s| s == name) {
            return SymbolId(i as u32);
        }
        self.symbols.push(name.to_owned());
        SymbolId(self.symbols.len() as u32 - 1)
    }

    /// Class of `v`.
    pub(crate) fn class(&self, v: Var) -> Class {
        self.vars[v.0 as usize]
    }
}

/// The `__constant__` variables of machine code. They lie one behind the other in constant bank 3,
/// and instructions count from the start of the bank: a register may hold the place of a variable
/// and an index in one number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ConstantBank {
    /// Stands for the first byte of the bank.
    pub(crate) start: SymbolId,
    /// First and last (exclusive) byte of each variable, in order.
    pub(crate) variables: Vec<(u32, u32, SymbolId)>,
}

/// Straight-line instructions and one terminator.
#[derive(Clone, Debug)]
pub struct Block {
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// How the block ends.
    pub(crate) term: Term,
}

/// End of a block.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    /// Unconditional.
    Jump(BlockId),
    /// `taken` when the predicate is true, else `fall`. `None` as a target: the thread exits.
    Branch {
        /// Predicate (use `prefix: Not` for a negated one).
        cond: SrcOperand,
        /// Target when true.
        taken: Option<BlockId>,
        /// Target when false.
        fall: Option<BlockId>,
    },
    /// Any of these, by a value that is not modelled (jump tables, divergence helpers).
    Switch(Vec<BlockId>),
    /// The thread ends.
    Exit,
}
