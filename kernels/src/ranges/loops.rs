//! Joins, loop recurrences and trip counts.
//!
//! `k` of a loop counts completed iterations. A header phi is solved by putting a symbol in its place, evaluating the value
//! of the back edges, and looking for "symbol + c": then the phi is `init + c*k`. What has no such shape is opaque.
//!
//! Every condition `F(k) <= 0` on the way to the back edge held one iteration earlier, so `F(k-1) <= 0` for `k >= 1`;
//! `F(k-1) <= max(0, bound of F(-1))` holds for all `k >= 0` without a case split. During this the forms are taken for
//! numbers without proof; what was assumed is verified afterwards with the bound found, else `k` stays unbounded.

use super::eval::{Atom, AtomKind, Eval, Key, LoopState, Memo};
use super::facts::{Con, Facts};
use super::form::{AtomId, Form, INF, Int, gcd};
use super::logic::{Cond, Fact};
use super::node::NodeId;
use crate::ir::{BlockId, Reason};
use smallvec::SmallVec;

type Arms = SmallVec<[(BlockId, NodeId); 2]>;

/// How a header phi changes on one back edge.
enum Step {
    /// By a form whose bounds are known.
    Add(Form, (Int, Int)),
    /// It is overwritten by something that does not depend on it.
    Copy(Form),
    Other(Option<Reason>),
}

impl Eval<'_> {
    /// One of several values, each with constraints that hold when it is chosen.
    pub(super) fn join(&mut self, mut arms: Vec<(Form, Vec<Con>)>, n: NodeId, tag: u8, b: BlockId) -> Form {
        let undefined = |e: &Self, f: &Form| f.terms.iter().any(|t| e.a(t.0).opaque == Some(Reason::Undefined));
        if arms.iter().any(|a| !undefined(self, &a.0)) {
            arms.retain(|a| !undefined(self, &a.0));
        }
        let bits = self.g.node(n).width.bits();
        if arms.is_empty() {
            return self.opaque(Key::Node(n, 40), Reason::Undefined, bits, b);
        }
        if arms.iter().all(|a| a.0 == arms[0].0) {
            return arms.swap_remove(0).0;
        }
        let pointers = |e: &Self, f: &Form| -> Form {
            Form {
                terms: f
                    .terms
                    .iter()
                    .filter(|t| {
                        let a = e.a(t.0);
                        a.alts.is_some()
                            || matches!(
                                a.kind,
                                AtomKind::Param(_) | AtomKind::Symbol(_) | AtomKind::ParamAddress(_) | AtomKind::Local
                            )
                    })
                    .copied()
                    .collect(),
                c: 0,
            }
        };
        let base_ptr = pointers(self, &arms[0].0);
        if arms[1..].iter().any(|a| pointers(self, &a.0) != base_ptr) {
            let mut forms: Vec<Form> = Vec::new();
            for a in &arms {
                if !forms.contains(&a.0) {
                    forms.push(a.0.clone());
                }
            }
            if forms.len() > 64 {
                return self.opaque(Key::Node(n, 41), Reason::Budget, bits, b);
            }
            return self.alternatives(forms, Key::Alts(n), None, b);
        }
        let base = self.base_of(&arms, tag, b).unwrap_or_else(|| base_ptr.clone());
        let ctx = self.ctx(b);
        let (mut lo, mut hi, mut step) = (INF, -INF, 0);
        let (mut vlo, mut vhi) = (INF, -INF);
        let mut why = None;
        for (f, c) in &arms {
            let cons = ctx.and(c);
            let d = f.add(&base, -1);
            let (dl, dh) = self.bounds_in(&d, &cons, false);
            let (sl, sh) = self.bounds_in(&d, &cons, true);
            if dl <= -INF || dh >= INF {
                why = why.or_else(|| self.why(&d)).or(Some(Reason::Loop));
            } else if sl <= -INF || sh >= INF {
                why = why.or_else(|| self.why(&d));
            }
            lo = lo.min(dl);
            hi = hi.max(dh);
            step = gcd(gcd(step, d.gcd()), d.c);
            let v = f.add(&base_ptr, -1);
            // Opaque boxes must not become constraints.
            let z = self.bounds_in(&v, &cons, true);
            vlo = vlo.min(z.0);
            vhi = vhi.max(z.1);
        }
        if lo > hi {
            // No arm seems possible: nothing is concluded from that.
            (lo, hi, vlo, vhi) = (-INF, INF, -INF, INF);
            why = why.or(Some(Reason::Loop));
        }
        let step = step.max(1);
        let key = Key::Join(n, tag, std::iter::once(&base).chain(arms.iter().map(|a| &a.0)).cloned().collect());
        let rest = base.add(&base_ptr, -1);
        let t = self.keyed(key, |e| {
            let l = if lo <= -INF { -INF } else { lo.div_euclid(step) };
            let h = if hi >= INF { INF } else { hi.div_euclid(step) };
            let t = e.new_atom(l, h, why, b);
            let v = rest.add(&Form::atom(t), step);
            // An opaque difference may still leave the value itself bounded, as a join with known ends.
            let deps = e.depends(&[&rest]);
            let mut cons = Vec::new();
            if vhi < INF {
                cons.push(e.con(v.plus(-vhi)));
            }
            if vlo > -INF {
                cons.push(e.con(v.scale(-1).plus(vlo)));
            }
            let a = &mut e.atoms[t.0 as usize];
            a.deps = deps;
            a.choice = true;
            a.cons = cons;
            t
        });
        base.add(&Form::atom(t), step)
    }

    /// The arm that the others are told apart from. Its atoms must mean something whichever arm is taken: the count of a loop that this
    /// path did not run through has constraints that hold nowhere on it. Of two arms, the one that the other is closer to where that
    /// one is chosen: `i + 1 < n ? 8 * (i + 1) : m` is `8 * (i + 1)` and little less, but may be far from `m`.
    fn base_of(&mut self, arms: &[(Form, Vec<Con>)], tag: u8, b: BlockId) -> Option<Form> {
        // What an earlier iteration left stands for no value of this one: only what came from outside.
        let arms = if tag == 3 { &arms[..1] } else { arms };
        let mut fit = arms.iter().filter(|a| self.holds_at(&a.0, b));
        let first = fit.next()?;
        let Some(second) = fit.next().filter(|_| arms.len() == 2) else { return Some(first.0.clone()) };
        if first.0.is_const() && second.0.is_const() {
            return Some(first.0.clone());
        }
        let ctx = self.ctx(b);
        let d = second.0.add(&first.0, -1);
        let span = |cons: &[Con]| {
            let (lo, hi) = self.bounds_in(&d, &ctx.and(cons), false);
            if lo <= -INF || hi >= INF { INF } else { hi - lo }
        };
        Some(if span(&first.1) < span(&second.1) { second.0.clone() } else { first.0.clone() })
    }

    /// Were all atoms that a form rests on computed on every way to block `b`?
    fn holds_at(&self, f: &Form, b: BlockId) -> bool {
        f.terms.iter().flat_map(|t| self.support(t.0)).all(|a| {
            let atom = self.a(a);
            !matches!(atom.kind, AtomKind::Iteration(_) | AtomKind::Plain) || self.cfg.dominates(atom.home, b)
        })
    }

    /// Join at a block that heads no loop.
    pub(super) fn phi(&mut self, n: NodeId, arms: &Arms, b: BlockId) -> Form {
        let bits = self.g.node(n).width.bits();
        if self.in_irreducible(b) {
            return self.opaque(Key::Node(n, 42), Reason::Irreducible, bits, b);
        }
        let r = self.arms(arms, b);
        let mut out = Vec::new();
        for (f, c) in r {
            let c = Facts::new(c);
            let f = self.pinned(&f, &c);
            out.push((f, c.to_vec()));
        }
        if out.len() == 1 { out.swap_remove(0).0 } else { self.join(out, n, 1, b) }
    }

    /// Values and constraints of the live predecessors.
    fn arms(&mut self, arms: &Arms, b: BlockId) -> Vec<(Form, Vec<Con>)> {
        let mut live: Arms = SmallVec::new();
        if arms.len() > 1 {
            for (p, v) in arms {
                if self.reachable(*p) && self.edge(*p, b) != Cond::False {
                    live.push((*p, *v));
                }
            }
        }
        if live.is_empty() {
            live = arms.clone();
        }
        live.iter()
            .map(|(p, v)| {
                let f = self.ev(*v);
                (f, self.arm_facts(*p, b))
            })
            .collect()
    }

    fn in_irreducible(&self, b: BlockId) -> bool {
        self.cfg.irreducible && self.cfg.in_irreducible[b.0 as usize]
    }

    /// Replaces iteration counters that the path fixes (leaving a loop of known length).
    fn pinned(&mut self, f: &Form, cons: &Facts) -> Form {
        let mut f = f.clone();
        for (x, c) in f.terms.clone() {
            if matches!(self.a(x).kind, AtomKind::Iteration(_)) && self.a(x).hi < INF {
                let (lo, hi) = self.bounds_in(&Form::atom(x), cons, false);
                if lo == hi {
                    f = f.without(x).plus(c.wrapping_mul(lo));
                }
            }
        }
        f
    }

    /// Value of a loop header's phi.
    pub(super) fn loop_phi(&mut self, n: NodeId, outer: &Arms, back: &Arms, b: BlockId) -> Form {
        let bits = self.g.node(n).width.bits();
        if let Some((s, d)) = self.solving.get(&n).copied() {
            self.touched = self.touched.min(d);
            return Form::atom(s);
        }
        let Some(l) = self.cfg.loop_of_header[b.0 as usize] else {
            return self.opaque(Key::Node(n, 43), Reason::Irreducible, bits, b);
        };
        self.trip(l);
        // An enclosing loop's phi on the way is being solved by now, or will be: this ends there.
        let mut arms = self.arms(outer, b);
        let init = if arms.len() == 1 { arms.swap_remove(0).0 } else { self.join(arms, n, 2, b) };
        let k = self.iteration(l);
        if self.a(k).hi == 0 {
            return init;
        }
        let s = self.new_atom(-INF, INF, None, b);
        self.atoms[s.0 as usize].kind = AtomKind::Unsolved;
        let mark = self.unsolved();
        self.solving.insert(n, (s, self.depth));
        let mut steps = Vec::new();
        for (p, v) in back {
            let f = self.ev(*v);
            let step = if f.coef(s) == 1 {
                let e = f.without(s);
                if self.supported_by(&e, s) {
                    Step::Other(None)
                } else {
                    let cons = Facts::new(self.arm_facts(*p, b));
                    let z = self.bounds_in(&e, &cons, false);
                    Step::Add(e, z)
                }
            } else if f.has(s) || self.supported_by(&f, s) {
                Step::Other(self.why(&f))
            } else {
                Step::Copy(f)
            };
            steps.push(step);
        }
        self.solving.remove(&n);
        self.solved(mark);
        self.recurrence(n, init, k, steps, bits, b)
    }

    fn recurrence(&mut self, n: NodeId, init: Form, k: AtomId, steps: Vec<Step>, bits: u32, b: BlockId) -> Form {
        if steps.iter().all(|s| matches!(s, Step::Add(..))) {
            let (mut lo, mut hi, mut g, mut why) = (INF, -INF, 0, None);
            for s in &steps {
                if let Step::Add(e, z) = s {
                    lo = lo.min(z.0);
                    hi = hi.max(z.1);
                    g = gcd(gcd(g, e.gcd()), e.c);
                    why = why.or_else(|| self.why(e));
                }
            }
            if lo == hi {
                return init.add(&Form::atom(k), lo);
            }
            if lo > -INF && hi < INF && why.is_none() {
                let g = g.max(1);
                let t = self.keyed(Key::Step(n, init.clone(), lo, hi), |e| {
                    let t = e.new_atom(if lo < 0 { -INF } else { 0 }, if hi > 0 { INF } else { 0 }, None, b);
                    let one = Form::atom(t).scale(g);
                    let kf = Form::atom(k);
                    e.atoms[t.0 as usize].cons = vec![e.con(one.add(&kf, -hi)), e.con(kf.scale(lo).add(&one, -1))];
                    e.atoms[t.0 as usize].deps = SmallVec::from_slice(&[k]);
                    let z = e.search(&Form::atom(t), &e.none, false);
                    // Nobody has seen this atom yet.
                    let a = &mut e.atoms[t.0 as usize];
                    a.lo = a.lo.max(z.0);
                    a.hi = a.hi.min(z.1);
                    t
                });
                return init.add(&Form::atom(t), g);
            }
            let o = self.opaque(Key::Node(n, 45), why.unwrap_or(Reason::Loop), bits, b);
            return init.add(&o, 1);
        }
        let copies = steps.iter().all(|s| matches!(s, Step::Copy(_)) || matches!(s, Step::Add(_, (0, 0))));
        if copies {
            let mut arms = vec![(init, Vec::new())];
            for s in &steps {
                if let Step::Copy(f) = s {
                    arms.push((f.clone(), Vec::new()));
                }
            }
            // Values of an earlier iteration: their atoms must not be confused with this iteration's.
            let header_loop = self.cfg.loop_of_header[b.0 as usize];
            if arms.len() == 2 && arms[0].0 == arms[1].0 {
                return arms.swap_remove(0).0;
            }
            let clean = arms[1..].iter().all(|a| {
                header_loop.is_some_and(|l| {
                    a.0.terms.iter().all(|t| {
                        !matches!(self.a(t.0).kind, AtomKind::Param(_)) && self.a(t.0).alts.is_none()
                            || !self.varying(t.0, l)
                    })
                })
            });
            // A pointer among the alternatives would keep the forms themselves: only when they do not vary.
            let fixed =
                arms[1..].iter().all(|a| header_loop.is_some_and(|l| a.0.terms.iter().all(|t| !self.varying(t.0, l))));
            let pointers = arms.iter().any(|a| {
                a.0.terms.iter().any(|t| {
                    self.a(t.0).alts.is_some()
                        || matches!(
                            self.a(t.0).kind,
                            AtomKind::Param(_) | AtomKind::Symbol(_) | AtomKind::ParamAddress(_) | AtomKind::Local
                        )
                })
            });
            if fixed || (clean && !pointers) {
                return self.join(arms, n, 3, b);
            }
        }
        let why = steps.iter().find_map(|s| match s {
            Step::Other(r) => *r,
            Step::Add(f, _) | Step::Copy(f) => self.why(f),
        });
        self.opaque(Key::Node(n, 46), why.unwrap_or(Reason::Loop), bits, b)
    }

    /// All atoms that an atom's meaning rests on.
    pub(super) fn support(&self, x: AtomId) -> SmallVec<[AtomId; 16]> {
        let mut out: SmallVec<[AtomId; 16]> = SmallVec::new();
        let mut work: SmallVec<[AtomId; 16]> = SmallVec::from_slice(&[x]);
        while let Some(a) = work.pop() {
            if out.contains(&a) {
                continue;
            }
            out.push(a);
            let Atom { deps, alts, .. } = self.a(a);
            work.extend(deps.iter().copied());
            if let Some(v) = alts {
                v.iter().for_each(|f| work.extend(f.terms.iter().map(|t| t.0)));
            }
        }
        out
    }

    fn supported_by(&self, f: &Form, s: AtomId) -> bool {
        f.terms.iter().any(|t| self.support(t.0).contains(&s))
    }

    /// May an atom have different values in different iterations of loop `l`?
    pub(super) fn varying(&self, x: AtomId, l: u32) -> bool {
        let lp = &self.cfg.loops[l as usize];
        self.support(x).iter().any(|a| {
            let atom = self.a(*a);
            let inside = lp.members[atom.home.0 as usize];
            match atom.kind {
                AtomKind::Index
                | AtomKind::Param(_)
                | AtomKind::Scalar(_)
                | AtomKind::Symbol(_)
                | AtomKind::ParamAddress(_)
                | AtomKind::Local => false,
                AtomKind::Iteration(_) | AtomKind::Unsolved => inside,
                // An atom over others varies with them; one over nothing is whatever its block computed.
                AtomKind::Plain => inside && (atom.opaque.is_some() || atom.deps.is_empty() || atom.choice),
            }
        })
    }

    /// Does a form vary in any loop around a block?
    pub(super) fn varies_around(&self, f: &Form, b: BlockId) -> bool {
        (0..self.cfg.loops.len() as u32)
            .filter(|l| self.cfg.loops[*l as usize].members[b.0 as usize])
            .any(|l| f.terms.iter().any(|t| self.varying(t.0, l)))
    }

    fn iteration(&mut self, l: u32) -> AtomId {
        if let Some(k) = self.k_atoms[l as usize] {
            return k;
        }
        let home = self.cfg.loops[l as usize].header;
        let k = self.new_atom(0, INF, None, home);
        self.atoms[k.0 as usize].kind = AtomKind::Iteration(l);
        self.k_atoms[l as usize] = Some(k);
        k
    }

    /// Finds the constraints on a loop's iteration counter.
    fn trip(&mut self, l: u32) {
        if self.loops[l as usize] != LoopState::New {
            return;
        }
        // Outermost first.
        let header = self.cfg.loops[l as usize].header;
        let mut outer: Vec<u32> = (0..self.cfg.loops.len() as u32)
            .filter(|o| *o != l && self.cfg.loops[*o as usize].members[header.0 as usize])
            .collect();
        outer.sort_by_key(|o| std::cmp::Reverse(self.cfg.loops[*o as usize].size));
        for o in outer {
            self.trip(o);
        }
        if self.loops[l as usize] != LoopState::New {
            return;
        }
        let before = self.loops.clone();
        self.loops[l as usize] = LoopState::Solving;
        let k = self.iteration(l);
        // A world of its own: unproved numbers, a fresh memo.
        let memo = std::mem::take(&mut self.memo);
        let temp = std::mem::take(&mut self.temp);
        let solving = std::mem::take(&mut self.solving);
        let busy = std::mem::take(&mut self.ctx_busy);
        let cut = self.ctx_cut;
        let touched = self.touched;
        let assumed = self.assumed.replace(Vec::new());
        let log = self.key_log.replace(Vec::new());
        let (keep, never, exact) = self.back_conditions(l, k);
        let mine = std::mem::replace(&mut self.assumed, assumed).unwrap_or_default();
        let keys = std::mem::replace(&mut self.key_log, log).unwrap_or_default();
        self.memo = Memo::default();
        self.temp = Vec::new();
        let pre = self.ctx(header);
        self.change(k, |a| a.cons = keep.clone());
        let hi = if never { 0 } else { self.bounds_in(&Form::atom(k), &pre, false).1 };
        let mut ok = true;
        if hi < INF {
            self.change(k, |a| a.hi = hi);
            for (f, tlo, thi) in &mine {
                ok &= self.proved(f, *tlo, *thi, &pre);
            }
        }
        if !ok {
            self.change(k, |a| {
                a.cons = Vec::new();
                a.hi = INF;
            });
        }
        // Atoms made meanwhile are too wide or rest on assumptions: forgotten, unless the constraints name them.
        let mut used: Vec<AtomId> = Vec::new();
        if ok {
            for c in &keep {
                for t in &c.terms {
                    used.extend(self.support(t.0));
                }
            }
        }
        for key in keys {
            if let Some(a) = self.keys.get(&key)
                && !used.contains(a)
            {
                self.keys.remove(&key);
            }
        }
        self.memo = memo;
        self.temp = temp;
        self.solving = solving;
        self.ctx_busy = busy;
        self.ctx_cut = cut;
        self.touched = touched;
        // Inner loops saw this one unbounded: they are solved again.
        for (o, s) in before.iter().enumerate() {
            if o as u32 != l && *s == LoopState::New && self.loops[o] != LoopState::New {
                self.loops[o] = LoopState::New;
                if let Some(k) = self.k_atoms[o] {
                    self.change(k, |a| {
                        a.hi = INF;
                        a.cons.clear();
                    });
                }
            }
        }
        self.exact_trip[l as usize] = ok && (never || (hi < INF && exact));
        self.loops[l as usize] = LoopState::Done;
    }

    /// Is a form within its type's range, for all iterations?
    fn proved(&mut self, f: &Form, tlo: Int, thi: Int, pre: &Facts) -> bool {
        let (lo, hi) = self.bounds_in(f, pre, false);
        tlo <= lo && hi <= thi
    }

    /// Constraints on `k` from the conditions under which the back edges are taken; first flag: never; second flag: a back
    /// edge is taken exactly when they hold.
    fn back_conditions(&mut self, l: u32, k: AtomId) -> (Vec<Con>, bool, bool) {
        let lp = &self.cfg.loops[l as usize];
        let header = lp.header;
        let latches = lp.latches.clone();
        let pre = self.ctx(header);
        let mut per: Vec<Vec<Form>> = Vec::new();
        let mut exact = latches.len() == 1;
        // Blocks whose decision to stay in the loop is among the conditions.
        let mut deciding: Vec<BlockId> = Vec::new();
        for p in latches {
            deciding.push(p);
            let mut conds = vec![self.edge(p, header)];
            let mut x = p;
            while x != header {
                let d = self.cfg.idom[x.0 as usize];
                if self.cfg.loop_of_header[x.0 as usize].is_none() && self.cfg.preds[x.0 as usize][..] == [d] {
                    conds.push(self.edge(d, x));
                    deciding.push(d);
                }
                x = d;
            }
            if conds.contains(&Cond::False) {
                continue;
            }
            let mut got: Vec<Form> = Vec::new();
            for c in &conds {
                let mut facts = Vec::new();
                self.facts(c, &mut facts);
                exact &= captured(c);
                for f in facts {
                    let (found, same) = self.each_iteration(&f, k, l, &pre);
                    exact &= same;
                    for g in found {
                        if !got.contains(&g) {
                            got.push(g);
                        }
                    }
                }
            }
            per.push(got);
        }
        let Some(first) = per.first() else { return (vec![self.con(Form::atom(k))], true, true) };
        exact &= self.leaves_only_from(l, &deciding);
        let keep =
            first.iter().filter(|g| per[1..].iter().all(|o| o.contains(g))).map(|g| self.con(g.clone())).collect();
        (keep, false, exact)
    }

    /// Do all edges out of a loop start at the given blocks, with a condition?
    fn leaves_only_from(&self, l: u32, deciding: &[BlockId]) -> bool {
        let lp = &self.cfg.loops[l as usize];
        lp.members.iter().enumerate().filter(|m| *m.1).all(|(b, _)| {
            let b = BlockId(b as u32);
            let inside = self.cfg.succs[b.0 as usize].iter().all(|s| lp.members[s.0 as usize]);
            let exits = match self.f_conds[b.0 as usize] {
                Some(br) => br.taken.is_none() || br.fall.is_none(),
                None => self.cfg.succs[b.0 as usize].is_empty(),
            };
            (inside && !exits) || (deciding.contains(&b) && self.f_conds[b.0 as usize].is_some())
        })
    }

    /// What a fact that held at iteration k-1 (for k >= 1) says for every k >= 0; the flag: neither more nor less.
    fn each_iteration(&mut self, f: &Fact, k: AtomId, l: u32, pre: &Facts) -> (Vec<Form>, bool) {
        let (f, ne) = match f {
            Fact::Le(c) => ((**c).clone(), false),
            Fact::Ne(f) => (f.clone(), true),
        };
        let none = (Vec::new(), false);
        let ck = f.coef(k);
        if ck == 0 {
            return none;
        }
        let mut weakened = false;
        let mut rest = Form::konst(f.c);
        for (x, c) in &f.terms {
            if *x == k {
                continue;
            }
            if !self.varying(*x, l) {
                rest = rest.add(&Form::atom(*x), *c);
                continue;
            }
            let a = self.a(*x);
            let weakest = if *c > 0 { a.lo } else { a.hi };
            if ne || a.opaque.is_some() || weakest.abs() >= INF {
                return none;
            }
            weakened = true;
            rest = rest.plus(c.wrapping_mul(weakest));
        }
        let whole = rest.add(&Form::atom(k), ck);
        if ne {
            // A step that divides the distance cannot jump over zero; one that does not is assumed to end.
            let (lo, hi) = self.bounds_in(&rest, pre, false);
            let divides = rest.terms.iter().all(|t| t.1 % ck == 0) && rest.c % ck == 0;
            return match ck {
                c if c < 0 && (lo >= 0 || divides) => (vec![whole.scale(-1)], divides && lo >= 0),
                c if c > 0 && (hi <= 0 || divides) => (vec![whole], divides && hi <= 0),
                _ => none,
            };
        }
        // Does not hold in the first iteration: the back edge is never taken.
        if self.bounds_in(&rest, pre, false).0 > 0 {
            return (vec![Form::atom(k)], true);
        }
        let earlier = whole.plus(-ck);
        let first = self.bounds_in(&rest.plus(-ck), pre, false).1;
        if first <= 0 {
            (vec![earlier], !weakened && ck > 0)
        } else if first < INF {
            (vec![earlier.plus(-first)], false)
        } else {
            none
        }
    }
}

/// Is the whole of a back edge's condition in its facts?
fn captured(c: &Cond) -> bool {
    match c {
        Cond::True | Cond::Le(_) | Cond::Ne(_) => true,
        Cond::And(v) => v.iter().all(captured),
        _ => false,
    }
}
