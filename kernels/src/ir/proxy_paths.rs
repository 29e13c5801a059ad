//! Ways from stores to shared memory to bulk operations that read it, on which nothing tells the
//! asynchronous proxy of the stores.
//!
//! Owns which bulk operations those are. What a thread has written through the generic proxy is
//! before a bulk or tensor store only if a fence between the proxies is on the way, in the thread
//! that writes or in the one that issues (PTX ISA, "Proxy-preserved base causality order"). All
//! threads run one code, so the way of the stored bytes through it is looked for as if one thread
//! went it.
//!
//! This is for hints, and leaves alone what may be right. A fence that a thread may pass on the way
//! counts, since the condition that it is under may be that of the store, and so does a call that
//! is not followed. Stores under a condition that excludes that of the operation do not count,
//! where both are one predicate (the assembler makes one block of two). A store to another array
//! than the one that the operation reads does not count ([`super::shared_arrays`]).

use super::shared_arrays::Arrays;
use super::{BlockId, Inst, KernelIr, Op, Prefix, ProxyStep, Src, SrcOperand, Term, Var, cfg};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A bulk operation that reads shared memory, and a store that comes to it without a fence between
/// the proxies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct UnfencedCopy {
    /// The bulk operation, as accesses count.
    pub at: u32,
    /// The nearest such store.
    pub store: u32,
}

/// The bulk operations with such a store, in the order of the code. Takes the marks out of the
/// kernel.
pub(crate) fn find(f: &mut KernelIr) -> Vec<UnfencedCopy> {
    let mut before = vec![Vec::new(); f.blocks.len()];
    for (b, block) in (0_u32..).zip(&f.blocks) {
        cfg::targets(&block.term).into_iter().for_each(|to| before[to.0 as usize].push(BlockId(b)));
    }
    let ways = Ways { f, before: &before, arrays: Arrays::new(f, &before) };
    let mut found = Vec::new();
    for (b, block) in (0_u32..).zip(&f.blocks) {
        for (k, inst) in block.insts.iter().enumerate() {
            if inst.op == Op::Proxy(ProxyStep::Bulk) {
                let store = ways.nearest_store(BlockId(b), k, inst);
                found.extend(store.map(|store| UnfencedCopy { at: inst.at, store }));
            }
        }
    }
    for block in &mut f.blocks {
        block.insts.retain(|inst| !matches!(inst.op, Op::Proxy(_)));
    }
    found.sort_unstable_by_key(|copy| (copy.at, copy.store));
    found.dedup_by_key(|copy| copy.at);
    found
}

/// A predicate, and its value.
type Held = (Var, bool);

/// What holds where a condition does, or does not.
fn held(condition: &SrcOperand, does: bool) -> Option<Held> {
    match (condition.src, condition.prefix) {
        (Src::Var(v), Prefix::None) => Some((v, does)),
        (Src::Var(v), Prefix::Not) => Some((v, !does)),
        _ => None,
    }
}

/// What holds where a block ends and goes on to that one.
fn branched(term: &Term, to: BlockId) -> Option<Held> {
    let Term::Branch { cond, taken, fall } = term else { return None };
    if taken == fall { None } else { held(cond, *taken == Some(to)) }
}

struct Ways<'a> {
    f: &'a KernelIr,
    before: &'a [Vec<BlockId>],
    arrays: Arrays<'a>,
}

impl Ways<'_> {
    /// The store to the same array that the fewest blocks lie between, of those that only ways
    /// without a fence lead from. Where one of the two arrays is not told, they may be the same. A
    /// way ends at the next such store, and at the operation itself.
    fn nearest_store(&self, block: BlockId, upto: usize, copy: &Inst) -> Option<u32> {
        let source = self.arrays.of(&copy.srcs, block, upto);
        let (mut bare, mut fenced) = (Vec::new(), Vec::new());
        let mut seen = vec![[false; 2]; self.f.blocks.len()];
        let holds: Vec<Held> = copy.guard.iter().filter_map(|guard| held(guard, true)).collect();
        let mut open = VecDeque::from([(block, upto, false, holds)]);
        while let Some((block, upto, mut is_fenced, mut holds)) = open.pop_front() {
            let mut is_over = false;
            for (k, inst) in self.f.blocks[block.0 as usize].insts[..upto].iter().enumerate().rev() {
                holds.retain(|(v, _)| !inst.dsts.contains(v));
                match inst.op {
                    // Threads that issue the operation do not come by here.
                    Op::Proxy(_)
                        if inst.guard.iter().filter_map(|guard| held(guard, false)).any(|not| holds.contains(&not)) => {
                    }
                    Op::Proxy(ProxyStep::Fence) | Op::ClobberAll => is_fenced = true,
                    Op::Proxy(ProxyStep::Store) => {
                        is_over = self.may_be_one(source, &inst.srcs, block, k);
                        if is_over {
                            if is_fenced { &mut fenced } else { &mut bare }.push(inst.at);
                        }
                    }
                    Op::Proxy(ProxyStep::Bulk) => is_over = std::ptr::eq(inst, copy),
                    _ => {}
                }
                if is_over {
                    break;
                }
            }
            for from in self.before[block.0 as usize].iter().filter(|_| !is_over) {
                let comes = &self.f.blocks[from.0 as usize];
                if !std::mem::replace(&mut seen[from.0 as usize][usize::from(is_fenced)], true) {
                    let mut holds = holds.clone();
                    holds.extend(branched(&comes.term, block));
                    open.push_back((*from, comes.insts.len(), is_fenced, holds));
                }
            }
        }
        bare.into_iter().find(|store| !fenced.contains(store))
    }

    /// Whether a store may be to the array that an operation reads. The constant of its address is
    /// a part of the place of the array, or of the index.
    fn may_be_one(&self, source: Option<u32>, store: &[SrcOperand], block: BlockId, at: usize) -> bool {
        let Some((_, registers)) = store.split_last() else { return true };
        let places = [store, registers].map(|address| self.arrays.of(address, block, at));
        source.is_none() || places.iter().any(|place| place.is_none() || *place == source)
    }
}
