//! Compiles the machine code of one kernel (and of all device functions of its module, which it may
//! call) into a [`Program`] for the same execution core as PTX.
//!
//! `operands` says where registers, predicates and constants are. `sections` orders the code and
//! finds the targets of jumps. Each family of instructions has a file: its function returns false for
//! instructions of others, and [`Translation::instruction`] is the list of families. A machine
//! instruction becomes one or several instructions of the core, which the functions of
//! [`super::exec`] and [`super::exec_sass`] execute. This file and the families know each other.
//!
//! What no family takes makes the kernel's launch be refused with the instruction's name.

mod control;
mod convert;
mod float;
mod half;
mod int;
mod lanes;
mod logic;
mod memory;
mod operands;
mod sections;
mod special;
mod tensor;

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use device_code::arch::Generation;
use device_code::sass::MachineInst;

pub(crate) use crate::compile::function::Result;
use crate::interface::CompileError;
use crate::machine_module::{MachineKernel, MachineModule};
use crate::program::{FunctionCode, Inst, Kernel, MachineTables, Place, Pred, Program, Slot};

/// One kernel's machine code while it is compiled.
pub(crate) struct Translation<'m> {
    pub(crate) module: &'m MachineModule,
    pub(crate) kernel: &'m MachineKernel,
    pub(crate) generation: Generation,
    /// Where the module's blocks of variables are.
    blocks: &'m [u64],
    pub(crate) program: Program,
    pub(crate) machine: MachineTables,
    constants: HashMap<u64, Slot>,
    launch_words: HashMap<(u32, u32), Slot>,
    /// Section of the instruction that is being compiled.
    pub(crate) section: usize,
    /// Its word, and its byte offset in the section.
    pub(crate) word: u128,
    pub(crate) pc: u32,
    guard: Pred,
    /// A WARPSYNC.EXCLUSIVE stands before, in straight code: REDUX keeps to its lanes.
    exclusive: bool,
    temporaries: u32,
    temporary_preds: u32,
    registers: u32,
    locations: HashMap<(String, u32), u32>,
    location: u32,
    /// Jumps whose targets are not compiled yet: instruction, section, byte offset.
    jumps: Vec<(u32, usize, u32)>,
}

impl Program {
    /// Compiles the machine code of one kernel; `blocks` are the addresses of the module's blocks.
    /// What the interpreter does not execute is named in [`Kernel::error`], and launches are
    /// refused.
    pub fn compile_machine(module: &MachineModule, blocks: &[u64], kernel: &str) -> Option<Program> {
        let kernel = module.kernel(kernel)?;
        let mut head = Kernel {
            name: kernel.name.clone(),
            function: 0,
            params: kernel.params.clone(),
            static_shared: kernel.shared,
            shared_align: 1,
            local: kernel.stack,
            nested: !kernel.is_stack_known || module.symbols.iter().any(|s| s.frame_bytes > 0 && s.name != kernel.name),
            cluster: kernel.cluster,
            error: None,
        };
        let mut program = match Translation::new(module, blocks, kernel).and_then(Translation::run) {
            Ok(program) => program,
            Err(error) => {
                head.error = Some(error);
                Program::empty()
            }
        };
        program.by_name.insert(head.name.clone(), 0);
        program.kernels.push(head);
        Some(program)
    }

    /// A program without kernels.
    pub fn empty() -> Program {
        Program {
            code: Vec::new(),
            constants: Vec::new(),
            slots: Vec::new(),
            calls: Vec::new(),
            tables: Vec::new(),
            reductions: Vec::new(),
            functions: vec![FunctionCode { entry: u32::MAX, rows: 2, preds: 1, ..FunctionCode::default() }],
            kernels: Vec::new(),
            by_name: HashMap::new(),
            places: Vec::new(),
            locations: Vec::new(),
            texts: Vec::new(),
            machine: None,
            native: OnceLock::new(),
            warps: AtomicU64::new(0),
        }
    }
}

impl<'m> Translation<'m> {
    fn new(module: &'m MachineModule, blocks: &'m [u64], kernel: &'m MachineKernel) -> Result<Self> {
        let wrong = |what: String| CompileError::Machine { function: kernel.name.clone(), what };
        let generation = match module.arch.generation() {
            Some(known @ (Generation::Turing | Generation::Ampere | Generation::Hopper)) => known,
            _ => return Err(wrong(format!("{} is not executed here", module.arch))),
        };
        let machine = MachineTables {
            param_base: kernel.param_base,
            param_end: kernel.param_base + kernel.param_size,
            ..MachineTables::default()
        };
        let mut new = Translation {
            module,
            kernel,
            generation,
            blocks,
            program: Program::empty(),
            machine,
            constants: HashMap::new(),
            launch_words: HashMap::new(),
            section: kernel.section,
            word: 0,
            pc: 0,
            guard: Pred::ALWAYS,
            exclusive: false,
            temporaries: 0,
            temporary_preds: 0,
            registers: 0,
            locations: HashMap::new(),
            location: u32::MAX,
            jumps: Vec::new(),
        };
        new.banks().map_err(wrong)?;
        Ok(new)
    }

    /// Dispatches to the families. A new family adds its line here.
    fn instruction(&mut self, i: &MachineInst) -> Result<()> {
        if control::control(i, self)?
            || memory::load_store::load_store(i, self)?
            || memory::atomic::atomic(i, self)?
            || lanes::lanes(i, self)?
            || int::integer(i, self)?
            || logic::logic(i, self)?
            || logic::predicates(i, self)?
            || special::special(i, self)?
            || memory::texture::texture(i, self)?
            || float::floating(i, self)?
            || half::half(i, self)?
            || convert::convert(i, self)?
            || tensor::tensor(i, self)?
        {
            return Ok(());
        }
        self.unsupported(i)
    }

    /// The error for an instruction that is not executed here.
    pub(crate) fn unsupported<T>(&self, i: &MachineInst) -> Result<T> {
        let function = self.module.function_at(self.section, self.pc).to_owned();
        Err(CompileError::UnsupportedMachine { instruction: i.to_string(), function, offset: self.pc })
    }

    /// Appends an instruction under the guard of the machine instruction.
    pub(crate) fn emit(&mut self, inst: Inst) {
        let place = Place { line: self.pc, location: self.location };
        self.program.push(Inst { guard: self.guard, ..inst }, place);
    }
}
