//! The atoms of an evaluation, with the keys under which they are found again and the constraints
//! made of them.
//!
//! Owns [`Atoms`]. Its other parts are `bounds` (the bounds of a form) and `relevance` (which
//! constraints may improve them). All of them know atoms, forms and constraints only: a question
//! that needs the value of a node goes to [`Eval`](super::super::Eval).

use super::budget::Budget;
use crate::ir::{BlockId, Reason};
use crate::ranges::domain::affine::{AffineForm, AtomId};
use crate::ranges::domain::atom::{Atom, AtomKey, AtomKind};
use crate::ranges::domain::constraints::{Constraint, ConstraintByForm, ConstraintRef, VisitMarks};
use crate::ranges::domain::int::{INF, Int};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::{Index, IndexMut};
use std::rc::Rc;

/// Atoms, by number and by key, and all constraints over them.
#[derive(Default)]
pub(crate) struct Atoms {
    list: Vec<Atom>,
    /// Atoms by key. (Boxed, because most keys are larger than what they lead to.)
    pub(crate) keys: FxHashMap<Box<AtomKey>, AtomId>,
    /// Keys made while a trip count is being solved (they may be too wide, or assume too much).
    pub(crate) key_log: Option<Vec<AtomKey>>,
    /// All constraints, by form.
    cons: FxHashSet<ConstraintByForm>,
    pub(super) con_count: u32,
    /// How often boxes or constraints of atoms were changed after others may have used them.
    pub(crate) epoch: u32,
    pub(super) seen: RefCell<VisitMarks>,
    /// What searches for bounds may cost.
    pub(crate) budget: Budget,
}

impl Index<AtomId> for Atoms {
    type Output = Atom;
    #[inline]
    fn index(&self, a: AtomId) -> &Atom {
        &self.list[a.0 as usize]
    }
}

impl IndexMut<AtomId> for Atoms {
    #[inline]
    fn index_mut(&mut self, a: AtomId) -> &mut Atom {
        &mut self.list[a.0 as usize]
    }
}

impl Atoms {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The atom of a key that is known already.
    #[inline]
    pub(crate) fn find(&self, key: &AtomKey) -> Option<AtomId> {
        self.keys.get(key).copied()
    }

    /// Remembers the atom of a key.
    pub(crate) fn name(&mut self, key: AtomKey, a: AtomId) {
        if let Some(log) = &mut self.key_log
            && !key.is_of_launch()
        {
            log.push(key.clone());
        }
        self.keys.insert(Box::new(key), a);
    }

    pub(crate) fn new_atom(
        &mut self,
        lo: impl Into<Int>,
        hi: impl Into<Int>,
        opaque: Option<Reason>,
        home: BlockId,
    ) -> AtomId {
        let (lo, hi) = (lo.into(), hi.into());
        self.list.push(Atom {
            lo,
            hi,
            kind: AtomKind::Plain,
            opaque,
            home,
            deps: SmallVec::new(),
            cons: Vec::new(),
            alts: None,
            loaded: None,
            floor: None,
            choice: false,
        });
        AtomId(self.list.len() as u32 - 1)
    }

    /// The constraint `form <= 0`.
    pub(crate) fn con(&mut self, form: AffineForm) -> ConstraintRef {
        if let Some(c) = self.cons.get(&form) {
            return c.0.clone();
        }
        let c = self.own_con(form);
        self.cons.insert(ConstraintByForm(c.clone()));
        c
    }

    /// The constraint `form <= 0`, of which it is known that there is no equal one.
    pub(crate) fn own_con(&mut self, form: AffineForm) -> ConstraintRef {
        self.con_count += 1;
        Rc::new(Constraint { form, id: self.con_count - 1 })
    }

    /// Changes the box or the constraints of an atom that others may rest on already.
    pub(crate) fn change(&mut self, a: AtomId, f: impl FnOnce(&mut Atom)) {
        self.epoch += 1;
        f(&mut self[a]);
    }

    pub(crate) fn depends(&self, fs: &[&AffineForm]) -> SmallVec<[AtomId; 3]> {
        fs.iter().flat_map(|f| f.terms.iter().map(|t| t.0)).collect()
    }

    /// Why a form is unknown, if it is.
    pub(crate) fn why(&self, f: &AffineForm) -> Option<Reason> {
        f.terms
            .iter()
            .find_map(|t| self[t.0].opaque)
            .or_else(|| f.terms.iter().any(|t| self[t.0].hi >= INF || self[t.0].lo <= -INF).then_some(Reason::Loop))
    }
}
