//! Jump threading: an edge that decides the test of the next block is led past that test.
//!
//! Owns this one transformation of the intermediate representation. It is done before the value
//! graph is built.
//!
//! Compilers join paths before they test again. In `if (i < n) a[i] = x; i += 128; if (i < n) ...`,
//! a thread that fails the first test reaches the second one with the same number. So each join has
//! two counters, and no store behind it is reached by a chain of conditions. Here the edge of a
//! failed test is led to a copy of the join, without what does not happen there, and from there to
//! where the decided test leads.
//!
//! Each path of a thread stays: a copy does what the block does for threads that come over this
//! edge. An edge knows comparisons of variables that were not written since, and their predicates.
//! Blocks in loops stay as they are, because the count of iterations depends on there being one way
//! back. A block that was reached from one place only never becomes a join, because that would lose
//! conditions.

use crate::ir::cfg::Cfg;
use crate::ir::{Block, BlockId, Cmp, Combine, Inst, KernelIr, MemSpace, Op, Prefix, Src, SrcOperand, Term, Var};
use rustc_hash::FxHashMap;

/// Blocks that are copied at most, of so many instructions each.
const MAX_COPIES: usize = 96;
const MAX_COPIED: usize = 40;
/// Joins in a row that one edge is led past.
const MAX_CHAIN: usize = 12;

/// What is known on an edge.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Known {
    /// The value of a predicate.
    Is(Var, bool),
    /// Truth of a comparison: relation (`<`, `<=`, `==`), signed, 64 bits wide.
    Holds(Cmp, bool, bool, SrcOperand, SrcOperand, bool),
}

struct Threader {
    f: KernelIr,
    cfg: Cfg,
    /// Blocks in some loop.
    looped: Vec<bool>,
    copies: usize,
    made: FxHashMap<(BlockId, Vec<Known>), Option<BlockId>>,
}

/// Leads edges past decided tests. `None`: there are none.
pub(crate) fn thread(f: &KernelIr, cfg: &Cfg) -> Option<KernelIr> {
    let mut looped = vec![false; f.blocks.len()];
    cfg.loops.iter().for_each(|l| looped.iter_mut().zip(&l.members).for_each(|(any, one)| *any |= one));
    let joins = cfg.rpo.iter().any(|b| cfg.preds[b.0 as usize].len() > 1 && !looped[b.0 as usize]);
    if cfg.irreducible || !joins {
        return None;
    }
    let mut t = Threader { f: f.clone(), cfg: cfg.clone(), looped, copies: 0, made: FxHashMap::default() };
    for a in cfg.rpo.clone() {
        let Term::Branch { cond, taken, fall } = t.f.blocks[a.0 as usize].term.clone() else { continue };
        if taken == fall {
            continue;
        }
        for (place, to) in [(true, taken), (false, fall)] {
            let Some(to) = to else { continue };
            let known = t.on_edge(a, &cond, place);
            if let Some(new) = t.past(to, &known, 0)
                && let Term::Branch { taken, fall, .. } = &mut t.f.blocks[a.0 as usize].term
            {
                *(if place { taken } else { fall }) = Some(new);
            }
        }
    }
    (t.copies > 0).then_some(t.f)
}

impl Threader {
    /// What is known when the branch at the end of `a` goes one way.
    fn on_edge(&self, a: BlockId, cond: &SrcOperand, taken: bool) -> Vec<Known> {
        let Src::Var(p) = cond.src else { return Vec::new() };
        let is = (cond.prefix == Prefix::None) == taken;
        let mut known = vec![Known::Is(p, is)];
        let insts = &self.f.blocks[a.0 as usize].insts;
        let Some(at) = insts.iter().rposition(|i| i.dsts.contains(&p) || i.op == Op::ClobberAll) else { return known };
        if let Some((holds, first)) = comparison(&insts[at])
            && insts[at].guard.is_none()
        {
            let is = is == (insts[at].dsts[0] == p);
            let alone = insts[at].dsts.iter().filter(|d| **d == p).count() == 1;
            if alone && insts[at..].iter().all(|i| i.op != Op::ClobberAll && !i.dsts.iter().any(|d| reads(&holds, *d)))
            {
                known.push(told(&holds, first == is));
            }
        }
        known
    }

    /// A copy of a block, and perhaps of those behind it, for an edge on which something is known;
    /// `None`: it would decide nothing.
    fn past(&mut self, b: BlockId, known: &[Known], chain: usize) -> Option<BlockId> {
        let index = b.0 as usize;
        let block = &self.f.blocks[index];
        let fits = index < self.cfg.preds.len()
            && index != 0
            && self.cfg.preds[index].len() > 1
            && !self.looped[index]
            && block.insts.iter().filter(|i| !matches!(i.op, Op::Sync(_))).count() <= MAX_COPIED
            && chain < MAX_CHAIN
            && self.copies < MAX_COPIES;
        if !fits {
            return None;
        }
        let key = (b, known.to_vec());
        if let Some(made) = self.made.get(&key) {
            return *made;
        }
        let made = self.copy(b, known, chain);
        self.made.insert(key, made);
        made
    }

    fn copy(&mut self, b: BlockId, known: &[Known], chain: usize) -> Option<BlockId> {
        let block = self.f.blocks[b.0 as usize].clone();
        let mut known = known.to_vec();
        let mut insts = Vec::with_capacity(block.insts.len());
        let mut pays = false;
        for mut inst in block.insts {
            match inst.guard.and_then(|g| decided(&g, &known)) {
                Some(false) => {
                    pays |= is_access(&inst.op);
                    continue;
                }
                Some(true) => inst.guard = None,
                None => {}
            }
            // An access that happens on both ways would be two, each of some threads only.
            if is_access(&inst.op) || matches!(inst.op, Op::ClobberAll | Op::Loaded(_)) {
                return None;
            }
            let told = comparison(&inst).filter(|_| inst.guard.is_none()).and_then(|(c, first)| {
                let truth = known.iter().find_map(|k| same(k, &c))?;
                Some((inst.dsts.clone(), truth == first))
            });
            known.retain(|k| !inst.dsts.iter().any(|d| reads(k, *d)));
            if let Some((dsts, first)) = told {
                let news = dsts.iter().zip([first, !first]).filter(|(d, _)| **d != Var::NONE);
                known.extend(news.map(|(d, is)| Known::Is(*d, is)));
            }
            insts.push(inst);
        }
        let (term, decided) = match &block.term {
            Term::Branch { cond, taken, fall } => match decided(cond, &known) {
                Some(way) => (if way { *taken } else { *fall }.map_or(Term::Exit, Term::Jump), true),
                None => (block.term.clone(), false),
            },
            term => (term.clone(), false),
        };
        let term = match term {
            Term::Jump(to) => match self.past(to, &known, chain + 1) {
                Some(new) => {
                    pays = true;
                    Term::Jump(new)
                }
                // What only the original reaches must not become a join.
                None if decided && self.cfg.preds.get(to.0 as usize).is_none_or(|p| p.len() < 2) => return None,
                // Nor must a loop have one more way in or back.
                None if self.cfg.loop_of_header.get(to.0 as usize).is_none_or(Option::is_some) => return None,
                None => {
                    pays |= decided;
                    Term::Jump(to)
                }
            },
            Term::Exit => {
                pays |= decided;
                Term::Exit
            }
            // Both ways behind an open question would become joins.
            Term::Branch { .. } | Term::Switch(_) => return None,
        };
        if !pays || self.copies >= MAX_COPIES {
            return None;
        }
        self.copies += 1;
        self.f.blocks.push(Block { insts, term });
        Some(BlockId(self.f.blocks.len() as u32 - 1))
    }
}

/// Is this an access that the analysis reports or follows?
fn is_access(op: &Op) -> bool {
    matches!(op, Op::Mem(m) if !matches!(m.space, MemSpace::Shared | MemSpace::Generic | MemSpace::Map(_)))
}

/// The comparison that an instruction makes, and whether its first destination is that comparison
/// (or its opposite).
fn comparison(inst: &Inst) -> Option<(Known, bool)> {
    let Op::Cmp { cmp, signed, wide, combine: Combine::And } = inst.op else { return None };
    let (a, b) = match inst.srcs[..] {
        [a, b] => (a, b),
        [a, b, with] if with.is_imm(1) => (a, b),
        _ => return None,
    };
    let (cmp, first) = match cmp {
        Cmp::Ge => (Cmp::Lt, false),
        Cmp::Gt => (Cmp::Le, false),
        Cmp::Ne => (Cmp::Eq, false),
        cmp => (cmp, true),
    };
    Some((Known::Holds(cmp, signed, wide, a, b, true), first))
}

fn told(holds: &Known, truth: bool) -> Known {
    match holds.clone() {
        Known::Holds(cmp, signed, wide, a, b, _) => Known::Holds(cmp, signed, wide, a, b, truth),
        is @ Known::Is(..) => is,
    }
}

/// The truth of a comparison, when this is about it.
fn same(known: &Known, comparison: &Known) -> Option<bool> {
    match (known, comparison) {
        (Known::Holds(c, s, w, a, b, truth), Known::Holds(d, t, v, x, y, _)) => {
            ((c, s, w, a, b) == (d, t, v, x, y)).then_some(*truth)
        }
        _ => None,
    }
}

/// Does what is known depend on a variable?
fn reads(known: &Known, v: Var) -> bool {
    let in_operand = |o: &SrcOperand| match o.src {
        Src::Var(x) | Src::Zext(x) => x == v,
        Src::Pair(x, y) => x == v || y == v,
        _ => false,
    };
    v != Var::NONE
        && match known {
            Known::Is(p, _) => *p == v,
            Known::Holds(_, _, _, a, b, _) => in_operand(a) || in_operand(b),
        }
}

fn decided(cond: &SrcOperand, known: &[Known]) -> Option<bool> {
    let Src::Var(p) = cond.src else { return None };
    known.iter().find_map(|k| match k {
        Known::Is(v, is) if *v == p => Some(*is == (cond.prefix == Prefix::None)),
        _ => None,
    })
}
