//! Who has waited without a wait of its own: how the synchronisation of threads hands a wait on.
//!
//! Owns which synchronisation hands a wait on to whom, and behind which it may have been handed on
//! though this file does not recognise it: there an access is not *surely* early.
//!
//! - *A barrier of the block* hands on to the block the wait of threads that come to it, or to one
//!   of the same number, behind the wait only, if others of the block may be there, too.
//! - *A barrier of the cluster* hands it on to the cluster, if they arrive behind the wait.
//! - *A barrier of the warp* hands it on to the warp. So does the place at which machine code joins
//!   a warp (BSYNC), and an ACQBULK under a predicate at once: an instruction holds its whole warp.
//!   Whether a thread of the warp waits is asked of the warp where it divides.
//! - *A phase of an `mbarrier`* hands it on to whoever awaits one, if anything arrives at an
//!   `mbarrier` behind the wait.
//!
//! What is not followed: words in memory that threads poll, calls, barriers under a predicate,
//! branches within branches, more barriers than a limit. Behind these a thread may have waited.
//!
//! What errs: of a condition that depends on memory, threads are taken to differ in it, and of a
//! condition in which threads differ, some are taken to fulfil it.

use super::differs::{Differs, DiffersAt, Level};
use super::{End, Pieces, Segment};
use crate::effects::Early;
use crate::ir::cfg::Cfg;
use crate::ir::{Addr, BlockId, KernelIr, Mem, Op, Prefix, Reason, Src, SrcOperand, Sync, Term, Var};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Waits, and barriers of blocks and clusters, beyond which none hands a wait on.
const MAX_HANDOVERS: usize = 64;

/// Barriers of warps beyond which none hands a wait on: machine code has one behind each branch.
const MAX_OF_WARPS: usize = 512;

/// Which threads meet at a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meets {
    /// Those of the warp.
    Warp,
    /// Those of the block that name this number; `None`: it is not a constant.
    Block(Option<u64>),
    /// Those of the cluster.
    Cluster,
}

impl Meets {
    /// Of a barrier with this first operand.
    pub(super) fn of_block(number: Option<&SrcOperand>) -> Self {
        Meets::Block(match number {
            Some(SrcOperand { src: Src::Imm(number), prefix: Prefix::None }) => Some(*number),
            _ => None,
        })
    }

    /// Whether threads at the one may meet those at the other.
    fn may_be(self, other: Self) -> bool {
        match (self, other) {
            (Meets::Block(Some(one)), Meets::Block(Some(other))) => one == other,
            (Meets::Block(_), Meets::Block(_)) => true,
            _ => self == other,
        }
    }

    /// Where threads come to by an arrival alone; whether they also wait there.
    fn of(segment: &Segment) -> impl Iterator<Item = Self> {
        let arrivals = segment.insts.iter().filter_map(|i| match i.op {
            Op::Sync(Sync::BarrierArrive) => Some(Meets::of_block(i.srcs.first())),
            Op::Sync(Sync::ClusterArrive) => Some(Meets::Cluster),
            _ => None,
        });
        // (A wait for the cluster is no arrival.)
        let end = match segment.end {
            End::Meet(meets) if meets != Meets::Cluster => Some(meets),
            _ => None,
        };
        arrivals.chain(end)
    }
}

/// The threads that have waited behind a synchronisation if some of them have.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum To {
    /// All that come by.
    All,
    /// Those for which one of these holds.
    If(SmallVec<[Var; 2]>),
}

/// What is asked of each warp: whether the predicate holds in any thread, at the end of a piece.
pub(super) struct Vote {
    pub(super) at: BlockId,
    pub(super) cond: SrcOperand,
    pub(super) answer: Var,
}

/// What synchronisation does to waits.
pub(super) struct Handing {
    /// By the piece that ends with it.
    pub(super) to: FxHashMap<u32, To>,
    pub(super) votes: Vec<Vote>,
    /// The pieces in which a thread that has not waited may have a wait from others all the same.
    pub(super) doubtful: Vec<bool>,
    /// Those in which it has none if its warp answers so.
    pub(super) asked: Vec<bool>,
}

impl Handing {
    /// How early an access is that threads make in a piece if they have not waited themselves.
    pub(super) fn early(&self, piece: BlockId) -> Early {
        match (self.doubtful[piece.0 as usize], self.asked[piece.0 as usize]) {
            (true, _) => Early::Perhaps,
            (false, true) => Early::Asked,
            (false, false) => Early::Surely,
        }
    }
}

/// A branch of which a thread takes one side to get to a wait.
struct Choice {
    /// The piece that ends with it.
    at: BlockId,
    /// The highest piece from which all ways lead to the wait, or to the next such branch.
    side: BlockId,
}

/// The facts of a kernel that all its waits share.
struct Facts<'a> {
    segments: &'a [Segment],
    whole: &'a KernelIr,
    cfg: &'a Cfg,
    /// The pieces that end with a barrier.
    meeting: Vec<u32>,
    /// Some are barriers of the cluster.
    has_clusters: bool,
    block: Differs,
    cluster: Differs,
}

/// How the pieces of a kernel hand waits on. `whole`: them as blocks.
pub(super) fn handing(pieces: &Pieces<'_>, whole: &KernelIr, cfg: &Cfg) -> Handing {
    let (segments, n) = (&pieces.segments[..], pieces.segments.len());
    let (doubtful, asked) = (vec![false; n], vec![false; n]);
    let mut found = Handing { to: FxHashMap::default(), votes: Vec::new(), doubtful, asked };
    let of = |is: &dyn Fn(&End) -> bool| -> Vec<u32> {
        let known = (0_u32..).zip(segments).filter(|(k, _)| cfg.order[*k as usize] != u32::MAX);
        known.filter(|(_, s)| is(&s.end)).map(|(k, _)| k).collect()
    };
    let waits = of(&|end| matches!(end, End::Wait(_)));
    let meeting = of(&|end| matches!(end, End::Meet(_)));
    let of_warps = meeting.iter().filter(|at| matches!(segments[**at as usize].end, End::Meet(Meets::Warp))).count();
    let mut beyond = vec![false; n];
    waits.iter().for_each(|wait| mark(&mut beyond, &reached(cfg, BlockId(*wait), None)));
    if waits.len() > MAX_HANDOVERS || meeting.len() - of_warps > MAX_HANDOVERS || of_warps > MAX_OF_WARPS {
        let behind = meeting.iter().filter(|at| beyond[**at as usize]);
        behind.for_each(|at| mark(&mut found.doubtful, &reached(cfg, BlockId(*at), None)));
    } else {
        let [block, cluster] = [Level::Block, Level::Cluster].map(|level| Differs::new(whole, level));
        let has_clusters = !of(&|end| matches!(end, End::Meet(Meets::Cluster))).is_empty();
        let facts = Facts { segments, whole, cfg, meeting, has_clusters, block, cluster };
        waits.iter().for_each(|wait| facts.wait(BlockId(*wait), &mut found));
    }
    let hands: Vec<u32> = found.to.keys().copied().collect();
    hands.iter().for_each(|at| mark(&mut beyond, &reached(cfg, BlockId(*at), None)));
    let arrives = |s: &Segment| s.insts.iter().any(|i| matches!(i.op, Op::Sync(Sync::PhaseArrive)) || is_call(&i.op));
    if segments.iter().zip(&beyond).any(|(s, beyond)| *beyond && arrives(s)) {
        found.to.extend(of(&|end| matches!(end, End::Phase)).into_iter().map(|at| (at, To::All)));
    }
    for (at, segment) in segments.iter().enumerate() {
        let is_guarded = |i: &crate::ir::Inst| matches!(i.op, Op::Sync(sync) if sync.is_barrier()) && i.guard.is_some();
        if beyond[at] && segment.insts.iter().any(is_guarded) || segment.insts.iter().any(|i| is_call(&i.op)) {
            found.doubtful[at] = true;
            mark(&mut found.doubtful, &reached(cfg, BlockId(at as u32), None));
        }
    }
    polled(segments, whole, cfg, &mut found.doubtful);
    found
}

impl Facts<'_> {
    /// What one wait hands on.
    fn wait(&self, wait: BlockId, found: &mut Handing) {
        let cfg = self.cfg;
        let guard = match &self.segments[wait.0 as usize].end {
            End::Wait(cond) => *cond,
            _ => None,
        };
        let choices = choices(cfg, wait);
        // The branch next to the wait, or the predicate of the wait itself.
        let nearest = match (guard, choices.first()) {
            (Some(cond), _) => Some((wait, None, cond)),
            (None, Some(c)) => self.taken(c).map(|cond| (c.at, Some(c.side), cond)),
            (None, None) => None,
        };
        let behind = reached(cfg, wait, None);
        let around = nearest.and_then(|(_, side, _)| side).map(|side| reached(cfg, side, Some(wait)));
        let mut answer = None;
        for at in self.meeting.iter().map(|at| BlockId(*at)) {
            let End::Meet(meets) = self.segments[at.0 as usize].end else { continue };
            // Where all take the same way, those that have not waited get nothing from others.
            let by_guard = guard.is_some_and(|cond| self.differs(&cond, wait, meets));
            let by_branch = |c: &Choice| self.taken(c).is_none_or(|cond| self.differs(&cond, c.at, meets));
            if !by_guard && !choices.iter().any(by_branch) {
                continue;
            }
            let may_meet = |other: u32| Meets::of(&self.segments[other as usize]).any(|m| m.may_be(meets));
            let all = 0..self.segments.len() as u32;
            // Whether threads that come from the wait may be who is met.
            let may_have_waited = all.clone().any(|other| behind[other as usize] && may_meet(other));
            let near = nearest.filter(|(choice, _, cond)| self.differs(cond, *choice, meets));
            let hands_on = may_have_waited
                && near.is_some_and(|(choice, side, _)| {
                    let is_around = around.as_ref().is_some_and(|r| r[at.0 as usize]) || side == Some(at);
                    cfg.dominates(choice, at) && behind[at.0 as usize] && !is_around
                });
            match (meets, near) {
                (Meets::Warp, Some((choice, side, cond))) if hands_on => {
                    let Some(cond) = self.of_side(choice, side, cond) else {
                        mark(&mut found.doubtful, &reached(cfg, at, None));
                        continue;
                    };
                    let answer = *answer.get_or_insert_with(|| {
                        let answer = Var((self.whole.vars.len() + found.votes.len()) as u32);
                        found.votes.push(Vote { at: choice, cond, answer });
                        answer
                    });
                    if let To::If(any) = found.to.entry(at.0).or_insert_with(|| To::If(SmallVec::new())) {
                        any.push(answer);
                    }
                    mark(&mut found.asked, &reached(cfg, at, None));
                    continue;
                }
                (Meets::Block(_) | Meets::Cluster, Some(_)) if hands_on => {
                    found.to.insert(at.0, To::All);
                    continue;
                }
                // One in the branch, behind the wait, is one for threads of other branches, too:
                // they come to one of their own.
                (Meets::Block(_) | Meets::Cluster, Some((choice, Some(side), _))) => {
                    let in_branch = |other: u32| {
                        cfg.order[other as usize] != u32::MAX && cfg.dominates(wait, BlockId(other)) && may_meet(other)
                    };
                    let elsewhere = cfg.dominates(choice, at)
                        && !cfg.dominates(side, at)
                        && !reached(cfg, at, None)[wait.0 as usize];
                    if elsewhere && all.clone().any(in_branch) {
                        found.to.insert(at.0, To::All);
                        continue;
                    }
                }
                _ => {}
            }
            if may_have_waited {
                mark(&mut found.doubtful, &reached(cfg, at, None));
            }
        }
    }

    /// The condition of a branch; `None`: it has none that is known.
    fn taken(&self, choice: &Choice) -> Option<SrcOperand> {
        match &self.whole.blocks[choice.at.0 as usize].term {
            Term::Branch { cond, .. } => Some(*cond),
            _ => None,
        }
    }

    /// Whether threads that meet may have different values of this at the end of a piece.
    fn differs(&self, cond: &SrcOperand, at: BlockId, meets: Meets) -> bool {
        // Machine code has a barrier of the block in place of the cluster's, for launches without
        // clusters.
        let in_cluster = meets == Meets::Cluster || meets == Meets::Block(Some(0)) && self.has_clusters;
        let known = if in_cluster { &self.cluster } else { &self.block };
        let in_warp = meets == Meets::Warp;
        !(DiffersAt { whole: self.whole, cfg: self.cfg, known, in_warp }).agree(cond, at)
    }

    /// The condition under which a thread takes this side of a branch; `None`: it is not that of
    /// the branch alone.
    fn of_side(&self, choice: BlockId, side: Option<BlockId>, cond: SrcOperand) -> Option<SrcOperand> {
        let Some(side) = side else { return Some(cond) };
        let Term::Branch { taken, fall, .. } = &self.whole.blocks[choice.0 as usize].term else { return None };
        match (*taken == Some(side), *fall == Some(side)) {
            (true, false) => Some(cond),
            (false, true) if cond.prefix == Prefix::Not => Some(SrcOperand { prefix: Prefix::None, ..cond }),
            (false, true) => Some(SrcOperand { prefix: Prefix::Not, ..cond }),
            _ => None,
        }
    }
}

/// The branches of which a thread takes one side to get to a wait, the nearest first.
fn choices(cfg: &Cfg, wait: BlockId) -> Vec<Choice> {
    let (mut to, mut all) = (wait, Vec::new());
    loop {
        let mut side = to;
        while cfg.idom[side.0 as usize] != side && cfg.post_dominates(to, cfg.idom[side.0 as usize]) {
            side = cfg.idom[side.0 as usize];
        }
        let at = cfg.idom[side.0 as usize];
        if at == side || all.len() > MAX_HANDOVERS {
            return all;
        }
        all.push(Choice { at, side });
        to = at;
    }
}

/// Whether anything may happen there: a call that is not followed.
fn is_call(op: &Op) -> bool {
    match op {
        Op::ClobberAll | Op::Unknown(Reason::Call) => true,
        Op::Mem(Mem { addr, .. }) => matches!(addr, Addr::Passed(_) | Addr::Unknown(Reason::Call)),
        _ => false,
    }
}

/// Marks what lies behind loops that end by what they load: another thread may have said there that
/// it has waited. (Whether a phase hands that on has been answered.)
fn polled(segments: &[Segment], whole: &KernelIr, cfg: &Cfg, doubtful: &mut [bool]) {
    for inner in &cfg.loops {
        let members = || (0_u32..).zip(&inner.members).filter(|(_, is)| **is).map(|(k, _)| k);
        if members().any(|k| matches!(segments[k as usize].end, End::Phase)) {
            continue;
        }
        let insts = members().flat_map(|k| &whole.blocks[k as usize].insts);
        let loaded = Differs::from(whole, insts.filter(|i| is_load(&i.op)).flat_map(|i| i.dsts.iter().copied()));
        for at in members() {
            let Term::Branch { cond, taken, fall } = &whole.blocks[at as usize].term else { continue };
            let leaves = [taken, fall].into_iter().flatten().filter(|to| !inner.members[to.0 as usize]);
            for to in leaves.filter(|_| loaded.is(cond)) {
                doubtful[to.0 as usize] = true;
                mark(doubtful, &reached(cfg, *to, None));
            }
        }
    }
}

fn is_load(op: &Op) -> bool {
    matches!(op, Op::Mem(_) | Op::Loaded(_) | Op::Unknown(_))
}

fn mark(all: &mut [bool], more: &[bool]) {
    all.iter_mut().zip(more).for_each(|(to, more)| *to |= more);
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
