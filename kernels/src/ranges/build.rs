//! From mutable variables to the value graph: lazy SSA nodes for everything that addresses and branch conditions need.
//!
//! It owns the translation of operations; `pair` owns the 64-bit pairing table, `division` the reciprocal idiom.

use super::node::{Graph, Kind, Node, NodeId, Width};
use super::ssa::{Def, END, Ssa};
use crate::ir::cfg::Cfg;
use crate::ir::{Addr, BlockId, Class, Function, Mem, Op, Operand, Prefix, Reason, Space, Special, Src, Term, Var};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Nesting of calls after which a value is given up as unknown.
pub(super) const MAX_DEPTH: u32 = 6000;

#[derive(Default)]
pub(super) struct Memo {
    pub(super) w32: HashMap<Def, NodeId>,
    pub(super) w64: HashMap<(Def, Def), NodeId>,
    pub(super) var64: HashMap<Def, NodeId>,
    pub(super) pred: HashMap<Def, NodeId>,
}

/// Builds a [`Graph`].
pub(super) struct Builder<'a> {
    pub(super) ssa: Ssa<'a>,
    pub(super) g: Graph,
    pub(super) memo: Memo,
    /// The ordinary memo, set aside while `given` is in force.
    pub(super) base: Memo,
    /// A predicate known to be true (or, with `true`, false) for the access under construction.
    pub(super) given: Option<(Def, bool)>,
    pub(super) depth: u32,
    pub(super) has_local: bool,
}

/// Builds the graph of a function.
pub(super) fn build(f: &Function, cfg: &Cfg) -> Graph {
    let mut b = Builder {
        ssa: Ssa::new(f, cfg),
        g: Graph { conds: vec![None; f.blocks.len()], ..Graph::default() },
        memo: Memo::default(),
        base: Memo::default(),
        given: None,
        depth: 0,
        has_local: false,
    };
    for blk in &cfg.rpo {
        if let Term::Branch { cond, .. } = &f.blocks[blk.0 as usize].term {
            let n = b.pred_operand(cond, blk.0, END);
            b.g.conds[blk.0 as usize] = Some(n);
        }
    }
    for blk in &cfg.rpo {
        for (i, inst) in f.blocks[blk.0 as usize].insts.iter().enumerate() {
            if let Op::Mem(m) = &inst.op {
                b.access(blk.0, i as u32, inst, m);
            }
        }
    }
    b.local_stores();
    super::invariant::settle(&mut b.g);
    b.g
}

impl Builder<'_> {
    pub(super) fn add(&mut self, kind: Kind, width: Width, home: u32) -> NodeId {
        self.g.nodes.push(Node { kind, width, home: BlockId(home) });
        NodeId(self.g.nodes.len() as u32 - 1)
    }

    pub(super) fn konst(&mut self, v: u64, width: Width) -> NodeId {
        let v = if width == Width::W32 { v & 0xffff_ffff } else { v };
        self.add(Kind::Const(v), width, 0)
    }

    pub(super) fn opaque(&mut self, r: Reason, width: Width, home: u32) -> NodeId {
        self.add(Kind::Opaque(r), width, home)
    }

    pub(super) fn const_of(&self, n: NodeId) -> Option<u64> {
        match self.g.node(n).kind {
            Kind::Const(c) => Some(c),
            _ => None,
        }
    }

    /// Linear combination; nested sums and constants are folded.
    pub(super) fn lin(&mut self, terms: &[(NodeId, i64)], c: i64, width: Width, home: u32) -> NodeId {
        let mut out: SmallVec<[(NodeId, i64); 3]> = SmallVec::new();
        let mut c = c;
        for (n, k) in terms {
            if let Some(v) = self.const_of(*n) {
                let v = if width == Width::W32 { i64::from(v as u32 as i32) } else { v as i64 };
                c = c.wrapping_add(v.wrapping_mul(*k));
            } else if *k != 0 {
                match out.iter_mut().find(|t| t.0 == *n) {
                    Some(t) => t.1 = t.1.wrapping_add(*k),
                    None => out.push((*n, *k)),
                }
            }
        }
        if out.is_empty() {
            return self.konst(c as u64, width);
        }
        if out.len() == 1 && out[0].1 == 1 && c == 0 {
            return out[0].0;
        }
        self.add(Kind::Lin(out, c), width, home)
    }

    pub(super) fn prefix(&mut self, p: Prefix, n: NodeId, width: Width, home: u32) -> NodeId {
        match p {
            Prefix::None => n,
            Prefix::Neg => self.lin(&[(n, -1)], 0, width, home),
            Prefix::Not if width == Width::Pred => self.not(n, home),
            Prefix::Not => self.lin(&[(n, -1)], -1, width, home),
            Prefix::Abs => self.add(Kind::Abs(n), width, home),
        }
    }

    pub(super) fn not(&mut self, n: NodeId, home: u32) -> NodeId {
        match self.const_of(n) {
            Some(c) => self.konst(u64::from(c == 0), Width::Pred),
            None => self.add(Kind::Not(n), Width::Pred, home),
        }
    }

    /// A source as a 32-bit node.
    pub(super) fn operand32(&mut self, o: &Operand, b: u32, i: u32) -> NodeId {
        let n = match o.src {
            Src::Var(v) if self.ssa.f.class(v) == Class::W64 => {
                let n = self.operand64(&Operand::new(o.src), b, i);
                self.low(n, b)
            }
            s => {
                let d = self.ssa.source(s, b, i);
                self.node32(d)
            }
        };
        self.prefix(o.prefix, n, Width::W32, b)
    }

    /// A source as a 64-bit node.
    pub(super) fn operand64(&mut self, o: &Operand, b: u32, i: u32) -> NodeId {
        let n = match o.src {
            Src::Var(v) => match self.ssa.f.class(v) {
                Class::W64 => {
                    let d = self.ssa.source(o.src, b, i);
                    self.node_var64(d)
                }
                _ => {
                    let n = self.operand32(&Operand::new(o.src), b, i);
                    self.extend(false, n, b)
                }
            },
            Src::Pair(lo, hi) => {
                let lo = self.ssa.source(Src::Var(lo), b, i);
                let hi = self.ssa.source(Src::Var(hi), b, i);
                self.node64(lo, hi)
            }
            Src::Zext(v) => {
                let n = self.operand32(&Operand::var(v), b, i);
                self.extend(false, n, b)
            }
            s => self.leaf(s, Width::W64),
        };
        self.prefix(o.prefix, n, Width::W64, b)
    }

    pub(super) fn operand_w(&mut self, o: &Operand, w: Width, b: u32, i: u32) -> NodeId {
        match w {
            Width::W32 => self.operand32(o, b, i),
            Width::W64 => self.operand64(o, b, i),
            Width::Pred => self.pred_operand(o, b, i),
        }
    }

    /// A source as a predicate node.
    pub(super) fn pred_operand(&mut self, o: &Operand, b: u32, i: u32) -> NodeId {
        let d = self.ssa.source(o.src, b, i);
        let n = self.pred(d);
        self.prefix(o.prefix, n, Width::Pred, b)
    }

    pub(super) fn extend(&mut self, signed: bool, n: NodeId, home: u32) -> NodeId {
        match self.const_of(n) {
            Some(c) => {
                let v = if signed { i64::from(c as u32 as i32) as u64 } else { u64::from(c as u32) };
                self.konst(v, Width::W64)
            }
            None => self.add(Kind::Extend(signed, n), Width::W64, home),
        }
    }

    pub(super) fn low(&mut self, n: NodeId, home: u32) -> NodeId {
        match self.g.node(n).kind {
            Kind::Const(c) => self.konst(c, Width::W32),
            Kind::Extend(_, a) => a,
            _ => self.add(Kind::Lo(n), Width::W32, home),
        }
    }

    pub(super) fn high(&mut self, n: NodeId, home: u32) -> NodeId {
        match self.const_of(n) {
            Some(c) => self.konst(c >> 32, Width::W32),
            None => self.add(Kind::Hi(n), Width::W32, home),
        }
    }

    /// A source that is no variable.
    fn leaf(&mut self, s: Src, w: Width) -> NodeId {
        let kind = match s {
            Src::Imm(v) => return self.konst(v, w),
            Src::Param { off, bytes } => {
                if w == Width::W32 && bytes == 8 {
                    Kind::Param(off, 4)
                } else {
                    Kind::Param(off, bytes)
                }
            }
            Src::Special(s) => Kind::Special(s),
            Src::Driver(off) if w == Width::W64 => Kind::Special(Special::DriverBase(off)),
            Src::Driver(_) => Kind::Opaque(Reason::Constant),
            Src::Symbol(s) if w == Width::W64 => Kind::Symbol(s),
            Src::ParamAddress(p) if w == Width::W64 => Kind::ParamAddress(p),
            _ => Kind::Opaque(Reason::Pairing),
        };
        self.add(kind, w, 0)
    }

    /// Is this guard decided by what is given?  `Some(true)`: the guarded instruction executes.
    fn decided(&mut self, guard: &Operand, b: u32, i: u32) -> Option<bool> {
        let (p, not) = self.given?;
        let d = self.ssa.source(guard.src, b, i);
        (d == p && !matches!(d, Def::Leaf(_) | Def::Undef { .. })).then(|| (guard.prefix == Prefix::Not) == not)
    }

    /// Resolves guards that are decided by `given`, or constant; `Err`: the guard is open.
    pub(super) fn settle(&mut self, mut d: Def) -> Result<Def, Operand> {
        for _ in 0..100 {
            let Some(g) = self.ssa.guard(d) else { return Ok(d) };
            let Def::Inst { b, i, .. } = d else { return Ok(d) };
            let decided = match g.src {
                Src::Imm(v) => Some((v != 0) == (g.prefix != Prefix::Not)),
                _ => self.decided(&g, b, i),
            };
            d = match decided {
                Some(true) => {
                    let r = d.raw();
                    self.ssa.strip(r)
                }
                Some(false) => self.ssa.old(d),
                None => return Err(g),
            };
        }
        Ok(d)
    }

    /// 32-bit value of a definition.
    pub(super) fn node32(&mut self, d: Def) -> NodeId {
        let d = self.ssa.strip(d);
        if let Some(n) = self.memo.w32.get(&d) {
            return *n;
        }
        if let Some(n) = self.across_iterations(d, |b| b.node32(d)) {
            return n;
        }
        self.depth += 1;
        let n = if self.depth > MAX_DEPTH { self.opaque(Reason::Budget, Width::W32, 0) } else { self.node32_new(d) };
        self.depth -= 1;
        self.memo.w32.insert(d, n);
        n
    }

    fn node32_new(&mut self, d: Def) -> NodeId {
        match d {
            Def::Undef { why, b, .. } => self.opaque(why, Width::W32, b),
            Def::Leaf(s) => self.leaf(s, Width::W32),
            Def::Phi { var, b } => self.phi(d, b, Width::W32, |bld, p| {
                let x = bld.ssa.read(var, p, END);
                bld.node32(x)
            }),
            Def::Inst { b, i, .. } => {
                if let Some(n) = self.division(d) {
                    return n;
                }
                match self.settle(d) {
                    Ok(e) if e != d => return self.node32(e),
                    Ok(_) => {}
                    Err(g) => {
                        let p = self.pred_operand(&g, b, i);
                        let new = self.node32(d.raw());
                        let old = self.ssa.old(d);
                        let old = self.node32(old);
                        return self.add(Kind::Sel(p, new, old), Width::W32, b);
                    }
                }
                self.body(d, Width::W32)
            }
        }
    }

    /// 64-bit value of the definition of a 64-bit variable.
    pub(super) fn node_var64(&mut self, d: Def) -> NodeId {
        let d = self.ssa.strip(d);
        if let Some(n) = self.memo.var64.get(&d) {
            return *n;
        }
        if let Some(n) = self.across_iterations(d, |b| b.node_var64(d)) {
            return n;
        }
        self.depth += 1;
        let n = if self.depth > MAX_DEPTH { self.opaque(Reason::Budget, Width::W64, 0) } else { self.var64_new(d) };
        self.depth -= 1;
        self.memo.var64.insert(d, n);
        n
    }

    fn var64_new(&mut self, d: Def) -> NodeId {
        match d {
            Def::Undef { why, b, .. } => self.opaque(why, Width::W64, b),
            Def::Leaf(s) => self.leaf(s, Width::W64),
            Def::Phi { var, b } => self.phi_var64(d, var, b),
            Def::Inst { b, i, .. } => {
                match self.settle(d) {
                    Ok(e) if e != d => return self.node_var64(e),
                    Ok(_) => {}
                    Err(g) => {
                        let p = self.pred_operand(&g, b, i);
                        let new = self.node_var64(d.raw());
                        let old = self.ssa.old(d);
                        let old = self.node_var64(old);
                        return self.add(Kind::Sel(p, new, old), Width::W64, b);
                    }
                }
                self.body(d, Width::W64)
            }
        }
    }

    fn phi_var64(&mut self, d: Def, var: Var, b: u32) -> NodeId {
        let n = self.add(Kind::Building, Width::W64, b);
        self.memo.var64.insert(d, n);
        self.fill_phi(n, b, &mut |bld, p| {
            let x = bld.ssa.read(var, p, END);
            bld.node_var64(x)
        });
        n
    }

    pub(super) fn phi(&mut self, d: Def, b: u32, w: Width, mut value: impl FnMut(&mut Self, u32) -> NodeId) -> NodeId {
        let n = self.add(Kind::Building, w, b);
        match w {
            Width::Pred => self.memo.pred.insert(d, n),
            _ => self.memo.w32.insert(d, n),
        };
        self.fill_phi(n, b, &mut value);
        n
    }

    /// Fills a node made as `Building` with its arms.
    pub(super) fn fill_phi(&mut self, n: NodeId, b: u32, value: &mut dyn FnMut(&mut Self, u32) -> NodeId) {
        let cfg = self.ssa.cfg;
        let outer: SmallVec<[(BlockId, NodeId); 2]> =
            cfg.outer_preds(BlockId(b)).iter().map(|p| (*p, value(self, p.0))).collect();
        let kind = match cfg.header_loop(BlockId(b)) {
            None => Kind::Phi(outer),
            Some(l) => Kind::LoopPhi(outer, l.latches.iter().map(|p| (*p, value(self, p.0))).collect()),
        };
        self.g.nodes[n.0 as usize].kind = kind;
    }

    /// A fact known about this iteration says nothing of an earlier one: values that join iterations (at loop headers, and anywhere in
    /// regions without structure) are built without `given`. `None`: it does not matter here.
    pub(super) fn across_iterations(&mut self, d: Def, f: impl FnOnce(&mut Self) -> NodeId) -> Option<NodeId> {
        let Def::Phi { b, .. } = d else { return None };
        let cfg = self.ssa.cfg;
        if self.given.is_none() || (cfg.loop_of_header[b as usize].is_none() && !cfg.in_irreducible[b as usize]) {
            return None;
        }
        let given = self.given.take();
        std::mem::swap(&mut self.memo, &mut self.base);
        let n = f(self);
        std::mem::swap(&mut self.memo, &mut self.base);
        self.given = given;
        Some(n)
    }

    /// 64-bit value of two words.
    pub(super) fn node64(&mut self, lo: Def, hi: Def) -> NodeId {
        let (lo, hi) = (self.ssa.strip(lo), self.ssa.strip(hi));
        if let Some(n) = self.memo.w64.get(&(lo, hi)) {
            return *n;
        }
        for d in [lo, hi] {
            if let Some(n) = self.across_iterations(d, |b| b.node64(lo, hi)) {
                return n;
            }
        }
        self.depth += 1;
        let n = if self.depth > MAX_DEPTH { self.opaque(Reason::Budget, Width::W64, 0) } else { self.pair(lo, hi) };
        self.depth -= 1;
        self.memo.w64.insert((lo, hi), n);
        n
    }

    /// Registers a 64-bit phi before its arms are built.
    pub(super) fn memo64(&mut self, lo: Def, hi: Def, n: NodeId) {
        self.memo.w64.insert((lo, hi), n);
    }

    /// Value of an instruction taken as executed.
    pub(super) fn body(&mut self, d: Def, w: Width) -> NodeId {
        let Def::Inst { b, i, part, .. } = d else { return self.opaque(Reason::Instruction, w, 0) };
        let Some(inst) = self.ssa.inst(d) else { return self.opaque(Reason::Instruction, w, b) };
        let s: SmallVec<[Operand; 4]> = inst.srcs.clone();
        let o = |bld: &mut Self, k: usize| match s.get(k) {
            Some(x) => bld.operand_w(x, w, b, i),
            None => bld.konst(0, w),
        };
        match inst.op {
            Op::Mov => self.operand_w(&s[part as usize], w, b, i),
            Op::Add if part == 0 => {
                let t: SmallVec<[(NodeId, i64); 3]> = (0..s.len()).map(|k| (o(self, k), 1)).collect();
                self.lin(&t, 0, w, b)
            }
            Op::Mad if part == 0 => {
                let (x, y, z) = (o(self, 0), o(self, 1), o(self, 2));
                let p = self.product(x, y, w, b);
                self.lin(&[(p, 1), (z, 1)], 0, w, b)
            }
            Op::MadWide { signed } if part == 0 => {
                let x = self.operand32(&s[0], b, i);
                let y = self.operand32(&s[1], b, i);
                let z = self.operand64(&s[2], b, i);
                let p = match (self.const_of(x), self.const_of(y)) {
                    (_, Some(c)) => {
                        let x = self.extend(signed, x, b);
                        self.lin(&[(x, widen(signed, c))], 0, Width::W64, b)
                    }
                    (Some(c), _) => {
                        let y = self.extend(signed, y, b);
                        self.lin(&[(y, widen(signed, c))], 0, Width::W64, b)
                    }
                    _ => self.add(Kind::MulWide(signed, x, y), Width::W64, b),
                };
                self.lin(&[(p, 1), (z, 1)], 0, Width::W64, b)
            }
            Op::MulHi { signed } if part == 0 => {
                let (x, y) = (o(self, 0), o(self, 1));
                // The addend is 64 bits wide: division by a constant or a prepared divisor adds the dividend to the high word.
                let z = match s.get(2) {
                    Some(z) if !z.is_imm(0) => self.operand64(z, b, i),
                    _ => self.konst(0, Width::W64),
                };
                if self.const_of(z) == Some(0) {
                    self.add(Kind::MulHi(signed, x, y), w, b)
                } else if w == Width::W32 {
                    let p = self.add(Kind::MulWide(signed, x, y), Width::W64, b);
                    let sum = self.lin(&[(p, 1), (z, 1)], 0, Width::W64, b);
                    self.add(Kind::Hi(sum), w, b)
                } else {
                    self.opaque(Reason::Bits, w, b)
                }
            }
            Op::Lea { shift } if part == 0 => {
                let (x, y) = (o(self, 0), o(self, 1));
                self.lin(&[(x, 1i64.wrapping_shl(u32::from(shift))), (y, 1)], 0, w, b)
            }
            Op::LeaHi { shift, sx, x: false } => {
                let lo = self.operand32(&s[0], b, i);
                let v = if sx {
                    self.extend(true, lo, b)
                } else {
                    let l = self.ssa.source(s[0].src, b, i);
                    let h = self.ssa.source(s.get(2).map_or(Src::Imm(0), |x| x.src), b, i);
                    if s[0].prefix == Prefix::None {
                        self.node64(l, h)
                    } else {
                        self.opaque(Reason::Bits, Width::W64, b)
                    }
                };
                let v = self.lin(&[(v, 1i64.wrapping_shl(u32::from(shift)))], 0, Width::W64, b);
                let h = self.high(v, b);
                let y = self.operand32(&s[1], b, i);
                self.lin(&[(h, 1), (y, 1)], 0, Width::W32, b)
            }
            Op::AddX | Op::LeaHi { x: true, .. } | Op::MadX => self.lone_high(d, b),
            Op::Funnel { right, hi, signed, wide } => self.funnel(&s, (right, hi, signed, wide), b, i),
            Op::Shl => {
                let x = o(self, 0);
                let n = self.operand32(&s[1], b, i);
                self.shl(x, n, w, b)
            }
            Op::Shr { signed } => {
                let x = o(self, 0);
                let n = self.operand32(&s[1], b, i);
                self.add(Kind::Shr(signed, x, n), w, b)
            }
            Op::Lop3 { lut } if part == 0 => {
                let (x, y, z) = (o(self, 0), o(self, 1), o(self, 2));
                self.add(Kind::Lop3(lut, x, y, z), w, b)
            }
            Op::MinMax { signed } => {
                let (x, y) = (o(self, 0), o(self, 1));
                let p = self.pred_operand(&s[2], b, i);
                match self.const_of(p) {
                    Some(c) => self.add(Kind::MinMax(c != 0, signed, x, y), w, b),
                    None => {
                        let m = self.add(Kind::MinMax(true, signed, x, y), w, b);
                        let n = self.add(Kind::MinMax(false, signed, x, y), w, b);
                        self.add(Kind::Sel(p, m, n), w, b)
                    }
                }
            }
            Op::Abs => {
                let x = o(self, 0);
                self.add(Kind::Abs(x), w, b)
            }
            Op::Sel => {
                let p = self.pred_operand(&s[2], b, i);
                let (x, y) = (o(self, 0), o(self, 1));
                match self.const_of(p) {
                    Some(0) => y,
                    Some(_) => x,
                    None => self.add(Kind::Sel(p, x, y), w, b),
                }
            }
            Op::Div { signed } => {
                let (x, y) = (o(self, 0), o(self, 1));
                self.add(Kind::Div(signed, x, y), w, b)
            }
            Op::Rem { signed } => {
                let (x, y) = (o(self, 0), o(self, 1));
                self.add(Kind::Rem(signed, x, y), w, b)
            }
            Op::Ext { bits, signed } => self.ext(&s[0], bits, signed, w, b, i),
            Op::Pack => {
                if let (Src::Var(l), Src::Var(h), Prefix::None, Prefix::None) =
                    (s[0].src, s[1].src, s[0].prefix, s[1].prefix)
                {
                    let (l, h) = (self.ssa.source(Src::Var(l), b, i), self.ssa.source(Src::Var(h), b, i));
                    return self.node64(l, h);
                }
                let l = self.ssa.source(s[0].src, b, i);
                let h = self.ssa.source(s[1].src, b, i);
                self.node64(l, h)
            }
            Op::Unpack => {
                let x = self.operand64(&s[0], b, i);
                if part == 0 { self.low(x, b) } else { self.high(x, b) }
            }
            Op::Prmt => {
                let (x, y, z) = (o(self, 0), o(self, 1), o(self, 2));
                self.add(Kind::Prmt(x, y, z), w, b)
            }
            Op::Bounded { lo, hi } => self.add(Kind::Bounded(lo, hi), w, b),
            Op::ParamIndexed { off, bytes, signed } => {
                let idx = self.operand32(&s[0], b, i);
                match self.const_of(idx) {
                    Some(c) if bytes >= 4 => {
                        let at = i64::from(off) + i64::from(c as u32 as i32) + 4 * i64::from(part);
                        let k = if w == Width::W64 { 8 } else { 4 };
                        match u16::try_from(at) {
                            Ok(at) => self.add(Kind::Param(at, k), w, b),
                            Err(_) => self.opaque(Reason::Constant, w, b),
                        }
                    }
                    _ if bytes >= 4 => {
                        let k = if w == Width::W64 { 8 } else { 4 };
                        self.add(Kind::ParamIndexed(off + 4 * i32::from(part), k, false, idx), w, b)
                    }
                    _ => self.add(Kind::ParamIndexed(off, bytes, signed, idx), w, b),
                }
            }
            Op::Mem(Mem {
                space: Space::Local,
                kind: crate::ir::AccessKind::Read,
                bytes,
                addr: Addr::Sum(ref a, off),
            }) if bytes >= 4 => {
                let n = self.local_address(a, off, part, b, i);
                self.has_local = true;
                self.add(Kind::LocalLoad(n, if w == Width::W64 { 8 } else { 4 }), w, b)
            }
            Op::Loaded(off) => {
                let words = self.ssa.f.class(inst.dsts[usize::from(part)]) != Class::W64;
                if w != Width::W64 {
                    return self.opaque(Reason::Loaded, w, b);
                }
                let addr = self.sum64(&s, off + if words { 4 } else { 8 } * i64::from(part), b, i);
                self.add(Kind::Loaded(addr), w, b)
            }
            Op::Mem(ref m) => {
                let r = match (m.space, m.kind) {
                    (Space::Other(r), _) => r,
                    (Space::Local, _) => Reason::Local,
                    (_, crate::ir::AccessKind::Atomic) => Reason::AtomicResult,
                    _ => Reason::Loaded,
                };
                self.opaque(r, w, b)
            }
            Op::Rcp | Op::IntToFloat { .. } | Op::FloatToInt => self.opaque(Reason::Float, w, b),
            Op::Unknown(r) => self.opaque(r, w, b),
            _ => self.opaque(Reason::Instruction, w, b),
        }
    }

    pub(super) fn local_address(&mut self, a: &[Operand], off: i64, part: u8, b: u32, i: u32) -> NodeId {
        let t: SmallVec<[(NodeId, i64); 3]> = a.iter().map(|x| (self.operand32(x, b, i), 1)).collect();
        self.lin(&t, off + 4 * i64::from(part), Width::W32, b)
    }

    fn ext(&mut self, s: &Operand, bits: u8, signed: bool, w: Width, b: u32, i: u32) -> NodeId {
        // The source is read in its own class; 64 bits out of 32 is an extension, 32 out of 64 a truncation.
        let wide_src = match s.src {
            Src::Var(v) => self.ssa.f.class(v) == Class::W64,
            Src::Pair(..) | Src::Zext(_) => true,
            Src::Param { bytes, .. } => bytes == 8,
            Src::Imm(_) => w == Width::W64,
            _ => false,
        };
        let low = if wide_src {
            let x = self.operand64(s, b, i);
            if bits >= 64 && w == Width::W64 {
                return x;
            }
            self.low(x, b)
        } else {
            self.operand32(s, b, i)
        };
        let low = if bits < 32 { self.add(Kind::Ext(bits, signed, low), Width::W32, b) } else { low };
        if w == Width::W64 { self.extend(signed, low, b) } else { low }
    }

    pub(super) fn product(&mut self, x: NodeId, y: NodeId, w: Width, b: u32) -> NodeId {
        match (self.const_of(x), self.const_of(y)) {
            (_, Some(c)) => self.lin(&[(x, coefficient(c, w))], 0, w, b),
            (Some(c), _) => self.lin(&[(y, coefficient(c, w))], 0, w, b),
            _ => self.add(Kind::Mul(x, y), w, b),
        }
    }

    fn shl(&mut self, x: NodeId, n: NodeId, w: Width, b: u32) -> NodeId {
        match self.const_of(n) {
            Some(c) if c >= u64::from(w.bits()) => self.konst(0, w),
            Some(c) => self.lin(&[(x, 1i64.wrapping_shl(c as u32))], 0, w, b),
            None => self.add(Kind::Shl(x, n), w, b),
        }
    }

    fn funnel(&mut self, s: &[Operand], (right, hi, signed, wide): (bool, bool, bool, bool), b: u32, i: u32) -> NodeId {
        let n = self.operand32(&s[1], b, i);
        let zero_hi = s[2].is_imm(0);
        let zero_lo = s[0].is_imm(0);
        if !right && !hi {
            // The low word of a left shift is a plain shift of s0.
            let x = self.operand32(&s[0], b, i);
            return self.shl(x, n, Width::W32, b);
        }
        if right && hi && zero_lo && !wide {
            let x = self.operand32(&s[2], b, i);
            return self.add(Kind::Shr(signed, x, n), Width::W32, b);
        }
        if right && !hi && zero_hi && !wide && !signed {
            let x = self.operand32(&s[0], b, i);
            return self.add(Kind::Shr(false, x, n), Width::W32, b);
        }
        // Through 64 bits.
        let Some(c) = self.const_of(n) else { return self.opaque(Reason::Bits, Width::W32, b) };
        if s[0].prefix != Prefix::None || s[2].prefix != Prefix::None || c >= 64 || (!wide && c >= 32) {
            return self.opaque(Reason::Bits, Width::W32, b);
        }
        let l = self.ssa.source(s[0].src, b, i);
        let h = self.ssa.source(s[2].src, b, i);
        let v = self.node64(l, h);
        let v = if right {
            self.add_shr(signed && hi, v, c, b)
        } else {
            self.lin(&[(v, 1i64.wrapping_shl(c as u32))], 0, Width::W64, b)
        };
        if hi { self.high(v, b) } else { self.low(v, b) }
    }

    pub(super) fn add_shr(&mut self, signed: bool, v: NodeId, c: u64, b: u32) -> NodeId {
        let n = self.konst(c, Width::W32);
        self.add(Kind::Shr(signed, v, n), Width::W64, b)
    }

    /// A high word used on its own: only when it pairs with the low word its carry comes from.
    fn lone_high(&mut self, d: Def, b: u32) -> NodeId {
        let Some(lo) = self.carry_source(d) else { return self.opaque(Reason::Pairing, Width::W32, b) };
        let n = self.node64(lo, d.raw());
        match self.g.node(n).kind {
            Kind::Pack(..) | Kind::Opaque(_) => self.opaque(Reason::Pairing, Width::W32, b),
            _ => self.high(n, b),
        }
    }
}

fn widen(signed: bool, c: u64) -> i64 {
    if signed { i64::from(c as u32 as i32) } else { i64::from(c as u32) }
}

fn coefficient(c: u64, w: Width) -> i64 {
    if w == Width::W32 { i64::from(c as u32 as i32) } else { c as i64 }
}
