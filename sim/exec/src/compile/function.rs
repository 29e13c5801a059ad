//! Compiles one function: the homes of its registers and variables, operands, and the order of its
//! instructions.

use std::collections::HashMap;

use device_code::ptx::{AddressBase, Body, Function, Instruction, Label, Operand, Space, Type, Variable};

use super::layout::is_dynamic;
use super::{Compiler, MAX_CODE, Op, bits, places};
use crate::exec::control;
use crate::exec::load_store::{FRAME, GENERIC, PARAM};
use crate::interface::CompileError;
use crate::module_variables::symbol_address;
use crate::operations::build::{self, Build};
use crate::program::{Inst, Origin, Pred, Slot};

pub(crate) type Result<T> = std::result::Result<T, CompileError>;

/// Where a register is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Home {
    Row(Slot),
    Pred(u32),
}

/// Where a variable of a function is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum VariableHome {
    /// In the launch's parameter block.
    Param(u32),
    /// In the function's frame in local memory.
    Frame(u32),
    /// In shared memory.
    Shared(u32),
    /// Where dynamic shared memory begins.
    Dynamic,
    /// At an address of device memory.
    Device(u64),
}

/// The row that takes unused results.
pub(crate) const SCRATCH: Slot = Slot(1);

/// A function being compiled.
pub(crate) struct Scope<'c, 'm> {
    pub(crate) c: &'c mut Compiler<'m>,
    pub(crate) function: &'m Function,
    pub(crate) body: &'m Body,
    pub(crate) number: u32,
    pub(crate) homes: Vec<Home>,
    pub(crate) variables: Vec<VariableHome>,
    rows: u32,
    preds: u32,
    local: u32,
    /// Program counter of each instruction of the text.
    starts: Vec<u32>,
    fixups: Vec<(u32, Label)>,
    /// Functions that it calls; None through a register.
    pub(crate) callees: Vec<Option<u32>>,
    guard: Pred,
    current: Option<&'m Instruction>,
    /// The numbers of the source positions of the text so far; `u32::MAX`: there is no line.
    positions: Vec<u32>,
    /// The last of them at each file and line, which calls that were inlined are named by.
    last_at: HashMap<(u32, u32), u32>,
    pub(crate) carry: Option<Slot>,
}

impl<'c, 'm> Scope<'c, 'm> {
    pub(crate) fn new(c: &'c mut Compiler<'m>, function: &'m Function, body: &'m Body, number: u32) -> Result<Self> {
        // Row 0 holds return addresses, row 1 takes unwanted results.
        let (mut rows, mut preds, mut local) = (2, 0, 0u64);
        let homes = body
            .registers
            .iter()
            .map(|register| match register.ty {
                Type::Pred => {
                    preds += 1;
                    Home::Pred(preds - 1)
                }
                // A register of 128 bits has two rows, low half first.
                ty => {
                    rows += if ty == Type::B128 { 2 } else { 1 };
                    Home::Row(Slot(rows - if ty == Type::B128 { 2 } else { 1 }))
                }
            })
            .collect();
        let mut scope = Scope {
            c,
            function,
            body,
            number,
            homes,
            variables: Vec::new(),
            rows,
            preds,
            local: 0,
            starts: Vec::new(),
            fixups: Vec::new(),
            callees: Vec::new(),
            guard: Pred::ALWAYS,
            current: None,
            positions: Vec::new(),
            last_at: HashMap::new(),
            carry: None,
        };
        let mut params = 0u32;
        let formal = if function.kernel { function.parameters.len() } else { 0 };
        for (at, variable) in body.variables.iter().enumerate() {
            let home = match variable.space {
                Space::Param if at < formal => {
                    let offset = params.next_multiple_of(variable.align.max(1));
                    params = offset.saturating_add(variable.size().min(1 << 20) as u32);
                    VariableHome::Param(offset)
                }
                Space::Param | Space::Local => {
                    let offset = local.next_multiple_of(u64::from(variable.align.max(8)));
                    local = offset.saturating_add(variable.size());
                    if local > 1 << 22 {
                        return Err(scope.too_large("local memory"));
                    }
                    VariableHome::Frame(offset as u32)
                }
                Space::Shared => scope.shared_home(variable),
                Space::Global | Space::Const => scope.device_home(variable)?,
            };
            scope.variables.push(home);
        }
        scope.local = local.next_multiple_of(16) as u32;
        Ok(scope)
    }

    fn shared_home(&self, variable: &Variable) -> VariableHome {
        if is_dynamic(variable) {
            return VariableHome::Dynamic;
        }
        match self.c.shared.offset(self.number as usize, variable.name) {
            Some(offset) => VariableHome::Shared(offset),
            None => VariableHome::Dynamic,
        }
    }

    fn device_home(&self, variable: &Variable) -> Result<VariableHome> {
        let name = self.c.module.name(variable.name);
        match self.c.linker.symbol(name, variable.space) {
            Some(address) => Ok(VariableHome::Device(address)),
            None => Err(self.unknown(name)),
        }
    }

    fn name(&self) -> String {
        self.c.module.name(self.function.name).to_owned()
    }

    fn too_large(&self, what: &'static str) -> CompileError {
        CompileError::TooLarge { function: self.name(), what }
    }

    pub(crate) fn unknown(&self, name: &str) -> CompileError {
        CompileError::UnknownSymbol { name: name.to_owned(), function: self.name() }
    }

    fn line(&self) -> u32 {
        self.current.map_or(0, |instruction| instruction.line)
    }

    /// The error for an instruction that is not executed here.
    pub(crate) fn unsupported<T>(&self, op: Op<'_>) -> Result<T> {
        Err(CompileError::Unsupported { instruction: op.text.to_owned(), function: self.name(), line: self.line() })
    }

    /// The error for operands that do not fit.
    pub(crate) fn misfit<T>(&self) -> Result<T> {
        let instruction = self.current.map_or("", |i| &self.c.module.opcode(i.opcode).text).to_owned();
        Err(CompileError::Operands { instruction, function: self.name(), line: self.line() })
    }

    /// Compiles the function. Returns what it calls.
    pub(crate) fn compile(mut self) -> Result<Vec<Option<u32>>> {
        let entry = self.c.program.code.len() as u32;
        for instruction in &self.body.code {
            self.starts.push(self.c.program.code.len() as u32);
            self.current = Some(instruction);
            self.guard = match instruction.guard {
                None => Pred::ALWAYS,
                Some(guard) => match self.homes[guard.register.index()] {
                    Home::Pred(number) => Pred(number | if guard.negated { Pred::NEGATED } else { 0 }),
                    Home::Row(_) => return self.misfit(),
                },
            };
            let info = self.c.module.opcode(instruction.opcode);
            let op = Op { text: &info.text, parts: &info.parts };
            self.instruction(op, &instruction.operands)?;
            if self.c.program.code.len() > MAX_CODE {
                return Err(self.too_large("code"));
            }
        }
        self.starts.push(self.c.program.code.len() as u32);
        // Falling off the end is a return.
        self.guard = Pred::ALWAYS;
        let number = self.number;
        self.emit(build::Return { function: number });
        for (at, label) in std::mem::take(&mut self.fixups) {
            let target = self.target(label);
            self.c.program.code[at as usize].lead_to(target);
        }
        let (function, body) = (self.function, self.body);
        let returns = places(&function.returns, &self.variables, &self.homes);
        let params =
            if function.kernel { Vec::new() } else { places(&function.parameters, &self.variables, &self.homes) };
        // Jump tables were numbered as they came; their labels are known only now.
        let first = self.c.program.tables.len() - body.tables.len();
        for (at, (_, labels)) in body.tables.iter().enumerate() {
            let targets = labels.iter().map(|&label| self.target(label)).collect();
            self.c.program.tables[first + at] = targets;
        }
        if self.rows > 1 << 16 {
            return Err(self.too_large("registers"));
        }
        let code = &mut self.c.program.functions[self.number as usize];
        (code.entry, code.rows, code.preds, code.local) = (entry, self.rows, self.preds.max(1), self.local);
        (code.params, code.returns) = (params, returns);
        Ok(self.callees)
    }

    fn target(&self, label: Label) -> u32 {
        self.body.labels.get(label.index()).map_or(0, |info| self.starts[info.at as usize])
    }

    /// Dispatches to the families.
    fn instruction(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        if self.starts.len() == 1 {
            // Room for this function's jump tables.
            let wanted = self.c.program.tables.len() + self.body.tables.len();
            self.c.program.tables.resize(wanted, Vec::new());
        }
        if self.control(op, operands)?
            || self.memory(op, operands)?
            || self.matrix(op, operands)?
            || self.barrier_objects(op, operands)?
            || self.simd(op, operands)?
            || self.integer(op, operands)?
            || self.floating(op, operands)?
            || self.half(op, operands)?
            || self.convert(op, operands)?
            || self.texture(op, operands)?
        {
            return Ok(());
        }
        self.unsupported(op)
    }

    /// The first of this function's jump tables.
    pub(crate) fn first_table(&self) -> u32 {
        (self.c.program.tables.len() - self.body.tables.len()) as u32
    }

    /// Appends an instruction under the current guard.
    pub(crate) fn emit(&mut self, inst: impl Build) {
        let inst = inst.build(&mut self.c.program.slots);
        self.append(inst);
    }

    fn append(&mut self, mut inst: Inst) {
        inst.guard = self.guard;
        let location = self.current.and_then(|i| i.location).map_or(u32::MAX, |at| self.position(at as usize));
        let line = self.line();
        self.c.program.push(inst, Origin { line, location });
    }

    /// The number of a source position of the text. Calls that were inlined stand before what they
    /// call.
    fn position(&mut self, at: usize) -> u32 {
        while self.positions.len() <= at {
            let Some(location) = self.body.locations.get(self.positions.len()) else { return u32::MAX };
            let number = match location.line {
                0 => u32::MAX,
                line => {
                    let caller = location.inlined_at.filter(|&(_, line)| line != 0);
                    let known = caller.and_then(|call| self.last_at.get(&call).copied());
                    let new = caller.filter(|_| known.is_none()).map(|(file, line)| self.c.location(file, line, None));
                    let number = self.c.location(location.file, line, known.or(new));
                    self.last_at.insert((location.file, line), number);
                    number
                }
            };
            self.positions.push(number);
        }
        self.positions[at]
    }

    /// Appends a branch to a label.
    pub(crate) fn emit_branch(&mut self, label: Label) {
        self.fixups.push((self.c.program.code.len() as u32, label));
        self.emit(build::Branch { target: 0 });
    }

    /// A new row.
    pub(crate) fn temporary(&mut self) -> Slot {
        self.rows += 1;
        Slot(self.rows - 1)
    }

    /// The type of an operand's register.
    pub(crate) fn register_type(&self, operand: &Operand) -> Option<Type> {
        match operand {
            Operand::Register(register) => Some(self.body.registers[register.index()].ty),
            _ => None,
        }
    }

    /// The row of a result.
    pub(crate) fn dst(&mut self, operand: Option<&Operand>) -> Result<Slot> {
        match operand {
            Some(Operand::Sink) => Ok(SCRATCH),
            Some(Operand::Register(register)) => match self.homes[register.index()] {
                Home::Row(slot) => Ok(slot),
                Home::Pred(_) => self.misfit(),
            },
            _ => self.misfit(),
        }
    }

    /// The predicate of a result.
    pub(crate) fn dst_pred(&mut self, operand: Option<&Operand>) -> Result<Pred> {
        match operand {
            Some(Operand::Sink) => Ok(Pred::ALWAYS),
            Some(Operand::Register(register)) => match self.homes[register.index()] {
                Home::Pred(number) => Ok(Pred(number)),
                Home::Row(_) => self.misfit(),
            },
            _ => self.misfit(),
        }
    }

    /// A predicate that is read.
    pub(crate) fn src_pred(&mut self, operand: Option<&Operand>) -> Result<Pred> {
        match operand {
            Some(Operand::Int(value)) => Ok(if *value != 0 { Pred::ALWAYS } else { Pred::NEVER }),
            Some(Operand::Register(register) | Operand::Not(register)) => match self.homes[register.index()] {
                Home::Pred(number) => {
                    let flip = matches!(operand, Some(Operand::Not(_)));
                    Ok(Pred(number | if flip { Pred::NEGATED } else { 0 }))
                }
                Home::Row(_) => self.misfit(),
            },
            _ => self.misfit(),
        }
    }

    /// The row of a value that is read, as an instruction of that type reads it.
    pub(crate) fn src(&mut self, operand: Option<&Operand>, ty: Type) -> Result<Slot> {
        let cut = |value: u64| if bits(ty) >= 64 { value } else { value & ((1 << bits(ty)) - 1) };
        match operand {
            Some(Operand::Register(register)) => match self.homes[register.index()] {
                Home::Row(slot) => Ok(slot),
                Home::Pred(_) => self.misfit(),
            },
            Some(&Operand::Int(value)) => {
                let value = match ty {
                    // Integers where floats are wanted are rare and mean their value.
                    Type::F32 => u64::from((value as i64 as f32).to_bits()),
                    Type::F64 => (value as i64 as f64).to_bits(),
                    _ => cut(value),
                };
                Ok(self.c.constant(value))
            }
            Some(&Operand::F32(value)) => {
                let value = if ty == Type::F64 { f64::from(f32::from_bits(value)).to_bits() } else { u64::from(value) };
                Ok(self.c.constant(value))
            }
            Some(&Operand::F64(value)) => {
                let narrow = matches!(ty, Type::F32 | Type::B32);
                let value = if narrow { u64::from((f64::from_bits(value) as f32).to_bits()) } else { value };
                Ok(self.c.constant(value))
            }
            Some(&Operand::Special(name)) => {
                let text = self.c.module.name(name);
                if text == "WARP_SZ" {
                    return Ok(self.c.constant(32));
                }
                if control::special_by_name(text).is_none() {
                    let line = self.line();
                    let instruction = format!("special register {text}");
                    return Err(CompileError::Unsupported { instruction, function: self.name(), line });
                }
                let kind = control::special_by_name(text).map_or(0, |kind| kind as u32);
                self.c.program.asks_for_reserved |= text.starts_with(control::RESERVED_SHARED);
                Ok(self.result_of(|d| build::Special { d, number: kind }))
            }
            Some(&Operand::Local(local, offset)) => {
                let home = self.variables[local.index()];
                Ok(self.variable_address(home, offset))
            }
            Some(&Operand::Symbol(name, offset)) => self.symbol(name, offset),
            _ => self.misfit(),
        }
    }

    /// The address of a symbol of the module in its state space.
    fn symbol(&mut self, name: device_code::ptx::Name, offset: i64) -> Result<Slot> {
        let module = self.c.module;
        let variable = module.globals.iter().rev().find(|variable| variable.name == name);
        if let Some(variable) = variable
            && variable.space == Space::Shared
        {
            let home = self.shared_home(variable);
            return Ok(self.variable_address(home, offset));
        }
        match symbol_address(module, module.name(name), self.c.linker) {
            Some(address) => Ok(self.c.constant(address.wrapping_add(offset as u64))),
            None => Err(self.unknown(module.name(name))),
        }
    }

    fn variable_address(&mut self, home: VariableHome, offset: i64) -> Slot {
        let plus = |base: u32| u64::from(base).wrapping_add(offset as u64);
        match home {
            VariableHome::Shared(base) => self.c.constant(plus(base)),
            VariableHome::Device(base) => self.c.constant(base.wrapping_add(offset as u64)),
            VariableHome::Param(base) => self.result_of(|d| build::ParamAddress { d, offset: plus(base) }),
            VariableHome::Frame(base) => self.result_of(|d| build::FrameAddress { d, offset: plus(base) }),
            VariableHome::Dynamic => self.result_of(|d| build::DynamicShared { d, offset: offset as u64 }),
        }
    }

    /// A new row with the result of an instruction.
    fn result_of<I: Build>(&mut self, inst: impl FnOnce(Slot) -> I) -> Slot {
        let d = self.temporary();
        self.emit(inst(d));
        d
    }

    /// A memory operand: row, constant offset, and the space (`space` unless the base decides).
    pub(crate) fn address(&mut self, operand: Option<&Operand>, space: u32) -> Result<(Slot, u64, u32)> {
        let (base, offset) = match operand {
            Some(&Operand::Memory(base, offset)) => (base, offset),
            Some(Operand::MemoryList(list)) => (list.0, list.1),
            _ => return self.misfit(),
        };
        Ok(match base {
            AddressBase::Register(register) => match self.homes[register.index()] {
                Home::Row(slot) => (slot, offset as u64, space),
                Home::Pred(_) => return self.misfit(),
            },
            AddressBase::Zero => (self.c.constant(0), offset as u64, space),
            AddressBase::Local(local) => match self.variables[local.index()] {
                VariableHome::Frame(at) => (self.c.constant(u64::from(at)), offset as u64, FRAME),
                VariableHome::Param(_) if space != PARAM && space != GENERIC => return self.misfit(),
                home => (self.variable_address(home, offset), 0, space),
            },
            AddressBase::Symbol(name) => (self.symbol(name, offset)?, 0, space),
        })
    }

    /// The elements of a vector operand, or the operand itself.
    pub(crate) fn elements<'o>(&self, operand: Option<&'o Operand>) -> Vec<&'o Operand> {
        match operand {
            Some(Operand::Vector(list)) => list.iter().collect(),
            Some(operand) => vec![operand],
            None => Vec::new(),
        }
    }

    /// Puts slots into the program's list. Returns the first's place.
    pub(crate) fn list(&mut self, slots: &[Slot]) -> u32 {
        let first = self.c.program.slots.len() as u32;
        self.c.program.slots.extend(slots);
        first
    }

    /// A text that an instruction refers to by number.
    pub(crate) fn text(&mut self, text: &str) -> u32 {
        let texts = &mut self.c.program.texts;
        if let Some(known) = texts.iter().position(|known| known == text) {
            return known as u32;
        }
        texts.push(text.to_owned());
        texts.len() as u32 - 1
    }
}
