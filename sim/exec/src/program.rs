//! The form that kernels are executed in: instructions with register slots, and the tables around
//! them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::sync::{Arc, OnceLock};

use super::warp::Warp;
use crate::interface::{CompileError, ParamInfo};
use crate::observed_order::ProgramOrder;
pub(crate) use crate::operations::builtins::{Builtin, RuntimeCall};
use crate::operations::encoding::Fields;
use crate::operations::table::for_each_operation;
pub use crate::operations::values::{
    AtomKind, LANES, LaneTy, Next, Pred, ResultUse, Row, Sem, Slot, Update, UpdateOp, WideAccess,
};

/// Native code as a warp enters it.
pub trait NativeCode: Send + Sync {
    /// Runs the region that begins at the warp's instruction, compiling it first where it is due.
    /// Its lanes are at the places where they left it then. `fuel` is how many jumps back each lane
    /// may make.
    fn enter(&self, warp: &mut Warp<'_>, fuel: u32) -> Entered;
}

/// What came of entering native code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entered {
    /// There is none yet, or never.
    Nothing,
    /// It ran so many regions; `spent`: a lane has used up its jumps.
    Ran { spent: bool, turns: u32 },
    /// A lane is at fault.
    Fault,
}

/// The native code of a program, and where it may be entered.
pub struct NativeEntries {
    /// For each instruction: null where no region begins. What else it points to is the code's own.
    pub entries: Arc<[AtomicPtr<()>]>,
    pub code: Box<dyn NativeCode>,
}

/// Makes native code for a program: of what is executed often, or `always`. None where the host has
/// none.
pub type MakeNative = fn(program: &Program, always: bool) -> Option<NativeEntries>;

/// What executes an instruction for the lanes of a mask that is never empty.
pub(crate) type InstFn = for<'a, 'b, 'c> fn(&'a mut Warp<'b>, &'c Inst, u32) -> Next;

/// A function of one lane's values.
#[derive(Debug)]
pub struct LaneFunction {
    /// Applies it to each lane of a warp.
    pub(crate) run: InstFn,
    /// Of the operands and the instruction's constant `x`.
    pub call: extern "C" fn(u64, u64, u64, u64) -> u64,
    pub operands: u8,
    /// Of the three operands and the result.
    pub types: [LaneTy; 4],
    pub outcome: ResultUse,
}

/// A function of one lane's values and its meaning.
#[derive(Debug, Clone, Copy)]
pub struct LaneOp {
    pub(crate) function: &'static LaneFunction,
    pub sem: Sem,
}

impl std::ops::Deref for LaneOp {
    type Target = LaneFunction;

    fn deref(&self) -> &LaneFunction {
        self.function
    }
}

/// How native code executes an instruction.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Nothing,
    Lane(LaneOp),
    Select,
    Predicate,
    Repack,
    Special,
    LoadParam {
        size: u32,
        signed: bool,
    },
    ParamAddress,
    FrameAddress,
    DynamicShared,
    ConvertAddress,
    Load {
        size: u32,
        signed: bool,
    },
    Store {
        size: u32,
    },
    Atom {
        kind: AtomKind,
        size: u32,
    },
    Branch,
    IntCompare,
    Table,
    NotZero,
    Add3,
    AddWide,
    FloatCompare {
        double: bool,
    },
    WithCarry,
    /// Something of each lane alone: the interpreter executes it for one lane.
    Foreign,
    /// Control leaves native code in front of it.
    Stop,
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident $(($($p:ident: $ty:ty),+))? = $run:expr, $kind:expr,
        $operands:tt, $keys:tt;)*) => {
        /// What an instruction is: a row of `operations::table`, with the row's parameters.
        #[derive(Debug, Clone, Copy)]
        pub enum Operation {
            $($(#[$doc])* $name $(($($ty),+))?,)*
        }
    };
}
for_each_operation!(operations);

/// One instruction, in one line of the processor's cache. Its operation's row in
/// `operations::table` says what the fields mean. They are written by their names through the types
/// of `operations::build`, and read through those of `operations::operands`.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct Inst {
    pub op: Operation,
    /// The function of `op`, looked up when the instruction was made.
    pub run: InstFn,
    pub guard: Pred,
    /// Where it comes from: an index into `Program::places`.
    pub(crate) place: u32,
    pub(crate) fields: Fields,
}

const _: () = assert!(size_of::<Inst>() == 64);

/// The origin of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The line of the PTX, or the offset of the machine instruction.
    pub(crate) line: u32,
    /// An index into `Program::locations`; `u32::MAX` for none.
    pub(crate) location: u32,
}

/// A position in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourcePosition {
    /// File and line.
    pub(crate) place: (String, u32),
    /// Where the function that it is in was inlined: an index into `Program::locations`.
    pub(crate) caller: Option<u32>,
}

impl Inst {
    /// True for `bar.warp.sync`, which joins lanes at different places of the code.
    pub(crate) fn is_warp_barrier(&self) -> bool {
        matches!(self.op, Operation::WarpBarrier)
    }
}

/// Where the parameter or return value of a device function is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArgumentHome {
    /// Bytes of the frame in local memory: offset and size.
    Local(u32, u32),
    /// A register row.
    Row(Slot),
}

/// A device function or kernel, compiled.
#[derive(Debug, Clone, Default)]
pub struct FunctionCode {
    /// Index of its first instruction, `u32::MAX` for functions without a body here.
    pub entry: u32,
    /// Rows of its frame; the first holds the return address.
    pub rows: u32,
    /// Predicates of its frame.
    pub preds: u32,
    /// Bytes of its frame in local memory.
    pub(crate) local: u32,
    pub params: Vec<ArgumentHome>,
    pub returns: Vec<ArgumentHome>,
    /// True when it is one of the functions that the interpreter provides.
    pub(crate) builtin: Option<Builtin>,
    /// Why it has no code although it has a body.
    pub(crate) error: Option<CompileError>,
}

/// A call: from where, to what, with which values.
#[derive(Debug, Clone, Hash)]
pub(crate) struct CallSite {
    pub(crate) caller: u32,
    /// The function, or None when a register holds its address.
    pub(crate) callee: Option<u32>,
    pub(crate) arguments: Vec<ArgumentHome>,
    pub(crate) returns: Vec<ArgumentHome>,
}

/// A kernel, compiled.
#[derive(Debug, Clone)]
pub struct Kernel {
    pub(crate) name: String,
    pub(crate) function: u32,
    pub(crate) params: Vec<ParamInfo>,
    pub(crate) static_shared: u32,
    pub(crate) shared_align: u32,
    pub(crate) local: u32,
    pub(crate) nested: bool,
    pub(crate) cluster: Option<[u32; 3]>,
    /// Registers of each thread at the start, where code may change their number.
    pub(crate) registers: Option<u32>,
    pub(crate) error: Option<CompileError>,
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its parameters in order.
    pub fn params(&self) -> &[ParamInfo] {
        &self.params
    }

    /// Bytes of the whole parameter block.
    pub fn params_size(&self) -> u32 {
        self.params.last().map_or(0, |param| param.offset + param.size)
    }

    /// Where dynamic shared memory begins.
    pub fn dynamic_start(&self) -> u32 {
        self.static_shared.next_multiple_of(self.shared_align.max(16))
    }

    /// Why it cannot be launched: an instruction that is not executed here, or an unknown symbol.
    pub fn error(&self) -> Option<&CompileError> {
        self.error.as_ref()
    }
}

/// A module, compiled for the interpreter.
pub struct Program {
    pub code: Vec<Inst>,
    pub constants: Vec<Row>,
    pub slots: Vec<Slot>,
    pub(crate) calls: Vec<CallSite>,
    pub tables: Vec<Vec<u32>>,
    /// What bulk reductions do with each element; None: nothing that is executed here.
    pub(crate) reductions: Vec<Option<Update>>,
    pub functions: Vec<FunctionCode>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) by_name: HashMap<String, usize>,
    pub(crate) places: Vec<Origin>,
    /// The source position of each location number in `places`.
    pub(crate) locations: Vec<SourcePosition>,
    /// Texts that instructions refer to (texture opcodes).
    pub(crate) texts: Vec<String>,
    /// What only machine code has.
    pub machine: Option<Box<MachineTables>>,
    /// It asks for the place of the shared memory that the system keeps.
    pub(crate) asks_for_reserved: bool,
    /// How it can order memory.
    pub(crate) order: ProgramOrder,
    /// Its native code, once it is worth to have some.
    pub(crate) native: OnceLock<Option<NativeEntries>>,
    /// Warps that launches had so far.
    pub(crate) warps: AtomicU64,
}

/// What machine code needs beside its instructions.
#[derive(Debug, Clone, Default)]
pub struct MachineTables {
    /// The sections of code that were compiled.
    pub(crate) sections: Vec<CompiledSection>,
    /// Functions that the module only declares: their addresses, names, and what they do here.
    pub(crate) externs: Vec<(u64, String, Option<Builtin>)>,
    /// Constants that hold words of the launch's constant bank.
    pub launch_words: Vec<LaunchWord>,
    /// Constant banks that stay as they are: number, bytes, and how many they are.
    pub(crate) banks: Vec<(u8, Vec<u64>, u32)>,
    /// Where the parameters begin in constant bank 0, and where they end.
    pub(crate) param_base: u32,
    pub(crate) param_end: u32,
}

/// A section of machine code: where its instructions are among those of the program.
#[derive(Debug, Clone)]
pub(crate) struct CompiledSection {
    /// Its number in the module.
    pub(crate) number: usize,
    /// The first instruction for each 16 bytes of it; `u32::MAX` where there is none.
    pub(crate) starts: Vec<u32>,
    /// Why it cannot be entered.
    pub(crate) error: Option<CompileError>,
}

/// A row that is filled when a launch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchWord {
    /// Number of the constant.
    pub constant: u32,
    /// Byte offset in constant bank 0.
    pub(crate) offset: u32,
    /// Bytes: 4 or 8.
    pub(crate) bytes: u32,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("kernels", &self.kernels).field("instructions", &self.code.len()).finish()
    }
}

impl Program {
    /// The kernel of that (mangled) name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.by_name.get(name).map(|&at| &self.kernels[at])
    }

    /// The name of the kernel that an address points to; of machine code the module knows.
    pub fn kernel_at(&self, address: u64) -> Option<&str> {
        let number = function_number(address)?;
        self.kernels.iter().find(|kernel| kernel.function == number).map(Kernel::name)
    }

    /// Appends an instruction from a place.
    pub(crate) fn push(&mut self, mut inst: Inst, place: Origin) {
        if self.places.last() != Some(&place) {
            self.places.push(place);
        }
        inst.place = self.places.len() as u32 - 1;
        self.code.push(inst);
    }

    /// The line of the PTX, or the offset, of the instruction at `pc`; zero where there is none.
    pub fn line(&self, pc: u32) -> u32 {
        self.place(pc).map_or(0, |place| place.line)
    }

    /// The source file and line of the instruction at `pc`, if the module knows.
    pub fn source(&self, pc: u32) -> Option<&(String, u32)> {
        self.locations.get(self.place(pc)?.location as usize).map(|position| &position.place)
    }

    /// The source file and line of the instruction at `pc`, then of the calls that were inlined
    /// around it, outwards.
    pub fn sources(&self, pc: u32) -> impl Iterator<Item = &(String, u32)> {
        let at = |number: u32| self.locations.get(number as usize);
        let first = self.place(pc).and_then(|place| at(place.location));
        // A caller has a smaller number, so this ends.
        std::iter::successors(first, move |position| at(position.caller?)).map(|position| &position.place)
    }

    /// The number of the function that the instruction at `pc` is in; of machine code that of its
    /// section.
    pub fn function_of(&self, pc: u32) -> Option<usize> {
        if let Some(machine) = &self.machine {
            let first = |section: &CompiledSection| section.starts.iter().copied().find(|&at| at != u32::MAX);
            let entered = machine.sections.iter().filter_map(|section| Some((first(section)?, section.number)));
            return entered.filter(|&(at, _)| at <= pc).max().map(|(_, number)| number);
        }
        let entered = self.functions.iter().map(|function| function.entry).enumerate();
        entered.filter(|&(_, at)| at != u32::MAX && at <= pc).max_by_key(|&(_, at)| at).map(|(number, _)| number)
    }

    fn place(&self, pc: u32) -> Option<&Origin> {
        self.places.get(self.code.get(pc as usize)?.place as usize)
    }

    /// How many instructions it has.
    pub fn instructions(&self) -> usize {
        self.code.len()
    }

    /// Its instructions, for people: one on a line, with its number.
    pub fn listing(&self) -> String {
        self.code.iter().enumerate().map(|(pc, inst)| format!("{pc:6} {}\n", inst.listed(self))).collect()
    }

    /// All kernels in the order of the text.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }
}

/// The address that a pointer to the function of that number holds. It lies where no memory can be.
pub(crate) fn function_address(number: u32) -> u64 {
    FUNCTION_BASE + u64::from(number) * 16
}

/// The function that an address points to.
pub(crate) fn function_number(address: u64) -> Option<u32> {
    let offset = address.checked_sub(FUNCTION_BASE)?;
    (offset % 16 == 0 && offset / 16 < 1 << 24).then_some((offset / 16) as u32)
}

const FUNCTION_BASE: u64 = 0x00f0_0000_0000_0000;
