//! Evaluating a launch that differs from one before in sizes only: without looking at the kernel's code again.
//!
//! # Why that is sound
//!
//! A template is an evaluation in which some parameter words and grid axes are no numbers but atoms, whose boxes hold all values with
//! the same highest bit. All that `eval` concludes holds whenever the atoms are within their boxes, so the forms of the addresses and
//! the guards hold for each launch with such values. Where a rule needs the number itself (`concrete`, coefficients, words read in
//! parts), or a condition is left open that only the numbers decide, there is no template. For a launch the boxes shrink to its
//! values, block indices to its grid, and the bounds of the addresses are found as in any evaluation. Exactness rests on indices,
//! counters and constraints alone (`extent`), never on the boxes of other atoms, so wide boxes claim nothing.
//!
//! A template may be less precise than an evaluation with numbers: `kept` compares the two for the first launches and drops it then.

use super::eval::{AtomKind, Eval, Key, WordSet};
use super::extent::{Reached, Ready};
use super::facts::{Con, Facts};
use super::form::{AtomId, Form, Int};
use super::node::Target;
use super::{Analysis, Shape, shape, word32, word64};
use crate::access::LaunchArgs;
use crate::ir::{BlockId, Reason, Special};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::rc::Rc;

/// Atoms of a template; larger kernels gain little.
const MAX_ATOMS: usize = 400;

/// What of a launch is no number.
#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct Vary {
    /// Offsets of 4-byte parameter words.
    pub words: SmallVec<[usize; 4]>,
    /// Axes of the grid.
    pub grid: [bool; 3],
}

impl Vary {
    /// Does one of `bytes` bytes of the parameters vary?
    pub fn touches(&self, off: usize, bytes: usize) -> bool {
        self.words.iter().any(|w| *w < off + bytes && off < w + 4)
    }
}

/// The values with the same highest bit.
pub(super) fn octave(v: u64) -> (Int, Int) {
    match v.checked_ilog2() {
        None => (0, 0),
        Some(k) => (1 << k, (1 << (k + 1)) - 1),
    }
}

/// A parameter word that may have any value between two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub off: u16,
    pub bytes: u8,
    pub lo: Int,
    pub hi: Int,
}

/// Where an atom gets its box from in a launch.
#[derive(Clone, Copy, Debug)]
enum Source {
    Fixed,
    Word(u16, u8),
    Grid(u8),
}

#[derive(Debug)]
struct Seed {
    lo: Int,
    hi: Int,
    kind: AtomKind,
    opaque: Option<Reason>,
    home: BlockId,
    deps: SmallVec<[AtomId; 3]>,
    cons: SmallVec<[u32; 2]>,
    source: Source,
}

/// One access: its addresses and what holds when it is made.
#[derive(Debug)]
struct Entry {
    access: usize,
    block: BlockId,
    facts: u32,
    forms: Vec<Form>,
    width: Int,
    complete: bool,
}

/// An evaluation that holds for many launches.
#[derive(Debug)]
pub(super) struct Template {
    shape: Shape,
    grid: [(Int, Int); 3],
    words: Vec<(usize, u32)>,
    ranges: Vec<Range>,
    atoms: Vec<Seed>,
    cons: Vec<Form>,
    facts: Vec<Vec<u32>>,
    entries: Vec<Entry>,
    exact_trip: Vec<bool>,
}

/// Renumbers what a template keeps.
#[derive(Default)]
struct Packer {
    /// Atoms that are kept, ascending.
    atoms: Vec<AtomId>,
    cons: FxHashMap<u32, u32>,
    forms: Vec<Form>,
}

impl Packer {
    fn atom(&self, a: AtomId) -> AtomId {
        AtomId(self.atoms.partition_point(|x| *x < a) as u32)
    }

    /// Atoms keep their order, so that forms stay sorted.
    fn form(&self, f: &Form) -> Form {
        Form { terms: f.terms.iter().map(|t| (self.atom(t.0), t.1)).collect(), c: f.c }
    }

    fn con(&mut self, c: &Con) -> u32 {
        if let Some(k) = self.cons.get(&c.id()) {
            return *k;
        }
        let f = self.form(c);
        self.forms.push(f);
        let k = self.forms.len() as u32 - 1;
        self.cons.insert(c.id(), k);
        k
    }
}

impl Template {
    /// The template of a launch, if there is one.
    pub fn new(a: &Analysis, launch: &LaunchArgs<'_>, vary: &Vary) -> Option<Template> {
        let mut e = a.eval(launch);
        e.vary = vary.clone();
        let mut ready: Vec<(usize, BlockId, Ready)> = Vec::new();
        for (k, acc) in a.graph.accesses.iter().enumerate() {
            if !matches!(acc.target, Target::Address(_)) {
                return None;
            }
            let Some(r) = e.ready(acc) else { continue };
            if e.poisoned.get() || r.forms.iter().any(|f| e.bases(f).is_empty()) {
                return None;
            }
            ready.push((k, acc.block, r));
        }
        if e.poisoned.get() || e.exhausted() {
            return None;
        }
        pack(&e, launch, ready)
    }

    /// Does it hold for this launch?
    pub fn fits(&self, launch: &LaunchArgs<'_>) -> bool {
        let (own, s) = (&self.shape, shape(launch));
        (own.1, own.2, own.3, own.4) == (s.1, s.2, s.3, s.4)
            && self.grid.iter().zip(s.0).all(|(g, v)| (g.0..=g.1).contains(&Int::from(v)))
            && self.words.iter().all(|(o, v)| word32(launch.params, *o) == *v)
            && self.ranges.iter().all(|r| (r.lo..=r.hi).contains(&value(launch, r.off, r.bytes)))
    }

    /// What the accesses reach in a launch that it fits, by access, ascending; and the parameter words that matter.
    pub fn reached(&self, a: &Analysis, launch: &LaunchArgs<'_>) -> (Vec<(usize, Vec<Reached>)>, WordSet) {
        let mut e = a.eval(launch);
        e.exact_trip.clone_from(&self.exact_trip);
        let cons: SmallVec<[Con; 8]> = self.cons.iter().map(|f| e.own_con(f.clone())).collect();
        e.atoms.reserve(self.atoms.len());
        for s in &self.atoms {
            let (lo, hi) = match s.source {
                Source::Fixed => (s.lo, s.hi),
                Source::Word(off, bytes) => {
                    let v = value(launch, off, bytes);
                    (v, v)
                }
                Source::Grid(d) => (0, Int::from(launch.grid[usize::from(d)]) - 1),
            };
            let x = e.new_atom(lo, hi, s.opaque, s.home);
            let atom = &mut e.atoms[x.0 as usize];
            atom.kind = s.kind;
            atom.deps.clone_from(&s.deps);
            atom.cons.extend(s.cons.iter().map(|c| cons[*c as usize].clone()));
        }
        let facts = |f: &Vec<u32>| Facts::new(f.iter().map(|c| cons[*c as usize].clone()).collect());
        let facts: SmallVec<[Facts; 4]> = self.facts.iter().map(facts).collect();
        let mut out = Vec::with_capacity(self.entries.len());
        for t in &self.entries {
            let facts = &facts[t.facts as usize];
            // A guard that these numbers contradict: the access is not made.
            if facts.iter().any(|c| e.boxed(c, false).0 > 0) {
                continue;
            }
            let mut r = Vec::new();
            for f in &t.forms {
                e.one_form(f, facts, t.width, t.block, t.complete, &mut r);
            }
            a.named(t.access, &mut r);
            out.push((t.access, r));
        }
        let mut used = e.used.into_inner();
        self.words.iter().for_each(|w| used.insert(w.0));
        for r in &self.ranges {
            (0..usize::from(r.bytes)).step_by(4).for_each(|k| used.insert(usize::from(r.off) + k));
        }
        (out, used)
    }
}

fn value(launch: &LaunchArgs<'_>, off: u16, bytes: u8) -> Int {
    match bytes {
        8 => Int::from(word64(launch.params, off)),
        _ => Int::from(word32(launch.params, usize::from(off))),
    }
}

fn pack(e: &Eval<'_>, launch: &LaunchArgs<'_>, ready: Vec<(usize, BlockId, Ready)>) -> Option<Template> {
    let mut p = Packer::default();
    let mut work: Vec<AtomId> = Vec::new();
    let follow = |f: &Form, work: &mut Vec<AtomId>| work.extend(f.terms.iter().map(|t| t.0));
    for (.., r) in &ready {
        r.forms.iter().for_each(|f| follow(f, &mut work));
        r.cons.iter().for_each(|c| follow(c, &mut work));
    }
    let mut kept = vec![false; e.atoms.len()];
    while let Some(x) = work.pop() {
        if std::mem::replace(&mut kept[x.0 as usize], true) {
            continue;
        }
        e.a(x).cons.iter().for_each(|c| follow(c, &mut work));
        work.extend(e.a(x).deps.iter().copied());
    }
    p.atoms = (0..e.atoms.len() as u32).map(AtomId).filter(|x| kept[x.0 as usize]).collect();
    if p.atoms.len() > MAX_ATOMS {
        return None;
    }
    let axis = |x: AtomId| {
        let is = |d: &u8| e.vary.grid[usize::from(*d)] && e.keys.get(&Key::Special(Special::Ctaid(*d))) == Some(&x);
        (0..3u8).find(is)
    };
    let mut atoms = Vec::new();
    for x in p.atoms.clone() {
        let a = e.a(x);
        let source = match (a.kind, axis(x)) {
            (AtomKind::Param(off), _) => Source::Word(off, 8),
            (AtomKind::Scalar(off), _) => Source::Word(off, 4),
            (_, Some(d)) => Source::Grid(d),
            _ => Source::Fixed,
        };
        let deps = a.deps.iter().map(|d| p.atom(*d)).collect();
        let cons = a.cons.iter().map(|c| p.con(c)).collect();
        atoms.push(Seed { lo: a.lo, hi: a.hi, kind: a.kind, opaque: a.opaque, home: a.home, deps, cons, source });
    }
    let mut sets: Vec<(Rc<Facts>, Vec<u32>)> = Vec::new();
    let mut entries = Vec::new();
    for (access, block, r) in ready {
        let set = sets.iter().position(|s| Rc::ptr_eq(&s.0, &r.cons)).unwrap_or_else(|| {
            let ids = r.cons.iter().map(|c| p.con(c)).collect();
            sets.push((r.cons.clone(), ids));
            sets.len() - 1
        });
        let forms = r.forms.iter().map(|f| p.form(f)).collect();
        entries.push(Entry { access, block, facts: set as u32, forms, width: r.width, complete: r.complete });
    }
    let range = |d: usize| {
        let v = launch.grid[d];
        if e.vary.grid[d] { octave(u64::from(v)) } else { (Int::from(v), Int::from(v)) }
    };
    Some(Template {
        shape: shape(launch),
        grid: [range(0), range(1), range(2)],
        words: e.used.borrow().iter().map(|o| (o, word32(launch.params, o))).collect(),
        ranges: e.ranges.clone(),
        atoms,
        cons: p.forms,
        facts: sets.into_iter().map(|s| s.1).collect(),
        entries,
        exact_trip: e.exact_trip.clone(),
    })
}
