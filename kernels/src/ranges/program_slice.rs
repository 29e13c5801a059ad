//! What of a kernel matters for some of its accesses.
//!
//! Owns the choice: the branches that decide whether and with which values threads come to these
//! accesses (a backward slice: F. Tip, "A Survey of Program Slicing Techniques", 1995), and the
//! joins that their addresses and conditions rest on. A loop whose accesses are known otherwise,
//! and whose values nobody needs, is one step.

use crate::ir::BlockId;
use crate::ir::cfg::Cfg;
use crate::ranges::graph::node::{Graph, Kind, NodeId};

/// See above.
pub(crate) struct ProgramSlice {
    /// The joins that matter, and what warps decide, by block.
    pub(crate) joins: Vec<Vec<NodeId>>,
    /// By block: its branch decides. Behind any other, all ways come to the same.
    pub(crate) decides: Vec<bool>,
}

impl ProgramSlice {
    /// Of accesses in these blocks, with these values in their addresses and guards.
    pub(crate) fn new(
        (g, cfg, deciders): (&Graph, &Cfg, &[Vec<BlockId>]),
        blocks: impl Iterator<Item = BlockId>,
        values: impl Iterator<Item = NodeId>,
    ) -> ProgramSlice {
        let mut slice = Growing {
            joins: vec![Vec::new(); cfg.succs.len()],
            decides: vec![false; cfg.succs.len()],
            reached: vec![false; cfg.succs.len()],
            values: values.collect(),
            blocks: blocks.collect(),
            g,
        };
        let mut seen = vec![false; g.nodes.len()];
        loop {
            if let Some(b) = slice.blocks.pop() {
                if !std::mem::replace(&mut slice.reached[b.0 as usize], true) {
                    deciders[b.0 as usize].iter().for_each(|by| slice.decide(*by));
                }
            } else if let Some(n) = slice.values.pop() {
                if !std::mem::replace(&mut seen[n.0 as usize], true) {
                    slice.need(n, cfg);
                }
            } else {
                break;
            }
        }
        ProgramSlice { joins: slice.joins, decides: slice.decides }
    }
}

/// The slice while it grows.
struct Growing<'a> {
    g: &'a Graph,
    joins: Vec<Vec<NodeId>>,
    decides: Vec<bool>,
    /// By block: whether threads come there matters.
    reached: Vec<bool>,
    values: Vec<NodeId>,
    blocks: Vec<BlockId>,
}

impl Growing<'_> {
    /// A branch matters.
    fn decide(&mut self, b: BlockId) {
        if !std::mem::replace(&mut self.decides[b.0 as usize], true) {
            self.values.extend(self.g.conds[b.0 as usize]);
            self.blocks.push(b);
        }
    }

    /// A value matters.
    fn need(&mut self, n: NodeId, cfg: &Cfg) {
        let node = self.g.node(n);
        let decision = self.g.decisions.get(&n);
        let is_join = matches!(node.kind, Kind::Phi(_) | Kind::LoopPhi(..));
        if is_join || decision.is_some() {
            self.joins[node.home.0 as usize].push(n);
            self.blocks.push(node.home);
        }
        if is_join && only_arm(self.g, n).is_none() {
            for from in &cfg.preds[node.home.0 as usize] {
                self.blocks.push(*from);
                if cfg.succs[from.0 as usize].len() > 1 {
                    self.decide(*from);
                }
            }
        }
        self.values.extend(self.g.operands(n));
        self.values.extend(decision.and_then(|decision| decision.asks()));
    }
}

/// What all ways bring to a join, if they bring one node.
pub(crate) fn only_arm(g: &Graph, join: NodeId) -> Option<NodeId> {
    let mut arms = match &g.node(join).kind {
        Kind::Phi(arms) => arms.iter().chain([].iter()),
        Kind::LoopPhi(outer, back) => outer.iter().chain(back.iter()),
        _ => return None,
    }
    .map(|arm| arm.1);
    let first = arms.next()?;
    arms.all(|arm| arm == first).then_some(first)
}

/// By block: the branches of which one way leads there for sure and another may not (J. Ferrante,
/// K. Ottenstein, J. Warren, "The Program Dependence Graph and Its Use in Optimization", 1987).
pub(crate) fn deciders(cfg: &Cfg) -> Vec<Vec<BlockId>> {
    let mut deciders = vec![Vec::new(); cfg.succs.len()];
    // (A branch of which one way ends the thread has one successor, at which its ways do not meet.)
    for (b, succs) in cfg.succs.iter().enumerate() {
        let (b, end) = (BlockId(b as u32), cfg.ipdom[b]);
        for to in succs {
            let mut at = Some(*to);
            while let Some(block) = at.filter(|_| at != end) {
                let of: &mut Vec<BlockId> = &mut deciders[block.0 as usize];
                // (Where an earlier way came through, this one goes on as it did.)
                if of.last() == Some(&b) {
                    break;
                }
                of.push(b);
                at = cfg.ipdom[block.0 as usize];
            }
        }
    }
    deciders
}
