//! The value of a node: dispatches by kind to the file that owns the operation.
//!
//! Owns the dispatch and the leaves: parameters, launch values, symbols. Operations are in the
//! other files of this folder.

use crate::ir::{BlockId, Reason, Special};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::{AtomKey, AtomKind};
use crate::ranges::domain::condition::Cond;
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::domain::tape::{LIKELY_POINTERS, LaunchInput, input};
use crate::ranges::eval::Eval;
use crate::ranges::eval::arithmetic::{abs, divide, min_max, shift_left, shift_right};
use crate::ranges::eval::bitwise::{extract, lop3, prmt};
use crate::ranges::eval::conditions::implied_constraints;
use crate::ranges::eval::indexed_loads::{indexed, local_load};
use crate::ranges::eval::joins::{join, join_phi};
use crate::ranges::eval::no_wrap::{concrete, floor_div, interp, mul, number};
use crate::ranges::eval::other_lanes::other_lane;
use crate::ranges::eval::recurrences::loop_phi;
use crate::ranges::eval::shared_loads::shared_load;
use crate::ranges::graph::node::{Kind, NodeId};
use smallvec::SmallVec;
use std::rc::Rc;

pub(crate) fn param_value(eval: &mut Eval<'_>, n: NodeId, off: u16, bytes: u8, home: BlockId) -> AffineForm {
    let at = usize::from(off);
    let have = eval.launch.params.len();
    if at + if bytes == 8 { 8 } else { 1 } > have {
        return eval.opaque(AtomKey::Node(n, 0), Reason::Constant, 8 * u32::from(bytes), home);
    }
    let v = input(LaunchInput::Bytes(off, if matches!(bytes, 1 | 2 | 8) { bytes } else { 4 }), &eval.launch);
    if bytes < 8 {
        return AffineForm::konst(v);
    }
    AffineForm::atom(eval.keyed(AtomKey::Param(off), |eval| {
        let a = eval.atoms.new_atom(v, v, None, BlockId(0));
        eval.atoms[a].kind = AtomKind::Param(off);
        a
    }))
}

/// Blocks along an axis up to which the index of a block's cluster is its exact quotient. Machine
/// code for sm_90 multiplies with a rounded reciprocal in single precision: the product is off by
/// less than one part in 2^22, and by less than the reciprocal itself for so many blocks.
const MAX_CLUSTERED: i128 = 1 << 22;

impl Eval<'_> {
    /// The pointer parameter that a form counts from.
    pub(crate) fn pointer_in(&self, f: &AffineForm) -> Option<AtomId> {
        let mut words = f.terms.iter().filter_map(|t| match self.atoms[t.0].kind {
            AtomKind::Param(at) => Some((at, t)),
            _ => None,
        });
        let (Some((at, (atom, times))), None) = (words.next(), words.next()) else { return None };
        (*times == 1 && input(LaunchInput::IsPointer(at), &self.launch).pin() == 1).then_some(*atom)
    }

    /// Bounds of a form: of an address those that hold wherever its pointer leads to. (What rests
    /// on the pointer's number holds for no other launch.)
    pub(crate) fn place_of(&self, f: &AffineForm) -> (Int, Int) {
        let Some(pointer) = self.pointer_in(f) else { return self.atoms.boxed(f, false) };
        let (lo, hi) = self.atoms.boxed(&f.without(pointer), false);
        let [first, last] = [LIKELY_POINTERS.start, LIKELY_POINTERS.end - 1].map(Int::from);
        (-(-first).add_hi(-lo), last.add_hi(hi))
    }
}

pub(crate) fn special_value(eval: &mut Eval<'_>, s: Special) -> AffineForm {
    let l = eval.launch;
    let axis = |v: &[u32; 3], d: u8| Int::from(v.get(usize::from(d)).copied().unwrap_or(1));
    let grid = |d: u8| input(LaunchInput::Grid(d), &l);
    let cluster = |d: u8| axis(&l.cluster, d);
    let clusters = |d: u8| -(-grid(d)).div_euclid(cluster(d).max(1));
    let ranks = l.cluster.iter().fold(Int::new(1), |n, c| n * Int::from((*c).max(1)));
    let (count, kind) = match s {
        Special::Ntid(d) => return AffineForm::konst(axis(&l.block, d)),
        Special::Nctaid(d) => return AffineForm::konst(grid(d)),
        Special::ClusterNctaid(d) => return AffineForm::konst(cluster(d)),
        Special::ClusterSize => return AffineForm::konst(ranks),
        Special::DynamicShared => return AffineForm::konst(l.shared),
        Special::NCluster(d) => return AffineForm::konst(clusters(d)),
        Special::Ctaid(d) if eval.block.is_some_and(|b| b.0 == d) => {
            return AffineForm::konst(eval.block.map_or(0, |b| b.1));
        }
        Special::Tid(d) => (axis(&l.block, d), AtomKind::Index),
        Special::Ctaid(d) => (grid(d), AtomKind::Index),
        Special::Lane => (Int::new(32), AtomKind::Plain),
        Special::ClusterId(d) if grid(d) > MAX_CLUSTERED => (clusters(d), AtomKind::Plain),
        Special::ClusterCtaid(d) if grid(d) > MAX_CLUSTERED => (cluster(d), AtomKind::Plain),
        Special::ClusterId(d) => {
            let block = special_value(eval, Special::Ctaid(d));
            return floor_div(eval, &block, cluster(d).max(1), BlockId(0));
        }
        Special::ClusterCtaid(d) => {
            let (block, index) = (special_value(eval, Special::Ctaid(d)), special_value(eval, Special::ClusterId(d)));
            return block.add(&index, -cluster(d).max(1));
        }
        Special::ClusterRank => {
            let mut rank = AffineForm::default();
            for d in (0..3).rev() {
                let place = special_value(eval, Special::ClusterCtaid(d));
                rank = place.add(&rank, cluster(d).max(1));
            }
            return rank;
        }
        Special::ClusterReciprocal(_) => return eval.opaque(AtomKey::Special(s), Reason::Special, 32, BlockId(0)),
        Special::LocalBase | Special::DriverBase(_) => {
            return AffineForm::atom(eval.keyed(AtomKey::Special(s), |eval| {
                let a = eval.atoms.new_atom(-INF, INF, Some(Reason::Local), BlockId(0));
                eval.atoms[a].kind = AtomKind::Local;
                a
            }));
        }
    };
    if count <= 1 {
        return AffineForm::default();
    }
    AffineForm::atom(eval.keyed(AtomKey::Special(s), |eval| {
        let a = eval.atoms.new_atom(0, count - 1, None, BlockId(0));
        eval.atoms[a].kind = kind;
        a
    }))
}

pub(crate) fn point_atom(eval: &mut Eval<'_>, key: AtomKey, kind: AtomKind) -> AffineForm {
    AffineForm::atom(eval.keyed(key, |eval| {
        // Somewhere in the address space, in no relation to anything. (Addresses have at most
        // 57 bits on x86-64 and AArch64, so what is added to one does not wrap around.)
        let a = eval.atoms.new_atom(0, Int::pow2(57), None, BlockId(0));
        eval.atoms[a].kind = kind;
        a
    }))
}

pub(crate) fn value_of(eval: &mut Eval<'_>, n: NodeId) -> AffineForm {
    let node = eval.g.node(n);
    let (bits, b) = (node.width.bits(), node.home);
    match &node.kind {
        Kind::Building => eval.opaque(AtomKey::Node(n, 1), Reason::Irreducible, bits, b),
        Kind::Const(c) => AffineForm::konst(*c),
        Kind::Opaque(r) => eval.opaque(AtomKey::Node(n, 2), *r, bits, b),
        Kind::Bounded(lo, hi) => {
            let (lo, hi) = (Int::from(*lo), Int::from(*hi));
            AffineForm::atom(eval.keyed(AtomKey::Node(n, 3), |eval| eval.atoms.new_atom(lo, hi, None, b)))
        }
        Kind::Loaded(a) => {
            let f = eval.opaque(AtomKey::Node(n, 2), Reason::Loaded, bits, b);
            if let [(x, _)] = f.terms[..] {
                eval.atoms[x].loaded = Some(*a);
            }
            f
        }
        Kind::Param(off, bytes) => param_value(eval, n, *off, *bytes, b),
        Kind::Special(s) => special_value(eval, *s),
        Kind::Symbol(s) => point_atom(eval, AtomKey::Symbol(s.0), AtomKind::Symbol(s.0)),
        Kind::ParamAddress(p) => point_atom(eval, AtomKey::ParamAddress(*p), AtomKind::ParamAddress(*p)),
        Kind::Lin(t, c) => {
            let mut f = AffineForm::konst(*c);
            for (x, k) in t {
                let v = eval.ev(*x);
                f = f.add(&v, *k);
            }
            f
        }
        Kind::Mul(x, y) => {
            let (x, y) = (eval.ev(*x), eval.ev(*y));
            if x.is_const() || y.is_const() {
                return mul(eval, &x, &y, bits, b);
            }
            let (x, y) = (number(eval, &x, bits, b), number(eval, &y, bits, b));
            mul(eval, &x, &y, bits, b)
        }
        Kind::MulWide(s, x, y) => {
            let (x, y) = (eval.ev(*x), eval.ev(*y));
            let (x, y) = (interp(eval, &x, 32, *s, b), interp(eval, &y, 32, *s, b));
            mul(eval, &x, &y, 64, b)
        }
        Kind::MulHi(s, x, y) => {
            let (x, y) = (eval.ev(*x), eval.ev(*y));
            let (x, y) = (interp(eval, &x, bits, *s, b), interp(eval, &y, bits, *s, b));
            let (x, y) = (concrete(&eval.atoms, &x), concrete(&eval.atoms, &y));
            if bits == 64 {
                let (bx, by) = (eval.bounds(&x, b), eval.bounds(&y, b));
                if [bx.0, bx.1, by.0, by.1].iter().any(|v| v.abs() > 1 << 52) {
                    return eval.opaque(AtomKey::Node(n, 4), Reason::Bits, bits, b);
                }
            }
            let p = mul(eval, &x, &y, 2 * bits, b);
            floor_div(eval, &p, Int::pow2(bits), b)
        }
        Kind::Extend(s, x) => {
            let x = eval.ev(*x);
            interp(eval, &x, 32, *s, b)
        }
        Kind::Lo(x) => {
            let x = eval.ev(*x);
            concrete(&eval.atoms, &x)
        }
        Kind::Hi(x) => {
            let x = eval.ev(*x);
            let x = concrete(&eval.atoms, &x);
            floor_div(eval, &x, Int::pow2(32), b)
        }
        Kind::High(x) => eval.ev(*x).scale(Int::pow2(32)),
        Kind::Pack(lo, hi) => {
            let h = eval.ev(*hi);
            let l = eval.ev(*lo);
            match h.as_const() {
                Some(c) => interp(eval, &l, 32, false, b).plus(c.wrapping_mul(Int::pow2(32))),
                // Words of different instructions: what one lacks of the whole is in the other.
                None if eval.atoms.why(&l).or_else(|| eval.atoms.why(&h)).is_none() => {
                    let l = interp(eval, &l, 32, false, b);
                    l.add(&h, Int::pow2(32))
                }
                None => {
                    let why = match eval.atoms.why(&l).or_else(|| eval.atoms.why(&h)) {
                        Some(r) if r != Reason::Pairing => r,
                        _ => Reason::Pairing,
                    };
                    eval.opaque(AtomKey::Node(n, 5), why, 64, b)
                }
            }
        }
        Kind::Shl(x, k) => shift_left(eval, n, *x, *k, bits, b),
        Kind::Shr(s, x, k) => shift_right(eval, n, *s, *x, *k, bits, b),
        Kind::Lop3(lut, x, y, z) => {
            let v = [eval.ev(*x), eval.ev(*y), eval.ev(*z)];
            lop3(eval, n, v, *lut, bits, b)
        }
        Kind::MinMax(min, s, x, y) => {
            let (x, y) = (eval.ev(*x), eval.ev(*y));
            let (x, y) = (interp(eval, &x, bits, *s, b), interp(eval, &y, bits, *s, b));
            min_max(eval, &x, &y, *min, b)
        }
        Kind::Abs(x) => {
            let x = eval.ev(*x);
            abs(eval, &x, bits, b)
        }
        Kind::Sel(p, x, y) => match eval.ev_pred(*p) {
            Cond::True => eval.ev(*x),
            Cond::False => eval.ev(*y),
            c => {
                let yes = implied_constraints(eval, &c);
                let no = implied_constraints(eval, &c.negate());
                let (x, y) = (eval.ev(*x), eval.ev(*y));
                join(eval, vec![(x, yes), (y, no)], n, 0, b)
            }
        },
        Kind::Div(s, x, y) => divide(eval, n, *s, *x, *y, false, bits, b),
        Kind::Rem(s, x, y) => divide(eval, n, *s, *x, *y, true, bits, b),
        Kind::Ext(k, s, x) => {
            let x = eval.ev(*x);
            extract(eval, n, &x, *k, *s, bits, b)
        }
        Kind::Prmt(x, s, y) => {
            let v = [eval.ev(*x), eval.ev(*s), eval.ev(*y)];
            prmt(eval, n, v, b)
        }
        Kind::Pure(f, _) => match f.range() {
            Some((lo, hi)) => {
                let (lo, hi) = (Int::from(lo), Int::from(hi));
                AffineForm::atom(eval.keyed(AtomKey::Node(n, 3), |eval| eval.atoms.new_atom(lo, hi, None, b)))
            }
            None => eval.opaque(AtomKey::Node(n, 2), f.reason(), bits, b),
        },
        Kind::OtherLane(x, _) => other_lane(eval, n, *x, bits, b),
        Kind::ParamIndexed(off, bytes, s, idx) => indexed(eval, n, *off, *bytes, *s, *idx, b),
        Kind::SharedLoad(at, bytes) => shared_load(eval, n, *at, *bytes, b),
        Kind::LocalLoad(a, bytes) => local_load(eval, n, *a, *bytes, b),
        Kind::Phi(arms) => join_phi(eval, n, arms, b),
        Kind::LoopPhi(outer, back) => loop_phi(eval, n, outer, back, b),
        Kind::Cmp(..) | Kind::FloatCmp(..) | Kind::Not(_) | Kind::Combine(..) | Kind::PLut(..) | Kind::NonZero(_) => {
            eval.opaque(AtomKey::Node(n, 6), Reason::Instruction, bits, b)
        }
    }
}

/// One of several forms; addresses are expanded over the list. `key` names the choice, `index`
/// what it depends on when that is all.
pub(crate) fn alternatives(
    eval: &mut Eval<'_>,
    mut alts: Vec<AffineForm>,
    key: AtomKey,
    index: Option<&AffineForm>,
    b: BlockId,
) -> AffineForm {
    let mut seen: Vec<AffineForm> = Vec::new();
    alts.retain(|a| {
        let new = !seen.contains(a);
        if new {
            seen.push(a.clone());
        }
        new
    });
    if alts.len() == 1 {
        return alts.swap_remove(0);
    }
    AffineForm::atom(eval.keyed(key, |eval| {
        let (mut lo, mut hi) = (INF, -INF);
        let mut deps: SmallVec<[AtomId; 3]> = SmallVec::new();
        for f in &alts {
            let (l, h) = eval.place_of(f);
            lo = lo.min(l);
            hi = hi.max(h);
            deps.extend(f.terms.iter().map(|t| t.0));
        }
        let why = alts.iter().find_map(|f| eval.atoms.why(f));
        if let Some(f) = index {
            deps.extend(f.terms.iter().map(|t| t.0));
        }
        let a = eval.atoms.new_atom(lo, hi, why, b);
        let atom = &mut eval.atoms[a];
        atom.alts = Some(Rc::new(alts));
        atom.deps = deps;
        atom.choice = index.is_none();
        a
    }))
}
