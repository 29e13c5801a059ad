//! Lowers the syntax tree of a PTX kernel to the intermediate representation: what `lower_sass`
//! does for machine code. Device functions are inlined where the call is direct and not too deep.
//!
//! Owns what PTX instructions mean for addresses: `operands`, `arithmetic`, `packing`,
//! `memory_access`, `tensor_core`, `control_flow`. These files are parts of one `Lower` and call
//! each other. Does not parse, and does not know the range of a value. It keeps the promise of
//! [`crate::ir`]: every register that an instruction may write is named as written, and every
//! access to global memory is there, unknown if need be.

mod arithmetic;
mod control_flow;
mod memory_access;
mod operands;
mod packing;
mod pure;
mod synchronisation;
mod tensor_core;

use std::collections::HashMap;
use std::rc::Rc;

use smallvec::SmallVec;

use crate::ir::system_fences;
use crate::ir::{self, Class, KernelIr, Op, Reason, SrcOperand, Var};
use crate::lower_ptx::control_flow::blocks;
use device_code::ptx::{self, Body, Instruction, Local, Module, Parameter, Space, Type};

/// A kernel could not be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PtxLowerError {
    /// No kernel of that name with a body.
    #[error("no kernel named {0} in this PTX")]
    NoKernel(String),
    /// More instructions after inlining than are analysed.
    #[error("kernel is too large")]
    TooLarge,
}

/// Instructions after inlining that are still analysed.
pub(crate) const MAX_INSTS: usize = 200_000;

/// Nested calls that are followed.
const MAX_CALLS: usize = 8;

/// A function as inlined at one call site (the kernel itself is the first).
struct Instance<'m> {
    number: usize,
    body: &'m Body,
    function: &'m ptx::Function,
    /// Instance and instruction to go on at after a return, with the places of the values returned.
    caller: Option<(usize, usize)>,
    depth: usize,
    /// Variable of each register.
    registers: Vec<Var>,
    /// Words of `.param` variables: (variable, offset, bytes) as the text accesses them.
    words: HashMap<(Local, i64, u32), Var>,
    /// First byte of its frame in local memory.
    frame: u64,
    /// Offset of each local variable in the frame.
    locals: HashMap<Local, u64>,
    /// See [`packing::definitions`].
    definitions: Rc<[u32]>,
}

struct Lower<'m> {
    module: &'m Module,
    f: KernelIr,
    out: Vec<ir::Inst>,
    instances: Vec<Instance<'m>>,
    /// Instance that is being lowered.
    at: usize,
    /// Byte offset of each kernel parameter.
    params: HashMap<Local, u16>,
    /// Local memory is written by local stores only.
    local_ok: bool,
    /// Definitions of each function's registers.
    definitions: HashMap<*const Body, Rc<[u32]>>,
    /// Bytes of local memory given to frames.
    frames: u64,
    /// Line of the instruction that is being lowered.
    line: u32,
    guard: Option<SrcOperand>,
}

/// Lowers a kernel.
///
/// # Errors
///
/// [`PtxLowerError`] when there is no such kernel or it grows too large.
pub fn lower(module: &Module, name: &str) -> Result<KernelIr, PtxLowerError> {
    let missing = || PtxLowerError::NoKernel(name.to_owned());
    let function = module.find_name(name).and_then(|name| module.function(name)).filter(|f| f.kernel);
    let function = function.ok_or_else(missing)?;
    let body = function.body.as_ref().ok_or_else(missing)?;
    let mut f = KernelIr { name: name.to_owned(), cluster: function.cluster(module), ..KernelIr::default() };
    let mut params = HashMap::new();
    let mut end = 0u64;
    for parameter in &function.parameters {
        if let Parameter::Space(variable, Some(local)) = parameter {
            let offset = end.next_multiple_of(u64::from(variable.align.max(1)));
            end = offset + variable.size();
            let (Ok(at), Ok(size)) = (u16::try_from(offset), u16::try_from(variable.size())) else {
                return Err(PtxLowerError::TooLarge);
            };
            params.insert(*local, at);
            f.params.push((at, size));
        }
    }
    let local_ok = memory_access::local_is_simple(module, body);
    let mut lower = Lower {
        module,
        f,
        out: Vec::new(),
        instances: Vec::new(),
        at: 0,
        params,
        local_ok,
        definitions: HashMap::new(),
        frames: 0,
        line: 0,
        guard: None,
    };
    lower.instance(function, body, None, 0);
    blocks(&mut lower)?;
    Ok(lower.f)
}

/// The names of the kernels with a body.
pub fn kernel_names(module: &Module) -> impl Iterator<Item = &str> {
    kernel_sizes(module).map(|k| k.0)
}

/// The same, each with its instructions (without those of the functions it calls).
pub(crate) fn kernel_sizes(module: &Module) -> impl Iterator<Item = (&str, usize)> {
    let kernels = module.functions.iter().filter(|f| f.kernel);
    kernels.filter_map(|f| Some((module.name(f.name), f.body.as_ref()?.code.len())))
}

fn class(ty: Type) -> Class {
    match ty {
        Type::Pred => Class::Pred,
        Type::B64 | Type::U64 | Type::S64 | Type::F64 | Type::B128 => Class::W64,
        _ => Class::W32,
    }
}

impl<'m> Lower<'m> {
    fn instance(
        &mut self,
        function: &'m ptx::Function,
        body: &'m Body,
        caller: Option<(usize, usize)>,
        depth: usize,
    ) -> usize {
        system_fences::add_ptx(&mut self.f.system_fences, &mut self.f.system_stores, self.module, body);
        self.f.system_loads.add_ptx(self.module, body);
        self.f.system_stores.add_ptx(self.module, body);
        self.f.load_scopes.add_ptx(self.module, body);
        let number = self.instances.len();
        let registers = body.registers.iter().map(|register| self.f.var(class(register.ty))).collect();
        let frame = self.frames;
        let mut locals = HashMap::new();
        for (at, variable) in body.variables.iter().enumerate() {
            if variable.space == Space::Local {
                let offset = self.frames.next_multiple_of(u64::from(variable.align.max(8)));
                locals.insert(Local(at as u32), offset - frame);
                self.frames = offset.saturating_add(variable.size());
            }
        }
        let words = HashMap::new();
        let definitions = self.definitions.entry(body).or_insert_with(|| packing::definitions(body)).clone();
        self.instances.push(Instance {
            number,
            body,
            function,
            caller,
            depth,
            registers,
            words,
            frame,
            locals,
            definitions,
        });
        number
    }

    fn here(&self) -> &Instance<'m> {
        &self.instances[self.at]
    }

    fn emit(&mut self, op: Op, srcs: &[SrcOperand], dsts: &[Var]) {
        let guard = self.guard;
        self.out.push(ir::Inst { guard, op, srcs: srcs.into(), dsts: dsts.into(), at: self.line });
    }

    /// An instruction that computes a temporary: read only by what carries the guard.
    fn emit_always(&mut self, op: Op, srcs: &[SrcOperand], dsts: &[Var]) {
        self.out.push(ir::Inst { guard: None, op, srcs: srcs.into(), dsts: dsts.into(), at: self.line });
    }

    /// A temporary with the result of an operation.
    fn temporary(&mut self, class: Class, op: Op, srcs: &[SrcOperand]) -> SrcOperand {
        let v = self.f.var(class);
        self.emit_always(op, srcs, &[v]);
        SrcOperand::var(v)
    }

    /// A fresh variable that holds something unknown.
    fn unknown(&mut self, class: Class, why: Reason) -> SrcOperand {
        self.temporary(class, Op::Unknown(why), &[])
    }

    /// All that an instruction writes becomes unknown.
    fn give_up(&mut self, instruction: &Instruction, why: Reason) {
        let mut dsts: SmallVec<[Var; 4]> = SmallVec::new();
        if let Some(operand) = instruction.operands.first() {
            self.registers_of(operand, &mut dsts);
        }
        if !dsts.is_empty() {
            self.emit(Op::Unknown(why), &[], &dsts);
        }
    }

    /// The variables of registers in a result operand.
    pub(super) fn registers_of(&self, operand: &ptx::Operand, out: &mut SmallVec<[Var; 4]>) {
        match operand {
            ptx::Operand::Register(register) => out.push(self.here().registers[register.index()]),
            ptx::Operand::Vector(list) | ptx::Operand::List(list) => {
                for element in list {
                    self.registers_of(element, out);
                }
            }
            ptx::Operand::Pair(pair) => {
                self.registers_of(&pair.0, out);
                self.registers_of(&pair.1, out);
            }
            _ => {}
        }
    }
}
