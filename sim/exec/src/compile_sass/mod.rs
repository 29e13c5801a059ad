//! Compiles the machine code of one kernel (and of all device functions of its module, which it may
//! call) into a [`Program`] for the same execution core as PTX.
//!
//! `operands` says where registers, predicates and constants are. `sections` orders the code and
//! finds the targets of jumps. Each family of instructions has a file: its function returns false
//! for instructions of others, and `families` is the list of them. `translation` is what they
//! share. A machine instruction becomes one or several instructions of the core, which the
//! functions of [`super::exec`] and [`super::exec_sass`] execute.
//!
//! What no family takes makes the kernel's launch be refused with the instruction's name.

mod control;
mod convert;
mod families;
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
mod translation;
mod warp_group;

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use crate::exec::registers::UNIT;
use crate::machine_module::MachineModule;
use crate::observed_order::ProgramOrder;
use crate::program::{FunctionCode, Kernel, Program};
use translation::Translation;

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
            registers: (kernel.registers > 0).then_some(kernel.registers.next_multiple_of(UNIT)),
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
            asks_for_reserved: false,
            order: ProgramOrder::default(),
            native: OnceLock::new(),
            warps: AtomicU64::new(0),
        }
    }
}
