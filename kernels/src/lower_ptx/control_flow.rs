//! Blocks and edges of a PTX kernel. Device functions are inlined at each call.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::ir::{AccessKind, Addr, Block, BlockId, Class, Op, Reason, SrcOperand, Term, Var};
use device_code::ptx::{self, Instruction, Label, Local, OpcodeInfo, Parameter};

use super::arithmetic::has;
use super::{Lower, MAX_CALLS, MAX_INSTS, PtxLowerError, class, memory_access};

/// An instruction of an instance.
type Place = (usize, usize);

#[derive(Default)]
struct Work {
    ids: HashMap<Place, BlockId>,
    todo: Vec<Place>,
    /// Callee's instance of each call.
    callees: HashMap<Place, usize>,
}

impl Work {
    fn id(&mut self, f: &mut crate::ir::KernelIr, place: Place) -> BlockId {
        if let Some(&block) = self.ids.get(&place) {
            return block;
        }
        let block = BlockId(f.blocks.len() as u32);
        f.blocks.push(Block { insts: Vec::new(), term: Term::Exit });
        self.ids.insert(place, block);
        self.todo.push(place);
        block
    }
}

/// What a call to a function of the device runtime does to global memory: nothing that a kernel
/// parameter points to (`vprintf` reads its format and its arguments in local memory).
fn is_runtime(name: &str) -> bool {
    matches!(name, "vprintf" | "__assertfail" | "malloc" | "free" | "__nv_aligned_device_malloc")
        || matches!(name, "cudaCGGetIntrinsicHandle" | "cudaCGSynchronize" | "cudaCGSynchronizeGrid")
}

fn is_control(name: &str) -> bool {
    matches!(name, "bra" | "brx" | "ret" | "exit" | "trap" | "call")
}

impl<'m> Lower<'m> {
    pub(super) fn blocks(&mut self) -> Result<(), PtxLowerError> {
        let mut work = Work::default();
        // The entry has no predecessors, even when the code loops back to its start.
        self.f.blocks.push(Block { insts: Vec::new(), term: Term::Exit });
        let start = work.id(&mut self.f, (0, 0));
        self.f.blocks[0].term = Term::Jump(start);
        let mut leaders: HashMap<*const ptx::Body, Vec<bool>> = HashMap::new();
        let mut total = 0;
        while let Some((instance, first)) = work.todo.pop() {
            let id = work.ids[&(instance, first)];
            self.at = instance;
            let body = self.here().body;
            let leader = leaders.entry(body).or_insert_with(|| leaders_of(self.module, body)).clone();
            let mut at = first;
            let term = loop {
                let Some(instruction) = body.code.get(at) else {
                    break self.leave(&mut work);
                };
                total += 1;
                if total > MAX_INSTS {
                    return Err(PtxLowerError::TooLarge);
                }
                self.line = instruction.line;
                let op = self.module.opcode(instruction.opcode);
                self.guard = self.guard_of(instruction);
                if is_control(&op.parts[0]) {
                    break self.control(op, instruction, at, &mut work);
                }
                self.straight(op, instruction);
                at += 1;
                if leader.get(at).copied().unwrap_or(false) {
                    break Term::Jump(work.id(&mut self.f, (instance, at)));
                }
            };
            let insts = std::mem::take(&mut self.out);
            self.f.blocks[id.0 as usize] = Block { insts, term };
        }
        Ok(())
    }

    fn guard_of(&self, instruction: &Instruction) -> Option<SrcOperand> {
        instruction.guard.map(|guard| SrcOperand::pred(self.here().registers[guard.register.index()], guard.negated))
    }

    /// Where a function goes when it ends.
    fn leave(&mut self, work: &mut Work) -> Term {
        self.guard = None;
        let Some((caller, at)) = self.here().caller else { return Term::Exit };
        let callee = self.at;
        let call = &self.instances[caller].body.code[at];
        let (function, number) = (self.instances[callee].function, self.instances[callee].number);
        if let Some(ptx::Operand::List(targets)) = call.operands.first()
            && call.operands.len() > 1
            && !matches!(call.operands.get(1), Some(ptx::Operand::List(_)))
        {
            self.hand_over(&function.returns, targets, number, caller, false);
        }
        Term::Jump(work.id(&mut self.f, (caller, at + 1)))
    }

    /// Moves arguments into a callee's parameters (`into`), or its results out to the caller.
    fn hand_over(&mut self, formal: &[Parameter], actual: &[ptx::Operand], callee: usize, caller: usize, into: bool) {
        for (formal, actual) in formal.iter().zip(actual) {
            match (formal, actual) {
                (Parameter::Space(variable, Some(local)), ptx::Operand::Local(other, 0)) => {
                    let mut keys = self.words_of(callee, *local);
                    keys.extend(self.words_of(caller, *other));
                    keys.sort_unstable();
                    keys.dedup();
                    let _ = variable;
                    for (offset, bytes) in keys {
                        let inside = self.word(callee, *local, offset, bytes);
                        let outside = self.word(caller, *other, offset, bytes);
                        let (from, to) = if into { (outside, inside) } else { (inside, outside) };
                        self.emit(Op::Mov, &[SrcOperand::var(from)], &[to]);
                    }
                }
                (Parameter::Register(_, Some(register)), actual) => {
                    let inside = self.instances[callee].registers[register.index()];
                    if into {
                        let at = std::mem::replace(&mut self.at, caller);
                        let value = self.src(Some(actual), self.f.class(inside));
                        self.at = at;
                        self.emit(Op::Mov, &[value], &[inside]);
                    } else {
                        let at = std::mem::replace(&mut self.at, caller);
                        let outside = self.dst(Some(actual));
                        self.at = at;
                        if outside != Var::NONE {
                            self.emit(Op::Mov, &[SrcOperand::var(inside)], &[outside]);
                        }
                    }
                }
                _ => {
                    // Forms that compilers do not emit: nothing is known of the value handed over.
                    self.emit(Op::ClobberAll, &[], &[]);
                }
            }
        }
    }

    /// The words of a `.param` variable that its function's text reads or writes.
    fn words_of(&self, instance: usize, local: Local) -> Vec<(i64, u32)> {
        let body = self.instances[instance].body;
        let mut out = Vec::new();
        for instruction in &body.code {
            for operand in &instruction.operands {
                if let ptx::Operand::Memory(ptx::AddressBase::Local(found), offset) = operand
                    && *found == local
                {
                    let op = self.module.opcode(instruction.opcode);
                    out.extend(memory_access::elements(op, *offset));
                }
            }
        }
        out
    }

    /// The variable of a word of a `.param` variable.
    pub(super) fn word(&mut self, instance: usize, local: Local, offset: i64, bytes: u32) -> Var {
        if let Some(&var) = self.instances[instance].words.get(&(local, offset, bytes)) {
            return var;
        }
        let var = self.f.var(if bytes == 8 { Class::W64 } else { Class::W32 });
        self.instances[instance].words.insert((local, offset, bytes), var);
        var
    }

    /// Ends a block at a branch, call or end. The guard decides between that and the next
    /// instruction.
    fn control(&mut self, op: &'m OpcodeInfo, i: &'m Instruction, at: usize, work: &mut Work) -> Term {
        let instance = self.at;
        let guard = self.guard.take();
        let next = (instance, at + 1);
        let target = match (op.parts[0].as_str(), i.operands.first()) {
            ("bra", Some(ptx::Operand::Label(label))) => {
                let place = (instance, self.place_of(*label));
                Some(work.id(&mut self.f, place))
            }
            ("brx", _) => {
                let targets = self.table(i);
                let mut blocks: Vec<BlockId> =
                    targets.into_iter().map(|at| work.id(&mut self.f, (instance, at))).collect();
                if guard.is_some() {
                    blocks.push(work.id(&mut self.f, next));
                }
                return Term::Switch(blocks);
            }
            ("ret", _) if self.here().caller.is_some() => {
                if guard.is_none() {
                    return self.leave(work);
                }
                // A block of its own, at the end of the function's text.
                let end = self.here().body.code.len();
                Some(work.id(&mut self.f, (instance, end)))
            }
            ("call", _) => return self.call(i, at, guard, work),
            ("bra", _) => return Term::Switch(Vec::new()),
            // `ret` of the kernel, `exit`, `trap`: the thread ends.
            _ => None,
        };
        match (guard, target) {
            (None, Some(target)) => Term::Jump(target),
            (None, None) => Term::Exit,
            (Some(cond), taken) => {
                let fall = Some(work.id(&mut self.f, next));
                Term::Branch { cond, taken, fall }
            }
        }
    }

    fn place_of(&self, label: Label) -> usize {
        self.here().body.labels.get(label.index()).map_or(usize::MAX, |label| label.at as usize)
    }

    fn table(&self, i: &Instruction) -> Vec<usize> {
        let body = self.here().body;
        match i.operands.get(1) {
            Some(ptx::Operand::Table(table)) => {
                let mut places: Vec<usize> =
                    body.tables[table.index()].1.iter().map(|&label| self.place_of(label)).collect();
                places.sort_unstable();
                places.dedup();
                places
            }
            // A table that is not there: any label.
            _ => body.labels.iter().map(|label| label.at as usize).collect(),
        }
    }

    fn call(&mut self, i: &'m Instruction, at: usize, guard: Option<SrcOperand>, work: &mut Work) -> Term {
        let instance = self.at;
        let results: &[ptx::Operand] = match (i.operands.first(), i.operands.get(1)) {
            (Some(ptx::Operand::List(list)), Some(_)) => list,
            _ => &[],
        };
        let skip = usize::from(matches!(i.operands.first(), Some(ptx::Operand::List(_))));
        let arguments: &[ptx::Operand] = match i.operands.get(skip + 1) {
            Some(ptx::Operand::List(list)) => list,
            _ => &[],
        };
        let next = work.id(&mut self.f, (instance, at + 1));
        if let Some(ptx::Operand::Symbol(name, 0)) = i.operands.get(skip) {
            let text = self.module.name(*name);
            if is_runtime(text) {
                if text == "__assertfail" && guard.is_none() {
                    return Term::Exit;
                }
                self.guard = guard;
                self.forget(results);
                self.guard = None;
                return Term::Jump(next);
            }
            let function = self.module.function(*name);
            if let Some(function) = function
                && let Some(body) = &function.body
                && self.here().depth < MAX_CALLS
                && !self.on_path(function)
            {
                let depth = self.here().depth + 1;
                let callee = match work.callees.get(&(instance, at)) {
                    Some(&callee) => callee,
                    None => self.instance(function, body, Some((instance, at)), depth),
                };
                work.callees.insert((instance, at), callee);
                // The parameters of a call that is not made are of no interest.
                self.guard = None;
                self.hand_over(&function.parameters, arguments, callee, instance, true);
                let entry = work.id(&mut self.f, (callee, 0));
                return match guard {
                    None => Term::Jump(entry),
                    Some(cond) => Term::Branch { cond, taken: Some(entry), fall: Some(next) },
                };
            }
        }
        // A call that is not followed may do anything.
        self.guard = guard;
        let why = match i.operands.get(skip) {
            Some(ptx::Operand::Symbol(name, 0)) => Reason::of_call(self.module.name(*name)),
            _ => Reason::Call,
        };
        self.any_memory(why);
        if why == Reason::Call {
            self.passes(arguments);
        }
        self.emit(Op::ClobberAll, &[], &[]);
        self.guard = None;
        Term::Jump(next)
    }

    /// A call that is not followed is given these arguments, and by their addresses what the kernel
    /// keeps in local memory.
    fn passes(&mut self, arguments: &'m [ptx::Operand]) {
        let mut given: SmallVec<[SrcOperand; 2]> = SmallVec::new();
        for argument in arguments {
            match argument {
                ptx::Operand::Local(local, _) => {
                    for (offset, bytes) in self.words_of(self.at, *local) {
                        given.push(SrcOperand::var(self.word(self.at, *local, offset, bytes)));
                    }
                }
                other => {
                    let mut registers: SmallVec<[Var; 4]> = SmallVec::new();
                    self.registers_of(other, &mut registers);
                    given.extend(registers.into_iter().map(SrcOperand::var));
                }
            }
        }
        let mut frame = Some(self.at);
        while let Some(at) = frame {
            for instruction in &self.instances[at].body.code {
                if memory_access::keeps_locally(self.module.opcode(instruction.opcode)) {
                    let mut registers: SmallVec<[Var; 4]> = SmallVec::new();
                    let running = std::mem::replace(&mut self.at, at);
                    instruction.operands[1..].iter().for_each(|stored| self.registers_of(stored, &mut registers));
                    self.at = running;
                    given.extend(registers.into_iter().map(SrcOperand::var));
                }
            }
            frame = self.instances[at].caller.map(|caller| caller.0);
        }
        for kind in [AccessKind::Read, AccessKind::Write] {
            self.access(kind, 0, Addr::Passed(given.clone()));
        }
    }

    /// True when the running call is inside that function already.
    fn on_path(&self, function: &ptx::Function) -> bool {
        let mut at = self.at;
        loop {
            if std::ptr::eq(self.instances[at].function, function) {
                return true;
            }
            match self.instances[at].caller {
                Some((caller, _)) => at = caller,
                None => return false,
            }
        }
    }

    /// The results of a call become unknown.
    fn forget(&mut self, results: &[ptx::Operand]) {
        let mut dsts: SmallVec<[Var; 4]> = SmallVec::new();
        for result in results {
            match result {
                ptx::Operand::Local(local, _) => {
                    for (offset, bytes) in self.words_of(self.at, *local) {
                        dsts.push(self.word(self.at, *local, offset, bytes));
                    }
                }
                other => self.registers_of(other, &mut dsts),
            }
        }
        if !dsts.is_empty() {
            self.emit(Op::Unknown(Reason::Call), &[], &dsts);
        }
    }

    /// An instruction that control flow passes through.
    fn straight(&mut self, op: &'m OpcodeInfo, i: &'m Instruction) {
        // Fences, and releases that contain one.
        self.f.system_fence |= has(op, "sys");
        match op.parts[0].as_str() {
            "griddepcontrol" => {
                if has(op, "wait") {
                    self.f.waits_for_dependency = true;
                } else {
                    self.f.launches_dependents = true;
                }
            }
            "bar" | "barrier" if has(op, "red") => self.give_up(i, Reason::CrossLane),
            "bar" | "barrier" | "membar" | "fence" | "nanosleep" | "pmevent" | "setmaxnreg" | "brkpt" => {}
            "shfl" if self.shuffle(op, i) => {}
            "vote" | "shfl" | "match" | "redux" | "activemask" | "elect" => self.give_up(i, Reason::CrossLane),
            _ => {
                if !self.memory(op, i) {
                    self.alu(op, i);
                }
            }
        }
    }

    /// A value from another lane. False: there is no rule for its result.
    fn shuffle(&mut self, op: &'m OpcodeInfo, i: &'m Instruction) -> bool {
        let [result, from, lane, within, ..] = &i.operands[..] else { return false };
        let (to, found) = match result {
            ptx::Operand::Register(to) => (*to, None),
            ptx::Operand::Pair(pair) => match (&pair.0, &pair.1) {
                (ptx::Operand::Register(to), ptx::Operand::Register(found)) => (*to, Some(*found)),
                _ => return false,
            },
            _ => return false,
        };
        let mode = ["idx", "up", "down", "bfly"].iter().position(|mode| has(op, mode)).unwrap_or(4) as u8;
        let sources = [from, lane, within].map(|operand| self.src(Some(operand), Class::W32));
        let variable = |l: &Self, register: ptx::Register| l.here().registers[register.index()];
        // Whether the lane was one of the segment's.
        if let Some(found) = found {
            let found = variable(self, found);
            self.emit(Op::Unknown(Reason::CrossLane), &[], &[found]);
        }
        let to = variable(self, to);
        self.emit(Op::Shuffle { mode }, &sources, &[to]);
        true
    }
}

/// Instructions that blocks begin at.
fn leaders_of(module: &ptx::Module, body: &ptx::Body) -> Vec<bool> {
    let mut leader = vec![false; body.code.len() + 1];
    for label in &body.labels {
        leader[label.at as usize] = true;
    }
    for (at, instruction) in body.code.iter().enumerate() {
        if is_control(&module.opcode(instruction.opcode).parts[0]) {
            leader[at + 1] = true;
        }
    }
    let _ = class;
    leader
}
