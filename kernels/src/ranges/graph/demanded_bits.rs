//! Permutations of bytes of which only the low ones are looked at.
//!
//! Owns one pass over the finished graph. Compilers keep a variable of 8 or 16 bits in the low
//! bytes of a register, and leave in the high ones what was there before (`PRMT R, x, 0x7610, R`).
//! Carried round a loop, the whole word is anything, though whoever reads it masks it first. Such a
//! permutation is replaced by the word whose low bytes it takes.
//!
//! # Why it is sound
//!
//! The low bits of a sum, a product, a bitwise function, a choice or a join follow from as many low
//! bits of its operands. So it is found out, from those who read a node back to its operands, how
//! many low bits of it can make any difference. A word that agrees in these stands for it.

use super::node::{Graph, Kind, NodeId, Target, WarpDecision};
use smallvec::SmallVec;

/// All bits of a node.
const ALL: u8 = 64;

type Demands = SmallVec<[(NodeId, u8); 4]>;

/// Replaces such permutations.
pub(crate) fn replace_partial_words(g: &mut Graph) {
    let permutes = |k: &Kind| matches!(k, Kind::Prmt(..));
    if !g.nodes.iter().any(|n| permutes(&n.kind)) {
        return;
    }
    let low = demanded(g);
    for (k, bits) in low.into_iter().enumerate() {
        let Kind::Prmt(x, selector, y) = g.nodes[k].kind else { continue };
        let Some(from) = sources(g, selector) else { continue };
        let bytes = usize::from(bits.div_ceil(8)).min(4);
        let takes = |first: u8| (0..bytes).all(|r| from[r] == first + r as u8);
        let same = [(0, x), (4, y)].into_iter().find(|s| bytes > 0 && takes(s.0));
        if let Some((_, word)) = same {
            g.nodes[k].kind = Kind::Lin(SmallVec::from_slice(&[(word, 1)]), 0);
        }
    }
}

/// Which byte each byte of a permutation takes: 0 to 3 of the first word, 4 to 7 of the second one,
/// 8 more for its sign.
fn sources(g: &Graph, selector: NodeId) -> Option<[u8; 4]> {
    let Kind::Const(s) = g.node(selector).kind else { return None };
    Some([0, 4, 8, 12].map(|k| (s >> k & 15) as u8))
}

/// How many low bits of each node make a difference.
fn demanded(g: &Graph) -> Vec<u8> {
    let mut low = vec![0; g.nodes.len()];
    let mut work: Vec<NodeId> = Vec::new();
    let mut demand = |n: NodeId, bits: u8, work: &mut Vec<NodeId>| {
        let before = &mut low[n.0 as usize];
        if *before < bits {
            *before = bits;
            work.push(n);
        }
        *before
    };
    for n in roots(g) {
        demand(n, ALL, &mut work);
    }
    while let Some(n) = work.pop() {
        let bits = demand(n, 0, &mut work);
        for (operand, bits) in operands(g, n, bits) {
            demand(operand, bits, &mut work);
        }
    }
    low
}

/// What is read by something that is no node.
fn roots(g: &Graph) -> Vec<NodeId> {
    let mut roots: Vec<NodeId> = g.conds.iter().flatten().copied().collect();
    for a in &g.accesses {
        roots.extend(a.guard);
        match &a.target {
            Target::Address(n) | Target::Handle(n, _) => roots.push(*n),
            Target::TensorMap(n, coordinates) => roots.extend(std::iter::once(n).chain(coordinates)),
            Target::Bulk(n, size) => roots.extend([*n, *size]),
            Target::Made(made) => roots.extend(made.nodes()),
            Target::Passed(given) => roots.extend(given),
            Target::Unknown(_) => {}
        }
    }
    roots.extend(g.before_call.values());
    roots.extend(g.decisions.values().filter_map(WarpDecision::asks));
    for s in g.local_stores.iter().chain(&g.shared_stores) {
        roots.push(s.addr);
        roots.extend(s.words.iter().chain(&s.pairs));
    }
    roots
}

/// How many low bits of its operands a node needs for as many of its own.
fn operands(g: &Graph, n: NodeId, bits: u8) -> Demands {
    let all = || g.operands(n).into_iter().map(|o| (o, ALL)).collect();
    match &g.node(n).kind {
        Kind::Lin(terms, _) => terms.iter().map(|t| (t.0, bits)).collect(),
        Kind::Mul(x, y) => Demands::from_slice(&[(*x, bits), (*y, bits)]),
        Kind::Lo(x) => Demands::from_slice(&[(*x, bits)]),
        Kind::OtherLane(x, from) => Demands::from_slice(&[(*x, bits), (from.lane, ALL), (from.within, ALL)]),
        Kind::Ext(k, _, x) => Demands::from_slice(&[(*x, bits.min(*k))]),
        Kind::Sel(p, x, y) => Demands::from_slice(&[(*p, ALL), (*x, bits), (*y, bits)]),
        Kind::Phi(arms) => arms.iter().map(|a| (a.1, bits)).collect(),
        Kind::LoopPhi(a, b) => a.iter().chain(b).map(|a| (a.1, bits)).collect(),
        Kind::Lop3(lut, x, y, z) => bitwise(g, *lut, [*x, *y, *z], bits),
        Kind::Prmt(x, selector, y) => {
            let Some(from) = sources(g, *selector) else { return all() };
            let mut needs = Demands::from_slice(&[(*selector, ALL)]);
            for c in &from[..usize::from(bits.div_ceil(8)).min(4)] {
                needs.push((if c & 4 == 0 { *x } else { *y }, 8 * (c & 3) + 8));
            }
            needs
        }
        _ => all(),
    }
}

/// What a bitwise function needs of its operands: not what constants among them mask.
fn bitwise(g: &Graph, lut: u8, operands: [NodeId; 3], bits: u8) -> Demands {
    let known = operands.map(|n| match g.node(n).kind {
        Kind::Const(c) => Some(c),
        _ => None,
    });
    // Does the operand make a difference at this bit, for some value of those that are not known?
    let matters = |k: usize, bit: u8| {
        (0..8usize).any(|row| {
            let possible = (0..3).all(|o| known[o].is_none_or(|c| c >> bit & 1 == (row >> (2 - o) & 1) as u64));
            possible && (lut >> row ^ lut >> (row ^ 4 >> k)) & 1 == 1
        })
    };
    let need = |k: usize| (0..bits).rev().find(|bit| known[k].is_none() && matters(k, *bit)).map_or(0, |bit| bit + 1);
    [0, 1, 2].into_iter().map(|k| (operands[k], need(k))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{BlockId, Reason};
    use crate::ranges::graph::node::{Node, Width};

    /// A loop that carries a word round, of which it keeps the high half: the join is node 0, the
    /// permutation node 1. Conditions read it through a mask.
    fn graph(mask: u64, selector: u64) -> Graph {
        let arm = |n| (BlockId(0), NodeId(n));
        let kinds = vec![
            Kind::LoopPhi(SmallVec::from_slice(&[arm(2)]), SmallVec::from_slice(&[arm(1)])),
            Kind::Prmt(NodeId(4), NodeId(3), NodeId(0)),
            Kind::Opaque(Reason::Loaded),
            Kind::Const(selector),
            Kind::Opaque(Reason::Float),
            Kind::Const(mask),
            Kind::Lop3(0xc0, NodeId(0), NodeId(5), NodeId(5)),
        ];
        let node = |kind| Node { kind, width: Width::W32, home: BlockId(0) };
        Graph { nodes: kinds.into_iter().map(node).collect(), conds: vec![Some(NodeId(6))], ..Graph::default() }
    }

    fn replaced(mut g: Graph) -> Option<NodeId> {
        replace_partial_words(&mut g);
        match &g.node(NodeId(1)).kind {
            Kind::Lin(terms, 0) if matches!(terms[..], [(_, 1)]) => Some(terms[0].0),
            _ => None,
        }
    }

    #[test]
    fn low_bytes_that_alone_are_read_stand_for_the_word() {
        assert_eq!(replaced(graph(0xff, 0x7610)), Some(NodeId(4)));
        assert_eq!(replaced(graph(0xffff, 0x7610)), Some(NodeId(4)));
        // The low bytes are those that were there before.
        assert_eq!(replaced(graph(0xff, 0x1054)), Some(NodeId(0)));
    }

    #[test]
    fn a_choice_of_bits_needs_those_that_it_takes() {
        // (a & mask) | (c & !mask), as a field is put into a word.
        let needs = |mask, bits| {
            let kinds = [Kind::Opaque(Reason::Loaded), Kind::Const(mask), Kind::Opaque(Reason::Float)];
            let node = |kind| Node { kind, width: Width::W32, home: BlockId(0) };
            let g = Graph { nodes: kinds.into_iter().map(node).collect(), ..Graph::default() };
            let found = bitwise(&g, 0xe2, [NodeId(0), NodeId(1), NodeId(2)], bits);
            (found[0].1, found[2].1)
        };
        assert_eq!(needs(0x1fe0, 32), (13, 32));
        assert_eq!(needs(0x1fe0, 8), (8, 5));
        assert_eq!(needs(0xffff_ffe0, 32), (32, 5));
    }

    #[test]
    fn a_word_whose_high_bytes_are_read_is_kept() {
        assert_eq!(replaced(graph(0x1_ffff, 0x7610)), None);
        assert_eq!(replaced(graph(0x8000_0000, 0x7610)), None);
        // Bytes exchanged, and a sign.
        assert_eq!(replaced(graph(0xffff, 0x7601)), None);
        assert_eq!(replaced(graph(0xffff, 0x7690)), None);
        // A test of the whole word besides.
        let mut g = graph(0xff, 0x7610);
        g.conds.push(Some(NodeId(0)));
        assert_eq!(replaced(g), None);
    }
}
