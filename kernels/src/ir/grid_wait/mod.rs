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
//! Others have it from synchronisation behind it ([`handing`]). Where that may have handed it on
//! and it is not known, an access is early, but not surely so ([`crate::Early`]).

mod differs;
mod handing;
mod nest;
pub(crate) mod triggers;

use super::cfg::{Cfg, targets};
use super::{Block, BlockId, Class, Inst, KernelIr, Op, SrcOperand, Sync, Term, Var};
use crate::effects::Triggers;
use handing::{Handing, Meets, To};
use nest::{Nest, Stage};
use rustc_hash::FxHashMap;
use smallvec::smallvec;

/// Instructions of a kernel beyond which its code is not taken apart: all of it counts as behind
/// the wait.
const MAX_INSTS: usize = 60_000;

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
    /// With a barrier, of these threads; then the next piece comes.
    Meet(Meets),
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

/// Where a kernel waits, or triggers.
pub(crate) fn places(f: &KernelIr, sync: Sync) -> Vec<u32> {
    let all = f.blocks.iter().flat_map(|b| &b.insts).filter(|i| is(i, sync));
    let places: std::collections::BTreeSet<u32> = all.map(|i| i.at).collect();
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
    let early =
        parted.blocks[..parted.before_wait.len()].iter().flat_map(|b| &b.insts).any(|i| is(i, Sync::GridTrigger));
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
                Op::Sync(sync @ (Sync::Barrier | Sync::WarpBarrier | Sync::ClusterWait)) if inst.guard.is_none() => {
                    insts.push(inst.clone());
                    End::Meet(match sync {
                        Sync::Barrier => Meets::of_block(inst.srcs.first()),
                        Sync::ClusterWait => Meets::Cluster,
                        _ => Meets::Warp,
                    })
                }
                Op::Sync(Sync::Join) => End::Meet(Meets::Warp),
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
        let handing = handing::handing(self, &whole, &cfg);
        let nest = Nest::new(&cfg);
        let mut made: FxHashMap<(BlockId, Stage), BlockId> = FxHashMap::default();
        let mut order: Vec<(BlockId, Stage)> = Vec::new();
        // Those before the waits come first.
        let mut before_wait = Vec::new();
        let mut todo = vec![(BlockId(0), Stage::Before)];
        for is_before in [true, false] {
            let mut later = Vec::new();
            while let Some((piece, part)) = todo.pop() {
                if made.contains_key(&(piece, part)) {
                    continue;
                }
                made.insert((piece, part), BlockId(order.len() as u32));
                order.push((piece, part));
                let next = targets(&whole.blocks[piece.0 as usize].term);
                for (to, waits) in next.iter().flat_map(|to| self.waits(piece, &handing).iter().map(|w| (*to, *w))) {
                    let to = (to, nest.part(piece, to, part, waits));
                    if (to.1 == Stage::Before) == is_before { todo.push(to) } else { later.push(to) }
                }
            }
            if is_before {
                before_wait = order.iter().map(|(piece, _)| handing.early(*piece)).collect();
            }
            todo = later;
        }
        let mut vars = self.f.vars.clone();
        vars.extend(handing.votes.iter().map(|_| Class::Pred));
        let mut either = |any: &[Var], insts: &mut Vec<Inst>| {
            any[1..].iter().fold(SrcOperand::var(any[0]), |one, other| {
                vars.push(Class::Pred);
                let both = Var(vars.len() as u32 - 1);
                let (op, srcs) =
                    (Op::PLut { lut0: 0xfc, lut1: 0xfc }, smallvec![one, SrcOperand::var(*other), SrcOperand::imm(0)]);
                insts.push(Inst { guard: None, op, srcs, dsts: smallvec![both], at: 0 });
                SrcOperand::var(both)
            })
        };
        let mut blocks: Vec<Block> = Vec::new();
        for (piece, part) in order {
            let segment = &self.segments[piece.0 as usize];
            let mut insts = segment.insts.clone();
            for vote in handing.votes.iter().filter(|vote| vote.at == piece) {
                let op = Op::Vote { all: false };
                insts.push(Inst { guard: None, op, srcs: smallvec![vote.cond], dsts: smallvec![vote.answer], at: 0 });
            }
            let at = |to: BlockId, waits: bool| made[&(to, nest.part(piece, to, part, waits))];
            let next = BlockId(piece.0 + 1);
            let divided = |cond| Term::Branch { cond, taken: Some(at(next, true)), fall: Some(at(next, false)) };
            let term = match (&segment.end, handing.to.get(&piece.0)) {
                (End::Term(term), _) => self.led(term, &mut |b| at(b, false)),
                (End::Wait(Some(cond)), _) if part == Stage::Before => divided(*cond),
                (_, Some(To::If(any))) if part == Stage::Before => divided(either(any, &mut insts)),
                _ => Term::Jump(at(next, self.waits(piece, &handing)[0])),
            };
            blocks.push(Block { insts, term });
        }
        KernelIr { blocks, vars, before_wait, ..self.f.clone() }
    }

    /// Whether a thread that leaves a piece has waited there; of a wait with a predicate, both
    /// ways.
    fn waits(&self, piece: BlockId, handing: &Handing) -> &'static [bool] {
        match (&self.segments[piece.0 as usize].end, handing.to.get(&piece.0)) {
            (End::Wait(None), _) | (_, Some(To::All)) => &[true],
            (End::Wait(Some(_)), _) | (_, Some(To::If(_))) => &[true, false],
            _ => &[false],
        }
    }

    /// The pieces as blocks of one kernel.
    fn in_one(&self) -> KernelIr {
        let blocks = (0_u32..).zip(&self.segments).map(|(k, segment)| Block {
            insts: segment.insts.clone(),
            term: match &segment.end {
                End::Term(term) => self.led(term, &mut |b| b),
                End::Wait(_) | End::Meet(_) | End::Phase => Term::Jump(BlockId(k + 1)),
            },
        });
        KernelIr { blocks: blocks.collect(), ..self.f.clone() }
    }
}
