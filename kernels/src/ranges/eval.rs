//! Evaluation of a prepared kernel for one launch: every node becomes an affine form with concrete coefficients.
//!
//! # The domain, and why the result is an upper bound
//!
//! A form `sum(c_i * x_i) + c` over *atoms* is congruent to the register, modulo 2^32 or 2^64. Atoms are thread and block
//! indices, completed iterations of loops, floor quotients, joins, and opaque values. Each has a box (an interval that
//! holds in every execution of the block it is made in) and constraints (forms that are never positive). Guards on the
//! dominator path of a block are further constraints, true whenever the block executes. Additions need no assumption
//! about overflow, for a form is only a congruence. Where an operation needs the *number* (widening, comparing, shifting
//! right, dividing) the form is bounded under the guards of the block that does it; only when the bounds fit the type is
//! the form taken for the number, else the result is a fresh opaque atom.
//!
//! Upper bounds of a form come from the boxes, or from adding a multiple of a constraint that cancels an atom
//! (`f <= f - r*F` for `F <= 0`, `r >= 0`), to a depth of three: each step keeps an upper bound, so their minimum is one.
//! Opaque atoms count as unbounded in the final bound of an address, unless a guard clamps them.
//!
//! Pointer words stay symbolic atoms with a box of one point, so that the base survives in the result; when their value
//! matters (masks, products, comparisons) that is recorded, for the cache in `ranges`.
//!
//! What is assumed: R2UR operands are uniform; loops whose only exit is `i != n` with a step that divides the distance, end;
//! local memory is not reached through generic stores; grid, block and parameters are as recorded.
//!
//! Traps, each of which once made a wrong result possible: a box computed under one block's guards must not be shared with
//! another (content-keyed atoms carry their block, or use no guards); values computed while a symbol stands for a loop's
//! unsolved phi must not survive in memos (`taint`); a guard's fact must not be applied to a value of an earlier iteration
//! (`across_iterations` in `build`); an undefined arm of a join may be dropped only because it was never written.

use super::form::{AtomId, Form, INF, Int, add_hi, div_bound, gcd, mul_sat};
use super::logic::Cond;
use super::node::{Graph, Kind, NodeId};
use crate::access::LaunchArgs;
use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Reason, Special};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// A constraint: never positive.
pub(super) type Con = Rc<Form>;

/// Constraints followed from one address or comparison.
const DEPTH: u32 = 3;
/// Nesting of value evaluation before giving up.
const MAX_NESTING: u32 = 180;

/// What an atom is, where that matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AtomKind {
    Plain,
    /// Thread or block index: every value of the box occurs, independently.
    Index,
    /// Pointer-sized parameter word.
    Param(u16),
    /// Symbol address.
    Symbol(u32),
    /// Address of a parameter.
    ParamAddress(u16),
    /// Base of local memory.
    Local,
    /// Completed iterations of a loop.
    Iteration(u32),
    /// Stands for a phi being solved.
    Unsolved,
}

pub(super) struct Atom {
    pub lo: Int,
    pub hi: Int,
    pub kind: AtomKind,
    pub opaque: Option<Reason>,
    pub home: BlockId,
    pub deps: SmallVec<[AtomId; 3]>,
    pub cons: Vec<Con>,
    pub alts: Option<Rc<Vec<Form>>>,
    /// What it is the rounded-down quotient of.
    pub floor: Option<Rc<(Form, Int)>>,
    /// Which of several values it is depends on more than `deps` (a condition).
    pub choice: bool,
}

/// Identity of an atom by content.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Key {
    Node(NodeId, u8),
    Special(Special),
    Param(u16),
    Symbol(u32),
    ParamAddress(u16),
    Floor(Form, Int),
    Interp(Form, u32, bool),
    Abs(Form, BlockId),
    Mul(Form, Form, BlockId),
    Mask(Form, u64, BlockId),
    Xor(Form, u64),
    Pair(u8, Form, Form, BlockId),
    Lop(u8, Vec<Form>, BlockId),
    Alts(NodeId),
    Table(Form, i32, u8, bool),
    Join(NodeId, u8, Vec<Form>),
    Step(NodeId, Form, Int, Int),
    Range(NodeId, Int, Int),
}

/// A memo entry with the depth of the outermost unsolved phi it depends on.
type Entry<T> = Option<(T, u32)>;
/// Depends on no unsolved phi.
pub(super) const CLEAN: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Memo {
    values: HashMap<NodeId, (Form, u32)>,
    preds: HashMap<NodeId, (Cond, u32)>,
    ctx: HashMap<BlockId, (Rc<Vec<Con>>, u32)>,
    reach: HashMap<BlockId, (bool, u32)>,
}

#[derive(Clone, Copy)]
pub(super) enum Slot {
    Value(NodeId),
    Pred(NodeId),
    Ctx(BlockId),
    Reach(BlockId),
}

/// How far a loop's trip count is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LoopState {
    New,
    Solving,
    Done,
}

/// One evaluation.
pub(super) struct Eval<'g> {
    pub g: &'g Graph,
    pub cfg: &'g Cfg,
    pub f_conds: &'g [Option<super::logic::Branch>],
    pub launch: LaunchArgs<'g>,
    pub atoms: Vec<Atom>,
    pub keys: HashMap<Key, AtomId>,
    /// Keys made while a trip count is being solved (they may be too wide, or assume too much).
    pub key_log: Option<Vec<Key>>,
    pub memo: Memo,
    pub temp: Vec<Slot>,
    pub solving: HashMap<NodeId, (AtomId, u32)>,
    pub depth: u32,
    pub touched: u32,
    nesting: u32,
    /// While a trip count is solved: forms taken for numbers without proof, with their types' ranges.
    pub assumed: Option<Vec<(Form, Int, Int)>>,
    pub loops: Vec<LoopState>,
    pub k_atoms: Vec<Option<AtomId>>,
    pub exact_trip: Vec<bool>,
    pub ctx_busy: Vec<BlockId>,
    pub ctx_cut: usize,
    pub local_busy: Vec<NodeId>,
    steps: Cell<u32>,
    total: Cell<u32>,
    /// Parameter words (4 bytes each) whose value the result depends on.
    pub used: RefCell<WordSet>,
}

/// A set of 4-byte parameter words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WordSet(pub SmallVec<[u64; 16]>);

impl WordSet {
    pub fn new(bytes: usize) -> WordSet {
        WordSet(SmallVec::from_elem(0, bytes.div_ceil(256) + 1))
    }
    pub fn insert(&mut self, off: usize) {
        let w = off / 4;
        if let Some(x) = self.0.get_mut(w / 64) {
            *x |= 1 << (w % 64);
        }
    }
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(k, x)| {
            let mut x = *x;
            std::iter::from_fn(move || {
                if x == 0 {
                    return None;
                }
                let b = x.trailing_zeros() as usize;
                x &= x - 1;
                Some(4 * (64 * k + b))
            })
        })
    }
}

/// Bounds asked for in one evaluation before everything left is unknown.
const MAX_TOTAL: u32 = 150_000;
/// Elimination steps for one bound.
const MAX_STEPS: u32 = 2_500;

impl<'g> Eval<'g> {
    pub fn new(
        g: &'g Graph,
        cfg: &'g Cfg,
        f_conds: &'g [Option<super::logic::Branch>],
        launch: LaunchArgs<'g>,
    ) -> Self {
        Eval {
            g,
            cfg,
            f_conds,
            launch,
            atoms: Vec::new(),
            keys: HashMap::new(),
            key_log: None,
            memo: Memo::default(),
            temp: Vec::new(),
            solving: HashMap::new(),
            depth: 0,
            touched: CLEAN,
            nesting: 0,
            assumed: None,
            loops: vec![LoopState::New; cfg.loops.len()],
            k_atoms: vec![None; cfg.loops.len()],
            exact_trip: vec![false; cfg.loops.len()],
            ctx_busy: Vec::new(),
            ctx_cut: usize::MAX,
            local_busy: Vec::new(),
            steps: Cell::new(0),
            total: Cell::new(0),
            used: RefCell::new(WordSet::new(launch.params.len())),
        }
    }

    /// Has the whole evaluation used up its budget?
    pub fn exhausted(&self) -> bool {
        self.total.get() > MAX_TOTAL
    }

    // ---- atoms

    pub fn a(&self, a: AtomId) -> &Atom {
        &self.atoms[a.0 as usize]
    }

    pub fn new_atom(&mut self, lo: Int, hi: Int, opaque: Option<Reason>, home: BlockId) -> AtomId {
        self.atoms.push(Atom {
            lo,
            hi,
            kind: AtomKind::Plain,
            opaque,
            home,
            deps: SmallVec::new(),
            cons: Vec::new(),
            alts: None,
            floor: None,
            choice: false,
        });
        AtomId(self.atoms.len() as u32 - 1)
    }

    pub fn keyed(&mut self, key: Key, make: impl FnOnce(&mut Self) -> AtomId) -> AtomId {
        if let Some(a) = self.keys.get(&key) {
            return *a;
        }
        let a = make(self);
        if let Some(log) = &mut self.key_log
            && !matches!(key, Key::Special(_) | Key::Param(_) | Key::Symbol(_) | Key::ParamAddress(_))
        {
            log.push(key.clone());
        }
        self.keys.insert(key, a);
        a
    }

    pub fn opaque(&mut self, key: Key, why: Reason, bits: u32, home: BlockId) -> Form {
        let hi = (1 << bits.min(64)) - 1;
        Form::atom(self.keyed(key, |e| e.new_atom(0, hi, Some(why), home)))
    }

    pub fn depends(&self, fs: &[&Form]) -> SmallVec<[AtomId; 3]> {
        fs.iter().flat_map(|f| f.terms.iter().map(|t| t.0)).collect()
    }

    /// Why a form is unknown, if it is.
    pub fn why(&self, f: &Form) -> Option<Reason> {
        f.terms
            .iter()
            .find_map(|t| self.a(t.0).opaque)
            .or_else(|| f.terms.iter().any(|t| self.a(t.0).hi >= INF || self.a(t.0).lo <= -INF).then_some(Reason::Loop))
    }

    // ---- bounds

    fn mark(&self, a: &Atom) {
        if let AtomKind::Param(p) = a.kind {
            let mut u = self.used.borrow_mut();
            u.insert(usize::from(p));
            u.insert(usize::from(p) + 4);
        }
    }

    fn box_hi(&self, f: &Form, strict: bool) -> Int {
        let mut hi = f.c.clamp(-INF, INF);
        for (x, c) in &f.terms {
            let a = self.a(*x);
            self.mark(a);
            let b = if strict && a.opaque.is_some() {
                INF
            } else if *c > 0 {
                mul_sat(*c, a.hi)
            } else {
                mul_sat(*c, a.lo)
            };
            hi = add_hi(hi, b);
        }
        hi
    }

    /// Bounds from the boxes alone.
    pub fn boxed(&self, f: &Form, strict: bool) -> (Int, Int) {
        (-self.box_hi(&f.scale(-1), strict), self.box_hi(f, strict))
    }

    /// All constraints that may say something about the atoms of `f`.
    fn relevant(&self, f: &Form, ctx: &[Con], strict: bool) -> Vec<Con> {
        let mut out: Vec<Con> = Vec::new();
        // What the boxes imply can improve nothing; what is there twice would only be tried twice.
        let put = |c: &Con, out: &mut Vec<Con>| {
            if self.box_hi(c, strict) > 0 && !out.contains(c) {
                out.push(c.clone());
            }
        };
        ctx.iter().for_each(|c| put(c, &mut out));
        let mut seen: SmallVec<[AtomId; 24]> = SmallVec::new();
        let mut work: SmallVec<[AtomId; 24]> = f.terms.iter().map(|t| t.0).collect();
        for c in ctx {
            work.extend(c.terms.iter().map(|t| t.0));
        }
        while let Some(a) = work.pop() {
            if seen.contains(&a) {
                continue;
            }
            seen.push(a);
            let atom = self.a(a);
            for c in &atom.cons {
                put(c, &mut out);
                work.extend(c.terms.iter().map(|t| t.0));
            }
            work.extend(atom.deps.iter().copied());
            if seen.len() > 300 {
                break;
            }
        }
        out
    }

    fn upper(&self, f: &Form, cons: &[Con], depth: u32, strict: bool) -> Int {
        let mut best = self.box_hi(f, strict);
        self.steps.set(self.steps.get() + 1);
        if depth == 0 || cons.is_empty() || self.steps.get() > MAX_STEPS {
            return best;
        }
        let mut ranked: SmallVec<[(Int, AtomId, Int); 8]> = SmallVec::new();
        for (x, c) in &f.terms {
            let a = self.a(*x);
            let span = if strict && a.opaque.is_some() { INF } else { add_hi(a.hi, -a.lo) };
            if span > 0 {
                ranked.push((mul_sat(c.abs(), span), *x, *c));
            }
        }
        ranked.sort_by_key(|r| std::cmp::Reverse(r.0));
        // Deeper levels look less far around.
        let (atoms, tries) = if depth >= DEPTH {
            (3, 8)
        } else if depth == 2 {
            (2, 6)
        } else {
            (2, 4)
        };
        for (_, x, c) in ranked.into_iter().take(atoms) {
            let mut tried = 0;
            for g in cons {
                let gx = g.coef(x);
                if gx == 0 || (gx > 0) != (c > 0) {
                    continue;
                }
                tried += 1;
                if tried > tries {
                    break;
                }
                let d = gcd(c, gx);
                let (mf, mg) = (gx.abs() / d, c.abs() / d);
                let Some(rest) = f.combine(mf, g, -mg) else { continue };
                let v = div_bound(self.upper(&rest, cons, depth - 1, strict), mf);
                best = best.min(v);
            }
        }
        best
    }

    /// Integer bounds of a form under constraints; `strict`: opaque atoms are unbounded.
    pub fn bounds_in(&self, f: &Form, ctx: &[Con], strict: bool) -> (Int, Int) {
        if let Some(c) = f.as_const() {
            return (c, c);
        }
        self.total.set(self.total.get().saturating_add(self.steps.get() + 1));
        self.steps.set(0);
        if self.exhausted() {
            return self.boxed(f, strict);
        }
        let cons = self.relevant(f, ctx, strict);
        if cons.is_empty() {
            return self.boxed(f, strict);
        }
        let lo = -self.upper(&f.scale(-1), &cons, DEPTH, strict);
        self.total.set(self.total.get().saturating_add(self.steps.get()));
        self.steps.set(0);
        let hi = self.upper(f, &cons, DEPTH, strict);
        // The values are congruent to the constant modulo the common factor.
        let g = f.gcd();
        if g < 2 {
            return (lo, hi);
        }
        let up = if lo > -INF { lo + (f.c - lo).rem_euclid(g) } else { lo };
        let down = if hi < INF { hi - (hi - f.c).rem_euclid(g) } else { hi };
        (up, down)
    }

    /// Bounds whenever block `b` executes.
    pub fn bounds(&mut self, f: &Form, b: BlockId) -> (Int, Int) {
        if let Some(c) = f.as_const() {
            return (c, c);
        }
        let ctx = self.ctx(b);
        self.bounds_in(f, &ctx, false)
    }

    // ---- modular values as numbers

    /// The number that a form modulo 2^bits stands for.
    pub fn interp(&mut self, f: &Form, bits: u32, signed: bool, b: BlockId) -> Form {
        let m: Int = 1 << bits;
        let (tlo, thi) = if signed { (-(m >> 1), (m >> 1) - 1) } else { (0, m - 1) };
        if let Some(c) = f.as_const() {
            let c = c.rem_euclid(m);
            return Form::konst(if c > thi { c - m } else { c });
        }
        if self.assumed.is_some() {
            let (lo, hi) = self.boxed(f, false);
            if lo <= -INF || hi >= INF {
                // Which of the numbers congruent to it is meant shows in the first iteration.
                let mut first = f.clone();
                for (x, _) in &f.terms {
                    if matches!(self.a(*x).kind, AtomKind::Iteration(_)) {
                        first = first.without(*x);
                    }
                }
                let (lo, hi) = self.bounds(&first, b);
                if let Some(s) = [0, m, -m].into_iter().find(|s| tlo <= lo + s && hi + s <= thi) {
                    let f = f.plus(s);
                    if let Some(v) = &mut self.assumed {
                        v.push((f.clone(), tlo, thi));
                    }
                    return f;
                }
            }
        }
        let (lo, hi) = self.bounds(f, b);
        for s in [0, m, -m] {
            if tlo <= lo + s && hi + s <= thi {
                return f.plus(s);
            }
        }
        let why = self.why(f).unwrap_or(Reason::MayWrap);
        Form::atom(self.keyed(Key::Interp(f.clone(), bits, signed), |e| {
            let a = e.new_atom(tlo, thi, Some(why), b);
            e.atoms[a.0 as usize].deps = e.depends(&[f]);
            a
        }))
    }

    /// `floor(f / d)` of an integer form; exact multiples are split off.
    pub fn floor_div(&mut self, f: &Form, d: Int, b: BlockId) -> Form {
        if d == 1 {
            return f.clone();
        }
        let mut whole = Form::konst(f.c.div_euclid(d));
        let mut rest = Form::konst(f.c.rem_euclid(d));
        for (x, c) in &f.terms {
            if c % d == 0 {
                whole.terms.push((*x, c / d));
            } else {
                rest.terms.push((*x, *c));
            }
        }
        if rest.terms.is_empty() {
            return whole;
        }
        if let Some((inner, unit)) = self.nested_floor(&rest)
            && let Some(d) = d.checked_mul(unit).filter(|d| *d < 1 << 80)
        {
            return whole.add(&self.floor_div(&inner, d, b), 1);
        }
        let (lo, hi) = self.bounds(&rest, b);
        if lo > -INF && hi < INF && lo.div_euclid(d) == hi.div_euclid(d) {
            return whole.plus(lo.div_euclid(d));
        }
        let (rest, d) = self.reciprocal(rest, d, (lo, hi));
        let (lo, hi) = if rest.c == 0 && d > 1 { self.bounds(&rest, b) } else { (lo, hi) };
        if lo > -INF && hi < INF && lo.div_euclid(d) == hi.div_euclid(d) {
            return whole.plus(lo.div_euclid(d));
        }
        let q = self.keyed(Key::Floor(rest.clone(), d), |e| {
            // Shared between blocks: no guards here.
            let (lo, hi) = e.bounds_in(&rest, &[], false);
            let (slo, shi) = e.bounds_in(&rest, &[], true);
            let why = (slo <= -INF || shi >= INF).then(|| e.why(&rest)).flatten();
            let q = e.new_atom(div_bound(lo, d), div_bound(hi, d), why, b);
            let one = Form::atom(q);
            let c1 = one.scale(d).add(&rest, -1);
            let c2 = rest.add(&one, -d).plus(-(d - 1));
            let deps = e.depends(&[&rest]);
            let a = &mut e.atoms[q.0 as usize];
            a.cons = vec![Rc::new(c1), Rc::new(c2)];
            a.deps = deps;
            a.floor = Some(Rc::new((rest.clone(), d)));
            q
        });
        whole.add(&Form::atom(q), 1)
    }

    /// `floor(F / u) + I`, with integers only in I, as the numerator over u: `F + u*I`. Then
    /// `floor((floor(F / u) + I) / d) = floor((F + u*I) / (u*d))`.
    fn nested_floor(&self, f: &Form) -> Option<(Form, Int)> {
        let mut found = f.terms.iter().filter(|t| t.1 == 1 && self.a(t.0).floor.is_some());
        let (x, _) = *found.next()?;
        if found.next().is_some() {
            return None;
        }
        let inner = self.a(x).floor.clone()?;
        let others = f.without(x);
        // Saturated or unbounded parts are no integers to calculate with.
        let big = |v: Int| v.abs() > 1 << 70;
        let unit = inner.1;
        if big(unit) || big(others.c) || others.terms.iter().chain(&inner.0.terms).any(|t| big(t.1)) || big(inner.0.c) {
            return None;
        }
        others.combine(unit, &inner.0, 1).map(|n| (n, unit))
    }

    /// Division by a rounded reciprocal: `floor(m*n / d)` is `floor(n / e)` for `e = ceil(d / m)`, when every n is in
    /// `0..d / (m*e - d)`.
    fn reciprocal(&self, f: Form, d: Int, (lo, hi): (Int, Int)) -> (Form, Int) {
        let m = f.gcd();
        if f.c != 0 || m < 2 || lo < 0 || hi >= INF || m >= d {
            return (f, d);
        }
        let e = -((-d).div_euclid(m));
        let error = m * e - d;
        // n * error < d, with n at most hi / m.
        if (hi / m).checked_mul(error).is_none_or(|x| x >= d) {
            return (f, d);
        }
        let n = Form { terms: f.terms.iter().map(|t| (t.0, t.1 / m)).collect(), c: 0 };
        (n, e)
    }

    /// Replaces pointer atoms by their values.
    pub fn concrete(&self, f: &Form) -> Form {
        let mut f = f.clone();
        for (x, c) in f.terms.clone() {
            let a = self.a(x);
            if matches!(a.kind, AtomKind::Param(_)) {
                self.mark(a);
                f = f.without(x).plus(c.wrapping_mul(a.lo));
            }
        }
        f
    }

    /// Product of two integer or modular forms.
    pub fn mul(&mut self, a: &Form, b: &Form, bits: u32, home: BlockId) -> Form {
        let (a, b) = (self.concrete(a), self.concrete(b));
        if let Some(c) = a.as_const() {
            return b.scale(c);
        }
        if let Some(c) = b.as_const() {
            return a.scale(c);
        }
        let (ca, cb) = (a.c, b.c);
        let (va, vb) = (a.plus(-ca), b.plus(-cb));
        let linear = va.scale(cb).add(&vb, ca).plus(ca.wrapping_mul(cb));
        let (la, ha) = self.bounds(&va, home);
        let (lb, hb) = self.bounds(&vb, home);
        if ha >= INF || hb >= INF || la <= -INF || lb <= -INF {
            let why = self.why(&va).or_else(|| self.why(&vb)).unwrap_or(Reason::Loop);
            // Congruent, but nothing is known of the product as a number.
            let p = self.keyed(Key::Mul(va.clone(), vb.clone(), home), |e| {
                let p = e.new_atom(-INF, INF, Some(why), home);
                e.atoms[p.0 as usize].deps = e.depends(&[&va, &vb]);
                p
            });
            let _ = bits;
            return linear.add(&Form::atom(p), 1);
        }
        let why = self.why(&va).or_else(|| self.why(&vb));
        let p = self.keyed(Key::Mul(va.clone(), vb.clone(), home), |e| {
            let corners = [mul_sat(la, lb), mul_sat(la, hb), mul_sat(ha, lb), mul_sat(ha, hb)];
            let lo = corners.iter().copied().min().unwrap_or(-INF);
            let hi = corners.iter().copied().max().unwrap_or(INF);
            let p = e.new_atom(lo, hi, why, home);
            let deps = e.depends(&[&va, &vb]);
            let one = Form::atom(p);
            let atom = &mut e.atoms[p.0 as usize];
            atom.deps = deps;
            let small = ha < 1 << 62 && hb < 1 << 62;
            if why.is_none() && la >= 0 && lb >= 0 && small {
                // McCormick.
                let k = la * lb;
                atom.cons = vec![
                    Rc::new(one.add(&va, -hb)),
                    Rc::new(one.add(&vb, -ha)),
                    Rc::new(va.scale(lb).add(&vb, la).add(&one, -1).plus(-k)),
                ];
            }
            p
        });
        linear.add(&Form::atom(p), 1)
    }

    // ---- memo

    fn remember<T>(&mut self, t: u32, slot: Slot, put: impl FnOnce(&mut Memo) -> T) {
        if t != CLEAN {
            self.temp.push(slot);
        }
        put(&mut self.memo);
    }

    /// Starts to treat something as unsolved; returns what [`Eval::solved`] needs.
    pub fn unsolved(&mut self) -> usize {
        self.depth += 1;
        self.temp.len()
    }

    /// Forgets everything that was computed with the innermost unsolved symbol.
    pub fn solved(&mut self, mark: usize) {
        while self.temp.len() > mark {
            match self.temp.pop() {
                Some(Slot::Value(n)) => drop(self.memo.values.remove(&n)),
                Some(Slot::Pred(n)) => drop(self.memo.preds.remove(&n)),
                Some(Slot::Ctx(b)) => drop(self.memo.ctx.remove(&b)),
                Some(Slot::Reach(b)) => drop(self.memo.reach.remove(&b)),
                None => break,
            }
        }
        self.depth -= 1;
        if self.touched > self.depth {
            self.touched = CLEAN;
        }
    }

    fn touch<T: Clone>(&mut self, e: &Entry<T>) -> Option<T> {
        let (v, t) = e.as_ref()?;
        self.touched = self.touched.min(*t);
        Some(v.clone())
    }

    /// Runs `f`, and says on which unsolved symbol its result depends.
    fn tracked<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> (T, u32) {
        let before = std::mem::replace(&mut self.touched, CLEAN);
        let v = f(self);
        let t = self.touched;
        self.touched = before.min(t);
        (v, t)
    }

    /// Value of an integer node.
    pub fn ev(&mut self, n: NodeId) -> Form {
        let e = self.memo.values.get(&n).cloned();
        if let Some(v) = self.touch(&e) {
            return v;
        }
        let node = self.g.node(n);
        let (bits, home) = (node.width.bits(), node.home);
        if self.nesting > MAX_NESTING || self.exhausted() {
            return self.opaque(Key::Node(n, 9), Reason::Budget, bits, home);
        }
        self.nesting += 1;
        let (v, t) = self.tracked(|e| e.value(n).norm(bits));
        self.nesting -= 1;
        self.remember(t, Slot::Value(n), |m| m.values.insert(n, (v.clone(), t)));
        v
    }

    /// Truth of a predicate node.
    pub fn evp(&mut self, n: NodeId) -> Cond {
        let e = self.memo.preds.get(&n).cloned();
        if let Some(v) = self.touch(&e) {
            return v;
        }
        if self.nesting > MAX_NESTING || self.exhausted() {
            return Cond::Unknown;
        }
        // A predicate that depends on itself is unknown meanwhile.
        self.memo.preds.insert(n, (Cond::Unknown, CLEAN));
        self.nesting += 1;
        let (v, t) = self.tracked(|e| e.truth(n));
        self.nesting -= 1;
        self.remember(t, Slot::Pred(n), |m| m.preds.insert(n, (v.clone(), t)));
        v
    }

    /// Constraints that hold whenever block `b` executes.
    pub fn ctx(&mut self, b: BlockId) -> Rc<Vec<Con>> {
        let e = self.memo.ctx.get(&b).cloned();
        if let Some(v) = self.touch(&e) {
            return v;
        }
        if b.0 == 0 {
            return Rc::new(Vec::new());
        }
        if let Some(k) = self.ctx_busy.iter().position(|x| *x == b) {
            self.ctx_cut = self.ctx_cut.min(k);
            return Rc::new(Vec::new());
        }
        let level = self.ctx_busy.len();
        self.ctx_busy.push(b);
        let before = std::mem::replace(&mut self.ctx_cut, usize::MAX);
        let (v, t) = self.tracked(|e| e.dominator_facts(b));
        self.ctx_busy.pop();
        let v = Rc::new(v);
        // A context that lacks what an outer one is still computing must not be kept.
        let cut = self.ctx_cut;
        if cut >= level {
            self.remember(t, Slot::Ctx(b), |m| m.ctx.insert(b, (v.clone(), t)));
            self.ctx_cut = before;
        } else {
            self.ctx_cut = before.min(cut);
        }
        v
    }

    /// May block `b` execute?
    pub fn reachable(&mut self, b: BlockId) -> bool {
        let e = self.memo.reach.get(&b).cloned();
        if let Some(v) = self.touch(&e) {
            return v;
        }
        if b.0 == 0 {
            return true;
        }
        let (v, t) = self.tracked(|e| e.may_reach(b));
        self.remember(t, Slot::Reach(b), |m| m.reach.insert(b, (v, t)));
        v
    }

    // ---- leaves

    /// A 32-bit parameter word.
    pub fn param_word(&self, off: usize) -> Option<u32> {
        let p = self.launch.params;
        if off >= p.len() {
            return None;
        }
        self.used.borrow_mut().insert(off);
        if !off.is_multiple_of(4) {
            self.used.borrow_mut().insert(off + 4);
        }
        let mut b = [0; 4];
        let n = (p.len() - off).min(4);
        b[..n].copy_from_slice(&p[off..off + n]);
        Some(u32::from_le_bytes(b))
    }

    pub fn param(&mut self, n: NodeId, off: u16, bytes: u8, home: BlockId) -> Form {
        let at = usize::from(off);
        let unknown = |e: &mut Self| e.opaque(Key::Node(n, 0), Reason::Constant, 8 * u32::from(bytes), home);
        match bytes {
            8 => {
                let p = self.launch.params;
                if at + 8 > p.len() {
                    return unknown(self);
                }
                let mut b = [0; 8];
                b.copy_from_slice(&p[at..at + 8]);
                let v = Int::from(u64::from_le_bytes(b));
                Form::atom(self.keyed(Key::Param(off), |e| {
                    let a = e.new_atom(v, v, None, BlockId(0));
                    e.atoms[a.0 as usize].kind = AtomKind::Param(off);
                    a
                }))
            }
            _ => match self.param_word(at) {
                None => unknown(self),
                Some(w) => Form::konst(match bytes {
                    1 => Int::from(w as u8),
                    2 => Int::from(w as u16),
                    _ => Int::from(w),
                }),
            },
        }
    }

    pub fn special(&mut self, s: Special, home: BlockId) -> Form {
        let l = &self.launch;
        let axis = |v: &[u32; 3], d: u8| v.get(usize::from(d)).copied().unwrap_or(1);
        let cluster = l.cluster;
        let (hi, kind) = match s {
            Special::Ntid(d) => return Form::konst(Int::from(axis(&l.block, d))),
            Special::Nctaid(d) => return Form::konst(Int::from(axis(&l.grid, d))),
            Special::ClusterNctaid(d) => return Form::konst(Int::from(axis(&cluster, d))),
            Special::ClusterSize => return Form::konst(cluster.iter().map(|c| Int::from(*c)).product()),
            Special::DynamicShared => return Form::konst(Int::from(l.shared)),
            Special::NCluster(d) => {
                return Form::konst(Int::from(axis(&l.grid, d).div_ceil(axis(&cluster, d).max(1))));
            }
            Special::Tid(d) => (axis(&l.block, d), AtomKind::Index),
            Special::Ctaid(d) => (axis(&l.grid, d), AtomKind::Index),
            Special::Lane => (32, AtomKind::Plain),
            Special::ClusterRank => (cluster.iter().product::<u32>().max(1), AtomKind::Plain),
            Special::ClusterCtaid(d) => (axis(&cluster, d), AtomKind::Plain),
            Special::ClusterId(d) => (axis(&l.grid, d).div_ceil(axis(&cluster, d).max(1)), AtomKind::Plain),
            Special::LocalBase | Special::DriverBase(_) => {
                return Form::atom(self.keyed(Key::Special(s), |e| {
                    let a = e.new_atom(-INF, INF, Some(Reason::Local), BlockId(0));
                    e.atoms[a.0 as usize].kind = AtomKind::Local;
                    a
                }));
            }
        };
        let _ = home;
        if hi <= 1 {
            return Form::default();
        }
        Form::atom(self.keyed(Key::Special(s), |e| {
            let a = e.new_atom(0, Int::from(hi) - 1, None, BlockId(0));
            e.atoms[a.0 as usize].kind = kind;
            a
        }))
    }

    fn point(&mut self, key: Key, kind: AtomKind) -> Form {
        Form::atom(self.keyed(key, |e| {
            // Somewhere in the address space, in no relation to anything.
            let a = e.new_atom(0, (1 << 64) - 1, None, BlockId(0));
            e.atoms[a.0 as usize].kind = kind;
            a
        }))
    }

    // ---- values

    fn value(&mut self, n: NodeId) -> Form {
        let node = self.g.node(n);
        let (bits, b) = (node.width.bits(), node.home);
        match &node.kind {
            Kind::Building => self.opaque(Key::Node(n, 1), Reason::Irreducible, bits, b),
            Kind::Const(c) => Form::konst(Int::from(*c)),
            Kind::Opaque(r) => self.opaque(Key::Node(n, 2), *r, bits, b),
            Kind::Bounded(lo, hi) => {
                let (lo, hi) = (Int::from(*lo), Int::from(*hi));
                Form::atom(self.keyed(Key::Node(n, 3), |e| e.new_atom(lo, hi, None, b)))
            }
            Kind::Param(off, bytes) => self.param(n, *off, *bytes, b),
            Kind::Special(s) => self.special(*s, b),
            Kind::Symbol(s) => self.point(Key::Symbol(s.0), AtomKind::Symbol(s.0)),
            Kind::ParamAddress(p) => self.point(Key::ParamAddress(*p), AtomKind::ParamAddress(*p)),
            Kind::Lin(t, c) => {
                let mut f = Form::konst(Int::from(*c));
                for (x, k) in t {
                    let v = self.ev(*x);
                    f = f.add(&v, Int::from(*k));
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
                        return self.opaque(Key::Node(n, 4), Reason::Bits, bits, b);
                    }
                }
                let p = self.mul(&x, &y, 2 * bits, b);
                self.floor_div(&p, 1 << bits, b)
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
                self.floor_div(&x, 1 << 32, b)
            }
            Kind::High(x) => self.ev(*x).scale(1 << 32),
            Kind::Pack(lo, hi) => {
                let h = self.ev(*hi);
                let l = self.ev(*lo);
                match h.as_const() {
                    Some(c) => self.interp(&l, 32, false, b).plus(c << 32),
                    None => {
                        let why = match self.why(&l).or_else(|| self.why(&h)) {
                            Some(r) if r != Reason::Pairing => r,
                            _ => Reason::Pairing,
                        };
                        self.opaque(Key::Node(n, 5), why, 64, b)
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
            Kind::Sel(p, x, y) => match self.evp(*p) {
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
            Kind::ParamIndexed(off, bytes, s, idx) => self.indexed(n, *off, *bytes, *s, *idx, b),
            Kind::LocalLoad(a, bytes) => self.local_load(n, *a, *bytes, b),
            Kind::Phi(arms) => self.phi(n, arms, b),
            Kind::LoopPhi(outer, back) => self.loop_phi(n, outer, back, b),
            Kind::Cmp(..) | Kind::Not(_) | Kind::Combine(..) | Kind::PLut(..) | Kind::NonZero(_) => {
                self.opaque(Key::Node(n, 6), Reason::Instruction, bits, b)
            }
        }
    }

    /// An integer representative with finite bounds.
    fn number(&mut self, f: &Form, bits: u32, b: BlockId) -> Form {
        let (lo, hi) = self.bounds(f, b);
        let m: Int = 1 << bits;
        if -(m >> 1) <= lo && hi < m { f.clone() } else { self.interp(f, bits, false, b) }
    }

    /// One of several forms; addresses are expanded over the list. `key` names the choice, `index` what it depends on
    /// when that is all.
    pub fn alternatives(&mut self, mut alts: Vec<Form>, key: Key, index: Option<&Form>, b: BlockId) -> Form {
        let mut seen: Vec<Form> = Vec::new();
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
        Form::atom(self.keyed(key, |e| {
            let (mut lo, mut hi) = (INF, -INF);
            let mut deps: SmallVec<[AtomId; 3]> = SmallVec::new();
            for f in &alts {
                let (l, h) = e.boxed(f, false);
                lo = lo.min(l);
                hi = hi.max(h);
                deps.extend(f.terms.iter().map(|t| t.0));
            }
            let why = alts.iter().find_map(|f| e.why(f));
            if let Some(f) = index {
                deps.extend(f.terms.iter().map(|t| t.0));
            }
            let a = e.new_atom(lo, hi, why, b);
            let atom = &mut e.atoms[a.0 as usize];
            atom.alts = Some(Rc::new(alts));
            atom.deps = deps;
            atom.choice = index.is_none();
            a
        }))
    }
}
