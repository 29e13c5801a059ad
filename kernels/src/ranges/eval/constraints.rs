//! Constraints, and which of them may say something about a form.
//!
//! Owns the sets that bounds are asked under; the search itself is `bounds`. Equal constraints of
//! an evaluation are one object. What a set leads to (constraints of the atoms that its members
//! speak of, and so on) is found once for each set, for many bounds are asked under the same
//! guards.

use crate::ranges::domain::affine::{AtomId, Form, Int, Terms};
use crate::ranges::eval::{Atom, Eval};
use crate::ranges::extent::address::Span;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

/// Extents looked through for one that is asked for again.
const RECENT: usize = 8;
/// Atoms followed from one set.
const MAX_ATOMS: usize = 300;

/// A form that is never positive.
#[derive(Debug)]
pub(crate) struct Constraint {
    form: Form,
    /// Counted within the evaluation; equal forms have the same.
    id: u32,
}

/// A constraint: never positive.
pub(crate) type Con = Rc<Constraint>;

impl Deref for Constraint {
    type Target = Form;
    fn deref(&self) -> &Form {
        &self.form
    }
}

/// A constraint as it is looked up: by its form.
pub(crate) struct ByForm(Con);

impl Borrow<Form> for ByForm {
    fn borrow(&self) -> &Form {
        &self.0.form
    }
}

impl Hash for ByForm {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.form.hash(state);
    }
}

impl PartialEq for ByForm {
    fn eq(&self, o: &ByForm) -> bool {
        self.0.form == o.0.form
    }
}

impl Eq for ByForm {}

/// A set of small numbers.
#[derive(Default)]
struct Bits(SmallVec<[u64; 4]>);

impl Bits {
    fn has(&self, n: u32) -> bool {
        self.0.get(n as usize / 64).is_some_and(|w| w >> (n % 64) & 1 == 1)
    }

    /// Was it new?
    fn insert(&mut self, n: u32) -> bool {
        let w = n as usize / 64;
        if self.0.len() <= w {
            self.0.resize(w + 1, 0);
        }
        let new = self.0[w] >> (n % 64) & 1 == 0;
        self.0[w] |= 1 << (n % 64);
        new
    }
}

/// What one walk has met, without clearing anything between walks.
#[derive(Default)]
pub(crate) struct Seen {
    walk: u32,
    atoms: Vec<u32>,
    cons: Vec<u32>,
}

impl Seen {
    fn start(&mut self, atoms: usize, cons: usize) {
        self.walk += 1;
        self.atoms.resize(atoms.max(self.atoms.len()), 0);
        self.cons.resize(cons.max(self.cons.len()), 0);
    }

    fn has(&self, a: AtomId) -> bool {
        self.atoms[a.0 as usize] == self.walk
    }

    /// Was it new?
    fn atom(&mut self, a: AtomId) -> bool {
        std::mem::replace(&mut self.atoms[a.0 as usize], self.walk) != self.walk
    }

    /// Was it new?
    fn con(&mut self, c: u32) -> bool {
        std::mem::replace(&mut self.cons[c as usize], self.walk) != self.walk
    }
}

/// Bounds of sums of terms, at an epoch; as [`Facts::near`].
#[derive(Default)]
struct Bounds {
    epoch: u32,
    found: [FxHashMap<Terms, (Int, Int)>; 2],
    /// Bytes of accesses: by offset, width, and whether nothing else decides.
    extents: Vec<((Form, Int, bool), Span)>,
}

/// Constraints that hold together.
#[derive(Default)]
pub(crate) struct Facts {
    cons: Vec<Con>,
    /// What they lead to: with all boxes, and without those of opaque atoms.
    near: [RefCell<Option<Rc<Near>>>; 2],
    /// Bounds found under them, of forms without constants, in the same order.
    bounds: RefCell<Bounds>,
}

impl Facts {
    pub fn new(cons: Vec<Con>) -> Facts {
        Facts { cons, ..Facts::default() }
    }

    /// Bounds of the sum of these terms, if they were asked for before.
    pub fn known(&self, terms: &Terms, strict: bool, epoch: u32) -> Option<(Int, Int)> {
        let b = self.bounds.borrow();
        (b.epoch == epoch).then(|| b.found[usize::from(strict)].get(terms).copied()).flatten()
    }

    pub fn learn(&self, terms: &Terms, strict: bool, epoch: u32, bounds: (Int, Int)) {
        let mut b = self.bounds.borrow_mut();
        if b.epoch != epoch {
            *b = Bounds { epoch, ..Bounds::default() };
        }
        b.found[usize::from(strict)].insert(SmallVec::from_slice(terms), bounds);
    }

    /// What [`Eval::extent`] found for this offset before.
    pub fn known_extent(&self, f: &Form, width: Int, complete: bool, epoch: u32) -> Option<Span> {
        let b = self.bounds.borrow();
        let mut last = b.extents.iter().rev().take(RECENT).filter(|_| b.epoch == epoch);
        last.find(|((g, w, c), _)| (*w, *c) == (width, complete) && g == f).map(|e| e.1.clone())
    }

    pub fn learn_extent(&self, f: &Form, width: Int, complete: bool, epoch: u32, e: &Span) {
        let mut b = self.bounds.borrow_mut();
        if b.epoch != epoch {
            *b = Bounds { epoch, ..Bounds::default() };
        }
        b.extents.push(((f.clone(), width, complete), e.clone()));
    }

    pub fn and<'a>(&self, more: impl IntoIterator<Item = &'a Con>) -> Facts {
        let mut cons = self.cons.clone();
        cons.extend(more.into_iter().cloned());
        Facts::new(cons)
    }
}

impl Deref for Facts {
    type Target = [Con];
    fn deref(&self) -> &[Con] {
        &self.cons
    }
}

/// What a set of constraints leads to.
struct Near {
    /// Boxes and constraints of atoms were changed so often.
    epoch: u32,
    /// Constraints that the boxes do not imply, those of the set first.
    cons: SmallVec<[Con; 4]>,
    /// Each atom of each of them: position and coefficient, by atom and position.
    index: SmallVec<[(AtomId, u32, Int); 8]>,
    seen: Bits,
    count: usize,
    met: Bits,
}

/// The constraints that may say something about a form.
pub(crate) struct Relevant {
    near: Rc<Near>,
    /// Those that the form adds.
    more: SmallVec<[Con; 8]>,
}

impl Relevant {
    pub fn is_empty(&self) -> bool {
        self.near.cons.is_empty() && self.more.is_empty()
    }

    /// The constraints about an atom, with its coefficient.
    pub fn about(&self, x: AtomId) -> impl Iterator<Item = (&Form, Int)> {
        let index = &self.near.index;
        let from = index.partition_point(|e| e.0 < x);
        let known = index[from..].iter().take_while(move |e| e.0 == x);
        let known = known.map(|e| (&self.near.cons[e.1 as usize].form, e.2));
        let more = self.more.iter().map(move |c| (&c.form, c.coef(x))).filter(|e| e.1 != 0);
        known.chain(more)
    }
}

impl Eval<'_> {
    /// The constraint `form <= 0`.
    pub fn con(&mut self, form: Form) -> Con {
        if let Some(c) = self.cons.get(&form) {
            return c.0.clone();
        }
        let c = self.own_con(form);
        self.cons.insert(ByForm(c.clone()));
        c
    }

    /// The constraint `form <= 0`, of which it is known that there is no equal one.
    pub fn own_con(&mut self, form: Form) -> Con {
        self.con_count += 1;
        Rc::new(Constraint { form, id: self.con_count - 1 })
    }

    /// Changes the box or the constraints of an atom that others may rest on already.
    pub fn change(&mut self, a: AtomId, f: impl FnOnce(&mut Atom)) {
        self.epoch += 1;
        f(&mut self.atoms[a.0 as usize]);
    }

    /// All constraints that may say something about the atoms of `f`.
    pub(crate) fn relevant(&self, f: &Form, facts: &Facts, strict: bool) -> Relevant {
        let near = self.near(facts, strict);
        let mut more: SmallVec<[Con; 8]> = SmallVec::new();
        if near.count > MAX_ATOMS || f.terms.iter().all(|t| near.seen.has(t.0.0)) {
            return Relevant { near, more };
        }
        let mut seen = self.seen.borrow_mut();
        seen.start(self.atoms.len(), self.con_count as usize);
        let mut count = near.count;
        let mut work: SmallVec<[AtomId; 24]> = f.terms.iter().map(|t| t.0).collect();
        while let Some(a) = work.pop() {
            if near.seen.has(a.0) || !seen.atom(a) {
                continue;
            }
            count += 1;
            let atom = self.a(a);
            for c in &atom.cons {
                if !near.met.has(c.id) && seen.con(c.id) && self.box_hi(c, strict) > 0 {
                    more.push(c.clone());
                }
                work.extend(c.terms.iter().map(|t| t.0).filter(|x| !seen.has(*x)));
            }
            work.extend(atom.deps.iter().copied().filter(|x| !seen.has(*x)));
            if count > MAX_ATOMS {
                break;
            }
        }
        Relevant { near, more }
    }

    fn near(&self, facts: &Facts, strict: bool) -> Rc<Near> {
        let slot = &facts.near[usize::from(strict)];
        if let Some(n) = &*slot.borrow()
            && n.epoch == self.epoch
        {
            return n.clone();
        }
        let near = Rc::new(self.follow(facts, strict));
        *slot.borrow_mut() = Some(near.clone());
        near
    }

    fn follow(&self, facts: &Facts, strict: bool) -> Near {
        let (mut cons, mut met, mut seen) = (SmallVec::<[Con; 4]>::new(), Bits::default(), Bits::default());
        // What the boxes imply can improve nothing; what is there twice would only be tried twice.
        let mut put = |c: &Con| {
            if met.insert(c.id) && self.box_hi(c, strict) > 0 {
                cons.push(c.clone());
            }
        };
        let mut work: SmallVec<[AtomId; 24]> = SmallVec::new();
        for c in facts.iter() {
            put(c);
            work.extend(c.terms.iter().map(|t| t.0));
        }
        let mut count = 0;
        while let Some(a) = work.pop() {
            if !seen.insert(a.0) {
                continue;
            }
            count += 1;
            let atom = self.a(a);
            for c in &atom.cons {
                put(c);
                work.extend(c.terms.iter().map(|t| t.0));
            }
            work.extend(atom.deps.iter().copied());
            if count > MAX_ATOMS {
                break;
            }
        }
        let mut index: SmallVec<[(AtomId, u32, Int); 8]> = SmallVec::new();
        for (k, c) in cons.iter().enumerate() {
            index.extend(c.terms.iter().map(|t| (t.0, k as u32, t.1)));
        }
        index.sort_unstable_by_key(|e| (e.0, e.1));
        Near { epoch: self.epoch, cons, index, seen, count, met }
    }
}
