//! Cholesky's factors, what is solved with them, and inverses from them.

use num_traits::{Float, Zero};

use super::solve::{solve, transpose};
use crate::model::block::{Block, Part};
use crate::model::launch::Call;
use crate::numerics::matrix::{Fill, Matrix};
use crate::numerics::memory::Memory;
use crate::numerics::number::{Compute, Number};

/// What is done with a triangle.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CholeskyOp {
    /// `A = L L^H`, or `A = U^H U`, in place.
    Factor,
    /// Solves `A X = B` with the factor.
    Solve(Matrix),
    /// The inverse of A from the factor, in place.
    Inverse,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cholesky {
    pub op: CholeskyOp,
    /// All of A; only the triangle `part` of it is touched.
    pub a: Matrix,
    pub part: Part,
    /// One number for each matrix.
    pub info: Matrix,
    pub batch: usize,
    pub compute: Compute,
}

impl Cholesky {
    /// The triangle alone.
    fn triangle(&self) -> Matrix {
        self.a.filled(Fill::Triangular(self.part, false))
    }

    /// What it touches.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut out = match self.op {
            CholeskyOp::Solve(b) => vec![self.triangle().read_block(self.batch), b.write_block(self.batch, true)],
            _ => vec![self.triangle().write_block(self.batch, true)],
        };
        // `potrsBatched` has one number for the whole batch.
        let infos = if self.info.batch_stride == 0 { 1 } else { self.batch };
        out.push(self.info.write_block(infos, false));
        out
    }

    fn one<T: Number>(&self, memory: &Memory<'_>, batch: usize) -> Option<i32> {
        let n = self.a.size[0];
        match self.op {
            CholeskyOp::Factor => {
                let mut a = self.a.filled(Fill::Hermitian(self.part)).load::<T>(memory, batch)?;
                let info = factor(&mut a, n);
                self.store(memory, batch, &a)?;
                Some(info)
            }
            CholeskyOp::Solve(b) => {
                let (lower, upper) = self.factors::<T>(memory, batch)?;
                let mut x = b.load::<T>(memory, batch)?;
                for x in x.chunks_mut(n.max(1)).take(b.size[1]) {
                    solve(&lower, n, Part::Lower, x);
                    solve(&upper, n, Part::Upper, x);
                }
                b.store(memory, batch, &x)?;
                Some(0)
            }
            CholeskyOp::Inverse => {
                let (lower, upper) = self.factors::<T>(memory, batch)?;
                if let Some(j) = (0..n).find(|&j| lower[j + j * n].is_zero()) {
                    return Some(j as i32 + 1);
                }
                let mut x = vec![T::zero(); n * n];
                for (j, x) in x.chunks_mut(n.max(1)).enumerate() {
                    x[j] = T::one();
                    solve(&lower, n, Part::Lower, x);
                    solve(&upper, n, Part::Upper, x);
                }
                self.store(memory, batch, &x)?;
                Some(0)
            }
        }
    }

    /// The lower factor and the upper one, whichever is stored.
    fn factors<T: Number>(&self, memory: &Memory<'_>, batch: usize) -> Option<(Vec<T>, Vec<T>)> {
        let stored = self.triangle();
        let adjoint = stored.operated(2).load::<T>(memory, batch)?;
        let stored = stored.load::<T>(memory, batch)?;
        Some(if self.part == Part::Lower { (stored, adjoint) } else { (adjoint, stored) })
    }

    /// Stores the triangle of a matrix of which the lower one is known.
    fn store<T: Number>(&self, memory: &Memory<'_>, batch: usize, lower: &[T]) -> Option<()> {
        let n = self.a.size[0];
        if self.part == Part::Lower {
            return self.triangle().store(memory, batch, lower);
        }
        let upper: Vec<T> = transpose(lower, n, n).iter().map(|value| value.conj()).collect();
        self.triangle().store(memory, batch, &upper)
    }
}

impl Call for Cholesky {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        with_number!(self.compute, T => {
            for batch in 0..self.batch {
                let info = self.one::<T>(memory, batch)?;
                if self.info.at != 0 {
                    self.info.store(memory, batch, &[f64::from(info)])?;
                }
            }
            Some(())
        })
    }
}

/// The lower factor in place of the lower triangle. Answers the order of the first leading minor
/// that is not positive, or 0; the factor is complete up to there.
fn factor<T: Number>(a: &mut [T], n: usize) -> i32 {
    for j in 0..n {
        let pivot = a[j + j * n].re();
        // A NaN is not positive either.
        if pivot.is_nan() || pivot <= T::Real::zero() {
            return j as i32 + 1;
        }
        let root = T::of_real(pivot.sqrt());
        a[j + j * n] = root;
        (j + 1..n).for_each(|i| a[i + j * n] /= root);
        for column in j + 1..n {
            let value = a[column + j * n].conj();
            if !value.is_zero() {
                (column..n).for_each(|i| {
                    let lower = a[i + j * n];
                    a[i + column * n] -= lower * value;
                });
            }
        }
    }
    0
}
