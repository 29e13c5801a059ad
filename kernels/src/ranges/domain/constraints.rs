//! Constraints (forms that are never positive), and sets of constraints that hold together.
//!
//! Owns the sets under which bounds are asked. Equal constraints of an evaluation are one object. A
//! set remembers the bounds and extents that were found under it, and what it leads to (constraints
//! of the atoms in its members, and so on), because many bounds are asked under the same guards.
//! `eval/state/relevance.rs` follows a set to what it leads to; `eval/state/bounds.rs` searches.

use crate::ranges::domain::affine::{AffineForm, AtomId, Terms};
use crate::ranges::domain::byte_set::ByteSet;
use crate::ranges::domain::int::Int;
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
pub(crate) const MAX_ATOMS: usize = 300;

/// A form that is never positive.
#[derive(Debug)]
pub(crate) struct Constraint {
    pub(crate) form: AffineForm,
    /// Counted within the evaluation; equal forms have the same.
    pub(crate) id: u32,
}

/// A constraint: never positive.
pub(crate) type ConstraintRef = Rc<Constraint>;

impl Deref for Constraint {
    type Target = AffineForm;
    fn deref(&self) -> &AffineForm {
        &self.form
    }
}

/// A constraint as it is looked up: by its form.
pub(crate) struct ConstraintByForm(pub(crate) ConstraintRef);

impl Borrow<AffineForm> for ConstraintByForm {
    fn borrow(&self) -> &AffineForm {
        &self.0.form
    }
}

impl Hash for ConstraintByForm {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.form.hash(state);
    }
}

impl PartialEq for ConstraintByForm {
    fn eq(&self, o: &ConstraintByForm) -> bool {
        self.0.form == o.0.form
    }
}

impl Eq for ConstraintByForm {}

/// A set of small numbers.
#[derive(Default)]
pub(crate) struct Bits(SmallVec<[u64; 4]>);

impl Bits {
    pub(crate) fn has(&self, n: u32) -> bool {
        self.0.get(n as usize / 64).is_some_and(|w| w >> (n % 64) & 1 == 1)
    }

    /// Was it new?
    pub(crate) fn insert(&mut self, n: u32) -> bool {
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
pub(crate) struct VisitMarks {
    walk: u32,
    atoms: Vec<u32>,
    cons: Vec<u32>,
}

impl VisitMarks {
    pub(crate) fn start(&mut self, atoms: usize, cons: usize) {
        self.walk += 1;
        self.atoms.resize(atoms.max(self.atoms.len()), 0);
        self.cons.resize(cons.max(self.cons.len()), 0);
    }

    pub(crate) fn has(&self, a: AtomId) -> bool {
        self.atoms[a.0 as usize] == self.walk
    }

    /// Was it new?
    pub(crate) fn atom(&mut self, a: AtomId) -> bool {
        std::mem::replace(&mut self.atoms[a.0 as usize], self.walk) != self.walk
    }

    /// Was it new?
    pub(crate) fn con(&mut self, c: u32) -> bool {
        std::mem::replace(&mut self.cons[c as usize], self.walk) != self.walk
    }
}

/// Bounds of sums of terms, at an epoch; as [`ConstraintSet::near`].
#[derive(Default)]
struct Bounds {
    epoch: u32,
    found: [FxHashMap<Terms, (Int, Int)>; 2],
    /// Bytes of accesses: by offset, width, and whether nothing else decides.
    extents: Vec<((AffineForm, Int, bool), ByteSet)>,
}

/// Constraints that hold together.
#[derive(Default)]
pub(crate) struct ConstraintSet {
    cons: Vec<ConstraintRef>,
    /// What they lead to: with all boxes, and without those of opaque atoms.
    pub(crate) near: [RefCell<Option<Rc<Near>>>; 2],
    /// Bounds found under them, of forms without constants, in the same order.
    bounds: RefCell<Bounds>,
}

impl ConstraintSet {
    pub(crate) fn new(cons: Vec<ConstraintRef>) -> ConstraintSet {
        ConstraintSet { cons, ..ConstraintSet::default() }
    }

    /// Bounds of the sum of these terms, if they were asked for before.
    pub(crate) fn known(&self, terms: &Terms, strict: bool, epoch: u32) -> Option<(Int, Int)> {
        let b = self.bounds.borrow();
        (b.epoch == epoch).then(|| b.found[usize::from(strict)].get(terms).copied()).flatten()
    }

    pub(crate) fn learn(&self, terms: &Terms, strict: bool, epoch: u32, bounds: (Int, Int)) {
        let mut b = self.bounds.borrow_mut();
        if b.epoch != epoch {
            *b = Bounds { epoch, ..Bounds::default() };
        }
        b.found[usize::from(strict)].insert(SmallVec::from_slice(terms), bounds);
    }

    /// What `extent::address` found for this offset before.
    pub(crate) fn known_extent(&self, f: &AffineForm, width: Int, complete: bool, epoch: u32) -> Option<ByteSet> {
        let b = self.bounds.borrow();
        let mut last = b.extents.iter().rev().take(RECENT).filter(|_| b.epoch == epoch);
        last.find(|((g, w, c), _)| (*w, *c) == (width, complete) && g == f).map(|e| e.1.clone())
    }

    pub(crate) fn learn_extent(&self, f: &AffineForm, width: Int, complete: bool, epoch: u32, e: &ByteSet) {
        let mut b = self.bounds.borrow_mut();
        if b.epoch != epoch {
            *b = Bounds { epoch, ..Bounds::default() };
        }
        b.extents.push(((f.clone(), width, complete), e.clone()));
    }

    pub(crate) fn and<'a>(&self, more: impl IntoIterator<Item = &'a ConstraintRef>) -> ConstraintSet {
        let mut cons = self.cons.clone();
        cons.extend(more.into_iter().cloned());
        ConstraintSet::new(cons)
    }
}

impl Deref for ConstraintSet {
    type Target = [ConstraintRef];
    fn deref(&self) -> &[ConstraintRef] {
        &self.cons
    }
}

/// What a set of constraints leads to.
pub(crate) struct Near {
    /// Boxes and constraints of atoms were changed so often.
    pub(crate) epoch: u32,
    /// Constraints that the boxes do not imply, those of the set first.
    pub(crate) cons: SmallVec<[ConstraintRef; 4]>,
    /// Each atom of each of them: position and coefficient, by atom and position.
    pub(crate) index: SmallVec<[(AtomId, u32, Int); 8]>,
    pub(crate) seen: Bits,
    pub(crate) count: usize,
    pub(crate) met: Bits,
}

/// The constraints that may say something about a form.
pub(crate) struct Relevant {
    pub(crate) near: Rc<Near>,
    /// Those that the form adds.
    more: SmallVec<[ConstraintRef; 8]>,
    /// As [`Near::index`]. (A search asks for the constraints about an atom thousands of times.)
    index: SmallVec<[(AtomId, u32, Int); 8]>,
}

/// The atoms of constraints, ascending, with the constraints' places in the list and coefficients.
pub(crate) fn by_atom(cons: &[ConstraintRef]) -> SmallVec<[(AtomId, u32, Int); 8]> {
    let mut index: SmallVec<[(AtomId, u32, Int); 8]> = SmallVec::new();
    for (k, c) in cons.iter().enumerate() {
        index.extend(c.terms.iter().map(|t| (t.0, k as u32, t.1)));
    }
    index.sort_unstable_by_key(|e| (e.0, e.1));
    index
}

impl Relevant {
    pub(crate) fn new(near: Rc<Near>, more: SmallVec<[ConstraintRef; 8]>) -> Relevant {
        Relevant { index: by_atom(&more), near, more }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.near.cons.is_empty() && self.more.is_empty()
    }

    /// The constraints about an atom, with its coefficient.
    pub(crate) fn about(&self, x: AtomId) -> impl Iterator<Item = (&AffineForm, Int)> {
        let of = move |index: &'_ [(AtomId, u32, Int)]| index.partition_point(|e| e.0 < x);
        let known = self.near.index[of(&self.near.index)..].iter().take_while(move |e| e.0 == x);
        let known = known.map(|e| (&self.near.cons[e.1 as usize].form, e.2));
        let more = self.index[of(&self.index)..].iter().take_while(move |e| e.0 == x);
        let more = more.map(|e| (&self.more[e.1 as usize].form, e.2));
        known.chain(more)
    }
}
