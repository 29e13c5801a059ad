//! Control-flow facts of a [`KernelIr`]: predecessors, dominators, post-dominators, natural loops.
//!
//! Owns nothing about values.

use super::{BlockId, KernelIr, Term};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// A natural loop; several back edges to one header are one loop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Loop {
    /// The block all back edges lead to.
    pub(crate) header: BlockId,
    /// Sources of back edges.
    pub(crate) latches: Vec<BlockId>,
    /// Members, as a set by block number.
    #[serde(with = "packed")]
    pub(crate) members: Vec<bool>,
    /// Number of members (an outer loop has more than its inner ones).
    pub(crate) size: usize,
}

/// Sets of blocks, written down in bits: large kernels have hundreds of loops over thousands of
/// blocks.
mod packed {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(set: &[bool], s: S) -> Result<S::Ok, S::Error> {
        let word = |bits: &[bool]| bits.iter().rev().fold(0u64, |word, bit| word << 1 | u64::from(*bit));
        (set.len(), set.chunks(64).map(word).collect::<Vec<_>>()).serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<bool>, D::Error> {
        let (len, words) = <(usize, Vec<u64>)>::deserialize(d)?;
        let mut set: Vec<bool> = words.iter().flat_map(|w| (0..64).map(move |k| w >> k & 1 == 1)).collect();
        set.truncate(len);
        Ok(set)
    }
}

/// Facts about the reachable blocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cfg {
    /// Predecessors (each once).
    pub(crate) preds: Vec<SmallVec<[BlockId; 2]>>,
    /// Successors (each once).
    pub(crate) succs: Vec<SmallVec<[BlockId; 2]>>,
    /// Reverse post-order of reachable blocks.
    pub(crate) rpo: Vec<BlockId>,
    /// Position in `rpo`; `u32::MAX` when unreachable.
    pub(crate) order: Vec<u32>,
    /// Immediate dominator (entry: itself).
    pub(crate) idom: Vec<BlockId>,
    /// Immediate post-dominator; `None` when only the exit post-dominates.
    pub(crate) ipdom: Vec<Option<BlockId>>,
    /// Loops, in no particular order.
    pub(crate) loops: Vec<Loop>,
    /// Loop headed by a block.
    pub(crate) loop_of_header: Vec<Option<u32>>,
    /// A back edge whose target does not dominate its source exists.
    pub(crate) irreducible: bool,
    /// Blocks on a cycle through such an edge.
    pub(crate) in_irreducible: Vec<bool>,
}

/// Targets of a terminator, each once.
pub(crate) fn targets(t: &Term) -> SmallVec<[BlockId; 2]> {
    let mut out = SmallVec::new();
    let mut put = |b: BlockId| {
        if !out.contains(&b) {
            out.push(b);
        }
    };
    match t {
        Term::Jump(b) => put(*b),
        Term::Branch { taken, fall, .. } => {
            taken.iter().for_each(|b| put(*b));
            fall.iter().for_each(|b| put(*b));
        }
        Term::Switch(v) => v.iter().for_each(|b| put(*b)),
        Term::Exit => {}
    }
    out
}

/// Can a thread end at this terminator?
fn may_exit(t: &Term) -> bool {
    match t {
        Term::Exit => true,
        Term::Branch { taken, fall, .. } => taken.is_none() || fall.is_none(),
        Term::Switch(v) => v.is_empty(),
        Term::Jump(_) => false,
    }
}

/// Post-order of a graph from `root`, without recursion.
fn post_order(n: usize, root: usize, succ: impl Fn(usize) -> SmallVec<[BlockId; 2]>) -> Vec<BlockId> {
    let mut seen = vec![false; n];
    let mut post = Vec::new();
    let mut stack = vec![(root, succ(root), 0usize)];
    seen[root] = true;
    while let Some((b, ss, i)) = stack.last_mut() {
        if *i < ss.len() {
            let s = ss[*i].0 as usize;
            *i += 1;
            if !seen[s] {
                seen[s] = true;
                let t = succ(s);
                stack.push((s, t, 0));
            }
        } else {
            post.push(BlockId(*b as u32));
            stack.pop();
        }
    }
    post
}

/// Immediate dominators by the iterative algorithm of Cooper, Harvey and Kennedy.
fn dominators(n: usize, root: usize, rpo: &[BlockId], preds: impl Fn(usize) -> SmallVec<[BlockId; 2]>) -> Vec<u32> {
    let mut order = vec![u32::MAX; n];
    for (i, b) in rpo.iter().enumerate() {
        order[b.0 as usize] = i as u32;
    }
    let mut idom = vec![u32::MAX; n];
    idom[root] = root as u32;
    let mut changed = true;
    while changed {
        changed = false;
        for b in &rpo[1..] {
            let b = b.0 as usize;
            let mut new = u32::MAX;
            for p in preds(b) {
                if idom[p.0 as usize] == u32::MAX {
                    continue;
                }
                if new == u32::MAX {
                    new = p.0;
                    continue;
                }
                let (mut x, mut y) = (p.0, new);
                while x != y {
                    if order[x as usize] > order[y as usize] {
                        x = idom[x as usize];
                    } else {
                        y = idom[y as usize];
                    }
                }
                new = x;
            }
            if idom[b] != new {
                idom[b] = new;
                changed = true;
            }
        }
    }
    idom
}

impl Cfg {
    /// Computes all facts.
    pub(crate) fn new(f: &KernelIr) -> Cfg {
        let n = f.blocks.len();
        let succs: Vec<_> = f.blocks.iter().map(|b| targets(&b.term)).collect();
        let mut cfg = Cfg {
            preds: Vec::new(),
            succs,
            rpo: Vec::new(),
            order: Vec::new(),
            idom: Vec::new(),
            ipdom: Vec::new(),
            loops: Vec::new(),
            loop_of_header: vec![None; n],
            irreducible: false,
            in_irreducible: vec![false; n],
        };
        cfg.order_blocks();
        cfg.ipdom = Self::post_dominators(f, &cfg.succs, &cfg.preds, &cfg.order);
        cfg.find_loops(n);
        cfg
    }

    fn post_dominators(
        f: &KernelIr,
        succs: &[SmallVec<[BlockId; 2]>],
        preds: &[SmallVec<[BlockId; 2]>],
        order: &[u32],
    ) -> Vec<Option<BlockId>> {
        let n = succs.len();
        // Node n is the virtual exit.
        let exits: SmallVec<[BlockId; 2]> = (0..n)
            .filter(|&b| order[b] != u32::MAX && may_exit(&f.blocks[b].term))
            .map(|b| BlockId(b as u32))
            .collect();
        let back = |b: usize| if b == n { exits.clone() } else { preds[b].clone() };
        let mut rpo = post_order(n + 1, n, back);
        rpo.reverse();
        let fwd = |b: usize| {
            let mut v = succs[b].clone();
            if exits.contains(&BlockId(b as u32)) {
                v.push(BlockId(n as u32));
            }
            v
        };
        let idom = dominators(n + 1, n, &rpo, fwd);
        (0..n).map(|b| (idom[b] != u32::MAX && idom[b] as usize != n).then_some(BlockId(idom[b]))).collect()
    }

    /// Does `a` dominate `b`?
    pub(crate) fn dominates(&self, a: BlockId, mut b: BlockId) -> bool {
        while self.order[b.0 as usize] > self.order[a.0 as usize] {
            b = self.idom[b.0 as usize];
        }
        a == b
    }

    /// Does every path from `b` to the exit go through `a`?
    pub(crate) fn post_dominates(&self, a: BlockId, b: BlockId) -> bool {
        let mut x = Some(b);
        let mut steps = 0;
        while let Some(y) = x {
            if y == a {
                return true;
            }
            x = self.ipdom[y.0 as usize];
            steps += 1;
            if steps > self.preds.len() {
                return false;
            }
        }
        false
    }

    fn find_loops(&mut self, n: usize) {
        for b in self.rpo.clone() {
            for s in self.succs[b.0 as usize].clone() {
                if self.order[s.0 as usize] > self.order[b.0 as usize] {
                    continue;
                }
                if !self.dominates(s, b) {
                    self.irreducible = true;
                    self.mark_cycle(b, s);
                    continue;
                }
                let l = match self.loop_of_header[s.0 as usize] {
                    Some(l) => l as usize,
                    None => {
                        let mut members = vec![false; n];
                        members[s.0 as usize] = true;
                        self.loops.push(Loop { header: s, latches: Vec::new(), members, size: 1 });
                        self.loop_of_header[s.0 as usize] = Some(self.loops.len() as u32 - 1);
                        self.loops.len() - 1
                    }
                };
                let mut work = vec![b];
                let l = &mut self.loops[l];
                l.latches.push(b);
                while let Some(x) = work.pop() {
                    if !l.members[x.0 as usize] {
                        l.members[x.0 as usize] = true;
                        l.size += 1;
                        work.extend(self.preds[x.0 as usize].iter().copied());
                    }
                }
            }
        }
    }

    /// Marks the blocks on a cycle through the edge b -> s.
    fn mark_cycle(&mut self, b: BlockId, s: BlockId) {
        let reach = |from: BlockId, next: &[SmallVec<[BlockId; 2]>]| {
            let mut seen = vec![false; next.len()];
            let mut work = vec![from];
            while let Some(x) = work.pop() {
                if !std::mem::replace(&mut seen[x.0 as usize], true) {
                    work.extend(next[x.0 as usize].iter().copied());
                }
            }
            seen
        };
        let (fwd, back) = (reach(s, &self.succs), reach(b, &self.preds));
        for (k, m) in self.in_irreducible.iter_mut().enumerate() {
            *m |= fwd[k] && back[k];
        }
    }

    /// The same without some edges. Post-dominators and loops are those of the whole; what is cut
    /// off has no predecessor.
    pub(crate) fn without(&self, cut: &[(BlockId, BlockId)]) -> Cfg {
        let mut cfg = self.clone();
        for (from, to) in cut {
            cfg.succs[from.0 as usize].retain(|s| s != to);
        }
        cfg.order_blocks();
        for (b, order) in cfg.order.iter().enumerate() {
            if *order == u32::MAX {
                cfg.idom[b] = BlockId(0);
            }
        }
        cfg
    }

    /// Finds order, predecessors and dominators from the successors.
    fn order_blocks(&mut self) {
        let n = self.succs.len();
        self.rpo = if n == 0 { Vec::new() } else { post_order(n, 0, |b| self.succs[b].clone()) };
        self.rpo.reverse();
        self.order = vec![u32::MAX; n];
        for (i, b) in self.rpo.iter().enumerate() {
            self.order[b.0 as usize] = i as u32;
        }
        self.preds = vec![SmallVec::new(); n];
        for b in &self.rpo {
            for s in &self.succs[b.0 as usize] {
                self.preds[s.0 as usize].push(*b);
            }
        }
        if n != 0 {
            self.idom = dominators(n, 0, &self.rpo, |b| self.preds[b].clone()).into_iter().map(BlockId).collect();
        }
    }

    /// The loop headed by `b`.
    pub(crate) fn header_loop(&self, b: BlockId) -> Option<&Loop> {
        self.loop_of_header[b.0 as usize].map(|l| &self.loops[l as usize])
    }

    /// Predecessors of `b` other than back edges of the loop it heads.
    pub(crate) fn outer_preds(&self, b: BlockId) -> SmallVec<[BlockId; 2]> {
        match self.header_loop(b) {
            None => self.preds[b.0 as usize].clone(),
            Some(l) => self.preds[b.0 as usize].iter().copied().filter(|p| !l.members[p.0 as usize]).collect(),
        }
    }
}
