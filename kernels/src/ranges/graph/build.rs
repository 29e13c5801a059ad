//! From mutable variables to the value graph: makes nodes for everything that addresses and branch
//! conditions need, and nothing else.
//!
//! Owns the [`Builder`], operands and joins. `guards` owns what a predicate decides, `operations`
//! what an instruction computes, `pairing` the 64-bit values in two words, and
//! `reciprocal_division` the division idiom.

use super::demanded_bits::{replace_low_bytes, replace_partial_words};
use super::invariant_phis::replace_invariant_phis;
use super::node::{Graph, Kind, Node, NodeId, SyncPoint, Width};
use super::ssa::{Def, END, Ssa};
use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Class, KernelIr, MapStep, MemSpace, Op, Prefix, Reason, Special, Src, SrcOperand, Term, Var};
use crate::ranges::graph::cas_loops::{CompareAndSwap, mark_cas_loads};
use crate::ranges::graph::guards::settled;
use crate::ranges::graph::memory_accesses::{
    MapSteps, access, address_of_parameter, between_parameters, loaded_words, made_tensors, map_step, map_words, stores,
};
use crate::ranges::graph::operations::body;
use crate::ranges::graph::pairing::pair;
use crate::ranges::graph::predicates::pred;
use crate::ranges::graph::reciprocal_division::division;
use crate::ranges::map_words::FollowedWords;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

/// Nesting of calls after which a value is given up as unknown.
pub(crate) const MAX_DEPTH: u32 = 6000;

/// Nodes that were made already, by definition.
#[derive(Default)]
pub(crate) struct BuildMemo {
    pub(crate) w32: FxHashMap<Def, NodeId>,
    pub(crate) w64: FxHashMap<(Def, Def), NodeId>,
    pub(crate) var64: FxHashMap<Def, NodeId>,
    pub(crate) pred: FxHashMap<Def, NodeId>,
}

/// Builds a [`Graph`].
pub(crate) struct Builder<'a> {
    pub(crate) ssa: Ssa<'a>,
    pub(crate) g: Graph,
    pub(crate) memo: BuildMemo,
    /// The ordinary memo, set aside while `given` is set.
    pub(crate) base: BuildMemo,
    /// A predicate known to be true (or, with `true`, false) for the access under construction.
    pub(crate) given: Option<(Def, bool)>,
    pub(crate) depth: u32,
    pub(crate) has_local: bool,
    pub(crate) has_shared: bool,
    /// Compare-and-swaps found so far.
    pub(crate) swaps: Vec<CompareAndSwap>,
    /// Steps of making tensor maps found so far.
    pub(crate) maps: MapSteps,
    /// What makes their words.
    pub(crate) words: FollowedWords,
    /// Nodes that are nothing but what they are made of.
    made: FxHashMap<Node, NodeId>,
    /// Values that no definition is known of.
    undefined: FxHashMap<(Def, Width), NodeId>,
}

/// Builds the graph of a function.
pub(crate) fn build(f: &KernelIr, cfg: &Cfg) -> Graph {
    let mut builder = Builder {
        ssa: Ssa::new(f, cfg),
        g: Graph { conds: vec![None; f.blocks.len()], constants: f.constant_bank.clone(), ..Graph::default() },
        memo: BuildMemo::default(),
        base: BuildMemo::default(),
        given: None,
        depth: 0,
        has_local: false,
        has_shared: false,
        swaps: Vec::new(),
        maps: MapSteps::default(),
        words: FollowedWords::new(f, cfg),
        made: FxHashMap::default(),
        undefined: FxHashMap::default(),
    };
    for blk in &cfg.rpo {
        if let Term::Branch { cond, .. } = &f.blocks[blk.0 as usize].term {
            let n = builder.pred_operand(cond, blk.0, END);
            builder.g.conds[blk.0 as usize] = Some(n);
        }
    }
    for blk in &cfg.rpo {
        for (i, inst) in f.blocks[blk.0 as usize].insts.iter().enumerate() {
            match &inst.op {
                Op::Mem(m) if let MemSpace::Map(step) = m.space => {
                    let note = match step {
                        MapStep::Word | MapStep::Store | MapStep::Load => map_words,
                        MapStep::Shared | MapStep::Global | MapStep::Copy => map_step,
                    };
                    note(&mut builder, (blk.0, i as u32), inst, m, step);
                }
                Op::Mem(m) => access(&mut builder, blk.0, i as u32, inst, m),
                Op::Sync(sync) => {
                    let guard = inst.guard.map(|g| builder.pred_operand(&g, blk.0, i as u32));
                    let before = builder.g.accesses.len() as u32;
                    builder.g.syncs.push(SyncPoint { block: *blk, before, sync: *sync, guard });
                }
                _ => {}
            }
        }
    }
    stores(&mut builder);
    made_tensors(&mut builder);
    loaded_words(&mut builder);
    mark_cas_loads(&mut builder);
    replace_partial_words(&mut builder.g);
    replace_low_bytes(&mut builder.g);
    replace_invariant_phis(&mut builder.g);
    builder.note_halves();
    let constant = |n: &NodeId| matches!(builder.g.node(*n).kind, Kind::Const(_));
    builder.g.split_words = builder.g.nodes.iter().any(|n| match &n.kind {
        Kind::High(_) => true,
        Kind::Pack(_, high) => !constant(high),
        _ => false,
    });
    builder.g
}

impl Builder<'_> {
    /// Notes which words that loops carry round are halves of pairs that they carry round.
    fn note_halves(&mut self) {
        let carried = |n: NodeId| matches!(self.g.node(n).kind, Kind::LoopPhi(..));
        let mut halves = BTreeMap::new();
        for ((lo, hi), whole) in &self.memo.w64 {
            let (Def::Phi { b, .. }, Def::Phi { b: c, .. }) = (lo, hi) else { continue };
            if b != c || !carried(*whole) {
                continue;
            }
            for (d, high) in [(lo, false), (hi, true)] {
                if let Some(n) = self.memo.w32.get(d).filter(|n| carried(**n)) {
                    let first = halves.entry(*n).or_insert((*whole, high));
                    *first = (*first).min((*whole, high));
                }
            }
        }
        self.g.halves = halves;
    }

    /// A node; the same one for what is made alike in the same block. (Each access with a guard of
    /// its own has the values before it built again, and few of them hang on that guard.)
    pub(crate) fn add(&mut self, kind: Kind, width: Width, home: u32) -> NodeId {
        let new = NodeId(self.g.nodes.len() as u32);
        let node = Node { kind, width, home: BlockId(home) };
        if node.kind.is_made() {
            match self.made.entry(node.clone()) {
                Entry::Occupied(known) => return *known.get(),
                Entry::Vacant(place) => place.insert(new),
            };
        }
        self.g.nodes.push(node);
        new
    }

    pub(crate) fn konst(&mut self, v: u64, width: Width) -> NodeId {
        let v = if width == Width::W32 { v & 0xffff_ffff } else { v };
        self.add(Kind::Const(v), width, 0)
    }

    pub(crate) fn opaque(&mut self, r: Reason, width: Width, home: u32) -> NodeId {
        self.add(Kind::Opaque(r), width, home)
    }

    /// What a variable is where no definition is known: the same, whatever is given.
    pub(crate) fn undefined(&mut self, d: Def, why: Reason, width: Width, home: u32) -> NodeId {
        if let Some(known) = self.undefined.get(&(d, width)) {
            return *known;
        }
        let n = self.opaque(why, width, home);
        self.undefined.insert((d, width), n);
        n
    }

    pub(crate) fn const_of(&self, n: NodeId) -> Option<u64> {
        match self.g.node(n).kind {
            Kind::Const(c) => Some(c),
            _ => None,
        }
    }

    /// Linear combination; nested sums and constants are folded.
    pub(crate) fn lin(&mut self, terms: &[(NodeId, i64)], c: i64, width: Width, home: u32) -> NodeId {
        let mut out: SmallVec<[(NodeId, i64); 3]> = SmallVec::new();
        let mut c = c;
        for (n, k) in terms {
            if let Some(v) = self.const_of(*n) {
                let v = if width == Width::W32 { i64::from(v as u32 as i32) } else { v as i64 };
                c = c.wrapping_add(v.wrapping_mul(*k));
            } else if *k != 0 {
                let (n, k, more) = address_of_parameter(&self.g, *n, *k);
                c = c.wrapping_add(more);
                match out.iter_mut().find(|t| t.0 == n) {
                    Some(t) => t.1 = t.1.wrapping_add(k),
                    None => out.push((n, k)),
                }
            }
        }
        c = c.wrapping_add(between_parameters(&self.g, &mut out));
        if out.is_empty() {
            return self.konst(c as u64, width);
        }
        if out.len() == 1 && out[0].1 == 1 && c == 0 {
            return out[0].0;
        }
        self.add(Kind::Lin(out, c), width, home)
    }

    pub(crate) fn prefix(&mut self, p: Prefix, n: NodeId, width: Width, home: u32) -> NodeId {
        match p {
            Prefix::None => n,
            Prefix::Neg => self.lin(&[(n, -1)], 0, width, home),
            Prefix::Not if width == Width::Pred => self.not(n, home),
            Prefix::Not => self.lin(&[(n, -1)], -1, width, home),
        }
    }

    pub(crate) fn not(&mut self, n: NodeId, home: u32) -> NodeId {
        match self.const_of(n) {
            Some(c) => self.konst(u64::from(c == 0), Width::Pred),
            None => self.add(Kind::Not(n), Width::Pred, home),
        }
    }

    /// A source as a 32-bit node.
    pub(crate) fn operand32(&mut self, o: &SrcOperand, b: u32, i: u32) -> NodeId {
        let n = match o.src {
            Src::Var(v) if self.ssa.f.class(v) == Class::W64 => {
                let n = self.operand64(&SrcOperand::new(o.src), b, i);
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
    pub(crate) fn operand64(&mut self, o: &SrcOperand, b: u32, i: u32) -> NodeId {
        let n = match o.src {
            Src::Var(v) => match self.ssa.f.class(v) {
                Class::W64 => {
                    let d = self.ssa.source(o.src, b, i);
                    self.node_var64(d)
                }
                _ => {
                    let n = self.operand32(&SrcOperand::new(o.src), b, i);
                    self.extend(false, n, b)
                }
            },
            Src::Pair(lo, hi) => {
                let lo = self.ssa.source(Src::Var(lo), b, i);
                let hi = self.ssa.source(Src::Var(hi), b, i);
                self.node64(lo, hi)
            }
            Src::Zext(v) => {
                let n = self.operand32(&SrcOperand::var(v), b, i);
                self.extend(false, n, b)
            }
            s => self.leaf(s, Width::W64),
        };
        self.prefix(o.prefix, n, Width::W64, b)
    }

    pub(crate) fn operand_w(&mut self, o: &SrcOperand, w: Width, b: u32, i: u32) -> NodeId {
        match w {
            Width::W32 => self.operand32(o, b, i),
            Width::W64 => self.operand64(o, b, i),
            Width::Pred => self.pred_operand(o, b, i),
        }
    }

    /// A source as a predicate node.
    pub(crate) fn pred_operand(&mut self, o: &SrcOperand, b: u32, i: u32) -> NodeId {
        let d = self.ssa.source(o.src, b, i);
        let n = pred(self, d);
        self.prefix(o.prefix, n, Width::Pred, b)
    }

    pub(crate) fn extend(&mut self, signed: bool, n: NodeId, home: u32) -> NodeId {
        match self.const_of(n) {
            Some(c) => {
                let v = if signed { i64::from(c as u32 as i32) as u64 } else { u64::from(c as u32) };
                self.konst(v, Width::W64)
            }
            None => self.add(Kind::Extend(signed, n), Width::W64, home),
        }
    }

    pub(crate) fn low(&mut self, n: NodeId, home: u32) -> NodeId {
        match self.g.node(n).kind {
            Kind::Const(c) => self.konst(c, Width::W32),
            Kind::Extend(_, a) | Kind::Pack(a, _) => a,
            _ => self.add(Kind::Lo(n), Width::W32, home),
        }
    }

    pub(crate) fn high(&mut self, n: NodeId, home: u32) -> NodeId {
        match self.g.node(n).kind {
            Kind::Const(c) => self.konst(c >> 32, Width::W32),
            Kind::Pack(_, a) => a,
            _ => self.add(Kind::Hi(n), Width::W32, home),
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
            Src::Constant(off) if w == Width::W64 => return self.constant_word(off),
            Src::Driver(_) | Src::Constant(_) => Kind::Opaque(Reason::Constant),
            Src::Symbol(s) if w == Width::W64 => Kind::Symbol(s),
            Src::ParamAddress(p) if w == Width::W64 => Kind::ParamAddress(p),
            _ => Kind::Opaque(Reason::Pairing),
        };
        self.add(kind, w, 0)
    }

    /// The 64-bit word of the constant bank at this offset.
    pub(crate) fn constant_word(&mut self, off: u32) -> NodeId {
        let Some(bank) = &self.g.constants else { return self.opaque(Reason::Constant, Width::W64, 0) };
        let start = Kind::Symbol(bank.start);
        let start = self.add(start, Width::W64, 0);
        let at = self.lin(&[(start, 1)], i64::from(off), Width::W64, 0);
        self.add(Kind::Loaded(at), Width::W64, 0)
    }

    /// A node built one level further down, as long as that is allowed.
    pub(crate) fn deeper(&mut self, w: Width, build: impl FnOnce(&mut Self) -> NodeId) -> NodeId {
        self.depth += 1;
        let n = if self.depth > MAX_DEPTH { self.opaque(Reason::Budget, w, 0) } else { build(self) };
        self.depth -= 1;
        n
    }

    /// 32-bit value of a definition.
    pub(crate) fn node32(&mut self, d: Def) -> NodeId {
        let d = self.ssa.strip(d);
        if let Some(n) = self.memo.w32.get(&d) {
            return *n;
        }
        if let Some(n) = self.across_iterations(d, |builder| builder.node32(d)) {
            return n;
        }
        let n = self.deeper(Width::W32, |builder| builder.node32_new(d));
        self.memo.w32.insert(d, n);
        n
    }

    fn node32_new(&mut self, d: Def) -> NodeId {
        match d {
            Def::Undef { why, b, .. } => {
                let n = self.undefined(d, why, Width::W32, b);
                self.note_before_call(n, d, |builder, d| builder.node32(d))
            }
            Def::Leaf(s) => self.leaf(s, Width::W32),
            Def::Phi { var, b } => self.phi(d, b, Width::W32, |builder, p| {
                let x = builder.ssa.read(var, p, END);
                builder.node32(x)
            }),
            Def::Inst { .. } => {
                if let Some(n) = division(self, d) {
                    return n;
                }
                if let Some(n) = settled(self, d, Width::W32, |builder, d| builder.node32(d)) {
                    return n;
                }
                body(self, d, Width::W32)
            }
        }
    }

    /// 64-bit value of the definition of a 64-bit variable.
    pub(crate) fn node_var64(&mut self, d: Def) -> NodeId {
        let d = self.ssa.strip(d);
        if let Some(n) = self.memo.var64.get(&d) {
            return *n;
        }
        if let Some(n) = self.across_iterations(d, |builder| builder.node_var64(d)) {
            return n;
        }
        let n = self.deeper(Width::W64, |builder| builder.var64_new(d));
        self.memo.var64.insert(d, n);
        n
    }

    fn var64_new(&mut self, d: Def) -> NodeId {
        match d {
            Def::Undef { why, b, .. } => {
                let n = self.undefined(d, why, Width::W64, b);
                self.note_before_call(n, d, |builder, d| builder.node_var64(d))
            }
            Def::Leaf(s) => self.leaf(s, Width::W64),
            Def::Phi { var, b } => self.phi_var64(d, var, b),
            Def::Inst { .. } => {
                if let Some(n) = settled(self, d, Width::W64, |builder, d| builder.node_var64(d)) {
                    return n;
                }
                body(self, d, Width::W64)
            }
        }
    }

    /// Notes what a value was before a call that is not followed, for where an address may come
    /// from.
    fn note_before_call(&mut self, n: NodeId, d: Def, value: fn(&mut Self, Def) -> NodeId) -> NodeId {
        if let Def::Undef { why: Reason::Call, var, b, i } = d {
            let before = self.ssa.read(var, b, i);
            let before = value(self, before);
            self.g.before_call.insert(n, before);
        }
        n
    }

    fn phi_var64(&mut self, d: Def, var: Var, b: u32) -> NodeId {
        let n = self.add(Kind::Building, Width::W64, b);
        self.memo.var64.insert(d, n);
        self.fill_phi(n, b, &mut |builder, p| {
            let x = builder.ssa.read(var, p, END);
            builder.node_var64(x)
        })
    }

    pub(crate) fn phi(&mut self, d: Def, b: u32, w: Width, mut value: impl FnMut(&mut Self, u32) -> NodeId) -> NodeId {
        let n = self.add(Kind::Building, w, b);
        match w {
            Width::Pred => self.memo.pred.insert(d, n),
            _ => self.memo.w32.insert(d, n),
        };
        self.fill_phi(n, b, &mut value)
    }

    /// Fills a node made as `Building` with its arms; the node of such a join.
    pub(crate) fn fill_phi(&mut self, n: NodeId, b: u32, value: &mut dyn FnMut(&mut Self, u32) -> NodeId) -> NodeId {
        let cfg = self.ssa.cfg;
        let outer: SmallVec<[(BlockId, NodeId); 2]> =
            cfg.outer_preds(BlockId(b)).iter().map(|p| (*p, value(self, p.0))).collect();
        let kind = match cfg.header_loop(BlockId(b)) {
            None => Kind::Phi(outer),
            Some(l) => Kind::LoopPhi(outer, l.latches.iter().map(|p| (*p, value(self, p.0))).collect()),
        };
        let node = &mut self.g.nodes[n.0 as usize];
        node.kind = kind;
        match node.kind {
            // (What was built meanwhile may refer to this one, which stays as good.)
            Kind::Phi(_) => *self.made.entry(node.clone()).or_insert(n),
            _ => n,
        }
    }

    /// A fact known about this iteration says nothing of an earlier one: values that join
    /// iterations (at loop headers, and anywhere in regions without structure) are built without
    /// `given`. `None`: it does not matter here.
    pub(crate) fn across_iterations(&mut self, d: Def, f: impl FnOnce(&mut Self) -> NodeId) -> Option<NodeId> {
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
    pub(crate) fn node64(&mut self, lo: Def, hi: Def) -> NodeId {
        let (lo, hi) = (self.ssa.strip(lo), self.ssa.strip(hi));
        if let Some(n) = self.memo.w64.get(&(lo, hi)) {
            return *n;
        }
        for d in [lo, hi] {
            if let Some(n) = self.across_iterations(d, |builder| builder.node64(lo, hi)) {
                return n;
            }
        }
        let n = self.deeper(Width::W64, |builder| pair(builder, lo, hi));
        self.memo.w64.insert((lo, hi), n);
        n
    }

    /// Registers a 64-bit phi before its arms are built.
    pub(crate) fn memo64(&mut self, lo: Def, hi: Def, n: NodeId) {
        self.memo.w64.insert((lo, hi), n);
    }
}
