//! The words of tensor maps that a kernel makes: which loads and stores of shared memory they are
//! made by, and which words go to global memory.
//!
//! Owns the choice of these instructions, from the control flow alone. Their nodes are made in
//! `memory_accesses`, and what the words are is told where threads are followed
//! (`by_thread/made_maps.rs`).
//!
//! # Which loads and stores count
//!
//! Those from which a word can still go to global memory. None may be in a cycle, so that each
//! happens once. All later stores, and copies into shared memory, must lie behind a barrier of the
//! whole block from which no such word is reached any more: what they write is in nobody's map.
//! Where any of this does not hold, no word is followed.

use crate::ir::cfg::Cfg;
use crate::ir::{Addr, BlockId, Inst, KernelIr, MapStep, Mem, MemSpace, Op, Prefix, Src, SrcOperand, Sync};
use crate::ranges::graph::node::NodeId;
use rustc_hash::FxHashSet;

/// Instructions: block, and place in it.
type Places = FxHashSet<(u32, u32)>;

/// Instructions that may make the words of maps, and what loads among them have as results.
#[derive(Default)]
pub(crate) struct FollowedWords {
    places: Places,
    /// Instruction, which of its words, and the value.
    loaded: Vec<((u32, u32), u8, NodeId)>,
}

impl FollowedWords {
    /// Of a function.
    pub(crate) fn new(f: &KernelIr, cfg: &Cfg) -> FollowedWords {
        FollowedWords { places: places(f, cfg).unwrap_or_default(), loaded: Vec::new() }
    }

    /// Whether this instruction is one of them.
    pub(crate) fn has(&self, at: (u32, u32)) -> bool {
        self.places.contains(&at)
    }

    /// The words that they load, as far as they were noted: instruction, which word, and the value.
    pub(crate) fn take_loaded(&mut self) -> Vec<((u32, u32), u8, NodeId)> {
        std::mem::take(&mut self.loaded)
    }

    /// Notes the value of a word that an instruction loads.
    pub(crate) fn note(&mut self, at: (u32, u32), part: u8, n: NodeId) {
        if self.places.contains(&at) {
            self.loaded.push((at, part, n));
        }
    }
}

fn step(inst: &Inst) -> Option<(MapStep, &Mem)> {
    match &inst.op {
        Op::Mem(m) => match m.space {
            MemSpace::Map(step @ (MapStep::Word | MapStep::Store | MapStep::Load)) => Some((step, m)),
            _ => None,
        },
        _ => None,
    }
}

/// Where all threads of a block meet (`bar.sync` of all, of barrier 0).
fn is_barrier(inst: &Inst) -> bool {
    let of_all = match &inst.srcs[..] {
        [] => true,
        [number] => matches!(number, SrcOperand { src: Src::Imm(0), prefix: Prefix::None }),
        _ => false,
    };
    inst.op == Op::Sync(Sync::Barrier) && inst.guard.is_none() && of_all
}

/// The instructions to be followed; `None`: none, or not all can be.
fn places(f: &KernelIr, cfg: &Cfg) -> Option<Places> {
    let all = || {
        let insts = |b: &BlockId| {
            let b = *b;
            f.blocks[b.0 as usize].insts.iter().enumerate().map(move |(i, inst)| (b, i as u32, inst))
        };
        cfg.rpo.iter().flat_map(insts)
    };
    let puts: Vec<(BlockId, u32)> =
        all().filter(|(.., inst)| step(inst).is_some_and(|s| s.0 == MapStep::Word)).map(|(b, i, _)| (b, i)).collect();
    if puts.is_empty() {
        return None;
    }
    let ahead = before(cfg, puts.iter().map(|p| p.0));
    let is_early = |b: BlockId, i: u32| ahead[b.0 as usize] || puts.iter().any(|p| p.0 == b && p.1 > i);
    let in_cycle = |b: BlockId| cfg.in_irreducible[b.0 as usize] || cfg.loops.iter().any(|l| l.members[b.0 as usize]);
    let barriers: Vec<(BlockId, u32)> =
        all().filter(|(b, i, inst)| is_barrier(inst) && !is_early(*b, *i)).map(|(b, i, _)| (b, i)).collect();
    let is_behind =
        |b: BlockId, i: u32| barriers.iter().any(|(at, k)| if *at == b { *k < i } else { cfg.dominates(*at, b) });
    let mut places = Places::default();
    for (b, i, inst) in all() {
        let Some((kind, m)) = step(inst) else { continue };
        match kind {
            MapStep::Load if !is_early(b, i) => {}
            MapStep::Store if !is_early(b, i) => {
                if !is_behind(b, i) {
                    return None;
                }
            }
            _ if in_cycle(b) || matches!(m.addr, Addr::Unknown(_)) => return None,
            _ => {
                places.insert((b.0, i));
            }
        }
    }
    Some(places)
}

/// The blocks that threads can leave to come to one of these.
pub(crate) fn before(cfg: &Cfg, to: impl Iterator<Item = BlockId>) -> Vec<bool> {
    let mut ahead = vec![false; cfg.succs.len()];
    let mut work: Vec<BlockId> = to.collect();
    while let Some(b) = work.pop() {
        for p in &cfg.preds[b.0 as usize] {
            if !std::mem::replace(&mut ahead[p.0 as usize], true) {
                work.push(*p);
            }
        }
    }
    ahead
}
