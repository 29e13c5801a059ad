//! Accesses through a table of pointers: the address is a word loaded from behind a parameter or
//! from a variable, plus an offset.
//!
//! Owns the recognition of such accesses. The addresses in the table are not known here. The result
//! names the words that are loaded, and the bytes behind each of them. That is worth something only
//! when each of the words is really used: they must be *exactly* the words that the threads of the
//! access load (or just one word). An index that is itself data (an expert, a list of pages) proves
//! nothing about any one entry, and neither does a table behind a table. Both stay unknown.

use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::atom::AtomKind;
use crate::ranges::domain::byte_set::ByteSet;
use crate::ranges::domain::int::Int;
use crate::ranges::eval::Eval;
use crate::ranges::eval::recurrences::support_of;
use crate::ranges::extent::address::{bases, expand, extent_of};
use crate::ranges::extent::reached::{AccessContext, ReachedBytes, SymbolicBase, TableRoot};

/// Larger than the distance between any two offsets behind one pointer. Word and offset are put
/// into one number with this factor, so that different words can not give the same number.
const APART: Int = Int::pow2(42);

/// The access as one through a table, if its address has that form.
pub(crate) fn through_table(eval: &mut Eval<'_>, f: &AffineForm, made: AccessContext<'_>) -> Option<ReachedBytes> {
    let mut loaded = f.terms.iter().filter(|t| t.1 == 1 && eval.atoms[t.0].loaded.is_some());
    let (x, _) = *loaded.next()?;
    if loaded.next().is_some() {
        return None;
    }
    let node = eval.atoms[x].loaded?;
    let rest = f.without(x);
    // With another pointer among the terms it is not known which of the two is the base.
    let plain = |e: &Eval<'_>, f: &AffineForm| {
        f.terms.iter().all(|t| matches!(e.atoms[t.0].kind, AtomKind::Plain | AtomKind::Index | AtomKind::Iteration(_)))
    };
    let place = eval.ev(node);
    let [place] = &expand(&eval.atoms, &place)[..] else { return None };
    let (base, root) = match bases(&eval.atoms, place)[..] {
        [(base, SymbolicBase::Word(word))] => (base, TableRoot::Word(word)),
        [(base, SymbolicBase::Symbol(symbol))] => (base, TableRoot::Symbol(symbol)),
        _ => return None,
    };
    let slot = place.without(base);
    if !plain(eval, &rest) || !plain(eval, &slot) {
        return None;
    }
    // The index must be the same when the access is made: no counter of a loop that has ended
    // since.
    let counters = slot.terms.iter().flat_map(|t| support_of(&eval.atoms, t.0));
    for a in counters {
        if let AtomKind::Iteration(l) = eval.atoms[a].kind
            && !eval.cfg.loops[l as usize].members[made.block.0 as usize]
        {
            return None;
        }
    }
    let ByteSet::Bounded { lo, hi, dims, exact: all, .. } =
        extent_of(eval, &slot, AccessContext { width: 8.into(), ..made })
    else {
        return None;
    };
    let (stride, count) = match dims[..] {
        [] if hi - lo == 8 => (8, 1),
        [(stride, count)] if stride.divides(8.into()) => (stride.pin() as u64, count.pin() as u64),
        _ => return None,
    };
    let mut extent = extent_of(eval, &rest, made);
    // An unknown offset may lead from this word to another pointer (a choice between two loaded
    // pointers is the first one plus their difference).
    let ByteSet::Bounded { lo: first, hi: last, exact, width: bytes, .. } = &mut extent else { return None };
    if *bytes == 0 {
        return None;
    }
    // Word and offset as one number: when that is exact, every word is used; and when the two
    // rest on different things, with every offset.
    let near = *last - *first < APART;
    let both = extent_of(eval, &slot.scale(APART).add(&rest, 1), made);
    let joint = near && matches!(both, ByteSet::Bounded { exact: true, .. });
    if count > 1 && !all && !joint {
        return None;
    }
    let of = |f: &AffineForm| f.terms.iter().flat_map(|t| support_of(&eval.atoms, t.0)).collect::<Vec<_>>();
    let (p, q) = (of(&slot), of(&rest));
    *exact = joint && !p.iter().any(|a| q.contains(a));
    Some(ReachedBytes::new(SymbolicBase::Table { root, lo: lo.pin() as i64, stride, count }, false, extent))
}
