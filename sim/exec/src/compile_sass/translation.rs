//! One kernel's machine code while it is compiled: what the families of instructions share.
//! `operands` and `sections` have its other methods.

use std::collections::{HashMap, HashSet};

use device_code::arch::Generation;
use device_code::sass::MachineInst;

use crate::compile::function::Result;
use crate::interface::CompileError;
use crate::machine_module::{MachineKernel, MachineModule};
use crate::operations::build::Build;
use crate::program::{MachineTables, Origin, Pred, Program, Slot};

/// One kernel's machine code while it is compiled.
pub(crate) struct Translation<'m> {
    pub(crate) module: &'m MachineModule,
    pub(crate) kernel: &'m MachineKernel,
    pub(crate) generation: Generation,
    /// Where the module's blocks of variables are.
    pub(super) blocks: &'m [u64],
    pub(crate) program: Program,
    pub(crate) machine: MachineTables,
    pub(super) constants: HashMap<u64, Slot>,
    pub(super) launch_words: HashMap<(u32, u32), Slot>,
    /// Section of the instruction that is being compiled.
    pub(crate) section: usize,
    /// Its word, and its byte offset in the section.
    pub(crate) word: u128,
    pub(crate) pc: u32,
    pub(super) guard: Pred,
    /// A WARPSYNC.EXCLUSIVE stands before, in straight code: REDUX keeps to its lanes.
    pub(super) exclusive: bool,
    pub(super) temporaries: u32,
    pub(super) temporary_preds: u32,
    pub(super) registers: u32,
    pub(super) locations: HashMap<(String, u32, Option<u32>), u32>,
    pub(super) location: u32,
    /// Loads of shared memory that are polled: section, byte offset.
    pub(in crate::compile_sass) polled: HashSet<(usize, u32)>,
    /// Jumps whose targets are not compiled yet: instruction, section, byte offset.
    pub(super) jumps: Vec<(u32, usize, u32)>,
}

impl<'m> Translation<'m> {
    pub(super) fn new(module: &'m MachineModule, blocks: &'m [u64], kernel: &'m MachineKernel) -> Result<Self> {
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
            polled: HashSet::new(),
            jumps: Vec::new(),
        };
        new.banks().map_err(wrong)?;
        Ok(new)
    }

    /// The error for an instruction that is not executed here.
    pub(crate) fn unsupported<T>(&self, i: &MachineInst) -> Result<T> {
        let function = self.module.function_at(self.section, self.pc).to_owned();
        Err(CompileError::UnsupportedMachine { instruction: i.to_string(), function, offset: self.pc })
    }

    /// Appends an instruction under the guard of the machine instruction.
    pub(crate) fn emit(&mut self, inst: impl Build) {
        let mut inst = inst.build(&mut self.program.slots);
        inst.guard = self.guard;
        self.program.push(inst, Origin { line: self.pc, location: self.location });
    }
}
