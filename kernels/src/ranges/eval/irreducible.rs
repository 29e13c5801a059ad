//! Joins on cycles that no loop header breaks (irreducible control flow).
//!
//! Owns the value of such joins. Hand-scheduled kernels jump from one copy of a loop into the
//! other, so no block of the cycle is its header and no counter describes it. What a join has there
//! was made before the cycle, or on it, and then passed on unchanged from join to join. So it is
//! one of the values that are made (its *sources*), as that one was at some earlier time. That is
//! enough where the sources are the same at all times, and where one of them is data: then nothing
//! about the launch tells the join either.
//!
//! Nothing is concluded where a source is made of the join itself: that is a recurrence.

use crate::ir::{BlockId, Reason};
use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::atom::{AtomKey, AtomKind};
use crate::ranges::domain::int::INF;
use crate::ranges::eval::Eval;
use crate::ranges::graph::node::{Kind, NodeId};
use rustc_hash::FxHashSet;

/// Nodes that are looked at for one join.
const MAX_NODES: usize = 512;

impl Eval<'_> {
    pub(crate) fn in_irreducible(&self, b: BlockId) -> bool {
        self.cfg.irreducible && self.cfg.in_irreducible[b.0 as usize]
    }

    /// The value of a join on such a cycle.
    pub(crate) fn irreducible_phi(&mut self, n: NodeId, b: BlockId) -> AffineForm {
        if let Some(s) = self.scope.symbol(n) {
            return AffineForm::atom(s);
        }
        let bits = self.g.node(n).width.bits();
        let Some(sources) = self.sources(n) else {
            return self.opaque(AtomKey::Node(n, 42), Reason::Irreducible, bits, b);
        };
        // Conditions that hold where a source is made may look at the join.
        let s = self.atoms.new_atom(-INF, INF, None, b);
        self.atoms[s].kind = AtomKind::Unsolved;
        let mark = self.scope.unsolved(n, s);
        let mut forms: Vec<AffineForm> = Vec::new();
        for source in sources {
            let f = self.ev(source);
            if !forms.contains(&f) {
                forms.push(f);
            }
        }
        self.scope.solved(n, mark);
        // A register that was never written on the way here is not read.
        let undefined = |e: &Self, f: &AffineForm| e.atoms.why(f) == Some(Reason::Undefined);
        if forms.iter().any(|f| !undefined(self, f)) {
            forms.retain(|f| !undefined(self, f));
        }
        match &forms[..] {
            [f] if self.same_at_all_times(f) => return f.clone(),
            _ if forms.iter().all(AffineForm::is_const) => {
                let arms = forms.into_iter().map(|f| (f, Vec::new())).collect();
                return self.join(arms, n, 4, b);
            }
            _ => {}
        }
        // What a rule might still make known comes before data.
        let reason =
            |f: &AffineForm| if self.supported_by(f, s) { Some(Reason::Irreducible) } else { self.atoms.why(f) };
        let why = forms.iter().filter_map(reason).min_by_key(|r| r.is_data());
        self.opaque(AtomKey::Node(n, 42), why.unwrap_or(Reason::Irreducible), bits, b)
    }

    /// The nodes whose values a join passes on. `None`: one of them is made of the join, or there
    /// are too many.
    fn sources(&self, join: NodeId) -> Option<Vec<NodeId>> {
        let passes_on = |n: NodeId| matches!(self.g.node(n).kind, Kind::Phi(_) | Kind::LoopPhi(..));
        let (mut joins, mut sources) = (FxHashSet::default(), Vec::new());
        let mut work = vec![join];
        while let Some(n) = work.pop() {
            if joins.len() > MAX_NODES {
                return None;
            }
            if !passes_on(n) {
                sources.push(n);
            } else if joins.insert(n) {
                work.extend(self.g.operands(n));
            }
        }
        let (mut seen, mut work) = (FxHashSet::default(), sources.clone());
        while let Some(n) = work.pop() {
            if joins.contains(&n) || seen.len() > MAX_NODES {
                return None;
            }
            if seen.insert(n) {
                work.extend(self.g.operands(n));
            }
        }
        Some(sources)
    }

    /// Has a form one value for each thread, whenever it is computed?
    fn same_at_all_times(&self, f: &AffineForm) -> bool {
        f.terms.iter().flat_map(|t| self.support(t.0)).all(|x| {
            let a = &self.atoms[x];
            let of_thread = matches!(
                a.kind,
                AtomKind::Index | AtomKind::Param(_) | AtomKind::Symbol(_) | AtomKind::ParamAddress(_)
            );
            of_thread || a.kind == AtomKind::Plain && a.opaque.is_none() && !a.choice && a.floor.is_some()
        })
    }
}
