//! Conditions over integer forms, and what they imply.
//!
//! Owns [`Cond`] and its logic. `eval/conditions.rs` makes conditions from predicates.

use crate::ranges::domain::affine::AffineForm;
use crate::ranges::domain::constraints::ConstraintRef;

/// A condition over integer forms.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Cond {
    True,
    False,
    Unknown,
    /// form <= 0
    Le(AffineForm),
    /// form == 0
    Eq(AffineForm),
    /// form != 0
    Ne(AffineForm),
    And(Vec<Cond>),
    Or(Vec<Cond>),
}

impl Cond {
    pub(crate) fn negate(&self) -> Cond {
        match self {
            Cond::True => Cond::False,
            Cond::False => Cond::True,
            Cond::Unknown => Cond::Unknown,
            Cond::Le(f) => Cond::Le(f.scale(-1).plus(1)),
            Cond::Eq(f) => Cond::Ne(f.clone()),
            Cond::Ne(f) => Cond::Eq(f.clone()),
            Cond::And(v) => Cond::Or(v.iter().map(Cond::negate).collect()),
            Cond::Or(v) => Cond::And(v.iter().map(Cond::negate).collect()),
        }
    }

    pub(crate) fn of(b: bool) -> Cond {
        if b { Cond::True } else { Cond::False }
    }

    pub(crate) fn known(&self) -> Option<bool> {
        match self {
            Cond::True => Some(true),
            Cond::False => Some(false),
            _ => None,
        }
    }

    /// `p ? x : y`, where `p` is not decided.
    pub(crate) fn choice(p: Cond, x: Cond, y: Cond) -> Cond {
        match (&x, &y) {
            (_, Cond::False) => Cond::all([p, x]),
            (_, Cond::True) => Cond::any([p.negate(), x]),
            (Cond::True, _) => Cond::any([p, y]),
            (Cond::False, _) => Cond::all([p.negate(), y]),
            _ if x == y => x,
            _ => Cond::Unknown,
        }
    }

    /// One of these, of the ways that lead to a join.
    pub(crate) fn joined(mut live: Vec<Cond>) -> Cond {
        // Equal as forms: equal on every way, as in a join of values.
        if live.first().is_some_and(|first| *first != Cond::Unknown && live.iter().all(|c| c == first)) {
            return live.swap_remove(0);
        }
        // The value holds only if the other path was taken and its value holds; what that path's
        // own guards say is not known here, so it implies the value only.
        match &live[..] {
            [Cond::False, c] | [c, Cond::False] => Cond::And(vec![c.clone(), Cond::Unknown]),
            [Cond::True, c] | [c, Cond::True] => Cond::Or(vec![c.clone(), Cond::Unknown]),
            _ => Cond::Unknown,
        }
    }

    pub(crate) fn all(v: impl IntoIterator<Item = Cond>) -> Cond {
        let mut out = Vec::new();
        for c in v {
            match c {
                Cond::True => {}
                Cond::False => return Cond::False,
                c => out.push(c),
            }
        }
        match out.len() {
            0 => Cond::True,
            1 => out.swap_remove(0),
            _ => Cond::And(out),
        }
    }

    pub(crate) fn any(v: impl IntoIterator<Item = Cond>) -> Cond {
        let mut out = Vec::new();
        for c in v {
            match c {
                Cond::False => {}
                Cond::True => return Cond::True,
                c => out.push(c),
            }
        }
        match out.len() {
            0 => Cond::False,
            1 => out.swap_remove(0),
            _ => Cond::Or(out),
        }
    }
}

/// What a condition implies, as constraints; `!=` kept apart for loops.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    /// Never positive.
    Le(ConstraintRef),
    /// Never zero.
    Ne(AffineForm),
}

/// Three-input truth table over decided and undecided values.
pub(crate) fn table(v: [Cond; 3], lut: u8) -> Cond {
    let at = |x: [bool; 3]| lut >> (u8::from(x[0]) << 2 | u8::from(x[1]) << 1 | u8::from(x[2])) & 1 == 1;
    let free: Vec<usize> = (0..3).filter(|i| v[*i].known().is_none()).collect();
    let base = [0, 1, 2].map(|i| v[i].known().unwrap_or(false));
    let rows: Vec<(u8, bool)> = (0..1u8 << free.len())
        .map(|bits| {
            let mut x = base;
            for (k, i) in free.iter().enumerate() {
                x[*i] = bits >> k & 1 == 1;
            }
            (bits, at(x))
        })
        .collect();
    let ones: Vec<u8> = rows.iter().filter(|r| r.1).map(|r| r.0).collect();
    if ones.is_empty() {
        return Cond::False;
    }
    if ones.len() == rows.len() {
        return Cond::True;
    }
    // An input that does not matter is set to false.
    for (k, i) in free.iter().enumerate() {
        if rows.iter().all(|r| r.1 == rows[usize::from(r.0 ^ 1 << k)].1) {
            let mut w = v.clone();
            w[*i] = Cond::False;
            return table(w, lut);
        }
    }
    let literals = |bits: u8| {
        free.iter()
            .enumerate()
            .map(|(k, i)| if bits >> k & 1 == 1 { v[*i].clone() } else { v[*i].negate() })
            .collect::<Vec<_>>()
    };
    if let [one] = ones[..] {
        return Cond::all(literals(one));
    }
    if ones.len() == rows.len() - 1
        && let Some(zero) = rows.iter().find(|r| !r.1)
    {
        return Cond::all(literals(zero.0)).negate();
    }
    // What is the same in every row that holds is implied.
    let same = |k: usize| ones.iter().all(|r| (r ^ ones[0]) >> k & 1 == 0);
    let implied: Vec<Cond> = literals(ones[0]).into_iter().enumerate().filter(|(k, _)| same(*k)).map(|l| l.1).collect();
    if implied.is_empty() { Cond::Unknown } else { Cond::all(implied.into_iter().chain([Cond::Unknown])) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_fold_what_is_decided() {
        assert_eq!(table([Cond::True, Cond::True, Cond::Unknown], 0xc0), Cond::True);
        assert_eq!(table([Cond::True, Cond::False, Cond::Unknown], 0xc0), Cond::False);
        let le = Cond::Le(AffineForm::konst(3));
        assert_eq!(table([le.clone(), Cond::True, Cond::False], 0xc0), le);
        assert_eq!(table([le.clone(), Cond::False, Cond::False], 0xfc), le);
        assert_eq!(table([le.clone(), Cond::False, Cond::False], 0x0f), le.negate());
        assert_eq!(table([le.clone(), Cond::Unknown, Cond::False], 0x3c), Cond::Unknown);
    }

    #[test]
    fn negation_of_a_comparison_is_its_complement() {
        let f = AffineForm::konst(0).plus(5);
        assert_eq!(Cond::Le(f.clone()).negate(), Cond::Le(f.scale(-1).plus(1)));
        assert_eq!(Cond::all([Cond::True, Cond::Unknown, Cond::False]), Cond::False);
        assert_eq!(Cond::any([Cond::Unknown, Cond::True]), Cond::True);
    }
}
