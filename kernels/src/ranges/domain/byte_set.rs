//! Byte sets in the numbers of an evaluation: [`Extent`] before the numbers are final.
//!
//! Owns the data and its conversion. The numbers are [`Int`]s during an evaluation, and formulas on
//! a tape.

use crate::effects::{Dim, Extent};
use crate::ir::Reason;
use crate::ranges::domain::int::Int;
use smallvec::SmallVec;

/// Progressions: bytes between neighbours, and how many.
pub(crate) type Dims<N = Int> = SmallVec<[(N, N); 3]>;

/// The bytes of an access relative to a base: an [`Extent`] in the numbers of an evaluation.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum ByteSet<N = Int> {
    Bounded { lo: N, hi: N, dims: Dims<N>, width: N, exact: bool },
    Unknown { reason: Reason },
}

impl<N: Copy> ByteSet<N> {
    pub(crate) fn map<M>(&self, f: &mut impl FnMut(N) -> M) -> ByteSet<M> {
        match self {
            ByteSet::Unknown { reason } => ByteSet::Unknown { reason: *reason },
            ByteSet::Bounded { lo, hi, dims, width, exact } => {
                let dims = dims.iter().map(|d| (f(d.0), f(d.1))).collect();
                ByteSet::Bounded { lo: f(*lo), hi: f(*hi), dims, width: f(*width), exact: *exact }
            }
        }
    }

    /// With final numbers, as other modules see it.
    pub(crate) fn finished(&self, value: impl Fn(N) -> i128) -> Extent {
        match self {
            ByteSet::Unknown { reason } => Extent::Unknown { reason: *reason },
            ByteSet::Bounded { lo, hi, dims, width, exact } => {
                let signed = |n: N| value(n).clamp(i64::MIN.into(), i64::MAX.into()) as i64;
                let count = |n: N| value(n).clamp(0, u64::MAX.into()) as u64;
                Extent::Bounded {
                    lo: signed(*lo),
                    hi: signed(*hi),
                    dims: dims.iter().map(|d| Dim { stride: count(d.0), count: count(d.1) }).collect(),
                    width: count(*width) as u32,
                    exact: *exact,
                }
            }
        }
    }
}
