//! Instruction families of control flow, moves and predicates, and of what the lanes of a warp do
//! together.

use device_code::ptx::{Operand, Parameter, Type};

use super::{Op, bits};
use crate::block;
use crate::compile::function::{Home, Result, SCRATCH, Scope, VariableHome};
use crate::compile::load_store::named_scope;
use crate::exec::control::{
    ACQUIRES, MAPS_ACQUIRE, MAPS_RELEASE, NO_SCOPE, OF_INITS, PROXIES_GLOBAL, PROXIES_SHARED, fence_scope,
};
use crate::exec::per_lane::setp;
use crate::exec::warp_sync;
use crate::operations::build;
use crate::program::{ArgumentHome, CallSite, Pred, Sem, Slot};

impl<'m> Scope<'_, 'm> {
    /// Returns false when the instruction is of another family.
    pub(super) fn control(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        match op.name() {
            "bra" => match operands {
                [Operand::Label(label)] => self.emit_branch(*label),
                _ => return self.misfit(),
            },
            "brx" => match operands {
                [index, Operand::Table(table)] => {
                    let a = self.src(Some(index), Type::U32)?;
                    let y = self.first_table() + table.0;
                    self.emit(build::BranchTable { index: a, table: y });
                }
                _ => return self.misfit(),
            },
            "call" => self.call(op, operands)?,
            "ret" => {
                let y = self.number;
                self.emit(build::Return { function: y });
            }
            "exit" => self.emit(build::Exit {}),
            "trap" | "brkpt" => self.emit(build::Trap {}),
            "membar" | "fence" => {
                let between_proxies = op.has("proxy") || op.parts.iter().any(|part| part.starts_with("proxy"));
                let sc = op.name() == "membar" || op.has("sc");
                let scope = named_scope(op).filter(|_| !between_proxies);
                let mut scope = scope.map_or(NO_SCOPE, |scope| fence_scope(scope, sc, op.has("sys")));
                let restricted = op.parts.iter().any(|part| part.starts_with("sync_restrict"));
                scope |= if op.has("acquire") && !between_proxies && !restricted { ACQUIRES } else { 0 };
                if between_proxies && op.parts.iter().any(|part| part == "async" || part.starts_with("async::")) {
                    let shared = op.parts.iter().any(|part| part.starts_with("shared"));
                    scope |= if op.has("global") || !shared { PROXIES_GLOBAL } else { 0 };
                    scope |= if op.has("global") { 0 } else { PROXIES_SHARED };
                }
                if between_proxies && op.parts.iter().any(|part| part.starts_with("tensormap")) {
                    scope |= if op.has("release") { MAPS_RELEASE } else { 0 };
                    scope |= if op.has("acquire") { MAPS_ACQUIRE } else { 0 };
                }
                scope |= if op.has("mbarrier_init") { OF_INITS } else { 0 };
                self.emit(build::Fence { scope });
            }
            "nanosleep" => self.emit(build::GiveWay {}),
            "griddepcontrol" if op.has("wait") => self.emit(build::GridWait {}),
            "griddepcontrol" => self.emit(build::GridTrigger {}),
            "pmevent" => self.emit(build::Nothing {}),
            "setmaxnreg" => match operands {
                // PTX ISA, "setmaxnreg": the range of the count.
                [Operand::Int(count @ 24..=256)] if count % 8 == 0 => {
                    self.emit(build::SetRegisters { count: *count as u32, more: u32::from(op.has("inc")) });
                }
                _ => return self.misfit(),
            },
            "bar" | "barrier" => self.barrier(op, operands)?,
            "vote" => self.vote(op, operands)?,
            "shfl" => self.shuffle(op, operands)?,
            "match" => self.match_values(op, operands)?,
            "redux" => self.redux(op, operands)?,
            "activemask" => {
                let d = self.dst(operands.first())?;
                self.emit(build::ActiveMask { d });
            }
            "elect" => {
                let (d, p) = self.pair(operands.first())?;
                let a = self.src(operands.get(1), Type::B32)?;
                self.emit(build::Elect { members: a, d, p });
            }
            "mov" => self.mov(op, operands)?,
            "selp" => {
                let ty = op.ty().unwrap_or(Type::B32);
                let d = self.dst(operands.first())?;
                let (a, b) = (self.src(operands.get(1), ty)?, self.src(operands.get(2), ty)?);
                let c = self.src_pred(operands.get(3))?;
                self.emit(build::Select { a, b, which: c, d });
            }
            "and" | "or" | "xor" | "not" if op.ty() == Some(Type::Pred) => {
                let d = self.dst_pred(operands.first())?;
                let a = self.src_pred(operands.get(1))?;
                let (a, b, y) = match op.name() {
                    "not" => (Pred(a.0 ^ Pred::NEGATED), Pred::ALWAYS, 3),
                    name => {
                        let y = match name {
                            "and" => 0,
                            "or" => 1,
                            _ => 2,
                        };
                        (a, self.src_pred(operands.get(2))?, y)
                    }
                };
                self.emit(build::Predicate { a, b, d, function: y });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `d|p`, where either may be `_` and the predicate may be missing.
    pub(super) fn pair(&mut self, operand: Option<&Operand>) -> Result<(Slot, Pred)> {
        match operand {
            Some(Operand::Pair(pair)) => Ok((self.dst(Some(&pair.0))?, self.dst_pred(Some(&pair.1))?)),
            other => Ok((self.dst(other)?, Pred::ALWAYS)),
        }
    }

    fn mov(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let ty = op.ty().unwrap_or(Type::B32);
        if ty == Type::Pred {
            let d = self.dst_pred(operands.first())?;
            // `%is_explicit_cluster` is a special register that is a predicate.
            if let Some(special @ Operand::Special(_)) = operands.get(1) {
                let a = self.src(Some(special), Type::B32)?;
                let none = self.c.constant(0);
                self.emit(setp(|a: u32, b: u32| a != b).is(Sem::Ne).of([a, none]).test(d, Pred::ALWAYS));
                return Ok(());
            }
            let a = self.src_pred(operands.get(1))?;
            self.emit(build::Predicate { a, b: a, d, function: 3 });
            return Ok(());
        }
        let unpack = matches!(operands.first(), Some(Operand::Vector(_)));
        let pack = matches!(operands.get(1), Some(Operand::Vector(_)));
        if !unpack && !pack && ty != Type::B128 {
            let d = self.dst(operands.first())?;
            let a = self.src(operands.get(1), ty)?;
            self.emit(crate::exec::per_lane::op1(|a: u64| a).is(Sem::Move).of([a]).to(d));
            return Ok(());
        }
        let (into, into_width) = self.wide(operands.first(), ty, true)?;
        let (from, from_width) = self.wide(operands.get(1), ty, false)?;
        self.emit(build::Repack { from, into, from_bits: from_width, into_bits: into_width });
        Ok(())
    }

    /// The rows of a scalar or vector operand of a `mov`, and the bits of each.
    pub(super) fn wide(&mut self, operand: Option<&'m Operand>, ty: Type, result: bool) -> Result<(Vec<Slot>, u32)> {
        let elements = self.elements(operand);
        let width = bits(ty) / elements.len().max(1) as u32;
        if elements.len() == 1 && ty == Type::B128 {
            let low = if result { self.dst(operand)? } else { self.src(operand, ty)? };
            if low.0 & Slot::CONSTANT != 0 || self.register_type(elements[0]) != Some(Type::B128) {
                return self.misfit();
            }
            return Ok((vec![low, Slot(low.0 + 1)], 64));
        }
        let narrow = match width {
            8 => Type::B8,
            16 => Type::B16,
            32 => Type::B32,
            _ => Type::B64,
        };
        let mut slots = Vec::new();
        for element in elements {
            slots.push(if result { self.dst(Some(element))? } else { self.src(Some(element), narrow)? });
        }
        Ok((slots, width))
    }

    fn call(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        // call (ret), f, (args), prototype;   call f, (args);   call f;
        let mut rest = operands;
        let mut returns: &[Operand] = &[];
        if let Some(Operand::List(list)) = rest.first() {
            returns = list;
            rest = &rest[1..];
        }
        let Some(target) = rest.first() else { return self.misfit() };
        let mut arguments: &[Operand] = &[];
        if let Some(Operand::List(list)) = rest.get(1) {
            arguments = list;
        }
        let (callee, a) = match target {
            Operand::Symbol(name, 0) => {
                let name = self.c.module.name(*name);
                let Some(number) = self.c.function_number(name) else { return Err(self.unknown(name)) };
                let function = &self.c.module.functions[number as usize];
                if function.body.is_none() && self.c.program.functions[number as usize].builtin.is_none() {
                    return if name.starts_with("cuda") || name.starts_with("cnp") || name.starts_with("__cuda") {
                        self.unsupported(Op { text: &format!("call {name}"), ..op })
                    } else {
                        Err(self.unknown(name))
                    };
                }
                (Some(number), Slot::NONE)
            }
            Operand::Register(_) => (None, self.src(Some(target), Type::U64)?),
            _ => return self.misfit(),
        };
        let arguments = self.call_places(arguments)?;
        let returns = self.call_places(returns)?;
        if let Some(number) = callee {
            let function = &self.c.module.functions[number as usize];
            let agree = |actual: &[ArgumentHome], formal: &[Parameter]| {
                actual.len() == formal.len()
                    && actual.iter().zip(formal).all(|(place, parameter)| match (place, parameter) {
                        (ArgumentHome::Local(_, size), Parameter::Space(variable, _)) => {
                            u64::from(*size) == variable.size()
                        }
                        _ => true,
                    })
            };
            if !agree(&arguments, &function.parameters) || !agree(&returns, &function.returns) {
                return self.misfit();
            }
        }
        self.callees.push(callee);
        // Builtins are no frames of their own.
        if callee.is_some_and(|number| self.c.program.functions[number as usize].builtin.is_some()) {
            self.callees.pop();
        }
        let site = self.c.program.calls.len() as u32;
        self.c.program.calls.push(CallSite { caller: self.number, callee, arguments, returns });
        self.emit(build::Call { function: a, site });
        Ok(())
    }

    fn call_places(&mut self, operands: &'m [Operand]) -> Result<Vec<ArgumentHome>> {
        let mut out = Vec::new();
        for operand in operands {
            out.push(match operand {
                Operand::Local(local, 0) => match self.variables[local.index()] {
                    VariableHome::Frame(offset) => {
                        ArgumentHome::Local(offset, self.body.variables[local.index()].size() as u32)
                    }
                    _ => return self.misfit(),
                },
                Operand::Register(register) => match self.homes[register.index()] {
                    Home::Row(slot) => ArgumentHome::Row(slot),
                    Home::Pred(_) => return self.misfit(),
                },
                Operand::Sink => ArgumentHome::Row(SCRATCH),
                other => ArgumentHome::Row(self.src(Some(other), Type::B64)?),
            });
        }
        Ok(out)
    }

    fn barrier(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        // bar[.cta].sync a{, b};  bar.red.op.type d, a{, b}, c;  bar.warp.sync mask;
        // barrier.cluster.arrive/wait
        if op.has("warp") {
            let a = self.src(operands.first(), Type::B32)?;
            self.emit(build::WarpBarrier { members: a });
            return Ok(());
        }
        if op.has("cluster") {
            if op.has("wait") {
                self.emit(build::ClusterWait {});
            } else {
                self.emit(build::ClusterArrive { relaxed: u32::from(op.has("relaxed")) });
            }
            return Ok(());
        }
        let kind = match op.parts.iter().position(|part| part == "red") {
            Some(_) if op.has("popc") => block::BARRIER_POPC,
            Some(_) if op.has("and") => block::BARRIER_AND,
            Some(_) => block::BARRIER_OR,
            None if op.has("arrive") => block::BARRIER_ARRIVE,
            None => block::BARRIER_SYNC,
        };
        let mut rest = operands;
        let (mut d, mut p, mut truth) = (None, None, None);
        if kind >= block::BARRIER_POPC {
            let [first, middle @ .., last] = operands else { return self.misfit() };
            if kind == block::BARRIER_POPC {
                d = Some(self.dst(Some(first))?);
            } else {
                p = Some(self.dst_pred(Some(first))?);
            }
            truth = Some(self.src_pred(Some(last))?);
            rest = middle;
        }
        let number = self.src(rest.first(), Type::B32)?;
        let threads = match rest.get(1) {
            Some(count) => self.src(Some(count), Type::B32)?,
            None => Slot::NONE,
        };
        self.emit(build::Barrier { number, threads, truth, d, p, what: kind });
        Ok(())
    }

    fn vote(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let y = match op.parts.iter().find_map(|part| ["all", "any", "uni", "ballot"].iter().position(|k| k == part)) {
            Some(kind) => kind as u32,
            None => return self.unsupported(op),
        };
        let (d, p) = match y {
            3 => (Some(self.dst(operands.first())?), None),
            _ => (None, Some(self.dst_pred(operands.first())?)),
        };
        let truth = self.src_pred(operands.get(1))?;
        if !op.has("sync") {
            return self.unsupported(op);
        }
        let members = self.src(operands.get(2), Type::B32)?;
        self.emit(build::Vote { truth, members, d, p, mode: y });
        Ok(())
    }

    fn shuffle(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let y = match op.parts.iter().find_map(|part| ["up", "down", "bfly", "idx"].iter().position(|k| k == part)) {
            Some(kind) if op.has("sync") => kind as u32,
            _ => return self.unsupported(op),
        };
        let (d, p) = self.pair(operands.first())?;
        let value = self.src(operands.get(1), Type::B32)?;
        let (lane, clamp) = (self.src(operands.get(2), Type::B32)?, self.src(operands.get(3), Type::B32)?);
        let members = self.src(operands.get(4), Type::B32)?;
        self.emit(build::Shuffle { value, lane, clamp, members, d, inside: p, mode: y });
        Ok(())
    }

    fn match_values(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let (d, p) = self.pair(operands.first())?;
        let a = self.src(operands.get(1), op.ty().unwrap_or(Type::B32))?;
        let b = self.src(operands.get(2), Type::B32)?;
        let all = op.has("all");
        let same = all.then_some(p);
        self.emit(build::Match { value: a, members: b, d, same, all: u32::from(all) });
        Ok(())
    }

    fn redux(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let signed = op.ty() == Some(Type::S32);
        let float = op.ty() == Some(Type::F32);
        let y = match op.part(2) {
            "add" => 0,
            "min" if float => {
                if op.has("NaN") {
                    10
                } else {
                    8
                }
            }
            "max" if float => {
                if op.has("NaN") {
                    11
                } else {
                    9
                }
            }
            "min" => {
                if signed {
                    3
                } else {
                    1
                }
            }
            "max" => {
                if signed {
                    4
                } else {
                    2
                }
            }
            "and" => 5,
            "or" => 6,
            "xor" => 7,
            _ => return self.unsupported(op),
        };
        let d = self.dst(operands.first())?;
        let a = self.src(operands.get(1), Type::B32)?;
        let b = self.src(operands.get(2), Type::B32)?;
        let y = if op.has("abs") { y + warp_sync::REDUX_ABS } else { y };
        self.emit(build::Reduce { value: a, members: b, d, function: y });
        Ok(())
    }
}
