//! Blocks and edges of a SASS kernel. Callees are cloned per call site.
//!
//! Owns the shape of the function. BSYNC falls through and BSSY adds no edge, because reconvergence
//! does not change which path a thread takes. Branches that depend on divergence alone (`.DIV`,
//! `.CONV`) may go either way.

use super::{Lower, MAX_INSTS, SassLowerError};
use crate::ir::{Block, BlockId, Class, Op, Reason, SrcOperand, Term};
use device_code::sass::{self, BraMode, Flow, MachineInst};
use std::collections::{BTreeSet, HashMap};

/// Nested calls that are followed.
const MAX_CALLS: usize = 4;

/// Called places that are looked at for returns.
const MAX_JUMPS: usize = 64;

/// A chain of return addresses, innermost last.
type Context = Vec<usize>;

struct Work {
    ids: HashMap<(Context, usize), BlockId>,
    todo: Vec<(Context, usize)>,
}

impl Work {
    fn id(&mut self, f: &mut crate::ir::KernelIr, ctx: &Context, at: usize) -> BlockId {
        let key = (ctx.clone(), at);
        if let Some(b) = self.ids.get(&key) {
            return *b;
        }
        let b = BlockId(f.blocks.len() as u32);
        f.blocks.push(Block { insts: Vec::new(), term: Term::Exit });
        self.ids.insert(key.clone(), b);
        self.todo.push(key);
        b
    }
}

/// A branch that may go either way, whatever its condition.
fn undecided(i: &MachineInst) -> bool {
    matches!(i.op, sass::Opcode::Bra { mode: BraMode::Div | BraMode::Conv }) || !i.src.is_empty()
}

impl Lower<'_> {
    /// Where an indirect branch may go: its table, or every place that nothing falls into.
    fn indirect_targets(&self, at: usize) -> Vec<usize> {
        let pc = self.code.insts[at].pc;
        if let Some(t) = self.code.links.branches.get(&pc)
            && !t.is_empty()
        {
            return t.iter().filter_map(|p| self.code.index_of(i64::from(*p))).collect();
        }
        let mut set = BTreeSet::new();
        for (k, i) in self.code.insts.iter().enumerate() {
            if let Flow::Branch(_) = i.flow() {
                set.extend(self.code.target(i));
            }
            if i.flow() != Flow::Next && !i.is_conditional() && k + 1 < self.code.insts.len() {
                set.insert(k + 1);
            }
        }
        set.into_iter().collect()
    }

    /// Whether code that is called at `at` may come back: `ptxas` writes calls for some far jumps
    /// out of loops.
    fn returns(&mut self, at: usize) -> bool {
        match self.returning.get(&at) {
            Some(known) => return *known,
            // Calls nested like this are none of those.
            None if self.returning.len() > MAX_JUMPS => return true,
            None => {}
        }
        // While it is being found out: what calls itself is followed as a jump too, and so comes by
        // its own returns.
        self.returning.insert(at, false);
        let insts = self.code.insts;
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
                Flow::Branch(_) => work.extend(self.code.target(i)),
                Flow::Indirect(..) => work.extend(self.indirect_targets(k)),
                Flow::Call(_) => {
                    if let Some(t) = self.code.target(i)
                        && !self.returns(t)
                    {
                        work.push(t);
                    }
                }
                Flow::Next => work.extend(i.target.and_then(|t| self.code.index_of(t))),
            }
            let ends = matches!(i.flow(), Flow::Branch(_) | Flow::Indirect(..) | Flow::Exit | Flow::Trap);
            if !ends || i.is_conditional() || undecided(i) {
                work.push(k + 1);
            }
        }
        self.returning.insert(at, found);
        found
    }

    pub(super) fn blocks(&mut self) -> Result<(), SassLowerError> {
        let insts = self.code.insts;
        let mut leader = vec![false; insts.len() + 1];
        for (k, i) in insts.iter().enumerate() {
            let mut split = i.flow() != Flow::Next;
            if let Flow::Branch(_) | Flow::Call(_) = i.flow()
                && let Some(t) = self.code.target(i)
            {
                leader[t] = true;
            }
            if let Flow::Indirect(..) = i.flow() {
                self.indirect_targets(k).into_iter().for_each(|t| leader[t] = true);
            }
            if let sass::Opcode::Warpsync { collective: true, .. } = i.op {
                split = true;
                if let Some(t) = i.target.and_then(|t| self.code.index_of(t)) {
                    leader[t] = true;
                }
            }
            if split {
                leader[k + 1] = true;
            }
        }
        let mut work = Work { ids: HashMap::new(), todo: Vec::new() };
        // The entry has no predecessors, even when the code loops back to its start.
        self.f.blocks.push(Block { insts: Vec::new(), term: Term::Exit });
        let start = work.id(&mut self.f, &Vec::new(), self.code.entry);
        self.f.blocks[0].term = Term::Jump(start);
        let mut total = 0;
        while let Some((ctx, at)) = work.todo.pop() {
            let id = work.ids[&(ctx.clone(), at)];
            let mut k = at;
            let term = loop {
                total += 1;
                if total > MAX_INSTS {
                    return Err(SassLowerError::TooLarge);
                }
                let i = &insts[k];
                if i.flow() == Flow::Next && !matches!(i.op, sass::Opcode::Warpsync { collective: true, .. }) {
                    self.straight(i);
                } else {
                    break self.terminator(i, k, &ctx, &mut work);
                }
                k += 1;
                if k >= insts.len() {
                    break Term::Exit;
                }
                if leader[k] {
                    break Term::Jump(work.id(&mut self.f, &ctx, k));
                }
            };
            let code = std::mem::take(&mut self.out);
            self.f.blocks[id.0 as usize] = Block { insts: code, term };
        }
        Ok(())
    }

    fn straight(&mut self, i: &MachineInst) {
        if i.guard.never() {
            return;
        }
        self.constant_reads(i);
        match i.op {
            sass::Opcode::AcqBulk => self.f.waits_for_dependency = true,
            sass::Opcode::PreExit => self.f.launches_dependents = true,
            sass::Opcode::Unknown => {
                self.any_memory(i, Reason::Instruction);
                self.give_up(i, Reason::Instruction);
            }
            _ if !i.mem.is_empty() => self.memory(i),
            _ => self.alu(i),
        }
    }

    /// The condition under which a control instruction acts: guard and predicate sources.
    fn condition(&mut self, i: &MachineInst) -> SrcOperand {
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
                ops.push(Self::pred(*p));
            }
        }
        match ops.len() {
            0 => SrcOperand::imm(1),
            1 => ops[0],
            _ => {
                let t = self.f.var(Class::Pred);
                let third = ops.get(2).copied().unwrap_or(SrcOperand::imm(1));
                self.emit_always(i, Op::PLut { lut0: 0x80, lut1: 0x80 }, &[ops[0], ops[1], third], &[t]);
                SrcOperand::var(t)
            }
        }
    }

    fn branch(&self, cond: SrcOperand, taken: Option<BlockId>, fall: Option<BlockId>) -> Term {
        let one = |b: Option<BlockId>| b.map_or(Term::Exit, Term::Jump);
        if cond.is_imm(1) {
            one(taken)
        } else if cond.is_imm(0) {
            one(fall)
        } else {
            Term::Branch { cond, taken, fall }
        }
    }

    fn terminator(&mut self, i: &MachineInst, k: usize, ctx: &Context, work: &mut Work) -> Term {
        let more = k + 1 < self.code.insts.len();
        let next = |l: &mut Self, work: &mut Work| more.then(|| work.id(&mut l.f, ctx, k + 1));
        match i.flow() {
            Flow::Next => {
                // WARPSYNC.COLLECTIVE: the helper comes back behind it.
                let fall = next(self, work);
                let t = i.target.and_then(|t| self.code.index_of(t)).map(|t| work.id(&mut self.f, ctx, t));
                Term::Switch(fall.into_iter().chain(t).collect())
            }
            Flow::Branch(_) => {
                let cond = self.condition(i);
                let Some(t) = self.code.target(i) else {
                    // Out of this section: anything.
                    self.any_memory(i, Reason::Call);
                    self.passes_registers(i);
                    let fall = if cond.is_imm(1) { None } else { next(self, work) };
                    return self.branch(cond, None, fall);
                };
                let undecided = undecided(i);
                let fall = if cond.is_imm(1) && !undecided { None } else { next(self, work) };
                let taken = work.id(&mut self.f, ctx, t);
                if undecided {
                    return Term::Switch(std::iter::once(taken).chain(fall).collect());
                }
                self.branch(cond, Some(taken), fall)
            }
            Flow::Indirect(..) => {
                let mut out: Vec<BlockId> = Vec::new();
                if i.is_conditional() {
                    out.extend(next(self, work));
                }
                for t in self.indirect_targets(k) {
                    out.push(work.id(&mut self.f, ctx, t));
                }
                Term::Switch(out)
            }
            Flow::Exit | Flow::Trap => {
                let cond = self.condition(i);
                let fall = if cond.is_imm(1) { None } else { next(self, work) };
                self.branch(cond, None, fall)
            }
            Flow::Return => {
                let cond = self.condition(i);
                let fall = if cond.is_imm(1) { None } else { next(self, work) };
                let back = ctx.split_last().map(|(r, outer)| (outer.to_vec(), *r));
                let taken = back.map(|(outer, r)| work.id(&mut self.f, &outer, r));
                self.branch(cond, taken, fall)
            }
            Flow::Call(_) => {
                let cond = self.condition(i);
                if cond.is_imm(1) && self.division(i) {
                    return next(self, work).map_or(Term::Exit, Term::Jump);
                }
                match self.code.target(i) {
                    // A call that nothing returns from is a jump.
                    Some(t) if !self.returns(t) => {
                        let taken = work.id(&mut self.f, ctx, t);
                        let fall = if cond.is_imm(1) { None } else { next(self, work) };
                        self.branch(cond, Some(taken), fall)
                    }
                    Some(t) if ctx.len() < MAX_CALLS && more => {
                        let mut inner = ctx.clone();
                        inner.push(k + 1);
                        let taken = work.id(&mut self.f, &inner, t);
                        let fall = if cond.is_imm(1) { None } else { next(self, work) };
                        self.branch(cond, Some(taken), fall)
                    }
                    _ => {
                        // Effects stay in this block, under the instruction's guard.
                        let returns = self.opaque_call(i);
                        let fall = next(self, work);
                        if returns {
                            fall.map_or(Term::Exit, Term::Jump)
                        } else {
                            self.branch(cond, None, if cond.is_imm(1) { None } else { fall })
                        }
                    }
                }
            }
        }
    }
}
