//! Blocks and edges of a PTX kernel. Device functions are inlined at each call.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::ir::jump_table::{MAX_WAYS, chain};
use crate::ir::{AccessKind, Addr, Block, BlockId, Callees, Class, Op, Reason, SrcOperand, Term, Var};
use crate::lower_ptx::arithmetic::alu;
use crate::lower_ptx::memory_access::{access, any_memory, memory};
use crate::lower_ptx::synchronisation::synchronisation;
use device_code::ptx::{self, Instruction, Label, Local, Module, OpcodeInfo, Parameter};

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

pub(super) fn blocks(lower: &mut Lower<'_>) -> Result<(), PtxLowerError> {
    let mut work = Work::default();
    // The entry has no predecessors, even when the code loops back to its start.
    lower.f.blocks.push(Block { insts: Vec::new(), term: Term::Exit });
    let start = work.id(&mut lower.f, (0, 0));
    lower.f.blocks[0].term = Term::Jump(start);
    let mut leaders: HashMap<*const ptx::Body, Vec<bool>> = HashMap::new();
    let mut total = 0;
    while let Some((instance, first)) = work.todo.pop() {
        let id = work.ids[&(instance, first)];
        lower.at = instance;
        let body = lower.here().body;
        let leader = leaders.entry(body).or_insert_with(|| leaders_of(lower.module, body)).clone();
        let mut at = first;
        let term = loop {
            let Some(instruction) = body.code.get(at) else {
                break leave(lower, &mut work);
            };
            total += 1;
            if total > MAX_INSTS {
                return Err(PtxLowerError::TooLarge);
            }
            lower.line = instruction.line;
            let op = lower.module.opcode(instruction.opcode);
            lower.guard = guard_of(lower, instruction);
            if is_control(&op.parts[0]) {
                break control(lower, op, instruction, at, &mut work);
            }
            straight(lower, op, instruction);
            at += 1;
            if leader.get(at).copied().unwrap_or(false) {
                break Term::Jump(work.id(&mut lower.f, (instance, at)));
            }
        };
        let insts = std::mem::take(&mut lower.out);
        lower.f.blocks[id.0 as usize] = Block { insts, term };
    }
    Ok(())
}

fn guard_of(lower: &Lower<'_>, instruction: &Instruction) -> Option<SrcOperand> {
    instruction.guard.map(|guard| SrcOperand::pred(lower.here().registers[guard.register.index()], guard.negated))
}

/// Where a function goes when it ends.
fn leave(lower: &mut Lower<'_>, work: &mut Work) -> Term {
    lower.guard = None;
    let Some((caller, at)) = lower.here().caller else { return Term::Exit };
    let callee = lower.at;
    let call = &lower.instances[caller].body.code[at];
    let (function, number) = (lower.instances[callee].function, lower.instances[callee].number);
    if let Some(ptx::Operand::List(targets)) = call.operands.first()
        && call.operands.len() > 1
        && !matches!(call.operands.get(1), Some(ptx::Operand::List(_)))
    {
        hand_over(lower, &function.returns, targets, number, caller, false);
    }
    Term::Jump(work.id(&mut lower.f, (caller, at + 1)))
}

/// Moves arguments into a callee's parameters (`into`), or its results out to the caller.
fn hand_over(
    lower: &mut Lower<'_>,
    formal: &[Parameter],
    actual: &[ptx::Operand],
    callee: usize,
    caller: usize,
    into: bool,
) {
    for (formal, actual) in formal.iter().zip(actual) {
        match (formal, actual) {
            (Parameter::Space(variable, Some(local)), ptx::Operand::Local(other, 0)) => {
                let mut keys = words_of(lower, callee, *local);
                keys.extend(words_of(lower, caller, *other));
                keys.sort_unstable();
                keys.dedup();
                let _ = variable;
                for (offset, bytes) in keys {
                    let inside = word(lower, callee, *local, offset, bytes);
                    let outside = word(lower, caller, *other, offset, bytes);
                    let (from, to) = if into { (outside, inside) } else { (inside, outside) };
                    lower.emit(Op::Mov, &[SrcOperand::var(from)], &[to]);
                }
            }
            (Parameter::Register(_, Some(register)), actual) => {
                let inside = lower.instances[callee].registers[register.index()];
                if into {
                    let at = std::mem::replace(&mut lower.at, caller);
                    let value = lower.src(Some(actual), lower.f.class(inside));
                    lower.at = at;
                    lower.emit(Op::Mov, &[value], &[inside]);
                } else {
                    let at = std::mem::replace(&mut lower.at, caller);
                    let outside = lower.dst(Some(actual));
                    lower.at = at;
                    if outside != Var::NONE {
                        lower.emit(Op::Mov, &[SrcOperand::var(inside)], &[outside]);
                    }
                }
            }
            _ => {
                // Forms that compilers do not emit: nothing is known of the value handed over.
                lower.emit(Op::ClobberAll, &[], &[]);
            }
        }
    }
}

/// The words of a `.param` variable that its function's text reads or writes.
fn words_of(lower: &Lower<'_>, instance: usize, local: Local) -> Vec<(i64, u32)> {
    let body = lower.instances[instance].body;
    let mut out = Vec::new();
    for instruction in &body.code {
        for operand in &instruction.operands {
            if let ptx::Operand::Memory(ptx::AddressBase::Local(found), offset) = operand
                && *found == local
            {
                let op = lower.module.opcode(instruction.opcode);
                out.extend(memory_access::elements(op, *offset));
            }
        }
    }
    out
}

/// The variable of a word of a `.param` variable.
pub(super) fn word(lower: &mut Lower<'_>, instance: usize, local: Local, offset: i64, bytes: u32) -> Var {
    if let Some(&var) = lower.instances[instance].words.get(&(local, offset, bytes)) {
        return var;
    }
    let var = lower.f.var(if bytes == 8 { Class::W64 } else { Class::W32 });
    lower.instances[instance].words.insert((local, offset, bytes), var);
    var
}

/// Ends a block at a branch, call or end. The guard decides between that and the next
/// instruction.
fn control<'m>(lower: &mut Lower<'m>, op: &'m OpcodeInfo, i: &'m Instruction, at: usize, work: &mut Work) -> Term {
    let instance = lower.at;
    let guard = lower.guard.take();
    let next = (instance, at + 1);
    let target = match (op.parts[0].as_str(), i.operands.first()) {
        ("bra", Some(ptx::Operand::Label(label))) => {
            let place = (instance, place_of(lower, *label));
            Some(work.id(&mut lower.f, place))
        }
        ("brx", _) => {
            let (targets, is_table) = table(lower, i);
            let places = targets.into_iter().map(|at| work.id(&mut lower.f, (instance, at)));
            let mut blocks: Vec<BlockId> = places.collect();
            if is_table && blocks.len() <= MAX_WAYS {
                let ways: Vec<(u32, BlockId)> = (0..).zip(blocks.iter().copied()).collect();
                let number = lower.src(i.operands.first(), Class::W32);
                Some(chain(&mut lower.f, number, &ways, i.line).unwrap_or(blocks[0]))
            } else {
                if guard.is_some() {
                    blocks.push(work.id(&mut lower.f, next));
                }
                return Term::Switch(blocks);
            }
        }
        ("ret", _) if lower.here().caller.is_some() => {
            if guard.is_none() {
                return leave(lower, work);
            }
            // A block of its own, at the end of the function's text.
            let end = lower.here().body.code.len();
            Some(work.id(&mut lower.f, (instance, end)))
        }
        ("call", _) => return call(lower, i, at, guard, work),
        ("bra", _) => return Term::Switch(Vec::new()),
        // `ret` of the kernel, `exit`, `trap`: the thread ends.
        _ => None,
    };
    match (guard, target) {
        (None, Some(target)) => Term::Jump(target),
        (None, None) => Term::Exit,
        (Some(cond), taken) => {
            let fall = Some(work.id(&mut lower.f, next));
            Term::Branch { cond, taken, fall }
        }
    }
}

fn place_of(lower: &Lower<'_>, label: Label) -> usize {
    lower.here().body.labels.get(label.index()).map_or(usize::MAX, |label| label.at as usize)
}

fn table(lower: &Lower<'_>, i: &Instruction) -> (Vec<usize>, bool) {
    let body = lower.here().body;
    match i.operands.get(1) {
        Some(ptx::Operand::Table(table)) => {
            let places: Vec<usize> = body.tables[table.index()].1.iter().map(|&label| place_of(lower, label)).collect();
            let any = !places.is_empty();
            (places, any)
        }
        // A table that is not there: any label.
        _ => (body.labels.iter().map(|label| label.at as usize).collect(), false),
    }
}

fn call<'m>(lower: &mut Lower<'m>, i: &'m Instruction, at: usize, guard: Option<SrcOperand>, work: &mut Work) -> Term {
    let instance = lower.at;
    let results: &[ptx::Operand] = match (i.operands.first(), i.operands.get(1)) {
        (Some(ptx::Operand::List(list)), Some(_)) => list,
        _ => &[],
    };
    let skip = usize::from(matches!(i.operands.first(), Some(ptx::Operand::List(_))));
    let arguments: &[ptx::Operand] = match i.operands.get(skip + 1) {
        Some(ptx::Operand::List(list)) => list,
        _ => &[],
    };
    let next = work.id(&mut lower.f, (instance, at + 1));
    if let Some(ptx::Operand::Symbol(name, 0)) = i.operands.get(skip) {
        let text = lower.module.name(*name);
        if is_runtime(text) {
            if text == "__assertfail" && guard.is_none() {
                return Term::Exit;
            }
            lower.guard = guard;
            forget(lower, results);
            lower.guard = None;
            return Term::Jump(next);
        }
        let function = lower.module.function(*name);
        if let Some(function) = function
            && let Some(body) = &function.body
            && lower.here().depth < MAX_CALLS
            && !on_path(lower, function)
        {
            let depth = lower.here().depth + 1;
            let callee = match work.callees.get(&(instance, at)) {
                Some(&callee) => callee,
                None => lower.instance(function, body, Some((instance, at)), depth),
            };
            work.callees.insert((instance, at), callee);
            // The parameters of a call that is not made are of no interest.
            lower.guard = None;
            hand_over(lower, &function.parameters, arguments, callee, instance, true);
            let entry = work.id(&mut lower.f, (callee, 0));
            return match guard {
                None => Term::Jump(entry),
                Some(cond) => Term::Branch { cond, taken: Some(entry), fall: Some(next) },
            };
        }
    }
    // A call that is not followed may do anything.
    lower.guard = guard;
    let why = match i.operands.get(skip) {
        Some(ptx::Operand::Symbol(name, 0)) => Reason::of_call(lower.module.name(*name)),
        _ => Reason::Call,
    };
    let by_pointer = !matches!(i.operands.get(skip), Some(ptx::Operand::Symbol(..)));
    let known = if why == Reason::Call && by_pointer { callees(lower.module) } else { Callees::Unknown };
    match known {
        Callees::Unknown => any_memory(lower, why),
        Callees::NoUpdates => {
            for kind in [AccessKind::Read, AccessKind::Write] {
                access(lower, kind, 0, Addr::Unknown(why));
            }
        }
        Callees::NoAccesses => {}
    }
    if why == Reason::Call && known != Callees::NoAccesses {
        passes(lower, arguments);
    }
    lower.emit(Op::ClobberAll, &[], &[]);
    lower.guard = None;
    Term::Jump(next)
}

/// What the functions of a module do to memory: see [`Callees`].
fn callees(module: &Module) -> Callees {
    let of_instruction = |i: &Instruction| {
        let parts = &module.opcode(i.opcode).parts;
        let has = |modifier: &str| parts.iter().any(|part| part == modifier);
        match parts[0].as_str() {
            "atom" | "red" | "multimem" | "sured" => Callees::Unknown,
            _ if has("reduce") => Callees::Unknown,
            "ld" | "st" if ["param", "local", "const"].into_iter().any(has) => Callees::NoAccesses,
            "ld" | "ldu" | "st" | "tex" | "tld4" | "suld" | "sust" | "cp" | "wmma" | "ldmatrix" | "stmatrix"
            | "mbarrier" | "call" | "tensormap" | "tcgen05" | "wgmma" => Callees::NoUpdates,
            _ => Callees::NoAccesses,
        }
    };
    let bodies = module.functions.iter().filter(|f| !f.kernel).filter_map(|f| f.body.as_ref());
    bodies.map(|body| body.code.iter().map(of_instruction).min().unwrap_or_default()).min().unwrap_or_default()
}

/// A call that is not followed is given these arguments, and by their addresses what the kernel
/// keeps in local memory.
fn passes<'m>(lower: &mut Lower<'m>, arguments: &'m [ptx::Operand]) {
    let mut given: SmallVec<[SrcOperand; 2]> = SmallVec::new();
    for argument in arguments {
        match argument {
            ptx::Operand::Local(local, _) => {
                for (offset, bytes) in words_of(lower, lower.at, *local) {
                    given.push(SrcOperand::var(word(lower, lower.at, *local, offset, bytes)));
                }
            }
            other => {
                let mut registers: SmallVec<[Var; 4]> = SmallVec::new();
                lower.registers_of(other, &mut registers);
                given.extend(registers.into_iter().map(SrcOperand::var));
            }
        }
    }
    let mut frame = Some(lower.at);
    while let Some(at) = frame {
        for instruction in &lower.instances[at].body.code {
            if memory_access::keeps_locally(lower.module.opcode(instruction.opcode)) {
                let mut registers: SmallVec<[Var; 4]> = SmallVec::new();
                let running = std::mem::replace(&mut lower.at, at);
                instruction.operands[1..].iter().for_each(|stored| lower.registers_of(stored, &mut registers));
                lower.at = running;
                given.extend(registers.into_iter().map(SrcOperand::var));
            }
        }
        frame = lower.instances[at].caller.map(|caller| caller.0);
    }
    for kind in [AccessKind::Read, AccessKind::Write] {
        access(lower, kind, 0, Addr::Passed(given.clone()));
    }
}

/// True when the running call is inside that function already.
fn on_path(lower: &Lower<'_>, function: &ptx::Function) -> bool {
    let mut at = lower.at;
    loop {
        if std::ptr::eq(lower.instances[at].function, function) {
            return true;
        }
        match lower.instances[at].caller {
            Some((caller, _)) => at = caller,
            None => return false,
        }
    }
}

/// The results of a call become unknown.
fn forget(lower: &mut Lower<'_>, results: &[ptx::Operand]) {
    let mut dsts: SmallVec<[Var; 4]> = SmallVec::new();
    for result in results {
        match result {
            ptx::Operand::Local(local, _) => {
                for (offset, bytes) in words_of(lower, lower.at, *local) {
                    dsts.push(word(lower, lower.at, *local, offset, bytes));
                }
            }
            other => lower.registers_of(other, &mut dsts),
        }
    }
    if !dsts.is_empty() {
        lower.emit(Op::Unknown(Reason::Call), &[], &dsts);
    }
}

/// An instruction that control flow passes through.
fn straight<'m>(lower: &mut Lower<'m>, op: &'m OpcodeInfo, i: &'m Instruction) {
    synchronisation(lower, op, i);
    match op.parts[0].as_str() {
        "griddepcontrol" | "bar" | "barrier" => {}
        "membar" | "fence" | "nanosleep" | "pmevent" | "setmaxnreg" | "brkpt" => {}
        "shfl" if shuffle(lower, op, i) => {}
        "elect" if elects(lower, i) => {}
        "vote" | "shfl" | "match" | "redux" | "activemask" | "elect" => lower.give_up(i, Reason::CrossLane),
        _ => {
            if !memory(lower, op, i) {
                alu(lower, op, i);
            }
        }
    }
}

/// A value from another lane. False: there is no rule for its result.
fn shuffle<'m>(lower: &mut Lower<'m>, op: &'m OpcodeInfo, i: &'m Instruction) -> bool {
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
    let sources = [from, lane, within].map(|operand| lower.src(Some(operand), Class::W32));
    let variable = |l: &Lower<'_>, register: ptx::Register| l.here().registers[register.index()];
    // Whether the lane was one of the segment's.
    if let Some(found) = found {
        let found = variable(lower, found);
        lower.emit(Op::Unknown(Reason::CrossLane), &[], &[found]);
    }
    let to = variable(lower, to);
    lower.emit(Op::Shuffle { mode }, &sources, &[to]);
    true
}

/// `elect.sync d|p, mask`: false when it has another form.
fn elects(lower: &mut Lower<'_>, i: &Instruction) -> bool {
    let Some(ptx::Operand::Pair(pair)) = i.operands.first() else { return false };
    let ptx::Operand::Register(elected) = pair.1 else { return false };
    let variable = |l: &Lower<'_>, register: ptx::Register| l.here().registers[register.index()];
    if let ptx::Operand::Register(number) = pair.0 {
        let number = variable(lower, number);
        lower.emit(Op::Unknown(Reason::CrossLane), &[], &[number]);
    }
    let elected = variable(lower, elected);
    lower.emit(Op::Elect, &[], &[elected]);
    true
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
