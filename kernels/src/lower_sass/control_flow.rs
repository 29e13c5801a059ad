//! Blocks and edges of a SASS kernel. Callees are cloned per call site.
//!
//! Owns the shape of the function. BSYNC falls through and BSSY adds no edge, because reconvergence
//! does not change which path a thread takes. Branches that depend on divergence alone (`.DIV`,
//! `.CONV`) may go either way, unless both ways compute the same.

use super::{LocalMemory, Lower, MAX_INSTS, SassLowerError, jump_tables, made_maps};
use crate::ir::{Block, BlockId, Class, Op, Reason, SrcOperand, Sync, Term};
use crate::lower_sass::arithmetic::{alu, division};
use crate::lower_sass::constant_bank::constant_reads;
use crate::lower_sass::memory_access::{
    StackMove, any_memory, memory, opaque_call, passes_registers, proxy_step, shared_place, stack_move,
};
use device_code::sass::{self, BraMode, Flow, MachineInst};
use std::collections::{BTreeSet, HashMap};

/// Nested calls that are followed.
const MAX_CALLS: usize = 4;

/// Copies of bodies that recursive calls are followed into.
const MAX_COPIES: u32 = 32;

/// Called places that are looked at for returns.
const MAX_JUMPS: usize = 64;

/// Instructions of a copy for lanes that are apart.
const MAX_COPIED: usize = 256;

/// A chain of return addresses, innermost last.
type Context = Vec<usize>;

struct Work {
    ids: HashMap<(Context, usize), BlockId>,
    todo: Vec<(Context, usize)>,
    /// Where R1 is at the start of each block.
    stacks: HashMap<BlockId, i64>,
    /// Recursive calls that were followed.
    copies: u32,
}

impl Work {
    /// The block of a place that the instruction under way leads to.
    fn id(&mut self, lower: &mut Lower<'_>, ctx: &Context, at: usize) -> BlockId {
        let key = (ctx.clone(), at);
        if let Some(b) = self.ids.get(&key) {
            lower.stack_is_lost |= self.stacks[b] != lower.stack;
            return *b;
        }
        let b = BlockId(lower.f.blocks.len() as u32);
        lower.f.blocks.push(Block { insts: Vec::new(), term: Term::Exit });
        self.ids.insert(key.clone(), b);
        self.stacks.insert(b, lower.stack);
        self.todo.push(key);
        b
    }
}

/// A branch that may go either way, whatever its condition.
fn undecided(i: &MachineInst) -> bool {
    matches!(i.op, sass::Opcode::Bra { mode: BraMode::Div | BraMode::Conv }) || !i.src.is_empty()
}

/// Whether a branch leads lanes that are apart to a copy of what stands behind it. There they wait
/// for each other at each shuffle, vote or election (`WARPSYNC.COLLECTIVE`), and come back behind
/// the code that was copied. Both ways compute the same, so all may be taken to fall through.
fn leads_to_copy(lower: &Lower<'_>, i: &MachineInst, at: usize) -> bool {
    let (insts, sass::Opcode::Bra { mode: BraMode::Div }) = (lower.code.insts, i.op) else { return false };
    let Some(copy) = lower.code.target(i) else { return false };
    let mut collective = false;
    for k in copy..insts.len().min(copy + MAX_COPIED) {
        let i = &insts[k];
        match i.flow() {
            Flow::Next => collective |= matches!(i.op, sass::Opcode::Warpsync { collective: true, .. }),
            Flow::Branch(_) if !i.is_conditional() && !undecided(i) => {
                let behind = |back: usize| back > at && back - at <= MAX_COPIED;
                let Some(back) = lower.code.target(i).filter(|back| collective && behind(*back)) else { return false };
                let is_plain = |i: &MachineInst| i.flow() == Flow::Next && i.mem.is_empty();
                return insts[at + 1..back].iter().all(is_plain) && insts[copy..k].iter().all(is_plain);
            }
            _ => return false,
        }
    }
    false
}

/// Where an indirect branch may go: its table, or every place that nothing falls into.
fn indirect_targets(lower: &Lower<'_>, at: usize) -> Vec<usize> {
    let pc = lower.code.insts[at].pc;
    if let Some(t) = lower.code.links.branches.get(&pc)
        && !t.is_empty()
    {
        let targets: BTreeSet<usize> = t.iter().filter_map(|p| lower.code.index_of(i64::from(*p))).collect();
        return targets.into_iter().collect();
    }
    let mut set = BTreeSet::new();
    for (k, i) in lower.code.insts.iter().enumerate() {
        if let Flow::Branch(_) = i.flow() {
            set.extend(lower.code.target(i));
        }
        if i.flow() != Flow::Next && !i.is_conditional() && k + 1 < lower.code.insts.len() {
            set.insert(k + 1);
        }
    }
    set.into_iter().collect()
}

/// Whether code that is called at `at` may come back: `ptxas` writes calls for some far jumps
/// out of loops.
fn returns(lower: &mut Lower<'_>, at: usize) -> bool {
    match lower.returning.get(&at) {
        Some(known) => return *known,
        // Calls nested like this are none of those.
        None if lower.returning.len() > MAX_JUMPS => return true,
        None => {}
    }
    // While it is being found out: what calls itself is followed as a jump too, and so comes by
    // its own returns.
    lower.returning.insert(at, false);
    let insts = lower.code.insts;
    let mut seen = vec![false; insts.len()];
    let mut work = vec![at];
    let mut found = false;
    while let Some(k) = work.pop() {
        let Some(i) = insts.get(k) else { continue };
        if std::mem::replace(&mut seen[k], true) {
            continue;
        }
        match i.flow() {
            Flow::Return => {
                found = true;
                break;
            }
            Flow::Exit | Flow::Trap => {}
            Flow::Branch(_) => work.extend(lower.code.target(i)),
            Flow::Indirect(..) => work.extend(indirect_targets(lower, k)),
            Flow::Call(_) => {
                if let Some(t) = lower.code.target(i)
                    && !returns(lower, t)
                {
                    work.push(t);
                }
            }
            Flow::Next => work.extend(i.target.and_then(|t| lower.code.index_of(t))),
        }
        let ends = matches!(i.flow(), Flow::Branch(_) | Flow::Indirect(..) | Flow::Exit | Flow::Trap);
        if !ends || i.is_conditional() || undecided(i) {
            work.push(k + 1);
        }
    }
    lower.returning.insert(at, found);
    found
}

pub(super) fn blocks(lower: &mut Lower<'_>) -> Result<(), SassLowerError> {
    let insts = lower.code.insts;
    let mut leader = vec![false; insts.len() + 1];
    for (k, i) in insts.iter().enumerate() {
        let mut split = i.flow() != Flow::Next;
        if let Flow::Branch(_) | Flow::Call(_) = i.flow()
            && let Some(t) = lower.code.target(i)
        {
            leader[t] = true;
        }
        if let Flow::Indirect(..) = i.flow() {
            indirect_targets(lower, k).into_iter().for_each(|t| leader[t] = true);
        }
        if let sass::Opcode::Warpsync { collective: true, .. } = i.op {
            split = true;
            if let Some(t) = i.target.and_then(|t| lower.code.index_of(t)) {
                leader[t] = true;
            }
        }
        if split {
            leader[k + 1] = true;
        }
    }
    let mut work = Work { ids: HashMap::new(), todo: Vec::new(), stacks: HashMap::new(), copies: 0 };
    // The entry has no predecessors, even when the code loops back to its start.
    lower.f.blocks.push(Block { insts: Vec::new(), term: Term::Exit });
    let start = work.id(lower, &Vec::new(), lower.code.entry);
    lower.f.blocks[0].term = Term::Jump(start);
    let mut total = 0;
    while let Some((ctx, at)) = work.todo.pop() {
        let id = work.ids[&(ctx.clone(), at)];
        lower.stack = work.stacks[&id];
        let mut k = at;
        let term = loop {
            total += 1;
            if total > MAX_INSTS {
                return Err(SassLowerError::TooLarge);
            }
            let i = &insts[k];
            if i.flow() == Flow::Next && !matches!(i.op, sass::Opcode::Warpsync { collective: true, .. }) {
                straight(lower, i);
            } else {
                break terminator(lower, i, k, &ctx, &mut work);
            }
            k += 1;
            if k >= insts.len() {
                break Term::Exit;
            }
            if leader[k] {
                break Term::Jump(work.id(lower, &ctx, k));
            }
        };
        lower.loaded.forget();
        let code = std::mem::take(&mut lower.out);
        lower.f.blocks[id.0 as usize] = Block { insts: code, term };
    }
    Ok(())
}

/// UCGABAR_ARV, UCGABAR_WAIT.
const CLUSTER_ARRIVE: u16 = 0x9c7;
const CLUSTER_WAIT: u16 = 0xdc7;

/// Whether an instruction, or a copy that it starts, may arrive at an `mbarrier`: SYNCS apart from
/// what sets one up and what asks for a phase, ARRIVES, copies into shared memory, what reaches the
/// shared memory of other blocks, and the tensor core.
fn arrives(i: &MachineInst) -> bool {
    match i.op {
        sass::Opcode::Mbarrier => matches!(i.opcode, 0x9a7 | 0x9b0),
        sass::Opcode::TensorCopy { .. } => matches!(i.opcode, 0x3b4 | 0x5b4),
        sass::Opcode::Bulk | sass::Opcode::Unknown | sass::Opcode::Other(sass::OtherKind::Tensor) => true,
        _ => i.mem.iter().any(|m| m.space == sass::AddressSpace::RemoteShared),
    }
}

fn straight(lower: &mut Lower<'_>, i: &MachineInst) {
    if i.guard.never() {
        return;
    }
    constant_reads(lower, i);
    if lower.makes_maps {
        made_maps::note(lower, i);
    }
    if lower.follows_words {
        made_maps::note_words(lower, i);
    }
    if lower.local == LocalMemory::Frames && i.may_write(sass::File::R, 1) {
        match stack_move(lower.code, i) {
            Some(StackMove::Start) => lower.stack = 0,
            Some(StackMove::By(Some(more))) => lower.stack += more,
            _ => lower.stack_is_lost = true,
        }
    }
    if arrives(i) {
        lower.emit(i, Op::Sync(Sync::PhaseArrive), &[], &[]);
    }
    if lower.copies_shared
        && let Some(step) = proxy_step(i)
    {
        lower.emit(i, Op::Proxy(step), &shared_place(i), &[]);
    }
    match i.op {
        sass::Opcode::AcqBulk => {
            lower.emit(i, Op::Sync(Sync::GridWait), &[], &[]);
            if !i.guard.always() {
                lower.emit_always(i, Op::Sync(Sync::Join), &[], &[]);
            }
        }
        sass::Opcode::Bsync { .. } if lower.waits_for_grids => lower.emit_always(i, Op::Sync(Sync::Join), &[], &[]),
        sass::Opcode::PreExit => lower.emit(i, Op::Sync(Sync::GridTrigger), &[], &[]),
        sass::Opcode::Unknown => {
            any_memory(lower, i, Reason::Instruction);
            lower.give_up(i, Reason::Instruction);
        }
        sass::Opcode::Other(sass::OtherKind::Barrier { number, arrives }) => {
            let number: Vec<SrcOperand> = number.iter().map(|n| SrcOperand::imm(u64::from(*n))).collect();
            lower.emit(i, Op::Sync(if arrives { Sync::BarrierArrive } else { Sync::Barrier }), &number, &[]);
        }
        sass::Opcode::Other(sass::OtherKind::Control) if matches!(i.opcode, CLUSTER_ARRIVE | CLUSTER_WAIT) => {
            let sync = if i.opcode == CLUSTER_ARRIVE { Sync::ClusterArrive } else { Sync::ClusterWait };
            lower.emit(i, Op::Sync(sync), &[], &[]);
        }
        sass::Opcode::Warpsync { .. } => lower.emit(i, Op::Sync(Sync::WarpBarrier), &[], &[]),
        sass::Opcode::Other(sass::OtherKind::Fence { device: true }) => lower.emit(i, Op::Sync(Sync::Fence), &[], &[]),
        // Behind an acquire, the first-level cache forgets what it held (`CCTL.IVALL`).
        sass::Opcode::CacheCtl if i.mem.is_empty() => lower.emit(i, Op::Sync(Sync::Acquire), &[], &[]),
        // SYNCS with a predicate as its result asks for a phase.
        sass::Opcode::Mbarrier if i.opcode == 0x5a7 => {
            lower.emit(i, Op::Sync(Sync::PhaseWait), &[], &[]);
            memory(lower, i);
        }
        _ if !i.mem.is_empty() => memory(lower, i),
        _ => alu(lower, i),
    }
}

/// The condition under which a control instruction acts: guard and predicate sources.
fn condition(lower: &mut Lower<'_>, i: &MachineInst) -> SrcOperand {
    let mut ops: Vec<SrcOperand> = Vec::new();
    let preds: &[sass::PredSrc] = match i.op {
        sass::Opcode::Bra { .. } => &i.psrc[..2],
        _ => &i.psrc[..1],
    };
    for p in std::iter::once(&i.guard).chain(preds) {
        if p.never() {
            return SrcOperand::imm(0);
        }
        if !p.always() {
            ops.push(Lower::pred(*p));
        }
    }
    match ops.len() {
        0 => SrcOperand::imm(1),
        1 => ops[0],
        _ => {
            let t = lower.f.var(Class::Pred);
            let third = ops.get(2).copied().unwrap_or(SrcOperand::imm(1));
            lower.emit_always(i, Op::PLut { lut0: 0x80, lut1: 0x80 }, &[ops[0], ops[1], third], &[t]);
            SrcOperand::var(t)
        }
    }
}

fn branch(cond: SrcOperand, taken: Option<BlockId>, fall: Option<BlockId>) -> Term {
    let one = |b: Option<BlockId>| b.map_or(Term::Exit, Term::Jump);
    if cond.is_imm(1) {
        one(taken)
    } else if cond.is_imm(0) {
        one(fall)
    } else {
        Term::Branch { cond, taken, fall }
    }
}

fn terminator(lower: &mut Lower<'_>, i: &MachineInst, k: usize, ctx: &Context, work: &mut Work) -> Term {
    let more = k + 1 < lower.code.insts.len();
    let next = |l: &mut Lower<'_>, work: &mut Work| more.then(|| work.id(l, ctx, k + 1));
    match i.flow() {
        Flow::Next => {
            // WARPSYNC.COLLECTIVE: the helper comes back behind it.
            let fall = next(lower, work);
            let t = i.target.and_then(|t| lower.code.index_of(t)).map(|t| work.id(lower, ctx, t));
            Term::Switch(fall.into_iter().chain(t).collect())
        }
        Flow::Branch(_) => {
            let cond = condition(lower, i);
            let Some(t) = lower.code.target(i) else {
                // Out of this section: anything.
                any_memory(lower, i, Reason::Call);
                passes_registers(lower, i);
                let fall = if cond.is_imm(1) { None } else { next(lower, work) };
                return branch(cond, None, fall);
            };
            if leads_to_copy(lower, i, k) {
                return next(lower, work).map_or(Term::Exit, Term::Jump);
            }
            let undecided = undecided(i);
            let fall = if cond.is_imm(1) && !undecided { None } else { next(lower, work) };
            let taken = work.id(lower, ctx, t);
            if undecided {
                return Term::Switch(std::iter::once(taken).chain(fall).collect());
            }
            branch(cond, Some(taken), fall)
        }
        Flow::Indirect(..) => {
            let mut targets: Vec<(usize, BlockId)> = Vec::new();
            for t in indirect_targets(lower, k) {
                targets.push((t, work.id(lower, ctx, t)));
            }
            let fall = if i.is_conditional() { next(lower, work) } else { None };
            let jumps = if i.op == sass::Opcode::Brx { jump_tables::jump(lower, i, &targets) } else { None };
            match jumps {
                Some(Term::Jump(to)) if i.is_conditional() => branch(condition(lower, i), Some(to), fall),
                Some(jumps) => jumps,
                None => Term::Switch(fall.into_iter().chain(targets.into_iter().map(|target| target.1)).collect()),
            }
        }
        Flow::Exit | Flow::Trap => {
            let cond = condition(lower, i);
            let fall = if cond.is_imm(1) { None } else { next(lower, work) };
            branch(cond, None, fall)
        }
        Flow::Return => {
            let cond = condition(lower, i);
            let fall = if cond.is_imm(1) { None } else { next(lower, work) };
            let back = ctx.split_last().map(|(r, outer)| (outer.to_vec(), *r));
            let taken = back.map(|(outer, r)| work.id(lower, &outer, r));
            branch(cond, taken, fall)
        }
        Flow::Call(_) => {
            let cond = condition(lower, i);
            if cond.is_imm(1) && division(lower, i) {
                return next(lower, work).map_or(Term::Exit, Term::Jump);
            }
            match lower.code.target(i) {
                // A call that nothing returns from is a jump.
                Some(t) if !returns(lower, t) => {
                    let taken = work.id(lower, ctx, t);
                    let fall = if cond.is_imm(1) { None } else { next(lower, work) };
                    branch(cond, Some(taken), fall)
                }
                Some(t) if ctx.len() < MAX_CALLS && more && follows(lower, ctx, t, work) => {
                    let mut inner = ctx.clone();
                    inner.push(k + 1);
                    let taken = work.id(lower, &inner, t);
                    let fall = if cond.is_imm(1) { None } else { next(lower, work) };
                    branch(cond, Some(taken), fall)
                }
                _ => {
                    // Effects stay in this block, under the instruction's guard.
                    let returns = opaque_call(lower, i);
                    let fall = next(lower, work);
                    if returns {
                        fall.map_or(Term::Exit, Term::Jump)
                    } else {
                        branch(cond, None, if cond.is_imm(1) { None } else { fall })
                    }
                }
            }
        }
    }
}

/// Whether a call is followed. How deep a recursion goes is not known: each copy of its body ends
/// in calls that are not followed, and there are as many copies as the product of its calls. So
/// only so many are made.
fn follows(lower: &Lower<'_>, returns: &[usize], target: usize, work: &mut Work) -> bool {
    let call = |next: &usize| lower.code.insts.get(next.checked_sub(1)?);
    let recurs = returns.iter().any(|next| call(next).and_then(|call| lower.code.target(call)) == Some(target));
    if recurs {
        work.copies += 1;
    }
    !recurs || work.copies <= MAX_COPIES
}
