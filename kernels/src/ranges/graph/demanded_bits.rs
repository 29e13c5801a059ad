//! Words of which only some bits are looked at.
//!
//! Owns one pass over the finished graph. Compilers keep a variable of 8 or 16 bits in the low
//! bytes of a register, and leave in the high ones what was there before (`PRMT R, x, 0x7610, R`).
//! Carried round a loop, the whole word is anything, though whoever reads it masks it first. Such a
//! permutation is replaced by the word whose low bytes it takes. They also put predicates by in
//! bits of a register that nothing was written to before (`R & ~4`, then `R | 4` under a
//! predicate): a bitwise function whose bits of interest are the same whatever its operands are is
//! replaced by these.
//!
//! # Why it is sound
//!
//! The low bits of a sum or a product follow from as many low bits of its operands, and each bit of
//! a bitwise function, a choice or a join from the same bit of them. So it is found out, from those
//! who read a node back to its operands, which bits of it can make any difference. A word that
//! agrees in these stands for it.
//!
//! Kernels test how their pointers are aligned (`(p | q) & 15`). Of the pointers such a test reads
//! the lowest byte, so a launch whose other pointers agree in that byte has the same outcome.

use super::node::{Graph, Kind, MapWords, Node, NodeId, Target, WarpDecision, Width};
use crate::ir::BlockId;
use smallvec::SmallVec;

/// All bits of a node.
const ALL: u64 = u64::MAX;

/// Sums within sums that are looked through for pointers.
const MAX_SUMS: u32 = 4;

type Demands = SmallVec<[(NodeId, u64); 4]>;

/// Replaces such words.
pub(crate) fn replace_partial_words(g: &mut Graph) {
    let is_word = |n: &Node| n.width != Width::Pred && matches!(n.kind, Kind::Prmt(..) | Kind::Lop3(..));
    if !g.nodes.iter().any(is_word) {
        return;
    }
    let wanted = demanded(g);
    for (k, bits) in wanted.into_iter().enumerate().filter(|(_, bits)| *bits != 0) {
        match g.nodes[k].kind {
            Kind::Prmt(x, selector, y) => {
                let Some(from) = sources(g, selector) else { continue };
                let bytes = byte_count(bits);
                let takes = |first: u8| (0..bytes).all(|r| from[r] == first + r as u8);
                if let Some((_, word)) = [(0, x), (4, y)].into_iter().find(|s| takes(s.0)) {
                    g.nodes[k].kind = Kind::Lin(SmallVec::from_slice(&[(word, 1)]), 0);
                }
            }
            Kind::Lop3(lut, x, y, z) => {
                let rows = rows(g, [x, y, z]);
                let may_be = |one: u8| {
                    let of = rows.iter().enumerate().filter(|(row, _)| lut >> row & 1 == one);
                    of.fold(0, |bits, row| bits | row.1)
                };
                if may_be(0) & may_be(1) & bits == 0 {
                    g.nodes[k].kind = Kind::Const(may_be(1) & bits);
                }
            }
            _ => {}
        }
    }
}

/// Lets bitwise functions that read no more than the lowest byte of an address read that byte of
/// the pointer parameters in it.
pub(crate) fn replace_low_bytes(g: &mut Graph) {
    let is_pointer = |n: &Node| matches!(n.kind, Kind::Param(_, 8) | Kind::ParamIndexed(_, 8, ..));
    let is_bitwise = |n: &Node| matches!(n.kind, Kind::Lop3(..));
    if !g.nodes.iter().any(is_pointer) || !g.nodes.iter().any(is_bitwise) {
        return;
    }
    let wanted = demanded(g);
    for (k, wanted) in wanted.into_iter().enumerate() {
        let Kind::Lop3(lut, x, y, z) = g.nodes[k].kind else { continue };
        let mut operands = [x, y, z];
        for (operand, (_, bits)) in operands.iter_mut().zip(bitwise(g, lut, [x, y, z], wanted)) {
            if bits == 0 || bits > 0xff {
                continue;
            }
            let Node { kind, width, home } = g.node(*operand).clone();
            let low = match (kind, width) {
                (Kind::Lo(whole), _) => low_byte(g, whole, home, MAX_SUMS),
                (_, Width::W64) => {
                    low_byte(g, *operand, home, MAX_SUMS).map(|low| g.put(Kind::Extend(false, low), width, home))
                }
                _ => None,
            };
            *operand = low.unwrap_or(*operand);
        }
        g.nodes[k].kind = Kind::Lop3(lut, operands[0], operands[1], operands[2]);
    }
}

/// A 32-bit node that agrees in its lowest byte with a sum of 64 bits that has pointer parameters
/// in it; `None`: it is none.
fn low_byte(g: &mut Graph, whole: NodeId, home: BlockId, depth: u32) -> Option<NodeId> {
    let kind = match g.node(whole).kind.clone() {
        Kind::Param(at, 8) => Kind::Param(at, 1),
        Kind::ParamIndexed(at, 8, _, index) => Kind::ParamIndexed(at, 1, false, index),
        Kind::Lin(terms, c) if depth > 0 => {
            let counts = |t: &&(NodeId, i64)| t.1 & 0xff != 0;
            let low: SmallVec<[(Option<NodeId>, NodeId, i64); 3]> =
                terms.iter().filter(counts).map(|t| (low_byte(g, t.0, home, depth - 1), t.0, t.1 & 0xff)).collect();
            if low.iter().all(|t| t.0.is_none()) {
                return None;
            }
            let term = |(found, n, times): (Option<NodeId>, NodeId, i64)| {
                let low = found.unwrap_or_else(|| g.put(Kind::Lo(n), Width::W32, home));
                (low, times)
            };
            Kind::Lin(low.into_iter().map(term).collect(), c & 0xff)
        }
        _ => return None,
    };
    Some(g.put(kind, Width::W32, home))
}

/// How many bytes of a word hold some bits, from the lowest byte on.
fn byte_count(bits: u64) -> usize {
    ((u64::BITS - bits.leading_zeros()).div_ceil(8) as usize).min(4)
}

/// All bits up to the highest one.
fn up_to(bits: u64) -> u64 {
    ALL.checked_shr(bits.leading_zeros()).unwrap_or(0)
}

/// Which byte each byte of a permutation takes: 0 to 3 of the first word, 4 to 7 of the second one,
/// 8 more for its sign.
fn sources(g: &Graph, selector: NodeId) -> Option<[u8; 4]> {
    let Kind::Const(s) = g.node(selector).kind else { return None };
    Some([0, 4, 8, 12].map(|k| (s >> k & 15) as u8))
}

/// Which bits of each node make a difference.
fn demanded(g: &Graph) -> Vec<u64> {
    let mut wanted = vec![0; g.nodes.len()];
    let mut work: Vec<NodeId> = Vec::new();
    let mut demand = |n: NodeId, bits: u64, work: &mut Vec<NodeId>| {
        let before = &mut wanted[n.0 as usize];
        if *before | bits != *before {
            *before |= bits;
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
    wanted
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
    roots.extend(g.map_words.iter().flat_map(MapWords::nodes));
    for s in g.local_stores.iter().chain(&g.shared_stores) {
        roots.push(s.addr);
        roots.extend(s.words.iter().chain(&s.pairs));
    }
    roots
}

/// Which bits of its operands a node needs for some of its own.
fn operands(g: &Graph, n: NodeId, bits: u64) -> Demands {
    let all = || g.operands(n).into_iter().map(|o| (o, ALL)).collect();
    match &g.node(n).kind {
        Kind::Lin(terms, _) => terms.iter().map(|t| (t.0, up_to(bits))).collect(),
        Kind::Mul(x, y) => Demands::from_slice(&[(*x, up_to(bits)), (*y, up_to(bits))]),
        Kind::Lo(x) => Demands::from_slice(&[(*x, bits & 0xffff_ffff)]),
        Kind::OtherLane(x, from) => Demands::from_slice(&[(*x, bits), (from.lane, ALL), (from.within, ALL)]),
        // The sign is one of the bits that are kept.
        Kind::Ext(k, _, x) => Demands::from_slice(&[(*x, up_to(bits) & !ALL.checked_shl((*k).into()).unwrap_or(0))]),
        Kind::Sel(p, x, y) => Demands::from_slice(&[(*p, ALL), (*x, bits), (*y, bits)]),
        Kind::Phi(arms) => arms.iter().map(|a| (a.1, bits)).collect(),
        Kind::LoopPhi(a, b) => a.iter().chain(b).map(|a| (a.1, bits)).collect(),
        Kind::Lop3(lut, x, y, z) => bitwise(g, *lut, [*x, *y, *z], bits),
        Kind::Prmt(x, selector, y) => {
            let Some(from) = sources(g, *selector) else { return all() };
            let mut needs = Demands::from_slice(&[(*selector, ALL)]);
            for c in &from[..byte_count(bits)] {
                needs.push((if c & 4 == 0 { *x } else { *y }, ALL >> (56 - 8 * (c & 3))));
            }
            needs
        }
        _ => all(),
    }
}

/// For each row of a truth table, the bits at which constants among the operands allow it.
fn rows(g: &Graph, operands: [NodeId; 3]) -> [u64; 8] {
    let known = operands.map(|n| match g.node(n).kind {
        Kind::Const(c) => Some(c),
        _ => None,
    });
    std::array::from_fn(|row| {
        let allowed = |o: usize, c: u64| if row >> (2 - o) & 1 == 1 { c } else { !c };
        (0..3).fold(ALL, |bits, o| bits & known[o].map_or(ALL, |c| allowed(o, c)))
    })
}

/// What a bitwise function needs of its operands: not what constants among them mask.
fn bitwise(g: &Graph, lut: u8, operands: [NodeId; 3], bits: u64) -> Demands {
    let rows = rows(g, operands);
    // At which bits does an operand make a difference, for some value of those that are not known?
    let need = |k: usize| {
        let matters = |row: usize| (lut >> row ^ lut >> (row ^ 4 >> k)) & 1 == 1;
        (0..8).filter(|row| matters(*row)).fold(0, |all, row| all | rows[row]) & bits
    };
    [0, 1, 2].into_iter().map(|k| (operands[k], need(k))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Reason;

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
        assert_eq!(needs(0x1fe0, 0xffff_ffff), (0x1fe0, 0xffff_e01f));
        assert_eq!(needs(0x1fe0, 0xff), (0xe0, 0x1f));
        assert_eq!(needs(0xffff_ffe0, 0xffff_ffff), (0xffff_ffe0, 0x1f));
    }

    /// `(undefined & keep) | put`, of which some bits are read.
    fn put_by(keep: u64, put: u64, read: u64) -> [Option<u64>; 2] {
        let [undefined, kept, word] = [0, 4, 5].map(NodeId);
        let kinds = vec![
            Kind::Opaque(Reason::Undefined),
            Kind::Const(keep),
            Kind::Const(put),
            Kind::Const(read),
            Kind::Lop3(0xc0, undefined, NodeId(1), NodeId(1)),
            Kind::Lop3(0xfc, kept, NodeId(2), NodeId(2)),
            Kind::Lop3(0xc0, word, NodeId(3), NodeId(3)),
        ];
        let node = |kind| Node { kind, width: Width::W32, home: BlockId(0) };
        let nodes = kinds.into_iter().map(node).collect();
        let mut g = Graph { nodes, conds: vec![Some(NodeId(6))], ..Graph::default() };
        replace_partial_words(&mut g);
        [kept, word].map(|n| match g.node(n).kind {
            Kind::Const(c) => Some(c),
            _ => None,
        })
    }

    #[test]
    fn bits_that_are_the_same_whatever_was_there_are_known() {
        // (What is put into all that is read needs nothing of the word: nobody asks for it.)
        assert_eq!(put_by(0xffff_fffb, 4, 4), [None, Some(4)]);
        assert_eq!(put_by(0xffff_fffb, 8, 4), [Some(0), Some(0)]);
        assert_eq!(put_by(0xffff_fffb, 8, 12), [Some(0), Some(8)]);
        // Of what was there before, a bit is read.
        assert_eq!(put_by(0xffff_fffb, 4, 5), [None, None]);
        assert_eq!(put_by(0xffff_fffb, 8, 2), [None, None]);
    }

    #[test]
    fn tests_of_alignment_read_the_lowest_byte_of_a_pointer() {
        // (lo(p + 4 * index) | whole) & mask, of which all bits are read.
        let replaced = |mask: u64, wide: bool| {
            let [pointer, index, sum, lowest, mask_at, either] = [0, 1, 2, 3, 4, 5].map(NodeId);
            let width = if wide { Width::W64 } else { Width::W32 };
            let term = if wide { sum } else { lowest };
            let nodes = [
                (Kind::Param(16, 8), Width::W64),
                (Kind::Opaque(Reason::Loaded), Width::W64),
                (Kind::Lin(SmallVec::from_slice(&[(pointer, 1), (index, 256)]), 0x104), Width::W64),
                (Kind::Lo(sum), Width::W32),
                (Kind::Const(mask), width),
                (Kind::Lop3(0xfc, term, term, term), width),
                (Kind::Lop3(0xc0, either, mask_at, mask_at), width),
            ];
            let node = |(kind, width)| Node { kind, width, home: BlockId(0) };
            let nodes = nodes.into_iter().map(node).collect();
            let mut g = Graph { nodes, conds: vec![Some(NodeId(6))], ..Graph::default() };
            replace_low_bytes(&mut g);
            let Kind::Lop3(_, low, ..) = g.node(either).kind else { panic!("a bitwise function") };
            let low = match g.node(low).kind {
                Kind::Extend(false, low) if wide => low,
                _ => low,
            };
            match &g.node(low).kind {
                Kind::Lin(terms, c) => Some((g.node(terms[0].0).kind.clone(), terms.len(), *c)),
                _ => None,
            }
        };
        for wide in [false, true] {
            let byte = Some((Kind::Param(16, 1), 1, 4));
            assert_eq!([0xf, 0xff].map(|mask| replaced(mask, wide)), [byte.clone(), byte], "{wide}");
            let whole = replaced(0x1ff, wide);
            assert!(whole.is_none_or(|sum| sum.0 == Kind::Param(16, 8)), "{wide}");
        }
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
