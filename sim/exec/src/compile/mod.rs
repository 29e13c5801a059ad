//! Compiles a PTX module into a [`Program`]: where registers, variables and parameters are kept,
//! and which instruction family handles what.
//!
//! `layout` places parameters and shared memory. `function` compiles one function and hands each
//! instruction to its family, one file a family: `int` (with `bits` and `simd`), `float`, `half`,
//! `convert`, `load_store`, `texture`, `matrix`, `bulk`, `control`. The families write the
//! functions of [`super::exec`] into the instructions. This file, `function` and `control` know
//! each other: the table of families is here, and a family emits into the function that is being
//! compiled.

pub(crate) mod bits;
pub(crate) mod bulk;
mod control;
pub(crate) mod convert;
mod float;
pub(crate) mod function;
pub(crate) mod half;
mod int;
pub(crate) mod layout;
pub(crate) mod load_store;
mod matrix;
mod simd;
mod texture;

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use device_code::ptx::{Module, Parameter, Type};

use crate::compile::function::Scope;
use crate::interface::{CompileError, Linker};
use crate::module_variables::function_index;
use crate::observed_order::ProgramOrder;
use crate::program::{ArgumentHome, Builtin, FunctionCode, LANES, Program, Row, Slot, SourcePosition};
use layout::SharedLayout;

/// Instructions that a program may have.
const MAX_CODE: usize = 1 << 26;

/// What is common to the functions of a module while it is compiled.
pub(crate) struct Compiler<'m> {
    pub(crate) module: &'m Module,
    pub(crate) linker: &'m dyn Linker,
    pub(crate) program: Program,
    pub(crate) shared: SharedLayout,
    constants: HashMap<u64, Slot>,
    locations: HashMap<(u32, u32, Option<u32>), u32>,
}

impl Program {
    /// Compiles a module. A kernel that uses an instruction which the interpreter does not execute,
    /// or a symbol that is defined nowhere, is there, but names that in [`super::Kernel::error`],
    /// and launches of it are refused.
    pub fn compile(module: &Module, linker: &dyn Linker) -> Program {
        let mut compiler = Compiler {
            module,
            linker,
            program: Program {
                code: Vec::new(),
                constants: Vec::new(),
                slots: Vec::new(),
                calls: Vec::new(),
                tables: Vec::new(),
                reductions: Vec::new(),
                functions: Vec::new(),
                kernels: Vec::new(),
                by_name: HashMap::new(),
                places: Vec::new(),
                locations: Vec::new(),
                texts: Vec::new(),
                machine: None,
                asks_for_reserved: false,
                order: order_of(module),
                native: OnceLock::new(),
                warps: AtomicU64::new(0),
            },
            shared: SharedLayout::new(module),
            constants: HashMap::new(),
            locations: HashMap::new(),
        };
        compiler.run();
        compiler.program
    }
}

/// How the instructions of a module can order memory.
fn order_of(module: &Module) -> ProgramOrder {
    let mut order = ProgramOrder::default();
    for parts in module.functions.iter().filter_map(|f| f.body.as_ref()).flat_map(|body| &body.code) {
        let parts = &module.opcode(parts.opcode).parts;
        let is = |names: &[&str]| parts.iter().any(|part| names.contains(&part.as_str()));
        let orders = is(&["fence", "membar", "acquire", "release", "acq_rel"]) && !is(&["cta", "cluster"]);
        order.device |= orders;
        order.system |= orders && is(&["sys"]);
    }
    order
}

impl<'m> Compiler<'m> {
    fn run(&mut self) {
        // Heads first: calls refer to functions by number, wherever they stand.
        for function in &self.module.functions {
            let name = self.module.name(function.name);
            let provided = function.body.is_none() || Builtin::replaces(name);
            let builtin = if provided { Builtin::by_name(name) } else { None };
            self.program.functions.push(FunctionCode { builtin, entry: u32::MAX, ..FunctionCode::default() });
        }
        let mut callees = Vec::new();
        for (number, function) in self.module.functions.iter().enumerate() {
            let provided = self.program.functions[number].builtin.is_some();
            let Some(body) = function.body.as_ref().filter(|_| !provided) else {
                callees.push(Vec::new());
                continue;
            };
            let (code, calls) = (self.program.code.len(), self.program.calls.len());
            match Scope::new(self, function, body, number as u32).and_then(Scope::compile) {
                Ok(found) => callees.push(found),
                Err(error) => {
                    // One function that cannot be executed leaves the others usable.
                    self.program.code.truncate(code);
                    self.program.calls.truncate(calls);
                    self.program.functions[number].error = Some(error);
                    callees.push(Vec::new());
                }
            }
        }
        self.kernels(&callees);
    }

    fn kernels(&mut self, callees: &[Vec<Option<u32>>]) {
        for (number, function) in self.module.functions.iter().enumerate() {
            if !function.kernel || function.body.is_none() {
                continue;
            }
            let local = self.program.functions[number].local;
            // Without recursion and indirect calls the stack is as deep as the deepest path; the
            // bound for all others is the launch's.
            let depth = layout::stack_depth(number as u32, callees, &|at| self.program.functions[at as usize].local);
            let mut kernel =
                layout::kernel(self.module, function, number as u32, &self.shared, depth.unwrap_or(local), depth);
            kernel.error = self.first_error(number as u32, callees);
            let at = self.program.kernels.len();
            self.program.by_name.insert(kernel.name.clone(), at);
            self.program.kernels.push(kernel);
        }
        for &(new, old) in &self.module.aliases {
            if let Some(&at) = self.program.by_name.get(self.module.name(old)) {
                self.program.by_name.insert(self.module.name(new).to_owned(), at);
            }
        }
    }

    /// What is wrong with a function or one that it calls.
    fn first_error(&self, root: u32, callees: &[Vec<Option<u32>>]) -> Option<CompileError> {
        let (mut seen, mut todo) = (HashSet::from([root]), vec![root]);
        while let Some(number) = todo.pop() {
            if let Some(error) = &self.program.functions[number as usize].error {
                return Some(error.clone());
            }
            todo.extend(callees[number as usize].iter().flatten().filter(|&&callee| seen.insert(callee)));
        }
        None
    }

    /// The constant row with a value in every lane.
    pub(crate) fn constant(&mut self, value: u64) -> Slot {
        if let Some(&slot) = self.constants.get(&value) {
            return slot;
        }
        let slot = Slot(self.program.constants.len() as u32 | Slot::CONSTANT);
        self.program.constants.push(Row([value; LANES]));
        self.constants.insert(value, slot);
        slot
    }

    /// The number of a source position. `caller`: that of the call that was inlined.
    pub(crate) fn location(&mut self, file: u32, line: u32, caller: Option<u32>) -> u32 {
        if let Some(&known) = self.locations.get(&(file, line, caller)) {
            return known;
        }
        let number = self.program.locations.len() as u32;
        let name = self.module.file(file).unwrap_or("?").to_owned();
        self.program.locations.push(SourcePosition { place: (name, line), caller });
        self.locations.insert((file, line, caller), number);
        number
    }

    pub(crate) fn function_number(&self, name: &str) -> Option<u32> {
        function_index(self.module, name)
    }
}

/// Bits of a type; predicates are not asked for.
pub(crate) fn bits(ty: Type) -> u32 {
    ty.size() * 8
}

/// The opcode of an instruction, cut at its dots.
#[derive(Clone, Copy)]
pub(crate) struct Op<'m> {
    pub(crate) text: &'m str,
    pub(crate) parts: &'m [String],
}

impl<'m> Op<'m> {
    /// True when the opcode has that modifier.
    pub(crate) fn has(&self, modifier: &str) -> bool {
        self.parts[1..].iter().any(|part| part == modifier)
    }

    /// Its first word.
    pub(crate) fn name(&self) -> &'m str {
        &self.parts[0]
    }

    /// The n-th part, or nothing.
    pub(crate) fn part(&self, n: usize) -> &'m str {
        self.parts.get(n).map_or("", String::as_str)
    }

    /// The types among its modifiers, in order.
    pub(crate) fn types(&self) -> impl Iterator<Item = Type> + use<'m> {
        self.parts[1..].iter().filter_map(|part| Type::from_name(part))
    }

    /// The last type among its modifiers.
    pub(crate) fn ty(&self) -> Option<Type> {
        self.types().last()
    }
}

/// The places of a function's parameters or return values.
pub(crate) fn places(
    list: &[Parameter],
    variables: &[crate::compile::function::VariableHome],
    rows: &[crate::compile::function::Home],
) -> Vec<ArgumentHome> {
    list.iter()
        .map(|parameter| match parameter {
            Parameter::Space(variable, Some(local)) => match variables[local.index()] {
                crate::compile::function::VariableHome::Frame(offset) => {
                    ArgumentHome::Local(offset, variable.size() as u32)
                }
                _ => ArgumentHome::Local(0, 0),
            },
            Parameter::Register(_, Some(register)) => match rows[register.index()] {
                crate::compile::function::Home::Row(slot) => ArgumentHome::Row(slot),
                crate::compile::function::Home::Pred(_) => ArgumentHome::Row(Slot(1)),
            },
            _ => ArgumentHome::Local(0, 0),
        })
        .collect()
}
