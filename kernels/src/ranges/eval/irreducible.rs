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

use crate::ir::cfg::Cfg;
use crate::ir::{BlockId, Reason};
use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::atom::{AtomKey, AtomKind};
use crate::ranges::domain::int::INF;
use crate::ranges::eval::Eval;
use crate::ranges::eval::joins::join;
use crate::ranges::eval::recurrences::{support_of, supported_by};
use crate::ranges::eval::state::atoms::Atoms;
use crate::ranges::graph::node::Graph;
use crate::ranges::graph::node::{Kind, NodeId};
use rustc_hash::FxHashSet;

/// Nodes that are looked at for one join.
const MAX_NODES: usize = 512;

pub(crate) fn in_irreducible(cfg: &Cfg, b: BlockId) -> bool {
    cfg.irreducible && cfg.in_irreducible[b.0 as usize]
}

/// The value of a join on such a cycle.
pub(crate) fn irreducible_phi(eval: &mut Eval<'_>, n: NodeId, b: BlockId) -> AffineForm {
    if let Some(s) = eval.scope.symbol(n) {
        return AffineForm::atom(s);
    }
    let bits = eval.g.node(n).width.bits();
    let Some(sources) = sources(eval.g, n) else {
        return eval.opaque(AtomKey::Node(n, 42), Reason::Irreducible, bits, b);
    };
    // Conditions that hold where a source is made may look at the join.
    let s = eval.atoms.new_atom(-INF, INF, None, b);
    eval.atoms[s].kind = AtomKind::Unsolved;
    let mark = eval.scope.unsolved(n, s);
    let mut forms: Vec<AffineForm> = Vec::new();
    for source in sources {
        let f = eval.ev(source);
        if !forms.contains(&f) {
            forms.push(f);
        }
    }
    eval.scope.solved(n, mark);
    // A register that was never written on the way here is not read.
    let undefined = |e: &Eval<'_>, f: &AffineForm| e.atoms.why(f) == Some(Reason::Undefined);
    if forms.iter().any(|f| !undefined(eval, f)) {
        forms.retain(|f| !undefined(eval, f));
    }
    match &forms[..] {
        [f] if same_at_all_times(&eval.atoms, f) => return f.clone(),
        _ if forms.iter().all(AffineForm::is_const) => {
            let arms = forms.into_iter().map(|f| (f, Vec::new())).collect();
            return join(eval, arms, n, 4, b);
        }
        _ => {}
    }
    // What a rule might still make known comes before data.
    let reason =
        |f: &AffineForm| if supported_by(&eval.atoms, f, s) { Some(Reason::Irreducible) } else { eval.atoms.why(f) };
    let why = forms.iter().filter_map(reason).min_by_key(|r| r.is_data());
    eval.opaque(AtomKey::Node(n, 42), why.unwrap_or(Reason::Irreducible), bits, b)
}

/// The nodes whose values a join passes on. `None`: one of them is made of the join, or there
/// are too many.
fn sources(graph: &Graph, join: NodeId) -> Option<Vec<NodeId>> {
    let passes_on = |n: NodeId| matches!(graph.node(n).kind, Kind::Phi(_) | Kind::LoopPhi(..));
    let (mut joins, mut sources) = (FxHashSet::default(), Vec::new());
    let mut work = vec![join];
    while let Some(n) = work.pop() {
        if joins.len() > MAX_NODES {
            return None;
        }
        if !passes_on(n) {
            sources.push(n);
        } else if joins.insert(n) {
            work.extend(graph.operands(n));
        }
    }
    let (mut seen, mut work) = (FxHashSet::default(), sources.clone());
    while let Some(n) = work.pop() {
        if joins.contains(&n) || seen.len() > MAX_NODES {
            return None;
        }
        if seen.insert(n) {
            work.extend(graph.operands(n));
        }
    }
    Some(sources)
}

/// Has a form one value for each thread, whenever it is computed?
fn same_at_all_times(atoms: &Atoms, f: &AffineForm) -> bool {
    f.terms.iter().flat_map(|t| support_of(atoms, t.0)).all(|x| {
        let a = &atoms[x];
        let of_thread =
            matches!(a.kind, AtomKind::Index | AtomKind::Param(_) | AtomKind::Symbol(_) | AtomKind::ParamAddress(_));
        of_thread || a.kind == AtomKind::Plain && a.opaque.is_none() && !a.choice && a.floor.is_some()
    })
}
