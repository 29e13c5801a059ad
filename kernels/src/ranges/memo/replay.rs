//! Tapes replayed for other launches. (`domain/tape.rs` argues why a replay is an evaluation.)
//!
//! Owns recorded evaluations: what is left of a tape when only what decides, or is part of the
//! result, is kept.

use crate::effects::{Extent, LaunchArgs};
use crate::ranges::domain::byte_set::ByteSet;
use crate::ranges::domain::int::Int;
use crate::ranges::domain::tape::{self, LaunchInput, Tape, TapeBase, TapeOp, TapeTerms};
use crate::ranges::domain::tape_arithmetic::Linear;
use crate::ranges::eval::state::budget::take_spent;
use crate::ranges::extent::reached::EvaluatedAccesses;
use smallvec::SmallVec;
use std::sync::Arc;

#[derive(Debug)]
enum What {
    Input(LaunchInput),
    Op(TapeOp, Linear, Linear),
    Sum(TapeTerms),
}

/// One value, which must be within bounds.
#[derive(Debug)]
struct Step {
    what: What,
    lo: i128,
    hi: i128,
}

/// The tape of one evaluation: each step makes a value; numbers are linear in one value.
#[derive(Debug)]
pub(crate) struct ReplayProgram {
    steps: Vec<Step>,
    not: Vec<(u32, i128)>,
    result: EvaluatedAccesses<ByteSet<Linear>>,
}

/// An evaluation, and what it rests on.
#[derive(Clone, Debug)]
pub(crate) struct RecordedEvaluation {
    pub(crate) result: EvaluatedAccesses<Extent>,
    /// The inputs that its result was made with.
    pub(crate) inputs: Vec<LaunchInput>,
    /// For other launches.
    pub(crate) program: Option<Arc<ReplayProgram>>,
    /// What it has cost, in bounds and steps of their search.
    pub(crate) spent: u64,
}

/// How a launch is evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// For this launch, and for those with its numbers.
    Plain,
    /// And recorded for other launches.
    Recorded,
    /// As [`Way::Plain`], with a small budget.
    Brief,
}

/// Evaluates, and records it for other launches if wanted.
pub(crate) fn record(way: Way, evaluate: impl FnOnce() -> EvaluatedAccesses<ByteSet>) -> RecordedEvaluation {
    take_spent();
    let (result, mut tape) = tape::run(way == Way::Recorded, evaluate);
    let spent = take_spent();
    if !tape.is_full() {
        let program = ReplayProgram::new(&tape, &result);
        let inputs = program.inputs().collect();
        return RecordedEvaluation { inputs, program: Some(Arc::new(program)), result: finished(&result), spent };
    }
    // Numbers may be in the result as they were read.
    for (_, r, _) in &result {
        r.map(&mut |extent| extent.map(&mut |x| tape.touch(x)));
    }
    RecordedEvaluation { result: finished(&result), inputs: tape.into_touched(), program: None, spent }
}

fn finished(result: &EvaluatedAccesses<ByteSet>) -> EvaluatedAccesses<Extent> {
    result.iter().map(|(kind, r, at)| (*kind, r.finished(Int::now), *at)).collect()
}

impl ReplayProgram {
    /// What of a tape decides or makes a result.
    pub(crate) fn new(tape: &Tape, result: &EvaluatedAccesses<ByteSet>) -> ReplayProgram {
        let mut needed: Vec<bool> = tape.sums.iter().map(|s| s.asked != (None, None) || !s.not.is_empty()).collect();
        let mut formulas: EvaluatedAccesses<_> = Vec::with_capacity(result.len());
        for (kind, r, at) in result {
            let mut formula = |x| {
                let l = tape.linear(x);
                if l.k != 0 {
                    needed[l.sum as usize] = true;
                }
                l
            };
            formulas.push((*kind, r.map(&mut |extent| extent.map(&mut formula)), *at));
        }
        // What a sum is made of comes before it.
        for s in (0..tape.sums.len()).rev() {
            if !needed[s] {
                continue;
            }
            for (b, _) in &tape.sums[s].terms {
                needed[tape.alone(*b) as usize] = true;
                if let TapeBase::Op(_, x, y) = tape.bases[*b as usize] {
                    [x, y].iter().filter(|l| l.k != 0).for_each(|l| needed[l.sum as usize] = true);
                }
            }
        }
        let mut place = vec![0; tape.sums.len()];
        let mut p = ReplayProgram { steps: Vec::new(), not: Vec::new(), result: Vec::new() };
        for (s, sum) in tape.sums.iter().enumerate().filter(|s| needed[s.0]) {
            let moved = |l: Linear| l.moved(&place);
            let what = match (&sum.terms[..], sum.terms.first().map(|t| tape.bases[t.0 as usize])) {
                ([_], Some(TapeBase::Input(i))) => What::Input(i),
                ([_], Some(TapeBase::Op(op, x, y))) => What::Op(op, moved(x), moved(y)),
                (terms, _) => What::Sum(terms.iter().map(|t| (place[tape.alone(t.0) as usize], t.1)).collect()),
            };
            place[s] = p.steps.len() as u32;
            p.not.extend(sum.not.iter().map(|v| (place[s], *v)));
            let (lo, hi) = (sum.asked.0.unwrap_or(i128::MIN), sum.asked.1.unwrap_or(i128::MAX));
            p.steps.push(Step { what, lo, hi });
        }
        formulas.iter_mut().for_each(|f| f.1 = f.1.map(&mut |extent| extent.map(&mut |l| l.moved(&place))));
        p.result = formulas;
        p
    }

    /// The inputs that the result rests on.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = LaunchInput> {
        self.steps.iter().filter_map(|s| match s.what {
            What::Input(i) => Some(i),
            _ => None,
        })
    }

    /// What an evaluation of this launch would find, if it is one that this holds for.
    pub(crate) fn play(&self, launch: &LaunchArgs<'_>) -> Option<EvaluatedAccesses<Extent>> {
        let mut values: SmallVec<[i128; 32]> = SmallVec::with_capacity(self.steps.len());
        for s in &self.steps {
            let v = match &s.what {
                What::Input(i) => i128::from(i.read(launch)),
                What::Op(op, x, y) => op.apply(x.of(&values), y.of(&values)),
                What::Sum(terms) => {
                    terms.iter().fold(0i128, |v, (at, k)| v.wrapping_add(values[*at as usize].wrapping_mul(*k)))
                }
            };
            if v < s.lo || v > s.hi {
                return None;
            }
            values.push(v);
        }
        if self.not.iter().any(|(at, v)| values[*at as usize] == *v) {
            return None;
        }
        Some(self.result.iter().map(|(kind, r, at)| (*kind, r.finished(|l: Linear| l.of(&values)), *at)).collect())
    }
}

impl Linear {
    /// The same with its sum at its place. (A constant has none, and there may be no sum at all.)
    fn moved(self, place: &[u32]) -> Linear {
        if self.k == 0 { self } else { Linear { sum: place[self.sum as usize], ..self } }
    }

    /// Its value, when its sum is a place among these.
    #[inline]
    fn of(self, values: &[i128]) -> i128 {
        match self.k {
            0 => self.c,
            1 => values[self.sum as usize].wrapping_add(self.c),
            k => values[self.sum as usize].wrapping_mul(k).wrapping_add(self.c),
        }
    }
}
