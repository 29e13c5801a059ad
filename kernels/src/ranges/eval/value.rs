//! The value of a node: dispatches by kind to the file that owns the operation.
//!
//! Owns the dispatch and the leaves: parameters, launch values, symbols. Operations are in the
//! other files of this folder.

use crate::ir::{BlockId, Reason, Special};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::{AtomKey, AtomKind};
use crate::ranges::domain::condition::Cond;
use crate::ranges::domain::int::{INF, Int};
use crate::ranges::domain::tape::{LaunchInput, input};
use crate::ranges::eval::Eval;
use crate::ranges::graph::node::{Kind, NodeId};
use smallvec::SmallVec;
use std::rc::Rc;

impl Eval<'_> {
    pub(crate) fn param(&mut self, n: NodeId, off: u16, bytes: u8, home: BlockId) -> AffineForm {
        let at = usize::from(off);
        let have = self.launch.params.len();
        if at + if bytes == 8 { 8 } else { 1 } > have {
            return self.opaque(AtomKey::Node(n, 0), Reason::Constant, 8 * u32::from(bytes), home);
        }
        let v = input(LaunchInput::Bytes(off, if matches!(bytes, 1 | 2 | 8) { bytes } else { 4 }), &self.launch);
        if bytes < 8 {
            return AffineForm::konst(v);
        }
        AffineForm::atom(self.keyed(AtomKey::Param(off), |e| {
            let a = e.atoms.new_atom(v, v, None, BlockId(0));
            e.atoms[a].kind = AtomKind::Param(off);
            a
        }))
    }

    pub(crate) fn special(&mut self, s: Special) -> AffineForm {
        let l = self.launch;
        let axis = |v: &[u32; 3], d: u8| Int::from(v.get(usize::from(d)).copied().unwrap_or(1));
        let grid = |d: u8| input(LaunchInput::Grid(d), &l);
        let cluster = |d: u8| axis(&l.cluster, d);
        let clusters = |d: u8| -(-grid(d)).div_euclid(cluster(d).max(1));
        let ranks = l.cluster.iter().fold(Int::new(1), |n, c| n * Int::from(*c));
        let (count, kind) = match s {
            Special::Ntid(d) => return AffineForm::konst(axis(&l.block, d)),
            Special::Nctaid(d) => return AffineForm::konst(grid(d)),
            Special::ClusterNctaid(d) => return AffineForm::konst(cluster(d)),
            Special::ClusterSize => return AffineForm::konst(ranks),
            Special::DynamicShared => return AffineForm::konst(l.shared),
            Special::NCluster(d) => return AffineForm::konst(clusters(d)),
            Special::Ctaid(d) if self.block.is_some_and(|b| b.0 == d) => {
                return AffineForm::konst(self.block.map_or(0, |b| b.1));
            }
            Special::Tid(d) => (axis(&l.block, d), AtomKind::Index),
            Special::Ctaid(d) => (grid(d), AtomKind::Index),
            Special::Lane => (Int::new(32), AtomKind::Plain),
            Special::ClusterRank => (ranks, AtomKind::Plain),
            Special::ClusterCtaid(d) => (cluster(d), AtomKind::Plain),
            Special::ClusterId(d) => (clusters(d), AtomKind::Plain),
            Special::LocalBase | Special::DriverBase(_) => {
                return AffineForm::atom(self.keyed(AtomKey::Special(s), |e| {
                    let a = e.atoms.new_atom(-INF, INF, Some(Reason::Local), BlockId(0));
                    e.atoms[a].kind = AtomKind::Local;
                    a
                }));
            }
        };
        if count <= 1 {
            return AffineForm::default();
        }
        AffineForm::atom(self.keyed(AtomKey::Special(s), |e| {
            let a = e.atoms.new_atom(0, count - 1, None, BlockId(0));
            e.atoms[a].kind = kind;
            a
        }))
    }

    pub(crate) fn point(&mut self, key: AtomKey, kind: AtomKind) -> AffineForm {
        AffineForm::atom(self.keyed(key, |e| {
            // Somewhere in the address space, in no relation to anything. (Addresses have at most
            // 57 bits on x86-64 and AArch64, so what is added to one does not wrap around.)
            let a = e.atoms.new_atom(0, Int::pow2(57), None, BlockId(0));
            e.atoms[a].kind = kind;
            a
        }))
    }

    pub(crate) fn value(&mut self, n: NodeId) -> AffineForm {
        let node = self.g.node(n);
        let (bits, b) = (node.width.bits(), node.home);
        match &node.kind {
            Kind::Building => self.opaque(AtomKey::Node(n, 1), Reason::Irreducible, bits, b),
            Kind::Const(c) => AffineForm::konst(*c),
            Kind::Opaque(r) => self.opaque(AtomKey::Node(n, 2), *r, bits, b),
            Kind::Bounded(lo, hi) => {
                let (lo, hi) = (Int::from(*lo), Int::from(*hi));
                AffineForm::atom(self.keyed(AtomKey::Node(n, 3), |e| e.atoms.new_atom(lo, hi, None, b)))
            }
            Kind::Loaded(a) => {
                let f = self.opaque(AtomKey::Node(n, 2), Reason::Loaded, bits, b);
                if let [(x, _)] = f.terms[..] {
                    self.atoms[x].loaded = Some(*a);
                }
                f
            }
            Kind::Param(off, bytes) => self.param(n, *off, *bytes, b),
            Kind::Special(s) => self.special(*s),
            Kind::Symbol(s) => self.point(AtomKey::Symbol(s.0), AtomKind::Symbol(s.0)),
            Kind::ParamAddress(p) => self.point(AtomKey::ParamAddress(*p), AtomKind::ParamAddress(*p)),
            Kind::Lin(t, c) => {
                let mut f = AffineForm::konst(*c);
                for (x, k) in t {
                    let v = self.ev(*x);
                    f = f.add(&v, *k);
                }
                f
            }
            Kind::Mul(x, y) => {
                let (x, y) = (self.ev(*x), self.ev(*y));
                if x.is_const() || y.is_const() {
                    return self.mul(&x, &y, bits, b);
                }
                let (x, y) = (self.number(&x, bits, b), self.number(&y, bits, b));
                self.mul(&x, &y, bits, b)
            }
            Kind::MulWide(s, x, y) => {
                let (x, y) = (self.ev(*x), self.ev(*y));
                let (x, y) = (self.interp(&x, 32, *s, b), self.interp(&y, 32, *s, b));
                self.mul(&x, &y, 64, b)
            }
            Kind::MulHi(s, x, y) => {
                let (x, y) = (self.ev(*x), self.ev(*y));
                let (x, y) = (self.interp(&x, bits, *s, b), self.interp(&y, bits, *s, b));
                let (x, y) = (self.concrete(&x), self.concrete(&y));
                if bits == 64 {
                    let (bx, by) = (self.bounds(&x, b), self.bounds(&y, b));
                    if [bx.0, bx.1, by.0, by.1].iter().any(|v| v.abs() > 1 << 52) {
                        return self.opaque(AtomKey::Node(n, 4), Reason::Bits, bits, b);
                    }
                }
                let p = self.mul(&x, &y, 2 * bits, b);
                self.floor_div(&p, Int::pow2(bits), b)
            }
            Kind::Extend(s, x) => {
                let x = self.ev(*x);
                self.interp(&x, 32, *s, b)
            }
            Kind::Lo(x) => {
                let x = self.ev(*x);
                self.concrete(&x)
            }
            Kind::Hi(x) => {
                let x = self.ev(*x);
                let x = self.concrete(&x);
                self.floor_div(&x, Int::pow2(32), b)
            }
            Kind::High(x) => self.ev(*x).scale(Int::pow2(32)),
            Kind::Pack(lo, hi) => {
                let h = self.ev(*hi);
                let l = self.ev(*lo);
                match h.as_const() {
                    Some(c) => self.interp(&l, 32, false, b).plus(c.wrapping_mul(Int::pow2(32))),
                    // Words of different instructions: what one lacks of the whole is in the other.
                    None if self.atoms.why(&l).or_else(|| self.atoms.why(&h)).is_none() => {
                        let l = self.interp(&l, 32, false, b);
                        l.add(&h, Int::pow2(32))
                    }
                    None => {
                        let why = match self.atoms.why(&l).or_else(|| self.atoms.why(&h)) {
                            Some(r) if r != Reason::Pairing => r,
                            _ => Reason::Pairing,
                        };
                        self.opaque(AtomKey::Node(n, 5), why, 64, b)
                    }
                }
            }
            Kind::Shl(x, k) => self.shift_left(n, *x, *k, bits, b),
            Kind::Shr(s, x, k) => self.shift_right(n, *s, *x, *k, bits, b),
            Kind::Lop3(lut, x, y, z) => {
                let v = [self.ev(*x), self.ev(*y), self.ev(*z)];
                self.lop3(n, v, *lut, bits, b)
            }
            Kind::MinMax(min, s, x, y) => {
                let (x, y) = (self.ev(*x), self.ev(*y));
                let (x, y) = (self.interp(&x, bits, *s, b), self.interp(&y, bits, *s, b));
                self.min_max(&x, &y, *min, b)
            }
            Kind::Abs(x) => {
                let x = self.ev(*x);
                self.abs(&x, bits, b)
            }
            Kind::Sel(p, x, y) => match self.ev_pred(*p) {
                Cond::True => self.ev(*x),
                Cond::False => self.ev(*y),
                c => {
                    let yes = self.conj(&c, false);
                    let no = self.conj(&c.negate(), false);
                    let (x, y) = (self.ev(*x), self.ev(*y));
                    self.join(vec![(x, yes), (y, no)], n, 0, b)
                }
            },
            Kind::Div(s, x, y) => self.divide(n, *s, *x, *y, false, bits, b),
            Kind::Rem(s, x, y) => self.divide(n, *s, *x, *y, true, bits, b),
            Kind::Ext(k, s, x) => {
                let x = self.ev(*x);
                self.extract(n, &x, *k, *s, bits, b)
            }
            Kind::Prmt(x, s, y) => {
                let v = [self.ev(*x), self.ev(*s), self.ev(*y)];
                self.prmt(n, v, b)
            }
            Kind::Pure(f, _) => match f.range() {
                Some((lo, hi)) => {
                    let (lo, hi) = (Int::from(lo), Int::from(hi));
                    AffineForm::atom(self.keyed(AtomKey::Node(n, 3), |e| e.atoms.new_atom(lo, hi, None, b)))
                }
                None => self.opaque(AtomKey::Node(n, 2), f.reason(), bits, b),
            },
            Kind::OtherLane(x, _) => self.other_lane(n, *x, bits, b),
            Kind::ParamIndexed(off, bytes, s, idx) => self.indexed(n, *off, *bytes, *s, *idx, b),
            Kind::SharedLoad(at, bytes) => self.shared_load(n, *at, *bytes, b),
            Kind::LocalLoad(a, bytes) => self.local_load(n, *a, *bytes, b),
            Kind::Phi(arms) => self.phi(n, arms, b),
            Kind::LoopPhi(outer, back) => self.loop_phi(n, outer, back, b),
            Kind::Cmp(..)
            | Kind::FloatCmp(..)
            | Kind::Not(_)
            | Kind::Combine(..)
            | Kind::PLut(..)
            | Kind::NonZero(_) => self.opaque(AtomKey::Node(n, 6), Reason::Instruction, bits, b),
        }
    }

    /// One of several forms; addresses are expanded over the list. `key` names the choice, `index`
    /// what it depends on when that is all.
    pub(crate) fn alternatives(
        &mut self,
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
        AffineForm::atom(self.keyed(key, |e| {
            let (mut lo, mut hi) = (INF, -INF);
            let mut deps: SmallVec<[AtomId; 3]> = SmallVec::new();
            for f in &alts {
                let (l, h) = e.atoms.boxed(f, false);
                lo = lo.min(l);
                hi = hi.max(h);
                deps.extend(f.terms.iter().map(|t| t.0));
            }
            let why = alts.iter().find_map(|f| e.atoms.why(f));
            if let Some(f) = index {
                deps.extend(f.terms.iter().map(|t| t.0));
            }
            let a = e.atoms.new_atom(lo, hi, why, b);
            let atom = &mut e.atoms[a];
            atom.alts = Some(Rc::new(alts));
            atom.deps = deps;
            atom.choice = index.is_none();
            a
        }))
    }
}
