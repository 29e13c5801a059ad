//! Kernels that look up by block index what they work on: tables among the parameters hold a
//! pointer and a size for each tensor, and the tensor that each block is for.
//!
//! Owns when and how such a launch is evaluated block by block. Evaluated together, the blocks have
//! every pointer with every size. That is an upper bound, but a wide one: a chunk of the largest
//! size behind each pointer. With a fixed block index every lookup gives one word, and the words of
//! a block belong together.
//!
//! Each thread runs in one block, so the bytes of a launch are the union of the bytes of its
//! blocks. Each block is evaluated as a launch in which the block index along one axis is that
//! number; the other axes stay free. What is exact for a block is touched by its threads, hence by
//! the launch. When there are too many blocks, or they cost too much, the launch is evaluated at
//! once like any other. Launches evaluated by block are kept but not recorded: their tapes would be
//! as long as their tables.

use super::eval::Eval;
use crate::effects::LaunchArgs;
use crate::ir::Special;
use crate::ranges::access_groups::{AccessGroup, AccessGroups};
use crate::ranges::analysis::Analysis;
use crate::ranges::domain::byte_set::ByteSet;
use crate::ranges::domain::tape::{LaunchInput, input};
use crate::ranges::extent::reached::EvaluatedAccesses;
use crate::ranges::graph::node::{Graph, Kind, NodeId};
use rustc_hash::FxHashSet;

/// Blocks that are evaluated one by one: twice as many as a launch has room for pointers among its
/// parameters (32,764 bytes, CUDA C++ Programming Guide).
const MAX_BLOCKS: u64 = 8192;
/// Bounds computed for all of them together.
const MAX_TOTAL: u32 = 400_000;

/// The axis by whose block index parameters are looked up, if there is exactly one.
pub(super) fn block_axis(g: &Graph) -> Option<u8> {
    let mut axis = None;
    for n in &g.nodes {
        let Kind::ParamIndexed(.., index) = n.kind else { continue };
        let (mut work, mut seen) = (vec![index], FxHashSet::<NodeId>::default());
        while let Some(n) = work.pop() {
            if !seen.insert(n) {
                continue;
            }
            match g.node(n).kind {
                Kind::Special(Special::Ctaid(d)) if axis.is_none_or(|a| a == d) => axis = Some(d),
                Kind::Special(Special::Ctaid(_)) => return None,
                _ => work.extend(g.operands(n)),
            }
        }
    }
    axis
}

impl Analysis {
    /// The axis and the number of blocks along it, of a launch that is evaluated block by block.
    pub(super) fn by_block(&self, launch: &LaunchArgs<'_>) -> Option<(u8, u32)> {
        let axis = self.looked_up_by?;
        let blocks = LaunchInput::Grid(axis).read(launch);
        (2..=MAX_BLOCKS).contains(&blocks).then_some((axis, blocks as u32))
    }

    /// What a launch reaches, block by block; `None` when that is not done.
    pub(super) fn compute_by_block(&self, launch: &LaunchArgs<'_>) -> Option<EvaluatedAccesses<ByteSet>> {
        // The number of blocks decides, also that it is not done.
        self.looked_up_by.map(|axis| input(LaunchInput::Grid(axis), launch).pin());
        let (axis, blocks) = self.by_block(launch)?;
        let mut sets = AccessGroups::default();
        let mut total = 0u32;
        for block in 0..blocks {
            let mut eval: Eval<'_> = self.eval(launch);
            eval.block = Some((axis, block));
            self.collect(&mut eval, &mut sets);
            total = total.saturating_add(eval.atoms.budget.total());
            if total > MAX_TOTAL {
                return None;
            }
        }
        Some(AccessGroup::finish(sets))
    }
}
