//! Programmatic dependent launch: which code runs before a thread has waited for the grids that its
//! kernel depends on, and when the kernel lets dependent grids begin.
//!
//! Owns one transformation of the intermediate representation. It is done before the value graph is
//! built. A block that is reached both before and behind a wait (`griddepcontrol.wait`) becomes
//! two, so that blocks are of one kind: a thread has waited when it enters the block, or it has
//! not. An access before the wait is then one in a block of the first kind, and the conditions
//! under which it is made are those of the threads that have not waited: `if (warp == 0) wait();`
//! leaves the other warps.
//!
//! A wait is for one thread: PTX ISA, `griddepcontrol`, "causes the executing thread to wait".
//! Other threads have it from a barrier of the block behind it. A barrier hands the wait on if the
//! threads that wait come to it behind the wait only, and threads of the block that do not wait may
//! be there too: a branch of which not all threads of a block take the same side leads to the wait,
//! and dominates the barrier. Threads of another branch have it from a barrier of their own there,
//! if those that wait come to one behind the wait in theirs.
//!
//! What errs: of a condition that depends on memory, threads of a block are taken to differ in it.
//! Whether a barrier is for the whole block, or for the warp of a thread that waits, is not asked,
//! and neither is the number of a barrier.
//! A wait for a phase of an `mbarrier` counts as a wait: threads that copy hand over to those that
//! calculate by it, and which of them have waited is not followed. All of this finds more accesses
//! ordered.

use super::cfg::{Cfg, targets};
use super::{Block, BlockId, Inst, KernelIr, Op, Special, Src, SrcOperand, Sync, Term, Var};
use crate::effects::Triggers;
use rustc_hash::{FxHashMap, FxHashSet};

/// Instructions of a kernel beyond which its code is not taken apart: all of it counts as behind
/// the wait.
const MAX_INSTS: usize = 60_000;

/// Waits, and barriers, beyond which no barrier hands a wait on.
const MAX_HANDOVERS: usize = 64;

/// A piece of a block, which ends at the next wait or barrier.
struct Segment {
    insts: Vec<Inst>,
    end: End,
}

/// How a piece ends.
enum End {
    /// As its block does.
    Term(Term),
    /// With a wait, of the threads for which the predicate holds; then the next piece comes.
    Wait(Option<SrcOperand>),
    /// With a barrier; then the next piece comes.
    Barrier,
    /// With a wait for a phase of an `mbarrier`; then the next piece comes.
    Phase,
}

/// What a kernel does about the grids it depends on, and about those that depend on it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Dependence {
    /// It waits somewhere.
    pub(crate) waits: bool,
    /// When it triggers.
    pub(crate) triggers: Triggers,
}

fn is(inst: &Inst, sync: Sync) -> bool {
    inst.op == Op::Sync(sync)
}

/// Where a kernel waits.
pub(crate) fn places(f: &KernelIr) -> Vec<u32> {
    let waits = f.blocks.iter().flat_map(|b| &b.insts).filter(|i| is(i, Sync::GridWait));
    let places: std::collections::BTreeSet<u32> = waits.map(|i| i.at).collect();
    places.into_iter().collect()
}

/// What a kernel does about programmatic dependent launch, and the kernel with the code before its
/// waits apart from that behind them; `None`: it stays as it is.
pub(crate) fn part(f: &KernelIr) -> (Dependence, Option<KernelIr>) {
    let all = || f.blocks.iter().flat_map(|b| &b.insts);
    let waits = all().any(|i| is(i, Sync::GridWait));
    let triggers = all().any(|i| is(i, Sync::GridTrigger));
    if !waits || all().count() > MAX_INSTS {
        let when = if waits { Triggers::AfterWait } else { Triggers::AtOnce };
        let triggers = if triggers { when } else { Triggers::Never };
        return (Dependence { waits, triggers }, None);
    }
    let (segments, first) = segments(f);
    let code = Pieces { f, segments, first };
    let parted = code.part();
    let before = parted.waited_from.map_or(0, |from| from as usize);
    let early = parted.blocks[..before].iter().flat_map(|b| &b.insts).any(|i| is(i, Sync::GridTrigger));
    let triggers = match (triggers, early) {
        (false, _) => Triggers::Never,
        (true, false) => Triggers::AfterWait,
        (true, true) => Triggers::AtOnce,
    };
    (Dependence { waits, triggers }, Some(parted))
}

/// The pieces of a kernel, and the first one of each block.
fn segments(f: &KernelIr) -> (Vec<Segment>, Vec<usize>) {
    let (mut segments, mut first) = (Vec::new(), Vec::new());
    for block in &f.blocks {
        first.push(segments.len());
        let mut insts = Vec::new();
        for inst in &block.insts {
            let end = match inst.op {
                Op::Sync(Sync::GridWait) => End::Wait(inst.guard),
                Op::Sync(Sync::Barrier | Sync::WarpBarrier) if inst.guard.is_none() => {
                    insts.push(inst.clone());
                    End::Barrier
                }
                Op::Sync(Sync::PhaseWait) => End::Phase,
                _ => {
                    insts.push(inst.clone());
                    continue;
                }
            };
            segments.push(Segment { insts: std::mem::take(&mut insts), end });
        }
        segments.push(Segment { insts, end: End::Term(block.term.clone()) });
    }
    (segments, first)
}

/// A kernel in pieces.
struct Pieces<'a> {
    f: &'a KernelIr,
    segments: Vec<Segment>,
    /// The first piece of each block.
    first: Vec<usize>,
}

impl Pieces<'_> {
    /// The piece that a block begins with, as a block of a kernel of pieces.
    fn piece(&self, b: BlockId) -> BlockId {
        BlockId(self.first[b.0 as usize] as u32)
    }

    /// A terminator with other targets.
    fn led(&self, term: &Term, to: &mut dyn FnMut(BlockId) -> BlockId) -> Term {
        let mut to = |b: BlockId| to(self.piece(b));
        match term {
            Term::Jump(b) => Term::Jump(to(*b)),
            Term::Branch { cond, taken, fall } => {
                Term::Branch { cond: *cond, taken: taken.map(&mut to), fall: fall.map(&mut to) }
            }
            Term::Switch(all) => Term::Switch(all.iter().map(|b| to(*b)).collect()),
            Term::Exit => Term::Exit,
        }
    }

    /// The kernel in parts: before the waits, and behind them.
    fn part(&self) -> KernelIr {
        let whole = self.in_one();
        let cfg = Cfg::new(&whole);
        let hand_on = self.barriers_that_hand_on(&whole, &cfg);
        let nest = Nest::new(&cfg);
        let mut made: FxHashMap<(BlockId, Part), BlockId> = FxHashMap::default();
        let mut order: Vec<(BlockId, Part)> = Vec::new();
        // Those before the waits come first.
        let mut waited_from = 0;
        let mut todo = vec![(BlockId(0), Part::Before)];
        for is_before in [true, false] {
            let mut later = Vec::new();
            while let Some((piece, part)) = todo.pop() {
                if made.contains_key(&(piece, part)) {
                    continue;
                }
                made.insert((piece, part), BlockId(order.len() as u32));
                order.push((piece, part));
                let next = targets(&whole.blocks[piece.0 as usize].term);
                for (to, waits) in next.iter().flat_map(|to| self.waits(piece, &hand_on).iter().map(|w| (*to, *w))) {
                    let to = (to, nest.part(piece, to, part, waits));
                    if (to.1 == Part::Before) == is_before { todo.push(to) } else { later.push(to) }
                }
            }
            if is_before {
                waited_from = order.len() as u32;
            }
            todo = later;
        }
        let mut blocks: Vec<Block> = Vec::new();
        for (piece, part) in order {
            let segment = &self.segments[piece.0 as usize];
            let at = |to: BlockId, waits: bool| made[&(to, nest.part(piece, to, part, waits))];
            let next = BlockId(piece.0 + 1);
            let term = match &segment.end {
                End::Term(term) => self.led(term, &mut |b| at(b, false)),
                End::Wait(Some(cond)) if part == Part::Before => {
                    Term::Branch { cond: *cond, taken: Some(at(next, true)), fall: Some(at(next, false)) }
                }
                _ => Term::Jump(at(next, self.waits(piece, &hand_on)[0])),
            };
            blocks.push(Block { insts: segment.insts.clone(), term });
        }
        KernelIr { blocks, waited_from: Some(waited_from), ..self.f.clone() }
    }

    /// Whether a thread that leaves a piece has waited there; of a wait with a predicate, both
    /// ways.
    fn waits(&self, piece: BlockId, hand_on: &FxHashSet<u32>) -> &'static [bool] {
        match &self.segments[piece.0 as usize].end {
            End::Term(_) => &[false],
            End::Wait(Some(_)) => &[true, false],
            End::Wait(None) | End::Phase => &[true],
            End::Barrier if hand_on.contains(&piece.0) => &[true],
            End::Barrier => &[false],
        }
    }

    /// The barriers behind which all threads of a block have waited if some have.
    fn barriers_that_hand_on(&self, whole: &KernelIr, cfg: &Cfg) -> FxHashSet<u32> {
        let of = |is: fn(&End) -> bool| -> Vec<u32> {
            (0_u32..).zip(&self.segments).filter(|(_, s)| is(&s.end)).map(|(k, _)| k).collect()
        };
        let (waits, barriers) = (of(|end| matches!(end, End::Wait(_))), of(|end| matches!(end, End::Barrier)));
        if waits.len() > MAX_HANDOVERS || barriers.len() > MAX_HANDOVERS || barriers.is_empty() {
            return FxHashSet::default();
        }
        let differs = Differs::new(whole);
        let mut found = FxHashSet::default();
        for wait in waits.iter().map(|k| BlockId(*k)).filter(|b| cfg.order[b.0 as usize] != u32::MAX) {
            let (choice, side) = match &self.segments[wait.0 as usize].end {
                End::Wait(Some(cond)) if differs.is(cond) => (wait, None),
                End::Wait(Some(_)) => continue,
                // The branch that leads to the wait: above the highest block from which all ways
                // lead to it.
                _ => {
                    let mut side = wait;
                    while cfg.idom[side.0 as usize] != side && cfg.post_dominates(wait, cfg.idom[side.0 as usize]) {
                        side = cfg.idom[side.0 as usize];
                    }
                    let choice = cfg.idom[side.0 as usize];
                    match &whole.blocks[choice.0 as usize].term {
                        Term::Branch { cond, .. } if choice != side && differs.is(cond) => (choice, Some(side)),
                        _ => continue,
                    }
                }
            };
            let behind = reached(cfg, wait, None);
            let around = side.map(|side| reached(cfg, side, Some(wait)));
            let hands_on = |barrier: &&u32| {
                let at = BlockId(**barrier);
                let is_around = around.as_ref().is_some_and(|around| around[at.0 as usize] || side == Some(at));
                cfg.order[at.0 as usize] != u32::MAX && cfg.dominates(choice, at) && behind[at.0 as usize] && !is_around
            };
            found.extend(barriers.iter().filter(hands_on));
            // A barrier in the branch, behind the wait, is one for threads of other branches, too:
            // they come to one of their own.
            let Some(side) = side else { continue };
            let is_known = |at: BlockId| cfg.order[at.0 as usize] != u32::MAX;
            if barriers.iter().any(|b| is_known(BlockId(*b)) && cfg.dominates(wait, BlockId(*b))) {
                let elsewhere = |barrier: &&u32| {
                    let at = BlockId(**barrier);
                    is_known(at)
                        && cfg.dominates(choice, at)
                        && !cfg.dominates(side, at)
                        && !reached(cfg, at, None)[wait.0 as usize]
                };
                found.extend(barriers.iter().filter(elsewhere));
            }
        }
        found
    }

    /// The pieces as blocks of one kernel.
    fn in_one(&self) -> KernelIr {
        let blocks = (0_u32..).zip(&self.segments).map(|(k, segment)| Block {
            insts: segment.insts.clone(),
            term: match &segment.end {
                End::Term(term) => self.led(term, &mut |b| b),
                End::Wait(_) | End::Barrier | End::Phase => Term::Jump(BlockId(k + 1)),
            },
        });
        KernelIr { blocks: blocks.collect(), ..self.f.clone() }
    }
}

/// What a thread has done in a part of the code.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    /// It has not waited.
    Before,
    /// It has waited in the current iteration of this loop. The next iteration begins in another
    /// part: a loop that is entered in its middle would be control flow without structure.
    In(u32),
    /// It has waited.
    Behind,
}

/// The loops around each piece.
struct Nest<'a> {
    cfg: &'a Cfg,
    /// The innermost loop that a piece is in.
    of: Vec<Option<u32>>,
    /// The loop around a loop.
    around: Vec<Option<u32>>,
}

impl<'a> Nest<'a> {
    fn new(cfg: &'a Cfg) -> Self {
        let mut by_size: Vec<u32> = (0..cfg.loops.len() as u32).collect();
        by_size.sort_unstable_by_key(|l| std::cmp::Reverse(cfg.loops[*l as usize].size));
        let mut nest = Self { cfg, of: vec![None; cfg.succs.len()], around: vec![None; cfg.loops.len()] };
        if cfg.irreducible {
            return nest;
        }
        for l in by_size {
            let inner = &cfg.loops[l as usize];
            nest.around[l as usize] = nest.of[inner.header.0 as usize];
            let members = nest.of.iter_mut().zip(&inner.members).filter(|(_, member)| **member);
            members.for_each(|(of, _)| *of = Some(l));
        }
        nest
    }

    /// The part that an edge leads to. `waits`: a thread has waited at the end of the piece that it
    /// leaves.
    fn part(&self, from: BlockId, to: BlockId, part: Part, waits: bool) -> Part {
        let mut pending = match part {
            Part::Before if !waits => return Part::Before,
            Part::Before => self.of[from.0 as usize],
            Part::In(pending) => Some(pending),
            Part::Behind => None,
        };
        while let Some(l) = pending {
            let inner = &self.cfg.loops[l as usize];
            if inner.members[to.0 as usize] && inner.header != to {
                return Part::In(l);
            }
            pending = self.around[l as usize];
        }
        Part::Behind
    }
}

/// The blocks that ways out of one enter, those through another apart.
fn reached(cfg: &Cfg, from: BlockId, except: Option<BlockId>) -> Vec<bool> {
    let mut seen = vec![false; cfg.succs.len()];
    let mut work: Vec<BlockId> = match except {
        Some(except) if except == from => Vec::new(),
        _ => cfg.succs[from.0 as usize].to_vec(),
    };
    while let Some(b) = work.pop() {
        if Some(b) != except && !std::mem::replace(&mut seen[b.0 as usize], true) {
            work.extend(cfg.succs[b.0 as usize].iter().copied());
        }
    }
    seen
}

/// The variables that threads of a block may have different values in: made of the thread's number,
/// or of what is not followed. It is not asked where in the code.
struct Differs(FxHashSet<Var>);

impl Differs {
    fn new(f: &KernelIr) -> Self {
        let mut differs = Self(FxHashSet::default());
        loop {
            let known = differs.0.len();
            for inst in f.blocks.iter().flat_map(|b| &b.insts) {
                let made = match &inst.op {
                    Op::Unknown(_) | Op::Mem(_) => true,
                    _ => inst.srcs.iter().chain(&inst.guard).any(|o| differs.is(o)),
                };
                if made {
                    differs.0.extend(inst.dsts.iter().copied());
                }
            }
            if differs.0.len() == known {
                return differs;
            }
        }
    }

    fn is(&self, operand: &SrcOperand) -> bool {
        match operand.src {
            Src::Var(v) | Src::Zext(v) => self.0.contains(&v),
            Src::Pair(low, high) => self.0.contains(&low) || self.0.contains(&high),
            Src::Special(special) => matches!(special, Special::Tid(_) | Special::Lane),
            _ => false,
        }
    }
}
