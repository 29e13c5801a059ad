//! Joins that only pass a value on: what enters a region of joins from outside is one launch
//! constant, wherever it enters.
//!
//! Owns one pass over the finished graph, which replaces such joins by their value.
//!
//! # Why it is sound
//!
//! The joins of a region (loop headers, joins inside loops, regions with several entries) are given
//! offsets to one another. A join has the offset of each of its arms; a sum with a constant has
//! that much more. Assume that no join gets two offsets, and that all that enters from outside is
//! the same launch constant plus the offset at which it enters. Then each join has, whenever it is
//! computed, that constant plus its offset. This follows by induction over the steps of an
//! execution, for a join takes the value of an arm that was computed before. It needs no structure
//! of the control flow. It does need that what enters is the same at every entry: parameters,
//! launch values and sums of them are, values computed in a loop are not.

use super::node::{Graph, Kind, NodeId, Width};
use crate::ir::Reason;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Joins and sums followed from one join.
const MAX_REGION: usize = 300;

/// Replaces each such join by its value.
pub(crate) fn replace_invariant_phis(g: &mut Graph) {
    for k in 0..g.nodes.len() {
        let n = NodeId(k as u32);
        if matches!(g.nodes[k].kind, Kind::LoopPhi(..) | Kind::Phi(_))
            && g.nodes[k].width != Width::Pred
            && let Some((leaf, c)) = value(g, n)
        {
            g.nodes[k].kind = match g.node(leaf).kind {
                Kind::Const(v) => {
                    let v = v.wrapping_add(c as u64);
                    Kind::Const(if g.nodes[k].width == Width::W32 { v & 0xffff_ffff } else { v })
                }
                _ => Kind::Lin(SmallVec::from_slice(&[(leaf, 1)]), c),
            };
        }
    }
}

/// The launch constant and the offset that a join always has.
fn value(g: &Graph, n: NodeId) -> Option<(NodeId, i64)> {
    let mut offsets: FxHashMap<NodeId, i64> = FxHashMap::from_iter([(n, 0)]);
    let mut work = vec![n];
    let mut root: Option<(NodeId, i64)> = None;
    while let Some(x) = work.pop() {
        let o = offsets[&x];
        let mut reach = |y: NodeId, at: i64| match offsets.get(&y) {
            Some(before) => *before == at,
            None => {
                offsets.insert(y, at);
                work.push(y);
                offsets.len() <= MAX_REGION
            }
        };
        let fits = match &g.node(x).kind {
            Kind::Phi(arms) => arms.iter().all(|a| reach(a.1, o)),
            Kind::LoopPhi(a, b) => a.iter().chain(b).all(|a| reach(a.1, o)),
            Kind::Sel(_, a, b) => reach(*a, o) && reach(*b, o),
            Kind::Lin(t, c) if matches!(t[..], [(_, 1)]) => reach(t[0].0, o.wrapping_sub(*c)),
            // Never written on the way in.
            Kind::Opaque(Reason::Undefined) => true,
            kind if constant(kind) => match root {
                None => {
                    root = Some((x, o));
                    true
                }
                Some((first, at)) => same(&g.node(first).kind, at, kind, o),
            },
            _ => false,
        };
        if !fits {
            return None;
        }
    }
    root.map(|(leaf, at)| (leaf, at.wrapping_neg()))
}

/// The same in every execution of a thread.
fn constant(k: &Kind) -> bool {
    matches!(k, Kind::Const(_) | Kind::Param(..) | Kind::ParamAddress(_) | Kind::Symbol(_) | Kind::Special(_))
}

/// Do two constants at their offsets stand for one value?
fn same(a: &Kind, at: i64, b: &Kind, o: i64) -> bool {
    match (a, b) {
        (Kind::Const(x), Kind::Const(y)) => (*x as i64).wrapping_sub(at) == (*y as i64).wrapping_sub(o),
        (Kind::Param(p, n), Kind::Param(q, m)) => p == q && n == m && at == o,
        (Kind::ParamAddress(p), Kind::ParamAddress(q)) => p == q && at == o,
        (Kind::Symbol(p), Kind::Symbol(q)) => p == q && at == o,
        (Kind::Special(p), Kind::Special(q)) => p == q && at == o,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::BlockId;
    use crate::ranges::graph::node::Node;

    fn graph(kinds: Vec<Kind>) -> Graph {
        let node = |kind| Node { kind, width: Width::W64, home: BlockId(0) };
        Graph { nodes: kinds.into_iter().map(node).collect(), ..Graph::default() }
    }

    fn plus(n: u32, c: i64) -> Kind {
        Kind::Lin(SmallVec::from_slice(&[(NodeId(n), 1)]), c)
    }

    fn join(arms: &[u32]) -> Kind {
        Kind::Phi(arms.iter().map(|a| (BlockId(0), NodeId(*a))).collect())
    }

    fn settled(kinds: Vec<Kind>, n: usize) -> Kind {
        let mut g = graph(kinds);
        replace_invariant_phis(&mut g);
        g.nodes[n].kind.clone()
    }

    #[test]
    fn what_goes_round_is_what_came_in() {
        // A region with two entries; the value steps ahead and back inside.
        let k = vec![Kind::Param(8, 8), join(&[0, 4]), plus(1, 64), plus(2, -64), join(&[3, 4, 5]), Kind::Param(8, 8)];
        assert!(matches!(settled(k, 4), Kind::Lin(t, 0) if t[0] == (NodeId(0), 1) || t[0] == (NodeId(5), 1)));
    }

    #[test]
    fn what_changes_stays() {
        // One step more each time round.
        let k = vec![Kind::Param(8, 8), join(&[0, 2]), plus(1, 64)];
        assert!(matches!(settled(k, 1), Kind::Phi(_)));
        // Two parameters come in.
        let k = vec![Kind::Param(8, 8), join(&[0, 2]), Kind::Param(16, 8)];
        assert!(matches!(settled(k, 1), Kind::Phi(_)));
        // The same one, but at two offsets.
        let k = vec![Kind::Param(8, 8), join(&[0, 2]), plus(0, 8)];
        assert!(matches!(settled(k, 1), Kind::Phi(_)));
        // Data.
        let k = vec![Kind::Opaque(Reason::Loaded), join(&[0, 1])];
        assert!(matches!(settled(k, 1), Kind::Phi(_)));
    }
}
