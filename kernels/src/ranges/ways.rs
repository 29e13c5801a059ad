//! Ways through the code of a kernel: whether one leads from a place to another past none of some
//! instructions.
//!
//! Owns the search and where fences, orders and barriers stop it, and which branches no launch
//! takes. What an instruction orders is for [`crate::ranges::handovers`] and
//! [`crate::ranges::locks`].

use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Combine, Sync};
use crate::ranges::eval::conditions::Branch;
use crate::ranges::graph::node::{Access, Graph, Kind, NodeId, Width};

/// Nesting of operations that a constant condition is made by.
const MAX_DEPTH: u32 = 24;

/// A place in the code: block, and place among its accesses and synchronising instructions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) block: BlockId,
    pub(super) place: u64,
}

impl Point {
    pub(super) fn of_access(g: &Graph, k: u32) -> Point {
        Point { block: g.accesses[k as usize].block, place: u64::from(k) << 32 | u64::from(u32::MAX) }
    }

    pub(super) fn of_sync(g: &Graph, k: u32) -> Point {
        let sync = &g.syncs[k as usize];
        Point { block: sync.block, place: u64::from(sync.before) << 32 | u64::from(k) }
    }
}

/// Places at which a way ends, by block.
pub(super) type Stops = Vec<Vec<u64>>;

/// The blocks that ways enter.
pub(super) type Entered = Vec<bool>;

/// An edge of the control-flow graph.
pub(super) type Edge = (BlockId, BlockId);

/// The blocks that ways from a place enter, up to stops, and without some edges.
pub(super) fn from(cfg: &Cfg, at: Point, stops: &Stops, cut: &[Edge]) -> Entered {
    let mut entered = vec![false; cfg.succs.len()];
    if !stops[at.block.0 as usize].iter().any(|stop| *stop > at.place) {
        let next = cfg.succs[at.block.0 as usize].iter().copied();
        go_on(cfg, next.filter(|s| !cut.contains(&(at.block, *s))).collect(), stops, cut, &mut entered);
    }
    entered
}

/// Follows ways from the beginnings of blocks.
pub(super) fn go_on(cfg: &Cfg, mut work: Vec<BlockId>, stops: &Stops, cut: &[Edge], entered: &mut Entered) {
    while let Some(b) = work.pop() {
        if !std::mem::replace(&mut entered[b.0 as usize], true) && stops[b.0 as usize].is_empty() {
            work.extend(cfg.succs[b.0 as usize].iter().filter(|s| !cut.contains(&(b, **s))));
        }
    }
}

/// Whether a way among these comes to a place.
pub(super) fn arrives(from: Option<Point>, entered: &Entered, stops: &Stops, to: Point) -> bool {
    let stops = &stops[to.block.0 as usize];
    let straight = from.is_some_and(|from| {
        let between = |stop: &u64| *stop > from.place && *stop < to.place;
        from.block == to.block && from.place < to.place && !stops.iter().any(between)
    });
    straight || entered[to.block.0 as usize] && !stops.iter().any(|stop| *stop < to.place)
}

/// Whether a way leads from one place to another.
pub(super) fn leads(cfg: &Cfg, start: Point, to: Point, stops: &Stops, cut: &[Edge]) -> bool {
    arrives(Some(start), &from(cfg, start, stops, cut), stops, to)
}

/// Where synchronising instructions of a kind are. One with a guard counts if an atomic access
/// beside it has the same guard.
pub(super) fn stops(g: &Graph, blocks: usize, is: impl Fn(Sync) -> bool) -> Stops {
    let mut stops = vec![Vec::new(); blocks];
    for (k, sync) in (0_u32..).zip(&g.syncs).filter(|(_, s)| is(s.sync)) {
        let beside = |a: &Access| a.kind.is_atomic() && a.block == sync.block && a.guard == sync.guard;
        if sync.guard.is_none() || g.accesses.iter().any(beside) {
            stops[sync.block.0 as usize].push(Point::of_sync(g, k).place);
        }
    }
    stops
}

/// The edges of branches on constants that are not taken. `nvcc -G` leaves both ways of a branch on
/// an argument of a template in the code.
pub(super) fn never_taken(g: &Graph, branches: &[Option<Branch>]) -> Vec<Edge> {
    let edge = |(b, branch): (usize, &Option<Branch>)| {
        let Branch { cond, taken, fall } = (*branch)?;
        let never = if constant(g, cond, MAX_DEPTH)? != 0 { fall } else { taken };
        (taken != fall).then_some((BlockId(b as u32), never?))
    };
    branches.iter().enumerate().filter_map(edge).collect()
}

/// What a node is in all launches, if its operands say it by themselves.
fn constant(g: &Graph, n: NodeId, depth: u32) -> Option<u64> {
    let depth = depth.checked_sub(1)?;
    let of = |n: &NodeId| constant(g, *n, depth);
    let signed = |n: &NodeId| {
        let bits = g.node(*n).width.bits();
        Some((of(n)? << (64 - bits)) as i64 >> (64 - bits))
    };
    let node = g.node(n);
    let value = match &node.kind {
        Kind::Const(value) => *value,
        Kind::Not(p) => of(p)? ^ 1,
        Kind::NonZero(value) => u64::from(of(value)? != 0),
        Kind::Combine(with, p, q) => match with {
            Combine::And => of(p)? & of(q)?,
            Combine::Or => of(p)? | of(q)?,
            Combine::Xor => of(p)? ^ of(q)?,
        },
        Kind::PLut(table, [a, b, c]) => u64::from(table >> (of(a)? << 2 | of(b)? << 1 | of(c)?) & 1),
        Kind::Cmp(cmp, is_signed, a, b) => {
            let order = if *is_signed { signed(a)?.cmp(&signed(b)?) } else { of(a)?.cmp(&of(b)?) };
            u64::from(cmp.holds(order))
        }
        Kind::Sel(p, a, b) => {
            if of(p)? != 0 {
                of(a)?
            } else {
                of(b)?
            }
        }
        Kind::Ext(bits, is_signed, a) => {
            let unused = 64_u32.checked_sub(u32::from(*bits)).filter(|unused| *unused < 64)?;
            let top = of(a)? << unused;
            if *is_signed { (top as i64 >> unused) as u64 } else { top >> unused }
        }
        Kind::Lop3(table, a, b, c) => {
            let (a, b, c) = (of(a)?, of(b)?, of(c)?);
            let bits = |row: u8| {
                let pick = |value: u64, bit: u8| if row >> bit & 1 == 1 { value } else { !value };
                pick(a, 2) & pick(b, 1) & pick(c, 0)
            };
            (0..8_u8).filter(|row| table >> row & 1 == 1).fold(0, |all, row| all | bits(row))
        }
        Kind::Lin(terms, more) => {
            let sum =
                |all: u64, (n, factor): &(NodeId, i64)| Some(all.wrapping_add(of(n)?.wrapping_mul(*factor as u64)));
            terms.iter().try_fold(*more as u64, sum)?
        }
        _ => return None,
    };
    Some(match node.width {
        Width::Pred => value & 1,
        Width::W32 => value & 0xffff_ffff,
        Width::W64 => value,
    })
}
