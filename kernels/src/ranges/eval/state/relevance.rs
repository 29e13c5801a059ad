//! Which constraints may say something about a form: those of the guards, those of its atoms, and
//! those of the atoms in them.
//!
//! Owns the walk that collects them, and how constraints are made. The search with them is in
//! `bounds`.

use super::atoms::Atoms;
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::constraints::{Bits, ConstraintRef, ConstraintSet, MAX_ATOMS, Near, Relevant, by_atom};
use smallvec::SmallVec;
use std::rc::Rc;

impl Atoms {
    /// All constraints that may say something about the atoms of `f`.
    pub(crate) fn relevant(&self, f: &AffineForm, facts: &ConstraintSet, strict: bool) -> Relevant {
        let near = self.near(facts, strict);
        let mut more: SmallVec<[ConstraintRef; 8]> = SmallVec::new();
        if near.count > MAX_ATOMS || f.terms.iter().all(|t| near.seen.has(t.0.0)) {
            return Relevant::new(near, more);
        }
        let mut seen = self.seen.borrow_mut();
        seen.start(self.len(), self.con_count as usize);
        let mut count = near.count;
        let mut work: SmallVec<[AtomId; 24]> = f.terms.iter().map(|t| t.0).collect();
        while let Some(a) = work.pop() {
            if near.seen.has(a.0) || !seen.atom(a) {
                continue;
            }
            count += 1;
            let atom = &self[a];
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
        Relevant::new(near, more)
    }

    fn near(&self, facts: &ConstraintSet, strict: bool) -> Rc<Near> {
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

    fn follow(&self, facts: &ConstraintSet, strict: bool) -> Near {
        let (mut cons, mut met, mut seen) = (SmallVec::<[ConstraintRef; 4]>::new(), Bits::default(), Bits::default());
        // What the boxes imply can improve nothing; what is there twice would only be tried twice.
        let mut put = |c: &ConstraintRef| {
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
            let atom = &self[a];
            for c in &atom.cons {
                put(c);
                work.extend(c.terms.iter().map(|t| t.0));
            }
            work.extend(atom.deps.iter().copied());
            if count > MAX_ATOMS {
                break;
            }
        }
        Near { epoch: self.epoch, index: by_atom(&cons), cons, seen, count, met }
    }
}
